//! The data of a graph hierarchy: a root graph, the bodies and children inside it, their nodes, edges and conditions.
//!
//! Backends read it through the accessors here. In a definition that passed the checks of instantiation every key is valid; before
//! that, the memory of a deleted alloc node may still be named by its users, which instantiation and copying refuse.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use smallvec::SmallVec;

use super::keys::{Key, Slot, Table};
use crate::op::{FreeTarget, NodeKinds, Operation};
use crate::speed::Spares;

/// The key of a node in its definition.
pub type NodeKey = Key<NodeData>;
/// The key of a graph in its definition.
pub type GraphKey = Key<GraphData>;
/// The key of a condition in its definition.
pub type ConditionKey = Key<ConditionData>;

/// How the second node of an edge depends on the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// The second starts when the first has ended and its writes are visible.
    #[default]
    Full,
    /// Kernel to kernel: the second may start early and waits for the first's data itself (`griddepcontrol.wait`).
    Programmatic,
}

/// One end of an edge, seen from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeEnd {
    /// The node at that end.
    pub node: NodeKey,
    /// The kind of the edge.
    pub kind: EdgeKind,
}

/// Two edges lie in place: most nodes of chains, fans and wavefronts have no more, and an allocation costs more than the room.
pub(crate) type EdgeList = SmallVec<[EdgeEnd; 2]>;

/// A position in a topological order. Positions are spread over both signs: a graph grows at either end.
pub(crate) type Order = i64;

/// A node of a definition.
#[derive(Clone)]
pub struct NodeData {
    pub(crate) graph: GraphKey,
    pub(crate) operation: Operation,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) serial: u32,
    /// Position in a topological order of the graph: every edge leads from a smaller number to a larger one.
    pub(crate) order: Order,
    pub(crate) predecessors: EdgeList,
    pub(crate) successors: EdgeList,
}

impl NodeData {
    /// The graph it is in.
    pub fn graph(&self) -> GraphKey {
        self.graph
    }

    /// What it does.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The nodes it depends on, oldest edge first.
    pub fn predecessors(&self) -> &[EdgeEnd] {
        &self.predecessors
    }

    /// The nodes that depend on it, oldest edge first.
    pub fn successors(&self) -> &[EdgeEnd] {
        &self.successors
    }

    /// The name that the user gave it.
    pub fn given_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The graphs inside it, in order.
    pub fn bodies(&self) -> &[GraphKey] {
        match &self.operation {
            Operation::Child(graph) => std::slice::from_ref(graph),
            Operation::Conditional(conditional) => &conditional.bodies,
            _ => &[],
        }
    }
}

/// A graph of a definition: the root, a body or an embedded child.
#[derive(Clone, Default)]
pub struct GraphData {
    /// The node this graph is inside of, and which of its bodies it is.
    pub(crate) owner: Option<(NodeKey, u32)>,
    /// Nodes in the order they were added. Deleted ones stay until they are half of the list.
    pub(crate) members: SmallVec<[NodeKey; 16]>,
    pub(crate) dead: usize,
    /// One past the last position of the topological order, and the first: all positions are in between.
    pub(crate) next_order: Order,
    pub(crate) first_order: Order,
    pub(crate) next_serial: u32,
    /// Whether the order of the members may be another one: one of them was moved in it.
    pub(crate) reordered: bool,
}

/// A condition of a definition.
#[derive(Clone)]
pub struct ConditionData {
    /// The graph it was made for; it can be used there and in all graphs inside.
    pub(crate) scope: GraphKey,
    pub(crate) default: Option<u32>,
    /// The conditional node that tests it.
    pub(crate) used_by: Option<NodeKey>,
}

impl ConditionData {
    /// The graph it was made for.
    pub fn scope(&self) -> GraphKey {
        self.scope
    }

    /// The value it takes at every launch.
    pub fn default_value(&self) -> Option<u32> {
        self.default
    }

    /// The conditional node that tests it.
    pub fn used_by(&self) -> Option<NodeKey> {
        self.used_by
    }
}

/// A whole graph hierarchy at one moment.
#[derive(Clone)]
pub struct Definition {
    pub(crate) nodes: Table<NodeData, 16>,
    pub(crate) graphs: Table<GraphData, 1>,
    pub(crate) conditions: Table<ConditionData, 4>,
    pub(crate) root: GraphKey,
    /// The kinds of nodes that there are or ever were. A node keeps its kind when what it does is replaced.
    pub(crate) kinds: NodeKinds,
}

thread_local! {
    /// For the first nodes of definitions.
    static SPARE: Spares<Vec<Slot<NodeData>>, 4> = const { Spares::new() };
}

impl Drop for Definition {
    fn drop(&mut self) {
        // With what the first nodes hold, and before the memory is anybody's: dropping that may run a user's code.
        if let Some(memory) = self.nodes.take_memory() {
            Spares::keep(&SPARE, memory);
        }
    }
}

