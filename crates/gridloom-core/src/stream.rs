//! Streams: queues of work that runs in order, asynchronously to the host.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::backend;
use crate::error::{Result, bail};
use crate::graph::Place;
use crate::op::{self, NodeKind, Operation};

/// A queue of device work. The handle is cheap to clone and compares by identity.
#[derive(Clone)]
pub struct Stream {
    device: Arc<dyn backend::Device>,
    backend: Arc<dyn backend::Stream>,
}

impl Stream {
    /// A new stream of a device.
    pub fn new(device: &impl backend::AsDevice) -> Result<Self> {
        let device = device.as_device().clone();
        let backend = device.create_stream()?;
        Ok(Stream { device, backend })
    }

    /// The device it belongs to.
    pub fn device(&self) -> &Arc<dyn backend::Device> {
        &self.device
    }

    /// The backend's part of it.
    pub fn backend(&self) -> &Arc<dyn backend::Stream> {
        &self.backend
    }

    /// Enqueues one operation: a kernel, fill, copy, callback, record or wait.
    pub fn enqueue(&self, operation: &Operation) -> Result<()> {
        match operation.kind() {
            NodeKind::Kernel
            | NodeKind::Memset
            | NodeKind::Memcpy
            | NodeKind::Callback
            | NodeKind::EventRecord
            | NodeKind::EventWait => {}
            NodeKind::Empty => return Ok(()),
            kind => bail!(
                InvalidArgument,
                "{} belongs in a graph; a stream takes kernels, copies, fills, callbacks and events",
                kind.name()
            ),
        }
        op::refuse_in_callback("work on a stream")?;
        Place { device: &*self.device, graph: None }.check(operation)?;
        self.backend.enqueue(operation)
    }

    /// Waits until everything enqueued so far has run. The first failure since the last call is returned, once.
    pub fn synchronize(&self) -> Result<()> {
        op::refuse_in_callback("synchronize")?;
        self.backend.synchronize()
    }

    /// Whether everything enqueued so far has run.
    pub fn is_idle(&self) -> Result<bool> {
        self.backend.is_idle()
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
