//! Streams: queues of work that runs in order, asynchronously to the host.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::backend;
use crate::capture::{Branch, Capture, Mark, refuse};
use crate::error::{Result, bail};
use crate::event::Event;
use crate::graph::{Checker, Graph};
use crate::op::{Operation, StreamUse};
use crate::user_code;

/// A queue of device work. The handle is cheap to clone and compares by identity.
///
/// While the stream is [capturing](Stream::capture), enqueued work is recorded in a graph and not
/// run.
#[derive(Clone)]
pub struct Stream {
    device: Arc<dyn backend::Device>,
    device_id: backend::DeviceId,
    backend: Arc<dyn backend::Stream>,
    slot: Arc<Slot>,
}

/// The branch that a stream records into. Nothing clears it when the capture ends. The branch
/// itself knows that it ended, and its session has then released the graph.
#[derive(Default)]
struct Slot {
    branch: Mutex<Option<Branch>>,
    /// Whether there ever was a branch. Most streams never capture, and their launches need not
    /// take the lock.
    used: AtomicBool,
}

impl Slot {
    #[inline]
    fn branch(&self) -> Option<Branch> {
        if !self.used.load(Ordering::Acquire) {
            return None;
        }
        self.branch.lock().clone().filter(Branch::is_capturing)
    }

    /// Records an operation if there is a recording branch. A refused operation stays with the
    /// caller, who drops it without a lock.
    #[inline]
    fn submit(&self, operation: &mut Option<Operation>) -> Option<Result<()>> {
        if !self.used.load(Ordering::Acquire) {
            return None;
        }
        self.branch.lock().as_ref()?.submit(operation)
    }

    /// Makes the stream record into `branch`. `slot` is the locked slot. Returns the previous
    /// branch.
    fn record(&self, slot: &mut Option<Branch>, branch: &Branch) -> Option<Branch> {
        self.used.store(true, Ordering::Release);
        slot.replace(branch.clone())
    }
}

impl Stream {
    /// Creates a stream on a device, with default options.
    pub fn new(device: &impl backend::AsDevice) -> Result<Self> {
        Stream::with_options(device, backend::StreamOptions::default())
    }

    /// Creates a stream on a device. A priority outside of the range of the device is clamped to
    /// it.
    pub fn with_options(device: &impl backend::AsDevice, options: backend::StreamOptions) -> Result<Self> {
        let device = device.as_device().clone();
        let range = device.priority_range()?;
        let priority = options.priority.clamp(*range.start(), *range.end());
        let backend = device.create_stream(options.priority(priority))?;
        Ok(Stream { device_id: device.id(), device, backend, slot: Arc::default() })
    }

    /// Wraps a stream that a backend created or borrowed.
    pub fn from_backend(device: &impl backend::AsDevice, backend: Arc<dyn backend::Stream>) -> Result<Self> {
        let device = device.as_device().clone();
        if backend.device() != device.id() {
            bail!(WrongDevice, "the stream belongs to another device than {}", device.name());
        }
        Ok(Stream { device_id: device.id(), device, backend, slot: Arc::default() })
    }

    /// Returns a handle that does not keep the stream alive.
    pub fn downgrade(&self) -> WeakStream {
        WeakStream {
            device: Arc::downgrade(&self.device),
            backend: Arc::downgrade(&self.backend),
            slot: Arc::downgrade(&self.slot),
        }
    }

    /// Returns the device that the stream belongs to.
    pub fn device(&self) -> &Arc<dyn backend::Device> {
        &self.device
    }

    /// Returns the identity of the device.
    #[inline]
    pub fn device_id(&self) -> backend::DeviceId {
        self.device_id
    }

    /// Returns the backend's stream.
    #[inline]
    pub fn backend(&self) -> &Arc<dyn backend::Stream> {
        &self.backend
    }

    /// Starts recording. Work on the stream or on the returned capture is then recorded in a graph
    /// and not run.
    pub fn capture(&self) -> Result<Capture> {
        // Declared before the lock and so dropped after it, as in `wait`.
        let _before;
        let mut slot = self.slot.branch.lock();
        if slot.as_ref().is_some_and(Branch::is_capturing) {
            bail!(InvalidState, "the stream is capturing already; end that capture first");
        }
        let branch = Branch::primary(Graph::new(&self.device));
        _before = self.slot.record(&mut slot, &branch);
        Ok(Capture::new(branch))
    }

    /// Captures the work that `record` enqueues and returns the graph. Afterwards the stream is an
    /// ordinary stream again, even if `record` fails or panics.
    ///
    /// ```
    /// use gridloom_core::null::NullDevice;
    /// use gridloom_core::op::Operation;
    /// use gridloom_core::Stream;
    ///
    /// let stream = Stream::new(&NullDevice::new())?;
    /// let graph = stream.capture_scope(|capture| {
    ///     capture.add(Operation::Empty)?;
    ///     stream.enqueue(Operation::Empty)
    /// })?;
    /// assert_eq!((graph.len(), graph.edges().len()), (2, 1));
    /// # Ok::<(), gridloom_core::Error>(())
    /// ```
    pub fn capture_scope(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        let capture = self.capture()?;
        record(&capture)?;
        capture.end()
    }

    /// Returns whether the stream records.
    #[inline]
    pub fn is_capturing(&self) -> bool {
        self.slot.branch().is_some()
    }

    #[inline]
    pub(crate) fn branch(&self) -> Option<Branch> {
        self.slot.branch()
    }

