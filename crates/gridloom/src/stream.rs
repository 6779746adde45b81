//! Streams: queues of work that runs in order, asynchronously to the host.

use std::fmt;
use std::time::Duration;

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

    /// Waits like [`synchronize`](Stream::synchronize), but no longer than `timeout`.
    ///
    /// Where that is not enough, the error is of kind [`Timeout`](ErrorKind::Timeout), the work goes on, and
    /// failures are left for the next call.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.0.synchronize_timeout(timeout)
    }

    /// Cancels kernels and launches of graphs that were enqueued on this stream so far and have not ended.
    ///
    /// Each fails with [`Cancelled`](ErrorKind::Cancelled), which the next
    /// [`synchronize`](Stream::synchronize) reports. A launch stops at the next pass of a loop, the next
    /// block of a kernel, or after some thousand backward branches inside one; a callback that runs is not
    /// interrupted. Copies, fills, callbacks and events that were enqueued on the stream itself run as ever,
    /// and so does everything enqueued later. The call waits for nothing.
    ///
    /// On a GPU it reaches launches whose loops the host drives. Nothing can stop a kernel there, or a graph
    /// that the GPU runs by itself.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// let device = Device::cpu()?;
    /// let (stream, word) = (device.stream()?, device.buffer_from(&[1i32])?);
    /// let graph = Graph::new(&device);
    /// graph.while_nonzero(&word)?;
    /// graph.instantiate()?.launch(&stream)?;
    /// stream.cancel();
    /// assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::Cancelled);
    /// # Ok::<(), gridloom::Error>(())
    /// ```
    pub fn cancel(&self) {
        self.0.cancel();
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
