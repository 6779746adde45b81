//! Work put on streams one operation at a time, and events.

use gridloom_core::backend::EventOptions;
use gridloom_core::graph::Graph;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::{Call, CallKind, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Event, Stream};

use crate::common::*;

#[test]
fn a_stream_takes_kernels_fills_copies_callbacks_and_events() {
    let (device, stream, _) = setup();
    let memory = Region::whole(buffer(&device, 256));
    let event = event(&device);
    let operations = [
        launch_op(&plain_kernel(&device), []),
        memset_op(memory.clone(), 0, 4, 64),
        memcpy_op(memory, Region::from_bytes(vec![0; 16]), 16),
        Operation::Callback(CallbackOp::closure(|| {})),
        Operation::EventRecord(event.backend().clone()),
        Operation::EventWait(event.backend().clone()),
    ];
    device.take_calls();
    for operation in &operations {
        stream.enqueue(operation.clone()).unwrap();
    }
    let kinds: Vec<NodeKind> = device
        .take_calls()
        .into_iter()
        .map(|call| match call {
            Call::Enqueue { operation, .. } => operation.kind(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, operations.each_ref().map(Operation::kind));
}

#[test]
fn what_belongs_in_a_graph_is_refused_by_a_stream_and_named() {
    let (device, stream, graph) = setup();
    let memory = alloc(&graph, &[]);
    let nodes = [
        memory.clone(),
        free(&graph, &[&memory], &memory).unwrap(),
        graph.add_child(&[], &Graph::new(&device)).unwrap(),
        conditional(&graph, &[], ConditionalForm::If),
        conditional(&graph, &[], ConditionalForm::IfElse),
        conditional(&graph, &[], ConditionalForm::While),
        conditional(&graph, &[], ConditionalForm::Switch),
    ];
    for node in nodes {
        let operation = node.operation().unwrap();
        let name = operation.kind().name();
        assert_error(stream.enqueue(operation), ErrorKind::InvalidArgument, &[name, "belongs in a graph"]);
    }
    assert_eq!(device.count(CallKind::Enqueue), 0);
}

#[test]
fn an_empty_operation_on_a_stream_is_nothing_to_do() {
    let (device, stream, _) = setup();
    stream.enqueue(Operation::Empty).unwrap();
    assert_eq!(device.count(CallKind::Enqueue), 0);
}

#[test]
fn objects_of_another_device_are_refused_by_a_stream() {
    let (_, stream, _) = setup();
    let other = NullDevice::new();
    let operation = Operation::EventWait(event(&other).backend().clone());
    assert_error(stream.enqueue(operation), ErrorKind::WrongDevice, &["the event"]);
}

#[test]
fn the_failure_of_a_stream_comes_out_of_synchronize_once() {
    let (device, stream, _) = setup();
    device.fail(CallKind::Synchronize, 1, ErrorKind::KernelFault);
    assert_error(stream.synchronize(), ErrorKind::KernelFault, &[]);
    stream.synchronize().unwrap();
    assert!(stream.is_idle().unwrap());
}

#[test]
fn a_stream_knows_its_device() {
    let (device, stream, graph) = setup();
    assert_eq!(stream.device().id(), graph.device().id());
    assert_eq!(stream.backend().device(), graph.device().id());
    assert_ne!(Stream::new(&NullDevice::new()).unwrap().device().id(), stream.device().id());
    drop(device);
    stream.synchronize().unwrap();
}

#[test]
fn an_event_has_the_options_it_was_made_with() {
    let device = NullDevice::new();
    let default = EventOptions::default();
    assert!(default.timing && !default.blocking);
    for timing in [true, false] {
        for blocking in [true, false] {
            let options = EventOptions::new().timing(timing).blocking(blocking);
            let event = Event::new(&device, options).unwrap();
            assert_eq!(event.options(), options);
            assert!(event.is_reached().unwrap());
            event.synchronize().unwrap();
        }
    }
}

#[test]
fn time_is_measured_between_timed_events_of_one_device() {
    let device = NullDevice::new();
    let timed = |device| Event::new(device, EventOptions::default()).unwrap();
    let untimed = Event::new(&device, EventOptions::new().timing(false)).unwrap();
    let event = timed(&device);
    event.elapsed_since(&timed(&device)).unwrap();
    assert_error(event.elapsed_since(&untimed), ErrorKind::InvalidArgument, &["make both with timing"]);
    assert_error(untimed.elapsed_since(&event), ErrorKind::InvalidArgument, &["make both with timing"]);
    let foreign = timed(&NullDevice::new());
    assert_error(event.elapsed_since(&foreign), ErrorKind::WrongDevice, &["different devices"]);
}

#[test]
fn memory_kinds_say_who_can_reach_them() {
    for (kind, name, host) in [
        (MemoryKind::Device, "device", false),
        (MemoryKind::Host, "host", true),
        (MemoryKind::Managed, "managed", true),
    ] {
        assert_eq!((kind.name(), kind.host_accessible()), (name, host));
    }
}