    /// Enqueues one operation: a kernel, fill, copy, callback, event record or event wait. A
    /// capturing stream records it instead.
    pub fn enqueue(&self, operation: Operation) -> Result<()> {
        let mut recorded = Some(operation);
        if let Some(result) = self.slot.submit(&mut recorded) {
            return result;
        }
        let operation = recorded.expect("left where it was");
        let facts = operation.kind().facts();
        match facts.stream {
            StreamUse::Runs => {}
            StreamUse::Ignores => return Ok(()),
            StreamUse::Refuses => bail!(
                InvalidArgument,
                "{} belongs in a graph; a stream takes kernels, copies, fills, callbacks and events",
                facts.name
            ),
        }
        user_code::may_use(self.device_id, "work on a stream")?;
        Checker { device: &*self.device, graph: None }.check(&operation)?;
        // SAFETY: the operation was just checked for this device and for a stream.
        unsafe { self.backend.enqueue(&operation) }
    }

    /// Records an event. If the stream is capturing, streams that wait for the event become part of
    /// the capture. Then the recording only orders work and becomes edges of the graph, as in
    /// CUDA's own capture. A recording that no stream of the capture waits for is a node.
    /// [`Capture::record_event`] always adds a node.
    pub fn record(&self, event: &Event) -> Result<()> {
        if let Some(branch) = self.branch() {
            return branch.record_order(event);
        }
        self.enqueue(Operation::EventRecord(event.backend().clone()))?;
        event.set_mark(None);
        Ok(())
    }

    /// Waits for an event. If the event was recorded in a capture in progress, this stream becomes
    /// a fork of that capture. A capturing stream waits for an event of its capture through edges,
    /// and for any other event through a node.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let mark = event.mark();
        let session = mark.as_ref().and_then(Mark::capturing);
        let (known, adopted, _before);
        let mut slot = self.slot.branch.lock();
        known = slot.clone();
        if let Some(branch) = &known
            && branch.is_capturing()
        {
            drop(slot);
            return branch.wait_order(event);
        }
        if let Some((mark, session)) = mark.as_ref().zip(session.as_ref()) {
            if session.device() != self.device.id() {
                bail!(WrongDevice, "the event was recorded in a capture of another device");
            }
            adopted = Branch::adopt(session.clone(), mark)?;
            _before = self.slot.record(&mut slot, &adopted);
            return Ok(());
        }
        drop(slot);
        if let Some(mark) = &mark {
            mark.refuse_edges("waiting for")?;
        }
        self.enqueue(Operation::EventWait(event.backend().clone()))
    }

    /// Waits until everything enqueued so far has run. Returns the first failure since the last
    /// call, once.
    pub fn synchronize(&self) -> Result<()> {
        if self.is_capturing() {
            return Err(refuse("synchronize"));
        }
        let _wait = user_code::may_wait(self.device_id, "synchronize")?;
        self.backend.synchronize()
    }

    /// Waits like [`synchronize`](Stream::synchronize), but at most for `timeout`.
    ///
    /// When the time is over, the call fails with [`Timeout`](crate::ErrorKind::Timeout). The work
    /// continues, and its failures are left for the next call.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        if self.is_capturing() {
            return Err(refuse("synchronize"));
        }
        let _wait = user_code::may_wait(self.device_id, "synchronize")?;
        self.backend.synchronize_timeout(timeout)
    }

    /// Cancels the unfinished kernels and graph launches on this stream.
    ///
    /// Each fails with [`Cancelled`](crate::ErrorKind::Cancelled), which the next
    /// [`synchronize`](Stream::synchronize) reports. A launch stops at the next pass of a loop,
    /// kernel block or backward branch. A running callback is not interrupted. Copies, fills,
    /// callbacks and events that were enqueued on the stream itself still run, and so does all
    /// later work. The call does not wait.
    ///
    /// On a GPU it reaches only launches whose loops the host drives. Nothing can stop a kernel, or
    /// a graph that the GPU runs by itself.
    pub fn cancel(&self) {
        self.backend.cancel();
    }

    /// Returns whether everything enqueued so far has run.
    pub fn is_idle(&self) -> Result<bool> {
        if self.is_capturing() {
            return Err(refuse("query"));
        }
        user_code::may_use(self.device_id, "query of a stream")?;
        self.backend.is_idle()
    }

    /// Returns the priority. Smaller numbers are served first.
    pub fn priority(&self) -> Result<i32> {
        user_code::may_use(self.device_id, "query of a stream")?;
        self.backend.priority()
    }

    /// Waits until everything enqueued on this stream so far has run, then copies bytes from an
    /// allocation. A failure of that work stays for [`synchronize`](Stream::synchronize) to report.
    pub fn read(&self, src: &dyn backend::Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        if self.is_capturing() {
            return Err(refuse("reading a buffer after the work"));
        }
        let _wait = user_code::may_wait(self.device_id, "reading a buffer")?;
        self.backend.read(src, offset, dst)
    }
}

/// A handle to a [`Stream`] that does not keep it alive.
#[derive(Clone)]
pub struct WeakStream {
    device: Weak<dyn backend::Device>,
    backend: Weak<dyn backend::Stream>,
    slot: Weak<Slot>,
}

impl WeakStream {
    /// Returns whether the last handle to the stream is gone.
    pub fn is_expired(&self) -> bool {
        self.slot.strong_count() == 0
    }

    /// Returns the stream, or `None` once the last handle to it is gone. A capture in progress
    /// continues to apply.
    pub fn upgrade(&self) -> Option<Stream> {
        let device = self.device.upgrade()?;
        Some(Stream {
            device_id: device.id(),
            device,
            backend: self.backend.upgrade()?,
            slot: self.slot.upgrade()?,
        })
    }
}

impl fmt::Debug for WeakStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakStream")
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}
impl Eq for Stream {}
impl Hash for Stream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.backend).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.device.name())
    }
}
