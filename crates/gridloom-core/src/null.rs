//! A device that runs nothing, for tests of the layers above a device.
//!
//! It hands out addresses, records every call and lets a test choose which call fails. Work on its
//! streams completes at once and has no effect. Callbacks are not called, and loops make no
//! passes. Tests that need results need another device.
//!
//! ```
//! use gridloom_core::graph::Graph;
//! use gridloom_core::null::{Call, CallKind, NullDevice};
//! use gridloom_core::op::Operation;
//! use gridloom_core::{ErrorKind, Stream};
//!
//! let device = NullDevice::new();
//! let graph = Graph::new(&device);
//! graph.add(&[], Operation::Empty)?;
//! graph.instantiate()?.launch(&Stream::new(&device)?)?;
//! assert_eq!(device.count(CallKind::Launch), 1);
//!
//! device.fail(CallKind::Instantiate, 1, ErrorKind::OutOfMemory);
//! assert_eq!(graph.instantiate().unwrap_err().kind(), ErrorKind::OutOfMemory);
//! assert!(graph.instantiate().is_ok());
//! # Ok::<(), gridloom_core::Error>(())
//! ```

mod code;
mod memory;
mod run;

use std::any::Any;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

pub use code::{FakeKernel, FakeModule};
pub use memory::FakeAllocation;
use run::{FakeEvent, FakeExecutable, FakeStream};

use crate::backend::{self, AsDevice, DeviceId, DeviceKind, EventOptions, StreamOptions};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::executable::InstantiateOptions;
use crate::graph::{Definition, NodeKey};
use crate::launch::{Dim3, Limits};
use crate::memory::{GraphMemory, MemoryKind};
use crate::op::Operation;

/// A call that the device received.
///
/// A call to enqueue keeps its operation alive until [`NullDevice::take_calls`]. A call to
/// instantiate keeps nothing alive.
#[derive(Clone, Debug)]
pub enum Call {
    /// Allocates memory.
    Allocate {
        /// The size in bytes.
        bytes: u64,
        /// The kind of memory.
        kind: MemoryKind,
    },
    /// Creates the stream with this number.
    CreateStream(u64),
    /// Creates an event.
    CreateEvent(EventOptions),
    /// Loads a module from text.
    LoadPtx(String),
    /// Loads a module from an image of this many bytes.
    LoadBinary(usize),
    /// Waits for all streams.
    WaitAll,
    /// Copies this many bytes to the host.
    Read(usize),
    /// Copies this many bytes from the host.
    Write(usize),
    /// Instantiates a definition.
    Instantiate {
        /// The definition, while something else keeps it alive.
        definition: Weak<Definition>,
        /// The options, without the stream to upload on.
        options: InstantiateOptions,
        /// The number of the new executable.
        executable: u64,
    },
    /// Prepares the launch of an executable.
    Upload {
        /// The number of the executable.
        executable: u64,
        /// The number of the stream.
        stream: u64,
    },
    /// Launches an executable.
    Launch {
        /// The number of the executable.
        executable: u64,
        /// The number of the stream.
        stream: u64,
    },
    /// Takes over new operations of some nodes of an executable.
    Update {
        /// The number of the executable.
        executable: u64,
        /// The changed nodes.
        nodes: Vec<NodeKey>,
    },
    /// Enables or disables a node of an executable.
    SetEnabled {
        /// The number of the executable.
        executable: u64,
        /// The node.
        node: NodeKey,
        /// Whether the node is to run.
        enabled: bool,
    },
    /// Enqueues one operation.
    Enqueue {
        /// The number of the stream.
        stream: u64,
        /// The operation.
        operation: Operation,
    },
    /// Waits for the stream with this number.
    Synchronize(u64),
}

/// The kind of a [`Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// [`Call::Allocate`]
    Allocate,
    /// [`Call::CreateStream`]
    CreateStream,
    /// [`Call::CreateEvent`]
    CreateEvent,
    /// [`Call::LoadPtx`]
    LoadPtx,
    /// [`Call::LoadBinary`]
    LoadBinary,
    /// [`Call::WaitAll`]
    WaitAll,
    /// [`Call::Read`]
    Read,
    /// [`Call::Write`]
    Write,
    /// [`Call::Instantiate`]
    Instantiate,
    /// [`Call::Upload`]
    Upload,
    /// [`Call::Launch`]
    Launch,
    /// [`Call::Update`]
    Update,
    /// [`Call::SetEnabled`]
    SetEnabled,
    /// [`Call::Enqueue`]
    Enqueue,
    /// [`Call::Synchronize`]
    Synchronize,
}

