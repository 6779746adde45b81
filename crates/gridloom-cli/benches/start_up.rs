//! Measures how long the command takes from start to end: `gridloom demo heat` and, for comparison,
//! `gridloom devices`.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it found")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 21;

fn run(arguments: &[&str]) -> Duration {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_gridloom"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the command was built for this benchmark");
    let took = start.elapsed();
    assert!(status.success(), "gridloom {} failed: {status}", arguments.join(" "));
    took
}

fn main() {
    for arguments in [&["devices"][..], &["demo", "heat", "--device", "cpu"]] {
        run(arguments);
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| run(arguments)).collect();
        times.sort_unstable();
        println!(
            "gridloom {:<24} {:>8.1?} (fastest {:.1?})",
            arguments.join(" "),
            times[ROUNDS / 2],
            times[0]
        );
    }
}
