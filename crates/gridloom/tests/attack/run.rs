//! The number of rounds of the attack, and their devices.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gridloom::prelude::*;

use super::choices::Choices;
use super::round::{Opened, PrintWorld, Round};
use super::token::{Intended, call_in};
use crate::support::{for_each_engine, for_each_gpu};

/// Set for the process that attacks itself.
const OWN_PROCESS: &str = "GRIDLOOM_ATTACK_PROCESS";
/// Steps of each thread in a round.
const STEPS: usize = 150;
/// Bytes that a CPU device may have in use.
const MEMORY: u64 = 256 << 20;

/// Returns whether nothing but the attack runs in this process.
pub(crate) fn is_alone() -> bool {
    std::env::var_os(OWN_PROCESS).is_some()
}

/// Returns whether an operation or a behaviour was asked to be left out, to tell what a find needs.
pub(crate) fn is_left_out(what: &str) -> bool {
    static LEFT_OUT: OnceLock<Vec<String>> = OnceLock::new();
    let left_out = LEFT_OUT.get_or_init(|| {
        let text = std::env::var("GRIDLOOM_ATTACK_WITHOUT").unwrap_or_default();
        text.split(',').map(str::to_owned).collect()
    });
    left_out.iter().any(|left_out| left_out == what)
}

/// A number of the environment.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn round() -> Round {
    Round {
        seed: number("GRIDLOOM_ATTACK_SEED").unwrap_or(1),
        threads: number("GRIDLOOM_ATTACK_THREADS").unwrap_or(4) as usize,
        steps: number("GRIDLOOM_ATTACK_STEPS").map_or(STEPS, |steps| steps as usize),
        only: std::env::var("GRIDLOOM_ATTACK_ONLY").ok().map(|text| Arc::new(steps_of(&text))),
        bytes: None,
        patience: Duration::from_secs(number("GRIDLOOM_ATTACK_PATIENCE").unwrap_or(60)),
        lazy_threads: 0,
    }
}

/// Reads `0:3,1:17`: step 3 of thread 0 and step 17 of thread 1.
fn steps_of(text: &str) -> Vec<(usize, usize)> {
    let step = |text: &str| {
        let (thread, step) = text.split_once(':')?;
        Some((thread.parse().ok()?, step.parse().ok()?))
    };
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| step(part).unwrap_or_else(|| panic!("{part} is no thread:step"))).collect()
}

/// Returns whether a device was asked for.
fn is_chosen(device: &str) -> bool {
    std::env::var("GRIDLOOM_ATTACK_DEVICE").map_or(true, |part| device.contains(&part))
}

/// Runs one round, or ends the process with what it found.
fn attack(round: &Round, device: &str, open: impl FnOnce(&PrintWorld) -> Result<Opened>) -> usize {
    round.run(device, open).unwrap_or_else(|found| {
        eprintln!("FOUND on {device}: {found}");
        eprintln!(
            "again: GRIDLOOM_ATTACK_SEED={} GRIDLOOM_ATTACK_THREADS={} GRIDLOOM_ATTACK_DEVICE='{device}' cargo test -p gridloom --test suite attack",
            round.seed, round.threads
        );
        std::process::exit(2);
    })
}

/// A CPU device whose kernels print into a sink that does anything.
fn open_cpu(options: CpuOptions, checked: bool, print: &PrintWorld) -> Result<Opened> {
    let world = print.clone();
    let sink = move |bytes: &[u8]| {
        let Some(world) = world.lock().upgrade() else { return };
        assert_eq!(bytes, b"hello\n");
        let choices = &mut Choices::seeded(world.calls.fetch_add(1, Ordering::SeqCst) as u64);
        match choices.below(8) {
            0 => Intended::panic(choices),
            1..=3 => call_in(&world, choices),
            _ => {}
        }
    };
    let options = options.checked(checked).memory_limit(MEMORY).step_limit(50_000_000).node_limit(20_000);
    let device = Device::cpu_with(options.print(sink))?;
    let other = CpuOptions::new().threads(1).engine(Engine::Interpreter).memory_limit(MEMORY);
    let other = Device::cpu_with(other)?;
    Ok((device, Some(other)))
}

/// One round on each device. Returns the operations done.
fn once(round: &Round) -> usize {
    let operations = AtomicUsize::new(0);
    let count = |done| {
        operations.fetch_add(done, Ordering::Relaxed);
    };
    for_each_engine(|options| {
        for checked in [false, true] {
            // One worker, and several.
            let threads = 1 + (round.seed % 3) as usize;
            let options = options.clone().threads(threads);
            let name = format!("{:?}{}", options.engine, if checked { " checked" } else { "" });
            if is_chosen(&name) {
                count(attack(round, &name, |print| open_cpu(options, checked, print)));
            }
        }
        Ok(())
    });
    for_each_gpu(|device| {
        let name = device.name();
        if is_chosen(&name) {
            let round = Round { lazy_threads: 8, ..round.clone() };
            count(attack(&round, &name, |_| Ok((device.clone(), Some(Device::cpu()?)))));
        }
        Ok(())
    });
    operations.into_inner()
}

/// One thread that does what the bytes say, on the interpreter: one of the inputs of a fuzzer.
#[allow(dead_code, reason = "for the fuzz target")]
pub(crate) fn run_bytes(bytes: &[u8]) {
    let round = Round { threads: 1, steps: 300, bytes: Some(Arc::new(bytes.to_vec())), ..round() };
    let options = CpuOptions::new().engine(Engine::Interpreter).threads(1);
    if let Err(found) = round.run("bytes", |print| open_cpu(options, true, print)) {
        eprintln!("FOUND: {found}");
        std::process::abort();
    }
}

#[test]
fn random_operations_from_several_threads_break_nothing() {
    // In a process of its own: a crash ends that one, and threads and panics of other tests are
    // none of its business.
    if !is_alone() && !cfg!(miri) {
        let test = "attack::run::random_operations_from_several_threads_break_nothing";
        let status = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", test, "--nocapture"])
            .env(OWN_PROCESS, "1")
            .status()
            .expect("this program starts");
        assert!(status.success(), "{status}; what was found is above");
        return;
    }
    let mut round = round();
    let Some(seconds) = number("GRIDLOOM_ATTACK_SECONDS") else {
        eprintln!("attack: seed {}, {} operations", round.seed, once(&round));
        return;
    };
    let repeats = number("GRIDLOOM_ATTACK_REPEAT").is_some_and(|repeats| repeats > 0);
    let (start, mut operations, mut rounds) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        operations += once(&round);
        rounds += 1;
        if rounds % 20 == 0 {
            let seed = round.seed;
            eprintln!(
                "attack: {:?}, {rounds} rounds, {operations} operations, at seed {seed}",
                start.elapsed()
            );
        }
        if !repeats {
            round.seed += 1;
        }
    }
    eprintln!("attack: {rounds} rounds, {operations} operations, nothing found");
}
