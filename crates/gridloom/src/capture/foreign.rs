//! Capture of code that calls CUDA itself, such as a CUDA library.

use gridloom_cuda::foreign;
pub use gridloom_cuda::foreign::{CaptureMode, ForeignOptions, ForeignStream};

use crate::{Capture, Node, Result};

impl Capture {
    /// Lets the CUDA driver capture what `code` enqueues on a stream, and records it here. The
    /// first captured nodes depend on what was recorded last. What is recorded next depends on the
    /// last captured nodes. Returns the captured nodes.
    ///
    /// The captured graph is converted node by node into ordinary nodes: kernels with their
    /// arguments, copies, fills, host calls, events, embedded graphs and allocations. Kernels,
    /// events and memory that belong to Gridloom are recognised. A graph that cannot be converted
    /// becomes one [opaque](crate::NodeKind::Opaque) node, which runs but shows nothing. That
    /// happens if it has a copy from or to an array, a conditional or a semaphore. With a driver
    /// before CUDA 12.4, which does not tell the parameters of kernels, it also happens if it has a
    /// kernel.
    ///
    /// To use the captured work with other memory,
    /// [`Graph::replace_memory`](crate::Graph::replace_memory) points every use of one buffer at
    /// another, and [`Node::set_arg`] changes single arguments.
    ///
    /// An error or a panic of `code` ends the driver's capture. So does anything that the driver
    /// refuses to capture: a prohibited call, a fork that was not joined, a wait for work outside.
    /// In each case this capture stays as it was. Devices that are not GPUs return an error.
    ///
    /// The mode says which calls are prohibited meanwhile. [`CaptureMode::keeping`] adds an owner
    /// for the objects that the captured work uses:
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
    /// - What the captured work uses (memory, loaded code, events, functions and data of host
    ///   calls) stays valid until no graph, executable or launch in flight has the nodes any more,
    ///   or until the owner is dropped. Once this call has returned, memory, kernels and events of
    ///   Gridloom stay alive by themselves where the driver shows them: as an operand of a copy or
    ///   fill, as a kernel argument, or at a multiple of 8 bytes in a structure that is an
    ///   argument. Until then nothing closes or frees them, on any thread. The driver does not show
    ///   an address stored in memory nor, before CUDA 12.4, one in the arguments of a kernel.
    ///   Objects that `code` ties to the captured graph (`cudaGraphRetainUserObject`) are kept too.
    /// - The work may run any number of times, on any stream, and its host calls on any thread.
    /// - Memory that `code` allocates on the stream (`cudaMallocAsync`) gets another address in
    ///   each executable. `code` gives that address to copies, fills and kernels as an operand or
    ///   argument only, and stores it nowhere.
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
