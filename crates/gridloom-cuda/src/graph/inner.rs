//! What a graph was compiled to: what its launches run, and keep alive.

use super::executable::Settings;
use super::hosted::{Compiled, CompiledPart, Drive, HostedConditional, HostedTest};
use super::lower::{self, Content, Lowering, Runs, Unit};
use super::modes::{Capabilities, Modes};
use super::node_map::NodeMap;
use super::plan::{Part, Program};
use super::resources::{Held, Resources};
use super::update::Undo;
use crate::device::Shared;
use crate::failure::Failures;
use crate::stream::Stream;
use gridloom_core::Result;
use gridloom_core::executable::Report;
use gridloom_core::graph::{Definition, NodeData, NodeKey};
use gridloom_core::op::Operation;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// What launches use of a graph that its executable has replaced.
#[expect(dead_code, reason = "it is there to be dropped")]
struct Retired {
    held: Held,
    operations: Operations,
}

/// The operations of a graph that its executable has replaced.
#[expect(dead_code, reason = "they are there to be dropped")]
pub(super) enum Operations {
    /// All operations at the end.
    Definition(Arc<Definition>),
    /// The operations of its successor and those that were replaced, and what a failed change in
    /// place took from them.
    Apart(Vec<Operation>, Undo),
    /// It was never launched.
    Unused,
}

/// What launches in flight keep alive.
pub(super) struct Inner {
    // Declared first, so that the driver's graphs are dropped before what they refer to.
    pub(super) program: Compiled,
    /// The units, mostly one.
    pub(super) units: SmallVec<[Unit; 1]>,
    pub(super) node_map: NodeMap,
    pub(super) modes: Modes,
    pub(super) report: Report,
    /// Which kernels it has, for errors of which the driver does not say where they come from.
    about: Box<str>,
    /// Whether something can fail on the host while it runs: a callback, or the thread that drives
    /// a conditional. Updates do not change this, because a node keeps its kind.
    pub(super) may_fail: bool,
    /// The only unit, if launching it is the whole launch.
    pub(super) alone: Option<usize>,
    /// What its launches use, once its executable has replaced it: launches in flight keep it alive
    /// here. Until then the executable holds it, and keeps what updates replace.
    retired: OnceLock<Box<Retired>>,
    pub(super) resources: Resources,
}

// SAFETY: `node_map` has handles of the driver's nodes, which are not bound to a thread; they are
// used only under the lock of the executable's state.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// Describes a graph by its first kernels and the number of the others.
fn about(definition: &Definition) -> Box<str> {
    let is_kernel = |node: &NodeData| matches!(node.operation(), Operation::Kernel(_));
    let mut kernels = definition.all_nodes().filter(|(_, node)| is_kernel(node)).map(|(key, _)| key);
    let Some(first) = kernels.next() else { return "a graph without kernels".into() };
    let mut about = format!("a graph with {}", definition.label(first));
    if let Some(second) = kernels.next() {
        let second = definition.label(second);
        about += &match kernels.count() {
            0 => format!(" and {second}"),
            1 => format!(", {second} and another kernel"),
            more => format!(", {second} and {more} more kernels"),
        };
    }
    about.into()
}

impl Inner {
    pub(super) fn new(
        shared: &Arc<Shared>,
        failures: Option<Arc<Failures>>,
        definition: &Definition,
        disabled: &FxHashSet<NodeKey>,
        settings: Settings,
    ) -> Result<(Arc<Self>, Held)> {
        let capabilities = Capabilities::of(shared.context.driver());
        let is_plain = disabled.is_empty() && lower::is_plain(definition);
        let (modes, program) = if is_plain {
            Default::default()
        } else {
            Modes::decide(definition, disabled, settings.mode, capabilities)?
        };
        let resources =
            Resources::new(shared, definition, (&modes, &program), settings.count_passes, failures)?;
        let mut report = Report::default();
        report.conditionals = modes.report(definition);
        let mut compiling = Compiling {
            definition,
            lowering: Lowering { resources: &resources, modes: &modes, capabilities },
            settings,
            held: Held::default(),
            units: SmallVec::new(),
            node_map: NodeMap::new(definition),
        };
        let program = if is_plain { compiling.compile_whole() } else { compiling.compile_all(&program) }?;
        let Compiling { held, units, node_map, .. } = compiling;
        let may_fail = program.is_hosted() || held.has_calls();
        if may_fail {
            // Made now, because the executable reports failures of launches in flight even after it
            // was compiled again.
            resources.failures();
        }
        let alone = match program.parts[..] {
            [CompiledPart::Graph(unit)] if !may_fail && !resources.has_outliving() => Some(unit),
            _ => None,
        };
        let retired = OnceLock::new();
        let about = about(definition);
        let inner =
            Self { program, units, node_map, modes, report, about, may_fail, alone, retired, resources };
        Ok((Arc::new(inner), held))
    }

