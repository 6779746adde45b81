//! Programs that the host drives: it launches graphs one after the other, reads conditions back,
//! and decides.
//!
//! A launch returns at once. A thread drives the program, and the stream is *occupied* meanwhile: a
//! caller that enqueues work there, or waits for the stream, first waits for the program. So the
//! order of the stream holds, although the later parts of the program are enqueued later.

use super::lower::Unit;
use super::resources::{Held, Resources};
use crate::hosted_launch;
use crate::stream::Stream;
use gridloom_core::graph::{ConditionKey, NodeKey};
use gridloom_core::lower::{Bodies, ConditionalRule};
use gridloom_core::op::{ConditionalOp, Test};
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};

/// A program whose graphs are compiled.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// The parts, mostly one.
    pub(super) parts: SmallVec<[CompiledPart; 1]>,
}

#[derive(Debug)]
pub(super) enum CompiledPart {
    /// A unit, by its number.
    Graph(usize),
    Hosted(Box<HostedConditional>),
}

/// A conditional that the host drives.
#[derive(Debug)]
pub(super) struct HostedConditional {
    pub(super) node: NodeKey,
    /// The node's name, for errors.
    label: String,
    /// An update may change it.
    test: Mutex<HostedTest>,
    pub(super) bodies: Vec<Compiled>,
    /// Passes of the latest execution.
    pub(super) passes: AtomicU64,
}

/// What decides, and by which rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostedTest {
    source: TestSource,
    rule: ConditionalRule,
}

/// What the host reads to decide.
#[derive(Debug, Clone, Copy)]
enum TestSource {
    /// A condition that kernels store.
    Condition(ConditionKey),
    /// A 32-bit integer at this address.
    Value(u64),
    /// Nothing: the rule has the count.
    Count,
}

impl HostedTest {
    pub(super) fn new(resources: &Resources, held: &Held, node: NodeKey, op: &ConditionalOp) -> Result<Self> {
        let source = match &op.test {
            Test::Condition(condition) => TestSource::Condition(*condition),
            Test::Value(region) => TestSource::Value(resources.locate(held, node, region)?.address),
            Test::Count(_) => TestSource::Count,
        };
        Ok(Self { source, rule: ConditionalRule::new(op) })
    }
}

impl HostedConditional {
    pub(super) fn new(node: NodeKey, label: String, test: HostedTest, bodies: Vec<Compiled>) -> Self {
        Self { node, label, test: Mutex::new(test), bodies, passes: AtomicU64::new(0) }
    }

    /// Replaces the test and returns the old one. Nothing may be running.
    pub(super) fn set_test(&self, test: HostedTest) -> HostedTest {
        std::mem::replace(&mut *self.test.lock(), test)
    }
}

impl Compiled {
    /// Returns whether the host has to decide anything.
    pub(super) fn is_hosted(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, CompiledPart::Hosted(_)))
    }

    /// Returns whether the host reads something from the device in order to decide, and so waits
    /// for it.
    pub(super) fn reads(&self) -> bool {
        self.parts.iter().any(|part| match part {
            CompiledPart::Graph(_) => false,
            CompiledPart::Hosted(hosted) => {
                hosted.test.lock().rule.reads_value() || hosted.bodies.iter().any(Self::reads)
            }
        })
    }

    /// Returns the conditional of a node, wherever it is.
    pub(super) fn find(&self, node: NodeKey) -> Option<&HostedConditional> {
        self.parts.iter().find_map(|part| match part {
            CompiledPart::Graph(_) => None,
            CompiledPart::Hosted(hosted) if hosted.node == node => Some(&**hosted),
            CompiledPart::Hosted(hosted) => hosted.bodies.iter().find_map(|body| body.find(node)),
        })
    }

    /// Sets the passes of every conditional back to 0: one that is not reached makes none.
    pub(super) fn reset_passes(&self) {
        for part in &self.parts {
            if let CompiledPart::Hosted(hosted) = part {
                hosted.passes.store(0, Ordering::Relaxed);
                hosted.bodies.iter().for_each(Self::reset_passes);
            }
        }
    }
}

/// Drives programs on one stream.
pub(super) struct Drive<'a> {
    pub(super) resources: &'a Resources,
    pub(super) units: &'a [Unit],
    pub(super) stream: &'a Stream,
}

impl Drive<'_> {
    /// Enqueues a program, deciding where the host has to. The context is current, and the
    /// resources live until the stream has run everything.
    pub(super) fn run(&self, program: &Compiled) -> Result<()> {
        for part in &program.parts {
            hosted_launch::stop_at_exit();
            hosted_launch::check_cancelled()?;
            match part {
                CompiledPart::Graph(unit) => {
                    let unit = &self.units[*unit];
                    // SAFETY: promised by the caller.
                    unsafe { unit.launch(self.stream.raw()) }?;
                }
                CompiledPart::Hosted(hosted) => {
                    self.decide(hosted).map_err(|error| error.at_node(hosted.label.clone()))?;
                }
            }
        }
        Ok(())
    }

    fn decide(&self, hosted: &HostedConditional) -> Result<()> {
        let HostedTest { source, rule } = *hosted.test.lock();
        rule.run(hosted.bodies.len(), &mut Deciding { drive: self, hosted, source })
    }

    /// Returns the value that the conditional tests, after everything enqueued so far has run.
    fn value(&self, source: TestSource) -> Result<u32> {
        let cells = || {
            self.resources.cells().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidState,
                    "a conditional that the host drives has nothing to read from",
                )
            })
        };
        hosted_launch::stop_at_exit();
        match source {
            TestSource::Count => Ok(1),
            TestSource::Condition(condition) => {
                let cells = cells()?;
                self.stream.wait_for_device()?;
                Ok(cells.value(condition))
            }
            TestSource::Value(address) => {
                let cells = cells()?;
                let driver = self.resources.shared.context.driver();
                // SAFETY: both are words that the resources or the definition keep; the context is
                // current.
                unsafe { driver.cu_memcpy_async(cells.scratch_address(), address, 4, self.stream.raw()) }?;
                self.stream.wait_for_device()?;
                Ok(cells.scratch())
            }
        }
    }
}

/// One execution of a conditional.
struct Deciding<'a> {
    drive: &'a Drive<'a>,
    hosted: &'a HostedConditional,
    source: TestSource,
}

impl Bodies for Deciding<'_> {
    fn test(&mut self) -> Result<u32> {
        self.drive.value(self.source)
    }

    fn run(&mut self, body: usize) -> Result<()> {
        // Checked here, because a body without nodes checks nothing itself.
        hosted_launch::check_cancelled()?;
        self.drive.run(&self.hosted.bodies[body])
    }

    fn passed(&mut self, passes: u64) {
        self.hosted.passes.store(passes, Ordering::Relaxed);
    }
}
