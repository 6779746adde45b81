//! Reports about an executable: how its graph was lowered, and the memory that it holds.

use crate::graph::NodeKey;

/// The way in which one conditional node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConditionalReport {
    /// The key of the node.
    pub node: NodeKey,
    /// The name of the node.
    pub name: String,
    /// Whether the device itself runs the conditional.
    pub native: bool,
    /// The reason.
    pub reason: String,
}

impl ConditionalReport {
    /// Describes how the conditional `node`, whose name is `name`, runs.
    pub fn new(node: NodeKey, name: String, native: bool, reason: impl Into<String>) -> Self {
        ConditionalReport { node, name, native, reason: reason.into() }
    }
}

/// A report on how a graph was lowered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// One entry per conditional, outermost first.
    pub conditionals: Vec<ConditionalReport>,
    /// Further remarks for the reader.
    pub notes: Vec<String>,
    /// What the optimiser did, to which nodes, and the estimate that it rested on.
    pub optimized: Vec<String>,
    /// Nodes in which a pass of the optimiser found an obstacle, and which run as they were
    /// written.
    pub not_optimized: Vec<(String, String)>,
    /// What the optimiser did with each node, in topological order, with the bodies of conditionals
    /// after them. Empty if it did not look at the graph.
    pub nodes: Vec<NodeReport>,
}

/// What the optimiser did with one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The key of the node.
    pub node: NodeKey,
    /// The name of the node.
    pub name: String,
    /// The lines of [`Report::optimized`] that are about it, as indices.
    pub optimized: Vec<usize>,
    /// The reason why it runs as it was written. `None` if it does not.
    pub reason: Option<String>,
}

impl NodeReport {
    /// Describes what was done with the node whose name is `name`.
    pub fn new(node: NodeKey, name: String, optimized: Vec<usize>, reason: Option<String>) -> Self {
        NodeReport { node, name, optimized, reason }
    }
}

/// The memory that an executable holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Memory for the allocations of alloc nodes.
    pub allocations: u64,
    /// All other memory of the executable: plans, staging and argument buffers.
    pub overhead: u64,
}

impl MemoryUse {
    /// Creates the sum of both kinds of memory.
    pub fn new(allocations: u64, overhead: u64) -> Self {
        MemoryUse { allocations, overhead }
    }
}
