//! Memory that graphs allocate and free.

use std::sync::Arc;

use gridloom_core::backend::AsDevice;
use gridloom_core::graph::Graph;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::null::FakeKernel;
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Executable, Result};

use crate::common::*;

fn instantiate(graph: &Graph) -> Result<()> {
    graph.instantiate().map(drop)
}

#[test]
fn a_length_of_zero_is_refused() {
    let (_, _, graph) = setup();
    for (len, size) in [(0, 4), (4, 0), (0, 0)] {
        let result = graph.add(&[], alloc_op(len, size, MemoryKind::Device));
        assert_error(result, ErrorKind::InvalidArgument, &["0 bytes", "at least 1"]);
    }
    assert!(graph.is_empty());
}

#[test]
fn more_bytes_than_there_are_addresses_are_refused() {
    let (_, _, graph) = setup();
    for (len, size) in [(u64::MAX, 2), (u64::MAX, 1), (1 << 62, 4)] {
        let result = graph.add(&[], alloc_op(len, size, MemoryKind::Device));
        assert_error(result, ErrorKind::InvalidArgument, &["do not fit in the address space"]);
    }
}

#[test]
fn chains_of_alloc_use_and_free_are_valid() {
    let (_, stream, graph) = setup();
    let mut last = empty(&graph, &[]);
    for _ in 0..10 {
        let memory = alloc(&graph, &[&last]);
        let filled = memset(&graph, &[&memory], memory_of(&memory)).unwrap();
        last = free(&graph, &[&filled], &memory).unwrap();
    }
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    exec.launch(&stream).unwrap();
}

#[test]
fn an_alloc_that_nothing_uses_or_frees_is_valid() {
    let (_, _, graph) = setup();
    alloc(&graph, &[]);
    instantiate(&graph).unwrap();
}

#[test]
fn freeing_what_is_not_an_alloc_node_is_refused_and_named() {
    let (_, _, graph) = setup();
    let node = empty(&graph, &[]).named("join").unwrap();
    assert_error(free(&graph, &[&node], &node), ErrorKind::InvalidArgument, &["join is not an alloc node"]);
}

#[test]
fn freeing_a_deleted_alloc_is_refused() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    memory.delete().unwrap();
    assert_error(free(&graph, &[], &memory), ErrorKind::InvalidHandle, &["deleted"]);
    assert_error(memset(&graph, &[], memory_of(&memory)), ErrorKind::InvalidHandle, &["deleted"]);
}

#[test]
fn freeing_twice_is_an_error_that_names_both() {
    // Whether the two are ordered or not, both run in every launch.
    for ordered in [true, false] {
        let (_, _, graph) = setup();
        let memory = alloc(&graph, &[]).named("scratch").unwrap();
        let first = free(&graph, &[&memory], &memory).unwrap().named("first").unwrap();
        let before = if ordered { &first } else { &memory };
        let second = free(&graph, &[before], &memory).unwrap().named("second").unwrap();
        assert_error(instantiate(&graph), ErrorKind::InvalidState, &["second", "scratch", "first"]);
        second.delete().unwrap();
        instantiate(&graph).unwrap();
    }
}

#[test]
fn a_use_that_is_not_ordered_after_its_alloc_is_an_error_that_names_both() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let region = memory_of(&memory);
    let other = buffer(&device, 256);
    let uses: Vec<(&str, Box<dyn Fn(&Graph) -> Result<gridloom_core::Node>>)> = vec![
        ("kernel", Box::new(|graph| kernel_on(&device, graph, &[], [region.clone()]))),
        ("memset", Box::new(|graph| memset(graph, &[], region.clone()))),
        (
            "copy to",
            Box::new(|graph| graph.add(&[], memcpy_op(region.clone(), Region::whole(other.clone()), 8))),
        ),
        (
            "copy from",
            Box::new(|graph| graph.add(&[], memcpy_op(Region::whole(other.clone()), region.clone(), 8))),
        ),
        (
            "test",
            Box::new(|graph| {
                graph.add_conditional(&[], spec(ConditionalForm::If, Test::Value(region.clone())))
            }),
        ),
        ("free", Box::new(|graph| free(graph, &[], &memory))),
    ];
    for (name, add) in uses {
        let user = add(&graph).unwrap().named("user").unwrap();
        let error =
            assert_error(instantiate(&graph), ErrorKind::Unordered, &["user", "scratch", "add an edge"]);
        assert_eq!(error.node(), Some("user"), "{name}");
        user.after([&memory]).unwrap();
        instantiate(&graph).unwrap_or_else(|error| panic!("{name}: {error}"));
        user.delete().unwrap();
    }
}

