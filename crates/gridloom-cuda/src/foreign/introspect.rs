//! Reading a graph of the driver.

use crate::driver::{Driver, DriverResult};
use crate::sys::*;
use crate::version::CudaVersion;
use gridloom_core::graph::EdgeKind;
use std::ptr;

/// The first driver whose edges carry data.
const EDGE_DATA_SINCE: CudaVersion = CudaVersion::new(12, 3);

/// An edge between two nodes of one graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: CUgraphNode,
    pub(super) to: CUgraphNode,
    pub(super) kind: EdgeKind,
}

/// Calls of the driver that only read. The graphs and nodes they are given exist, and no other
/// thread uses them.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a Driver);

impl Reader<'_> {
    /// Calls [`cuGraphGetNodes`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn nodes(self, graph: CUgraph) -> DriverResult<Vec<CUgraphNode>> {
        let mut count = 0;
        // SAFETY: see `Reader`; without an array the count is written.
        unsafe { self.0.cu_graph_get_nodes(graph, ptr::null_mut(), &mut count)? };
        let mut nodes = vec![ptr::null_mut(); count];
        if count > 0 {
            // SAFETY: see `Reader`; there is room for as many.
            unsafe { self.0.cu_graph_get_nodes(graph, nodes.as_mut_ptr(), &mut count)? };
        }
        nodes.truncate(count);
        Ok(nodes)
    }

    /// Calls [`cuGraphGetEdges`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    ///
    /// The form of the function for older drivers fails if an edge has data.
    pub(super) fn edges(self, graph: CUgraph) -> DriverResult<Vec<Edge>> {
        let with_data = self.0.supports(EDGE_DATA_SINCE);
        let get =
            |from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: &mut usize| {
                // SAFETY: see `Reader`; the arrays are null, or have room for `count`.
                unsafe {
                    if with_data {
                        self.0.cu_graph_get_edges_v2(graph, from, to, data, count)
                    } else {
                        self.0.cu_graph_get_edges(graph, from, to, count)
                    }
                }
            };
        let mut count = 0;
        get(ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &mut count)?;
        let (mut from, mut to) = (vec![ptr::null_mut(); count], vec![ptr::null_mut(); count]);
        let mut data = vec![CUgraphEdgeData::default(); count];
        if count > 0 {
            get(from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut count)?;
        }
        let edges = from.into_iter().zip(to).zip(data).take(count);
        Ok(edges.map(|((from, to), data)| Edge { from, to, kind: edge_kind(data) }).collect())
    }

    /// Calls [`cuGraphNodeGetType`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn node_type(self, node: CUgraphNode) -> DriverResult<CUgraphNodeType> {
        let mut found = CUgraphNodeType(0);
        // SAFETY: see `Reader`; one number is written.
        unsafe { self.0.cu_graph_node_get_type(node, &mut found)? };
        Ok(found)
    }

    /// Calls [`cuGraphChildGraphNodeGetGraph`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn child(self, node: CUgraphNode) -> DriverResult<CUgraph> {
        let mut child = ptr::null_mut();
        // SAFETY: see `Reader`; one handle, owned by the node, is written.
        unsafe { self.0.cu_graph_child_graph_node_get_graph(node, &mut child)? };
        Ok(child)
    }

    /// Returns an attribute of a kernel node; what the driver does not know is not set.
    /// ([`cuGraphKernelNodeGetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    pub(super) fn attribute(self, node: CUgraphNode, id: CUlaunchAttributeID) -> CUlaunchAttributeValue {
        let mut value = CUlaunchAttributeValue::default();
        // SAFETY: see `Reader`; one value is written.
        match unsafe { self.0.cu_graph_kernel_node_get_attribute(node, id, &mut value) } {
            Ok(()) => value,
            Err(_) => {
                self.0.discard_log();
                CUlaunchAttributeValue::default()
            }
        }
    }
}

/// Returns the kind of an edge. An edge is programmatic if a kernel may start with the one before
/// it, or when that one tells it to. Gridloom's programmatic edges mean the latter.
fn edge_kind(data: CUgraphEdgeData) -> EdgeKind {
    let programmatic = CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0;
    if u32::from(data.type_) == programmatic { EdgeKind::Programmatic } else { EdgeKind::Full }
}

/// Sorts nodes so that each comes after those it depends on, and otherwise in the order of the
/// list.
pub(super) fn in_order(nodes: &[CUgraphNode], edges: &[Edge]) -> Vec<CUgraphNode> {
    use rustc_hash::FxHashMap;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let position: FxHashMap<CUgraphNode, usize> =
        nodes.iter().enumerate().map(|(position, &node)| (node, position)).collect();
    let mut waits_for = vec![0usize; nodes.len()];
    let mut followers = vec![Vec::new(); nodes.len()];
    for edge in edges {
        if let (Some(&from), Some(&to)) = (position.get(&edge.from), position.get(&edge.to)) {
            waits_for[to] += 1;
            followers[from].push(to);
        }
    }
    let free = waits_for.iter().enumerate().filter(|&(_, &count)| count == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = free.map(|(position, _)| Reverse(position)).collect();
    let mut ordered = Vec::with_capacity(nodes.len());
    while let Some(Reverse(next)) = ready.pop() {
        ordered.push(nodes[next]);
        for &follower in &followers[next] {
            waits_for[follower] -= 1;
            if waits_for[follower] == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_ordered_by_their_edges_and_then_as_listed() {
        let node = |number: usize| ptr::without_provenance_mut(number);
        let edge = |from, to| Edge { from: node(from), to: node(to), kind: EdgeKind::Full };
        let nodes = [node(4), node(3), node(2), node(1)];
        let ordered = in_order(&nodes, &[edge(1, 4), edge(2, 3), edge(2, 3)]);
        assert_eq!(ordered, [node(2), node(3), node(1), node(4)]);
    }

    #[test]
    fn only_an_edge_of_the_programmatic_type_is_programmatic() {
        let data = |from_port, type_| CUgraphEdgeData { from_port, type_, ..Default::default() };
        assert_eq!(edge_kind(data(0, 0)), EdgeKind::Full);
        assert_eq!(edge_kind(data(1, 1)), EdgeKind::Programmatic);
        assert_eq!(edge_kind(data(2, 1)), EdgeKind::Programmatic);
    }
}
