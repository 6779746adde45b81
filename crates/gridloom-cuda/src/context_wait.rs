//! Waits for a whole context, which exclude captures by the driver.
//!
//! While any stream of a context is captured, in whatever mode and by whichever thread,
//! `cuCtxSynchronize` fails and invalidates the capture (driver 580.159). So nobody waits for a
//! context while Gridloom has the driver capture, and a capture begins when such waits have ended.
//!
//! Nobody waits for long: a thread that captures waits for others at most for [`PATIENCE`], because
//! what they wait for may wait for this very thread. The driver looks for captures when a wait
//! begins, so a wait that takes longer than that is not disturbed and disturbs nothing.

use parking_lot::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest time that the beginning of a capture waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// Held, shared, by each thread that waits for a context.
static WAITS: RwLock<()> = RwLock::new(());
/// The number of captures.
static CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// A guard. Nobody begins to wait for a context while it lives.
#[derive(Debug)]
#[must_use = "waits are put off only while the guard lives"]
pub(crate) struct Capturing(());

/// Lets nobody wait for a context until the guard is dropped.
pub(crate) fn capturing() -> Capturing {
    CAPTURES.fetch_add(1, Ordering::SeqCst);
    drop(WAITS.try_write_for(PATIENCE));
    Capturing(())
}

impl Drop for Capturing {
    fn drop(&mut self) {
        CAPTURES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `wait`, which waits for a context, unless something is captured now.
pub(crate) fn unless_capturing<T>(wait: impl FnOnce() -> T) -> Option<T> {
    let _waiting = WAITS.read();
    (CAPTURES.load(Ordering::SeqCst) == 0).then(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn nobody_waits_for_a_context_during_a_capture_and_a_long_wait_does_not_hold_one_up() {
        let capture = capturing();
        assert_eq!(unless_capturing(|| ()), None);
        drop(capture);
        assert_eq!(unless_capturing(|| ()), Some(()));
        // The next wait ends only after the capture has begun.
        let (begun, ended) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                unless_capturing(|| {
                    begun.wait();
                    ended.wait();
                })
            });
            begun.wait();
            drop(capturing());
            ended.wait();
        });
    }
}
