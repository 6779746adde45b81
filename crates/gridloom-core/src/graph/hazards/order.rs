//! Order queries: whether a node comes after others.

use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::dominators::Dominators;
use super::history::Conflict;
use crate::graph::definition::{Definition, GraphKey, NodeKey, Order};

/// Answers whether a node comes after others.
///
/// It looks at the dominators of a graph first. Where they do not decide, it searches backwards
/// over the edges, latest node first, until all targets are found. Most nodes depend directly on
/// what they use, so searches are short.
pub(super) struct Search<'a> {
    definition: &'a Definition,
    dominators: Dominators,
    /// The graphs whose dominators are known.
    dominated: FxHashSet<GraphKey>,
    /// The round in which each node was last seen. `wanted` is the round in which it was last a
    /// target.
    seen: Vec<u32>,
    wanted: Vec<u32>,
    round: u32,
    heap: BinaryHeap<(Order, NodeKey)>,
    steps_left: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(definition: &'a Definition, steps: u64) -> Self {
        let bound = definition.node_bound();
        let (seen, wanted) = (vec![0; bound], vec![0; bound]);
        Search {
            definition,
            dominators: Dominators::new(definition),
            dominated: FxHashSet::default(),
            seen,
            wanted,
            round: 0,
            heap: BinaryHeap::new(),
            steps_left: steps,
        }
    }

    /// Returns whether the search ran out of steps.
    pub(super) fn gave_up(&self) -> bool {
        self.steps_left == 0
    }

    /// Collects the conflicts with nodes that do not precede `node`.
    pub(super) fn unordered(&mut self, node: NodeKey, earlier: &[Conflict], found: &mut Vec<Conflict>) {
        // Nodes of different graphs are compared in the innermost graph around both. There is one
        // search for each graph around `node` that contains targets.
        let mut pairs: Vec<(NodeKey, NodeKey, &Conflict)> = Vec::new();
        for conflict in earlier {
            let (from, to) = self.definition.in_common_graph(conflict.node, node);
            // Both are in one node: bodies of which only one runs, or a conditional and its own
            // body.
            if from == to {
                continue;
            }
            self.steps_left = self.steps_left.saturating_sub(1);
            let graph = self.definition.node(to).graph;
            if self.dominated.insert(graph) {
                self.dominators.add(self.definition, graph);
            }
            if !self.dominators.precedes(from, to) {
                pairs.push((to, from, conflict));
            }
        }
        pairs.sort_by_key(|&(to, from, _)| (to, from));
        for group in pairs.chunk_by(|one, other| one.0 == other.0) {
            self.search(group[0].0, group.iter().map(|&(_, from, _)| from));
            let round = self.round;
            for &(_, from, conflict) in group {
                if self.seen[from.index()] != round {
                    found.push(*conflict);
                }
            }
        }
        if self.gave_up() {
            found.clear();
        }
    }

    /// Marks the predecessors of `node`, direct and indirect, until all of `targets` are found.
    fn search(&mut self, node: NodeKey, targets: impl Iterator<Item = NodeKey>) {
        self.round += 1;
        let (mut missing, mut first) = (0usize, Order::MAX);
        for target in targets {
            if self.wanted[target.index()] != self.round {
                self.wanted[target.index()] = self.round;
                missing += 1;
            }
            first = first.min(self.definition.node(target).order);
        }
        self.heap.clear();
        self.heap.push((self.definition.node(node).order, node));
        while let Some((_, key)) = self.heap.pop() {
            for edge in self.definition.node(key).predecessors() {
                if self.steps_left == 0 {
                    return;
                }
                self.steps_left -= 1;
                let index = edge.node.index();
                let order = self.definition.node(edge.node).order;
                if self.seen[index] == self.round || order < first {
                    continue;
                }
                self.seen[index] = self.round;
                if self.wanted[index] == self.round {
                    missing -= 1;
                    if missing == 0 {
                        return;
                    }
                }
                self.heap.push((order, edge.node));
            }
        }
    }
}
