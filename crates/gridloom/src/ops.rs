//! The operations: what can be enqueued on a stream, recorded in a capture, added to a graph, or added
//! after a node.
//!
//! [`Ops`] is what all four have in common, and [`GraphOps`] what all but streams can do besides. They are
//! for generic code: `stream.launch(…)`, `capture.launch(…)`, `graph.launch(…)` and `node.launch(…)` are
//! methods of the handles themselves.

mod alloc;
mod flow;
mod inherent;

use std::ffi::c_void;
use std::sync::Arc;

pub use alloc::{AllocNode, AllocSlice, Freeable};
use bytemuck::Pod;
pub use flow::GraphOps;
pub(crate) use flow::{After, one_value};
use gridloom_core::op::contract::without_signature;
use gridloom_core::op::{
    AllocOp, CallbackOp, CopySide, KernelOp, Launch, MemcpyOp, MemsetOp, Operation, RawCallback, RawData,
    SendPointer,
};
use smallvec::SmallVec;

use crate::buffer::{CopySource, Element, Memory, Rows, check_alignment};
use crate::kernel::{Arg, Arguments, Kernel, Parameters, UntypedKernel};
use crate::{Capture, Error, ErrorKind, Event, Graph, LaunchConfig, MemoryKind, Node, Result, Stream};

mod sealed {
    pub trait Ops {}
}

/// What streams, captures, graphs and nodes can all do, for code that serves each of them.
///
/// On a [`Stream`] an operation is enqueued; on a [`Capture`], or a stream that is capturing, it is
/// recorded in order; on a [`Graph`] it becomes a node that depends on nothing, on a [`Node`] one that
/// depends on that node.
pub trait Ops: sealed::Ops {
    /// What an operation gives back: `()` on a stream, the new [`Node`] in a capture or graph.
    type Added;

    /// Adds one operation. The other methods are ways to write it.
    fn submit(&self, operation: Operation) -> Result<Self::Added>;

