//! Recording when each step of a launch ran, for profiles.
//!
//! A replay is generic over its [`Recorder`]. Ordinary launches have [`NoRecorder`], whose methods
//! do nothing, so they are compiled without a trace of it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use gridloom_core::profile::{Cost, KernelWork, NodeRecording, Recording, Run};
use gridloom_jit::CompiledKernel;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::plan::{Plan, Step};
use super::update::Keys;
use crate::operation::Prepared;

/// Takes note of the steps of a launch.
pub(super) trait Recorder: Sync {
    /// The moment at which a step starts.
    type Start: Copy;
    /// Notes the start of a step.
    fn start(&self) -> Self::Start;
    /// Notes the end of the step with this number of this plan.
    fn end(&self, plan: u32, step: usize, start: Self::Start);
}

/// Records nothing.
pub(super) struct NoRecorder;

impl Recorder for NoRecorder {
    type Start = ();

    #[inline(always)]
    fn start(&self) {}

    #[inline(always)]
    fn end(&self, _: u32, _: usize, (): ()) {}
}

/// The number of empty steps that measure the cost of recording.
const EMPTY: usize = 257;

/// The times of one launch.
pub(super) struct LaunchRecorder {
    keys: Arc<Keys>,
    max_runs: usize,
    origin: Instant,
    /// The times of each step of each plan. A step never runs twice at once, so no lock is waited
    /// for.
    steps: Vec<Box<[Mutex<NodeRecording>]>>,
    /// The start and the end of the launch.
    launch: Mutex<(u64, u64)>,
    kernels: Mutex<Vec<Counted>>,
}

/// A compiled kernel, the nodes that launch it, and its counts when the launch began.
struct Counted {
    kernel: Arc<CompiledKernel>,
    work: KernelWork,
}

impl LaunchRecorder {
    pub(super) fn new(keys: &Arc<Keys>, max_runs: usize) -> Self {
        let plan = |keys: &[_]| keys.iter().map(|&key| Mutex::new(NodeRecording::new(key))).collect();
        LaunchRecorder {
            max_runs,
            origin: Instant::now(),
            steps: keys.iter().map(|keys| plan(keys)).collect(),
            launch: Mutex::new((0, 0)),
            kernels: Mutex::new(Vec::new()),
            keys: keys.clone(),
        }
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Notes the start of the launch, which runs these plans.
    pub(super) fn begin(&self, plans: &[Plan]) {
        let mut kernels: FxHashMap<*const CompiledKernel, Counted> = FxHashMap::default();
        for (plan, keys) in plans.iter().zip(&*self.keys) {
            for (step, &key) in plan.steps.iter().zip(keys) {
                let Step::Run(Prepared::Kernel(launch)) = step else { continue };
                let Some(kernel) = launch.compiled() else { continue };
                let counted = kernels.entry(Arc::as_ptr(kernel)).or_insert_with(|| {
                    let runs = kernel.runs();
                    let work = KernelWork { nodes: Vec::new(), wide: runs.wide, alone: runs.alone };
                    Counted { kernel: kernel.clone(), work }
                });
                counted.work.nodes.push(key);
            }
        }
        *self.kernels.lock() = kernels.into_values().collect();
        self.launch.lock().0 = self.now();
    }

    /// Notes the end of the launch.
    pub(super) fn finish(&self) {
        self.launch.lock().1 = self.now();
        for counted in &mut *self.kernels.lock() {
            let (now, work) = (counted.kernel.runs(), &mut counted.work);
            (work.wide, work.alone) = (now.wide - work.wide, now.alone - work.alone);
        }
    }

    /// Returns what was recorded.
    pub(super) fn take(&self) -> Recording {
        let nodes = self.steps.iter().flat_map(|steps| steps.iter().map(|step| step.lock().clone()));
        let kernels = std::mem::take(&mut *self.kernels.lock());
        Recording {
            nodes: nodes.filter(|node| node.count > 0).collect(),
            launch: *self.launch.lock(),
            cost: self.cost(),
            kernels: kernels.into_iter().map(|counted| counted.work).collect(),
        }
    }

    /// Measures what recording costs, with steps that do nothing.
    fn cost(&self) -> Cost {
        let Some(node) = self.keys.iter().find_map(|keys| keys.first()) else { return Cost::default() };
        let empty = LaunchRecorder {
            keys: self.keys.clone(),
            max_runs: EMPTY,
            origin: self.origin,
            steps: vec![[Mutex::new(NodeRecording::new(*node))].into()],
            launch: Mutex::new((0, 0)),
            kernels: Mutex::new(Vec::new()),
        };
        for _ in 0..EMPTY {
            let start = empty.start();
            empty.end(0, 0, start);
        }
        let runs = std::mem::take(&mut empty.steps[0][0].lock().runs);
        Cost::of_empty(&runs)
    }
}

impl Recorder for LaunchRecorder {
    type Start = u64;

    fn start(&self) -> u64 {
        self.now()
    }

    fn end(&self, plan: u32, step: usize, start_ns: u64) {
        let end_ns = self.now();
        let run = Run { start_ns, end_ns, thread: Some(thread()) };
        self.steps[plan as usize][step].lock().add(run, self.max_runs);
    }
}

/// Returns a small number for this thread.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static OWN: Cell<Option<u32>> = const { Cell::new(None) };
    }
    OWN.with(|own| {
        own.get().unwrap_or_else(|| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            own.set(Some(number));
            number
        })
    })
}
