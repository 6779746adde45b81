//! Compiled graphs: made, uploaded, launched and destroyed.

use super::clock;
use super::graphs::{Graph, Node, Work, copied};
use super::memory::{copy_planes, fill};
use super::order::{check, check_early_starts, order};
use super::streams::{Recording, call, enqueue, expect, in_one_step, latest, use_event};
use super::{INVALID, OK, REFUSED, Use, capture, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuGraphInstantiateWithParams" => instantiate,
        "cuGraphExecDestroy" => destroy_executable,
        "cuGraphUpload" => upload,
        "cuGraphLaunch" => launch,
    }
}

/// A compiled graph: a copy of everything that it reaches.
pub struct Executable {
    root: usize,
    /// Each graph, with its nodes in the order in which they run.
    pub graphs: Arc<HashMap<usize, Graph>>,
    /// Copied when one is changed while a launch is in flight.
    pub nodes: Arc<HashMap<usize, Node>>,
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

/// Has graphs of kernels, copies, fills and children alone.
const DEVICE_LAUNCH: CUgraphInstantiate_flags =
    CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;

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
