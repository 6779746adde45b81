//! Measures whether threads run faster in groups or one after the other, where that depends on the
//! data.
//!
//! In a loop that threads leave at different times, a group makes as many passes as its slowest
//! thread. The code does not tell how many that are, nor how well a single thread predicts its
//! branches. So a large launch first runs some blocks in each way, by turns, and the others in the
//! faster one. The measurement is repeated after some hundred calls, because the data may have
//! changed, or was not in the caches at first. Each repetition that changes nothing doubles the
//! time until the next one. Nothing is measured before groups have run for some milliseconds:
//! short work does not wait for the code of single threads to be compiled.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How threads are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Groups,
    Alone,
}

/// Measurements of each way. Their medians are compared, because some are disturbed.
const SAMPLES: usize = 7;

/// Calls after which both ways are measured again, at first and at last.
const FIRST: u32 = 1 << 9;
const LAST: u32 = 1 << 14;

/// How long groups run before both ways are measured for the first time: about as long as compiling
/// a second time takes.
const WORTHWHILE: Duration = Duration::from_millis(3);

/// What has been measured of a kernel.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// How long groups have run, in nanoseconds, until that is long enough to measure.
    spent: AtomicU64,
    /// Whether threads alone were faster the last time.
    alone: AtomicBool,
    /// Calls until both ways are measured again; none while they are.
    calls: AtomicU32,
    measured: Mutex<Measured>,
}

#[derive(Debug, Default)]
struct Measured {
    /// Times of each way in picoseconds a thread.
    samples: [Vec<u64>; 2],
    /// Calls between the last two measurements of both ways.
    calls: u32,
}

impl Trial {
    /// Returns the way that was faster, or groups before that is known.
    pub(super) fn way(&self) -> Way {
        if self.alone.load(Ordering::Relaxed) { Way::Alone } else { Way::Groups }
    }

    /// Returns whether groups have run long enough for both ways to be measured.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.spent.load(Ordering::Relaxed) >= WORTHWHILE.as_nanos() as u64
    }

    /// Records how long a call ran before both ways are measured.
    pub(super) fn spend(&self, time: Duration) {
        self.spent.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns the way that the next call is to measure, if any.
    pub(super) fn next(&self) -> Option<Way> {
        let calls = self.calls.load(Ordering::Relaxed);
        if calls > 0 {
            // Calls of other threads at the same time may not be counted.
            self.calls.store(calls - 1, Ordering::Relaxed);
            return None;
        }
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let samples = &measured.samples;
        Some(if samples[0].len() <= samples[1].len() { Way::Groups } else { Way::Alone })
    }

    /// Counts more calls, where one has done the work of several.
    pub(super) fn count_more(&self, more: u32) {
        let calls = self.calls.load(Ordering::Relaxed);
        self.calls.store(calls.saturating_sub(more), Ordering::Relaxed);
    }

    /// Records how long so many threads took in a way.
    pub(super) fn record(&self, way: Way, time: Duration, threads: u32) {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let Measured { samples, calls } = &mut *measured;
        let picoseconds = time.as_nanos() as u64 * 1000 / u64::from(threads.max(1));
        samples[way as usize].push(picoseconds);
        if samples.iter().all(|samples| samples.len() >= SAMPLES) {
            let [groups, alone] = samples.each_mut().map(|samples| {
                samples.sort_unstable();
                samples[samples.len() / 2]
            });
            // The way that was taken stays unless the other one is clearly faster.
            let (is, was) = match self.way() {
                Way::Groups => (alone < groups / 10 * 9, false),
                Way::Alone => (alone / 10 * 9 <= groups, true),
            };
            *calls = if is == was { (*calls * 2).clamp(FIRST, LAST) } else { FIRST };
            self.alone.store(is, Ordering::Relaxed);
            self.calls.store(*calls, Ordering::Relaxed);
            samples.iter_mut().for_each(Vec::clear);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(trial: &Trial, [groups, alone]: [u64; 2]) {
        while let Some(way) = trial.next() {
            let time = if way == Way::Groups { groups } else { alone };
            trial.record(way, Duration::from_nanos(time), 10);
        }
    }

    #[test]
    fn the_faster_way_is_taken_until_both_are_measured_again() {
        let trial = Trial::default();
        assert_eq!(trial.way(), Way::Groups);
        measure(&trial, [1000, 500]);
        assert_eq!(trial.way(), Way::Alone);
        while trial.next().is_none() {}
        assert_eq!(trial.way(), Way::Alone, "while it is measured again");
        measure(&trial, [200, 500]);
        assert_eq!(trial.way(), Way::Groups);
    }

    #[test]
    fn nothing_is_worth_measuring_before_groups_have_run_for_some_time() {
        let trial = Trial::default();
        trial.spend(WORTHWHILE / 2);
        assert!(!trial.is_worthwhile());
        trial.spend(WORTHWHILE / 2);
        assert!(trial.is_worthwhile());
    }

    #[test]
    fn a_measurement_that_was_disturbed_does_not_decide() {
        let trial = Trial::default();
        let mut disturbed = 0;
        while let Some(way) = trial.next() {
            let time = match way {
                Way::Groups => 500,
                Way::Alone if disturbed < 3 => {
                    disturbed += 1;
                    4_000_000
                }
                Way::Alone => 100,
            };
            trial.record(way, Duration::from_nanos(time), 10);
        }
        assert_eq!(trial.way(), Way::Alone);
    }
}