impl Call {
    /// Returns the kind of the call.
    pub fn kind(&self) -> CallKind {
        match self {
            Call::Allocate { .. } => CallKind::Allocate,
            Call::CreateStream(_) => CallKind::CreateStream,
            Call::CreateEvent(_) => CallKind::CreateEvent,
            Call::LoadPtx(_) => CallKind::LoadPtx,
            Call::LoadBinary(_) => CallKind::LoadBinary,
            Call::WaitAll => CallKind::WaitAll,
            Call::Read(_) => CallKind::Read,
            Call::Write(_) => CallKind::Write,
            Call::Instantiate { .. } => CallKind::Instantiate,
            Call::Upload { .. } => CallKind::Upload,
            Call::Launch { .. } => CallKind::Launch,
            Call::Update { .. } => CallKind::Update,
            Call::SetEnabled { .. } => CallKind::SetEnabled,
            Call::Enqueue { .. } => CallKind::Enqueue,
            Call::Synchronize(_) => CallKind::Synchronize,
        }
    }
}

/// A failure that a test asked for and that has not happened yet.
struct Fault {
    kind: CallKind,
    /// The number of calls of this kind until the failure.
    after: usize,
    error: ErrorKind,
}

type Observer = Arc<dyn Fn(&Call) + Send + Sync>;

/// The state that all objects of one device share.
struct Shared {
    id: DeviceId,
    limits: Limits,
    memory: Arc<memory::Ledger>,
    calls: Mutex<Vec<Call>>,
    faults: Mutex<Vec<Fault>>,
    observer: Mutex<Option<Observer>>,
    next_number: AtomicU64,
}

impl Shared {
    /// Records a call, and fails it if a test asked for that. A failed call is recorded too.
    fn record(&self, call: Call) -> Result<()> {
        let kind = call.kind();
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(&call);
        }
        self.calls.lock().push(call);
        let mut faults = self.faults.lock();
        let mut struck = None;
        faults.retain_mut(|fault| {
            if fault.kind != kind {
                return true;
            }
            fault.after -= 1;
            if fault.after == 0 {
                struck.get_or_insert(fault.error);
            }
            fault.after > 0
        });
        match struck {
            Some(error) => Err(Error::new(error, format!("{kind:?} fails because the test asked for it"))),
            None => Ok(()),
        }
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// A handle to a device that runs nothing.
#[derive(Clone)]
pub struct NullDevice {
    shared: Arc<Shared>,
    device: Arc<dyn backend::Device>,
}

impl Default for NullDevice {
    fn default() -> Self {
        NullDevice::new()
    }
}

impl NullDevice {
    /// Limits similar to those of current GPUs.
    pub const LIMITS: Limits = Limits {
        max_grid: Dim3::new(0x7fff_ffff, 65_535, 65_535),
        max_block: Dim3::new(1024, 1024, 64),
        max_threads_per_block: 1024,
        max_shared_per_block: 48 << 10,
        warp_size: 32,
        max_parameter_bytes: 4096,
    };

    /// Creates a device with [`NullDevice::LIMITS`] and unlimited memory.
    pub fn new() -> Self {
        NullDevice::with_limits(Self::LIMITS)
    }

    /// Creates a device with these limits and unlimited memory.
    pub fn with_limits(limits: Limits) -> Self {
        let shared = Arc::new(Shared {
            id: DeviceId::fresh(),
            limits,
            memory: Arc::default(),
            calls: Mutex::default(),
            faults: Mutex::default(),
            observer: Mutex::default(),
            next_number: AtomicU64::new(0),
        });
        NullDevice { device: Arc::new(Inner(shared.clone())), shared }
    }

    /// Makes the `nth` call of this kind from now on fail. The next call is number 1.
    ///
    /// # Panics
    /// Panics if `nth` is 0.
    pub fn fail(&self, kind: CallKind, nth: usize, error: ErrorKind) {
        assert!(nth > 0, "calls are counted from 1");
        self.shared.faults.lock().push(Fault { kind, after: nth, error });
    }

    /// Calls `observer` during every call from now on, on the thread that makes the call.
    pub fn observe(&self, observer: impl Fn(&Call) + Send + Sync + 'static) {
        *self.shared.observer.lock() = Some(Arc::new(observer));
    }

    /// Returns the calls that the device received, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().clone()
    }

