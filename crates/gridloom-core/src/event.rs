//! Events: points in a stream or graph that can be waited for and timed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend::{self, EventOptions};
use crate::capture::Mark;
use crate::error::{Result, bail};
use crate::user_code;

/// A point in a stream or graph. The handle is cheap to clone and compares by identity. Graphs that
/// use the event keep it alive.
#[derive(Clone)]
pub struct Event(Arc<dyn backend::Event>);

/// The place in a capture where an event was last recorded. The event of the backend has it, so
/// that all handles of one event know it, also those that a node returns.
#[derive(Default)]
pub struct CaptureMark(Mutex<Option<Mark>>);

impl fmt::Debug for CaptureMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CaptureMark")
    }
}

impl Event {
    /// Creates an event on a device.
    pub fn new(device: &impl backend::AsDevice, options: EventOptions) -> Result<Self> {
        Ok(Event::from_backend(device.as_device().create_event(options)?))
    }

    /// Wraps the event of a node.
    pub fn from_backend(backend: Arc<dyn backend::Event>) -> Self {
        Event(backend)
    }

    /// Returns a handle that does not keep the event alive.
    pub fn downgrade(&self) -> WeakEvent {
        WeakEvent(Arc::downgrade(&self.0))
    }

    /// Returns the backend's event.
    pub fn backend(&self) -> &Arc<dyn backend::Event> {
        &self.0
    }

    pub(crate) fn mark(&self) -> Option<Mark> {
        self.0.capture_mark().0.lock().clone()
    }

    pub(crate) fn set_mark(&self, mark: Option<Mark>) {
        let old = std::mem::replace(&mut *self.0.capture_mark().0.lock(), mark);
        drop(old);
    }

    /// Fails while the latest recording is part of a capture in progress. Such a recording has not
    /// run, so there is nothing to wait for.
    fn refuse_captured(&self, operation: &str) -> Result<()> {
        let Some(mark) = self.mark() else { return Ok(()) };
        if mark.capturing().is_some() {
            bail!(
                InvalidState,
                "{operation} an event that was recorded in a capture: it has not been reached, only recorded; end the capture and launch its graph first"
            );
        }
        mark.refuse_edges(operation)
    }

    /// Forgets a capture that is over, because a node of a graph records the event from now on.
    pub fn recorded_by_node(&self) {
        if self.mark().is_some_and(|mark| mark.capturing().is_none()) {
            self.set_mark(None);
        }
    }

    /// Returns the options that the event was created with.
    pub fn options(&self) -> EventOptions {
        self.0.options()
    }

    /// Blocks the host until the latest recording is reached.
    pub fn synchronize(&self) -> Result<()> {
        self.refuse_captured("synchronizing with")?;
        let _wait = user_code::may_wait(self.0.device(), "synchronize of an event")?;
        self.0.synchronize()
    }

    /// Waits like [`synchronize`](Event::synchronize), but at most for `timeout`. When the time is
    /// over, the call fails with [`Timeout`](crate::ErrorKind::Timeout).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.refuse_captured("synchronizing with")?;
        let _wait = user_code::may_wait(self.0.device(), "synchronize of an event")?;
        self.0.synchronize_timeout(timeout)
    }

    /// Returns whether the latest recording is reached. An event that was never recorded counts as
    /// reached.
    pub fn is_reached(&self) -> Result<bool> {
        self.refuse_captured("asking for")?;
        user_code::may_use(self.0.device(), "query of an event")?;
        self.0.is_reached()
    }

    /// Returns the time from the recording of `earlier` to the recording of this event. If
    /// `earlier` was recorded later, the time is zero.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        if self.0.device() != earlier.0.device() {
            bail!(
                WrongDevice,
                "the two events belong to different devices; only events of one device can be compared"
            );
        }
        if !self.options().timing || !earlier.options().timing {
            bail!(InvalidArgument, "an event without timing cannot be timed; make both with timing");
        }
        self.refuse_captured("timing")?;
        earlier.refuse_captured("timing")?;
        self.0.elapsed_since(&*earlier.0)
    }
}

/// A handle to an [`Event`] that does not keep it alive.
#[derive(Clone)]
pub struct WeakEvent(Weak<dyn backend::Event>);

impl WeakEvent {
    /// Returns whether the last handle to the event is gone.
    pub fn is_expired(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Returns the event, or `None` once the last handle to it is gone. A capture in which it was
    /// recorded still applies.
    pub fn upgrade(&self) -> Option<Event> {
        self.0.upgrade().map(Event)
    }
}

impl fmt::Debug for WeakEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakEvent")
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Event {}
impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?})", self.options())
    }
}
