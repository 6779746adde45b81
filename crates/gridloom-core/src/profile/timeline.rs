//! The runs of all nodes as points in time, and the removal of what measuring costs.
//!
//! Each run of a node has two points, its start and its end. A point has *causes*: earlier points
//! that it had to wait for. The start of a node is caused by the ends of the nodes it depends on,
//! and the end of a node by its start. If a thread is known, the previous point on the same thread
//! is a cause as well. The time between a point and its last cause is the point's own. Part of it
//! is the cost of measuring. Without that part, every point moves to the time of its last cause
//! plus what is left of its own time. A launch of one chain becomes shorter by the cost of all its
//! nodes, and one of parallel chains by the cost of the longest.
//!
//! Timer kernels around a fill or copy also measure the way from a kernel to it and back
//! ([`Switching`]). That is not the node's own time. Without timers a device goes that way only
//! between nodes of different kinds, so the gap before such a node gets what the way takes there.

use rustc_hash::{FxHashMap, FxHashSet};

use super::recording::{Cost, NodeRecording, Recording, Run, Switching};
use crate::graph::{Definition, GraphKey, NodeKey};
use crate::lower::{FlatGraph, Flattener};
use crate::op::{ConditionalForm, Operation};

/// The index of a point.
pub(super) type PointId = u32;

/// A graph whose nodes run in order: the root, or a body of a conditional.
pub(super) struct Unit {
    flat: FlatGraph,
    /// The conditional that the graph is a body of.
    pub(super) owner: Option<NodeKey>,
    /// How many executions have times of their own.
    recorded: usize,
    /// How many executions there were, or `None` if no node in it was measured.
    pub(super) count: Option<u64>,
    /// Executions that belong to a run of the owner so far.
    taken: usize,
}

impl Unit {
    /// Returns whether some executions were only summed up.
    fn is_summed_up(&self) -> bool {
        self.count.is_some_and(|count| count > self.recorded as u64)
    }
}

/// One run of a node.
pub(super) struct NodeRun {
    pub(super) start: PointId,
    pub(super) end: PointId,
    /// The point at which everything it depends on had ended.
    pub(super) ready: PointId,
    /// The pass of each loop around it.
    pub(super) pass: Vec<u64>,
    pub(super) thread: Option<u32>,
}

#[derive(Clone, Copy)]
struct Point {
    /// As measured.
    raw: u64,
    /// Without the cost of measuring.
    new: u64,
    thread: Option<u32>,
    kind: Kind,
    causes: (u32, u32),
    /// For the end of a run: its node.
    node: Option<NodeKey>,
    /// For the start and the end of a run: what going to the node and back takes.
    switching: Switching,
    /// The way to the node that the device ran before this point and back, if a node of the graph
    /// ran before it.
    way: Option<Switching>,
    /// The cause that came last, of all but the first point.
    last_cause: Option<PointId>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Nothing happens here; several points meet.
    Meet,
    Start,
    End,
    /// The end of a conditional, which includes executions that were only summed up. The factor is
    /// the share of its own time that is not the cost of measuring those.
    Rest(f64),
}

/// All runs of a launch.
pub(super) struct Timeline {
    pub(super) units: Vec<Unit>,
    pub(super) runs: FxHashMap<NodeKey, Vec<NodeRun>>,
    points: Vec<Point>,
    causes: Vec<PointId>,
    /// The point at which all nodes had ended.
    exit: PointId,
    /// The end of the launch.
    pub(super) end_ns: u64,
    /// The end of the launch with the cost of measuring.
    pub(super) raw_end_ns: u64,
}

impl Timeline {
    pub(super) fn new(
        definition: &Definition,
        disabled: &FxHashSet<NodeKey>,
        recording: &Recording,
    ) -> Timeline {
        let recorded: FxHashMap<NodeKey, &NodeRecording> =
            recording.nodes.iter().map(|node| (node.node, node)).collect();
        let mut timeline = Timeline {
            units: Vec::new(),
            runs: FxHashMap::default(),
            points: Vec::new(),
            causes: Vec::new(),
            exit: 0,
            end_ns: 0,
            raw_end_ns: 0,
        };
        let mut bodies = FxHashMap::default();
        let mut flattener = Flattener::new(definition).without(disabled);
        timeline.add_unit(definition, &mut flattener, definition.root(), None, &recorded, &mut bodies);
        let rest = timeline.unrecorded_cost(definition, &recorded, recording.cost);
        let origin = recording.launch.0;
        let mut builder = Builder { definition, recorded: &recorded, bodies: &bodies, origin, timeline };
        let entry = builder.point(0, Kind::Meet, None, &[]);
        let exit = builder.execution(0, 0, entry, &[]);
        let mut timeline = builder.timeline;
        timeline.straighten();
        timeline.limit_switching(recording.cost);
        timeline.set_rests(&rest);
        timeline.remove_cost(recording.cost);
        timeline.exit = exit;
        let last = timeline.points[exit as usize];
        let launch = recording.launch.1.saturating_sub(origin).max(last.raw);
        // The time after the last node is the launch's own.
        timeline.raw_end_ns = launch;
        timeline.end_ns = last.new + (launch - last.raw);
        timeline
    }

