//! Graphs and launches by bare driver calls.

use crate::Error;
use crate::threads::THREADS;
use crate::variant::{Change, Form, Special, Variant};
use gridloom_cuda::driver::Driver;
use gridloom_cuda::sys::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

const PTX: &str = include_str!("../../tests/kernels/gpu.ptx");
/// `countdown` and `add` for kernels that start before the one that they follow has ended.
const EARLY: &str = "
.version 8.3
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry countdown(.param .u64 p_handle, .param .u64 p_left)
{
    .reg .pred %more;
    .reg .b32 %left, %again;
    .reg .b64 %handle, %address;
    .param .b64 handle;
    .param .b32 value;
    griddepcontrol.wait;
    ld.param.u64 %handle, [p_handle];
    ld.param.u64 %address, [p_left];
    ld.u32 %left, [%address];
    sub.u32 %left, %left, 1;
    st.u32 [%address], %left;
    setp.gt.s32 %more, %left, 0;
    selp.u32 %again, 1, 0, %more;
    st.param.b64 [handle], %handle;
    st.param.b32 [value], %again;
    call.uni cudaGraphSetConditional, (handle, value);
    ret;
}
.visible .entry add(.param .u64 p_data, .param .u32 p_value, .param .u32 p_n)
{
    .reg .pred %out;
    .reg .b32 %block, %threads, %i, %n, %value, %old;
    .reg .b64 %data, %offset;
    griddepcontrol.wait;
    ld.param.u64 %data, [p_data];
    ld.param.u32 %value, [p_value];
    ld.param.u32 %n, [p_n];
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %block, %threads, %i;
    setp.ge.u32 %out, %i, %n;
    @%out ret;
    mul.wide.u32 %offset, %i, 4;
    add.u64 %data, %data, %offset;
    ld.u32 %old, [%data];
    add.u32 %old, %old, %value;
    st.u32 [%data], %old;
    ret;
}
";
const IF: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
const WHILE: CUgraphConditionalNodeType = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
/// Passes of a loop.
const PASSES: u32 = 5;
/// The words that a graph counts in, the first of which are the passes left.
const WORDS: usize = 64;

/// The driver with its kernels, in one context.
#[derive(Clone)]
pub(crate) struct Bare {
    pub(crate) driver: Arc<Driver>,
    pub(crate) context: CUcontext,
    add: CUfunction,
    countdown: CUfunction,
    set_condition: CUfunction,
    countdown_early: CUfunction,
    add_early: CUfunction,
    /// One for each thread.
    events: [CUevent; THREADS],
}

// SAFETY: handles of the driver may be used on any thread.
unsafe impl Send for Bare {}
// SAFETY: as above.
unsafe impl Sync for Bare {}

impl Bare {
    /// Loads the kernels. They stay loaded until the process ends.
    pub(crate) fn new(driver: &Arc<Driver>, context: CUcontext) -> Result<Self, Error> {
        // SAFETY: the context is alive.
        unsafe { driver.cu_ctx_push_current(context) }?;
        let load = |text: &str| -> Result<CUmodule, Error> {
            let text = CString::new(text)?;
            let mut module = ptr::null_mut();
            let none = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the text ends in NUL, there are no options, and one handle is written.
            unsafe { driver.cu_module_load_data_ex(&mut module, text.as_ptr().cast(), 0, none.0, none.1) }?;
            Ok(module)
        };
        let (module, early) = (load(PTX)?, load(EARLY)?);
        let function = |module: CUmodule, name: &CStr| -> Result<CUfunction, Error> {
            let mut function = ptr::null_mut();
            // SAFETY: the module stays loaded, the name ends in NUL, and one handle is written.
            unsafe { driver.cu_module_get_function(&mut function, module, name.as_ptr()) }?;
            Ok(function)
        };
        let mut events = [ptr::null_mut(); THREADS];
        for event in &mut events {
            // SAFETY: one handle is written.
            unsafe { driver.cu_event_create(event, CUevent_flags::CU_EVENT_DISABLE_TIMING.0) }?;
        }
        Ok(Bare {
            events,
            driver: Arc::clone(driver),
            context,
            add: function(module, c"add")?,
            countdown: function(module, c"countdown")?,
            set_condition: function(module, c"set_condition")?,
            countdown_early: function(early, c"countdown")?,
            add_early: function(early, c"add")?,
        })
    }

