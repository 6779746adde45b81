//! Waiting for the driver with a timeout. The driver waits forever or not at all, so it is polled.

use crate::driver::DriverResult;
use gridloom_core::backend;
use std::thread;
use std::time::{Duration, Instant};

/// The shortest and the longest pause between two polls. Each pause is twice as long as the one
/// before.
const SHORTEST: Duration = Duration::from_micros(5);
const LONGEST: Duration = Duration::from_millis(1);

/// A running timeout.
pub(crate) struct PollingWait {
    deadline: Instant,
}

impl PollingWait {
    /// Starts a wait now.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { deadline: backend::deadline(timeout) }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Polls until the answer is yes or the time is over, at least once. Returns whether the answer
    /// was yes.
    pub(crate) fn until(&self, mut is_over: impl FnMut() -> DriverResult<bool>) -> DriverResult<bool> {
        let mut pause = SHORTEST;
        loop {
            if is_over()? {
                return Ok(true);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_asked_for_until_it_is_yes() {
        let mut left = 3;
        let over = PollingWait::new(Duration::MAX).until(|| {
            left -= 1;
            Ok(left == 0)
        });
        assert_eq!((over.unwrap(), left), (true, 0));
    }

    #[test]
    fn without_any_time_it_is_asked_once() {
        let mut asked = 0;
        let over = PollingWait::new(Duration::ZERO).until(|| {
            asked += 1;
            Ok(false)
        });
        assert_eq!((over.unwrap(), asked), (false, 1));
    }
}
