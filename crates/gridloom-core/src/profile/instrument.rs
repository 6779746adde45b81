//! A copy of a graph with timer kernels around its nodes.
//!
//! Two kernels of one thread stand around each node that does work. The first waits for what the
//! node waits for, reads `%globaltimer` and lets the node start. The second follows the node,
//! reads the timer again, and lets the successors start. Nodes in bodies have timers too: a
//! timer counts its runs, so a loop needs no counter of its own. The copy also fills the timers'
//! memory with 0 and runs a chain of timers around nothing, which measures what a timer costs. A
//! graph with fills or copies has further [chains](super::switching) before it.
//!
//! The copy has the keys of the original. It is instantiated like any graph, so every device can
//! run it and all checks apply.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::recording::{Cost, NodeRecording, Recording, Run};
use super::switching::{Chains, Link};
use crate::backend;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Definition, EdgeKind, GraphData, GraphKey, NodeData, NodeKey};
use crate::launch::LaunchConfig;
use crate::memory::{MemoryKind, Region};
use crate::op::{
    ArgValue, ConditionalForm, ConditionalOp, KernelOp, MemsetOp, NodeKind, Operation, PointerValue, Role,
    Test,
};

/// The kernels, for every device.
pub(crate) const TIMERS: &str = include_str!("timers.ptx");
/// The words of a timer before those of single runs.
const HEAD: u64 = 5;
/// The most memory for timers. The number of runs that are kept follows from it.
const MOST_BYTES: u64 = 64 << 20;
/// The number of timers around nothing.
const EMPTY: usize = 9;

/// A graph with timers.
pub(crate) struct Instrumented {
    pub(crate) definition: Arc<Definition>,
    /// How many nodes it has more than the graph.
    pub(crate) added_nodes: u64,
    timers: Vec<(NodeKey, Timer)>,
    empty: Vec<Timer>,
    chains: Chains,
    /// The timers around the chains outside of bodies: those of each round.
    chains_once: Vec<Vec<Timer>>,
    /// The timers around the chains in a loop, whose passes are the rounds.
    chains_in_loop: Vec<Timer>,
    memory: Arc<dyn backend::Allocation>,
    /// How many runs of a node in a body are kept one by one.
    pub(crate) kept: usize,
}

/// The place of a timer: its first word, and the number of runs it keeps.
#[derive(Clone, Copy)]
struct Timer {
    word: u64,
    kept: u64,
}

