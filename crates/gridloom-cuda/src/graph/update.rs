//! Changing what the nodes of an executable do.
//!
//! The driver changes most parameters of a compiled graph in place, in a fraction of a microsecond
//! each, and the next launch uses them. A change that it refuses (another direction of a copy,
//! another attribute, a disabled node in a body) is not an error: the graph is compiled again.
//! Either way, launches in flight keep the values they were launched with. If the host drives a
//! launch and waits for the device, the graph is compiled again as well, because that launch has
//! passes to come.
//!
//! # Nodes that do nothing
//!
//! The driver can disable kernels and copies. A fill that it disables no longer orders its
//! neighbours: nodes after it do not wait for nodes before it (driver 580.159, CUDA 13.0, on an
//! H200). So a disabled fill writes a word that nothing reads, and its own parameters are kept
//! until it is enabled. Launches of a graph with a disabled cooperative kernel lose the context, so
//! the graph is compiled again without that kernel. The same happens if the driver refuses.
//!
//! # All or nothing
//!
//! The old parameters of a node are saved before it is changed. If neither changing in place nor
//! compiling again succeeds, every changed node is changed back. If even that fails, the nodes are
//! remembered, and nothing is launched before they are restored.

use super::executable::{Executable, State};
use super::hosted::{HostedConditional, HostedTest};
use super::inner::Inner;
use super::lower::Lowering;
use super::modes::{Capabilities, transfers_managed};
use super::node_map::DriverNode;
use super::parameters::Parameters;
use super::resources::{Held, Staged};
use crate::driver::DriverResult;
use crate::failure::HostCall;
use crate::foreign::OpaqueGraph;
use crate::kernel::{Kernel, NodeArguments};
use crate::sys::*;
use crate::transfer;
use gridloom_core::backend::Allocation;
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::log;
use gridloom_core::lower::has_all_addresses;
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{ConditionalOp, KernelOp, Launch, MemsetOp, Operation, PointerValue};
use gridloom_core::{Error, ErrorKind, Result};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// What the changed nodes did before.
pub(super) type Undo = SmallVec<[Before; 1]>;

/// What a node did before it was changed.
pub(super) struct Before {
    node: NodeKey,
    operation: Operation,
    /// The copy of its host bytes that came with an earlier update.
    staged: Option<Staged>,
    /// Its callback, as the driver knows it.
    call: Option<Arc<HostCall>>,
}

impl Executable {
    /// Takes over what these nodes do, all or none. The driver fixes the default of a condition
    /// when its handle is made, so the graph is compiled again for other defaults.
    pub(super) fn take_over(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        has_other_defaults: bool,
    ) -> Result<()> {
        let mut undo = Undo::new();
        let state = &mut self.state;
        if has_other_defaults || state.is_held_up() {
            return self.compile_anew(definition, (replaced, &mut undo), None);
        }
        state.settle();
        let Err((failed, refusal)) = state.change_in_place(definition, replaced, &mut undo) else {
            state.keep(definition, replaced, undo);
            return Ok(());
        };
        log!(debug, %refusal, "an update needs the graph compiled anew");
        complete(&mut undo, &replaced[..failed]);
        let compiled = self.compile_anew(definition, (replaced, &mut undo), None);
        if compiled.is_err() {
            // The old graph stays in use.
            self.state.undone.append(&mut undo);
            if let Err(error) = self.state.take_back() {
                log!(warn, %error, "an update that failed is taken back before the next launch");
            }
        }
        compiled
    }

    /// Lets a node do its work, or makes it do nothing.
    pub(super) fn enable(&mut self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        let state = &mut self.state;
        let mut disabled = state.disabled.clone();
        if enabled {
            disabled.remove(&node);
        } else {
            disabled.insert(node);
        }
        let changed = if state.is_held_up() {
            refuse("the host drives a launch that waits for the device")
        } else {
            state.settle();
            state.set_enabled(definition.node(node).operation(), node, enabled)
        };
        if let Err(refusal) = changed {
            log!(debug, %refusal, "switching a node needs the graph compiled anew");
            self.compile_anew(definition, (&[], &mut Undo::new()), Some(&disabled))?;
        }
        self.state.disabled = disabled;
        Ok(())
    }
}

