//! The traits that a device implements.
//!
//! An implementation of these traits is a backend. The core has checked everything that arrives
//! here. A backend reports only what it alone can know: that memory ran out, that a driver refused
//! a call, that a kernel failed.
//!
//! All objects are handed out as `Arc<dyn …>` and kept alive by whatever uses them. A backend frees
//! a resource in the `Drop` of its object and nowhere else. `as_any` lets a backend recognize its
//! own objects.
//!
//! # Safety of the traits
//!
//! Users can reach these objects through the handles of the core. A safe method here must therefore
//! be safe for any caller. A method is `unsafe` if memory safety depends on checks of the caller:
//! [`Stream::enqueue`] and [`Device::instantiate`]. Addresses come only from [`Allocation`]s, and
//! the checks rely on what devices, streams, events and kernels say about themselves. That is why
//! these traits are `unsafe` to implement.

use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::error::{Result, bail};
use crate::executable::{InstantiateOptions, MemoryUse, Report};
use crate::graph::{ConditionKey, Definition, Graph, NodeKey};
use crate::launch::{KernelLimits, LaunchConfig, Limits};
use crate::memory::{GraphMemory, MemoryKind, OutlivingMemory};
use crate::op::contract::Signature;
use crate::op::{KernelOp, Operation, Params};
use crate::profile::Recording;

/// The identity of an opened device. Two devices that are opened separately differ, even on the
/// same hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId(u64);

impl DeviceId {
    /// Returns an identity that no other device of this process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        DeviceId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The kind of hardware of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The host's own processors.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// No hardware: operations are recorded, not run.
    Null,
}

/// A device. It owns memory and runs work.
///
/// # Safety
/// No other device has its [`id`](Device::id). Its [`limits`](Device::limits) are within what it
/// can run. Memory that it [allocates](Device::allocate) starts at a multiple of 256. The answers
/// never change. The core checks work against these answers, and nobody checks it again.
pub unsafe trait Device: Send + Sync + Debug {
    /// Returns the identity of the device.
    fn id(&self) -> DeviceId;
    /// Returns the kind of the device.
    fn kind(&self) -> DeviceKind;
    /// Returns the name of the device, for people.
    fn name(&self) -> String;
    /// Returns the number of the device among the devices of its kind.
    fn ordinal(&self) -> u32;
    /// Returns whether memory of this device can be made reachable for the device of its kind with
    /// this number.
    fn has_peer(&self, ordinal: u32) -> bool;
    /// Returns the limits on launches.
    fn limits(&self) -> &Limits;
    /// Returns further facts for people, as pairs of name and value.
    fn properties(&self) -> Vec<(String, String)>;
    /// Allocates memory. `bytes` is at least 1. The contents are unspecified.
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn Allocation>>;
    /// Returns the number of bytes allocated now, and the limit or capacity.
    fn memory_use(&self) -> Result<(u64, Option<u64>)>;
    /// Returns the memory that graphs hold on this device.
    fn graph_memory(&self) -> Result<GraphMemory>;
    /// Sets the high-water mark of [`graph_memory`](Device::graph_memory) to the current value.
    fn reset_graph_memory_high(&self) -> Result<()>;
    /// Returns memory to the system that the device keeps for later and nobody uses.
    fn trim(&self) -> Result<()>;
    /// Returns the priorities of streams. The first, which is the smallest number, is served first.
    fn priority_range(&self) -> Result<RangeInclusive<i32>>;
    /// Creates a stream. The priority is within [`priority_range`](Device::priority_range).
    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>>;
    /// Creates an event.
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;
    /// Loads kernels from PTX text.
    fn load_ptx(&self, source: &str) -> Result<Arc<dyn Module>>;
    /// Loads kernels from machine code of the device (cubin or fatbin).
    fn load_binary(&self, image: &[u8]) -> Result<Arc<dyn Module>>;
    /// Waits until everything enqueued on any stream so far has run. Failures stay with their
    /// streams.
    fn wait_all(&self) -> Result<()>;
    /// Waits like [`wait_all`](Device::wait_all), but fails with
    /// [`Timeout`](crate::ErrorKind::Timeout) after `timeout`.
    fn wait_all_timeout(&self, timeout: Duration) -> Result<()>;
    /// Cancels on all streams what [`Stream::cancel`] cancels. The call does not wait.
    fn cancel(&self);
    /// Waits like [`wait_all`](Device::wait_all), then copies bytes from an allocation to host
    /// memory. The method checks the range itself.
    fn read(&self, src: &dyn Allocation, offset: u64, dst: &mut [u8]) -> Result<()>;
    /// Waits like [`wait_all`](Device::wait_all), then copies bytes from host memory to an
    /// allocation. The method checks the range itself.
    fn write(&self, dst: &dyn Allocation, offset: u64, src: &[u8]) -> Result<()>;
    /// Returns whether executables of this device [record](Executable::records) their launches.
    /// Profiles on other devices use timer kernels.
    fn records_launches(&self) -> bool {
        false
    }
    /// Fails, with the reason, if kernels on this device cannot launch graphs.
    fn check_device_launch(&self) -> Result<()>;
    /// Prepares a checked definition for launching. A backend that keeps the whole definition also
    /// keeps alive what updates replace in it, so it should keep only the parts it needs.
    ///
    /// # Safety
    /// The definition belongs to a graph of this device and has passed the checks of instantiation.
    /// The result is called as [`Executable`] says: one call at a time, with streams of this
    /// device, and with definitions that differ only in checked operations.
    unsafe fn instantiate(
        &self,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Box<dyn Executable>>;
    /// Returns the place where layers above the backend keep what they made for this device, if it
    /// has one.
    fn attachment(&self) -> Option<&Attachment> {
        None
    }
    /// Returns the object as `Any`, so that a backend can recognize its own.
    fn as_any(&self) -> &dyn Any;
}

/// A value that a layer above the backend keeps for as long as a device exists, such as compiled
/// kernels.
///
/// The value must not keep the device alive, because the device owns it.
#[derive(Default)]
pub struct Attachment(OnceLock<Box<dyn Any + Send + Sync>>);

impl Attachment {
    /// Returns a copy of the attached value. If there is none, attaches a new one. Returns `None`
    /// if a value of another type is attached.
    pub fn get_or_attach<T: Any + Send + Sync + Clone>(&self, make: impl FnOnce() -> T) -> Option<T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref().cloned()
    }
}