impl Definition {
    /// A number that no other definition has: all keys of a definition carry its number.
    #[inline(always)]
    pub(super) fn next_number() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    // Made where it stays: what is moved right after it was written takes longer than what is written.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let id = Definition::next_number();
        let mut graphs = Table::new(id);
        let root = graphs.insert(GraphData::default());
        let kinds = NodeKinds::default();
        let nodes = Table::with_memory(id, Spares::take(&SPARE).unwrap_or_default());
        Definition { nodes, graphs, conditions: Table::new(id), root, kinds }
    }

    /// Whether there may be a node of one of these kinds. Where there is none, and never was, nobody need go through the nodes to look for one.
    #[inline]
    pub fn may_have(&self, kinds: NodeKinds) -> bool {
        self.kinds.any_of(kinds)
    }

    /// The outermost graph.
    pub fn root(&self) -> GraphKey {
        self.root
    }

    /// The data of a node.
    ///
    /// # Panics
    /// When the key is not of this definition, which is a bug of the caller.
    #[inline]
    pub fn node(&self, key: NodeKey) -> &NodeData {
        self.nodes.get(key).expect("a node key of this definition")
    }

    /// The data of a node, or `None` where it was deleted.
    #[inline]
    pub fn get_node(&self, key: NodeKey) -> Option<&NodeData> {
        self.nodes.get(key)
    }

    /// The nodes of a graph in the order they were added.
    pub fn nodes(&self, graph: GraphKey) -> impl Iterator<Item = NodeKey> + '_ {
        self.graphs
            .get(graph)
            .into_iter()
            .flat_map(|graph| graph.members.iter().copied())
            .filter(|&key| self.nodes.get(key).is_some())
    }

    /// The nodes of all graphs, in no particular order.
    pub fn all_nodes(&self) -> impl Iterator<Item = (NodeKey, &NodeData)> {
        self.nodes.iter()
    }

    /// How many nodes a graph has, without those of graphs inside it.
    pub fn node_count(&self, graph: GraphKey) -> usize {
        self.graphs.get(graph).map_or(0, |graph| graph.members.len() - graph.dead)
    }

    /// The nodes of a graph so that every node comes after those it depends on.
    pub fn topological(&self, graph: GraphKey) -> Cow<'_, [NodeKey]> {
        let Some(data) = self.graphs.get(graph) else { return Cow::default() };
        // Nodes are mostly added in order, and stay.
        if data.dead == 0 && !data.reordered {
            return Cow::Borrowed(&data.members);
        }
        let mut ordered: Vec<NodeKey> = self.nodes(graph).collect();
        if data.reordered {
            ordered.sort_by_cached_key(|&key| self.node(key).order);
        }
        Cow::Owned(ordered)
    }

    /// One past the largest [`Key::index`] of a node: the size of a dense table over nodes.
    pub fn node_bound(&self) -> usize {
        self.nodes.bound()
    }

    /// One past the largest [`Key::index`] of a condition.
    pub fn condition_bound(&self) -> usize {
        self.conditions.bound()
    }

    /// The data of a condition, or `None` where it was deleted.
    pub fn get_condition(&self, key: ConditionKey) -> Option<&ConditionData> {
        self.conditions.get(key)
    }

    /// Whether there is a condition, or was one.
    pub fn may_have_conditions(&self) -> bool {
        self.conditions.bound() != 0
    }

    /// All conditions.
    pub fn conditions(&self) -> impl Iterator<Item = (ConditionKey, &ConditionData)> {
        self.conditions.iter()
    }

    /// The node that a graph is inside of, and which of its bodies it is; `None` for the root.
    pub fn owner(&self, graph: GraphKey) -> Option<(NodeKey, u32)> {
        self.graphs.get(graph).and_then(|graph| graph.owner)
    }

    /// The graphs inside a node, in order.
    pub fn bodies(&self, node: NodeKey) -> SmallVec<[GraphKey; 2]> {
        self.nodes.get(node).map(|node| SmallVec::from_slice(node.bodies())).unwrap_or_default()
    }

    /// Whether `outer` is `inner` or one of the graphs around it.
    pub fn encloses(&self, outer: GraphKey, inner: GraphKey) -> bool {
        let mut graph = inner;
        loop {
            if graph == outer {
                return true;
            }
            match self.owner(graph) {
                Some((node, _)) => graph = self.node(node).graph,
                None => return false,
            }
        }
    }

    /// The node of `outer` in which `node` takes place: itself, or the conditional or child around it.
    pub fn ancestor_in(&self, outer: GraphKey, node: NodeKey) -> Option<NodeKey> {
        let mut node = node;
        loop {
            let graph = self.nodes.get(node)?.graph;
            if graph == outer {
                return Some(node);
            }
            node = self.owner(graph)?.0;
        }
    }

    /// The nodes in which two nodes take place, in the innermost graph around both.
    pub(crate) fn in_common_graph(&self, one: NodeKey, other: NodeKey) -> (NodeKey, NodeKey) {
        let mut one = one;
        loop {
            let graph = self.node(one).graph;
            match self.ancestor_in(graph, other) {
                Some(other) => return (one, other),
                None => one = self.owner(graph).expect("the root is around both").0,
            }
        }
    }

    /// The name of a node: the one it was given, or its kind, number and what it is about.
    pub fn label(&self, key: NodeKey) -> String {
        let inner = self.short_label(key);
        let owner = match self.nodes.get(key) {
            Some(node) if node.name.is_none() => self.owner(node.graph),
            _ => None,
        };
        match owner {
            Some((owner, index)) if self.node(owner).bodies().len() > 1 => {
                format!("{}[{index}]/{inner}", self.label(owner))
            }
            Some((owner, _)) => format!("{}/{inner}", self.label(owner)),
            None => inner,
        }
    }

    /// The name of a node as seen from inside its own graph.
    pub(crate) fn short_label(&self, key: NodeKey) -> String {
        let Some(node) = self.nodes.get(key) else {
            return format!("deleted node {key:?}");
        };
        if let Some(name) = &node.name {
            return name.to_string();
        }
        let base = format!("{}#{}", node.operation.kind().name(), node.serial);
        match &node.operation {
            Operation::Kernel(kernel) => format!("{base} {}", kernel.kernel.name()),
            Operation::Free(FreeTarget::AllocNode(alloc)) => {
                format!("{base} of {}", self.short_label(*alloc))
            }
            _ => base,
        }
    }
}
