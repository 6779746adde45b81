//! The data of a hierarchy: its graphs, nodes, edges and conditions.
//!
//! Backends read it through the accessors in this module. After the checks of instantiation every
//! key in a definition is valid. Before that, nodes may still refer to the memory of a deleted
//! alloc node. Instantiation and copying refuse such nodes.

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
    /// The second node starts when the first has ended and its writes are visible.
    #[default]
    Full,
    /// Between kernels only: the second may start early. It waits for the first's data itself, with
    /// `griddepcontrol.wait`.
    Programmatic,
}

/// One end of an edge, seen from the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeEnd {
    /// The node at that end.
    pub node: NodeKey,
    /// The kind of the edge.
    pub kind: EdgeKind,
}

/// A list of edges with room for two in place. Most nodes of chains, fans and wavefronts have no
/// more, and an allocation costs more than the room.
pub(crate) type EdgeList = SmallVec<[EdgeEnd; 2]>;

/// A position in a topological order. It is signed because a graph can grow at either end.
pub(crate) type Order = i64;

/// A node of a definition.
#[derive(Clone)]
pub struct NodeData {
    pub(crate) graph: GraphKey,
    pub(crate) operation: Operation,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) serial: u32,
    /// The position in a topological order of the graph. Every edge leads from a smaller position
    /// to a larger one.
    pub(crate) order: Order,
    pub(crate) predecessors: EdgeList,
    pub(crate) successors: EdgeList,
}

impl NodeData {
    /// Returns the graph that the node is in.
    pub fn graph(&self) -> GraphKey {
        self.graph
    }

    /// Returns the node's operation.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Returns the nodes that this one depends on, oldest edge first.
    pub fn predecessors(&self) -> &[EdgeEnd] {
        &self.predecessors
    }

    /// Returns the nodes that depend on this one, oldest edge first.
    pub fn successors(&self) -> &[EdgeEnd] {
        &self.successors
    }

    /// Returns the name that the user gave to the node.
    pub fn given_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the graphs inside the node, in order.
    pub fn bodies(&self) -> &[GraphKey] {
        self.operation.bodies()
    }
}

/// A graph of a definition: the root, a body or an embedded child.
#[derive(Clone, Default)]
pub struct GraphData {
    /// The node that contains this graph, and the index of the graph among the node's bodies.
    pub(crate) owner: Option<(NodeKey, u32)>,
    /// The nodes in the order in which they were added. Deleted ones stay in the list until they
    /// are more than half of it.
    pub(crate) members: SmallVec<[NodeKey; 16]>,
    pub(crate) dead: usize,
    /// One past the last position of the topological order; `first_order` is the first position.
    pub(crate) next_order: Order,
    pub(crate) first_order: Order,
    pub(crate) next_serial: u32,
    /// Whether a member was moved in the topological order, which may then differ from `members`.
    pub(crate) reordered: bool,
}

/// A condition of a definition.
#[derive(Clone)]
pub struct ConditionData {
    /// The graph that made the condition. Graphs inside it can use the condition too.
    pub(crate) scope: GraphKey,
    pub(crate) default: Option<u32>,
    /// The conditional node that tests the condition.
    pub(crate) used_by: Option<NodeKey>,
}

impl ConditionData {
    /// Returns the graph that made the condition.
    pub fn scope(&self) -> GraphKey {
        self.scope
    }

    /// Returns the value that every launch sets, if one was given.
    pub fn default_value(&self) -> Option<u32> {
        self.default
    }

    /// Returns the conditional node that tests the condition.
    pub fn used_by(&self) -> Option<NodeKey> {
        self.used_by
    }
}

/// A snapshot of a whole hierarchy.
#[derive(Clone)]
pub struct Definition {
    pub(crate) nodes: Table<NodeData, 16>,
    pub(crate) graphs: Table<GraphData, 1>,
    pub(crate) conditions: Table<ConditionData, 4>,
    pub(crate) root: GraphKey,
    /// The kinds of all nodes that exist or ever existed. Replacing an operation does not change
    /// the kind of its node.
    pub(crate) kinds: NodeKinds,
}

thread_local! {
    /// Blocks of memory for the first nodes of new definitions.
    static SPARE: Spares<Vec<Slot<NodeData>>, 4> = const { Spares::new() };
}

impl Drop for Definition {
    fn drop(&mut self) {
        // Drops the nodes in the block first. Their drops may run user code, which must not find
        // the block among the spares.
        if let Some(memory) = self.nodes.take_memory() {
            Spares::keep(&SPARE, memory);
        }
    }
}

