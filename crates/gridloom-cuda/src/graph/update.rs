//! Changing what the nodes of an executable do.
//!
//! The driver changes most parameters of a compiled graph in place, for a fraction of a microsecond each, and the next launch sees
//! them. What it refuses (another direction of a copy, another attribute, a disabled node in a body) is not an error here:
//! the graph is then compiled anew. Either way launches in flight go on with what they were launched with; where the host still drives one and
//! waits for the device meanwhile, the graph is compiled anew as well, since that launch has passes to come.
//!
//! # Nodes that do nothing
//!
//! The driver disables kernels and copies. A fill that it disabled does not keep its place in the order: what comes after does not wait for
//! what comes before (a driver for CUDA 13.0, 580.159, on an H200). So a disabled fill fills a word that nobody reads instead, and its own
//! parameters are held until it is enabled. Where the driver refuses, the graph is compiled anew without the node.
//!
//! # All or nothing
//!
//! What a node did before is noted before it is touched. When neither changing in place nor compiling anew succeeds, every touched node
//! is changed back. Should even that fail, the nodes are remembered, and nothing is launched before they are as they were.

use super::executable::{Executable, Inner, State};
use super::hosted::{HostedConditional, HostedTest};
use super::lower::Lowering;
use super::modes::Capabilities;
use super::parameters::Parameters;
use super::places::NodePlace;
use super::resources::{Held, Staged};
use crate::driver::DriverResult;
use crate::failure::HostCall;
use crate::foreign::OpaqueGraph;
use crate::kernel::{Kernel, Launch};
use crate::stream::Stream;
use crate::sys::*;
use crate::transfer;
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Base;
use gridloom_core::op::{ConditionalOp, KernelOp, MemsetOp, Operation, ParamLayout, PointerValue};
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
    /// Takes over the operations of these nodes, all or none.
    pub(super) fn take_over(&self, definition: &Definition, changed: &[NodeKey]) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_held_up() {
            return self.compile_anew(&mut state, definition, None);
        }
        state.settle();
        let mut undo = Undo::with_capacity(changed.len());
        let outcome = state.change_in_place(definition, changed, &mut undo).or_else(|refusal| {
            tracing::debug!(%refusal, "an update needs the graph compiled anew");
            let compiled = self.compile_anew(&mut state, definition, None);
            if compiled.is_err() {
                // The old graph stays.
                state.undone.append(&mut undo);
                if let Err(error) = state.take_back() {
                    tracing::warn!(%error, "an update that failed is taken back before the next launch");
                }
            }
            compiled
        });
        keep(&state, undo);
        outcome
    }

    /// Lets a node do its work, or makes it do nothing.
    pub(super) fn enable(&self, definition: &Definition, node: NodeKey, enabled: bool) -> Result<()> {
        let mut state = self.state.lock();
        let mut disabled = state.disabled.clone();
        if enabled {
            disabled.remove(&node);
        } else {
            disabled.insert(node);
        }
        if state.is_held_up() {
            self.compile_anew(&mut state, definition, Some(&disabled))?;
        } else {
            state.settle();
            if let Err(refusal) = state.inner.set_enabled(node, enabled) {
                tracing::debug!(%refusal, "switching a node needs the graph compiled anew");
                self.compile_anew(&mut state, definition, Some(&disabled))?;
            }
        }
        state.disabled = disabled;
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
        take_back(&self.inner, &self.disabled, &mut self.inner.held.lock(), &mut self.undone)
    }

    /// Changes nodes one by one. What they did before is in `undo` then, also when this fails half way. Nothing is driven by the host.
    fn change_in_place(
        &mut self,
        definition: &Definition,
        changed: &[NodeKey],
        undo: &mut Undo,
    ) -> Result<()> {
        let inner = &*self.inner;
        let mut held = inner.held.lock();
        take_back(inner, &self.disabled, &mut held, &mut self.undone)?;
        let _entered = inner.resources.shared.context.enter()?;
        let mut change = Change { inner, disabled: &self.disabled, held: &mut held };
        changed.iter().try_for_each(|&node| change.apply(definition, node, undo))
    }
}

