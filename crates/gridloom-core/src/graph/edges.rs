//! Edges, and the topological order that is kept while they change.
//!
//! The order is maintained as Pearce and Kelly describe: an edge that agrees with the order costs nothing to check, and one that does
//! not moves only the nodes between its ends. A graph built front to back is therefore never searched.

use std::collections::HashSet;

use super::definition::{Definition, EdgeEnd, EdgeKind, GraphKey, NodeKey};
use crate::error::{Result, bail};
use crate::op::NodeKind;

impl Definition {
    /// Adds an edge. An edge that is there already is left as it is, except that its kind becomes `kind`.
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
        if self.has_edge(from, to) {
            self.set_edge_kind(from, to, kind);
            return Ok(());
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

    /// Removes an edge and says whether it was there.
    pub(crate) fn remove_edge(&mut self, from: NodeKey, to: NodeKey) -> bool {
        let had = self.has_edge(from, to);
        if had {
            self.unlink(from, to);
        }
        had
    }

    pub(crate) fn has_edge(&self, from: NodeKey, to: NodeKey) -> bool {
        let (successors, predecessors) = (&self.node(from).successors, &self.node(to).predecessors);
        if successors.len() <= predecessors.len() {
            successors.iter().any(|edge| edge.node == to)
        } else {
            predecessors.iter().any(|edge| edge.node == from)
        }
    }

    /// Writes both ends of an edge that is known to be new and to agree with the order.
    pub(crate) fn link(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind) {
        self.nodes.get_mut(from).expect("checked").successors.push(EdgeEnd { node: to, kind });
        self.nodes.get_mut(to).expect("checked").predecessors.push(EdgeEnd { node: from, kind });
    }

    pub(crate) fn unlink(&mut self, from: NodeKey, to: NodeKey) {
        self.nodes.get_mut(from).expect("checked").successors.retain(|edge| edge.node != to);
        self.nodes.get_mut(to).expect("checked").predecessors.retain(|edge| edge.node != from);
    }

    fn set_edge_kind(&mut self, from: NodeKey, to: NodeKey, kind: EdgeKind) {
        let set = |edges: &mut super::definition::EdgeList, node| {
            for edge in edges.iter_mut().filter(|edge| edge.node == node) {
                edge.kind = kind;
            }
        };
        set(&mut self.nodes.get_mut(from).expect("checked").successors, to);
        set(&mut self.nodes.get_mut(to).expect("checked").predecessors, from);
    }

    /// Renumbers the nodes between `to` and `from` so that `from` comes first, or finds the cycle.
    fn reorder(&mut self, from: NodeKey, to: NodeKey) -> Result<()> {
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
        let by_order = |set: HashSet<NodeKey>| {
            let mut list: Vec<(u64, NodeKey)> =
                set.into_iter().map(|key| (self.node(key).order, key)).collect();
            list.sort_unstable_by_key(|&(order, _)| order);
            list
        };
        let (before, after) = (by_order(before), by_order(after));
        let mut places: Vec<u64> = before.iter().chain(&after).map(|&(order, _)| order).collect();
        places.sort_unstable();
        for (order, (_, key)) in places.into_iter().zip(before.into_iter().chain(after)) {
            self.nodes.get_mut(key).expect("reached").order = order;
        }
        Ok(())
    }

    fn reach<'a>(
        &'a self,
        start: NodeKey,
        next: impl Fn(&'a super::definition::NodeData) -> &'a super::definition::EdgeList,
        within: impl Fn(u64) -> bool,
    ) -> HashSet<NodeKey> {
        let mut seen = HashSet::from([start]);
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

    /// All edges of a graph: by the order in which their first nodes were added, then by age.
    pub fn edges(&self, graph: GraphKey) -> Vec<(NodeKey, NodeKey, EdgeKind)> {
        self.nodes(graph)
            .flat_map(|from| self.node(from).successors.iter().map(move |edge| (from, edge.node, edge.kind)))
            .collect()
    }
}
