//! Random kernels, made from a seed, run by every engine and compared bit for bit.
//!
//! `GRIDLOOM_RANDOM_PTX=10000` runs more of them, `GRIDLOOM_RANDOM_PTX_FROM=7` starts with another
//! seed than 0. A difference is made small and printed as a file for `tests/ptx`;
//! `GRIDLOOM_RANDOM_PTX_FILES=folder` writes the files there instead and goes on.

mod atomics;
mod buffers;
mod disturbance;
mod floating;
mod generate;
mod integer;
mod meeting;
mod memory;
mod minimise;
mod print;
mod program;
mod renaming;
mod rows;
mod run;
mod scattered;
mod tiles;
mod warps;

use gridloom::prelude::*;
use gridloom::{CpuOptions, Engine};

use minimise::{minimise, test_file};
use program::Program;
use run::{Outcome, run};

/// Programs that a plain test run tries.
const DEFAULT_PROGRAMS: u64 = 300;
/// Far more than any of them executes.
const STEPS: u64 = 100_000_000;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// Returns what defines the results: the interpreter, which also sees to it that programs stay
/// within their memory.
fn reference() -> Device {
    let options = CpuOptions::new().engine(Engine::Interpreter).checked(true).threads(1).step_limit(STEPS);
    Device::cpu_with(options).expect("the CPU is always there")
}

/// Returns what is compared with it: each with how many programs it skips from one to the next.
fn others() -> Vec<(&'static str, u64, Device)> {
    let open = |engine, threads| {
        Device::cpu_with(CpuOptions::new().engine(engine).threads(threads)).expect("the CPU is always there")
    };
    vec![
        ("compiled", 1, open(Engine::Jit, 1)),
        ("compiled, with three workers", 8, open(Engine::Jit, 3)),
        ("interpreted, with three workers", 8, open(Engine::Interpreter, 3)),
    ]
}

#[test]
fn every_engine_computes_what_the_interpreter_does() {
    let first = variable("GRIDLOOM_RANDOM_PTX_FROM").unwrap_or(0);
    let count = variable("GRIDLOOM_RANDOM_PTX").unwrap_or(DEFAULT_PROGRAMS);
    let folder = std::env::var_os("GRIDLOOM_RANDOM_PTX_FILES");
    let (reference, others) = (reference(), others());
    let mut found = 0;
    for seed in first..first + count {
        if seed > first && (seed - first).is_multiple_of(1000) {
            use std::io::Write;
            // Past the capture of test output: a long run is watched.
            let _ = writeln!(std::io::stderr(), "{} programs, {found} differences", seed - first);
        }
        let program = Program::random(seed, true);
        let expected = match run(&reference, &program) {
            Ok(expected) => expected,
            Err(error) => panic!("the program of seed {seed} is not valid: {error}\n{}", program.text()),
        };
        for (name, every, device) in &others {
            if !seed.is_multiple_of(*every) {
                continue;
            }
            let outcome = run(device, &program);
            if outcome.as_ref() == Ok(&expected) {
                continue;
            }
            found += 1;
            let shows = |program: &Program| match run(&reference, program) {
                Ok(expected) => same_kind(&outcome, &run(device, program), &expected),
                Err(_) => false,
            };
            let small = minimise(program.clone(), &shows);
            let expected = run(&reference, &small).expect("it ran a moment ago");
            let complaint = describe(&run(device, &small), &expected);
            let file = test_file(&small, seed, &expected);
            match &folder {
                Some(folder) => {
                    let path = std::path::Path::new(folder).join(format!("random_{seed}.ptx"));
                    std::fs::write(&path, file).expect("the folder for differences can be written to");
                    use std::io::Write;
                    let _ =
                        writeln!(std::io::stderr(), "seed {seed}, {name}: {complaint}: {}", path.display());
                }
                None => panic!("seed {seed}, {name}: {complaint}\n{file}"),
            }
        }
    }
    assert_eq!(found, 0, "programs with a difference");
}

