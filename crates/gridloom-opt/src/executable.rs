//! The executable of an optimised graph.
//!
//! It stands between the core and the executable of a backend. The core refers to the nodes that
//! the user wrote. The backend runs the graph that the passes made from them. A node that no pass
//! changed has the same key in both. A change of a node that went into a rewritten kernel becomes a
//! change of that kernel's arguments. If the kernel cannot express the change (another kernel,
//! another shape, a disabled node), the graph is planned and compiled again. Launches in flight
//! keep the old executable alive. [`Arguments`] has the fast way for changed arguments.

use std::any::Any;
use std::sync::Arc;

use gridloom_core::backend::{
    Allocation, Cancel, Device, EventOptions, Executable, ExecutableStatus, Passes, Stream,
};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::log;
use gridloom_core::lower::Allocations;
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{KernelOp, Operation};
use gridloom_core::{Error, ErrorKind, Graph, Node, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::arguments::Arguments;
use crate::graph::{Counted, Kernels, Plan, Profile, handles};
use crate::optimizations::Optimizations;
use crate::status::Status;
use crate::succession::Succession;
use crate::worker::Planned;

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
    arguments: Arguments,
    /// The disabled nodes.
    disabled: FxHashSet<NodeKey>,
    /// The stream of the latest launch.
    last: Option<Arc<dyn Stream>>,
    succession: Succession,
    status: Arc<Status>,
}

impl OptimizedExecutable {
    /// Plans and compiles a graph. The plan edits `graph`, which must be a copy. Returns `None` if
    /// `kernels` lacks some.
    pub(crate) fn new(
        graph: Graph,
        options: &InstantiateOptions,
        (wanted, profile): (Optimizations, Profile),
        disabled: FxHashSet<NodeKey>,
        kernels: Kernels<'_>,
    ) -> Result<Option<Self>> {
        let device = graph.device().clone();
        let options = InstantiateOptions { upload: None, optimizer: None, ..options.clone() };
        let Some(compiled) = compile(graph, &options, (wanted, profile), &disabled, kernels)? else {
            return Ok(None);
        };
        Ok(Some(Self::of(device, options, (wanted, profile), disabled, compiled)))
    }

    fn of(
        device: Arc<dyn Device>,
        options: InstantiateOptions,
        (wanted, profile): (Optimizations, Profile),
        disabled: FxHashSet<NodeKey>,
        compiled: Compiled,
    ) -> Self {
        let Compiled { plan, handles, inner } = compiled;
        let succession = Succession::new(inner.canceller());
        let status = Arc::new(Status::new(inner.status(), plan.report()));
        OptimizedExecutable {
            device,
            options,
            wanted,
            profile,
            plan,
            handles,
            inner,
            arguments: Arguments::default(),
            disabled,
            last: None,
            succession,
            status,
        }
    }

    /// Compiles a plan that was made aside, from this outline. Returns `None` if the graph has to
    /// be planned again.
    pub(crate) fn adopt(
        planned: Planned,
        definition: &Definition,
        (device, options): (&Arc<dyn Device>, &InstantiateOptions),
        (wanted, profile): (Optimizations, Profile),
        disabled: &FxHashSet<NodeKey>,
    ) -> Result<Option<Self>> {
        let Planned { plan, outline, disabled: disabled_then } = planned;
        if *disabled != disabled_then {
            return Ok(None);
        }
        let Some(handles) = plan.adopt(&outline, definition)? else { return Ok(None) };
        let now = plan.graph.definition();
        // SAFETY: as in `compile`: the plan has the operations of the checked definition.
        let Ok(mut inner) = (unsafe { device.instantiate(&now, options) }) else { return Ok(None) };
        for &node in disabled {
            inner.set_enabled(&now, node, false)?;
        }
        let compiled = Compiled { plan, handles, inner };
        Ok(Some(Self::of(device.clone(), options.clone(), (wanted, profile), disabled.clone(), compiled)))
    }

    /// Returns whether the graph runs in another form than it was written.
    pub(crate) fn has_effect(&self) -> bool {
        self.plan.has_effect()
    }

    /// Plans and compiles the current graph. Launches of the old one end by themselves. On failure
    /// nothing changes.
    fn compile_anew(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        disabled: FxHashSet<NodeKey>,
    ) -> Result<()> {
        // SAFETY: it is the definition of the executable that this belongs to. Its operations were
        // checked for this device.
        let graph = unsafe { Graph::with_definition(&self.device, Arc::new(definition.clone())) };
        let settings = (self.wanted, self.profile);
        let compiled = compile(graph, &self.options, settings, &disabled, Kernels::Make)?;
        let Compiled { plan, handles, inner } = compiled.ok_or_else(incomplete)?;
        let end = Succession::end(&*self.device, self.last.as_ref())?;
        self.keep_unnamed(definition, replaced);
        self.succession.replace(end, inner.canceller());
        self.status.replace(inner.status(), plan.report());
        let mut old = std::mem::replace(&mut self.inner, inner);
        let old_plan = std::mem::replace(&mut self.plan, plan);
        self.handles = handles;
        self.disabled = disabled;
        let arguments = std::mem::take(&mut self.arguments);
        for (number, node) in arguments.prepared() {
            if let Operation::Kernel(launch) = definition.node(node).operation() {
                self.prepare(number, node, launch);
            }
        }
        old.retire(&old_plan.graph.definition());
        Ok(())
    }

