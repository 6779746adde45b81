//! The time that benchmarks measure.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Which time is measured.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    /// The time that passes.
    Wall,
    /// The time that all threads of this process are on a processor.
    Processor,
}

impl Clock {
    /// Returns the clock that the arguments of the program ask for.
    pub(crate) fn of_arguments() -> Self {
        let on_processor = std::env::args().any(|word| word == "--processor-time");
        if on_processor { Clock::Processor } else { Clock::Wall }
    }

    /// Returns the time since some start.
    pub(crate) fn now(self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        match self {
            Clock::Wall => START.get_or_init(Instant::now).elapsed(),
            Clock::Processor => processor_time(),
        }
    }
}

#[cfg(unix)]
fn processor_time() -> Duration {
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    /// `CLOCK_PROCESS_CPUTIME_ID` of Linux.
    const PROCESS: i32 = 2;
    let mut time = [0; 2];
    // SAFETY: the call writes seconds and nanoseconds, which the array has room for.
    unsafe { clock_gettime(PROCESS, &raw mut time) };
    Duration::new(time[0].unsigned_abs(), time[1].unsigned_abs() as u32)
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    Clock::Wall.now()
}
