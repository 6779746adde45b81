//! Lowering of graphs node by node. Most graphs are lowered this way: nothing in them has to be
//! flattened, split or decided, so they need no plan.

use super::super::edges::Edges;
use super::super::node_map::DriverNode;
use super::Builder;
use crate::sys::*;
use gridloom_core::graph::{Definition, EdgeKind, NodeData, NodeKey};
use gridloom_core::op::{NodeKind, Operation};
use gridloom_core::{Error, ErrorKind, Result};

/// Returns whether a graph, none of whose nodes is disabled, can be lowered node for node.
pub(in super::super) fn is_plain(definition: &Definition) -> bool {
    definition.has_only(NodeKind::WORK) && !definition.may_have_conditions()
}

impl Builder<'_> {
    /// Adds every node of the definition, in order.
    pub(super) fn add_whole(&mut self, graph: CUgraph) -> Result<()> {
        let definition = self.definition;
        let mut edges = Edges::none();
        for &key in &*definition.topological(definition.root()) {
            let data = definition.node(key);
            let added = self
                .find_edges(&mut edges, key, data)
                .and_then(|()| self.add_operation(graph, &edges, key, data.operation()));
            let node = added.map_err(|error| error.at_node(definition.label(key)))?;
            self.node_map.set(key, DriverNode { unit: self.unit, node }, None);
        }
        Ok(())
    }

    /// Puts what a node waits for in the place of what `edges` has.
    fn find_edges(&mut self, edges: &mut Edges, key: NodeKey, node: &NodeData) -> Result<()> {
        edges.clear();
        for edge in node.predecessors() {
            let Some(before) = self.node_map.get(edge.node) else {
                return Err(Error::new(
                    ErrorKind::InvalidState,
                    "the node comes before a node that it depends on",
                ));
            };
            let early = edge.kind == EdgeKind::Programmatic
                && matches!(self.definition.node(edge.node).operation(), Operation::Kernel(_))
                && self.may_start_early(key);
            if early {
                self.node_map.set_overlapping(edge.node, key);
            }
            edges.push(before.node, early);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Sketch;
    use super::*;

    #[test]
    fn a_graph_is_plain_unless_something_in_it_has_to_be_planned() {
        let sketch = Sketch::new();
        let kernel = sketch.kernel(&[], &[]);
        sketch.callback_in(&sketch.graph, &[&kernel]);
        assert!(is_plain(&sketch.definition()));
        sketch.graph.join([&kernel]).unwrap();
        assert!(!is_plain(&sketch.definition()));
    }

    #[test]
    fn a_graph_with_a_condition_is_not_plain() {
        let sketch = Sketch::new();
        let condition = sketch.graph.condition(None);
        sketch.kernel(&[], &[&condition]);
        assert!(!is_plain(&sketch.definition()));
    }
}
