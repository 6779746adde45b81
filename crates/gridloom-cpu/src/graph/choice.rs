//! Whether a plan that could run on several threads does.
//!
//! How long callbacks and kernels take is not known before they have run, so a plan starts as its estimate says and learns
//! from the clock: it keeps a mean time for each way, tries the other way once the present one takes long enough that
//! sharing could pay, and from then on takes the faster, looking again now and then.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Below this a launch is over before others have woken up.
const WORTH_NS: u64 = 30_000;
/// Tasks shorter than this cost more to hand over than to run.
const TASK_NS: u64 = 1_000;
/// Every so many launches the other way is tried again.
const AGAIN: u32 = 512;

/// What is known of the two ways to run a plan. Only the thread that runs the plan writes.
pub(super) struct Choice {
    parallel_first: bool,
    launches: AtomicU32,
    /// Mean nanoseconds of a launch: on one thread, on several. 0 where not tried.
    mean: [AtomicU64; 2],
}

impl Choice {
    pub(super) fn new(estimate: u64, tasks: usize) -> Self {
        let parallel_first = estimate >= WORTH_NS && estimate / tasks as u64 >= TASK_NS;
        Choice { parallel_first, launches: AtomicU32::new(0), mean: Default::default() }
    }

    /// Whether the next launch goes parallel.
    pub(super) fn parallel(&self) -> bool {
        let [alone, shared] = [0, 1].map(|way| self.mean[way].load(Ordering::Relaxed));
        let launches = self.launches.load(Ordering::Relaxed);
        let better = match (alone, shared) {
            (0, 0) => return self.parallel_first,
            // The way not tried yet gets its turn once the other has shown that it takes long.
            (alone, 0) => return alone >= WORTH_NS,
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
