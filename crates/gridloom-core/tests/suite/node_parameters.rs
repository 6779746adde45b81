//! Every kind of node gives back exactly what it was given, wherever it travels.

use std::ffi::c_void;
use std::sync::Arc;

use gridloom_core::backend::{DeviceKind, EventOptions};
use gridloom_core::graph::{ConditionalSpec, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Error, ErrorKind, Event};

use crate::common::*;

unsafe extern "C" fn ignore(_: *mut c_void) {}

/// What is checked of a node: in the graph it was made in, and again after each way of travelling.
type Check = Box<dyn Fn(&Node)>;

struct Case {
    name: &'static str,
    kind: NodeKind,
    /// Adds the node; whatever else it adds comes before it.
    add: Box<dyn Fn(&NullDevice, &Graph) -> (Node, Check)>,
}

fn case(
    name: &'static str,
    kind: NodeKind,
    add: impl Fn(&NullDevice, &Graph) -> (Node, Check) + 'static,
) -> Case {
    Case { name, kind, add: Box::new(add) }
}

fn alloc_case(name: &'static str, memory: MemoryKind) -> Case {
    case(name, NodeKind::Alloc, move |_, graph| {
        let op = AllocOp { len: 7, element_size: 12, kind: memory, peers: [1, 3].into_iter().collect() };
        let node = graph.add(&[], Operation::Alloc(Arc::new(op.clone()))).unwrap();
        let check = move |node: &Node| match node.operation().unwrap() {
            Operation::Alloc(read) => assert_eq!(*read, op),
            other => panic!("{other:?}"),
        };
        (node, Box::new(check))
    })
}

fn memset_case(name: &'static str, op: fn(Region) -> MemsetOp) -> Case {
    case(name, NodeKind::Memset, move |device, graph| {
        let op = op(Region::whole(buffer(device, 256)));
        let node = graph.add(&[], Operation::Memset(Arc::new(op.clone()))).unwrap();
        let check = move |node: &Node| match node.operation().unwrap() {
            Operation::Memset(read) => assert_eq!(*read, op),
            other => panic!("{other:?}"),
        };
        (node, Box::new(check))
    })
}

fn memcpy_case(name: &'static str, op: fn(&NullDevice) -> MemcpyOp) -> Case {
    case(name, NodeKind::Memcpy, move |device, graph| {
        let op = op(device);
        let node = graph.add(&[], Operation::Memcpy(Arc::new(op.clone()))).unwrap();
        let check = move |node: &Node| match node.operation().unwrap() {
            Operation::Memcpy(read) => assert_eq!(*read, op),
            other => panic!("{other:?}"),
        };
        (node, Box::new(check))
    })
}

fn callback_case(name: &'static str, make: fn() -> CallbackOp) -> Case {
    case(name, NodeKind::Callback, move |_, graph| {
        let op = make();
        let node = graph.add(&[], Operation::Callback(op.clone())).unwrap();
        let check = move |node: &Node| match node.operation().unwrap() {
            Operation::Callback(read) => assert!(read.same(&op)),
            other => panic!("{other:?}"),
        };
        (node, Box::new(check))
    })
}

fn event_case(name: &'static str, kind: NodeKind, options: EventOptions) -> Case {
    case(name, kind, move |device, graph| {
        let event = Event::new(device, options).unwrap();
        let operation = match kind {
            NodeKind::EventRecord => Operation::EventRecord(event.backend().clone()),
            _ => Operation::EventWait(event.backend().clone()),
        };
        let node = graph.add(&[], operation).unwrap();
        let check = move |node: &Node| match node.operation().unwrap() {
            Operation::EventRecord(read) | Operation::EventWait(read) => {
                let read = Event::from_backend(read);
                assert_eq!(read, event);
                assert_eq!(read.options(), options);
            }
            other => panic!("{other:?}"),
        };
        (node, Box::new(check))
    })
}

fn conditional_case(name: &'static str, form: ConditionalForm, bodies: usize) -> Case {
    case(name, form.kind(), move |_, graph| {
        let condition = graph.condition(Some(2));
        let spec = ConditionalSpec {
            form,
            test: Test::Condition(condition.key()),
            test_first: false,
            max_passes: Some(9),
            bodies,
        };
        let node = graph.add_conditional(&[], spec).unwrap();
        let check = move |node: &Node| {
            let Operation::Conditional(read) = node.operation().unwrap() else { panic!("{node:?}") };
            assert_eq!((read.form, read.test_first, read.max_passes), (form, false, Some(9)));
            assert_eq!(read.bodies.len(), bodies);
            let keys: Vec<_> = node.bodies().unwrap().iter().map(|body| body.key()).collect();
            assert_eq!(keys, read.bodies.to_vec());
            let Test::Condition(key) = read.test else { panic!("{:?}", read.test) };
            let definition = node.graph().unwrap().definition();
            let data = definition.get_condition(key).unwrap();
            assert_eq!(data.default_value(), Some(2));
            assert_eq!(data.used_by(), Some(node.key()));
        };
        (node, Box::new(check))
    })
}

