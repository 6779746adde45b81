//! Flattening: a graph and its embedded children as one list of nodes with work, in topological
//! order.
//!
//! Nodes without work (empty nodes, allocations with planned memory, frees) are left out. Nodes
//! that were ordered through such a node are then ordered directly, unless that would need more
//! edges than before. If many nodes precede many others, a *join* stays between them: 1,000 nodes
//! before 1,000 others take 2,000 edges and not a million.

use gridloom_core::graph::{Definition, GraphKey, NodeKey};
use gridloom_core::op::Operation;
use smallvec::SmallVec;

/// The largest number of predecessors that a node without work passes to its only successor instead
/// of becoming a join.
const HANDED_ON: usize = 4;

/// A flattened graph. Nodes are numbered in topological order.
#[derive(Default)]
pub(super) struct Flat {
    /// The node of the definition, or `None` for a join.
    pub(super) nodes: Vec<Option<NodeKey>>,
    /// The start of each node's predecessors, and the end of the last list.
    pub(super) starts: Vec<u32>,
    pub(super) predecessors: Vec<u32>,
}

/// What a successor of a node of the definition waits for.
#[derive(Clone, Copy)]
enum WaitFor {
    Nothing,
    Node(u32),
    /// An entry of `Flattening::lists`.
    List(u32),
}

type List = SmallVec<[u32; 8]>;

struct Flattening<'a> {
    definition: &'a Definition,
    flat: Flat,
    /// Indexed by the nodes of the definition.
    wait_table: Vec<WaitFor>,
    lists: Vec<SmallVec<[u32; HANDED_ON]>>,
}

impl Flat {
    /// Flattens one graph of a definition. Conditionals stay single nodes.
    pub(super) fn new(definition: &Definition, graph: GraphKey, wait_table: &mut WaitTable) -> Self {
        let mut flattening = Flattening {
            definition,
            flat: Flat::default(),
            wait_table: std::mem::take(&mut wait_table.0),
            lists: Vec::new(),
        };
        flattening.wait_table.resize(definition.node_bound(), WaitFor::Nothing);
        flattening.flat.starts.push(0);
        flattening.graph(graph, WaitFor::Nothing);
        wait_table.0 = flattening.wait_table;
        flattening.flat
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn predecessors(&self, node: usize) -> &[u32] {
        &self.predecessors[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// A table over the nodes of a definition. It is reused for each of its graphs.
#[derive(Default)]
pub(super) struct WaitTable(Vec<WaitFor>);

impl Flattening<'_> {
    /// Flattens a graph whose first nodes wait for `entry`.
    fn graph(&mut self, graph: GraphKey, entry: WaitFor) {
        for &key in &*self.definition.topological(graph) {
            let node = self.definition.node(key);
            let mut before = List::new();
            if node.predecessors().is_empty() {
                self.add(&mut before, entry);
            }
            for edge in node.predecessors() {
                self.add(&mut before, self.wait_table[edge.node.index()]);
            }
            let place = match node.operation() {
                Operation::Empty | Operation::Alloc(_) | Operation::Free(_) => {
                    self.meet(before, node.successors().len())
                }
                Operation::Child(child) => self.child(*child, before, node.successors().len()),
                _ => WaitFor::Node(self.push(Some(key), &before)),
            };
            self.wait_table[key.index()] = place;
        }
    }

    fn child(&mut self, child: GraphKey, before: List, successors: usize) -> WaitFor {
        let entries =
            self.definition.nodes(child).filter(|&key| self.definition.node(key).predecessors().is_empty());
        let entry = match entries.take(2).count() {
            0 => return self.meet(before, successors),
            entries => self.meet(before, entries),
        };
        self.graph(child, entry);
        let mut last = List::new();
        for key in self.definition.nodes(child) {
            if self.definition.node(key).successors().is_empty() {
                self.add(&mut last, self.wait_table[key.index()]);
            }
        }
        self.meet(last, successors)
    }

    fn add(&self, before: &mut List, place: WaitFor) {
        match place {
            WaitFor::Nothing => {}
            WaitFor::Node(node) => before.push(node),
            WaitFor::List(list) => before.extend_from_slice(&self.lists[list as usize]),
        }
    }

    /// Adds a point without work after `before`, with this many successors.
    fn meet(&mut self, before: List, successors: usize) -> WaitFor {
        match (before.len(), successors) {
            (0, _) | (_, 0) => self.meet_at_end(before),
            (1, _) => WaitFor::Node(before[0]),
            (2..=HANDED_ON, 1) => {
                self.lists.push(SmallVec::from_slice(&before));
                WaitFor::List(self.lists.len() as u32 - 1)
            }
            _ => WaitFor::Node(self.push(None, &before)),
        }
    }

    /// Adds a point without work that has no predecessors or no successors in its graph. Nodes
    /// after a child may still wait for it.
    fn meet_at_end(&mut self, before: List) -> WaitFor {
        match before.len() {
            0 => WaitFor::Nothing,
            1 => WaitFor::Node(before[0]),
            _ => {
                let list = SmallVec::from_slice(&before);
                self.lists.push(list);
                WaitFor::List(self.lists.len() as u32 - 1)
            }
        }
    }

    fn push(&mut self, key: Option<NodeKey>, before: &[u32]) -> u32 {
        let number = self.flat.nodes.len() as u32;
        self.flat.nodes.push(key);
        self.flat.predecessors.extend_from_slice(before);
        self.flat.starts.push(self.flat.predecessors.len() as u32);
        number
    }
}
