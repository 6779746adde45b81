//! Streams: queues whose work runs in order, one piece at a time.
//!
//! A stream's thread is started with its first piece of work and sleeps while there is none. A host thread in `synchronize` does
//! not only wait: when the stream's thread has not taken the next piece yet, the host thread runs it itself, which saves the
//! hand-over. Host callbacks therefore run on a thread of the device or on one that waits for the stream.
//!
//! # Failures
//!
//! A failed operation fails alone: the work after it runs (on whatever the failed one left behind), the first failure is
//! kept, and the next `synchronize` returns it, once. Neither the stream nor the device is lost.
//!
//! # Dropping
//!
//! The handle of a stream only closes the queue. The thread finishes what is queued, which it and the pieces of work hold
//! all they need for, and ends.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread;

use gridloom_core::backend::{self, DeviceId};
use gridloom_core::op::Operation;
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::device::Shared;
use crate::event::{self, CpuEvent, Recording};
use crate::graph::Launch;
use crate::operation::{Context, NoNames, Prepared, contain};

/// A piece of a stream's work.
pub(crate) enum Work {
    /// An operation, with what holds the memory it uses.
    Operation(Prepared, Operation),
    Record(Arc<dyn backend::Event>, Arc<Recording>),
    Wait(Arc<Recording>),
    Graph(Launch),
}

impl Work {
    fn run(&self, device: &Shared) -> Result<()> {
        match self {
            Work::Operation(prepared, _) => prepared.run(Context { device, conditions: &[] }),
            Work::Record(event, recording) => {
                if let Some(event) = event.as_any().downcast_ref::<CpuEvent>() {
                    event.pass(recording);
                }
                recording.reach();
                Ok(())
            }
            Work::Wait(recording) => {
                recording.wait();
                Ok(())
            }
            Work::Graph(launch) => launch.run(),
        }
    }
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    /// Whether some thread runs a piece now.
    busy: bool,
    enqueued: u64,
    finished: u64,
    failure: Option<Error>,
    started: bool,
    closed: bool,
}

/// What the handle and the thread of a stream share.
pub(crate) struct Line {
    device: Arc<Shared>,
    queue: Mutex<Queue>,
    /// The stream's thread waits here for work.
    more: Condvar,
    /// Others wait here for pieces to finish.
    done: Condvar,
}

impl Line {
    /// Waits until everything enqueued so far has run, helping.
    pub(crate) fn drain(&self) {
        let mut queue = self.queue.lock();
        let target = queue.enqueued;
        while queue.finished < target {
            match queue.work.pop_front() {
                Some(work) if !queue.busy => self.run(&mut queue, work),
                Some(work) => {
                    queue.work.push_front(work);
                    self.done.wait(&mut queue);
                }
                None => self.done.wait(&mut queue),
            }
        }
        // The stream's thread goes back to sleep while somebody else is busy.
        if !queue.work.is_empty() || queue.closed {
            self.more.notify_one();
        }
    }

    /// Runs one piece, which was at the head of the queue, with the queue unlocked.
    fn run(&self, queue: &mut MutexGuard<'_, Queue>, work: Work) {
        queue.busy = true;
        let outcome = MutexGuard::unlocked(queue, || {
            let outcome = contain(|| work.run(&self.device));
            self.device.dispose(work);
            outcome
        });
        queue.busy = false;
        queue.finished += 1;
        if let Err(error) = outcome {
            tracing::debug!(%error, "work on a stream failed");
            queue.failure.get_or_insert(error);
        }
        self.done.notify_all();
    }

    /// The life of the stream's thread.
    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            if queue.busy {
                self.more.wait(&mut queue);
            } else if let Some(work) = queue.work.pop_front() {
                self.run(&mut queue, work);
            } else if queue.closed {
                return;
            } else {
                self.more.wait(&mut queue);
            }
        }
    }
}

/// A stream of the CPU device.
pub struct CpuStream {
    line: Arc<Line>,
}

impl CpuStream {
    pub(crate) fn new(device: Arc<Shared>) -> Self {
        let (queue, more, done) = (Mutex::default(), Condvar::new(), Condvar::new());
        CpuStream { line: Arc::new(Line { device, queue, more, done }) }
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Makes sure that there is a thread for what is pushed.
    pub(crate) fn start(&self) -> Result<()> {
        let mut queue = self.line.queue.lock();
        if !queue.started {
            let line = self.line.clone();
            let spawned = thread::Builder::new().name("gridloom-stream".into()).spawn(move || line.serve());
            spawned.map_err(|error| {
                Error::new(ErrorKind::OutOfMemory, "the system gave no thread for the stream")
                    .with_source(error)
            })?;
            queue.started = true;
        }
        Ok(())
    }

    /// Enqueues work on a stream that was [started](CpuStream::start).
    pub(crate) fn push(&self, work: Work) {
        let mut queue = self.line.queue.lock();
        queue.work.push_back(work);
        queue.enqueued += 1;
        let idle = !queue.busy;
        drop(queue);
        if idle {
            self.line.more.notify_one();
        }
    }
}

impl backend::Stream for CpuStream {
    fn device(&self) -> DeviceId {
        self.line.device.id
    }

    unsafe fn enqueue(&self, operation: &Operation) -> Result<()> {
        let work = match operation {
            Operation::Empty => return Ok(()),
            Operation::Kernel(op) => Work::Operation(Prepared::kernel(op, &NoNames)?, operation.clone()),
            Operation::Memset(op) => Work::Operation(Prepared::memset(op, &NoNames), operation.clone()),
            Operation::Memcpy(op) => Work::Operation(Prepared::memcpy(op, &NoNames), operation.clone()),
            Operation::Callback(op) => Work::Operation(Prepared::callback(op), operation.clone()),
            Operation::EventRecord(event) => {
                self.start()?;
                Work::Record(event.clone(), event::own(event)?.begin())
            }
            Operation::EventWait(event) => match event::own(event)?.latest() {
                Some(recording) if !recording.is_reached() => Work::Wait(recording),
                _ => return Ok(()),
            },
            other => {
                let message = format!("{} cannot be enqueued on a stream", other.kind().name());
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
        };
        self.start()?;
        self.push(work);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.line.drain();
        match self.line.queue.lock().failure.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn is_idle(&self) -> Result<bool> {
        let queue = self.line.queue.lock();
        Ok(queue.finished == queue.enqueued)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.line.queue.lock().closed = true;
        self.line.more.notify_one();
    }
}

impl fmt::Debug for CpuStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.line.queue.lock();
        write!(f, "CpuStream({} queued, {} finished)", queue.work.len(), queue.finished)
    }
}
