//! Changing what an executable does, without compiling it again.
//!
//! Everything that can fail comes before, or inside, the one backend call; when that call fails, the definition that the executable keeps is put back
//! as it was. What is replaced is dropped after all locks are released.

use std::sync::Arc;

use smallvec::SmallVec;

use super::change::{Change, Part};
use super::follow::{Follower, Value};
use super::ready::{ArgWriter, Refusal, Which};
use super::{Executable, State};
use crate::backend;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::graph::{Checker, Definition, Graph, GraphKey, Node, NodeKey, check_contract, compare, lifetimes};
use crate::memory::{Base, Region};
use crate::op::{ArgValue, ConditionalOp, Launch, NodeKind, Operation, PointerValue, Test};

/// A region that was checked: its allocation, which the changes keep alive meanwhile, its start and its bytes.
type Checked = (*const (), u64, u64);

/// One lies in place: most changes are of one node, and made often.
type Changes = SmallVec<[Change; 1]>;

impl Executable {
    /// Takes over all parameters of a graph with the same topology, or changes nothing.
    ///
    /// Nodes are paired in the order in which they were added, graph by graph. Where the topologies differ, the error names the first node that does
    /// not match. Allocations, conditions and bodies are part of the topology. Nodes that are disabled stay so. Only what really differs reaches the device.
    pub fn update(&self, graph: &Graph) -> Result<()> {
        if graph.device().id() != self.device.id() {
            bail!(WrongDevice, "the graph is for another device than the executable");
        }
        let source = graph.definition();
        if graph.key() != source.root() {
            bail!(InvalidArgument, "an executable is updated from a root graph; this one is inside another");
        }
        lifetimes::check(&source)?;
        // Declared before the lock is taken, and so dropped after it is released.
        let (mut changes, _replaced);
        let mut state = self.state.lock();
        let State { definition, backend, .. } = &mut *state;
        if let Some(replaced) = definition.take_arguments(&mut **backend, &source) {
            _replaced = replaced;
            return Ok(());
        }
        let root = state.definition.get().root();
        changes = changes_between(state.definition.get(), root, &source, source.root())?;
        self.take_over(&mut state, &mut changes)
    }