impl Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Attachment({})", self.0.get().is_some())
    }
}

/// Checks that `bytes` bytes from `offset` on are in an allocation of this device.
pub fn check_access(device: DeviceId, memory: &dyn Allocation, offset: u64, bytes: usize) -> Result<()> {
    if memory.device() != device {
        bail!(WrongDevice, "the memory belongs to another device");
    }
    check_not_freed(memory)?;
    match offset.checked_add(bytes as u64) {
        Some(end) if end <= memory.bytes() => Ok(()),
        _ => bail!(
            InvalidArgument,
            "{bytes} bytes at byte {offset} reach past the end of a buffer of {} bytes",
            memory.bytes()
        ),
    }
}

/// Checks that `bytes` bytes from `offset` on are in host memory.
pub fn check_host_access(memory: &dyn Allocation, offset: u64, bytes: usize) -> Result<()> {
    if memory.kind() != MemoryKind::Host {
        bail!(InvalidArgument, "{} memory cannot be read from a callback", memory.kind().name());
    }
    check_access(memory.device(), memory, offset, bytes)
}

/// Fails if the memory outlived a launch and was freed since. The next launch owns what lies there.
pub fn check_not_freed(memory: &dyn Allocation) -> Result<()> {
    if memory.outliving().is_some_and(OutlivingMemory::is_freed) {
        bail!(InvalidHandle, "the buffer was freed by a launch; its handle can no longer be used");
    }
    Ok(())
}

