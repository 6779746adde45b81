//! The choice between one thread and several for a plan.
//!
//! The time of callbacks and kernels is unknown before they run. A plan therefore starts as its
//! estimate says and then measures. It keeps a mean time for each way. It tries the other way once
//! the current one takes long enough that sharing could pay off. From then on it takes the faster
//! way, and tries the other again now and then.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The launch time below which a launch ends before other threads have woken up.
const WORTH_NS: u64 = 30_000;
/// The task time below which handing a task over costs more than running it.
const TASK_NS: u64 = 1_000;
/// The task time below which a trial is not worthwhile either.
const TRIAL_NS: u64 = 100;
/// The number of launches after which the other way is tried again.
const AGAIN: u32 = 512;

/// Measurements of the two ways to run a plan. Only the thread that runs the plan writes them.
pub(super) struct Choice {
    parallel_first: bool,
    tasks: u64,
    launches: AtomicU32,
    /// The mean time of a launch in nanoseconds, on one thread and on several. 0 if not tried.
    mean: [AtomicU64; 2],
}

impl Choice {
    pub(super) fn new(estimate: u64, tasks: usize) -> Self {
        let tasks = tasks as u64;
        let parallel_first = estimate >= WORTH_NS && estimate / tasks >= TASK_NS;
        Choice { parallel_first, tasks, launches: AtomicU32::new(0), mean: Default::default() }
    }

    /// Returns whether the next launch runs on several threads.
    pub(super) fn parallel(&self) -> bool {
        let [alone, shared] = [0, 1].map(|way| self.mean[way].load(Ordering::Relaxed));
        let launches = self.launches.load(Ordering::Relaxed);
        let better = match (alone, shared) {
            (0, 0) => return self.parallel_first,
            // The other way is tried once the current one has proved to take long.
            (alone, 0) => return alone >= WORTH_NS && alone / self.tasks >= TRIAL_NS,
            (0, _) => return launches % AGAIN != 1,
            (alone, shared) => shared < alone,
        };
        if launches % AGAIN == AGAIN - 1 && alone.max(shared) < 4 * alone.min(shared) {
            return !better;
        }
        better
    }

    pub(super) fn note(&self, parallel: bool, nanoseconds: u64) {
        let mean = &self.mean[usize::from(parallel)];
        let old = mean.load(Ordering::Relaxed);
        let new = if old == 0 { nanoseconds } else { (3 * old + nanoseconds) / 4 };
        mean.store(new.max(1), Ordering::Relaxed);
        self.launches.store(self.launches.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_takes_long_is_tried_on_several_threads_and_the_faster_way_kept() {
        for (shared, parallel) in [(60_000, true), (400_000, false)] {
            let choice = Choice::new(0, 10);
            assert!(!choice.parallel(), "its estimate says it is short");
            choice.note(false, 100_000);
            assert!(choice.parallel());
            choice.note(true, shared);
            for _ in 0..100 {
                assert_eq!(choice.parallel(), parallel);
                choice.note(parallel, if parallel { shared } else { 100_000 });
            }
        }
    }

    #[test]
    fn a_plan_of_short_launches_or_short_tasks_stays_on_one_thread() {
        for (nanoseconds, tasks) in [(5_000, 4), (60_000, 10_000)] {
            let choice = Choice::new(0, tasks);
            for _ in 0..2000 {
                assert!(!choice.parallel());
                choice.note(false, nanoseconds);
            }
        }
    }

    #[test]
    fn an_estimate_of_long_tasks_goes_parallel_at_once() {
        assert!(Choice::new(1_000_000, 10).parallel());
        assert!(!Choice::new(1_000_000, 10_000).parallel());
    }

    #[test]
    fn the_other_way_is_tried_again_now_and_then() {
        let choice = Choice::new(0, 2);
        choice.note(false, 100_000);
        choice.note(true, 150_000);
        let tries = (0..AGAIN).filter(|_| {
            let parallel = choice.parallel();
            choice.note(parallel, if parallel { 150_000 } else { 100_000 });
            parallel
        });
        assert_eq!(tries.count(), 1);
    }
}
