//! Several threads and one graph.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gridloom_core::graph::{EdgeKind, Node};
use gridloom_core::null::{CallKind, NullDevice};
use gridloom_core::op::{ConditionalForm, Operation};

use crate::common::*;

const EACH: usize = 2000;

#[test]
fn threads_that_build_one_graph_lose_nothing() {
    let (device, _, graph) = setup();
    let chains: Vec<Vec<Node>> = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut nodes = vec![empty(&graph, &[])];
                    for _ in 1..EACH {
                        nodes.push(kernel(&device, &graph, &[nodes.last().unwrap()]));
                    }
                    nodes
                })
            })
            .collect();
        builders.into_iter().map(|builder| builder.join().unwrap()).collect()
    });
    assert_eq!(graph.len(), 4 * EACH);
    let listed: HashSet<Node> = graph.nodes().into_iter().collect();
    assert_eq!(listed.len(), 4 * EACH);
    for chain in chains {
        for pair in chain.windows(2) {
            assert!(listed.contains(&pair[0]));
            assert_eq!(pair[1].predecessors().unwrap(), [pair[0].clone()]);
        }
    }
    graph.instantiate().unwrap();
}

#[test]
fn of_two_edges_that_would_close_a_cycle_together_exactly_one_is_added() {
    for _ in 0..200 {
        let (_, _, graph) = setup();
        let (a, b) = (empty(&graph, &[]), empty(&graph, &[]));
        let added = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let (graph, added) = (&graph, &added);
                scope.spawn(move || {
                    if graph.add_edge(from, to, EdgeKind::Full).is_ok() {
                        added.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!((added.into_inner(), graph.edges().len()), (1, 1));
    }
}

#[test]
fn of_two_uses_of_one_condition_exactly_one_succeeds() {
    for _ in 0..200 {
        let (_, _, graph) = setup();
        let condition = graph.condition(None);
        let test = || spec(ConditionalForm::If, gridloom_core::op::Test::Condition(condition.key()));
        let succeeded = std::thread::scope(|scope| {
            let attempts = [0, 1].map(|_| scope.spawn(|| graph.add_conditional(&[], test()).is_ok()));
            attempts.map(|attempt| attempt.join().unwrap())
        });
        assert_ne!(succeeded[0], succeeded[1]);
    }
}

#[test]
fn an_instantiation_during_edits_sees_the_graph_before_or_after_each() {
    let (_, _, graph) = setup();
    let last = empty(&graph, &[]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // One edit puts a node and both its edges between the ends; the next takes all of them
            // away.
            for _ in 0..EACH {
                let node = graph.add(&[], Operation::Empty).unwrap();
                let end = graph.add(&[&node, &last], Operation::Empty).unwrap();
                end.delete().unwrap();
                node.delete().unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut seen = HashSet::new();
        loop {
            let finished = done.load(Ordering::Acquire);
            let exec = graph.instantiate().unwrap();
            let definition = exec.definition();
            let nodes = definition.node_count(definition.root());
            let edges = definition.edges(definition.root());
            assert!(matches!((nodes, edges.len()), (1, 0) | (2, 0) | (3, 2)), "{nodes} nodes, {edges:?}");
            for (from, to, _) in edges {
                assert!(definition.get_node(from).is_some() && definition.get_node(to).is_some());
            }
            seen.insert(nodes);
            if finished {
                break;
            }
        }
        assert!(seen.contains(&1));
    });
}

/// Lets other threads in during each launch, and counts how often two launches were under way at
/// once.
fn count_overlaps(device: &NullDevice) -> Arc<AtomicUsize> {
    let (under_way, overlaps) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counted = overlaps.clone();
    device.observe(move |call| {
        if call.kind() == CallKind::Launch {
            counted.fetch_add(under_way.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
            (0..50).for_each(|_| std::thread::yield_now());
            under_way.fetch_sub(1, Ordering::SeqCst);
        }
    });
    overlaps
}

#[test]
fn launches_of_one_executable_from_many_threads_reach_the_device_one_at_a_time() {
    let (device, stream, graph) = setup();
    empty(&graph, &[]);
    let exec = graph.instantiate().unwrap();
    let overlaps = count_overlaps(&device);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| exec.launch(&stream).unwrap()));
        }
    });
    assert_eq!(device.count(CallKind::Launch), 200);
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
}

#[test]
fn of_two_executables_that_free_the_same_memory_exactly_one_is_launched() {
    use gridloom_core::graph::Graph;
    use gridloom_core::op::FreeTarget;
    for _ in 0..50 {
        let (device, stream, graph) = setup();
        count_overlaps(&device);
        let node = alloc(&graph, &[]);
        let owner = graph.instantiate().unwrap();
        owner.launch(&stream).unwrap();
        let memory = owner.outliving(&node).unwrap();
        let freeing = [0, 1].map(|_| {
            let graph = Graph::new(&device);
            graph.add(&[], Operation::Free(FreeTarget::Outliving(memory.clone()))).unwrap();
            graph.instantiate().unwrap()
        });
        let launched = std::thread::scope(|scope| {
            let launches = freeing.each_ref().map(|exec| scope.spawn(|| exec.launch(&stream).is_ok()));
            launches.map(|launch| launch.join().unwrap())
        });
        assert_ne!(launched[0], launched[1]);
    }
}
