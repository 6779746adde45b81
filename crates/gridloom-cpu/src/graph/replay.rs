//! Running a plan.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use gridloom_core::graph::Definition;
use gridloom_core::op::ConditionalForm;
use gridloom_core::{Error, Result};
use parking_lot::Mutex;

use super::events::{EventUse, LaunchEvent};
use super::plan::{Conditional, Plan, PlannedTest, Step};
use crate::device::Shared;
use crate::operation::{Context, contain};

/// One launch of an executable while it runs.
pub(super) struct Replay<'a> {
    pub(super) device: &'a Shared,
    pub(super) definition: &'a Definition,
    pub(super) conditions: &'a [AtomicU32],
    /// Passes of each conditional in this launch.
    pub(super) passes: &'a [AtomicU64],
    pub(super) uses: &'a [EventUse],
    pub(super) events: &'a [LaunchEvent],
    pub(super) failed: AtomicBool,
    pub(super) failure: Mutex<Option<Error>>,
}

impl Replay<'_> {
    /// Whether a node failed; those that have not started are then skipped.
    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    #[cold]
    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Runs a plan to its end, or until a node fails.
    pub(super) fn run(&self, plan: &Plan) {
        let Some(tasks) = &plan.tasks else {
            return self.steps(plan, 0..plan.steps.len());
        };
        let parallel = tasks.choice.parallel();
        let start = Instant::now();
        if parallel {
            tasks.dag.run(&self.device.pool, &|task| {
                let task = task as usize;
                if !self.has_failed() {
                    self.steps(plan, tasks.starts[task] as usize..tasks.starts[task + 1] as usize);
                }
            });
        } else {
            self.steps(plan, 0..plan.steps.len());
        }
        if !self.has_failed() {
            tasks.choice.note(parallel, start.elapsed().as_nanos() as u64);
        }
    }

    /// Runs some steps in order. Nothing unwinds out of here.
    fn steps(&self, plan: &Plan, range: Range<usize>) {
        let ran = contain(|| {
            let context = Context { device: self.device, conditions: self.conditions };
            for index in range {
                if let Err(error) = self.step(&plan.steps[index], context) {
                    return Err(error.at_node(self.definition.label(plan.keys[index])));
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
            Step::Run(prepared) => prepared.run(context),
            Step::Record(number) => {
                self.uses[*number as usize].record(&self.events[*number as usize]);
                Ok(())
            }
            Step::Wait(number) => {
                self.events[*number as usize].wait();
                Ok(())
            }
            Step::Conditional(conditional) => self.conditional(conditional),
        }
    }

    fn conditional(&self, conditional: &Conditional) -> Result<()> {
        let value = || match conditional.test {
            PlannedTest::Condition(number) => self.conditions[number as usize].load(Ordering::Relaxed),
            // SAFETY: the core checked that the address is that of an aligned 32-bit value in memory that the executable
            // holds; atomic, since kernels write it.
            PlannedTest::Value(address) => unsafe {
                AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize))
                    .load(Ordering::Relaxed)
            },
            PlannedTest::Count(count) => u32::from(count > 0),
        };
        let chosen = match conditional.form {
            ConditionalForm::While => return self.repeat(conditional, value),
            ConditionalForm::If => (value() != 0).then_some(0),
            ConditionalForm::IfElse => Some(usize::from(value() == 0)),
            ConditionalForm::Switch => Some(value() as usize),
        };
        if let Some(body) = chosen.and_then(|body| conditional.bodies.get(body)) {
            self.passes[conditional.number as usize].store(1, Ordering::Relaxed);
            self.run(body);
        }
        self.stop_if_failed()
    }

    fn repeat(&self, conditional: &Conditional, value: impl Fn() -> u32) -> Result<()> {
        let mut passes = 0;
        let again = |passes: u64| match conditional.test {
            PlannedTest::Count(count) => passes < count,
            _ => value() != 0,
        };
        let limit = conditional.limit.unwrap_or(u64::MAX);
        while passes < limit && !self.has_failed() {
            if (passes > 0 || conditional.test_first) && !again(passes) {
                break;
            }
            self.run(&conditional.bodies[0]);
            passes += 1;
        }
        self.passes[conditional.number as usize].fetch_add(passes, Ordering::Relaxed);
        self.stop_if_failed()
    }

    /// Ends the steps around a body in which a node failed. The failure is noted already, with the name of that node.
    fn stop_if_failed(&self) -> Result<()> {
        match self.has_failed() {
            true => Err(self.failure.lock().clone().expect("noted before the flag was set")),
            false => Ok(()),
        }
    }
}
