//! Graphs: the definition of work, its handles and its editing.
//!
//! A *hierarchy* is a root graph with all bodies and embedded children inside it. It has one
//! definition behind one lock. [`Graph`], [`Node`] and [`Condition`] are cheap handles. Each names
//! a part of a hierarchy and keeps the whole hierarchy alive.

mod check;
mod condition;
mod copy;
mod definition;
mod diff;
mod edges;
mod edit;
pub mod hazards;
mod hierarchy;
mod inline;
mod keys;
pub(crate) mod lifetimes;
mod node;
mod node_map;
mod outline;
pub mod picture;
mod replace;
mod weak;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use crate::speed::CowDefinition;
pub(crate) use check::{Checker, check_contract, check_nothing_freed, find_use, uses_outliving};
pub use condition::Condition;
pub use definition::{
    ConditionData, ConditionKey, Definition, EdgeEnd, EdgeKind, GraphData, GraphKey, NodeData, NodeKey,
};
pub use diff::{Difference, DifferenceKind};
pub(crate) use diff::{aligned, compare};
use hierarchy::After;
pub(crate) use hierarchy::{Hierarchy, InsertionPoint, Writer};
pub(crate) use inline::Inlined;
pub use keys::Key;
pub(crate) use keys::{Keys, LocalKey};
pub use node::Node;
pub use node_map::NodeMap;
pub use weak::{WeakGraph, WeakNode};

use crate::backend::{self, AsDevice};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::executable::{Executable, ExecutableId, InstantiateOptions};
use crate::op::{ConditionalForm, ConditionalOp, Operation, Test};
use crate::user_code;

/// A graph of device work. It can be changed at any time and instantiated any number of times.
///
/// The handle is cheap to clone and compares by identity. A handle to a body or child keeps the
/// whole hierarchy alive.
#[derive(Clone)]
pub struct Graph {
    pub(crate) hierarchy: Arc<Hierarchy>,
    pub(crate) key: GraphKey,
}

/// The description of a conditional node that is to be added.
#[derive(Clone, Debug)]
pub struct ConditionalSpec {
    /// If, if-else, while or switch.
    pub form: ConditionalForm,
    /// The value that decides which bodies run.
    pub test: Test,
    /// For loops: whether the test also precedes the first pass.
    pub test_first: bool,
    /// For loops: the largest number of passes.
    pub max_passes: Option<u64>,
    /// The number of bodies. Only a switch reads it; the other forms have a fixed number.
    pub bodies: usize,
}

/// The largest number of cases of a switch. Drivers allocate a body for each case.
pub const MAX_SWITCH_CASES: usize = 65_536;

/// The deepest nesting of graphs in each other.
pub const MAX_NESTING: usize = 64;

impl Graph {
    /// Creates an empty graph for a device.
    pub fn new(device: &impl AsDevice) -> Self {
        let definition = Definition::new();
        let key = definition.root();
        Graph { hierarchy: Hierarchy::new(device.as_device(), CowDefinition::own(definition)), key }
    }

    /// Creates a graph with a copy of an executable's definition. The copy has keys of its own.
    pub(crate) fn from_executable(
        device: &Arc<dyn backend::Device>,
        definition: &Definition,
        executable: ExecutableId,
    ) -> Self {
        let definition = CowDefinition::own(definition.renumbered());
        let key = definition.root();
        Graph { hierarchy: Hierarchy::from_executable(device, definition, Some(executable)), key }
    }

    /// Creates a graph that shares this definition and its keys, for an optimiser to edit. Editing
    /// it leaves the original as it is.
    ///
    /// # Safety
    /// The definition is that of a graph or executable of this device. Handles of the one cannot be
    /// told from handles of the other, so they must not reach a user.
    pub unsafe fn with_definition(device: &impl AsDevice, definition: Arc<Definition>) -> Self {
        Graph::under_same_keys(device, definition)
    }