    /// Replaces what several nodes do by operations of the same kinds, all or none.
    pub fn set_operations<'a>(&self, changes: impl IntoIterator<Item = (&'a Node, Operation)>) -> Result<()> {
        let keyed = changes.into_iter().map(|(node, operation)| Ok((self.own_key(node)?, operation)));
        self.set_operations_at(keyed.collect::<Result<SmallVec<[_; 1]>>>()?)
    }

    /// Replaces what several nodes do, named by their keys in the definition, all or none.
    pub fn set_operations_at(&self, changes: impl IntoIterator<Item = (NodeKey, Operation)>) -> Result<()> {
        let changes = changes.into_iter().map(|(node, operation)| Change::operation(node, operation));
        self.change(&mut changes.collect::<Changes>())
    }

    /// Makes changes, one after the other, all or none. What they replaced is in their place then, to be dropped when it suits; on failure
    /// they are as they were, or say the same in another form.
    pub fn change(&self, changes: &mut [Change]) -> Result<()> {
        self.replace(&mut self.state.lock(), changes)
    }

    /// Has arguments of kernels follow values, which are those that they have now, until something else is changed. Whether they can: else, and where
    /// [`set_followed`](Executable::set_followed) cannot, [`change`](Executable::change) does the same.
    ///
    /// A call of many nodes that share a few values then costs little more than telling the device.
    pub fn follow(&mut self, followers: &[Follower]) -> bool {
        let State { definition, backend, .. } = self.state.get_mut();
        definition.follow(&mut **backend, followers)
    }

    /// Whether arguments follow values.
    #[inline]
    pub fn is_followed(&mut self) -> bool {
        self.state.get_mut().definition.is_followed()
    }

    /// Gives other values, each with its number, to the arguments that follow them, all or none. Whether that was all there was to do. What was replaced is in
    /// their places then, to be dropped when it suits; else they are as they were.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`](crate::op::KernelOp::with_args) with what becomes of the arguments.
    pub unsafe fn set_followed(&mut self, given: &mut [(u32, Value)]) -> bool {
        let checker = Checker { device: &*self.device, graph: None };
        let State { definition, backend, .. } = self.state.get_mut();
        definition.set_followed(&mut **backend, checker, given)
    }

    /// Points every use of the region `old` at the same byte of `new`, all or none, and says how many there were. See [`Graph::replace_region`].
    ///
    /// # Safety
    /// As for [`Graph::replace_region`].
    pub unsafe fn replace_region(&self, old: &Region, new: &Region) -> Result<usize> {
        // Declared before the lock is taken, and so dropped after it is released.
        let mut changes: Changes;
        let mut state = self.state.lock();
        let definition = state.definition.get();
        // SAFETY: the caller makes the same promise.
        let replacement = unsafe { definition.with_memory_replaced(definition.root(), old, new) }?;
        let operations = replacement.operations.into_iter();
        changes = operations.map(|(node, operation)| Change::operation(node, operation)).collect();
        self.replace(&mut state, &mut changes)?;
        Ok(replacement.uses)
    }

    /// Puts the operations of a graph that was checked in place and tells the backend; as [`replace`](Self::replace) does.
    fn take_over(&self, state: &mut State, changes: &mut [Change]) -> Result<()> {
        self.apply(state, changes, |definition, changes, made| {
            changes.iter_mut().for_each(|change| swap(definition, change));
            *made = changes.len();
            Ok(())
        })
    }

    /// Checks changes, puts them in place and tells the backend. What they replaced is then in `changes`, for the caller to drop without the
    /// lock; on failure everything is as before.
    fn replace(&self, state: &mut State, changes: &mut [Change]) -> Result<()> {
        self.apply(state, changes, |definition, changes, made| {
            let mut new_uses = false;
            let mut checked = None;
            while *made < changes.len() {
                self.exchange_arguments(definition, changes, made, &mut checked)?;
                if let Some(change) = changes.get_mut(*made) {
                    new_uses |= self.exchange(definition, change)?;
                    *made += 1;
                }
            }
            check_contracts(definition, changes)?;
            if new_uses {
                // Whether each use is ordered after the allocation and before its free takes the whole graph to tell.
                lifetimes::check(definition)?;
            }
            Ok(())
        })
    }

    /// Puts changes in place as `exchange` does, which counts them, and tells the backend; on failure everything is as before.
    fn apply(
        &self,
        state: &mut State,
        changes: &mut [Change],
        exchange: impl FnOnce(&mut Definition, &mut [Change], &mut usize) -> Result<()>,
    ) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let State { definition: current, backend, .. } = state;
        let mut made = 0;
        let mut outcome = exchange(current.get_mut(), changes, &mut made);
        if outcome.is_ok() {
            outcome = match current.tell(&mut **backend, changes) {
                Ok(()) => Ok(()),
                Err(refusal) => {
                    if refusal == Refusal::Failed {
                        swap_back(current.get_mut(), changes);
                        backend.put_back(current.get_mut(), &[changes[0].node]);
                        changes.iter_mut().for_each(|change| swap(current.get_mut(), change));
                    }
                    backend.update(current.get_mut(), changes)
                }
            };
        }
        if outcome.is_err() {
            swap_back(current.get_mut(), &mut changes[..made]);
        }
        current.note(changes);
        outcome
    }

    /// Checks changes from `made` on, as long as they are arguments, and exchanges them for those that are there, until one is not of a kind with
    /// what it replaces. `checked` is the memory that was checked last: a call of a callable gives the same to many nodes.
    fn exchange_arguments(
        &self,
        definition: &mut Definition,
        changes: &mut [Change],
        made: &mut usize,
        checked: &mut Option<Checked>,
    ) -> Result<()> {
        let checker = Checker { device: &*self.device, graph: None };
        while let Some(Change { node: key, part: Part::Argument(..) }) = changes.get(*made) {
            let key = *key;
            let node = definition.nodes.get_mut(key);
            let Some(Operation::Kernel(kernel)) = node.map(|node| &mut node.operation) else { return Ok(()) };
            // Others may have it still: the graph, or whoever asked for it.
            let launch = kernel.make_mut();
            while let Some(Change { node, part: Part::Argument(index, value) }) = changes.get_mut(*made)
                && *node == key
            {
                let index = *index as usize;
                if let ArgValue::Pointer(PointerValue::Region(region)) = value
                    && let Base::Allocation(allocation) = &region.base
                {
                    let this = Some((Arc::as_ptr(allocation).cast(), region.offset, region.bytes));
                    if *checked != this {
                        if let Err(error) = checker.check_region_after(launch, index, region) {
                            return Err(error.at_node(definition.label(key)));
                        }
                        *checked = this;
                    }
                }
                if !launch.args.exchange(index, value) {
                    return Ok(());
                }
                *made += 1;
            }
        }
        Ok(())
    }

    /// Checks a change and exchanges it for what is there. Whether the node then uses memory of alloc nodes that it did not use before.
    fn exchange(&self, definition: &mut Definition, change: &mut Change) -> Result<bool> {
        let key = change.node;
        if definition.get_node(key).is_none() {
            bail!(InvalidHandle, "there is no node {key:?} in this executable");
        }
        if let Part::Argument(index, value) = &change.part {
            let launch = kernel_of(definition, key)?;
            let mut args = launch.args.clone();
            args.set_whole(launch.kernel.name(), *index as usize, value.clone())
                .map_err(|error| error.at_node(definition.label(key)))?;
            // SAFETY: whoever made the change promised it of the argument; the others are as whoever made the launch gave them.
            let launch = unsafe { launch.with_args(args) };
            change.part = Part::Operation(Operation::Kernel(Launch::new(launch)));
        }
        let Part::Operation(operation) = &mut change.part else { return Ok(false) };
        self.check_change(definition, key, operation)?;
        let there = &mut definition.nodes.get_mut(key).expect("found above").operation;
        let new_uses = uses_other_allocations(there, operation);
        std::mem::swap(there, operation);
        Ok(new_uses)
    }

    fn check_change(&self, definition: &Definition, key: NodeKey, operation: &Operation) -> Result<()> {
        let node = definition.node(key);
        let checker = Checker { device: &*self.device, graph: Some((definition, node.graph())) };
        let checked = match (node.operation(), operation) {
            (Operation::Kernel(old), Operation::Kernel(new)) => checker.check_kernel_after(old, new),
            (old, new) => check_replaceable(old, new).and_then(|()| match new {
                Operation::Conditional(conditional) => checker.check_replaced_test(&conditional.test),
                operation => checker.check(operation),
            }),
        };
        checked.map_err(|error| error.at_node(definition.label(key)))
    }

    /// One node of the executable: what it does now, and ways to change it.
    // Always: what comes back from a call in parts is slow to move, about as slow as all else that is ours of a change.
    #[inline(always)]
    pub fn node(&self, node: &Node) -> Result<ExecutableNode<'_>> {
        if self.owns(node) {
            Ok(ExecutableNode { executable: self, key: node.key() })
        } else {
            Ok(ExecutableNode { executable: self, key: self.key_of_copy(node)? })
        }
    }
}

