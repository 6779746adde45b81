//! Sleeping and waking of idle threads.
//!
//! The protocol is the usual one with two flags. A thread that brings work makes it visible and
//! then looks for sleepers. A thread that goes to sleep counts itself and then looks for work. A
//! sequentially consistent fence lies between the two steps on both sides, so at least one thread
//! sees the other. The sleeper looks for work under the lock that a waker takes, so a wake-up
//! cannot fall between the look and the sleep.

use std::hint;

use crate::sync::atomic::{AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, Mutex};

/// The number of looks for work before a worker sleeps, which take some microseconds. A model needs
/// none.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 400 };

#[derive(Default)]
pub(super) struct Sleep {
    /// The number of announcements.
    news: AtomicUsize,
    lock: Mutex<()>,
    workers: AtomicUsize,
    worker: Condvar,
    owners: AtomicUsize,
    owner: Condvar,
}

impl Sleep {
    /// Announces that `pieces` parts of work became available.
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

    /// Wakes owners, because something that one may wait for has happened.
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

    /// Returns the number of announcements so far.
    pub(super) fn news(&self) -> usize {
        self.news.load(Ordering::Relaxed)
    }

    /// Sleeps until woken, if there is no announcement since `seen` for a moment and `idle` still
    /// holds.
    pub(super) fn worker_sleeps(&self, seen: usize, idle: impl Fn() -> bool) {
        if !spin(|| self.news() != seen) {
            sleep(&self.lock, &self.workers, &self.worker, idle);
        }
    }

    /// Sleeps like a worker, for an owner that waits for helpers.
    pub(super) fn owner_waits(&self, seen: usize, done: impl Fn() -> bool, idle: impl Fn() -> bool) {
        if !spin(|| done() || self.news() != seen) {
            sleep(&self.lock, &self.owners, &self.owner, idle);
        }
    }
}

/// Looks for a moment before sleeping. Returns whether something was found.
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
