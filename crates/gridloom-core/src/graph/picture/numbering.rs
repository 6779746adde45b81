//! The numbers that pictures use instead of keys and addresses.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::backend;
use crate::graph::definition::{ConditionKey, Definition, GraphKey, NodeKey};
use crate::memory::Base;
use crate::op::{FreeTarget, Operation};

/// Numbers for everything in a graph and the graphs inside it, in the order of appearance.
pub(super) struct Numbering {
    nodes: FxHashMap<NodeKey, usize>,
    pub(super) conditions: Vec<ConditionKey>,
    pub(super) buffers: Vec<Arc<dyn backend::Allocation>>,
    pub(super) events: Vec<Arc<dyn backend::Event>>,
    buffer_numbers: FxHashMap<*const (), usize>,
    event_numbers: FxHashMap<*const (), usize>,
}

impl Numbering {
    pub(super) fn new(definition: &Definition, graph: GraphKey) -> Self {
        let mut numbering = Numbering {
            nodes: FxHashMap::default(),
            conditions: definition.conditions_of(&definition.graphs_inside(graph)),
            buffers: Vec::new(),
            events: Vec::new(),
            buffer_numbers: FxHashMap::default(),
            event_numbers: FxHashMap::default(),
        };
        numbering.visit(definition, graph);
        numbering
    }

    /// Returns the number of a node, or `None` if it is not in the picture.
    pub(super) fn node(&self, node: NodeKey) -> Option<usize> {
        self.nodes.get(&node).copied()
    }

    pub(super) fn condition(&self, condition: ConditionKey) -> Option<usize> {
        // Conditions are sorted by key.
        self.conditions.binary_search(&condition).ok()
    }

    pub(super) fn buffer(&self, buffer: &Arc<dyn backend::Allocation>) -> usize {
        self.buffer_numbers[&Arc::as_ptr(buffer).cast()]
    }

    pub(super) fn event(&self, event: &Arc<dyn backend::Event>) -> usize {
        self.event_numbers[&Arc::as_ptr(event).cast()]
    }

    /// Numbers the nodes of a graph, each followed by what is inside it. The nesting of graphs
    /// bounds the recursion.
    fn visit(&mut self, definition: &Definition, graph: GraphKey) {
        for key in definition.nodes(graph) {
            let number = self.nodes.len();
            self.nodes.insert(key, number);
            let node = definition.node(key);
            node.operation.for_each_region(|region| {
                if let Base::Allocation(buffer) = &region.base {
                    self.add_buffer(buffer);
                }
            });
            if let Operation::Free(FreeTarget::Outliving(buffer)) = &node.operation {
                self.add_buffer(buffer);
            }
            if let Some(event) = node.operation.event() {
                let next = self.events.len();
                let number = *self.event_numbers.entry(Arc::as_ptr(event).cast()).or_insert(next);
                if number == next {
                    self.events.push(event.clone());
                }
            }
            for &body in node.bodies() {
                self.visit(definition, body);
            }
        }
    }

    fn add_buffer(&mut self, buffer: &Arc<dyn backend::Allocation>) {
        let next = self.buffers.len();
        let number = *self.buffer_numbers.entry(Arc::as_ptr(buffer).cast()).or_insert(next);
        if number == next {
            self.buffers.push(buffer.clone());
        }
    }
}
