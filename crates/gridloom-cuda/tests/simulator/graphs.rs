//! Graphs: built, compiled, changed and run.

use super::clock;
use super::code::{Call, Shape};
use super::memory::{copy_planes, fill, free_of_graph, sides};
use super::order::{check, check_early_starts, order};
use super::streams::{Recording, call, enqueue, expect, in_one_step, latest, use_event};
use super::{INVALID, OK, REFUSED, Use, World, capture, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuGraphCreate" => create,
        "cuGraphDestroy" => destroy,
        "cuGraphAddEmptyNode" => add_empty,
        "cuGraphAddKernelNode_v2" => add_kernel,
        "cuGraphAddMemsetNode" => add_fill,
        "cuGraphAddMemcpyNode" => add_copy,
        "cuGraphAddHostNode" => add_call,
        "cuGraphAddEventRecordNode" => add_record,
        "cuGraphAddEventWaitNode" => add_wait,
        "cuGraphAddNode_v2" => add_general,
        "cuGraphAddChildGraphNode" => add_child,
        "cuGraphClone" => copy_graph,
        "cuUserObjectCreate" => create_user_object,
        "cuGraphRetainUserObject" => retain_user_object,
        "cuGraphExecChildGraphNodeSetParams" => set_child,
        "cuGraphKernelNodeSetAttribute" => set_attribute,
        "cuGraphConditionalHandleCreate" => create_condition,
        "cuGraphInstantiateWithParams" => instantiate,
        "cuGraphExecDestroy" => destroy_executable,
        "cuGraphUpload" => upload,
        "cuGraphLaunch" => launch,
        "cuGraphNodeSetEnabled" => set_enabled,
        "cuGraphExecKernelNodeSetParams_v2" => set_kernel,
        "cuGraphExecMemsetNodeSetParams" => set_fill,
        "cuGraphExecMemcpyNodeSetParams" => set_copy,
        "cuGraphExecHostNodeSetParams" => set_call,
        "cuGraphExecEventRecordNodeSetEvent" => set_record,
        "cuGraphExecEventWaitNodeSetEvent" => set_wait,
    }
}

#[derive(Clone, Default)]
pub struct Graph {
    pub nodes: Vec<usize>,
    /// Condition handles that belong to it, with the value each starts a launch with.
    conditions: Vec<(u64, u32)>,
    is_body: bool,
    /// What is told when it is destroyed. Copies do not know of it here.
    user_objects: Vec<(CUhostFn, usize)>,
}

#[derive(Clone)]
pub struct Node {
    pub graph: usize,
    pub after: Vec<usize>,
    /// Those of the nodes before it that it need not wait for to the end.
    pub early: Vec<usize>,
    pub work: Work,
    pub attributes: Vec<CUlaunchAttribute>,
    pub enabled: bool,
}

impl Node {
    pub fn new(graph: usize, after: Vec<usize>, work: Work) -> Self {
        Node { graph, after, early: Vec::new(), work, attributes: Vec::new(), enabled: true }
    }

    fn is_cooperative(&self) -> bool {
        self.attributes.iter().any(|attribute| {
            // SAFETY: the value is the one of this attribute.
            attribute.id == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                && unsafe { attribute.value.cooperative } != 0
        })
    }
}

#[derive(Clone)]
pub enum Work {
    Nothing,
    Kernel(Call),
    Fill(CUDA_MEMSET_NODE_PARAMS),
    Copy(CUDA_MEMCPY3D),
    Host(CUDA_HOST_NODE_PARAMS_v1),
    Record(usize),
    Wait(usize),
    Child(usize),
    /// Memory that exists while the graph does.
    Alloc {
        address: u64,
        bytes: usize,
    },
    Free(u64),
    Conditional {
        condition: u64,
        kind: CUgraphConditionalNodeType,
        bodies: Vec<usize>,
    },
}

impl Work {
    /// The graphs inside.
    fn inside(&self) -> &[usize] {
        match self {
            Work::Child(graph) => std::slice::from_ref(graph),
            Work::Conditional { bodies, .. } => bodies,
            _ => &[],
        }
    }
}