    /// Creates a graph that shares this definition and its keys. Its handles cannot be told from
    /// those of the graph that the definition came from, so they must not reach a user.
    pub(crate) fn under_same_keys(device: &impl AsDevice, definition: Arc<Definition>) -> Self {
        let key = definition.root();
        Graph { hierarchy: Hierarchy::new(device.as_device(), CowDefinition::shared(definition)), key }
    }

    /// Returns the device that the graph is for.
    pub fn device(&self) -> &Arc<dyn backend::Device> {
        &self.hierarchy.device
    }

    /// Returns whether the graph is still part of its hierarchy. It is not once the node around it
    /// is deleted.
    pub fn is_valid(&self) -> bool {
        self.hierarchy.read(|definition| definition.graphs.get(self.key).is_some())
    }

    /// Returns the graph's key in its definition.
    pub fn key(&self) -> GraphKey {
        self.key
    }

    /// Returns a snapshot of the definition of the whole hierarchy. Later edits do not affect it.
    pub fn definition(&self) -> Arc<Definition> {
        self.hierarchy.snapshot()
    }

    /// Returns the node that contains this graph, or `None` for a root.
    pub fn owner(&self) -> Option<Node> {
        let owner = self.hierarchy.read(|definition| definition.owner(self.key));
        owner.map(|(key, _)| self.node_handle(key))
    }

    /// Returns the number of nodes. Nodes of graphs inside this one do not count.
    pub fn len(&self) -> usize {
        self.hierarchy.read(|definition| definition.node_count(self.key))
    }

    /// Returns whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the nodes in the order in which they were added.
    pub fn nodes(&self) -> Vec<Node> {
        let keys: Vec<NodeKey> = self.hierarchy.read(|definition| definition.nodes(self.key).collect());
        keys.into_iter().map(|key| self.node_handle(key)).collect()
    }

    /// Returns the edges, in the order in which their first nodes were added.
    pub fn edges(&self) -> Vec<(Node, Node, EdgeKind)> {
        let edges = self.hierarchy.read(|definition| definition.edges(self.key));
        edges
            .into_iter()
            .map(|(from, to, kind)| (self.node_handle(from), self.node_handle(to), kind))
            .collect()
    }

    /// Creates a condition. Every launch sets it to `default`, or to 0 if there is none.
    pub fn condition(&self, default: Option<u32>) -> Condition {
        let data = ConditionData { scope: self.key, default, used_by: None };
        let key = self.hierarchy.edit(|definition| definition.conditions.insert(data));
        Condition { hierarchy: self.hierarchy.clone(), key }
    }

    /// Adds a node that depends on `after`, which may be empty. Conditionals and children are added
    /// with [`add_conditional`](Self::add_conditional) and [`add_child`](Self::add_child).
    pub fn add(&self, after: &[&Node], operation: Operation) -> Result<Node> {
        // The first node of a graph: there are no keys to collect.
        if after.is_empty() {
            return Ok(self.node_handle(self.add_keys(Writer::Handle, &[], &mut Some(operation))?));
        }
        let after = self.own_keys(after)?;
        let key = self.add_keys(Writer::Handle, &after, &mut Some(operation))?;
        Ok(self.node_handle(key))
    }

    /// Adds a node after nodes of this hierarchy; see [`Hierarchy::add`].
    pub(crate) fn add_keys(
        &self,
        writer: Writer,
        after: &[NodeKey],
        operation: &mut Option<Operation>,
    ) -> Result<NodeKey> {
        let local = self.hierarchy.add(writer, After::All(self.key, after), operation)?;
        Ok(local.of(self.hierarchy.number))
    }

    /// Adds a node after nodes that a capture recorded in this graph. Fails if one was deleted.
    pub(crate) fn add_recorded(
        &mut self,
        after: &[NodeKey],
        operation: &mut Option<Operation>,
    ) -> Result<NodeKey> {
        let after = match after {
            [one] => After::One(one),
            nodes => After::All(self.key, nodes),
        };
        // A graph under capture seldom has a second handle. Checking that is cheaper than locking.
        let local = match Arc::get_mut(&mut self.hierarchy) {
            Some(alone) => alone.add_alone(after, operation),
            None => self.hierarchy.add(Writer::Capture, after, operation),
        };
        Ok(local?.of(self.hierarchy.number))
    }

