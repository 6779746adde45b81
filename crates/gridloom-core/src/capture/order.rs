//! What comes before what in a graph that is being captured.

use rustc_hash::FxHashSet;

use crate::error::{Result, bail};
use crate::graph::{Definition, GraphKey, NodeKey};

/// Some nodes of one graph with all that they come after.
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

/// Whether a node is among these nodes of its graph, or comes before one of them.
pub(super) fn leads_to(definition: &Definition, node: NodeKey, later: &[NodeKey]) -> bool {
    let first = definition.node(node).order;
    // Nothing before `first` in the topological order can come after the node, so the search is as short as the way is.
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

/// Where an event was recorded, as seen by a node that waits for it.
pub(super) enum Recorded {
    /// By this node of the waiting node's own graph, or inside it, and not known to come before.
    At(NodeKey),
    /// Where it comes before the waiting node anyway.
    Before,
    /// Not in this hierarchy.
    Elsewhere,
}

/// How a wait that comes after the nodes `tail` of `graph` stands to the node that recorded the event. `capturing` tells whether the capture that recorded it goes on.
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
