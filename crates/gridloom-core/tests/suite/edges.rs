//! Edges: what they join, what is refused at the call, and how they are listed.

use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::op::{ConditionalForm, NodeKind, Operation};
use gridloom_core::{ErrorKind, Result};

use crate::common::*;

fn chain<const N: usize>(graph: &Graph) -> [Node; N] {
    let mut last: Option<Node> = None;
    std::array::from_fn(|_| {
        let node = empty(graph, last.as_ref().as_slice());
        last = Some(node.clone());
        node
    })
}

fn edge_count(graph: &Graph) -> usize {
    graph.edges().len()
}

#[test]
fn shapes_have_the_nodes_edges_and_neighbours_they_should() {
    // Name, number of nodes, and edges as pairs.
    let shapes: [(&str, usize, &[(usize, usize)]); 7] = [
        ("nothing", 0, &[]),
        ("single", 1, &[]),
        ("chain", 4, &[(0, 1), (1, 2), (2, 3)]),
        ("fan out", 4, &[(0, 1), (0, 2), (0, 3)]),
        ("fan in", 4, &[(0, 3), (1, 3), (2, 3)]),
        ("diamond", 4, &[(0, 1), (0, 2), (1, 3), (2, 3)]),
        ("disconnected", 4, &[(0, 1), (2, 3)]),
    ];
    for (name, count, edges) in shapes {
        let (_, _, graph) = setup();
        let nodes: Vec<Node> = (0..count).map(|_| empty(&graph, &[])).collect();
        for &(from, to) in edges {
            graph.add_edge(&nodes[from], &nodes[to], EdgeKind::Full).unwrap();
        }
        assert_eq!(graph.len(), count, "{name}");
        assert_eq!(graph.is_empty(), count == 0, "{name}");
        assert_eq!(graph.nodes(), nodes, "{name}");
        let index = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
        let mut read: Vec<_> = graph.edges().iter().map(|(from, to, _)| (index(from), index(to))).collect();
        read.sort_unstable();
        assert_eq!(read, edges, "{name}");
        for (position, node) in nodes.iter().enumerate() {
            let to: Vec<usize> = edges.iter().filter(|edge| edge.0 == position).map(|edge| edge.1).collect();
            let from: Vec<usize> =
                edges.iter().filter(|edge| edge.1 == position).map(|edge| edge.0).collect();
            assert_eq!(node.successors().unwrap().iter().map(index).collect::<Vec<_>>(), to, "{name}");
            assert_eq!(node.predecessors().unwrap().iter().map(index).collect::<Vec<_>>(), from, "{name}");
        }
        graph.instantiate().unwrap();
    }
}

#[test]
fn a_node_can_be_added_after_several_at_once_in_their_order() {
    let (_, _, graph) = setup();
    let [a, b, c] = std::array::from_fn(|_| empty(&graph, &[]));
    let node = empty(&graph, &[&c, &a, &b]);
    assert_eq!(node.predecessors().unwrap(), [c, a, b]);
}

#[test]
fn a_node_named_twice_among_those_before_is_one_edge_in_its_first_place() {
    let (_, _, graph) = setup();
    let [a, b] = std::array::from_fn(|_| empty(&graph, &[]));
    let node = empty(&graph, &[&b, &a, &b, &b, &a]);
    assert_eq!(node.predecessors().unwrap(), [b.clone(), a]);
    assert_eq!(b.successors().unwrap(), [node]);
}

#[test]
fn a_join_is_an_empty_node_after_any_number_of_nodes() {
    let (_, _, graph) = setup();
    let nodes: Vec<Node> = (0..12).map(|_| empty(&graph, &[])).collect();
    for count in [0, 1, 2, 12] {
        let join = graph.join(&nodes[..count]).unwrap();
        assert_eq!(join.kind().unwrap(), NodeKind::Empty);
        assert_eq!(join.predecessors().unwrap(), nodes[..count]);
    }
}

#[test]
fn a_join_of_a_foreign_node_is_refused() {
    let (device, _, graph) = setup();
    let own = empty(&graph, &[]);
    let foreign = empty(&Graph::new(&device), &[]).named("stranger").unwrap();
    assert_error(graph.join([&own, &foreign]), ErrorKind::WrongGraph, &["stranger"]);
    assert_eq!(graph.len(), 1);
}

#[test]
fn after_adds_several_edges() {
    let (_, _, graph) = setup();
    let [a, b, c] = std::array::from_fn(|_| empty(&graph, &[]));
    c.after([&a, &b]).unwrap();
    assert_eq!(c.predecessors().unwrap(), [a, b]);
}

