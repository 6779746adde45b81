//! Conditions and the nodes that test them.

use gridloom_core::ErrorKind;
use gridloom_core::graph::{ConditionalSpec, Graph, MAX_NESTING, MAX_SWITCH_CASES};
use gridloom_core::memory::{Base, Region};
use gridloom_core::null::{CallKind, FakeKernel};
use gridloom_core::op::*;

use crate::common::*;

const FORMS: [ConditionalForm; 4] =
    [ConditionalForm::If, ConditionalForm::IfElse, ConditionalForm::While, ConditionalForm::Switch];

#[test]
fn a_condition_has_the_default_it_was_given() {
    let (_, _, graph) = setup();
    for default in [None, Some(0), Some(1), Some(u32::MAX)] {
        assert_eq!(graph.condition(default).default_value(), default);
    }
}

#[test]
fn a_condition_that_no_node_uses_is_harmless() {
    let (_, stream, graph) = setup();
    let condition = graph.condition(Some(1));
    assert_eq!(condition.used_by(), None);
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_condition_knows_the_node_that_tests_it() {
    let (_, _, graph) = setup();
    let condition = graph.condition(None);
    let node =
        graph.add_conditional(&[], spec(ConditionalForm::If, Test::Condition(condition.key()))).unwrap();
    assert_eq!(condition.used_by(), Some(node));
}

#[test]
fn a_condition_decides_one_node_only_and_the_error_names_it() {
    let (_, _, graph) = setup();
    for form in FORMS {
        let condition = graph.condition(None);
        let test = Test::Condition(condition.key());
        let first = graph.add_conditional(&[], spec(form, test.clone())).unwrap().named("first").unwrap();
        let second = graph.add_conditional(&[], spec(form, test.clone()));
        assert_error(second, ErrorKind::InvalidState, &["first", "graph.condition()"]);
        first.delete().unwrap();
        assert_eq!(condition.used_by(), None);
        graph.add_conditional(&[], spec(form, test)).unwrap();
    }
    assert_eq!(graph.len(), FORMS.len());
}

#[test]
fn a_condition_can_be_used_in_its_graph_and_all_graphs_inside() {
    let (device, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::While);
    let inner = conditional(&body(&outer), &[], ConditionalForm::If);
    let condition = graph.condition(Some(1));
    let deepest = body(&inner);
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    for place in [&graph, &body(&outer), &deepest] {
        place.add(&[], launch_op(&kernel, [condition_arg(&condition)])).unwrap();
    }
    deepest.add_conditional(&[], spec(ConditionalForm::If, Test::Condition(condition.key()))).unwrap();
    graph.instantiate().unwrap();
}

#[test]
fn a_condition_of_a_body_is_not_known_outside_of_it() {
    let (device, _, graph) = setup();
    let switch = conditional(&graph, &[], ConditionalForm::Switch);
    let [one, two, _] = switch.bodies().unwrap().try_into().unwrap();
    let condition = one.condition(None);
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    for elsewhere in [&graph, &two] {
        let test = Test::Condition(condition.key());
        let result = elsewhere.add_conditional(&[], spec(ConditionalForm::If, test));
        assert_error(result, ErrorKind::WrongGraph, &["condition"]);
        let result = elsewhere.add(&[], launch_op(&kernel, [condition_arg(&condition)]));
        assert_error(result, ErrorKind::WrongGraph, &["argument 0 of set", "condition"]);
    }
    one.add(&[], launch_op(&kernel, [condition_arg(&condition)])).unwrap();
}

#[test]
fn a_condition_of_another_graph_is_refused() {
    let (device, _, graph) = setup();
    let foreign = Graph::new(&device).condition(Some(1));
    // One of its own at the same place, so that the two could be mistaken for each other.
    graph.condition(Some(1));
    let test = Test::Condition(foreign.key());
    let result = graph.add_conditional(&[], spec(ConditionalForm::If, test));
    assert_error(result, ErrorKind::WrongGraph, &["another graph", "condition()"]);
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    let result = graph.add(&[], launch_op(&kernel, [condition_arg(&foreign)]));
    assert_error(result, ErrorKind::WrongGraph, &["argument 0 of set"]);
    assert!(graph.is_empty());
}

#[test]
fn a_condition_goes_with_the_graph_it_was_made_for() {
    let (device, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::If);
    let condition = body(&outer).condition(Some(5));
    assert!(condition.is_valid());
    outer.delete().unwrap();
    assert!(!condition.is_valid());
    assert_eq!((condition.default_value(), condition.used_by()), (None, None));
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    let result = graph.add(&[], launch_op(&kernel, [condition_arg(&condition)]));
    assert_error(result, ErrorKind::InvalidHandle, &["deleted"]);
    // Another condition may take its place; it is not mistaken for it.
    let other = graph.condition(Some(6));
    assert_ne!(condition, other);
    assert_eq!(condition.default_value(), None);
}

#[test]
fn deleting_what_is_around_a_conditional_frees_the_outer_condition_it_tested() {
    let (_, _, graph) = setup();
    let condition = graph.condition(None);
    let outer = conditional(&graph, &[], ConditionalForm::While);
    let test = || spec(ConditionalForm::If, Test::Condition(condition.key()));
    body(&outer).add_conditional(&[], test()).unwrap();
    outer.delete().unwrap();
    assert_eq!(condition.used_by(), None);
    graph.add_conditional(&[], test()).unwrap();
}

#[test]
fn a_condition_is_no_argument_of_work_on_a_stream() {
    let (device, stream, graph) = setup();
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    let result = stream.enqueue(launch_op(&kernel, [condition_arg(&graph.condition(None))]));
    assert_error(result, ErrorKind::InvalidArgument, &["set", "not by work on a stream"]);
    assert_eq!(device.count(CallKind::Enqueue), 0);
}

#[test]
fn each_form_has_its_bodies_empty_at_first() {
    let (_, stream, graph) = setup();
    for (form, bodies) in FORMS.into_iter().zip([1, 2, 1, 3]) {
        let node = conditional(&graph, &[], form);
        assert_eq!(node.kind().unwrap(), form.kind());
        assert_eq!(node.bodies().unwrap().len(), bodies);
        assert!(node.bodies().unwrap().iter().all(Graph::is_empty));
    }
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn a_switch_has_one_to_many_bodies() {
    let (_, _, graph) = setup();
    let switch = |bodies| {
        let test = Test::Condition(graph.condition(None).key());
        let spec = ConditionalSpec {
            form: ConditionalForm::Switch,
            test,
            test_first: true,
            max_passes: None,
            bodies,
        };
        graph.add_conditional(&[], spec)
    };
    assert_error(switch(0), ErrorKind::InvalidArgument, &["at least one"]);
    assert_error(switch(MAX_SWITCH_CASES + 1), ErrorKind::InvalidArgument, &["65537", "at most 65536"]);
    for bodies in [1, 2, 1000, MAX_SWITCH_CASES] {
        assert_eq!(switch(bodies).unwrap().bodies().unwrap().len(), bodies);
    }
    assert_eq!(graph.len(), 4);
}

#[test]
fn only_a_loop_is_driven_by_a_counter() {
    let (_, _, graph) = setup();
    for form in FORMS {
        let result = graph.add_conditional(&[], spec(form, Test::Count(3)));
        match form {
            ConditionalForm::While => assert!(result.is_ok()),
            _ => drop(assert_error(result, ErrorKind::InvalidArgument, &["loop only"])),
        }
    }
}

#[test]
fn a_tested_value_is_an_aligned_integer_on_the_device() {
    let (device, _, graph) = setup();
    let memory = buffer(&device, 64);
    let at = |offset, bytes| Region { base: Base::Allocation(memory.clone()), offset, bytes };
    let cases = [
        (at(0, 3), "aligned 4-byte integer"),
        (at(2, 4), "aligned 4-byte integer"),
        (at(64, 4), "past the end"),
        (Region::from_bytes(vec![0; 4]), "no address on the device"),
    ];
    for (region, mention) in cases {
        let result = graph.add_conditional(&[], spec(ConditionalForm::While, Test::Value(region)));
        assert_error(result, ErrorKind::InvalidArgument, &[mention]);
    }
    for (offset, bytes) in [(0, 4), (60, 4), (0, 64)] {
        graph.add_conditional(&[], spec(ConditionalForm::While, Test::Value(at(offset, bytes)))).unwrap();
    }
}

#[test]
fn conditionals_nest_in_every_order() {
    let (device, stream, graph) = setup();
    for outer in FORMS {
        for inner in FORMS {
            let outer = conditional(&graph, &[], outer);
            for body in outer.bodies().unwrap() {
                let inner = conditional(&body, &[], inner);
                inner.bodies().unwrap().iter().for_each(|body| drop(kernel(&device, body, &[])));
            }
        }
    }
    graph.instantiate().unwrap().launch(&stream).unwrap();
}

#[test]
fn nesting_is_limited_by_bodies_and_by_embedding() {
    let (device, _, graph) = setup();
    let mut deepest = graph.clone();
    for _ in 0..MAX_NESTING {
        deepest = body(&conditional(&deepest, &[], ConditionalForm::If));
    }
    let test = Test::Condition(graph.condition(None).key());
    let result = deepest.add_conditional(&[], spec(ConditionalForm::If, test));
    assert_error(result, ErrorKind::InvalidArgument, &["65 deep", "at most 64"]);
    let small = Graph::new(&device);
    empty(&small, &[]);
    assert_error(deepest.add_child(&[], &small), ErrorKind::InvalidArgument, &["65 deep"]);
    let outer = Graph::new(&device);
    assert_error(outer.add_child(&[], &graph), ErrorKind::InvalidArgument, &["65 deep"]);
    assert!(outer.is_empty() && deepest.is_empty());
    graph.instantiate().unwrap();
}

#[test]
fn a_refused_conditional_leaves_nothing_behind() {
    let (device, _, graph) = setup();
    let condition = graph.condition(None);
    let foreign = empty(&Graph::new(&device), &[]);
    let test = Test::Condition(condition.key());
    assert_error(
        graph.add_conditional(&[&foreign], spec(ConditionalForm::If, test)),
        ErrorKind::WrongGraph,
        &[],
    );
    assert_eq!(condition.used_by(), None);
    assert!(graph.is_empty());
}

#[test]
fn a_conditional_is_ordered_like_any_node() {
    let (_, _, graph) = setup();
    let before = empty(&graph, &[]);
    let node = conditional(&graph, &[&before], ConditionalForm::Switch);
    let after = empty(&graph, &[&node]);
    assert_eq!(node.predecessors().unwrap(), [before]);
    assert_eq!(node.successors().unwrap(), [after]);
}
