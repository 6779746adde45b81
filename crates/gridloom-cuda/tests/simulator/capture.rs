//! Stream capture: what is enqueued on a captured stream becomes a node of a graph.
//!
//! The rules are the driver's: a stream joins by waiting for a captured event; a captured stream
//! that waits for anything else, is asked or waited for, or a prohibited call on a thread that the
//! capture restricts, invalidates the capture; it ends on the stream, and unless it is relaxed the
//! thread, it began on, with every fork joined.

use super::entry::hands_nothing_out;
use super::graphs::{self, Node, Work};
use super::{INVALID, OK, World, exports, handle, world};
use gridloom_cuda::sys::*;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_uint;
use std::thread::{self, ThreadId};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuStreamBeginCapture_v2" => begin,
        "cuStreamEndCapture" => end,
        "cuStreamIsCapturing" => is_capturing,
        "cuStreamGetCaptureInfo_v2" => info,
        "cuStreamGetCaptureInfo_v3" => info_with_edges,
        "cuStreamUpdateCaptureDependencies_v2" => set_dependencies,
        "cuThreadExchangeStreamCaptureMode" => exchange_mode,
    }
}

/// One capture.
pub struct Capture {
    graph: usize,
    origin: usize,
    thread: ThreadId,
    mode: CUstreamCaptureMode,
    valid: bool,
    /// Each stream that takes part, with the nodes that its next one comes after.
    tails: HashMap<usize, Vec<usize>>,
}

/// The capture a stream takes part in.
fn of(world: &World, stream: usize) -> Option<usize> {
    world.captures.iter().find(|(_, capture)| capture.tails.contains_key(&stream)).map(|(&id, _)| id)
}

/// Whether a stream is captured.
pub fn captures(stream: CUstream) -> bool {
    world(|world| of(world, stream.addr()).is_some())
}

/// Puts work on a captured stream into the graph, and says how that went. `None` where the stream
/// is not captured: the work is to be run.
pub fn add(stream: CUstream, work: Work) -> Option<CUresult> {
    add_node(stream, |after| Node::new(0, after, work)).map(|added| added.err().unwrap_or(OK))
}

/// The same with a node as it is to be, and the number it got.
pub fn add_node(stream: CUstream, node: impl FnOnce(Vec<usize>) -> Node) -> Option<Result<usize, CUresult>> {
    world(|world| {
        let id = of(world, stream.addr())?;
        let number = world.fresh();
        let capture = world.captures.get_mut(&id).unwrap();
        if !capture.valid {
            return Some(Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
        }
        let after = capture.tails.insert(stream.addr(), vec![number]).unwrap();
        let node = Node { graph: capture.graph, ..node(after) };
        world.graphs.get_mut(&capture.graph).unwrap().nodes.push(number);
        world.nodes.insert(number, node);
        Some(Ok(number))
    })
}

/// The outcome of waiting for or asking a stream: a captured one is invalidated by it.
pub fn ask(stream: CUstream) -> CUresult {
    world(|world| match of(world, stream.addr()) {
        Some(id) => {
            world.captures.get_mut(&id).unwrap().valid = false;
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        }
        None => OK,
    })
}

/// The outcome of waiting for the whole context: every capture is invalidated by it.
pub fn ask_all() -> CUresult {
    world(|world| {
        world.captures.values_mut().for_each(|capture| capture.valid = false);
        match world.captures.is_empty() {
            true => OK,
            false => CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        }
    })
}

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL.0) };
}

/// The outcome of a call that captures prohibit, as far as they do.
pub fn prohibited() -> CUresult {
    if MODE.get() == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return OK;
    }
    world(|world| {
        let mut outcome = OK;
        for capture in world.captures.values_mut() {
            let here = capture.thread == thread::current().id();
            let restricts = match capture.mode {
                CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL => true,
                CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => here,
                _ => false,
            };
            if restricts {
                capture.valid = false;
                outcome = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
        }
        outcome
    })
}

fn exchange_mode(mode: *mut CUstreamCaptureMode) -> CUresult {
    unsafe { (*mode).0 = MODE.replace((*mode).0) };
    OK
}

fn begin(stream: CUstream, mode: CUstreamCaptureMode) -> CUresult {
    world(|world| {
        if of(world, stream.addr()).is_some() {
            return CUresult::CUDA_ERROR_ILLEGAL_STATE;
        }
        let (id, graph) = (world.fresh(), world.fresh());
        world.graphs.insert(graph, graphs::Graph::default());
        let tails = HashMap::from([(stream.addr(), Vec::new())]);
        let thread = thread::current().id();
        let capture = Capture { graph, origin: stream.addr(), thread, mode, valid: true, tails };
        world.captures.insert(id, capture);
        OK
    })
}

