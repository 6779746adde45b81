//! The executable of an optimised graph.
//!
//! It stands between the core and the executable of a backend. The core refers to the nodes that
//! the user wrote. The backend runs the graph that the passes made from them. A node that no pass
//! changed has the same key in both. A change of a node that went into a rewritten kernel becomes a
//! change of that kernel's arguments. If the kernel cannot express the change (another kernel,
//! another shape, a disabled node), the graph is planned and compiled again. Launches in flight
//! keep the old executable alive.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use gridloom_core::backend::{
    Allocation, Cancel, Device, Event, EventOptions, Executable, ExecutableStatus, Passes, Stream,
};
use gridloom_core::executable::{ConditionalReport, InstantiateOptions, MemoryUse, Report};
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::lower::Allocations;
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::Operation;
use gridloom_core::{Error, ErrorKind, Graph, Node, Result};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::{Counted, Form, Plan, Profile, handles};
use crate::optimizations::Optimizations;

/// An optimised graph, compiled.
#[derive(Debug)]
pub(crate) struct OptimizedExecutable {
    device: Arc<dyn Device>,
    options: InstantiateOptions,
    wanted: Optimizations,
    profile: Profile,
    plan: Plan,
    /// The handles of the nodes in the plan's graph that no pass made.
    handles: FxHashMap<NodeKey, Node>,
    inner: Box<dyn Executable>,
    /// The disabled nodes.
    disabled: FxHashSet<NodeKey>,
    /// The stream of the latest launch.
    last: Option<Arc<dyn Stream>>,
    /// The event that the first launch after a recompilation waits for: the end of the old
    /// executable's launches.
    old_launches: Option<Arc<dyn Event>>,
    /// Cancels launches of this graph and of the one before it.
    cancels: Arc<Mutex<Cancels>>,
    status: Arc<Status>,
}

/// The status of the current compilation, and what the plan adds to its report.
struct Status(Mutex<(Arc<dyn ExecutableStatus>, Report)>);

impl Status {
    fn of(plan: &Plan, inner: &dyn Executable) -> (Arc<dyn ExecutableStatus>, Report) {
        let mut report = Report::default();
        let mut add = |node, name: &str, reason: &str| {
            report.conditionals.push(ConditionalReport::new(node, name.to_owned(), true, reason));
        };
        for fusion in &plan.fusions {
            if let Form::Program(controls) = &fusion.call.form {
                for control in controls {
                    add(control.node, &plan.label(control.node), "it is inside one kernel");
                }
            }
        }
        for expanded in &plan.expanded {
            add(expanded.node, &expanded.name, "its kernels test the value themselves");
        }
        report.optimized.clone_from(&plan.done);
        report.not_optimized.clone_from(&plan.kept);
        (inner.status(), report)
    }
}

// The lock is held during each call: a clone of the status might be the last holder of an old
// compilation, which a callback must not drop.
impl ExecutableStatus for Status {
    fn take_error(&self) -> Option<Error> {
        self.0.lock().0.take_error()
    }

    fn report(&self) -> Report {
        let current = self.0.lock();
        let (mut report, planned) = (current.0.report(), &current.1);
        report.conditionals.extend_from_slice(&planned.conditionals);
        report.optimized.clone_from(&planned.optimized);
        report.not_optimized.clone_from(&planned.not_optimized);
        report
    }

    fn memory(&self) -> MemoryUse {
        self.0.lock().0.memory()
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:?})", self.0.lock().1)
    }
}

/// The cancel functions of the current and the previous compilation.
#[derive(Default)]
struct Cancels {
    now: Option<Cancel>,
    before: Option<Cancel>,
}

impl fmt::Debug for Cancels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancels({})", self.now.is_some())
    }
}

impl OptimizedExecutable {
    /// Plans and compiles a graph. The plan edits `graph`, which must be a copy.
    pub(crate) fn new(
        graph: Graph,
        options: &InstantiateOptions,
        wanted: Optimizations,
        profile: Profile,
    ) -> Result<Self> {
        let device = graph.device().clone();
        let options = InstantiateOptions { upload: None, optimizer: None, ..options.clone() };
        let disabled = FxHashSet::default();
        let (plan, inner) = compile(&device, graph, &options, wanted, profile, &disabled)?;
        let handles = handles(&plan.graph)?;
        let cancels = Arc::new(Mutex::new(Cancels { now: inner.canceller(), before: None }));
        let status = Arc::new(Status(Mutex::new(Status::of(&plan, &*inner))));
        Ok(OptimizedExecutable {
            device,
            options,
            wanted,
            profile,
            plan,
            handles,
            inner,
            disabled,
            last: None,
            old_launches: None,
            cancels,
            status,
        })
    }