    /// Returns the time of a point without the cost of measuring.
    pub(super) fn at(&self, point: PointId) -> u64 {
        self.points[point as usize].new
    }

    /// Returns the critical path: the end of a run that ended last, what this run waited for last,
    /// and so on back to the start of the launch. A run waits for what it depends on and for its
    /// thread. Each piece is a node with the start and the end of one of its runs, the earliest
    /// first. A conditional stands for what ran inside it, except where that was only summed up.
    pub(super) fn critical_path(&self, definition: &Definition) -> Vec<(NodeKey, u64, u64)> {
        let summed_up = self.summed_up();
        let mut path = Vec::new();
        let mut next = Some(self.exit);
        while let Some(at) = next {
            let point = &self.points[at as usize];
            next = point.last_cause;
            let Some(node) = point.node else { continue };
            if !is_conditional(definition, node) {
                next = self.causes(at).first().copied();
            } else if !summed_up.contains(&node) {
                continue;
            }
            path.push((node, next.map_or(0, |from| self.at(from)), point.new));
        }
        path.reverse();
        path
    }

    /// Returns how long the launch would take if runs waited for their dependencies alone and
    /// started at once: the longest sum of times of nodes that depend on each other.
    pub(super) fn longest_chain(&self, definition: &Definition) -> u64 {
        let summed_up = self.summed_up();
        let mut longest: Vec<u64> = Vec::with_capacity(self.points.len());
        for (at, point) in (0..).zip(&self.points) {
            let causes = self.causes(at);
            let before = causes.iter().map(|&cause| longest[cause as usize]).max().unwrap_or(0);
            let counts =
                point.node.is_some_and(|node| !is_conditional(definition, node) || summed_up.contains(&node));
            let own = if counts { point.new - self.latest(at as usize, |cause| cause.new) } else { 0 };
            longest.push(before + own);
        }
        longest[self.exit as usize]
    }

    /// Returns the conditionals with passes that were only summed up.
    fn summed_up(&self) -> FxHashSet<NodeKey> {
        self.units.iter().filter(|unit| unit.is_summed_up()).filter_map(|unit| unit.owner).collect()
    }

    /// Returns how long a run took as measured.
    pub(super) fn raw_time(&self, run: &NodeRun) -> u64 {
        self.points[run.end as usize].raw - self.points[run.start as usize].raw
    }

    fn add_unit(
        &mut self,
        definition: &Definition,
        flattener: &mut Flattener<'_>,
        graph: GraphKey,
        owner: Option<NodeKey>,
        recorded: &FxHashMap<NodeKey, &NodeRecording>,
        bodies: &mut FxHashMap<GraphKey, usize>,
    ) {
        let flat = flattener.flatten(graph);
        let times = || flat.nodes().map(|node| recorded.get(&node));
        let count = times().flatten().map(|times| times.count).max();
        let kept = times().map(|times| times.map_or(0, |times| times.runs.len())).min();
        let inside: Vec<(NodeKey, GraphKey)> = flat
            .nodes()
            .flat_map(|node| definition.node(node).bodies().iter().map(move |&body| (node, body)))
            .collect();
        bodies.insert(graph, self.units.len());
        let recorded_executions = if owner.is_none() { 1 } else { kept.unwrap_or(0) };
        self.units.push(Unit { flat, owner, recorded: recorded_executions, count, taken: 0 });
        for (node, body) in inside {
            self.add_unit(definition, flattener, body, Some(node), recorded, bodies);
        }
    }

    /// Returns what measuring cost in the executions that were only summed up, for each conditional
    /// that has some.
    fn unrecorded_cost(
        &self,
        definition: &Definition,
        recorded: &FxHashMap<NodeKey, &NodeRecording>,
        cost: Cost,
    ) -> FxHashMap<NodeKey, f64> {
        let mut rest = FxHashMap::default();
        for unit in &self.units {
            let missing = unit.count.unwrap_or(0).saturating_sub(unit.recorded as u64);
            let way = |node| recorded.get(&node).map_or(Switching::default(), |times| times.switching);
            let cost_of = |way: Switching| {
                cost.inside_ns + cost.between_ns + way.before_ns + way.measured_ns + way.after_ns
            };
            let each: u64 = unit.flat.nodes().map(|node| cost_of(way(node))).sum();
            let (mut owner, mut open) = (unit.owner, missing as f64 * each as f64);
            // The part of it in runs of the conditional that were kept belongs there, and the rest
            // to the conditional around it.
            while let Some(node) = owner.filter(|_| open > 0.0) {
                let times = recorded.get(&node);
                let share = times.map_or(0.0, |times| times.runs.len() as f64 / times.count.max(1) as f64);
                *rest.entry(node).or_insert(0.0) += open * share;
                open *= 1.0 - share;
                owner = around(definition, node);
            }
        }
        rest
    }

