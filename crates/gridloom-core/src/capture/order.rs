//! The order of nodes in a graph under capture.

use rustc_hash::FxHashSet;

use super::session::Tail;
use crate::error::{Result, bail};
use crate::graph::{Definition, GraphKey, InsertionPoint, NodeKey};

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

/// Finds the nodes of `graph` that a wait has to follow, for an event that was recorded at a place
/// of the same hierarchy. The wait already depends on the nodes `tail`. `capturing` says whether
/// the capture that recorded the event is still in progress.
pub(super) fn wait_for(
    definition: &Definition,
    graph: GraphKey,
    tail: &[NodeKey],
    recorded: &InsertionPoint,
    capturing: bool,
) -> Result<Tail> {
    let encloses = definition.encloses(recorded.graph, graph);
    if recorded.nodes.is_empty() && encloses {
        return Ok(Tail::new());
    }
    // The start of a graph inside another node comes with that node.
    let owner = || definition.owner(recorded.graph).map(|(owner, _)| owner);
    let nodes =
        if recorded.nodes.is_empty() { owner().into_iter().collect() } else { recorded.nodes.clone() };
    let mut missing = Tail::new();
    for record in nodes {
        if capturing && !encloses {
            bail!(
                InvalidState,
                "the event was recorded by {} in a body that is still being captured; end that body first",
                definition.label(record)
            );
        }
        if let Some(inside) = definition.ancestor_in(graph, record) {
            if !leads_to(definition, inside, tail) {
                missing.push(inside);
            }
            continue;
        }
        let Some((owner, _)) = definition.owner(graph) else { continue };
        let (earlier, later) = definition.in_common_graph(record, owner);
        if earlier == later || !leads_to(definition, earlier, &[later]) {
            bail!(
                Unordered,
                "the event is recorded by {}, which does not come before {}; make the conditional come after the recording",
                definition.label(record),
                definition.label(later)
            );
        }
    }
    Ok(missing)
}