    /// Plans and compiles the current graph. Launches of the old one end by themselves. On failure
    /// nothing changes.
    fn compile_anew(&mut self, definition: &Definition, disabled: FxHashSet<NodeKey>) -> Result<()> {
        // SAFETY: it is the definition of the executable that this belongs to. Its operations were
        // checked for this device.
        let graph = unsafe { Graph::with_definition(&self.device, Arc::new(definition.clone())) };
        let (plan, mut inner) =
            compile(&self.device, graph, &self.options, self.wanted, self.profile, &disabled)?;
        let handles = handles(&plan.graph)?;
        let now = plan.graph.definition();
        for &node in &disabled {
            inner.set_enabled(&now, node, false)?;
        }
        drop(now);
        if let Some(last) = &self.last {
            let event = self.device.create_event(EventOptions::new().timing(false))?;
            // SAFETY: stream and event are of this device.
            unsafe { last.enqueue(&Operation::EventRecord(event.clone())) }?;
            self.old_launches = Some(event);
        }
        let now = inner.canceller();
        let mut cancels = self.cancels.lock();
        let before = std::mem::replace(&mut cancels.now, now);
        let forgotten = std::mem::replace(&mut cancels.before, before);
        drop(cancels);
        drop(forgotten);
        let status = Status::of(&plan, &*inner);
        let old_status = std::mem::replace(&mut *self.status.0.lock(), status);
        drop(old_status);
        let mut old = std::mem::replace(&mut self.inner, inner);
        let old_plan = std::mem::replace(&mut self.plan, plan);
        self.handles = handles;
        self.disabled = disabled;
        old.retire(&old_plan.graph.definition());
        Ok(())
    }

    /// Returns the new operations of nodes in the plan's graph, if the changes can be made in
    /// place.
    fn in_place(
        &self,
        definition: &Definition,
        changed: &FxHashSet<NodeKey>,
    ) -> Option<Vec<(Node, Operation)>> {
        if self.plan.expanded.iter().any(|expanded| changed.contains(&expanded.node)) {
            return None;
        }
        let mut fusions: Vec<usize> =
            changed.iter().filter_map(|node| self.plan.fused.get(node)).flatten().copied().collect();
        fusions.sort_unstable();
        fusions.dedup();
        let mut operations = Vec::with_capacity(changed.len());
        for index in fusions {
            let fusion = &self.plan.fusions[index];
            operations.push((fusion.node.clone(), fusion.operation(definition).ok()?));
        }
        for node in changed.iter().filter(|node| !self.plan.fused.contains_key(node)) {
            // An empty node that was removed.
            let Some(handle) = self.handles.get(node) else { continue };
            let operation = definition.node(*node).operation();
            if matches!(operation, Operation::Conditional(_) | Operation::Child(_)) {
                return None;
            }
            operations.push((handle.clone(), operation.clone()));
        }
        Some(operations)
    }
}

/// Runs the passes and lets the device compile the result.
fn compile(
    device: &Arc<dyn Device>,
    graph: Graph,
    options: &InstantiateOptions,
    wanted: Optimizations,
    profile: Profile,
    disabled: &FxHashSet<NodeKey>,
) -> Result<(Plan, Box<dyn Executable>)> {
    let plan = Plan::new(graph, wanted, profile, options, disabled)?;
    // SAFETY: the definition passed the checks of its instantiation. Nodes in it were replaced by
    // launches of kernels that use the same memory in the same order, and each was checked for this
    // device when it was added. The core calls the result as it would call the original.
    let inner = unsafe { device.instantiate(&plan.graph.definition(), options) }?;
    Ok((plan, inner))
}