    /// Runs a kernel.
    ///
    /// The compiler checks the arguments against the kernel's parameters:
    ///
    /// ```
    /// # use gridloom::prelude::*;
    /// fn scale(stream: &Stream, kernel: &Kernel<(PtrMut<f32>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
    ///     stream.launch(kernel, LaunchConfig::linear(x.len()), (x, x.len()))
    /// }
    /// ```
    ///
    /// Memory of other elements does not compile:
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// fn scale(stream: &Stream, kernel: &Kernel<(PtrMut<f32>, Len<u32>)>, x: &Buffer<i32>) -> Result<()> {
    ///     stream.launch(kernel, LaunchConfig::linear(x.len()), (x, x.len()))
    /// }
    /// ```
    ///
    /// Nor does a value of another type,
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// fn scale(stream: &Stream, kernel: &Kernel<(PtrMut<f32>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
    ///     stream.launch(kernel, LaunchConfig::linear(x.len()), (x, 4.0))
    /// }
    /// ```
    ///
    /// an argument too few or too many,
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// fn scale(stream: &Stream, kernel: &Kernel<(PtrMut<f32>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
    ///     stream.launch(kernel, LaunchConfig::linear(x.len()), (x,))
    /// }
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// fn scale(stream: &Stream, kernel: &Kernel<(PtrMut<f32>, Len<u32>)>, x: &Buffer<f32>) -> Result<()> {
    ///     stream.launch(kernel, LaunchConfig::linear(x.len()), (x, 1u32, 1u32))
    /// }
    /// ```
    ///
    /// or memory where a condition is expected:
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// fn count(graph: &Graph, kernel: &Kernel<(ConditionHandle,)>, x: &Buffer<u64>) -> Result<Node> {
    ///     graph.launch(kernel, LaunchConfig::one(), (x,))
    /// }
    /// ```
    fn launch<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<P>,
    ) -> Result<Self::Added> {
        self.submit(Operation::Kernel(kernel_launch(kernel, config.into(), args)?))
    }

    /// Runs a kernel whose contract cannot say what this launch needs. It is not checked against it, nor are later changes of it.
    ///
    /// # Safety
    /// With these arguments, in whatever launch shape, the kernel stays within the memory that they lead to.
    unsafe fn launch_unchecked<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<P>,
    ) -> Result<Self::Added> {
        let kernel = without_signature(kernel.backend());
        // SAFETY: the caller promises what is asked for.
        let launch = unsafe { KernelOp::pack(&kernel, config.into(), |packer| args.pack(packer)) };
        self.submit(Operation::Kernel(launch?))
    }

    /// Runs a kernel whose arguments are known only at run time. Their number and sizes are checked.
    ///
    /// # Safety
    /// The arguments are what the kernel expects, and with them, in whatever launch shape, it stays within the memory that they lead to. Memory whose address
    /// is given as a plain value is there for as long as a graph or executable with this operation exists or a launch of it is in flight.
    unsafe fn launch_untyped(
        &self,
        kernel: &UntypedKernel,
        config: impl Into<LaunchConfig>,
        args: impl IntoIterator<Item = Arg>,
    ) -> Result<Self::Added> {
        // SAFETY: the caller promises what is asked for.
        let launch = unsafe {
            KernelOp::pack(kernel.backend(), config.into(), |packer| {
                args.into_iter().try_for_each(|arg| packer.push(arg.0))
            })
        };
        self.submit(Operation::Kernel(launch?))
    }

    /// Fills memory with a value of 1, 2 or 4 bytes, as often as it fits. The memory must hold a whole number of them.
    fn memset<T: Element, V: Pod>(&self, dst: &impl Memory<T>, value: V) -> Result<Self::Added> {
        self.submit(fill_operation(dst, value)?)
    }

    /// Fills `height` rows of `width` values each.
    fn memset_2d<T: Element, V: Pod>(
        &self,
        dst: Rows<T>,
        value: V,
        width: usize,
        height: usize,
    ) -> Result<Self::Added> {
        let (value, element_size) = fill_value(value)?;
        self.submit(Operation::Memset(Arc::new(MemsetOp {
            dst: dst.region,
            value,
            element_size,
            width: width as u64,
            height: height as u64,
            pitch: bytes_of::<T>(dst.pitch)?,
        })))
    }

    /// Copies all elements of `src` to `dst`, which must have as many. A host slice is copied now and not referenced later.
    fn memcpy<T: Element>(
        &self,
        dst: &impl Memory<T>,
        src: &(impl CopySource<T> + ?Sized),
    ) -> Result<Self::Added> {
        self.submit(copy_operation(dst, src)?)
    }

    /// Copies `height` rows of `width` elements.
    fn memcpy_2d<T: Element>(
        &self,
        dst: Rows<T>,
        src: Rows<T>,
        width: usize,
        height: usize,
    ) -> Result<Self::Added> {
        self.memcpy_3d(dst, src, [width, height, 1])
    }

    /// Copies planes of rows of elements; `extents` are elements in a row, rows in a plane, planes.
    fn memcpy_3d<T: Element>(&self, dst: Rows<T>, src: Rows<T>, extents: [usize; 3]) -> Result<Self::Added> {
        let side = |rows: Rows<T>| {
            Ok::<_, Error>(CopySide {
                pitch: bytes_of::<T>(rows.pitch)?,
                rows: rows.rows as u64,
                region: rows.region,
            })
        };
        self.submit(Operation::Memcpy(Arc::new(MemcpyOp {
            dst: side(dst)?,
            src: side(src)?,
            width: bytes_of::<T>(extents[0])?,
            height: extents[1] as u64,
            depth: extents[2] as u64,
        })))
    }

    /// Calls a closure on the host, in order with the device's work.
    ///
    /// It must not use the device: enqueueing, launching or waiting inside it is refused. A panic is caught and becomes the launch's error.
    /// A closure that owns a handle of the graph it is added to keeps that graph alive for ever; let it hold what it needs instead.
    ///
    /// It runs later and on another thread, so it owns what it uses:
    ///
    /// ```
    /// # use gridloom::prelude::*;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// fn count(stream: &Stream) -> Result<Arc<AtomicU32>> {
    ///     let calls = Arc::new(AtomicU32::new(0));
    ///     let inside = calls.clone();
    ///     stream.callback(move || {
    ///         inside.fetch_add(1, Ordering::Relaxed);
    ///     })?;
    ///     Ok(calls)
    /// }
    /// ```
    ///
    /// One that borrows does not compile,
    ///
    /// ```compile_fail,E0597
    /// # use gridloom::prelude::*;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// fn count(stream: &Stream) -> Result<()> {
    ///     let calls = AtomicU32::new(0);
    ///     let inside = &calls;
    ///     stream.callback(move || {
    ///         inside.fetch_add(1, Ordering::Relaxed);
    ///     })
    /// }
    /// ```
    ///
    /// nor does one that holds what another thread must not touch:
    ///
    /// ```compile_fail,E0277
    /// # use gridloom::prelude::*;
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    ///
    /// fn count(stream: &Stream) -> Result<()> {
    ///     let calls = Rc::new(Cell::new(0));
    ///     stream.callback(move || calls.set(calls.get() + 1))
    /// }
    /// ```
    fn callback(&self, closure: impl FnMut() + Send + 'static) -> Result<Self::Added> {
        self.submit(Operation::Callback(CallbackOp::closure(closure)))
    }

    /// Calls a C function on the host with a pointer to a copy of `bytes`, which it must not write and which need not be aligned.
    ///
    /// # Safety
    /// The function may be called from any thread with such a pointer, any number of times.
    unsafe fn callback_raw(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        bytes: &[u8],
    ) -> Result<Self::Added> {
        // SAFETY: the caller promised that the function may be called with a pointer to these bytes.
        let callback = unsafe { RawCallback::new(function, RawData::Bytes(bytes.into())) };
        self.submit(Operation::Callback(CallbackOp::Raw(callback)))
    }

    /// Calls a C function on the host with this very pointer.
    ///
    /// # Safety
    /// The function may be called from any thread with the pointer, any number of times, for as long as a graph or executable with
    /// this operation exists or a launch of it is in flight.
    unsafe fn callback_raw_pointer(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        pointer: *mut c_void,
    ) -> Result<Self::Added> {
        // SAFETY: the caller promised that the function may be called with this pointer on any thread, for as long as it is held.
        let callback = unsafe { RawCallback::new(function, RawData::Pointer(SendPointer::new(pointer))) };
        self.submit(Operation::Callback(CallbackOp::Raw(callback)))
    }

    /// Records an event.
    fn record(&self, event: &Event) -> Result<Self::Added> {
        self.submit(Operation::EventRecord(event.core.backend().clone()))
    }

    /// Waits for an event.
    fn wait(&self, event: &Event) -> Result<Self::Added> {
        self.submit(Operation::EventWait(event.core.backend().clone()))
    }
}

