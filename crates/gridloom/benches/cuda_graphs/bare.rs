//! The same graphs, built with plain driver calls.

use gridloom::Result;
use gridloom_cuda::Driver;
use gridloom_cuda::sys::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// How the nodes of a graph hang together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Each after the one before.
    Chain,
    /// All after the first.
    FanOut,
}

/// The driver with a stream, and a context that is current on this thread.
pub(crate) struct Bare {
    pub(crate) driver: Arc<Driver>,
    pub(crate) context: CUcontext,
    pub(crate) stream: CUstream,
    start: CUevent,
    end: CUevent,
}

impl Bare {
    pub(crate) fn new(driver: &Arc<Driver>, context: CUcontext, stream: CUstream) -> Result<Self> {
        let (mut start, mut end) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the context is made current for the rest of the program; one handle is written
        // each.
        unsafe {
            driver.cu_ctx_push_current(context)?;
            driver.cu_event_create(&mut start, 0)?;
            driver.cu_event_create(&mut end, 0)?;
        }
        Ok(Bare { driver: Arc::clone(driver), context, stream, start, end })
    }

    /// A kernel of a module that stays loaded.
    pub(crate) fn function(&self, ptx: &str, name: &CStr) -> Result<CUfunction> {
        let text = CString::new(ptx).expect("PTX without NUL");
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the text ends in NUL, there are no options, and one handle is written each.
        unsafe {
            let none = (ptr::null_mut(), ptr::null_mut());
            self.driver.cu_module_load_data_ex(&mut module, text.as_ptr().cast(), 0, none.0, none.1)?;
            self.driver.cu_module_get_function(&mut function, module, name.as_ptr())?;
        }
        Ok(function)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream lives as long as the program.
        Ok(unsafe { self.driver.cu_stream_synchronize(self.stream) }?)
    }

    /// How long the device takes for what `work` puts on the stream.
    pub(crate) fn device_time(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        // SAFETY: events and stream are alive and of one context.
        unsafe { self.driver.cu_event_record(self.start, self.stream) }?;
        work()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: as above; both events are recorded, and one number is written.
        unsafe {
            self.driver.cu_event_record(self.end, self.stream)?;
            self.driver.cu_event_synchronize(self.end)?;
            self.driver.cu_event_elapsed_time(&mut milliseconds, self.start, self.end)?;
        }
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }
}

/// A kernel on one thread.
fn parameters(function: CUfunction, args: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: args.as_mut_ptr(),
        ..Default::default()
    }
}

/// A definition.
pub(crate) struct BareGraph<'a> {
    bare: &'a Bare,
    raw: CUgraph,
}

impl<'a> BareGraph<'a> {
    pub(crate) fn new(bare: &'a Bare) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: one handle is written.
        unsafe { bare.driver.cu_graph_create(&mut raw, 0) }?;
        Ok(BareGraph { bare, raw })
    }

    /// `count` launches of `store`.
    pub(crate) fn stores(
        bare: &'a Bare,
        store: CUfunction,
        shape: Shape,
        count: usize,
        (address, value): (u64, u32),
    ) -> Result<(Self, Vec<CUgraphNode>)> {
        let graph = BareGraph::new(bare)?;
        let mut nodes = Vec::with_capacity(count);
        for index in 0..count {
            let before = match shape {
                _ if index == 0 => None,
                Shape::Chain => Some(nodes[index - 1]),
                Shape::FanOut => Some(nodes[0]),
            };
            nodes.push(graph.store(graph.raw, before, store, address, value)?);
        }
        Ok((graph, nodes))
    }

