//! Reading graphs back.

use super::code::Call;
use super::graphs::{Node, Work};
use super::{INVALID, OK, Use, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::HashMap;
use std::ffi::c_void;

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuGraphGetNodes" => nodes,
        "cuGraphGetEdges" => edges,
        "cuGraphGetEdges_v2" => edges_with_data,
        "cuGraphNodeGetType" => node_type,
        "cuGraphKernelNodeGetParams_v2" => kernel,
        "cuGraphKernelNodeGetAttribute" => attribute,
        "cuGraphMemcpyNodeGetParams" => copy,
        "cuGraphMemsetNodeGetParams" => fill,
        "cuGraphHostNodeGetParams" => call,
        "cuGraphChildGraphNodeGetGraph" => child,
        "cuGraphEventRecordNodeGetEvent" => recorded,
        "cuGraphEventWaitNodeGetEvent" => waited,
        "cuGraphMemAllocNodeGetParams" => allocated,
        "cuGraphMemFreeNodeGetParams" => freed,
    }
}

/// What a description of a kernel node points to; it belongs to the node.
#[derive(Default)]
pub struct Arguments {
    values: Vec<Vec<u8>>,
    pointers: Vec<*mut c_void>,
    buffer: Vec<u8>,
    size: Box<usize>,
}

// Pointers are followed by whoever asked, as with the driver.
unsafe impl Send for Arguments {}

unsafe fn write<T>(out: *mut T, count: *mut usize, values: impl ExactSizeIterator<Item = T>) {
    let room = if out.is_null() { 0 } else { unsafe { *count } };
    unsafe { *count = values.len() };
    for (index, value) in values.take(room).enumerate() {
        unsafe { out.add(index).write(value) };
    }
}

fn nodes(graph: CUgraph, out: *mut CUgraphNode, count: *mut usize) -> CUresult {
    let _alone = Use::of(graph);
    world(|world| match world.graphs.get(&graph.addr()) {
        Some(graph) => {
            unsafe { write(out, count, graph.nodes.iter().map(|&node| handle(node))) };
            OK
        }
        None => INVALID,
    })
}

/// The edges of a graph, and whether each is programmatic.
fn list(graph: CUgraph) -> Option<Vec<(usize, usize, bool)>> {
    world(|world| {
        let graph = world.graphs.get(&graph.addr())?;
        let edges = graph.nodes.iter().flat_map(|&to| {
            let node = &world.nodes[&to];
            node.after.iter().map(move |&from| (from, to, node.early.contains(&from)))
        });
        Some(edges.collect())
    })
}

fn edges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) -> CUresult {
    match list(graph) {
        Some(edges) if edges.iter().any(|edge| edge.2) => CUresult::CUDA_ERROR_LOSSY_QUERY,
        Some(_) => edges_with_data(graph, from, to, std::ptr::null_mut(), count),
        None => INVALID,
    }
}

fn edges_with_data(
    graph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CUresult {
    let _alone = Use::of(graph);
    let Some(edges) = list(graph) else { return INVALID };
    let room = unsafe { *count };
    unsafe {
        write(from, count, edges.iter().map(|edge| handle(edge.0)));
        *count = room;
        write(to, count, edges.iter().map(|edge| handle(edge.1)));
        *count = room;
        let programmatic = CUgraphEdgeData { from_port: 1, type_: 1, ..Default::default() };
        let data_of = |early| if early { programmatic } else { CUgraphEdgeData::default() };
        write(data, count, edges.iter().map(|edge| data_of(edge.2)));
    }
    OK
}

/// Reads something of a node of the right kind.
unsafe fn read<T>(node: CUgraphNode, out: *mut T, read: impl FnOnce(&Node) -> Option<T>) -> CUresult {
    match world(|world| world.nodes.get(&node.addr()).and_then(read)) {
        Some(found) => {
            unsafe { *out = found };
            OK
        }
        None => INVALID,
    }
}

fn node_type(node: CUgraphNode, out: *mut CUgraphNodeType) -> CUresult {
    let kind = |node: &Node| {
        Some(match node.work {
            Work::Nothing => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Work::Kernel(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Work::Fill(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Work::Copy(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Work::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Work::Record(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Work::Wait(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Work::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Work::Alloc { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Work::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Work::Conditional { .. } => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        })
    };
    unsafe { read(node, out, kind) }
}

/// The arguments come back as one buffer where they were given so.
fn kernel(node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS_v2) -> CUresult {
    world(|world| {
        let Some(Work::Kernel(call)) = world.nodes.get(&node.addr()).map(|node| &node.work) else {
            return INVALID;
        };
        let Call { shape, .. } = call;
        let mut parameters = CUDA_KERNEL_NODE_PARAMS_v2 {
            func: handle(call.handle),
            gridDimX: shape.grid[0],
            gridDimY: shape.grid[1],
            gridDimZ: shape.grid[2],
            blockDimX: shape.block[0],
            blockDimY: shape.block[1],
            blockDimZ: shape.block[2],
            sharedMemBytes: shape.shared,
            ..Default::default()
        };
        let mut held = Arguments { values: call.arguments.clone(), ..Default::default() };
        if call.packed {
            held.buffer = call.buffer();
            *held.size = held.buffer.len();
            let (start, size) = (held.buffer.as_mut_ptr().cast(), (&raw mut *held.size).cast());
            held.pointers = vec![handle(1), start, handle(2), size, handle(0)];
            parameters.extra = held.pointers.as_mut_ptr();
        } else {
            held.pointers = held.values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
            parameters.kernelParams = held.pointers.as_mut_ptr();
        }
        world.arguments.insert(node.addr(), held);
        unsafe { *out = parameters };
        OK
    })
}

fn attribute(node: CUgraphNode, id: CUlaunchAttributeID, out: *mut CUlaunchAttributeValue) -> CUresult {
    let value = |node: &Node| {
        let set = node.attributes.iter().find(|attribute| attribute.id == id);
        Some(set.map_or_else(Default::default, |attribute| attribute.value))
    };
    unsafe { read(node, out, value) }
}

fn copy(node: CUgraphNode, out: *mut CUDA_MEMCPY3D) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Copy(parameters) => Some(parameters),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn fill(node: CUgraphNode, out: *mut CUDA_MEMSET_NODE_PARAMS) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Fill(parameters) => Some(parameters),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn call(node: CUgraphNode, out: *mut CUDA_HOST_NODE_PARAMS_v1) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Host(parameters) => Some(parameters),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn child(node: CUgraphNode, out: *mut CUgraph) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Child(graph) => Some(handle(graph)),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn recorded(node: CUgraphNode, out: *mut CUevent) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Record(event) => Some(handle(event)),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn waited(node: CUgraphNode, out: *mut CUevent) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Wait(event) => Some(handle(event)),
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn allocated(node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Alloc { address, bytes } => {
            let mut parameters =
                CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: bytes, dptr: address, ..Default::default() };
            parameters.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
            Some(parameters)
        }
        _ => None,
    };
    unsafe { read(node, out, found) }
}

fn freed(node: CUgraphNode, out: *mut CUdeviceptr) -> CUresult {
    let found = |node: &Node| match node.work {
        Work::Free(address) => Some(address),
        _ => None,
    };
    unsafe { read(node, out, found) }
}
