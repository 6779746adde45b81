//! A CUDA driver in a few hundred lines, so that the lowering of graphs is tested on any machine.
//!
//! Memory is host memory, streams run what they are given at once, and the kernels of the tests are Rust functions found by
//! name. Graphs are built, compiled, changed and run as the driver does it, and what the driver refuses is refused here too:
//! a condition handle that no node uses, or two use; host and event nodes in the body of a conditional; another direction of a copy
//! in a compiled graph; a disabled node in a body; a copy of a graph that holds conditionals or allocations. Streams can be captured.

#![allow(unreachable_pub, dead_code, unused_imports, reason = "a module of each test program that uses it")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "every function here stands for one of the driver's, called by code that keeps the driver's contract"
)]

mod capture;
mod code;
mod graphs;
mod introspect;
mod objects;

pub use objects::{FAR_STREAM, record};

use gridloom_cuda::driver::{Driver, DriverOptions, SymbolSource};
use gridloom_cuda::sys::{CUhostFn, CUresult};
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
    pub executables: HashMap<usize, graphs::Executable>,
    /// The value of each condition handle.
    pub conditions: HashMap<u64, u32>,
    /// Bytes of each allocation.
    pub memory: HashMap<u64, usize>,
    pub events: HashMap<usize, u64>,
    pub streams: HashSet<usize>,
    pub destroyed_streams: HashSet<usize>,
    pub captures: HashMap<usize, capture::Capture>,
    /// Events recorded in a capture: which one, and after which nodes.
    pub captured_events: HashMap<usize, (usize, Vec<usize>)>,
    pub user_objects: HashMap<usize, (CUhostFn, usize)>,
    /// What descriptions of kernel nodes point to, by node.
    pub arguments: HashMap<usize, introspect::Arguments>,
    pub clock: u64,
}

impl World {
    /// A number that stands for a new object; never 0 and never an address.
    pub fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next << 4 | 1
    }
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);

pub fn world<T>(with: impl FnOnce(&mut World) -> T) -> T {
    with(&mut WORLD.lock())
}

thread_local! {
    static FAULT: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// Has the `nth` call from now on, of those on this thread that can be made to fail, fail.
pub fn fail_nth(nth: usize) {
    FAULT.set(Some(nth));
}

/// Whether the fault is still to come. It is then forgotten.
pub fn fault_is_left() -> bool {
    FAULT.take().is_some()
}

/// Whether the present call is the one that is to fail.
pub fn is_faulty() -> bool {
    match FAULT.get() {
        Some(0) => {
            FAULT.set(None);
            true
        }
        Some(left) => {
            FAULT.set(Some(left - 1));
            false
        }
        None => false,
    }
}

/// What a call that was made to fail returns.
pub const FAULTY: CUresult = CUresult::CUDA_ERROR_UNKNOWN;

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

/// A simulated GPU behind a driver that supports CUDA 13.0, or less where it is capped.
pub fn device(cap: Option<CudaVersion>) -> Arc<CudaDevice> {
    let mut symbols = HashMap::new();
    objects::export(&mut symbols);
    code::export(&mut symbols);
    graphs::export(&mut symbols);
    capture::export(&mut symbols);
    introspect::export(&mut symbols);
    let driver =
        Driver::with_source(Box::new(Simulated { symbols }), DriverOptions { max_version: cap }).unwrap();
    CudaDevice::open_with(driver, 0).unwrap()
}

/// Puts functions into the table under the names the driver exports them by.
macro_rules! exports {
    ($table:expr, $($name:literal => $function:expr),* $(,)?) => {
        $($table.insert($name, $function as *const () as usize);)*
    };
}
pub(crate) use exports;
