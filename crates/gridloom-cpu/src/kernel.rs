//! Kernels and their launches.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gridloom_core::backend::{self, DeviceId, FaultPlace, Origin, Origins};
use gridloom_core::launch::{Dim3, KernelLimits, LaunchConfig};
use gridloom_core::op::{KernelOp, ParamLayout, Params};
use gridloom_core::{Error, ErrorKind, Result};
use gridloom_jit::CompiledKernel;
use parking_lot::Mutex;

use crate::blame::Reach;
use crate::device::Shared;
use crate::interp::compiled::Compiled;
use crate::interp::{
    Budget, CONDITION_TAG, Fault, FaultKind, KernelCode, Launch, MemoryMap, Scratch, SourceLine,
};
use crate::memory::Charged;
use crate::module::Loaded;
use crate::operation::Context;
use crate::pool::Pace;

/// The largest number of blocks of a cooperative launch. They are all in memory at once.
const MAX_RESIDENT: u128 = 16_384;
/// The approximate time of an interpreted instruction for a warp, in nanoseconds.
const INTERPRETED_NS: u64 = 40;
/// The approximate time of a compiled instruction for a warp, in nanoseconds.
const COMPILED_NS: u64 = 5;

/// The engine that runs a kernel.
#[derive(Clone)]
pub(crate) enum KernelEngine {
    /// The interpreter, with the reason if the device has a compiler.
    Interpreter { reason: Option<String> },
    /// Machine code.
    Jit(Arc<CompiledKernel>),
}

/// Returns the handle that kernels get for the condition with this number.
pub(crate) fn condition_handle(number: u32) -> u64 {
    CONDITION_TAG | u64::from(number)
}

/// A kernel of the CPU device.
pub(crate) struct CpuKernel {
    code: Arc<KernelCode>,
    engine: KernelEngine,
    /// Keeps the module's variables alive, whose addresses are in the code.
    module: Arc<Loaded>,
    params: Params,
    limits: KernelLimits,
    /// The time that its blocks take.
    pace: Arc<Pace>,
}

impl CpuKernel {
    pub(crate) fn new(code: Arc<KernelCode>, engine: KernelEngine, module: Arc<Loaded>) -> Self {
        let params = code
            .params()
            .iter()
            .map(|param| ParamLayout { offset: param.offset as u32, size: param.size as u32 })
            .collect();
        let limits = KernelLimits {
            max_threads: code
                .max_threads()
                .map(|extents| u32::try_from(Dim3::from(extents).volume()).unwrap_or(u32::MAX)),
            required_block: code.required_threads().map(Dim3::from),
            static_shared: code.shared_bytes(),
        };
        CpuKernel { code, engine, module, params, limits, pace: Arc::default() }
    }
}

// SAFETY: the kernel belongs to the device that loaded it, and its parameters and limits are those
// of its code.
unsafe impl backend::Kernel for CpuKernel {
    fn device(&self) -> DeviceId {
        self.module.device
    }

    fn name(&self) -> &str {
        self.code.name()
    }

    fn params(&self) -> Option<&Params> {
        Some(&self.params)
    }

