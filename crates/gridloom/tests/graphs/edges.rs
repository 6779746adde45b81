//! Edges between nodes.

use std::collections::HashSet;

use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

/// Returns the edges as indices into the order of the nodes.
fn indices(graph: &Graph) -> Vec<(usize, usize)> {
    let nodes = graph.nodes();
    let index = |node: &Node| nodes.iter().position(|other| other == node).expect("of this graph");
    graph.edges().iter().map(|(from, to, _)| (index(from), index(to))).collect()
}

#[test]
fn small_shapes_list_their_nodes_and_edges_in_a_stable_order() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        assert!(graph.is_empty() && graph.nodes().is_empty() && graph.edges().is_empty());

        let top = graph.empty()?;
        assert_eq!((graph.len(), indices(&graph)), (1, vec![]));
        let (left, right) = (top.empty()?, top.empty()?);
        let bottom = graph.join([&left, &right])?;
        let alone = graph.empty()?;
        assert_eq!(graph.nodes(), [&top, &left, &right, &bottom, &alone].map(Clone::clone));
        assert_eq!(indices(&graph), [(0, 1), (0, 2), (1, 3), (2, 3)]);
        assert_eq!(top.successors()?, [left.clone(), right.clone()]);
        assert_eq!(bottom.predecessors()?, [left, right]);
        assert!(alone.predecessors()?.is_empty() && alone.successors()?.is_empty());
        Ok(())
    });
}

#[test]
fn all_of_130_nodes_and_20_neighbours_are_listed() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let hub = graph.empty()?;
        let spokes: Vec<Node> = (0..20).map(|_| hub.empty()).collect::<Result<_>>()?;
        let rim = graph.join(&spokes)?;
        let mut last = rim.clone();
        while graph.len() < 130 {
            last = last.empty()?;
        }
        assert_eq!((graph.nodes().len(), graph.edges().len()), (130, 20 + 20 + 108));
        assert_eq!(hub.successors()?, spokes);
        assert_eq!(rim.predecessors()?, spokes);
        assert_eq!(graph.nodes().into_iter().collect::<HashSet<Node>>().len(), 130);
        let stream = device.stream()?;
        graph.instantiate()?.launch(&stream)?;
        stream.synchronize()
    });
}

#[test]
fn a_join_takes_any_number_of_nodes_of_its_own_graph() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        assert!(graph.join([])?.predecessors()?.is_empty());
        let one = graph.empty()?;
        let only_one = std::slice::from_ref(&one);
        assert_eq!(graph.join([&one])?.predecessors()?, only_one);
        assert_eq!(graph.join([&one, &one])?.predecessors()?, only_one, "twice is once");
        let foreign = Graph::new(device).empty()?;
        refused(graph.join([&one, &foreign]), ErrorKind::WrongGraph, &["another graph"]);
        let inner = graph.repeat(1)?.body().empty()?;
        refused(graph.join([&inner]), ErrorKind::WrongGraph, &["another graph"]);
        Ok(())
    });
}

#[test]
fn edges_can_be_added_and_removed() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let (a, b, c) = (graph.empty()?, graph.empty()?, graph.empty()?);
        graph.add_edge(&a, &b, EdgeKind::Full)?;
        graph.add_edge(&a, &b, EdgeKind::Full)?;
        assert_eq!(indices(&graph), [(0, 1)], "a duplicate adds nothing");
        c.after([&a, &b])?;
        assert_eq!(indices(&graph), [(0, 1), (0, 2), (1, 2)]);
        assert!(graph.remove_edge(&a, &b)?);
        assert!(!graph.remove_edge(&a, &b)?);
        // Once the edge is gone, its reverse closes no cycle.
        graph.add_edge(&b, &a, EdgeKind::Full)?;
        assert_eq!(b.successors()?.len(), 2);
        Ok(())
    });
}

