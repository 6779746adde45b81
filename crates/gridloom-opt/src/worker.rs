//! The thread on which rewritten kernels are compiled while their graphs run.
//!
//! There is one thread for all devices of a process. It starts with the first job and ends when none
//! is left. A job plans an outline of a graph and keeps none of its memory alive. A panic ends the
//! job and nothing else. The end of the process waits for the kernel that is being compiled, because
//! a driver may be in the middle of it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gridloom_core::executable::{InstantiateOptions, Report};
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::{Graph, log, user_code};
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashSet;

use crate::graph::{Kernels, Plan, Profile};
use crate::optimizations::Optimizations;

/// How long the end of the process waits for a kernel that is being compiled.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);
/// The most jobs that wait. An executable whose job finds no place asks again later.
const MAX_WAITING: usize = 256;

/// A graph whose rewritten kernels are to be made.
pub(crate) struct Request {
    pub(crate) device: std::sync::Weak<dyn gridloom_core::backend::Device>,
    pub(crate) outline: Arc<Definition>,
    pub(crate) options: InstantiateOptions,
    pub(crate) wanted: Optimizations,
    pub(crate) profile: Option<Profile>,
    pub(crate) disabled: FxHashSet<NodeKey>,
}

/// A job, seen by the one who asked for it. Dropping it cancels what is not done yet.
#[derive(Debug)]
pub(crate) struct Job(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_done: AtomicBool,
    is_cancelled: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All kernels are in the device's cache.
    Ready(Box<Planned>),
    /// The graph cannot run better than it was written. The report says why.
    NoGain(Box<Report>),
    /// The job failed.
    Failed(String),
}

/// A plan of an outline.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) outline: Arc<Definition>,
    /// The nodes that were disabled.
    pub(crate) disabled: FxHashSet<NodeKey>,
}

impl fmt::Debug for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Planned({:?})", self.plan)
    }
}

impl Job {
    /// Returns what became of the job, once it is done, to one caller.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        if self.0.is_done.load(Ordering::Acquire) { self.0.outcome.lock().take() } else { None }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// The jobs that wait, and whether a thread is at work.
struct Queue {
    waiting: VecDeque<(Request, Arc<Shared>)>,
    has_thread: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: VecDeque::new(), has_thread: false });
/// Tells that the thread has ended.
static RESTS: Condvar = Condvar::new();
/// Set at the end of the process.
static STOP: AtomicBool = AtomicBool::new(false);

/// Starts a job. Returns `None` if that is not possible now.
pub(crate) fn start(request: Request) -> Option<Job> {
    wait_at_exit();
    let shared = Arc::new(Shared::default());
    let mut queue = QUEUE.lock();
    if STOP.load(Ordering::Relaxed) || queue.waiting.len() >= MAX_WAITING {
        return None;
    }
    if !queue.has_thread {
        let thread = std::thread::Builder::new().name("gridloom-optimizer".into()).spawn(work);
        if let Err(error) = thread {
            drop(queue);
            log!(debug, %error, "no thread could be started to optimise a graph");
            return None;
        }
        queue.has_thread = true;
    }
    queue.waiting.push_back((request, shared.clone()));
    Some(Job(shared))
}

fn work() {
    loop {
        let (request, shared) = {
            let mut queue = QUEUE.lock();
            let next = if STOP.load(Ordering::Relaxed) { None } else { queue.waiting.pop_front() };
            match next {
                Some(next) => next,
                None => {
                    queue.has_thread = false;
                    RESTS.notify_all();
                    return;
                }
            }
        };
        if !shared.is_cancelled.load(Ordering::Relaxed) {
            let outcome = user_code::contain(|| make_kernels(request, &shared.is_cancelled))
                .unwrap_or_else(|said| Outcome::Failed(format!("the optimiser panicked: {said}")));
            if let Outcome::Failed(reason) = &outcome {
                log!(warn, reason, "a graph is not optimised");
            }
            *shared.outcome.lock() = Some(outcome);
        }
        shared.is_done.store(true, Ordering::Release);
    }
}

/// Plans the graph, which puts its kernels into the device's cache.
fn make_kernels(request: Request, cancelled: &AtomicBool) -> Outcome {
    let Request { device, outline, options, wanted, profile, disabled } = request;
    let Some(device) = device.upgrade() else { return Outcome::NoGain(Box::default()) };
    let profile = profile.unwrap_or_else(|| Profile::of(&*device));
    // SAFETY: it is an outline of a checked definition for this device. Nothing made from it runs
    // before it has the operations of the definition itself (`Plan::adopt`).
    let graph = unsafe { Graph::with_definition(&device, outline.clone()) };
    let kernels = Kernels::MakeUntil(cancelled, &STOP);
    match Plan::new(graph, wanted, profile, &options, &disabled, kernels) {
        Ok(Some(plan)) if plan.has_effect() => Outcome::Ready(Box::new(Planned { plan, outline, disabled })),
        Ok(Some(plan)) => Outcome::NoGain(Box::new(plan.report())),
        Ok(None) => Outcome::Failed("it was cancelled".into()),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Makes the end of the process wait until the thread rests.
fn wait_at_exit() {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> std::ffi::c_int;
    }

    extern "C" fn stop() {
        STOP.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + EXIT_PATIENCE;
        // A thread that exits the process while it holds the lock would wait for itself.
        let Some(mut queue) = QUEUE.try_lock_until(deadline) else { return };
        while queue.has_thread && !RESTS.wait_until(&mut queue, deadline).timed_out() {}
    }

    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: `atexit` is the C library's. The handler is a plain function that does not unwind:
        // waiting with a limit does not panic.
        if unsafe { atexit(stop) } != 0 {
            log!(debug, "no exit handler could be registered; a compilation may be cut off at exit");
        }
    });
}
