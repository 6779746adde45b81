//! Instantiating and launching.

use gridloom_core::ErrorKind;
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::Graph;
use gridloom_core::null::{Call, CallKind, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Executable, Stream};

use crate::common::*;

fn auto_free() -> InstantiateOptions {
    InstantiateOptions { auto_free_on_launch: true, ..InstantiateOptions::default() }
}

#[test]
fn an_empty_graph_can_be_instantiated_and_launched() {
    let (device, stream, graph) = setup();
    graph.instantiate().unwrap().launch(&stream).unwrap();
    assert_eq!(device.count(CallKind::Launch), 1);
}

#[test]
fn one_definition_makes_independent_executables() {
    let (device, stream, graph) = setup();
    empty(&graph, &[]);
    let first = graph.instantiate().unwrap();
    empty(&graph, &[]);
    let second = graph.instantiate().unwrap();
    let nodes = |exec: &Executable| exec.definition().node_count(exec.definition().root());
    assert_eq!((nodes(&first), nodes(&second)), (1, 2));
    drop(first);
    second.launch(&stream).unwrap();
    assert_eq!(device.count(CallKind::Instantiate), 2);
}

#[test]
fn changes_to_the_graph_do_not_reach_an_executable() {
    let (_, _, graph) = setup();
    let a = empty(&graph, &[]);
    let b = empty(&graph, &[&a]);
    let exec = graph.instantiate().unwrap();
    let before = exec.definition().to_json(graph.key());
    graph.remove_edge(&a, &b).unwrap();
    b.set_name("renamed").unwrap();
    conditional(&graph, &[], ConditionalForm::While);
    a.delete().unwrap();
    assert_eq!(exec.definition().to_json(graph.key()), before);
    assert_ne!(graph.to_json(), before);
}

#[test]
fn options_reach_the_device() {
    let (device, stream, graph) = setup();
    let options = InstantiateOptions {
        auto_free_on_launch: true,
        upload: Some(stream),
        node_priority: true,
        conditional_mode: ConditionalMode::Hosted,
        count_passes: true,
        ..InstantiateOptions::default()
    };
    graph.instantiate_with(&options).unwrap();
    let calls = device.take_calls();
    let Some(Call::Instantiate { options, .. }) =
        calls.iter().find(|call| call.kind() == CallKind::Instantiate)
    else {
        panic!("{calls:?}");
    };
    assert!(options.auto_free_on_launch && options.node_priority && options.count_passes);
    assert_eq!(options.conditional_mode, ConditionalMode::Hosted);
    assert_eq!(calls.last().unwrap().kind(), CallKind::Upload);
}

#[test]
fn default_options_are_modest() {
    let options = InstantiateOptions::default();
    assert!(!options.auto_free_on_launch && !options.node_priority && options.upload.is_none());
    assert_eq!(options.conditional_mode, ConditionalMode::Auto);
    assert!(format!("{options:?}").contains("upload: false"));
}

#[test]
fn a_launch_names_executable_and_stream_to_the_device() {
    let (device, one, graph) = setup();
    let two = Stream::new(&device).unwrap();
    let exec = graph.instantiate().unwrap();
    device.take_calls();
    exec.upload(&two).unwrap();
    exec.launch(&one).unwrap();
    exec.launch(&two).unwrap();
    let [
        Call::Upload { stream: a, .. },
        Call::Launch { stream: b, executable: first },
        Call::Launch { stream: c, executable: second },
    ] = device.take_calls()[..]
    else {
        panic!();
    };
    assert!(a == c && b != c && first == second);
}

