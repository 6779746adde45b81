//! Handles that do not keep a graph alive.

use std::fmt;
use std::sync::{Arc, Weak};

use super::definition::{GraphKey, NodeKey};
use super::{Graph, Hierarchy, Node};

/// A handle to a [`Graph`] that does not keep it alive, for a callback that refers to its own
/// graph.
#[derive(Clone)]
pub struct WeakGraph {
    hierarchy: Weak<Hierarchy>,
    key: GraphKey,
}

/// A handle to a [`Node`] that does not keep its graph alive.
#[derive(Clone)]
pub struct WeakNode {
    hierarchy: Weak<Hierarchy>,
    key: NodeKey,
}

impl Graph {
    /// Returns a handle that does not keep the graph alive.
    pub fn downgrade(&self) -> WeakGraph {
        WeakGraph { hierarchy: Arc::downgrade(&self.hierarchy), key: self.key }
    }
}

impl Node {
    /// Returns a handle that does not keep the node's graph alive.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode { hierarchy: Arc::downgrade(&self.hierarchy), key: self.key() }
    }
}

impl WeakGraph {
    /// Returns the graph, or `None` once the last handle to its hierarchy is gone.
    pub fn upgrade(&self) -> Option<Graph> {
        Some(Graph { hierarchy: self.hierarchy.upgrade()?, key: self.key })
    }
}

impl WeakNode {
    /// Returns the node, or `None` once the last handle to its hierarchy is gone.
    pub fn upgrade(&self) -> Option<Node> {
        Some(Node::new(&self.hierarchy.upgrade()?, self.key))
    }
}

impl fmt::Debug for WeakGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakGraph({:?})", self.key)
    }
}

impl fmt::Debug for WeakNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakNode({:?})", self.key)
    }
}
