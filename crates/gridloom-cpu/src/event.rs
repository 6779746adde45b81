//! Events: points in a stream or graph that can be waited for and timed.
//!
//! Every record operation creates a *recording* when it is *enqueued*. A wait holds the recording
//! that was the latest when the wait was enqueued. Recording an event again therefore does not
//! affect waits for the earlier recording.
//!
//! # Why no wait lasts forever
//!
//! A recording becomes the latest when the work that reaches it enters the queue of its stream, and
//! not before. Both happen under the lock of the queue
//! (`Queue::push_and`). Work takes the recordings that it waits
//! for before it is enqueued itself. Everything that an item of work waits for, on its own stream
//! or through an event, was therefore enqueued before it. The item that was enqueued first of all
//! waits for nothing.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridloom_core::backend::{self, DeviceId, EventOptions};
use gridloom_core::event::CaptureMark;
use gridloom_core::{Error, ErrorKind, Result};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// The number of spins of a host thread before it sleeps, for an event without `blocking`.
const SPINS: u32 = 4096;

/// One recording of an event.
pub(crate) struct Recording {
    /// The time of the latest pass in nanoseconds of the event's clock plus one, or 0 before.
    passed_at: AtomicU64,
    reached: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Recording {
    /// Creates a recording for work that is about to be enqueued. Nobody knows it yet.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Recording {
            passed_at: AtomicU64::new(0),
            reached: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        })
    }

    /// Returns whether the record operation has run. It may run again in the same launch.
    pub(crate) fn is_passed(&self) -> bool {
        self.passed_at.load(Ordering::Acquire) != 0
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Acquire)
    }

    /// Releases all waiters.
    pub(crate) fn reach(&self) {
        let guard = self.lock.lock();
        self.reached.store(true, Ordering::Release);
        drop(guard);
        self.wake.notify_all();
    }

    /// Takes over the time of the previous recording if the launch ended without recording.
    pub(crate) fn inherit(&self, earlier: Option<&Recording>) {
        if let Some(earlier) = earlier
            && !self.is_passed()
        {
            self.passed_at.store(earlier.passed_at.load(Ordering::Acquire), Ordering::Release);
        }
    }

    pub(crate) fn wait(&self) {
        if self.is_reached() {
            return;
        }
        let mut guard = self.lock.lock();
        while !self.is_reached() {
            self.wake.wait(&mut guard);
        }
    }

    /// Waits, but not past the deadline. Returns whether the recording is reached.
    pub(crate) fn wait_until(&self, deadline: Instant) -> bool {
        let mut guard = self.lock.lock();
        while !self.is_reached() {
            if self.wake.wait_until(&mut guard, deadline).timed_out() {
                return self.is_reached();
            }
        }
        true
    }
}

/// An event of the CPU device.
pub(crate) struct CpuEvent {
    device: DeviceId,
    options: EventOptions,
    /// The start of the clock. It is the same for all events of a device.
    epoch: Instant,
    latest: Mutex<Option<Arc<Recording>>>,
    mark: CaptureMark,
}

impl CpuEvent {
    pub(crate) fn new(device: DeviceId, options: EventOptions, epoch: Instant) -> Arc<Self> {
        Arc::new(CpuEvent { device, options, epoch, latest: Mutex::new(None), mark: CaptureMark::default() })
    }

    /// Returns the recording that later waits will wait for.
    pub(crate) fn latest(&self) -> Option<Arc<Recording>> {
        self.latest.lock().clone()
    }

    /// Makes a recording the latest one. The work that reaches it is being enqueued, under the lock
    /// of its queue.
    pub(crate) fn publish(&self, recording: &Arc<Recording>) {
        // The previous recording is dropped after the lock is released.
        let _before = self.latest.lock().replace(recording.clone());
    }

    /// Notes that the record operation of `recording` runs now.
    pub(crate) fn pass(&self, recording: &Recording) {
        let now = if self.options.timing { self.epoch.elapsed().as_nanos() as u64 } else { 0 };
        recording.passed_at.store(now + 1, Ordering::Release);
    }

    fn time(&self, which: &str) -> Result<u64> {
        let latest = self.latest();
        let state =
            |message: &str| Error::new(ErrorKind::InvalidState, format!("the {which} event {message}"));
        match latest {
            None => Err(state("was never recorded")),
            Some(recording) if !recording.is_reached() => {
                Err(state("has not been reached yet; synchronize with it first"))
            }
            Some(recording) => match recording.passed_at.load(Ordering::Acquire) {
                0 => Err(state("was not recorded by the launch that contains it")),
                time => Ok(time - 1),
            },
        }
    }
}

