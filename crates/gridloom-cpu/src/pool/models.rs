//! The pool under the model checker: no wait lasts forever, and no helper touches work that its
//! owner has taken back.

use loom::cell::UnsafeCell;

use super::*;
use crate::sync::atomic::AtomicU32;

/// Bounds the switches between threads. The bound keeps the check feasible and finds every known
/// kind of mistake.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Two pieces, each done by whoever takes it, without a lock.
struct Pieces {
    next: AtomicU32,
    done: [UnsafeCell<u32>; 2],
}

// SAFETY: `next` gives each piece to one thread.
unsafe impl Sync for Pieces {}

impl Pieces {
    fn new() -> Self {
        Pieces { next: AtomicU32::new(0), done: [UnsafeCell::new(0), UnsafeCell::new(0)] }
    }

    fn assert_done(&self) {
        for piece in &self.done {
            // SAFETY: nobody works on it any more; the checker would find somebody who does.
            assert_eq!(piece.with(|done| unsafe { *done }), 1);
        }
    }
}

impl Work for Pieces {
    fn available(&self) -> bool {
        self.next.load(Ordering::Relaxed) < 2
    }

    fn help(&self) {
        while let Some(piece) = self.done.get(self.next.fetch_add(1, Ordering::Relaxed) as usize) {
            // SAFETY: this thread took the piece.
            piece.with_mut(|done| unsafe { *done += 1 });
        }
    }
}

#[test]
fn posted_work_is_done_and_left_when_its_owner_goes_on() {
    check(|| {
        let pool = Pool::new(2);
        let pieces = Pieces::new();
        pool.post(&pieces, |_| {
            pool.shared.sleep.announce(1);
            pieces.help();
        });
        pieces.assert_done();
    });
}

#[test]
fn a_pool_that_is_dropped_while_its_worker_falls_asleep_lets_it_end() {
    check(|| {
        let pool = Pool::new(2);
        pool.start();
    });
}

#[test]
fn a_worker_that_falls_asleep_does_not_miss_the_work() {
    check(|| {
        let pool = Pool::new(2);
        let pieces = Pieces::new();
        // The owner does nothing itself: only a worker that wakes up ends the wait.
        pool.post(&pieces, |_| {
            pool.shared.sleep.announce(2);
            while pieces.available() {
                loom::thread::yield_now();
            }
        });
        pieces.assert_done();
    });
}

#[test]
fn tasks_run_after_their_predecessors_and_see_what_those_did() {
    check(|| {
        let pool = Pool::new(2);
        // 0 and 1 before 2.
        let dag = Dag::new(Edges::from_predecessors(&[0, 0, 0, 2], &[0, 1]), 2);
        let done = Done([UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)]);
        let cells = &done;
        dag.run(&pool, &|task| cells.run(task as usize));
        for cell in &cells.0 {
            // SAFETY: the run is over.
            assert_eq!(cell.with(|done| unsafe { *done }), 1);
        }
    });
}

struct Done([UnsafeCell<u32>; 3]);

// SAFETY: each task writes its own, after those it reads were written.
unsafe impl Sync for Done {}

impl Done {
    fn run(&self, task: usize) {
        let before = if task == 2 { 0..2 } else { 0..0 };
        for earlier in before {
            // SAFETY: the predecessors have run; the checker would find one that runs.
            assert_eq!(self.0[earlier].with(|done| unsafe { *done }), 1);
        }
        // SAFETY: a task runs once.
        self.0[task].with_mut(|done| unsafe { *done += 1 });
    }
}
