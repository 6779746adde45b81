//! Kernels on the CPU device beside the same computations written by hand in Rust with rayon, on
//! all cores.
//!
//! Both sides are measured by turns within one run and checked against each other first. `cargo
//! bench -p gridloom --bench cpu_kernels` compiles the hand-written side for any machine of the
//! architecture; `RUSTFLAGS="-C target-cpu=native"` in front for this one. Words after `--` choose
//! the kernels whose name contains one of them; `--quick` takes small sizes, which show that all
//! works and nothing else; `--alone` gives each side one thread, and tells the least time of each
//! instead of the median, to look at the code itself on a busy machine; `--processor-time` measures
//! the time of all threads on the processor, which other programs disturb less.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it found")]

mod cases;
#[path = "../clock/mod.rs"]
mod clock;
mod hand;

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cases::{CASES, Case, Rate};
use clock::Clock;
use gridloom::contract::{Axis, Contract, block, grid};
use gridloom::prelude::*;
use gridloom::{CpuOptions, Engine};

const ROUNDS: usize = 15;
/// Launches of the small sizes, where only the first is different.
const SMALL_ROUNDS: usize = 9;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the time of the clock that the arguments ask for.
fn now() -> Duration {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::of_arguments).now()
}

fn launch(case: &Case) -> Result<Duration> {
    let start = now();
    case.executable.launch(&case.stream)?;
    case.stream.synchronize()?;
    Ok(now() - start)
}

impl Rate {
    fn show(self, time: Duration) -> String {
        let (amount, unit) = match self {
            Rate::Bytes(bytes) => (bytes, "GB/s"),
            Rate::Operations(operations) => (operations, "GFLOP/s"),
        };
        format!("{:.2} {unit}", amount / time.as_secs_f64() / 1e9)
    }

    fn amount(self) -> f64 {
        let (Rate::Bytes(amount) | Rate::Operations(amount)) = self;
        amount
    }
}

/// Returns what the kernel says of itself under a name that contains this word.
fn said(case: &Case, word: &str) -> String {
    let found = case.info.iter().find(|(name, _)| name.contains(word));
    found.map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
}

/// Returns how much longer the first lookup and launch of a kernel take than a later launch: what
/// it costs to make it ready.
fn preparation(device: &Device, make: cases::Make, elements: usize) -> Result<Duration> {
    let case = make(device, elements)?;
    let first = launch(&case)?;
    let later = median((0..SMALL_ROUNDS).map(|_| launch(&case)).collect::<Result<_>>()?);
    Ok(case.lookup + first.saturating_sub(later))
}

/// A kernel of this many instructions that compute one after the other, in four chains.
fn long_kernel(instructions: usize) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry long(.param .u64 out) {\n.reg .f32 %f<4>; .reg .b32 %r<4>; .reg .b64 %rd<2>;\n",
    );
    text += "ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd0, %rd0, %rd1;\n";
    text += "ld.global.f32 %f0, [%rd0];\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\nmov.b32 %r1, 1;\n";
    for i in 0..instructions.saturating_sub(16) {
        let (a, b) = (i % 4, (i + 1) % 4);
        let _ = match i % 5 {
            0 => writeln!(text, "fma.rn.f32 %f{a}, %f{b}, %f{a}, 0f3F000000;"),
            1 => writeln!(text, "add.f32 %f{a}, %f{a}, %f{b};"),
            2 => writeln!(text, "mad.lo.u32 %r1, %r1, %r0, {i};"),
            3 => writeln!(text, "max.f32 %f{a}, %f{a}, %f{b};"),
            _ => writeln!(text, "xor.b32 %r1, %r1, %r0;"),
        };
    }
    // All chains are part of the result: of what nobody reads no code is made.
    text += "add.f32 %f0, %f0, %f1;\nadd.f32 %f2, %f2, %f3;\nadd.f32 %f0, %f0, %f2;\n";
    text + "cvt.rn.f32.u32 %f1, %r1;\nadd.f32 %f0, %f0, %f1;\nst.global.f32 [%rd0], %f0;\nret;\n}\n"
}

