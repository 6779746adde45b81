//! The traits that make a device.
//!
//! One implementation of these is a backend. Everything that arrives here was checked by the core; a backend reports
//! only what it alone can know: that memory ran out, that a driver refused, that a kernel failed.
//!
//! All objects are handed out as `Arc<dyn …>` and retained by whatever uses them, so a backend frees a resource in `Drop` of the
//! object and nowhere else. `as_any` lets a backend recognise its own objects.
//!
//! # What is taken on trust
//!
//! Handles of the core lead to these objects, so what is safe to call here is safe whoever calls it. Where memory depends on what the
//! caller checked, the method is `unsafe`: [`Stream::enqueue`] and [`Device::instantiate`]. Addresses come from [`Allocation`]s alone, and
//! what is checked is checked by what devices, streams, events and kernels say of themselves, which is why these traits are `unsafe` to implement.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Result, bail};
use crate::executable::{InstantiateOptions, MemoryUse, Report};
use crate::graph::{Definition, NodeKey};
use crate::launch::{KernelLimits, Limits};
use crate::memory::{MemoryKind, OutlivingMemory};
use crate::op::contract::Signature;
use crate::op::{KernelOp, Operation, Params};

/// The identity of an opened device. Two devices opened separately differ, even on the same hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId(u64);

impl DeviceId {
    /// A number that no other device of this process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        DeviceId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What kind of hardware a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The host's own processors.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// Nothing at all: operations are recorded, not run.
    Null,
}