    fn kernel(
        &self,
        graph: CUgraph,
        before: Option<CUgraphNode>,
        parameters: &CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> Result<CUgraphNode> {
        let mut node = ptr::null_mut();
        let (pointer, count) = before.as_ref().map_or((ptr::null(), 0), |node| (ptr::from_ref(node), 1));
        // SAFETY: graph and dependency are alive, and the parameters point to arguments that fit
        // the kernel.
        unsafe { self.bare.driver.cu_graph_add_kernel_node(&mut node, graph, pointer, count, parameters) }?;
        Ok(node)
    }

    fn store(
        &self,
        graph: CUgraph,
        before: Option<CUgraphNode>,
        store: CUfunction,
        mut address: u64,
        mut value: u32,
    ) -> Result<CUgraphNode> {
        let mut args = [(&raw mut address).cast(), (&raw mut value).cast()];
        self.kernel(graph, before, &parameters(store, &mut args))
    }

    /// One launch of a kernel that counts down: its first argument says where it stores that it
    /// goes on.
    pub(crate) fn countdown(
        &self,
        graph: CUgraph,
        before: Option<CUgraphNode>,
        function: CUfunction,
        (mut goes_on, mut left, mut from): (u64, u64, u32),
    ) -> Result<CUgraphNode> {
        let mut args = [(&raw mut goes_on).cast(), (&raw mut left).cast(), (&raw mut from).cast()];
        self.kernel(graph, before, &parameters(function, &mut args))
    }

    /// A WHILE whose body is a chain of `stores` launches and the one that counts down.
    pub(crate) fn while_loop(
        bare: &'a Bare,
        (store, scratch, stores): (CUfunction, u64, usize),
        (countdown, left, passes): (CUfunction, u64, u32),
    ) -> Result<Self> {
        let graph = BareGraph::new(bare)?;
        let (handle, body) = graph.add_while(None)?;
        let mut last = None;
        for value in 0..stores {
            last = Some(graph.store(body, last, store, scratch, value as u32)?);
        }
        graph.countdown(body, last, countdown, (handle, left, passes))?;
        Ok(graph)
    }

    /// A counter set to `passes`, and a WHILE whose body counts it down and then has a kernel look
    /// whether it is 0.
    pub(crate) fn do_while(
        bare: &'a Bare,
        decrease: CUfunction,
        decide: CUfunction,
        (mut left, passes): (u64, u32),
    ) -> Result<Self> {
        let graph = BareGraph::new(bare)?;
        let mut fill = ptr::null_mut();
        let set = CUDA_MEMSET_NODE_PARAMS {
            dst: left,
            pitch: 4,
            value: passes,
            elementSize: 4,
            width: 1,
            height: 1,
        };
        // SAFETY: the graph is alive, and so is the counter when it runs.
        unsafe {
            bare.driver.cu_graph_add_memset_node(&mut fill, graph.raw, ptr::null(), 0, &set, bare.context)
        }?;
        let (mut handle, body) = graph.add_while(Some(fill))?;
        let mut args = [(&raw mut left).cast()];
        let decreased = graph.kernel(body, None, &parameters(decrease, &mut args))?;
        let mut args = [(&raw mut handle).cast(), (&raw mut left).cast()];
        graph.kernel(body, Some(decreased), &parameters(decide, &mut args))?;
        Ok(graph)
    }

    /// A WHILE that makes a first pass: the handle of its condition, and its body.
    fn add_while(&self, before: Option<CUgraphNode>) -> Result<(CUgraphConditionalHandle, CUgraph)> {
        let (graph, bare) = (self, self.bare);
        let (mut handle, mut node) = (0, ptr::null_mut());
        let mut conditional = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        // SAFETY: graph and context are alive; the parameters are those of a conditional; on
        // success the driver has stored an array of one graph.
        let body = unsafe {
            let driver = &bare.driver;
            let flags = CU_GRAPH_COND_ASSIGN_DEFAULT;
            driver.cu_graph_conditional_handle_create(&mut handle, graph.raw, bare.context, 1, flags)?;
            conditional.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                handle,
                type_: CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
                size: 1,
                phGraph_out: ptr::null_mut(),
                ctx: bare.context,
            };
            let (after, count) = before.as_ref().map_or((ptr::null(), 0), |node| (ptr::from_ref(node), 1));
            driver.cu_graph_add_node(&mut node, graph.raw, after, ptr::null(), count, &mut conditional)?;
            *conditional.__bindgen_anon_1.conditional.phGraph_out
        };
        Ok((handle, body))
    }

    pub(crate) fn raw(&self) -> CUgraph {
        self.raw
    }

    pub(crate) fn instantiate(&self) -> Result<BareExecutable<'a>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the graph is alive; one handle is written; there are no flags.
        unsafe { self.bare.driver.cu_graph_instantiate_with_flags(&mut raw, self.raw, 0) }?;
        Ok(BareExecutable { bare: self.bare, raw })
    }
}

impl Drop for BareGraph<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once. What goes wrong at the end of a benchmark is of no interest.
        let _ = unsafe { self.bare.driver.cu_graph_destroy(self.raw) };
    }
}

/// A graph compiled for launching.
pub(crate) struct BareExecutable<'a> {
    bare: &'a Bare,
    raw: CUgraphExec,
}

impl BareExecutable<'_> {
    pub(crate) fn launch(&self) -> Result<()> {
        // SAFETY: executable and stream are alive, and so is the memory that the kernels write.
        Ok(unsafe { self.bare.driver.cu_graph_launch(self.raw, self.bare.stream) }?)
    }

    /// Gives a launch of `store` another value.
    pub(crate) fn set_store(
        &self,
        node: CUgraphNode,
        store: CUfunction,
        mut address: u64,
        mut value: u32,
    ) -> Result<()> {
        let mut args = [(&raw mut address).cast(), (&raw mut value).cast()];
        let parameters = parameters(store, &mut args);
        let driver = &self.bare.driver;
        // SAFETY: the node is of the graph that this was made from; the arguments fit the kernel.
        Ok(unsafe { driver.cu_graph_exec_kernel_node_set_params(self.raw, node, &parameters) }?)
    }

    pub(crate) fn update(&self, graph: &BareGraph<'_>) -> Result<()> {
        let mut info = CUgraphExecUpdateResultInfo::default();
        // SAFETY: both are alive; one structure is written.
        Ok(unsafe { self.bare.driver.cu_graph_exec_update(self.raw, graph.raw, &mut info) }?)
    }
}

impl Drop for BareExecutable<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once; the stream was waited for.
        let _ = unsafe { self.bare.driver.cu_graph_exec_destroy(self.raw) };
    }
}

/// One word that the host and the device see, for the flag of a loop that the host drives.
pub(crate) struct Flag<'a> {
    bare: &'a Bare,
    word: *mut u32,
}

impl<'a> Flag<'a> {
    pub(crate) fn new(bare: &'a Bare) -> Result<Self> {
        let mut word = ptr::null_mut();
        // SAFETY: one pointer is written.
        unsafe { bare.driver.cu_mem_host_alloc(&mut word, size_of::<u32>(), 0) }?;
        Ok(Flag { bare, word: word.cast() })
    }

    /// Copies the word at a device address, waits for the stream, and says whether it is not 0.
    pub(crate) fn read(&self, source: u64) -> Result<bool> {
        let (driver, stream) = (&self.bare.driver, self.bare.stream);
        // SAFETY: both words are alive, and the host reads its own after the copy has run.
        unsafe {
            driver.cu_memcpy_d_to_h_async(self.word.cast(), source, size_of::<u32>(), stream)?;
            driver.cu_stream_synchronize(stream)?;
            Ok(self.word.read_volatile() != 0)
        }
    }
}

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        // SAFETY: freed once; no copy is in flight.
        let _ = unsafe { self.bare.driver.cu_mem_free_host(self.word.cast()) };
    }
}
