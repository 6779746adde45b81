//! A captured graph of the driver becomes a graph of Gridloom.
//!
//! A graph is split into nodes completely or not at all. One node that cannot be expressed makes
//! the graph, or the child graph it is in, one opaque node.

use super::captured::Captured;
use super::introspect::{Reader, in_order};
use super::memory::Allocated;
use super::opaque::{Contents, OpaqueGraph};
use crate::CudaDevice;
use crate::driver::DriverError;
use crate::graph::CudaGraph;
use crate::interop::{self, Owner};
use crate::sys::*;
use gridloom_core::backend::{self, Device, EventOptions, Kernel};
use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::log;
use gridloom_core::op::{CallbackOp, FreeTarget, Operation, RawCallback, RawData, SendPointer};
use gridloom_core::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ptr;
use std::sync::Arc;

/// Why a graph cannot be taken apart.
#[derive(Debug)]
pub(super) struct Unreadable(String);

impl Unreadable {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl From<DriverError> for Unreadable {
    fn from(error: DriverError) -> Self {
        Self(error.to_string())
    }
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// One import in progress.
pub(super) struct Importer<'a> {
    pub(super) device: &'a CudaDevice,
    backend: &'a Arc<dyn Device>,
    pub(super) reader: Reader<'a>,
    captured: Arc<Captured>,
    /// Kept by each node that uses something foreign: the captured graph, and with it the owner
    /// that the caller gave.
    pub(super) owner: Owner,
    /// The kernels met so far.
    pub(super) kernels: FxHashMap<CUfunction, Arc<dyn Kernel>>,
    events: FxHashMap<CUevent, Arc<dyn backend::Event>>,
    /// Memory that nodes met so far allocate.
    pub(super) allocated: Vec<Allocated>,
    /// How many graphs there are around the present one.
    pub(super) depth: usize,
}

impl<'a> Importer<'a> {
    pub(super) fn new(device: &'a CudaDevice, backend: &'a Arc<dyn Device>, captured: Captured) -> Self {
        let captured = Arc::new(captured);
        Self {
            device,
            backend,
            reader: Reader(device.driver()),
            owner: captured.clone().into(),
            captured,
            kernels: FxHashMap::default(),
            events: FxHashMap::default(),
            allocated: Vec::new(),
            depth: 0,
        }
    }

    /// Returns the captured graph: node by node if that is possible and it is not to be `opaque`,
    /// else as one opaque node.
    pub(super) fn import(mut self, opaque: bool) -> Result<Graph> {
        let _entered = self.device.context().enter()?;
        let captured = Arc::clone(&self.captured);
        let apart = if opaque {
            Err(Unreadable::new("it was captured to stay as it is"))
        } else {
            captured.with(|graph| self.graph(graph.raw()))
        };
        match apart {
            Ok(graph) => Ok(graph),
            Err(Unreadable(reason)) => {
                self.reader.0.discard_log();
                log!(debug, reason, "a captured graph stays opaque");
                let graph = Graph::new(self.backend);
                graph.add(&[], self.opaque(captured, reason)?)?;
                Ok(graph)
            }
        }
    }

    fn graph(&mut self, raw: CUgraph) -> Result<Graph, Unreadable> {
        let graph = Graph::new(self.backend);
        let (listed, mut edges) = (self.reader.nodes(raw)?, self.reader.edges(raw)?);
        let early: FxHashSet<CUgraphNode> =
            edges.iter().filter(|edge| edge.kind == EdgeKind::Programmatic).map(|edge| edge.to).collect();
        let mut nodes: FxHashMap<CUgraphNode, Node> = FxHashMap::default();
        for raw in in_order(&listed, &edges) {
            let node = self.node(&graph, raw, early.contains(&raw))?;
            nodes.insert(raw, node);
        }
        // If two nodes have several edges, the full one counts. It comes last and replaces the
        // others.
        edges.sort_by_key(|edge| edge.kind == EdgeKind::Full);
        let is_kernel = |node: &Node| matches!(node.operation(), Ok(Operation::Kernel(_)));
        for edge in edges {
            let (Some(from), Some(to)) = (nodes.get(&edge.from), nodes.get(&edge.to)) else {
                return Err(Unreadable::new("an edge leads out of the graph"));
            };
            // Only edges between two kernels can be programmatic. A full edge orders more, so it is
            // safe.
            let kernels = edge.kind == EdgeKind::Programmatic && is_kernel(from) && is_kernel(to);
            graph.add_edge(from, to, if kernels { EdgeKind::Programmatic } else { EdgeKind::Full })?;
        }
        Ok(graph)
    }

