//! From runs to a profile: times of each node and gaps.

use rustc_hash::{FxHashMap, FxHashSet};

use super::recording::{NodeRecording, Recording, Switching, greatest_divisor};
use super::timeline::{NodeRun, PointId, Timeline};
use super::{CriticalSpan, NodeProfile, Profile, Span, uncertainty};
use crate::executable::Report;
use crate::graph::{Definition, GraphKey, NodeKey};
use crate::op::{NodeKind, Role};

/// The number of runs whose average is a bound for the cost of measuring one.
const OFTEN: u64 = 16;

/// What is known about a launch besides its recording.
pub(crate) struct Facts<'a> {
    pub(crate) device: String,
    pub(crate) method: &'static str,
    pub(crate) report: &'a Report,
    pub(crate) disabled: &'a FxHashSet<NodeKey>,
    pub(crate) enqueue_ns: u64,
    pub(crate) wall_ns: u64,
    pub(crate) added_nodes: u64,
    pub(crate) before_ns: u64,
    pub(crate) remarks: Vec<String>,
}

/// Makes a profile of a launch of this definition.
pub(crate) fn analyse(definition: &Definition, mut recording: Recording, facts: Facts<'_>) -> Profile {
    bound_cost(&mut recording);
    let stamps =
        recording.nodes.iter().flat_map(|node| &node.runs).flat_map(|run| [run.start_ns, run.end_ns]);
    let step =
        stamps.map(|at| at.abs_diff(recording.launch.0)).fold(recording.cost.step_ns, greatest_divisor);
    recording.cost.step_ns = step;
    let recording = &recording;
    let timeline = Timeline::new(definition, facts.disabled, recording);
    let ids = numbers(definition);
    let cost = recording.cost;
    let mut profile = Profile {
        device: facts.device,
        method: facts.method.to_owned(),
        launch_ns: timeline.end_ns,
        measured_ns: timeline.raw_end_ns,
        node_cost_ns: cost.inside_ns + cost.between_ns,
        uncertainty_ns: cost.spread_ns + cost.step_ns,
        clock_step_ns: cost.step_ns,
        enqueue_ns: facts.enqueue_ns,
        wall_ns: facts.wall_ns,
        added_nodes: facts.added_nodes,
        before_ns: facts.before_ns,
        remarks: facts.remarks,
        ..Profile::default()
    };
    let recorded: FxHashMap<NodeKey, &NodeRecording> =
        recording.nodes.iter().map(|node| (node.node, node)).collect();
    let hosted: FxHashSet<NodeKey> = (facts.report.conditionals.iter())
        .filter(|conditional| !conditional.native)
        .map(|conditional| conditional.node)
        .collect();
    let mut spans: Vec<(PointId, Span)> = Vec::new();
    for (&key, &id) in &ids {
        let node = definition.node(key);
        let kind = node.operation().kind();
        if kind.facts().role == Role::Order {
            continue;
        }
        let mut row = NodeProfile {
            id,
            name: definition.label(key),
            kind: kind.name().to_owned(),
            parent: definition.owner(node.graph()).and_then(|(owner, _)| ids.get(&owner).copied()),
            on_host: kind == NodeKind::Callback || hosted.contains(&key),
            disabled: facts.disabled.contains(&key),
            bytes: node.operation().bytes_written(),
            ..NodeProfile::default()
        };
        if let (false, Some(times)) = (row.disabled, recorded.get(&key)) {
            let runs = timeline.runs.get(&key).map_or(&[][..], |runs| runs);
            times_of(&mut row, times, runs, &timeline, cost.inside_ns + times.switching.measured_ns);
            row.uncertainty_ns = times.switching.spread_ns;
            profile.spans_left_out += row.runs - runs.len() as u64;
            spans.extend(runs.iter().map(|run| {
                let (start_ns, end_ns) = (timeline.at(run.start), timeline.at(run.end));
                (run.start, Span { node: id, start_ns, end_ns, pass: run.pass.clone(), thread: run.thread })
            }));
        }
        profile.nodes.push(row);
    }
    profile.nodes.sort_by_key(|node| node.id);
    // Without the cost of measuring, runs one after the other may start at the same time. The
    // points of a run are numbered after those of what it waited for, and of the conditional around
    // it.
    spans.sort_by_key(|&(start, ref span)| (span.start_ns, start));
    profile.spans = spans.into_iter().map(|(_, span)| span).collect();
    let rows: FxHashMap<usize, usize> =
        profile.nodes.iter().enumerate().map(|(row, node)| (node.id, row)).collect();
    for unit in &timeline.units {
        if let (Some(owner), Some(count)) = (unit.owner, unit.count) {
            let row = &mut profile.nodes[rows[&ids[&owner]]];
            row.passes = Some(row.passes.unwrap_or(0) + count);
        }
    }
    times_of_children(definition, &ids, &rows, &mut profile);
    for (key, start_ns, end_ns) in timeline.critical_path(definition) {
        profile.critical_path.push(CriticalSpan { node: ids[&key], start_ns, end_ns });
        profile.critical_ns += end_ns - start_ns;
        let mut around = Some(key);
        while let Some(node) = around {
            profile.nodes[rows[&ids[&node]]].critical_ns += end_ns - start_ns;
            around = definition.owner(definition.node(node).graph()).map(|(owner, _)| owner);
        }
    }
    profile.critical_gap_ns = profile.launch_ns.saturating_sub(profile.critical_ns);
    totals(&mut profile, recording, &ids, &rows);
    uncertainty::add(&mut profile);
    let all = (profile.host_ns + profile.device_ns) as f64;
    let over = |time: u64| if time == 0 { 0.0 } else { all / time as f64 };
    profile.parallelism = over(profile.launch_ns);
    profile.possible_parallelism = over(timeline.longest_chain(definition));
    profile
}

