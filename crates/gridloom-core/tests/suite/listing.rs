//! Listings are complete and stable at any size.

use gridloom_core::graph::Node;

use crate::common::*;

#[test]
fn all_of_130_nodes_are_listed() {
    let (_, _, graph) = setup();
    let nodes: Vec<Node> = (0..130).map(|_| empty(&graph, &[])).collect();
    assert_eq!(graph.nodes(), nodes);
}

#[test]
fn all_20_neighbours_of_a_node_are_listed_on_both_sides() {
    let (_, _, graph) = setup();
    let before: Vec<Node> = (0..20).map(|_| empty(&graph, &[])).collect();
    let hub = empty(&graph, &before.iter().collect::<Vec<_>>());
    let after: Vec<Node> = (0..20).map(|_| empty(&graph, &[&hub])).collect();
    assert_eq!(hub.predecessors().unwrap(), before);
    assert_eq!(hub.successors().unwrap(), after);
    assert_eq!(graph.edges().len(), 40);
}

#[test]
fn all_of_100_000_nodes_and_edges_are_listed() {
    const COUNT: usize = 100_000;
    let (_, stream, graph) = setup();
    let mut nodes = vec![empty(&graph, &[])];
    for index in 1..COUNT {
        // A binary tree, so that there are both wide and deep parts.
        nodes.push(empty(&graph, &[&nodes[(index - 1) / 2]]));
    }
    assert_eq!(graph.len(), COUNT);
    assert_eq!(graph.nodes(), nodes);
    let edges = graph.edges();
    assert_eq!(edges.len(), COUNT - 1);
    for (index, (from, to, _)) in edges.iter().enumerate() {
        assert_eq!((from, to), (&nodes[index / 2], &nodes[index + 1]));
    }
    assert_eq!(graph.definition().topological(graph.key()).len(), COUNT);
    graph.instantiate().unwrap().launch(&stream).unwrap();
    let (copy, map) = graph.deep_clone().unwrap();
    assert_eq!((copy.len(), map.len()), (COUNT, COUNT));
}

#[test]
fn the_order_of_listing_survives_deletions() {
    let (_, _, graph) = setup();
    let nodes: Vec<Node> = (0..1000).map(|_| empty(&graph, &[])).collect();
    // More than half, so that the list is also compacted on the way.
    for (index, node) in nodes.iter().enumerate() {
        if index % 3 != 0 {
            node.delete().unwrap();
        }
    }
    let added = empty(&graph, &[]);
    let mut expected: Vec<Node> = nodes.into_iter().step_by(3).collect();
    expected.push(added);
    assert_eq!(graph.nodes(), expected);
    assert_eq!(graph.len(), expected.len());
}

#[test]
fn counts_are_of_one_graph_without_those_inside() {
    let (_, _, graph) = setup();
    let outer = conditional(&graph, &[], gridloom_core::op::ConditionalForm::If);
    (0..5).for_each(|_| drop(empty(&body(&outer), &[])));
    assert_eq!(graph.len(), 1);
    assert_eq!(body(&outer).len(), 5);
}