/// Checks that the kernels of changed nodes are launched as their contracts ask, once all changes are made: one alone need not
/// keep a contract that several keep together.
fn check_contracts(definition: &Definition, changes: &[Change]) -> Result<()> {
    for (index, change) in changes.iter().enumerate() {
        if changes.get(index + 1).is_some_and(|next| next.node == change.node) {
            continue;
        }
        if let Some(Operation::Kernel(launch)) = definition.get_node(change.node).map(|node| node.operation())
        {
            check_contract(launch).map_err(|error| error.at_node(definition.label(change.node)))?;
        }
    }
    Ok(())
}

/// Exchanges changes, which were made, for what was there before.
#[cold]
fn swap_back(definition: &mut Definition, changes: &mut [Change]) {
    // Backwards, since a node may have been named twice.
    changes.iter_mut().rev().for_each(|change| swap(definition, change));
}

/// Exchanges a change, which fits, for what is there.
fn swap(definition: &mut Definition, change: &mut Change) {
    let there = &mut definition.nodes.get_mut(change.node).expect("a node of this executable").operation;
    match (&mut change.part, there) {
        (Part::Operation(operation), there) => std::mem::swap(there, operation),
        (Part::Argument(index, value), Operation::Kernel(kernel)) => {
            let exchanged = kernel.make_mut().args.exchange(*index as usize, value);
            debug_assert!(exchanged, "it was there before");
        }
        (Part::Argument(..), _) => {}
    }
}