fn cases() -> Vec<Case> {
    vec![
        case("empty", NodeKind::Empty, |_, graph| {
            (
                empty(graph, &[]),
                Box::new(|node| assert!(matches!(node.operation().unwrap(), Operation::Empty))),
            )
        }),
        case("kernel with every attribute", NodeKind::Kernel, |device, graph| {
            let kernel = FakeKernel::new("axpy").params([4, 8, 8]).on(device);
            let config =
                LaunchConfig::new((8, 4, 2), (16, 2)).shared(512).cluster((2, 2)).cooperative().priority(-3);
            let buffer = buffer(device, 64);
            let part = Region::whole(buffer.clone()).part(16, 32).unwrap();
            let condition = graph.condition(None);
            let values = [
                bytes_arg(&1.5f32.to_ne_bytes()),
                ArgValue::Pointer(PointerValue::Region(part.clone())),
                condition_arg(&condition),
            ];
            let args = KernelArgs::pack("axpy", kernel.params(), values).unwrap();
            let op = kernel_op(kernel.clone(), config, args);
            let node = graph.add(&[], Operation::Kernel(Launch::new(op))).unwrap();
            let check = move |node: &Node| {
                let Operation::Kernel(read) = node.operation().unwrap() else { panic!("{node:?}") };
                assert!(Arc::ptr_eq(read.kernel(), &kernel));
                assert_eq!(read.config(), &config);
                assert_eq!(Some(&read.args().layout), kernel.params());
                assert_eq!(read.args().value(0).unwrap(), 1.5f32.to_ne_bytes());
                assert_eq!(read.args().value(1).unwrap(), (buffer.address() + 16).to_ne_bytes());
                assert_eq!(read.args().pointers[0].value, PointerValue::Region(part.clone()));
                assert_eq!(read.args().pointers[1].index, 2);
                let PointerValue::Condition(key) = read.args().pointers[1].value else { panic!() };
                assert!(node.graph().unwrap().definition().get_condition(key).is_some());
            };
            (node, Box::new(check))
        }),
        alloc_case("alloc of device memory", MemoryKind::Device),
        alloc_case("alloc of host memory", MemoryKind::Host),
        alloc_case("alloc of managed memory", MemoryKind::Managed),
        case("free of an alloc node", NodeKind::Free, |_, graph| {
            let memory = alloc(graph, &[]);
            let node = free(graph, &[&memory], &memory).unwrap();
            let check = |node: &Node| match node.operation().unwrap() {
                // In a copy it frees the copied alloc node, which is the one it comes after.
                Operation::Free(FreeTarget::AllocNode(freed)) => {
                    assert_eq!(freed, node.predecessors().unwrap()[0].key());
                }
                other => panic!("{other:?}"),
            };
            (node, Box::new(check))
        }),
        case("free of outliving memory", NodeKind::Free, |device, graph| {
            let memory = outliving(device);
            let node = graph.add(&[], Operation::Free(FreeTarget::Outliving(memory.clone()))).unwrap();
            let check = move |node: &Node| match node.operation().unwrap() {
                Operation::Free(FreeTarget::Outliving(read)) => assert!(Arc::ptr_eq(&read, &memory)),
                other => panic!("{other:?}"),
            };
            (node, Box::new(check))
        }),
        memset_case("memset of bytes", |dst| MemsetOp {
            dst,
            value: 0xab,
            element_size: 1,
            width: 256,
            height: 1,
            pitch: 0,
        }),
        memset_case("memset of 2 bytes", |dst| MemsetOp {
            dst,
            value: 0xabcd,
            element_size: 2,
            width: 100,
            height: 1,
            pitch: 3,
        }),
        memset_case("memset of 4 bytes", |dst| MemsetOp {
            dst,
            value: 0xabcd_ef01,
            element_size: 4,
            width: 64,
            height: 1,
            pitch: 0,
        }),
        memset_case("memset of rows", |dst| MemsetOp {
            dst,
            value: 7,
            element_size: 2,
            width: 10,
            height: 4,
            pitch: 64,
        }),
        memcpy_case("memcpy device to device", |device| {
            MemcpyOp::linear(Region::whole(buffer(device, 64)), Region::whole(buffer(device, 32)), 32)
        }),
        memcpy_case("memcpy device to host", |device| {
            let host = device.allocate(64, MemoryKind::Host).unwrap();
            MemcpyOp::linear(Region::whole(host), Region::whole(buffer(device, 64)), 64)
        }),
        memcpy_case("memcpy of copied bytes", |device| {
            MemcpyOp::linear(Region::whole(buffer(device, 4)), Region::from_bytes(vec![1, 2, 3, 4]), 4)
        }),
        memcpy_case("memcpy of rows", |device| MemcpyOp {
            dst: CopySide { region: Region::whole(buffer(device, 512)), pitch: 128, rows: 4 },
            src: CopySide { region: Region::whole(buffer(device, 256)), pitch: 64, rows: 4 },
            width: 48,
            height: 4,
            depth: 1,
        }),
        memcpy_case("memcpy of planes", |device| MemcpyOp {
            dst: CopySide { region: Region::whole(buffer(device, 4096)), pitch: 32, rows: 8 },
            src: CopySide { region: Region::whole(buffer(device, 4096)), pitch: 16, rows: 5 },
            width: 16,
            height: 5,
            depth: 3,
        }),
        case("child", NodeKind::Child, |device, graph| {
            let inner = Graph::new(device);
            let first = empty(&inner, &[]);
            empty(&inner, &[&first]).named("second").unwrap();
            let node = graph.add_child(&[], &inner).unwrap();
            let check = |node: &Node| {
                let nodes = body(node).nodes();
                assert_eq!(nodes.len(), 2);
                assert_eq!(nodes[1].label(), "second");
                assert_eq!(nodes[1].predecessors().unwrap(), [nodes[0].clone()]);
            };
            (node, Box::new(check))
        }),
        callback_case("callback of a closure", || CallbackOp::closure(|| {})),
        callback_case("callback of a function with bytes", || {
            // SAFETY: `ignore` does nothing with its argument.
            CallbackOp::Raw(unsafe { RawCallback::new(ignore, RawData::Bytes(Arc::new([1, 2, 3]))) })
        }),
        callback_case("callback of a function with no bytes", || {
            // SAFETY: as above.
            CallbackOp::Raw(unsafe { RawCallback::new(ignore, RawData::Bytes(Arc::new([]))) })
        }),
        callback_case("callback of a function with a pointer", || {
            // SAFETY: as above; the pointer is never followed.
            let pointer = unsafe { SendPointer::new(std::ptr::without_provenance_mut(64)) };
            // SAFETY: as above.
            CallbackOp::Raw(unsafe { RawCallback::new(ignore, RawData::Pointer(pointer)) })
        }),
        event_case("record", NodeKind::EventRecord, EventOptions::new().blocking(true)),
        event_case("record without timing", NodeKind::EventRecord, EventOptions::new().timing(false)),
        event_case("wait", NodeKind::EventWait, EventOptions::new().timing(false).blocking(true)),
        case("opaque", NodeKind::Opaque, |device, graph| {
            let operation = sealed(device);
            let node = graph.add(&[], operation.clone()).unwrap();
            let check = move |node: &Node| assert!(node.operation().unwrap().same(&operation));
            (node, Box::new(check))
        }),
        conditional_case("if", ConditionalForm::If, 1),
        conditional_case("if-else", ConditionalForm::IfElse, 2),
        conditional_case("while", ConditionalForm::While, 1),
        conditional_case("switch", ConditionalForm::Switch, 5),
        case("while over a value", NodeKind::While, |device, graph| {
            let region = Region::whole(buffer(device, 64)).part(8, 4).unwrap();
            let test = Test::Value(region);
            let node = graph.add_conditional(&[], spec(ConditionalForm::While, test.clone())).unwrap();
            let check = move |node: &Node| match node.operation().unwrap() {
                Operation::Conditional(read) => assert_eq!(read.test, test),
                other => panic!("{other:?}"),
            };
            (node, Box::new(check))
        }),
        case("counted while", NodeKind::While, |_, graph| {
            let node = graph.add_conditional(&[], spec(ConditionalForm::While, Test::Count(12))).unwrap();
            let check = |node: &Node| match node.operation().unwrap() {
                Operation::Conditional(read) => assert_eq!(read.test, Test::Count(12)),
                other => panic!("{other:?}"),
            };
            (node, Box::new(check))
        }),
    ]
}

