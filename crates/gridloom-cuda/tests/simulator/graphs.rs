//! Graphs: built, compiled, changed and run.

use super::code::{Call, Shape};
use super::objects::{copy_planes, fill, free_of_graph, record};
use super::{FAULTY, INVALID, OK, REFUSED, World, capture, exports, handle, is_faulty, world};
use gridloom_cuda::sys::*;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_uint, c_void};

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
// Attributes hold addresses too.
unsafe impl Send for Node {}

/// A compiled graph: a copy of everything that it reaches.
pub struct Executable {
    root: usize,
    graphs: HashMap<usize, Graph>,
    nodes: HashMap<usize, Node>,
}

unsafe extern "C" fn create(out: *mut CUgraph, _: c_uint) -> CUresult {
    world(|world| {
        let number = world.fresh();
        world.graphs.insert(number, Graph::default());
        unsafe { *out = handle(number) };
    });
    OK
}

pub unsafe extern "C" fn destroy(graph: CUgraph) -> CUresult {
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
        unsafe { free_of_graph(address, bytes) };
    }
    for (destroy, data) in user_objects {
        unsafe { destroy.unwrap()(handle(data)) };
    }
    OK
}

unsafe extern "C" fn create_user_object(
    out: *mut CUuserObject,
    data: *mut c_void,
    destroy: CUhostFn,
    _: c_uint,
    _: c_uint,
) -> CUresult {
    let number = world(|world| {
        let number = world.fresh();
        world.user_objects.insert(number, (destroy, data as usize));
        number
    });
    unsafe { *out = handle(number) };
    OK
}

/// Moves an object into a graph.
unsafe extern "C" fn retain_user_object(
    graph: CUgraph,
    object: CUuserObject,
    _: c_uint,
    _: c_uint,
) -> CUresult {
    world(|world| {
        let Some(object) = world.user_objects.remove(&object.addr()) else { return INVALID };
        let Some(graph) = world.graphs.get_mut(&graph.addr()) else { return INVALID };
        graph.user_objects.push(object);
        OK
    })
}

/// A copy of a graph and all inside it, out of tables that hold them. `None` where the driver refuses: with conditionals or allocations.
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
    world(|world| {
        let (graphs, nodes) = (world.graphs.clone(), world.nodes.clone());
        copied(world, &graphs, &nodes, graph.addr())
    })
}

unsafe extern "C" fn copy_graph(out: *mut CUgraph, graph: CUgraph) -> CUresult {
    if is_faulty() {
        return FAULTY;
    }
    let Some(copy) = copy_of(graph) else { return REFUSED };
    unsafe { *out = handle(copy) };
    OK
}

unsafe extern "C" fn add_child(
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

unsafe extern "C" fn add_empty(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Nothing) }
}

unsafe fn kernel(p: &CUDA_KERNEL_NODE_PARAMS_v2) -> Option<Work> {
    let grid = [p.gridDimX, p.gridDimY, p.gridDimZ];
    let shape = Shape { grid, block: [p.blockDimX, p.blockDimY, p.blockDimZ], shared: p.sharedMemBytes };
    unsafe { Call::new(p.func.addr(), shape, p.kernelParams, p.extra) }.map(Work::Kernel)
}

unsafe extern "C" fn add_kernel(
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

unsafe extern "C" fn add_fill(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_MEMSET_NODE_PARAMS,
    _: CUcontext,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Fill(*parameters)) }
}

unsafe extern "C" fn add_copy(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_MEMCPY3D,
    _: CUcontext,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Copy(*parameters)) }
}

unsafe extern "C" fn add_call(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    parameters: *const CUDA_HOST_NODE_PARAMS_v1,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Host(*parameters)) }
}

unsafe extern "C" fn add_record(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    event: CUevent,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Record(event.addr())) }
}

unsafe extern "C" fn add_wait(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    event: CUevent,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Wait(event.addr())) }
}

