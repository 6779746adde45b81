//! The topological order, against a plain reference, over random edits.

use std::collections::HashMap;

use gridloom_core::ErrorKind;
use gridloom_core::graph::{EdgeKind, Graph, Node, NodeKey};
use gridloom_core::op::{NodeKind, NodeKinds, Operation};
use proptest::prelude::*;

use crate::common::*;

/// An edit; numbers choose among the nodes there are.
#[derive(Clone, Debug)]
enum Edit {
    Add(Vec<prop::sample::Index>),
    Delete(prop::sample::Index),
    Link(prop::sample::Index, prop::sample::Index),
    Unlink(prop::sample::Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => prop::collection::vec(index(), 0..3).prop_map(Edit::Add),
        1 => index().prop_map(Edit::Delete),
        8 => (index(), index()).prop_map(|(from, to)| Edit::Link(from, to)),
        2 => index().prop_map(Edit::Unlink),
    ]
}

/// The graph as plain lists.
#[derive(Default)]
struct Reference {
    nodes: Vec<Node>,
    /// In the order they were added.
    edges: Vec<(Node, Node)>,
}

impl Reference {
    fn reaches(&self, from: &Node, to: &Node) -> bool {
        let mut stack = vec![from];
        let mut seen = Vec::new();
        while let Some(node) = stack.pop() {
            if node == to {
                return true;
            }
            if !seen.contains(&node) {
                seen.push(node);
                stack.extend(self.edges.iter().filter(|edge| edge.0 == *node).map(|edge| &edge.1));
            }
        }
        false
    }
}

fn assert_valid_order(graph: &Graph) {
    let definition = graph.definition();
    let order = definition.topological(graph.key());
    let place: HashMap<NodeKey, usize> = order.iter().copied().zip(0..).collect();
    assert_eq!(place.len(), graph.len(), "every node once");
    for (from, to, _) in definition.edges(graph.key()) {
        assert!(place[&from] < place[&to], "{from:?} comes before {to:?}");
    }
}

