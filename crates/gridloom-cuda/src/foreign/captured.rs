//! The graph that the driver captured, and its owner.

use crate::graph::CudaGraph;
use crate::interop::Owner;
use parking_lot::Mutex;

/// A captured graph with the owner of what it uses. Every node that was made from it and uses
/// something foreign keeps it, because captured code may have attached what it needs to the graph
/// (`cuGraphRetainUserObject`).
#[derive(Debug)]
pub(super) struct Captured {
    /// The driver lets one thread at a time use it, even for copying it.
    graph: Mutex<CudaGraph>,
    _owner: Option<Owner>,
}

impl Captured {
    pub(super) fn new(graph: CudaGraph, owner: Option<Owner>) -> Self {
        Self { graph: Mutex::new(graph), _owner: owner }
    }

    /// Uses the graph; meanwhile no other thread does.
    pub(super) fn with<T>(&self, work: impl FnOnce(&CudaGraph) -> T) -> T {
        work(&self.graph.lock())
    }
}