fn end(stream: CUstream, out: *mut CUgraph) -> CUresult {
    unsafe { *out = std::ptr::null_mut() };
    let ended = world(|world| {
        let id = of(world, stream.addr()).ok_or(CUresult::CUDA_ERROR_ILLEGAL_STATE)?;
        let capture = &world.captures[&id];
        if capture.origin != stream.addr() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        let relaxed = capture.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        if !relaxed && capture.thread != thread::current().id() {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        }
        let capture = world.captures.remove(&id).unwrap();
        world.captured_events.retain(|_, (of, _)| *of != id);
        let mut joined: HashSet<usize> = HashSet::new();
        let mut open = capture.tails[&capture.origin].clone();
        while let Some(node) = open.pop() {
            if joined.insert(node) {
                open.extend(&world.nodes[&node].after);
            }
        }
        let outcome = if !capture.valid {
            CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        } else if capture.tails.values().flatten().any(|node| !joined.contains(node)) {
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        } else {
            OK
        };
        Ok((capture.graph, outcome))
    });
    match ended {
        // The capture is over, whatever is reported.
        Ok((graph, OK)) if !hands_nothing_out() => {
            unsafe { *out = handle(graph) };
            OK
        }
        Ok((graph, outcome)) => {
            graphs::destroy(handle(graph));
            outcome
        }
        Err(outcome) => outcome,
    }
}

fn is_capturing(stream: CUstream, out: *mut CUstreamCaptureStatus) -> CUresult {
    let status = world(|world| match of(world, stream.addr()).map(|id| world.captures[&id].valid) {
        None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        Some(true) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
        Some(false) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
    });
    unsafe { *out = status };
    OK
}

/// The graph that is captured and what the stream comes after, for who adds nodes by hand.
fn info(
    stream: CUstream,
    status: *mut CUstreamCaptureStatus,
    _: *mut cuuint64_t,
    graph: *mut CUgraph,
    nodes: *mut *const CUgraphNode,
    count: *mut usize,
) -> CUresult {
    let found = world(|world| {
        let capture = &world.captures[&of(world, stream.addr())?];
        Some((capture.graph, capture.tails[&stream.addr()].clone()))
    });
    if let Some((captured, tail)) = found {
        let tail: Vec<CUgraphNode> = tail.into_iter().map(handle).collect();
        unsafe {
            *graph = handle(captured);
            *count = tail.len();
            // The array is the driver's.
            *nodes = tail.leak().as_ptr();
        }
    }
    is_capturing(stream, status)
}

fn info_with_edges(
    stream: CUstream,
    status: *mut CUstreamCaptureStatus,
    id: *mut cuuint64_t,
    graph: *mut CUgraph,
    nodes: *mut *const CUgraphNode,
    _: *mut *const CUgraphEdgeData,
    count: *mut usize,
) -> CUresult {
    info(stream, status, id, graph, nodes, count)
}

/// Has the stream go on after these nodes.
fn set_dependencies(
    stream: CUstream,
    nodes: *mut CUgraphNode,
    _: *const CUgraphEdgeData,
    count: usize,
    _: c_uint,
) -> CUresult {
    let nodes = (0..count).map(|index| unsafe { *nodes.add(index) }.addr()).collect();
    world(|world| {
        let Some(id) = of(world, stream.addr()) else { return INVALID };
        world.captures.get_mut(&id).unwrap().tails.insert(stream.addr(), nodes);
        OK
    })
}

/// Records an event on a captured stream. Says whether it is one.
pub fn record(event: CUevent, stream: CUstream) -> bool {
    world(|world| {
        world.captured_events.remove(&event.addr());
        let Some(id) = of(world, stream.addr()) else { return false };
        let tail = world.captures[&id].tails[&stream.addr()].clone();
        world.captured_events.insert(event.addr(), (id, tail));
        true
    })
}

/// Has a stream wait for an event, and says how that went. `None` where neither is captured.
pub fn wait(stream: CUstream, event: CUevent) -> Option<CUresult> {
    world(|world| {
        let here = of(world, stream.addr());
        match (here, world.captured_events.get(&event.addr()).cloned()) {
            (None, None) => None,
            (None, Some((id, nodes))) => {
                world.captures.get_mut(&id).unwrap().tails.insert(stream.addr(), nodes);
                Some(OK)
            }
            (Some(id), Some((other, nodes))) if id == other => {
                let tails = &mut world.captures.get_mut(&id).unwrap().tails;
                let tail = tails.get_mut(&stream.addr()).unwrap();
                tail.extend(nodes);
                tail.sort_unstable();
                tail.dedup();
                Some(OK)
            }
            (Some(id), other) => {
                world.captures.get_mut(&id).unwrap().valid = false;
                Some(match other {
                    Some(_) => CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE,
                    None => CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                })
            }
        }
    })
}
