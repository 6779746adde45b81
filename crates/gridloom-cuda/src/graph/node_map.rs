//! Which of the driver's nodes each node of a definition became.

use crate::sys::*;
use gridloom_core::graph::{Definition, NodeKey};
use rustc_hash::{FxHashMap, FxHashSet};
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
    /// Kernels at the start and at the end of programmatic edges of the driver.
    triggers: FxHashSet<NodeKey>,
    early: FxHashSet<NodeKey>,
}

impl NodeMap {
    /// Makes an empty map for the nodes of a definition.
    pub(super) fn new(definition: &Definition) -> Self {
        let nowhere = DriverNode { unit: 0, node: ptr::null_mut() };
        let nodes = vec![nowhere; definition.node_bound()];
        let (triggers, early) = Default::default();
        Self { nodes, deciders: FxHashMap::default(), triggers, early }
    }

    /// Notes where a node is, and what decides it.
    pub(super) fn set(&mut self, node: NodeKey, place: DriverNode, decider: Option<DeciderNodes>) {
        self.nodes[node.index()] = place;
        if let Some(decider) = decider {
            self.deciders.insert(node, decider);
        }
    }

    /// Notes that the driver starts `to` before `from` has ended.
    pub(super) fn set_overlapping(&mut self, from: NodeKey, to: NodeKey) {
        self.triggers.insert(from);
        self.early.insert(to);
    }

    /// Returns whether the driver may start the node before a node it depends on has ended.
    #[inline]
    pub(super) fn is_early(&self, node: NodeKey) -> bool {
        !self.early.is_empty() && self.early.contains(&node)
    }

    /// Returns whether the driver may start the node before a node it depends on has ended, or
    /// another one before this node has ended.
    pub(super) fn is_overlapping(&self, node: NodeKey) -> bool {
        self.is_early(node) || self.triggers.contains(&node)
    }

    pub(super) fn get(&self, node: NodeKey) -> Option<DriverNode> {
        self.nodes.get(node.index()).copied().filter(|place| !place.node.is_null())
    }

    /// Returns the index of the node of the definition that became this one of the driver's.
    pub(super) fn find(&self, node: CUgraphNode) -> Option<usize> {
        self.nodes.iter().position(|place| place.node == node)
    }

    /// Returns the deciding kernels of a conditional, if kernels of Gridloom's decide it.
    pub(super) fn decider(&self, node: NodeKey) -> Option<DeciderNodes> {
        self.deciders.get(&node).copied()
    }
}
