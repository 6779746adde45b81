//! Copying a graph and everything inside it into another definition, for embedding and cloning.

use rustc_hash::{FxHashMap, FxHashSet};

use super::definition::{
    ConditionData, ConditionKey, Definition, EdgeEnd, GraphData, GraphKey, NodeData, NodeKey,
};
use super::lifetimes::uses_deleted_memory;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Base, Region};
use crate::op::{Operation, Reference, Test};

/// Maps the nodes, conditions and graphs of the source to those of the copy.
#[derive(Default)]
pub(crate) struct Mapping {
    pub(crate) nodes: FxHashMap<NodeKey, NodeKey>,
    pub(crate) conditions: FxHashMap<ConditionKey, ConditionKey>,
    pub(crate) graphs: FxHashMap<GraphKey, GraphKey>,
}

impl Definition {
    /// Copies the contents of the graph `from` of `source`, with all graphs inside, into the empty
    /// graph `into`.
    ///
    /// Fails, before anything changes, if a node refers to an allocation outside of `from`.
    pub(crate) fn copy_from(
        &mut self,
        source: &Definition,
        from: GraphKey,
        into: GraphKey,
    ) -> Result<Mapping> {
        let graphs = source.graphs_inside(from);
        source.check_self_contained(&graphs)?;

        let mut map = Mapping::default();
        map.graphs.insert(from, into);
        for &graph in &graphs[1..] {
            map.graphs.insert(graph, self.graphs.insert(GraphData::default()));
        }
        for key in source.conditions_of(&graphs) {
            let data = source.get_condition(key).expect("listed");
            // If the body uses a condition of an outer graph, the copy gets a condition of its own.
            let scope = map.graphs.get(&data.scope).copied().unwrap_or(into);
            let copy = ConditionData { scope, default: data.default, used_by: None };
            map.conditions.insert(key, self.conditions.insert(copy));
        }
        // All keys are reserved first, because nodes refer to each other in both directions.
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
            let members = source.nodes(graph).map(|key| map.nodes[&key]).collect();
            let target = self.graphs.get_mut(map.graphs[&graph]).expect("inserted");
            target.members = members;
            target.next_order = source_graph.next_order;
            target.first_order = source_graph.first_order;
            target.next_serial = source_graph.next_serial;
            target.reordered = source_graph.reordered;
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
                self.kinds.insert(operation.kind());
                copy.operation = operation;
                copy.predecessors = ends(&node.predecessors);
                copy.successors = ends(&node.successors);
            }
        }
        Ok(map)
    }

    /// Copies the definition under a new number, so that no key of one is a key of the other. All
    /// entries keep their index.
    ///
    /// The definition has passed the checks of instantiation, so every key in it is valid.
    pub(crate) fn renumbered(&self) -> Definition {
        let mut copy = self.clone();
        let number = Definition::next_number();
        let graph = |key: GraphKey| key.local().of(number);
        let node = |key: NodeKey| key.local().of(number);
        let map = Mapping {
            nodes: self.nodes.iter().map(|(key, _)| (key, node(key))).collect(),
            conditions: self.conditions.iter().map(|(key, _)| (key, key.local().of(number))).collect(),
            graphs: self.graphs.iter().map(|(key, _)| (key, graph(key))).collect(),
        };
        for (_, data) in copy.nodes.iter_mut() {
            data.graph = graph(data.graph);
            if has_keys(&data.operation) {
                data.operation = map.operation(&data.operation);
            }
            for edge in data.predecessors.iter_mut().chain(&mut data.successors) {
                edge.node = node(edge.node);
            }
        }
        for (_, data) in copy.graphs.iter_mut() {
            data.owner = data.owner.map(|(owner, index)| (node(owner), index));
            data.members.iter_mut().for_each(|member| *member = node(*member));
        }
        for (_, data) in copy.conditions.iter_mut() {
            data.scope = graph(data.scope);
            data.used_by = data.used_by.map(node);
        }
        copy.root = graph(copy.root);
        copy.nodes.set_owner(number);
        copy.graphs.set_owner(number);
        copy.conditions.set_owner(number);
        copy
    }

    /// Returns `graph` and all graphs inside it, outermost first.
    pub(crate) fn graphs_inside(&self, graph: GraphKey) -> Vec<GraphKey> {
        let mut found = vec![graph];
        let mut next = 0;
        while next < found.len() {
            let graph = found[next];
            for node in self.nodes(graph) {
                found.extend_from_slice(self.node(node).bodies());
            }
            next += 1;
        }
        found
    }

    /// Returns the conditions that these graphs made, or that nodes in them set or test, each once.
    pub(crate) fn conditions_of(&self, graphs: &[GraphKey]) -> Vec<ConditionKey> {
        let inside: FxHashSet<GraphKey> = graphs.iter().copied().collect();
        let own = self.conditions().filter(|(_, data)| inside.contains(&data.scope)).map(|(key, _)| key);
        let mut found: Vec<ConditionKey> = own.collect();
        for &graph in graphs {
            for node in self.nodes(graph) {
                self.node(node).operation.for_each_condition(|condition| found.push(condition));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Checks that nodes in these graphs use only memory of alloc nodes in these graphs.
    fn check_self_contained(&self, graphs: &[GraphKey]) -> Result<()> {
        let inside: FxHashSet<GraphKey> = graphs.iter().copied().collect();
        for &graph in graphs {
            for key in self.nodes(graph) {
                let mut outside = None;
                self.node(key).operation.for_each_alloc_node(|alloc| {
                    if self.get_node(alloc).is_none_or(|alloc| !inside.contains(&alloc.graph)) {
                        outside = Some(alloc);
                    }
                });
                let Some(alloc) = outside else { continue };
                if self.get_node(alloc).is_none() {
                    return Err(uses_deleted_memory(self, key));
                }
                let message = format!(
                    "uses the memory of {}, which is outside the graph to copy; copy the graph that allocates it",
                    self.label(alloc)
                );
                return Err(Error::new(ErrorKind::WrongGraph, message).at_node(self.label(key)));
            }
        }
        Ok(())
    }
}

/// Returns whether an operation holds keys of its definition. Such an operation means something
/// else in another definition.
pub(crate) fn has_keys(operation: &Operation) -> bool {
    let mut has_keys = !operation.bodies().is_empty();
    operation.for_each_alloc_node(|_| has_keys = true);
    operation.for_each_condition(|_| has_keys = true);
    has_keys
}

impl Mapping {
    /// Returns an operation with the keys of the copy.
    pub(crate) fn operation(&self, operation: &Operation) -> Operation {
        if !has_keys(operation) {
            return operation.clone();
        }
        operation.with_references(&mut |reference| match reference {
            Reference::Region(Region { base: Base::AllocNode(alloc), .. }) | Reference::AllocNode(alloc) => {
                *alloc = self.nodes[alloc];
            }
            Reference::Region(_) => {}
            Reference::Condition(condition) => *condition = self.conditions[condition],
            Reference::Graph(graph) => *graph = self.graphs[graph],
        })
    }
}
