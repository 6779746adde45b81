//! The device: its options, and the state that its parts share.

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gridloom_core::backend::{self, Allocation, DeviceId, DeviceKind, EventOptions, StreamOptions};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::Definition;
use gridloom_core::launch::{Dim3, Limits};
use gridloom_core::log;
use gridloom_core::memory::{GraphMemory, GraphMemoryMeter, MemoryKind};
use gridloom_core::user_code::{self, Caller, UserValue};
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::event::CpuEvent;
use crate::graph::CpuExecutable;
use crate::interp::Heap;
use crate::memory::{CpuAllocation, HostBlock, Ledger};
use crate::module::CpuModule;
use crate::pool::Pool;
use crate::release::Release;
use crate::stream::{CpuStream, SharedStream, Work};
use crate::transfer;

/// The environment variable that chooses the engine if the options leave it open.
pub(crate) const ENGINE_VARIABLE: &str = "GRIDLOOM_CPU_ENGINE";

/// The environment variable that makes devices check memory if the options leave it open: `1` or
/// `0`.
pub(crate) const CHECKED_VARIABLE: &str = "GRIDLOOM_CPU_CHECKED";

/// The largest number of threads of one device.
const MAX_THREADS: usize = 1024;

/// The engine that runs kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// The engine that the environment variable `GRIDLOOM_CPU_ENGINE` names, else the fastest one.
    #[default]
    Auto,
    /// The reference interpreter.
    Interpreter,
    /// Machine code, compiled when a kernel first runs. The interpreter runs kernels that cannot be
    /// compiled, and all kernels of a device that checks memory or limits steps. The properties of
    /// a kernel say which engine runs it, and why.
    Jit,
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "" | "auto" => Ok(Engine::Auto),
            "interpreter" => Ok(Engine::Interpreter),
            "jit" => Ok(Engine::Jit),
            _ => Err(Error::new(
                ErrorKind::NotFound,
                format!("no engine {name:?} in this build; there are auto, interpreter and jit"),
            )),
        }
    }
}

impl Engine {
    fn resolve(self) -> Result<Self> {
        let chosen = match (self, std::env::var(ENGINE_VARIABLE)) {
            (Engine::Auto, Ok(name)) => {
                name.parse().map_err(|error: Error| error.context(ENGINE_VARIABLE))?
            }
            (engine, _) => engine,
        };
        Ok(if chosen == Engine::Auto { Engine::Jit } else { chosen })
    }
}

/// Returns whether a device with this option checks memory.
fn resolve_checked(option: Option<bool>) -> Result<bool> {
    match (option, std::env::var_os(CHECKED_VARIABLE)) {
        (Some(checked), _) => Ok(checked),
        (None, None) => Ok(false),
        (None, Some(value)) => match value.to_str() {
            Some("1") => Ok(true),
            Some("0" | "") => Ok(false),
            _ => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{CHECKED_VARIABLE} is {value:?}; it is 1 to check every memory access, or 0"),
            )),
        },
    }
}

/// A function that takes the output of `printf` in kernels. It is called like a callback: it may
/// not use the device that prints, and a panic fails the launch.
pub type PrintSink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The options of a CPU device.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CpuOptions {
    /// The number of threads that can work on one stream's work at once, including the stream's
    /// own. The default is the parallelism of the machine.
    pub threads: Option<usize>,
    /// The engine that runs kernels.
    pub engine: Engine,
    /// Whether every memory access of a kernel is checked. An access outside of live allocations
    /// fails the launch. Each alloc node then has a separate block of memory. `None` leaves it to
    /// the environment variable `GRIDLOOM_CPU_CHECKED` (`1` or `0`); without it nothing is checked.
    pub checked: Option<bool>,
    /// The largest number of bytes allocated at once. It covers buffers, memory of graphs,
    /// variables of modules, `malloc` in kernels, and what running kernels need: registers, stacks,
    /// local and shared memory of the blocks that run at once. A launch that would exceed the limit
    /// fails with [`OutOfMemory`](ErrorKind::OutOfMemory) before it starts. If calls inside the
    /// kernel need the memory, it fails when they do.
    pub memory_limit: Option<u64>,
    /// The largest number of instructions that one warp of a kernel may execute.
    pub step_limit: Option<u64>,
    /// The largest number of nodes that one launch of a graph may run. Every node counts each time
    /// it runs, and so does every pass of a loop, even with an empty body. A launch that would
    /// run more fails with [`LimitExceeded`](ErrorKind::LimitExceeded).
    pub node_limit: Option<u64>,
    /// The function that takes the output of `printf` in kernels. It gets one call per `printf`,
    /// from any thread. The default writes to standard output at once. Text that the program has
    /// printed and not flushed comes after it.
    ///
    /// It is called like a callback. It may wait and use other devices. Using this device is an
    /// error, because the kernel that prints waits for the function. A panic fails the launch.
    pub print: Option<PrintSink>,
}

