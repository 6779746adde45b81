//! Lowering of one list of steps to one `CUgraph` and its executable.

mod conditional;
mod whole;

use super::builtin;
use super::edges::{Edges, Nodes};
use super::executable::Settings;
use super::handles::{CudaExecutable, CudaGraph, InstantiateFailure};
use super::modes::{Capabilities, Modes};
use super::node_map::{DriverNode, NodeMap};
use super::parameters::Parameters;
use super::plan::{Step, Work};
use super::resources::{Held, Resources};
use crate::driver::{Driver, DriverResult};
use crate::foreign::OpaqueGraph;
use crate::kernel::{self, Kernel, NodeArguments};
use crate::sys::*;
use crate::turns::Turns;
use crate::version::CudaVersion;
use gridloom_core::backend::Opaque;
use gridloom_core::graph::{ConditionKey, Definition, EdgeKind, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::lower::has_all_addresses;
use gridloom_core::op::{KernelOp, Operation, PointerValue};
use gridloom_core::{Error, ErrorKind, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ptr;
use std::sync::Arc;
pub(super) use whole::is_plain;

/// The first driver whose edges carry data.
const PROGRAMMATIC_EDGES_SINCE: CudaVersion = CudaVersion::new(12, 3);

/// A graph of the program, compiled.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) executable: CudaExecutable,
    /// Kept because nodes of the executable are named by nodes of the graph.
    graph: Source,
    /// The handles of the conditions that kernels of this graph set.
    pub(super) handles: FxHashMap<ConditionKey, CUgraphConditionalHandle>,
    /// The turns that its launches take, where they must not run beside those of some others.
    turns: Option<Arc<Turns>>,
}

impl Unit {
    /// Returns the driver's handle of the graph.
    pub(super) fn raw_graph(&self) -> Result<CUgraph> {
        match &self.graph {
            Source::Made(graph) => Ok(graph.raw()),
            Source::Captured(opaque) => Ok(OpaqueGraph::from_backend(&**opaque)?.with(CudaGraph::raw)),
        }
    }

    /// Enqueues it on a stream.
    ///
    /// # Safety
    /// As for [`CudaExecutable::launch`].
    #[inline]
    pub(super) unsafe fn launch(&self, stream: CUstream) -> DriverResult<()> {
        // SAFETY: promised by the caller.
        self.in_turn(stream, || unsafe { self.executable.launch(stream) })
    }

    /// Enqueues the copy to the device on a stream. It writes what the driver runs, so it takes a
    /// turn as a launch does.
    pub(super) fn upload(&self, stream: CUstream) -> DriverResult<()> {
        self.in_turn(stream, || self.executable.upload(stream))
    }

    #[inline]
    fn in_turn(&self, stream: CUstream, enqueue: impl FnOnce() -> DriverResult<()>) -> DriverResult<()> {
        match &self.turns {
            None => enqueue(),
            Some(turns) => turns.take(stream, enqueue),
        }
    }
}

/// The graph that a unit was compiled from.
#[derive(Debug)]
enum Source {
    Made(CudaGraph),
    /// An opaque graph that runs alone, which may hold what its nodes need.
    Captured(Arc<dyn Opaque>),
}

/// What is lowered, and how.
#[derive(Clone, Copy)]
pub(super) struct Lowering<'a> {
    pub(super) resources: &'a Resources,
    pub(super) modes: &'a Modes,
    pub(super) capabilities: Capabilities,
}

/// How often a unit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// It is the whole launch.
    Alone,
    /// Once a launch, among others.
    Once,
    /// As often as the host decides.
    Repeatedly,
}

/// What becomes one `CUgraph`.
#[derive(Clone, Copy)]
pub(super) enum Content<'a> {
    /// These steps.
    Steps(&'a [Step]),
    /// Every node of the definition, which is [plain](is_plain).
    Whole,
}

