//! A CUDA driver in about a thousand lines, so that the lowering of graphs is tested on any
//! machine.
//!
//! Memory is host memory, and the kernels of the tests are Rust functions found by name. A test
//! program can have the kernels interpreted that the optimiser makes from them. Streams
//! are threads: what is enqueued runs later, as on a GPU, host functions on one thread of the
//! driver's own. Graphs are built, compiled, changed and run as the driver does it, and what the
//! driver refuses is refused here too: a condition handle that no node uses, or two use; host and
//! event nodes in the body of a conditional; another direction of a copy in a compiled graph; a
//! disabled node in a body; a copy of a graph that holds conditionals or allocations. Streams can
//! be captured.
//!
//! It is stricter than a driver. What a driver leaves undefined is noted as a
//! [violation](violations): work that touches memory after it was freed, runs a kernel of a module
//! that was unloaded, or uses an event or stream that was destroyed; two threads in calls on one
//! graph; a call from a host function; conditionals of one graph without an order; uses of a
//! counter of Gridloom's own without one; managed memory in copies and fills of a conditional's
//! body; an upload of a graph beside a launch of it. And every call can be made to fail
//! ([`Failure`]).

#![allow(unreachable_pub, dead_code, unused_imports, reason = "a module of each test program that uses it")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    clippy::not_unsafe_ptr_arg_deref,
    reason = "every function here stands for one of the driver's, called by code that keeps the driver's contract"
)]

mod capture;
mod clock;
mod code;
mod entry;
mod executable_changes;
mod executables;
mod graphs;
mod interpreted;
mod introspect;
mod memory;
mod objects;
mod order;
mod streams;

pub use clock::{FixedTimes, Times};
pub use code::Shape;
pub use entry::{Failure, uncounted};
pub use interpreted::run_others_with;
pub use objects::FAR_STREAM;
pub use streams::{Held, hold, record};

use gridloom_cuda::driver::{Driver, DriverOptions, SymbolSource};
use gridloom_cuda::sys::{CUhostFn, CUlaunchAttributeID, CUresult};
use gridloom_cuda::{CudaDevice, CudaVersion};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock};

pub const OK: CUresult = CUresult::CUDA_SUCCESS;
pub const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub const REFUSED: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;

/// Everything the driver has handed out.
#[derive(Default)]
pub struct World {
    next: usize,
    pub modules: HashMap<usize, code::Module>,
    pub functions: HashMap<usize, code::Function>,
    pub graphs: HashMap<usize, graphs::Graph>,
    pub nodes: HashMap<usize, graphs::Node>,
    pub executables: HashMap<usize, executables::Executable>,
    /// The value of each condition handle.
    pub conditions: HashMap<u64, u32>,
    pub memory: memory::Blocks,
    pub events: HashMap<usize, Arc<streams::Event>>,
    pub destroyed_events: HashSet<usize>,
    pub streams: HashMap<usize, Arc<streams::Stream>>,
    pub destroyed_streams: HashSet<usize>,
    pub captures: HashMap<usize, capture::Capture>,
    /// Events recorded in a capture: which one, and after which nodes.
    pub captured_events: HashMap<usize, (usize, Vec<usize>)>,
    pub user_objects: HashMap<usize, (CUhostFn, usize)>,
    /// What descriptions of kernel nodes point to, by node.
    pub arguments: HashMap<usize, introspect::Arguments>,
    pub pools: HashSet<usize>,
    /// Pinned memory for one context only, with its bytes.
    pub pages: HashMap<u64, usize>,
    /// How often the primary context is retained.
    pub retained: usize,
    pub clock: u64,
    /// The attributes of the latest launch that had any.
    pub launch_attributes: Vec<CUlaunchAttributeID>,
    /// How many graphs run now that must not run side by side.
    pub running_alone: usize,
    /// Objects that a call is at work on.
    busy: HashSet<usize>,
    violations: Vec<String>,
}