    /// Returns which kernels it has.
    pub(super) fn about(&self) -> &str {
        &self.about
    }

    /// Makes the launches in flight keep all that they use, because the executable no longer does.
    pub(super) fn retire(&self, held: Held, operations: Operations) {
        let retired = self.retired.set(Box::new(Retired { held, operations }));
        debug_assert!(retired.is_ok(), "a graph is left once");
    }

    /// Returns the conditional of a node, if the host drives it.
    pub(super) fn hosted(&self, node: NodeKey) -> Option<&HostedConditional> {
        self.program.find(node)
    }

    pub(super) fn run(&self, stream: &Stream) -> Result<()> {
        let _entered = self.resources.shared.context.enter()?;
        Drive { resources: &self.resources, units: &self.units, stream }.run(&self.program)
    }

    #[inline]
    pub(super) fn launch_unit(&self, unit: usize, stream: &Stream) -> Result<()> {
        let _entered = self.resources.shared.context.enter_for_launch()?;
        // SAFETY: the context is current where that is needed; whoever launches keeps what it uses
        // until it has run.
        Ok(unsafe { self.units[unit].launch(stream.raw()) }?)
    }

    /// Copies what launches need to the device.
    pub(super) fn upload(&self, stream: &Stream) -> Result<()> {
        let _entered = self.resources.shared.context.enter()?;
        Ok(self.units.iter().try_for_each(|unit| unit.upload(stream.raw()))?)
    }

    /// Runs a program in which the host decides. Earlier launches of this executable have ended, or
    /// come before it on the same stream and nothing is read from them.
    pub(super) fn run_hosted(&self, stream: &Stream) -> Result<()> {
        if self.program.reads()
            && let Some(cells) = self.resources.cells()
        {
            cells.reset();
        }
        self.program.reset_passes();
        if let Some((address, bytes)) = self.resources.counted() {
            let context = &self.resources.shared.context;
            let _entered = context.enter()?;
            // SAFETY: the counters belong to this executable, and no launch of it is in flight but
            // before this on the stream.
            unsafe { context.driver().cu_memset_d8_async(address, 0, bytes, stream.raw()) }?;
        }
        self.run(stream)
    }
}

/// The compilation of a program's graphs.
struct Compiling<'a> {
    definition: &'a Definition,
    lowering: Lowering<'a>,
    settings: Settings,
    held: Held,
    units: SmallVec<[Unit; 1]>,
    node_map: NodeMap,
}

impl Compiling<'_> {
    /// Compiles a plain definition, for which there is no program.
    fn compile_whole(&mut self) -> Result<Compiled> {
        let mut parts = SmallVec::new();
        if self.definition.node_count(self.definition.root()) > 0 {
            parts.push(self.compile_graph(Content::Whole, Runs::Alone)?);
        }
        Ok(Compiled { parts })
    }

    fn compile_all(&mut self, program: &Program) -> Result<Compiled> {
        let runs = if program.parts.len() > 1 || program.is_hosted() { Runs::Once } else { Runs::Alone };
        self.compile(program, runs)
    }

    fn compile_graph(&mut self, content: Content<'_>, runs: Runs) -> Result<CompiledPart> {
        let number = self.units.len();
        let unit = lower::lower(
            (self.definition, self.lowering),
            (&mut self.held, &mut self.node_map),
            (number, runs),
            content,
            self.settings,
        )?;
        self.units.push(unit);
        Ok(CompiledPart::Graph(number))
    }

    fn compile(&mut self, program: &Program, runs: Runs) -> Result<Compiled> {
        let mut parts = SmallVec::with_capacity(program.parts.len());
        for part in &program.parts {
            match part {
                Part::Graph(steps) => parts.push(self.compile_graph(Content::Steps(steps), runs)?),
                Part::Hosted { node, bodies } => {
                    let bodies = bodies
                        .iter()
                        .map(|body| self.compile(body, Runs::Repeatedly))
                        .collect::<Result<Vec<_>>>()?;
                    let definition = self.definition;
                    let Operation::Conditional(op) = definition.node(*node).operation() else { continue };
                    let test = HostedTest::new(self.lowering.resources, &self.held, *node, op)?;
                    let label = definition.label(*node);
                    let hosted = HostedConditional::new(*node, label, test, bodies);
                    parts.push(CompiledPart::Hosted(Box::new(hosted)));
                }
            }
        }
        Ok(Compiled { parts })
    }
}