impl Definition {
    /// Returns a number that no other definition has. All keys of a definition carry it.
    #[inline(always)]
    pub(super) fn next_number() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    // Inlined so that the definition is built in its final place. Moving it there costs more than
    // writing it.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let id = Definition::next_number();
        let mut graphs = Table::new(id);
        let root = graphs.insert(GraphData::default());
        let kinds = NodeKinds::default();
        let nodes = Table::with_memory(id, Spares::take(&SPARE).unwrap_or_default());
        Definition { nodes, graphs, conditions: Table::new(id), root, kinds }
    }

    /// Returns whether there may be a node of one of these kinds. If the result is `false`, there
    /// is none, and the caller need not search the nodes.
    #[inline]
    pub fn may_have(&self, kinds: NodeKinds) -> bool {
        self.kinds.any_of(kinds)
    }

    /// Returns whether all nodes are of these kinds. If the result is `false`, deleted nodes may be
    /// the reason.
    #[inline]
    pub fn has_only(&self, kinds: NodeKinds) -> bool {
        self.kinds.are_among(kinds)
    }

    /// Returns the outermost graph.
    pub fn root(&self) -> GraphKey {
        self.root
    }

    /// Returns the data of a node.
    ///
    /// # Panics
    /// Panics if the key is not a key of this definition, which is a bug of the caller.
    #[inline]
    pub fn node(&self, key: NodeKey) -> &NodeData {
        self.nodes.get(key).expect("a node key of this definition")
    }

    /// Returns the data of a node, or `None` if it was deleted.
    #[inline]
    pub fn get_node(&self, key: NodeKey) -> Option<&NodeData> {
        self.nodes.get(key)
    }

    /// Returns the nodes of a graph in the order in which they were added.
    pub fn nodes(&self, graph: GraphKey) -> impl Iterator<Item = NodeKey> + '_ {
        self.graphs
            .get(graph)
            .into_iter()
            .flat_map(|graph| graph.members.iter().copied())
            .filter(|&key| self.nodes.get(key).is_some())
    }

    /// Returns the nodes of all graphs, in no particular order.
    pub fn all_nodes(&self) -> impl Iterator<Item = (NodeKey, &NodeData)> {
        self.nodes.iter()
    }

    /// Returns the number of nodes of a graph. Nodes of graphs inside it do not count.
    pub fn node_count(&self, graph: GraphKey) -> usize {
        self.graphs.get(graph).map_or(0, |graph| graph.members.len() - graph.dead)
    }

    /// Returns the nodes of a graph in topological order: each node comes after those it depends
    /// on.
    pub fn topological(&self, graph: GraphKey) -> Cow<'_, [NodeKey]> {
        let Some(data) = self.graphs.get(graph) else { return Cow::default() };
        // Most graphs are built in topological order and lose no nodes.
        if data.dead == 0 && !data.reordered {
            return Cow::Borrowed(&data.members);
        }
        let mut ordered: Vec<NodeKey> = self.nodes(graph).collect();
        if data.reordered {
            ordered.sort_by_cached_key(|&key| self.node(key).order);
        }
        Cow::Owned(ordered)
    }

    /// Returns one past the largest [`Key::index`] of a node: the size of a dense table over nodes.
    pub fn node_bound(&self) -> usize {
        self.nodes.bound()
    }

    /// Returns one past the largest [`Key::index`] of a condition.
    pub fn condition_bound(&self) -> usize {
        self.conditions.bound()
    }

    /// Returns the data of a condition, or `None` if it was deleted.
    pub fn get_condition(&self, key: ConditionKey) -> Option<&ConditionData> {
        self.conditions.get(key)
    }

    /// Returns whether there is, or ever was, a condition.
    pub fn may_have_conditions(&self) -> bool {
        self.conditions.bound() != 0
    }

    /// Returns all conditions.
    pub fn conditions(&self) -> impl Iterator<Item = (ConditionKey, &ConditionData)> {
        self.conditions.iter()
    }

    /// Returns the node that contains a graph, and the index of the graph among its bodies. Returns
    /// `None` for the root.
    pub fn owner(&self, graph: GraphKey) -> Option<(NodeKey, u32)> {
        self.graphs.get(graph).and_then(|graph| graph.owner)
    }

    /// Returns the graphs inside a node, in order.
    pub fn bodies(&self, node: NodeKey) -> SmallVec<[GraphKey; 2]> {
        self.nodes.get(node).map(|node| SmallVec::from_slice(node.bodies())).unwrap_or_default()
    }

    /// Returns whether `outer` is `inner` or a graph around it.
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

    /// Returns `node` if it is in `outer`, or else the conditional or child node of `outer` that
    /// contains it.
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

    /// Returns two nodes of the innermost graph around both: each given node, or the node there
    /// that contains it.
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

    /// Returns the name that the user gave, or else one made of the node's kind, number and kernel,
    /// with the nodes around it as a path.
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

    /// Returns the name of a node without the path of the nodes around it.
    pub(crate) fn short_label(&self, key: NodeKey) -> String {
        let Some(node) = self.nodes.get(key) else {
            return format!("deleted node {key:?}");
        };
        if let Some(name) = &node.name {
            return name.to_string();
        }
        let base = format!("{}#{}", node.operation.kind().name(), node.serial);
        if let Operation::Kernel(kernel) = &node.operation {
            format!("{base} {}", kernel.kernel.name())
        } else if let Operation::Free(FreeTarget::AllocNode(alloc)) = &node.operation {
            format!("{base} of {}", self.short_label(*alloc))
        } else {
            base
        }
    }
}
