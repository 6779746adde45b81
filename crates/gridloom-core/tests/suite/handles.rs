//! Handles: identity, use as keys, and what is left of them after deletion.

use std::collections::{HashMap, HashSet};

use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::null::NullDevice;
use gridloom_core::op::{ConditionalForm, Operation};
use gridloom_core::{Condition, Error, ErrorKind, Event, Executable, Result, Stream};

use crate::common::*;

fn assert_send_sync<T: Send + Sync>() {}

#[test]
fn every_handle_can_be_sent_and_shared() {
    assert_send_sync::<Graph>();
    assert_send_sync::<Node>();
    assert_send_sync::<Condition>();
    assert_send_sync::<Executable>();
    assert_send_sync::<Stream>();
    assert_send_sync::<Event>();
    assert_send_sync::<Error>();
    assert_send_sync::<Operation>();
}

#[test]
fn the_same_node_is_equal_from_every_query() {
    let (_, _, graph) = setup();
    let a = empty(&graph, &[]);
    let b = empty(&graph, &[&a]);
    assert_eq!(graph.nodes(), [a.clone(), b.clone()]);
    assert_eq!(a.successors().unwrap().first(), Some(&b));
    assert_eq!(b.predecessors().unwrap().first(), Some(&a));
    assert_eq!(graph.edges(), [(a.clone(), b.clone(), EdgeKind::Full)]);
    assert_eq!(a.graph().unwrap(), graph);
    assert_ne!(a, b);
}

#[test]
fn nodes_of_different_graphs_differ_even_where_their_keys_agree() {
    let (device, _, graph) = setup();
    let other = Graph::new(&device);
    let (a, b) = (empty(&graph, &[]), empty(&other, &[]));
    assert_eq!(a.key().index(), b.key().index());
    assert_ne!(a, b);
    assert_ne!(graph, other);
    assert_ne!(graph.condition(None), other.condition(None));
}

#[test]
fn clones_are_equal_and_hash_alike() {
    let (device, stream, graph) = setup();
    let node = empty(&graph, &[]);
    let condition = graph.condition(Some(3));
    let event = event(&device);
    assert_eq!(HashSet::from([node.clone(), node.clone()]).len(), 1);
    assert_eq!(HashSet::from([graph.clone(), graph.clone()]).len(), 1);
    assert_eq!(HashSet::from([condition.clone(), condition.clone()]).len(), 1);
    assert_eq!(HashSet::from([event.clone(), event.clone()]).len(), 1);
    assert_eq!(HashSet::from([stream.clone(), stream.clone()]).len(), 1);
}

#[test]
fn two_streams_and_two_events_are_not_equal() {
    let (device, stream, _) = setup();
    assert_ne!(stream, Stream::new(&device).unwrap());
    assert_ne!(event(&device), event(&device));
}

#[test]
fn nodes_work_as_keys_of_a_map_while_the_graph_changes() {
    let (_, _, graph) = setup();
    let nodes: Vec<Node> = (0..50).map(|_| empty(&graph, &[])).collect();
    let map: HashMap<Node, usize> = nodes.iter().cloned().zip(0..).collect();
    for pair in nodes.windows(2) {
        graph.add_edge(&pair[0], &pair[1], EdgeKind::Full).unwrap();
    }
    nodes[7].delete().unwrap();
    for (index, node) in nodes.iter().enumerate() {
        assert_eq!(map[node], index);
    }
}

#[test]
fn a_deleted_node_is_invalid_and_stays_itself_when_its_place_is_taken() {
    let (_, _, graph) = setup();
    let old = empty(&graph, &[]);
    let kept = HashSet::from([old.clone()]);
    old.delete().unwrap();
    let new = empty(&graph, &[]);
    assert_eq!(old.key().index(), new.key().index());
    assert!(!old.is_valid() && new.is_valid());
    assert_ne!(old, new);
    assert!(kept.contains(&old) && !kept.contains(&new));
}

#[test]
fn every_operation_on_a_deleted_node_is_an_error() {
    let (_, _, graph) = setup();
    let (node, other) = (empty(&graph, &[]), empty(&graph, &[]));
    node.delete().unwrap();
    let operations: [(&str, Result<()>); 13] = [
        ("graph", node.graph().map(drop)),
        ("kind", node.kind().map(drop)),
        ("operation", node.operation().map(drop)),
        ("set_name", node.set_name("x")),
        ("named", node.clone().named("x").map(drop)),
        ("predecessors", node.predecessors().map(drop)),
        ("successors", node.successors().map(drop)),
        ("bodies", node.bodies().map(drop)),
        ("after", node.after([&other])),
        ("depended on", other.after([&node])),
        ("delete", node.delete()),
        ("add after", graph.add(&[&node], Operation::Empty).map(drop)),
        ("edge", graph.add_edge(&node, &other, EdgeKind::Full)),
    ];
    for (name, result) in operations {
        assert_eq!(result.expect_err(name).kind(), ErrorKind::InvalidHandle, "{name}");
    }
    assert_error(graph.remove_edge(&node, &other), ErrorKind::InvalidHandle, &["deleted"]);
    assert_eq!(graph.nodes(), [other], "the failed operations left nothing behind");
}