#[test]
fn every_kind_of_node_is_in_the_table() {
    let covered: Vec<NodeKind> = cases().iter().map(|case| case.kind).collect();
    for &kind in NodeKind::ALL {
        assert!(covered.contains(&kind), "{kind:?}");
    }
}

#[test]
fn parameters_read_back_exactly_and_wherever_the_node_is_found() {
    for case in cases() {
        let (device, _, graph) = setup();
        let (node, check) = (case.add)(&device, &graph);
        let next = empty(&graph, &[&node]);
        let found = [
            ("handle", node.clone()),
            ("nodes()", graph.nodes().into_iter().find(|other| *other == node).unwrap()),
            ("predecessors()", next.predecessors().unwrap().remove(0)),
            ("edges()", graph.edges().pop().unwrap().0),
        ];
        for (way, found) in found {
            assert_eq!(found, node, "{} through {way}", case.name);
            assert_eq!(found.kind().unwrap(), case.kind, "{} through {way}", case.name);
            check(&found);
        }
    }
}

#[test]
fn parameters_survive_copying_and_embedding() {
    for case in cases() {
        let (device, _, graph) = setup();
        let (node, check) = (case.add)(&device, &graph);
        let position = graph.nodes().iter().position(|other| *other == node).unwrap();
        let (copy, map) = graph.deep_clone().unwrap();
        check(&map.get(&node).unwrap());
        assert_eq!(copy.nodes()[position], map.get(&node).unwrap(), "{}", case.name);
        let outer = Graph::new(&device);
        let child = outer.add_child(&[], &graph).unwrap();
        let embedded = body(&child).nodes().remove(position);
        assert_eq!(embedded.kind().unwrap(), case.kind, "{}", case.name);
        check(&embedded);
        let (_, map) = outer.deep_clone().unwrap();
        check(&body(&map.get(&child).unwrap()).nodes()[position]);
    }
}

