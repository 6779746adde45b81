//! A device that does nothing, to build definitions with in tests of the planning.

use gridloom_core::backend::{self, AsDevice, DeviceId, DeviceKind, EventOptions};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::{Condition, ConditionalSpec, Definition, EdgeKind, Graph, Node};
use gridloom_core::launch::{Dim3, KernelLimits, LaunchConfig, Limits};
use gridloom_core::memory::MemoryKind;
use gridloom_core::op::{
    ArgValue, CallbackOp, ConditionalForm, KernelArgs, KernelOp, Operation, ParamLayout, PointerValue, Test,
};
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::sync::Arc;

#[derive(Debug)]
struct Nowhere {
    id: DeviceId,
    limits: Limits,
}

fn refuse<T>() -> Result<T> {
    Err(Error::new(ErrorKind::NotSupported, "a device for planning only"))
}

impl backend::Device for Nowhere {
    fn id(&self) -> DeviceId {
        self.id
    }
    fn kind(&self) -> DeviceKind {
        DeviceKind::Null
    }
    fn name(&self) -> String {
        "nowhere".to_owned()
    }
    fn ordinal(&self) -> u32 {
        0
    }
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn properties(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn allocate(&self, _: u64, _: MemoryKind) -> Result<Arc<dyn backend::Allocation>> {
        refuse()
    }
    fn memory_use(&self) -> Result<(u64, Option<u64>)> {
        refuse()
    }
    fn create_stream(&self) -> Result<Arc<dyn backend::Stream>> {
        refuse()
    }
    fn create_event(&self, _: EventOptions) -> Result<Arc<dyn backend::Event>> {
        refuse()
    }
    fn load_ptx(&self, _: &str) -> Result<Arc<dyn backend::Module>> {
        refuse()
    }
    fn load_binary(&self, _: &[u8]) -> Result<Arc<dyn backend::Module>> {
        refuse()
    }
    fn wait_all(&self) -> Result<()> {
        refuse()
    }
    fn read(&self, _: &dyn backend::Allocation, _: u64, _: &mut [u8]) -> Result<()> {
        refuse()
    }
    fn write(&self, _: &dyn backend::Allocation, _: u64, _: &[u8]) -> Result<()> {
        refuse()
    }
    fn instantiate(
        self: Arc<Self>,
        _: &Arc<Definition>,
        _: &InstantiateOptions,
    ) -> Result<Box<dyn backend::Executable>> {
        refuse()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct NoKernel {
    device: DeviceId,
    limits: KernelLimits,
}

impl backend::Kernel for NoKernel {
    fn device(&self) -> DeviceId {
        self.device
    }
    fn name(&self) -> &str {
        "kernel"
    }
    fn params(&self) -> Option<&[ParamLayout]> {
        None
    }
    fn limits(&self) -> &KernelLimits {
        &self.limits
    }
    fn properties(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A graph to plan, with short ways to add nodes.
pub(super) struct Sketch {
    device: Arc<dyn backend::Device>,
    pub(super) graph: Graph,
}

impl Sketch {
    pub(super) fn new() -> Self {
        let big = Dim3::new(1 << 20, 1 << 16, 1 << 10);
        let limits = Limits {
            max_grid: big,
            max_block: big,
            max_threads_per_block: 1024,
            max_shared_per_block: 48 << 10,
            warp_size: 32,
            max_parameter_bytes: 4096,
        };
        let device: Arc<dyn backend::Device> = Arc::new(Nowhere { id: DeviceId::fresh(), limits });
        let graph = Graph::new(&device);
        Self { device, graph }
    }

    /// A graph of the same device, to embed.
    pub(super) fn other_graph(&self) -> Graph {
        Graph::new(self.device.as_device())
    }

    /// A kernel that is given these conditions.
    pub(super) fn kernel_in(&self, graph: &Graph, after: &[&Node], sets: &[&Condition]) -> Node {
        let kernel: Arc<dyn backend::Kernel> =
            Arc::new(NoKernel { device: self.device.id(), limits: KernelLimits::default() });
        let values = sets.iter().map(|condition| ArgValue::Pointer(PointerValue::Condition(condition.key())));
        let args = KernelArgs::pack("kernel", None, values).unwrap();
        let op = KernelOp { kernel, config: LaunchConfig::one(), args };
        graph.add(after, Operation::Kernel(Arc::new(op))).unwrap()
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
        let spec = ConditionalSpec { form, test, test_first: true, limit: None, bodies: 3 };
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