impl CpuOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads that can work on one stream's work at once.
    #[must_use]
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Sets the engine that runs kernels.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets whether every memory access of a kernel is checked.
    #[must_use]
    pub fn checked(mut self, checked: impl Into<Option<bool>>) -> Self {
        self.checked = checked.into();
        self
    }

    /// Sets the largest number of bytes allocated at once.
    #[must_use]
    pub fn memory_limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory_limit = bytes.into();
        self
    }

    /// Sets the largest number of instructions that one warp of a kernel may execute.
    #[must_use]
    pub fn step_limit(mut self, steps: impl Into<Option<u64>>) -> Self {
        self.step_limit = steps.into();
        self
    }

    /// Sets the largest number of nodes that one launch of a graph may run.
    #[must_use]
    pub fn node_limit(mut self, nodes: impl Into<Option<u64>>) -> Self {
        self.node_limit = nodes.into();
        self
    }

    /// Sets the function that takes the output of `printf` in kernels.
    #[must_use]
    pub fn print(mut self, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.print = Some(Arc::new(sink));
        self
    }
}

impl fmt::Debug for CpuOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuOptions")
            .field("threads", &self.threads)
            .field("engine", &self.engine)
            .field("checked", &self.checked)
            .field("memory_limit", &self.memory_limit)
            .field("step_limit", &self.step_limit)
            .field("node_limit", &self.node_limit)
            .field("print", &self.print.is_some())
            .finish()
    }
}

/// The state that all parts of a device share. Streams, executables and kernels hold it, so it
/// outlives the handle of the device.
pub(crate) struct Shared {
    pub(crate) id: DeviceId,
    pub(crate) engine: Engine,
    pub(crate) checked: bool,
    pub(crate) step_limit: Option<u64>,
    pub(crate) node_limit: Option<u64>,
    /// The print function. `None` means standard output.
    print: Option<UserValue<PrintSink>>,
    pub(crate) memory: Arc<Ledger>,
    /// The memory that executables hold for alloc nodes.
    pub(crate) graph_memory: Arc<GraphMemoryMeter>,
    pub(crate) pool: Pool,
    /// Serves `malloc` in kernels.
    pub(crate) heap: Heap,
    /// The next number for `%gridid`.
    pub(crate) grids: AtomicU64,
    limits: Limits,
    epoch: Instant,
    release: Release,
    streams: Mutex<Vec<Weak<SharedStream>>>,
}

impl Shared {
    /// Returns the streams whose handle or thread still exists.
    fn lines(&self) -> Vec<Arc<SharedStream>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Drops a value that may run user code, on the release thread.
    pub(crate) fn hand_over(&self, payload: impl Send + 'static) {
        self.release.hand_over(payload);
    }

    /// Drops finished work. Values that may run user code go to the release thread.
    pub(crate) fn dispose(&self, work: Work) {
        match work {
            Work::Operation(prepared, operation) if operation.may_run_user_code() => {
                self.hand_over((prepared, operation));
            }
            Work::Graph(launch) => {
                if let Some(executable) = launch.into_last() {
                    self.hand_over(executable);
                }
            }
            other => drop(other),
        }
    }