    /// Makes every point at least as late as its causes. Clocks of different processors may differ
    /// a little, and timers of GPUs advance in steps.
    fn straighten(&mut self) {
        for at in 0..self.points.len() {
            let latest = self.latest(at, |point| point.raw);
            let point = &mut self.points[at];
            point.raw = if point.kind == Kind::Meet { latest } else { point.raw.max(latest) };
        }
    }

    fn latest(&self, at: usize, time: impl Fn(&Point) -> u64) -> u64 {
        let causes = self.causes(at as PointId).iter();
        causes.map(|&cause| time(&self.points[cause as usize])).max().unwrap_or(0)
    }

    /// Returns the causes of a point, without the thread.
    fn causes(&self, point: PointId) -> &[PointId] {
        let (from, to) = self.points[point as usize].causes;
        &self.causes[from as usize..to as usize]
    }

    /// Distributes the cost of executions that were only summed up over the ends of their
    /// conditional's runs.
    fn set_rests(&mut self, rest: &FxHashMap<NodeKey, f64>) {
        for (node, cost) in rest {
            let ends: Vec<PointId> = self.runs.get(node).into_iter().flatten().map(|run| run.end).collect();
            let own =
                |&end: &PointId| self.points[end as usize].raw - self.latest(end as usize, |point| point.raw);
            let all: u64 = ends.iter().map(own).sum();
            let left = if all == 0 { 0.0 } else { (1.0 - cost / all as f64).max(0.0) };
            for end in ends {
                self.points[end as usize].kind = Kind::Rest(left);
            }
        }
    }

    /// Bounds what going to a node and back takes by the time of each run.
    fn limit_switching(&mut self, cost: Cost) {
        let Timeline { runs, points, .. } = self;
        for run in runs.values().flatten() {
            let time = points[run.end as usize].raw - points[run.start as usize].raw;
            for at in [run.start, run.end] {
                let switching = &mut points[at as usize].switching;
                switching.measured_ns = switching.measured_ns.min(time.saturating_sub(cost.inside_ns));
                switching.usual_ns = switching.usual_ns.min(switching.measured_ns);
            }
        }
    }

    fn remove_cost(&mut self, cost: Cost) {
        let mut order: Vec<PointId> = (0..self.points.len() as PointId).collect();
        order.sort_by_key(|&point| (self.points[point as usize].raw, point));
        let mut on_thread: FxHashMap<u32, PointId> = FxHashMap::default();
        for at in order {
            let point = self.points[at as usize];
            let (mut raw, mut new) = (0, 0);
            let mut last_cause = None;
            let before = point.thread.and_then(|thread| on_thread.get(&thread)).copied();
            for cause in self.causes(at).iter().copied().chain(before) {
                let earlier = self.points[cause as usize];
                raw = raw.max(earlier.raw);
                // If a dependency and the thread come at the same time, it is the dependency.
                if last_cause.is_none() || earlier.new > new {
                    (new, last_cause) = (earlier.new, Some(cause));
                }
            }
            let own = point.raw - raw;
            let before = last_cause.and_then(|cause| self.points[cause as usize].way);
            let Switching { measured_ns, usual_ns, before_ns, .. } = point.switching;
            let own = match point.kind {
                Kind::Meet => own,
                // Half of the way lies before a node, and half after it. Between nodes that are
                // reached in the same way there is none.
                Kind::Start => {
                    let way_ns = before.map_or(0, |before| usual_ns.abs_diff(before.usual_ns) / 2);
                    let after_ns = before.map_or(0, |before| before.after_ns);
                    own.saturating_sub(cost.between_ns + before_ns + after_ns) + way_ns
                }
                Kind::End => own.saturating_sub(cost.inside_ns + measured_ns),
                Kind::Rest(left) => (own as f64 * left) as u64,
            };
            let point = &mut self.points[at as usize];
            point.way = if point.kind == Kind::Meet { before } else { Some(point.switching) };
            (point.new, point.last_cause) = (new + own, last_cause);
            if let Some(thread) = point.thread {
                on_thread.insert(thread, at);
            }
        }
    }
}

fn is_conditional(definition: &Definition, node: NodeKey) -> bool {
    matches!(definition.node(node).operation(), Operation::Conditional(_))
}

