//! One round of the attack: a world, threads that change it, and the checks afterwards.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::choices::Choices;
use super::lineage::{self, Lineage};
use super::step::Step;
use super::token::Intended;
use super::trace::{Trace, Watchdog};
use super::world::World;
use super::{callables, captures, executables, graphs, objects};
use crate::support::is_cpu;

type Operation = fn(&mut Step<'_>) -> Result<()>;

/// All operations, with how often they are chosen.
const OPERATIONS: &[(&str, usize, Operation)] = &[
    ("enqueue", 8, objects::enqueue),
    ("stream", 4, objects::stream),
    ("event", 4, objects::event),
    ("memory", 6, objects::memory),
    ("add", 10, graphs::add),
    ("structure", 8, graphs::add_structure),
    ("node", 8, graphs::node),
    ("graph", 6, graphs::graph),
    ("instantiate", 5, graphs::instantiate),
    ("launch", 10, executables::launch),
    ("launch_and_drop", 3, executables::launch_and_drop),
    ("change", 8, executables::change),
    ("record", 6, captures::record),
    ("drive", 8, captures::drive),
    ("scope", 3, captures::scope),
    ("foreign", 3, captures::foreign),
    ("call", 6, callables::call),
    ("own", 16, lineage::act),
];

/// What a round is made of. The same one does the same, as far as threads allow.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) steps: usize,
    /// The only steps to do, as thread and step; all where there are none.
    pub(crate) only: Option<Arc<Vec<(usize, usize)>>>,
    /// What one thread chooses by instead of the seed, until it runs out: the input of a fuzzer.
    pub(crate) bytes: Option<Arc<Vec<u8>>>,
    /// How long one step may take.
    pub(crate) patience: Duration,
    /// How many threads may be left since the first round: a CUDA driver starts its own when it
    /// first needs them.
    pub(crate) lazy_threads: usize,
}

/// Panics that nobody meant, on whatever thread.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    /// The stack of the latest panic of this thread that the attack meant.
    static LATEST_INTENDED: Cell<Option<Backtrace>> = const { Cell::new(None) };
}

/// Notes every panic that the attack does not mean. They count wherever they end: a worker that
/// panics and a payload that is caught too.
pub(crate) fn watch_panics() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().is::<Intended>() {
                LATEST_INTENDED.set(Some(Backtrace::force_capture()));
            } else {
                let thread = std::thread::current().name().unwrap_or("?").to_owned();
                let stack = Backtrace::force_capture();
                PANICS.lock().push(format!("thread {thread}: {info}\n{stack}"));
                before(info);
            }
        }));
    });
}

impl Round {
    /// Runs it on a device that is opened for it, and returns how many operations that were.
    pub(crate) fn run(
        &self,
        what: &str,
        open: impl FnOnce(&PrintWorld) -> Result<Opened>,
    ) -> Result<usize, String> {
        watch_panics();
        let traces: Vec<Arc<Trace>> =
            (0..self.threads).map(|number| Trace::new(format!("thread {number}"))).collect();
        let end = Trace::new("the end of the round");
        let watched = traces.iter().chain([&end]).cloned().collect();
        let _watchdog = Watchdog::over(format!("{what}, seed {}", self.seed), watched, self.patience);
        static AT_FIRST: OnceLock<usize> = OnceLock::new();
        let at_first = *AT_FIRST.get_or_init(thread_count);
        let threads = thread_count().max(at_first + self.lazy_threads);
        let run = || self.run_watched(&traces, &end, open);
        let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            // Meant or not, none may reach the thread that only waits and drops.
            std::mem::forget(payload);
            let stack = LATEST_INTENDED.take().map_or(String::new(), |stack| stack.to_string());
            Err(format!("a panic reached the thread of the round; the latest that was meant there:\n{stack}"))
        });
        let outcome = match (outcome, std::mem::take(&mut *PANICS.lock())) {
            (Err(found), panics) if !panics.is_empty() => {
                Err(format!("{found}\npanics:\n{}", panics.join("\n")))
            }
            (outcome, panics) if panics.is_empty() => outcome,
            (_, panics) => Err(format!("panics:\n{}", panics.join("\n"))),
        };
        let outcome = outcome.and_then(|operations| {
            end.begin(0, "threads end");
            let gone = soon(|| thread_count() <= threads);
            end.end("ok");
            // Other tests of the process have threads too.
            match gone || !super::is_alone() {
                true => Ok(operations),
                false => Err(format!("{} threads, at most {threads} are expected", thread_count())),
            }
        });
        let outcome = outcome.and_then(|operations| {
            let violations = crate::support::violations();
            if violations.is_empty() { Ok(operations) } else { Err(format!("{violations:#?}")) }
        });
        outcome.map_err(|found| {
            let traces: String = traces.iter().map(|trace| trace.report()).collect();
            format!("{what}, seed {}: {found}\n{traces}", self.seed)
        })
    }

    fn run_watched(
        &self,
        traces: &[Arc<Trace>],
        end: &Trace,
        open: impl FnOnce(&PrintWorld) -> Result<Opened>,
    ) -> Result<usize, String> {
        let print = PrintWorld::default();
        let text = |error: Error| format!("{error:?}");
        let (device, other) = open(&print).map_err(text)?;
        let baseline = device.memory_use().map_err(text)?.0;
        let world = World::new(&device, other, &print).map_err(text)?;
        let operations = AtomicUsize::new(0);
        let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = traces
                .iter()
                .enumerate()
                .map(|(number, trace)| {
                    let (world, operations) = (&world, &operations);
                    let run = move || self.run_thread(number, world, trace, operations);
                    std::thread::Builder::new().name(format!("attacker {number}")).spawn_scoped(scope, run)
                })
                .collect();
            let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
                thread
                    .expect("a thread")
                    .join()
                    .unwrap_or_else(|_| Err("a thread of the attack panicked".into()))
            };
            threads.into_iter().map(join).collect()
        });
        outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;

        end.begin(0, "let go of everything");
        world.close();
        end.end("ok");
        end.begin(1, "synchronize the device");
        device.synchronize().map_err(text)?;
        end.end("ok");
        end.begin(2, "drop the world");
        let ledger = world.ledger.clone();
        let weak = Arc::downgrade(&world);
        // What it drops may panic, as the attack means it to.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(world)));
        end.end("ok");
        end.begin(3, "values are dropped");
        if !soon(|| ledger.alive() == 0 && weak.strong_count() == 0) {
            return Err(format!("{} of {} values were not dropped", ledger.alive(), ledger.made()));
        }
        end.end("ok");
        if !ledger.wrong().is_empty() {
            return Err(format!("values not dropped exactly once: {:?}", ledger.wrong()));
        }
        if is_cpu(&device) {
            end.begin(4, "memory is freed");
            let used = || device.memory_use().map_or(u64::MAX, |(used, _)| used);
            if !soon(|| used() <= baseline) {
                return Err(format!("{} bytes of the device in use, {baseline} before", used()));
            }
            end.end("ok");
        }
        Ok(operations.into_inner())
    }

    fn run_thread(
        &self,
        number: usize,
        world: &Arc<World>,
        trace: &Trace,
        operations: &AtomicUsize,
    ) -> Result<(), String> {
        let text = |error: Error| format!("thread {number}: {error:?}");
        let mut lineage = Lineage::new(world).map_err(text)?;
        let mut choices = Choices::bytes(self.bytes.as_ref().map_or(&[], |bytes| bytes));
        for step in 0..self.steps {
            if world.has_failed() {
                return Ok(());
            }
            if self.only.as_ref().is_some_and(|only| !only.contains(&(number, step))) {
                continue;
            }
            if self.bytes.is_none() {
                choices = Choices::of_step(self.seed, number, step);
            } else if choices.is_done() {
                break;
            }
            let outcome = perform(world, trace, &mut lineage, step, &mut choices);
            operations.fetch_add(1, Ordering::Relaxed);
            if let Err(found) = outcome {
                world.failed.store(true, Ordering::SeqCst);
                return Err(format!("thread {number}, step {step}: {found}"));
            }
        }
        trace.begin(self.steps, "check the thread's own values");
        let outcome = lineage.check().map_err(text);
        trace.end("done");
        outcome
    }
}

