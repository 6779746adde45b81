//! Capturing code that Gridloom does not know.

use gridloom_cuda::foreign;
pub use gridloom_cuda::foreign::{CaptureMode, ForeignOptions, ForeignStream};

use crate::{Capture, Node, Result};

impl Capture {
    /// Has the CUDA driver capture what `code` enqueues on a stream, and records it here: the first captured nodes come after what was recorded last,
    /// and what is recorded next comes after the last of them. Returns the nodes.
    ///
    /// What is captured is taken apart, node by node, and is then like anything else in the graph: kernels with their arguments, copies, fills, host calls, events, embedded
    /// graphs, allocations. Kernels, events and memory of Gridloom's come back as themselves. A graph that cannot be taken apart becomes one
    /// [opaque](crate::NodeKind::Opaque) node, which runs but shows nothing: one with a copy from or to an array, a conditional, a semaphore; or, with a driver before CUDA
    /// 12.4, which tells no kernel's parameters, any with a kernel.
    ///
    /// To use the captured work with other memory, [`Graph::replace_memory`](crate::Graph::replace_memory) points every use of one buffer at
    /// another, and [`Node::set_arg`] changes single arguments.
    ///
    /// An error of `code`, a panic in it, and a capture that the driver gives up (a prohibited call, a fork that was not joined, a wait for work outside) end the driver's
    /// capture, and leave this one as it was. Devices that are no GPU refuse.
    ///
    /// The mode says what is prohibited meanwhile; [`CaptureMode::keeping`] adds an owner for what the work uses:
    ///
    /// ```no_run
    /// use std::ffi::c_void;
    /// use gridloom::prelude::*;
    /// # struct Library;
    /// # impl Library { fn transform(&self, _stream: *mut c_void, _data: u64) -> std::result::Result<(), i32> { Ok(()) } }
    /// # fn main() -> Result<()> {
    /// # let library = std::sync::Arc::new(Library);
    /// let device = Device::cuda(0)?;
    /// let stream = device.stream()?;
    /// let (data, other) = (device.alloc::<f32>(1024)?, device.alloc::<f32>(1024)?);
    ///
    /// let graph = stream.capture_scope(|capture| {
    ///     capture.memset(&data, 0u32)?;
    ///     let mode = CaptureMode::ThreadLocal.keeping(library.clone());
    ///     // SAFETY: the library stays loaded while `library` lives, and uses no memory but that of `data`.
    ///     unsafe {
    ///         capture.foreign(mode, |raw| {
    ///             let transformed = library.transform(raw.raw().cast(), data.address()?);
    ///             transformed.map_err(|code| Error::new(ErrorKind::Driver, format!("the library failed: {code}")))
    ///         })?;
    ///     }
    ///     Ok(())
    /// })?;
    ///
    /// let exec = graph.instantiate()?;
    /// // SAFETY: the library's kernels use as much of `other` as of `data`.
    /// unsafe { exec.replace_memory(&data, &other)? };
    /// exec.launch(&stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// - The stream is not used after `code` has returned.
    /// - What the captured work uses stays valid until no graph, executable or launch in flight has the nodes any more, or until the owner is dropped:
    ///   memory, loaded code, events, functions and data of host calls. Memory, kernels and events of Gridloom's keep themselves where the driver
    ///   shows them: as an operand of a copy or fill, as a kernel argument, or aligned to 8 bytes in a structure that is one. An address that is stored in memory it does
    ///   not show, nor, before CUDA 12.4, one in the arguments of a kernel. What `code` ties to the captured graph (`cudaGraphRetainUserObject`) is kept too.
    /// - The work may run any number of times, on any stream, and its host calls on any thread.
    /// - Memory that `code` allocates on the stream (`cudaMallocAsync`) gets another address in each executable. `code` gives that address to copies, fills and
    ///   kernels as an operand or argument only, and stores it nowhere.
    pub unsafe fn foreign(
        &self,
        options: impl Into<ForeignOptions>,
        code: impl FnOnce(&ForeignStream) -> Result<()>,
    ) -> Result<Vec<Node>> {
        // SAFETY: the caller makes the same promises.
        let nodes = unsafe { foreign::record(&self.0, options, code) }?;
        Ok(nodes.into_iter().map(Node).collect())
    }
}