#[test]
fn a_failure_of_the_device_comes_through_and_leaves_all_usable() {
    let (device, stream, graph) = setup();
    device.fail(CallKind::Instantiate, 1, ErrorKind::OutOfMemory);
    assert_error(graph.instantiate(), ErrorKind::OutOfMemory, &[]);
    let exec = graph.instantiate().unwrap();
    device.fail(CallKind::Launch, 1, ErrorKind::Driver);
    assert_error(exec.launch(&stream), ErrorKind::Driver, &[]);
    exec.launch(&stream).unwrap();
    device.fail(CallKind::Upload, 1, ErrorKind::DeviceLost);
    assert_error(exec.upload(&stream), ErrorKind::DeviceLost, &[]);
    let options = InstantiateOptions { upload: Some(stream), ..InstantiateOptions::default() };
    device.fail(CallKind::Upload, 1, ErrorKind::Driver);
    assert_error(graph.instantiate_with(&options), ErrorKind::Driver, &[]);
}

#[test]
fn a_graph_that_fails_its_checks_does_not_reach_the_device() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    memset(&graph, &[], memory_of(&memory)).unwrap();
    graph.instantiate().unwrap_err();
    assert_eq!(device.count(CallKind::Instantiate), 0);
}

#[test]
fn only_a_root_can_be_instantiated() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::While).named("outer").unwrap();
    assert_error(body(&outer).instantiate(), ErrorKind::InvalidState, &["outer", "root", "deep_clone"]);
    body(&outer).deep_clone().unwrap().0.instantiate().unwrap();
}

#[test]
fn streams_of_another_device_are_refused() {
    let (_, _, graph) = setup();
    let foreign = Stream::new(&NullDevice::new()).unwrap();
    let exec = graph.instantiate().unwrap();
    assert_error(exec.launch(&foreign), ErrorKind::WrongDevice, &["null device"]);
    assert_error(exec.upload(&foreign), ErrorKind::WrongDevice, &[]);
    let options = InstantiateOptions { upload: Some(foreign), ..InstantiateOptions::default() };
    assert_error(graph.instantiate_with(&options), ErrorKind::WrongDevice, &["upload"]);
}

#[test]
fn outstanding_memory_forbids_the_next_launch_and_is_named() {
    let (device, stream, graph) = setup();
    alloc(&graph, &[]).named("rod").unwrap();
    alloc(&graph, &[]).named("counter").unwrap();
    let freed = alloc(&graph, &[]).named("scratch").unwrap();
    free(&graph, &[&freed], &freed).unwrap();
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    let error = assert_error(
        exec.launch(&stream),
        ErrorKind::InvalidState,
        &["rod", "counter", "still allocated", "auto_free_on_launch"],
    );
    assert!(!error.to_string().contains("scratch"));
    assert_eq!(device.count(CallKind::Launch), 1);
}

#[test]
fn freeing_all_outstanding_memory_allows_the_next_launch() {
    let (device, stream, graph) = setup();
    let nodes = [alloc(&graph, &[]).named("rod").unwrap(), alloc(&graph, &[]).named("counter").unwrap()];
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    free_outliving(&device, &exec.outliving(&nodes[0]).unwrap());
    let error = exec.launch(&stream).unwrap_err().to_string();
    assert!(error.contains("counter") && !error.contains("rod"), "{error}");
    free_outliving(&device, &exec.outliving(&nodes[1]).unwrap());
    exec.launch(&stream).unwrap();
}

#[test]
fn auto_free_allows_launch_after_launch() {
    let (device, stream, graph) = setup();
    let node = alloc(&graph, &[]);
    let exec = graph.instantiate_with(&auto_free()).unwrap();
    exec.launch(&stream).unwrap();
    let first = exec.outliving(&node).unwrap();
    exec.launch(&stream).unwrap();
    let second = exec.outliving(&node).unwrap();
    let is_freed = |memory: &dyn gridloom_core::backend::Allocation| memory.outliving().unwrap().is_freed();
    assert!(is_freed(&*first) && !is_freed(&*second));
    drop(first);
    assert_eq!(device.live_allocations(), 1);
}

#[test]
fn memory_freed_by_auto_free_cannot_be_freed_again() {
    let (device, stream, graph) = setup();
    let node = alloc(&graph, &[]);
    let exec = graph.instantiate_with(&auto_free()).unwrap();
    exec.launch(&stream).unwrap();
    let other = Graph::new(&device);
    let memory = exec.outliving(&node).unwrap();
    other.add(&[], Operation::Free(FreeTarget::Outliving(memory))).unwrap();
    let freeing = other.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    assert_error(freeing.launch(&stream), ErrorKind::InvalidState, &["freed already"]);
}

