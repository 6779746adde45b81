//! What the work in flight on a stream keeps alive.
//!
//! A call that enqueues work returns before the work runs, so what the work uses has to be held
//! until then. Each object is put into the *open* batch right after the call. Nothing is recorded
//! on the stream at that moment, which keeps enqueuing fast. A millisecond later the [release
//! thread](crate::release) *closes* the batch: it records a mark at the end of the stream, and
//! drops the batch once the device has passed the mark.
//!
//! Waiting for the stream hands everything over to that thread at once, except for shared objects.
//! Those stay until the thread next polls the stream, because they are likely to be used again
//! soon. Handing them over would wake the thread, and both threads would update the same reference
//! counts.
//!
//! # Why nothing is dropped too early
//!
//! 1. A payload is added *after* its work was enqueued, by a thread that holds the payload until it
//!    has been added.
//! 2. A batch is closed under the same lock under which payloads are added, and the mark is
//!    recorded after that lock is taken. So the mark comes after all the work whose payloads are in
//!    the batch.
//! 3. The stream passes marks in order; a batch is dropped only when its own mark was passed.
//! 4. A thread that waits for the stream takes the batches *before* it begins to wait. Batches are
//!    numbered, and the number increases before the mark or the wait. A thread that sees the number
//!    unchanged *after* it enqueued work knows that what it added to that batch is held for the new
//!    work too, without taking the lock: if the mark came before the work, the thread would see the
//!    new number, because a queue orders the threads that enqueue and mark.
//! 5. What is not known to have ended is not dropped. If a mark cannot be recorded now, or a wait
//!    fails for a reason other than a lost device, the batches stay and are polled again.

use crate::release::{self, Watched};
use crate::sync::{AtomicU64, Mutex, Ordering};
use gridloom_core::backend::Allocation;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A queue that can be marked. A thread that enqueues after a mark was made, or after the queue was
/// found idle, sees what was written before that.
pub(crate) trait Queue: Send + Sync + 'static {
    /// A point of the queue.
    type Mark: Send;
    /// Marks the present end.
    fn mark(&self) -> Marked<Self::Mark>;
    /// Returns whether everything before the mark is known to have run, or never to run any more.
    fn passed(&self, mark: &Self::Mark) -> bool;
    /// Takes back a mark that was passed.
    fn recycle(&self, mark: Self::Mark);
    /// Makes the release thread poll until nothing is in flight.
    fn watch(in_flight: Arc<InFlight<Self>>)
    where
        Self: Sized,
    {
        release::watch(in_flight);
    }
}

/// The result of marking a queue.
pub(crate) enum Marked<M> {
    /// The mark.
    At(M),
    /// Everything enqueued so far has run, and there is nothing to mark.
    Idle,
    /// It is not possible now, and may be later.
    NotNow,
    /// The queue is dead, and nothing in it will run any more.
    Dead,
}

/// The result of waiting for a queue.
pub(crate) enum Waited<T> {
    /// All work enqueued before has ended, or never will run.
    Over(T),
    /// The wait failed; the work may go on.
    Unknown(T),
}

/// What finished work kept alive, to be dropped where that does no harm.
#[derive(Default)]
pub(crate) struct Released {
    batches: Vec<Vec<Payload>>,
}

impl Released {
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.iter().all(Vec::is_empty)
    }
}

/// Something kept alive. What is shared is kept without an allocation.
enum Payload {
    Owned(#[expect(dead_code, reason = "it is there to be dropped")] Box<dyn Send>),
    Shared(Arc<dyn Any + Send + Sync>),
    Memory(Arc<dyn Allocation>),
}

impl Payload {
    /// Returns the address of a shared object, by which the same object is found again.
    fn address(&self) -> Option<*const ()> {
        match self {
            Payload::Owned(_) => None,
            Payload::Shared(shared) => Some(Arc::as_ptr(shared).cast()),
            Payload::Memory(memory) => Some(Arc::as_ptr(memory).cast()),
        }
    }

