//! Running a plan.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use gridloom_core::lower::Bodies;
use gridloom_core::{Error, ErrorKind, Result, backend};
use parking_lot::Mutex;

use super::events::{Events, LaunchEvent};
use super::plan::{Conditional, PlannedTest, Step};
use super::recorder::Recorder;
use super::update::Planned;
use crate::device::Shared;
use crate::interp::racy;
use crate::operation::{Context, Prepared, contain};

/// One running launch of an executable.
pub(super) struct Replay<'a, R> {
    pub(super) recorder: &'a R,
    pub(super) device: &'a Shared,
    pub(super) planned: &'a Planned,
    pub(super) conditions: &'a [AtomicU32],
    /// The passes of each conditional in this launch.
    pub(super) passes: &'a [AtomicU64],
    pub(super) events: &'a Events,
    pub(super) recordings: &'a [LaunchEvent],
    /// Flags that cancel the launch when set.
    pub(super) cancel: [&'a AtomicBool; 2],
    /// The number of nodes and passes so far, if the device limits them.
    pub(super) nodes: AtomicU64,
    pub(super) failed: AtomicBool,
    pub(super) failure: Mutex<Option<Error>>,
}

impl<R: Recorder> Replay<'_, R> {
    /// Returns whether a node failed. Nodes that have not started are then skipped.
    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    #[cold]
    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Runs the plan of the root, unless the launch is already cancelled.
    pub(super) fn run_all(&self, root: u32) {
        if self.context().is_cancelled() {
            return self.fail(backend::cancelled());
        }
        self.run(root);
    }

    fn context(&self) -> Context<'_> {
        Context { device: self.device, conditions: self.conditions, cancel: self.cancel }
    }

    /// Counts nodes that are about to run, or passes, towards the device's limit.
    fn count(&self, nodes: u64) -> Result<()> {
        match self.device.node_limit {
            Some(limit) if self.nodes.fetch_add(nodes, Ordering::Relaxed).saturating_add(nodes) > limit => {
                Err(Error::new(
                    ErrorKind::LimitExceeded,
                    format!(
                        "the launch ran more than {limit} nodes, passes of loops among them; \
                         raise the node limit of the device, or look for a loop that does not end"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Runs the plan with this number to its end, or until a node fails.
    fn run(&self, number: u32) {
        let plan = &self.planned.plans[number as usize];
        let Some(tasks) = &plan.tasks else {
            return self.steps(number, 0..plan.steps.len());
        };
        let parallel = tasks.choice.parallel();
        let start = Instant::now();
        if parallel {
            tasks.dag.run(&self.device.pool, &|task| {
                let task = task as usize;
                if !self.has_failed() {
                    self.steps(number, tasks.starts[task] as usize..tasks.starts[task + 1] as usize);
                }
            });
        } else {
            self.steps(number, 0..plan.steps.len());
        }
        if !self.has_failed() {
            tasks.choice.note(parallel, start.elapsed().as_nanos() as u64);
        }
    }

    /// Runs some steps of a plan in order. Nothing unwinds out of here.
    fn steps(&self, number: u32, range: Range<usize>) {
        let ran = contain(|| {
            let context = self.context();
            let first = range.start;
            self.count(range.len() as u64)?;
            for (index, step) in self.planned.plans[number as usize].steps[range].iter().enumerate() {
                let start = self.recorder.start();
                let outcome = self.step(step, context);
                self.recorder.end(number, first + index, start);
                if let Err(error) = outcome {
                    return Err(error.at_node(self.planned.label(number, first + index)));
                }
            }
            Ok(())
        });
        if let Err(error) = ran {
            self.fail(error);
        }
    }

    #[inline]
    fn step(&self, step: &Step, context: Context<'_>) -> Result<()> {
        match step {
            // Kernels check the flags themselves, and all other operations are short.
            Step::Run(Prepared::Callback(_) | Prepared::Rows(_)) if context.is_cancelled() => {
                Err(backend::cancelled())
            }
            Step::Run(prepared) => prepared.run(context),
            Step::Nothing => Ok(()),
            Step::Record(number) => {
                self.events.pass(*number, self.recordings);
                Ok(())
            }
            Step::Wait(number) => {
                self.recordings[*number as usize].wait();
                Ok(())
            }
            Step::Conditional(conditional) => self.conditional(conditional),
        }
    }

    fn conditional(&self, conditional: &Conditional) -> Result<()> {
        conditional.rule.run(conditional.bodies.len(), &mut Running { replay: self, conditional })
    }

    /// Returns the failure of a node in a body, to end the steps around it. It is already noted,
    /// with the name of that node.
    #[cold]
    fn noted_failure(&self) -> Error {
        self.failure.lock().clone().expect("noted before the flag was set")
    }
}

/// A conditional of a running launch.
struct Running<'a, R> {
    replay: &'a Replay<'a, R>,
    conditional: &'a Conditional,
}

impl<R: Recorder> Bodies for Running<'_, R> {
    #[inline]
    fn test(&mut self) -> Result<u32> {
        Ok(match self.conditional.test {
            PlannedTest::Condition(number) => self.replay.conditions[number as usize].load(Ordering::Relaxed),
            // SAFETY: the core checked that this is the address of an aligned 32-bit value in
            // memory that the executable holds.
            PlannedTest::Value(address) => unsafe {
                racy::load(std::ptr::with_exposed_provenance(address as usize), 4) as u32
            },
            PlannedTest::Count => 1,
        })
    }

    #[inline]
    fn run(&mut self, body: usize) -> Result<()> {
        let replay = self.replay;
        // A body without nodes checks nothing itself.
        if replay.context().is_cancelled() {
            return Err(backend::cancelled());
        }
        if self.conditional.repeats {
            replay.count(1)?;
        }
        replay.run(self.conditional.bodies[body]);
        if replay.has_failed() { Err(replay.noted_failure()) } else { Ok(()) }
    }

    #[inline]
    fn passed(&mut self, passes: u64) {
        self.replay.passes[self.conditional.number as usize].store(passes, Ordering::Relaxed);
    }
}
