//! Attempts of safe code to break the library.

mod arguments;
mod callbacks;
mod drops;
mod events;
mod failures;
mod freed_memory;
mod lifetimes;
mod logging;
mod outliving;
mod printing;

use std::sync::mpsc;
use std::time::Duration;

/// Runs what must come to an end on a thread of its own, so that a hang is a failure and not a hang
/// of the tests.
#[track_caller]
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    match wait.recv_timeout(Duration::from_secs(60)) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} does not end"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{what} panicked, see above"),
    }
}
