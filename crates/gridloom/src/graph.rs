//! Graphs: definitions of work, their conditions, and the map from a graph to its copy.

use std::fmt;

use gridloom_core as core;
use gridloom_core::capture::ConditionDefault;
use gridloom_core::graph::{ConditionKey, Difference, GraphKey};
use gridloom_core::log;
use smallvec::SmallVec;

use crate::buffer::{Element, Memory};
use crate::{
    Device, EdgeKind, Error, ErrorKind, Executable, HazardCheck, Hazards, InstantiateOptions, Node, Result,
};

/// A graph of device work: a definition that can be changed at any time and instantiated any number
/// of times.
///
/// An operation on a graph adds a node without dependencies. The same operation on a [`Node`] adds
/// one that depends on that node. Changes affect later instantiations only.
///
/// The handle is cheap to clone and compares by identity. A handle to a body or to an embedded
/// graph keeps the whole hierarchy alive. [`downgrade`](Graph::downgrade) returns a weak handle.
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
    /// Creates an empty graph for a device.
    pub fn new(device: &Device) -> Self {
        Graph(core::Graph::new(device))
    }

    /// Returns the device it is for.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Returns whether the graph is still part of its hierarchy. It is not once the node around it
    /// was deleted.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns its key, by which operations and reports name it.
    pub fn key(&self) -> GraphKey {
        self.0.key()
    }

    /// Returns the node that contains this graph, or `None` for a root.
    pub fn owner(&self) -> Option<Node> {
        self.0.owner().map(Node)
    }

    /// Returns the number of its nodes, without those of graphs inside it.
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

    /// Creates a condition for this graph and all graphs inside it. At every launch the condition
    /// starts with the value given here: a `bool`, an integer, or an `Option<u32>`, where `None`
    /// means 0.
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

    /// Adds an empty node that depends on all of `nodes`. There may be none or one.
    pub fn join<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Result<Node> {
        self.0.join(nodes.into_iter().map(|node| &node.0)).map(Node)
    }

    /// Adds an edge: `to` depends on `from`. An existing edge takes the new kind.
    pub fn add_edge(&self, from: &Node, to: &Node, kind: EdgeKind) -> Result<()> {
        self.0.add_edge(&from.0, &to.0, kind)
    }

    /// Removes an edge. Returns whether there was one.
    pub fn remove_edge(&self, from: &Node, to: &Node) -> Result<bool> {
        self.0.remove_edge(&from.0, &to.0)
    }

    /// Copies this graph and everything inside it into a new root graph. The map leads from each
    /// node to its copy.
    ///
    /// (`Clone` copies the handle only.) A copy of a body includes the conditions of the graphs
    /// around it. If the body uses memory that is allocated outside it, the copy is an error.
    pub fn deep_clone(&self) -> Result<(Graph, NodeMap)> {
        let (copy, map) = self.0.deep_clone()?;
        Ok((Graph(copy), NodeMap(map)))
    }

    /// Returns the differences between this graph and another, node by node. Nodes are paired in
    /// the order in which they were added.
    pub fn diff(&self, other: &Graph) -> Vec<Difference> {
        self.0.diff(&other.0)
    }

    /// Replaces every use of the memory `old`, in this graph and the graphs inside it, by the same
    /// element of `new`, all or none. Returns the number of uses: operands of copies and fills,
    /// values that conditionals test, and addresses in kernel arguments, also inside structures.
    ///
    /// Nodes that were captured from other code are included, opaque nodes are not.
    /// [`Executable::replace_memory`] does the same for one executable.
    ///
    /// # Safety
    /// Any eight bytes of a kernel argument whose value is an address in `old` are that address.
    /// Kernels that receive an address in `new` instead stay within `new`.
    pub unsafe fn replace_memory<T: Element>(
        &self,
        old: &impl Memory<T>,
        new: &impl Memory<T>,
    ) -> Result<usize> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.replace_region(&old.region()?, &new.region()?) }
    }

    /// Looks for missing dependencies in this graph and all graphs around and inside it.
    ///
    /// Kernels read what their `Ptr` parameters point to and write what their `PtrMut` parameters
    /// point to; fills and copies say what they access. The check lists each pair of unordered
    /// nodes in which one writes what the other uses, with the edge to add, and each kernel that
    /// can set the condition of a conditional without an order between them. It also lists each
    /// loop without a bound whose body cannot change what the loop tests. It knows nothing of
    /// callbacks without memory, opaque nodes and kernels whose parameters have no types. It takes
    /// a kernel to use all of the memory that it is given: pass a slice if it uses a part. Atomic
    /// operations count as writes.
    ///
    /// The check visits every node once and follows few edges: a graph of 100,000 nodes takes well
    /// under a second. [`InstantiateOptions::hazards`] makes it part of instantiation.
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
        check_hazards(&self.0, options.hazards)?;
        Ok(Executable(self.0.instantiate_with(&options.to_core()?)?))
    }

    /// Returns the graph in the DOT language of Graphviz, for example for `dot -Tsvg`.
    ///
    /// Nodes are coloured by kind and show their parameters. Bodies and embedded graphs are
    /// clusters. Programmatic edges are dashed. A dotted line connects a kernel that receives a
    /// condition with the node that tests it. The type of an argument of four or eight bytes is not
    /// known and is guessed from its value. A handle to a deleted graph gives an empty picture.
    pub fn to_dot(&self) -> String {
        self.0.to_dot()
    }

    /// Returns the graph as a Mermaid flowchart, which many Markdown viewers draw.
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

    /// Returns a weak handle, for a callback that refers to the graph it is in.
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

    /// Returns the core's handles of these nodes.
    pub(crate) fn core_nodes<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> SmallVec<[&'a core::Node; 4]> {
        nodes.into_iter().map(|node| &node.0).collect()
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A weak handle to a [`Graph`], from [`Graph::downgrade`].
#[derive(Clone, Debug)]
pub struct WeakGraph(core::graph::WeakGraph);

impl WeakGraph {
    /// Returns the graph, if a handle still keeps it alive.
    pub fn upgrade(&self) -> Option<Graph> {
        self.0.upgrade().map(Graph)
    }
}

/// A value that kernels set and conditional nodes test.
///
/// A condition belongs to the graph that created it. It can be used there and in all graphs inside.
/// One conditional node tests it. A kernel receives it as an argument (`&condition`) and sets it
/// with `cudaGraphSetConditional`.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Condition(pub(crate) core::Condition);

impl Condition {
    /// Returns whether it still exists. It does not once the graph that created it was deleted.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns the value it starts with at every launch.
    pub fn default_value(&self) -> Option<u32> {
        self.0.default_value()
    }

    /// Returns the conditional node that tests it, if there is one.
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

/// The map from the nodes of a graph to those of its copy. It keeps both graphs alive.
#[derive(Clone)]
pub struct NodeMap(core::graph::NodeMap);

impl NodeMap {
    /// Returns the copy of a node, or `None` if the node is not in the copied graph.
    pub fn get(&self, original: &Node) -> Option<Node> {
        self.0.get(&original.0).map(Node)
    }

    /// Returns the copy of a condition, or `None` if the copied graph neither owns nor uses it.
    pub fn condition(&self, original: &Condition) -> Option<Condition> {
        self.0.condition(&original.0).map(Condition)
    }

    /// Returns the number of copied nodes.
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

/// Looks for missing dependencies, and logs or refuses them as `check` says.
pub(crate) fn check_hazards(graph: &core::Graph, check: HazardCheck) -> Result<()> {
    if check == HazardCheck::Off {
        return Ok(());
    }
    let hazards = graph.check();
    if hazards.is_empty() {
        if !hazards.complete {
            log!(warn, "{hazards}");
        }
        return Ok(());
    }
    if check == HazardCheck::Refuse {
        return Err(Error::new(ErrorKind::Unordered, hazards.to_string()));
    }
    log!(warn, "the graph may lack dependencies: {hazards}");
    Ok(())
}
