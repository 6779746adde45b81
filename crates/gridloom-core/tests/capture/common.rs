//! A null device, and ways to say what a captured graph looks like.

use std::sync::Arc;

use gridloom_core::backend::EventOptions;
use gridloom_core::graph::{ConditionalSpec, EdgeKind};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::{
    CallbackOp, ConditionalForm, KernelArgs, KernelOp, Launch, MemsetOp, Operation, Test,
};
use gridloom_core::{Capture, Condition, Error, ErrorKind, Event, Graph, Node, Result, Stream};

/// A device with a stream.
pub(crate) struct Bench {
    pub(crate) device: NullDevice,
    pub(crate) stream: Stream,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let device = NullDevice::new();
        let stream = Stream::new(&device).unwrap();
        Bench { device, stream }
    }

    pub(crate) fn stream(&self) -> Stream {
        Stream::new(&self.device).unwrap()
    }

    pub(crate) fn event(&self) -> Event {
        Event::new(&self.device, EventOptions::default()).unwrap()
    }

    /// A launch of a kernel without parameters.
    pub(crate) fn kernel(&self) -> Operation {
        self.kernel_with(LaunchConfig::one())
    }

    pub(crate) fn kernel_with(&self, config: LaunchConfig) -> Operation {
        let kernel = FakeKernel::new("work").params([]).on(&self.device);
        // SAFETY: kernels of the null device never run.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, KernelArgs::default()) }))
    }

    /// A fill of a buffer of its own.
    pub(crate) fn memset(&self) -> Operation {
        let dst = Region::whole(self.device.allocate(16, MemoryKind::Device).unwrap());
        Operation::Memset(Arc::new(MemsetOp {
            dst,
            value: 0,
            element_size: 1,
            width: 16,
            height: 1,
            pitch: 0,
        }))
    }
}

pub(crate) fn nothing() -> Operation {
    Operation::Empty
}

pub(crate) fn callback(closure: impl FnMut() + Send + 'static) -> Operation {
    Operation::Callback(CallbackOp::closure(closure))
}

pub(crate) fn while_loop(condition: &Condition) -> ConditionalSpec {
    conditional(ConditionalForm::While, condition, 1)
}

pub(crate) fn conditional(form: ConditionalForm, condition: &Condition, bodies: usize) -> ConditionalSpec {
    ConditionalSpec {
        form,
        test: Test::Condition(condition.key()),
        test_first: true,
        max_passes: None,
        bodies,
    }
}

/// Records a loop over a condition of its own, and returns its node and body.
pub(crate) fn record_loop(capture: &Capture) -> (Node, Capture) {
    let condition = capture.condition(true).unwrap();
    let (node, mut bodies) = capture.conditional(&while_loop(&condition)).unwrap();
    (node, bodies.remove(0))
}

/// The edges as pairs of positions in `graph.nodes()`.
pub(crate) fn edges(graph: &Graph) -> Vec<(usize, usize)> {
    let nodes = graph.nodes();
    let position = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
    let mut edges: Vec<(usize, usize)> =
        graph.edges().iter().map(|(from, to, _)| (position(from), position(to))).collect();
    edges.sort_unstable();
    edges
}

pub(crate) fn edge_kinds(graph: &Graph) -> Vec<EdgeKind> {
    graph.edges().into_iter().map(|(_, _, kind)| kind).collect()
}

/// The error of a call that must fail, of this kind, saying all of these things.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, says: &[&str]) -> Error {
    let error = result.expect_err("the call must fail");
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    for word in says {
        assert!(text.contains(word), "expected {word:?} in: {text}");
    }
    error
}

/// A value whose drops can be counted.
#[derive(Clone, Default)]
pub(crate) struct Witness(Arc<()>);

impl Witness {
    /// How many captured copies exist.
    pub(crate) fn held(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }

    /// A callback that holds a copy.
    pub(crate) fn callback(&self) -> Operation {
        let held = self.clone();
        callback(move || {
            let _ = &held;
        })
    }
}
