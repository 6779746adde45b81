//! The way into every function of the driver: here calls are counted, and made to fail.

use super::{objects, streams, violations, world};
use gridloom_cuda::sys::CUresult;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::any::type_name;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

/// A function of the driver: given the driver's calling convention, and an address that goes
/// through [`before`] first.
pub trait Entry<Arguments>: Copy + 'static {
    fn address(self, name: &'static str) -> usize;
}

/// The names that functions are exported by, by the name of their type.
static NAMES: LazyLock<Mutex<HashMap<&'static str, &'static str>>> = LazyLock::new(Mutex::default);

macro_rules! entries {
    ($(($($argument:ident),*))*) => {$(
        impl<F, $($argument: 'static),*> Entry<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> CUresult + Copy + 'static,
        {
            fn address(self, name: &'static str) -> usize {
                #[allow(non_snake_case, clippy::too_many_arguments)]
                extern "C" fn enter<F, $($argument),*>($($argument: $argument),*) -> CUresult
                where
                    F: Fn($($argument),*) -> CUresult + Copy + 'static,
                {
                    const { assert!(size_of::<F>() == 0) };
                    // A function item has no state: there is one value of its type.
                    let function: F = unsafe { std::mem::zeroed() };
                    match before(type_name::<F>()) {
                        Verdict::Run => {
                            let _locked = Locked::new(type_name::<F>());
                            function($($argument),*)
                        }
                        Verdict::Fail(code) => code,
                        Verdict::RunAndFail(code) => {
                            FAILS.set(true);
                            function($($argument),*);
                            FAILS.set(false);
                            code
                        }
                    }
                }
                NAMES.lock().insert(type_name::<F>(), name);
                enter::<F, $($argument),*> as *const () as usize
            }
        }
    )*};
}

entries! {
    () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, G) (A, B, C, D, E, G, H)
    (A, B, C, D, E, G, H, I, J, K, L)
}

enum Verdict {
    Run,
    /// Nothing happens, and an error is returned.
    Fail(CUresult),
    /// What destroys or frees something does that also when it reports an error, which is then one
    /// of earlier work.
    RunAndFail(CUresult),
}

/// Which call fails, and how: armed until it is dropped.
#[derive(Debug)]
pub struct Failure(());

#[derive(Debug)]
struct Plan {
    /// Only calls with these names count; all do where there are none.
    names: Vec<&'static str>,
    code: CUresult,
    /// Calls that still succeed.
    left: usize,
    /// Calls that fail after those.
    times: usize,
    /// The threads whose calls count: this one and those that drive conditionals, or every thread.
    everywhere: bool,
    failed: Vec<&'static str>,
}

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// Whether the present call does what it does and reports an error all the same.
    static FAILS: Cell<bool> = const { Cell::new(false) };
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Failure {
    /// The call number `n`, counted from 0, of those that this thread makes, and the threads that
    /// drive its conditionals, fails once.
    pub fn of_call(n: usize, code: CUresult) -> Self {
        Self::arm(Plan { names: vec![], code, left: n, times: 1, everywhere: false, failed: vec![] })
    }

    /// The call number `n` and all after it fail, so that what failed cannot be made good either.
    pub fn of_calls_from(n: usize, code: CUresult) -> Self {
        Self::arm(Plan { names: vec![], code, left: n, times: usize::MAX, everywhere: false, failed: vec![] })
    }

    /// The next calls of this function fail, on whichever thread.
    pub fn of(name: &'static str, times: usize, code: CUresult) -> Self {
        Self::arm(Plan { names: vec![name], code, left: 0, times, everywhere: true, failed: vec![] })
    }

    /// The call number `n`, counted from 0, of those that let go of something fails once, on
    /// whichever thread.
    pub fn of_release(n: usize, code: CUresult) -> Self {
        let names = LETS_GO.to_vec();
        Self::arm(Plan { names, code, left: n, times: 1, everywhere: true, failed: vec![] })
    }

    /// From the allocation number `n` on, counted from 0, there is no memory left, on whichever
    /// thread.
    pub fn of_allocations(n: usize) -> Self {
        let (names, code) = (ALLOCATES.to_vec(), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        Self::arm(Plan { names, code, left: n, times: usize::MAX, everywhere: true, failed: vec![] })
    }

    fn arm(plan: Plan) -> Self {
        ARMED.set(true);
        assert!(PLAN.lock().replace(plan).is_none(), "one failure at a time");
        Self(())
    }

    /// The calls that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        PLAN.lock().as_ref().map_or_else(Vec::new, |plan| plan.failed.clone())
    }
}

/// Runs code whose calls are not Gridloom's: they do not count, and do not fail.
pub fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let armed = ARMED.replace(false);
    let outcome = work();
    ARMED.set(armed);
    outcome
}

