//! Kernels on the CPU device beside the same kernels in OpenCL C on PoCL, by turns on the same
//! cores.
//!
//! `scripts/compare-pocl` runs it and says how PoCL is installed. Words after `--` choose the
//! kernels whose name contains one of them; `--quick` takes small sizes, which show that all works
//! and nothing else; `--processor-time` measures the time of all threads on the processor instead
//! of the time that passes, which other programs disturb less. Both sides start from the same data
//! and are compared first. A ratio is PoCL's time divided by Gridloom's: more than 1 is faster than
//! PoCL.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints what it found")]

mod cases;
#[path = "../clock/mod.rs"]
mod clock;
mod families;
mod integers;
mod opencl;
mod programs;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cases::{Case, Value};
use clock::Clock;
use gridloom::kernel::Arg;
use gridloom::prelude::*;
use opencl::{ClBuffer, ClKernel, OpenCl};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measurements of each side of each kernel.
const TURNS: usize = 9;
/// How long one measurement should take: launches are repeated up to it.
const MEASUREMENT: Duration = Duration::from_millis(40);

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Floats(values) => Some(values.iter().flat_map(|value| value.to_ne_bytes()).collect()),
        Value::Doubles(values) => Some(values.iter().flat_map(|value| value.to_ne_bytes()).collect()),
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Number(_) | Value::Real(_) => None,
    }
}

/// The kernel on Gridloom's CPU device, as a graph of one node.
struct Ours {
    stream: Stream,
    executable: Executable,
    buffers: Vec<Buffer<u8>>,
    ready: Duration,
}

impl Ours {
    fn new(device: &Device, modules: &[Module], case: &Case) -> Result<Self> {
        let module = modules.iter().find(|module| module.kernel_names().iter().any(|name| name == case.name));
        let module = module.ok_or_else(|| format!("no module has a kernel {}", case.name))?;
        let start = Instant::now();
        let kernel = module.untyped_kernel(case.name)?;
        let lookup = start.elapsed();
        let mut buffers = Vec::new();
        let mut args = Vec::new();
        for value in &case.args {
            match value {
                Value::Number(number) => args.push(Arg::value(*number)),
                Value::Real(number) => args.push(Arg::value(*number)),
                memory => {
                    let buffer = device.buffer_from(&bytes_of(memory).unwrap_or_default())?;
                    args.push(Arg::memory(&buffer)?);
                    buffers.push(buffer);
                }
            }
        }
        let graph = Graph::new(device);
        let config = LaunchConfig::new(case.grid, case.block);
        // SAFETY: sizes and lengths of each case are those that its kernel expects.
        unsafe { graph.launch_untyped(&kernel, config, args)? };
        let stream = device.stream()?;
        let executable = graph.instantiate()?;
        let ours = Self { stream, executable, buffers, ready: Duration::ZERO };
        let start = Instant::now();
        ours.run()?;
        let ready = lookup + start.elapsed();
        Ok(Self { ready, ..ours })
    }

    fn run(&self) -> Result<()> {
        self.executable.launch(&self.stream)?;
        Ok(self.stream.synchronize()?)
    }
}

/// The kernel on PoCL.
struct Theirs {
    kernel: ClKernel,
    buffers: Vec<ClBuffer>,
    ready: Duration,
}

impl Theirs {
    fn new(opencl: &OpenCl, case: &Case) -> Result<Self> {
        let kernel = opencl.kernel(case.name, case.grid, case.block)?;
        let mut buffers = Vec::new();
        for (index, value) in (0u32..).zip(&case.args) {
            match value {
                Value::Number(number) => opencl.set_bytes(&kernel, index, &number.to_ne_bytes())?,
                Value::Real(number) => opencl.set_bytes(&kernel, index, &number.to_ne_bytes())?,
                memory => {
                    let buffer = opencl.buffer(&bytes_of(memory).unwrap_or_default())?;
                    opencl.set_buffer(&kernel, index, &buffer)?;
                    buffers.push(buffer);
                }
            }
        }
        let start = Instant::now();
        opencl.run(&kernel)?;
        Ok(Self { kernel, buffers, ready: start.elapsed() })
    }
}

