//! Edges, and the topological order that is maintained while they change.
//!
//! The order follows the algorithm of Pearce and Kelly. An edge that agrees with the order needs no
//! search. Any other edge moves only the nodes between its ends. In addition, a node without
//! predecessors can always move to the front and one without successors to the back. A graph built
//! front to back or back to front therefore never needs a search.

use rustc_hash::FxHashSet;

use super::definition::{Definition, EdgeEnd, EdgeKind, EdgeList, GraphKey, NodeData, NodeKey, Order};
use crate::error::{Result, bail};
use crate::op::NodeKind;

impl Definition {
    /// Adds edges from all of `from`, or none of them.
    pub(crate) fn add_edges(&mut self, from: &[NodeKey], to: NodeKey, kind: EdgeKind) -> Result<()> {
        let mut before = Vec::with_capacity(from.len());
        for &node in from {
            let existing = self.edge_kind(node, to);
            if let Err(error) = self.add_edge(node, to, kind) {
                for (&node, existing) in from.iter().zip(before).rev() {
                    match existing {
                        Some(kind) => self.set_edge_kind(node, to, kind),
                        None => self.unlink(node, to),
                    }
                }
                return Err(error);
            }
            before.push(existing);
        }
        Ok(())
    }

    /// Adds an edge. An edge that already exists takes the new kind.
    pub(crate) fn add_edge(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind) -> Result<()> {
        if from == to {
            bail!(Cycle, "an edge from {} to itself; a node cannot depend on itself", self.label(from));
        }
        if self.node(from).graph != self.node(to).graph {
            bail!(
                WrongGraph,
                "an edge from {} to {}, which is in another graph; edges join nodes of one graph",
                self.label(from),
                self.label(to)
            );
        }
        self.check_edge_kind(from, to, kind)?;
        match self.edge_kind(from, to) {
            Some(existing) if existing == kind => return Ok(()),
            Some(_) => {
                self.set_edge_kind(from, to, kind);
                return Ok(());
            }
            None => {}
        }
        if self.node(from).order > self.node(to).order {
            self.reorder(from, to)?;
        }
        self.link(from, to, kind);
        Ok(())
    }

    pub(crate) fn check_edge_kind(&self, from: NodeKey, to: NodeKey, kind: EdgeKind) -> Result<()> {
        let is_kernel = |key| self.node(key).operation.kind() == NodeKind::Kernel;
        if kind == EdgeKind::Programmatic && !(is_kernel(from) && is_kernel(to)) {
            bail!(
                InvalidArgument,
                "a programmatic edge from {} to {}; only a kernel can start early after a kernel",
                self.label(from),
                self.label(to)
            );
        }
        Ok(())
    }

    /// Removes an edge and returns whether there was one.
    pub(crate) fn remove_edge(&mut self, from: NodeKey, to: NodeKey) -> bool {
        let had = self.edge_kind(from, to).is_some();
        if had {
            self.unlink(from, to);
        }
        had
    }

    /// Returns the kind of the edge between two nodes, if there is one.
    fn edge_kind(&self, from: NodeKey, to: NodeKey) -> Option<EdgeKind> {
        let (successors, predecessors) =
            (self.get_node(from)?.successors(), self.get_node(to)?.predecessors());
        let edge = if successors.len() <= predecessors.len() {
            successors.iter().find(|edge| edge.node == to)
        } else {
            predecessors.iter().find(|edge| edge.node == from)
        };
        edge.map(|edge| edge.kind)
    }

    /// Writes both ends of an edge that is new and agrees with the order.
    pub(crate) fn link(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind) {
        self.nodes.get_mut(from).expect("checked").successors.push(EdgeEnd { node: to, kind });
        self.nodes.get_mut(to).expect("checked").predecessors.push(EdgeEnd { node: from, kind });
    }

    pub(crate) fn unlink(&mut self, from: NodeKey, to: NodeKey) {
        take_out(&mut self.nodes.get_mut(from).expect("checked").successors, to);
        take_out(&mut self.nodes.get_mut(to).expect("checked").predecessors, from);
    }

    fn set_edge_kind(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind) {
        let set = |edges: &mut EdgeList, node| {
            for edge in edges.iter_mut().filter(|edge| edge.node == node) {
                edge.kind = kind;
            }
        };
        set(&mut self.nodes.get_mut(from).expect("checked").successors, to);
        set(&mut self.nodes.get_mut(to).expect("checked").predecessors, from);
    }

