//! Events: points in a stream or graph that can be waited for and timed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use gridloom_core as core;
use gridloom_core::backend;

use crate::{Device, EventOptions, Result};

/// A point in a stream or graph that can be waited for and timed. Created by [`Device::event`].
///
/// The handle is cheap to clone and compares by identity; graphs that use it keep it alive.
#[derive(Clone)]
pub struct Event {
    pub(crate) core: core::Event,
    device: Arc<dyn backend::Device>,
}

impl Event {
    pub(crate) fn new(core: core::Event, device: &Arc<dyn backend::Device>) -> Self {
        Event { core, device: device.clone() }
    }

    /// Returns the device it belongs to.
    pub fn device(&self) -> Device {
        Device::from_backend(self.device.clone())
    }

    /// Returns the options it was created with.
    pub fn options(&self) -> EventOptions {
        self.core.options()
    }

    /// Waits on the host until the latest recording has been reached.
    pub fn synchronize(&self) -> Result<()> {
        self.core.synchronize()
    }

    /// Waits like [`synchronize`](Event::synchronize), but no longer than `timeout`. After that the
    /// error is of kind [`Timeout`](crate::ErrorKind::Timeout).
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.core.synchronize_timeout(timeout)
    }

    /// Returns whether the latest recording has been reached. Returns `true` if the event was never
    /// recorded.
    pub fn is_reached(&self) -> Result<bool> {
        self.core.is_reached()
    }

    /// Returns the time from the recording of `earlier` to the recording of this event. If
    /// `earlier` was recorded later, the time is zero.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        self.core.elapsed_since(&earlier.core)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

impl Eq for Event {}

impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.core.hash(state);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