/// Changes nodes back, the last first. Those that could not be stay in the list.
fn take_back(inner: &Inner, disabled: &FxHashSet<NodeKey>, held: &mut Held, undo: &mut Undo) -> Result<()> {
    if undo.is_empty() {
        return Ok(());
    }
    let _entered = inner.resources.shared.context.enter()?;
    while let Some(before) = undo.pop() {
        if let Err(error) = (Change { inner, disabled, held }).put_back(&before) {
            undo.push(before);
            return Err(error.context("taking back an update that failed"));
        }
    }
    Ok(())
}

/// Holds what was replaced until the latest launch, and with it every earlier one, has run.
fn keep(state: &State, replaced: Undo) {
    let Some(stream) = state.last.as_ref().and_then(|last| Stream::from_backend(&**last).ok()) else {
        return;
    };
    match replaced.as_slice() {
        [] => {}
        // A kernel's launch is shared already, and there is nothing else to a change of arguments.
        [Before { operation: Operation::Kernel(op), staged: None, .. }] => stream.keep_shared(op),
        _ => stream.keep(replaced),
    }
}

impl Inner {
    /// ([`cuGraphNodeSetEnabled`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn set_enabled(&self, node: NodeKey, enabled: bool) -> Result<()> {
        let place = self.place(node)?;
        let context = &self.resources.shared.context;
        let _entered = context.enter()?;
        let mut held = self.held.lock();
        if let Some(fill @ Operation::Memset(op)) = held.operation(node).cloned().as_ref() {
            let mut change = Change { inner: self, disabled: &FxHashSet::default(), held: &mut held };
            return if enabled {
                change.set_other(node, fill, String::new)
            } else {
                change.divert(place, op)
            };
        }
        let exec = self.units[place.unit].executable.raw();
        // SAFETY: the node is of the graph that the executable was made from; calls come one at a time.
        Ok(unsafe { context.driver().cu_graph_node_set_enabled(exec, place.node, u32::from(enabled)) }?)
    }

    fn place(&self, node: NodeKey) -> Result<NodePlace> {
        self.places.get(node).ok_or_else(|| {
            Error::new(ErrorKind::NotSupported, "the node has no counterpart in the driver's graph")
        })
    }
}

/// One update under way.
struct Change<'a> {
    inner: &'a Inner,
    /// Nodes that do nothing.
    disabled: &'a FxHashSet<NodeKey>,
    held: &'a mut Held,
}

impl<'a> Change<'a> {
    /// Has a node do what the definition says. What it did before is added to `undo`, also when this fails half way.
    fn apply(&mut self, definition: &Definition, node: NodeKey, undo: &mut Undo) -> Result<()> {
        let operation = definition.node(node).operation();
        if let Some(old) = self.held.operation(node).cloned() {
            let staged = self.held.staged_copy(node);
            let call = self.held.host_calls.get(&node).cloned();
            undo.push(Before { node, operation: old, staged, call });
        }
        let label = || definition.label(node);
        self.restage(node, operation)
            .and_then(|()| self.set(node, operation, label))
            .map_err(|error| error.at_node(label()))
    }

    /// Has a node do what it did before.
    fn put_back(&mut self, before: &Before) -> Result<()> {
        self.held.restore_staged(before.node, before.staged.clone());
        let Some(call) = &before.call else {
            return self.set(before.node, &before.operation, String::new);
        };
        self.set_parameters(self.inner.place(before.node)?, &Parameters::Call(call.parameters()))?;
        self.held.host_calls.insert(before.node, Arc::clone(call));
        self.held.set_operation(before.node, before.operation.clone());
        Ok(())
    }

    /// Has a node do something else; the context is current. `label` is its name, for the failures of a callback.
    fn set(&mut self, node: NodeKey, operation: &Operation, label: impl FnOnce() -> String) -> Result<()> {
        match operation {
            operation if self.does_nothing(node, operation) => {}
            Operation::Conditional(op) => match self.inner.hosted(node) {
                Some(hosted) => self.set_hosted(node, op, hosted)?,
                None => self.set_decider(node, op)?,
            },
            Operation::Kernel(op) => self.set_kernel(node, op)?,
            operation => self.set_other(node, operation, label)?,
        }
        self.held.set_operation(node, operation.clone());
        Ok(())
    }

