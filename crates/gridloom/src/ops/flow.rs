//! What graphs, nodes and captures can do, and streams cannot: allocations, embedded graphs and control
//! flow.

use gridloom_core as core;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, Operation, Test};

use super::{AllocNode, Freeable, Ops, alloc_operation, sealed};
use crate::buffer::{Element, Memory};
use crate::conditional::{Body, Conditional, If, IfElse, Switch, While};
use crate::{Capture, Condition, Error, ErrorKind, Graph, MemoryKind, Node, Result};

/// What graphs, nodes and captures can all do, for code that serves each of them: allocations, embedded
/// graphs and control flow.
///
/// A conditional gives back its node and its bodies. A body is what the trait is called on: a [`Graph`]
/// of a graph or node, a [`Capture`] of a capture.
///
/// ```
/// use gridloom::prelude::*;
///
/// fn twice<G: GraphOps>(place: &G, x: &Buffer<i32>) -> Result<Node> {
///     Ok(place.repeat(2)?.named("twice")?.into())
/// }
/// ```
pub trait GraphOps: Ops<Added = Node> {
    /// What a body of a conditional is.
    type Body: Body;

    /// Adds one operation that comes after these nodes too.
    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node>;

    /// Runs a copy of another graph, as that graph is now. [`Node::bodies`] gives the copy, open for
    /// reading and editing.
    fn embed(&self, graph: &Graph) -> Result<Node>;

    /// Adds a conditional in its most general form. The other methods are ways to write it.
    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional<Self::Body>>;

    /// Adds a node that does nothing, for other nodes to come after.
    fn empty(&self) -> Result<Node> {
        self.submit(Operation::Empty)
    }

    /// Allocates memory for `len` elements, provided at each launch to what comes after the node.
    fn alloc<T: Element>(&self, len: usize) -> Result<AllocNode<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Allocates memory of a given kind for `len` elements, provided at each launch.
    fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<AllocNode<T>> {
        self.alloc_for_peers(len, kind, &[])
    }

    /// Allocates memory that other devices, named by their ordinals, can reach too.
    fn alloc_for_peers<T: Element>(
        &self,
        len: usize,
        kind: MemoryKind,
        peers: &[u32],
    ) -> Result<AllocNode<T>> {
        Ok(AllocNode::new(self.submit(alloc_operation::<T>(len, kind, peers)?)?, len))
    }

    /// Frees the memory of an alloc node, which the new node comes after too, or memory that outlived a
    /// launch of an executable.
    fn free(&self, memory: &impl Freeable) -> Result<Node> {
        let (target, alloc) = memory.target()?;
        self.submit_after(alloc.as_slice(), Operation::Free(target))
    }

    /// Adds a body that runs when the condition is not 0.
    fn if_then(&self, condition: &Condition) -> Result<If<Self::Body>> {
        self.conditional(spec(ConditionalForm::If, on(condition))).map(If::new)
    }

    /// Adds two bodies, of which exactly one runs: the first when the condition is not 0.
    fn if_else(&self, condition: &Condition) -> Result<IfElse<Self::Body>> {
        self.conditional(spec(ConditionalForm::IfElse, on(condition))).map(IfElse::new)
    }

    /// Adds a body that runs again and again while the condition is not 0. It is tested before each pass.
    fn while_loop(&self, condition: &Condition) -> Result<While<Self::Body>> {
        self.conditional(spec(ConditionalForm::While, on(condition))).map(While::new)
    }

    /// Adds `bodies` bodies, of which the one runs whose index is the condition's value, or none.
    fn switch(&self, condition: &Condition, bodies: usize) -> Result<Switch<Self::Body>> {
        self.conditional(cases(bodies, on(condition))).map(Switch::new)
    }

    /// Adds a body that runs when the integer in device memory is not 0.
    fn if_nonzero(&self, value: &impl Memory<i32>) -> Result<If<Self::Body>> {
        self.conditional(spec(ConditionalForm::If, of(value)?)).map(If::new)
    }

    /// Adds two bodies: the first runs when the integer in device memory is not 0, else the second.
    fn if_else_nonzero(&self, value: &impl Memory<i32>) -> Result<IfElse<Self::Body>> {
        self.conditional(spec(ConditionalForm::IfElse, of(value)?)).map(IfElse::new)
    }

    /// Adds a body that runs while the integer in device memory is not 0. It is tested before each pass.
    fn while_nonzero(&self, value: &impl Memory<i32>) -> Result<While<Self::Body>> {
        self.conditional(spec(ConditionalForm::While, of(value)?)).map(While::new)
    }