    /// Returns the operation of a node of the plan's graph, for the nodes as they are in this
    /// definition.
    fn operation(&self, definition: &Definition, node: NodeKey) -> Option<Operation> {
        match self.plan.fusions.iter().find(|fusion| fusion.node.key() == node) {
            Some(fusion) => fusion.operation(definition).ok(),
            None => definition.get_node(node).map(|node| node.operation().clone()),
        }
    }

    /// Brings the plan's graph up to date with arguments that changed in place.
    fn settle(&mut self, definition: &Definition) -> Result<()> {
        self.arguments.flush(&self.plan, &mut *self.inner)?;
        let mut arguments = std::mem::take(&mut self.arguments);
        let outcome = arguments.refresh(|node| self.operation(definition, node));
        self.arguments = arguments;
        outcome
    }

    /// Keeps the memory that launches in flight use and the plan's graph does not name, because
    /// arguments changed in place. `replaced` has the operations that the definition had when they
    /// were launched and has no longer.
    pub(crate) fn keep_unnamed(&mut self, definition: &Definition, replaced: &[(NodeKey, Operation)]) {
        let mut kept: Vec<Arc<dyn Allocation>> = Vec::new();
        let mut keep = |operation: &Operation| {
            operation.for_each_region(|region| {
                if let Base::Allocation(memory) = &region.base {
                    kept.push(memory.clone());
                }
            });
        };
        for hollow in self.arguments.hollow() {
            let fusion = self.plan.fusions.iter().find(|fusion| fusion.node.key() == hollow.key());
            let pieces = fusion.iter().flat_map(|fusion| fusion.call.pieces.iter().map(|piece| piece.node));
            let nodes = pieces.chain(Some(hollow.key()).filter(|_| fusion.is_none()));
            nodes.filter_map(|node| definition.get_node(node)).for_each(|node| keep(node.operation()));
        }
        if self.arguments.hollow().next().is_some() {
            replaced.iter().for_each(|(_, before)| keep(before));
        }
        if !kept.is_empty() {
            self.inner.keep(&kept.iter().collect::<Vec<_>>());
        }
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

    /// Makes changes in place. Returns `false`, and changes nothing, if they need other kernels.
    pub(crate) fn try_update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<bool> {
        // Fused kernels have the defaults as constants.
        if !defaults.is_empty() {
            return Ok(false);
        }
        let changed: FxHashSet<NodeKey> = replaced.iter().map(|(node, _)| *node).collect();
        // Which kernels set which conditions is part of the plan.
        let keeps_conditions = |(node, before): &(NodeKey, Operation)| {
            conditions_of(before) == conditions_of(definition.node(*node).operation())
        };
        if !replaced.iter().all(keeps_conditions) {
            return Ok(false);
        }
        let Some(operations) = self.in_place(definition, &changed) else { return Ok(false) };
        self.keep_unnamed(definition, replaced);
        self.arguments.flush(&self.plan, &mut *self.inner)?;
        self.arguments.write_bytes()?;
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
                    log!(error, %error, "an operation could not be put back");
                }
            }
        } else {
            for (node, _) in &made {
                self.arguments.changed(node.key(), &node.operation()?);
            }
        }
        outcome.map(|()| true)
    }

    /// Enables or disables a node in place. Returns `false`, and changes nothing, if that needs
    /// other kernels.
    pub(crate) fn try_set_enabled(
        &mut self,
        definition: &Definition,
        node: NodeKey,
        enabled: bool,
    ) -> Result<bool> {
        if self.disabled.contains(&node) != enabled {
            return Ok(true);
        }
        if self.plan.fused.contains_key(&node) {
            return Ok(false);
        }
        self.settle(definition)?;
        self.inner.set_enabled(&self.plan.graph.definition(), node, enabled)?;
        if enabled {
            self.disabled.remove(&node);
        } else {
            self.disabled.insert(node);
        }
        Ok(true)
    }

    /// Writes the initial values of the plan's memory.
    #[cold]
    fn write_memory(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        for write in &self.plan.writes {
            // SAFETY: the copy is from bytes to memory of the plan, which has as many.
            unsafe { stream.enqueue(write) }?;
        }
        self.plan.writes = Vec::new();
        Ok(())
    }
}

