//! The same graph, built with plain driver calls: a driver's node for each node, with the same
//! kernels and arguments.

use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

use gridloom::op::{ConditionalForm, ConditionalOp, Launch, MemsetOp, Operation, PointerValue, Test};
use gridloom::prelude::*;
use gridloom::{Base, ConditionKey, ErrorKind, NodeKey, Region, interop};
use gridloom_cuda::Driver;
use gridloom_cuda::sys::*;

/// The driver with the stream that Gridloom launches on.
pub(crate) struct Bare {
    driver: Arc<Driver>,
    context: CUcontext,
    stream: CUstream,
}

fn unexpected(what: &str) -> Error {
    Error::new(ErrorKind::NotSupported, format!("the benchmark builds no {what} with driver calls"))
}

impl Bare {
    pub(crate) fn new(driver: &Arc<Driver>, context: CUcontext, stream: &Stream) -> Result<Self> {
        // SAFETY: the context is alive, and made current for the rest of the program.
        unsafe { driver.cu_ctx_push_current(context) }?;
        Ok(Bare { driver: Arc::clone(driver), context, stream: interop::stream_to_raw(stream)? })
    }

    /// Defines the graph with driver calls.
    pub(crate) fn define(&self, graph: &Graph, conditions: &[Condition]) -> Result<BareGraph<'_>> {
        let mut raw = ptr::null_mut();
        // SAFETY: one handle is written.
        unsafe { self.driver.cu_graph_create(&mut raw, 0) }?;
        let mut bare = BareGraph { bare: self, raw, handles: HashMap::new(), nodes: HashMap::new() };
        for condition in conditions {
            let (mut handle, default) = (0, condition.default_value().unwrap_or(0));
            let flags = CU_GRAPH_COND_ASSIGN_DEFAULT;
            // SAFETY: graph and context are alive; one handle is written.
            unsafe {
                let driver = &self.driver;
                driver.cu_graph_conditional_handle_create(&mut handle, raw, self.context, default, flags)?;
            }
            bare.handles.insert(condition.key(), handle);
        }
        bare.fill(raw, graph)?;
        Ok(bare)
    }
}

/// A definition.
pub(crate) struct BareGraph<'a> {
    bare: &'a Bare,
    raw: CUgraph,
    handles: HashMap<ConditionKey, CUgraphConditionalHandle>,
    nodes: HashMap<NodeKey, CUgraphNode>,
}

impl<'a> BareGraph<'a> {
    fn fill(&mut self, raw: CUgraph, graph: &Graph) -> Result<()> {
        for node in graph.nodes() {
            let before = node.predecessors()?;
            let before: Vec<CUgraphNode> = before.iter().map(|node| self.nodes[&node.key()]).collect();
            let made = match node.operation()? {
                Operation::Kernel(launch) => self.kernel(raw, &before, &launch)?,
                Operation::Memset(fill) => self.memset(raw, &before, &fill)?,
                Operation::Conditional(conditional) => {
                    self.conditional(raw, &before, &conditional, &node.bodies()?)?
                }
                other => return Err(unexpected(other.kind().name())),
            };
            self.nodes.insert(node.key(), made);
        }
        Ok(())
    }

    fn kernel(&self, raw: CUgraph, before: &[CUgraphNode], launch: &Launch) -> Result<CUgraphNode> {
        let mut made = ptr::null_mut();
        self.with_parameters(launch, |parameters| {
            // SAFETY: graph and dependencies are alive, and the arguments are those of the kernel.
            Ok(unsafe {
                self.bare.driver.cu_graph_add_kernel_node(
                    &mut made,
                    raw,
                    before.as_ptr(),
                    before.len(),
                    parameters,
                )
            }?)
        })?;
        Ok(made)
    }