fn long_preparation(device: &Device, instructions: usize) -> Result<Duration> {
    let module = device.load_ptx(&long_kernel(instructions))?;
    let (stream, out) = (device.stream()?, device.buffer_from(&[1.0f32; 32])?);
    let start = Instant::now();
    let all_threads = Contract::new().holds(0, grid(Axis::X) * block(Axis::X));
    // SAFETY: each of the threads changes one of the elements of `out`.
    let kernel: Kernel<(PtrMut<f32>,)> = unsafe { module.kernel_with("long", all_threads)? };
    let lookup = start.elapsed();
    let mut times = Vec::new();
    for _ in 0..=SMALL_ROUNDS {
        let start = Instant::now();
        stream.launch(&kernel, LaunchConfig::new(1, 32), (&out,))?;
        stream.synchronize()?;
        times.push(start.elapsed());
    }
    let first = times.remove(0);
    Ok(lookup + first.saturating_sub(median(times)))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn main() -> Result<()> {
    // The harness passes `--bench`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let quick = std::env::args().any(|word| word == "--quick");
    let alone = std::env::args().any(|word| word == "--alone");
    if alone {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("nothing has used rayon yet");
    }
    let device = Device::cpu_with(CpuOptions::new().threads(alone.then_some(1)))?;
    let interpreter = Device::cpu_with(CpuOptions::new().engine(Engine::Interpreter))?;
    let features: Vec<&str> =
        [("avx2", cfg!(target_feature = "avx2")), ("fma", cfg!(target_feature = "fma"))]
            .into_iter()
            .filter_map(|(name, there)| there.then_some(name))
            .collect();
    println!(
        "{} threads; by hand compiled {}",
        rayon::current_num_threads(),
        if features.is_empty() {
            "for any machine".to_owned()
        } else {
            format!("with {}", features.join(", "))
        }
    );
    println!(
        "{:<27} {:>12} {:>12} {:>6} {:>15} {:>15} {:>11} {:>7} {:>12} {:>12} {:>14}",
        "kernel",
        "gridloom",
        "by hand",
        "ratio",
        "gridloom",
        "by hand",
        "compile",
        "instr.",
        "engine",
        "vectorised",
        "interpreter"
    );
    for (name, make, elements, few) in CASES {
        if !chosen.is_empty() && !chosen.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let ready = preparation(&device, make, few)?;
        let mut case = make(&device, if quick { few } else { elements })?;
        launch(&case)?;
        (case.by_hand)();
        let apart = (case.difference)()?;
        assert!(apart <= case.bound, "{name}: the results are {apart:e} apart, more than {:e}", case.bound);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    ours.push(launch(&case)?);
                } else {
                    let start = now();
                    (case.by_hand)();
                    theirs.push(now() - start);
                }
            }
        }
        let [ours, theirs] = [ours, theirs]
            .map(|times| if alone { times.into_iter().min().unwrap_or_default() } else { median(times) });
        let slow = make(&interpreter, few)?;
        launch(&slow)?;
        let slowest = median((0..3).map(|_| launch(&slow)).collect::<Result<_>>()?);
        // As often slower as the same amount of work takes longer.
        let times = slowest.as_secs_f64() / slow.rate.amount() / (ours.as_secs_f64() / case.rate.amount());
        println!(
            "{name:<27} {:>12} {:>12} {:>6.2} {:>15} {:>15} {:>11} {:>7} {:>12} {:>12} {:>14}",
            milliseconds(ours),
            milliseconds(theirs),
            theirs.as_secs_f64() / ours.as_secs_f64(),
            case.rate.show(ours),
            case.rate.show(theirs),
            milliseconds(ready),
            said(&case, "instructions"),
            said(&case, "engine"),
            said(&case, "vector"),
            format!("{times:.1}x slower"),
        );
    }
    if chosen.is_empty() || chosen.iter().any(|word| word == "compile") {
        // A kernel is compiled once, so each round needs a module of its own.
        for instructions in [50, 500, 5000] {
            let times =
                (0..SMALL_ROUNDS).map(|_| long_preparation(&device, instructions)).collect::<Result<_>>()?;
            println!("compile {instructions} instructions: {}", milliseconds(median(times)));
        }
    }
    Ok(())
}