// Pointers in the descriptions are addresses; the simulator is as thread-safe as its one lock.
unsafe impl Send for Work {}
unsafe impl Sync for Work {}
// Attributes hold addresses too.
unsafe impl Send for Node {}
unsafe impl Sync for Node {}

/// A compiled graph: a copy of everything that it reaches.
pub struct Executable {
    root: usize,
    /// Each graph, with its nodes in the order in which they run.
    graphs: Arc<HashMap<usize, Graph>>,
    /// Copied when one is changed while a launch is in flight.
    nodes: Arc<HashMap<usize, Node>>,
    /// The end of the latest launch.
    latest: Option<Arc<Recording>>,
    /// The end of the latest upload.
    uploaded: Option<Arc<Recording>>,
    on_device: Arc<OnDevice>,
    /// Whether a driver was seen to fail when it runs beside another of this kind: it holds a
    /// conditional, or kernels can launch it.
    runs_alone: bool,
}

/// The copy of a compiled graph on the device: what is at work on it now.
#[derive(Default)]
struct OnDevice {
    launches: AtomicUsize,
    uploads: AtomicUsize,
}

impl OnDevice {
    /// Runs a launch or an upload. An upload beside a launch is a violation.
    fn during(&self, own: &AtomicUsize, other: &AtomicUsize, work: impl FnOnce()) {
        own.fetch_add(1, Ordering::SeqCst);
        if other.load(Ordering::SeqCst) > 0 {
            world(|world| world.violation("a graph is uploaded while a launch of it runs"));
        }
        work();
        own.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Executable {
    /// How many programmatic edges it has.
    pub fn early_starts(&self) -> usize {
        self.nodes.values().map(|node| node.early.len()).sum()
    }
}

fn create(out: *mut CUgraph, _: c_uint) -> CUresult {
    world(|world| {
        let number = world.fresh();
        world.graphs.insert(number, Graph::default());
        unsafe { *out = handle(number) };
    });
    OK
}

pub fn destroy(graph: CUgraph) -> CUresult {
    let _alone = Use::of(graph);
    let freed = world(|world| {
        let root = world.graphs.remove(&graph.addr())?;
        let (mut freed, user_objects) = (Vec::new(), root.user_objects);
        // What is inside goes with the nodes it is in.
        let mut nodes = root.nodes;
        while let Some(node) = nodes.pop() {
            world.arguments.remove(&node);
            let Some(node) = world.nodes.remove(&node) else { continue };
            let inside = node.work.inside().iter().filter_map(|graph| world.graphs.remove(graph));
            nodes.extend(inside.flat_map(|graph| graph.nodes));
            if let Work::Alloc { address, bytes } = node.work {
                freed.push((address, bytes));
            }
        }
        Some((freed, user_objects))
    });
    let Some((freed, user_objects)) = freed else { return INVALID };
    for (address, bytes) in freed {
        free_of_graph(address, bytes);
    }
    for (destroy, data) in user_objects {
        unsafe { destroy.unwrap()(handle(data)) };
    }
    OK
}

fn create_user_object(
    out: *mut CUuserObject,
    data: *mut c_void,
    destroy: CUhostFn,
    _: c_uint,
    _: c_uint,
) -> CUresult {
    world(|world| {
        let number = world.fresh();
        world.user_objects.insert(number, (destroy, data as usize));
        unsafe { *out = handle(number) };
    });
    OK
}

/// Moves an object into a graph.
fn retain_user_object(graph: CUgraph, object: CUuserObject, _: c_uint, _: c_uint) -> CUresult {
    world(|world| {
        let Some(object) = world.user_objects.remove(&object.addr()) else { return INVALID };
        let Some(graph) = world.graphs.get_mut(&graph.addr()) else { return INVALID };
        graph.user_objects.push(object);
        OK
    })
}

/// A copy of a graph and all inside it, out of tables that hold them. `None` where the driver
/// refuses: with conditionals or allocations.
fn copied(
    world: &mut World,
    graphs: &HashMap<usize, Graph>,
    nodes: &HashMap<usize, Node>,
    graph: usize,
) -> Option<usize> {
    let original = graphs.get(&graph)?;
    let number = world.fresh();
    let renamed: HashMap<usize, usize> = original.nodes.iter().map(|&node| (node, world.fresh())).collect();
    let new = |old: &[usize]| old.iter().map(|node| renamed[node]).collect::<Vec<_>>();
    let mut copies = Vec::new();
    for node in &original.nodes {
        let mut copy = nodes[node].clone();
        copy.work = match copy.work {
            Work::Conditional { .. } | Work::Alloc { .. } | Work::Free(_) => return None,
            Work::Child(child) => Work::Child(copied(world, graphs, nodes, child)?),
            work => work,
        };
        (copy.graph, copy.after, copy.early) = (number, new(&copy.after), new(&copy.early));
        copies.push((renamed[node], copy));
    }
    world.graphs.insert(number, Graph { nodes: new(&original.nodes), ..Graph::default() });
    world.nodes.extend(copies);
    Some(number)
}

fn copy_of(graph: CUgraph) -> Option<usize> {
    let _alone = Use::of(graph);
    world(|world| {
        let (graphs, nodes) = (world.graphs.clone(), world.nodes.clone());
        copied(world, &graphs, &nodes, graph.addr())
    })
}

fn copy_graph(out: *mut CUgraph, graph: CUgraph) -> CUresult {
    let Some(copy) = copy_of(graph) else { return REFUSED };
    unsafe { *out = handle(copy) };
    OK
}

fn add_child(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    child: CUgraph,
) -> CUresult {
    match copy_of(child) {
        Some(copy) => unsafe { add(out, graph, before, count, Work::Child(copy)) },
        None => REFUSED,
    }
}

unsafe fn add(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    work: Work,
) -> CUresult {
    let _alone = Use::of(graph);
    let after: Vec<usize> = (0..count).map(|index| unsafe { *before.add(index) }.addr()).collect();
    world(|world| {
        let graph = graph.addr();
        if after.iter().any(|before| world.nodes.get(before).is_none_or(|node| node.graph != graph)) {
            return INVALID;
        }
        let number = world.fresh();
        let Some(owner) = world.graphs.get_mut(&graph) else { return INVALID };
        owner.nodes.push(number);
        world.nodes.insert(number, Node::new(graph, after, work));
        unsafe { *out = handle(number) };
        OK
    })
}

fn add_empty(out: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Nothing) }
}

