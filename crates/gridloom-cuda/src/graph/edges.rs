//! What a node of a `CUgraph` waits for.

use super::plan::Dependencies;
use crate::sys::*;
use gridloom_core::graph::EdgeKind;
use smallvec::SmallVec;
use std::ptr;

/// The node of one graph at the end of which each of its steps has ended.
pub(super) type Nodes = Vec<CUgraphNode>;

/// What a node waits for, as the driver takes it.
pub(super) struct Edges {
    nodes: SmallVec<[CUgraphNode; 4]>,
    /// Empty where all edges are full.
    data: SmallVec<[CUgraphEdgeData; 4]>,
}

impl Edges {
    pub(super) fn none() -> Self {
        Self { nodes: SmallVec::new(), data: SmallVec::new() }
    }

    pub(super) fn full(nodes: impl IntoIterator<Item = CUgraphNode>) -> Self {
        Self { nodes: nodes.into_iter().collect(), data: SmallVec::new() }
    }

    /// Makes one edge between kernels, of which the second may start early.
    pub(super) fn programmatic(node: CUgraphNode) -> Self {
        let mut edges = Self::full([node]);
        edges.data.push(edge_data(EdgeKind::Programmatic));
        edges
    }

    /// Returns the edges of the plan, of which the programmatic ones stay so or become full ones.
    #[inline]
    pub(super) fn of(after: &Dependencies, nodes: &Nodes, programmatic: bool) -> Self {
        let mut edges = Self::none();
        let mut are_full = true;
        for &(step, kind) in after {
            edges.nodes.push(nodes[step as usize]);
            are_full &= kind == EdgeKind::Full;
        }
        if programmatic && !are_full {
            edges.data = after.iter().map(|&(_, kind)| edge_data(kind)).collect();
        }
        edges
    }

    /// Removes all edges.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.data.clear();
    }

    /// Adds an edge that does not exist yet.
    #[inline]
    pub(super) fn push(&mut self, node: CUgraphNode, programmatic: bool) {
        if programmatic && self.data.is_empty() {
            self.data = self.nodes.iter().map(|_| edge_data(EdgeKind::Full)).collect();
        }
        if programmatic || !self.data.is_empty() {
            let kind = if programmatic { EdgeKind::Programmatic } else { EdgeKind::Full };
            self.data.push(edge_data(kind));
        }
        self.nodes.push(node);
    }

    /// Adds a full edge, unless it exists already.
    pub(super) fn add(&mut self, node: CUgraphNode) {
        if !self.nodes.contains(&node) {
            self.nodes.push(node);
            if !self.data.is_empty() {
                self.data.push(edge_data(EdgeKind::Full));
            }
        }
    }

    /// Returns whether all edges are full, so that the older driver calls can add them.
    pub(super) fn are_full(&self) -> bool {
        self.data.is_empty()
    }

    pub(super) fn as_ptr(&self) -> *const CUgraphNode {
        if self.nodes.is_empty() { ptr::null() } else { self.nodes.as_ptr() }
    }

    pub(super) fn data_ptr(&self) -> *const CUgraphEdgeData {
        if self.data.is_empty() { ptr::null() } else { self.data.as_ptr() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

fn edge_data(kind: EdgeKind) -> CUgraphEdgeData {
    match kind {
        EdgeKind::Full => CUgraphEdgeData::default(),
        EdgeKind::Programmatic => CUgraphEdgeData {
            from_port: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            type_: CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0 as u8,
            ..Default::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize) -> CUgraphNode {
        ptr::without_provenance_mut(number)
    }

    #[test]
    fn an_edge_added_to_programmatic_ones_has_data_too_and_is_there_once() {
        let nodes = vec![node(8), node(16)];
        let after = Dependencies::from_slice(&[(0, EdgeKind::Programmatic), (1, EdgeKind::Full)]);
        let mut edges = Edges::of(&after, &nodes, true);
        edges.add(node(16));
        assert_eq!((edges.len(), edges.data.len()), (2, 2));
        edges.add(node(24));
        assert_eq!((edges.len(), edges.data.len()), (3, 3));
    }

    #[test]
    fn one_programmatic_edge_gives_data_to_those_before_and_after_it() {
        let mut edges = Edges::none();
        edges.push(node(8), false);
        assert!(edges.are_full());
        edges.push(node(16), true);
        edges.push(node(24), false);
        let types: Vec<u8> = edges.data.iter().map(|data| data.type_).collect();
        assert_eq!((edges.len(), types), (3, vec![0, 1, 0]));
    }

    #[test]
    fn full_edges_have_no_data() {
        let mut edges = Edges::full([node(8)]);
        edges.add(node(16));
        assert!(edges.are_full() && edges.data_ptr().is_null());
    }
}