#[test]
fn after_adds_all_edges_or_none() {
    let (device, _, graph) = setup();
    let [a, b] = std::array::from_fn(|_| empty(&graph, &[]));
    let node = empty(&graph, &[]);
    let later = empty(&graph, &[&node]);
    let foreign = empty(&Graph::new(&device), &[]);
    let deleted = empty(&graph, &[]);
    deleted.delete().unwrap();
    let before = graph.edges();
    for (culprit, kind) in [
        (&later, ErrorKind::Cycle),
        (&node, ErrorKind::Cycle),
        (&foreign, ErrorKind::WrongGraph),
        (&deleted, ErrorKind::InvalidHandle),
    ] {
        assert_error(node.after([&a, &b, culprit]), kind, &[]);
        assert_eq!(graph.edges(), before);
    }
}

#[test]
fn a_failed_after_gives_edges_their_old_kind_back() {
    let (device, _, graph) = setup();
    let [a, b, c] = std::array::from_fn(|_| kernel(&device, &graph, &[]));
    graph.add_edge(&a, &b, EdgeKind::Full).unwrap();
    graph.add_edge(&b, &c, EdgeKind::Full).unwrap();
    let before = graph.edges();
    assert_error(b.after_with([&a, &c], EdgeKind::Programmatic), ErrorKind::Cycle, &[]);
    assert_eq!(graph.edges(), before);
}

#[test]
fn a_self_edge_is_refused_and_named() {
    let (_, _, graph) = setup();
    let node = empty(&graph, &[]).named("ouroboros").unwrap();
    assert_error(graph.add_edge(&node, &node, EdgeKind::Full), ErrorKind::Cycle, &["ouroboros", "itself"]);
    assert_eq!(edge_count(&graph), 0);
}

#[test]
fn a_cycle_of_any_length_is_refused_and_both_ends_are_named() {
    for length in 2..6 {
        let (_, _, graph) = setup();
        let first = empty(&graph, &[]).named("first").unwrap();
        let mut last = first.clone();
        for _ in 1..length {
            last = empty(&graph, &[&last]);
        }
        let last = last.named("last").unwrap();
        let result = graph.add_edge(&last, &first, EdgeKind::Full);
        assert_error(result, ErrorKind::Cycle, &["from last to first", "last already depends on first"]);
        assert_eq!(edge_count(&graph), length - 1);
    }
}

#[test]
fn a_refused_edge_leaves_the_graph_usable() {
    let (_, _, graph) = setup();
    let [a, b, c] = chain(&graph);
    graph.add_edge(&c, &a, EdgeKind::Full).unwrap_err();
    graph.remove_edge(&a, &b).unwrap();
    graph.add_edge(&c, &a, EdgeKind::Full).unwrap();
    graph.instantiate().unwrap();
}

#[test]
fn a_duplicate_edge_changes_nothing() {
    let (_, _, graph) = setup();
    let [a, b] = chain(&graph);
    graph.add_edge(&a, &b, EdgeKind::Full).unwrap();
    b.after([&a, &a]).unwrap();
    assert_eq!(graph.edges(), [(a, b, EdgeKind::Full)]);
}

#[test]
fn an_edge_to_another_graph_is_refused_and_the_stranger_named() {
    let (device, _, graph) = setup();
    let other = Graph::new(&device);
    let own = empty(&graph, &[]);
    let foreign = empty(&other, &[]).named("stranger").unwrap();
    let results: [Result<()>; 5] = [
        graph.add_edge(&own, &foreign, EdgeKind::Full),
        graph.add_edge(&foreign, &own, EdgeKind::Full),
        own.after([&foreign]),
        graph.add(&[&own, &foreign], Operation::Empty).map(drop),
        graph.remove_edge(&own, &foreign).map(drop),
    ];
    for result in results {
        assert_error(result, ErrorKind::WrongGraph, &["stranger"]);
    }
    assert_eq!((graph.len(), edge_count(&graph)), (1, 0));
}