#[test]
fn the_generator_writes_every_family_of_instructions() {
    const FAMILIES: &str = "abs. add. add.cc. addc. and. atom. bar.arrive bar.red. bar.sync bar.warp.sync barrier.sync bfe. bfi. bfind. \
        bmsk. bra bra.uni brev. brx.idx brx.idx.uni call clz. cnot. copysign. cos. cp.async. cvt. cvt.pack. cvta. div. div.full. dp2a. \
        dp4a. elect.sync ex2. exit fma. fns. isspacep. ld.const ld.global ld.global.nc ld.local ld.param ld.shared ld. lg2. lop3. \
        mad. mad.lo.cc. mad24. madc. match.all match.any max. min. mov. mul. mul.wide mul24. neg. not. or. popc. prmt. rcp. red. redux. rem. \
        ret rsqrt. sad. selp. set. setp. shf. shfl.sync.bfly shfl.sync.down shfl.sync.idx shfl.sync.up shl. shr. sin. slct. sqrt. \
        st.global st.local st.shared st. sub. sub.cc. subc. szext. tanh. testp. vote.sync. xor.";
    let mut text = String::new();
    // Some are rare.
    for seed in 0..4 * DEFAULT_PROGRAMS {
        text += &Program::random(seed, true).text();
    }
    for family in FAMILIES.split_whitespace() {
        let plain = format!("    {family}");
        let guarded = text.contains(&format!("%p1 {family}"));
        assert!(guarded || text.contains(&plain), "no {family}");
    }
}

#[test]
fn a_program_without_approximations_has_none() {
    for seed in 0..DEFAULT_PROGRAMS {
        let text = Program::random(seed, false).text();
        assert!(!text.contains(".approx") && !text.contains(".full"), "seed {seed}");
    }
}

#[test]
fn a_program_is_valid_whatever_its_registers_hold() {
    let first = variable("GRIDLOOM_RANDOM_PTX_FROM").unwrap_or(0);
    let count = variable("GRIDLOOM_RANDOM_PTX").unwrap_or(DEFAULT_PROGRAMS);
    let reference = reference();
    for seed in first..first + count {
        let program = disturbance::disturbed(Program::random(seed, true), seed);
        if let Err(error) = run(&reference, &program) {
            panic!("the program of seed {seed} relies on registers: {error}\n{}", program.text());
        }
    }
}

#[test]
fn a_difference_is_made_small() {
    let (reference, mut tried) = (reference(), 0);
    for (seed, wanted) in
        (0..DEFAULT_PROGRAMS).flat_map(|seed| [(seed, "popc.b64"), (seed, "match.any.sync.b32 %m")])
    {
        let shows = |program: &Program| program.text().contains(wanted) && run(&reference, program).is_ok();
        let program = Program::random(seed, true);
        if tried < 2 && shows(&program) {
            tried += 1;
            let small = minimise(program, &shows);
            assert!(shows(&small));
            let lines = small.text().lines().count();
            assert!(lines < 130, "{wanted} of seed {seed} in {lines} lines:\n{}", small.text());
            let expected = run(&reference, &small).expect("a small program is valid too");
            assert!(test_file(&small, seed, &expected).contains("// RUN: kernel=random"));
        }
    }
    assert_eq!(tried, 2);
}

/// For other readers of PTX to try, such as an assembler.
#[test]
#[ignore = "writes files: set GRIDLOOM_RANDOM_PTX_FILES to a folder"]
fn programs_can_be_written_out() {
    let folder =
        std::env::var_os("GRIDLOOM_RANDOM_PTX_FILES").expect("GRIDLOOM_RANDOM_PTX_FILES names a folder");
    let first = variable("GRIDLOOM_RANDOM_PTX_FROM").unwrap_or(0);
    for seed in first..first + variable("GRIDLOOM_RANDOM_PTX").unwrap_or(DEFAULT_PROGRAMS) {
        let path = std::path::Path::new(&folder).join(format!("program_{seed}.ptx"));
        std::fs::write(path, Program::random(seed, true).text()).expect("the folder can be written to");
    }
}

/// Returns whether an outcome is wrong, and in the same way as another: by its values, or by an
/// error.
fn same_kind(first: &Outcome, outcome: &Outcome, expected: &[Vec<u8>]) -> bool {
    match (first, outcome) {
        (Ok(_), Ok(buffers)) => buffers != expected,
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn describe(outcome: &Outcome, expected: &[Vec<u8>]) -> String {
    let buffers = match outcome {
        Ok(buffers) => buffers,
        Err(error) => return error.clone(),
    };
    for (index, (got, expected)) in buffers.iter().zip(expected).enumerate() {
        if let Some(at) = got.iter().zip(expected).position(|(got, expected)| got != expected) {
            let word = |bytes: &[u8]| -> String {
                bytes[at & !3..].iter().take(4).rev().map(|byte| format!("{byte:02x}")).collect()
            };
            let name = buffers::BUFFERS[index % buffers::BUFFERS.len()];
            return format!("{name}+{} holds {}, not {}", at & !3, word(got), word(expected));
        }
    }
    "the same when run again".to_owned()
}
