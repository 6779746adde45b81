//! Changes to compiled graphs. Each checks that the node is of the kind that it is for.

use super::graphs::{Node, Work, copy_of, destroy, kernel};
use super::memory::sides;
use super::order::order;
use super::{INVALID, OK, REFUSED, Use, World, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::HashMap;
use std::ffi::c_uint;
use std::sync::Arc;

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuGraphExecChildGraphNodeSetParams" => set_child,
        "cuGraphNodeSetEnabled" => set_enabled,
        "cuGraphExecKernelNodeSetParams_v2" => set_kernel,
        "cuGraphExecMemsetNodeSetParams" => set_fill,
        "cuGraphExecMemcpyNodeSetParams" => set_copy,
        "cuGraphExecHostNodeSetParams" => set_call,
        "cuGraphExecEventRecordNodeSetEvent" => set_record,
        "cuGraphExecEventWaitNodeSetEvent" => set_wait,
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
        if !matches!(node.work, Work::Kernel(_) | Work::Fill(_) | Work::Copy(_)) {
            return INVALID;
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
