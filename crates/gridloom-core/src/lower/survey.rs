//! What a definition contains, for backends that prepare it.

use rustc_hash::FxHashSet;

use crate::graph::{Definition, NodeKey};
use crate::op::{FreeTarget, NodeKind, Operation};

/// The alloc nodes of a definition.
#[derive(Debug, Default)]
pub struct Allocations {
    /// All alloc nodes.
    pub nodes: Vec<NodeKey>,
    /// Those among them that a node of the same definition frees.
    pub freed: FxHashSet<NodeKey>,
}

impl Allocations {
    /// Finds the alloc nodes of a definition.
    pub fn of(definition: &Definition) -> Self {
        let mut found = Allocations::default();
        if !definition.may_have(NodeKind::MEMORY) {
            return found;
        }
        for (key, node) in definition.all_nodes() {
            if let Operation::Alloc(_) = node.operation() {
                found.nodes.push(key);
            } else if let Operation::Free(FreeTarget::AllocNode(alloc)) = node.operation() {
                found.freed.insert(*alloc);
            }
        }
        found
    }

    /// Returns the alloc nodes that nothing frees. Their memory outlives a launch.
    pub fn outliving(&self) -> impl Iterator<Item = NodeKey> + '_ {
        self.nodes.iter().copied().filter(|alloc| !self.freed.contains(alloc))
    }
}

/// Returns all conditionals of a definition, outermost first.
pub fn conditionals(definition: &Definition) -> Vec<NodeKey> {
    if !definition.may_have(NodeKind::CONDITIONALS) {
        return Vec::new();
    }
    let mut graphs = vec![definition.root()];
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(&graph) = graphs.get(next) {
        // Most graphs hold none, and need not be put in order to tell.
        if definition.nodes(graph).any(|node| !definition.node(node).bodies().is_empty()) {
            for &node in &*definition.topological(graph) {
                graphs.extend_from_slice(definition.node(node).bodies());
                if matches!(definition.node(node).operation(), Operation::Conditional(_)) {
                    found.push(node);
                }
            }
        }
        next += 1;
    }
    found
}
