//! Graphs: built, compiled, changed and run.

use super::code::Call;
use super::objects::{copy_planes, fill, record};
use super::{INVALID, OK, REFUSED, World, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::{HashMap, HashSet};
use std::ffi::c_uint;

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
    nodes: Vec<usize>,
    /// Condition handles that belong to it, with the value each starts a launch with.
    conditions: Vec<(u64, u32)>,
    is_body: bool,
}

#[derive(Clone)]
pub struct Node {
    graph: usize,
    after: Vec<usize>,
    work: Work,
    enabled: bool,
}

#[derive(Clone)]
enum Work {
    Nothing,
    Kernel(Call),
    Fill(CUDA_MEMSET_NODE_PARAMS),
    Copy(CUDA_MEMCPY3D),
    Host(CUDA_HOST_NODE_PARAMS_v1),
    Record(usize),
    Wait,
    Conditional { condition: u64, kind: CUgraphConditionalNodeType, bodies: Vec<usize> },
}

// Pointers in the descriptions are addresses; the simulator is as thread-safe as its one lock.
unsafe impl Send for Work {}

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

unsafe extern "C" fn destroy(graph: CUgraph) -> CUresult {
    world(|world| {
        let Some(root) = world.graphs.remove(&graph.addr()) else { return INVALID };
        // The bodies go with the nodes they are in.
        let mut nodes = root.nodes;
        while let Some(node) = nodes.pop() {
            if let Some(Node { work: Work::Conditional { bodies, .. }, .. }) = world.nodes.remove(&node) {
                nodes.extend(
                    bodies.iter().filter_map(|body| world.graphs.remove(body)).flat_map(|body| body.nodes),
                );
            }
        }
        OK
    })
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
        world.nodes.insert(number, Node { graph, after, work, enabled: true });
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
    unsafe { Call::new(p.func.addr(), p.gridDimX * p.blockDimX, p.kernelParams, p.extra) }.map(Work::Kernel)
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
    _: CUevent,
) -> CUresult {
    unsafe { add(out, graph, before, count, Work::Wait) }
}

unsafe extern "C" fn add_general(
    out: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    _: *const CUgraphEdgeData,
    count: usize,
    parameters: *mut CUgraphNodeParams,
) -> CUresult {
    let parameters = unsafe { &mut *parameters };
    match parameters.type_ {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            let p = unsafe { parameters.__bindgen_anon_1.kernel };
            let work = unsafe { Call::new(p.func.addr(), p.gridDimX * p.blockDimX, p.kernelParams, p.extra) };
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
    _: CUgraphNode,
    _: CUlaunchAttributeID,
    _: *const CUlaunchAttributeValue,
) -> CUresult {
    OK
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
                    graph.is_body && matches!(copy.work, Work::Host(_) | Work::Record(_) | Work::Wait);
                let mut twice = false;
                if let Work::Conditional { condition, bodies, .. } = &copy.work {
                    twice = !used.insert(*condition);
                    open.extend(bodies);
                }
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

unsafe extern "C" fn launch(executable: CUgraphExec, _: CUstream) -> CUresult {
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
        Work::Nothing | Work::Wait => {}
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

unsafe extern "C" fn set_wait(executable: CUgraphExec, node: CUgraphNode, _: CUevent) -> CUresult {
    change(executable, node, |_, _| OK)
}
