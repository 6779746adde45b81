//! The ends of waits, and the errors of work that was given up.

use std::time::{Duration, Instant};

/// The time for which work may continue after the last handle to its device is gone. Nobody is left
/// then who could wait for it or cancel it.
pub const GRACE: Duration = Duration::from_secs(2);

/// Returns the end of a wait that starts now. A timeout that does not fit becomes one year.
pub fn deadline(timeout: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(timeout).unwrap_or(now + YEAR)
}

/// Returns the error of a wait that timed out.
pub fn timed_out(what: &str, timeout: Duration) -> crate::Error {
    crate::Error::new(
        crate::ErrorKind::Timeout,
        format!(
            "{what} has not ended after {timeout:?}; it goes on, and can be waited for again or cancelled"
        ),
    )
}

/// Returns the error of a cancelled launch.
pub fn cancelled() -> crate::Error {
    crate::Error::new(crate::ErrorKind::Cancelled, "the launch was cancelled")
}