    /// Adds an empty node that depends on all given nodes. There may be none or one.
    pub fn join<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Result<Node> {
        self.add(&nodes.into_iter().collect::<SmallVec<[&Node; 8]>>(), Operation::Empty)
    }

    /// Adds a conditional node with empty bodies.
    pub fn add_conditional(&self, after: &[&Node], spec: ConditionalSpec) -> Result<Node> {
        let after = self.own_keys(after)?;
        let key = self.add_conditional_keys(Writer::Handle, &after, &spec)?;
        Ok(self.node_handle(key))
    }

    /// Adds a conditional node after nodes of this hierarchy.
    pub(crate) fn add_conditional_keys(
        &self,
        writer: Writer,
        after: &[NodeKey],
        spec: &ConditionalSpec,
    ) -> Result<NodeKey> {
        let bodies = match spec.form {
            ConditionalForm::If | ConditionalForm::While => 1,
            ConditionalForm::IfElse => 2,
            ConditionalForm::Switch if spec.bodies == 0 => {
                bail!(InvalidArgument, "a switch without bodies; give it at least one")
            }
            ConditionalForm::Switch if spec.bodies > MAX_SWITCH_CASES => {
                bail!(
                    InvalidArgument,
                    "a switch of {} bodies; there can be at most {MAX_SWITCH_CASES}",
                    spec.bodies
                )
            }
            ConditionalForm::Switch => spec.bodies,
        };
        if matches!(spec.test, Test::Count(_)) && spec.form != ConditionalForm::While {
            bail!(InvalidArgument, "a counter can drive a loop only");
        }
        let device = &*self.hierarchy.device;
        self.hierarchy.write(writer, self.key, |definition| {
            definition.check_alive(self.key, after)?;
            definition.check_depth(self.key, 1)?;
            Checker { device, graph: Some((definition, self.key)) }.check_test(&spec.test)?;
            let mut operation = ConditionalOp {
                form: spec.form,
                test: spec.test.clone(),
                test_first: spec.test_first,
                max_passes: spec.max_passes,
                bodies: SmallVec::new(),
            };
            let node = definition.nodes.next_key();
            for index in 0..bodies {
                let body = GraphData { owner: Some((node, index as u32)), ..GraphData::default() };
                operation.bodies.push(definition.graphs.insert(body));
            }
            if let Test::Condition(condition) = operation.test {
                definition.conditions.get_mut(condition).expect("checked").used_by = Some(node);
            }
            Ok(definition.insert_node(
                self.key,
                after,
                &mut Some(Operation::Conditional(Arc::new(operation))),
            ))
        })
    }

    /// Adds a child node that runs a copy of `graph`. Later edits of `graph` do not affect the
    /// copy.
    pub fn add_child(&self, after: &[&Node], graph: &Graph) -> Result<Node> {
        let source = self.source_to_embed(graph)?;
        let after = self.own_keys(after)?;
        let key = self.embed_keys(Writer::Handle, &after, &source, graph.key)?;
        Ok(self.node_handle(key))
    }

    /// Returns the definition of `graph` after checking that it can be embedded into this one.
    pub(crate) fn source_to_embed(&self, graph: &Graph) -> Result<Arc<Definition>> {
        if Arc::ptr_eq(&self.hierarchy, &graph.hierarchy) {
            bail!(
                WrongGraph,
                "a graph cannot be embedded into itself or a graph of its own hierarchy; embed a clone of it"
            );
        }
        self.check_embeddable(&graph.hierarchy.device)?;
        let source = graph.hierarchy.snapshot();
        if source.graphs.get(graph.key).is_none() {
            bail!(InvalidHandle, "the graph to embed was deleted with the node around it");
        }
        Ok(source)
    }

