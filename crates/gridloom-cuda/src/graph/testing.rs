//! Short ways to build definitions, on a device that runs nothing, for tests of the planning.

use gridloom_core::graph::{Condition, ConditionalSpec, Definition, EdgeKind, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::{
    ArgValue, CallbackOp, ConditionalForm, KernelArgs, KernelOp, Launch, Operation, PointerValue, Test,
};
use std::sync::Arc;

/// A graph to plan, with short ways to add nodes.
pub(super) struct Sketch {
    device: NullDevice,
    pub(super) graph: Graph,
}

impl Sketch {
    pub(super) fn new() -> Self {
        let device = NullDevice::new();
        let graph = Graph::new(&device);
        Self { device, graph }
    }

    /// A graph of the same device, to embed.
    pub(super) fn other_graph(&self) -> Graph {
        Graph::new(&self.device)
    }

    /// A kernel that is given these conditions.
    pub(super) fn kernel_in(&self, graph: &Graph, after: &[&Node], sets: &[&Condition]) -> Node {
        let kernel = FakeKernel::new("kernel").on(&self.device);
        let values = sets.iter().map(|condition| ArgValue::Pointer(PointerValue::Condition(condition.key())));
        let args = KernelArgs::pack("kernel", None, values).unwrap();
        // SAFETY: kernels of the null device never run.
        let op = unsafe { KernelOp::new(kernel, LaunchConfig::one(), args) };
        graph.add(after, Operation::Kernel(Launch::new(op))).unwrap()
    }

    pub(super) fn kernel(&self, after: &[&Node], sets: &[&Condition]) -> Node {
        self.kernel_in(&self.graph, after, sets)
    }

    pub(super) fn callback_in(&self, graph: &Graph, after: &[&Node]) -> Node {
        graph.add(after, Operation::Callback(CallbackOp::closure(|| {}))).unwrap()
    }

    /// A conditional with its bodies.
    pub(super) fn conditional_in(
        &self,
        graph: &Graph,
        after: &[&Node],
        form: ConditionalForm,
        test: Test,
    ) -> (Node, Vec<Graph>) {
        let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 3 };
        let node = graph.add_conditional(after, spec).unwrap();
        let bodies = node.bodies().unwrap();
        (node, bodies)
    }

    pub(super) fn while_in(&self, graph: &Graph, after: &[&Node], condition: &Condition) -> (Node, Graph) {
        let test = Test::Condition(condition.key());
        let (node, mut bodies) = self.conditional_in(graph, after, ConditionalForm::While, test);
        (node, bodies.remove(0))
    }

    pub(super) fn repeat_in(&self, graph: &Graph, after: &[&Node], count: u64) -> (Node, Graph) {
        let (node, mut bodies) =
            self.conditional_in(graph, after, ConditionalForm::While, Test::Count(count));
        (node, bodies.remove(0))
    }

    pub(super) fn make_programmatic(&self, from: &Node, to: &Node) {
        self.graph.add_edge(from, to, EdgeKind::Programmatic).unwrap();
    }

    pub(super) fn definition(&self) -> Arc<Definition> {
        self.graph.definition()
    }
}
