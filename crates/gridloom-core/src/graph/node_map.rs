//! The map from a graph to its copy.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Condition, ConditionKey, Hierarchy, Node, NodeKey};

/// Maps the nodes and conditions of a graph to those of its copy. It keeps both graphs alive.
#[derive(Clone)]
pub struct NodeMap {
    pub(super) original: Arc<Hierarchy>,
    pub(super) copy: Arc<Hierarchy>,
    pub(super) nodes: FxHashMap<NodeKey, NodeKey>,
    pub(super) conditions: FxHashMap<ConditionKey, ConditionKey>,
}

impl NodeMap {
    /// Returns the copy of a node, or `None` if the node was not in the copied graph.
    pub fn get(&self, original: &Node) -> Option<Node> {
        if !Arc::ptr_eq(&original.hierarchy, &self.original) {
            return None;
        }
        self.nodes.get(&original.key()).map(|&key| Node::new(&self.copy, key))
    }

    /// Returns the copy of a condition, or `None` if the copied graph neither made nor used it.
    pub fn condition(&self, original: &Condition) -> Option<Condition> {
        if !Arc::ptr_eq(&original.hierarchy, &self.original) {
            return None;
        }
        self.conditions.get(&original.key).map(|&key| Condition { hierarchy: self.copy.clone(), key })
    }

    /// Returns the number of copied nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether no node was copied.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns all pairs of original and copy, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Node, Node)> + '_ {
        self.nodes.iter().map(|(&from, &to)| (Node::new(&self.original, from), Node::new(&self.copy, to)))
    }
}

impl fmt::Debug for NodeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