impl State {
    /// Changes back what an update that failed could not change back at once.
    pub(super) fn take_back(&mut self) -> Result<()> {
        if self.undone.is_empty() {
            return Ok(());
        }
        self.settle();
        take_back(&self.inner, &self.disabled, &mut self.held, &mut self.undone)
    }

    /// Changes nodes one by one. `undo` then holds what they did before, unless `replaced` does. On
    /// failure it says how many of the first changes may have been made. The host drives nothing.
    fn change_in_place(
        &mut self,
        definition: &Definition,
        replaced: &[(NodeKey, Operation)],
        undo: &mut Undo,
    ) -> Result<(), (usize, Error)> {
        let inner = &*self.inner;
        take_back(inner, &self.disabled, &mut self.held, &mut self.undone).map_err(|error| (0, error))?;
        let _entered = inner.resources.shared.context.enter().map_err(|error| (0, error.into()))?;
        let mut change = InPlaceUpdate { inner, disabled: &self.disabled, held: &mut self.held };
        for (index, &(node, ref old)) in replaced.iter().enumerate() {
            let changed = match (old, definition.node(node).operation()) {
                (Operation::Kernel(old), Operation::Kernel(new)) => change.set_kernel(node, old, new),
                (old, new) => {
                    // The host drives conditionals around such transfers. Only compiling decides
                    // who drives what.
                    if transfers_managed(definition, new) != transfers_managed(definition, old) {
                        let refusal = Error::new(ErrorKind::NotSupported, "the kind of memory changes");
                        return Err((index, refusal.at_node(definition.label(node))));
                    }
                    undo.push(change.note(node, old));
                    change.replace(node, new, || definition.label(node))
                }
            };
            changed.map_err(|error| (index + 1, error.at_node(definition.label(node))))?;
        }
        Ok(())
    }

    /// Keeps what was replaced alive until the latest launch, and with it every earlier one, has
    /// run. `noted` holds the replaced operations that are no kernels.
    fn keep(&self, definition: &Definition, replaced: &[(NodeKey, Operation)], noted: Undo) {
        let Some(stream) = &self.last else { return };
        let mut unused = Unused::default();
        for (node, old) in replaced {
            // `noted` holds all other replaced operations.
            if let (Operation::Kernel(old), Operation::Kernel(new)) =
                (old, definition.node(*node).operation())
            {
                unused.add(old, new);
            }
        }
        if unused.is_empty() && noted.is_empty() {
            return;
        }
        if !unused.memory.is_empty() {
            stream.keep_memory(&unused.memory);
        }
        if !unused.launches.is_empty() {
            stream.keep(unused.launches.into_iter().cloned().collect::<Vec<Launch>>());
        }
        if !noted.is_empty() {
            stream.keep(noted);
        }
    }

    /// Holds memory that was replaced until the latest launch, and with it every earlier one, has
    /// run.
    pub(super) fn keep_memory(&mut self, memory: &[&Arc<dyn Allocation>]) {
        if let Some(stream) = &self.last {
            stream.keep_memory(memory);
        }
    }

    /// Makes kernel nodes do what the definition says, before the next launch or update.
    pub(super) fn leave_undone(&mut self, definition: &Definition, nodes: &[NodeKey]) {
        self.undone.extend(nodes.iter().map(|&node| {
            let operation = definition.node(node).operation().clone();
            Before { node, operation, staged: None, call: None }
        }));
    }

    /// Lets a node do its work, or makes it do nothing, in place. Nothing is driven by the host.
    /// ([`cuGraphNodeSetEnabled`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn set_enabled(&mut self, operation: &Operation, node: NodeKey, enabled: bool) -> Result<()> {
        let inner = &*self.inner;
        let place = inner.place(node)?;
        let context = &inner.resources.shared.context;
        let _entered = context.enter()?;
        if let Operation::Memset(op) = operation {
            let mut change = InPlaceUpdate { inner, disabled: &FxHashSet::default(), held: &mut self.held };
            return if enabled {
                change.set_other(node, operation, String::new)
            } else {
                change.divert(place, op)
            };
        }
        if inner.node_map.is_overlapping(node) {
            return refuse("the edges of a kernel that overlaps others are fixed when the graph is compiled");
        }
        if operation.as_kernel().is_some_and(|launch| launch.config().cooperative) {
            return refuse("the driver loses the context when it leaves out a cooperative launch");
        }
        let exec = inner.units[place.unit].executable.raw();
        // SAFETY: the node is of the graph that the executable was made from; calls come one at a
        // time.
        Ok(unsafe { context.driver().cu_graph_node_set_enabled(exec, place.node, u32::from(enabled)) }?)
    }
}

