//! What many tests need: a device, short ways to make operations, and a drop that can be observed.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom_core::backend::{Allocation, AsDevice, DeviceId, EventOptions, Kernel, Opaque};
use gridloom_core::graph::{ConditionalSpec, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Condition, Error, ErrorKind, Event, Result, Stream};

/// A device, a stream of it and an empty graph.
pub(crate) fn setup() -> (NullDevice, Stream, Graph) {
    let device = NullDevice::new();
    let stream = Stream::new(&device).unwrap();
    let graph = Graph::new(&device);
    (device, stream, graph)
}

pub(crate) fn empty(graph: &Graph, after: &[&Node]) -> Node {
    graph.add(after, Operation::Empty).unwrap()
}

pub(crate) fn buffer(device: &NullDevice, bytes: u64) -> Arc<dyn Allocation> {
    device.allocate(bytes, MemoryKind::Device).unwrap()
}

pub(crate) fn plain_kernel(device: &NullDevice) -> Arc<dyn Kernel> {
    FakeKernel::new("step").params([]).on(device)
}

/// A launch with these arguments, whatever they are.
pub(crate) fn kernel_op(kernel: Arc<dyn Kernel>, config: LaunchConfig, args: KernelArgs) -> KernelOp {
    // SAFETY: kernels of the null device never run.
    unsafe { KernelOp::new(kernel, config, args) }
}

/// A launch of one thread with these arguments.
pub(crate) fn launch_op(kernel: &Arc<dyn Kernel>, args: impl IntoIterator<Item = ArgValue>) -> Operation {
    let args = KernelArgs::pack(kernel.name(), kernel.params(), args).unwrap();
    Operation::Kernel(Launch::new(kernel_op(kernel.clone(), LaunchConfig::one(), args)))
}

/// A kernel node with one pointer argument for each region.
pub(crate) fn kernel_on(
    device: &NullDevice,
    graph: &Graph,
    after: &[&Node],
    regions: impl IntoIterator<Item = Region>,
) -> Result<Node> {
    let args: Vec<ArgValue> =
        regions.into_iter().map(|region| ArgValue::Pointer(PointerValue::Region(region))).collect();
    let kernel = FakeKernel::new("step").params(args.iter().map(|_| 8)).on(device);
    graph.add(after, launch_op(&kernel, args))
}

pub(crate) fn kernel(device: &NullDevice, graph: &Graph, after: &[&Node]) -> Node {
    kernel_on(device, graph, after, []).unwrap()
}

pub(crate) fn condition_arg(condition: &Condition) -> ArgValue {
    ArgValue::Pointer(PointerValue::Condition(condition.key()))
}

pub(crate) fn bytes_arg(bytes: &[u8]) -> ArgValue {
    ArgValue::Bytes(bytes.into())
}

pub(crate) fn alloc_op(len: u64, element_size: u32, kind: MemoryKind) -> Operation {
    Operation::Alloc(Arc::new(AllocOp { len, element_size, kind, peers: Default::default() }))
}

/// An alloc node of 64 elements of 4 bytes.
pub(crate) fn alloc(graph: &Graph, after: &[&Node]) -> Node {
    graph.add(after, alloc_op(64, 4, MemoryKind::Device)).unwrap()
}

/// Memory that outlived a launch: the 256 bytes of an alloc node.
pub(crate) fn outliving(device: &NullDevice) -> Arc<dyn Allocation> {
    let graph = Graph::new(device);
    let node = alloc(&graph, &[]);
    let owner = graph.instantiate().unwrap();
    owner.launch(&Stream::new(device).unwrap()).unwrap();
    owner.outliving(&node).unwrap()
}

/// Launches a graph that frees memory that outlived a launch.
pub(crate) fn free_outliving(device: &NullDevice, memory: &Arc<dyn Allocation>) {
    let graph = Graph::new(device);
    graph.add(&[], Operation::Free(FreeTarget::Outliving(memory.clone()))).unwrap();
    graph.instantiate().unwrap().launch(&Stream::new(device).unwrap()).unwrap();
}

/// All of the 256 bytes that [`alloc`] provides.
pub(crate) fn memory_of(alloc: &Node) -> Region {
    Region { base: Base::AllocNode(alloc.key()), offset: 0, bytes: 256 }
}

pub(crate) fn free_op(alloc: &Node) -> Operation {
    Operation::Free(FreeTarget::AllocNode(alloc.key()))
}

pub(crate) fn free(graph: &Graph, after: &[&Node], alloc: &Node) -> Result<Node> {
    graph.add(after, free_op(alloc))
}

pub(crate) fn memset_op(dst: Region, value: u32, element_size: u32, width: u64) -> Operation {
    Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 }))
}

/// A fill of what [`alloc`] provides, or of a buffer of as many bytes.
pub(crate) fn memset(graph: &Graph, after: &[&Node], dst: Region) -> Result<Node> {
    graph.add(after, memset_op(dst, 0, 4, 64))
}

pub(crate) fn memcpy_op(dst: Region, src: Region, bytes: u64) -> Operation {
    Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes)))
}

pub(crate) fn event(device: &NullDevice) -> Event {
    Event::new(device, EventOptions::default()).unwrap()
}

pub(crate) fn callback(graph: &Graph, after: &[&Node], closure: impl FnMut() + Send + 'static) -> Node {
    graph.add(after, Operation::Callback(CallbackOp::closure(closure))).unwrap()
}

pub(crate) fn spec(form: ConditionalForm, test: Test) -> ConditionalSpec {
    ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 3 }
}

/// A conditional node with a condition of its own; a switch has three bodies.
pub(crate) fn conditional(graph: &Graph, after: &[&Node], form: ConditionalForm) -> Node {
    let test = Test::Condition(graph.condition(None).key());
    graph.add_conditional(after, spec(form, test)).unwrap()
}

pub(crate) fn body(node: &Node) -> Graph {
    node.bodies().unwrap().remove(0)
}

/// Counts how many of the tokens it gave out still exist.
#[derive(Clone, Default)]
pub(crate) struct Alive(Arc<AtomicUsize>);

pub(crate) struct Token(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn token(&self) -> Token {
        self.0.fetch_add(1, Ordering::Relaxed);
        Token(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A callback that owns a token.
    pub(crate) fn callback(&self) -> Operation {
        let token = self.token();
        Operation::Callback(CallbackOp::closure(move || {
            let _held = &token;
        }))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Asserts the kind of a failure, and that its message speaks of all these.
#[track_caller]
pub(crate) fn assert_error<T: std::fmt::Debug>(
    result: Result<T>,
    kind: ErrorKind,
    mentions: &[&str],
) -> Error {
    let error = result.expect_err("an error was expected");
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    for mention in mentions {
        assert!(text.contains(mention), "{text:?} does not mention {mention:?}");
    }
    error
}

/// An opaque graph that does nothing.
#[derive(Debug)]
struct Sealed(DeviceId);

// SAFETY: nothing is run.
unsafe impl Opaque for Sealed {
    fn device(&self) -> DeviceId {
        self.0
    }

    fn node_count(&self) -> usize {
        7
    }

    fn reason(&self) -> &str {
        "it is sealed"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(crate) fn sealed(device: &NullDevice) -> Operation {
    Operation::Opaque(Arc::new(Sealed(device.as_device().id())))
}