    fn node(&mut self, graph: &Graph, raw: CUgraphNode, early: bool) -> Result<Node, Unreadable> {
        Ok(match self.reader.node_type(raw)? {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
                let child = self.reader.child(raw)?;
                match self.inner_graph(child) {
                    Ok(child) => graph.add_child(&[], &child)?,
                    Err(Unreadable(reason)) => {
                        self.reader.0.discard_log();
                        let copy = CudaGraph::copy_of(self.device.context(), child)?;
                        let copy = Arc::new(Captured::new(copy, Some(self.owner.clone())));
                        graph.add(&[], self.opaque(copy, reason)?)?
                    }
                }
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                let (alloc, address) = self.allocation(raw)?;
                let bytes = alloc.bytes();
                let node = graph.add(&[], Operation::Alloc(Arc::new(alloc)))?;
                self.allocated.push(Allocated { address, bytes, node: node.key(), depth: self.depth });
                node
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
                graph.add(&[], Operation::Free(FreeTarget::AllocNode(self.freed(raw)?)))?
            }
            kind => graph.add(&[], self.operation(raw, kind, early)?)?,
        })
    }

    /// Returns a graph within the present one. Memory that it allocates is its own.
    fn inner_graph(&mut self, raw: CUgraph) -> Result<Graph, Unreadable> {
        self.depth += 1;
        let known = self.allocated.len();
        let graph = self.graph(raw);
        self.allocated.truncate(known);
        self.depth -= 1;
        graph
    }

    /// Returns the operation of a node whose kind needs no other node to tell it.
    fn operation(
        &mut self,
        node: CUgraphNode,
        kind: CUgraphNodeType,
        early: bool,
    ) -> Result<Operation, Unreadable> {
        match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Ok(Operation::Empty),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => self.kernel(node, early),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => self.copy(node),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => self.fill(node),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => self.host_call(node),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                let mut event = ptr::null_mut();
                // SAFETY: the node is of this kind, of a graph that this thread alone uses; one
                // handle is written.
                unsafe { self.reader.0.cu_graph_event_record_node_get_event(node, &mut event)? };
                Ok(Operation::EventRecord(self.event(event)?))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                let mut event = ptr::null_mut();
                // SAFETY: as above.
                unsafe { self.reader.0.cu_graph_event_wait_node_get_event(node, &mut event)? };
                Ok(Operation::EventWait(self.event(event)?))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => Err(Unreadable::new(
                "the driver does not tell what a conditional node holds, nor the default of its condition",
            )),
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
                Err(Unreadable::new("a node for an external semaphore"))
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
                Err(Unreadable::new("a node of batched memory operations"))
            }
            other => Err(Unreadable::new(format!("a node of the unknown kind {}", other.0))),
        }
    }

    /// Calls [`cuGraphHostNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn host_call(&self, node: CUgraphNode) -> Result<Operation, Unreadable> {
        let mut p = CUDA_HOST_NODE_PARAMS_v1::default();
        // SAFETY: the node is a host call of a graph that this thread alone uses; one description
        // is written.
        unsafe { self.reader.0.cu_graph_host_node_get_params(node, &mut p)? };
        let Some(function) = p.fn_ else {
            return Err(Unreadable::new("a host call without a function"));
        };
        // SAFETY: the caller of the capture promises that function and data may be used by any
        // thread until the owner is dropped.
        let callback = unsafe { RawCallback::new(function, RawData::Pointer(SendPointer::new(p.userData))) };
        let callback = callback.keeping(self.owner.clone());
        Ok(Operation::Callback(CallbackOp::Raw(callback)))
    }

    /// Returns an event: one of Gridloom's as itself, another one borrowed once for all nodes that
    /// use it.
    fn event(&mut self, raw: CUevent) -> Result<Arc<dyn backend::Event>, Unreadable> {
        if let Some(known) = self.events.get(&raw) {
            return Ok(Arc::clone(known));
        }
        // The driver does not tell how the event was made. If it keeps no times, reading them is an
        // error of the driver.
        let options = EventOptions::default();
        // SAFETY: the caller of the capture promises that the event exists until the owner is
        // dropped.
        let event = unsafe { interop::event_from_raw(self.device, raw, options, Some(self.owner.clone())) }?;
        self.events.insert(raw, Arc::clone(&event));
        Ok(event)
    }

    /// Returns a graph that stays as it is.
    fn opaque(&mut self, captured: Arc<Captured>, reason: String) -> Result<Operation> {
        let (contents, nodes, known) = captured.with(|graph| {
            let graph = graph.raw();
            let contents = Contents::of(self.reader, graph)?;
            Ok::<_, Error>((contents, self.reader.nodes(graph)?.len(), self.known(graph)?))
        })?;
        let id = Device::id(self.device);
        let opaque = OpaqueGraph::new(id, captured, (nodes, contents), reason, known);
        Ok(Operation::Opaque(Arc::new(opaque)))
    }

    /// Returns what is known of the nodes of a graph that stays opaque, and of the graphs inside
    /// it.
    fn known(&mut self, graph: CUgraph) -> Result<Vec<Operation>> {
        let mut known = Vec::new();
        let mut graphs = vec![graph];
        while let Some(graph) = graphs.pop() {
            for node in self.reader.nodes(graph)? {
                let kind = self.reader.node_type(node)?;
                if kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
                    graphs.push(self.reader.child(node)?);
                }
                known.extend(self.operation(node, kind, false).ok());
            }
        }
        self.reader.0.discard_log();
        Ok(known)
    }
}
