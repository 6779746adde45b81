//! Whole updates in which nothing but arguments of kernels differs.
//!
//! A graph that is built again and again in the same way, to update an executable, differs in a few numbers and arrays. One pass over both definitions then finds what differs and
//! writes it to the [ready](super::ready) arguments of the nodes; another has them keep the memory they are given: no list of operations is made, and none is exchanged. Whatever else
//! there is to an update, or to be said about what does not match, is left to the general way.

use std::sync::Arc;

use super::ready::{Ready, Refusal, Written};
use crate::backend::{self, Allocation};
use crate::graph::{Definition, NodeData, NodeKey};
use crate::memory::{Base, Region};
use crate::op::{NodeKind, NodeKinds, Operation, PointerValue};

/// What names no other node, condition or graph of its definition.
const SIMPLE: NodeKinds = NodeKinds::of(&[
    NodeKind::Empty,
    NodeKind::Kernel,
    NodeKind::Memset,
    NodeKind::Memcpy,
    NodeKind::Callback,
    NodeKind::EventRecord,
    NodeKind::EventWait,
]);

/// Gives the nodes of a definition the arguments that those of another one have, where nothing else differs. Else everything is as it was, but for the nodes in the list where
/// the backend failed.
pub(super) fn take_arguments(
    definition: &Definition,
    ready: &mut Ready,
    backend: &mut dyn backend::Executable,
    source: &Definition,
) -> Result<Written, (Refusal, Vec<NodeKey>)> {
    let mut written = Written::default();
    let outcome = write_arguments(definition, ready, backend, source, &mut written)
        .and_then(|()| ready.tell(backend, written.numbers().iter().copied()));
    match outcome {
        Ok(()) => Ok(written),
        Err(refusal) => {
            ready.take_back(&written);
            Err((refusal, written.numbers().iter().map(|&number| ready.node(number)).collect()))
        }
    }
}

/// Has the nodes of a definition keep the memory that they were given, and launches in flight what they were given before, which is returned to be dropped outside of
/// any lock.
pub(super) fn keep_memory(
    definition: &mut Definition,
    ready: &Ready,
    backend: &mut dyn backend::Executable,
    source: &Definition,
    written: &Written,
) -> Vec<PointerValue> {
    let mut replaced = Vec::with_capacity(written.moved().len());
    for &(number, other) in written.moved() {
        let node = definition.nodes.get_mut(ready.node(number));
        if let (Some(Operation::Kernel(old)), Operation::Kernel(new)) =
            (node.map(|node| &mut node.operation), &source.node(other).operation)
        {
            let pointers = &mut old.make_mut().args.pointers;
            for given in &new.args.pointers {
                let there = pointers.iter_mut().find(|pointer| pointer.index == given.index);
                if let Some(there) = there
                    && there.value != given.value
                {
                    replaced.push(std::mem::replace(&mut there.value, given.value.clone()));
                }
            }
        }
    }
    let mut memory: Vec<&Arc<dyn Allocation>> = Vec::new();
    for value in &replaced {
        if let PointerValue::Region(Region { base: Base::Allocation(old), .. }) = value
            && !memory.last().is_some_and(|last| Arc::ptr_eq(last, old))
        {
            memory.push(old);
        }
    }
    if !memory.is_empty() {
        backend.keep(&memory);
    }
    replaced
}

/// Writes arguments that differ.
fn write_arguments(
    definition: &Definition,
    ready: &mut Ready,
    backend: &mut dyn backend::Executable,
    source: &Definition,
    written: &mut Written,
) -> Result<(), Refusal> {
    if !definition.kinds.are_among(SIMPLE) || !source.kinds.are_among(SIMPLE) {
        return Err(Refusal::Other);
    }
    let (Some(ours), Some(theirs)) = (definition.graphs.get(definition.root), source.graphs.get(source.root))
    else {
        return Err(Refusal::Other);
    };
    if ours.dead + theirs.dead != 0 || ours.members.len() != theirs.members.len() {
        return Err(Refusal::Other);
    }
    let is_all = ours.members.iter().zip(&theirs.members).all(|(&node, &other)| {
        let (old, new) = (definition.node(node), source.node(other));
        node.index() == other.index()
            && has_same_edges(old, new)
            && ready.take_arguments(
                definition,
                backend,
                (node, &old.operation),
                (other, &new.operation),
                written,
            )
    });
    if is_all { Ok(()) } else { Err(Refusal::Other) }
}

/// Whether two nodes depend on nodes at the same places, in the same order.
#[inline]
fn has_same_edges(one: &NodeData, other: &NodeData) -> bool {
    let (ours, theirs) = (&one.predecessors, &other.predecessors);
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(ours, theirs)| ours.node.index() == theirs.node.index() && ours.kind == theirs.kind)
}