#[test]
fn edges_that_cannot_be_are_refused_and_leave_nothing_behind() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let a = graph.empty()?.named("a")?;
        let b = a.empty()?.named("b")?;
        let c = b.empty()?.named("c")?;
        let foreign = Graph::new(device).empty()?;
        let before = indices(&graph);
        refused(graph.add_edge(&a, &a, EdgeKind::Full), ErrorKind::Cycle, &["a", "itself"]);
        refused(graph.add_edge(&c, &a, EdgeKind::Full), ErrorKind::Cycle, &["from c to a", "cycle"]);
        refused(graph.add_edge(&foreign, &a, EdgeKind::Full), ErrorKind::WrongGraph, &["another graph"]);
        refused(a.after([&foreign]), ErrorKind::WrongGraph, &["another graph"]);
        let d = graph.empty()?;
        refused(a.after([&d, &c]), ErrorKind::Cycle, &["cycle"]);
        assert!(a.predecessors()?.is_empty(), "all edges are added or none");
        refused(graph.add_edge(&a, &b, EdgeKind::Programmatic), ErrorKind::InvalidArgument, &["kernel"]);
        let inner = graph.repeat(1)?.body().empty()?;
        refused(graph.add_edge(&a, &inner, EdgeKind::Full), ErrorKind::WrongGraph, &["another graph"]);
        assert_eq!(indices(&graph), before);
        Ok(())
    });
}

#[test]
fn a_programmatic_edge_joins_two_kernels_and_orders_them() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(1)?, kernels.value(5)?);
        let graph = Graph::new(device);
        let first = kernels.bump(&graph, &value, 10)?;
        let second = graph.launch(&kernels.mix, LaunchConfig::one(), (&value, &other, 1))?;
        graph.add_edge(&first, &second, EdgeKind::Programmatic)?;
        assert_eq!(graph.edges(), [(first.clone(), second.clone(), EdgeKind::Programmatic)]);
        graph.add_edge(&first, &second, EdgeKind::Full)?;
        assert_eq!(graph.edges(), [(first, second, EdgeKind::Full)], "the new kind replaces the old");
        kernels.run(&graph)?;
        assert_eq!(value.to_vec()?, [11 * 31 + 5]);
        Ok(())
    });
}

#[test]
fn nodes_run_after_all_they_depend_on() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        // Each node mixes its number into the cells of its predecessors' order: any other order
        // gives another result.
        let cells = kernels.buffer(&[1; 8])?;
        let numbers = kernels.buffer(&(1..=8).collect::<Vec<i32>>())?;
        let graph = Graph::new(device);
        let node = |place: &dyn Fn(i32) -> Result<Node>, k| place(k);
        let add = |k: i32| {
            let number = numbers.slice(k as usize..k as usize + 1)?;
            graph.launch(&kernels.mix, LaunchConfig::one(), (&cells.slice(..1)?, &number, 1))
        };
        let nodes: Vec<Node> = (0..8).map(|k| node(&add, k)).collect::<Result<_>>()?;
        // The chain 3, 1, 7, 0, 2, 6, 4, 5 against the order in which they were added.
        let chain = [3, 1, 7, 0, 2, 6, 4, 5];
        for pair in chain.windows(2) {
            graph.add_edge(&nodes[pair[0]], &nodes[pair[1]], EdgeKind::Full)?;
        }
        kernels.run(&graph)?;
        let expected = chain.iter().fold(1i32, |cell, &k| cell.wrapping_mul(31).wrapping_add(k as i32 + 1));
        assert_eq!(cells.to_vec()?[0], expected);
        Ok(())
    });
}

#[test]
fn a_deleted_node_takes_its_edges_along() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let a = graph.empty()?;
        let b = a.empty()?;
        let c = b.empty()?;
        b.delete()?;
        assert_eq!(graph.nodes(), [a.clone(), c.clone()]);
        assert!(a.successors()?.is_empty() && c.predecessors()?.is_empty() && graph.edges().is_empty());
        Ok(())
    });
}