    /// Passes the output of a kernel to the print function. Fails if the function panics.
    pub(crate) fn print(&self, text: &[u8]) -> std::result::Result<(), String> {
        match &self.print {
            Some(print) => user_code::call(Caller::Device(self.id), || print(text)),
            None => {
                print_to_stdout(text);
                Ok(())
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(print) = self.print.take() {
            self.release.hand_over(print);
        }
    }
}

/// A CPU as a device. It runs the same graphs and PTX kernels as a GPU.
pub struct CpuDevice {
    shared: Arc<Shared>,
    attachment: backend::Attachment,
}

impl CpuDevice {
    /// Opens a device. Every call opens a separate one, with its own memory, workers and limits.
    pub fn new(options: CpuOptions) -> Result<Arc<Self>> {
        let id = DeviceId::fresh();
        let threads = match options.threads {
            Some(0) => {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "a CPU device needs at least 1 thread, 0 were asked for",
                ));
            }
            Some(threads) => threads.min(MAX_THREADS),
            None => thread::available_parallelism().map_or(1, |threads| threads.get()),
        };
        let memory = Ledger::new(id, options.memory_limit);
        let shared = Shared {
            id,
            engine: options.engine.resolve()?,
            checked: resolve_checked(options.checked)?,
            step_limit: options.step_limit,
            node_limit: options.node_limit,
            print: options.print.map(UserValue::new),
            pool: Pool::new(threads),
            heap: Heap::default().with_budget(memory.clone()),
            memory,
            graph_memory: Arc::default(),
            grids: AtomicU64::new(1),
            limits: limits(),
            epoch: Instant::now(),
            release: Release::default(),
            streams: Mutex::new(Vec::new()),
        };
        Ok(Arc::new(CpuDevice { shared: Arc::new(shared), attachment: backend::Attachment::default() }))
    }

    /// Returns the number of threads that can work on one stream's work at once.
    pub fn threads(&self) -> usize {
        self.shared.pool.threads()
    }

    /// Returns whether every memory access of kernels is checked.
    pub fn is_checked(&self) -> bool {
        self.shared.checked
    }

    /// Returns the engine that runs kernels.
    pub fn engine(&self) -> Engine {
        self.shared.engine
    }
}

/// Writes to standard output, past the lock and the buffer of the standard library. A thread that
/// holds the lock may be waiting for the kernel that prints.
fn print_to_stdout(bytes: &[u8]) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let written = {
        let _alone = ONE_AT_A_TIME.lock();
        stdout_handle().and_then(|mut stdout| stdout.write_all(bytes))
    };
    if let Err(error) = written {
        log!(warn, %error, "what a kernel printed could not be written to standard output");
    }
}

#[cfg(unix)]
fn stdout_handle() -> std::io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(std::io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdout_handle() -> std::io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(std::io::stdout().as_handle().try_clone_to_owned()?))
}

/// Returns the limits of current GPUs, so that what runs here runs there.
fn limits() -> Limits {
    Limits {
        max_grid: Dim3::new(i32::MAX as u32, 65_535, 65_535),
        max_block: Dim3::new(1024, 1024, 64),
        max_threads_per_block: 1024,
        max_shared_per_block: 227 << 10,
        warp_size: 32,
        max_parameter_bytes: 32_764,
    }
}

// SAFETY: the identity is unique, the limits are what the device can run, and memory is aligned to
// `ALIGNMENT`, which is 256.
unsafe impl backend::Device for CpuDevice {
    fn id(&self) -> DeviceId {
        self.shared.id
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Cpu
    }

    fn name(&self) -> String {
        format!("CPU ({} threads)", self.threads())
    }

    fn ordinal(&self) -> u32 {
        0
    }

