//! The operations that graphs, nodes and captures have and streams do not: allocations, embedded
//! graphs and control flow.

use gridloom_core as core;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, Operation, Test};

use super::{AllocNode, Freeable, Ops, alloc_operation, sealed};
use crate::buffer::{Element, Memory};
use crate::conditional::{Body, Conditional, If, IfElse, Switch, While};
use crate::{Capture, Condition, Error, ErrorKind, Graph, MemoryKind, Node, Result};

/// The operations that graphs, nodes and captures share and streams lack: allocations, embedded
/// graphs and control flow. The trait is for code that is generic over them.
///
/// A conditional returns its node and its bodies. The bodies of a conditional in a graph are
/// [`Graph`]s, those of a conditional in a capture are [`Capture`]s.
///
/// ```
/// use gridloom::prelude::*;
///
/// fn twice<G: GraphOps>(place: &G, x: &Buffer<i32>) -> Result<Node> {
///     Ok(place.repeat(2)?.named("twice")?.into())
/// }
/// ```
pub trait GraphOps: Ops<Added = Node> {
    /// The type of a conditional's body.
    type Body: Body;

    /// Adds one operation that also depends on these nodes.
    fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node>;

    /// Adds a node that runs a copy of another graph, taken now. [`Node::bodies`] returns the copy,
    /// which can be read and edited.
    fn embed(&self, graph: &Graph) -> Result<Node>;

    /// Adds a conditional in its most general form. The methods below build a specification and
    /// pass it to this one.
    fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional<Self::Body>>;

    /// Adds a node that does nothing, as a point for dependencies.
    fn empty(&self) -> Result<Node> {
        self.submit(Operation::Empty)
    }

    /// Allocates memory for `len` elements at each launch. Nodes that depend on this one can use
    /// it.
    fn alloc<T: Element>(&self, len: usize) -> Result<AllocNode<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Allocates memory of a given kind for `len` elements at each launch.
    fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<AllocNode<T>> {
        self.alloc_for_peers(len, kind, &[])
    }

    /// Allocates memory that other devices can access too. `peers` are their ordinals.
    fn alloc_for_peers<T: Element>(
        &self,
        len: usize,
        kind: MemoryKind,
        peers: &[u32],
    ) -> Result<AllocNode<T>> {
        Ok(AllocNode::new(self.submit(alloc_operation::<T>(len, kind, peers)?)?, len))
    }

    /// Frees the memory of an alloc node, or memory that outlived a launch of an executable. The
    /// new node also depends on the alloc node.
    fn free(&self, memory: &impl Freeable) -> Result<Node> {
        let (target, alloc) = memory.target()?;
        self.submit_after(alloc.as_slice(), Operation::Free(target))
    }

    /// Adds a body that runs when the condition is not 0.
    fn if_then(&self, condition: &Condition) -> Result<If<Self::Body>> {
        self.conditional(spec(ConditionalForm::If, on(condition))).map(If::new)
    }

    /// Adds two bodies. The first runs when the condition is not 0, else the second.
    fn if_else(&self, condition: &Condition) -> Result<IfElse<Self::Body>> {
        self.conditional(spec(ConditionalForm::IfElse, on(condition))).map(IfElse::new)
    }

    /// Adds a body that runs while the condition is not 0. The condition is tested before each
    /// pass.
    fn while_loop(&self, condition: &Condition) -> Result<While<Self::Body>> {
        self.conditional(spec(ConditionalForm::While, on(condition))).map(While::new)
    }

    /// Adds `bodies` bodies. The condition's value is the index of the body to run; out of range,
    /// none runs.
    fn switch(&self, condition: &Condition, bodies: usize) -> Result<Switch<Self::Body>> {
        self.conditional(cases(bodies, on(condition))).map(Switch::new)
    }

    /// Adds a body that runs when the integer in device memory is not 0.
    fn if_nonzero(&self, value: &impl Memory<i32>) -> Result<If<Self::Body>> {
        self.conditional(spec(ConditionalForm::If, of(value)?)).map(If::new)
    }

    /// Adds two bodies. The first runs when the integer in device memory is not 0, else the second.
    fn if_else_nonzero(&self, value: &impl Memory<i32>) -> Result<IfElse<Self::Body>> {
        self.conditional(spec(ConditionalForm::IfElse, of(value)?)).map(IfElse::new)
    }

    /// Adds a body that runs while the integer in device memory is not 0. It is tested before each
    /// pass.
    fn while_nonzero(&self, value: &impl Memory<i32>) -> Result<While<Self::Body>> {
        self.conditional(spec(ConditionalForm::While, of(value)?)).map(While::new)
    }

    /// Adds a body that runs once, then again while the integer in device memory is not 0.
    fn do_while(&self, value: &impl Memory<i32>) -> Result<While<Self::Body>> {
        let spec = ConditionalSpec { test_first: false, ..spec(ConditionalForm::While, of(value)?) };
        self.conditional(spec).map(While::new)
    }

    /// Adds `bodies` bodies. The integer in device memory is the index of the body to run; out of
    /// range, none runs.
    fn switch_on(&self, value: &impl Memory<i32>, bodies: usize) -> Result<Switch<Self::Body>> {
        self.conditional(cases(bodies, of(value)?)).map(Switch::new)
    }

    /// Adds a body that runs `passes` times. The counter belongs to the graph and starts again
    /// whenever the node runs.
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

/// A position in a graph after several nodes. Operations added to it depend on all of them.
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

/// Wraps a conditional node together with its bodies.
fn conditional(node: core::Node) -> Result<Conditional> {
    let bodies = node.bodies()?.into_iter().map(Graph).collect();
    Ok(Conditional::new(Node(node), bodies))
}

/// Returns the specification of a form whose number of bodies is fixed.
fn spec(form: ConditionalForm, test: Test) -> ConditionalSpec {
    let bodies = if form == ConditionalForm::IfElse { 2 } else { 1 };
    ConditionalSpec { form, test, test_first: true, max_passes: None, bodies }
}

/// Returns the specification of a switch with `bodies` bodies.
fn cases(bodies: usize, test: Test) -> ConditionalSpec {
    ConditionalSpec { bodies, ..spec(ConditionalForm::Switch, test) }
}

fn on(condition: &Condition) -> Test {
    Test::Condition(condition.key())
}

fn of(value: &impl Memory<i32>) -> Result<Test> {
    one_value(value).map(Test::Value)
}

/// Returns the region of the one integer that a conditional tests.
pub(crate) fn one_value(value: &impl Memory<i32>) -> Result<Region> {
    if value.len() != 1 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("a conditional tests one integer, this memory has {}; take a slice of one", value.len()),
        ));
    }
    value.region()
}