#[test]
fn a_use_ordered_through_other_nodes_is_fine() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    let between = empty(&graph, &[&memory]);
    let filled = memset(&graph, &[&between], memory_of(&memory)).unwrap();
    let between = empty(&graph, &[&filled]);
    free(&graph, &[&between], &memory).unwrap();
    instantiate(&graph).unwrap();
}

#[test]
fn a_free_that_is_not_ordered_after_a_use_is_an_error_that_names_the_use() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let filled = memset(&graph, &[&memory], memory_of(&memory)).unwrap().named("fill").unwrap();
    let freed = free(&graph, &[&memory], &memory).unwrap().named("release").unwrap();
    let error = assert_error(instantiate(&graph), ErrorKind::Unordered, &["scratch", "fill", "add an edge"]);
    assert_eq!(error.node(), Some("release"));
    freed.after([&filled]).unwrap();
    instantiate(&graph).unwrap();
}

#[test]
fn a_use_after_the_free_is_named_as_such_and_no_edge_that_would_close_a_cycle_is_asked_for() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let freed = free(&graph, &[&memory], &memory).unwrap().named("end").unwrap();
    let between = empty(&graph, &[&freed]);
    memset(&graph, &[&between], memory_of(&memory)).unwrap().named("late").unwrap();
    let error = instantiate(&graph).unwrap_err();
    assert!(!error.to_string().contains("add an edge"), "{error}");
    let says = ["late", "uses the memory of scratch after end has freed it", "after its last use"];
    assert_error(instantiate(&graph), ErrorKind::Unordered, &says);
}

#[test]
fn a_use_before_the_allocation_is_named_as_such() {
    let (_, _, graph) = setup();
    let early = empty(&graph, &[]);
    let memory = alloc(&graph, &[&early]).named("scratch").unwrap();
    let use_early = memset(&graph, &[], memory_of(&memory)).unwrap().named("early").unwrap();
    early.after([&use_early]).unwrap();
    let error = instantiate(&graph).unwrap_err();
    assert!(!error.to_string().contains("add an edge"), "{error}");
    assert_error(instantiate(&graph), ErrorKind::Unordered, &["early", "scratch", "only later"]);
}

#[test]
fn a_use_in_a_body_counts_as_the_conditionals_use() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    let repeat = conditional(&graph, &[], ConditionalForm::While).named("repeat").unwrap();
    let nested = conditional(&body(&repeat), &[], ConditionalForm::If);
    memset(&body(&nested), &[], memory_of(&memory)).unwrap();
    assert_error(instantiate(&graph), ErrorKind::Unordered, &["repeat", "scratch"]);
    repeat.after([&memory]).unwrap();
    instantiate(&graph).unwrap();
    let freed = free(&graph, &[&memory], &memory).unwrap();
    assert_error(instantiate(&graph), ErrorKind::Unordered, &["free#2 of scratch", "repeat"]);
    freed.after([&repeat]).unwrap();
    instantiate(&graph).unwrap();
}

#[test]
fn memory_allocated_in_a_body_must_be_freed_there() {
    for form in
        [ConditionalForm::If, ConditionalForm::IfElse, ConditionalForm::While, ConditionalForm::Switch]
    {
        let (_, _, graph) = setup();
        let outer = conditional(&graph, &[], form).named("outer").unwrap();
        let body = body(&outer);
        let memory = alloc(&body, &[]).named("scratch").unwrap();
        assert_error(
            instantiate(&graph),
            ErrorKind::InvalidState,
            &["scratch", "outer", "free it in the same body"],
        );
        free(&body, &[&memory], &memory).unwrap();
        instantiate(&graph).unwrap();
    }
}

#[test]
fn memory_allocated_in_a_child_inside_a_body_must_be_freed_too() {
    let (device, _, graph) = setup();
    let inner = Graph::new(&device);
    alloc(&inner, &[]).named("scratch").unwrap();
    let outer = conditional(&graph, &[], ConditionalForm::While).named("outer").unwrap();
    body(&outer).add_child(&[], &inner).unwrap();
    assert_error(instantiate(&graph), ErrorKind::InvalidState, &["scratch", "outer"]);
}

#[test]
fn memory_is_not_visible_outside_of_the_graph_that_allocates_it() {
    let (_, _, graph) = setup();
    let switch = conditional(&graph, &[], ConditionalForm::Switch);
    let [one, two, _] = switch.bodies().unwrap().try_into().unwrap();
    let inside = alloc(&one, &[]).named("inside").unwrap();
    for elsewhere in [&graph, &two] {
        assert_error(memset(elsewhere, &[], memory_of(&inside)), ErrorKind::WrongGraph, &["inside"]);
        assert_error(free(elsewhere, &[], &inside), ErrorKind::WrongGraph, &["inside"]);
    }
}

