//! Copying a graph, with everything inside it, into another definition: what embedding and cloning do.

use std::collections::HashMap;
use std::sync::Arc;

use super::definition::{
    ConditionData, ConditionKey, Definition, EdgeEnd, GraphData, GraphKey, NodeData, NodeKey,
};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Base, Region};
use crate::op::{FreeTarget, Operation, PointerValue, Test};

/// Which node and condition of the source became which of the copy.
#[derive(Default)]
pub(crate) struct Mapping {
    pub(crate) nodes: HashMap<NodeKey, NodeKey>,
    graphs: HashMap<GraphKey, GraphKey>,
    conditions: HashMap<ConditionKey, ConditionKey>,
}

impl Definition {
    /// Copies the contents of `from` in `source`, and all graphs inside it, into the empty graph `into` of `self`.
    ///
    /// Fails, before anything is changed, when a node refers to an allocation outside of `from`.
    pub(crate) fn copy_from(
        &mut self,
        source: &Definition,
        from: GraphKey,
        into: GraphKey,
    ) -> Result<Mapping> {
        let graphs = source.graphs_inside(from);
        self.check_self_contained(source, &graphs)?;

        let mut map = Mapping::default();
        map.graphs.insert(from, into);
        for &graph in &graphs[1..] {
            map.graphs.insert(graph, self.graphs.insert(GraphData::default()));
        }
        for (key, data) in source.conditions() {
            // A condition of an outer graph that is used inside comes along, as a condition of the copy.
            let scope = map.graphs.get(&data.scope).copied().unwrap_or(into);
            let copy = ConditionData { scope, default: data.default, used_by: None };
            map.conditions.insert(key, self.conditions.insert(copy));
        }
        // Reserve all keys first, since nodes refer to each other in both directions.
        for &graph in &graphs {
            for key in source.nodes(graph) {
                let node = source.node(key);
                let copy = NodeData {
                    graph: map.graphs[&graph],
                    operation: Operation::Empty,
                    name: node.name.clone(),
                    serial: node.serial,
                    order: node.order,
                    predecessors: Default::default(),
                    successors: Default::default(),
                };
                map.nodes.insert(key, self.nodes.insert(copy));
            }
        }
        for &graph in &graphs {
            let source_graph = source.graphs.get(graph).expect("listed");
            let members: Vec<NodeKey> = source.nodes(graph).map(|key| map.nodes[&key]).collect();
            let target = self.graphs.get_mut(map.graphs[&graph]).expect("inserted");
            target.members = members;
            target.next_order = source_graph.next_order;
            target.next_serial = source_graph.next_serial;
            if graph != from {
                target.owner = source_graph.owner.map(|(node, index)| (map.nodes[&node], index));
            }
            for key in source.nodes(graph) {
                let node = source.node(key);
                let operation = map.operation(&node.operation);
                if let Operation::Conditional(conditional) = &operation
                    && let Test::Condition(condition) = conditional.test
                {
                    let used_by = &mut self.conditions.get_mut(condition).expect("mapped").used_by;
                    *used_by = Some(map.nodes[&key]);
                }
                let ends = |edges: &[EdgeEnd]| {
                    edges
                        .iter()
                        .map(|edge| EdgeEnd { node: map.nodes[&edge.node], kind: edge.kind })
                        .collect()
                };
                let copy = self.nodes.get_mut(map.nodes[&key]).expect("inserted");
                copy.operation = operation;
                copy.predecessors = ends(&node.predecessors);
                copy.successors = ends(&node.successors);
            }
        }
        Ok(map)
    }

    /// `graph` and all graphs inside it, outermost first.
    pub(crate) fn graphs_inside(&self, graph: GraphKey) -> Vec<GraphKey> {
        let mut found = vec![graph];
        let mut next = 0;
        while next < found.len() {
            let graph = found[next];
            for node in self.nodes(graph) {
                found.extend(self.bodies(node));
            }
            next += 1;
        }
        found
    }

    fn check_self_contained(&self, source: &Definition, graphs: &[GraphKey]) -> Result<()> {
        let inside: std::collections::HashSet<GraphKey> = graphs.iter().copied().collect();
        for &graph in graphs {
            for key in source.nodes(graph) {
                let operation = &source.node(key).operation;
                let mut outside = None;
                let mut visit = |alloc: NodeKey| {
                    if source.get_node(alloc).is_none_or(|alloc| !inside.contains(&alloc.graph)) {
                        outside = Some(alloc);
                    }
                };
                operation.for_each_region(|region| {
                    if let Base::AllocNode(alloc) = region.base {
                        visit(alloc);
                    }
                });
                if let Operation::Free(FreeTarget::AllocNode(alloc)) = operation {
                    visit(*alloc);
                }
                if let Some(alloc) = outside {
                    return Err(Error::new(
                        ErrorKind::WrongGraph,
                        format!("uses the memory of {}, which is outside the graph to copy; copy the graph that allocates it", source.label(alloc)),
                    )
                    .at_node(source.label(key)));
                }
            }
        }
        Ok(())
    }
}

impl Mapping {
    fn region(&self, region: &Region) -> Region {
        let mut copy = region.clone();
        if let Base::AllocNode(alloc) = &mut copy.base {
            *alloc = self.nodes[alloc];
        }
        copy
    }

    fn operation(&self, operation: &Operation) -> Operation {
        match operation {
            Operation::Kernel(kernel) if !kernel.args.pointers.is_empty() => {
                let mut kernel = (**kernel).clone();
                for pointer in &mut kernel.args.pointers {
                    match &mut pointer.value {
                        PointerValue::Region(region) => *region = self.region(region),
                        PointerValue::Condition(condition) => *condition = self.conditions[condition],
                    }
                }
                Operation::Kernel(Arc::new(kernel))
            }
            Operation::Memset(memset) => {
                let mut memset = (**memset).clone();
                memset.dst = self.region(&memset.dst);
                Operation::Memset(Arc::new(memset))
            }
            Operation::Memcpy(memcpy) => {
                let mut memcpy = (**memcpy).clone();
                memcpy.dst.region = self.region(&memcpy.dst.region);
                memcpy.src.region = self.region(&memcpy.src.region);
                Operation::Memcpy(Arc::new(memcpy))
            }
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                Operation::Free(FreeTarget::AllocNode(self.nodes[alloc]))
            }
            Operation::Child(graph) => Operation::Child(self.graphs[graph]),
            Operation::Conditional(conditional) => {
                let mut conditional = (**conditional).clone();
                match &mut conditional.test {
                    Test::Condition(condition) => *condition = self.conditions[condition],
                    Test::Value(region) => *region = self.region(region),
                    Test::Count(_) => {}
                }
                for body in &mut conditional.bodies {
                    *body = self.graphs[body];
                }
                Operation::Conditional(Arc::new(conditional))
            }
            other => other.clone(),
        }
    }
}
