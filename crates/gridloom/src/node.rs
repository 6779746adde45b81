//! Nodes of graphs.

use std::fmt;

use gridloom_core as core;
use gridloom_core::graph::NodeKey;
use gridloom_core::op::{NodeKind, Operation};

use crate::buffer::Element;
use crate::conditional::{Conditional, If, IfElse, Switch, While};
use crate::ops::AllocNode;
use crate::{EdgeKind, Error, ErrorKind, Event, Graph, Result};

/// A node of a graph. An operation on it adds a node that depends on it.
///
/// The handle is cheap to clone, compares by identity and keeps the graph alive. A handle to a
/// deleted node can still be compared and used as a key. [`is_valid`](Node::is_valid) then returns
/// `false`, and every other method returns an error.
///
/// The `set_…` methods change the definition, each completely or not at all. They affect later
/// instantiations only. [`Executable::node`](crate::Executable::node) offers the same methods for
/// one executable.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Node(pub(crate) core::Node);

impl Node {
    /// Returns whether the node is still part of its graph.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Returns its key, by which operations and reports name it.
    pub fn key(&self) -> NodeKey {
        self.0.key()
    }

    /// Returns the graph it is in.
    pub fn graph(&self) -> Result<Graph> {
        self.0.graph().map(Graph)
    }

    /// Returns which of the fifteen kinds it is.
    pub fn kind(&self) -> Result<NodeKind> {
        self.0.kind()
    }

    /// Returns its operation, with everything the operation holds.
    pub fn operation(&self) -> Result<Operation> {
        self.0.operation()
    }

    /// Views an alloc node's memory as elements of type `T`. Returns an error if the node is not an
    /// alloc node, or its memory does not hold a whole number of such elements.
    pub fn as_alloc<T: Element>(&self) -> Result<AllocNode<T>> {
        AllocNode::of(self)
    }

    /// Returns the node as a conditional with one body, or an error if it is something else.
    pub fn as_if(&self) -> Result<If> {
        self.as_conditional(NodeKind::If).map(If::new)
    }

    /// Returns the node as a conditional with two bodies, or an error if it is something else.
    pub fn as_if_else(&self) -> Result<IfElse> {
        self.as_conditional(NodeKind::IfElse).map(IfElse::new)
    }

    /// Returns the node as a loop, or an error if it is something else.
    pub fn as_while(&self) -> Result<While> {
        self.as_conditional(NodeKind::While).map(While::new)
    }

    /// Returns the node as a switch, or an error if it is something else.
    pub fn as_switch(&self) -> Result<Switch> {
        self.as_conditional(NodeKind::Switch).map(Switch::new)
    }

    fn as_conditional(&self, kind: NodeKind) -> Result<Conditional> {
        let own = self.kind()?;
        if own != kind {
            return Err(self.wrong_kind(kind, own));
        }
        Ok(Conditional::new(self.clone(), self.bodies()?))
    }

    /// Returns the error for a node that is not of the expected kind.
    pub(crate) fn wrong_kind(&self, kind: NodeKind, own: NodeKind) -> Error {
        let message = format!("{} is of kind {}, not {}", self.label(), own.name(), kind.name());
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// Returns the event that the node records or waits for.
    pub fn event(&self) -> Result<Event> {
        match self.operation()? {
            Operation::EventRecord(event) | Operation::EventWait(event) => {
                Ok(Event::new(core::Event::from_backend(event), self.0.graph()?.device()))
            }
            other => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{} is a {} node and has no event", self.label(), other.kind().name()),
            )),
        }
    }

    /// Gives the node a name, which errors, pictures and profiles show.
    pub fn set_name(&self, name: &str) -> Result<()> {
        self.0.set_name(name)
    }

    /// Gives the node a name, and returns it.
    pub fn named(&self, name: &str) -> Result<Self> {
        self.set_name(name)?;
        Ok(self.clone())
    }

    /// Returns the node's name: the one it was given, or one made from its kind, number and kernel.
    pub fn label(&self) -> String {
        self.0.label()
    }

    /// Returns the nodes it depends on, in the order the edges were added.
    pub fn predecessors(&self) -> Result<Vec<Node>> {
        Ok(self.0.predecessors()?.into_iter().map(Node).collect())
    }

    /// Returns the nodes that depend on it, in the order the edges were added.
    pub fn successors(&self) -> Result<Vec<Node>> {
        Ok(self.0.successors()?.into_iter().map(Node).collect())
    }

    /// Returns the graphs inside it: the bodies of a conditional, or the embedded graph.
    pub fn bodies(&self) -> Result<Vec<Graph>> {
        Ok(self.0.bodies()?.into_iter().map(Graph).collect())
    }

    /// Replaces the graph embedded at this node by a copy of another one, taken now. Handles to
    /// nodes of the old copy become invalid.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        self.0.set_child(&graph.0)
    }

    /// Makes this node also depend on others, with full edges. Either all edges are added or none.
    pub fn after<'a>(&self, others: impl IntoIterator<Item = &'a Node>) -> Result<()> {
        self.after_with(others, EdgeKind::Full)
    }

    /// Makes this node also depend on others, with edges of this kind. Either all edges are added
    /// or none.
    pub fn after_with<'a>(&self, others: impl IntoIterator<Item = &'a Node>, kind: EdgeKind) -> Result<()> {
        self.0.after_with(others.into_iter().map(|node| &node.0), kind)
    }

    /// Returns a weak handle, which does not keep the node's graph alive.
    pub fn downgrade(&self) -> WeakNode {
        WeakNode(self.0.downgrade())
    }

    /// Deletes the node, its edges, and everything inside it. What it held is released at once,
    /// unless an executable still needs it.
    pub fn delete(&self) -> Result<()> {
        self.0.delete()
    }
}

/// A weak handle to a [`Node`], from [`Node::downgrade`]. It does not keep the graph alive.
#[derive(Clone, Debug)]
pub struct WeakNode(core::graph::WeakNode);

impl WeakNode {
    /// Returns the node, if something still keeps its graph alive.
    pub fn upgrade(&self) -> Option<Node> {
        self.0.upgrade().map(Node)
    }
}

impl AsRef<Node> for Node {
    fn as_ref(&self) -> &Node {
        self
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