/// Builds and compiles a graph of a definition, as unit number `unit`.
pub(super) fn lower(
    (definition, lowering): (&Definition, Lowering<'_>),
    (held, node_map): (&mut Held, &mut NodeMap),
    (unit, runs): (usize, Runs),
    content: Content<'_>,
    settings: Settings,
) -> Result<Unit> {
    let context = &lowering.resources.shared.context;
    let _entered = context.enter()?;
    if let Content::Steps([Step { work: Work::Alone, origin, .. }]) = content {
        return lower_alone(definition, lowering, *origin, flags(settings));
    }
    let graph = CudaGraph::new(context)?;
    let mut builder = Builder {
        driver: context.driver(),
        ctx: context.raw(),
        root: graph.raw(),
        definition,
        lowering,
        held,
        node_map,
        unit,
        runs,
        device_launch: settings.device_launch,
        reset: None,
        handles: FxHashMap::default(),
        tested: FxHashSet::default(),
        last_kernel: None,
        origins: Vec::new(),
    };
    match content {
        Content::Steps(steps) => {
            builder.add_reset(steps)?;
            let nodes = builder.add_steps(graph.raw(), steps)?;
            let last = steps.iter().rposition(Step::is_native).map(|step| nodes[step]);
            builder.use_up_handles(last)?;
        }
        Content::Whole => builder.add_whole(graph.raw())?,
    }
    let made = CudaExecutable::new(context, &graph, flags(settings));
    let executable = made.map_err(|failure| builder.explain(failure))?;
    let handles = builder.handles;
    // A handle that no step tests gets a conditional too (`use_up_handles`). The driver treats a graph
    // that kernels can launch like the body of a conditional.
    let takes_turns = settings.device_launch
        || !handles.is_empty()
        || matches!(content, Content::Steps(steps) if steps.iter().any(Step::is_native));
    let turns = takes_turns.then(|| Arc::clone(&lowering.resources.shared.turns));
    Ok(Unit { executable, graph: Source::Made(graph), handles, turns })
}

fn flags(settings: Settings) -> CUgraphInstantiate_flags {
    let mut flags = CUgraphInstantiate_flags(0);
    if settings.device_launch {
        flags.0 |= CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0;
    }
    if settings.node_priority {
        flags.0 |= CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0;
    }
    flags
}

/// Compiles an opaque graph that no other graph can hold.
fn lower_alone(
    definition: &Definition,
    lowering: Lowering<'_>,
    origin: NodeKey,
    flags: CUgraphInstantiate_flags,
) -> Result<Unit> {
    let label = || definition.label(origin);
    let Operation::Opaque(opaque) = definition.node(origin).operation() else {
        return Err(Error::new(ErrorKind::InvalidState, "only an opaque graph runs alone").at_node(label()));
    };
    let context = &lowering.resources.shared.context;
    let made = OpaqueGraph::from_backend(&**opaque)?.with(|graph| CudaExecutable::new(context, graph, flags));
    let executable = made.map_err(|failure| {
        let what = "the driver could not compile the captured graph; a captured graph that allocates memory or holds a conditional allows one executable at a time";
        Error::from(failure.error).context(what).at_node(label())
    })?;
    // A captured graph may hold a conditional, so it takes turns.
    let turns = Some(Arc::clone(&lowering.resources.shared.turns));
    let handles = FxHashMap::default();
    Ok(Unit { executable, graph: Source::Captured(Arc::clone(opaque)), handles, turns })
}

struct Builder<'a> {
    driver: &'a Driver,
    ctx: CUcontext,
    /// The outermost graph; handles of conditions belong to it, also when they are tested further
    /// in.
    root: CUgraph,
    definition: &'a Definition,
    lowering: Lowering<'a>,
    held: &'a mut Held,
    node_map: &'a mut NodeMap,
    unit: usize,
    runs: Runs,
    /// Whether kernels launch the graph.
    device_launch: bool,
    /// The node that sets all counters of passes to 0.
    reset: Option<CUgraphNode>,
    handles: FxHashMap<ConditionKey, CUgraphConditionalHandle>,
    /// The conditions that a conditional of this unit tests.
    tested: FxHashSet<ConditionKey>,
    /// The kernel of the last launch. The next launch often has the same one, which then needs no
    /// downcast.
    last_kernel: Option<&'a Kernel>,
    /// The origins of driver nodes that stand for no node of the definition, for errors.
    origins: Vec<(CUgraphNode, NodeKey)>,
}