    /// Launches a kernel outside of graphs.
    pub(crate) fn launch_kernel(
        &self,
        variant: &Variant,
        words: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), Error> {
        let (grid, block) = shape(0);
        let (mut address, mut value, mut count) = (words, 1u32, WORDS as u32);
        let mut args: [*mut c_void; 3] =
            [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
        let mut attributes: Vec<CUlaunchAttribute> = variant.special.map(attribute).into_iter().collect();
        let mut function = self.add;
        if variant.starts_early {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            let mut attribute = CUlaunchAttribute { id, ..Default::default() };
            attribute.value.programmaticStreamSerializationAllowed = 1;
            attributes.push(attribute);
            function = self.add_early;
        }
        let config = CUlaunchConfig {
            gridDimX: grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: the arguments are those of `add`; memory and stream outlive the launch.
        Ok(unsafe { self.driver.cu_launch_kernel_ex(&config, function, args.as_mut_ptr(), ptr::null_mut()) }?)
    }
}

/// Returns the grid and block of the `number`th shape. All grids are multiples of a cluster.
fn shape(number: u32) -> (u32, u32) {
    [(8, 64), (4, 32), (16, 128), (2, 256)][number as usize % 4]
}

/// Returns the attribute that makes a launch special.
fn attribute(special: Special) -> CUlaunchAttribute {
    let mut value = CUlaunchAttributeValue::default();
    let id = match special {
        Special::Cluster => {
            value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x: 2, y: 1, z: 1 };
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        }
        Special::Cooperative => {
            value.cooperative = 1;
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        }
        Special::Priority => {
            value.priority = -1;
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
        }
    };
    CUlaunchAttribute { id, value, ..Default::default() }
}

/// An executable with its graph and memory. The driver frees none of it before it has run.
pub(crate) struct Executable {
    bare: Bare,
    graph: CUgraph,
    raw: CUgraphExec,
    words: CUdeviceptr,
    /// The kernel that changes.
    kernel: CUgraphNode,
    /// Whether the kernel is in the body of a conditional, where it cannot be disabled.
    is_in_body: bool,
}

// SAFETY: handles of the driver may be used on any thread.
unsafe impl Send for Executable {}
// SAFETY: threads that share an executable only launch it, which the driver allows.
unsafe impl Sync for Executable {}

impl Executable {
    /// Compiles a graph for the thread with this number.
    pub(crate) fn new(
        bare: &Bare,
        form: Form,
        variant: &Variant,
        words: CUdeviceptr,
        thread: usize,
    ) -> Result<Self, Error> {
        let driver = &bare.driver;
        let (mut graph, mut raw) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: one handle is written.
        unsafe { driver.cu_graph_create(&mut graph, 0) }?;
        let builder = Builder { bare, variant, graph, words };
        let kernel = match form {
            Form::Plain | Form::DeviceLaunch => {
                let first = builder.add(graph, &[])?;
                builder.add(graph, &[first])?
            }
            Form::Fan => {
                let first = builder.add(graph, &[])?;
                let middle = (0..8).map(|_| builder.add(graph, &[first]));
                let middle = middle.collect::<Result<Vec<_>, _>>()?;
                builder.add(graph, &middle)?
            }
            Form::Events => {
                let wait = builder.wait(bare.events[(thread + 1) % THREADS])?;
                let first = builder.add(graph, &[wait])?;
                let second = builder.add(graph, &[first])?;
                builder.record(second, bare.events[thread])?;
                second
            }
            Form::EmptyIf => builder.empty_conditionals(IF, 1)?,
            Form::EmptyWhile => builder.empty_conditionals(WHILE, 0)?,
            Form::If => builder.conditional(IF)?,
            Form::While => builder.conditional(WHILE)?,
            Form::TightWhile => builder.tight_while()?,
        };
        if variant.calls_back {
            builder.call_back()?;
        }
        let mut flags = 0;
        if form == Form::DeviceLaunch {
            flags |= CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0;
        }
        if variant.special == Some(Special::Priority) {
            flags |= CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0;
        }
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags: u64::from(flags), ..Default::default() };
        // SAFETY: the graph is complete; one handle and the result are written.
        unsafe { driver.cu_graph_instantiate_with_params(&mut raw, graph, &mut params) }?;
        let is_in_body = matches!(form, Form::If | Form::While | Form::TightWhile);
        Ok(Executable { bare: bare.clone(), graph, raw, words, kernel, is_in_body })
    }

