//! Profiles of recordings whose times are known.

use rustc_hash::FxHashSet;

use super::{Cost, Facts, NodeRecording, Profile, Recording, Run, analyse};
use crate::executable::Report;
use crate::graph::{ConditionalSpec, Graph, Node};
use crate::memory::{MemoryKind, Region};
use crate::null::NullDevice;
use crate::op::{ConditionalForm, MemsetOp, Operation, Test};

/// A fill of four bytes, which is work.
fn fill(device: &NullDevice, graph: &Graph, after: &[&Node], name: &str) -> Node {
    use crate::backend::AsDevice;
    let memory = device.as_device().allocate(4, MemoryKind::Device).unwrap();
    let dst = Region::whole(memory);
    let fill = MemsetOp { dst, value: 0, element_size: 4, width: 1, height: 1, pitch: 0 };
    let node = graph.add(after, Operation::Memset(fill.into())).unwrap();
    node.set_name(name).unwrap();
    node
}

fn repeat(graph: &Graph) -> Node {
    let condition = graph.condition(Some(1));
    let (form, test) = (ConditionalForm::While, Test::Condition(condition.key()));
    let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 1 };
    graph.add_conditional(&[], spec).unwrap()
}

/// The runs of a node: start, end and thread of each.
fn runs(node: &Node, runs: &[(u64, u64, Option<u32>)]) -> NodeRecording {
    let mut recording = NodeRecording::new(node.key());
    for &(start_ns, end_ns, thread) in runs {
        recording.add(Run { start_ns, end_ns, thread }, usize::MAX);
    }
    recording
}

fn profile(graph: &Graph, nodes: Vec<NodeRecording>, end: u64, cost: Cost) -> Profile {
    profile_by("workers", graph, nodes, end, cost)
}

fn profile_by(
    method: &'static str,
    graph: &Graph,
    nodes: Vec<NodeRecording>,
    end: u64,
    cost: Cost,
) -> Profile {
    let recording = Recording { nodes, launch: (0, end), cost, kernels: Vec::new() };
    let facts = Facts {
        device: String::new(),
        method,
        report: &Report::default(),
        disabled: &FxHashSet::default(),
        enqueue_ns: 0,
        wall_ns: 0,
        remarks: Vec::new(),
    };
    analyse(&graph.definition(), recording, facts)
}

fn path(profile: &Profile) -> Vec<&str> {
    let name = |id: usize| &*profile.nodes.iter().find(|node| node.id == id).unwrap().name;
    profile.critical_path.iter().map(|piece| name(piece.node)).collect()
}

/// Two fills between two others: `begin`, then `one` and `other`, then `end`.
fn diamond(device: &NullDevice, graph: &Graph) -> [Node; 4] {
    let begin = fill(device, graph, &[], "begin");
    let one = fill(device, graph, &[&begin], "one");
    let other = fill(device, graph, &[&begin], "other");
    let end = fill(device, graph, &[&one, &other], "end");
    [begin, one, other, end]
}

#[test]
fn the_critical_path_goes_through_the_thread_that_a_node_waited_for() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let [begin, one, other, end] = diamond(&device, &graph);
    let with = |threads: [Option<u32>; 2]| {
        let nodes = vec![
            runs(&begin, &[(10, 20, Some(9))]),
            runs(&one, &[(25, 70, threads[0])]),
            runs(&other, &[(75, 90, threads[1])]),
            runs(&end, &[(95, 100, Some(9))]),
        ];
        profile(&graph, nodes, 110, Cost::default())
    };
    let same = with([Some(1), Some(1)]);
    assert_eq!(path(&same), ["begin", "one", "other", "end"]);
    assert_eq!((same.critical_ns, same.critical_gap_ns), (75, 35));
    // Without that thread it could have run at once.
    assert_eq!(same.possible_parallelism, 75.0 / 60.0);
    assert_eq!(same.node("other").unwrap().gap_ns, 55);
    for threads in [[Some(1), Some(2)], [None, None], [Some(1), None]] {
        let apart = with(threads);
        assert_eq!(path(&apart), ["begin", "other", "end"], "{threads:?}");
        assert_eq!((apart.critical_ns, apart.critical_gap_ns), (30, 80));
    }
}

