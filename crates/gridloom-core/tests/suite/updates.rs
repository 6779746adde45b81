//! Changing what nodes do: of a definition for later instantiations, of an executable for its next
//! launch.

use std::sync::Arc;

use gridloom_core::backend::EventOptions;
use gridloom_core::graph::{Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::null::{Call, CallKind, FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Event, Executable, Result};

use crate::common::*;

/// Before and after, for every kind whose parameters can be replaced.
fn replacements(device: &NullDevice) -> Vec<(&'static str, Operation, Operation)> {
    let memory = || Region::whole(buffer(device, 256));
    let kernel = |name| FakeKernel::new(name).params([4]).on(device);
    let launch = |kernel: &Arc<dyn gridloom_core::backend::Kernel>, grid, value: u32| {
        let args = KernelArgs::pack("k", kernel.params(), [bytes_arg(&value.to_ne_bytes())]).unwrap();
        let config = LaunchConfig::new(grid, 1);
        Operation::Kernel(Launch::new(kernel_op(kernel.clone(), config, args)))
    };
    let event = || Event::new(device, EventOptions::default()).unwrap().backend().clone();
    let (first, dst) = (kernel("first"), memory());
    vec![
        ("kernel arguments", launch(&first, 1, 1), launch(&first, 1, 2)),
        ("kernel configuration", launch(&first, 1, 1), launch(&first, 2, 1)),
        ("kernel function", launch(&first, 1, 1), launch(&kernel("second"), 1, 1)),
        ("memset value", memset_op(dst.clone(), 1, 4, 64), memset_op(dst.clone(), 2, 4, 64)),
        ("memset destination", memset_op(dst.clone(), 1, 4, 64), memset_op(memory(), 1, 4, 64)),
        ("memcpy size", memcpy_op(dst.clone(), memory(), 8), memcpy_op(dst.clone(), memory(), 16)),
        (
            "memcpy direction",
            memcpy_op(dst.clone(), Region::from_bytes(vec![0; 8]), 8),
            memcpy_op(dst, memory(), 8),
        ),
        (
            "callback",
            Operation::Callback(CallbackOp::closure(|| {})),
            Operation::Callback(CallbackOp::closure(|| {})),
        ),
        ("record", Operation::EventRecord(event()), Operation::EventRecord(event())),
        ("wait", Operation::EventWait(event()), Operation::EventWait(event())),
    ]
}

#[test]
fn replacing_an_operation_of_a_node_changes_later_instantiations_only() {
    let device = NullDevice::new();
    for (name, before, after) in replacements(&device) {
        let graph = Graph::new(&device);
        let node = graph.add(&[], before.clone()).unwrap();
        let earlier = graph.instantiate().unwrap();
        node.set_operation(after.clone()).unwrap();
        let later = graph.instantiate().unwrap();
        assert!(node.operation().unwrap().same(&after), "{name}");
        assert!(earlier.definition().node(node.key()).operation().same(&before), "{name}");
        assert!(later.definition().node(node.key()).operation().same(&after), "{name}");
    }
}

#[test]
fn replacing_an_operation_of_an_executable_changes_that_executable_only() {
    let device = NullDevice::new();
    for (name, before, after) in replacements(&device) {
        let graph = Graph::new(&device);
        let node = graph.add(&[], before.clone()).unwrap();
        let (changed, other) = (graph.instantiate().unwrap(), graph.instantiate().unwrap());
        changed.node(&node).unwrap().set_operation(after.clone()).unwrap();
        assert!(changed.node(&node).unwrap().operation().same(&after), "{name}");
        assert!(other.node(&node).unwrap().operation().same(&before), "{name}");
        assert!(node.operation().unwrap().same(&before), "{name}");
        let Some(Call::Update { nodes, .. }) = device.take_calls().pop() else { panic!("{name}") };
        assert_eq!(nodes, [node.key()], "{name}");
    }
}

#[test]
fn an_update_takes_over_what_differs_and_nothing_else() {
    let device = NullDevice::new();
    for (name, before, after) in replacements(&device) {
        let (graph, changed) = (Graph::new(&device), Graph::new(&device));
        let same = memset_op(Region::whole(buffer(&device, 256)), 7, 4, 64);
        let build = |graph: &Graph, operation: &Operation| -> Node {
            let first = graph.add(&[], same.clone()).unwrap();
            graph.add(&[&first], operation.clone()).unwrap()
        };
        let node = build(&graph, &before);
        build(&changed, &after);
        let exec = graph.instantiate().unwrap();
        exec.update(&changed).unwrap();
        assert!(exec.node(&node).unwrap().operation().same(&after), "{name}");
        let Some(Call::Update { nodes, .. }) = device.take_calls().pop() else { panic!("{name}") };
        assert_eq!(nodes, [node.key()], "{name}");
    }
}

#[test]
fn an_update_from_an_equal_graph_does_not_reach_the_device() {
    let (device, _, graph) = setup();
    memset(&graph, &[], Region::whole(buffer(&device, 256))).unwrap();
    let exec = graph.instantiate().unwrap();
    exec.update(&graph).unwrap();
    exec.update(&graph.deep_clone().unwrap().0).unwrap();
    assert_eq!(device.count(CallKind::Update), 0);
}

#[test]
fn a_failed_update_changes_nothing() {
    let device = NullDevice::new();
    for (name, before, after) in replacements(&device) {
        let (graph, changed) = (Graph::new(&device), Graph::new(&device));
        let node = graph.add(&[], before.clone()).unwrap();
        changed.add(&[], after.clone()).unwrap();
        let exec = graph.instantiate().unwrap();
        device.fail(CallKind::Update, 1, ErrorKind::Driver);
        assert_error(exec.update(&changed), ErrorKind::Driver, &[]);
        assert!(exec.node(&node).unwrap().operation().same(&before), "{name}");
        exec.update(&changed).unwrap();
        assert!(exec.node(&node).unwrap().operation().same(&after), "{name}");
    }
}

#[test]
fn an_operation_of_another_kind_or_a_wrong_one_is_refused() {
    let (device, _, graph) = setup();
    let node = memset(&graph, &[], Region::whole(buffer(&device, 256))).unwrap().named("fill").unwrap();
    let exec = graph.instantiate().unwrap();
    let wrong = [
        (Operation::Empty, "memset node cannot become a empty node"),
        (Operation::Callback(CallbackOp::closure(|| {})), "cannot become a callback node"),
        (memset_op(Region::whole(buffer(&device, 256)), 0, 4, 65), "260 bytes"),
    ];
    for (operation, mention) in wrong {
        let result = node.set_operation(operation.clone());
        assert_error(result, ErrorKind::InvalidArgument, &["fill", mention]);
        let result = exec.node(&node).unwrap().set_operation(operation);
        assert_error(result, ErrorKind::InvalidArgument, &["fill", mention]);
    }
    assert_eq!(device.count(CallKind::Update), 0);
}

#[test]
fn several_operations_are_replaced_together_or_not_at_all() {
    let (device, _, graph) = setup();
    let fill = |value| memset_op(Region::whole(buffer(&device, 256)), value, 4, 64);
    let nodes = [graph.add(&[], fill(1)).unwrap(), graph.add(&[], fill(1)).unwrap()];
    let exec = graph.instantiate().unwrap();
    let value = |node: &Node| match exec.node(node).unwrap().operation() {
        Operation::Memset(op) => op.value,
        other => panic!("{other:?}"),
    };
    let result = exec.set_operations([(&nodes[0], fill(2)), (&nodes[1], Operation::Empty)]);
    assert_error(result, ErrorKind::InvalidArgument, &[]);
    assert_eq!(nodes.each_ref().map(value), [1, 1]);
    exec.set_operations([(&nodes[0], fill(2)), (&nodes[1], fill(3))]).unwrap();
    assert_eq!(nodes.each_ref().map(value), [2, 3]);
}

#[test]
fn an_update_from_another_topology_names_the_first_node_that_differs() {
    let (device, _, graph) = setup();
    let first = empty(&graph, &[]).named("first").unwrap();
    empty(&graph, &[&first]).named("second").unwrap();
    let exec = graph.instantiate().unwrap();
    let other = |build: &dyn Fn(&Graph)| {
        let graph = Graph::new(&device);
        build(&graph);
        graph
    };
    let cases: [(&str, Graph); 4] = [
        ("second", other(&|graph| drop(empty(graph, &[])))),
        (
            "third",
            other(&|graph| {
                let first = empty(graph, &[]);
                let second = empty(graph, &[&first]);
                empty(graph, &[&second]).set_name("third").unwrap();
            }),
        ),
        (
            "first",
            other(&|graph| {
                let first = kernel(&device, graph, &[]);
                empty(graph, &[&first]);
            }),
        ),
        (
            "second",
            other(&|graph| {
                empty(graph, &[]);
                empty(graph, &[]);
            }),
        ),
    ];
    for (culprit, other) in cases {
        assert_error(exec.update(&other), ErrorKind::TopologyMismatch, &[culprit]);
    }
    assert_error(exec.update(&Graph::new(&NullDevice::new())), ErrorKind::WrongDevice, &[]);
}

#[test]
fn kernels_copies_and_fills_can_be_disabled_and_stay_so_through_updates() {
    let (device, _, graph) = setup();
    let memory = Region::whole(buffer(&device, 256));
    let nodes = [
        kernel(&device, &graph, &[]),
        memset(&graph, &[], memory.clone()).unwrap(),
        graph.add(&[], memcpy_op(memory, Region::from_bytes(vec![0; 4]), 4)).unwrap(),
    ];
    let join = empty(&graph, &[]).named("join").unwrap();
    let exec = graph.instantiate().unwrap();
    for node in &nodes {
        let node = exec.node(node).unwrap();
        assert!(node.is_enabled());
        node.set_enabled(false).unwrap();
        node.set_enabled(false).unwrap();
        assert!(!node.is_enabled());
    }
    assert_eq!(device.count(CallKind::SetEnabled), 3, "what is so already is not said again");
    exec.update(&graph.deep_clone().unwrap().0).unwrap();
    assert!(nodes.iter().all(|node| !exec.node(node).unwrap().is_enabled()));
    let result = exec.node(&join).unwrap().set_enabled(false);
    assert_error(result, ErrorKind::InvalidArgument, &["join", "kernels, copies and fills"]);
    device.fail(CallKind::SetEnabled, 1, ErrorKind::Driver);
    exec.node(&nodes[0]).unwrap().set_enabled(true).unwrap_err();
    assert!(!exec.node(&nodes[0]).unwrap().is_enabled());
}

#[test]
fn replacing_a_child_invalidates_the_handles_of_the_old_copy() {
    let (device, _, graph) = setup();
    let alive = Alive::default();
    let (old, new) = (Graph::new(&device), Graph::new(&device));
    old.add(&[], alive.callback()).unwrap();
    empty(&new, &[]).named("replacement").unwrap();
    let child = graph.add_child(&[], &old).unwrap();
    let inside = body(&child).nodes().remove(0);
    drop(old);
    child.set_child(&new).unwrap();
    assert!(!inside.is_valid());
    assert_eq!(alive.count(), 0);
    assert_eq!(body(&child).nodes()[0].label(), "replacement");
    assert_error(child.set_child(&graph), ErrorKind::WrongGraph, &["its own hierarchy"]);
    let join = empty(&graph, &[]).named("join").unwrap();
    assert_error(join.set_child(&new), ErrorKind::InvalidArgument, &["join is not a child node"]);
}

#[test]
fn the_use_of_memory_that_an_update_would_leave_unordered_is_refused() {
    let (_, _, graph) = setup();
    let (one, two) = (alloc(&graph, &[]), alloc(&graph, &[]));
    let fill = memset(&graph, &[&one], memory_of(&one)).unwrap().named("fill").unwrap();
    let exec = graph.instantiate().unwrap();
    let result = exec.node(&fill).unwrap().set_operation(memset_op(memory_of(&two), 0, 4, 64));
    assert_error(result, ErrorKind::Unordered, &["fill", "alloc#1"]);
}

/// Something that can change an executable.
type Attempt<'a> = Box<dyn Fn(&Executable) -> Result<()> + 'a>;

#[test]
fn whichever_call_of_a_change_fails_nothing_changes_and_nothing_is_left() {
    let device = NullDevice::new();
    let (kept, given) = (Alive::default(), Alive::default());
    let inner = Graph::new(&device);
    let inside = inner.add(&[], kept.callback()).unwrap();
    let graph = Graph::new(&device);
    let first = graph.add(&[], kept.callback()).unwrap();
    let child = graph.add_child(&[&first], &inner).unwrap();
    let repeat = graph.add_conditional(&[&child], spec(ConditionalForm::While, Test::Count(2))).unwrap();
    body(&repeat).add(&[], kept.callback()).unwrap();
    let fill = memset(&graph, &[&repeat], Region::whole(buffer(&device, 256))).unwrap();
    drop((inside, inner));
    let exec = graph.instantiate().unwrap();
    let embedded = body(&child).nodes().remove(0);
    let passes = |count| {
        let Operation::Conditional(op) = repeat.operation().unwrap() else { panic!() };
        Operation::Conditional(Arc::new(ConditionalOp { test: Test::Count(count), ..(*op).clone() }))
    };
    let replacement = || {
        let graph = Graph::new(&device);
        graph.add(&[], given.callback()).unwrap();
        graph
    };
    let attempts: Vec<(&str, CallKind, Attempt<'_>)> = vec![
        ("one node", CallKind::Update, Box::new(|exec| exec.node(&first)?.set_operation(given.callback()))),
        (
            "a node in a child",
            CallKind::Update,
            Box::new(|exec| exec.node(&embedded)?.set_operation(given.callback())),
        ),
        ("a loop", CallKind::Update, Box::new(|exec| exec.node(&repeat)?.set_operation(passes(5)))),
        (
            "several nodes, one of them twice",
            CallKind::Update,
            Box::new(|exec| {
                let changes = [&first, &embedded, &first].map(|node| (node, given.callback()));
                exec.set_operations(changes)
            }),
        ),
        ("a child", CallKind::Update, Box::new(|exec| exec.node(&child)?.set_child(&replacement()))),
        (
            "everything",
            CallKind::Update,
            Box::new(|exec| {
                let (other, nodes) = graph.deep_clone()?;
                nodes.get(&first).unwrap().set_operation(given.callback())?;
                nodes.get(&repeat).unwrap().set_max_passes(Some(1))?;
                exec.update(&other)
            }),
        ),
        ("disabling", CallKind::SetEnabled, Box::new(|exec| exec.node(&fill)?.set_enabled(false))),
    ];
    let operations = |exec: &Executable| {
        let definition = exec.definition();
        let nodes = [&first, &embedded, &repeat, &fill];
        nodes.map(|node| definition.node(node.key()).operation().clone())
    };
    let (before, alive) = (operations(&exec), kept.count());
    for (name, call, attempt) in &attempts {
        device.fail(*call, 1, ErrorKind::Driver);
        assert_error(attempt(&exec), ErrorKind::Driver, &[]);
        let after = operations(&exec);
        assert!(before.iter().zip(&after).all(|(before, after)| before.same(after)), "{name}");
        assert!(exec.node(&fill).unwrap().is_enabled(), "{name}");
        drop(after);
        assert_eq!((kept.count(), given.count()), (alive, 0), "{name}");
    }
    // Each of them is taken once the device takes it.
    for (name, _, attempt) in &attempts {
        attempt(&exec).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    drop((attempts, before));
    device.take_calls();
    drop(exec);
    assert_eq!(given.count(), 0);
    assert_eq!(kept.count(), 3, "the definition has its own still");
}

#[test]
fn an_operation_that_uses_the_same_allocated_memory_is_taken() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    let fill = memset(&graph, &[&memory], memory_of(&memory)).unwrap();
    free(&graph, &[&fill], &memory).unwrap();
    let exec = graph.instantiate().unwrap();
    exec.node(&fill).unwrap().set_operation(memset_op(memory_of(&memory), 5, 4, 32)).unwrap();
    let Operation::Memset(op) = exec.node(&fill).unwrap().operation() else { panic!() };
    assert_eq!((op.value, op.width), (5, 32));
}

#[test]
fn a_changed_default_of_a_condition_is_taken_over_or_the_update_changes_nothing() {
    let (device, _, _) = setup();
    let build = |default| {
        let graph = Graph::new(&device);
        let test = Test::Condition(graph.condition(default).key());
        graph.add_conditional(&[], spec(ConditionalForm::Switch, test)).unwrap();
        graph
    };
    let executable = build(Some(1)).instantiate().unwrap();
    let default = || executable.definition().conditions().next().unwrap().1.default_value();
    device.fail(CallKind::Update, 1, ErrorKind::Driver);
    assert_error(executable.update(&build(Some(2))), ErrorKind::Driver, &[]);
    assert_eq!(default(), Some(1));
    for other in [Some(2), None, Some(0)] {
        executable.update(&build(other)).unwrap();
        assert_eq!(default(), other);
    }
    assert_eq!(device.count(CallKind::Update), 4);
    executable.update(&build(Some(0))).unwrap();
    assert_eq!(device.count(CallKind::Update), 4);
    let differences = build(Some(0)).diff(&build(Some(3)));
    assert_eq!(differences.len(), 1);
    assert!(differences[0].message.contains("another default"), "{differences:?}");
}
