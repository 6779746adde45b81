//! Graphs: definitions of work, their conditions, and what copies of them are made of.

use std::fmt;

use gridloom_core as core;
use gridloom_core::capture::ConditionDefault;
use gridloom_core::graph::{ConditionKey, Difference, GraphKey};
use smallvec::SmallVec;

use crate::buffer::{Element, Memory};
use crate::{
    Device, EdgeKind, Error, ErrorKind, Executable, HazardCheck, Hazards, InstantiateOptions, Node, Result,
};

/// A graph of device work: a definition that can be changed at any time and instantiated any number
/// of times.
///
/// An operation on a graph adds a node that depends on nothing; the same operation on a [`Node`] adds
/// one that depends on that node. Changes affect later instantiations only.
///
/// The handle is cheap to clone and compares by identity. A handle to a body or to an embedded graph
/// keeps the whole hierarchy alive; [`downgrade`](Graph::downgrade) gives one that keeps nothing.
///
/// ```
/// use gridloom::prelude::*;
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let stream = device.stream()?;
/// let (a, b) = (device.alloc::<u32>(4)?, device.alloc::<u32>(4)?);
///
/// let graph = Graph::new(&device);
/// graph.memset(&a, 7u32)?.memcpy(&b, &a)?.named("copy")?;
///
/// let exec = graph.instantiate()?;
/// exec.launch(&stream)?;
/// stream.synchronize()?;
/// assert_eq!(b.to_vec()?, [7; 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Graph(pub(crate) core::Graph);

impl Graph {
    /// Makes an empty graph for a device.
    pub fn new(device: &Device) -> Self {
        Graph(core::Graph::new(device))
    }

    /// Returns the device it is for.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Returns whether the graph is still part of its hierarchy: `false` once the node around it was
    /// deleted.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns its key, by which operations and reports name it.
    pub fn key(&self) -> GraphKey {
        self.0.key()
    }

    /// Returns the node this graph is inside of, or `None` for a root.
    pub fn owner(&self) -> Option<Node> {
        self.0.owner().map(Node)
    }

    /// Returns how many nodes it has, without those of graphs inside it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns its nodes, in the order they were added.
    pub fn nodes(&self) -> Vec<Node> {
        self.0.nodes().into_iter().map(Node).collect()
    }

    /// Returns its edges, in the order their first nodes were added.
    pub fn edges(&self) -> Vec<(Node, Node, EdgeKind)> {
        self.0.edges().into_iter().map(|(from, to, kind)| (Node(from), Node(to), kind)).collect()
    }

