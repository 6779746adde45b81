//! The workers of a device, and how work is shared with them.
//!
//! A thread with much to do is an *owner*: a stream's thread, a host thread in `synchronize`, or a
//! worker inside a task. It posts its work on a board and starts on it at once. Idle workers look
//! at the board, join work that has parts left, and leave when they find none. The owner removes
//! its work from the board and returns when the last helper has left.
//!
//! # Why no wait lasts forever
//!
//! An owner never waits for a helper to *come*: it can do all posted work alone. It waits only for
//! helpers that are in the middle of a part, and those are running. While it waits, it helps only
//! with work that was posted from inside its own work. Helping therefore goes strictly inwards, and
//! its depth is bounded by the nesting of the graph.
//!
//! # Safety of borrowed work
//!
//! The board holds pointers to values on the owners' stacks. A helper follows such a pointer only
//! after it has counted itself *under the board's lock*. The owner removes the entry under the same
//! lock and then waits until the count is 0. A helper is therefore either counted before the
//! removal, and the owner waits for it, or it does not find the entry.

mod dag;
#[cfg(all(test, loom))]
mod models;
mod parallel_for;
mod sleep;

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

pub(crate) use dag::{Dag, Edges};
use gridloom_core::log;
use gridloom_core::user_code;
pub(crate) use parallel_for::Pace;
use sleep::Sleep;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, thread};

/// Work that several threads can do together.
pub(crate) trait Work: Sync {
    /// Returns whether a new helper would find something to do.
    fn available(&self) -> bool;
    /// Does parts of the work until none is found.
    fn help(&self);
}

/// Work on the board.
struct Posted {
    /// Valid while the entry is on the board or `helpers` is not 0.
    work: *const (dyn Work + 'static),
    helpers: AtomicUsize,
    /// Whether a helper panicked. The owner then panics in its place.
    panicked: AtomicBool,
    /// The work inside which this was posted. It outlives this entry, because its owner or one of
    /// its helpers is here.
    parent: *const Posted,
}

/// An entry of the board.
#[derive(Clone, Copy)]
struct Entry(*const Posted);

// SAFETY: the pointers are followed only as the module documentation says, and `Work` is `Sync`.
unsafe impl Send for Entry {}

#[cfg(not(loom))]
thread_local! {
    /// The work that this thread is inside of.
    static INSIDE: Cell<*const Posted> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static INSIDE: Cell<*const Posted> = Cell::new(ptr::null());
}

/// Enters work. Returns the work that this thread was inside of before.
fn enter(work: *const Posted) -> *const Posted {
    INSIDE.with(|inside| inside.replace(work))
}

struct Shared {
    board: Mutex<Vec<Entry>>,
    /// The number of entries on the board, for reading without the lock.
    entries: AtomicUsize,
    sleep: Sleep,
    closed: AtomicBool,
}

/// The workers of a device.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    started: AtomicBool,
}

impl Pool {
    /// Creates a pool in which up to `threads` threads work on what one owner posts: the owner and
    /// `threads - 1` workers. The workers start when they are first needed.
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Shared {
            board: Mutex::new(Vec::new()),
            entries: AtomicUsize::new(0),
            sleep: Sleep::default(),
            closed: AtomicBool::new(false),
        };
        Pool { shared: Arc::new(shared), threads: threads.max(1), started: AtomicBool::new(false) }
    }

    /// Returns the number of threads: the owner and its workers.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    fn start(&self) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        for index in 1..self.threads {
            let shared = self.shared.clone();
            let spawned =
                thread::Builder::new().name(format!("gridloom-cpu-{index}")).spawn(move || work(&shared));
            if let Err(error) = spawned {
                // Without helpers, owners do all work themselves.
                log!(warn, %error, "a worker of the CPU device could not be started");
                return;
            }
        }
    }

    /// Posts `work` and calls `owner`, which can announce work and wait. Returns when no helper is
    /// left.
    fn post<T>(&self, work: &dyn Work, owner: impl FnOnce(&Owner<'_>) -> T) -> T {
        self.start();
        // SAFETY: only the lifetime changes. The guard below ends all use of the pointer before
        // this function returns.
        let work =
            unsafe { std::mem::transmute::<*const (dyn Work + '_), *const (dyn Work + 'static)>(work) };
        let posted = Posted {
            work,
            helpers: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            parent: INSIDE.with(Cell::get),
        };
        {
            let mut board = self.shared.board.lock();
            board.push(Entry(&posted));
            self.shared.entries.store(board.len(), Ordering::Relaxed);
        }
        let outcome = {
            let guard = Owner { shared: &self.shared, posted: &posted, outer: enter(&posted) };
            owner(&guard)
        };
        if posted.panicked.load(Ordering::Relaxed) {
            panic!("a worker of the CPU device panicked");
        }
        outcome
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.sleep.wake_all();
    }
}