unsafe fn kernel(p: &CUDA_KERNEL_NODE_PARAMS_v2) -> Option<Work> {
    let (grid, block) = ([p.gridDimX, p.gridDimY, p.gridDimZ], [p.blockDimX, p.blockDimY, p.blockDimZ]);
    let shape = Shape { grid, block, shared: p.sharedMemBytes };
    unsafe { Call::new(p.func.addr(), shape, p.kernelParams, p.extra) }.map(Work::Kernel)
}

fn add_kernel(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_KERNEL_NODE_PARAMS_v2,
) -> CUresult {
    match unsafe { kernel(&*parameters) } {
        Some(work) => unsafe { add(out, graph, before, count, work) },
        None => INVALID,
    }
}

fn add_fill(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_MEMSET_NODE_PARAMS,
    _: CUcontext,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Fill(*parameters)) }
}

fn add_copy(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_MEMCPY3D,
    _: CUcontext,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Copy(*parameters)) }
}

fn add_call(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_HOST_NODE_PARAMS_v1,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Host(*parameters)) }
}

fn add_record(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    event: CUevent,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Record(event.addr())) }
}

fn add_wait(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    event: CUevent,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Wait(event.addr())) }
}

fn add_general(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    parameters: *mut CUgraphNodeParams,
) -> CUresult {
    let outcome = unsafe { add_by_type(out, graph, before, count, &mut *parameters) };
    if outcome == OK && !data.is_null() {
        let early = (0..count).filter(|&index| unsafe { (*data.add(index)).type_ } == 1);
        let early = early.map(|index| unsafe { *before.add(index) }.addr()).collect();
        world(|world| world.nodes.get_mut(&unsafe { *out }.addr()).unwrap().early = early);
    }
    outcome
}