/// Lowers the cost of measuring if nodes that ran often took less. The cost is measured at another
/// moment than the nodes, in which the machine may have been busier. Single runs are no bound,
/// because timers of GPUs advance in steps.
fn bound_cost(recording: &mut Recording) {
    let often = recording.nodes.iter().filter(|node| node.count >= OFTEN);
    if let Some(least) = often.map(|node| node.total_ns / node.count).min() {
        let cost = &mut recording.cost;
        if least < cost.inside_ns {
            // All that is known of the cost now is that it is no more than this.
            (cost.inside_ns, cost.spread_ns) = (least, least);
        }
    }
    let inside_ns = recording.cost.inside_ns;
    for node in recording.nodes.iter_mut().filter(|node| node.count >= OFTEN) {
        let most = (node.total_ns / node.count).saturating_sub(inside_ns);
        let Switching { measured_ns, usual_ns, spread_ns, .. } = &mut node.switching;
        if most < *measured_ns {
            (*measured_ns, *usual_ns, *spread_ns) = (most, most.min(*usual_ns), most);
        }
    }
}

/// Returns the number of each node, as the JSON form of the graph has them.
fn numbers(definition: &Definition) -> FxHashMap<NodeKey, usize> {
    fn visit(definition: &Definition, graph: GraphKey, ids: &mut FxHashMap<NodeKey, usize>) {
        for node in definition.nodes(graph) {
            ids.insert(node, ids.len());
            for &body in definition.node(node).bodies() {
                visit(definition, body, ids);
            }
        }
    }
    let mut ids = FxHashMap::default();
    visit(definition, definition.root(), &mut ids);
    ids
}

fn times_of(
    row: &mut NodeProfile,
    times: &NodeRecording,
    runs: &[NodeRun],
    timeline: &Timeline,
    cost_ns: u64,
) {
    let time = |run: &NodeRun| timeline.at(run.end) - timeline.at(run.start);
    let left_out = times.count - runs.len() as u64;
    let raw: u64 = runs.iter().map(|run| timeline.raw_time(run)).sum();
    row.runs = times.count;
    row.busy_ns = runs.iter().map(time).sum();
    row.min_ns = runs.iter().map(time).min().unwrap_or(0);
    row.max_ns = runs.iter().map(time).max().unwrap_or(0);
    if left_out > 0 {
        row.busy_ns += times.total_ns.saturating_sub(raw).saturating_sub(left_out.saturating_mul(cost_ns));
        row.min_ns = row.min_ns.min(times.min_ns.saturating_sub(cost_ns));
        row.max_ns = row.max_ns.max(times.max_ns.saturating_sub(cost_ns));
    }
    row.start_ns = runs.iter().map(|run| timeline.at(run.start)).min().unwrap_or(0);
    row.end_ns = runs.iter().map(|run| timeline.at(run.end)).max().unwrap_or(0);
    row.gap_ns = runs.iter().map(|run| timeline.at(run.start) - timeline.at(run.ready)).sum();
}

/// Gives embedded graphs the times of what is inside them. A child that stands inside another has
/// the larger number, so the inner ones come first.
fn times_of_children(
    definition: &Definition,
    ids: &FxHashMap<NodeKey, usize>,
    rows: &FxHashMap<usize, usize>,
    profile: &mut Profile,
) {
    let mut children: Vec<(usize, NodeKey)> = (ids.iter())
        .filter(|(key, _)| definition.node(**key).operation().kind() == NodeKind::Child)
        .map(|(&key, &id)| (id, key))
        .collect();
    children.sort_unstable_by(|one, other| other.cmp(one));
    for (id, key) in children {
        let inside: Vec<&NodeProfile> = (definition.node(key).bodies().iter())
            .flat_map(|&body| definition.nodes(body))
            .filter_map(|node| rows.get(ids.get(&node)?).map(|&row| &profile.nodes[row]))
            .filter(|row| row.runs > 0)
            .collect();
        let Some(start_ns) = inside.iter().map(|row| row.start_ns).min() else { continue };
        let end_ns = inside.iter().map(|row| row.end_ns).max().unwrap_or(start_ns);
        let runs = inside.iter().map(|row| row.runs).max().unwrap_or(0);
        let busy_ns = inside.iter().map(|row| row.busy_ns).sum();
        let row = &mut profile.nodes[rows[&id]];
        (row.runs, row.start_ns, row.end_ns, row.busy_ns) = (runs, start_ns, end_ns, busy_ns);
        let each = busy_ns / runs.max(1);
        (row.min_ns, row.max_ns) = (each, each);
    }
}

fn totals(
    profile: &mut Profile,
    recording: &Recording,
    ids: &FxHashMap<NodeKey, usize>,
    rows: &FxHashMap<usize, usize>,
) {
    let is_leaf = |row: &NodeProfile| !["child", "if", "if-else", "while", "switch"].contains(&&*row.kind);
    for row in profile.nodes.iter().filter(|row| is_leaf(row)) {
        let all = if row.on_host { &mut profile.host_ns } else { &mut profile.device_ns };
        *all += row.busy_ns;
    }
    let [mut wide, mut counted] = [0, 0];
    for kernel in recording.kernels.iter().filter(|kernel| kernel.wide + kernel.alone > 0) {
        wide += kernel.wide;
        counted += kernel.wide + kernel.alone;
        for node in &kernel.nodes {
            if let Some(&row) = ids.get(node).and_then(|id| rows.get(id)) {
                let share = kernel.wide as f64 / (kernel.wide + kernel.alone) as f64;
                profile.nodes[row].ran_wide = Some(share);
            }
        }
    }
    profile.ran_wide = (counted > 0).then(|| wide as f64 / counted as f64);
}
