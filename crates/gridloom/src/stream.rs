//! Streams: queues of work that runs in order, asynchronously to the host.

use std::fmt;

use gridloom_core as core;

use crate::buffer::{Buffer, Element};
use crate::{Capture, Device, Error, ErrorKind, Graph, MemoryKind, Result};

/// A queue of device work. The handle is cheap to clone and compares by identity.
///
/// While it is [capturing](Stream::capture), what is enqueued is recorded in a graph and not run.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Stream(pub(crate) core::Stream);

impl Stream {
    /// Returns the device it belongs to.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Starts recording what is done on this stream, through the capture or the stream itself, instead
    /// of running it.
    pub fn capture(&self) -> Result<Capture> {
        self.0.capture().map(Capture)
    }

    /// Captures what `record` does and returns the graph. However it is left, the stream is an ordinary
    /// stream afterwards.
    pub fn capture_scope(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        let capture = self.capture()?;
        record(&capture)?;
        capture.end()
    }

    /// Returns whether it is recording.
    pub fn is_capturing(&self) -> bool {
        self.0.is_capturing()
    }

    /// Waits until everything enqueued so far has run. Returns the first failure since the last call,
    /// once.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// Returns whether everything enqueued so far has run.
    pub fn is_idle(&self) -> Result<bool> {
        self.0.is_idle()
    }

    /// Allocates memory of the stream's device for `len` elements, like [`Device::alloc`]. Refused while
    /// the stream captures: memory for the graph comes from the capture.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Allocates memory of a given kind for `len` elements, like [`Device::alloc_in`]. Refused while the
    /// stream captures.
    pub fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>> {
        if self.is_capturing() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "an allocation on a stream that is capturing: it would be made once and not at each launch; use alloc of the capture for memory of the graph, or alloc of the device for memory that outlives it",
            ));
        }
        self.device().alloc_in(len, kind)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