    /// Calls a function with the driver's form of a launch.
    fn with_parameters<R>(
        &self,
        launch: &Launch,
        call: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS_v2) -> Result<R>,
    ) -> Result<R> {
        let (config, args) = (launch.config(), launch.args());
        // Arguments of 8 bytes must lie at multiples of 8.
        let mut words = vec![0u64; args.bytes.len().div_ceil(8)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[..args.bytes.len()].copy_from_slice(&args.bytes);
        for pointer in &args.pointers {
            if let PointerValue::Condition(condition) = pointer.value {
                let at = (args.layout[pointer.index as usize].offset + pointer.offset) as usize;
                bytes[at..at + 8].copy_from_slice(&self.handles[&condition].to_le_bytes());
            }
        }
        let start = bytes.as_mut_ptr();
        let mut places: Vec<*mut std::ffi::c_void> =
            args.layout.iter().map(|place| start.wrapping_add(place.offset as usize).cast()).collect();
        let ([x, y, z], [bx, by, bz]) = (config.grid.to_array(), config.block.to_array());
        call(&CUDA_KERNEL_NODE_PARAMS_v2 {
            func: gridloom_cuda::interop::kernel_to_raw(&**launch.kernel())
                .map_err(|_| unexpected("kernel of another device"))?,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: z,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: config.shared,
            kernelParams: places.as_mut_ptr(),
            ..Default::default()
        })
    }

    fn memset(&self, raw: CUgraph, before: &[CUgraphNode], fill: &MemsetOp) -> Result<CUgraphNode> {
        let Region { base: Base::Allocation(memory), offset, .. } = &fill.dst else {
            return Err(unexpected("fill of a graph's own memory"));
        };
        let parameters = CUDA_MEMSET_NODE_PARAMS {
            dst: memory.address() + offset,
            pitch: fill.pitch as usize,
            value: fill.value,
            elementSize: fill.element_size,
            width: fill.width as usize,
            height: fill.height as usize,
        };
        let mut made = ptr::null_mut();
        // SAFETY: graph and dependencies are alive, and so is the memory when it runs.
        unsafe {
            self.bare.driver.cu_graph_add_memset_node(
                &mut made,
                raw,
                before.as_ptr(),
                before.len(),
                &parameters,
                self.bare.context,
            )
        }?;
        Ok(made)
    }

    fn conditional(
        &mut self,
        raw: CUgraph,
        before: &[CUgraphNode],
        conditional: &ConditionalOp,
        bodies: &[Graph],
    ) -> Result<CUgraphNode> {
        let Test::Condition(condition) = conditional.test else {
            return Err(unexpected("conditional that tests a value"));
        };
        let form = match conditional.form {
            ConditionalForm::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            ConditionalForm::If | ConditionalForm::IfElse => {
                CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF
            }
            ConditionalForm::Switch => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH,
        };
        let mut parameters = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle: self.handles[&condition],
            type_: form,
            size: bodies.len() as u32,
            phGraph_out: ptr::null_mut(),
            ctx: self.bare.context,
        };
        let mut made = ptr::null_mut();
        // SAFETY: graph and dependencies are alive; the parameters are those of a conditional; on
        // success the driver has stored an array of as many graphs as there are bodies.
        let raw_bodies: Vec<CUgraph> = unsafe {
            self.bare.driver.cu_graph_add_node(
                &mut made,
                raw,
                before.as_ptr(),
                ptr::null(),
                before.len(),
                &mut parameters,
            )?;
            let first = parameters.__bindgen_anon_1.conditional.phGraph_out;
            (0..bodies.len()).map(|index| *first.add(index)).collect()
        };
        for (raw, body) in raw_bodies.into_iter().zip(bodies) {
            self.fill(raw, body)?;
        }
        Ok(made)
    }

    pub(crate) fn instantiate(&self) -> Result<BareExecutable<'a>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the graph is alive; one handle is written; there are no flags.
        unsafe { self.bare.driver.cu_graph_instantiate_with_flags(&mut raw, self.raw, 0) }?;
        Ok(BareExecutable { bare: self.bare, raw })
    }

    /// Gives a kernel node of an executable of this graph the arguments of `launch`.
    pub(crate) fn set_parameters(
        &self,
        executable: &BareExecutable<'_>,
        node: &Node,
        launch: &Launch,
    ) -> Result<()> {
        let node = self.nodes[&node.key()];
        self.with_parameters(launch, |parameters| {
            let driver = &self.bare.driver;
            // SAFETY: the node is of this graph; the arguments are those of its kernel.
            Ok(unsafe { driver.cu_graph_exec_kernel_node_set_params(executable.raw, node, parameters) }?)
        })
    }
}

impl Drop for BareGraph<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once. An error at the end of a benchmark is of no interest.
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
        // SAFETY: executable and stream are alive, and so is the memory that the kernels use.
        Ok(unsafe { self.bare.driver.cu_graph_launch(self.raw, self.bare.stream) }?)
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        Ok(unsafe { self.bare.driver.cu_stream_synchronize(self.bare.stream) }?)
    }
}

impl Drop for BareExecutable<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once; the stream was waited for.
        let _ = unsafe { self.bare.driver.cu_graph_exec_destroy(self.raw) };
    }
}