/// Makes a copy of a definition with timers around the nodes that do work. Disabled nodes get
/// none.
pub(crate) fn instrument(
    device: &Arc<dyn backend::Device>,
    definition: &Definition,
    disabled: &FxHashSet<NodeKey>,
    max_runs: usize,
) -> Result<Instrumented> {
    let module = device.load_ptx(TIMERS)?;
    let start = module.clone().kernel("gridloom_timer_start")?;
    let end = module.kernel("gridloom_timer_end")?;

    let graphs = definition.graphs_inside(definition.root());
    let once = graphs_that_run_once(definition);
    let is_timed = |&key: &NodeKey| {
        let role = definition.node(key).operation().kind().facts().role;
        matches!(role, Role::Work | Role::Conditional | Role::Opaque) && !disabled.contains(&key)
    };
    let timed: Vec<(NodeKey, bool)> = graphs
        .iter()
        .flat_map(|&graph| definition.nodes(graph).filter(is_timed).map(move |key| (key, graph)))
        .map(|(key, graph)| (key, once.contains(&graph)))
        .collect();
    let repeated = timed.iter().filter(|(_, once)| !once).count() as u64;
    let fits = MOST_BYTES.checked_div(8 * 2 * repeated).unwrap_or(u64::MAX).max(1);
    let kept = fits.min(max_runs as u64);
    let mut words = 0;
    let mut place = |kept: u64| {
        let timer = Timer { word: words, kept };
        words += HEAD + 2 * kept;
        timer
    };
    let chains = match Chains::new(device, definition, timed.iter().map(|&(key, once)| (key, !once))) {
        // The graph may use all memory there is. Its profile then has no chains.
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Chains::without_memory(),
        other => other?,
    };
    let rounds = [false, true].map(|in_body| chains.round(in_body));
    let empty: Vec<Timer> = (0..EMPTY).map(|_| place(1)).collect();
    let chains_once: Vec<Vec<Timer>> =
        (0..chains.rounds(false)).map(|_| rounds[0].iter().map(|_| place(1)).collect()).collect();
    let passes = chains.rounds(true) as u64;
    let chains_in_loop: Vec<Timer> = rounds[1].iter().map(|_| place(passes)).collect();
    let spare = place(1);
    let timers: Vec<(NodeKey, Timer)> =
        timed.iter().map(|&(key, once)| (key, place(if once { 1 } else { kept }))).collect();
    let memory = device.allocate(8 * words, MemoryKind::Device)?;

    let kernels = Kernels { start, end, memory: Region::whole(memory.clone()) };
    let mut copy = Copy { definition: definition.clone(), kernels };
    let mut around: FxHashMap<NodeKey, (NodeKey, NodeKey)> = FxHashMap::default();
    for &(key, timer) in &timers {
        let graph = definition.node(key).graph();
        around.insert(key, copy.timer(graph, timer)?);
    }
    for &graph in &graphs {
        copy.rewire(definition, graph, &around);
    }
    let root = definition.root();
    let mut before = vec![copy.fill(root)];
    for timers in &chains_once {
        copy.chains(root, &chains, (&rounds[0], timers), spare, &mut before)?;
    }
    if !chains_in_loop.is_empty() {
        let (node, body) = copy.loop_of(root, passes);
        let mut members = Vec::new();
        copy.chains(body, &chains, (&rounds[1], &chains_in_loop), spare, &mut members)?;
        copy.link_in_row(&members);
        copy.set_members(body, members);
        before.push(node);
    }
    for &timer in &empty {
        let (start, end) = copy.timer(root, timer)?;
        before.extend([start, end]);
    }
    copy.put_before(root, before);
    let added_nodes = (copy.definition.all_nodes().count() - definition.all_nodes().count()) as u64;
    let definition = Arc::new(copy.definition);
    let kept = kept as usize;
    Ok(Instrumented {
        definition,
        added_nodes,
        timers,
        empty,
        chains,
        chains_once,
        chains_in_loop,
        memory,
        kept,
    })
}

/// Returns the graphs that are in no body of a conditional.
fn graphs_that_run_once(definition: &Definition) -> FxHashSet<GraphKey> {
    let mut found = FxHashSet::default();
    let mut open = vec![definition.root()];
    while let Some(graph) = open.pop() {
        found.insert(graph);
        for node in definition.nodes(graph) {
            if let Operation::Child(child) = definition.node(node).operation() {
                open.push(*child);
            }
        }
    }
    found
}

struct Kernels {
    start: Arc<dyn backend::Kernel>,
    end: Arc<dyn backend::Kernel>,
    memory: Region,
}

impl Kernels {
    fn launch(&self, timer: Timer, is_start: bool) -> Result<Operation> {
        let bytes = 8 * (HEAD + 2 * timer.kept);
        let region = self
            .memory
            .part(8 * timer.word, bytes)
            .ok_or_else(|| Error::new(ErrorKind::InvalidArgument, "the memory of the timers is too small"))?;
        let kernel = if is_start { &self.start } else { &self.end };
        // SAFETY: both kernels use the words of the timer, which are in the region, and run in one
        // thread. No other node uses that memory but the other kernel of the timer, which is
        // ordered with this one, and the fill before both.
        let launch = unsafe {
            KernelOp::pack(kernel, LaunchConfig::one(), |args| {
                args.push(ArgValue::Pointer(PointerValue::Region(region)))?;
                if is_start { Ok(()) } else { args.push(ArgValue::plain(&timer.kept.to_le_bytes())) }
            })
        }?;
        Ok(Operation::Kernel(launch))
    }
}

/// The copy under construction.
struct Copy {
    definition: Definition,
    kernels: Kernels,
}

impl Copy {
    fn add(&mut self, graph: GraphKey, name: &str, operation: Operation) -> NodeKey {
        self.definition.kinds.insert(operation.kind());
        self.definition.nodes.insert(NodeData {
            graph,
            operation,
            name: Some(name.into()),
            serial: 0,
            order: 0,
            predecessors: SmallVec::new(),
            successors: SmallVec::new(),
        })
    }

