//! Measures two ways of doing the same in turns, and prints the table of results.

use gridloom::Result;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// Rounds whose times are thrown away: caches fill and the GPU wakes up.
const WARM_UP: usize = 2;

/// How slow Gridloom may be beside the driver.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// At most this many times the driver's time.
    Times(f64),
    /// At most this many times the driver's time, and this much more.
    TimesPlus(f64, Duration),
    /// Printed for information.
    None,
}

impl Aim {
    /// Returns what it says of these times.
    fn verdict(self, times: &Times) -> &'static str {
        let (at_most, more) = match self {
            Aim::Times(at_most) => (at_most, 0.0),
            Aim::TimesPlus(at_most, more) => (at_most, more.as_secs_f64()),
            Aim::None => return "",
        };
        if times.ratio(more) <= at_most { "ok" } else { "MISSED" }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Aim::Times(times) => format!("{times:.2}"),
            Aim::TimesPlus(times, more) => format!("{times:.2} + {more:?}"),
            Aim::None => String::new(),
        };
        f.pad(&text)
    }
}

/// How long both took in each round, in seconds for one unit.
struct Times {
    rounds: Vec<(f64, f64)>,
}

impl Times {
    fn gridloom(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.0))
    }

    fn driver(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.1))
    }

    /// Returns how many times as long Gridloom took, but for so many seconds. Within rounds, since
    /// a host that is at times half as fast as at others is mostly as fast within one.
    fn ratio(&self, but: f64) -> f64 {
        median(self.rounds.iter().map(|(gridloom, driver)| (gridloom - but) / driver))
    }
}

/// Every comparison made, one row each. Times are seconds for one unit of what the row names.
#[derive(Default)]
pub(crate) struct Table {
    rows: String,
    /// Only rows whose name has this in it are made.
    filter: String,
    /// Whether the driver does nothing: then there is nothing to be compared with, and no aim.
    is_idle: bool,
}

impl Table {
    /// Creates a table of the rows whose names contain `filter`.
    pub(crate) fn new(filter: String, is_idle: bool) -> Self {
        Table { rows: String::new(), filter, is_idle }
    }

    fn leaves_out(&self, what: &str) -> bool {
        !what.contains(&self.filter)
    }

    /// Times both by turns, each coming first as often as the other, and adds a row of medians: of
    /// the times, and of their ratio in each round.
    ///
    /// Each returns how long `units` units took.
    pub(crate) fn compare(
        &mut self,
        what: &str,
        aim: Aim,
        (rounds, units): (usize, usize),
        mut gridloom: impl FnMut() -> Result<Duration>,
        mut driver: impl FnMut() -> Result<Duration>,
    ) -> Result<()> {
        if self.leaves_out(what) {
            return Ok(());
        }
        let mut times = Times { rounds: Vec::new() };
        settle();
        by_turns((rounds, units), &mut times, &mut gridloom, &mut driver)?;
        self.add(what, aim, &times);
        Ok(())
    }

    /// Times both in turns, with an object that is made before each measurement. Two objects that
    /// are made alike differ: the device takes up to 15 % longer for a pass of a loop, and the host
    /// up to 25 % longer for a launch, depending on how many graphs were compiled before. So each
    /// side has one object at a time, and each is made first as often as the other.
    pub(crate) fn compare_made<A, B>(
        &mut self,
        what: &str,
        aim: Aim,
        (times, rounds, units): (usize, usize, usize),
        mut gridloom: (impl FnMut() -> Result<A>, impl FnMut(&A) -> Result<Duration>),
        mut driver: (impl FnMut() -> Result<B>, impl FnMut(&B) -> Result<Duration>),
    ) -> Result<()> {
        if self.leaves_out(what) {
            return Ok(());
        }
        let mut taken = Times { rounds: Vec::new() };
        for time in 0..times {
            settle();
            let (made, made_bare) = if time % 2 == 0 {
                let first = gridloom.0()?;
                (first, driver.0()?)
            } else {
                let first = driver.0()?;
                (gridloom.0()?, first)
            };
            by_turns((rounds, units), &mut taken, || gridloom.1(&made), || driver.1(&made_bare))?;
        }
        self.add(what, aim, &taken);
        Ok(())
    }

    fn add(&mut self, what: &str, aim: Aim, times: &Times) {
        let (gridloom, driver) = (times.gridloom(), times.driver());
        if self.is_idle {
            let (both, theirs) = (micros(gridloom), micros(driver));
            let ours = micros(gridloom - driver);
            let _ = writeln!(self.rows, "{what:<44}{both:>12}{theirs:>12}{ours:>12}");
            return;
        }
        let (ours, theirs) = (micros(gridloom), micros(driver));
        let (ratio, verdict) = (times.ratio(0.0), aim.verdict(times));
        // Writing to a string does not fail.
        let _ = writeln!(self.rows, "{what:<44}{ours:>12}{theirs:>12}{ratio:>8.3}  {aim:<13}{verdict}");
    }

    /// A row that says why there are no numbers.
    pub(crate) fn skip(&mut self, what: &str, why: &dyn fmt::Display) {
        if !self.leaves_out(what) {
            let _ = writeln!(self.rows, "{what:<44}{why}");
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_idle {
            writeln!(f, "{:<44}{:>12}{:>12}{:>12}", "µs", "Gridloom", "driver", "own part")?;
        } else {
            writeln!(f, "{:<44}{:>12}{:>12}{:>8}  aim", "µs", "Gridloom", "driver", "ratio")?;
        }
        f.write_str(&self.rows)
    }
}

/// Times both by turns, each coming first as often as the other.
fn by_turns(
    (rounds, units): (usize, usize),
    times: &mut Times,
    mut gridloom: impl FnMut() -> Result<Duration>,
    mut driver: impl FnMut() -> Result<Duration>,
) -> Result<()> {
    for round in 0..WARM_UP + rounds {
        let (ours, theirs) = if round % 2 == 0 {
            let first = gridloom()?;
            (first, driver()?)
        } else {
            let first = driver()?;
            (gridloom()?, first)
        };
        if round >= WARM_UP {
            let each = |took: Duration| took.as_secs_f64() / units as f64;
            times.rounds.push((each(ours), each(theirs)));
        }
    }
    Ok(())
}

/// Waits until what was dropped is let go of, so that this does not happen, on another thread,
/// during what is timed.
pub(crate) fn settle() {
    (0..3).for_each(|_| gridloom_cuda::release::flush());
}

fn micros(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e6)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
