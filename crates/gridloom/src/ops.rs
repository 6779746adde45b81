//! Operations: what can be enqueued on a stream, recorded in a capture, added to a graph, or added
//! after a node.
//!
//! [`Ops`] holds what all four have in common. [`GraphOps`] adds what graphs, nodes and captures
//! can do and streams cannot. The traits are for generic code: `stream.launch(…)`,
//! `capture.launch(…)`, `graph.launch(…)` and `node.launch(…)` are also methods of the handles
//! themselves.

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

use crate::buffer::{CopySource, Element, Memory, Rows, check_alignment, zeroed};
use crate::kernel::{Arg, Arguments, Kernel, Parameters, UntypedKernel};
use crate::{Capture, Error, ErrorKind, Event, Graph, LaunchConfig, MemoryKind, Node, Result, Stream};

mod sealed {
    pub trait Ops {}
}

/// The operations that streams, captures, graphs and nodes share, for code that is generic over
/// them.
///
/// On a [`Stream`] an operation is enqueued. On a [`Capture`], or a stream that is capturing, it is
/// recorded in order. On a [`Graph`] it becomes a node without dependencies. On a [`Node`] it
/// becomes a node that depends on that one.
pub trait Ops: sealed::Ops {
    /// The result of adding an operation: `()` on a stream, the new [`Node`] in a capture or graph.
    type Added;

    /// Adds one operation. The other methods build an operation and pass it to this one.
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
    /// Memory with elements of another type does not compile:
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

