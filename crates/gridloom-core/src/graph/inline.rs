//! Inlining: copying the nodes of one graph into another, where embedding would add a child node.

use super::definition::{Definition, EdgeKind, GraphData, GraphKey, NodeKey};
use crate::error::Result;

/// The result of inlining a graph.
pub(crate) struct Inlined {
    /// The copies of its nodes, in the order in which the originals were added.
    pub(crate) nodes: Vec<NodeKey>,
    /// The copies that have no successors.
    pub(crate) last: Vec<NodeKey>,
}

impl Definition {
    /// Copies the nodes of the graph `from` of `source`, with all graphs inside, into the graph
    /// `into`. The first ones depend on `after`, which must exist.
    ///
    /// Fails, before anything changes, if a node refers to an allocation outside of `from`.
    pub(crate) fn inline_from(
        &mut self,
        source: &Definition,
        from: GraphKey,
        into: GraphKey,
        after: &[NodeKey],
    ) -> Result<Inlined> {
        // The nodes are copied into a temporary graph, as for a child, and then moved over.
        let place = self.graphs.insert(GraphData::default());
        if let Err(error) = self.copy_from(source, from, place) {
            self.graphs.remove(place);
            return Err(error);
        }
        let GraphData { members: nodes, first_order, next_order, reordered, .. } =
            self.graphs.remove(place).expect("inserted");
        for (_, condition) in self.conditions.iter_mut().filter(|(_, data)| data.scope == place) {
            condition.scope = into;
        }
        let target = self.graphs.get_mut(into).expect("checked");
        let (order, serial) = (target.next_order - first_order, target.next_serial);
        target.next_order = next_order + order;
        target.next_serial = serial.wrapping_add(nodes.len() as u32);
        target.reordered |= reordered;
        target.members.extend_from_slice(&nodes);
        let mut last = Vec::new();
        for (&key, number) in nodes.iter().zip(0u32..) {
            let node = self.nodes.get_mut(key).expect("copied");
            node.graph = into;
            node.order += order;
            node.serial = serial.wrapping_add(number);
            if node.successors.is_empty() {
                last.push(key);
            }
            if node.predecessors.is_empty() {
                for &before in after {
                    self.link(before, key, EdgeKind::Full);
                }
            }
        }
        Ok(Inlined { nodes: nodes.into_vec(), last })
    }
}
