//! Capture of code that Gridloom does not know: libraries that enqueue work on a stream of the
//! driver.
//!
//! 1. `recording` makes a stream of its own and has the driver capture it while the code runs.
//! 2. `introspect` reads the captured `CUgraph`. `import` converts it to a graph of the core, node
//!    by node, with the help of `kernels` and `memory`. Kernels, events and memory that Gridloom
//!    made become the same objects again.
//! 3. A graph that cannot be converted becomes one node of kind `opaque`.
//! 4. The nodes are recorded in the capture, after what it has recorded before.
//!
//! The capture is not touched before the last step, so a failure leaves it unchanged.

mod captured;
mod import;
mod introspect;
mod kernels;
mod memory;
mod opaque;
mod recording;

use crate::CudaDevice;
use crate::interop::Owner;
use crate::sys::*;
use captured::Captured;
use gridloom_core::user_code;
use gridloom_core::{Capture, Error, ErrorKind, Node, Result};
use import::Importer;
pub(crate) use opaque::OpaqueGraph;
use recording::Recording;
use std::fmt;

/// Which threads may make calls that could disturb a capture by the driver: calls that may wait for
/// the device and are not enqueued on a stream, such as an allocation with `cudaMalloc`.
///
/// A call that the mode prohibits fails and invalidates the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureMode {
    /// No thread of the process may make such calls during the capture.
    Global,
    /// The capturing thread may not make such calls. Other threads may.
    ThreadLocal,
    /// Every thread may make such calls. The code itself ensures that none of them belongs in the
    /// graph.
    Relaxed,
}

impl CaptureMode {
    fn raw(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }

    /// Returns options with this mode and an owner of what the captured work uses: see
    /// [`ForeignOptions::owner`].
    pub fn keeping(self, owner: impl Into<Owner>) -> ForeignOptions {
        ForeignOptions::from(self).keeping(owner)
    }

    /// Returns options with this mode that keep the captured work as one opaque node: see
    /// [`ForeignOptions::opaque`].
    pub fn opaque(self) -> ForeignOptions {
        ForeignOptions::from(self).opaque()
    }
}

/// How foreign code is captured.
#[derive(Clone)]
#[non_exhaustive]
pub struct ForeignOptions {
    /// What is prohibited during the capture.
    pub mode: CaptureMode,
    /// Whatever keeps alive what the captured work uses and Gridloom does not know: memory,
    /// kernels, events, data of callbacks. It is kept by each captured node, then by executables
    /// and launches in flight, and may be dropped on any thread.
    pub owner: Option<Owner>,
    /// Whether the captured work stays one opaque node even if it could be split. An opaque node
    /// cannot be changed, and keeps every hint of its launches; a split node loses those about
    /// caches, scheduling and fences.
    pub opaque: bool,
}

impl ForeignOptions {
    /// Returns these options with an owner.
    #[must_use]
    pub fn keeping(mut self, owner: impl Into<Owner>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Returns these options, with the captured work kept as one opaque node.
    #[must_use]
    pub fn opaque(mut self) -> Self {
        self.opaque = true;
        self
    }
}

impl From<CaptureMode> for ForeignOptions {
    fn from(mode: CaptureMode) -> Self {
        Self { mode, owner: None, opaque: false }
    }
}

impl fmt::Debug for ForeignOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignOptions")
            .field("mode", &self.mode)
            .field("owner", &self.owner.is_some())
            .field("opaque", &self.opaque)
            .finish()
    }
}

/// The stream that foreign code works on while it is captured. It exists for the time of the call,
/// in the device's primary context, which is current on the thread.
pub struct ForeignStream {
    context: CUcontext,
    raw: CUstream,
}

impl ForeignStream {
    /// Returns the driver's handle. It is the same as a `cudaStream_t` of the runtime.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// Returns the context that the stream belongs to.
    pub fn context(&self) -> CUcontext {
        self.context
    }
}

impl fmt::Debug for ForeignStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignStream({:p})", self.raw)
    }
}

/// Captures, with the driver, what `code` enqueues on a stream, and records it. Returns the nodes
/// in the order in which the driver lists them.
///
/// # Safety
/// - The stream is not used after `code` has returned.
/// - What the captured work uses stays valid until no graph, executable or launch in flight has the
///   nodes any more, or until the owner in `options` is dropped: memory, loaded code, events,
///   functions and data of host calls. Memory, kernels and events of Gridloom's keep themselves
///   where the driver shows them: as an operand of a copy or fill, as an argument of a kernel or in
///   a structure that is one, aligned to 8 bytes. So does what `code` ties to the captured graph
///   (`cuGraphRetainUserObject`).
/// - Memory that `code` allocates on the stream (`cuMemAllocAsync`) gets its address anew when the
///   graph is instantiated. `code` passes that address on as an operand or kernel argument only,
///   and does not store it in memory.
/// - A kernel that `code` launches programmatically waits for the kernels it depends on
///   (`griddepcontrol.wait`) before it ends.
/// - Work may run any number of times, on any stream, and in any order that the capture allows.
pub unsafe fn record(
    capture: &Capture,
    options: impl Into<ForeignOptions>,
    code: impl FnOnce(&ForeignStream) -> Result<()>,
) -> Result<Vec<Node>> {
    let ForeignOptions { mode, owner, opaque } = options.into();
    let backend = capture.recording_device()?;
    let Some(device) = backend.as_any().downcast_ref::<CudaDevice>() else {
        return Err(Error::new(
            ErrorKind::NotSupported,
            format!(
                "foreign capture needs a CUDA device, whose driver captures the code; {} has none",
                backend.name()
            ),
        ));
    };
    user_code::may_use(backend.id(), "a foreign capture")?;
    let recording = Recording::begin(device.context(), mode)?;
    let entered = device.context().enter()?;
    let stream = ForeignStream { context: device.context().raw(), raw: recording.stream() };
    // A panic unwinds through the recording, which ends the capture and throws it away.
    let outcome = code(&stream);
    drop(entered);
    let captured = match outcome {
        Ok(()) => recording.end()?,
        Err(error) => return Err(error),
    };
    let imported = Importer::new(device, &backend, Captured::new(captured, owner)).import(opaque)?;
    capture.inline(&imported)
}
