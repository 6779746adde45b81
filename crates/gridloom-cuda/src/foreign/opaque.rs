//! A captured graph that is run as it is.

use super::captured::Captured;
use super::introspect::Reader;
use crate::driver::DriverResult;
use crate::graph::CudaGraph;
use crate::sys::*;
use gridloom_core::backend::{self, DeviceId};
use gridloom_core::op::Operation;
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A graph of the driver's, captured from foreign code, that could not be taken apart.
pub(crate) struct OpaqueGraph {
    device: DeviceId,
    captured: Arc<Captured>,
    nodes: usize,
    reason: String,
    contents: Contents,
    /// What is known of its nodes, kept for the kernels, memory and events of Gridloom's among what
    /// they use.
    _known: Vec<Operation>,
}

/// What a graph holds that decides where it can run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Contents {
    /// Nodes that no body of a conditional may hold.
    pub(crate) not_for_bodies: bool,
    /// Nodes that no graph within another may hold, so that it has to be launched by itself.
    pub(crate) alone: bool,
}

impl Contents {
    /// Returns what a graph and the graphs inside it hold.
    pub(super) fn of(reader: Reader<'_>, graph: CUgraph) -> DriverResult<Self> {
        let mut contents = Self::default();
        let mut graphs = vec![graph];
        while let Some(graph) = graphs.pop() {
            for node in reader.nodes(graph)? {
                match reader.node_type(node)? {
                    CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => {}
                    CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => graphs.push(reader.child(node)?),
                    CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
                    | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                        contents = Self { not_for_bodies: true, alone: true };
                    }
                    _ => contents.not_for_bodies = true,
                }
            }
        }
        Ok(contents)
    }
}

impl OpaqueGraph {
    pub(super) fn new(
        device: DeviceId,
        captured: Arc<Captured>,
        (nodes, contents): (usize, Contents),
        reason: String,
        known: Vec<Operation>,
    ) -> Self {
        Self { device, captured, nodes, reason, contents, _known: known }
    }

    /// Returns the captured graph behind one of the core.
    pub(crate) fn from_backend(opaque: &dyn backend::Opaque) -> Result<&Self> {
        opaque.as_any().downcast_ref().ok_or_else(|| {
            Error::new(ErrorKind::WrongDevice, "the opaque graph does not belong to a CUDA device")
        })
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// Lets the driver copy or compile the graph; meanwhile no other thread uses it.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&CudaGraph) -> T) -> T {
        self.captured.with(work)
    }
}

// SAFETY: it belongs to the device that it was captured on.
unsafe impl backend::Opaque for OpaqueGraph {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn node_count(&self) -> usize {
        self.nodes
    }

    fn reason(&self) -> &str {
        &self.reason
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for OpaqueGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpaqueGraph")
            .field("nodes", &self.nodes)
            .field("reason", &self.reason)
            .field("contents", &self.contents)
            .finish_non_exhaustive()
    }
}