    /// Returns whether other references exist at this moment.
    fn is_shared(&self) -> bool {
        match self {
            Payload::Owned(_) => false,
            Payload::Shared(shared) => Arc::strong_count(shared) > 1,
            Payload::Memory(memory) => Arc::strong_count(memory) > 1,
        }
    }
}

/// The number of latest payloads that are compared, so that none is kept twice. As many stay after
/// a wait.
const LATEST: usize = 4;

/// A queue, and what the work in it keeps alive.
pub(crate) struct InFlight<Q: Queue> {
    queue: Q,
    /// The number of the open batch.
    batch: AtomicU64,
    state: Mutex<State<Q::Mark>>,
}

/// The batch that something was put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch(u64);

struct State<M> {
    open: Vec<Payload>,
    closed: VecDeque<(M, Vec<Payload>)>,
    /// What no work in flight uses, and the next is likely to use again.
    idle: Vec<Payload>,
    /// Whether the release thread polls this queue.
    watched: bool,
    /// The number of threads that wait for the queue now. The queue is polled while there are any,
    /// although nothing can be released meanwhile: a thread that waited usually enqueues more, and
    /// would have to wake the release thread first.
    waiting: usize,
}

impl<Q: Queue> fmt::Debug for InFlight<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}

impl<Q: Queue> InFlight<Q> {
    pub(crate) fn new(queue: Q) -> Arc<Self> {
        let (open, closed, idle) = (Vec::new(), VecDeque::new(), Vec::new());
        let state = State { open, closed, idle, watched: false, waiting: 0 };
        Arc::new(Self { queue, batch: AtomicU64::new(0), state: Mutex::new(state) })
    }

    pub(crate) fn queue(&self) -> &Q {
        &self.queue
    }

    /// Holds `payload` until the work enqueued so far has run.
    pub(crate) fn keep(self: &Arc<Self>, payload: impl Send + 'static) {
        let payload = Payload::Owned(Box::new(payload));
        self.keep_with(|state| state.open.push(payload));
    }

    /// Keeps a shared object. If it was kept recently, as when a few graphs are launched in
    /// rotation, nothing is added: the open batch ends after this work too.
    pub(crate) fn keep_shared<T: Any + Send + Sync>(self: &Arc<Self>, payload: &Arc<T>) -> Batch {
        self.keep_with(|state| {
            state.keep(Arc::as_ptr(payload).cast(), || Payload::Shared(Arc::<T>::clone(payload)));
            // The number changes only under this lock.
            Batch(self.batch.load(Ordering::Relaxed))
        })
    }

    /// Returns whether what was put into this batch is held until the work enqueued so far has run.
    #[inline]
    pub(crate) fn holds(&self, batch: Batch) -> bool {
        self.batch.load(Ordering::Acquire) == batch.0
    }

    /// Opens a new batch for everything enqueued from now on. The lock is held.
    fn next_batch(&self) {
        self.batch.fetch_add(1, Ordering::SeqCst);
    }

    /// Keeps several blocks of memory.
    pub(crate) fn keep_memory(self: &Arc<Self>, memory: &[&Arc<dyn Allocation>]) {
        self.keep_with(|state| {
            for &memory in memory {
                state.keep(Arc::as_ptr(memory).cast(), || Payload::Memory(Arc::clone(memory)));
            }
        });
    }

    /// Adds to the open batch.
    fn keep_with<T>(self: &Arc<Self>, add: impl FnOnce(&mut State<Q::Mark>) -> T) -> T {
        let (added, watch) = {
            let mut state = self.state.lock();
            (add(&mut state), !std::mem::replace(&mut state.watched, true))
        };
        if watch {
            Q::watch(Arc::clone(self));
        }
        added
    }

    /// Runs `wait`, which returns when all work enqueued before has run, and returns with its
    /// outcome what that work kept alive.
    pub(crate) fn wait<T>(self: &Arc<Self>, wait: impl FnOnce() -> Waited<T>) -> (T, Released) {
        let (open, closed) = {
            let mut state = self.state.lock();
            state.waiting += 1;
            self.next_batch();
            (std::mem::take(&mut state.open), std::mem::take(&mut state.closed))
        };
        let waited = wait();
        self.state.lock().waiting -= 1;
        match waited {
            Waited::Over(outcome) => {
                let mut batches = vec![open];
                for (mark, batch) in closed {
                    self.queue.recycle(mark);
                    batches.push(batch);
                }
                self.leave_shared(&mut batches);
                (outcome, Released { batches })
            }
            Waited::Unknown(outcome) => {
                self.put_back(open, closed);
                (outcome, Released::default())
            }
        }
    }

