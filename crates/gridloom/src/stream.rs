//! Streams: queues of work that runs in order, asynchronously to the host.

use std::fmt;
use std::time::Duration;

use gridloom_core as core;

use crate::buffer::{Buffer, Element};
use crate::{Capture, Device, Error, ErrorKind, Graph, MemoryKind, Result};

/// A queue of device work. The handle is cheap to clone and compares by identity.
///
/// While it is [capturing](Stream::capture), operations on it are recorded in a graph and do not
/// run.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Stream(pub(crate) core::Stream);

impl Stream {
    /// Returns the device it belongs to.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Starts recording operations on this stream, or on the returned capture, instead of running
    /// them.
    pub fn capture(&self) -> Result<Capture> {
        self.0.capture().map(Capture)
    }

    /// Captures what `record` does and returns the graph. Afterwards the stream is an ordinary
    /// stream again, also after an error or a panic.
    pub fn capture_scope(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        let capture = self.capture()?;
        record(&capture)?;
        capture.end()
    }

    /// Returns whether it is capturing.
    pub fn is_capturing(&self) -> bool {
        self.0.is_capturing()
    }

    /// Waits until everything enqueued so far has run. Returns the first failure since the last
    /// call and clears it.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// Waits like [`synchronize`](Stream::synchronize), but no longer than `timeout`.
    ///
    /// After the timeout the error is of kind [`Timeout`](ErrorKind::Timeout). The work continues,
    /// and failures stay for the next call.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.0.synchronize_timeout(timeout)
    }

    /// Cancels the kernels and graph launches that were enqueued on this stream and have not ended.
    ///
    /// Each fails with [`Cancelled`](ErrorKind::Cancelled), which the next
    /// [`synchronize`](Stream::synchronize) returns. A launch stops at the next pass of a loop, the
    /// next block of a kernel, or after some thousand backward branches inside one. A running
    /// callback is not interrupted. Copies, fills, callbacks and events that were enqueued on the
    /// stream itself still run, and so does everything enqueued later. The call does not wait.
    ///
    /// On a GPU it stops launches whose loops the host drives. It cannot stop a kernel there, or a
    /// graph that the GPU runs by itself.
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

    /// Returns the priority. Smaller numbers are served first.
    /// [`StreamOptions`](crate::StreamOptions) says what that means.
    pub fn priority(&self) -> Result<i32> {
        self.0.priority()
    }

    /// Allocates memory of the stream's device for `len` elements, like [`Device::alloc`]. Returns
    /// an error while the stream captures: use `alloc` of the capture for memory of the graph.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Allocates memory of a given kind for `len` elements, like [`Device::alloc_in`]. Returns an
    /// error while the stream captures.
    pub fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>> {
        if self.is_capturing() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "memory cannot be allocated on a stream that is capturing, because that would happen once and not at each launch; use alloc of the capture for memory of the graph, or alloc of the device for memory that outlives it",
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
