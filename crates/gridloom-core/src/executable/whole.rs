//! Whole updates in which nothing but plain values differs.
//!
//! A graph that is built again and again in the same way, to update an executable, differs in a few numbers. One pass over both definitions then finds what differs and
//! writes it to the [ready](super::ready) arguments of the nodes: no list of operations is made, and none is exchanged. Whatever else there is to an update, or to be
//! said about what does not match, is left to the general way.

use super::ready::{Ready, Refusal, Written};
use crate::backend;
use crate::graph::{Definition, NodeData, NodeKey};
use crate::op::{NodeKind, NodeKinds};

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

/// Gives the nodes of a definition the values that those of another one have, where nothing else differs. Else everything is as it was, but for the nodes in the list where
/// the backend failed.
pub(super) fn take_values(
    definition: &Definition,
    ready: &mut Ready,
    backend: &mut dyn backend::Executable,
    source: &Definition,
) -> Result<(), (Refusal, Vec<NodeKey>)> {
    let mut written = Written::default();
    let outcome = write_values(definition, ready, backend, source, &mut written)
        .and_then(|()| ready.tell(backend, written.numbers().iter().copied()));
    outcome.map_err(|refusal| {
        ready.take_back(&written);
        (refusal, written.numbers().iter().map(|&number| ready.node(number)).collect())
    })
}

/// Writes values that differ.
fn write_values(
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
            && ready.take_value(definition, backend, node, (&old.operation, &new.operation), written)
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