#[test]
fn a_dependency_that_ended_after_the_thread_was_free_is_on_the_path() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let [begin, one, other, end] = diamond(&device, &graph);
    let nodes = vec![
        runs(&begin, &[(0, 10, Some(0))]),
        runs(&one, &[(10, 90, Some(0))]),
        runs(&other, &[(12, 30, Some(1))]),
        runs(&end, &[(91, 95, Some(1))]),
    ];
    assert_eq!(path(&profile(&graph, nodes, 95, Cost::default())), ["begin", "one", "end"]);
}

#[test]
fn a_path_leaves_a_loop_whose_node_waited_for_a_thread_outside() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let outside = fill(&device, &graph, &[], "outside");
    let repeat = repeat(&graph);
    repeat.set_name("loop").unwrap();
    let inside = fill(&device, &repeat.body_handle(0), &[], "inside");
    let nodes = vec![
        runs(&outside, &[(0, 50, Some(1))]),
        runs(&repeat, &[(1, 80, Some(0))]),
        runs(&inside, &[(2, 5, Some(0)), (55, 78, Some(1))]),
    ];
    let profile = profile(&graph, nodes, 80, Cost::default());
    assert_eq!(path(&profile), ["outside", "inside"]);
    assert_eq!(profile.node("loop").unwrap().critical_ns, 23);
}

#[test]
fn runs_that_take_no_longer_than_measuring_stay_in_order() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let repeat = repeat(&graph);
    let inside = fill(&device, &repeat.body_handle(0), &[], "inside");
    // Pass 7 was interrupted, and all others take as long as the cost of measuring.
    let time = |pass: u64| if pass == 7 { 500 } else { 10 };
    let starts: Vec<u64> = (0..20).map(|pass| (0..pass).map(|pass| 10 + time(pass)).sum()).collect();
    let all: Vec<_> = (0..20).map(|pass| (starts[pass], starts[pass] + time(pass as u64), None)).collect();
    let end = all[19].1;
    let nodes = vec![runs(&repeat, &[(0, end, None)]), runs(&inside, &all)];
    let cost = Cost { inside_ns: 10, between_ns: 10, ..Cost::default() };
    let profile = profile(&graph, nodes, end, cost);
    let id = profile.node("inside").map_or(1, |node| node.id);
    let passes: Vec<_> =
        profile.spans.iter().filter(|span| span.node == id).map(|span| span.pass[0]).collect();
    assert_eq!(passes, (0..20).collect::<Vec<u64>>());
    assert_eq!((profile.launch_ns, profile.critical_path.len()), (490, 20));
}

#[test]
fn measuring_costs_no_more_than_what_ran_often_took() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let repeat = repeat(&graph);
    let inside = fill(&device, &repeat.body_handle(0), &[], "inside");
    let all: Vec<_> = (0..100).map(|pass| (50 * pass, 50 * pass + 30 + pass % 2 * 10, None)).collect();
    let nodes = vec![runs(&repeat, &[(0, 5000, None)]), runs(&inside, &all)];
    let profile = profile(&graph, nodes, 5000, Cost { inside_ns: 700, between_ns: 5, ..Cost::default() });
    assert_eq!(profile.node_cost_ns, 40);
    // The cost may be anything up to this bound.
    assert_eq!(profile.uncertainty_ns, 35 + profile.clock_step_ns);
    assert_eq!(profile.nodes.iter().find(|node| node.runs == 100).unwrap().busy_ns, 250);
}

