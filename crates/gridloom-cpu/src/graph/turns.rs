//! The order of the launches of one executable.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// Runs launches one after the other, in the order in which they were enqueued.
#[derive(Default)]
pub(super) struct Turns {
    finished: AtomicU64,
    lock: Mutex<()>,
    next: Condvar,
}

impl Turns {
    /// Returns the number of finished turns.
    pub(super) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Acquire)
    }

    pub(super) fn wait_for(&self, turn: u64) {
        if self.finished() == turn {
            return;
        }
        let mut guard = self.lock.lock();
        while self.finished() != turn {
            self.next.wait(&mut guard);
        }
    }

    pub(super) fn finish(&self, turn: u64) {
        let guard = self.lock.lock();
        self.finished.store(turn + 1, Ordering::Release);
        drop(guard);
        self.next.notify_all();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn launches_run_in_their_order_and_each_sees_what_the_one_before_did() {
        loom::model(|| {
            let shared = Arc::new((Turns::default(), UnsafeCell::new(0)));
            let launches: Vec<_> = [2, 1]
                .map(|turn| {
                    let shared = shared.clone();
                    thread::spawn(move || launch(&shared, turn))
                })
                .into();
            launch(&shared, 0);
            launches.into_iter().for_each(|launch| launch.join().unwrap());
            assert_eq!(shared.0.finished(), 3);
        });
    }

    fn launch((turns, ran): &(Turns, UnsafeCell<u64>), turn: u64) {
        turns.wait_for(turn);
        // SAFETY: it is this launch's turn; the checker would find another in the way.
        ran.with_mut(|ran| unsafe {
            assert_eq!(*ran, turn);
            *ran += 1;
        });
        turns.finish(turn);
    }
}