#[test]
fn memory_of_another_graph_is_refused() {
    let (device, _, graph) = setup();
    let foreign = alloc(&Graph::new(&device), &[]);
    // One of its own at the same place, so that the two could be mistaken for each other.
    let own = alloc(&graph, &[]);
    assert_eq!(own.key().index(), foreign.key().index());
    assert_error(memset(&graph, &[&own], memory_of(&foreign)), ErrorKind::WrongGraph, &["another graph"]);
    assert_error(free(&graph, &[&own], &foreign), ErrorKind::WrongGraph, &["another graph"]);
}

#[test]
fn memory_is_freed_in_the_graph_that_allocates_it() {
    let (_, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("outside").unwrap();
    let repeat = conditional(&graph, &[&memory], ConditionalForm::While);
    let result = free(&body(&repeat), &[], &memory);
    assert_error(result, ErrorKind::WrongGraph, &["outside", "free it in the graph that allocates it"]);
}

#[test]
fn deleting_an_alloc_node_makes_its_users_errors_until_they_go_too() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    let filled = memset(&graph, &[&memory], memory_of(&memory)).unwrap().named("fill").unwrap();
    let freed = free(&graph, &[&filled], &memory).unwrap().named("release").unwrap();
    memory.delete().unwrap();
    // Another node may take the place of the deleted one; it is not mistaken for it.
    alloc(&graph, &[]);
    let error = assert_error(instantiate(&graph), ErrorKind::InvalidHandle, &["deleted"]);
    assert!(error.node().is_some_and(|name| name == "fill" || name == "release"));
    assert_error(graph.deep_clone(), ErrorKind::InvalidHandle, &["deleted"]);
    assert_error(Graph::new(&device).add_child(&[], &graph), ErrorKind::InvalidHandle, &["deleted"]);
    freed.delete().unwrap();
    assert_error(instantiate(&graph), ErrorKind::InvalidHandle, &["fill"]);
    filled.delete().unwrap();
    instantiate(&graph).unwrap();
}

#[test]
fn memory_of_a_deleted_alloc_node_is_refused_also_after_a_launch_that_is_given_it() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    let kernel = FakeKernel::new("step").params([8]).on(&device);
    let region = memory_of(&memory);
    let launch = || launch_op(&kernel, vec![ArgValue::Pointer(PointerValue::Region(region.clone()))]);
    let user = graph.add(&[&memory], launch()).unwrap();
    let next = user.add(launch()).unwrap();
    memory.delete().unwrap();
    assert_error(next.add(launch()), ErrorKind::InvalidHandle, &["argument 0", "deleted"]);
}

#[test]
fn ranges_of_an_alloc_node_are_checked_against_its_length() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]).named("scratch").unwrap();
    for (offset, bytes) in [(0, 257), (256, 1), (u64::MAX, 2), (1, u64::MAX)] {
        let region = Region { base: Base::AllocNode(memory.key()), offset, bytes };
        let result = kernel_on(&device, &graph, &[&memory], [region]);
        assert_error(result, ErrorKind::InvalidArgument, &["argument 0 of step", "scratch", "256"]);
    }
    for (offset, bytes) in [(0, 256), (255, 1), (256, 0)] {
        let region = Region { base: Base::AllocNode(memory.key()), offset, bytes };
        kernel_on(&device, &graph, &[&memory], [region]).unwrap();
    }
}

/// An executable that leaves one allocation behind at each launch, and that allocation's node.
fn leaving(device: &gridloom_core::null::NullDevice) -> (Executable, gridloom_core::Node) {
    let graph = Graph::new(device);
    let memory = alloc(&graph, &[]).named("kept").unwrap();
    (graph.instantiate().unwrap(), memory)
}

fn is_freed(memory: &Arc<dyn gridloom_core::backend::Allocation>) -> bool {
    memory.outliving().expect("memory that outlived a launch").is_freed()
}

fn free_elsewhere(memory: &Arc<dyn gridloom_core::backend::Allocation>) -> Operation {
    Operation::Free(FreeTarget::Outliving(memory.clone()))
}

#[test]
fn a_free_node_of_another_graph_frees_outliving_memory_once() {
    let (device, stream, graph) = setup();
    let (owner, node) = leaving(&device);
    owner.launch(&stream).unwrap();
    let memory = owner.outliving(&node).unwrap();
    graph.add(&[], free_elsewhere(&memory)).unwrap().named("release").unwrap();
    let freeing = graph.instantiate().unwrap();
    assert!(!is_freed(&memory));
    freeing.launch(&stream).unwrap();
    assert!(is_freed(&memory));
    assert_error(freeing.launch(&stream), ErrorKind::InvalidState, &["release", "freed already"]);
    assert_error(owner.outliving(&node), ErrorKind::InvalidState, &["kept", "freed since"]);
    owner.launch(&stream).unwrap();
    assert!(!is_freed(&owner.outliving(&node).unwrap()));
}

