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

mod executable;
mod options;
mod origins;
mod waiting;

use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use executable::{Cancel, Executable, ExecutableStatus, Passes, TakeRecording};
pub use options::{EventOptions, StreamOptions};
pub use origins::{FaultPlace, Origin, Origins};
pub use waiting::{GRACE, cancelled, deadline, timed_out};

use crate::error::{Result, bail};
use crate::event::CaptureMark;
use crate::executable::InstantiateOptions;
use crate::graph::Definition;
use crate::launch::{KernelLimits, LaunchConfig, Limits};
use crate::memory::{GraphMemory, MemoryKind, OutlivingMemory};
use crate::op::contract::Signature;
use crate::op::{Operation, Params};

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
    /// Drops a value soon and on another thread, if the device has one for that. The call does not
    /// wait, and nothing may depend on when the value is dropped.
    fn drop_later(&self, value: Box<dyn Send>) {
        drop(value);
    }
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
        bail!(WrongDevice, "the memory belongs to another device than the one that is to access it");
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
    /// Returns the place for what the core notes about the event. Each event has its own.
    fn capture_mark(&self) -> &CaptureMark;
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
    /// Returns how many blocks of such a launch, which is cooperative or has clusters, an idle
    /// device runs at once. Returns `None` if that is not known or the device does not run such
    /// launches.
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
    /// Returns whose work the kernel does, if it was made from others.
    fn origins(&self) -> Option<&Arc<dyn Origins>> {
        None
    }
    /// Returns the object as `Any`, so that a backend can recognize its own. A kernel with a
    /// signature, or with origins, returns the kernel that it runs.
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