unsafe fn add_by_type(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: &mut CUgraphNodeParams,
) -> CUresult {
    match parameters.type_ {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            let p = unsafe { parameters.__bindgen_anon_1.kernel };
            let (grid, block) =
                ([p.gridDimX, p.gridDimY, p.gridDimZ], [p.blockDimX, p.blockDimY, p.blockDimZ]);
            let shape = Shape { grid, block, shared: p.sharedMemBytes };
            let work = unsafe { Call::new(p.func.addr(), shape, p.kernelParams, p.extra) };
            work.map_or(INVALID, |call| unsafe { add(out, graph, before, count, Work::Kernel(call)) })
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            let p = unsafe { &mut parameters.__bindgen_anon_1.conditional };
            let bodies: Vec<usize> = world(|world| {
                (0..p.size)
                    .map(|_| {
                        let number = world.fresh();
                        world.graphs.insert(number, Graph { is_body: true, ..Graph::default() });
                        number
                    })
                    .collect()
            });
            let handles: Vec<CUgraph> = bodies.iter().map(|&body| handle(body)).collect();
            // The driver owns the array for as long as the node lives.
            p.phGraph_out = handles.leak().as_mut_ptr();
            let work = Work::Conditional { condition: p.handle, kind: p.type_, bodies };
            unsafe { add(out, graph, before, count, work) }
        }
        _ => INVALID,
    }
}

fn set_attribute(
    node: CUgraphNode,
    id: CUlaunchAttributeID,
    value: *const CUlaunchAttributeValue,
) -> CUresult {
    world(|world| {
        let Some(node) = world.nodes.get_mut(&node.addr()) else { return INVALID };
        // As a driver for CUDA 13.0 does.
        let cooperative = id == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        if cooperative && matches!(&node.work, Work::Kernel(call) if call.packed) {
            return INVALID;
        }
        node.attributes.retain(|attribute| attribute.id != id);
        node.attributes.push(CUlaunchAttribute { id, value: unsafe { *value }, ..Default::default() });
        OK
    })
}

/// Has graphs of kernels, copies, fills and children alone.
const DEVICE_LAUNCH: CUgraphInstantiate_flags =
    CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

fn create_condition(
    out: *mut CUgraphConditionalHandle,
    graph: CUgraph,
    _: CUcontext,
    default: c_uint,
    _: c_uint,
) -> CUresult {
    world(|world| {
        let number = world.fresh() as u64;
        let Some(graph) = world.graphs.get_mut(&graph.addr()) else { return INVALID };
        graph.conditions.push((number, default));
        unsafe { *out = number };
        OK
    })
}