// SAFETY: the event belongs to the device that created it.
unsafe impl backend::Event for CpuEvent {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn options(&self) -> EventOptions {
        self.options
    }

    fn capture_mark(&self) -> &CaptureMark {
        &self.mark
    }

    fn synchronize(&self) -> Result<()> {
        let Some(recording) = self.latest() else {
            return Ok(());
        };
        if !self.options.blocking {
            for _ in 0..SPINS {
                if recording.is_reached() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
        recording.wait();
        Ok(())
    }

    fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        match self.latest() {
            Some(recording) if !recording.wait_until(backend::deadline(timeout)) => {
                Err(backend::timed_out("the work before the event", timeout))
            }
            _ => Ok(()),
        }
    }

    fn is_reached(&self) -> Result<bool> {
        Ok(self.latest().is_none_or(|recording| recording.is_reached()))
    }

    fn elapsed_since(&self, earlier: &dyn backend::Event) -> Result<Duration> {
        let Some(earlier) = earlier.as_any().downcast_ref::<CpuEvent>() else {
            return Err(Error::new(ErrorKind::WrongDevice, "the earlier event is not one of the CPU device"));
        };
        let (from, to) = (earlier.time("earlier")?, self.time("later")?);
        Ok(Duration::from_nanos(to.saturating_sub(from)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.latest() {
            None => "never recorded",
            Some(recording) if recording.is_reached() => "reached",
            Some(_) => "pending",
        };
        write!(f, "CpuEvent({state})")
    }
}

/// Returns the event of this device behind a trait object.
pub(crate) fn own(event: &Arc<dyn backend::Event>) -> Result<&CpuEvent> {
    event
        .as_any()
        .downcast_ref()
        .ok_or_else(|| Error::new(ErrorKind::WrongDevice, "the event is not one of the CPU device"))
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::queue::Queue;
    use loom::cell::UnsafeCell;
    use loom::thread;

    /// A piece of a stream's work, as far as events go.
    enum Piece {
        Record(Arc<Recording>),
        Wait(Arc<Recording>),
    }

    /// A stream.
    #[derive(Clone)]
    struct Pieces(Arc<Queue<Piece>>);

    impl Pieces {
        fn new() -> Self {
            Pieces(Arc::new(Queue::new()))
        }

        fn record(&self, event: &CpuEvent) {
            let recording = Recording::new();
            self.0.push_and(Piece::Record(recording.clone()), || event.publish(&recording));
        }

        fn wait(&self, event: &CpuEvent) {
            if let Some(recording) = event.latest() {
                self.0.push(Piece::Wait(recording));
            }
        }

        fn drain(&self) {
            self.0.drain(|piece, _| {
                match piece {
                    Piece::Record(recording) => recording.reach(),
                    Piece::Wait(recording) => recording.wait(),
                }
                Ok(())
            });
        }
    }

    fn event() -> Arc<CpuEvent> {
        CpuEvent::new(DeviceId::fresh(), EventOptions::default(), Instant::now())
    }

    #[test]
    fn a_stream_on_which_one_thread_records_and_another_waits_comes_to_its_end() {
        loom::model(|| {
            let (stream, event) = (Pieces::new(), event());
            let waiting = {
                let (stream, event) = (stream.clone(), event.clone());
                thread::spawn(move || stream.wait(&event))
            };
            stream.record(&event);
            waiting.join().unwrap();
            stream.drain();
        });
    }

    #[test]
    fn streams_that_hand_events_to_each_other_come_to_their_ends() {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let (one, other) = (Pieces::new(), Pieces::new());
            let (first, second) = (event(), event());
            let beside = {
                let (first, second) = (first.clone(), second.clone());
                thread::spawn(move || {
                    other.wait(&first);
                    other.record(&second);
                    other.drain();
                })
            };
            one.wait(&second);
            one.record(&first);
            one.drain();
            beside.join().unwrap();
        });
    }

    #[test]
    fn who_waits_goes_on_once_and_sees_what_came_before() {
        loom::model(|| {
            let shared = loom::sync::Arc::new((Recording::new(), UnsafeCell::new(0)));
            let waiting: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.0.wait();
                        // SAFETY: the recording was reached, and nothing writes after that.
                        assert_eq!(shared.1.with(|value| unsafe { *value }), 7);
                    })
                })
                .collect();
            // SAFETY: nobody reads before the recording is reached.
            shared.1.with_mut(|value| unsafe { *value = 7 });
            shared.0.reach();
            waiting.into_iter().for_each(|waiting| waiting.join().unwrap());
        });
    }
}
