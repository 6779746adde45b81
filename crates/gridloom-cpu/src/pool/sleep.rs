//! How idle threads sleep and are woken.
//!
//! The protocol is the usual one of two flags: who brings work makes it visible and then looks for sleepers; who goes to sleep
//! counts itself and then looks for work. With a sequentially consistent fence between the two steps on both sides, at least
//! one sees the other. The look for work happens under the lock that a waker takes, so a wake-up cannot fall between
//! the look and the sleep.

use std::hint;

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex};

/// Looks that a worker takes before it sleeps: some microseconds. In a model they would only be more of the same.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

#[derive(Default)]
pub(super) struct Sleep {
    /// Counts announcements, for those who look out for one.
    news: AtomicUsize,
    lock: Mutex<()>,
    workers: AtomicUsize,
    worker: Condvar,
    owners: AtomicUsize,
    owner: Condvar,
}

impl Sleep {
    /// Says that `pieces` pieces of work became available.
    pub(super) fn announce(&self, pieces: usize) {
        self.news.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let workers = self.workers.load(Ordering::Relaxed);
        if workers > 0 && pieces > 0 {
            let guard = self.lock.lock();
            if pieces >= workers {
                self.worker.notify_all();
            } else {
                (0..pieces).for_each(|_| {
                    self.worker.notify_one();
                });
            }
            drop(guard);
        }
        if self.owners.load(Ordering::Relaxed) > 0 {
            drop(self.lock.lock());
            self.owner.notify_all();
        }
    }

    /// Says that something an owner may wait for has happened.
    pub(super) fn wake_owners(&self) {
        fence(Ordering::SeqCst);
        if self.owners.load(Ordering::Relaxed) > 0 {
            drop(self.lock.lock());
            self.owner.notify_all();
        }
    }

    pub(super) fn wake_all(&self) {
        drop(self.lock.lock());
        self.worker.notify_all();
        self.owner.notify_all();
    }

    /// The number of announcements so far.
    pub(super) fn news(&self) -> usize {
        self.news.load(Ordering::Relaxed)
    }

    /// Sleeps until woken, if there was no news since `seen` for a moment and `idle` still holds.
    pub(super) fn worker_sleeps(&self, seen: usize, idle: impl Fn() -> bool) {
        if !spin(|| self.news() != seen) {
            sleep(&self.lock, &self.workers, &self.worker, idle);
        }
    }

    /// The same for an owner, which waits for helpers rather than for work.
    pub(super) fn owner_waits(&self, seen: usize, done: impl Fn() -> bool, idle: impl Fn() -> bool) {
        if !spin(|| done() || self.news() != seen) {
            sleep(&self.lock, &self.owners, &self.owner, idle);
        }
    }
}

/// Looks for a moment before it is worth sleeping, and says whether the look-out was of use.
fn spin(found: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        hint::spin_loop();
        found()
    })
}

fn sleep(lock: &Mutex<()>, count: &AtomicUsize, wake: &Condvar, idle: impl Fn() -> bool) {
    let mut guard = lock.lock();
    count.fetch_add(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if idle() {
        wake.wait(&mut guard);
    }
    count.fetch_sub(1, Ordering::Relaxed);
}