/// Makes notes of changes, which leave out the kernels, complete: what every node did before.
fn complete(undo: &mut Undo, before: &[(NodeKey, Operation)]) {
    let mut noted = std::mem::take(undo).into_iter();
    undo.extend(before.iter().filter_map(|(node, old)| {
        if old.as_kernel().is_some() {
            Some(Before { node: *node, operation: old.clone(), staged: None, call: None })
        } else {
            noted.next()
        }
    }));
}

/// What launches of kernels used and the launches that replace them do not.
#[derive(Default)]
struct Unused<'a> {
    memory: SmallVec<[&'a Arc<dyn Allocation>; 4]>,
    /// Launches that used more than memory.
    launches: Vec<&'a Launch>,
}

impl<'a> Unused<'a> {
    fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.launches.is_empty()
    }

    /// Adds a changed launch. Most changes differ in the memory of arguments at most.
    fn add(&mut self, old: &'a Launch, new: &KernelOp) {
        if !Arc::ptr_eq(old.kernel(), new.kernel()) || old.args().owner != new.args().owner {
            self.launches.push(old);
            return;
        }
        allocations(old).for_each(|used| self.add_memory(used, new));
    }

    fn add_memory(&mut self, used: &'a Arc<dyn Allocation>, new: &KernelOp) {
        let is_same = |other: &Arc<dyn Allocation>| Arc::ptr_eq(used, other);
        if !allocations(new).any(is_same) && !self.memory.iter().any(|known| is_same(known)) {
            self.memory.push(used);
        }
    }
}

fn allocations(op: &KernelOp) -> impl Iterator<Item = &Arc<dyn Allocation>> {
    op.args().pointers.iter().filter_map(|pointer| match &pointer.value {
        PointerValue::Region(Region { base: Base::Allocation(allocation), .. }) => Some(allocation),
        _ => None,
    })
}

/// Changes nodes back, the last first. Those that could not be stay in the list.
#[inline]
fn take_back(inner: &Inner, disabled: &FxHashSet<NodeKey>, held: &mut Held, undo: &mut Undo) -> Result<()> {
    if undo.is_empty() {
        return Ok(());
    }
    let _entered = inner.resources.shared.context.enter()?;
    while let Some(before) = undo.pop() {
        if let Err(error) = (InPlaceUpdate { inner, disabled, held }).put_back(&before) {
            undo.push(before);
            return Err(error.context("taking back an update that failed"));
        }
    }
    Ok(())
}

impl Inner {
    fn place(&self, node: NodeKey) -> Result<DriverNode> {
        self.node_map.get(node).ok_or_else(|| {
            Error::new(ErrorKind::NotSupported, "the node has no counterpart in the driver's graph")
        })
    }
}

/// One update in progress.
struct InPlaceUpdate<'a> {
    inner: &'a Inner,
    /// Disabled nodes.
    disabled: &'a FxHashSet<NodeKey>,
    held: &'a mut Held,
}

impl<'a> InPlaceUpdate<'a> {
    /// Records what a node that is not a kernel does before it is changed.
    fn note(&self, node: NodeKey, operation: &Operation) -> Before {
        let call = self.held.call(node).cloned();
        Before { node, operation: operation.clone(), staged: self.held.staged_copy(node), call }
    }

    /// Makes a node do something else, with the host bytes that come with it. The context is
    /// current. `label` is its name, for the failures of a callback.
    fn replace(
        &mut self,
        node: NodeKey,
        operation: &Operation,
        label: impl FnOnce() -> String,
    ) -> Result<()> {
        self.restage(node, operation)?;
        self.set(node, operation, label)
    }

    /// Changes a node back to what it did before.
    fn put_back(&mut self, before: &Before) -> Result<()> {
        self.held.restore_staged(before.node, before.staged.clone());
        let Some(call) = &before.call else {
            return self.set(before.node, &before.operation, String::new);
        };
        self.set_parameters(self.inner.place(before.node)?, &Parameters::Call(call.parameters()))?;
        self.held.set_call(before.node, Arc::clone(call));
        Ok(())
    }

