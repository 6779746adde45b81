//! One list of steps becomes one `CUgraph` and its executable.

use super::builtin::{self, Decide, LoopStep, Packed};
use super::handles::{CudaExecutable, CudaGraph, InstantiateFailure};
use super::modes::{Capabilities, Modes};
use super::plan::{Dependencies, Step, Work};
use super::resources::{Resources, is_counted};
use crate::driver::{Driver, DriverResult};
use crate::event::Event;
use crate::failure::HostCall;
use crate::kernel::{Kernel, Launch};
use crate::sys::*;
use crate::transfer;
use crate::version::CudaVersion;
use gridloom_core::graph::{ConditionKey, EdgeKind, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::{ConditionalForm, ConditionalOp, KernelOp, Operation, PointerValue, Test};
use gridloom_core::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::Arc;

/// The first driver whose edges carry data.
const PROGRAMMATIC_EDGES_SINCE: CudaVersion = CudaVersion::new(12, 3);

/// A graph of the program, compiled.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) executable: CudaExecutable,
    /// Kept because nodes of the executable are named by nodes of the graph.
    _graph: CudaGraph,
}

/// How a unit is compiled.
#[derive(Debug, Clone, Copy)]
pub(super) struct LowerOptions<'a> {
    pub(super) modes: &'a Modes,
    pub(super) capabilities: Capabilities,
    pub(super) node_priority: bool,
}

/// Builds and compiles the graph of these steps.
pub(super) fn lower(resources: &mut Resources, options: LowerOptions<'_>, steps: &[Step]) -> Result<Unit> {
    let context = Arc::clone(&resources.shared.context);
    let _entered = context.enter()?;
    let graph = CudaGraph::new(&context)?;
    let mut builder = Builder {
        driver: Arc::clone(context.driver()),
        ctx: context.raw(),
        root: graph.raw(),
        resources,
        options,
        handles: HashMap::new(),
        tested: HashSet::new(),
        origins: HashMap::new(),
    };
    builder.add_steps(graph.raw(), steps)?;
    builder.use_up_handles()?;
    let mut flags = CUgraphInstantiate_flags(0);
    if options.node_priority {
        flags.0 |= CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0;
    }
    let made = CudaExecutable::new(&context, &graph, flags);
    let executable = made.map_err(|failure| builder.explain(failure))?;
    Ok(Unit { executable, _graph: graph })
}

/// The node of one graph at the end of which each of its steps has ended.
type Nodes = Vec<CUgraphNode>;

/// What a node waits for, as the driver takes it.
struct Edges {
    nodes: SmallVec<[CUgraphNode; 4]>,
    /// Empty where all edges are full.
    data: SmallVec<[CUgraphEdgeData; 4]>,
}

impl Edges {
    fn none() -> Self {
        Self { nodes: SmallVec::new(), data: SmallVec::new() }
    }

    fn full(nodes: impl IntoIterator<Item = CUgraphNode>) -> Self {
        Self { nodes: nodes.into_iter().collect(), data: SmallVec::new() }
    }

    /// Edges as the plan has them. Where the driver knows no programmatic ones they are full, which orders more and is
    /// never wrong.
    fn of(after: &Dependencies, nodes: &Nodes, programmatic: bool) -> Self {
        let mut edges = Self::full(after.iter().map(|&(step, _)| nodes[step]));
        if programmatic && after.iter().any(|&(_, kind)| kind == EdgeKind::Programmatic) {
            edges.data = after.iter().map(|&(_, kind)| edge_data(kind)).collect();
        }
        edges
    }

    fn as_ptr(&self) -> *const CUgraphNode {
        if self.nodes.is_empty() { ptr::null() } else { self.nodes.as_ptr() }
    }

    fn data_ptr(&self) -> *const CUgraphEdgeData {
        if self.data.is_empty() { ptr::null() } else { self.data.as_ptr() }
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }
}

fn edge_data(kind: EdgeKind) -> CUgraphEdgeData {
    match kind {
        EdgeKind::Full => CUgraphEdgeData::default(),
        EdgeKind::Programmatic => CUgraphEdgeData {
            from_port: CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC as u8,
            type_: CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.0 as u8,
            ..Default::default()
        },
    }
}

