//! Differences between two graphs.
//!
//! Nodes are paired in the order in which they were added, graph by graph. A difference of
//! *topology* (nodes, kinds, edges, bodies, allocations, conditions) is kept apart from a
//! difference of *parameters* (operations and the defaults of conditions), which an executable can
//! take over.

use std::fmt;

use super::copy::{Mapping, has_keys};
use super::definition::{ConditionKey, Definition, EdgeEnd, GraphKey, NodeData, NodeKey};
use crate::op::{FreeTarget, NodeKind, Operation, Test};

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// The second graph has no counterpart of this node.
    Missing,
    /// The second graph has a further node.
    Extra,
    /// The nodes are of different kinds.
    Kind,
    /// The nodes have different predecessors or kinds of edges.
    Edges,
    /// The nodes have different bodies, allocations or conditions, which are part of the topology.
    Structure,
    /// The nodes have different parameters.
    Parameters,
}

/// One difference between two graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The node of the first graph, if there is one.
    pub node: Option<NodeKey>,
    /// The node of the second graph, if there is one.
    pub other: Option<NodeKey>,
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// A description that names the node.
    pub message: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The result of comparing two graphs.
pub(crate) struct Comparison {
    /// Differences of topology, in the order in which they were found.
    pub(crate) topology: Vec<Difference>,
    /// Nodes of the first graph whose parameters differ, with their counterparts and the new
    /// operations. The operations use keys of the first graph. Empty if the topology differs.
    pub(crate) parameters: Vec<(NodeKey, NodeKey, Operation)>,
    /// Conditions of the first graph whose defaults differ, with the new defaults. Empty if the
    /// topology differs.
    pub(crate) defaults: Vec<(ConditionKey, Option<u32>)>,
}

/// Returns the nodes of two definitions in pairs, if their topologies are equal and their
/// operations can be compared directly. That is so for definitions that were built in the same way
/// and hold no keys. Most updates come from such graphs. Returns `None` if [`compare`] must decide.
pub(crate) fn aligned<'a>(
    old: &'a Definition,
    new: &'a Definition,
) -> Option<impl Iterator<Item = (NodeKey, NodeKey)> + 'a> {
    let is_self_contained = |definition: &Definition| {
        definition.has_only(NodeKind::PARAMETERS_ONLY) && definition.conditions().next().is_none()
    };
    if !is_self_contained(old) || !is_self_contained(new) {
        return None;
    }
    let (ours, theirs) = (old.graphs.get(old.root)?, new.graphs.get(new.root)?);
    let pairs = ours.members.iter().copied().zip(theirs.members.iter().copied());
    let is_aligned = ours.dead + theirs.dead == 0
        && ours.members.len() == theirs.members.len()
        && pairs.clone().all(|(node, other)| {
            let (ours, theirs) = (old.node(node), new.node(other));
            node.index() == other.index()
                && ours.operation.kind() == theirs.operation.kind()
                && has_same_edges(ours, theirs)
        });
    is_aligned.then_some(pairs)
}

/// Returns whether two nodes have predecessors at the same indices, in the same order.
#[inline]
fn has_same_edges(one: &NodeData, other: &NodeData) -> bool {
    let (ours, theirs) = (&one.predecessors, &other.predecessors);
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(ours, theirs)| ours.node.index() == theirs.node.index() && ours.kind == theirs.kind)
}

struct Comparer<'a> {
    old: &'a Definition,
    new: &'a Definition,
    /// From keys of `new` to keys of `old`: graphs, conditions and alloc nodes, which are the only
    /// nodes that operations refer to.
    map: Mapping,
    pairs: Vec<(NodeKey, NodeKey)>,
    /// The node of `old` that each node of `new` is paired with, by the index of the latter.
    paired: Vec<Option<NodeKey>>,
    /// Whether the graphs are the outermost ones. Conditions that no node tests belong to those.
    is_whole: bool,
    found: Vec<Difference>,
}

