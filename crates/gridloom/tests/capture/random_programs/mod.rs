//! Random programs over up to five streams, with events, forks, joins and conditionals: the same
//! results on the host, run directly on streams, and captured and then launched.

mod generate;
mod order;
mod perform;
mod program;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use gridloom::prelude::*;

use self::generate::generate;
use self::order::assert_ordered;
use self::perform::{Captured, Direct, perform};
use self::program::{CELLS, Program, State};
use crate::support::{GraphKernels, Random, for_each_device};

const PROGRAMS: u64 = 250;
const LAUNCHES: usize = 2;

/// The device's side of a program's state.
struct Cells {
    values: Vec<Buffer<i32>>,
    calls: Arc<AtomicU32>,
}

impl Cells {
    fn new(k: &GraphKernels, state: &State) -> Result<Self> {
        let values = state.cells.iter().map(|&value| k.value(value)).collect::<Result<_>>()?;
        Ok(Cells { values, calls: Arc::default() })
    }

    fn state(&self) -> Result<State> {
        let mut cells = [0; CELLS];
        for (cell, buffer) in cells.iter_mut().zip(&self.values) {
            *cell = buffer.to_vec()?[0];
        }
        Ok(State { cells, calls: self.calls.load(std::sync::atomic::Ordering::Relaxed) })
    }
}

fn directly(k: &GraphKernels, program: &Program, start: &State) -> Result<State> {
    let cells = Cells::new(k, start)?;
    for _ in 0..LAUNCHES {
        perform(program, &mut Direct::new(k, &cells)?)?;
        k.device.synchronize()?;
    }
    cells.state()
}

fn captured(k: &GraphKernels, program: &Program, start: &State, mode: ConditionalMode) -> Result<State> {
    let cells = Cells::new(k, start)?;
    let (graph, streams) = {
        let mut captured = Captured::new(k, &cells)?;
        perform(program, &mut captured)?;
        captured.end()?
    };
    assert!(streams.iter().all(|stream| !stream.is_capturing()), "every stream is an ordinary stream again");
    assert_ordered(&graph)?;
    let options = InstantiateOptions::new().conditional_mode(mode);
    let executable = graph.instantiate_with(&options)?;
    for _ in 0..LAUNCHES {
        executable.launch(&k.stream)?;
    }
    k.stream.synchronize()?;
    cells.state()
}

#[test]
fn a_random_program_gives_the_same_results_run_directly_and_captured() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        for seed in 0..PROGRAMS {
            let mut random = Random::new(seed);
            let program = generate(&mut random);
            let start = State::random(&mut random);
            let mut expected = start.clone();
            (0..LAUNCHES).for_each(|_| program.run(&mut expected));
            let explain = |error: Error| error.context(format_args!("program {seed}: {program:#?}"));
            assert_eq!(
                directly(&k, &program, &start).map_err(explain)?,
                expected,
                "directly, seed {seed}: {program:#?}"
            );
            for mode in [ConditionalMode::Auto, ConditionalMode::Hosted] {
                let found = captured(&k, &program, &start, mode).map_err(explain)?;
                assert_eq!(found, expected, "captured, {mode:?}, seed {seed}: {program:#?}");
            }
        }
        Ok(())
    });
}

#[test]
fn the_random_programs_make_use_of_everything() {
    let programs: Vec<String> =
        (0..PROGRAMS).map(|seed| format!("{:?}", generate(&mut Random::new(seed)))).collect();
    for word in [
        "Affine", "Mix", "Fill", "Copy", "Call", "Sync", "Fork", "Join", "If,", "IfElse", "While", "DoWhile",
        "Switch", "Repeat",
    ] {
        let users = programs.iter().filter(|program| program.contains(word)).count();
        assert!(users >= 10, "only {users} programs have {word}");
    }
}