    /// Sets the kinds of all edges into a node, in the order of its predecessors. Setting them one
    /// by one takes quadratic time.
    pub(crate) fn set_edge_kinds(&mut self, to: NodeKey, kinds: &[EdgeKind]) -> Result<()> {
        let froms: Vec<NodeKey> = self.node(to).predecessors().iter().map(|edge| edge.node).collect();
        if froms.len() != kinds.len() {
            let (has, given) = (froms.len(), kinds.len());
            bail!(
                InvalidArgument,
                "{} has {has} edges into it, but {given} edge kinds were given; give one per edge",
                self.label(to)
            );
        }
        froms.iter().zip(kinds).try_for_each(|(&from, &kind)| self.check_edge_kind(from, to, kind))?;
        for (&from, &kind) in froms.iter().zip(kinds) {
            // The newest edges are at the end.
            let edges = &mut self.nodes.get_mut(from).expect("checked").successors;
            if let Some(edge) = edges.iter_mut().rev().find(|edge| edge.node == to) {
                edge.kind = kind;
            }
        }
        let edges = &mut self.nodes.get_mut(to).expect("checked").predecessors;
        edges.iter_mut().zip(kinds).for_each(|(edge, &kind)| edge.kind = kind);
        Ok(())
    }

    /// Moves nodes in the order so that `from` comes before `to`. Fails if the edge would close a
    /// cycle.
    fn reorder(&mut self, from: NodeKey, to: NodeKey) -> Result<()> {
        self.graphs.get_mut(self.node(from).graph).expect("a node's graph exists").reordered = true;
        if self.node(from).predecessors.is_empty() {
            let graph = self.graphs.get_mut(self.node(from).graph).expect("a node's graph exists");
            graph.first_order -= 1;
            self.nodes.get_mut(from).expect("checked").order = graph.first_order;
            return Ok(());
        }
        if self.node(to).successors.is_empty() {
            let graph = self.graphs.get_mut(self.node(to).graph).expect("a node's graph exists");
            self.nodes.get_mut(to).expect("checked").order = graph.next_order;
            graph.next_order += 1;
            return Ok(());
        }
        let (low, high) = (self.node(to).order, self.node(from).order);
        let after = self.reach(to, |node| &node.successors, |order| order <= high);
        if after.contains(&from) {
            bail!(
                Cycle,
                "an edge from {} to {} would close a cycle, since {} already depends on {}",
                self.label(from),
                self.label(to),
                self.label(from),
                self.label(to)
            );
        }
        let before = self.reach(from, |node| &node.predecessors, |order| order >= low);
        let by_order = |set: FxHashSet<NodeKey>| {
            let mut list: Vec<(Order, NodeKey)> =
                set.into_iter().map(|key| (self.node(key).order, key)).collect();
            list.sort_unstable_by_key(|&(order, _)| order);
            list
        };
        let (before, after) = (by_order(before), by_order(after));
        let mut places: Vec<Order> = before.iter().chain(&after).map(|&(order, _)| order).collect();
        places.sort_unstable();
        for (order, (_, key)) in places.into_iter().zip(before.into_iter().chain(after)) {
            self.nodes.get_mut(key).expect("reached").order = order;
        }
        Ok(())
    }

    fn reach<'a>(
        &'a self,
        start: NodeKey,
        next: impl Fn(&'a NodeData) -> &'a EdgeList,
        within: impl Fn(Order) -> bool,
    ) -> FxHashSet<NodeKey> {
        let mut seen = FxHashSet::from_iter([start]);
        let mut stack = vec![start];
        while let Some(key) = stack.pop() {
            for edge in next(self.node(key)) {
                if within(self.node(edge.node).order) && seen.insert(edge.node) {
                    stack.push(edge.node);
                }
            }
        }
        seen
    }

    /// Returns all edges of a graph, in the order in which their first nodes were added, then
    /// oldest first.
    pub fn edges(&self, graph: GraphKey) -> Vec<(NodeKey, NodeKey, EdgeKind)> {
        self.nodes(graph)
            .flat_map(|from| self.node(from).successors.iter().map(move |edge| (from, edge.node, edge.kind)))
            .collect()
    }
}

/// Removes the edge to `node` and keeps the order of the others.
pub(crate) fn take_out(edges: &mut EdgeList, node: NodeKey) {
    if let Some(position) = edges.iter().position(|edge| edge.node == node) {
        edges.remove(position);
    }
}