struct Builder<'a> {
    driver: Arc<Driver>,
    ctx: CUcontext,
    /// The outermost graph; handles of conditions belong to it, also when they are tested further in.
    root: CUgraph,
    resources: &'a mut Resources,
    options: LowerOptions<'a>,
    handles: HashMap<ConditionKey, CUgraphConditionalHandle>,
    /// The conditions that a conditional of this unit tests.
    tested: HashSet<ConditionKey>,
    origins: HashMap<CUgraphNode, NodeKey>,
}

impl Builder<'_> {
    /// Adds steps to a graph, and returns their nodes.
    fn add_steps(&mut self, graph: CUgraph, steps: &[Step]) -> Result<Nodes> {
        let mut nodes = Nodes::with_capacity(steps.len());
        let programmatic = self.driver.supports(PROGRAMMATIC_EDGES_SINCE);
        for step in steps {
            let edges = Edges::of(&step.after, &nodes, programmatic);
            let node = self
                .add_step(graph, edges, step)
                .map_err(|error| error.at_node(self.resources.definition.label(step.origin)))?;
            self.origins.insert(node, step.origin);
            nodes.push(node);
        }
        Ok(nodes)
    }

    fn add_step(&mut self, graph: CUgraph, edges: Edges, step: &Step) -> Result<CUgraphNode> {
        let definition = Arc::clone(&self.resources.definition);
        let operation = definition.node(step.origin).operation();
        match (&step.work, operation) {
            (Work::Native(bodies), Operation::Conditional(conditional)) => {
                self.add_conditional(graph, edges, step.origin, conditional, bodies)
            }
            (Work::Node, Operation::Kernel(op)) => self.add_user_kernel(graph, edges, op),
            (Work::Node, Operation::Memset(op)) => {
                let location = self.resources.locate(&op.dst)?;
                let parameters = transfer::fill_parameters(op, location.address);
                // SAFETY: graph and dependencies are alive; the core has checked that the destination holds the fill.
                Ok(make(|node| unsafe {
                    self.driver.cu_graph_add_memset_node(
                        node,
                        graph,
                        edges.as_ptr(),
                        edges.len(),
                        &parameters,
                        self.ctx,
                    )
                })?)
            }
            (Work::Node, Operation::Memcpy(op)) => {
                let dst = self.resources.locate(&op.dst.region)?;
                let src = self.resources.locate(&op.src.region)?;
                let parameters = transfer::copy_parameters(op, dst, src);
                // SAFETY: as above, for both sides of the copy.
                Ok(make(|node| unsafe {
                    self.driver.cu_graph_add_memcpy_node(
                        node,
                        graph,
                        edges.as_ptr(),
                        edges.len(),
                        &parameters,
                        self.ctx,
                    )
                })?)
            }
            (Work::Node, Operation::Callback(callback)) => {
                let failures = Arc::clone(&self.resources.failures);
                let label = definition.label(step.origin);
                let call = Arc::new(HostCall::new(callback.clone(), failures, Some(label)));
                let parameters = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(HostCall::run), userData: call.data() };
                self.resources.host_calls.push(call);
                // SAFETY: the function gets the data it asks for, which the resources keep.
                Ok(make(|node| unsafe {
                    self.driver.cu_graph_add_host_node(node, graph, edges.as_ptr(), edges.len(), &parameters)
                })?)
            }
            (Work::Node, Operation::EventRecord(event)) => {
                let event = Event::from_backend(&**event)?.raw();
                // SAFETY: the event is alive, and the definition keeps it.
                Ok(make(|node| unsafe {
                    self.driver.cu_graph_add_event_record_node(
                        node,
                        graph,
                        edges.as_ptr(),
                        edges.len(),
                        event,
                    )
                })?)
            }
            (Work::Node, Operation::EventWait(event)) => {
                let event = Event::from_backend(&**event)?.raw();
                // SAFETY: as above.
                Ok(make(|node| unsafe {
                    self.driver.cu_graph_add_event_wait_node(node, graph, edges.as_ptr(), edges.len(), event)
                })?)
            }
            // Joins, and nothing else: alloc, free and child nodes have no step of their own.
            _ => self.add_empty(graph, &edges),
        }
    }

    fn add_empty(&self, graph: CUgraph, edges: &Edges) -> Result<CUgraphNode> {
        // SAFETY: graph and dependencies are alive.
        Ok(make(|node| unsafe {
            self.driver.cu_graph_add_empty_node(node, graph, edges.as_ptr(), edges.len())
        })?)
    }

    fn add_user_kernel(&mut self, graph: CUgraph, edges: Edges, op: &KernelOp) -> Result<CUgraphNode> {
        let kernel = Kernel::from_backend(&*op.kernel)?;
        if op.args.pointers.is_empty() {
            return self.add_kernel(graph, edges, kernel, &op.config, &op.args.layout, &op.args.bytes);
        }
        let stores = self.stores_conditions(op);
        let mut bytes = op.args.bytes.clone();
        for pointer in &op.args.pointers {
            let value = match &pointer.value {
                PointerValue::Region(region) => self.resources.locate(region)?.address,
                PointerValue::Condition(condition) if stores => {
                    self.resources.cell_handle(*condition).ok_or_else(|| {
                        Error::new(
                            ErrorKind::InvalidState,
                            "a condition of this kernel has no place in memory",
                        )
                    })?
                }
                PointerValue::Condition(condition) => self.handle(*condition)?,
            };
            if let Some(place) = op.args.layout.get(pointer.index as usize) {
                let start = place.offset as usize;
                bytes[start..start + 8].copy_from_slice(&value.to_ne_bytes());
            }
        }
        if stores {
            let stored = self.resources.stored_kernel(kernel)?;
            self.add_kernel(graph, edges, &stored, &op.config, &op.args.layout, &bytes)
        } else {
            self.add_kernel(graph, edges, kernel, &op.config, &op.args.layout, &bytes)
        }
    }

    /// Whether a kernel stores its conditions in memory: when the host tests one of them, or the driver knows none.
    fn stores_conditions(&self, op: &KernelOp) -> bool {
        let mut conditions = op.args.pointers.iter().filter_map(|pointer| match &pointer.value {
            PointerValue::Condition(condition) => Some(*condition),
            PointerValue::Region(_) => None,
        });
        conditions.any(|condition| match self.resources.condition(condition).tested_by {
            Some(node) => self.options.modes.is_hosted(node),
            None => !self.options.capabilities.any(),
        })
    }

    /// ([`cuGraphAddKernelNode`, `cuGraphAddNode`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn add_kernel(
        &self,
        graph: CUgraph,
        edges: Edges,
        kernel: &Kernel,
        config: &LaunchConfig,
        layout: &[gridloom_core::op::ParamLayout],
        bytes: &[u8],
    ) -> Result<CUgraphNode> {
        let mut launch = Launch::with_bytes(kernel, config, layout, bytes)?;
        let parameters = launch.node_parameters();
        let node = if edges.data.is_empty() {
            // SAFETY: graph and dependencies are alive; the arguments fit the kernel and are copied by the call.
            make(|node| unsafe {
                self.driver.cu_graph_add_kernel_node(node, graph, edges.as_ptr(), edges.len(), &parameters)
            })?
        } else {
            let mut general =
                CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL, ..Default::default() };
            general.__bindgen_anon_1.kernel = general_kernel_parameters(&parameters);
            self.add_general(graph, &edges, &mut general)?
        };
        for attribute in launch.attributes() {
            // SAFETY: the node was just made; one value is read.
            unsafe { self.driver.cu_graph_kernel_node_set_attribute(node, attribute.id, &attribute.value) }?;
        }
        Ok(node)
    }

    /// ([`cuGraphAddNode`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn add_general(
        &self,
        graph: CUgraph,
        edges: &Edges,
        parameters: &mut CUgraphNodeParams,
    ) -> DriverResult<CUgraphNode> {
        // SAFETY: graph and dependencies are alive; the parameters are of the type they say, zero where unused.
        make(|node| unsafe {
            self.driver.cu_graph_add_node(
                node,
                graph,
                edges.as_ptr(),
                edges.data_ptr(),
                edges.len(),
                parameters,
            )
        })
    }

    fn add_builtin(
        &self,
        graph: CUgraph,
        edges: Edges,
        kernel: &Kernel,
        arguments: &Packed,
    ) -> Result<CUgraphNode> {
        self.add_kernel(graph, edges, kernel, &builtin::one_thread(), &arguments.layout, &arguments.bytes)
    }

    /// The handle of a condition in this unit, made at its first use.
    fn handle(&mut self, condition: ConditionKey) -> Result<CUgraphConditionalHandle> {
        if let Some(&handle) = self.handles.get(&condition) {
            return Ok(handle);
        }
        let handle = self.new_handle(self.resources.condition(condition).start)?;
        self.handles.insert(condition, handle);
        Ok(handle)
    }

    /// ([`cuGraphConditionalHandleCreate`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn new_handle(&self, default: u32) -> DriverResult<CUgraphConditionalHandle> {
        let mut handle = 0;
        // SAFETY: graph and context are alive; one handle is written.
        unsafe {
            self.driver.cu_graph_conditional_handle_create(
                &mut handle,
                self.root,
                self.ctx,
                default,
                CU_GRAPH_COND_ASSIGN_DEFAULT,
            )?;
        }
        Ok(handle)
    }

    fn add_conditional(
        &mut self,
        graph: CUgraph,
        edges: Edges,
        origin: NodeKey,
        op: &ConditionalOp,
        bodies: &[Vec<Step>],
    ) -> Result<CUgraphNode> {
        let handle = match op.test {
            Test::Condition(condition) => {
                self.tested.insert(condition);
                self.handle(condition)?
            }
            Test::Value(_) | Test::Count(_) => self.new_handle(0)?,
        };
        let decider = self.decider(origin, op, handle)?;
        let edges = match &decider {
            None => edges,
            Some(decider) => {
                let (kernel, arguments) = match decider {
                    Decider::Loop { first, .. } => {
                        (self.resources.builtins.loop_begin(&self.resources.shared)?, first.pack())
                    }
                    Decider::Choice(arguments) => {
                        let kernel = self.resources.builtins.choose(&self.resources.shared)?;
                        let &(value, state, cases) = arguments;
                        (kernel, builtin::pack_choice(handle, value, state, cases))
                    }
                };
                let before = self.add_builtin(graph, edges, kernel, &arguments)?;
                Edges::full([before])
            }
        };
        let (node, graphs) = self.add_conditional_node(graph, &edges, handle, op.form, bodies.len())?;
        for (&body, steps) in graphs.iter().zip(bodies) {
            let nodes = self.add_steps(body, steps)?;
            if let Some(Decider::Loop { next, .. }) = &decider {
                let last = Edges::full(last_nodes(steps, &nodes));
                let kernel = self.resources.builtins.loop_next(&self.resources.shared)?;
                self.add_builtin(body, last, kernel, &next.pack())?;
            }
        }
        Ok(node)
    }

    /// What kernel of Gridloom's decides a conditional, if one does.
    fn decider(&self, origin: NodeKey, op: &ConditionalOp, handle: u64) -> Result<Option<Decider>> {
        if !is_counted(op) {
            return Ok(None);
        }
        let state = self.resources.counter(origin).ok_or_else(|| {
            Error::new(ErrorKind::InvalidState, "a conditional that is counted has no counter")
        })?;
        let limit = op.limit.unwrap_or(u64::MAX);
        let (value, limit) = match &op.test {
            Test::Value(region) => (self.resources.locate(region)?.address, limit),
            Test::Count(count) => (0, limit.min(*count)),
            Test::Condition(_) => (0, limit),
        };
        Ok(Some(match op.form {
            ConditionalForm::While => {
                let by_user = matches!(op.test, Test::Condition(_));
                let step = |decide| LoopStep { handle, value, state, limit, decide };
                let usual = if by_user { Decide::ByUser } else { Decide::ByValue };
                // A counter says itself whether there is a first pass.
                let first_free = !op.test_first && !matches!(op.test, Test::Count(_));
                Decider::Loop {
                    first: step(if first_free { Decide::FirstPass } else { usual }),
                    next: step(usual),
                }
            }
            ConditionalForm::If | ConditionalForm::IfElse => Decider::Choice((value, state, 0)),
            ConditionalForm::Switch => Decider::Choice((value, state, op.bodies.len() as u32)),
        }))
    }

    /// Adds the conditional node itself, and returns the graphs of its bodies.
    fn add_conditional_node(
        &self,
        graph: CUgraph,
        edges: &Edges,
        handle: CUgraphConditionalHandle,
        form: ConditionalForm,
        bodies: usize,
    ) -> Result<(CUgraphNode, SmallVec<[CUgraph; 2]>)> {
        let mut parameters = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        parameters.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: match form {
                ConditionalForm::If | ConditionalForm::IfElse => {
                    CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF
                }
                ConditionalForm::While => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
                ConditionalForm::Switch => CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH,
            },
            size: bodies as u32,
            phGraph_out: ptr::null_mut(),
            ctx: self.ctx,
        };
        let node = self.add_general(graph, edges, &mut parameters)?;
        // SAFETY: the parameters are those of a conditional, set above.
        let out = unsafe { parameters.__bindgen_anon_1.conditional.phGraph_out };
        if out.is_null() {
            return Err(Error::new(ErrorKind::Driver, "the driver made a conditional without bodies"));
        }
        // SAFETY: on success the driver has stored an array of `size` graphs that lives as long as the node.
        let graphs = unsafe { std::slice::from_raw_parts(out, bodies) };
        Ok((node, SmallVec::from_slice(graphs)))
    }

    /// A handle that nothing tests makes the driver refuse the whole graph, so each gets an IF without a body.
    fn use_up_handles(&self) -> Result<()> {
        for (condition, &handle) in &self.handles {
            if !self.tested.contains(condition) {
                self.add_conditional_node(self.root, &Edges::none(), handle, ConditionalForm::If, 1)?;
            }
        }
        Ok(())
    }

    fn explain(&self, failure: InstantiateFailure) -> Error {
        let why = match failure.result {
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
                "the driver finds the structure of the graph invalid"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
                "the driver does not support this node here"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
                "the driver does not support nodes of several devices in one conditional"
            }
            CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
                "a condition is tested by no node"
            }
            _ => "the driver could not compile the graph",
        };
        let error = Error::from(failure.error).context(why);
        match failure.node.and_then(|node| self.origins.get(&node)) {
            Some(&origin) => error.at_node(self.resources.definition.label(origin)),
            None => error,
        }
    }
}