    fn has_peer(&self, ordinal: u32) -> bool {
        // All memory is the host's, and there is no other device of this kind.
        ordinal == 0
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        let shared = &self.shared;
        let limit = shared.memory.limit().map_or_else(|| "none".to_owned(), |limit| format!("{limit} bytes"));
        let steps = shared.step_limit.map_or_else(|| "none".to_owned(), |limit| format!("{limit} a warp"));
        let nodes = shared.node_limit.map_or_else(|| "none".to_owned(), |limit| format!("{limit} a launch"));
        [
            ("threads", self.threads().to_string()),
            ("engine", format!("{:?}", shared.engine).to_lowercase()),
            ("checked memory", shared.checked.to_string()),
            ("memory limit", limit),
            ("step limit", steps),
            ("node limit", nodes),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<Arc<dyn Allocation>> {
        let block = HostBlock::new(&self.shared.memory, bytes)?;
        Ok(CpuAllocation::new(block, bytes, kind))
    }

    fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        Ok((self.shared.memory.used(), self.shared.memory.limit()))
    }

    fn graph_memory(&self) -> Result<GraphMemory> {
        // Freed memory goes back to the system at once.
        let meter = &self.shared.graph_memory;
        Ok(GraphMemory::new(meter.used(), meter.used_high(), 0))
    }

    fn reset_graph_memory_high(&self) -> Result<()> {
        self.shared.graph_memory.reset_high();
        Ok(())
    }

    fn trim(&self) -> Result<()> {
        Ok(())
    }

    fn priority_range(&self) -> Result<RangeInclusive<i32>> {
        Ok(0..=0)
    }

    fn create_stream(&self, _: StreamOptions) -> Result<Arc<dyn backend::Stream>> {
        let stream = CpuStream::new(self.shared.clone());
        let mut streams = self.shared.streams.lock();
        streams.retain(|line| line.strong_count() > 0);
        streams.push(Arc::downgrade(stream.line()));
        Ok(Arc::new(stream))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn backend::Event>> {
        Ok(CpuEvent::new(self.shared.id, options, self.shared.epoch))
    }

    fn load_ptx(&self, source: &str) -> Result<Arc<dyn backend::Module>> {
        Ok(Arc::new(CpuModule::load(&self.shared, source)?))
    }

    fn load_binary(&self, _image: &[u8]) -> Result<Arc<dyn backend::Module>> {
        Err(Error::new(
            ErrorKind::NotSupported,
            "the CPU device runs PTX, not machine code of GPUs; load the PTX that the binary was made from",
        ))
    }

    fn wait_all(&self) -> Result<()> {
        let _wait = user_code::may_wait(self.shared.id, "waiting for the device")?;
        self.shared.lines().iter().for_each(|line| line.drain());
        Ok(())
    }

    fn wait_all_timeout(&self, timeout: Duration) -> Result<()> {
        let _wait = user_code::may_wait(self.shared.id, "waiting for the device")?;
        let deadline = backend::deadline(timeout);
        match self.shared.lines().iter().all(|line| line.wait_until(deadline)) {
            true => Ok(()),
            false => Err(backend::timed_out("the work on the device", timeout)),
        }
    }

    fn cancel(&self) {
        self.shared.lines().iter().for_each(|line| line.cancel());
    }

    fn read(&self, src: &dyn Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_access(self.shared.id, src, offset, dst.len())?;
        self.wait_all()?;
        // SAFETY: the range lies in the allocation, which is borrowed and therefore alive.
        unsafe { transfer::read(dst, src.address() + offset) };
        Ok(())
    }

    fn write(&self, dst: &dyn Allocation, offset: u64, src: &[u8]) -> Result<()> {
        backend::check_access(self.shared.id, dst, offset, src.len())?;
        self.wait_all()?;
        // SAFETY: as for `read`.
        unsafe { transfer::write(dst.address() + offset, src) };
        Ok(())
    }

    fn drop_later(&self, value: Box<dyn Send>) {
        self.shared.hand_over(value);
    }

    fn records_launches(&self) -> bool {
        true
    }

    fn check_device_launch(&self) -> Result<()> {
        Err(Error::new(
            ErrorKind::NotSupported,
            "kernels on the CPU device cannot launch graphs; instantiate without device_launch and launch from the host",
        ))
    }

    unsafe fn instantiate(
        &self,
        definition: &Arc<Definition>,
        options: &InstantiateOptions,
    ) -> Result<Box<dyn backend::Executable>> {
        Ok(Box::new(CpuExecutable::new(self.shared.clone(), definition, options)?))
    }

    fn attachment(&self) -> Option<&backend::Attachment> {
        Some(&self.attachment)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CpuDevice {
    /// Lets the enqueued work run for a limited time, then cancels it. Nobody is left who could
    /// wait for it or cancel it.
    fn drop(&mut self) {
        let busy: Vec<Weak<SharedStream>> =
            self.shared.lines().iter().filter(|line| !line.is_idle()).map(Arc::downgrade).collect();
        if busy.is_empty() {
            return;
        }
        let end = move || {
            thread::sleep(backend::GRACE);
            busy.iter().filter_map(Weak::upgrade).for_each(|line| line.cancel());
        };
        if let Err(error) = thread::Builder::new().name("gridloom-grace".into()).spawn(end) {
            log!(warn, %error, "no thread to cancel the work of a dropped device");
        }
    }
}

impl fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuDevice({} threads, {:?})", self.threads(), self.shared.engine)
    }
}