    /// Checks that a graph for this device can be embedded into this one.
    pub(crate) fn check_embeddable(&self, device: &Arc<dyn backend::Device>) -> Result<()> {
        if self.hierarchy.device.id() != device.id() {
            bail!(WrongDevice, "the graph to embed is for another device ({})", device.name());
        }
        Ok(())
    }

    /// Adds a child node after nodes of this hierarchy. The child is a copy of the graph `from` of
    /// `source`.
    pub(crate) fn embed_keys(
        &self,
        writer: Writer,
        after: &[NodeKey],
        source: &Definition,
        from: GraphKey,
    ) -> Result<NodeKey> {
        self.hierarchy.write(writer, self.key, |definition| {
            definition.check_alive(self.key, after)?;
            definition.check_depth(self.key, 1 + source.depth_inside(from))?;
            let child = definition.graphs.insert(GraphData::default());
            if let Err(error) = definition.copy_from(source, from, child) {
                definition.graphs.remove(child);
                return Err(error);
            }
            let key = definition.insert_node(self.key, after, &mut Some(Operation::Child(child)));
            definition.graphs.get_mut(child).expect("inserted").owner = Some((key, 0));
            Ok(key)
        })
    }

    /// Adds copies of the nodes of the graph `from` of `source` on behalf of a capture. The first
    /// ones depend on `after`, which are nodes of this hierarchy.
    pub(crate) fn inline_keys(
        &self,
        after: &[NodeKey],
        source: &Definition,
        from: GraphKey,
    ) -> Result<Inlined> {
        self.hierarchy.write(Writer::Capture, self.key, |definition| {
            definition.check_alive(self.key, after)?;
            definition.check_depth(self.key, source.depth_inside(from))?;
            definition.inline_from(source, from, self.key, after)
        })
    }

    /// Copies this graph and everything inside it into a new root. Also returns the map from
    /// original to copied nodes.
    ///
    /// `Clone` copies only the handle. If this graph is a body, the copy includes the conditions of
    /// outer graphs that the body uses. It fails if the body uses memory that an outer graph
    /// allocates.
    pub fn deep_clone(&self) -> Result<(Graph, NodeMap)> {
        let source = self.hierarchy.snapshot();
        if source.graphs.get(self.key).is_none() {
            return Err(deleted_graph());
        }
        let mut definition = Definition::new();
        let root = definition.root();
        let mapping = definition.copy_from(&source, self.key, root)?;
        let hierarchy = Hierarchy::new(&self.hierarchy.device, CowDefinition::own(definition));
        let copy = Graph { hierarchy, key: root };
        let map = NodeMap {
            original: self.hierarchy.clone(),
            copy: copy.hierarchy.clone(),
            nodes: mapping.nodes,
            conditions: mapping.conditions,
        };
        Ok((copy, map))
    }

    /// Returns the differences between this graph and another one, node by node. Nodes are paired
    /// in the order in which they were added.
    pub fn diff(&self, other: &Graph) -> Vec<Difference> {
        let (ours, theirs) = (self.definition(), other.definition());
        let comparison = compare(&ours, self.key, &theirs, other.key);
        let mut differences = comparison.topology;
        for (node, other, _) in comparison.parameters {
            let message = format!("{} has other parameters in the other graph", ours.label(node));
            let (node, other) = (Some(node), Some(other));
            differences.push(Difference { node, other, kind: DifferenceKind::Parameters, message });
        }
        for (condition, _) in comparison.defaults {
            let node = ours.get_condition(condition).and_then(|condition| condition.used_by());
            let whose = node.map_or_else(
                || "a condition".to_owned(),
                |node| format!("the condition of {}", ours.label(node)),
            );
            let message = format!("{whose} has another default in the other graph");
            differences.push(Difference { node, other: None, kind: DifferenceKind::Parameters, message });
        }
        differences
    }

    /// Looks for missing dependencies in the whole hierarchy: pairs of unordered nodes in which
    /// one writes what the other uses, and loops that nothing can end.
    pub fn check(&self) -> hazards::Hazards {
        hazards::check(&self.definition())
    }