/// One step, and whether what came of it may come of it.
fn perform(
    world: &Arc<World>,
    trace: &Trace,
    lineage: &mut Lineage,
    number: usize,
    choices: &mut Choices,
) -> Result<(), String> {
    let weights: usize = OPERATIONS.iter().map(|(_, weight, _)| weight).sum();
    let mut choice = choices.below(weights);
    let chosen = OPERATIONS.iter().find(|(_, weight, _)| {
        let here = choice < *weight;
        choice = choice.wrapping_sub(*weight);
        here
    });
    let (name, _, operation) = chosen.expect("one of them");
    if super::is_left_out(name) {
        return Ok(());
    }
    trace.begin(number, name);
    let mut step = Step { world, choices, trace, lineage };
    let outcome = catch_unwind(AssertUnwindSafe(|| operation(&mut step)));
    match outcome {
        Ok(Ok(())) => {
            trace.end("ok");
            Ok(())
        }
        Ok(Err(error)) => {
            trace.end(&format!("{:?}: {error}", error.kind()));
            judge(name, &error)
        }
        Err(payload) if payload.is::<Intended>() => {
            trace.end("panicked as intended");
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            Ok(())
        }
        Err(_) => {
            trace.end("panicked");
            Err(format!("{name} panicked"))
        }
    }
}

/// Returns whether an operation on shared objects may fail so.
fn judge(operation: &str, error: &Error) -> Result<(), String> {
    let expected = match error.kind() {
        // The one kernel that fails.
        ErrorKind::KernelFault => error.to_string().contains("fail_trap"),
        ErrorKind::InvalidArgument
        | ErrorKind::ParameterMismatch
        | ErrorKind::ContractViolation
        | ErrorKind::InvalidHandle
        | ErrorKind::WrongGraph
        | ErrorKind::WrongDevice
        | ErrorKind::Cycle
        | ErrorKind::Unordered
        | ErrorKind::InvalidState
        | ErrorKind::TopologyMismatch
        | ErrorKind::NotFound
        | ErrorKind::InvalidModule
        | ErrorKind::NotSupported
        | ErrorKind::OutOfMemory
        | ErrorKind::Cancelled
        | ErrorKind::LimitExceeded
        | ErrorKind::Timeout
        | ErrorKind::CallbackPanicked => operation != "own",
        _ => false,
    };
    match expected {
        true => Ok(()),
        false => Err(format!("{operation} failed: {error:?}")),
    }
}

/// The devices of a round.
pub(crate) type Opened = (Device, Option<Device>);
/// Where the print sink of a device finds the world of the round.
pub(crate) type PrintWorld = Arc<Mutex<Weak<World>>>;

/// Waits for what must happen without further calls.
fn soon(condition: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(if cfg!(miri) { 600 } else { 20 });
    while !condition() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Threads of this process, where that can be told.
fn thread_count() -> usize {
    match cfg!(miri) {
        true => 0,
        false => std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count),
    }
}