#[test]
fn an_edge_between_levels_of_a_hierarchy_is_refused() {
    let (_, _, graph) = setup();
    let outside = empty(&graph, &[]).named("outside").unwrap();
    let switch = conditional(&graph, &[], ConditionalForm::Switch);
    let [one, two, _] = switch.bodies().unwrap().try_into().unwrap();
    let inside = empty(&one, &[]).named("inside").unwrap();
    let beside = empty(&two, &[]).named("beside").unwrap();
    assert_error(graph.add_edge(&outside, &inside, EdgeKind::Full), ErrorKind::WrongGraph, &["inside"]);
    assert_error(one.add_edge(&inside, &beside, EdgeKind::Full), ErrorKind::WrongGraph, &["beside"]);
    assert_error(inside.after([&outside]), ErrorKind::WrongGraph, &["outside"]);
    assert_error(one.add(&[&switch], Operation::Empty), ErrorKind::WrongGraph, &["switch#1"]);
}

#[test]
fn a_programmatic_edge_joins_kernels_only() {
    let (device, _, graph) = setup();
    let [first, second] = std::array::from_fn(|_| kernel(&device, &graph, &[]));
    let join = empty(&graph, &[]).named("join").unwrap();
    graph.add_edge(&first, &second, EdgeKind::Programmatic).unwrap();
    assert_eq!(graph.edges()[0].2, EdgeKind::Programmatic);
    for (from, to) in [(&join, &second), (&second, &join)] {
        let result = graph.add_edge(from, to, EdgeKind::Programmatic);
        assert_error(result, ErrorKind::InvalidArgument, &["join", "programmatic"]);
    }
    assert_error(join.after_with([&first], EdgeKind::Programmatic), ErrorKind::InvalidArgument, &["join"]);
    assert_eq!(edge_count(&graph), 1);
}

#[test]
fn an_existing_edge_takes_the_new_kind_at_both_ends() {
    let (device, _, graph) = setup();
    let first = kernel(&device, &graph, &[]);
    let second = kernel(&device, &graph, &[&first]);
    for kind in [EdgeKind::Programmatic, EdgeKind::Full] {
        graph.add_edge(&first, &second, kind).unwrap();
        let definition = graph.definition();
        assert_eq!(definition.node(first.key()).successors()[0].kind, kind);
        assert_eq!(definition.node(second.key()).predecessors()[0].kind, kind);
        assert_eq!(edge_count(&graph), 1);
    }
}

#[test]
fn edge_kinds_survive_copies() {
    let (device, _, graph) = setup();
    let first = kernel(&device, &graph, &[]);
    let second = kernel(&device, &graph, &[]);
    second.after_with([&first], EdgeKind::Programmatic).unwrap();
    let (copy, _) = graph.deep_clone().unwrap();
    assert_eq!(copy.edges()[0].2, EdgeKind::Programmatic);
    let child = Graph::new(&device).add_child(&[], &graph).unwrap();
    assert_eq!(body(&child).edges()[0].2, EdgeKind::Programmatic);
}

#[test]
fn removing_an_edge_says_whether_there_was_one() {
    let (_, _, graph) = setup();
    let [a, b] = chain(&graph);
    assert!(!graph.remove_edge(&b, &a).unwrap());
    assert!(graph.remove_edge(&a, &b).unwrap());
    assert!(!graph.remove_edge(&a, &b).unwrap());
    assert!(a.successors().unwrap().is_empty() && b.predecessors().unwrap().is_empty());
    graph.add_edge(&b, &a, EdgeKind::Full).unwrap();
}

#[test]
fn deleting_a_node_takes_its_edges_along_and_no_others() {
    let (_, _, graph) = setup();
    let [a, b, c] = chain(&graph);
    graph.add_edge(&a, &c, EdgeKind::Full).unwrap();
    b.delete().unwrap();
    assert_eq!(graph.edges(), [(a.clone(), c.clone(), EdgeKind::Full)]);
    assert_eq!(a.successors().unwrap(), [c]);
}

#[test]
fn neighbours_are_listed_by_the_age_of_the_edge_also_after_removals() {
    let (_, _, graph) = setup();
    let hub = empty(&graph, &[]);
    let spokes: Vec<Node> = (0..8).map(|_| empty(&graph, &[])).collect();
    for index in [5, 2, 7, 0, 3] {
        graph.add_edge(&hub, &spokes[index], EdgeKind::Full).unwrap();
    }
    graph.remove_edge(&hub, &spokes[7]).unwrap();
    spokes[2].delete().unwrap();
    graph.add_edge(&hub, &spokes[1], EdgeKind::Full).unwrap();
    let expected: Vec<Node> = [5, 0, 3, 1].map(|index| spokes[index].clone()).into();
    assert_eq!(hub.successors().unwrap(), expected);
}