#[test]
fn parameters_are_kept_by_an_executable() {
    for case in cases() {
        let (device, stream, graph) = setup();
        let (node, check) = (case.add)(&device, &graph);
        check(&node);
        let exec = graph.instantiate().unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let kept = exec.definition().node(node.key()).operation().kind();
        node.delete().unwrap();
        assert_eq!(exec.definition().node(node.key()).operation().kind(), kept, "{}", case.name);
        assert_eq!(kept, case.kind, "{}", case.name);
        exec.launch(&stream).unwrap();
    }
}

#[test]
fn every_kind_is_drawn() {
    for case in cases() {
        let (device, _, graph) = setup();
        (case.add)(&device, &graph).0.set_name("the node in question").unwrap();
        for picture in [graph.to_dot(), graph.to_mermaid(), graph.to_json()] {
            assert!(picture.contains("the node in question"), "{}: {picture}", case.name);
            assert!(picture.contains(case.kind.name()), "{}: {picture}", case.name);
        }
    }
}

#[test]
fn kinds_have_names_of_their_own() {
    let names: std::collections::HashSet<&str> = NodeKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), NodeKind::ALL.len());
}

#[test]
fn graphs_inside_cannot_be_forged_with_add() {
    let (device, _, graph) = setup();
    let child = graph.add_child(&[], &Graph::new(&device)).unwrap();
    let repeat = conditional(&graph, &[], ConditionalForm::While);
    for node in [child, repeat] {
        assert_error(
            graph.add(&[], node.operation().unwrap()),
            ErrorKind::InvalidArgument,
            &["add_conditional or add_child"],
        );
    }
}

#[test]
fn objects_of_another_device_are_refused() {
    let (_, _, graph) = setup();
    let other = NullDevice::new();
    let foreign = buffer(&other, 256);
    let cases: Vec<(&str, Operation)> = vec![
        ("kernel step", launch_op(&plain_kernel(&other), [])),
        ("the buffer", memset_op(Region::whole(foreign.clone()), 0, 4, 64)),
        ("the buffer to free", Operation::Free(FreeTarget::Outliving(foreign.clone()))),
        ("the event", Operation::EventRecord(event(&other).backend().clone())),
        ("the event", Operation::EventWait(event(&other).backend().clone())),
        ("destination of the copy", memcpy_op(Region::whole(foreign), Region::from_bytes(vec![0; 8]), 8)),
    ];
    for (culprit, operation) in cases {
        let error: Error = graph.add(&[], operation).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongDevice);
        assert!(error.to_string().contains(culprit), "{error}");
    }
    assert!(graph.is_empty());
    assert_eq!(graph.device().kind(), DeviceKind::Null);
}