impl sealed::Ops for Stream {}
impl Ops for Stream {
    type Added = ();

    #[inline]
    fn submit(&self, operation: Operation) -> Result<()> {
        self.0.enqueue(operation)
    }

    fn record(&self, event: &Event) -> Result<()> {
        self.0.record(&event.core)
    }

    fn wait(&self, event: &Event) -> Result<()> {
        self.0.wait(&event.core)
    }
}

impl sealed::Ops for Capture {}
impl Ops for Capture {
    type Added = Node;

    #[inline]
    fn submit(&self, operation: Operation) -> Result<Node> {
        self.0.add(operation).map(Node)
    }

    fn record(&self, event: &Event) -> Result<Node> {
        self.0.record_event(&event.core).map(Node)
    }

    fn wait(&self, event: &Event) -> Result<Node> {
        self.0.wait_event(&event.core).map(Node)
    }
}

impl sealed::Ops for Graph {}
impl Ops for Graph {
    type Added = Node;

    #[inline]
    fn submit(&self, operation: Operation) -> Result<Node> {
        self.0.add(&[], operation).map(Node)
    }
}

impl sealed::Ops for Node {}
impl Ops for Node {
    type Added = Node;

    #[inline]
    fn submit(&self, operation: Operation) -> Result<Node> {
        self.0.add(operation).map(Node)
    }
}

/// A launch of a typed kernel.
pub(crate) fn kernel_launch<P: Parameters>(
    kernel: &Kernel<P>,
    config: LaunchConfig,
    args: impl Arguments<P>,
) -> Result<Launch> {
    // SAFETY: the arguments are of the types that the kernel was looked up with (`Arguments`), and whoever looked it up promised that it
    // stays within what such arguments lead to where its contract is kept (`Module::kernel`), which is checked wherever it is added.
    unsafe { KernelOp::pack(kernel.backend(), config, |packer| args.pack(packer)) }
}

/// Memory for `len` elements, provided at each launch.
pub(crate) fn alloc_operation<T>(len: usize, kind: MemoryKind, peers: &[u32]) -> Result<Operation> {
    check_alignment::<T>()?;
    let element_size = u32::try_from(size_of::<T>()).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, "elements of 4 GiB or more cannot be allocated in a graph")
    })?;
    let peers = SmallVec::from_slice(peers);
    Ok(Operation::Alloc(Arc::new(AllocOp { len: len as u64, element_size, kind, peers })))
}

/// A fill of all of `dst`.
pub(crate) fn fill_operation<T: Element, V: Pod>(dst: &impl Memory<T>, value: V) -> Result<Operation> {
    let (value, element_size) = fill_value(value)?;
    let dst = dst.region()?;
    if !dst.bytes.is_multiple_of(u64::from(element_size)) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{} bytes cannot be filled with values of {element_size}", dst.bytes),
        ));
    }
    let width = dst.bytes / u64::from(element_size);
    Ok(Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 })))
}

/// A copy of all of `src` to all of `dst`.
pub(crate) fn copy_operation<T: Element>(
    dst: &impl Memory<T>,
    src: &(impl CopySource<T> + ?Sized),
) -> Result<Operation> {
    let (src, len) = src.source()?;
    if dst.len() != len {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("a copy of {len} elements to {}; take a slice of the longer side", dst.len()),
        ));
    }
    let bytes = src.bytes;
    Ok(Operation::Memcpy(Arc::new(MemcpyOp::linear(dst.region()?, src, bytes))))
}

/// The bits and size of a fill value.
pub(crate) fn fill_value<V: Pod>(value: V) -> Result<(u32, u32)> {
    let bytes = bytemuck::bytes_of(&value);
    let mut bits = [0; 4];
    match bytes.len() {
        1 | 2 | 4 => bits[..bytes.len()].copy_from_slice(bytes),
        len => {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "a fill value of {len} bytes ({}); it must have 1, 2 or 4",
                    std::any::type_name::<V>()
                ),
            ));
        }
    }
    Ok((u32::from_le_bytes(bits), bytes.len() as u32))
}

fn bytes_of<T>(elements: usize) -> Result<u64> {
    (elements as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("{elements} elements are more than there are addresses"),
        )
    })
}