    /// Calls a function with the shared objects that the latest work kept alive, after a wait that
    /// returned `released`.
    pub(crate) fn for_each_shared(&self, released: &Released, mut see: impl FnMut(&dyn Any)) {
        let state = self.state.lock();
        for payload in released.batches.iter().flatten().chain(&state.idle) {
            if let Payload::Shared(shared) = payload {
                see(&**shared);
            }
        }
    }

    /// Leaves with the queue, of what was taken out to be dropped, what others share.
    fn leave_shared(self: &Arc<Self>, batches: &mut [Vec<Payload>]) {
        if !batches.iter().flatten().any(Payload::is_shared) {
            return;
        }
        let watch = {
            let mut state = self.state.lock();
            batches.iter_mut().for_each(|batch| state.leave_shared(batch));
            !std::mem::replace(&mut state.watched, true)
        };
        if watch {
            Q::watch(Arc::clone(self));
        }
    }

    /// Keeps on keeping what was taken out to be dropped.
    fn put_back(self: &Arc<Self>, mut open: Vec<Payload>, mut closed: VecDeque<(Q::Mark, Vec<Payload>)>) {
        if open.is_empty() && closed.is_empty() {
            return;
        }
        let watch = {
            let mut state = self.state.lock();
            // Older marks come first. Batches without a mark are covered by the next one.
            closed.append(&mut state.closed);
            state.closed = closed;
            open.append(&mut state.open);
            state.open = open;
            !std::mem::replace(&mut state.watched, true)
        };
        if watch {
            Q::watch(Arc::clone(self));
        }
    }
}

impl<M> State<M> {
    /// Returns whether there is anything to poll.
    fn is_in_flight(&self) -> bool {
        !self.closed.is_empty() || !self.open.is_empty() || self.waiting > 0
    }

    /// Puts the shared object at this address into the open batch, unless it is there already.
    fn keep(&mut self, address: *const (), payload: impl FnOnce() -> Payload) {
        let is_it = |payload: &Payload| payload.address() == Some(address);
        if self.open.iter().rev().take(LATEST).any(is_it) {
            return;
        }
        let idle = self.idle.iter().position(is_it).map(|place| self.idle.swap_remove(place));
        self.open.push(idle.unwrap_or_else(payload));
    }

    /// Moves objects that others share from a batch to `idle`. This drops only references to
    /// objects that `idle` has already, so no drop runs user code.
    fn leave_shared(&mut self, batch: &mut Vec<Payload>) {
        let mut place = 0;
        while let Some(payload) = batch.get(place) {
            let address = payload.address();
            if address.is_some() && self.idle.iter().any(|idle| idle.address() == address) {
                batch.swap_remove(place);
            } else if payload.is_shared() && self.idle.len() < LATEST {
                self.idle.push(batch.swap_remove(place));
            } else {
                place += 1;
            }
        }
    }
}

impl<Q: Queue> Watched for InFlight<Q> {
    fn poll(&self) -> bool {
        let mut done: Vec<Vec<Payload>> = Vec::new();
        let in_flight = {
            let mut state = self.state.lock();
            if !state.idle.is_empty() {
                done.push(std::mem::take(&mut state.idle));
            }
            if !state.open.is_empty() {
                let batch = std::mem::take(&mut state.open);
                self.next_batch();
                match self.queue.mark() {
                    Marked::At(mark) => state.closed.push_back((mark, batch)),
                    Marked::NotNow => state.open = batch,
                    Marked::Idle | Marked::Dead => done.push(batch),
                }
            }
            while state.closed.front().is_some_and(|(mark, _)| self.queue.passed(mark)) {
                if let Some((mark, batch)) = state.closed.pop_front() {
                    self.queue.recycle(mark);
                    done.push(batch);
                }
            }
            state.is_in_flight()
        };
        // Dropped outside of the lock: a drop may run user code, which may use this very stream.
        drop(done);
        in_flight
    }

    fn rest(&self) -> bool {
        let mut state = self.state.lock();
        // A thread that waited since the last poll may have left something here.
        state.watched = state.is_in_flight() || !state.idle.is_empty();
        !state.watched
    }
}

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;