/// Whether the present call will report an error, and so hands nothing out.
pub fn hands_nothing_out() -> bool {
    FAILS.get()
}

impl Drop for Failure {
    fn drop(&mut self) {
        *PLAN.lock() = None;
        ARMED.set(false);
    }
}

/// Calls that say what an error is, or are asked for an answer whose absence is one.
const NEVER_FAIL: &[&str] = &["cuGetErrorName", "cuGetErrorString"];

/// Calls that let go of something.
const LETS_GO: &[&str] = &[
    "cuCtxPopCurrent_v2",
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
];

/// Calls that take memory of the device or of the host.
const ALLOCATES: &[&str] =
    &["cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemAllocManaged", "cuMemAlloc_v2", "cuMemHostAlloc"];

/// Calls that need a context: by the manual, or because a driver was seen to crash without one. A
/// launch of a graph is not among them: the driver that is simulated does it without.
const IN_CONTEXT: &[&str] = &[
    "cuCtxSynchronize",
    "cuEventCreate",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecHostNodeSetParams",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphInstantiateWithParams",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemAlloc_v2",
    "cuMemHostAlloc",
    "cuMemcpy3DAsync_v2",
    "cuMemcpyAsync",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD32Async",
    "cuMemsetD8Async",
    "cuModuleLoadDataEx",
    "cuStreamCreateWithPriority",
];

/// Calls during which a driver waits for everything in the context, while the calls of other
/// threads wait for this one.
const WAITS_FOR_ALL: &[&str] = &[
    "cuGraphInstantiateWithParams",
    "cuMemAllocManaged",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
];

/// Calls that wait and let other threads call meanwhile.
const WAITS_ALONE: &[&str] = &["cuCtxSynchronize", "cuEventSynchronize", "cuStreamSynchronize"];

/// The lock of the context, if the environment asks for it (`GRIDLOOM_SIMULATED_LOCK=1`). Tests in
/// which the device waits for the calling thread do not end with it.
static CONTEXT: LazyLock<Option<RwLock<()>>> = LazyLock::new(|| {
    let asked = std::env::var_os("GRIDLOOM_SIMULATED_LOCK").is_some_and(|value| value == "1");
    asked.then(RwLock::default)
});

/// The part of the context's lock that a call has.
enum Locked {
    Nothing,
    Shared(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
}

impl Locked {
    fn new(function: &'static str) -> Self {
        let Some(context) = &*CONTEXT else { return Locked::Nothing };
        let name = NAMES.lock().get(function).copied().unwrap_or(function);
        if WAITS_ALONE.contains(&name) {
            Locked::Nothing
        } else if WAITS_FOR_ALL.contains(&name) {
            let alone = context.write();
            streams::synchronize_all();
            Locked::Alone(alone)
        } else {
            Locked::Shared(context.read())
        }
    }
}

fn before(function: &'static str) -> Verdict {
    let name = NAMES.lock().get(function).copied().unwrap_or(function);
    if objects::IS_GONE.load(Ordering::SeqCst) {
        // Nobody would hear of a violation any more.
        std::process::abort();
    }
    if streams::in_host_function() {
        world(|world| world.violation(format!("{name} is called from a host function")));
        return Verdict::Fail(CUresult::CUDA_ERROR_NOT_PERMITTED);
    }
    if IN_CONTEXT.contains(&name) && current_context().is_none() {
        world(|world| world.violation(format!("{name} is called without a context")));
        return Verdict::Fail(CUresult::CUDA_ERROR_INVALID_CONTEXT);
    }
    match fails(name) {
        Some(code) if LETS_GO.contains(&name) => Verdict::RunAndFail(code),
        Some(code) => Verdict::Fail(code),
        None => Verdict::Run,
    }
}

fn fails(name: &'static str) -> Option<CUresult> {
    if NEVER_FAIL.contains(&name) {
        return None;
    }
    let mut plan = PLAN.lock();
    let plan = plan.as_mut()?;
    let counts = plan.everywhere || ARMED.get() || std::thread::current().name() == Some("gridloom-hosted");
    if !counts || !(plan.names.is_empty() || plan.names.contains(&name)) {
        return None;
    }
    if plan.left > 0 {
        plan.left -= 1;
        return None;
    }
    plan.times = plan.times.checked_sub(1)?;
    plan.failed.push(name);
    Some(plan.code)
}

/// The context that is current on this thread.
pub fn current_context() -> Option<usize> {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied())
}

pub fn push_context(context: usize) {
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context));
}

pub fn pop_context() -> Option<usize> {
    CONTEXTS.with_borrow_mut(Vec::pop)
}
