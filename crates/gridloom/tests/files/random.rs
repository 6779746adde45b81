//! Random graphs, saved on one device and run on another.
//!
//! `GRIDLOOM_RANDOM_FILES=2000` saves more of them, `GRIDLOOM_RANDOM_SEED=7` the one with that
//! seed. With both, the seeds begin there.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use gridloom::prelude::*;

use super::load;
use crate::random_graphs::build::Builder;
use crate::random_graphs::model::Model;
use crate::random_graphs::program::{Program, Step, StepList};
use crate::random_graphs::variable;
use crate::support::{GraphKernels, Random, for_each_device};

/// Graphs that a plain test run saves for each pair of devices.
const DEFAULT_GRAPHS: u64 = 40;

#[test]
fn random_graphs_give_the_same_results_from_a_file_on_another_device() {
    let seeds = match (variable("GRIDLOOM_RANDOM_SEED"), variable("GRIDLOOM_RANDOM_FILES")) {
        (Some(seed), graphs) => seed..seed.saturating_add(graphs.unwrap_or(1)),
        (None, graphs) => 0..graphs.unwrap_or(DEFAULT_GRAPHS),
    };
    let cpu = |engine| Device::cpu_with(CpuOptions::new().engine(engine).threads(2)).unwrap();
    let others = [cpu(Engine::Interpreter), cpu(Engine::Jit)];
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        for seed in seeds.clone() {
            // With each other device in turn.
            let other = &others[seed as usize % 2];
            check(&kernels, other, seed).map_err(|error| {
                error.context(format_args!("seed {seed} (run it alone with GRIDLOOM_RANDOM_SEED={seed})"))
            })?;
        }
        Ok(())
    });
}

/// Removes what a file cannot hold.
fn without_callbacks(block: &mut StepList) {
    block.0.retain(|step| !matches!(step, Step::Callback { .. }));
    for step in &mut block.0 {
        match step {
            Step::Child(body)
            | Step::Repeat { body, .. }
            | Step::WhileNonzero { body, .. }
            | Step::While { body, .. } => without_callbacks(body),
            Step::If { bodies, .. } | Step::Switch { bodies, .. } => {
                bodies.iter_mut().for_each(without_callbacks);
            }
            _ => {}
        }
    }
}

fn check(kernels: &GraphKernels, other: &Device, seed: u64) -> Result<()> {
    let mut program = Program::random(seed);
    without_callbacks(&mut program.body);
    let mut random = Random::new(!seed);
    let initial: Vec<Vec<i32>> =
        program.externals().map(|len| random.vec(len, |random| random.between(-3, 5) as i32)).collect();
    let buffers: Vec<Buffer<i32>> =
        initial.iter().map(|values| kernels.buffer(values)).collect::<Result<_>>()?;
    let graph = Graph::new(&kernels.device);
    let called = Arc::new(AtomicU64::new(0));
    Builder::new(kernels, &program, &buffers, &called, random.u64()).add(&graph, &program.body)?;

    let mut saver = graph.saver();
    for (index, buffer) in buffers.iter().enumerate() {
        saver = saver.input(&format!("b{index}"), buffer)?.output(&format!("b{index}"), buffer)?;
    }
    let bytes = saver.to_bytes()?;
    let loaded = load(&bytes, other)?;
    assert!(loaded.saver().to_bytes()? == bytes, "seed {seed}: saved again, the file differs");
    // And back to the device it came from.
    let back = load(&loaded.saver().to_bytes()?, &kernels.device)?;

    let mut model = Model::new(&program, initial);
    model.run(&program.body);
    for loaded in [&loaded, &back] {
        super::run(loaded.graph())?;
        for (index, expected) in model.externals().enumerate() {
            let found = loaded.buffer::<i32>(&format!("b{index}"))?.to_vec()?;
            assert_eq!(&found, expected, "seed {seed}, buffer {index} on {}", loaded.graph().device().name());
        }
    }
    Ok(())
}
