//! Flattening: a graph and its embedded children as one list of steps, in topological order.
//!
//! Nodes that only order others (empty nodes, allocations and frees of planned memory) get no step.
//! Nodes that were ordered through such a node are then ordered directly, unless that would need
//! more edges than before. If several nodes precede several others, a *join* stays between them:
//! 1,000 nodes before 1,000 others take 2,000 edges and not a million.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::graph::{Definition, EdgeKind, GraphKey, NodeKey};
use crate::op::Role;

/// A flattened graph. Steps are numbered in topological order.
#[derive(Debug, Default)]
pub struct FlatGraph {
    steps: Vec<FlatStep>,
    /// The start of each step's predecessors, and the end of the last list.
    starts: Vec<u32>,
    predecessors: Vec<FlatEdge>,
}

/// A step of a flattened graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatStep {
    /// The node that the step runs. For a join, the node that it stands for.
    pub origin: NodeKey,
    /// Whether the step is a join. It runs nothing; edges meet there.
    pub is_join: bool,
}

/// An edge from an earlier step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatEdge {
    /// The number of the earlier step.
    pub step: u32,
    /// The kind of the edge.
    pub kind: EdgeKind,
}

impl FlatGraph {
    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the steps in topological order.
    pub fn steps(&self) -> &[FlatStep] {
        &self.steps
    }

    /// Returns the edges to a step, by the number of the step. Each earlier step occurs once.
    #[inline]
    pub fn predecessors(&self, step: usize) -> &[FlatEdge] {
        &self.predecessors[self.starts[step] as usize..self.starts[step + 1] as usize]
    }

    /// Returns the edges to all steps.
    pub fn edges(&self) -> &[FlatEdge] {
        &self.predecessors
    }

    /// Returns the nodes with work, in topological order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeKey> + '_ {
        self.steps.iter().filter(|step| !step.is_join).map(|step| step.origin)
    }
}

type List = SmallVec<[FlatEdge; 4]>;

/// What the successors of a node wait for.
#[derive(Clone, Copy)]
enum End {
    Nothing,
    Step(u32),
    /// An entry of `Flattener::lists`. It has one successor, which takes the list.
    List(u32),
}

/// Flattens the graphs of one definition. Its tables are reused for each of them.
pub struct Flattener<'a> {
    definition: &'a Definition,
    disabled: Option<&'a FxHashSet<NodeKey>>,
    /// Indexed by the nodes of the definition. A node is in one graph, and only nodes of that graph
    /// look it up.
    ends: Vec<End>,
    lists: Vec<List>,
    flat: FlatGraph,
}

impl<'a> Flattener<'a> {
    /// Creates a flattener for the graphs of a definition.
    pub fn new(definition: &'a Definition) -> Self {
        Flattener {
            definition,
            disabled: None,
            ends: vec![End::Nothing; definition.node_bound()],
            lists: Vec::new(),
            flat: FlatGraph::default(),
        }
    }

    /// Leaves these nodes out. They keep the order of the nodes around them.
    pub fn without(mut self, disabled: &'a FxHashSet<NodeKey>) -> Self {
        self.disabled = (!disabled.is_empty()).then_some(disabled);
        self
    }

    /// Flattens one graph. Conditionals stay single steps, whose bodies are graphs of their own.
    pub fn flatten(&mut self, graph: GraphKey) -> FlatGraph {
        let nodes = self.definition.node_count(graph);
        self.flat.steps.reserve(nodes);
        self.flat.starts.reserve(nodes + 1);
        self.flat.starts.push(0);
        self.graph(graph, End::Nothing);
        self.lists.clear();
        std::mem::take(&mut self.flat)
    }