/// The owner's side of posted work. Dropping it removes the work from the board and waits for the
/// helpers.
struct Owner<'a> {
    shared: &'a Shared,
    posted: &'a Posted,
    outer: *const Posted,
}

impl Owner<'_> {
    /// Waits until `done`, and helps with this work and what was posted inside it.
    fn wait_until(&self, done: impl Fn() -> bool) {
        loop {
            if done() {
                return;
            }
            let seen = self.shared.sleep.news();
            if !self.shared.help_one(self.posted) {
                let idle = || !done() && !self.shared.anything_for(self.posted);
                self.shared.sleep.owner_waits(seen, &done, idle);
            }
        }
    }
}

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        {
            let mut board = self.shared.board.lock();
            board.retain(|entry| !ptr::eq(entry.0, self.posted));
            self.shared.entries.store(board.len(), Ordering::Relaxed);
        }
        self.wait_until(|| self.posted.helpers.load(Ordering::SeqCst) == 0);
        enter(self.outer);
    }
}

impl Shared {
    /// Joins some work inside `scope`, or any work if `scope` is null, and does what it finds.
    /// Returns whether there was any.
    fn help_one(&self, scope: *const Posted) -> bool {
        if self.entries.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let found = {
            let board = self.board.lock();
            board.iter().rev().copied().find(|&entry| is_for(entry, scope)).inspect(|entry| {
                // SAFETY: the entry is on the board, and the lock is held.
                unsafe { (*entry.0).helpers.fetch_add(1, Ordering::SeqCst) };
            })
        };
        let Some(entry) = found else {
            return false;
        };
        let outer = enter(entry.0);
        // SAFETY: this thread is counted as a helper, so the owner keeps the work and the entry
        // until the count goes down.
        let outcome = user_code::contain(|| unsafe { (*(*entry.0).work).help() });
        enter(outer);
        // SAFETY: as above.
        let posted = unsafe { &*entry.0 };
        if outcome.is_err() {
            posted.panicked.store(true, Ordering::Relaxed);
        }
        let left = posted.helpers.fetch_sub(1, Ordering::SeqCst);
        // From here on the entry may be gone.
        if left == 1 {
            self.sleep.wake_owners();
        }
        true
    }

    fn anything_for(&self, scope: *const Posted) -> bool {
        self.board.lock().iter().any(|&entry| is_for(entry, scope))
    }
}

/// Returns whether an entry has work for a thread that waits inside `scope`. The board's lock is
/// held.
fn is_for(entry: Entry, scope: *const Posted) -> bool {
    // SAFETY: the entry is on the board, and the lock is held. Parents outlive what was posted
    // inside them.
    unsafe {
        let mut at = entry.0;
        while !scope.is_null() && !ptr::eq(at, scope) {
            if at.is_null() {
                return false;
            }
            at = (*at).parent;
        }
        (*(*entry.0).work).available()
    }
}

/// Runs a worker until the pool is closed.
fn work(shared: &Shared) {
    while !shared.closed.load(Ordering::SeqCst) {
        let seen = shared.sleep.news();
        if !shared.help_one(ptr::null()) {
            let idle = || !shared.closed.load(Ordering::SeqCst) && !shared.anything_for(ptr::null());
            shared.sleep.worker_sleeps(seen, idle);
        }
    }
}