#[test]
fn the_cost_of_measuring_has_a_spread_and_the_clock_a_step() {
    let run = |start_ns: u64, end_ns: u64| Run { start_ns, end_ns, thread: None };
    // Ten take 64 to 128, a last one is interrupted.
    let mut runs: Vec<Run> = (0..10).map(|at| run(1000 * at + 8, 1000 * at + 72 + 64 * (at % 2))).collect();
    runs.push(run(10_008, 60_008));
    let cost = Cost::of_empty(&runs);
    assert_eq!((cost.inside_ns, cost.spread_ns, cost.step_ns), (128, 64, 8));
    assert_eq!(Cost::of_empty(&[]), Cost::default());
}

#[test]
fn times_that_may_be_off_by_more_than_they_are_long_are_not_reliable() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let short = fill(&device, &graph, &[], "short");
    let long = fill(&device, &graph, &[&short], "long");
    let nodes = vec![runs(&short, &[(101, 201, None)]), runs(&long, &[(300, 1300, None)])];
    let cost = Cost { inside_ns: 60, between_ns: 10, spread_ns: 50, step_ns: 32 };
    let profile = profile(&graph, nodes, 1300, cost);
    // The stamps show that the clock advances by single nanoseconds.
    assert_eq!((profile.clock_step_ns, profile.uncertainty_ns), (1, 51));
    let [short, long] = ["short", "long"].map(|name| profile.node(name).unwrap());
    assert_eq!((short.mean_ns(), short.uncertainty_ns, short.is_reliable()), (40, 51, false));
    assert_eq!((long.mean_ns(), long.uncertainty_ns, long.is_reliable()), (940, 51, true));
    assert!(short.bytes_per_second().is_none() && long.bytes_per_second().is_some());
    let table = profile.to_string();
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("short").contains("51 ns") && line("short").contains("too short to tell"), "{table}");
    assert!(!line("long").contains("too short to tell"), "{table}");
    let trace: serde_json::Value = serde_json::from_str(&profile.to_chrome_trace()).unwrap();
    let facts = |name: &str| {
        let events = trace["traceEvents"].as_array().unwrap();
        events.iter().find(|event| event["name"] == name).unwrap()["args"].clone()
    };
    assert_eq!((&facts("short")["reliable"], &facts("short")["uncertainty_ns"]), (&false.into(), &51.into()));
    assert!(facts("long")["reliable"].is_null());
}

#[test]
fn what_is_inside_a_loop_adds_to_how_far_off_the_loop_may_be() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let repeat = repeat(&graph);
    repeat.set_name("loop").unwrap();
    let inside = fill(&device, &repeat.body_handle(0), &[], "inside");
    let all: Vec<_> = (0..5).map(|pass| (101 * pass, 101 * pass + 50, None)).collect();
    let nodes = vec![runs(&repeat, &[(0, 505, None)]), runs(&inside, &all)];
    let profile = profile(&graph, nodes, 505, Cost { spread_ns: 9, step_ns: 1, ..Cost::default() });
    assert_eq!(profile.node("loop").unwrap().uncertainty_ns, 10 + 5 * 10);
}

#[test]
fn fills_between_timer_kernels_may_be_off_by_the_shortest_of_them() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let one = fill(&device, &graph, &[], "one");
    let other = fill(&device, &graph, &[&one], "other");
    let nodes = || vec![runs(&one, &[(0, 3001, None)]), runs(&other, &[(3100, 90_000, None)])];
    let cost = Cost { spread_ns: 9, step_ns: 1, ..Cost::default() };
    let by = |method: &'static str| profile_by(method, &graph, nodes(), 90_000, cost);
    let timed = by("timer kernels");
    assert_eq!(timed.nodes.iter().map(|row| row.uncertainty_ns).collect::<Vec<_>>(), [3011, 3011]);
    assert_eq!(timed.nodes.iter().map(|row| row.is_reliable()).collect::<Vec<_>>(), [false, true]);
    assert!(timed.remarks.iter().any(|remark| remark.contains("fills and copies")), "{:?}", timed.remarks);
    let worked = by("workers");
    assert_eq!((worked.nodes[0].uncertainty_ns, worked.remarks.len()), (10, 0));
}
