//! The time that the global timer shows: that of the host, or one that nodes of graphs advance by
//! fixed amounts.

use super::graphs::Work;
use parking_lot::Mutex;
use std::sync::LazyLock;
use std::time::Instant;

/// What nodes of graphs take in nanoseconds. Kernels and transfers run in different places.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub kernel: u64,
    pub fill: u64,
    pub copy: u64,
    /// What going from a kernel to a fill or copy, or back, takes.
    pub switch: u64,
    /// The same in the body of a conditional.
    pub switch_in_body: u64,
    /// What every other way to a fill or copy, at random, takes longer.
    pub detour: u64,
}

struct Clock {
    times: Times,
    now: u64,
    /// Whether the latest node was a fill or copy.
    is_at_transfers: bool,
    /// Decides which ways take longer.
    random: u64,
}

static CLOCK: Mutex<Option<Clock>> = Mutex::new(None);

/// Has nodes of graphs take fixed times, until this is dropped.
pub struct FixedTimes(());

impl FixedTimes {
    pub fn new(times: Times) -> Self {
        *CLOCK.lock() = Some(Clock { times, now: 1, is_at_transfers: false, random: 1 });
        Self(())
    }

    pub fn now(&self) -> u64 {
        nanoseconds()
    }
}

impl Drop for FixedTimes {
    fn drop(&mut self) {
        *CLOCK.lock() = None;
    }
}

/// Adds what a node takes, before it runs.
pub fn spend(work: &Work, in_body: bool) {
    let mut clock = CLOCK.lock();
    let Some(Clock { times, now, is_at_transfers, random }) = &mut *clock else { return };
    let (own, is_transfer) = match work {
        Work::Kernel(call) => (times.kernel + call.rounds(), false),
        Work::Fill(_) => (times.fill, true),
        Work::Copy(_) => (times.copy, true),
        _ => return,
    };
    let mut switch = if in_body { times.switch_in_body } else { times.switch };
    if is_transfer && !*is_at_transfers {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        switch += (*random >> 63) * times.detour;
    }
    *now += own + if is_transfer == *is_at_transfers { 0 } else { switch };
    *is_at_transfers = is_transfer;
}

/// The global timer. It never goes back.
pub fn nanoseconds() -> u64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let fixed = CLOCK.lock().as_ref().map(|clock| clock.now);
    fixed.unwrap_or_else(|| 1 + ORIGIN.elapsed().as_nanos() as u64)
}
