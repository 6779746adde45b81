//! Changing what an executable does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::*;
use gridloom_core::backend::EventOptions;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{Operation, Test};
use gridloom_core::{ErrorKind, Event, Graph};

/// Adds `by` when it runs.
fn adding(to: &Arc<AtomicU32>, by: u32) -> Operation {
    let to = to.clone();
    callback(move || _ = to.fetch_add(by, Ordering::SeqCst))
}

#[test]
fn every_kind_of_node_takes_new_parameters() {
    let device = device(2);
    let (module, stream) = (module(&device), stream(&device));
    let [first, second] = [number(&device, 0), number(&device, 0)];
    let count = Arc::new(AtomicU32::new(0));
    let add = |to: &Arc<dyn gridloom_core::backend::Allocation>, by| {
        let args = [pointer(Region::whole(to.clone())), value(1), value(by)];
        launch(&module, "add", LaunchConfig::one(), args)
    };
    let graph = Graph::new(&device);
    let filled = graph.add(&[], fill(Region::whole(first.clone()), 10, 4)).unwrap();
    let added = graph.add(&[&filled], add(&first, 1)).unwrap();
    let copied =
        graph.add(&[&added], copy(Region::whole(second.clone()), Region::whole(first.clone()))).unwrap();
    let called = graph.add(&[&copied], adding(&count, 1)).unwrap();
    let looped = graph.add_conditional(&[&called], repeat(2)).unwrap();
    let inside = looped.bodies().unwrap()[0].add(&[], add(&second, 100)).unwrap();
    let executable = graph.instantiate().unwrap();
    let run = || {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        (read_u32(&device, &first)[0], read_u32(&device, &second)[0], count.swap(0, Ordering::SeqCst))
    };
    assert_eq!(run(), (11, 211, 1));
    let set = |node, operation| executable.node(node).unwrap().set_operation(operation).unwrap();
    set(&filled, fill(Region::whole(first.clone()), 20, 4));
    assert_eq!(run(), (21, 221, 1));
    set(&added, add(&first, 2));
    assert_eq!(run(), (22, 222, 1));
    set(&called, adding(&count, 5));
    assert_eq!(run(), (22, 222, 5));
    set(&inside, add(&second, 1000));
    assert_eq!(run(), (22, 2022, 5));
    let Operation::Conditional(loop_op) = looped.operation().unwrap() else { panic!("a loop") };
    let three = gridloom_core::op::ConditionalOp { test: Test::Count(3), ..(*loop_op).clone() };
    set(&looped, Operation::Conditional(Arc::new(three)));
    assert_eq!(run(), (22, 3022, 5));
    assert_eq!(executable.passes(&looped).unwrap(), 3);
    set(&copied, copy(Region::whole(second.clone()), Region::from_bytes(7u32.to_ne_bytes().as_slice())));
    assert_eq!(run(), (22, 3007, 5));
}

#[test]
fn launches_in_flight_keep_what_they_were_enqueued_with() {
    let device = device(2);
    let stream = stream(&device);
    let (open, opened) = channel::<()>();
    let count = Arc::new(AtomicU32::new(0));
    let graph = Graph::new(&device);
    let gate = graph.add(&[], callback(move || _ = opened.recv())).unwrap();
    let node = graph.add(&[&gate], adding(&count, 1)).unwrap();
    let executable = graph.instantiate().unwrap();
    // Three launches with three versions, none of which can have run.
    for by in [1, 10, 100] {
        executable.node(&node).unwrap().set_operation(adding(&count, by)).unwrap();
        executable.launch(&stream).unwrap();
    }
    executable.node(&node).unwrap().set_operation(adding(&count, 1000)).unwrap();
    let mut sums = Vec::new();
    for expected in [1, 11, 111] {
        open.send(()).unwrap();
        eventually(|| count.load(Ordering::SeqCst) == expected);
        sums.push(count.load(Ordering::SeqCst));
    }
    assert_eq!(sums, [1, 11, 111]);
    stream.synchronize().unwrap();
    open.send(()).unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1111);
}