    /// Whether the driver hears of a node's parameters only when it is enabled: it is left out, or a fill of something else.
    fn does_nothing(&self, node: NodeKey, operation: &Operation) -> bool {
        self.disabled.contains(&node)
            && (matches!(operation, Operation::Memset(_)) || self.inner.places.get(node).is_none())
    }

    /// Has a fill do no more than keep its place in the order.
    fn divert(&mut self, place: NodePlace, op: &MemsetOp) -> Result<()> {
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
        let Some(nodes) = inner.places.decider(node) else {
            return refuse("the conditional is decided by kernels of the user alone");
        };
        let Some(decider) = self.lowering().decider(self.held, node, op, nodes.handle)? else {
            return refuse("the conditional was decided with a kernel and is not any more");
        };
        let one = LaunchConfig::one();
        let next = decider.next();
        let kernel = match &next {
            Some(_) => resources.builtins.loop_begin(&resources.shared)?,
            None => resources.builtins.choose(&resources.shared)?,
        };
        let before = decider.before();
        self.set_kernel_node(place.unit, nodes.before, kernel, &one, &before.layout, &before.bytes)?;
        if let (Some(next), Some(at)) = (next, nodes.next) {
            let kernel = resources.builtins.loop_next(&resources.shared)?;
            self.set_kernel_node(place.unit, at, kernel, &one, &next.layout, &next.bytes)?;
        }
        Ok(())
    }

    fn set_kernel(&mut self, node: NodeKey, op: &KernelOp) -> Result<()> {
        let place = self.inner.place(node)?;
        if let Some(Operation::Kernel(old)) = self.held.operation(node) {
            let attributes = |config: &LaunchConfig| (config.cluster, config.cooperative, config.priority);
            if attributes(old.config()) != attributes(op.config()) {
                return refuse("the attributes of a launch are fixed when the graph is compiled");
            }
            if !conditions(old).eq(conditions(op)) {
                return refuse("who drives a conditional depends on which kernels set its condition");
            }
        }
        let handles = &self.inner.units[place.unit].handles;
        let arguments = self.lowering().kernel_arguments(self.held, node, op, handles)?;
        let kernel = arguments.kernel()?;
        let layout = &op.args().layout;
        self.set_kernel_node(place.unit, place.node, kernel, op.config(), layout, arguments.bytes())
    }

    /// ([`cuGraphExecKernelNodeSetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn set_kernel_node(
        &self,
        unit: usize,
        node: CUgraphNode,
        kernel: &Kernel,
        config: &LaunchConfig,
        layout: &[ParamLayout],
        bytes: &[u8],
    ) -> Result<()> {
        let mut launch = Launch::with_bytes(kernel, config, layout, bytes)?;
        let parameters = launch.node_parameters();
        let exec = self.inner.units[unit].executable.raw();
        let driver = self.inner.resources.shared.context.driver();
        // SAFETY: the node is of the graph that the executable was made from; the arguments fit the kernel and are copied.
        Ok(unsafe { driver.cu_graph_exec_kernel_node_set_params(exec, node, &parameters) }?)
    }

    fn set_other(
        &mut self,
        node: NodeKey,
        operation: &Operation,
        label: impl FnOnce() -> String,
    ) -> Result<()> {
        let place = self.inner.place(node)?;
        let old_call = self.held.host_calls.get(&node).cloned();
        let parameters = self.lowering().parameters(self.held, node, operation, label)?;
        let set = self.set_parameters(place, &parameters);
        if let (Some(old), Err(_)) = (old_call, &set) {
            self.held.host_calls.insert(node, old);
        }
        Ok(set?)
    }

    /// ([`cuGraphExec…SetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn set_parameters(&self, place: NodePlace, parameters: &Parameters) -> DriverResult<()> {
        let context = &self.inner.resources.shared.context;
        let (driver, ctx) = (context.driver(), context.raw());
        let (exec, node) = (self.inner.units[place.unit].executable.raw(), place.node);
        // SAFETY: the node is of the graph that the executable was made from, and of the kind of the parameters, which
        // the core has checked; what they refer to is held by the executable.
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
                    // It is of another device, which the core has ruled out.
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