/// Returns the conditional around a node, past embedded graphs.
fn around(definition: &Definition, node: NodeKey) -> Option<NodeKey> {
    let (owner, _) = definition.owner(definition.node(node).graph())?;
    if definition.node(owner).operation().as_conditional().is_some() {
        return Some(owner);
    }
    around(definition, owner)
}

struct Builder<'a> {
    definition: &'a Definition,
    recorded: &'a FxHashMap<NodeKey, &'a NodeRecording>,
    /// The unit of each body.
    bodies: &'a FxHashMap<GraphKey, usize>,
    origin: u64,
    timeline: Timeline,
}

impl Builder<'_> {
    fn point(&mut self, raw: u64, kind: Kind, thread: Option<u32>, causes: &[PointId]) -> PointId {
        let timeline = &mut self.timeline;
        let from = timeline.causes.len() as u32;
        timeline.causes.extend_from_slice(causes);
        let causes = (from, timeline.causes.len() as u32);
        timeline.points.push(Point {
            raw,
            new: 0,
            thread,
            kind,
            causes,
            node: None,
            switching: Switching::default(),
            way: None,
            last_cause: None,
        });
        timeline.points.len() as PointId - 1
    }

    /// Adds the points of one execution of a unit, which starts at `entry`. Returns its end. The
    /// nesting of graphs bounds the recursion.
    fn execution(&mut self, unit: usize, number: usize, entry: PointId, pass: &[u64]) -> PointId {
        let steps = self.timeline.units[unit].flat.len();
        let mut ends: Vec<PointId> = Vec::with_capacity(steps);
        let mut is_last = vec![true; steps];
        for at in 0..steps {
            let flat = &self.timeline.units[unit].flat;
            let step = flat.steps()[at];
            let mut before: Vec<PointId> =
                flat.predecessors(at).iter().map(|edge| ends[edge.step as usize]).collect();
            flat.predecessors(at).iter().for_each(|edge| is_last[edge.step as usize] = false);
            if before.is_empty() {
                before.push(entry);
            }
            let ready = match before[..] {
                [only] => only,
                _ => self.point(0, Kind::Meet, None, &before),
            };
            let run = (!step.is_join).then(|| self.recorded.get(&step.origin)).flatten();
            ends.push(match run.and_then(|times| times.runs.get(number)) {
                Some(run) => self.node(step.origin, number, *run, ready, pass),
                None => ready,
            });
        }
        let last: Vec<PointId> = (0..steps).filter(|&at| is_last[at]).map(|at| ends[at]).collect();
        if last.is_empty() { entry } else { self.point(0, Kind::Meet, None, &last) }
    }

    /// Adds the points of one run of a node, and of what ran inside it. Returns its end.
    fn node(&mut self, node: NodeKey, number: usize, run: Run, ready: PointId, pass: &[u64]) -> PointId {
        let raw = |time: u64| time.saturating_sub(self.origin);
        let (start_ns, end_ns) = (raw(run.start_ns), raw(run.end_ns));
        let start = self.point(start_ns, Kind::Start, run.thread, &[ready]);
        let mut passes = 0;
        let mut before = start;
        let definition = self.definition;
        if let Operation::Conditional(op) = definition.node(node).operation() {
            let next_ns = self.recorded[&node].runs.get(number + 1).map(|next| next.start_ns);
            for body in &op.bodies {
                let unit = self.bodies[body];
                while let Some(first_ns) = self.first_start(unit) {
                    // An execution belongs to the run that it starts in.
                    if first_ns >= run.end_ns && next_ns.is_some_and(|next| first_ns >= next) {
                        break;
                    }
                    let mut pass = pass.to_vec();
                    if op.form == ConditionalForm::While {
                        pass.push(passes);
                    }
                    let execution = self.timeline.units[unit].taken;
                    self.timeline.units[unit].taken += 1;
                    before = self.execution(unit, execution, before, &pass);
                    passes += 1;
                }
            }
        }
        let end = self.point(end_ns, Kind::End, run.thread, &[before]);
        self.timeline.points[end as usize].node = Some(node);
        for at in [start, end] {
            self.timeline.points[at as usize].switching = self.recorded[&node].switching;
        }
        let run = NodeRun { start, end, ready, pass: pass.to_vec(), thread: run.thread };
        self.timeline.runs.entry(node).or_default().push(run);
        end
    }

    /// Returns when the next execution of a unit starts that no run has taken yet.
    fn first_start(&self, unit: usize) -> Option<u64> {
        let unit = &self.timeline.units[unit];
        if unit.taken >= unit.recorded {
            return None;
        }
        let starts = unit.flat.nodes().filter_map(|node| self.recorded.get(&node)?.runs.get(unit.taken));
        starts.map(|run| run.start_ns).min()
    }
}
