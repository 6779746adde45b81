//! Random graphs, built from a seed, run on every device and compared with a plain reference on the
//! host.
//!
//! `GRIDLOOM_RANDOM_GRAPHS=10000` runs more of them, and `GRIDLOOM_RANDOM_FIRST=5000` those from
//! this seed on; `GRIDLOOM_RANDOM_SEED=7` runs the one with that seed; `GRIDLOOM_RANDOM_TRACE=1`
//! names each seed before its graph runs, which tells the one that never ends, and shows the
//! program of a single one; `GRIDLOOM_RANDOM_STEPS=0,3` leaves only these of its outermost steps.
//! `GRIDLOOM_RANDOM_EACH_PASS=1` runs each graph with all passes of the optimiser, with each alone
//! and with none; `GRIDLOOM_RANDOM_THREADS=16` uses several threads.

pub(crate) mod build;
mod generate;
pub(crate) mod model;
pub(crate) mod program;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gridloom::prelude::*;
use gridloom::{Hazard, Optimization, Optimizations};

use crate::support::{GraphKernels, Random, for_each_device};
use build::Builder;
use model::Model;
use program::Program;

/// Graphs that a plain test run tries on each device.
const DEFAULT_GRAPHS: u64 = 300;

pub(crate) fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

#[test]
fn random_graphs_compute_what_a_plain_program_does() {
    let seeds = match variable("GRIDLOOM_RANDOM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = variable("GRIDLOOM_RANDOM_FIRST").unwrap_or(0);
            first..first + variable("GRIDLOOM_RANDOM_GRAPHS").unwrap_or(DEFAULT_GRAPHS)
        }
    };
    let trace = variable("GRIDLOOM_RANDOM_TRACE").is_some();
    if trace && seeds.end - seeds.start == 1 {
        let _ = writeln!(std::io::stderr(), "{:#?}", kept(Program::random(seeds.start)));
    }
    let passes: Vec<Option<Optimizations>> = match variable("GRIDLOOM_RANDOM_EACH_PASS").unwrap_or(0) {
        0 => vec![None],
        _ => {
            let each = Optimization::ALL.iter().map(|&pass| Optimizations::of(&[pass]));
            each.chain([Optimizations::ALL, Optimizations::NONE]).map(Some).collect()
        }
    };
    let threads = variable("GRIDLOOM_RANDOM_THREADS").unwrap_or(1).max(1);
    for_each_device(|device| {
        let run = |thread: u64| -> Result<()> {
            let kernels = GraphKernels::new(device)?;
            for seed in seeds.clone().filter(|seed| seed % threads == thread) {
                if trace {
                    // A direct write: the harness shows what it captured only after the end.
                    let _ = writeln!(std::io::stderr(), "seed {seed} on {}", device.name());
                }
                for &passes in &passes {
                    if let Err(complaint) = check(&kernels, seed, passes) {
                        panic!(
                            "{complaint}\npasses: {passes:?}\nrun it alone with GRIDLOOM_RANDOM_SEED={seed}; \
                             the program is\n{:#?}",
                            Program::random(seed)
                        );
                    }
                }
            }
            Ok(())
        };
        let run = &run;
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
            all.into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    });
}

/// The graphs have every kind of node, at every depth. Their steps are ordered where they touch the
/// same buffer.
#[test]
fn the_check_reports_nothing_about_random_graphs_and_a_pair_without_an_order_where_an_edge_was_needed() {
    for_each_device(|device| {
        let mut needed = 0;
        let kernels = GraphKernels::new(device)?;
        for seed in 0..1000 {
            let program = Program::random(seed);
            let mut random = Random::new(seed);
            let buffers: Vec<Buffer<i32>> =
                program.externals().map(|len| device.alloc(len)).collect::<Result<_>>()?;
            let graph = Graph::new(device);
            let called = Arc::new(AtomicU64::new(0));
            Builder::new(&kernels, &program, &buffers, &called, random.u64()).add(&graph, &program.body)?;
            let found = graph.check();
            assert!(found.is_empty() && found.complete, "seed {seed}: {found}");

            let edges = graph.edges();
            if edges.is_empty() {
                continue;
            }
            let (from, to, _) = &edges[random.below(edges.len())];
            graph.remove_edge(from, to)?;
            for finding in graph.check().findings {
                let (Hazard::Unordered { edge: (one, other), .. }
                | Hazard::UnorderedCondition { edge: (one, other), .. }) = &finding
                else {
                    panic!("seed {seed}: {finding}");
                };
                let node = |key| graph.nodes().into_iter().find(|node| node.key() == key);
                let (one, other) = (node(*one).expect("a node"), node(*other).expect("a node"));
                let are_apart = !precedes(&one, &other)? && !precedes(&other, &one)?;
                assert!(are_apart, "seed {seed}: {finding}");
                needed += 1;
            }
        }
        assert!(needed > 300, "{needed}");
        Ok(())
    });
}

