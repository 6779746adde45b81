//! Measures by turns, and prints rows of a table.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use gridloom::prelude::*;

/// Rounds whose times are thrown away: caches fill and the GPU wakes up.
const WARM_UP: usize = 2;

/// The rows that the command line asks for.
pub(crate) struct Table {
    /// Only rows whose name contains this are measured.
    filter: String,
    missed: Vec<String>,
}

/// What is compared: the baseline, and what it is compared with.
pub(crate) type Timed<'a> = &'a mut dyn FnMut() -> Result<Duration>;

impl Table {
    pub(crate) fn of_arguments(baseline: &str) -> Self {
        let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        println!("| work | {baseline} µs | optimised µs | ratio | aim | |\n|---|---|---|---|---|---|");
        Table { filter: filter.unwrap_or_default(), missed: Vec::new() }
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Measures both by turns, each coming first as often as the other. Prints the medians of the
    /// times, and the median of the ratios of rounds.
    pub(crate) fn compare(
        &mut self,
        (name, aim): (&str, f64),
        rounds: usize,
        baseline: Timed<'_>,
        optimized: Timed<'_>,
    ) -> Result<()> {
        let (mut slow, mut fast, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..WARM_UP + rounds {
            let (one, two) = if round % 2 == 0 {
                let one = baseline()?;
                (one, optimized()?)
            } else {
                let two = optimized()?;
                (baseline()?, two)
            };
            if round >= WARM_UP {
                ratios.push(two.as_secs_f64() / one.as_secs_f64());
                slow.push(one.as_secs_f64() * 1e6);
                fast.push(two.as_secs_f64() * 1e6);
            }
        }
        let ratio = median(ratios);
        let verdict = if ratio <= aim { "ok" } else { "MISSED" };
        if ratio > aim {
            self.missed.push(name.to_owned());
        }
        println!(
            "| {name} | {:.2} | {:.2} | {ratio:.3} | {aim:.2} | {verdict} |",
            median(slow),
            median(fast)
        );
        Ok(())
    }

    /// Prints why a row has no numbers.
    pub(crate) fn failed(&mut self, name: &str, error: &Error) {
        println!("| {name} | FAILED: {error} | | | | |");
        self.missed.push(name.to_owned());
    }

    pub(crate) fn end(&self) {
        if !self.missed.is_empty() {
            println!("\nmissed or failed: {}", self.missed.join("; "));
        }
    }
}

pub(crate) fn timed<R>(work: impl FnOnce() -> Result<R>) -> Result<(Duration, R)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed(), result))
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