#[test]
fn free_of_memory_that_is_no_graph_allocation_is_refused_at_the_call() {
    let (device, _, graph) = setup();
    let memory: Arc<dyn gridloom_core::backend::Allocation> = buffer(&device, 256);
    let says = ["not memory that a launch of a graph left allocated", "drop or close it"];
    assert_error(graph.add(&[], free_elsewhere(&memory)), ErrorKind::InvalidArgument, &says);
    assert!(graph.is_empty());
}

#[test]
fn a_failed_launch_frees_no_outliving_memory() {
    let (device, stream, graph) = setup();
    let (owner, node) = leaving(&device);
    owner.launch(&stream).unwrap();
    let memory = owner.outliving(&node).unwrap();
    graph.add(&[], free_elsewhere(&memory)).unwrap();
    let freeing = graph.instantiate().unwrap();
    device.fail(gridloom_core::null::CallKind::Launch, 1, ErrorKind::Driver);
    assert_error(freeing.launch(&stream), ErrorKind::Driver, &[]);
    assert!(!is_freed(&memory));
    freeing.launch(&stream).unwrap();
}

#[test]
fn freed_outliving_memory_cannot_be_used_any_more() {
    let (device, stream, graph) = setup();
    let (owner, node) = leaving(&device);
    owner.launch(&stream).unwrap();
    let memory = owner.outliving(&node).unwrap();
    free_outliving(&device, &memory);
    let region = Region::whole(memory.clone());
    assert_error(memset(&graph, &[], region.clone()), ErrorKind::InvalidHandle, &["was freed"]);
    assert_error(stream.enqueue(memset_op(region, 0, 4, 64)), ErrorKind::InvalidHandle, &["was freed"]);
    assert_error(graph.add(&[], free_elsewhere(&memory)), ErrorKind::InvalidHandle, &["freed already"]);
}

#[test]
fn freed_outliving_memory_cannot_be_read_or_written_by_the_host() {
    let (device, _, _) = setup();
    let memory = outliving(&device);
    let device_handle = device.as_device();
    device_handle.read(&*memory, 0, &mut [0; 4]).unwrap();
    free_outliving(&device, &memory);
    assert_error(device_handle.read(&*memory, 0, &mut [0; 4]), ErrorKind::InvalidHandle, &["was freed"]);
    assert_error(device_handle.write(&*memory, 0, &[0; 4]), ErrorKind::InvalidHandle, &["was freed"]);
}

#[test]
fn an_executable_that_uses_outliving_memory_is_launched_until_that_is_freed() {
    let (device, stream, graph) = setup();
    let memory = outliving(&device);
    let node = memset(&graph, &[], Region::whole(memory.clone())).unwrap().named("fill").unwrap();
    let exec = graph.instantiate().unwrap();
    exec.launch(&stream).unwrap();
    free_outliving(&device, &memory);
    assert_error(exec.launch(&stream), ErrorKind::InvalidHandle, &["fill", "freed"]);
    assert_error(instantiate(&graph), ErrorKind::InvalidHandle, &["fill", "freed"]);
    let fresh = Region::whole(outliving(&device));
    exec.node(&node).unwrap().set_operation(memset_op(fresh, 0, 4, 64)).unwrap();
    exec.launch(&stream).unwrap();
}

#[test]
fn outliving_memory_is_freed_once_after_its_uses_and_outside_of_conditionals() {
    let (device, stream, _) = setup();
    let (owner, node) = leaving(&device);
    owner.launch(&stream).unwrap();
    let memory = owner.outliving(&node).unwrap();
    let graph = Graph::new(&device);
    let first = graph.add(&[], free_elsewhere(&memory)).unwrap().named("first").unwrap();
    let second = graph.add(&[&first], free_elsewhere(&memory)).unwrap().named("second").unwrap();
    assert_error(instantiate(&graph), ErrorKind::InvalidState, &["second", "first frees already"]);
    second.delete().unwrap();
    let repeat = conditional(&graph, &[], ConditionalForm::While).named("repeat").unwrap();
    memset(&body(&repeat), &[], Region::whole(memory.clone())).unwrap();
    assert_error(instantiate(&graph), ErrorKind::Unordered, &["first", "repeat"]);
    first.after([&repeat]).unwrap();
    instantiate(&graph).unwrap();
    first.delete().unwrap();
    body(&repeat).add(&[], free_elsewhere(&memory)).unwrap().named("inside").unwrap();
    assert_error(instantiate(&graph), ErrorKind::InvalidState, &["inside", "repeat", "free it outside"]);
}