/// Returns whether a path leads from one node to the other.
fn precedes(one: &Node, other: &Node) -> Result<bool> {
    let mut seen = std::collections::HashSet::new();
    let mut open = vec![one.clone()];
    while let Some(node) = open.pop() {
        if node == *other {
            return Ok(true);
        }
        for next in node.successors()? {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Ok(false)
}

#[test]
fn the_generator_makes_every_kind_of_step_at_every_depth() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..DEFAULT_GRAPHS {
        Program::random(seed).body.visit(&mut |step, depth| {
            seen.insert((step.name(), depth.min(3)));
        });
    }
    for name in program::STEP_NAMES {
        assert!(seen.contains(&(name, 0)) && seen.contains(&(name, 2)), "no {name} at depth 0 or 2");
    }
    assert!(
        seen.iter().any(|(name, depth)| name.contains("while") && *depth == 2),
        "loops nested three deep"
    );
}

/// Returns the program without the outermost steps that `GRIDLOOM_RANDOM_STEPS` leaves out.
fn kept(mut program: Program) -> Program {
    if let Ok(list) = std::env::var("GRIDLOOM_RANDOM_STEPS") {
        let kept: Vec<usize> = list.split(',').filter_map(|number| number.trim().parse().ok()).collect();
        let mut number = 0..;
        program.body.0.retain(|_| number.next().is_some_and(|number| kept.contains(&number)));
    }
    program
}

/// Runs the graph of a seed as often as the seed says, and says what differs from the reference.
fn check(
    kernels: &GraphKernels,
    seed: u64,
    passes: Option<Optimizations>,
) -> std::result::Result<(), String> {
    run(kernels, seed, passes).map_err(|error| format!("the graph of seed {seed} fails: {error}"))?
}

fn run(
    kernels: &GraphKernels,
    seed: u64,
    passes: Option<Optimizations>,
) -> Result<std::result::Result<(), String>> {
    let program = kept(Program::random(seed));
    // Another sequence than the program's own.
    let mut random = Random::new(!seed);
    let initial: Vec<Vec<i32>> =
        program.externals().map(|len| random.vec(len, |random| random.between(-3, 5) as i32)).collect();
    let buffers: Vec<Buffer<i32>> =
        initial.iter().map(|values| kernels.buffer(values)).collect::<Result<_>>()?;
    let called = Arc::new(AtomicU64::new(0));

    let graph = Graph::new(&kernels.device);
    let mut builder = Builder::new(kernels, &program, &buffers, &called, random.u64());
    builder.add(&graph, &program.body)?;
    let mut counted = builder.into_counted();
    let graph = match random.below(4) {
        0 => {
            let (copy, map) = graph.deep_clone()?;
            for (node, _) in &mut counted {
                *node = map.get(node).expect("every node is copied");
            }
            copy
        }
        1 => {
            counted.clear();
            let outer = Graph::new(&kernels.device);
            outer.embed(&graph)?;
            outer
        }
        _ => graph,
    };
    let conditional_mode = if random.one_in(3) { ConditionalMode::Hosted } else { ConditionalMode::Auto };
    let count_passes = !counted.is_empty();
    let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(count_passes);
    let options = match passes {
        Some(passes) => options.optimize(passes),
        None => options,
    };
    let executable = graph.instantiate_with(&options)?;
    drop(graph);

    let mut model = Model::new(&program, initial);
    for launch in 0..1 + random.below(3) {
        executable.launch(&kernels.stream)?;
        kernels.stream.synchronize()?;
        model.run(&program.body);
        for (index, (buffer, expected)) in buffers.iter().zip(model.externals()).enumerate() {
            let got = buffer.to_vec()?;
            let differs = got.iter().zip(expected).position(|(got, expected)| got != expected);
            if let Some(at) = differs {
                let (got, expected) = (got[at], expected[at]);
                return Ok(Err(format!(
                    "seed {seed}, launch {launch}: element {at} of buffer {index} is {got}, not {expected}"
                )));
            }
        }
        let (calls, expected) = (called.load(Ordering::SeqCst), model.called);
        if calls != expected {
            return Ok(Err(format!(
                "seed {seed}, launch {launch}: callbacks counted {calls}, not {expected}"
            )));
        }
        for (node, number) in &counted {
            let (passes, expected) = (executable.passes(node)?, model.passes(*number));
            if passes != expected {
                let label = node.label();
                return Ok(Err(format!(
                    "seed {seed}, launch {launch}: {label} made {passes} passes, not {expected}"
                )));
            }
        }
    }
    Ok(Ok(()))
}
