//! Streams: queues whose work runs in order, one item at a time.
//!
//! The thread of a stream starts with the first item of work and sleeps while there is none. A host
//! thread in `synchronize` does not only wait. If the stream's thread has not taken the next item
//! yet, the host thread runs it, which saves the hand-over. Host callbacks therefore run on a
//! thread of the device or on one that waits for the stream.
//!
//! # Failures
//!
//! A failed operation fails alone. The work after it still runs, on whatever the failed operation
//! left behind. The next `synchronize` returns the first failure, once. Stream and device stay
//! usable.
//!
//! # Dropping
//!
//! Dropping the handle of a stream only closes the queue. The thread finishes the queued work and
//! ends. It and the queued work hold everything they need.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gridloom_core::backend::{self, DeviceId};
use gridloom_core::lower::OnStream;
use gridloom_core::op::Operation;
use gridloom_core::{Error, ErrorKind, Result, log, user_code};

use crate::cancel::CancelToken;
use crate::device::Shared;
use crate::event::{self, CpuEvent, Recording};
use crate::graph::Launch;
use crate::operation::{Context, Prepared, contain};
use crate::queue::Queue;
use crate::transfer;

/// An item of a stream's work.
pub(crate) enum Work {
    /// An operation, with the owner of the memory it uses.
    Operation(Prepared, Operation),
    Record(Arc<dyn backend::Event>, Arc<Recording>),
    Wait(Arc<Recording>),
    Graph(Launch),
}

impl Work {
    fn run(&self, device: &Shared, token: &CancelToken) -> Result<()> {
        match self {
            Work::Operation(prepared, _) => {
                prepared.run(Context { device, conditions: &[], cancel: [token.flag(), token.flag()] })
            }
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
            Work::Graph(launch) => launch.run(token),
        }
    }
}

/// The state that the handle and the thread of a stream share.
pub(crate) struct SharedStream {
    device: Arc<Shared>,
    queue: Queue<Work>,
}

impl SharedStream {
    /// Waits until everything enqueued so far has run, and runs items itself meanwhile.
    pub(crate) fn drain(&self) {
        // A callback that waits for this stream may run here callbacks of this one, which may use
        // other devices than the one that waits.
        self.queue.drain(|work, token| user_code::on_behalf(|| self.run(work, token)));
    }

    /// Waits until everything enqueued so far has run, but not past the deadline. Returns whether
    /// it has.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        self.queue.wait_until(deadline)
    }

    /// Cancels everything enqueued so far.
    pub(crate) fn cancel(&self) {
        self.queue.cancel();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    fn run(&self, work: Work, token: &CancelToken) -> Result<()> {
        let outcome = contain(|| work.run(&self.device, token));
        if let Err(error) = &outcome {
            log!(debug, %error, "work on a stream failed");
        }
        // Also after a panic: no user value is dropped on this thread.
        self.device.dispose(work);
        outcome
    }
}

/// A stream of the CPU device.
pub(crate) struct CpuStream {
    line: Arc<SharedStream>,
}

impl CpuStream {
    pub(crate) fn new(device: Arc<Shared>) -> Self {
        CpuStream { line: Arc::new(SharedStream { device, queue: Queue::new() }) }
    }

    pub(crate) fn line(&self) -> &Arc<SharedStream> {
        &self.line
    }

    /// Makes sure that the stream has a thread.
    pub(crate) fn start(&self) -> Result<()> {
        self.line.queue.start(|| {
            let line = self.line.clone();
            let serve = move || line.queue.serve(|work, token| line.run(work, token));
            let spawned = thread::Builder::new().name("gridloom-stream".into()).spawn(serve);
            spawned.map(drop).map_err(|error| {
                Error::new(ErrorKind::OutOfMemory, "the system could not start a thread for the stream")
                    .with_source(error)
            })
        })
    }

    /// Enqueues work on a [started](CpuStream::start) stream and calls `publish` in the same step.
    pub(crate) fn push_and(&self, work: Work, publish: impl FnOnce()) {
        self.line.queue.push_and(work, publish);
    }
}

// SAFETY: the stream belongs to the device that created it.
unsafe impl backend::Stream for CpuStream {
    fn device(&self) -> DeviceId {
        self.line.device.id
    }

    unsafe fn enqueue(&self, operation: &Operation) -> Result<()> {
        let work = match operation {
            Operation::EventRecord(event) => {
                let (own, recording) = (event::own(event)?, Recording::new());
                self.start()?;
                let work = Work::Record(event.clone(), recording.clone());
                self.line.queue.push_and(work, || own.publish(&recording));
                return Ok(());
            }
            Operation::EventWait(event) => match event::own(event)?.latest() {
                Some(recording) if !recording.is_reached() => Work::Wait(recording),
                _ => return Ok(()),
            },
            operation => match Prepared::new(operation, &OnStream)? {
                Some(prepared) => Work::Operation(prepared, operation.clone()),
                // An operation without work. The core refuses those that belong in graphs.
                None => return Ok(()),
            },
        };
        self.start()?;
        self.line.queue.push(work);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.line.drain();
        self.line.queue.take_failure().map_or(Ok(()), Err)
    }

    fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        if !self.line.wait_until(backend::deadline(timeout)) {
            return Err(backend::timed_out("the work on the stream", timeout));
        }
        self.line.queue.take_failure().map_or(Ok(()), Err)
    }

    fn cancel(&self) {
        self.line.cancel();
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(self.line.is_idle())
    }

    fn priority(&self) -> Result<i32> {
        Ok(0)
    }

    fn read(&self, src: &dyn backend::Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_access(self.line.device.id, src, offset, dst.len())?;
        self.line.drain();
        // SAFETY: the range lies in the allocation, which is borrowed and therefore alive.
        unsafe { transfer::read(dst, src.address() + offset) };
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.line.queue.close();
    }
}

impl fmt::Debug for CpuStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuStream({:?})", self.line.queue)
    }
}