/// The parameters of `new` that differ from `old`, in terms of `old`, or the first difference of topology.
fn changes_between(
    old: &Definition,
    old_graph: GraphKey,
    new: &Definition,
    new_graph: GraphKey,
) -> Result<Changes> {
    let comparison = compare(old, old_graph, new, new_graph);
    if let Some(first) = comparison.topology.into_iter().next() {
        let error = Error::new(ErrorKind::TopologyMismatch, format!("the graphs differ: {first}"));
        return Err(match first.node {
            Some(node) => error.at_node(old.label(node)),
            None => error,
        });
    }
    let changed = comparison.parameters.into_iter();
    Ok(changed.map(|(node, _, operation)| Change::operation(node, operation)).collect())
}

/// A node of an [`Executable`]. What is set here changes that executable alone, from its next launch on.
#[derive(Clone, Copy)]
pub struct ExecutableNode<'a> {
    executable: &'a Executable,
    key: NodeKey,
}

impl ExecutableNode<'_> {
    /// What the executable will do at this node when it is launched next.
    pub fn operation(&self) -> Operation {
        self.executable.state.lock().definition.get().node(self.key).operation().clone()
    }

    /// The node's name.
    pub fn label(&self) -> String {
        self.executable.definition().label(self.key)
    }

    /// Replaces what the node does by an operation of the same kind, or changes nothing.
    pub fn set_operation(&self, operation: Operation) -> Result<()> {
        self.executable.set_operations_at([(self.key, operation)])
    }

    /// The executable.
    pub fn executable(&self) -> &Executable {
        self.executable
    }

    /// The node's key in the definition.
    pub fn key(&self) -> NodeKey {
        self.key
    }

    /// Makes changes that are of all arguments of this node, in their order, where it launches `kernel`. As for [`Executable::change`].
    pub fn change_args(&self, kernel: &Arc<dyn backend::Kernel>, changes: &mut [Change]) -> Result<()> {
        let mut state = self.executable.state.lock();
        let current = kernel_of(state.definition.get(), self.key)?;
        if !Arc::ptr_eq(&current.kernel, kernel) {
            bail!(
                InvalidArgument,
                "the node launches {}, not {}; use set_kernel to launch another kernel",
                current.kernel.name(),
                kernel.name()
            );
        }
        if current.args.layout.len() != changes.len() {
            bail!(
                ParameterMismatch,
                "kernel {} takes {} parameters, {} arguments were given",
                kernel.name(),
                current.args.layout.len(),
                changes.len()
            );
        }
        self.executable.replace(&mut state, changes)
    }

    /// Has `write` give the node other plain values, where it launches `kernel`: all its arguments, of which those that are memory are the memory that it has. Whether that
    /// is so; else nothing is changed, and [`change_args`](ExecutableNode::change_args) does it or says what is wrong.
    ///
    /// `write` must not call the executable.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`](crate::op::KernelOp::with_args) with these arguments, if the node launches this kernel.
    #[inline]
    pub unsafe fn set_values(
        &self,
        kernel: &Arc<dyn backend::Kernel>,
        write: impl FnOnce(&mut ArgWriter<'_>) -> bool,
    ) -> bool {
        let State { definition, backend, .. } = &mut *self.executable.state.lock();
        definition.set(&mut **backend, &self.key, Which::All(kernel), write)
    }

    /// The same for one argument, by its place.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`](crate::op::KernelOp::with_args) with what becomes of the arguments.
    #[inline]
    pub unsafe fn set_value(&self, index: usize, value: &[u8]) -> bool {
        let State { definition, backend, .. } = &mut *self.executable.state.lock();
        definition.set(&mut **backend, &self.key, Which::One(index), |writer| writer.plain(value))
    }

    /// Launches the node's kernel with another value at byte `offset` of argument `index`, or changes nothing.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`](crate::op::KernelOp::with_args) with what becomes of the arguments.
    pub unsafe fn replace_arg_part(&self, index: usize, offset: usize, value: ArgValue) -> Result<()> {
        // Declared before the lock is taken, and so dropped after it is released; a failing `set` drops its own.
        let _value = value.clone();
        let mut changes;
        let mut state = self.executable.state.lock();
        let current = kernel_of(state.definition.get(), self.key)?;
        let mut args = current.args.clone();
        args.set(current.kernel.name(), index, offset, value)?;
        // SAFETY: the caller promises it of the new value; the others are as whoever made the launch gave them.
        let launch = unsafe { current.with_args(args) };
        changes = [Change::operation(self.key, Operation::Kernel(Launch::new(launch)))];
        self.executable.replace(&mut state, &mut changes)
    }

    /// Takes over the parameters of a graph with the same topology as the one embedded at this child node.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        let executable = self.executable;
        if graph.device().id() != executable.device.id() {
            bail!(WrongDevice, "the graph is for another device than the executable");
        }
        let source = graph.definition();
        lifetimes::check(&source)?;
        // Declared before the lock is taken, and so dropped after it is released.
        let mut changes;
        let mut state = executable.state.lock();
        let Operation::Child(child) = *state.definition.get().node(self.key).operation() else {
            bail!(InvalidArgument, "{} is not a child node", state.definition.get().label(self.key));
        };
        changes = changes_between(state.definition.get(), child, &source, graph.key())?;
        executable.take_over(&mut state, &mut changes)
    }

    /// Whether the node does its work. Every node does at first.
    pub fn is_enabled(&self) -> bool {
        !self.executable.state.lock().disabled.contains(&self.key)
    }

    /// Lets a kernel, copy or fill do its work, or makes it do nothing while keeping its place in the order.
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        let mut state = self.executable.state.lock();
        let kind = state.definition.get().node(self.key).operation().kind();
        if !matches!(kind, NodeKind::Kernel | NodeKind::Memcpy | NodeKind::Memset) {
            bail!(
                InvalidArgument,
                "{} cannot be disabled: only kernels, copies and fills can",
                state.definition.get().label(self.key)
            );
        }
        if state.disabled.contains(&self.key) != enabled {
            return Ok(());
        }
        let State { definition, backend, disabled, .. } = &mut *state;
        backend.set_enabled(definition.get(), self.key, enabled)?;
        if enabled {
            disabled.remove(&self.key);
        } else {
            disabled.insert(self.key);
        }
        Ok(())
    }
}

