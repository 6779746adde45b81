//! Copying the nodes of a graph into another one, among those that are there, where embedding would make a child node of them.

use super::definition::{Definition, EdgeKind, GraphData, GraphKey, NodeKey};
use crate::error::Result;

/// What a graph became.
pub(crate) struct Inlined {
    /// The copies of its nodes, in the order they were added to it.
    pub(crate) nodes: Vec<NodeKey>,
    /// Those that no other one follows.
    pub(crate) last: Vec<NodeKey>,
}

impl Definition {
    /// Copies the nodes of `from` in `source`, and all graphs inside it, into the graph `into`, the first ones after `after`, which exist.
    ///
    /// Fails, before anything is changed, when a node refers to an allocation outside of `from`.
    pub(crate) fn inline_from(
        &mut self,
        source: &Definition,
        from: GraphKey,
        into: GraphKey,
        after: &[NodeKey],
    ) -> Result<Inlined> {
        // Copied into a graph of their own first, as for a child, and then moved over.
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
