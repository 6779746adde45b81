//! Two ways of doing one thing, timed by turns, and the table of what came out.

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
    fn allows(self, gridloom: f64, driver: f64) -> bool {
        match self {
            Aim::Times(times) => gridloom <= times * driver,
            Aim::TimesPlus(times, more) => gridloom <= times * driver + more.as_secs_f64(),
            Aim::None => true,
        }
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
    /// A table of the rows that the command line asks for.
    pub(crate) fn of_arguments(is_idle: bool) -> Self {
        let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
        Table { rows: String::new(), filter: filter.unwrap_or_default(), is_idle }
    }

    fn leaves_out(&self, what: &str) -> bool {
        !what.contains(&self.filter)
    }

    /// Times both by turns, each coming first as often as the other, and adds a row of their medians.
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
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        settle();
        by_turns(rounds, (&mut ours, &mut theirs), &mut gridloom, &mut driver)?;
        self.add(what, aim, median(ours) / units as f64, median(theirs) / units as f64);
        Ok(())
    }

    /// The same for what is done with something that is made first, again and again. What is made alike is not alike: the device takes up to 15 % longer for a pass of a
    /// loop, and the host up to 25 % longer for a launch, depending on how many graphs were compiled before, whoever made them. So each side has one at a time, and each is
    /// made first as often as the other.
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
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for time in 0..times {
            settle();
            let (made, made_bare) = if time % 2 == 0 {
                let first = gridloom.0()?;
                (first, driver.0()?)
            } else {
                let first = driver.0()?;
                (gridloom.0()?, first)
            };
            let kept = (&mut ours, &mut theirs);
            by_turns(rounds, kept, || gridloom.1(&made), || driver.1(&made_bare))?;
        }
        self.add(what, aim, median(ours) / units as f64, median(theirs) / units as f64);
        Ok(())
    }

    fn add(&mut self, what: &str, aim: Aim, gridloom: f64, driver: f64) {
        if self.is_idle {
            let (both, theirs) = (micros(gridloom), micros(driver));
            let ours = micros(gridloom - driver);
            let _ = writeln!(self.rows, "{what:<44}{both:>12}{theirs:>12}{ours:>12}");
            return;
        }
        let verdict = match aim {
            Aim::None => "",
            _ if aim.allows(gridloom, driver) => "ok",
            _ => "MISSED",
        };
        let (ours, theirs) = (micros(gridloom), micros(driver));
        let ratio = gridloom / driver;
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
    rounds: usize,
    (ours, theirs): (&mut Vec<Duration>, &mut Vec<Duration>),
    mut gridloom: impl FnMut() -> Result<Duration>,
    mut driver: impl FnMut() -> Result<Duration>,
) -> Result<()> {
    for round in 0..WARM_UP + rounds {
        let times = if round % 2 == 0 {
            let first = gridloom()?;
            (first, driver()?)
        } else {
            let first = driver()?;
            (gridloom()?, first)
        };
        if round >= WARM_UP {
            ours.push(times.0);
            theirs.push(times.1);
        }
    }
    Ok(())
}

/// Waits until what was dropped is let go of, so that this does not happen, on another thread, during what is timed.
pub(crate) fn settle() {
    (0..3).for_each(|_| gridloom_cuda::release::flush());
}

fn micros(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e6)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}