/// The launch of a kernel node.
fn kernel_of(definition: &Definition, key: NodeKey) -> Result<&Launch> {
    match definition.node(key).operation() {
        Operation::Kernel(kernel) => Ok(kernel),
        other => bail!(InvalidArgument, "a {} node launches no kernel", other.kind().name()),
    }
}

/// Whether an operation uses memory of alloc nodes that the one before it at the same node does not.
fn uses_other_allocations(old: &Operation, new: &Operation) -> bool {
    let mut other = false;
    new.for_each_alloc_node(|alloc| {
        let mut known = false;
        old.for_each_alloc_node(|used| known |= used == alloc);
        other |= !known;
    });
    other
}

/// Checks that one operation may take the place of another.
pub(crate) fn check_replaceable(old: &Operation, new: &Operation) -> Result<()> {
    if old.kind() != new.kind() {
        bail!(
            InvalidArgument,
            "a {} node cannot become a {} node; delete it and add another",
            old.kind().name(),
            new.kind().name()
        );
    }
    match new.kind() {
        NodeKind::Kernel
        | NodeKind::Memset
        | NodeKind::Memcpy
        | NodeKind::Callback
        | NodeKind::EventRecord
        | NodeKind::EventWait
        | NodeKind::Opaque => Ok(()),
        kind => match (old, new) {
            (Operation::Conditional(old), Operation::Conditional(new)) => {
                check_replaceable_conditional(old, new)
            }
            _ => bail!(InvalidArgument, "a {} node has no parameters that can be replaced", kind.name()),
        },
    }
}

/// A conditional may test other memory or make other passes; what decides it, and its bodies, stay.
fn check_replaceable_conditional(old: &ConditionalOp, new: &ConditionalOp) -> Result<()> {
    let same_test = match (&old.test, &new.test) {
        (Test::Value(_), Test::Value(_)) | (Test::Count(_), Test::Count(_)) => true,
        (old, new) => old == new,
    };
    if !same_test || old.test_first != new.test_first || old.bodies != new.bodies {
        bail!(
            InvalidArgument,
            "the bodies of a conditional, and what kind of value decides it, cannot be replaced; delete it and add another"
        );
    }
    Ok(())
}