/// A block of memory. It is freed when the last reference is dropped.
///
/// Safe code writes to the addresses that an allocation returns. Implementing the trait is
/// therefore `unsafe`:
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
/// Until the allocation is dropped, there are [`bytes`](Allocation::bytes) bytes of memory from
/// [`address`](Allocation::address) on. The work of [`device`](Allocation::device), and the host if
/// [`kind`](Allocation::kind) says so, may read and write them from any thread. Nothing else in
/// Rust owns or borrows them. The answers never change. A device of kind
/// [`Null`](DeviceKind::Null), which runs nothing, may make addresses up.
pub unsafe trait Allocation: Send + Sync + Debug {
    /// Returns the device that the memory belongs to.
    fn device(&self) -> DeviceId;
    /// Returns the address, as kernels see it.
    fn address(&self) -> u64;
    /// Returns the size in bytes.
    fn bytes(&self) -> u64;
    /// Returns the kind of memory.
    fn kind(&self) -> MemoryKind;
    /// Copies bytes of [host](MemoryKind::Host) memory for a callback, without waiting for
    /// anything. A byte that is written meanwhile has its old or its new value. The method checks
    /// the range itself.
    fn read_host(&self, _offset: u64, _dst: &mut [u8]) -> Result<()> {
        bail!(NotSupported, "this memory cannot be read from a callback")
    }
    /// Returns the state of memory that can be freed while there are handles to it: memory that
    /// outlived a launch. Only the core creates such memory.
    fn outliving(&self) -> Option<&OutlivingMemory> {
        None
    }
    /// Returns the variable of a module that this memory is, if it is one.
    fn variable(&self) -> Option<ModuleVariable<'_>> {
        None
    }
    /// Returns the object as `Any`, so that a backend can recognize its own.
    fn as_any(&self) -> &dyn Any;
}

/// A variable of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleVariable<'a> {
    /// The PTX of the module, if it is known. It is the same text in memory that [`Kernel::ptx`]
    /// returns for kernels of the module, so that modules can be told apart by its address.
    pub ptx: Option<&'a str>,
    /// The name of the variable in the module.
    pub name: &'a str,
}

/// The options of a stream.
///
/// ```
/// use gridloom_core::backend::StreamOptions;
///
/// let options = StreamOptions::new().priority(-1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamOptions {
    /// The priority. Smaller numbers are served first, and 0 is the usual one.
    pub priority: i32,
    /// Whether the stream ignores CUDA's legacy default stream.
    pub non_blocking: bool,
}

impl StreamOptions {
    /// Creates the default options: priority 0, non-blocking.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the priority. Smaller numbers are served first. A number outside of the range of the
    /// device is clamped to it, as CUDA does.
    ///
    /// On a GPU, blocks of a kernel with a smaller number are started before waiting blocks of
    /// other kernels. Running blocks are not interrupted. The CPU device has only the priority 0,
    /// so a priority changes nothing there.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets whether the stream ignores CUDA's legacy default stream, which it does by default.
    ///
    /// Work on a blocking stream waits for earlier work on the legacy default stream, and that
    /// stream waits for it. Use a blocking stream next to CUDA code that uses the default stream.
    /// The CPU device has no default stream, so the option changes nothing there.
    #[must_use]
    pub fn non_blocking(mut self, non_blocking: bool) -> Self {
        self.non_blocking = non_blocking;
        self
    }
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions { priority: 0, non_blocking: true }
    }
}

/// A queue of work that runs in order.
///
/// # Safety
/// The stream belongs to the [`device`](Stream::device) that it names. So does the object behind
/// [`as_any`](Stream::as_any).
pub unsafe trait Stream: Send + Sync + Debug {
    /// Returns the device that the stream belongs to.
    fn device(&self) -> DeviceId;
    /// Enqueues one operation: a kernel, fill, copy, callback, event record or event wait. All
    /// regions are parts of existing allocations or of copied bytes.
    ///
    /// # Safety
    /// The operation has passed the checks of [`crate::Stream::enqueue`], which is the safe way to
    /// do this:
    ///
    /// ```compile_fail,E0133
    /// # use gridloom_core::{Result, Stream, op::Operation};
    /// fn unchecked(stream: &Stream, operation: &Operation) -> Result<()> {
    ///     stream.backend().enqueue(operation)
    /// }
    /// ```
    unsafe fn enqueue(&self, operation: &Operation) -> Result<()>;
    /// Waits until everything enqueued so far has run. Returns the first failure since the last
    /// call, once.
    fn synchronize(&self) -> Result<()>;
    /// Waits like [`synchronize`](Stream::synchronize), but fails with
    /// [`Timeout`](crate::ErrorKind::Timeout) after `timeout`. Failures are then left for the next
    /// call.
    fn synchronize_timeout(&self, timeout: Duration) -> Result<()>;
    /// Cancels the unfinished kernels and graph launches on this stream that the host can reach.
    /// They fail with [`Cancelled`](crate::ErrorKind::Cancelled). The call does not wait.
    fn cancel(&self);
    /// Returns whether everything enqueued so far has run. A failure stays for `synchronize` to
    /// report.
    fn is_idle(&self) -> Result<bool>;
    /// Returns the priority.
    fn priority(&self) -> Result<i32>;
    /// Waits until everything enqueued on this stream so far has run, then copies bytes from an
    /// allocation to host memory. A failure of that work stays for `synchronize` to report. The
    /// method checks the range itself.
    fn read(&self, src: &dyn Allocation, offset: u64, dst: &mut [u8]) -> Result<()>;
    /// Returns the object as `Any`, so that a backend can recognize its own.
    fn as_any(&self) -> &dyn Any;
    /// Converts the object to `Any`, so that a backend can recognize and keep its own.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The options of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventOptions {
    /// Whether the event keeps the time of its recording.
    pub timing: bool,
    /// Whether a waiting host thread sleeps instead of spinning.
    pub blocking: bool,
}