impl<'a> Builder<'a> {
    /// Adds steps to a graph, and returns their nodes.
    fn add_steps(&mut self, graph: CUgraph, steps: &[Step]) -> Result<Nodes> {
        let mut nodes = Nodes::with_capacity(steps.len());
        let mut last_conditional = None;
        for step in steps {
            let programmatic = self.starts_early(step);
            let mut edges = Edges::of(&step.after, &nodes, programmatic);
            if !edges.are_full() {
                for &(before, _) in step.after.iter().filter(|(_, kind)| *kind == EdgeKind::Programmatic) {
                    self.node_map.set_overlapping(steps[before as usize].origin, step.origin);
                }
            }
            if step.is_native() {
                // Conditionals side by side in one graph may hang or fault (a driver for CUDA 13.0,
                // 580.159, on an H200, in two of 10,000 random graphs), so they run one after the
                // other.
                if let Some(before) = last_conditional.replace(nodes.len()).map(|step: usize| nodes[step]) {
                    edges.add(before);
                }
            }
            let node = self
                .add_step(graph, edges, step)
                .map_err(|error| error.at_node(self.definition.label(step.origin)))?;
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Returns whether the programmatic edges of a step can be such edges of the driver. A full edge
    /// orders more and is never wrong.
    fn starts_early(&self, step: &Step) -> bool {
        let is_asked = step.after.iter().any(|(_, kind)| *kind == EdgeKind::Programmatic);
        is_asked && matches!(step.work, Work::Node) && self.may_start_early(step.origin)
    }

    /// Returns whether a node is a kernel that may start before those it depends on have ended.
    fn may_start_early(&self, node: NodeKey) -> bool {
        let Operation::Kernel(op) = self.definition.node(node).operation() else { return false };
        self.driver.supports(PROGRAMMATIC_EDGES_SINCE)
            && Kernel::from_backend(&**op.kernel()).is_ok_and(Kernel::may_start_early)
    }

    fn add_step(&mut self, graph: CUgraph, edges: Edges, step: &Step) -> Result<CUgraphNode> {
        let operation = self.definition.node(step.origin).operation();
        let node = match (&step.work, operation) {
            (Work::Native(bodies), Operation::Conditional(conditional)) => {
                return self.add_conditional(graph, edges, step.origin, conditional, bodies);
            }
            (Work::Node, operation) => self.add_operation(graph, &edges, step.origin, operation)?,
            // These steps are joins. Alloc, free and child nodes have no step of their own.
            _ => {
                let join = self.add_join(graph, &edges)?;
                self.origins.push((join, step.origin));
                return Ok(join);
            }
        };
        self.node_map.set(step.origin, DriverNode { unit: self.unit, node }, None);
        Ok(node)
    }

    /// Adds what a node of the definition does, which is no conditional.
    #[inline]
    fn add_operation(
        &mut self,
        graph: CUgraph,
        edges: &Edges,
        origin: NodeKey,
        operation: &'a Operation,
    ) -> Result<CUgraphNode> {
        if let Operation::Kernel(op) = operation {
            return self.add_user_kernel(graph, edges, origin, op);
        }
        let label = || self.definition.label(origin);
        let parameters = self.lowering.parameters(self.held, origin, operation, label)?;
        self.add_other(graph, edges, &parameters)
    }

    /// Fills words of device memory.
    fn add_fill(
        &self,
        graph: CUgraph,
        edges: &Edges,
        address: u64,
        value: u32,
        words: usize,
    ) -> Result<CUgraphNode> {
        let parameters = CUDA_MEMSET_NODE_PARAMS {
            dst: address,
            pitch: 4 * words,
            value,
            elementSize: 4,
            width: words,
            height: 1,
        };
        self.add_other(graph, edges, &Parameters::Fill(parameters))
    }

    fn add_other(&self, graph: CUgraph, edges: &Edges, parameters: &Parameters) -> Result<CUgraphNode> {
        let (before, count) = (edges.as_ptr(), edges.len());
        let copied = match parameters {
            Parameters::Opaque(opaque) => Some(OpaqueGraph::from_backend(&**opaque)?),
            _ => None,
        };
        // SAFETY: graph and dependencies are alive; what the parameters refer to is kept by the
        // executable.
        let node = make(|node| unsafe {
            match parameters {
                Parameters::Fill(fill) => {
                    self.driver.cu_graph_add_memset_node(node, graph, before, count, fill, self.ctx)
                }
                Parameters::Copy(copy) => {
                    self.driver.cu_graph_add_memcpy_node(node, graph, before, count, copy, self.ctx)
                }
                Parameters::Call(call) => {
                    self.driver.cu_graph_add_host_node(node, graph, before, count, call)
                }
                Parameters::Record(event) => {
                    self.driver.cu_graph_add_event_record_node(node, graph, before, count, *event)
                }
                Parameters::Wait(event) => {
                    self.driver.cu_graph_add_event_wait_node(node, graph, before, count, *event)
                }
                Parameters::Opaque(_) => copied.map_or(Ok(()), |copied| {
                    copied.with(|child| {
                        self.driver.cu_graph_add_child_graph_node(node, graph, before, count, child.raw())
                    })
                }),
                Parameters::Nothing => self.driver.cu_graph_add_empty_node(node, graph, before, count),
            }
        })?;
        Ok(node)
    }

    /// Adds a node where edges meet. A graph that kernels launch can hold no empty node, so a fill
    /// of a word that nobody reads takes its place.
    fn add_join(&mut self, graph: CUgraph, edges: &Edges) -> Result<CUgraphNode> {
        if !self.device_launch {
            return self.add_empty(graph, edges);
        }
        self.add_idle_fill(graph, edges)
    }

    /// Adds a fill of a word that nobody reads.
    fn add_idle_fill(&mut self, graph: CUgraph, edges: &Edges) -> Result<CUgraphNode> {
        let word = self.held.unread_word(&self.lowering.resources.shared)?;
        self.add_fill(graph, edges, word, 0, 1)
    }

    fn add_empty(&self, graph: CUgraph, edges: &Edges) -> Result<CUgraphNode> {
        // SAFETY: graph and dependencies are alive.
        Ok(make(|node| unsafe {
            self.driver.cu_graph_add_empty_node(node, graph, edges.as_ptr(), edges.len())
        })?)
    }

    fn add_user_kernel(
        &mut self,
        graph: CUgraph,
        edges: &Edges,
        origin: NodeKey,
        op: &'a KernelOp,
    ) -> Result<CUgraphNode> {
        if has_all_addresses(op.args()) {
            let kernel = match self.last_kernel {
                Some(last) if ptr::addr_eq(last, Arc::as_ptr(op.kernel())) => last,
                _ => *self.last_kernel.insert(Kernel::from_backend(&**op.kernel())?),
            };
            return self.add_kernel(graph, edges, kernel, op.config(), &op.args().bytes);
        }
        // The handles are made first, because the arguments borrow from `held`.
        let stores = self.lowering.stores_conditions(op);
        if !stores {
            for pointer in &op.args().pointers {
                if let PointerValue::Condition(condition) = pointer.value {
                    self.handle(condition)?;
                }
            }
        }
        let arguments = self.lowering.kernel_arguments(self.held, origin, op, &self.handles)?;
        self.add_kernel(graph, edges, arguments.kernel()?, op.config(), arguments.bytes())
    }

    /// ([`cuGraphAddKernelNode`,
    /// `cuGraphAddNode`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html))
    fn add_kernel(
        &self,
        graph: CUgraph,
        edges: &Edges,
        kernel: &Kernel,
        config: &LaunchConfig,
        bytes: &[u8],
    ) -> Result<CUgraphNode> {
        kernel.allow(config)?;
        let mut arguments = NodeArguments::new(kernel, config, bytes);
        let parameters = arguments.describe(kernel, config);
        let node = if edges.are_full() {
            // SAFETY: graph and dependencies are alive; the arguments fit the kernel and are copied
            // by the call.
            make(|node| unsafe {
                self.driver.cu_graph_add_kernel_node(node, graph, edges.as_ptr(), edges.len(), &parameters)
            })?
        } else {
            let mut general =
                CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL, ..Default::default() };
            general.__bindgen_anon_1.kernel = general_kernel_parameters(&parameters);
            self.add_general(graph, edges, &mut general)?
        };
        for attribute in &kernel::attributes(config) {
            // SAFETY: the node was just made; one value is read.
            unsafe { self.driver.cu_graph_kernel_node_set_attribute(node, attribute.id, &attribute.value) }?;
        }
        Ok(node)
    }

    /// Calls [`cuGraphAddNode`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    fn add_general(
        &self,
        graph: CUgraph,
        edges: &Edges,
        parameters: &mut CUgraphNodeParams,
    ) -> DriverResult<CUgraphNode> {
        // SAFETY: graph and dependencies are alive; the parameters are of the type they say, zero
        // where unused.
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
        arguments: &[u8],
    ) -> Result<CUgraphNode> {
        self.add_kernel(graph, &edges, kernel, &builtin::one_thread(), arguments)
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
        match failure.node.and_then(|node| self.origin(node)) {
            Some(origin) => error.at_node(self.definition.label(origin)),
            None => error,
        }
    }

    /// Returns the node of the definition that a node of the driver was made from.
    fn origin(&self, node: CUgraphNode) -> Option<NodeKey> {
        let added = self.origins.iter().find(|(added, _)| *added == node);
        added.map(|&(_, origin)| origin).or_else(|| {
            let index = self.node_map.find(node)?;
            self.definition.all_nodes().map(|(key, _)| key).find(|key| key.index() == index)
        })
    }
}

fn make(add: impl FnOnce(*mut CUgraphNode) -> DriverResult<()>) -> DriverResult<CUgraphNode> {
    let mut node = ptr::null_mut();
    add(&mut node)?;
    Ok(node)
}

/// Returns the same description for the general driver call.
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