impl Executable for OptimizedExecutable {
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        if let Some(event) = &self.old_launches {
            // SAFETY: stream and event are of this device.
            unsafe { stream.enqueue(&Operation::EventWait(event.clone())) }?;
            self.old_launches = None;
        }
        self.inner.launch(stream)?;
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, stream)) {
            self.last = Some(stream.clone());
        }
        Ok(())
    }

    fn latest_stream(&self) -> Option<Arc<dyn Stream>> {
        self.last.clone()
    }

    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.inner.upload(stream)
    }

    fn outliving(&mut self, alloc: NodeKey) -> Result<Arc<dyn Allocation>> {
        self.inner.outliving(alloc)
    }

    fn passes(&mut self, conditional: NodeKey) -> Result<Passes> {
        let Some(counted) = self.plan.passes(conditional) else { return self.inner.passes(conditional) };
        let device = self.device.clone();
        if let Counted::Not = counted {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "only kernels decide this conditional, so its passes are not counted; instantiate with InstantiateOptions::count_passes",
            ));
        }
        let Some(last) = &self.last else { return Ok(Box::new(|| Ok(0))) };
        let event = device.create_event(EventOptions::new().timing(false).blocking(true))?;
        // SAFETY: stream and event are of this device.
        unsafe { last.enqueue(&Operation::EventRecord(event.clone())) }?;
        Ok(Box::new(move || {
            event.synchronize()?;
            match counted {
                Counted::In(Region { base: Base::Allocation(memory), offset, .. }) => {
                    let mut bytes = [0; 8];
                    device.read(&*memory, offset, &mut bytes)?;
                    Ok(u64::from_le_bytes(bytes))
                }
                Counted::Always(count) => Ok(count),
                _ => Ok(0),
            }
        }))
    }

    fn canceller(&self) -> Option<Cancel> {
        self.cancels.lock().now.as_ref()?;
        let cancels = self.cancels.clone();
        Some(Arc::new(move || {
            let (now, before) = {
                let cancels = cancels.lock();
                (cancels.now.clone(), cancels.before.clone())
            };
            for cancel in before.into_iter().chain(now) {
                cancel();
            }
        }))
    }

    fn status(&self) -> Arc<dyn ExecutableStatus> {
        self.status.clone()
    }

    fn optimized_graph(&self) -> Option<Graph> {
        self.plan.graph.deep_clone().ok().map(|(graph, _)| graph)
    }

    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()> {
        // Fused kernels have the defaults as constants.
        if !defaults.is_empty() {
            return self.compile_anew(definition, self.disabled.clone());
        }
        let changed: FxHashSet<NodeKey> = replaced.iter().map(|(node, _)| *node).collect();
        // Which kernels set which conditions is part of the plan.
        let keeps_conditions = |(node, before): &(NodeKey, Operation)| {
            conditions_of(before) == conditions_of(definition.node(*node).operation())
        };
        if !replaced.iter().all(keeps_conditions) {
            return self.compile_anew(definition, self.disabled.clone());
        }
        let Some(operations) = self.in_place(definition, &changed) else {
            return self.compile_anew(definition, self.disabled.clone());
        };
        let mut made: Vec<(Node, Operation)> = Vec::with_capacity(operations.len());
        let mut outcome = Ok(());
        for (node, operation) in operations {
            let before = node.operation().and_then(|before| node.set_operation(operation).map(|()| before));
            match before {
                Ok(before) => made.push((node, before)),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let changes: Vec<(NodeKey, Operation)> =
            made.iter().map(|(node, before)| (node.key(), before.clone())).collect();
        if outcome.is_ok() && !changes.is_empty() {
            outcome = self.inner.update(&self.plan.graph.definition(), &changes, &[]);
        }
        if outcome.is_err() {
            for (node, before) in made.into_iter().rev() {
                // The operation was there before, so it is allowed.
                if let Err(error) = node.set_operation(before) {
                    tracing::error!(%error, "an operation could not be put back");
                }
            }
        }
        outcome
    }

    fn keep(&mut self, memory: &[&Arc<dyn Allocation>]) {
        self.inner.keep(memory);
    }

    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        let mut disabled = self.disabled.clone();
        let is_changed = if enabled { disabled.remove(&node) } else { disabled.insert(node) };
        if !is_changed {
            return Ok(());
        }
        if self.plan.fused.contains_key(&node) {
            return self.compile_anew(definition, disabled);
        }
        self.inner.set_enabled(&self.plan.graph.definition(), node, enabled)?;
        self.disabled = disabled;
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn retire(&mut self, _: &Arc<Definition>) {
        self.inner.retire(&self.plan.graph.definition());
    }
}

/// Returns the conditions that an operation refers to.
fn conditions_of(operation: &Operation) -> Vec<ConditionKey> {
    let mut conditions = Vec::new();
    operation.for_each_condition(|condition| conditions.push(condition));
    conditions
}

/// Returns whether a graph leaves memory allocated after a launch. A recompiled graph would not
/// know of that memory.
pub(crate) fn leaves_memory(definition: &Definition) -> bool {
    Allocations::of(definition).outliving().next().is_some()
}