impl EventOptions {
    /// Creates the default options: with timing, and spinning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the event keeps the time of its recording.
    #[must_use]
    pub fn timing(mut self, timing: bool) -> Self {
        self.timing = timing;
        self
    }

    /// Sets whether a waiting host thread sleeps instead of spinning.
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
/// The event belongs to the [`device`](Event::device) that it names. So does the object behind
/// [`as_any`](Event::as_any).
pub unsafe trait Event: Send + Sync + Debug {
    /// Returns the device that the event belongs to.
    fn device(&self) -> DeviceId;
    /// Returns the options that the event was created with.
    fn options(&self) -> EventOptions;
    /// Blocks the host until the latest recording is reached. Returns at once if the event was
    /// never recorded.
    fn synchronize(&self) -> Result<()>;
    /// Waits like [`synchronize`](Event::synchronize), but fails with
    /// [`Timeout`](crate::ErrorKind::Timeout) after `timeout`.
    fn synchronize_timeout(&self, timeout: Duration) -> Result<()>;
    /// Returns whether the latest recording is reached.
    fn is_reached(&self) -> Result<bool>;
    /// Returns the time from the recording of `earlier` to that of this event, or zero if `earlier`
    /// was recorded later. Both have timing and belong to the same device.
    fn elapsed_since(&self, earlier: &dyn Event) -> Result<Duration>;
    /// Returns the object as `Any`, so that a backend can recognize its own.
    fn as_any(&self) -> &dyn Any;
}

/// Loaded code.
pub trait Module: Send + Sync + Debug {
    /// Returns the device that the module belongs to.
    fn device(&self) -> DeviceId;
    /// Returns the names of the kernels, as far as they are known.
    fn kernel_names(&self) -> Vec<String>;
    /// Looks a kernel up. The kernel keeps the module alive.
    fn kernel(self: Arc<Self>, name: &str) -> Result<Arc<dyn Kernel>>;
    /// Returns a variable of the module as memory. It keeps the module alive.
    fn global(self: Arc<Self>, name: &str) -> Result<Arc<dyn Allocation>>;
}

/// A kernel that can be launched.
///
/// # Safety
/// The kernel belongs to the [`device`](Kernel::device) that it names. So does the object behind
/// [`as_any`](Kernel::as_any). All answers are true for that object and never change.
pub unsafe trait Kernel: Send + Sync + Debug {
    /// Returns the device that the kernel belongs to.
    fn device(&self) -> DeviceId;
    /// Returns the name of the kernel.
    fn name(&self) -> &str;
    /// Returns the layout of the parameters, if it is known.
    fn params(&self) -> Option<&Params>;
    /// Returns the limits of the kernel on its launches.
    fn limits(&self) -> &KernelLimits;
    /// Returns further facts for people, as pairs of name and value.
    fn properties(&self) -> Vec<(String, String)>;
    /// Returns how many blocks of such a launch, which is cooperative or has clusters, an idle device
    /// runs at once. Returns `None` if that is not known or the device does not run such launches.
    fn resident_blocks(&self, _config: &LaunchConfig) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Returns the PTX of the kernel's module, if it is known. All kernels of one module return the
    /// same text in memory.
    fn ptx(&self) -> Option<&str> {
        None
    }
    /// Returns the signature that launches are checked against. Only the core creates kernels with
    /// a signature ([`Signature::of_kernel`](crate::op::contract::Signature::of_kernel)).
    fn signature(&self) -> Option<&Arc<Signature>> {
        None
    }
    /// Returns the backend's kernel behind a kernel with a signature.
    fn unsigned(&self) -> Option<&Arc<dyn Kernel>> {
        None
    }
    /// Returns the object as `Any`, so that a backend can recognize its own. A kernel with a
    /// signature returns the kernel that it runs.
    fn as_any(&self) -> &dyn Any;
}

/// A graph that only its device understands. It comes from foreign code whose captured graph could
/// not be taken apart. Only its device can run it.
///
/// # Safety
/// The graph belongs to the [`device`](Opaque::device) that it names. So does the object behind
/// [`as_any`](Opaque::as_any).
pub unsafe trait Opaque: Send + Sync + Debug {
    /// Returns the device that the graph belongs to.
    fn device(&self) -> DeviceId;
    /// Returns the number of nodes. Nodes of graphs inside it do not count.
    fn node_count(&self) -> usize;
    /// Returns why the graph could not be taken apart, for people.
    fn reason(&self) -> &str;
    /// Returns the object as `Any`, so that a backend can recognize its own.
    fn as_any(&self) -> &dyn Any;
}

/// A function that cancels the unfinished launches of an executable that the host can reach. It may
/// be called at any time from any thread, even while a call on the executable waits. It does not
/// wait itself.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

/// A function that returns the number of passes of a conditional. It may wait for the device,
/// and is called while nothing is locked.
pub type Passes = Box<dyn FnOnce() -> Result<u64> + Send>;

/// A function that returns the recording of a finished launch.
pub type TakeRecording = Box<dyn FnOnce() -> Result<Recording> + Send>;

/// What can be asked of an executable while another thread launches or changes it.
///
/// Calls may come from any thread, including callbacks of the device. So no method waits for the
/// device, or for a lock that a thread holds while it waits for the device.
pub trait ExecutableStatus: Send + Sync {
    /// Returns the error of the latest failed launch, once.
    fn take_error(&self) -> Option<crate::Error>;
    /// Returns how each conditional runs, with remarks on the lowering.
    fn report(&self) -> Report;
    /// Returns the memory that the executable holds.
    fn memory(&self) -> MemoryUse;
}

/// A graph that can be launched. Calls arrive one at a time.
pub trait Executable: Send + Debug {
    /// Enqueues the whole graph. Launches of one executable run one after the other, on whichever
    /// streams they are.
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// Returns whether [`launch_recorded`](Executable::launch_recorded) works.
    fn records(&self) -> bool {
        false
    }
    /// Launches like [`launch`](Executable::launch), and records when each node runs. At most
    /// `max_runs` runs of each node are kept one by one. Returns a function for the recording. The
    /// core calls it after it has waited for the stream, while nothing is locked.
    fn launch_recorded(&mut self, _stream: &Arc<dyn Stream>, _max_runs: usize) -> Result<TakeRecording> {
        bail!(NotSupported, "this device does not record its launches")
    }
    /// Returns the stream of the latest launch, if an executable that does not
    /// [record](Executable::records) was launched. All earlier launches end before that one.
    fn latest_stream(&self) -> Option<Arc<dyn Stream>> {
        None
    }
    /// Makes a stream wait for the launches so far, if [`latest_stream`](Executable::latest_stream)
    /// knows none because the launches of an executable wait for each other by themselves.
    fn follow_launches(&mut self, _stream: &Arc<dyn Stream>) -> Result<()> {
        Ok(())
    }
    /// Returns whether the core calls [`adapt`](Executable::adapt) before each launch. The core
    /// asks once, after instantiation.
    fn adapts(&self) -> bool {
        false
    }
    /// Takes another form before a launch on this stream, if there is a better one by now.
    /// `current` returns the definition with all changes so far. Whatever fails leaves the form as
    /// it was.
    fn adapt(&mut self, _stream: &Arc<dyn Stream>, _current: &mut dyn FnMut() -> Arc<Definition>) {}
    /// Prepares the first launch ahead of time.
    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()>;
    /// Returns the memory that the latest launch allocated for an alloc node that nothing in the
    /// graph frees. Launches in flight keep it alive, even after the executable is gone. The core
    /// tracks whether it is freed.
    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>>;
    /// Returns a function for the number of passes of a loop in the latest finished launch, or
    /// 0 or 1 for other conditionals. A conditional that ran several times in the launch has those
    /// of its last execution. Fails if they were not counted.
    fn passes(&mut self, conditional: NodeKey) -> Result<Passes>;
    /// Returns the function that cancels the launches, or `None` if the host cannot reach any of
    /// them. The core calls this once, after instantiation.
    fn canceller(&self) -> Option<Cancel> {
        None
    }
    /// Returns what can be asked at any time. The core calls this once, after instantiation, so the
    /// answers follow later changes.
    fn status(&self) -> Arc<dyn ExecutableStatus>;
    /// Returns the graph that runs, if an optimiser gave the graph another form. `definition` is
    /// the graph as it was written, with all changes so far.
    fn optimized_graph(&self, _definition: &Definition) -> Option<Graph> {
        None
    }
    /// Takes over the operations of these nodes from the definition, all or none. `replaced` holds
    /// the previous operations. Launches in flight continue with those, so what they use must stay
    /// alive until the launches end. A node that was changed several times is listed as often. The
    /// topology is unchanged. `defaults` lists the conditions whose default changed as well.
    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()>;
    /// Prepares a kernel node for [`set_arguments`](Executable::set_arguments) under this number.
    /// Returns whether that is possible.
    fn prepare(&mut self, _number: usize, _node: NodeKey, _launch: &KernelOp) -> bool {
        false
    }
    /// Sets the argument bytes of prepared kernel nodes, by their numbers. Nothing else about the
    /// launches changes, and launches in flight keep their values. Returns `false`, and changes
    /// nothing, if that is not possible; [`update`](Executable::update) follows then. After a
    /// failure, any of the nodes may have changed; [`put_back`](Executable::put_back) and
    /// [`update`](Executable::update) follow.
    fn set_arguments(&mut self, _arguments: &[(usize, &[u8])]) -> Result<bool> {
        Ok(false)
    }
    /// Keeps memory alive for the launches in flight. No argument refers to it any more.
    fn keep(&mut self, _memory: &[&Arc<dyn Allocation>]) {}
    /// Resets kernel nodes to the definition before the next launch. A failed
    /// [`set_arguments`](Executable::set_arguments) may have changed them.
    fn put_back(&mut self, _definition: &Definition, _nodes: &[NodeKey]) {}
    /// Enables or disables a kernel, copy or fill from the next launch on.
    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()>;
    /// Returns the handle with which kernels launch the graph, if the executable was made with
    /// [`InstantiateOptions::device_launch`].
    fn device_handle(&self) -> Result<u64> {
        bail!(
            InvalidState,
            "the executable was not made for launches from kernels; instantiate with InstantiateOptions::device_launch"
        )
    }
    /// Returns the object as `Any`, so that a backend can recognize its own. An optimiser returns
    /// the object of the backend.
    fn as_any(&self) -> &dyn Any;
    /// Receives the final definition. This is the last call. Nobody else keeps the definition, so
    /// what launches in flight use of it must stay alive until they end.
    fn retire(&mut self, definition: &Arc<Definition>);
}

/// The time for which work may continue after the last handle to its device is gone. Nobody is left
/// then who could wait for it or cancel it.
pub const GRACE: Duration = Duration::from_secs(2);

/// Returns the end of a wait that starts now. A timeout that does not fit becomes one year.
pub fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + YEAR)
}

/// Returns the error of a wait that timed out.
pub fn timed_out(what: &str, timeout: Duration) -> crate::Error {
    crate::Error::new(
        crate::ErrorKind::Timeout,
        format!(
            "{what} has not ended after {timeout:?}; it goes on, and can be waited for again or cancelled"
        ),
    )
}

/// Returns the error of a cancelled launch.
pub fn cancelled() -> crate::Error {
    crate::Error::new(crate::ErrorKind::Cancelled, "the launch was cancelled")
}

/// A type that stands for a device.
pub trait AsDevice {
    /// Returns the device.
    fn as_device(&self) -> &Arc<dyn Device>;
}

impl AsDevice for Arc<dyn Device> {
    fn as_device(&self) -> &Arc<dyn Device> {
        self
    }
}