/// A plan, and what the device made of it.
struct Compiled {
    plan: Plan,
    handles: FxHashMap<NodeKey, Node>,
    inner: Box<dyn Executable>,
}

/// Runs the passes and lets the device compile the result.
fn compile(
    graph: Graph,
    options: &InstantiateOptions,
    (wanted, profile): (Optimizations, Profile),
    disabled: &FxHashSet<NodeKey>,
    kernels: Kernels<'_>,
) -> Result<Option<Compiled>> {
    let (device, original) = (graph.device().clone(), graph.definition());
    let Some(plan) = Plan::new(graph, wanted, profile, options, disabled, kernels)? else { return Ok(None) };
    // SAFETY: the definition passed the checks of its instantiation. Nodes in it were replaced by
    // launches of kernels that use the same memory in the same order, and each was checked for this
    // device when it was added. The core calls the result as it would call the original.
    let made = unsafe { device.instantiate(&plan.graph.definition(), options) };
    let mut inner = match made {
        Ok(inner) => inner,
        // Not every kind of graph takes clusters and cooperative launches.
        Err(error) if profile.has_teams() => {
            log!(debug, %error, "a graph is optimised again without kernels of several blocks");
            // SAFETY: it is the definition of the same graph before any change, for its device.
            let graph = unsafe { Graph::with_definition(&device, original) };
            return compile(graph, options, (wanted, profile.without_teams()), disabled, kernels);
        }
        Err(error) => return Err(error),
    };
    let handles = handles(&plan.graph)?;
    let now = plan.graph.definition();
    for &node in disabled {
        inner.set_enabled(&now, node, false)?;
    }
    Ok(Some(Compiled { plan, handles, inner }))
}

/// Returns the error for a plan that lacks kernels although it may make them.
pub(crate) fn incomplete() -> Error {
    crate::graph::unexpected("lacks a kernel")
}

impl Executable for OptimizedExecutable {
    fn launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.succession.before_launch(stream)?;
        if !self.plan.writes.is_empty() {
            self.write_memory(stream)?;
        }
        self.arguments.flush(&self.plan, &mut *self.inner)?;
        self.inner.launch(stream)?;
        self.succession.launched();
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, stream)) {
            self.last = Some(stream.clone());
        }
        Ok(())
    }

    fn latest_stream(&self) -> Option<Arc<dyn Stream>> {
        self.last.clone()
    }

    fn upload(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.arguments.flush(&self.plan, &mut *self.inner)?;
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
        self.inner.canceller().map(|_| self.succession.canceller())
    }

    fn status(&self) -> Arc<dyn ExecutableStatus> {
        self.status.clone()
    }

    fn optimized_graph(&self, definition: &Definition) -> Option<Graph> {
        let (graph, copies) = self.plan.graph.deep_clone().ok()?;
        for node in self.arguments.hollow() {
            let operation = self.operation(definition, node.key())?;
            copies.get(node)?.set_operation(operation).ok()?;
        }
        Some(graph)
    }

    fn update(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        defaults: &[ConditionKey],
    ) -> Result<()> {
        if self.try_update(definition, replaced, defaults)? {
            return Ok(());
        }
        self.compile_anew(definition, replaced, self.disabled.clone())
    }

    fn prepare(&mut self, number: usize, node: NodeKey, launch: &KernelOp) -> bool {
        let direct = self.handles.get(&node);
        self.arguments.prepare(&self.plan, direct, &mut *self.inner, (number, node, launch))
    }

    fn set_arguments(&mut self, arguments: &[(usize, &[u8])]) -> Result<bool> {
        Ok(self.arguments.set(arguments))
    }

    fn keep(&mut self, memory: &[&Arc<dyn Allocation>]) {
        self.inner.keep(memory);
    }

    fn put_back(&mut self, definition: &Definition, nodes: &[NodeKey]) {
        let changed: FxHashSet<NodeKey> = nodes.iter().copied().collect();
        let Some(operations) = self.in_place(definition, &changed) else { return };
        for (node, operation) in operations {
            if let Operation::Kernel(launch) = &operation {
                self.arguments.put_back(node.key(), &launch.args().bytes);
            }
        }
    }

    fn set_enabled(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        if self.try_set_enabled(definition, node, enabled)? {
            return Ok(());
        }
        let mut disabled = self.disabled.clone();
        if enabled {
            disabled.remove(&node);
        } else {
            disabled.insert(node);
        }
        self.compile_anew(definition, &[], disabled)
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn retire(&mut self, definition: &Arc<Definition>) {
        // What launches in flight use must be named by the definition that the backend gets.
        if let Err(error) = self.settle(definition) {
            log!(error, %error, "the arguments of a rewritten kernel could not be read back");
        }
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
