//! The order of nodes in a graph under capture.

use rustc_hash::FxHashSet;

use crate::error::{Result, bail};
use crate::graph::{Definition, GraphKey, NodeKey};

/// Some nodes of one graph with all their direct and indirect predecessors.
pub(super) struct Ancestors(FxHashSet<NodeKey>);

impl Ancestors {
    pub(super) fn of(definition: &Definition, nodes: &[NodeKey]) -> Self {
        let mut reached: FxHashSet<NodeKey> = nodes.iter().copied().collect();
        let mut stack = nodes.to_vec();
        while let Some(key) = stack.pop() {
            let edges = definition.get_node(key).map_or(&[][..], |node| node.predecessors());
            stack.extend(edges.iter().map(|edge| edge.node).filter(|&node| reached.insert(node)));
        }
        Ancestors(reached)
    }

    pub(super) fn contains(&self, node: NodeKey) -> bool {
        self.0.contains(&node)
    }
}

/// Returns whether a node is one of `later`, or a direct or indirect predecessor of one of them.
pub(super) fn leads_to(definition: &Definition, node: NodeKey, later: &[NodeKey]) -> bool {
    let first = definition.node(node).order;
    // Nodes before `first` in the topological order cannot come after the node, so the search skips
    // them.
    let mut stack: Vec<NodeKey> = later.to_vec();
    let mut seen: FxHashSet<NodeKey> = later.iter().copied().collect();
    while let Some(key) = stack.pop() {
        if key == node {
            return true;
        }
        let edges = definition.get_node(key).map_or(&[][..], |node| node.predecessors());
        let near = edges.iter().map(|edge| edge.node).filter(|&key| definition.node(key).order >= first);
        stack.extend(near.filter(|&key| seen.insert(key)));
    }
    false
}

/// The place where an event was recorded, as seen from a node that waits for it.
pub(super) enum Recorded {
    /// At this node of the waiting node's graph, or inside it. It does not yet precede the wait.
    At(NodeKey),
    /// Before the waiting node.
    Before,
    /// Outside of this hierarchy.
    Elsewhere,
}

/// Finds the place where an event was recorded, for a wait that depends on the nodes `tail` of
/// `graph`. `capturing` says whether the capture that recorded it is still in progress.
pub(super) fn wait_for(
    definition: &Definition,
    graph: GraphKey,
    tail: &[NodeKey],
    record: NodeKey,
    capturing: bool,
) -> Result<Recorded> {
    let Some(recorded_in) = definition.get_node(record).map(|node| node.graph()) else {
        return Ok(Recorded::Elsewhere);
    };
    if recorded_in != graph && capturing && !definition.encloses(recorded_in, graph) {
        bail!(
            InvalidState,
            "the event was recorded by {} in a body that is still being captured; end that body first",
            definition.label(record)
        );
    }
    if let Some(inside) = definition.ancestor_in(graph, record) {
        let before = leads_to(definition, inside, tail);
        return Ok(if before { Recorded::Before } else { Recorded::At(inside) });
    }
    let Some((owner, _)) = definition.owner(graph) else {
        return Ok(Recorded::Elsewhere);
    };
    let (earlier, later) = definition.in_common_graph(record, owner);
    if earlier == later || !leads_to(definition, earlier, &[later]) {
        bail!(
            Unordered,
            "the event is recorded by {}, which does not come before {}; make the conditional come after the recording",
            definition.label(record),
            definition.label(later)
        );
    }
    Ok(Recorded::Before)
}