/// A device: it owns memory and runs work.
///
/// # Safety
/// No other device has its [`id`](Device::id), its [`limits`](Device::limits) are within what it can run, and memory that it
/// [allocates](Device::allocate) starts at a multiple of 256. The answers never change. Work is checked by them, and not checked again by those that run it.
pub unsafe trait Device: Send + Sync + Debug {
    /// Its identity.
    fn id(&self) -> DeviceId;
    /// Its kind.
    fn kind(&self) -> DeviceKind;
    /// Its name, for people.
    fn name(&self) -> String;
    /// Its number among the devices of its kind.
    fn ordinal(&self) -> u32;
    /// What it allows of a launch.
    fn limits(&self) -> &Limits;
    /// Further facts for people, as pairs of name and value.
    fn properties(&self) -> Vec<(String, String)>;
    /// Allocates memory. `bytes` is at least 1. The contents are unspecified.
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn Allocation>>;
    /// Bytes allocated now, and the limit or capacity.
    fn memory_use(&self) -> Result<(u64, Option<u64>)>;
    /// Makes a stream.
    fn create_stream(&self) -> Result<Arc<dyn Stream>>;
    /// Makes an event.
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;
    /// Loads kernels from PTX text.
    fn load_ptx(&self, source: &str) -> Result<Arc<dyn Module>>;
    /// Loads kernels from machine code of the device (cubin or fatbin).
    fn load_binary(&self, image: &[u8]) -> Result<Arc<dyn Module>>;
    /// Waits until everything enqueued on any stream so far has run. Failures stay with their streams.
    fn wait_all(&self) -> Result<()>;
    /// The same, but fails with [`Timeout`](crate::ErrorKind::Timeout) where that takes longer.
    fn wait_all_timeout(&self, timeout: Duration) -> Result<()>;
    /// Cancels, on all streams, what [`Stream::cancel`] cancels. It waits for nothing.
    fn cancel(&self);
    /// Copies bytes out of an allocation to host memory, after [`wait_all`](Device::wait_all). It checks the range itself.
    fn read(&self, src: &dyn Allocation, offset: u64, dst: &mut [u8]) -> Result<()>;
    /// Copies bytes from host memory into an allocation, after [`wait_all`](Device::wait_all). It checks the range itself.
    fn write(&self, dst: &dyn Allocation, offset: u64, src: &[u8]) -> Result<()>;
    /// Compiles a checked definition for replay. Who keeps the definition pins what updates replace in it; better keep its parts.
    ///
    /// # Safety
    /// The definition belongs to a graph of this device and has passed the checks of its instantiation. What is returned is called as
    /// [`Executable`] says: one call at a time, with streams of this device, with definitions that differ in checked operations only.
    unsafe fn instantiate(
        &self,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Box<dyn Executable>>;
    /// For recognising one's own.
    fn as_any(&self) -> &dyn Any;
}

/// Whether `bytes` bytes from `offset` on are in an allocation of this device; the error says what is wrong.
pub fn check_access(device: DeviceId, memory: &dyn Allocation, offset: u64, bytes: usize) -> Result<()> {
    if memory.device() != device {
        bail!(WrongDevice, "the memory belongs to another device");
    }
    check_not_freed(memory)?;
    match offset.checked_add(bytes as u64) {
        Some(end) if end <= memory.bytes() => Ok(()),
        _ => bail!(InvalidArgument, "{bytes} bytes at {offset} of a buffer of {}", memory.bytes()),
    }
}

/// An error where the memory outlived a launch and was freed since: what lies there is the next launch's.
pub fn check_not_freed(memory: &dyn Allocation) -> Result<()> {
    if memory.outliving().is_some_and(OutlivingMemory::is_freed) {
        bail!(InvalidHandle, "the buffer was freed by a launch; its handle can no longer be used");
    }
    Ok(())
}

/// A block of memory, freed when the last reference goes.
///
/// Code that knows of no other promise writes where an allocation says, so it takes `unsafe` to say it:
///
/// ```compile_fail,E0200
/// # use std::any::Any;
/// # use gridloom_core::backend::{Allocation, DeviceId};
/// # use gridloom_core::memory::MemoryKind;
/// #[derive(Debug)]
/// struct Anywhere(DeviceId, u64);
///
/// impl Allocation for Anywhere {
///     fn device(&self) -> DeviceId { self.0 }
///     fn address(&self) -> u64 { self.1 }
///     fn bytes(&self) -> u64 { u64::MAX }
///     fn kind(&self) -> MemoryKind { MemoryKind::Host }
///     fn as_any(&self) -> &dyn Any { self }
/// }
/// ```
///
/// # Safety
/// Until it is dropped there are [`bytes`](Allocation::bytes) bytes of memory from [`address`](Allocation::address) on, which the work of
/// [`device`](Allocation::device), and the host where [`kind`](Allocation::kind) says so, may read and write from any thread; nothing else of Rust
/// owns or borrows them. The answers never change. A device of kind [`Null`](DeviceKind::Null), which runs nothing, may make addresses up.
pub unsafe trait Allocation: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// Its address, as kernels see it.
    fn address(&self) -> u64;
    /// Its size.
    fn bytes(&self) -> u64;
    /// Where it lives.
    fn kind(&self) -> MemoryKind;
    /// Says whether it was freed, for memory that can be freed while there are handles to it: what outlived a launch. Only the core
    /// makes such memory.
    fn outliving(&self) -> Option<&OutlivingMemory> {
        None
    }
    /// For recognising one's own.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of work that runs in order.
///
/// # Safety
/// It belongs to the [`device`](Stream::device) that it names, and so does what [`as_any`](Stream::as_any) leads to.
pub unsafe trait Stream: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// Enqueues one operation: a kernel, fill, copy, callback, record or wait. Regions have concrete allocations.
    ///
    /// # Safety
    /// The operation has passed the checks of [`crate::Stream::enqueue`], which is the safe way to do this:
    ///
    /// ```compile_fail,E0133
    /// # use gridloom_core::{Result, Stream, op::Operation};
    /// fn unchecked(stream: &Stream, operation: &Operation) -> Result<()> {
    ///     stream.backend().enqueue(operation)
    /// }
    /// ```
    unsafe fn enqueue(&self, operation: &Operation) -> Result<()>;
    /// Waits until everything enqueued so far has run. Returns the first failure since the last call, once.
    fn synchronize(&self) -> Result<()>;
    /// The same, but fails with [`Timeout`](crate::ErrorKind::Timeout) where that takes longer. Failures are then left
    /// for the next call.
    fn synchronize_timeout(&self, timeout: Duration) -> Result<()>;
    /// Cancels kernels and launches of graphs that were enqueued so far and have not ended, as far as the host can reach
    /// them. They fail with [`Cancelled`](crate::ErrorKind::Cancelled). It waits for nothing.
    fn cancel(&self);
    /// Whether everything enqueued so far has run. Does not take a failure away from `synchronize`.
    fn is_idle(&self) -> Result<bool>;
    /// For recognising one's own.
    fn as_any(&self) -> &dyn Any;
    /// For recognising one's own, to keep.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// How an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventOptions {
    /// Whether the time of recording is kept.
    pub timing: bool,
    /// Whether a waiting host thread sleeps rather than spins.
    pub blocking: bool,
}