    /// Runs a kernel without checking the launch against the kernel's contract, for launches that
    /// the contract cannot describe. Later changes of this launch are not checked either.
    ///
    /// # Safety
    /// With these arguments, in any launch shape, the kernel stays within the memory that they
    /// point to.
    unsafe fn launch_unchecked<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<P>,
    ) -> Result<Self::Added> {
        let kernel = without_signature(kernel.backend());
        // SAFETY: the caller makes the same promise.
        let launch = unsafe { KernelOp::pack(&kernel, config.into(), |packer| args.pack(packer)) };
        self.submit(Operation::Kernel(launch?))
    }

    /// Runs a kernel whose arguments are known only at run time. The number and sizes of the
    /// arguments are checked.
    ///
    /// # Safety
    /// The arguments are what the kernel expects. With them, in any launch shape, the kernel stays
    /// within the memory that they point to. Memory whose address is passed as a plain value exists
    /// for as long as a graph or executable with this operation exists or a launch of it is in
    /// flight.
    unsafe fn launch_untyped(
        &self,
        kernel: &UntypedKernel,
        config: impl Into<LaunchConfig>,
        args: impl IntoIterator<Item = Arg>,
    ) -> Result<Self::Added> {
        // SAFETY: the caller makes the same promise.
        let launch = unsafe {
            KernelOp::pack(kernel.backend(), config.into(), |packer| {
                args.into_iter().try_for_each(|arg| packer.push(arg.0))
            })
        };
        self.submit(Operation::Kernel(launch?))
    }

    /// Fills memory with a repeated value of 1, 2 or 4 bytes. The memory must hold a whole number
    /// of values.
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

    /// Copies all elements of `src` to `dst`. Both must have the same length. A host slice is
    /// copied now and not referenced later.
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

    /// Copies planes of rows. `extents` are elements per row, rows per plane, and planes.
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
    /// The closure must not use the device: enqueueing, launching or waiting inside it is refused.
    /// A panic is caught and becomes the error of the launch. A closure that owns a handle of the
    /// graph it is added to keeps that graph alive for ever. Use [`Graph::downgrade`] there.
    ///
    /// The closure runs later and on another thread, so it must own what it uses:
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
    /// A closure that borrows does not compile,
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
    /// nor does one whose captured values are not `Send`:
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

    /// Calls a closure on the host with the elements of host memory, in order with the device's
    /// work.
    ///
    /// The memory is that of [`Device::alloc_host`](crate::Device::alloc_host). The closure gets a
    /// copy, made when it is called, of what the work before it has left there. Apart from that it
    /// is a [`callback`](Ops::callback).
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let stream = device.stream()?;
    /// let (result, host) = (device.alloc::<f32>(4)?, device.alloc_host::<f32>(4)?);
    ///
    /// let graph = Graph::new(&device);
    /// let computed = graph.memset(&result, 1.5f32)?;
    /// computed.memcpy(&host, &result)?.callback_with(&host, |values| println!("{values:?}"))?;
    /// graph.instantiate()?.launch(&stream)?;
    /// stream.synchronize()
    /// # }
    /// ```
    fn callback_with<T: Element>(
        &self,
        memory: &impl Memory<T>,
        closure: impl FnMut(&[T]) + Send + 'static,
    ) -> Result<Self::Added> {
        self.submit(Operation::Callback(reading_callback(memory, closure)?))
    }

    /// Calls a C function on the host with a pointer to a copy of `bytes`. The function must not
    /// write to it. The copy need not be aligned.
    ///
    /// # Safety
    /// The function may be called from any thread with such a pointer, any number of times.
    unsafe fn callback_raw(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        bytes: &[u8],
    ) -> Result<Self::Added> {
        // SAFETY: the caller promised that the function may be called with a pointer to these
        // bytes.
        let callback = unsafe { RawCallback::new(function, RawData::Bytes(bytes.into())) };
        self.submit(Operation::Callback(CallbackOp::Raw(callback)))
    }

    /// Calls a C function on the host with the given pointer.
    ///
    /// # Safety
    /// The function may be called from any thread with the pointer, any number of times, for as
    /// long as a graph or executable with this operation exists or a launch of it is in flight.
    unsafe fn callback_raw_pointer(
        &self,
        function: unsafe extern "C" fn(*mut c_void),
        pointer: *mut c_void,
    ) -> Result<Self::Added> {
        // SAFETY: the caller promised that the function may be called with this pointer on any
        // thread, for as long as it is held.
        let callback = unsafe { RawCallback::new(function, RawData::Pointer(SendPointer::new(pointer))) };
        self.submit(Operation::Callback(CallbackOp::Raw(callback)))
    }

    /// Records an event.
    fn record(&self, event: &Event) -> Result<Self::Added> {
        let added = self.submit(Operation::EventRecord(event.core.backend().clone()))?;
        event.core.recorded_by_node();
        Ok(added)
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

/// Returns a callback that gets a copy of host memory.
pub(crate) fn reading_callback<T: Element>(
    memory: &impl Memory<T>,
    mut closure: impl FnMut(&[T]) + Send + 'static,
) -> Result<CallbackOp> {
    let len = memory.len();
    Ok(CallbackOp::reading([memory.region()?], move |reads| {
        let mut values = zeroed(len)?;
        reads.copy_into(0, bytemuck::cast_slice_mut(&mut values))?;
        closure(&values);
        Ok(())
    }))
}

/// Returns the operation that launches a typed kernel.
pub(crate) fn kernel_launch<P: Parameters>(
    kernel: &Kernel<P>,
    config: LaunchConfig,
    args: impl Arguments<P>,
) -> Result<Launch> {
    // SAFETY: the arguments have the types that the kernel was looked up with (`Arguments`).
    // Whoever looked it up promised that it stays within what such arguments point to, as long as
    // its contract holds (`Module::kernel`). The contract is checked wherever the launch is added.
    unsafe { KernelOp::pack(kernel.backend(), config, |packer| args.pack(packer)) }
}

/// Returns the operation that allocates memory for `len` elements at each launch.
pub(crate) fn alloc_operation<T>(len: usize, kind: MemoryKind, peers: &[u32]) -> Result<Operation> {
    check_alignment::<T>()?;
    let element_size = u32::try_from(size_of::<T>()).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, "elements of 4 GiB or more cannot be allocated in a graph")
    })?;
    let peers = SmallVec::from_slice(peers);
    Ok(Operation::Alloc(Arc::new(AllocOp { len: len as u64, element_size, kind, peers })))
}

/// Returns the operation that fills all of `dst`.
pub(crate) fn fill_operation<T: Element, V: Pod>(dst: &impl Memory<T>, value: V) -> Result<Operation> {
    let (value, element_size) = fill_value(value)?;
    let dst = dst.region()?;
    if !dst.bytes.is_multiple_of(u64::from(element_size)) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{} bytes cannot be filled with values of {element_size} bytes", dst.bytes),
        ));
    }
    let width = dst.bytes / u64::from(element_size);
    Ok(Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 })))
}

/// Returns the operation that copies all of `src` to all of `dst`.
pub(crate) fn copy_operation<T: Element>(
    dst: &impl Memory<T>,
    src: &(impl CopySource<T> + ?Sized),
) -> Result<Operation> {
    let (src, len) = src.source()?;
    if dst.len() != len {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("cannot copy {len} elements to {}; take a slice of the longer side", dst.len()),
        ));
    }
    let bytes = src.bytes;
    Ok(Operation::Memcpy(Arc::new(MemcpyOp::linear(dst.region()?, src, bytes))))
}

/// Returns the bits and size of a fill value.
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
        Error::new(ErrorKind::InvalidArgument, format!("{elements} elements do not fit in the address space"))
    })
}
