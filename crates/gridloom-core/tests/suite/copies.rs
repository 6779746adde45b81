//! Copies of graphs: embedded into others, and as graphs of their own.

use std::collections::HashSet;

use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::memory::Base;
use gridloom_core::null::{FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{Condition, ErrorKind};

use crate::common::*;

/// A graph with memory, a loop whose body sets its condition, a nested conditional and a callback.
struct Sample {
    graph: Graph,
    memory: Node,
    repeat: Node,
    set: Node,
    again: Condition,
}

fn sample(device: &NullDevice) -> Sample {
    let graph = Graph::new(device);
    let again = graph.condition(Some(4));
    let memory = alloc(&graph, &[]);
    let test = Test::Condition(again.key());
    let repeat = graph.add_conditional(&[&memory], spec(ConditionalForm::While, test)).unwrap();
    let inside = body(&repeat);
    let filled = memset(&inside, &[], memory_of(&memory)).unwrap();
    let kernel = FakeKernel::new("set").params([8]).on(device);
    let set = inside.add(&[&filled], launch_op(&kernel, [condition_arg(&again)])).unwrap();
    let nested = conditional(&inside, &[&set], ConditionalForm::If);
    callback(&body(&nested), &[], || {});
    let freed = free(&graph, &[&repeat], &memory).unwrap();
    empty(&graph, &[&freed]);
    Sample { graph, memory, repeat, set, again }
}

fn all_nodes(graph: &Graph) -> Vec<Node> {
    let inside = |node: &Node| node.bodies().unwrap();
    graph
        .nodes()
        .into_iter()
        .flat_map(|node| {
            let bodies = inside(&node);
            std::iter::once(node).chain(bodies.iter().flat_map(all_nodes).collect::<Vec<_>>())
        })
        .collect()
}

#[test]
fn an_embedded_graph_is_a_snapshot() {
    let (device, stream, graph) = setup();
    let inner = Graph::new(&device);
    let first = empty(&inner, &[]);
    let child = graph.add_child(&[], &inner).unwrap();
    empty(&inner, &[&first]);
    first.set_name("renamed").unwrap();
    assert_eq!(body(&child).len(), 1);
    assert_eq!(body(&child).nodes()[0].label(), "child#0/empty#0");
    first.delete().unwrap();
    drop(inner);
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn an_embedded_graph_is_open_for_editing() {
    let (device, _, graph) = setup();
    let inner = Graph::new(&device);
    let original = empty(&inner, &[]);
    let child = graph.add_child(&[], &inner).unwrap();
    let copy = body(&child);
    let node = copy.nodes().remove(0);
    assert_ne!(node, original);
    let added = kernel(&device, &copy, &[&node]);
    node.set_name("mine").unwrap();
    assert_eq!(copy.nodes(), [node, added]);
    assert_eq!((inner.len(), original.label().as_str()), (1, "empty#0"));
}

#[test]
fn an_empty_graph_can_be_embedded() {
    let (device, stream, graph) = setup();
    let child = graph.add_child(&[], &Graph::new(&device)).unwrap();
    assert!(body(&child).is_empty());
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_graph_embedded_twice_is_two_copies() {
    let (device, _, graph) = setup();
    let sample = sample(&device);
    let one = graph.add_child(&[], &sample.graph).unwrap();
    let two = graph.add_child(&[&one], &sample.graph).unwrap();
    let nodes: HashSet<Node> = all_nodes(&body(&one)).into_iter().chain(all_nodes(&body(&two))).collect();
    assert_eq!(nodes.len(), 2 * all_nodes(&sample.graph).len());
    graph.instantiate().unwrap();
}

#[test]
fn a_graph_cannot_be_embedded_into_itself_or_its_own_hierarchy() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::While);
    let inside = body(&outer);
    for (into, what) in [(&graph, &graph), (&inside, &graph), (&graph, &inside), (&inside, &inside)] {
        assert_error(into.add_child(&[], what), ErrorKind::WrongGraph, &["into itself", "clone"]);
    }
    let (copy, _) = graph.deep_clone().unwrap();
    graph.add_child(&[], &copy).unwrap();
}

#[test]
fn a_graph_of_another_device_cannot_be_embedded() {
    let (_, _, graph) = setup();
    let foreign = Graph::new(&NullDevice::new());
    assert_error(graph.add_child(&[], &foreign), ErrorKind::WrongDevice, &["another device"]);
}

#[test]
fn embedding_keeps_conditions_memory_and_callbacks_apart_from_the_original() {
    let (device, stream, graph) = setup();
    let sample = sample(&device);
    let child = graph.add_child(&[], &sample.graph).unwrap();
    let [memory, repeat, freed, _] = body(&child).nodes().try_into().unwrap();
    let [filled, set, _] = body(&repeat).nodes().try_into().unwrap();

    let Operation::Conditional(op) = repeat.operation().unwrap() else { panic!() };
    let Test::Condition(tested) = op.test else { panic!() };
    let Operation::Kernel(op) = set.operation().unwrap() else { panic!() };
    assert_eq!(op.args().pointers[0].value, PointerValue::Condition(tested));
    let definition = graph.definition();
    let data = definition.get_condition(tested).unwrap();
    assert_eq!((data.default_value(), data.used_by()), (Some(4), Some(repeat.key())));
    assert_eq!(data.scope(), body(&child).key());

    let Operation::Memset(op) = filled.operation().unwrap() else { panic!() };
    assert_eq!(op.dst.base, Base::AllocNode(memory.key()));
    let Operation::Free(FreeTarget::AllocNode(target)) = freed.operation().unwrap() else { panic!() };
    assert_eq!(target, memory.key());
    assert_eq!(sample.again.used_by(), Some(sample.repeat.clone()));
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_body_can_be_embedded_elsewhere_if_it_needs_nothing_from_around_it() {
    let (device, _, graph) = setup();
    let sample = sample(&device);
    let result = graph.add_child(&[], &body(&sample.repeat));
    assert_error(result, ErrorKind::WrongGraph, &["memset#0", "alloc#0", "copy the graph that allocates it"]);
    assert!(graph.is_empty());
    let nested = body(&sample.repeat).nodes().remove(2);
    let child = graph.add_child(&[], &body(&nested)).unwrap();
    assert_eq!(body(&child).nodes()[0].kind().unwrap(), NodeKind::Callback);
}

#[test]
fn a_failed_embedding_leaves_nothing_behind() {
    let (device, _, graph) = setup();
    let sample = sample(&device);
    let before = graph.to_json();
    graph.add_child(&[], &body(&sample.repeat)).unwrap_err();
    let foreign = empty(&sample.graph, &[]);
    assert_error(graph.add_child(&[&foreign], &sample.graph), ErrorKind::WrongGraph, &[]);
    assert_eq!(graph.to_json(), before);
}

#[test]
fn a_copy_has_the_same_picture() {
    let device = NullDevice::new();
    let sample = sample(&device);
    let (copy, _) = sample.graph.deep_clone().unwrap();
    assert_eq!(copy.to_json(), sample.graph.to_json());
    assert_eq!(copy.to_dot(), sample.graph.to_dot());
    copy.instantiate().unwrap();
}

#[test]
fn a_copy_maps_every_node_at_every_level() {
    let device = NullDevice::new();
    let sample = sample(&device);
    let (copy, map) = sample.graph.deep_clone().unwrap();
    let (originals, copies) = (all_nodes(&sample.graph), all_nodes(&copy));
    assert_eq!(map.len(), originals.len());
    assert!(!map.is_empty());
    for (original, copied) in originals.iter().zip(&copies) {
        assert_eq!(map.get(original).as_ref(), Some(copied));
        assert_eq!(original.kind().unwrap(), copied.kind().unwrap());
        let mapped: Vec<Node> =
            original.predecessors().unwrap().iter().map(|node| map.get(node).unwrap()).collect();
        assert_eq!(copied.predecessors().unwrap(), mapped);
    }
    assert_eq!(map.iter().collect::<HashSet<_>>(), originals.into_iter().zip(copies).collect());
}

#[test]
fn a_map_knows_nothing_of_other_nodes() {
    let (device, _, other) = setup();
    let sample = sample(&device);
    let deleted = empty(&sample.graph, &[]);
    deleted.delete().unwrap();
    let (copy, map) = sample.graph.deep_clone().unwrap();
    let later = empty(&sample.graph, &[]);
    let foreign = empty(&other, &[]);
    for node in [&deleted, &later, &foreign, &copy.nodes()[0]] {
        assert_eq!(map.get(node), None);
    }
}

#[test]
fn a_map_knows_the_conditions_too() {
    let (device, _, other) = setup();
    let sample = sample(&device);
    let unused = sample.graph.condition(None);
    let (copy, map) = sample.graph.deep_clone().unwrap();
    let again = map.condition(&sample.again).unwrap();
    assert!(again.belongs_to(&copy));
    assert_eq!(again.default_value(), Some(4));
    assert_eq!(again.used_by(), map.get(&sample.repeat));
    assert_eq!(map.condition(&unused).unwrap().used_by(), None);
    assert_eq!(map.condition(&other.condition(None)), None);
}

#[test]
fn a_copy_and_its_original_are_changed_apart() {
    let device = NullDevice::new();
    let sample = sample(&device);
    let (copy, map) = sample.graph.deep_clone().unwrap();
    let before = sample.graph.to_json();
    map.get(&sample.repeat).unwrap().delete().unwrap();
    empty(&copy, &[]);
    assert_eq!(sample.graph.to_json(), before);
    sample.memory.set_name("changed").unwrap();
    assert_eq!(map.get(&sample.memory).unwrap().label(), "alloc#0");
}

#[test]
fn a_copy_of_a_body_is_a_root_with_the_outer_conditions_it_sets() {
    let (device, stream, graph) = setup();
    let again = graph.condition(Some(1));
    let other = graph.condition(Some(2));
    let repeat =
        graph.add_conditional(&[], spec(ConditionalForm::While, Test::Condition(again.key()))).unwrap();
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    let set = body(&repeat).add(&[], launch_op(&kernel, [condition_arg(&again)])).unwrap();
    let (copy, map) = body(&repeat).deep_clone().unwrap();
    assert_eq!((copy.owner(), copy.nodes()), (None, vec![map.get(&set).unwrap()]));
    let copied = map.condition(&again).unwrap();
    assert_eq!((copied.default_value(), copied.used_by()), (Some(1), None));
    assert_eq!(map.condition(&other), None, "what the body does not use stays behind");
    copy.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_copy_of_a_body_that_uses_outer_memory_is_refused() {
    let device = NullDevice::new();
    let sample = sample(&device);
    let result = body(&sample.repeat).deep_clone();
    assert_error(result, ErrorKind::WrongGraph, &["memset#0", "alloc#0"]);
}

#[test]
fn the_original_can_be_dropped() {
    let (device, stream, _) = setup();
    let (copy, set) = {
        let sample = sample(&device);
        let (copy, map) = sample.graph.deep_clone().unwrap();
        (copy, map.get(&sample.set).unwrap())
    };
    assert_eq!(set.label(), "while#1/kernel#1 set");
    copy.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_child_is_ordered_like_any_node() {
    let (device, _, graph) = setup();
    let before = empty(&graph, &[]);
    let child = graph.add_child(&[&before], &Graph::new(&device)).unwrap();
    let after = empty(&graph, &[&child]);
    let expected = [(before, child.clone(), EdgeKind::Full), (child, after, EdgeKind::Full)];
    assert_eq!(graph.edges(), expected);
}
