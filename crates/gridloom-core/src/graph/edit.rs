//! Inserting and deleting nodes of a definition.

use super::definition::{Definition, EdgeEnd, EdgeKind, EdgeList, GraphData, GraphKey, NodeData, NodeKey};
use super::edges::take_out;
use super::node::deleted;
use super::{After, Checker, LocalKey, MAX_NESTING, deleted_graph};
use crate::backend;
use crate::error::{Result, bail};
use crate::op::{NodeKind, Operation, Test};
use smallvec::SmallVec;

/// The nodes that a deletion took out, to be dropped after the lock is released.
#[derive(Default)]
pub(crate) struct Removed {
    _nodes: Vec<NodeData>,
}

impl Definition {
    /// Checks that the graph exists and that these nodes are in it.
    pub(crate) fn check_alive(&self, graph: GraphKey, nodes: &[NodeKey]) -> Result<()> {
        if self.graphs.get(graph).is_none() {
            return Err(deleted_graph());
        }
        for &key in nodes {
            match self.get_node(key) {
                None => bail!(InvalidHandle, "{} cannot be joined by an edge", self.label(key)),
                Some(node) if node.graph != graph => bail!(
                    WrongGraph,
                    "{} is in another graph of this hierarchy; edges join nodes of one graph",
                    self.label(key)
                ),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that the predecessors of a new node exist. Returns their graph and the operation of
    /// the first one.
    #[inline]
    pub(super) fn check_after(&self, after: After<'_>) -> Result<(GraphKey, Option<&Operation>)> {
        match after {
            After::One(&key) => {
                let node = self.get_node(key).ok_or_else(|| deleted(key))?;
                Ok((node.graph, Some(&node.operation)))
            }
            After::All(graph, nodes) => {
                self.check_alive(graph, nodes)?;
                Ok((graph, nodes.first().map(|&first| &self.node(first).operation)))
            }
        }
    }

    /// Checks that `more` further levels of nesting fit inside `graph`.
    pub(crate) fn check_depth(&self, graph: GraphKey, more: usize) -> Result<()> {
        let mut depth = more;
        let mut graph = graph;
        while let Some((node, _)) = self.owner(graph) {
            depth += 1;
            graph = self.node(node).graph;
        }
        if depth > MAX_NESTING {
            bail!(InvalidArgument, "graphs nested {depth} deep; at most {MAX_NESTING} levels are supported");
        }
        Ok(())
    }

    /// Returns the number of levels of graphs inside `graph`.
    pub(crate) fn depth_inside(&self, graph: GraphKey) -> usize {
        let mut deepest = 0;
        let mut stack = vec![(graph, 0)];
        while let Some((graph, depth)) = stack.pop() {
            deepest = deepest.max(depth);
            for node in self.nodes(graph) {
                stack.extend(self.node(node).bodies().iter().map(|&body| (body, depth + 1)));
            }
        }
        deepest
    }

    /// Checks an operation and adds it as a node. A failure leaves the operation with the caller.
    #[inline]
    pub(super) fn add(
        &mut self,
        device: &dyn backend::Device,
        after: After<'_>,
        operation: &mut Option<Operation>,
    ) -> Result<LocalKey<NodeData>> {
        let checked = operation.as_ref().expect("given by the caller");
        if checked.kind().facts().role.has_bodies() {
            bail!(InvalidArgument, "a node with graphs inside is added with add_conditional or add_child");
        }
        let (graph, before) = self.check_after(after)?;
        Checker { device, graph: Some((self, graph)) }.check_after(before, checked)?;
        Ok(self.insert_node(graph, after.nodes(), operation).local())
    }

    /// Inserts a checked node after checked predecessors. The operation is taken last, when nothing
    /// can fail any more.
    #[inline]
    pub(crate) fn insert_node(
        &mut self,
        graph: GraphKey,
        after: &[NodeKey],
        operation: &mut Option<Operation>,
    ) -> NodeKey {
        let (kind, early) = match operation.as_ref().expect("given by the caller") {
            // A programmatic launch starts before the kernels it follows have ended.
            Operation::Kernel(kernel) => (NodeKind::Kernel, kernel.config.programmatic),
            operation => (operation.kind(), false),
        };
        self.kinds.insert(kind);
        let key = self.nodes.next_key();
        let place = self.graphs.get_mut(graph).expect("checked");
        let (serial, order) = (place.next_serial, place.next_order);
        place.next_serial = serial.wrapping_add(1);
        place.next_order += 1;
        place.members.push(key);
        let first = after.first().map(|&from| self.lead(from, key, early));
        self.nodes.insert_next(key, || NodeData {
            graph,
            operation: operation.take().expect("looked at above"),
            name: None,
            serial,
            order,
            // Built in place with its first edge, which is the only one for most nodes.
            predecessors: first.map_or_else(EdgeList::new, |edge| EdgeList::from_buf_and_len([edge; 2], 1)),
            successors: EdgeList::new(),
        });
        if after.len() > 1 {
            self.follow_more(&after[1..], key, early);
        }
        key
    }

    /// Writes the first end of an edge to a new node and returns the second end.
    #[inline]
    fn lead(&mut self, from: NodeKey, to: NodeKey, early: bool) -> EdgeEnd {
        let node = self.nodes.get_mut(from).expect("checked");
        let early = early && matches!(node.operation, Operation::Kernel(_));
        let kind = if early { EdgeKind::Programmatic } else { EdgeKind::Full };
        node.successors.push(EdgeEnd { node: to, kind });
        EdgeEnd { node: from, kind }
    }

    /// Writes all edges of a new node but the first.
    fn follow_more(&mut self, after: &[NodeKey], key: NodeKey, early: bool) {
        for &from in after {
            // If `from` already has an edge to the new node, it is the last one.
            if self.node(from).successors.last().is_none_or(|edge| edge.node != key) {
                let edge = self.lead(from, key, early);
                self.nodes.get_mut(key).expect("inserted").predecessors.push(edge);
            }
        }
    }

    /// Removes a node, its edges, and every graph inside it.
    pub(crate) fn delete_node(&mut self, key: NodeKey) -> Removed {
        let mut removed = Removed::default();
        let Some(node) = self.nodes.get(key) else {
            return removed;
        };
        let graph = node.graph;
        let (before, after) = (node.predecessors.clone(), node.successors.clone());
        for edge in before {
            take_out(&mut self.nodes.get_mut(edge.node).expect("linked").successors, key);
        }
        for edge in after {
            take_out(&mut self.nodes.get_mut(edge.node).expect("linked").predecessors, key);
        }
        self.remove_contents(key, &mut removed);
        let place = self.graphs.get_mut(graph).expect("a node's graph exists");
        place.dead += 1;
        if place.dead * 2 > place.members.len() {
            self.compact(graph);
        }
        removed
    }

    /// Removes a node and puts edges from all its predecessors to all its successors in its place.
    /// Returns the predecessors.
    pub(crate) fn bypass_node(&mut self, key: NodeKey) -> (SmallVec<[NodeKey; 2]>, Removed) {
        let node = self.node(key);
        let (before, after) = (node.predecessors.clone(), node.successors.clone());
        for to in &after {
            for from in &before {
                if !self.node(to.node).predecessors.iter().any(|edge| edge.node == from.node) {
                    self.link(from.node, to.node, EdgeKind::Full);
                }
            }
        }
        (before.iter().map(|edge| edge.node).collect(), self.delete_node(key))
    }

    fn compact(&mut self, graph: GraphKey) {
        let alive = self.nodes(graph).collect();
        let place = self.graphs.get_mut(graph).expect("a node's graph exists");
        place.members = alive;
        place.dead = 0;
    }

    /// Removes a node and, all the way down, the graphs inside it with their nodes and conditions.
    fn remove_contents(&mut self, key: NodeKey, removed: &mut Removed) {
        self.remove_inside(key, removed);
        self.remove_one(key, removed);
    }

    /// Removes the graphs inside a node, which is about to get new ones.
    pub(crate) fn remove_bodies(&mut self, key: NodeKey) -> Removed {
        let mut removed = Removed::default();
        self.remove_inside(key, &mut removed);
        removed
    }

    fn remove_inside(&mut self, key: NodeKey, removed: &mut Removed) {
        let graphs: Vec<GraphKey> =
            self.node(key).bodies().iter().flat_map(|&body| self.graphs_inside(body)).collect();
        if !graphs.is_empty() {
            let scopes: std::collections::HashSet<GraphKey> = graphs.iter().copied().collect();
            let inside: Vec<_> = self
                .conditions()
                .filter(|(_, condition)| scopes.contains(&condition.scope))
                .map(|(key, _)| key)
                .collect();
            for condition in inside {
                self.conditions.remove(condition);
            }
        }
        for &graph in &graphs {
            let GraphData { members, .. } = self.graphs.remove(graph).expect("listed");
            for member in members {
                self.remove_one(member, removed);
            }
        }
    }

    fn remove_one(&mut self, key: NodeKey, removed: &mut Removed) {
        let Some(node) = self.nodes.remove(key) else {
            return;
        };
        // The condition can be tested by another node again.
        if let Operation::Conditional(conditional) = &node.operation
            && let Test::Condition(condition) = conditional.test
            && let Some(data) = self.conditions.get_mut(condition)
        {
            data.used_by = None;
        }
        removed._nodes.push(node);
    }
}