unsafe extern "C" fn add_general(
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
            let grid = [p.gridDimX, p.gridDimY, p.gridDimZ];
            let block = [p.blockDimX, p.blockDimY, p.blockDimZ];
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

unsafe extern "C" fn set_attribute(
    node: CUgraphNode,
    id: CUlaunchAttributeID,
    value: *const CUlaunchAttributeValue,
) -> CUresult {
    world(|world| {
        let Some(node) = world.nodes.get_mut(&node.addr()) else { return INVALID };
        node.attributes.retain(|attribute| attribute.id != id);
        node.attributes.push(CUlaunchAttribute { id, value: unsafe { *value }, ..Default::default() });
        OK
    })
}

unsafe extern "C" fn create_condition(
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

unsafe extern "C" fn instantiate(
    out: *mut CUgraphExec,
    graph: CUgraph,
    parameters: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> CUresult {
    world(|world| {
        let mut executable = Executable { root: graph.addr(), graphs: HashMap::new(), nodes: HashMap::new() };
        let mut used = HashSet::new();
        let mut open = vec![graph.addr()];
        while let Some(number) = open.pop() {
            let graph = world.graphs[&number].clone();
            for node in &graph.nodes {
                let copy = world.nodes[node].clone();
                let forbidden =
                    graph.is_body && matches!(copy.work, Work::Host(_) | Work::Record(_) | Work::Wait(_));
                let mut twice = false;
                if let Work::Conditional { condition, .. } = &copy.work {
                    twice = !used.insert(*condition);
                }
                open.extend(copy.work.inside());
                if forbidden || twice {
                    unsafe { (*parameters).hErrNode_out = handle(*node) };
                    return INVALID;
                }
                executable.nodes.insert(*node, copy);
            }
            executable.graphs.insert(number, graph);
        }
        let conditions = &executable.graphs[&executable.root].conditions;
        if conditions.iter().any(|(condition, _)| !used.contains(condition)) {
            unsafe {
                (*parameters).result_out =
                    CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
            }
            return INVALID;
        }
        let number = world.fresh();
        world.executables.insert(number, executable);
        unsafe { *out = handle(number) };
        OK
    })
}

unsafe extern "C" fn destroy_executable(executable: CUgraphExec) -> CUresult {
    if world(|world| world.executables.remove(&executable.addr()).is_some()) { OK } else { INVALID }
}

unsafe extern "C" fn upload(executable: CUgraphExec, _: CUstream) -> CUresult {
    if world(|world| world.executables.contains_key(&executable.addr())) { OK } else { INVALID }
}

unsafe extern "C" fn launch(executable: CUgraphExec, stream: CUstream) -> CUresult {
    if capture::captures(stream) {
        let child = world(|world| {
            let executable = world.executables.get(&executable.addr())?;
            let (graphs, nodes) = (executable.graphs.clone(), executable.nodes.clone());
            let root = executable.root;
            copied(world, &graphs, &nodes, root)
        });
        let Some(child) = child else { return REFUSED };
        return capture::add(stream, Work::Child(child)).unwrap_or(INVALID);
    }
    let root = world(|world| {
        let executable = world.executables.get(&executable.addr())?;
        let (root, conditions) = (executable.root, executable.graphs[&executable.root].conditions.clone());
        world.conditions.extend(conditions);
        Some(root)
    });
    match root {
        Some(root) => unsafe { run(executable.addr(), root) },
        None => return INVALID,
    }
    OK
}

/// Runs a graph of an executable, each node after those it waits for, and otherwise the youngest first: an edge that is
/// missing shows.
unsafe fn run(executable: usize, graph: usize) {
    let mut waiting = world(|world| world.executables[&executable].graphs[&graph].nodes.clone());
    let mut done = HashSet::new();
    while !waiting.is_empty() {
        let (position, work, enabled) = world(|world| {
            let nodes = &world.executables[&executable].nodes;
            let is_ready = |number: &usize| nodes[number].after.iter().all(|before| done.contains(before));
            let position = waiting.iter().rposition(is_ready).expect("graphs have no cycles");
            let node = &nodes[&waiting[position]];
            (position, node.work.clone(), node.enabled)
        });
        if enabled {
            unsafe { run_node(executable, &work) };
        }
        done.insert(waiting.remove(position));
    }
}

unsafe fn run_node(executable: usize, work: &Work) {
    match work {
        Work::Nothing | Work::Wait(_) | Work::Alloc { .. } | Work::Free(_) => {}
        Work::Child(graph) => unsafe { run(executable, *graph) },
        Work::Kernel(call) => unsafe { call.run() },
        Work::Fill(parameters) => unsafe { fill(parameters) },
        Work::Copy(parameters) => unsafe { copy_planes(parameters) },
        Work::Host(parameters) => unsafe { parameters.fn_.unwrap()(parameters.userData) },
        Work::Record(event) => record(*event),
        Work::Conditional { condition, kind, bodies } => {
            let value = || world(|world| world.conditions[condition]);
            match *kind {
                CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE => {
                    while value() != 0 {
                        unsafe { run(executable, bodies[0]) };
                    }
                }
                CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF => {
                    if let Some(&body) = bodies.get(usize::from(value() == 0)) {
                        unsafe { run(executable, body) };
                    }
                }
                _ => {
                    if let Some(&body) = bodies.get(value() as usize) {
                        unsafe { run(executable, body) };
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
    world(|world: &mut World| {
        let Some(executable) = world.executables.get_mut(&executable.addr()) else { return INVALID };
        let Some(node) = executable.nodes.get_mut(&node.addr()) else { return INVALID };
        let in_body = executable.graphs[&node.graph].is_body;
        change(node, in_body)
    })
}

unsafe extern "C" fn set_enabled(executable: CUgraphExec, node: CUgraphNode, enabled: c_uint) -> CUresult {
    change(executable, node, |node, in_body| {
        if in_body {
            return REFUSED;
        }
        node.enabled = enabled != 0;
        OK
    })
}

unsafe extern "C" fn set_kernel(
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

unsafe extern "C" fn set_fill(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_MEMSET_NODE_PARAMS,
    _: CUcontext,
) -> CUresult {
    change(executable, node, |node, _| {
        node.work = Work::Fill(unsafe { *parameters });
        OK
    })
}

unsafe extern "C" fn set_copy(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_MEMCPY3D,
    _: CUcontext,
) -> CUresult {
    let new = unsafe { *parameters };
    change(executable, node, |node, _| match node.work {
        Work::Copy(old)
            if (old.srcMemoryType, old.dstMemoryType) == (new.srcMemoryType, new.dstMemoryType) =>
        {
            node.work = Work::Copy(new);
            OK
        }
        _ => INVALID,
    })
}

unsafe extern "C" fn set_call(
    executable: CUgraphExec,
    node: CUgraphNode,
    parameters: *const CUDA_HOST_NODE_PARAMS_v1,
) -> CUresult {
    change(executable, node, |node, _| {
        node.work = Work::Host(unsafe { *parameters });
        OK
    })
}

unsafe extern "C" fn set_record(executable: CUgraphExec, node: CUgraphNode, event: CUevent) -> CUresult {
    change(executable, node, |node, _| {
        node.work = Work::Record(event.addr());
        OK
    })
}

unsafe extern "C" fn set_wait(executable: CUgraphExec, node: CUgraphNode, event: CUevent) -> CUresult {
    change(executable, node, |node, _| {
        node.work = Work::Wait(event.addr());
        OK
    })
}

/// Takes over a graph with as many nodes as the one before.
unsafe extern "C" fn set_child(executable: CUgraphExec, node: CUgraphNode, child: CUgraph) -> CUresult {
    let Some(copy) = copy_of(child) else { return REFUSED };
    let outcome = world(|world| {
        let graphs: HashMap<usize, Graph> = world.graphs.clone();
        let nodes = world.nodes.clone();
        let Some(executable) = world.executables.get_mut(&executable.addr()) else { return INVALID };
        let old = match executable.nodes.get(&node.addr()).map(|node| &node.work) {
            Some(Work::Child(old)) => *old,
            _ => return INVALID,
        };
        if executable.graphs[&old].nodes.len() != graphs[&copy].nodes.len() {
            return CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
        let mut open = vec![copy];
        while let Some(graph) = open.pop() {
            for node in &graphs[&graph].nodes {
                open.extend(nodes[node].work.inside());
                executable.nodes.insert(*node, nodes[node].clone());
            }
            executable.graphs.insert(graph, graphs[&graph].clone());
        }
        executable.nodes.get_mut(&node.addr()).unwrap().work = Work::Child(copy);
        OK
    });
    unsafe { destroy(handle(copy)) };
    outcome
}