    /// Makes a node do something else. The context is current. `label` is its name, for the
    /// failures of a callback.
    fn set(&mut self, node: NodeKey, operation: &Operation, label: impl FnOnce() -> String) -> Result<()> {
        match operation {
            operation if self.does_nothing(node, operation) => Ok(()),
            Operation::Conditional(op) => match self.inner.hosted(node) {
                Some(hosted) => self.set_hosted(node, op, hosted),
                None => self.set_decider(node, op),
            },
            Operation::Kernel(op) => self.launch_at(node, op),
            operation => self.set_other(node, operation, label),
        }
    }

    /// Returns whether the driver hears of a node's parameters only when it is enabled: it is left
    /// out, or a fill of something else.
    fn does_nothing(&self, node: NodeKey, operation: &Operation) -> bool {
        self.is_left_out(node) || matches!(operation, Operation::Memset(_)) && self.disabled.contains(&node)
    }

    /// Returns whether a node that does nothing is not among the driver's.
    fn is_left_out(&self, node: NodeKey) -> bool {
        self.inner.node_map.get(node).is_none() && self.disabled.contains(&node)
    }

    /// Makes a fill do nothing but order its neighbours.
    fn divert(&mut self, place: DriverNode, op: &MemsetOp) -> Result<()> {
        if op.height != 1 {
            return refuse("the driver does not change the extents of a fill of several rows");
        }
        let word = self.held.unread_word(&self.inner.resources.shared)?;
        let fill = transfer::fill_parameters(&MemsetOp { width: 1, ..op.clone() }, word);
        Ok(self.set_parameters(place, &Parameters::Fill(fill))?)
    }