    /// Adds a body that runs once, then again while the integer in device memory is not 0.
    fn do_while(&self, value: &impl Memory<i32>) -> Result<While<Self::Body>> {
        let spec = ConditionalSpec { test_first: false, ..spec(ConditionalForm::While, of(value)?) };
        self.conditional(spec).map(While::new)
    }

    /// Adds `bodies` bodies, of which the one runs whose index is the integer in device memory, or none.
    fn switch_on(&self, value: &impl Memory<i32>, bodies: usize) -> Result<Switch<Self::Body>> {
        self.conditional(cases(bodies, of(value)?)).map(Switch::new)
    }

    /// Adds a body that runs `passes` times. The counter belongs to the graph and starts anew whenever
    /// the node runs.
    fn repeat(&self, passes: u64) -> Result<While<Self::Body>> {
        self.conditional(spec(ConditionalForm::While, Test::Count(passes))).map(While::new)
    }
}

impl GraphOps for Graph {
    type Body = Graph;

    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        self.0.add(&Graph::core_nodes(nodes.iter().copied()), operation).map(Node)
    }

    fn embed(&self, graph: &Graph) -> Result<Node> {
        self.0.add_child(&[], &graph.0).map(Node)
    }

    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional> {
        conditional(self.0.add_conditional(&[], spec)?)
    }
}

impl GraphOps for Node {
    type Body = Graph;

    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        let after = Graph::core_nodes([self].into_iter().chain(nodes.iter().copied()));
        self.0.graph()?.add(&after, operation).map(Node)
    }

    fn embed(&self, graph: &Graph) -> Result<Node> {
        self.0.graph()?.add_child(&[&self.0], &graph.0).map(Node)
    }

    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional> {
        conditional(self.0.graph()?.add_conditional(&[&self.0], spec)?)
    }
}

impl GraphOps for Capture {
    type Body = Capture;

    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        self.0.add_after(&Graph::core_nodes(nodes.iter().copied()), operation).map(Node)
    }

    fn embed(&self, graph: &Graph) -> Result<Node> {
        self.0.embed(&graph.0).map(Node)
    }

    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional<Capture>> {
        let (node, bodies) = self.0.conditional(&spec)?;
        Ok(Conditional::new(Node(node), bodies.into_iter().map(Capture).collect()))
    }
}

/// A place in a graph after several nodes.
pub(crate) struct After<'a> {
    pub(crate) graph: &'a core::Graph,
    pub(crate) nodes: &'a [&'a core::Node],
}

impl sealed::Ops for After<'_> {}
impl Ops for After<'_> {
    type Added = Node;

    fn submit(&self, operation: Operation) -> Result<Node> {
        self.graph.add(self.nodes, operation).map(Node)
    }
}

impl GraphOps for After<'_> {
    type Body = Graph;

    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        let mut after = Graph::core_nodes(nodes.iter().copied());
        after.extend_from_slice(self.nodes);
        self.graph.add(&after, operation).map(Node)
    }

    fn embed(&self, graph: &Graph) -> Result<Node> {
        self.graph.add_child(self.nodes, &graph.0).map(Node)
    }

    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional> {
        conditional(self.graph.add_conditional(self.nodes, spec)?)
    }
}

/// A conditional node with the graphs inside it.
fn conditional(node: core::Node) -> Result<Conditional> {
    let bodies = node.bodies()?.into_iter().map(Graph).collect();
    Ok(Conditional::new(Node(node), bodies))
}

/// A conditional whose form fixes the number of its bodies.
fn spec(form: ConditionalForm, test: Test) -> ConditionalSpec {
    let bodies = if form == ConditionalForm::IfElse { 2 } else { 1 };
    ConditionalSpec { form, test, test_first: true, max_passes: None, bodies }
}

/// A switch of so many bodies.
fn cases(bodies: usize, test: Test) -> ConditionalSpec {
    ConditionalSpec { bodies, ..spec(ConditionalForm::Switch, test) }
}

fn on(condition: &Condition) -> Test {
    Test::Condition(condition.key())
}

fn of(value: &impl Memory<i32>) -> Result<Test> {
    one_value(value).map(Test::Value)
}

/// The one integer that a ready-made conditional tests.
pub(crate) fn one_value(value: &impl Memory<i32>) -> Result<Region> {
    if value.len() != 1 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("a conditional tests one integer, this memory has {}; take a slice of one", value.len()),
        ));
    }
    value.region()
}
