//! Nodes that every path passes, for fast answers to "does one node precede another?".
//!
//! A node *dominates* another if every path from the start of the graph to the other passes it, and
//! *post-dominates* it if every path from the other to the end of the graph passes it. If some node
//! post-dominates `from` and dominates `to`, then `from` precedes `to`. Most graphs answer that
//! way: chains, uploads that one node joins, branches that meet again.
//!
//! It is enough to look at one node, the last one on the chain of post-dominators of `from` that
//! does not come after `to`. Let another node `j` of the chain dominate `to`. Every path from `j`
//! to the end passes the last one, which does not come after `to`; so every path from `j` to `to`
//! does as well, and the last one dominates `to` too.

use crate::graph::definition::{Definition, GraphKey, NodeKey};

/// The dominators and post-dominators of the nodes of the graphs that were added.
pub(super) struct Dominators {
    /// The position of each node in the topological order of its graph.
    positions: Vec<u32>,
    before: Tree,
    after: Tree,
}

impl Dominators {
    /// Creates a table for all nodes of a definition. Graphs are added one by one.
    pub(super) fn new(definition: &Definition) -> Self {
        let bound = definition.node_bound();
        Dominators { positions: vec![0; bound], before: Tree::new(bound), after: Tree::new(bound) }
    }

    /// Computes the dominators of a graph.
    pub(super) fn add(&mut self, definition: &Definition, graph: GraphKey) {
        let ordered = definition.topological(graph);
        for (position, key) in ordered.iter().enumerate() {
            self.positions[key.index()] = position as u32;
            self.before
                .insert(key.index(), definition.node(*key).predecessors().iter().map(|edge| edge.node));
        }
        for key in ordered.iter().rev() {
            self.after.insert(key.index(), definition.node(*key).successors().iter().map(|edge| edge.node));
        }
    }

    /// Returns whether `from` precedes `to`, two nodes of one graph. `false` means that dominators
    /// do not tell.
    pub(super) fn precedes(&self, from: NodeKey, to: NodeKey) -> bool {
        let limit = self.positions[to.index()];
        let between = self.after.last_below(from.index(), |node| self.positions[node] <= limit);
        self.before.is_ancestor(between, to.index())
    }
}

/// A tree over nodes. Each node has a second, longer way up, so that ancestors are found in a
/// logarithmic number of steps.
struct Tree {
    parents: Vec<u32>,
    jumps: Vec<u32>,
    depths: Vec<u32>,
}

impl Tree {
    fn new(bound: usize) -> Self {
        // The root stands for the start or the end of the graph.
        let root = bound as u32;
        Tree { parents: vec![root; bound + 1], jumps: vec![root; bound + 1], depths: vec![0; bound + 1] }
    }

    fn root(&self) -> usize {
        self.parents.len() - 1
    }

    /// Adds a node below the nearest common ancestor of its neighbours, which are in the tree.
    fn insert(&mut self, node: usize, mut neighbours: impl Iterator<Item = NodeKey>) {
        let parent = match neighbours.next() {
            None => self.root(),
            Some(first) => {
                neighbours.fold(first.index(), |common, other| self.common_ancestor(common, other.index()))
            }
        };
        let jump = self.jumps[parent] as usize;
        let further = self.jumps[jump] as usize;
        let (depth, middle, end) = (self.depths[parent], self.depths[jump], self.depths[further]);
        self.parents[node] = parent as u32;
        self.depths[node] = depth + 1;
        self.jumps[node] = if depth - middle == middle - end { further as u32 } else { parent as u32 };
    }

    fn common_ancestor(&self, one: usize, other: usize) -> usize {
        let depth = self.depths[one].min(self.depths[other]);
        let (mut one, mut other) = (self.ancestor(one, depth), self.ancestor(other, depth));
        while one != other {
            let (jump, other_jump) = (self.jumps[one], self.jumps[other]);
            let step = jump == other_jump;
            one = if step { self.parents[one] } else { jump } as usize;
            other = if step { self.parents[other] } else { other_jump } as usize;
        }
        one
    }

    /// Returns the ancestor at a depth that is at most that of the node.
    fn ancestor(&self, mut node: usize, depth: u32) -> usize {
        while self.depths[node] > depth {
            let jump = self.jumps[node] as usize;
            node = if self.depths[jump] >= depth { jump } else { self.parents[node] as usize };
        }
        node
    }

    fn is_ancestor(&self, ancestor: usize, node: usize) -> bool {
        self.depths[ancestor] <= self.depths[node] && self.ancestor(node, self.depths[ancestor]) == ancestor
    }

    /// Returns the last node on the way up from `node` that still satisfies `holds`. `node` does,
    /// and from the first one on that does not, none does.
    fn last_below(&self, mut node: usize, holds: impl Fn(usize) -> bool) -> usize {
        let root = self.root();
        let goes_on = |next: usize| next != root && holds(next);
        loop {
            let (jump, parent) = (self.jumps[node] as usize, self.parents[node] as usize);
            node = if goes_on(jump) {
                jump
            } else if goes_on(parent) {
                parent
            } else {
                return node;
            };
        }
    }
}
