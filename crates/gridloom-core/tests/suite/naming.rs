//! Names: given or made, the same everywhere.

use gridloom_core::graph::Graph;
use gridloom_core::op::{ConditionalForm, Operation};

use crate::common::*;

#[test]
fn an_unnamed_node_is_called_by_kind_number_and_kernel() {
    let (device, _, graph) = setup();
    let memory = alloc(&graph, &[]);
    let node = kernel(&device, &graph, &[&memory]);
    let freed = free(&graph, &[&node], &memory).unwrap();
    assert_eq!(memory.label(), "alloc#0");
    assert_eq!(node.label(), "kernel#1 step");
    assert_eq!(freed.label(), "free#2 of alloc#0");
}

#[test]
fn a_made_name_stays_when_other_nodes_come_and_go() {
    let (_, _, graph) = setup();
    let (a, b) = (empty(&graph, &[]), empty(&graph, &[]));
    assert_eq!(b.label(), "empty#1");
    a.delete().unwrap();
    let c = empty(&graph, &[]);
    assert_eq!((b.label().as_str(), c.label().as_str()), ("empty#1", "empty#2"));
}

#[test]
fn a_given_name_replaces_the_made_one_and_can_be_changed() {
    let (_, _, graph) = setup();
    let node = empty(&graph, &[]).named("relax").unwrap();
    assert_eq!(node.label(), "relax");
    node.set_name("rest").unwrap();
    assert_eq!(graph.nodes()[0].label(), "rest");
}

#[test]
fn a_node_in_a_body_is_called_by_its_way_from_the_root() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::While);
    let switch = conditional(&body(&outer), &[], ConditionalForm::Switch);
    let inner = empty(&switch.bodies().unwrap()[2], &[]);
    assert_eq!(inner.label(), "while#0/switch#0[2]/empty#0");
    outer.set_name("loop").unwrap();
    assert_eq!(inner.label(), "loop/switch#0[2]/empty#0");
    inner.set_name("core").unwrap();
    assert_eq!(inner.label(), "core");
}

#[test]
fn names_travel_with_copies() {
    let (device, _, graph) = setup();
    empty(&graph, &[]).delete().unwrap();
    let named = empty(&graph, &[]).named("relax").unwrap();
    let unnamed = empty(&graph, &[]);
    let (_, map) = graph.deep_clone().unwrap();
    assert_eq!(map.get(&named).unwrap().label(), "relax");
    assert_eq!(map.get(&unnamed).unwrap().label(), "empty#2");
    let outer = Graph::new(&device);
    let child = outer.add_child(&[], &graph).unwrap();
    let labels: Vec<String> = body(&child).nodes().iter().map(|node| node.label()).collect();
    assert_eq!(labels, ["relax", "child#0/empty#2"]);
}

#[test]
fn a_name_changes_no_executable_made_before() {
    let (_, _, graph) = setup();
    let node = empty(&graph, &[]).named("before").unwrap();
    let exec = graph.instantiate().unwrap();
    node.set_name("after").unwrap();
    assert_eq!(exec.definition().label(node.key()), "before");
    assert_eq!(exec.definition().node(node.key()).given_name(), Some("before"));
}

#[test]
fn any_text_is_a_name() {
    let (_, _, graph) = setup();
    for name in ["", " ", "naïve \u{1F600}", "a\nb\0c", "\"<&>\""] {
        assert_eq!(graph.add(&[], Operation::Empty).unwrap().named(name).unwrap().label(), name);
    }
}
