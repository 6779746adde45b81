//! What nodes hold, and when they let go of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom_core::ErrorKind;
use gridloom_core::backend::EventOptions;
use gridloom_core::graph::{Graph, Node};
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{CallKind, FakeKernel, FakeModule, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Event, Stream};

use crate::common::*;

#[test]
fn a_node_holds_its_closure_until_it_is_deleted() {
    let (_, _, graph) = setup();
    let alive = Alive::default();
    let node = graph.add(&[], alive.callback()).unwrap();
    assert_eq!(alive.count(), 1);
    node.delete().unwrap();
    assert_eq!(alive.count(), 0);
}

#[test]
fn dropping_the_last_handle_releases_everything() {
    let (_, _, graph) = setup();
    let alive = Alive::default();
    let node = graph.add(&[], alive.callback()).unwrap();
    let body = body(&conditional(&graph, &[], ConditionalForm::If));
    body.add(&[], alive.callback()).unwrap();
    drop(graph);
    drop(body);
    assert_eq!(alive.count(), 2);
    drop(node);
    assert_eq!(alive.count(), 0);
}

#[test]
fn every_resource_survives_the_users_drop_and_goes_with_its_node() {
    /// Something to watch, and an operation that holds it.
    struct Watched(Operation, Box<dyn Fn() -> bool>);
    let device = NullDevice::new();
    let watch_memory = |operation: &dyn Fn(Region) -> Operation| {
        let memory = buffer(&device, 256);
        let weak = Arc::downgrade(&memory);
        Watched(operation(Region::whole(memory)), Box::new(move || weak.upgrade().is_some()))
    };
    let source = || Region::from_bytes(vec![0; 8]);
    let kernel = FakeKernel::new("step").params([8]).on(&device);
    let event = |record: bool| {
        let event = device_event(&device);
        let weak = Arc::downgrade(&event);
        let operation = if record { Operation::EventRecord(event) } else { Operation::EventWait(event) };
        Watched(operation, Box::new(move || weak.upgrade().is_some()))
    };
    let cases = vec![
        ("fill", watch_memory(&|region| memset_op(region, 0, 4, 64))),
        ("copy destination", watch_memory(&|region| memcpy_op(region, source(), 8))),
        ("copy source", watch_memory(&|region| memcpy_op(Region::whole(buffer(&device, 8)), region, 8))),
        (
            "kernel argument",
            watch_memory(&|region| launch_op(&kernel, [ArgValue::Pointer(PointerValue::Region(region))])),
        ),
        ("free", {
            let memory = outliving(&device);
            let weak = Arc::downgrade(&memory);
            let free = Operation::Free(FreeTarget::Outliving(memory));
            Watched(free, Box::new(move || weak.upgrade().is_some()))
        }),
        ("kernel", {
            let kernel = plain_kernel(&device);
            let weak = Arc::downgrade(&kernel);
            Watched(launch_op(&kernel, []), Box::new(move || weak.upgrade().is_some()))
        }),
        ("module", {
            let module = FakeModule::new().kernel(FakeKernel::new("step").params([])).on(&device);
            let weak = Arc::downgrade(&module);
            Watched(
                launch_op(&module.kernel("step").unwrap(), []),
                Box::new(move || weak.upgrade().is_some()),
            )
        }),
        ("record", event(true)),
        ("wait", event(false)),
        ("raw callback", {
            let bytes: Arc<[u8]> = Arc::new([1, 2, 3]);
            let weak = Arc::downgrade(&bytes);
            // SAFETY: it is never called.
            let raw = unsafe { RawCallback::new(never_called, RawData::Bytes(bytes)) };
            Watched(Operation::Callback(CallbackOp::Raw(raw)), Box::new(move || weak.upgrade().is_some()))
        }),
    ];
    for (name, Watched(operation, is_alive)) in cases {
        let graph = Graph::new(&device);
        let node = graph.add(&[], operation).unwrap();
        assert!(is_alive(), "{name}: held by the node");
        let (copy, _) = graph.deep_clone().unwrap();
        let exec = graph.instantiate().unwrap();
        node.delete().unwrap();
        drop(graph);
        drop(node);
        assert!(is_alive(), "{name}: held by the copy and the executable");
        drop(copy);
        assert!(is_alive(), "{name}: held by the executable");
        drop(exec);
        assert!(!is_alive(), "{name}: nothing holds it any more");
    }
}

