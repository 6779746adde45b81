//! Kernels in Rust beside the same kernels from CUDA C++, on every device.
//!
//! Each kernel has three forms: the PTX that NVRTC makes of CUDA C++; Rust with its checks; Rust
//! with the indices promised to be in range (`load_unchecked`). They are measured by turns within
//! one run, and compared first. Words after `--` choose the kernels whose name contains one of
//! them; `--quick` takes small sizes, which show that all works and nothing else. `--ptx` prints
//! the PTX of the kernels in Rust. `--processor-time` measures the time of all threads on the
//! processor instead of the time that passes, for the CPU device of a busy machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it found")]

mod cases;
#[path = "../clock/mod.rs"]
mod clock;
#[allow(clippy::needless_range_loop, reason = "the loops are those of the CUDA C++ sources")]
mod kernels;

use std::time::Duration;

use cases::{CASES, Case};
use clock::Clock;
use gridloom::prelude::*;

const ROUNDS: usize = 15;

fn launch(clock: Clock, executable: &Executable, stream: &Stream, times: usize) -> Result<Duration> {
    let start = clock.now();
    for _ in 0..times {
        executable.launch(stream)?;
    }
    stream.synchronize()?;
    Ok((clock.now() - start) / times as u32)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The time of a launch from CUDA C++ in milliseconds, and the medians of the ratios of the two
/// others to it, round by round.
fn measure(clock: Clock, case: &Case, stream: &Stream) -> Result<(f64, f64, f64)> {
    let forms = [&case.cuda, &case.promised, &case.checked];
    let first = launch(clock, forms[0], stream, 1)?;
    // Short launches are measured several at a time.
    let times = (Duration::from_millis(2).as_nanos() / first.as_nanos().max(1)).clamp(1, 200) as usize;
    let (mut base, mut promised, mut checked) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let mut taken = [0.0; 3];
        for turn in 0..3 {
            let form = (round + turn) % 3;
            taken[form] = launch(clock, forms[form], stream, times)?.as_secs_f64();
        }
        base.push(taken[0] * 1e3);
        promised.push(taken[1] / taken[0]);
        checked.push(taken[2] / taken[0]);
    }
    Ok((median(base), median(promised), median(checked)))
}

fn main() -> Result<()> {
    // The harness passes `--bench`.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let quick = std::env::args().any(|word| word == "--quick");
    let devices = [Device::cuda(0), Device::cpu()];
    for device in devices.into_iter().flatten() {
        println!("{}", device.name());
        let clock =
            if device.kind() == gridloom::DeviceKind::Cpu { Clock::of_arguments() } else { Clock::Wall };
        println!(
            "{:<22} {:>14} {:>16} {:>12} {:>12}",
            "kernel", "from CUDA C++", "Rust, promised", "Rust", "difference"
        );
        for (name, make, elements, small) in CASES {
            if !chosen.is_empty() && !chosen.iter().any(|word| name.contains(word.as_str())) {
                continue;
            }
            let stream = device.stream()?;
            let case = make(&device, if quick { small } else { elements })?;
            for form in [&case.cuda, &case.checked, &case.promised] {
                launch(clock, form, &stream, 1)?;
            }
            let difference = (case.difference)()?;
            assert!(difference <= case.bound, "{name}: the results differ by {difference:e}");
            let (base, promised, checked) = measure(clock, &case, &stream)?;
            println!("{name:<22} {base:>11.3} ms {promised:>15.3}x {checked:>11.3}x {difference:>12.1e}");
        }
    }
    Ok(())
}