fn apply(graph: &Graph, reference: &mut Reference, edit: Edit) {
    let pick = |index: &prop::sample::Index, reference: &Reference| index.get(&reference.nodes).clone();
    match edit {
        Edit::Add(after) => {
            let mut before: Vec<Node> = Vec::new();
            if !reference.nodes.is_empty() {
                for index in &after {
                    let node = pick(index, reference);
                    if !before.contains(&node) {
                        before.push(node);
                    }
                }
            }
            let node = empty(graph, &before.iter().collect::<Vec<_>>());
            reference.edges.extend(before.into_iter().map(|from| (from, node.clone())));
            reference.nodes.push(node);
        }
        _ if reference.nodes.is_empty() => {}
        Edit::Delete(index) => {
            let node = pick(&index, reference);
            node.delete().unwrap();
            reference.nodes.retain(|other| *other != node);
            reference.edges.retain(|(from, to)| *from != node && *to != node);
        }
        Edit::Link(from, to) => {
            let (from, to) = (pick(&from, reference), pick(&to, reference));
            let closes_cycle = reference.reaches(&to, &from);
            match graph.add_edge(&from, &to, EdgeKind::Full) {
                Ok(()) => {
                    assert!(!closes_cycle, "{from:?} to {to:?} closes a cycle");
                    let edge = (from, to);
                    if !reference.edges.contains(&edge) {
                        reference.edges.push(edge);
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Cycle);
                    assert!(closes_cycle, "{from:?} to {to:?} closes no cycle");
                }
            }
        }
        Edit::Unlink(index) => {
            if reference.edges.is_empty() {
                return;
            }
            let (from, to) = reference.edges.remove(index.index(reference.edges.len()));
            assert!(graph.remove_edge(&from, &to).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cycles_are_caught_exactly_and_the_order_is_always_valid(edits in prop::collection::vec(edit(), 1..120)) {
        let (_, _, graph) = setup();
        let mut reference = Reference::default();
        for edit in edits {
            apply(&graph, &mut reference, edit);
            assert_valid_order(&graph);
            prop_assert_eq!(&graph.nodes(), &reference.nodes);
            for node in &reference.nodes {
                let to: Vec<Node> =
                    reference.edges.iter().filter(|edge| edge.0 == *node).map(|edge| edge.1.clone()).collect();
                let from: Vec<Node> =
                    reference.edges.iter().filter(|edge| edge.1 == *node).map(|edge| edge.0.clone()).collect();
                prop_assert_eq!(node.successors().unwrap(), to);
                prop_assert_eq!(node.predecessors().unwrap(), from);
            }
        }
        let (copy, map) = graph.deep_clone().unwrap();
        assert_valid_order(&copy);
        prop_assert_eq!(copy.nodes(), reference.nodes.iter().map(|node| map.get(node).unwrap()).collect::<Vec<_>>());
        // The copy is maintained on from where the original was.
        if let (Some(first), Some(last)) = (copy.nodes().first(), copy.nodes().last())
            && copy.add_edge(last, first, EdgeKind::Full).is_ok()
        {
            assert_valid_order(&copy);
        }
    }
}

#[test]
fn a_graph_linked_back_to_front_is_ordered_too() {
    const COUNT: usize = 20_000;
    for reversed in [false, true] {
        let (_, _, graph) = setup();
        let nodes: Vec<Node> = (0..COUNT).map(|_| empty(&graph, &[])).collect();
        let mut pairs: Vec<(&Node, &Node)> = nodes.windows(2).map(|pair| (&pair[1], &pair[0])).collect();
        if reversed {
            pairs.reverse();
        }
        for (from, to) in pairs {
            graph.add_edge(from, to, EdgeKind::Full).unwrap();
        }
        let order = graph.definition().topological(graph.key()).into_owned();
        let expected: Vec<NodeKey> = nodes.iter().rev().map(Node::key).collect();
        assert_eq!(order, expected);
        assert_error(graph.add_edge(&nodes[0], &nodes[COUNT - 1], EdgeKind::Full), ErrorKind::Cycle, &[]);
    }
}

#[test]
fn unconnected_nodes_are_ordered_as_they_were_added() {
    let (_, _, graph) = setup();
    let keys: Vec<NodeKey> = (0..100).map(|_| empty(&graph, &[]).key()).collect();
    assert_eq!(graph.definition().topological(graph.key()), keys);
}

#[test]
fn a_graph_linked_back_to_front_stays_in_order_where_it_is_copied_to() {
    let (_, stream, source) = setup();
    let nodes: Vec<Node> = (0..5).map(|_| empty(&source, &[])).collect();
    for pair in nodes.windows(2) {
        source.add_edge(&pair[1], &pair[0], EdgeKind::Full).unwrap();
    }
    let capture = stream.capture().unwrap();
    capture.add(Operation::Empty).unwrap();
    capture.inline(&source).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(graph.len(), 6);
    assert_valid_order(&graph);
    let child = graph.add_child(&[], &source).unwrap();
    assert_valid_order(&child.body_handle(0));
}

#[test]
fn a_definition_knows_the_kinds_it_ever_had_and_so_do_its_copies() {
    const EMPTY: NodeKinds = NodeKinds::of(&[NodeKind::Empty]);
    const CHILD: NodeKinds = NodeKinds::of(&[NodeKind::Child]);
    let (_, _, inner) = setup();
    assert!(!inner.definition().may_have(EMPTY));
    let node = empty(&inner, &[]);
    assert!(inner.definition().may_have(EMPTY) && !inner.definition().may_have(CHILD));
    let (copy, _) = inner.deep_clone().unwrap();
    node.delete().unwrap();
    assert!(inner.definition().may_have(EMPTY), "it was there once");
    assert!(copy.definition().may_have(EMPTY));
    let outer = Graph::new(copy.device());
    outer.add_child(&[], &copy).unwrap();
    assert!(outer.definition().may_have(EMPTY) && outer.definition().may_have(CHILD));
}