#[test]
fn what_a_change_replaced_is_let_go_when_no_launch_needs_it() {
    struct Guard(std::sync::mpsc::Sender<u32>, u32);
    impl Drop for Guard {
        fn drop(&mut self) {
            _ = self.0.send(self.1);
        }
    }
    let device = device(1);
    let stream = stream(&device);
    let (dropped, drops) = channel();
    let guarded = |number| {
        let guard = Guard(dropped.clone(), number);
        callback(move || _ = &guard)
    };
    let (open, opened) = channel::<()>();
    let graph = Graph::new(&device);
    let gate = graph.add(&[], callback(move || _ = opened.recv())).unwrap();
    let node = graph.add(&[&gate], guarded(0)).unwrap();
    let executable = graph.instantiate().unwrap();
    node.delete().unwrap();
    let set = |number| {
        executable.set_operations([(&node, guarded(number))]).unwrap();
    };
    set(1);
    assert_eq!(drops.try_recv(), Ok(0), "at once, with nothing in flight");
    executable.launch(&stream).unwrap();
    set(2);
    assert!(drops.try_recv().is_err(), "the launch in flight has it");
    open.send(()).unwrap();
    assert_eq!(drops.recv_timeout(Duration::from_secs(10)), Ok(1), "without a further launch");
    stream.synchronize().unwrap();
    drop(executable);
    assert_eq!(drops.try_recv(), Ok(2));
}

#[test]
fn a_disabled_node_does_nothing_keeps_its_place_and_its_changes() {
    let device = device(2);
    let (module, stream) = (module(&device), stream(&device));
    let number = number(&device, 0);
    let add = |by| {
        let args = [pointer(Region::whole(number.clone())), value(1), value(by)];
        launch(&module, "add", LaunchConfig::one(), args)
    };
    let graph = Graph::new(&device);
    let first = graph.add(&[], add(1)).unwrap();
    let second = graph.add(&[&first], add(10)).unwrap();
    graph.add(&[&second], add(100)).unwrap();
    let executable = graph.instantiate().unwrap();
    let run = || {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        read_u32(&device, &number)[0]
    };
    let node = executable.node(&second).unwrap();
    assert_eq!(run(), 111);
    node.set_enabled(false).unwrap();
    assert_eq!(run(), 212);
    node.set_operation(add(1000)).unwrap();
    assert_eq!(run(), 313);
    node.set_enabled(true).unwrap();
    assert_eq!(run(), 1414);
}

#[test]
fn a_refused_change_changes_nothing() {
    let device = device(1);
    let (module, stream) = (module(&device), stream(&device));
    let number = number(&device, 0);
    let graph = Graph::new(&device);
    let first = graph.add(&[], increment(&module, &number)).unwrap();
    let second = graph.add(&[&first], increment(&module, &number)).unwrap().named("second").unwrap();
    let executable = graph.instantiate().unwrap();
    let by = |by, config| {
        launch(&module, "add", config, [pointer(Region::whole(number.clone())), value(1), value(by)])
    };
    let clustered = by(100, LaunchConfig::new(2, 1).cluster(2));
    let error = executable
        .set_operations([(&first, by(100, LaunchConfig::one())), (&second, clustered)])
        .unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::NotSupported, Some("second")));
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read_u32(&device, &number), [2]);
}

#[test]
fn events_can_be_replaced_for_later_launches() {
    let device = device(1);
    let stream = stream(&device);
    let [old, new] = [(); 2].map(|()| Event::new(&device, EventOptions::default()).unwrap());
    let record = |event: &Event| Operation::EventRecord(event.backend().clone());
    let graph = Graph::new(&device);
    let (open, opened) = channel::<()>();
    let gate = graph.add(&[], callback(move || _ = opened.recv())).unwrap();
    let node = graph.add(&[&gate], record(&old)).unwrap();
    let executable = graph.instantiate().unwrap();
    executable.launch(&stream).unwrap();
    executable.node(&node).unwrap().set_operation(record(&new)).unwrap();
    assert!(!old.is_reached().unwrap() && new.is_reached().unwrap());
    executable.launch(&stream).unwrap();
    assert!(!new.is_reached().unwrap());
    open.send(()).unwrap();
    old.synchronize().unwrap();
    open.send(()).unwrap();
    new.synchronize().unwrap();
    stream.synchronize().unwrap();
    assert!(new.elapsed_since(&old).unwrap() > Duration::ZERO);
}

#[test]
fn a_whole_update_takes_over_parameters_and_failures_still_name_their_nodes() {
    let device = device(1);
    let (module, stream) = (module(&device), stream(&device));
    let make = |thread, passes| {
        let graph = Graph::new(&device);
        let spec = ConditionalSpec { max_passes: Some(passes), ..repeat(10) };
        let looped = graph.add_conditional(&[], spec).unwrap();
        let stop = launch(&module, "stop", LaunchConfig::one(), [value(0), value(thread)]);
        looped.bodies().unwrap()[0].add(&[], stop).unwrap().named("stop here").unwrap();
        (graph, looped)
    };
    let (graph, looped) = make(1, 4);
    let executable = graph.instantiate().unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(executable.passes(&looped).unwrap(), 4);
    executable.update(&make(0, 4).0).unwrap();
    executable.launch(&stream).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::KernelFault, Some("stop here")));
    executable.update(&make(7, 4).0).unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
}