impl EventOptions {
    /// The default options, to be changed with the methods below.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the time of recording is kept.
    #[must_use]
    pub fn timing(mut self, timing: bool) -> Self {
        self.timing = timing;
        self
    }

    /// Sets whether a waiting host thread sleeps rather than spins.
    #[must_use]
    pub fn blocking(mut self, blocking: bool) -> Self {
        self.blocking = blocking;
        self
    }
}

impl Default for EventOptions {
    fn default() -> Self {
        EventOptions { timing: true, blocking: false }
    }
}

/// A point in a stream that can be waited for.
///
/// # Safety
/// It belongs to the [`device`](Event::device) that it names, and so does what [`as_any`](Event::as_any) leads to.
pub unsafe trait Event: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// How it was made.
    fn options(&self) -> EventOptions;
    /// Waits on the host until the latest recording has been reached. An event never recorded is reached at once.
    fn synchronize(&self) -> Result<()>;
    /// The same, but fails with [`Timeout`](crate::ErrorKind::Timeout) where that takes longer.
    fn synchronize_timeout(&self, timeout: Duration) -> Result<()>;
    /// Whether the latest recording has been reached.
    fn is_reached(&self) -> Result<bool>;
    /// The time from the recording of `earlier` to this one's. Both have timing and belong to the same device.
    fn elapsed_since(&self, earlier: &dyn Event) -> Result<Duration>;
    /// For recognising one's own.
    fn as_any(&self) -> &dyn Any;
}

/// Loaded code.
pub trait Module: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// The names of its kernels, where they are known.
    fn kernel_names(&self) -> Vec<String>;
    /// Looks a kernel up. The kernel keeps the module alive.
    fn kernel(self: Arc<Self>, name: &str) -> Result<Arc<dyn Kernel>>;
    /// A variable of the module as memory. It keeps the module alive.
    fn global(self: Arc<Self>, name: &str) -> Result<Arc<dyn Allocation>>;
}

/// A kernel, ready to be launched.
///
/// # Safety
/// It belongs to the [`device`](Kernel::device) that it names, and so does what [`as_any`](Kernel::as_any) leads to, of which all that is said here is true and stays so.
pub unsafe trait Kernel: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// Its name.
    fn name(&self) -> &str;
    /// Its parameters, where they are known.
    fn params(&self) -> Option<&Params>;
    /// What it allows of a launch.
    fn limits(&self) -> &KernelLimits;
    /// Further facts for people, as pairs of name and value.
    fn properties(&self) -> Vec<(String, String)>;
    /// What launches of it are checked against. Only the core makes kernels that have one
    /// ([`Signature::of_kernel`](crate::op::contract::Signature::of_kernel)).
    fn signature(&self) -> Option<&Arc<Signature>> {
        None
    }
    /// The kernel of the backend that it runs, where it has a signature.
    fn unsigned(&self) -> Option<&Arc<dyn Kernel>> {
        None
    }
    /// For recognising one's own. A kernel with a signature answers for the one that it runs.
    fn as_any(&self) -> &dyn Any;
}

/// A graph of the device's own, which the core cannot look into: what was captured from code that Gridloom does not know and could not be
/// taken apart. Only the device it belongs to can run it.
///
/// # Safety
/// It belongs to the [`device`](Opaque::device) that it names, and so does what [`as_any`](Opaque::as_any) leads to.
pub unsafe trait Opaque: Send + Sync + Debug {
    /// The device it belongs to.
    fn device(&self) -> DeviceId;
    /// How many nodes it has, without those of graphs inside it.
    fn node_count(&self) -> usize;
    /// Why it could not be taken apart, for people.
    fn reason(&self) -> &str;
    /// For recognising one's own.
    fn as_any(&self) -> &dyn Any;
}

