//! Every node runs once for each launch, after the nodes it depends on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::*;
use crate::random_numbers::Random;
use gridloom_core::backend::Device;
use gridloom_core::op::Operation;
use gridloom_core::{Graph, Node};

/// A graph of callbacks that note when they ran.
struct Trace {
    graph: Graph,
    clock: Arc<AtomicU64>,
    /// For each node, when it ran last and how often.
    ran: Vec<Arc<(AtomicU64, AtomicU32)>>,
    edges: Vec<(usize, usize)>,
    nodes: Vec<Node>,
}

impl Trace {
    fn new(device: &Arc<dyn Device>) -> Self {
        Trace { graph: Graph::new(device), clock: Arc::default(), ran: vec![], edges: vec![], nodes: vec![] }
    }

    fn add(&mut self, after: &[usize], pause: Option<Duration>) -> usize {
        let note: Arc<(AtomicU64, AtomicU32)> = Arc::default();
        let (clock, mine) = (self.clock.clone(), note.clone());
        let before: Vec<&Node> = after.iter().map(|&index| &self.nodes[index]).collect();
        let node = self
            .graph
            .add(
                &before,
                callback(move || {
                    pause.into_iter().for_each(std::thread::sleep);
                    mine.0.store(clock.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    mine.1.fetch_add(1, Ordering::SeqCst);
                }),
            )
            .unwrap();
        self.edges.extend(after.iter().map(|&from| (from, self.nodes.len())));
        self.nodes.push(node);
        self.ran.push(note);
        self.nodes.len() - 1
    }

    fn check(&self, launches: u32) {
        for (index, note) in self.ran.iter().enumerate() {
            assert_eq!(note.1.load(Ordering::SeqCst), launches, "node {index}");
        }
        for &(from, to) in &self.edges {
            let [from_at, to_at] = [from, to].map(|index| self.ran[index].0.load(Ordering::SeqCst));
            assert!(from_at < to_at, "{from} before {to}");
        }
    }

    fn launch_and_check(&self, launches: u32) {
        let stream = stream(self.graph.device());
        let executable = self.graph.instantiate().unwrap();
        for launch in 1..=launches {
            executable.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            self.check(launch);
        }
    }
}

fn random(device: &Arc<dyn Device>, nodes: usize, seed: u64, pauses: bool) -> Trace {
    let mut trace = Trace::new(device);
    let mut random = Random::new(seed);
    for index in 0..nodes {
        let mut after: Vec<usize> = (0..random.below(4).min(index))
            .map(|_| {
                let reach = if random.below(2) == 0 { 8 } else { index };
                index - 1 - random.below(reach.min(index))
            })
            .collect();
        after.sort_unstable();
        after.dedup();
        let pause =
            (pauses && random.below(4) == 0).then(|| Duration::from_micros(100 + random.below(300) as u64));
        trace.add(&after, pause);
    }
    trace
}

#[test]
fn random_graphs_respect_their_edges() {
    for (threads, nodes) in [(1, 500), (2, 10_000), (4, 10_000)] {
        random(&device(threads), nodes, 7 + threads as u64, false).launch_and_check(3);
    }
}

#[test]
fn random_graphs_that_are_worth_sharing_respect_their_edges() {
    // Pauses make the plan measure that several threads pay; from the second launch on it uses
    // them.
    for threads in [2, 4] {
        random(&device(threads), 300, 99, true).launch_and_check(4);
    }
}

#[test]
fn chains_fans_and_wavefronts_respect_their_edges() {
    let device = device(3);
    let mut chain = Trace::new(&device);
    let mut last = chain.add(&[], None);
    for _ in 0..1000 {
        last = chain.add(&[last], None);
    }
    chain.launch_and_check(2);

    let mut fan = Trace::new(&device);
    let first = fan.add(&[], None);
    let middle: Vec<usize> = (0..200).map(|_| fan.add(&[first], Some(Duration::from_micros(50)))).collect();
    fan.add(&middle, None);
    fan.launch_and_check(3);

    let mut wave = Trace::new(&device);
    let side = 20;
    for at in 0..side * side {
        let left = (at % side > 0).then(|| at - 1);
        let up = (at >= side).then(|| at - side);
        let after: Vec<usize> = left.into_iter().chain(up).collect();
        wave.add(&after, Some(Duration::from_micros(20)));
    }
    wave.launch_and_check(3);
}

#[test]
fn order_goes_through_nodes_without_work() {
    let device = device(4);
    for (before, after) in [(1, 1), (1, 30), (30, 1), (30, 30)] {
        let mut trace = Trace::new(&device);
        let first: Vec<usize> =
            (0..before).map(|_| trace.add(&[], Some(Duration::from_micros(100)))).collect();
        let nodes: Vec<&Node> = first.iter().map(|&index| &trace.nodes[index]).collect();
        let join = trace.graph.add(&nodes, Operation::Empty).unwrap();
        let again = trace.graph.add(&[&join], Operation::Empty).unwrap();
        for _ in 0..after {
            let index = trace.add(&[], Some(Duration::from_micros(50)));
            trace.nodes[index].after([&again]).unwrap();
            trace.edges.extend(first.iter().map(|&from| (from, index)));
        }
        trace.launch_and_check(4);
    }
}

#[test]
fn order_goes_through_embedded_graphs() {
    let device = device(4);
    let clock = Arc::new(AtomicU64::new(0));
    let note = |slot: &Arc<AtomicU64>| {
        let (slot, clock) = (slot.clone(), clock.clone());
        callback(move || {
            std::thread::sleep(Duration::from_micros(50));
            slot.store(clock.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        })
    };
    let slots: Vec<Arc<AtomicU64>> = (0..12).map(|_| Arc::default()).collect();
    let inner = Graph::new(&device);
    slots[4..8].iter().for_each(|slot| drop(inner.add(&[], note(slot)).unwrap()));
    let child = Graph::new(&device);
    child.add_child(&[], &inner).unwrap();
    let empty = Graph::new(&device);
    let graph = Graph::new(&device);
    let before: Vec<Node> = slots[..4].iter().map(|slot| graph.add(&[], note(slot)).unwrap()).collect();
    let first = graph.add_child(&before.iter().collect::<Vec<_>>(), &empty).unwrap();
    let second = graph.add_child(&[&first], &child).unwrap();
    let third = graph.add_child(&[&second], &empty).unwrap();
    slots[8..].iter().for_each(|slot| drop(graph.add(&[&third], note(slot)).unwrap()));

    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    for _ in 0..4 {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        let times: Vec<u64> = slots.iter().map(|slot| slot.load(Ordering::SeqCst)).collect();
        let max = |range: &[u64]| *range.iter().max().unwrap();
        let min = |range: &[u64]| *range.iter().min().unwrap();
        assert!(max(&times[..4]) < min(&times[4..8]), "{times:?}");
        assert!(max(&times[4..8]) < min(&times[8..]), "{times:?}");
    }
}

#[test]
fn launches_of_one_executable_from_several_threads_and_streams_do_not_overlap() {
    let device = device(3);
    let graph = Graph::new(&device);
    let (inside, most, total) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let enter = {
        let (inside, most) = (inside.clone(), most.clone());
        callback(move || {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(50));
        })
    };
    let leave = {
        let total = total.clone();
        callback(move || {
            inside.fetch_sub(1, Ordering::SeqCst);
            total.fetch_add(1, Ordering::SeqCst);
        })
    };
    let first = graph.add(&[], enter).unwrap();
    graph.add(&[&first], leave).unwrap();
    let executable = graph.instantiate().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let streams = [stream(&device), stream(&device)];
                for launch in 0..20 {
                    executable.launch(&streams[launch % 2]).unwrap();
                }
                streams.iter().for_each(|stream| stream.synchronize().unwrap());
            });
        }
    });
    assert_eq!((most.load(Ordering::SeqCst), total.load(Ordering::SeqCst)), (1, 80));
}

#[test]
fn a_graph_without_work_launches() {
    let device = device(2);
    run(&Graph::new(&device)).unwrap();
    let graph = Graph::new(&device);
    let first = graph.add(&[], Operation::Empty).unwrap();
    graph.add(&[&first], Operation::Empty).unwrap();
    run(&graph).unwrap();
}