/// Compares what both sides left in memory after their first run.
fn compare(case: &Case, ours: &Ours, theirs: &Theirs, opencl: &OpenCl) -> Result<()> {
    let memories = case.args.iter().filter(|value| bytes_of(value).is_some());
    for (index, (value, (mine, other))) in memories.zip(ours.buffers.iter().zip(&theirs.buffers)).enumerate()
    {
        let (mine, other) = (mine.to_vec()?, opencl.read(other)?);
        let differs = |position: usize, a: f64, b: f64| -> Result<()> {
            let close = (a - b).abs() <= case.tolerance * (1.0 + a.abs().max(b.abs()));
            if close || (a.is_nan() && b.is_nan()) {
                return Ok(());
            }
            Err(format!("{}: memory {index}, element {position}: {a} and {b}", case.name).into())
        };
        match value {
            Value::Floats(_) => {
                let pairs = mine.chunks_exact(4).zip(other.chunks_exact(4)).enumerate();
                for (position, (a, b)) in pairs {
                    let float =
                        |bytes: &[u8]| f64::from(f32::from_ne_bytes(bytes.try_into().unwrap_or_default()));
                    differs(position, float(a), float(b))?;
                }
            }
            Value::Doubles(_) => {
                let pairs = mine.chunks_exact(8).zip(other.chunks_exact(8)).enumerate();
                for (position, (a, b)) in pairs {
                    let float = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().unwrap_or_default());
                    differs(position, float(a), float(b))?;
                }
            }
            _ => {
                // Contraction may move a comparison by a rounding: a few elements in ten thousand
                // may differ.
                let different = mine.iter().zip(&other).filter(|(a, b)| a != b).count();
                if different * 2000 > mine.len() {
                    return Err(format!(
                        "{}: memory {index}: {different} of {} bytes differ",
                        case.name,
                        mine.len()
                    )
                    .into());
                }
            }
        }
    }
    Ok(())
}

fn timed(clock: Clock, times: u32, mut run: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = clock.now();
    for _ in 0..times {
        run()?;
    }
    Ok((clock.now() - start) / times)
}

fn median<T: PartialOrd + Copy>(values: &mut [T]) -> T {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values[values.len() / 2]
}

fn main() -> ExitCode {
    match compare_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare_all() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let clock = Clock::of_arguments();
    let quick = words.iter().any(|word| word == "--quick");
    let chosen: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let opencl = OpenCl::open(concat!(
        include_str!("kernels.cl"),
        include_str!("idioms.cl"),
        include_str!("families.cl"),
        include_str!("programs.cl"),
        include_str!("integers.cl")
    ))?;
    let device = Device::cpu()?;
    let modules = [
        include_str!("kernels.ptx"),
        include_str!("idioms.ptx"),
        include_str!("families.ptx"),
        include_str!("programs.ptx"),
        include_str!("integers.ptx"),
    ];
    let modules =
        modules.into_iter().map(|ptx| device.load_ptx(ptx)).collect::<gridloom::Result<Vec<_>>>()?;
    println!("PoCL: {}", opencl.version);
    println!(
        "{:<16} {:<40} {:>11} {:>11} {:>6} {:>10} {:>10}",
        "kernel", "family", "Gridloom", "PoCL", "ratio", "ready", "PoCL"
    );
    let (mut logarithms, mut least, mut count) = (0.0, f64::INFINITY, 0u32);
    for case in cases::all(quick) {
        if !chosen.is_empty() && !chosen.iter().any(|word| case.name.contains(word.as_str())) {
            continue;
        }
        let ours = Ours::new(&device, &modules, &case)?;
        let theirs = Theirs::new(&opencl, &case)?;
        compare(&case, &ours, &theirs, &opencl)?;
        let once =
            timed(Clock::Wall, 1, || ours.run())?.max(timed(Clock::Wall, 1, || opencl.run(&theirs.kernel))?);
        let times =
            if quick { 1 } else { (MEASUREMENT.as_nanos() / once.as_nanos().max(1)).clamp(1, 1000) as u32 };
        let (mut mine, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let a = timed(clock, times, || ours.run())?;
            let b = timed(clock, times, || opencl.run(&theirs.kernel))?;
            mine.push(a);
            other.push(b);
            ratios.push(b.as_secs_f64() / a.as_secs_f64());
        }
        let ratio = median(&mut ratios);
        println!(
            "{:<16} {:<40} {:>8.3} ms {:>8.3} ms {:>6.2} {:>7.1} ms {:>7.1} ms",
            case.name,
            case.family,
            median(&mut mine).as_secs_f64() * 1e3,
            median(&mut other).as_secs_f64() * 1e3,
            ratio,
            ours.ready.as_secs_f64() * 1e3,
            theirs.ready.as_secs_f64() * 1e3,
        );
        logarithms += ratio.ln();
        least = least.min(ratio);
        count += 1;
        theirs.buffers.into_iter().for_each(|buffer| opencl.release(buffer));
    }
    if count == 0 {
        return Err("no kernel has such a name".into());
    }
    println!(
        "geometric mean {:.2}, least {least:.2}, {count} kernels",
        (logarithms / f64::from(count)).exp()
    );
    Ok(())
}