    /// Adds the two kernels of a timer, without edges.
    fn timer(&mut self, graph: GraphKey, timer: Timer) -> Result<(NodeKey, NodeKey)> {
        let [start, end] = [true, false].map(|is_start| self.kernels.launch(timer, is_start));
        Ok((self.add(graph, "timer start", start?), self.add(graph, "timer end", end?)))
    }

    /// Puts the timers of a graph around its nodes.
    fn rewire(
        &mut self,
        original: &Definition,
        graph: GraphKey,
        around: &FxHashMap<NodeKey, (NodeKey, NodeKey)>,
    ) {
        let first_of = |key: NodeKey| around.get(&key).map_or(key, |timer| timer.0);
        let last_of = |key: NodeKey| around.get(&key).map_or(key, |timer| timer.1);
        let order = original.topological(graph);
        for &key in &*order {
            let node = self.definition.nodes.get_mut(key).expect("copied");
            node.predecessors.clear();
            node.successors.clear();
        }
        let mut members = Vec::with_capacity(3 * order.len());
        for &key in &*order {
            if let Some(&(start, end)) = around.get(&key) {
                self.definition.link(start, key, EdgeKind::Full);
                self.definition.link(key, end, EdgeKind::Full);
                members.extend([start, key, end]);
            } else {
                members.push(key);
            }
            for edge in original.node(key).predecessors() {
                let (from, to) = (last_of(edge.node), first_of(key));
                // A timer does not let its successor start early.
                let untouched = from == edge.node && to == key;
                self.definition.link(from, to, if untouched { edge.kind } else { EdgeKind::Full });
            }
        }
        self.set_members(graph, members);
    }

    /// Sets the nodes of a graph, which are in topological order.
    fn set_members(&mut self, graph: GraphKey, members: Vec<NodeKey>) {
        for (order, &key) in (0..).zip(&members) {
            self.definition.nodes.get_mut(key).expect("a member").order = order;
        }
        let data = self.definition.graphs.get_mut(graph).expect("a graph of the definition");
        (data.first_order, data.next_order) = (0, members.len() as i64);
        (data.dead, data.reordered) = (0, false);
        data.members = SmallVec::from_vec(members);
    }

    /// Adds the fill of the timers' memory, without edges.
    fn fill(&mut self, root: GraphKey) -> NodeKey {
        let dst = self.kernels.memory.clone();
        let width = dst.bytes / 4;
        let fill = MemsetOp { dst, value: 0, element_size: 4, width, height: 1, pitch: 0 };
        self.add(root, "timer memory", Operation::Memset(Arc::new(fill)))
    }

    /// Adds chains with a timer around each to the end of `members`, without edges. Kernels of
    /// chains write to the spare timer.
    fn chains(
        &mut self,
        graph: GraphKey,
        chains: &Chains,
        (round, timers): (&[Vec<Link>], &[Timer]),
        spare: Timer,
        members: &mut Vec<NodeKey>,
    ) -> Result<()> {
        for (chain, &timer) in round.iter().zip(timers) {
            let (start, end) = self.timer(graph, timer)?;
            members.push(start);
            for link in chain {
                let operation = match *link {
                    Link::Kernel => self.kernels.launch(spare, true)?,
                    Link::Transfer(kind) => chains.transfer(kind).clone(),
                };
                members.push(self.add(graph, "measured apart", operation));
            }
            members.push(end);
        }
        Ok(())
    }

    /// Adds a loop without edges. Returns its node and its body.
    fn loop_of(&mut self, root: GraphKey, passes: u64) -> (NodeKey, GraphKey) {
        let owner = Some((self.definition.nodes.next_key(), 0));
        let body = self.definition.graphs.insert(GraphData { owner, ..GraphData::default() });
        let operation = ConditionalOp {
            form: ConditionalForm::While,
            test: Test::Count(passes),
            test_first: true,
            max_passes: None,
            bodies: SmallVec::from_slice(&[body]),
        };
        (self.add(root, "measured apart", Operation::Conditional(Arc::new(operation))), body)
    }