/// Cancels the launches of an executable that were enqueued so far and have not ended, as far as the host can reach them.
/// It may be called at any time, from any thread, also while a call on the executable waits. It waits for nothing itself.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

/// What tells how many passes a conditional made. It may wait for the device, and is called while nothing is locked.
pub type Passes = Box<dyn FnOnce() -> Result<u64> + Send>;

/// A graph, ready to be launched. Calls arrive one at a time.
pub trait Executable: Send + Debug {
    /// Enqueues the whole graph. Launches of one executable run one after the other, whichever streams they are on.
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// Does ahead what the first launch would otherwise do.
    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// The memory that an alloc node, which nothing in the graph frees, got from the latest launch. Launches in flight keep it, also when
    /// the executable is gone. Whether it was freed is none of the backend's business.
    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>>;
    /// Passes that a loop made in the latest finished launch (0 or 1 for other conditionals). An error where they were not counted.
    fn passes(&mut self, conditional: NodeKey) -> Result<Passes>;
    /// What cancels its launches, or `None` where the host can reach none of them. Asked for once, when it was made.
    fn canceller(&self) -> Option<Cancel> {
        None
    }
    /// The failure of the latest failed launch, once.
    fn take_error(&mut self) -> Option<crate::Error>;
    /// How each conditional runs, and what else there is to say about the lowering.
    fn report(&self) -> Report;
    /// Bytes held.
    fn memory(&self) -> MemoryUse;
    /// Takes over what these nodes do from the definition, all or none. Given is what each did before: launches in flight go on
    /// with that, so what it uses stays alive until they are done. A node that was changed several times is there as often. The topology is as it was.
    fn update(&mut self, definition: &Definition, replaced: &[(NodeKey, Operation)]) -> Result<()>;
    /// Gets ready for [`set_arguments`](Executable::set_arguments) on a kernel node, under this number. Returns whether it can.
    fn prepare(&mut self, _number: usize, _node: NodeKey, _launch: &KernelOp) -> bool {
        false
    }
    /// Launches the kernels of nodes that were prepared, by their numbers, with these bytes as their arguments. Whatever else there is to the launches
    /// is as it was; launches in flight keep their values. `false` where that is not possible, and nothing was changed: [`update`](Executable::update)
    /// follows then. Where it fails, nodes may have been changed or not, and [`put_back`](Executable::put_back) and [`update`](Executable::update) follow.
    fn set_arguments(&mut self, _arguments: &[(usize, &[u8])]) -> Result<bool> {
        Ok(false)
    }
    /// Memory that launches in flight use, and that no argument names any more.
    fn keep(&mut self, _memory: &[&Arc<dyn Allocation>]) {}
    /// Has kernel nodes, before the next launch, do what the definition says: a failed call of [`set_arguments`](Executable::set_arguments) may have left them with
    /// something else.
    fn put_back(&mut self, _definition: &Definition, _nodes: &[NodeKey]) {}
    /// Lets a kernel, copy or fill run or skips it from the next launch on.
    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()>;
    /// The last call of all, with the definition as it is at the end, which nobody else keeps: what launches in flight use of it has to stay
    /// alive until they are done.
    fn retire(&mut self, definition: &Arc<Definition>);
}

/// How long work may go on when the last handle to its device is gone, and nobody is left who could wait for it or cancel it.
pub const GRACE: Duration = Duration::from_secs(2);

/// When a wait that starts now is given up. A time that nobody lives to see is as good as none.
pub fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + YEAR)
}

/// The error of a wait that was given up.
pub fn timed_out(what: &str, timeout: Duration) -> crate::Error {
    crate::Error::new(
        crate::ErrorKind::Timeout,
        format!(
            "{what} has not ended after {timeout:?}; it goes on, and can be waited for again or cancelled"
        ),
    )
}

/// The error of a launch that was cancelled.
pub fn cancelled() -> crate::Error {
    crate::Error::new(crate::ErrorKind::Cancelled, "the launch was cancelled")
}

/// Anything that stands for a device.
pub trait AsDevice {
    /// The device.
    fn as_device(&self) -> &Arc<dyn Device>;
}

impl AsDevice for Arc<dyn Device> {
    fn as_device(&self) -> &Arc<dyn Device> {
        self
    }
}
