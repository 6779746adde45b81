//! Which of the driver's nodes each node of a definition became.

use crate::sys::*;
use gridloom_core::graph::{Definition, NodeKey};
use rustc_hash::FxHashMap;

/// Where a node of the definition is among the driver's.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodePlace {
    /// Which unit of the executable.
    pub(super) unit: usize,
    pub(super) node: CUgraphNode,
}

/// The nodes of the kernels that decide a conditional.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeciderPlace {
    pub(super) handle: CUgraphConditionalHandle,
    pub(super) before: CUgraphNode,
    /// At the end of the body of a loop.
    pub(super) next: Option<CUgraphNode>,
}

/// Where every node is that has a place.
pub(super) struct Places {
    /// By the index of a node.
    nodes: Vec<Option<NodePlace>>,
    deciders: FxHashMap<NodeKey, DeciderPlace>,
}

impl Places {
    /// Room for the nodes of a definition.
    pub(super) fn new(definition: &Definition) -> Self {
        Self { nodes: vec![None; definition.node_bound()], deciders: FxHashMap::default() }
    }

    /// Notes where a node is, and what decides it.
    pub(super) fn set(&mut self, node: NodeKey, place: NodePlace, decider: Option<DeciderPlace>) {
        self.nodes[node.index()] = Some(place);
        self.deciders.extend(decider.map(|decider| (node, decider)));
    }

    pub(super) fn get(&self, node: NodeKey) -> Option<NodePlace> {
        self.nodes.get(node.index()).copied().flatten()
    }

    /// For a conditional that a kernel of Gridloom's decides.
    pub(super) fn decider(&self, node: NodeKey) -> Option<DeciderPlace> {
        self.deciders.get(&node).copied()
    }
}