#[test]
fn deleting_a_conditional_or_child_invalidates_the_handles_inside_it() {
    let (device, _, graph) = setup();
    let inner_graph = Graph::new(&device);
    empty(&inner_graph, &[]);
    for outer in
        [conditional(&graph, &[], ConditionalForm::While), graph.add_child(&[], &inner_graph).unwrap()]
    {
        let body = body(&outer);
        let inside = empty(&body, &[]);
        let nested = conditional(&body, &[], ConditionalForm::If);
        let nested_body = self::body(&nested);
        let deepest = empty(&nested_body, &[]);
        let condition = nested_body.condition(Some(1));
        outer.delete().unwrap();
        assert!([&outer, &inside, &nested, &deepest].iter().all(|node| !node.is_valid()));
        assert!(!body.is_valid() && !nested_body.is_valid() && !condition.is_valid());
        assert_error(body.add(&[], Operation::Empty), ErrorKind::InvalidHandle, &["deleted"]);
        assert_error(body.deep_clone(), ErrorKind::InvalidHandle, &["deleted"]);
        assert_error(body.instantiate(), ErrorKind::InvalidHandle, &["deleted"]);
        assert_error(graph.add_child(&[], &body), ErrorKind::WrongGraph, &[]);
        assert_error(Graph::new(&device).add_child(&[], &body), ErrorKind::InvalidHandle, &["deleted"]);
        assert!(body.nodes().is_empty() && body.edges().is_empty() && body.is_empty());
    }
    assert!(graph.is_empty() && graph.is_valid());
}

#[test]
fn a_node_keeps_its_graph_alive() {
    let (_, _, graph) = setup();
    let a = empty(&graph, &[]);
    drop(graph);
    let b = a.graph().unwrap().add(&[&a], Operation::Empty).unwrap();
    assert_eq!(b.predecessors().unwrap(), [a]);
}

#[test]
fn a_body_keeps_the_whole_hierarchy_alive() {
    let (device, stream, graph) = setup();
    let alive = Alive::default();
    graph.add(&[], alive.callback()).unwrap();
    let body = body(&conditional(&graph, &[], ConditionalForm::If));
    drop(graph);
    assert_eq!(alive.count(), 1);
    kernel(&device, &body, &[]);
    let root = body.owner().unwrap().graph().unwrap();
    root.instantiate().unwrap().launch(&stream).unwrap();
    drop(root);
    drop(body);
    assert_eq!(alive.count(), 0);
}

#[test]
fn a_graph_knows_the_node_around_it() {
    let (_, _, graph) = setup();
    let switch = conditional(&graph, &[], ConditionalForm::Switch);
    for body in switch.bodies().unwrap() {
        assert_eq!(body.owner(), Some(switch.clone()));
    }
    assert_eq!(graph.owner(), None);
}

#[test]
fn debug_says_what_a_handle_is() {
    let (device, stream, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let b = empty(&graph, &[&a]).named("meet").unwrap();
    let condition = graph.condition(Some(7));
    assert_eq!(format!("{a:?}"), "Node(kernel#0 step)");
    assert_eq!(format!("{b:?}"), "Node(meet)");
    assert_eq!(format!("{graph:?}"), "Graph(#0: 2 nodes, 1 edges)");
    assert_eq!(format!("{condition:?}"), "Condition(#0, default Some(7))");
    assert_eq!(format!("{stream:?}"), "Stream(null device)");
    assert_eq!(format!("{:?}", graph.instantiate().unwrap()), "Executable(2 nodes on null device)");
    assert!(format!("{:?}", event(&device)).contains("timing: true"));
    assert!(format!("{:?}", a.operation().unwrap()).contains("FakeKernel(step)"));
    b.delete().unwrap();
    assert_eq!(format!("{b:?}"), "Node(deleted node #1)");
}

#[test]
fn debug_of_a_deleted_graph_says_so() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], ConditionalForm::If);
    let body = body(&outer);
    outer.delete().unwrap();
    assert_eq!(format!("{body:?}"), "Graph(#1 deleted)");
}

#[test]
fn keys_are_checked_against_the_graph_they_are_meant_for() {
    let device = NullDevice::new();
    let (graph, other) = (Graph::new(&device), Graph::new(&device));
    let (node, condition) = (alloc(&other, &[]), other.condition(None));
    assert_eq!(node.key_in(&other).unwrap(), node.key());
    assert_eq!(condition.key_in(&other).unwrap(), condition.key());
    assert_error(node.key_in(&graph), ErrorKind::WrongGraph, &["alloc#0"]);
    assert_error(condition.key_in(&graph), ErrorKind::WrongGraph, &["graph.condition()"]);
    assert!(condition.belongs_to(&other) && !condition.belongs_to(&graph));
}

#[test]
fn a_node_added_to_a_node_is_in_its_graph_and_depends_on_it() {
    let (_, _, graph) = setup();
    let first = graph.add(&[], Operation::Empty).unwrap();
    let second = first.add(Operation::Empty).unwrap();
    assert_eq!(second.graph().unwrap(), graph);
    assert_eq!(second.predecessors().unwrap(), [first]);
}

#[test]
fn nothing_can_be_added_to_a_deleted_node() {
    let (_, _, graph) = setup();
    let node = graph.add(&[], Operation::Empty).unwrap();
    node.delete().unwrap();
    assert_error(node.add(Operation::Empty), ErrorKind::InvalidHandle, &["deleted"]);
}
