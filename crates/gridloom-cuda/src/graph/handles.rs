//! The driver's graphs, destroyed with their owners.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::release::Handle;
use crate::sys::*;
use std::ptr;
use std::sync::Arc;

/// A `CUgraph`. The driver allows one thread at a time to use it. It is used only while an
/// executable is made.
#[derive(Debug)]
pub(crate) struct CudaGraph {
    context: Arc<Context>,
    raw: CUgraph,
}

// SAFETY: the handle is not bound to a thread; the owner sees to it that one at a time uses it.
unsafe impl Send for CudaGraph {}
// SAFETY: nothing can be done with a shared reference but read the handle's value.
unsafe impl Sync for CudaGraph {}

impl CudaGraph {
    /// Calls [`cuGraphCreate`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn new(context: &Arc<Context>) -> DriverResult<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: one handle is written; 0 is the one flag there is.
        unsafe { context.driver().cu_graph_create(&mut raw, 0)? };
        Ok(Self { context: Arc::clone(context), raw })
    }

    /// Takes ownership of a graph that other code made.
    ///
    /// # Safety
    /// The graph exists, and no other code destroys it.
    pub(crate) unsafe fn from_raw(context: &Arc<Context>, raw: CUgraph) -> Self {
        Self { context: Arc::clone(context), raw }
    }

    /// Copies a graph that exists and that no other thread uses.
    /// ([`cuGraphClone`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    pub(crate) fn copy_of(context: &Arc<Context>, original: CUgraph) -> DriverResult<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: promised by the caller; one handle is written.
        unsafe { context.driver().cu_graph_clone(&mut raw, original)? };
        Ok(Self { context: Arc::clone(context), raw })
    }

    pub(crate) fn raw(&self) -> CUgraph {
        self.raw
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let raw = Handle(self.raw);
        // SAFETY: destroyed once; executables made from it are independent of it.
        self.context.let_go("graph", move |driver| unsafe { driver.cu_graph_destroy(raw.raw()) });
    }
}

/// A `CUgraphExec`.
#[derive(Debug)]
pub(super) struct CudaExecutable {
    context: Arc<Context>,
    raw: CUgraphExec,
}

// SAFETY: the handle is not bound to a thread; the owner sees to it that calls come one at a time.
unsafe impl Send for CudaExecutable {}
// SAFETY: as above.
unsafe impl Sync for CudaExecutable {}

/// Why a graph could not be compiled.
#[derive(Debug)]
pub(super) struct InstantiateFailure {
    pub(super) error: crate::driver::DriverError,
    pub(super) result: CUgraphInstantiateResult,
    /// The node that the driver blames, if it names one.
    pub(super) node: Option<CUgraphNode>,
}

impl CudaExecutable {
    /// Calls [`cuGraphInstantiateWithParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn new(
        context: &Arc<Context>,
        graph: &CudaGraph,
        flags: CUgraphInstantiate_flags,
    ) -> Result<Self, InstantiateFailure> {
        let mut raw = ptr::null_mut();
        let mut parameters = CUDA_GRAPH_INSTANTIATE_PARAMS { flags: flags.0.into(), ..Default::default() };
        // SAFETY: the graph is alive and used by this thread alone; one handle is written.
        let made = unsafe {
            context.driver().cu_graph_instantiate_with_params(&mut raw, graph.raw, &mut parameters)
        };
        match made {
            Ok(()) => Ok(Self { context: Arc::clone(context), raw }),
            Err(error) => {
                let node = (!parameters.hErrNode_out.is_null()).then_some(parameters.hErrNode_out);
                Err(InstantiateFailure { error, result: parameters.result_out, node })
            }
        }
    }

    /// Returns the driver's handle.
    pub(super) fn raw(&self) -> CUgraphExec {
        self.raw
    }

    /// Calls [`cuGraphLaunch`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    ///
    /// # Safety
    ///
    /// The context is current, or the driver [launches anywhere](Context::enter_for_launch), and
    /// everything that the graph uses lives until the launch has run.
    pub(super) unsafe fn launch(&self, stream: CUstream) -> DriverResult<()> {
        // SAFETY: promised by the caller.
        unsafe { self.context.driver().cu_graph_launch(self.raw, stream) }
    }

    /// Calls [`cuGraphUpload`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn upload(&self, stream: CUstream) -> DriverResult<()> {
        // SAFETY: both handles are alive; uploading runs no node.
        unsafe { self.context.driver().cu_graph_upload(self.raw, stream) }
    }
}

impl Drop for CudaExecutable {
    fn drop(&mut self) {
        let raw = Handle(self.raw);
        // SAFETY: destroyed once; the driver lets a launch in flight finish.
        self.context
            .let_go("executable graph", move |driver| unsafe { driver.cu_graph_exec_destroy(raw.raw()) });
    }
}