unsafe extern "C" fn never_called(_: *mut std::ffi::c_void) {}

fn device_event(device: &NullDevice) -> Arc<dyn gridloom_core::backend::Event> {
    Event::new(device, EventOptions::default()).unwrap().backend().clone()
}

#[test]
fn deleting_a_conditional_releases_what_all_its_bodies_held_at_once() {
    let (device, _, graph) = setup();
    let alive = Alive::default();
    let inner = Graph::new(&device);
    inner.add(&[], alive.callback()).unwrap();
    let switch = conditional(&graph, &[], ConditionalForm::Switch);
    for body in switch.bodies().unwrap() {
        body.add(&[], alive.callback()).unwrap();
        let nested = conditional(&body, &[], ConditionalForm::While);
        self::body(&nested).add(&[], alive.callback()).unwrap();
        body.add_child(&[], &inner).unwrap();
    }
    drop(inner);
    assert_eq!(alive.count(), 7, "the embedded copies share one closure");
    switch.delete().unwrap();
    assert_eq!(alive.count(), 0);
    assert!(graph.is_empty());
}

#[test]
fn an_executable_keeps_what_it_was_made_with() {
    let (_, stream, graph) = setup();
    let alive = Alive::default();
    let node = graph.add(&[], alive.callback()).unwrap();
    let exec = graph.instantiate().unwrap();
    node.delete().unwrap();
    drop((node, graph));
    assert_eq!(alive.count(), 1);
    exec.launch(&stream).unwrap();
    drop(exec);
    assert_eq!(alive.count(), 0);
}

#[test]
fn an_executable_does_not_keep_what_its_graph_came_to_hold_later() {
    let (_, _, graph) = setup();
    let alive = Alive::default();
    let exec = graph.instantiate().unwrap();
    graph.add(&[], alive.callback()).unwrap();
    drop(graph);
    assert_eq!(alive.count(), 0);
    drop(exec);
}

#[test]
fn a_new_node_in_the_place_of_a_deleted_one_does_not_reach_an_executable() {
    let (_, _, graph) = setup();
    let (old, new) = (Alive::default(), Alive::default());
    let node = graph.add(&[], old.callback()).unwrap();
    let exec = graph.instantiate().unwrap();
    node.delete().unwrap();
    let replacement = graph.add(&[], new.callback()).unwrap();
    assert_eq!((old.count(), new.count()), (1, 1));
    assert!(exec.definition().get_node(replacement.key()).is_none());
    drop(exec);
    assert_eq!((old.count(), new.count()), (0, 1));
}

#[test]
fn many_graphs_dropped_at_once_release_everything_once() {
    let device = NullDevice::new();
    let alive = Alive::default();
    let graphs: Vec<Graph> = (0..64)
        .map(|_| {
            let graph = Graph::new(&device);
            memset(&graph, &[], Region::whole(buffer(&device, 256))).unwrap();
            graph.add(&[], alive.callback()).unwrap();
            graph
        })
        .collect();
    let execs: Vec<_> = graphs.iter().map(|graph| graph.instantiate().unwrap()).collect();
    drop(graphs);
    assert_eq!((alive.count(), device.live_allocations()), (64, 64));
    drop(execs);
    assert_eq!((alive.count(), device.live_allocations()), (0, 0));
}