    fn limits(&self) -> &KernelLimits {
        &self.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        let (engine, vectorized, reason) = match &self.engine {
            KernelEngine::Interpreter { reason } => ("interpreter", None, reason.clone()),
            KernelEngine::Jit(compiled) => ("jit", Some(compiled.is_vectorized()), None),
        };
        let mut properties: Vec<(String, String)> = [
            ("instructions", self.code.instruction_count().to_string()),
            ("parameter bytes", self.code.param_bytes().to_string()),
            ("static shared bytes", self.code.shared_bytes().to_string()),
            ("local bytes a thread", self.code.local_bytes().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        properties.push(("engine".to_owned(), engine.to_owned()));
        properties.extend(vectorized.map(|vectorized| ("vectorized".to_owned(), vectorized.to_string())));
        if let KernelEngine::Jit(compiled) = &self.engine
            && let Some(share) = compiled.runs().share_wide()
        {
            properties.push(("ran wide".to_owned(), format!("{:.1} %", 100.0 * share)));
        }
        properties.extend(reason.map(|reason| ("interpreted because".to_owned(), reason)));
        properties
    }

    fn resident_blocks(&self, config: &LaunchConfig) -> Result<Option<u64>> {
        let has_clusters = config.cluster.is_some_and(|cluster| cluster != Dim3::ONE);
        Ok((!has_clusters).then_some(MAX_RESIDENT as u64))
    }

    fn ptx(&self) -> Option<&str> {
        Some(self.module.source())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuKernel({})", self.code.name())
    }
}

/// A launch of a kernel with packed arguments. It can run any number of times.
pub(crate) struct KernelLaunch {
    code: Arc<KernelCode>,
    compiled: Option<Arc<CompiledKernel>>,
    module: Arc<Loaded>,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    cooperative: bool,
    params: Box<[u8]>,
    pace: Arc<Pace>,
    /// Whose work it does, if the kernel was made from others.
    origins: Option<Arc<dyn Origins>>,
}

thread_local! {
    /// The working memory of blocks, kept between launches. It is empty while a block runs, because
    /// a kernel that prints may let another device run a kernel on the same thread.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl KernelLaunch {
    pub(crate) fn new(op: &KernelOp, mut params: Box<[u8]>) -> Result<Self> {
        let Some(kernel) = op.kernel().as_any().downcast_ref::<CpuKernel>() else {
            return Err(Error::new(ErrorKind::WrongDevice, "the kernel is not one of the CPU device"));
        };
        let config = op.config();
        let refuse = |message: String| Err(Error::new(ErrorKind::NotSupported, message));
        if let Some(cluster) = config.cluster.filter(|&cluster| cluster != Dim3::ONE) {
            return refuse(format!(
                "clusters of {cluster} blocks; the CPU device runs blocks by themselves, launch {} without clusters there",
                kernel.code.name()
            ));
        }
        let blocks = config.grid.volume();
        if config.cooperative && blocks > MAX_RESIDENT {
            return refuse(format!(
                "a cooperative launch of {blocks} blocks; the CPU device holds at most {MAX_RESIDENT} at once"
            ));
        }
        let bytes = kernel.code.param_bytes() as usize;
        if params.len() != bytes {
            let mut padded = params.into_vec();
            padded.resize(bytes, 0);
            params = padded.into();
        }
        Ok(KernelLaunch {
            code: kernel.code.clone(),
            compiled: match &kernel.engine {
                KernelEngine::Jit(compiled) => Some(compiled.clone()),
                KernelEngine::Interpreter { .. } => None,
            },
            module: kernel.module.clone(),
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            shared: config.shared,
            cooperative: config.cooperative,
            params,
            pace: kernel.pace.clone(),
            origins: op.kernel().origins().cloned(),
        })
    }

    /// Returns the compiled kernel, unless the interpreter runs it.
    pub(crate) fn compiled(&self) -> Option<&Arc<CompiledKernel>> {
        self.compiled.as_ref()
    }

    /// Returns the approximate time on one thread, in nanoseconds.
    pub(crate) fn estimate(&self) -> u64 {
        let blocks: u64 = self.grid.iter().map(|&extent| u64::from(extent)).product();
        let threads: u64 = self.block.iter().map(|&extent| u64::from(extent)).product();
        let one = if self.compiled.is_some() { COMPILED_NS } else { INTERPRETED_NS };
        let instructions = self.code.instruction_count() as u64 * one;
        blocks.saturating_mul(threads.div_ceil(32)).saturating_mul(instructions)
    }

    /// Runs all blocks. It starts on this thread and shares the rest with others if it takes long.
    pub(crate) fn run(&self, context: Context<'_>) -> Result<()> {
        let device = context.device;
        // Set when a block fails, to stop the others.
        let stop = AtomicBool::new(false);
        let failure: Mutex<Option<Box<Fault>>> = Mutex::new(None);
        let sink_failure: Mutex<Option<String>> = Mutex::new(None);
        let print = |text: &[u8]| {
            if let Err(said) = device.print(text) {
                stop.store(true, Ordering::Relaxed);
                sink_failure.lock().get_or_insert(said);
            }
        };
        let (map, budget): (&dyn MemoryMap, &dyn Budget) = (&*device.memory, &*device.memory);
        let launch = Launch {
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.shared,
            params: &self.params,
            memory_map: device.checked.then_some(map),
            conditions: context.conditions,
            budget: device.memory.limit().map(|_| budget),
            print: &print,
            step_limit: device.step_limit,
            cancel: [&stop, context.cancel[0], context.cancel[1]],
            grid_id: device.grids.fetch_add(1, Ordering::Relaxed),
            compiled: self.compiled.as_deref().map(|compiled| compiled as &dyn Compiled),
            ..Launch::new(&self.code, &device.heap)
        };
        let room = self.room(device, &launch)?;
        let note = |fault: Box<Fault>| {
            stop.store(true, Ordering::Relaxed);
            let mut failure = failure.lock();
            // A block that was cancelled because of a fault is not the fault.
            match &*failure {
                Some(earlier) if earlier.kind != FaultKind::Cancelled => {}
                _ => *failure = Some(fault),
            }
        };
        if self.cooperative {
            let mut scratch = Scratch::new();
            // SAFETY: see `run_range`.
            unsafe { launch.run_cooperative(0..launch.blocks(), &mut scratch) }.unwrap_or_else(note);
            scratch.settle(&launch, 0);
        } else if room.alone {
            run_range(&launch, 0..launch.blocks(), &note);
        } else {
            device.pool.try_for_each(launch.blocks(), &self.pace, &|range| {
                if !stop.load(Ordering::Relaxed) {
                    run_range(&launch, range, &note);
                }
                // No range is left to look at after a failure, however large the grid is.
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        if let Some(said) = sink_failure.into_inner() {
            let message = format!("the print sink of the device panicked: {said}");
            return Err(Error::new(ErrorKind::CallbackPanicked, message));
        }
        match failure.into_inner() {
            None => Ok(()),
            Some(fault) => Err(self.error(device, *fault)),
        }
    }

    /// Returns the error for a fault. It names the node and the kernel that the user wrote.
    #[cold]
    fn error(&self, device: &Shared, mut fault: Fault) -> Error {
        let kind = match fault.kind {
            FaultKind::Cancelled => ErrorKind::Cancelled,
            FaultKind::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            _ => ErrorKind::KernelFault,
        };
        let origin = self.origins.as_deref().and_then(|origins| as_written(&mut fault, origins));
        let params = match &origin {
            Some(origin) => origin.params.clone(),
            None => self.params_of_code(),
        };
        let message = match self.reach(device, params).explain(&fault) {
            Some(explanation) => format!("{fault}: {explanation}"),
            None => fault.to_string(),
        };
        let error = Error::new(kind, message).with_source(fault);
        match origin {
            Some(origin) => error.at_node(origin.node),
            None => error,
        }
    }

    fn params_of_code(&self) -> Vec<(String, Range<u64>)> {
        let params = self.code.params().iter();
        params.map(|param| (param.name.clone(), param.offset..param.offset + param.size)).collect()
    }

    /// Returns the memory that the launch can name, with these parameters.
    fn reach<'a>(&'a self, device: &'a Shared, params: Vec<(String, Range<u64>)>) -> Reach<'a> {
        Reach {
            params,
            bytes: &self.params,
            variables: self.module.variables(),
            shared: u64::from(self.code.shared_bytes()) + u64::from(self.shared),
            memory: &device.memory,
        }
    }
}

/// Changes a fault of a rewritten kernel to the place in the kernel that the user wrote. Returns
/// `None`, and changes nothing, if there is no such place.
fn as_written(fault: &mut Fault, origins: &dyn Origins) -> Option<Origin> {
    let place = fault.place.as_ref()?;
    let at = |instruction| FaultPlace {
        block: fault.block,
        thread: fault.thread,
        instruction,
        registers: &place.registers,
    };
    let origin = origins.origin(&at(place.instruction))?;
    let source = |origin: &Origin| {
        let (file, line) = origin.source.clone()?;
        Some(SourceLine { file, line })
    };
    if let FaultKind::Deadlock { waiting } = &mut fault.kind {
        for wait in waiting {
            let Some(origin) = origins.origin(&at(wait.instruction)) else { continue };
            (wait.line, wait.source) = (origin.line.unwrap_or(0), source(&origin));
        }
    }
    if fault.line.is_some() {
        (fault.line, fault.source) = (origin.line, source(&origin));
    }
    fault.kernel.clone_from(&origin.kernel);
    (fault.block, fault.thread) = (origin.block, origin.thread);
    Some(origin)
}

/// The device memory that a launch holds while it runs.
struct Room<'a> {
    _charged: Option<Charged<'a>>,
    /// Whether the memory is enough only for one block at a time.
    alone: bool,
}

impl KernelLaunch {
    /// Takes the memory for the blocks that run at once: for as many as there are threads, or else
    /// for one. Without a limit nothing is counted.
    fn room<'a>(&self, device: &'a Shared, launch: &Launch<'_>) -> Result<Room<'a>> {
        if device.memory.limit().is_none() {
            return Ok(Room { _charged: None, alone: false });
        }
        let each = launch.block_bytes();
        let threads = device.pool.threads() as u64;
        let most = if self.cooperative { launch.blocks() } else { launch.blocks().min(threads) };
        let mut refused = match device.memory.charge_for(each.saturating_mul(most)) {
            Ok(charged) => return Ok(Room { _charged: Some(charged), alone: false }),
            Err(error) => error,
        };
        if !self.cooperative {
            match device.memory.charge_for(each) {
                Ok(charged) => return Ok(Room { _charged: Some(charged), alone: true }),
                Err(error) => refused = error,
            }
        }
        let blocks = if self.cooperative { most } else { 1 };
        Err(refused.context(format_args!(
            "kernel {}: {each} bytes of registers, local and shared memory for each of {blocks} blocks that run at once",
            self.code.name()
        )))
    }
}

/// The working memory in bytes that a thread keeps for its next launch on a device with limited
/// memory. No launch is charged for it.
const KEPT_SCRATCH: u64 = 64 << 10;

fn run_range(launch: &Launch<'_>, range: Range<u64>, note: &dyn Fn(Box<Fault>)) {
    let mut scratch = SCRATCH.take().unwrap_or_default();
    // SAFETY: whoever looked the kernel up promised that it stays inside the memory it is given.
    // Checked mode does not need the promise. The launching code holds the memory that the
    // arguments refer to. Other operations of this device may access it concurrently and see torn
    // values at worst, as the `memory` module says.
    unsafe { launch.run_blocks(range, &mut scratch) }.unwrap_or_else(note);
    if launch.budget.is_some() {
        scratch.settle(launch, KEPT_SCRATCH);
    }
    SCRATCH.set(Some(scratch));
}