/// Compares a graph of one definition with a graph of another.
pub(crate) fn compare(
    old: &Definition,
    old_graph: GraphKey,
    new: &Definition,
    new_graph: GraphKey,
) -> Comparison {
    let mut comparer = Comparer {
        old,
        new,
        map: Mapping::default(),
        pairs: Vec::with_capacity(old.node_count(old_graph)),
        paired: vec![None; new.node_bound()],
        is_whole: old_graph == old.root && new_graph == new.root,
        found: Vec::new(),
    };
    comparer.pair(old_graph, new_graph);
    comparer.check_structure();
    let (parameters, defaults) = match comparer.found.is_empty() {
        true => (comparer.parameters(), comparer.defaults()),
        false => (Vec::new(), Vec::new()),
    };
    Comparison { topology: comparer.found, parameters, defaults }
}

impl Comparer<'_> {
    fn report(
        &mut self,
        node: Option<NodeKey>,
        other: Option<NodeKey>,
        kind: DifferenceKind,
        message: String,
    ) {
        self.found.push(Difference { node, other, kind, message });
    }

    /// Pairs the nodes of two graphs, and of the graphs inside them.
    fn pair(&mut self, old_graph: GraphKey, new_graph: GraphKey) {
        self.map.graphs.insert(new_graph, old_graph);
        let (old, new) = (self.old, self.new);
        let (mut ours, mut theirs) = (old.nodes(old_graph), new.nodes(new_graph));
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return,
                (Some(node), None) => {
                    let message = format!("{} has no counterpart in the other graph", old.label(node));
                    return self.report(Some(node), None, DifferenceKind::Missing, message);
                }
                (None, Some(other)) => {
                    let message = format!("{} is only in the other graph", new.label(other));
                    return self.report(None, Some(other), DifferenceKind::Extra, message);
                }
                (Some(node), Some(other)) => {
                    let (kind, other_kind) =
                        (old.node(node).operation.kind(), new.node(other).operation.kind());
                    if kind != other_kind {
                        let message = format!(
                            "{} is a {} here and a {} ({}) in the other graph",
                            old.label(node),
                            kind.name(),
                            other_kind.name(),
                            new.label(other)
                        );
                        return self.report(Some(node), Some(other), DifferenceKind::Kind, message);
                    }
                    if kind == NodeKind::Alloc {
                        self.map.nodes.insert(other, node);
                    }
                    self.paired[other.index()] = Some(node);
                    self.pairs.push((node, other));
                    self.pair_bodies(node, other);
                }
            }
        }
    }

    fn pair_bodies(&mut self, node: NodeKey, other: NodeKey) {
        let (old, new) = (self.old, self.new);
        let (ours, theirs) = (old.node(node).bodies(), new.node(other).bodies());
        if ours.len() != theirs.len() {
            let message = format!(
                "{} has {} bodies here and {} in the other graph",
                self.old.label(node),
                ours.len(),
                theirs.len()
            );
            self.report(Some(node), Some(other), DifferenceKind::Structure, message);
        }
        if let (Operation::Conditional(a), Operation::Conditional(b)) =
            (&self.old.node(node).operation, &self.new.node(other).operation)
            && let (Test::Condition(a), Test::Condition(b)) = (&a.test, &b.test)
        {
            self.map.conditions.insert(*b, *a);
        }
        for (&ours, &theirs) in ours.iter().zip(theirs) {
            self.pair(ours, theirs);
        }
    }

    /// Compares edges and everything else that an executable cannot change.
    fn check_structure(&mut self) {
        self.pair_unused_conditions();
        for (node, other) in std::mem::take(&mut self.pairs) {
            if let Some(message) = self.structure_differs(node, other) {
                let message = format!("{}: {message}", self.old.label(node));
                self.report(Some(node), Some(other), DifferenceKind::Structure, message);
            }
            if !self.same_edges(node, other) {
                let names = |definition: &Definition, edges: &[EdgeEnd]| {
                    let names: Vec<String> = edges.iter().map(|edge| definition.label(edge.node)).collect();
                    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
                };
                let message = format!(
                    "{} depends on {} here and on {} in the other graph",
                    self.old.label(node),
                    names(self.old, &self.old.node(node).predecessors),
                    names(self.new, &self.new.node(other).predecessors)
                );
                self.report(Some(node), Some(other), DifferenceKind::Edges, message);
            }
            self.pairs.push((node, other));
        }
    }

    /// Pairs conditions that no node tests, in the order in which they were made.
    fn pair_unused_conditions(&mut self) {
        let unused = |definition: &Definition| {
            let unused = definition.conditions().filter(|(_, data)| data.used_by.is_none());
            unused.map(|(key, _)| key).collect::<Vec<_>>()
        };
        for (ours, theirs) in unused(self.old).into_iter().zip(unused(self.new)) {
            self.map.conditions.entry(theirs).or_insert(ours);
        }
    }

    fn structure_differs(&self, node: NodeKey, other: NodeKey) -> Option<String> {
        match (&self.old.node(node).operation, &self.new.node(other).operation) {
            (Operation::Alloc(a), Operation::Alloc(b)) if a != b => {
                Some("the allocation has another size or kind in the other graph".into())
            }
            (Operation::Free(a), Operation::Free(b)) => {
                let same = match (a, b) {
                    (FreeTarget::AllocNode(a), FreeTarget::AllocNode(b)) => self.map.nodes.get(b) == Some(a),
                    (FreeTarget::Outliving(a), FreeTarget::Outliving(b)) => std::sync::Arc::ptr_eq(a, b),
                    _ => false,
                };
                (!same).then(|| "it frees other memory in the other graph".into())
            }
            (Operation::Conditional(a), Operation::Conditional(b)) => {
                if std::mem::discriminant(&a.test) != std::mem::discriminant(&b.test)
                    || a.test_first != b.test_first
                {
                    Some("it is decided in another way in the other graph".into())
                } else {
                    self.uses_unknown(&self.new.node(other).operation)
                }
            }
            (_, operation) => self.uses_unknown(operation),
        }
    }

    /// Returns a message if an operation uses something without a counterpart: memory that was
    /// deleted or lies outside of the compared graphs.
    fn uses_unknown(&self, operation: &Operation) -> Option<String> {
        let mut unknown = false;
        operation.for_each_condition(|condition| unknown |= !self.map.conditions.contains_key(&condition));
        operation.for_each_alloc_node(|alloc| unknown |= !self.map.nodes.contains_key(&alloc));
        unknown.then(|| "it uses a condition or an allocation that has no counterpart here".into())
    }

    fn same_edges(&self, node: NodeKey, other: NodeKey) -> bool {
        let (ours, theirs) = (&self.old.node(node).predecessors, &self.new.node(other).predecessors);
        if ours.len() != theirs.len() {
            return false;
        }
        let mapped = |edge: &EdgeEnd| {
            let node = self.paired[edge.node.index()]?;
            Some(EdgeEnd { node, kind: edge.kind })
        };
        // The edges are mostly in the same order. Sorting is only needed if not.
        if ours.iter().zip(theirs).all(|(ours, theirs)| mapped(theirs) == Some(*ours)) {
            return true;
        }
        let mut theirs: Vec<EdgeEnd> = theirs.iter().filter_map(mapped).collect();
        let mut ours: Vec<EdgeEnd> = ours.to_vec();
        ours.sort_unstable_by_key(|edge| edge.node);
        theirs.sort_unstable_by_key(|edge| edge.node);
        ours == theirs
    }

    /// Returns the conditions of the first graph whose defaults differ, with the new defaults.
    fn defaults(&self) -> Vec<(ConditionKey, Option<u32>)> {
        let default = |definition: &Definition, key| definition.get_condition(key)?.default_value();
        let is_tested = |key| self.old.get_condition(key).is_some_and(|data| data.used_by.is_some());
        let mut changed: Vec<_> = self
            .map
            .conditions
            .iter()
            .map(|(&theirs, &ours)| (ours, default(self.new, theirs)))
            .filter(|&(ours, new)| default(self.old, ours) != new)
            .filter(|&(ours, _)| self.is_whole || is_tested(ours))
            .collect();
        changed.sort_unstable_by_key(|(condition, _)| *condition);
        changed
    }

    fn parameters(&self) -> Vec<(NodeKey, NodeKey, Operation)> {
        let changed = self.pairs.iter().filter_map(|&(node, other)| {
            let (ours, theirs) = (&self.old.node(node).operation, &self.new.node(other).operation);
            if !has_keys(theirs) {
                return (!ours.same(theirs)).then(|| (node, other, theirs.clone()));
            }
            let operation = self.map.operation(theirs);
            (!ours.same(&operation)).then_some((node, other, operation))
        });
        changed.collect()
    }
}
