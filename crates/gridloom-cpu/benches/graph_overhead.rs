//! What a graph costs besides its work: building, instantiating and replaying nodes that do (next
//! to) nothing, beside rayon driving the same dependencies in the same run.
//!
//! Three kinds of node:
//!
//! - *empty*: nodes without work. A plan leaves them out, so their replay measures the launch
//!   alone. Rayon runs a task for each.
//! - *fill*: a fill of 4 bytes of its own for each node. Rayon's tasks write the same 4 bytes.
//! - *call*: a callback that does nothing, through a mutex and a boxed closure. Rayon's tasks call
//!   the same through the same.
//!
//! `cargo bench -p gridloom-cpu --bench graph_overhead [-- [million] [SHAPE or KIND to leave out
//! the others]…]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gridloom_core::backend::Device;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{CallbackOp, MemsetOp, Operation};
use gridloom_core::{Graph, Node, Stream};
use gridloom_cpu::{CpuDevice, CpuOptions};
use parking_lot::Mutex;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Chain,
    Fan,
    Wavefront,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Empty,
    Fill,
    Call,
}

/// The predecessors of each node.
fn predecessors(shape: Shape, nodes: usize) -> Vec<Vec<u32>> {
    let side = nodes.isqrt();
    (0..nodes)
        .map(|node| match shape {
            Shape::Chain => node.checked_sub(1).into_iter().map(|node| node as u32).collect(),
            Shape::Fan if node == 0 => vec![],
            Shape::Fan if node == nodes - 1 => (1..node as u32).collect(),
            Shape::Fan => vec![0],
            Shape::Wavefront => {
                let left = (node % side > 0).then(|| node - 1);
                let up = node.checked_sub(side);
                left.into_iter().chain(up).map(|node| node as u32).collect()
            }
        })
        .collect()
}

fn build(device: &Arc<dyn Device>, before: &[Vec<u32>], kind: Kind, memory: &Region) -> Graph {
    let graph = Graph::new(device);
    let mut nodes: Vec<Node> = Vec::with_capacity(before.len());
    for (index, list) in before.iter().enumerate() {
        let operation = match kind {
            Kind::Empty => Operation::Empty,
            Kind::Call => Operation::Callback(CallbackOp::closure(|| {
                black_box(());
            })),
            Kind::Fill => {
                let dst = memory.part(4 * index as u64, 4).expect("room for each node");
                let op = MemsetOp { dst, value: 7, element_size: 4, width: 1, height: 1, pitch: 0 };
                Operation::Memset(Arc::new(op))
            }
        };
        let node = {
            let after: SmallVec<[&Node; 4]> = list.iter().map(|&node| &nodes[node as usize]).collect();
            graph.add(&after, operation).expect("a valid node")
        };
        nodes.push(node);
    }
    graph
}

/// The same dependencies for rayon: a counter for each task, and a spawn for each that becomes
/// ready.
struct Rayon {
    successors: Vec<Vec<u32>>,
    counts: Vec<u32>,
    pending: Vec<AtomicU32>,
    work: Work,
}

enum Work {
    Empty,
    Fill(Vec<AtomicU32>),
    #[allow(clippy::type_complexity, reason = "the shape of the core's closures, spelled out")]
    Call(Vec<Mutex<Box<dyn FnMut() + Send>>>),
}

impl Rayon {
    fn new(before: &[Vec<u32>], kind: Kind) -> Self {
        let mut successors = vec![Vec::new(); before.len()];
        for (to, list) in before.iter().enumerate() {
            list.iter().for_each(|&from| successors[from as usize].push(to as u32));
        }
        let counts: Vec<u32> = before.iter().map(|list| list.len() as u32).collect();
        Rayon {
            successors,
            pending: counts.iter().map(|&count| AtomicU32::new(count)).collect(),
            counts,
            work: match kind {
                Kind::Empty => Work::Empty,
                Kind::Fill => Work::Fill(before.iter().map(|_| AtomicU32::new(0)).collect()),
                Kind::Call => Work::Call(
                    before
                        .iter()
                        .map(|_| Mutex::new(Box::new(|| black_box(())) as Box<dyn FnMut() + Send>))
                        .collect(),
                ),
            },
        }
    }

    fn run(&self) {
        rayon::scope(|scope| {
            for (task, &count) in self.counts.iter().enumerate() {
                if count == 0 {
                    self.task(scope, task as u32);
                }
            }
        });
    }

