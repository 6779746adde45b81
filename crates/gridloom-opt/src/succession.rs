//! Replacement of one executable by another: order of launches, and cancellation.

use std::fmt;
use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::backend::{Cancel, Device, Event, EventOptions, Stream};
use gridloom_core::op::Operation;
use parking_lot::Mutex;

/// The executables that ran in one place, one after the other.
///
/// Launches of a later one wait for those of the earlier ones, and cancelling reaches all of them.
#[derive(Debug)]
pub(crate) struct Succession {
    /// The end of the earlier executables' launches, until a launch follows them.
    earlier: Option<Arc<dyn Event>>,
    cancels: Arc<Mutex<Cancels>>,
    /// Whether there are cancel functions of earlier executables.
    has_before: bool,
}

/// The cancel functions of the current executable and of earlier ones.
#[derive(Default)]
struct Cancels {
    now: Option<Cancel>,
    /// With the end of their launches.
    before: Vec<(Cancel, Arc<dyn Event>)>,
}

impl fmt::Debug for Cancels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cancels({} and {} before)", self.now.is_some(), self.before.len())
    }
}

impl Succession {
    pub(crate) fn new(first: Option<Cancel>) -> Self {
        let cancels = Cancels { now: first, before: Vec::new() };
        Succession { earlier: None, cancels: Arc::new(Mutex::new(cancels)), has_before: false }
    }

    /// Returns the event of the end of the launches so far, if there were any. `last` is the stream
    /// of the latest.
    pub(crate) fn end(device: &dyn Device, last: Option<&Arc<dyn Stream>>) -> Result<Option<Arc<dyn Event>>> {
        let Some(last) = last else { return Ok(None) };
        let event = device.create_event(EventOptions::new().timing(false))?;
        // SAFETY: stream and event are of this device.
        unsafe { last.enqueue(&Operation::EventRecord(event.clone())) }?;
        Ok(Some(event))
    }

    /// Puts another executable in the place of the current one, whose launches end with `end`.
    pub(crate) fn replace(&mut self, end: Option<Arc<dyn Event>>, now: Option<Cancel>) {
        let mut cancels = self.cancels.lock();
        let old = std::mem::replace(&mut cancels.now, now);
        let mut unused = None;
        match (old, &end) {
            (Some(old), Some(end)) => {
                cancels.before.push((old, end.clone()));
                self.has_before = true;
            }
            (old, _) => unused = old,
        }
        drop(cancels);
        drop(unused);
        if end.is_some() {
            self.earlier = end;
        }
    }

    /// Makes a stream wait for the launches of earlier executables, before a launch of the current
    /// one.
    #[inline]
    pub(crate) fn before_launch(&mut self, stream: &Arc<dyn Stream>) -> Result<()> {
        if self.has_before {
            self.forget_ended();
        }
        if let Some(event) = &self.earlier {
            // SAFETY: stream and event are of this device.
            unsafe { stream.enqueue(&Operation::EventWait(event.clone())) }?;
        }
        Ok(())
    }

    /// Notes that a launch of the current executable follows the earlier ones.
    #[inline]
    pub(crate) fn launched(&mut self) {
        if self.earlier.is_some() {
            self.earlier = None;
        }
    }

    /// Forgets executables whose launches have ended.
    #[cold]
    fn forget_ended(&mut self) {
        let mut cancels = self.cancels.lock();
        let all = std::mem::take(&mut cancels.before);
        let (running, over): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, end)| matches!(end.is_reached(), Ok(false)));
        self.has_before = !running.is_empty();
        cancels.before = running;
        drop(cancels);
        drop(over);
    }

    /// Returns the function that cancels the launches of all executables.
    pub(crate) fn canceller(&self) -> Cancel {
        let cancels = self.cancels.clone();
        Arc::new(move || {
            let all: Vec<Cancel> = {
                let cancels = cancels.lock();
                cancels.before.iter().map(|(cancel, _)| cancel).chain(&cancels.now).cloned().collect()
            };
            all.iter().for_each(|cancel| cancel());
        })
    }
}
