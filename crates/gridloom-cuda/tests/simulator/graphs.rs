//! Graphs and their nodes, as a program builds, copies and destroys them.

use super::code::{Call, Shape};
use super::memory::free_of_graph;
use super::{INVALID, OK, REFUSED, Use, World, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::HashMap;
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
        "cuGraphKernelNodeSetAttribute" => set_attribute,
        "cuGraphConditionalHandleCreate" => create_condition,
    }
}

#[derive(Clone, Default)]
pub struct Graph {
    pub nodes: Vec<usize>,
    /// Condition handles that belong to it, with the value each starts a launch with.
    pub conditions: Vec<(u64, u32)>,
    pub is_body: bool,
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

    pub fn is_cooperative(&self) -> bool {
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
    pub fn inside(&self) -> &[usize] {
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
pub fn copied(
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

pub fn copy_of(graph: CUgraph) -> Option<usize> {
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

pub unsafe fn kernel(p: &CUDA_KERNEL_NODE_PARAMS_v2) -> Option<Work> {
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
        let Work::Kernel(call) = &node.work else { return INVALID };
        // As a driver for CUDA 13.0 does.
        if id == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE && call.packed {
            return INVALID;
        }
        node.attributes.retain(|attribute| attribute.id != id);
        node.attributes.push(CUlaunchAttribute { id, value: unsafe { *value }, ..Default::default() });
        OK
    })
}

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
