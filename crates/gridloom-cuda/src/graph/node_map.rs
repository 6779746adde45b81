//! Which of the driver's nodes each node of a definition became.

use crate::sys::*;
use gridloom_core::graph::{Definition, NodeKey};
use rustc_hash::FxHashMap;
use std::ptr;

/// Where a node of the definition is among the driver's.
#[derive(Debug, Clone, Copy)]
pub(super) struct DriverNode {
    /// Which unit of the executable.
    pub(super) unit: usize,
    pub(super) node: CUgraphNode,
}

/// The nodes of the kernels that decide a conditional.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeciderNodes {
    pub(super) handle: CUgraphConditionalHandle,
    pub(super) before: CUgraphNode,
    /// At the end of the body of a loop.
    pub(super) next: Option<CUgraphNode>,
}

/// The driver nodes of all nodes that have one.
pub(super) struct NodeMap {
    /// By the index of a node. An entry without a driver node is empty.
    nodes: Vec<DriverNode>,
    deciders: FxHashMap<NodeKey, DeciderNodes>,
}

impl NodeMap {
    /// Makes an empty map for the nodes of a definition.
    pub(super) fn new(definition: &Definition) -> Self {
        let nowhere = DriverNode { unit: 0, node: ptr::null_mut() };
        Self { nodes: vec![nowhere; definition.node_bound()], deciders: FxHashMap::default() }
    }

    /// Notes where a node is, and what decides it.
    pub(super) fn set(&mut self, node: NodeKey, place: DriverNode, decider: Option<DeciderNodes>) {
        self.nodes[node.index()] = place;
        if let Some(decider) = decider {
            self.deciders.insert(node, decider);
        }
    }

    pub(super) fn get(&self, node: NodeKey) -> Option<DriverNode> {
        self.nodes.get(node.index()).copied().filter(|place| !place.node.is_null())
    }

    /// The index of the node of the definition that became this one of the driver's.
    pub(super) fn find(&self, node: CUgraphNode) -> Option<usize> {
        self.nodes.iter().position(|place| place.node == node)
    }

    /// Returns the deciding kernels of a conditional, if kernels of Gridloom's decide it.
    pub(super) fn decider(&self, node: NodeKey) -> Option<DeciderNodes> {
        self.deciders.get(&node).copied()
    }
}