    /// Adds a graph whose first nodes wait for `entry`.
    fn graph(&mut self, graph: GraphKey, entry: End) {
        let definition = self.definition;
        for &key in &*definition.topological(graph) {
            let node = definition.node(key);
            let mut before = List::new();
            if node.predecessors().is_empty() {
                self.add(&mut before, entry, EdgeKind::Full);
            }
            for edge in node.predecessors() {
                let end = self.ends[edge.node.index()];
                self.add(&mut before, end, self.kind(edge.node, end, edge.kind));
            }
            let successors = node.successors().len();
            let operation = node.operation();
            self.ends[key.index()] = match operation.kind().facts().role {
                Role::Order => self.meet(key, before, successors),
                Role::Child => self.child(key, operation.bodies(), before, successors),
                Role::Work | Role::Conditional | Role::Opaque => {
                    if self.disabled.is_some_and(|disabled| disabled.contains(&key)) {
                        self.meet(key, before, successors)
                    } else {
                        End::Step(self.push(FlatStep { origin: key, is_join: false }, before))
                    }
                }
            };
        }
    }

    /// Adds the graph inside a child node.
    fn child(&mut self, key: NodeKey, child: &[GraphKey], before: List, successors: usize) -> End {
        let definition = self.definition;
        let &[child] = child else { return self.meet(key, before, successors) };
        let is_first = |key: &NodeKey| definition.node(*key).predecessors().is_empty();
        let entry = match definition.nodes(child).filter(is_first).take(2).count() {
            0 => return self.meet(key, before, successors),
            first => self.meet(key, before, first),
        };
        self.graph(child, entry);
        let mut last = List::new();
        for inner in definition.nodes(child) {
            if definition.node(inner).successors().is_empty() {
                self.add(&mut last, self.ends[inner.index()], EdgeKind::Full);
            }
        }
        self.meet(key, last, successors)
    }

    /// Returns the kind of an edge from `node`, which ends at `end`. Only the node's own step can
    /// release a successor early.
    #[inline]
    fn kind(&self, node: NodeKey, end: End, kind: EdgeKind) -> EdgeKind {
        match (kind, end) {
            (EdgeKind::Programmatic, End::Step(step))
                if self.flat.steps[step as usize] == (FlatStep { origin: node, is_join: false }) =>
            {
                EdgeKind::Programmatic
            }
            _ => EdgeKind::Full,
        }
    }

    /// Adds an end to what a node waits for.
    #[inline]
    fn add(&mut self, before: &mut List, end: End, kind: EdgeKind) {
        match end {
            End::Nothing => {}
            End::Step(step) => before.push(FlatEdge { step, kind }),
            End::List(list) => {
                // The shorter list is added to the longer one. A list that passes through a long
                // chain of nodes is then not copied at each of them.
                let mut list = std::mem::take(&mut self.lists[list as usize]);
                if list.len() > before.len() {
                    std::mem::swap(&mut list, before);
                }
                before.extend_from_slice(&list);
            }
        }
    }

    /// Adds a point without work after `before`, with this many successors. It becomes a step only
    /// if that saves edges.
    fn meet(&mut self, origin: NodeKey, mut before: List, successors: usize) -> End {
        if successors > 1 {
            merge(&mut before);
        }
        before.iter_mut().for_each(|edge| edge.kind = EdgeKind::Full);
        match before.as_slice() {
            [] => End::Nothing,
            [only] => End::Step(only.step),
            _ if successors <= 1 => {
                self.lists.push(before);
                End::List(self.lists.len() as u32 - 1)
            }
            _ => End::Step(self.push(FlatStep { origin, is_join: true }, before)),
        }
    }

    fn push(&mut self, step: FlatStep, mut before: List) -> u32 {
        merge(&mut before);
        let number = self.flat.steps.len() as u32;
        self.flat.steps.push(step);
        self.flat.predecessors.extend_from_slice(&before);
        self.flat.starts.push(self.flat.predecessors.len() as u32);
        number
    }
}

/// Leaves one edge from each step. A full edge includes a programmatic one from the same step.
fn merge(edges: &mut List) {
    if edges.len() <= 1 {
        return;
    }
    // Sorted, not searched: a node may wait for all others of a large graph.
    edges.sort_unstable_by_key(|edge| edge.step);
    edges.dedup_by(|again, first| {
        let same = again.step == first.step;
        if same && again.kind == EdgeKind::Full {
            first.kind = EdgeKind::Full;
        }
        same
    });
}