impl World {
    /// A number that stands for a new object; never 0 and never an address.
    pub fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next << 4 | 1
    }

    /// Notes what a driver would leave undefined.
    pub fn violation(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);

pub fn world<T>(with: impl FnOnce(&mut World) -> T) -> T {
    with(&mut WORLD.lock())
}

/// What was done that a driver leaves undefined, so far.
pub fn violations() -> Vec<String> {
    world(|world| world.violations.clone())
}

/// How many programmatic edges the executable that was made last has.
pub fn early_starts() -> usize {
    world(|world| {
        let latest = world.executables.iter().max_by_key(|(number, _)| **number);
        latest.map_or(0, |(_, executable)| executable.early_starts())
    })
}

/// How many objects of each kind exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alive {
    pub graphs: usize,
    pub nodes: usize,
    pub executables: usize,
    pub modules: usize,
    pub memory: usize,
    pub bytes: usize,
    pub events: usize,
    pub streams: usize,
    pub captures: usize,
    pub contexts: usize,
}

/// Counts what exists.
pub fn alive() -> Alive {
    world(|world| Alive {
        graphs: world.graphs.len(),
        nodes: world.nodes.len(),
        executables: world.executables.len(),
        modules: world.modules.len(),
        // Pages of Gridloom's own stay, to be used again.
        memory: world.memory.count() - world.pages.len(),
        bytes: world.memory.bytes() - world.pages.values().sum::<usize>(),
        events: world.events.len(),
        streams: world.streams.len(),
        captures: world.captures.len(),
        // Pools stay, and each keeps the context.
        contexts: world.retained - world.pools.len(),
    })
}

/// Has one call at a time use an object that the driver does not guard. Two at once is a violation.
pub struct Use(usize);

impl Use {
    pub fn of<T>(object: *mut T) -> Self {
        let number = object.addr();
        world(|world| {
            if !world.busy.insert(number) {
                world.violation(format!("two calls at once use object {number:#x}"));
            }
        });
        // Whoever comes at the same time is to be seen.
        std::thread::yield_now();
        Self(number)
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        world(|world| world.busy.remove(&self.0));
    }
}

/// A handle of the driver as a number, and back.
pub fn handle<T>(number: usize) -> *mut T {
    std::ptr::without_provenance_mut(number)
}

#[derive(Debug)]
struct Simulated {
    symbols: HashMap<&'static str, usize>,
}

unsafe impl SymbolSource for Simulated {
    fn symbol(&self, name: &str) -> Option<NonNull<c_void>> {
        NonNull::new(*self.symbols.get(name)? as *mut c_void)
    }

    fn describe(&self) -> &str {
        "a simulated driver"
    }
}

/// A simulated GPU behind a driver as old as the environment says.
pub fn device_of_environment() -> Arc<CudaDevice> {
    device(DriverOptions::from_environment().expect("a version").max_version)
}

/// A simulated GPU behind a driver that supports CUDA 13.0, or less where it is capped.
pub fn device(cap: Option<CudaVersion>) -> Arc<CudaDevice> {
    device_with(DriverOptions::default().max_version(cap))
}

/// The same with other options.
pub fn device_with(options: DriverOptions) -> Arc<CudaDevice> {
    let mut symbols = HashMap::new();
    objects::export(&mut symbols);
    memory::export(&mut symbols);
    streams::export(&mut symbols);
    code::export(&mut symbols);
    graphs::export(&mut symbols);
    executables::export(&mut symbols);
    executable_changes::export(&mut symbols);
    capture::export(&mut symbols);
    introspect::export(&mut symbols);
    let driver = Driver::with_source(Box::new(Simulated { symbols }), options).unwrap();
    CudaDevice::open_with(driver, 0).unwrap()
}

/// Puts functions into the table under the names the driver exports them by.
macro_rules! exports {
    ($table:expr, $($name:literal => $function:expr),* $(,)?) => {
        $($table.insert($name, super::entry::Entry::address($function, $name));)*
    };
}
pub(crate) use exports;