    pub(crate) fn upload(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: executable and stream are alive.
        Ok(unsafe { self.bare.driver.cu_graph_upload(self.raw, stream) }?)
    }

    pub(crate) fn launch(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: executable, stream and memory are alive.
        Ok(unsafe { self.bare.driver.cu_graph_launch(self.raw, stream) }?)
    }

    /// Changes the kernel for later launches.
    pub(crate) fn change(&self, change: Change, number: u32) -> Result<(), Error> {
        if change == Change::Enabled {
            if !self.is_in_body {
                // SAFETY: the node is of the graph that this was made from.
                unsafe { self.bare.driver.cu_graph_node_set_enabled(self.raw, self.kernel, number % 2) }?;
            }
            return Ok(());
        }
        let (grid, block) = shape(if change == Change::Shape { number } else { 0 });
        let (mut address, mut value, mut count) = (self.words, number % 2, WORDS as u32);
        let mut args = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
        let parameters = parameters(self.bare.add, grid, block, &mut args);
        let driver = &self.bare.driver;
        // SAFETY: the node is of the graph that this was made from; the arguments are those of
        // `add`.
        Ok(unsafe { driver.cu_graph_exec_kernel_node_set_params(self.raw, self.kernel, &parameters) }?)
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: each is destroyed once. The driver keeps what is in flight. Nothing can be done
        // about a failure, which the next launch reports too.
        unsafe {
            let _ = self.bare.driver.cu_graph_exec_destroy(self.raw);
            let _ = self.bare.driver.cu_graph_destroy(self.graph);
        }
    }
}

/// Returns the description of a kernel node.
fn parameters(
    function: CUfunction,
    grid: u32,
    block: u32,
    args: &mut [*mut c_void],
) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: function,
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: block,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: args.as_mut_ptr(),
        ..Default::default()
    }
}

/// Adds nodes to a graph.
struct Builder<'a> {
    bare: &'a Bare,
    variant: &'a Variant,
    graph: CUgraph,
    words: CUdeviceptr,
}