    fn link_in_row(&mut self, members: &[NodeKey]) {
        for pair in members.windows(2) {
            self.definition.link(pair[0], pair[1], EdgeKind::Full);
        }
    }

    /// Puts nodes before a graph, one after the other.
    fn put_before(&mut self, root: GraphKey, mut members: Vec<NodeKey>) {
        self.link_in_row(&members);
        let graph: Vec<NodeKey> = self.definition.topological(root).to_vec();
        if let Some(&last) = members.last() {
            for &key in &graph {
                if self.definition.node(key).predecessors().is_empty() {
                    self.definition.link(last, key, EdgeKind::Full);
                }
            }
        }
        members.extend(graph);
        self.set_members(root, members);
    }
}

impl Instrumented {
    /// Reads the timers. The stream is the one of the launch. Also returns how long the launch took
    /// before the graph, to measure what timers cost.
    pub(crate) fn read(&self, stream: &dyn backend::Stream) -> Result<(Recording, u64)> {
        let mut bytes = vec![0; self.memory.bytes() as usize];
        stream.read(&*self.memory, 0, &mut bytes)?;
        let word = |at: u64| {
            let at = at as usize * 8;
            u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
        };
        let run = |timer: Timer, run: u64| {
            let at = timer.word + HEAD + 2 * run;
            Run { start_ns: word(at), end_ns: word(at + 1), thread: None }
        };
        let empty: Vec<Run> = self.empty.iter().map(|&timer| run(timer, 0)).collect();
        let cost = Cost::of_empty(&empty);
        let begin = empty.last().map_or(0, |run| run.end_ns);
        let once: Vec<Vec<Run>> = (self.chains_once.iter())
            .map(|timers| timers.iter().map(|&timer| run(timer, 0)).collect())
            .collect();
        let passes = self.chains_in_loop.first().map_or(0, |timer| timer.kept);
        let in_loop: Vec<Vec<Run>> = (0..passes)
            .map(|pass| self.chains_in_loop.iter().map(|&timer| run(timer, pass)).collect())
            .collect();
        let ways = self.chains.ways([&once, &in_loop], cost);
        let mut nodes = Vec::new();
        for &(node, timer) in &self.timers {
            let count = word(timer.word);
            if count == 0 {
                continue;
            }
            let runs: Vec<Run> = (0..count.min(timer.kept)).map(|number| run(timer, number)).collect();
            let switching = ways.to(node, &runs);
            nodes.push(NodeRecording {
                node,
                runs,
                count,
                total_ns: word(timer.word + 2),
                min_ns: !word(timer.word + 3),
                max_ns: word(timer.word + 4),
                switching,
            });
        }
        let end = nodes.iter().flat_map(|node| &node.runs).map(|run| run.end_ns).max();
        let launch = (begin, end.unwrap_or(begin).max(begin));
        let before = once.iter().chain(&in_loop).flatten().chain(&empty).map(|run| run.start_ns).min();
        let before_ns = begin.saturating_sub(before.unwrap_or(begin));
        Ok((Recording { nodes, launch, cost, kernels: Vec::new() }, before_ns))
    }
}

/// Returns what a reader should know about times from timer kernels in a graph.
pub(crate) fn remarks(definition: &Definition, timers: &Instrumented, max_runs: usize) -> Vec<String> {
    let (mut remarks, kept) = (Vec::new(), timers.kept);
    if timers.chains.lacks_memory {
        remarks.push(
            "times of fills and copies may include what the device takes to go from a kernel to them and back, for lack of memory to measure that"
                .to_owned(),
        );
    }
    let is_early =
        |edges: &NodeData| edges.predecessors().iter().any(|edge| edge.kind == EdgeKind::Programmatic);
    if definition.all_nodes().any(|(_, node)| is_early(node)) {
        remarks.push("programmatic edges are full edges in a profile, so no kernel starts early".to_owned());
    }
    if kept < max_runs && definition.may_have(NodeKind::CONDITIONALS) {
        remarks.push(format!("only {kept} runs of each node are kept, for lack of memory for more"));
    }
    remarks
}