    /// Makes a condition for this graph and all graphs inside it. At every launch it takes the value
    /// given here: a `bool`, an integer, or an `Option<u32>` of which `None` is 0.
    ///
    /// ```
    /// # use gridloom::prelude::*;
    /// # fn main() -> Result<()> {
    /// # let graph = Graph::new(&Device::cpu()?);
    /// let again = graph.condition(true)?;
    /// assert_eq!(again.default_value(), Some(1));
    /// assert!(graph.condition(-1).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn condition(&self, default: impl ConditionDefault) -> Result<Condition> {
        Ok(Condition(self.0.condition(default.default_value()?)))
    }

    /// Adds an empty node that depends on all of these, which may be none or one.
    pub fn join<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Result<Node> {
        self.0.join(nodes.into_iter().map(|node| &node.0)).map(Node)
    }

    /// Adds an edge: `to` depends on `from`. An edge that is there already takes the new kind.
    pub fn add_edge(&self, from: &Node, to: &Node, kind: EdgeKind) -> Result<()> {
        self.0.add_edge(&from.0, &to.0, kind)
    }

    /// Removes an edge. Returns whether there was one.
    pub fn remove_edge(&self, from: &Node, to: &Node) -> Result<bool> {
        self.0.remove_edge(&from.0, &to.0)
    }

    /// Copies this graph and everything inside it, as a root of its own, with what became of each node.
    ///
    /// (`Clone` copies the handle.) Conditions of the graphs around a body come along. Memory that is
    /// allocated around it does not, and makes the copy an error.
    pub fn deep_clone(&self) -> Result<(Graph, NodeMap)> {
        let (copy, map) = self.0.deep_clone()?;
        Ok((Graph(copy), NodeMap(map)))
    }

    /// Returns what differs between this graph and another, node by node. Nodes are paired in the order
    /// in which they were added.
    pub fn diff(&self, other: &Graph) -> Vec<Difference> {
        self.0.diff(&other.0)
    }

    /// Points every use of the memory `old`, in this graph and the graphs inside it, at the same element
    /// of `new`, all or none. Returns how many there were: operands of copies and fills, values that
    /// conditionals test, and addresses in kernel arguments, inside structures too.
    ///
    /// Nodes that were captured from other code are included; what stayed opaque is not.
    /// [`Executable::replace_memory`] does the same for one executable.
    ///
    /// # Safety
    /// Eight bytes of a kernel argument whose value is an address in `old` are that address, and kernels
    /// that get one of `new` in its place stay within `new`.
    pub unsafe fn replace_memory<T: Element>(
        &self,
        old: &impl Memory<T>,
        new: &impl Memory<T>,
    ) -> Result<usize> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.replace_region(&old.region()?, &new.region()?) }
    }

    /// Looks for forgotten dependencies in this graph and all graphs around and inside it.
    ///
    /// Kernels read what their `Ptr` parameters lead to and write what their `PtrMut` parameters lead to;
    /// fills and copies say what they touch. The check lists each pair of nodes that have no order between
    /// them and of which one writes what the other uses, with the edge to add, and each loop without a
    /// bound whose body cannot change what it tests. Of callbacks, opaque nodes and kernels whose
    /// parameters have no types it knows nothing.
    ///
    /// It looks at every node once and follows few edges: a graph of 100,000 nodes takes well under a
    /// second. [`InstantiateOptions::hazards`] makes it part of instantiation.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let (a, b) = (device.alloc::<u32>(4)?, device.alloc::<u32>(4)?);
    /// let graph = Graph::new(&device);
    /// let fill = graph.memset(&a, 7u32)?.named("fill")?;
    /// let copy = graph.memcpy(&b, &a)?.named("copy")?;      // should come after `fill`
    ///
    /// let found = graph.check().to_string();
    /// assert!(found.contains("fill writes and copy reads"));
    /// graph.add_edge(&fill, &copy, EdgeKind::Full)?;
    /// assert!(graph.check().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn check(&self) -> Hazards {
        self.0.check()
    }

    /// Compiles the graph for launching, with default options.
    pub fn instantiate(&self) -> Result<Executable> {
        self.instantiate_with(&InstantiateOptions::default())
    }

    /// Compiles the graph for launching.
    pub fn instantiate_with(&self, options: &InstantiateOptions) -> Result<Executable> {
        if options.hazards != HazardCheck::Off {
            let hazards = self.check();
            if !hazards.is_empty() {
                if options.hazards == HazardCheck::Refuse {
                    return Err(Error::new(ErrorKind::Unordered, hazards.to_string()));
                }
                tracing::warn!("the graph may lack dependencies: {hazards}");
            }
        }
        Ok(Executable(self.0.instantiate_with(&options.to_core()?)?))
    }

    /// Returns the graph in the DOT language of graphviz: `dot -Tsvg`.
    ///
    /// Nodes are coloured by kind and show their parameters; bodies and embedded graphs are clusters;
    /// programmatic edges are dashed; a dotted line leads from a kernel that is given a condition to the
    /// node that tests it. What four or eight bytes of an argument mean is not known, and is guessed from
    /// the value. A handle to a deleted graph gives an empty picture.
    pub fn to_dot(&self) -> String {
        self.0.to_dot()
    }

    /// Returns the graph as a Mermaid flowchart, which many viewers of Markdown draw.
    ///
    /// It shows what [`to_dot`](Graph::to_dot) shows. Mermaid draws 500 edges and 50,000 characters
    /// unless `maxEdges` and `maxTextSize` are set higher.
    pub fn to_mermaid(&self) -> String {
        self.0.to_mermaid()
    }

    /// Returns the graph as JSON, in the format that [`gridloom_core::Graph::to_json`] describes.
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Returns a handle that does not keep the graph alive, for a callback that refers to the graph it is in.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let graph = Graph::new(&device);
    /// let weak = graph.downgrade();
    /// graph.callback(move || {
    ///     if let Some(graph) = weak.upgrade() {
    ///         println!("one of {} nodes", graph.len());
    ///     }
    /// })?;
    /// let weak = graph.downgrade();
    /// drop(graph);
    /// assert!(weak.upgrade().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn downgrade(&self) -> WeakGraph {
        WeakGraph(self.0.downgrade())
    }

    /// The nodes of the core behind these, for its methods.
    pub(crate) fn core_nodes<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> SmallVec<[&'a core::Node; 4]> {
        nodes.into_iter().map(|node| &node.0).collect()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A [`Graph`] that is not kept alive, from [`Graph::downgrade`].
#[derive(Clone, Debug)]
pub struct WeakGraph(core::graph::WeakGraph);

impl WeakGraph {
    /// Returns the graph, while something else keeps it.
    pub fn upgrade(&self) -> Option<Graph> {
        self.0.upgrade().map(Graph)
    }
}

/// A value that kernels set and conditional nodes test.
///
/// It belongs to the graph that made it and can be used there and in all graphs inside; one conditional
/// node tests it. A kernel is given it as an argument (`&condition`) and sets it with
/// `cudaGraphSetConditional`.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Condition(pub(crate) core::Condition);

impl Condition {
    /// Returns whether it still exists: `false` once the graph that made it was deleted.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns the value it takes at every launch.
    pub fn default_value(&self) -> Option<u32> {
        self.0.default_value()
    }

    /// Returns the conditional node that tests it, where there is one.
    pub fn used_by(&self) -> Option<Node> {
        self.0.used_by().map(Node)
    }

    /// Returns whether it belongs to the hierarchy of `graph`.
    pub fn belongs_to(&self, graph: &Graph) -> bool {
        self.0.belongs_to(&graph.0)
    }

    /// Returns its key, by which operations name it.
    pub fn key(&self) -> ConditionKey {
        self.0.key()
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a copy of a graph made of each node. It keeps both graphs alive.
#[derive(Clone)]
pub struct NodeMap(core::graph::NodeMap);

impl NodeMap {
    /// Returns the copy of a node, or `None` where the node was not in the graph that was copied.
    pub fn get(&self, original: &Node) -> Option<Node> {
        self.0.get(&original.0).map(Node)
    }

    /// Returns the copy of a condition, or `None` where it was neither of the graph that was copied nor
    /// used in it.
    pub fn condition(&self, original: &Condition) -> Option<Condition> {
        self.0.condition(&original.0).map(Condition)
    }

    /// Returns how many nodes were copied.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing was copied.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all pairs of original and copy, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Node, Node)> + '_ {
        self.0.iter().map(|(original, copy)| (Node(original), Node(copy)))
    }
}

impl fmt::Debug for NodeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