enum Decider {
    Loop {
        first: LoopStep,
        next: LoopStep,
    },
    /// Address of the value, address of the note whether a body ran, cases.
    Choice((u64, u64, u32)),
}

/// The nodes of the steps that no other step waits for.
fn last_nodes(steps: &[Step], nodes: &Nodes) -> SmallVec<[CUgraphNode; 4]> {
    let mut is_last = vec![true; steps.len()];
    for step in steps {
        for &(before, _) in &step.after {
            is_last[before] = false;
        }
    }
    nodes.iter().zip(is_last).filter_map(|(&node, last)| last.then_some(node)).collect()
}

fn make(add: impl FnOnce(*mut CUgraphNode) -> DriverResult<()>) -> DriverResult<CUgraphNode> {
    let mut node = ptr::null_mut();
    add(&mut node)?;
    Ok(node)
}

/// The same description in the form of the general call.
fn general_kernel_parameters(parameters: &CUDA_KERNEL_NODE_PARAMS_v2) -> CUDA_KERNEL_NODE_PARAMS_v3 {
    CUDA_KERNEL_NODE_PARAMS_v3 {
        func: parameters.func,
        gridDimX: parameters.gridDimX,
        gridDimY: parameters.gridDimY,
        gridDimZ: parameters.gridDimZ,
        blockDimX: parameters.blockDimX,
        blockDimY: parameters.blockDimY,
        blockDimZ: parameters.blockDimZ,
        sharedMemBytes: parameters.sharedMemBytes,
        kernelParams: parameters.kernelParams,
        extra: parameters.extra,
        ..Default::default()
    }
}