    fn task<'a>(&'a self, scope: &rayon::Scope<'a>, mut task: u32) {
        loop {
            match &self.work {
                Work::Empty => _ = black_box(task),
                Work::Fill(memory) => memory[task as usize].store(7, Ordering::Relaxed),
                Work::Call(calls) => (calls[task as usize].lock())(),
            }
            // One successor goes on in place, as a careful user of rayon would write it.
            let mut next = None;
            for &successor in &self.successors[task as usize] {
                if self.pending[successor as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.pending[successor as usize]
                        .store(self.counts[successor as usize], Ordering::Relaxed);
                    if let Some(other) = next.replace(successor) {
                        scope.spawn(move |scope| self.task(scope, other));
                    }
                }
            }
            match next {
                Some(successor) => task = successor,
                None => return,
            }
        }
    }
}

/// The best of several rounds of `run`, each of `repeats` times, in nanoseconds for one.
fn best(repeats: usize, mut run: impl FnMut()) -> f64 {
    run();
    let mut least = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        (0..repeats).for_each(|_| run());
        least = least.min(start.elapsed());
    }
    least.as_nanos() as f64 / repeats as f64
}

fn measure(device: &Arc<dyn Device>, shape: Shape, nodes: usize, kind: Kind) {
    let before = predecessors(shape, nodes);
    let memory = Region::whole(device.allocate(4 * nodes as u64, MemoryKind::Device).expect("memory"));
    let repeats = (200_000 / nodes).clamp(1, 200);
    let build_ns = (0..repeats.clamp(3, 20)).fold(f64::MAX, |least, _| {
        let start = Instant::now();
        let graph = build(device, &before, kind, &memory);
        let elapsed = start.elapsed().as_nanos() as f64;
        drop(graph);
        least.min(elapsed)
    });
    let graph = build(device, &before, kind, &memory);
    let instantiate_ns = best(repeats.min(20), || drop(graph.instantiate().expect("a valid graph")));
    let executable = graph.instantiate().expect("a valid graph");
    let stream = Stream::new(device).expect("a stream");
    let replay_ns = best(repeats, || {
        executable.launch(&stream).expect("launches");
        stream.synchronize().expect("runs");
    });
    // Launches queued behind each other, as a program that does not wait for each would do it.
    let queued_ns = best(1, || {
        (0..repeats).for_each(|_| executable.launch(&stream).expect("launches"));
        stream.synchronize().expect("runs");
    }) / repeats as f64;
    let rayon = Rayon::new(&before, kind);
    let rayon_ns = best(repeats, || rayon.run());
    let per_node = |ns: f64| ns / nodes as f64;
    println!(
        "{:<10} {:<6} {nodes:>9} {:>9.1} {:>12.1} {:>9.2} {:>9.2} {:>9.2} {:>8.2}",
        format!("{shape:?}").to_lowercase(),
        format!("{kind:?}").to_lowercase(),
        per_node(build_ns),
        per_node(instantiate_ns),
        per_node(replay_ns),
        per_node(queued_ns),
        per_node(rayon_ns),
        rayon_ns / replay_ns,
    );
}

fn main() {
    let device: Arc<dyn Device> = CpuDevice::new(CpuOptions::default()).expect("a device");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |name: &str| arguments.iter().any(|argument| argument == name);
    let million = asked("million");
    let wanted =
        |names: &[&str], name: String| asked(&name.to_lowercase()) || !names.iter().any(|name| asked(name));
    println!("nanoseconds a node on {}; best of 5 rounds", device.name());
    println!("replay: launch and synchronize each time; queued: many launches, one synchronize;");
    println!(
        "empty nodes are left out of a plan, so their replay is the launch alone; rayon runs a task for each"
    );
    println!();
    println!(
        "{:<10} {:<6} {:>9} {:>9} {:>12} {:>9} {:>9} {:>9} {:>8}",
        "shape", "node", "nodes", "build", "instantiate", "replay", "queued", "rayon", "ratio"
    );
    for kind in [Kind::Empty, Kind::Fill, Kind::Call] {
        for shape in [Shape::Chain, Shape::Fan, Shape::Wavefront] {
            for nodes in [100, 10_000, 1_000_000] {
                let shape_wanted = wanted(&["chain", "fan", "wavefront"], format!("{shape:?}"));
                let kind_wanted = wanted(&["empty", "fill", "call"], format!("{kind:?}"));
                if shape_wanted && kind_wanted && (nodes < 1_000_000 || million) {
                    measure(&device, shape, nodes, kind);
                }
            }
        }
    }
}
