//! The queue of a stream: work that runs in order, one item at a time, on the queue's own thread or
//! on one that waits for it.

use std::collections::VecDeque;
use std::fmt;

use std::time::Instant;

use gridloom_core::{Error, Result};

use crate::cancel::{CancelSource, CancelToken};
use crate::operation::contain;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Ordered work. All participants pass the same `run`, which also gets the item's cancel flag.
pub(crate) struct Queue<W> {
    state: Mutex<State<W>>,
    /// The queue's own thread waits here for work.
    more: Condvar,
    /// Others wait here for items to finish.
    done: Condvar,
}

struct State<W> {
    work: VecDeque<(W, CancelToken)>,
    /// Cancels items that are queued or running.
    cancel: CancelSource,
    /// Whether a thread is running an item.
    busy: bool,
    enqueued: u64,
    finished: u64,
    failure: Option<Error>,
    started: bool,
    closed: bool,
}

impl<W> Queue<W> {
    pub(crate) fn new() -> Self {
        let state = State {
            work: VecDeque::new(),
            cancel: CancelSource::default(),
            busy: false,
            enqueued: 0,
            finished: 0,
            failure: None,
            started: false,
            closed: false,
        };
        Queue { state: Mutex::new(state), more: Condvar::new(), done: Condvar::new() }
    }

    /// Calls `start` once. It starts the thread that calls [`serve`](Queue::serve).
    pub(crate) fn start(&self, start: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        if !state.started {
            start()?;
            state.started = true;
        }
        Ok(())
    }

    /// Enqueues an item. The serving thread or a later [`drain`](Queue::drain) runs it.
    pub(crate) fn push(&self, work: W) {
        self.push_and(work, || {});
    }

    /// Enqueues an item and calls `publish`, in one step. Whoever sees the effect of `publish` and
    /// then enqueues work comes after the item. The item does not run before `publish` returns.
    pub(crate) fn push_and(&self, work: W, publish: impl FnOnce()) {
        let mut state = self.state.lock();
        let token = state.cancel.token();
        state.work.push_back((work, token));
        state.enqueued += 1;
        publish();
        let idle = !state.busy;
        drop(state);
        if idle {
            self.more.notify_one();
        }
    }

    /// Waits until everything enqueued so far has run, and runs items itself meanwhile.
    pub(crate) fn drain(&self, run: impl Fn(W, &CancelToken) -> Result<()>) {
        let mut state = self.state.lock();
        let target = state.enqueued;
        while state.finished < target {
            match state.work.pop_front() {
                Some(work) if !state.busy => self.run(&mut state, work, &run),
                Some(work) => {
                    state.work.push_front(work);
                    self.done.wait(&mut state);
                }
                None => self.done.wait(&mut state),
            }
        }
        // The queue's thread sleeps again while another thread is busy.
        if !state.work.is_empty() || state.closed {
            self.more.notify_one();
        }
    }

    /// Waits until everything enqueued so far has run, but not past the deadline. Returns whether
    /// it has. It does not run items itself, because one may take longer. There must be a serving
    /// thread.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        let target = state.enqueued;
        while state.finished < target {
            if self.done.wait_until(&mut state, deadline).timed_out() {
                return state.finished >= target;
            }
        }
        true
    }

    /// Cancels all items that are queued or running.
    pub(crate) fn cancel(&self) {
        self.state.lock().cancel.cancel();
    }

    /// Runs items on the queue's own thread until the queue is closed and empty.
    pub(crate) fn serve(&self, run: impl Fn(W, &CancelToken) -> Result<()>) {
        let mut state = self.state.lock();
        loop {
            if state.busy {
                self.more.wait(&mut state);
            } else if let Some(work) = state.work.pop_front() {
                self.run(&mut state, work, &run);
            } else if state.closed {
                return;
            } else {
                self.more.wait(&mut state);
            }
        }
    }

    /// Lets the thread finish the queued items and end.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.more.notify_one();
    }

    /// Returns the first failure since the last call.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.state.lock().failure.take()
    }

    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.finished == state.enqueued
    }

    /// Runs one item from the head of the queue, with the queue unlocked.
    fn run(
        &self,
        state: &mut MutexGuard<'_, State<W>>,
        (work, token): (W, CancelToken),
        run: &impl Fn(W, &CancelToken) -> Result<()>,
    ) {
        state.busy = true;
        // Nothing unwinds from here: the state must be restored, and the thread must continue.
        let outcome = MutexGuard::unlocked(state, || contain(|| run(work, &token)));
        state.busy = false;
        state.finished += 1;
        if let Err(error) = outcome {
            state.failure.get_or_insert(error);
        }
        self.done.notify_all();
    }
}

impl<W> fmt::Debug for Queue<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "{} queued, {} finished", state.work.len(), state.finished)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Notify;
    use loom::thread;
    use std::sync::Arc;

    /// A queue whose pieces write down their numbers, without any lock of their own. The second
    /// tells when it has run.
    struct Fixture {
        queue: Queue<u32>,
        ran: UnsafeCell<Vec<u32>>,
        second: Notify,
    }

    impl Fixture {
        fn new() -> Arc<Self> {
            let (queue, ran) = (Queue::new(), UnsafeCell::new(Vec::new()));
            Arc::new(Fixture { queue, ran, second: Notify::new() })
        }

        fn run(&self, number: u32) -> Result<()> {
            // SAFETY: one piece runs at a time; the checker would find another in the way.
            self.ran.with_mut(|ran| unsafe { (*ran).push(number) });
            if number == 2 {
                self.second.notify();
            }
            Ok(())
        }

        fn drain(&self) {
            self.queue.drain(|number, _| self.run(number));
        }

        fn serve(self: &Arc<Self>) -> thread::JoinHandle<()> {
            let this = self.clone();
            thread::spawn(move || this.queue.serve(|number, _| this.run(number)))
        }

        fn ran(&self) -> Vec<u32> {
            // SAFETY: all pieces have run.
            self.ran.with(|ran| unsafe { (*ran).clone() })
        }
    }

    #[test]
    fn pieces_run_in_order_whoever_runs_them_and_a_drain_sees_them_all() {
        loom::model(|| {
            let fixture = Fixture::new();
            let served = fixture.serve();
            fixture.queue.push(1);
            fixture.queue.push(2);
            fixture.drain();
            assert_eq!(fixture.ran(), [1, 2]);
            fixture.queue.close();
            served.join().unwrap();
        });
    }

    #[test]
    fn what_is_pushed_while_another_thread_drains_is_not_forgotten() {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let fixture = Fixture::new();
            let served = fixture.serve();
            fixture.queue.push(1);
            let draining = {
                let fixture = fixture.clone();
                thread::spawn(move || fixture.drain())
            };
            fixture.queue.push(2);
            // Nothing else is to come that would wake the queue's thread.
            fixture.second.wait();
            fixture.queue.close();
            served.join().unwrap();
            draining.join().unwrap();
            assert_eq!(fixture.ran(), [1, 2]);
        });
    }

    #[test]
    fn a_closed_queue_runs_what_is_in_it_and_its_thread_ends() {
        loom::model(|| {
            let fixture = Fixture::new();
            fixture.queue.push(1);
            let served = fixture.serve();
            fixture.queue.close();
            served.join().unwrap();
            assert_eq!(fixture.ran(), [1]);
        });
    }
}