fn instantiate(
    out: *mut CUgraphExec,
    graph: CUgraph,
    parameters: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> CUresult {
    let _alone = Use::of(graph);
    world(|world| {
        let (mut graphs, mut nodes) = (HashMap::new(), HashMap::new());
        let root = graph.addr();
        let mut used = HashSet::new();
        let mut open = vec![root];
        while let Some(number) = open.pop() {
            let mut graph = world.graphs[&number].clone();
            for node in &graph.nodes {
                let copy = world.nodes[node].clone();
                let by_host = matches!(copy.work, Work::Host(_) | Work::Record(_) | Work::Wait(_));
                let launched_by_kernels = unsafe { (*parameters).flags } & u64::from(DEVICE_LAUNCH.0) != 0;
                let forbidden = graph.is_body && by_host
                    || launched_by_kernels
                        && (by_host || matches!(copy.work, Work::Nothing | Work::Conditional { .. }));
                let mut twice = false;
                if let Work::Conditional { condition, .. } = &copy.work {
                    twice = !used.insert(*condition);
                }
                open.extend(copy.work.inside());
                if forbidden || twice {
                    unsafe { (*parameters).hErrNode_out = handle(*node) };
                    return INVALID;
                }
                nodes.insert(*node, copy);
            }
            graph.nodes = order(&graph.nodes, &nodes);
            check(world, &graph.nodes, &nodes, graph.is_body);
            graphs.insert(number, graph);
        }
        let conditions = &graphs[&root].conditions;
        if conditions.iter().any(|(condition, _)| !used.contains(condition)) {
            unsafe {
                (*parameters).result_out =
                    CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
            }
            return INVALID;
        }
        let number = world.fresh();
        let runs_alone = unsafe { (*parameters).flags } & u64::from(DEVICE_LAUNCH.0) != 0
            || nodes.values().any(|node| matches!(node.work, Work::Conditional { .. }));
        let (graphs, nodes) = (Arc::new(graphs), Arc::new(nodes));
        let executable = Executable {
            root,
            graphs,
            nodes,
            latest: None,
            uploaded: None,
            on_device: Arc::default(),
            runs_alone,
        };
        world.executables.insert(number, executable);
        unsafe { *out = handle(number) };
        OK
    })
}

fn destroy_executable(executable: CUgraphExec) -> CUresult {
    let _alone = Use::of(executable);
    if world(|world| world.executables.remove(&executable.addr()).is_some()) { OK } else { INVALID }
}

/// An upload writes the copy of the graph on the device, after the launches and uploads before it.
/// Nothing says that a launch on another stream comes after the upload.
fn upload(executable: CUgraphExec, stream: CUstream) -> CUresult {
    let _alone = Use::of(executable);
    let end = Arc::new(Recording::default());
    let upload = world(|world| {
        let executable = world.executables.get_mut(&executable.addr())?;
        let before = [executable.latest.clone(), executable.uploaded.replace(Arc::clone(&end))];
        Some((Arc::clone(&executable.on_device), executable.runs_alone, before))
    });
    let Some((on_device, runs_alone, before)) = upload else { return INVALID };
    enqueue(stream, move || {
        before.into_iter().flatten().for_each(|before| before.wait());
        let alone = runs_alone.then(Alone::begin);
        // Whoever comes at the same time is to be seen.
        let work = || std::thread::sleep(std::time::Duration::from_micros(50));
        on_device.during(&on_device.uploads, &on_device.launches, work);
        drop(alone);
        end.reach();
    });
    OK
}

/// A launch runs what the executable is now, after the launch before it, whatever becomes of the
/// executable meanwhile.
fn launch(executable: CUgraphExec, stream: CUstream) -> CUresult {
    let _alone = Use::of(executable);
    if capture::captures(stream) {
        let child = world(|world| {
            let executable = world.executables.get(&executable.addr())?;
            let (root, graphs, nodes) =
                (executable.root, Arc::clone(&executable.graphs), Arc::clone(&executable.nodes));
            copied(world, &graphs, &nodes, root)
        });
        let Some(child) = child else { return REFUSED };
        return capture::add(stream, Work::Child(child)).unwrap_or(INVALID);
    }
    let end = Arc::new(Recording::default());
    let launch = world(|world| {
        let executable = world.executables.get_mut(&executable.addr())?;
        let before = executable.latest.replace(Arc::clone(&end));
        let (graphs, nodes) = (Arc::clone(&executable.graphs), Arc::clone(&executable.nodes));
        let (records, waits) = (HashMap::new(), HashMap::new());
        let (runs_alone, on_device) = (executable.runs_alone, Arc::clone(&executable.on_device));
        Some((Launch { graphs, nodes, records, waits, runs_alone, on_device }, executable.root, before))
    });
    let Some((mut launch, root, before)) = launch else { return INVALID };
    world(|world| check_early_starts(world, &launch.nodes));
    in_one_step(|| {
        launch.waits = launch.awaited();
        // Whoever waits for an event from now on waits for this launch to record it.
        launch.records = launch.expect_records(root);
        enqueue(stream, move || {
            if let Some(before) = before {
                before.wait();
            }
            let conditions = launch.graphs[&root].conditions.clone();
            world(|world| world.conditions.extend(conditions));
            let alone = launch.runs_alone.then(Alone::begin);
            let on_device = &launch.on_device;
            on_device.during(&on_device.launches, &on_device.uploads, || launch.run(root));
            drop(alone);
            end.reach();
        });
    });
    OK
}

/// A graph with a conditional, or one that kernels can launch, while it runs or is uploaded. Two at
/// once are a violation.
struct Alone;

impl Alone {
    fn begin() -> Self {
        world(|world| {
            world.running_alone += 1;
            if world.running_alone > 1 {
                world.violation("graphs with conditionals, or that kernels can launch, run side by side");
            }
        });
        // Whoever comes at the same time is to be seen.
        std::thread::sleep(std::time::Duration::from_micros(50));
        Alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        world(|world| world.running_alone -= 1);
    }
}

/// One launch in flight.
struct Launch {
    runs_alone: bool,
    on_device: Arc<OnDevice>,
    graphs: Arc<HashMap<usize, Graph>>,
    nodes: Arc<HashMap<usize, Node>>,
    /// What each record node reaches.
    records: HashMap<usize, Arc<Recording>>,
    /// What wait nodes wait for, by event: its latest recording when the launch was enqueued. What
    /// the launch itself has recorded by then is reached, since its nodes run one after the other.
    waits: HashMap<usize, Arc<Recording>>,
}

impl Launch {
    /// The latest recordings of the events that nodes wait for.
    fn awaited(&self) -> HashMap<usize, Arc<Recording>> {
        let events = self.nodes.values().filter_map(|node| match node.work {
            Work::Wait(event) => Some(event),
            _ => None,
        });
        events.filter_map(|event| Some((event, latest(event)?))).collect()
    }

    /// Has events stand for the nodes that record them, in the order in which those run.
    fn expect_records(&self, graph: usize) -> HashMap<usize, Arc<Recording>> {
        let mut records = HashMap::new();
        for number in &self.graphs[&graph].nodes {
            match self.nodes[number].work {
                Work::Record(event) => {
                    records.insert(*number, expect(event));
                }
                Work::Child(child) => records.extend(self.expect_records(child)),
                _ => {}
            }
        }
        records
    }

    fn run(&self, graph: usize) {
        for number in &self.graphs[&graph].nodes {
            let node = &self.nodes[number];
            if let (Work::Record(event), Some(recording)) = (&node.work, self.records.get(number)) {
                use_event(*event);
                recording.reach();
            } else if node.enabled {
                clock::spend(&node.work, self.graphs[&graph].is_body);
                self.run_node(&node.work);
            }
        }
    }

    fn run_node(&self, work: &Work) {
        match work {
            Work::Nothing | Work::Record(_) | Work::Alloc { .. } | Work::Free(_) => {}
            Work::Child(graph) => self.run(*graph),
            Work::Wait(event) => {
                use_event(*event);
                if let Some(recording) = self.waits.get(event) {
                    recording.wait();
                }
            }
            Work::Kernel(call) => call.run(),
            Work::Fill(parameters) => fill(parameters),
            Work::Copy(parameters) => copy_planes(parameters),
            Work::Host(parameters) => call(parameters.fn_, parameters.userData),
            Work::Conditional { condition, kind, bodies } => {
                let value = || world(|world| world.conditions[condition]);
                match *kind {
                    CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE => {
                        while value() != 0 {
                            self.run(bodies[0]);
                        }
                    }
                    CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF => {
                        if let Some(&body) = bodies.get(usize::from(value() == 0)) {
                            self.run(body);
                        }
                    }
                    _ => {
                        if let Some(&body) = bodies.get(value() as usize) {
                            self.run(body);
                        }
                    }
                }
            }
        }
    }
}

fn change(
    executable: CUgraphExec,
    node: CUgraphNode,
    change: impl FnOnce(&mut Node, bool) -> CUresult,
) -> CUresult {
    let _alone = Use::of(executable);
    world(|world: &mut World| {
        let Some(executable) = world.executables.get_mut(&executable.addr()) else { return INVALID };
        let nodes = Arc::make_mut(&mut executable.nodes);
        let Some(node) = nodes.get_mut(&node.addr()) else { return INVALID };
        let in_body = executable.graphs[&node.graph].is_body;
        change(node, in_body)
    })
}

fn set_enabled(executable: CUgraphExec, node: CUgraphNode, enabled: c_uint) -> CUresult {
    let mut forbidden = false;
    let outcome = change(executable, node, |node, in_body| {
        if in_body {
            return REFUSED;
        }
        node.enabled = enabled != 0;
        forbidden = enabled == 0 && node.is_cooperative();
        OK
    });
    if forbidden {
        world(|world| world.violation("a cooperative kernel is disabled, which loses the context"));
    }
    outcome
}

fn set_kernel(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_KERNEL_NODE_PARAMS_v2,
) -> CUresult {
    let Some(work) = (unsafe { kernel(&*parameters) }) else { return INVALID };
    change(executable, node, |node, _| {
        if !matches!(node.work, Work::Kernel(_)) {
            return INVALID;
        }
        node.work = work;
        OK
    })
}

fn set_fill(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_MEMSET_NODE_PARAMS,
    _: CUcontext,
) -> CUresult {
    let new = unsafe { *parameters };
    let managed = world(|world| world.memory.is_managed(new.dst));
    let mut forbidden = false;
    let outcome = change(executable, node, |node, in_body| {
        if !matches!(node.work, Work::Fill(_)) {
            return INVALID;
        }
        node.work = Work::Fill(new);
        forbidden = in_body && managed;
        OK
    });
    if forbidden {
        world(|world| world.violation("a fill in the body of a conditional gets managed memory"));
    }
    outcome
}

fn set_copy(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_MEMCPY3D,
    _: CUcontext,
) -> CUresult {
    let new = unsafe { *parameters };
    let managed = world(|world| sides(&new).iter().any(|side| world.memory.is_managed(*side)));
    let mut forbidden = false;
    let outcome = change(executable, node, |node, in_body| match node.work {
        Work::Copy(old)
            if (old.srcMemoryType, old.dstMemoryType) == (new.srcMemoryType, new.dstMemoryType) =>
        {
            node.work = Work::Copy(new);
            forbidden = in_body && managed;
            OK
        }
        _ => INVALID,
    });
    if forbidden {
        world(|world| world.violation("a copy in the body of a conditional gets managed memory"));
    }
    outcome
}

fn set_call(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_HOST_NODE_PARAMS_v1,
) -> CUresult {
    change(executable, node, |node, _| {
        if !matches!(node.work, Work::Host(_)) {
            return INVALID;
        }
        node.work = Work::Host(unsafe { *parameters });
        OK
    })
}

fn set_record(executable: CUgraphExec, node: CUgraphNode, event: CUevent) -> CUresult {
    change(executable, node, |node, _| {
        if !matches!(node.work, Work::Record(_)) {
            return INVALID;
        }
        node.work = Work::Record(event.addr());
        OK
    })
}

fn set_wait(executable: CUgraphExec, node: CUgraphNode, event: CUevent) -> CUresult {
    change(executable, node, |node, _| {
        if !matches!(node.work, Work::Wait(_)) {
            return INVALID;
        }
        node.work = Work::Wait(event.addr());
        OK
    })
}

/// Takes over a graph with as many nodes as the one before.
fn set_child(executable: CUgraphExec, node: CUgraphNode, child: CUgraph) -> CUresult {
    let _alone = Use::of(executable);
    let Some(copy) = copy_of(child) else { return REFUSED };
    let outcome = world(|world| {
        let Some(executable) = world.executables.get_mut(&executable.addr()) else { return INVALID };
        let old = match executable.nodes.get(&node.addr()).map(|node| &node.work) {
            Some(Work::Child(old)) => *old,
            _ => return INVALID,
        };
        if executable.graphs[&old].nodes.len() != world.graphs[&copy].nodes.len() {
            return CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        let (graphs, nodes) = (Arc::make_mut(&mut executable.graphs), Arc::make_mut(&mut executable.nodes));
        let mut open = vec![copy];
        while let Some(number) = open.pop() {
            let mut graph = world.graphs[&number].clone();
            for node in &graph.nodes {
                open.extend(world.nodes[node].work.inside());
                nodes.insert(*node, world.nodes[node].clone());
            }
            graph.nodes = order(&graph.nodes, nodes);
            graphs.insert(number, graph);
        }
        nodes.get_mut(&node.addr()).unwrap().work = Work::Child(copy);
        OK
    });
    destroy(handle(copy));
    outcome
}