    fn lowering(&self) -> Lowering<'a> {
        Lowering {
            resources: &self.inner.resources,
            modes: &self.inner.modes,
            capabilities: Capabilities::of(self.inner.resources.shared.context.driver()),
        }
    }

    /// Copies host bytes that come with the operation to device memory.
    fn restage(&mut self, node: NodeKey, operation: &Operation) -> Result<()> {
        let mut bytes = None;
        operation.for_each_region(|region| {
            if let Base::Bytes(found) = &region.base {
                bytes = Some(found);
            }
        });
        match bytes {
            Some(bytes) => self.held.restage(&self.inner.resources.shared, node, bytes),
            None => Ok(()),
        }
    }

    fn set_hosted(&mut self, node: NodeKey, op: &ConditionalOp, hosted: &HostedConditional) -> Result<()> {
        hosted.set_test(HostedTest::new(&self.inner.resources, self.held, node, op)?);
        Ok(())
    }

    fn set_decider(&mut self, node: NodeKey, op: &ConditionalOp) -> Result<()> {
        let inner = self.inner;
        let place = inner.place(node)?;
        let resources = &inner.resources;
        let Some(nodes) = inner.node_map.decider(node) else {
            return refuse("the conditional is decided by kernels of the user alone");
        };
        let Some(decider) = self.lowering().decider(self.held, node, op, nodes.handle)? else {
            return refuse("the conditional was decided with a kernel and is not any more");
        };
        let one = LaunchConfig::one();
        let next = decider.next();
        let kernel = match &next {
            Some(_) => resources.builtins().loop_begin(&resources.shared)?,
            None => resources.builtins().choose(&resources.shared)?,
        };
        let before = decider.before();
        self.set_kernel_node(place.unit, nodes.before, kernel, &one, &before)?;
        if let (Some(next), Some(at)) = (next, nodes.next) {
            let kernel = resources.builtins().loop_next(&resources.shared)?;
            self.set_kernel_node(place.unit, at, kernel, &one, &next)?;
        }
        Ok(())
    }

    /// Makes a kernel node launch something else, if the driver can change it in place.
    fn set_kernel(&mut self, node: NodeKey, old: &KernelOp, new: &KernelOp) -> Result<()> {
        let attributes = |config: &LaunchConfig| (config.cluster, config.cooperative, config.priority);
        if attributes(old.config()) != attributes(new.config()) {
            return refuse("the attributes of a launch are fixed when the graph is compiled");
        }
        // A precaution: see docs/driver-quirks.md.
        let shape = |config: &LaunchConfig| (config.grid, config.block, config.shared);
        if (new.config().cooperative || new.config().cluster.is_some())
            && (shape(old.config()) != shape(new.config()) || !Arc::ptr_eq(old.kernel(), new.kernel()))
        {
            return refuse("blocks that run together are planned when the graph is compiled");
        }
        if self.inner.node_map.is_early(node) && !Kernel::from_backend(&**new.kernel())?.may_start_early() {
            return refuse("a kernel that does not wait must not start early");
        }
        if !conditions(old).eq(conditions(new)) {
            return refuse("who drives a conditional depends on which kernels set its condition");
        }
        self.launch_at(node, new)
    }

    fn launch_at(&mut self, node: NodeKey, op: &KernelOp) -> Result<()> {
        if self.is_left_out(node) {
            return Ok(());
        }
        let place = self.inner.place(node)?;
        let config = op.config();
        if has_all_addresses(op.args()) {
            let kernel = Kernel::from_backend(&**op.kernel())?;
            return self.set_kernel_node(place.unit, place.node, kernel, config, &op.args().bytes);
        }
        let handles = &self.inner.units[place.unit].handles;
        let arguments = self.lowering().kernel_arguments(self.held, node, op, handles)?;
        self.set_kernel_node(place.unit, place.node, arguments.kernel()?, config, arguments.bytes())
    }

    /// Sets the parameters of a kernel node. The context is current: without one, the driver does
    /// not refuse the call but crashes (580.159).
    /// ([`cuGraphExecKernelNodeSetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn set_kernel_node(
        &self,
        unit: usize,
        node: CUgraphNode,
        kernel: &Kernel,
        config: &LaunchConfig,
        bytes: &[u8],
    ) -> Result<()> {
        kernel.allow(config)?;
        let mut arguments = NodeArguments::new(kernel, config, bytes);
        let parameters = arguments.describe(kernel, config);
        let exec = self.inner.units[unit].executable.raw();
        let driver = self.inner.resources.shared.context.driver();
        // SAFETY: the node is of the graph that the executable was made from; the arguments fit the
        // kernel and are copied.
        unsafe { driver.cu_graph_exec_kernel_node_set_params(exec, node, &parameters) }?;
        Ok(())
    }

    fn set_other(
        &mut self,
        node: NodeKey,
        operation: &Operation,
        label: impl FnOnce() -> String,
    ) -> Result<()> {
        let place = self.inner.place(node)?;
        let old_call = self.held.call(node).cloned();
        let parameters = self.lowering().parameters(self.held, node, operation, label)?;
        let set = self.set_parameters(place, &parameters);
        if let (Some(old), Err(_)) = (old_call, &set) {
            self.held.set_call(node, old);
        }
        Ok(set?)
    }

    /// Calls [`cuGraphExec…SetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn set_parameters(&self, place: DriverNode, parameters: &Parameters) -> DriverResult<()> {
        let context = &self.inner.resources.shared.context;
        let (driver, ctx) = (context.driver(), context.raw());
        let (exec, node) = (self.inner.units[place.unit].executable.raw(), place.node);
        // SAFETY: the node is of the graph that the executable was made from, and of the kind of
        // the parameters, which the core has checked; what they refer to is held by the executable.
        unsafe {
            match parameters {
                Parameters::Fill(fill) => driver.cu_graph_exec_memset_node_set_params(exec, node, fill, ctx),
                Parameters::Copy(copy) => driver.cu_graph_exec_memcpy_node_set_params(exec, node, copy, ctx),
                Parameters::Call(call) => driver.cu_graph_exec_host_node_set_params(exec, node, call),
                Parameters::Record(event) => {
                    driver.cu_graph_exec_event_record_node_set_event(exec, node, *event)
                }
                Parameters::Wait(event) => driver.cu_graph_exec_event_wait_node_set_event(exec, node, *event),
                Parameters::Opaque(opaque) => match OpaqueGraph::from_backend(&**opaque) {
                    Ok(opaque) => opaque.with(|graph| {
                        driver.cu_graph_exec_child_graph_node_set_params(exec, node, graph.raw())
                    }),
                    // A graph of another device, which the core rules out.
                    Err(_) => Ok(()),
                },
                Parameters::Nothing => Ok(()),
            }
        }
    }
}

fn refuse(why: &str) -> Result<()> {
    Err(Error::new(ErrorKind::NotSupported, why))
}

fn conditions(op: &KernelOp) -> impl Iterator<Item = ConditionKey> {
    op.args().pointers.iter().filter_map(|pointer| match pointer.value {
        PointerValue::Condition(condition) => Some(condition),
        PointerValue::Region(_) => None,
    })
}