    /// Removes and returns the calls that the device received. Their operations are then no longer
    /// kept alive.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.shared.calls.lock())
    }

    /// Returns the number of calls of a kind.
    pub fn count(&self, kind: CallKind) -> usize {
        self.shared.calls.lock().iter().filter(|call| call.kind() == kind).count()
    }

    /// Returns the number of existing allocations.
    pub fn live_allocations(&self) -> u64 {
        self.shared.memory.live()
    }

    /// Allocates memory of a kind.
    pub fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn backend::Allocation>> {
        self.device.allocate(bytes, kind)
    }
}

impl AsDevice for NullDevice {
    fn as_device(&self) -> &Arc<dyn backend::Device> {
        &self.device
    }
}

impl fmt::Debug for NullDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device.fmt(f)
    }
}

/// The device itself.
struct Inner(Arc<Shared>);

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NullDevice({:?})", self.0.id)
    }
}

// SAFETY: the device runs nothing.
unsafe impl backend::Device for Inner {
    fn id(&self) -> DeviceId {
        self.0.id
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Null
    }

    fn name(&self) -> String {
        "null device".into()
    }

    fn ordinal(&self) -> u32 {
        0
    }

    fn has_peer(&self, _: u32) -> bool {
        true
    }

    fn limits(&self) -> &Limits {
        &self.0.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        vec![("runs".into(), "nothing".into())]
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn backend::Allocation>> {
        self.0.record(Call::Allocate { bytes, kind })?;
        Ok(Arc::new(FakeAllocation::new(self.0.id, &self.0.memory, bytes, kind)))
    }

    fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        Ok((self.0.memory.bytes(), None))
    }

    fn graph_memory(&self) -> Result<GraphMemory> {
        Ok(GraphMemory::default())
    }

    fn reset_graph_memory_high(&self) -> Result<()> {
        Ok(())
    }

    fn trim(&self) -> Result<()> {
        Ok(())
    }

    fn priority_range(&self) -> Result<RangeInclusive<i32>> {
        Ok(-2..=0)
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn backend::Stream>> {
        let number = self.0.number();
        self.0.record(Call::CreateStream(number))?;
        Ok(Arc::new(FakeStream::new(self.0.clone(), number, options)))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn backend::Event>> {
        self.0.record(Call::CreateEvent(options))?;
        Ok(Arc::new(FakeEvent::new(self.0.id, options)))
    }

    fn load_ptx(&self, source: &str) -> Result<Arc<dyn backend::Module>> {
        self.0.record(Call::LoadPtx(source.into()))?;
        // The word after `.entry` is the name of a kernel. Its parameters stay unknown.
        let names =
            source.split(".entry").skip(1).filter_map(|rest| rest.split(['(', '{']).next()).map(str::trim);
        let module =
            names.map(FakeKernel::new).fold(FakeModule::new(), |module, kernel| module.kernel(kernel));
        Ok(module.build(self.0.id, &self.0.memory))
    }

    fn load_binary(&self, image: &[u8]) -> Result<Arc<dyn backend::Module>> {
        self.0.record(Call::LoadBinary(image.len()))?;
        bail!(NotSupported, "the null device has no machine code")
    }

    fn wait_all(&self) -> Result<()> {
        self.0.record(Call::WaitAll)
    }

    fn wait_all_timeout(&self, _: Duration) -> Result<()> {
        self.wait_all()
    }

    fn cancel(&self) {}

    fn read(&self, src: &dyn backend::Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        self.0.record(Call::Read(dst.len()))?;
        backend::check_not_freed(src)?;
        FakeAllocation::of(src)?.read(offset, dst)
    }

    fn write(&self, dst: &dyn backend::Allocation, offset: u64, src: &[u8]) -> Result<()> {
        self.0.record(Call::Write(src.len()))?;
        backend::check_not_freed(dst)?;
        FakeAllocation::of(dst)?.write(offset, src)
    }

    fn check_device_launch(&self) -> Result<()> {
        Ok(())
    }

    unsafe fn instantiate(
        &self,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Box<dyn backend::Executable>> {
        let executable = self.0.number();
        self.0.record(Call::Instantiate {
            definition: Arc::downgrade(definition),
            // A stream keeps its device alive, so the device would keep itself alive.
            options: InstantiateOptions { upload: None, ..options.clone() },
            executable,
        })?;
        Ok(Box::new(FakeExecutable::new(self.0.clone(), definition, executable)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
