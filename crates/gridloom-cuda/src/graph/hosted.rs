//! Programs that the host drives: it launches graphs one after the other, reads conditions back, and decides.
//!
//! A launch returns at once, as every launch does. A thread drives the program, and the stream it was launched on is *occupied* meanwhile: whoever
//! next enqueues something there, or waits for it, first waits for the program. So the order of the stream holds, although
//! the later parts of the program are enqueued later.

use super::lower::Unit;
use super::resources::Resources;
use crate::stream::Stream;
use gridloom_core::graph::{ConditionKey, NodeKey};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Test};
use gridloom_core::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// A program whose graphs are compiled.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) parts: Vec<CompiledPart>,
}

#[derive(Debug)]
pub(super) enum CompiledPart {
    Graph(Unit),
    Hosted(HostedConditional),
}

/// A conditional that the host drives.
#[derive(Debug)]
pub(super) struct HostedConditional {
    pub(super) node: NodeKey,
    pub(super) form: ConditionalForm,
    pub(super) test: HostedTest,
    pub(super) test_first: bool,
    pub(super) limit: u64,
    pub(super) bodies: Vec<Compiled>,
    /// Passes of the latest execution.
    pub(super) passes: AtomicU64,
}

/// What the host looks at to decide.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostedTest {
    /// A condition that kernels store.
    Condition(ConditionKey),
    /// A 32-bit integer at this address.
    Value(u64),
    /// Nothing: the limit is the count.
    Count,
}

impl HostedConditional {
    pub(super) fn new(
        resources: &Resources,
        node: NodeKey,
        op: &ConditionalOp,
        bodies: Vec<Compiled>,
    ) -> Result<Self> {
        let limit = op.limit.unwrap_or(u64::MAX);
        let (test, limit) = match &op.test {
            Test::Condition(condition) => (HostedTest::Condition(*condition), limit),
            Test::Value(region) => (HostedTest::Value(resources.locate(region)?.address), limit),
            Test::Count(count) => (HostedTest::Count, limit.min(*count)),
        };
        Ok(Self {
            node,
            form: op.form,
            test,
            test_first: op.test_first,
            limit,
            bodies,
            passes: AtomicU64::new(0),
        })
    }
}

impl Compiled {
    /// Whether the host has to decide anything.
    pub(super) fn is_hosted(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, CompiledPart::Hosted(_)))
    }

    /// The conditional of a node, wherever it is.
    pub(super) fn find(&self, node: NodeKey) -> Option<&HostedConditional> {
        self.parts.iter().find_map(|part| match part {
            CompiledPart::Graph(_) => None,
            CompiledPart::Hosted(hosted) if hosted.node == node => Some(hosted),
            CompiledPart::Hosted(hosted) => hosted.bodies.iter().find_map(|body| body.find(node)),
        })
    }

    /// Calls `visit` with every compiled graph.
    pub(super) fn for_each_unit(&self, visit: &mut impl FnMut(&Unit) -> Result<()>) -> Result<()> {
        for part in &self.parts {
            match part {
                CompiledPart::Graph(unit) => visit(unit)?,
                CompiledPart::Hosted(hosted) => {
                    hosted.bodies.iter().try_for_each(|body| body.for_each_unit(visit))?;
                }
            }
        }
        Ok(())
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
    pub(super) stream: &'a Stream,
}

impl Drive<'_> {
    /// Enqueues a program, deciding where the host has to. The context is current, and the resources live until the stream
    /// has run everything.
    pub(super) fn run(&self, program: &Compiled) -> Result<()> {
        for part in &program.parts {
            match part {
                // SAFETY: promised by the caller.
                CompiledPart::Graph(unit) => unsafe { unit.executable.launch(self.stream.raw()) }?,
                CompiledPart::Hosted(hosted) => self
                    .decide(hosted)
                    .map_err(|error| error.at_node(self.resources.definition.label(hosted.node)))?,
            }
        }
        Ok(())
    }

    fn decide(&self, hosted: &HostedConditional) -> Result<()> {
        if hosted.form == ConditionalForm::While {
            return self.repeat(hosted);
        }
        let value = self.value(hosted)?;
        let body = match hosted.form {
            ConditionalForm::If => (value != 0).then_some(0),
            ConditionalForm::IfElse => Some(usize::from(value == 0)),
            _ => usize::try_from(value).ok(),
        };
        match body.and_then(|index| hosted.bodies.get(index)) {
            Some(body) => {
                hosted.passes.store(1, Ordering::Relaxed);
                self.run(body)
            }
            None => {
                hosted.passes.store(0, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn repeat(&self, hosted: &HostedConditional) -> Result<()> {
        let Some(body) = hosted.bodies.first() else { return Ok(()) };
        let mut passes = 0;
        hosted.passes.store(0, Ordering::Relaxed);
        while passes < hosted.limit {
            let untested = passes == 0 && !hosted.test_first;
            if !untested && self.value(hosted)? == 0 {
                break;
            }
            self.run(body)?;
            passes += 1;
            hosted.passes.store(passes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What the conditional tests, after everything enqueued so far has run.
    fn value(&self, hosted: &HostedConditional) -> Result<u32> {
        let cells = || {
            self.resources.cells.as_ref().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidState,
                    "a conditional that the host drives has nothing to read from",
                )
            })
        };
        match hosted.test {
            HostedTest::Count => Ok(1),
            HostedTest::Condition(condition) => {
                let cells = cells()?;
                self.stream.wait_for_device()?;
                Ok(cells.value(condition))
            }
            HostedTest::Value(address) => {
                let cells = cells()?;
                let driver = self.resources.shared.context.driver();
                // SAFETY: both are words that the resources or the definition keep; the context is current.
                unsafe { driver.cu_memcpy_async(cells.scratch_address(), address, 4, self.stream.raw()) }?;
                self.stream.wait_for_device()?;
                Ok(cells.scratch())
            }
        }
    }
}