#[test]
fn device_stream_and_module_can_go_before_the_graph() {
    let graph = {
        let device = NullDevice::new();
        let graph = Graph::new(&device);
        kernel(&device, &graph, &[]);
        graph
    };
    let stream = Stream::new(graph.device()).unwrap();
    let exec = graph.instantiate().unwrap();
    drop(graph);
    exec.launch(&stream).unwrap();
}

#[test]
fn outliving_memory_lives_as_long_as_executable_or_user_hold_it() {
    let (device, stream, graph) = setup();
    let node = alloc(&graph, &[]);
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let memory = exec.outliving(&node).unwrap();
    drop(exec);
    assert_eq!(device.live_allocations(), 1);
    drop(memory);
    assert_eq!(device.live_allocations(), 0);
}

/// A callback whose drop calls back into the graph, and counts that it did.
fn reentrant(graph: &Graph, drops: &Arc<AtomicUsize>) -> Operation {
    struct Reenter(Graph, Arc<AtomicUsize>);
    impl Drop for Reenter {
        fn drop(&mut self) {
            let node = self.0.add(&[], Operation::Empty).unwrap();
            node.delete().unwrap();
            let _ = (self.0.nodes(), self.0.edges(), self.0.instantiate().map(drop), format!("{:?}", self.0));
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let held = Reenter(graph.clone(), drops.clone());
    Operation::Callback(CallbackOp::closure(move || {
        let _held = &held;
    }))
}

#[test]
fn a_drop_that_calls_back_into_the_graph_does_not_deadlock() {
    let (device, _, graph) = setup();
    let drops = Arc::new(AtomicUsize::new(0));
    let deleted = graph.add(&[], reentrant(&graph, &drops)).unwrap();
    deleted.delete().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1, "deleted");

    let outer = conditional(&graph, &[], ConditionalForm::If);
    body(&outer).add(&[], reentrant(&graph, &drops)).unwrap();
    outer.delete().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 2, "deleted inside a conditional");

    let foreign = empty(&Graph::new(&device), &[]);
    graph.add(&[&foreign], reentrant(&graph, &drops)).unwrap_err();
    graph.add(&[&deleted], reentrant(&graph, &drops)).unwrap_err();
    assert_eq!(drops.load(Ordering::Relaxed), 4, "refused");

    let body = {
        let outer = conditional(&graph, &[], ConditionalForm::If);
        let body = body(&outer);
        outer.delete().unwrap();
        body
    };
    assert_error(body.add(&[], reentrant(&graph, &drops)), ErrorKind::InvalidHandle, &[]);
    assert_eq!(drops.load(Ordering::Relaxed), 5, "refused by a deleted graph");
}

#[test]
fn graphs_can_be_built_and_dropped_by_what_a_dropped_graph_held() {
    /// Builds another graph like its own in its drop, so many levels deep.
    struct Builds(NullDevice, u32, Alive);
    impl Builds {
        fn graph(self) -> Graph {
            let graph = Graph::new(&self.0);
            let alive = self.2.clone();
            let held = (self, alive.token());
            let holding = Operation::Callback(CallbackOp::closure(move || {
                let _held = &held;
            }));
            graph.add(&[], holding).unwrap();
            (0..40).for_each(|_| drop(graph.add(&[], alive.callback()).unwrap()));
            graph
        }
    }
    impl Drop for Builds {
        fn drop(&mut self) {
            if let Some(less) = self.1.checked_sub(1) {
                let graph = Builds(self.0.clone(), less, self.2.clone()).graph();
                assert_eq!(graph.nodes().len(), 41);
            }
        }
    }
    let (device, _, _) = setup();
    let alive = Alive::default();
    let graph = Builds(device, 5, alive.clone()).graph();
    assert_eq!(alive.count(), 41);
    drop(graph);
    assert_eq!(alive.count(), 0);
}