impl Builder<'_> {
    fn kernel(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        parameters: &CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> Result<CUgraphNode, Error> {
        let mut node = ptr::null_mut();
        let (before, count) = (after.as_ptr(), after.len());
        // SAFETY: graph and predecessor are alive, and the parameters point to arguments that fit.
        unsafe { self.bare.driver.cu_graph_add_kernel_node(&mut node, graph, before, count, parameters) }?;
        Ok(node)
    }

    /// Adds the kernel that counts, as the variant launches it.
    fn add(&self, graph: CUgraph, after: &[CUgraphNode]) -> Result<CUgraphNode, Error> {
        let (grid, block) = shape(0);
        let (mut address, mut value, mut count) = (self.words, 1u32, WORDS as u32);
        let mut args = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
        let node = self.kernel(graph, after, &parameters(self.bare.add, grid, block, &mut args))?;
        if let Some(special) = self.variant.special {
            let attribute = attribute(special);
            // SAFETY: the node is a kernel node; the value is the one of the attribute.
            unsafe {
                self.bare.driver.cu_graph_kernel_node_set_attribute(node, attribute.id, &attribute.value)?;
            }
        }
        Ok(node)
    }

    fn wait(&self, event: CUevent) -> Result<CUgraphNode, Error> {
        let mut node = ptr::null_mut();
        let driver = &self.bare.driver;
        // SAFETY: graph and event are alive.
        unsafe { driver.cu_graph_add_event_wait_node(&mut node, self.graph, ptr::null(), 0, event) }?;
        Ok(node)
    }

    fn record(&self, after: CUgraphNode, event: CUevent) -> Result<(), Error> {
        let mut node = ptr::null_mut();
        let driver = &self.bare.driver;
        // SAFETY: graph, predecessor and event are alive.
        unsafe { driver.cu_graph_add_event_record_node(&mut node, self.graph, &after, 1, event) }?;
        Ok(())
    }

    /// Adds a call of a function of the host after everything that is there.
    fn call_back(&self) -> Result<(), Error> {
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let driver = &self.bare.driver;
        let call = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: ptr::null_mut() };
        let (mut node, mut count) = (ptr::null_mut(), 16);
        let mut nodes = [ptr::null_mut(); 16];
        // SAFETY: the graph is alive and has fewer nodes than the array; the function outlives the
        // graph and does not use its argument.
        unsafe {
            driver.cu_graph_get_nodes(self.graph, nodes.as_mut_ptr(), &mut count)?;
            driver.cu_graph_add_host_node(&mut node, self.graph, nodes.as_ptr(), count, &call)?;
        }
        Ok(())
    }

    /// Adds a conditional. Returns its node, its handle and the graph of its body.
    fn conditional_node(
        &self,
        graph: CUgraph,
        after: CUgraphNode,
        kind: CUgraphConditionalNodeType,
        default: u32,
    ) -> Result<(CUgraphNode, CUgraphConditionalHandle, CUgraph), Error> {
        let (driver, context) = (&self.bare.driver, self.bare.context);
        let (mut node, mut handle) = (ptr::null_mut(), 0);
        let mut conditional = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        // SAFETY: graph, predecessor and context are alive; the parameters are those of a
        // conditional; on success the driver has stored an array of one graph.
        unsafe {
            let flags = CU_GRAPH_COND_ASSIGN_DEFAULT;
            driver.cu_graph_conditional_handle_create(&mut handle, self.graph, context, default, flags)?;
            conditional.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                handle,
                type_: kind,
                size: 1,
                phGraph_out: ptr::null_mut(),
                ctx: context,
            };
            driver.cu_graph_add_node(&mut node, graph, &after, ptr::null(), 1, &mut conditional)?;
            Ok((node, handle, *conditional.__bindgen_anon_1.conditional.phGraph_out))
        }
    }

    /// Adds a fill of the passes left and a loop after it, with one kernel in its body. Returns
    /// that kernel.
    fn tight_while(&self) -> Result<CUgraphNode, Error> {
        let mut left = self.words + 4 * WORDS as u64;
        let (_, mut handle, body) = self.conditional_node(self.graph, self.passes_left()?, WHILE, 1)?;
        let mut args = [(&raw mut handle).cast(), (&raw mut left).cast()];
        let function =
            if self.variant.starts_early { self.bare.countdown_early } else { self.bare.countdown };
        self.kernel(body, &[], &parameters(function, 1, 1, &mut args))
    }

    /// Adds a fill of the passes left.
    fn passes_left(&self) -> Result<CUgraphNode, Error> {
        let set = CUDA_MEMSET_NODE_PARAMS {
            dst: self.words + 4 * WORDS as u64,
            pitch: 4,
            value: PASSES,
            elementSize: 4,
            width: 1,
            height: 1,
        };
        let mut fill = ptr::null_mut();
        let (driver, context) = (&self.bare.driver, self.bare.context);
        // SAFETY: graph, context and memory are alive.
        unsafe { driver.cu_graph_add_memset_node(&mut fill, self.graph, ptr::null(), 0, &set, context) }?;
        Ok(fill)
    }

    /// Adds a fill of the passes left and a conditional after it. Returns a kernel in its body.
    fn conditional(&self, kind: CUgraphConditionalNodeType) -> Result<CUgraphNode, Error> {
        let left = self.words + 4 * WORDS as u64;
        let (_, mut handle, body) = self.conditional_node(self.graph, self.passes_left()?, kind, 1)?;
        let mut kernel = self.add(body, &[])?;
        if self.variant.forks {
            // Nothing in the body waits for these.
            let beside = self.add(body, &[])?;
            self.add(body, &[beside])?;
            self.add(body, &[beside])?;
        }
        if self.variant.transfers {
            let copied = self.transfers(body, kernel)?;
            kernel = self.add(body, &[copied])?;
        }
        if self.variant.nests {
            let (inner, _, nested) = self.conditional_node(body, kernel, IF, 1)?;
            self.add(nested, &[])?;
            kernel = self.add(body, &[inner])?;
        }
        let parameters = |function, args: &mut [*mut c_void]| parameters(function, 1, 1, args);
        if kind == WHILE {
            let mut left = left;
            let mut args = [(&raw mut handle).cast(), (&raw mut left).cast()];
            let last = parameters(self.bare.countdown, &mut args);
            if self.variant.starts_early {
                self.early_kernel(body, kernel, &parameters(self.bare.countdown_early, &mut args))?;
            } else {
                self.kernel(body, &[kernel], &last)?;
            }
        } else {
            // The handle is used by a kernel in both forms, as in most programs.
            let mut yes = 1u32;
            let mut args = [(&raw mut handle).cast(), (&raw mut yes).cast()];
            self.kernel(body, &[kernel], &parameters(self.bare.set_condition, &mut args))?;
        }
        Ok(kernel)
    }

    /// Adds two conditionals with empty bodies between two kernels. Returns the second kernel.
    fn empty_conditionals(
        &self,
        kind: CUgraphConditionalNodeType,
        default: u32,
    ) -> Result<CUgraphNode, Error> {
        let first = self.add(self.graph, &[])?;
        let (second, ..) = self.conditional_node(self.graph, first, kind, default)?;
        let (third, ..) = self.conditional_node(self.graph, second, kind, default)?;
        self.add(self.graph, &[third])
    }

    /// Adds a fill of the upper half of the words and a copy of it to the lower half, after a
    /// kernel.
    fn transfers(&self, graph: CUgraph, after: CUgraphNode) -> Result<CUgraphNode, Error> {
        let half = 2 * WORDS;
        let upper = self.words + half as u64;
        let fill = CUDA_MEMSET_NODE_PARAMS {
            dst: upper,
            pitch: half,
            value: 0,
            elementSize: 4,
            width: WORDS / 2,
            height: 1,
        };
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: upper,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: self.words,
            WidthInBytes: half,
            Height: 1,
            Depth: 1,
            ..Default::default()
        };
        let (driver, context) = (&self.bare.driver, self.bare.context);
        let (mut filled, mut copied) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: graph, predecessor, context and memory are alive.
        unsafe {
            driver.cu_graph_add_memset_node(&mut filled, graph, &after, 1, &fill, context)?;
            driver.cu_graph_add_memcpy_node(&mut copied, graph, &filled, 1, &copy, context)?;
        }
        Ok(copied)
    }

    /// Adds a kernel that starts while the one before it runs.
    fn early_kernel(
        &self,
        graph: CUgraph,
        after: CUgraphNode,
        parameters: &CUDA_KERNEL_NODE_PARAMS_v2,
    ) -> Result<(), Error> {
        let mut general =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL, ..Default::default() };
        general.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
            func: parameters.func,
            gridDimX: parameters.gridDimX,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: parameters.blockDimX,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: parameters.kernelParams,
            ..Default::default()
        };
        let early = CUgraphEdgeData {
            from_port: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            type_: CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0 as u8,
            ..Default::default()
        };
        let mut node = ptr::null_mut();
        // SAFETY: graph and predecessor are alive, and the parameters point to arguments that fit.
        unsafe { self.bare.driver.cu_graph_add_node(&mut node, graph, &after, &early, 1, &mut general) }?;
        Ok(())
    }
}

/// Returns memory for a graph. It is never freed.
pub(crate) fn words(bare: &Bare) -> Result<CUdeviceptr, Error> {
    let mut words = 0;
    // SAFETY: one address is written.
    unsafe { bare.driver.cu_mem_alloc(&mut words, 4 * (WORDS + 1)) }?;
    Ok(words)
}