#[test]
fn executables_of_one_graph_have_outstanding_memory_of_their_own() {
    let (_, stream, graph) = setup();
    let node = alloc(&graph, &[]);
    let (one, two) = (graph.instantiate().unwrap(), graph.instantiate().unwrap());
    one.launch(&stream).unwrap();
    two.launch(&stream).unwrap();
    assert_ne!(one.outliving(&node).unwrap().address(), two.outliving(&node).unwrap().address());
}

#[test]
fn memory_that_outlives_a_launch_can_be_asked_for_between_launch_and_free() {
    let (device, stream, graph) = setup();
    let kept = alloc(&graph, &[]).named("kept").unwrap();
    let freed = alloc(&graph, &[]).named("freed").unwrap();
    free(&graph, &[&freed], &freed).unwrap();
    let join = empty(&graph, &[]).named("join").unwrap();
    let exec = graph.instantiate().unwrap();
    let later = alloc(&graph, &[]).named("later").unwrap();
    let foreign = alloc(&Graph::new(&device), &[]);
    assert_error(exec.outliving(&kept), ErrorKind::InvalidState, &["kept", "not launched"]);
    exec.launch(&stream).unwrap();
    assert_eq!(exec.outliving(&kept).unwrap().bytes(), 256);
    assert_eq!(exec.memory().allocations, 256);
    assert_error(exec.outliving(&freed), ErrorKind::InvalidArgument, &["freed is freed inside the graph"]);
    assert_error(exec.outliving(&join), ErrorKind::InvalidArgument, &["join"]);
    assert_error(exec.outliving(&later), ErrorKind::InvalidHandle, &["later", "added after"]);
    assert_error(exec.outliving(&foreign), ErrorKind::WrongGraph, &["alloc#0", "another graph"]);
}

#[test]
fn memory_allocated_in_an_embedded_graph_can_outlive_the_launch() {
    let (device, stream, graph) = setup();
    let inner = Graph::new(&device);
    alloc(&inner, &[]).named("kept").unwrap();
    let child = graph.add_child(&[], &inner).unwrap();
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    exec.outliving(&body(&child).nodes()[0]).unwrap();
    assert_error(exec.launch(&stream), ErrorKind::InvalidState, &["kept"]);
}

#[test]
fn an_executable_knows_the_nodes_it_was_made_with_even_when_they_are_deleted() {
    let (_, stream, graph) = setup();
    let node = alloc(&graph, &[]);
    let exec = graph.instantiate().unwrap();
    node.delete().unwrap();
    exec.launch(&stream).unwrap();
    exec.outliving(&node).unwrap();
}

#[test]
fn passes_are_reported_for_conditionals_only() {
    let (_, _, graph) = setup();
    let repeat = conditional(&graph, &[], ConditionalForm::While);
    let join = empty(&graph, &[]).named("join").unwrap();
    let exec = graph.instantiate().unwrap();
    assert_eq!(exec.passes(&repeat).unwrap(), 0);
    assert_error(exec.passes(&join), ErrorKind::InvalidArgument, &["join is not a conditional"]);
}

#[test]
fn the_report_names_every_conditional_outermost_first() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::While).named("outer").unwrap();
    let inner = conditional(&body(&outer), &[], ConditionalForm::If).named("inner").unwrap();
    let second = conditional(&graph, &[], ConditionalForm::Switch).named("second").unwrap();
    let report = graph.instantiate().unwrap().report();
    let names: Vec<&str> = report.conditionals.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["outer", "second", "inner"]);
    let keys: Vec<_> = report.conditionals.iter().map(|entry| entry.node).collect();
    assert_eq!(keys, [outer.key(), second.key(), inner.key()]);
}

#[test]
fn a_healthy_executable_has_no_error_to_take() {
    let (_, stream, graph) = setup();
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    assert!(exec.take_error().is_none());
}