#[test]
fn a_drop_that_calls_back_during_a_replacement_does_not_deadlock() {
    let (_, _, graph) = setup();
    let drops = Arc::new(AtomicUsize::new(0));
    let node = graph.add(&[], reentrant(&graph, &drops)).unwrap();
    node.set_operation(Operation::Callback(CallbackOp::closure(|| {}))).unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1, "replaced");
    let join = empty(&graph, &[]);
    assert_error(join.set_operation(reentrant(&graph, &drops)), ErrorKind::InvalidArgument, &[]);
    assert_eq!(drops.load(Ordering::Relaxed), 2, "refused");
    node.delete().unwrap();
    assert_error(node.set_operation(reentrant(&graph, &drops)), ErrorKind::InvalidHandle, &[]);
    assert_eq!(drops.load(Ordering::Relaxed), 3, "refused by a deleted node");
}

#[test]
fn a_drop_that_calls_back_into_an_executable_does_not_deadlock() {
    struct Reenter(std::sync::Weak<gridloom_core::Executable>);
    impl Drop for Reenter {
        fn drop(&mut self) {
            if let Some(exec) = self.0.upgrade() {
                let _ = (exec.definition(), exec.memory(), format!("{exec:?}"));
            }
        }
    }
    let (device, _, graph) = setup();
    let alive = Alive::default();
    let node = callback(&graph, &[], || {});
    let join = empty(&graph, &[]);
    let exec = Arc::new(graph.instantiate().unwrap());
    let operation = || {
        let held = (Reenter(Arc::downgrade(&exec)), alive.token());
        Operation::Callback(CallbackOp::closure(move || {
            let _held = &held;
        }))
    };
    exec.node(&join).unwrap().set_operation(operation()).unwrap_err();
    assert_eq!(alive.count(), 0, "refused");
    device.fail(CallKind::Update, 1, ErrorKind::Driver);
    let result = exec.set_operations([(&node, operation()), (&node, operation())]);
    assert_error(result, ErrorKind::Driver, &[]);
    assert_eq!(alive.count(), 0, "refused by the device");
    let Operation::Callback(before) = node.operation().unwrap() else { panic!() };
    let Operation::Callback(now) = exec.node(&node).unwrap().operation() else { panic!() };
    assert!(now.same(&before), "a failed update leaves the executable as it was");
    exec.node(&node).unwrap().set_operation(operation()).unwrap();
    assert_eq!(alive.count(), 1);
    exec.update(&graph).unwrap();
    assert_eq!(alive.count(), 0, "replaced");
}

#[test]
fn memory_of_a_refused_operation_is_released() {
    let (device, _, graph) = setup();
    let refused = memset_op(Region::whole(buffer(&device, 8)), 0, 4, 64);
    graph.add(&[], refused).unwrap_err();
    let wrong = spec(ConditionalForm::If, Test::Value(Region::whole(buffer(&device, 3))));
    graph.add_conditional(&[], wrong).unwrap_err();
    assert_eq!(device.live_allocations(), 0);
}

#[test]
fn renaming_and_linking_hold_nothing_back() {
    let (_, _, graph) = setup();
    let alive = Alive::default();
    let nodes: Vec<Node> = (0..10).map(|_| graph.add(&[], alive.callback()).unwrap()).collect();
    // A snapshot makes the next edit work on a copy; the copies must not add up.
    for pair in nodes.windows(2) {
        let _snapshot = graph.definition();
        pair[1].after([&pair[0]]).unwrap();
        pair[0].set_name("renamed").unwrap();
    }
    assert_eq!(alive.count(), 10);
    nodes.iter().for_each(|node| node.delete().unwrap());
    assert_eq!(alive.count(), 0);
}

#[test]
fn host_and_managed_memory_is_held_like_device_memory() {
    let (device, _, graph) = setup();
    for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
        let memory = device.allocate(256, kind).unwrap();
        let node = memset(&graph, &[], Region::whole(memory)).unwrap();
        assert_eq!(device.live_allocations(), 1, "{kind:?}");
        node.delete().unwrap();
        assert_eq!(device.live_allocations(), 0, "{kind:?}");
    }
}
