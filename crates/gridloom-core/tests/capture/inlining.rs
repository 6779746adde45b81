//! The nodes of a graph recorded among those of a capture.

use crate::common::*;
use gridloom_core::graph::EdgeKind;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{AllocOp, FreeTarget, NodeKind, Operation, Test};
use gridloom_core::{ErrorKind, Graph};
use std::sync::Arc;

/// Two branches and what follows both.
fn vee(bench: &Bench) -> Graph {
    let graph = Graph::new(&bench.device);
    let [left, right] = [(); 2].map(|()| graph.add(&[], bench.kernel()).unwrap());
    graph.add(&[&left, &right], bench.memset()).unwrap();
    graph
}

#[test]
fn its_first_nodes_come_after_what_was_recorded_and_the_next_after_its_last() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let nodes = capture.inline(&vee(&bench)).unwrap();
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(nodes, graph.nodes()[1..4]);
    assert_eq!(edges(&graph), [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]);
    graph.instantiate().unwrap();
}

#[test]
fn all_its_last_nodes_come_before_what_is_recorded_next() {
    let bench = Bench::new();
    let two = Graph::new(&bench.device);
    two.add(&[], nothing()).unwrap();
    two.add(&[], nothing()).unwrap();
    let capture = bench.stream.capture().unwrap();
    capture.inline(&two).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 2), (1, 2)]);
}

#[test]
fn an_empty_graph_leaves_the_capture_where_it_was() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(capture.inline(&Graph::new(&bench.device)).unwrap(), []);
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1)]);
}

#[test]
fn names_programmatic_edges_and_graphs_inside_come_along() {
    let bench = Bench::new();
    let graph = Graph::new(&bench.device);
    let first = graph.add(&[], bench.kernel()).unwrap().named("first").unwrap();
    graph.add(&[&first], bench.kernel_with(LaunchConfig::one().programmatic())).unwrap();
    let condition = graph.condition(Some(3));
    let node = graph.add_conditional(&[&first], while_loop(&condition)).unwrap();
    node.bodies().unwrap()[0].add(&[], nothing()).unwrap();
    let capture = bench.stream.capture().unwrap();
    let nodes = capture.inline(&graph).unwrap();
    drop(graph);
    let captured = capture.end().unwrap();
    assert_eq!(nodes[0].label(), "first");
    assert_eq!(edge_kinds(&captured), [EdgeKind::Programmatic, EdgeKind::Full]);
    assert_eq!(nodes[2].bodies().unwrap()[0].len(), 1);
    let Operation::Conditional(conditional) = nodes[2].operation().unwrap() else { panic!() };
    let Test::Condition(key) = conditional.test else { panic!() };
    let definition = captured.definition();
    let data = definition.get_condition(key).unwrap();
    assert_eq!((data.default_value(), data.scope()), (Some(3), captured.key()));
    captured.instantiate().unwrap();
}

#[test]
fn memory_that_it_allocates_is_that_of_the_copied_node() {
    let bench = Bench::new();
    let graph = Graph::new(&bench.device);
    let op = AllocOp { len: 16, element_size: 1, kind: MemoryKind::Device, peers: Default::default() };
    let alloc = graph.add(&[], Operation::Alloc(Arc::new(op))).unwrap();
    graph.add(&[&alloc], Operation::Free(FreeTarget::AllocNode(alloc.key()))).unwrap();
    let capture = bench.stream.capture().unwrap();
    capture.inline(&graph).unwrap();
    let nodes = capture.inline(&graph).unwrap();
    drop(graph);
    let captured = capture.end().unwrap();
    let Operation::Free(FreeTarget::AllocNode(freed)) = nodes[1].operation().unwrap() else { panic!() };
    assert_eq!(freed, nodes[0].key());
    captured.instantiate().unwrap();
}

#[test]
fn unnamed_nodes_get_numbers_of_their_own() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    capture.inline(&vee(&bench)).unwrap();
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    let labels: Vec<String> = graph.nodes().iter().map(|node| node.label()).collect();
    assert_eq!(labels, ["empty#0", "kernel#1 work", "kernel#2 work", "memset#3", "empty#4"]);
}

#[test]
fn edges_can_still_be_added_in_every_direction_that_closes_no_cycle() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    capture.inline(&vee(&bench)).unwrap();
    let last = capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    let nodes = graph.nodes();
    graph.add_edge(&nodes[1], &nodes[2], EdgeKind::Full).unwrap();
    refused(graph.add_edge(&last, &nodes[0], EdgeKind::Full), ErrorKind::Cycle, &["cycle"]);
}

#[test]
fn a_refused_graph_changes_nothing() {
    let (bench, other) = (Bench::new(), Bench::new());
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    refused(capture.inline(&vee(&other)), ErrorKind::WrongDevice, &["another device"]);
    let outer = Graph::new(&bench.device);
    let op = AllocOp { len: 16, element_size: 1, kind: MemoryKind::Device, peers: Default::default() };
    let alloc = outer.add(&[], Operation::Alloc(Arc::new(op))).unwrap();
    let node = outer.add_conditional(&[&alloc], while_loop(&outer.condition(None))).unwrap();
    let body = node.bodies().unwrap().remove(0);
    let region = Region { base: Base::AllocNode(alloc.key()), offset: 0, bytes: 16 };
    let Operation::Memset(fill) = bench.memset() else { panic!() };
    let mut fill = (*fill).clone();
    fill.dst = region;
    body.add(&[], Operation::Memset(Arc::new(fill))).unwrap();
    refused(capture.inline(&body), ErrorKind::WrongGraph, &["outside the graph to copy"]);
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!((graph.len(), edges(&graph)), (2, vec![(0, 1)]));
    assert!(graph.nodes().iter().all(|node| node.kind().unwrap() == NodeKind::Empty));
}

#[test]
fn it_needs_a_capture_that_records() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.end().unwrap();
    refused(capture.inline(&vee(&bench)), ErrorKind::InvalidState, &["has ended"]);
    refused(capture.recording_device(), ErrorKind::InvalidState, &["has ended"]);
}