    /// Adds an edge: `to` depends on `from`. An edge that already exists takes the new kind.
    pub fn add_edge(&self, from: &Node, to: &Node, kind: EdgeKind) -> Result<()> {
        let keys = self.own_keys(&[from, to])?;
        self.hierarchy.write(Writer::Handle, self.key, |definition| {
            definition.check_alive(self.key, &keys)?;
            definition.add_edge(keys[0], keys[1], kind)
        })
    }

    /// Sets the kinds of all edges into a node, in the order of [`Node::predecessors`].
    pub fn set_edge_kinds(&self, to: &Node, kinds: &[EdgeKind]) -> Result<()> {
        let keys = self.own_keys(&[to])?;
        self.hierarchy.write(Writer::Handle, self.key, |definition| {
            definition.check_alive(self.key, &keys)?;
            definition.set_edge_kinds(keys[0], kinds)
        })
    }

    /// Removes an edge and returns whether there was one.
    pub fn remove_edge(&self, from: &Node, to: &Node) -> Result<bool> {
        let keys = self.own_keys(&[from, to])?;
        self.hierarchy.write(Writer::Handle, self.key, |definition| {
            definition.check_alive(self.key, &keys)?;
            Ok(definition.remove_edge(keys[0], keys[1]))
        })
    }

    /// Prepares the graph for launching, with default options.
    pub fn instantiate(&self) -> Result<Executable> {
        self.instantiate_with(&InstantiateOptions::default())
    }

    /// Prepares the graph for launching.
    pub fn instantiate_with(&self, options: &InstantiateOptions) -> Result<Executable> {
        user_code::may_use(self.hierarchy.device.id(), "instantiate")?;
        let definition = self.hierarchy.snapshot();
        if definition.root() != self.key {
            if definition.graphs.get(self.key).is_none() {
                return Err(deleted_graph());
            }
            bail!(
                InvalidState,
                "this graph is inside {}; instantiate the root, or a deep_clone of this graph",
                definition
                    .owner(self.key)
                    .map_or_else(|| "another".into(), |(node, _)| definition.label(node))
            );
        }
        let outliving = lifetimes::check(&definition)?;
        Executable::new(&self.hierarchy, definition, outliving, options)
    }

    /// Returns the handle of a node of this hierarchy.
    pub(crate) fn node_handle(&self, key: NodeKey) -> Node {
        Node::new(&self.hierarchy, key)
    }

    /// Returns the keys of the nodes, which must belong to this hierarchy.
    pub(crate) fn own_keys(&self, nodes: &[&Node]) -> Result<SmallVec<[NodeKey; 4]>> {
        nodes
            .iter()
            .map(|node| {
                if Arc::ptr_eq(&node.hierarchy, &self.hierarchy) {
                    Ok(node.key())
                } else {
                    Err(Error::new(
                        ErrorKind::WrongGraph,
                        format!("{} belongs to another graph; edges join nodes of one graph", node.label()),
                    ))
                }
            })
            .collect()
    }
}

pub(crate) fn deleted_graph() -> Error {
    Error::new(ErrorKind::InvalidHandle, "this graph was deleted together with the node around it")
}

macro_rules! identity {
    ($handle:ty) => {
        impl PartialEq for $handle {
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.hierarchy, &other.hierarchy) && self.key() == other.key()
            }
        }
        impl Eq for $handle {}
        impl Hash for $handle {
            fn hash<H: Hasher>(&self, state: &mut H) {
                Arc::as_ptr(&self.hierarchy).hash(state);
                self.key().hash(state);
            }
        }
    };
}
identity!(Graph);
identity!(Node);
identity!(Condition);

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hierarchy.read(|definition| {
            if definition.graphs.get(self.key).is_none() {
                return write!(f, "Graph({:?} deleted)", self.key);
            }
            let edges: usize =
                definition.nodes(self.key).map(|key| definition.node(key).successors().len()).sum();
            write!(f, "Graph({:?}: {} nodes, {edges} edges)", self.key, definition.node_count(self.key))
        })
    }
}
