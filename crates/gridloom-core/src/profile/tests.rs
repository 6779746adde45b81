//! Profiles of recordings whose times are known.

use rustc_hash::FxHashSet;

use super::recording::ChainTimes;
use super::{Cost, Facts, NodeRecording, Profile, Recording, Run, Switching, analyse};
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
        added_nodes: 0,
        before_ns: 0,
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

/// Times of a fill that takes 900, on a device on which timers take 300 and going from a kernel to
/// a fill and back takes 4,200 between timers and 1,100 between other kernels, which take 700.
fn switching() -> Switching {
    let cost = Cost { inside_ns: 300, ..Cost::default() };
    let times = |typical: u64| vec![typical, typical + 40, typical - 40, typical + 9000, typical];
    let [one, few, many] = [5400, 5400 + 4 * 900, 5400 + 12 * 900].map(times);
    let kernels = [300 + 2 * 700, 300 + 6 * 700].map(times);
    // Each turn takes less than the first, because the device prepares the next one meanwhile.
    let by_turns = [300 + 2 * 700 + 900 + 2000, 300 + 6 * 700 + 5 * (900 + 1100) + 900].map(times);
    let times = ChainTimes {
        one: &one,
        few: &few,
        many: &many,
        kernels: [&kernels[0], &kernels[1]],
        by_turns: [&by_turns[0], &by_turns[1]],
        ..ChainTimes::default()
    };
    Switching::of_chains(times, cost)
}

#[test]
fn chains_show_what_going_to_a_fill_and_back_takes() {
    assert_eq!((switching().measured_ns, switching().usual_ns), (4200, 1100));
    assert_eq!(switching().alone_ns, 900);
    // Nine of ten of few times are all but one: here also the one that was interrupted.
    assert_eq!(switching().spread_ns, 9000 + 40 + (40 + 40) / 8);
    // A device that runs fills as it runs kernels.
    let alike = ChainTimes {
        one: &[1200],
        few: &[4800],
        many: &[12_000],
        kernels: [&[1700], &[4500]],
        by_turns: [&[2600], &[9000]],
        ..ChainTimes::default()
    };
    let cost = Cost { inside_ns: 300, ..Cost::default() };
    assert_eq!(Switching::of_chains(alike, cost), Switching { alone_ns: 900, ..Switching::default() });
    assert_eq!(Switching::of_chains(ChainTimes::default(), cost), Switching::default());
}

#[test]
fn a_fill_whose_way_differs_a_little_from_that_of_the_chains_takes_its_time_in_a_row() {
    let cost = Cost { inside_ns: 300, ..Cost::default() };
    let way = Switching { spread_ns: 50, ..switching() };
    let time = |raw: u64| {
        let fitted = way.fitted_to(&[Run { start_ns: 1000, end_ns: 1000 + raw, thread: None }], cost);
        raw - cost.inside_ns - fitted.measured_ns
    };
    // The chains took 5,400, of which 4,200 are the way there and back.
    assert_eq!([1200, 4400, 5400, 6000, 9650].map(time), [900; 5]);
    assert_eq!([9651, 20_000].map(time), [900 + 4251, 900 + 14_600]);
    // Runs of one node differ by what they differ.
    let runs = [5500, 5600, 5900].map(|end_ns| Run { start_ns: 0, end_ns, thread: None });
    assert_eq!(way.fitted_to(&runs, cost), Switching { measured_ns: 4400, spread_ns: 200, ..way });
    assert_eq!(way.fitted_to(&[], cost), way);
    // Less than in a row: all of it is the node's.
    assert_eq!([900, 1150].map(time), [600, 850]);
    let short = Run { start_ns: 0, end_ns: 900, thread: None };
    assert_eq!(
        way.fitted_to(&[short], cost),
        Switching { measured_ns: 0, usual_ns: 0, spread_ns: 300, ..way }
    );
}

#[test]
fn timers_of_fills_and_copies_may_take_longer_to_the_next_timer() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let kernel = fill(&device, &graph, &[], "kernel");
    let transfer = fill(&device, &graph, &[&kernel], "transfer");
    let last = fill(&device, &graph, &[&transfer], "last");
    let cost = Cost { inside_ns: 300, between_ns: 200, ..Cost::default() };
    let times = ChainTimes {
        one: &[1200],
        few: &[4800],
        many: &[12_000],
        before: &[250],
        after: &[900],
        ..ChainTimes::default()
    };
    let way = Switching::of_chains(times, cost);
    assert_eq!((way.before_ns, way.after_ns), (50, 700));
    let nodes = vec![
        runs(&kernel, &[(200, 1200, None)]),
        NodeRecording { switching: way, ..runs(&transfer, &[(1450, 2650, None)]) },
        runs(&last, &[(3550, 4350, None)]),
    ];
    let profile = profile_by("timer kernels", &graph, nodes, 4350, cost);
    let times: Vec<(u64, u64)> = profile.nodes.iter().map(|row| (row.busy_ns, row.gap_ns)).collect();
    assert_eq!(times, [(700, 0), (900, 0), (500, 0)]);
    assert_eq!((profile.launch_ns, profile.measured_ns), (2100, 4350));
}

/// The runs of nodes one after the other, with 300 inside and 200 between them.
fn in_a_row(nodes: &[(&Node, u64, Switching)]) -> (Vec<NodeRecording>, u64) {
    let mut now = 0;
    let recordings = nodes.iter().map(|&(node, time, switching)| {
        let start = now + 200;
        now = start + 300 + time + switching.measured_ns;
        NodeRecording { switching, ..runs(node, &[(start, now, None)]) }
    });
    (recordings.collect(), now)
}

#[test]
fn fills_between_kernels_keep_only_their_own_time_and_the_way_to_them_is_a_gap() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let mut nodes: Vec<Node> = Vec::new();
    for name in ["kernel", "fill", "other fill", "other kernel"] {
        let after: Vec<&Node> = nodes.last().into_iter().collect();
        nodes.push(fill(&device, &graph, &after, name));
    }
    let [kernel, one, other, last] = [0, 1, 2, 3].map(|at| &nodes[at]);
    let there = Switching { spread_ns: 80, ..switching() };
    let none = Switching::default();
    let (recordings, end) =
        in_a_row(&[(kernel, 700, none), (one, 900, there), (other, 900, there), (last, 700, none)]);
    let cost = Cost { inside_ns: 300, between_ns: 200, spread_ns: 10, step_ns: 1 };
    let profile = profile_by("timer kernels", &graph, recordings, end, cost);
    let times: Vec<(u64, u64)> = profile.nodes.iter().map(|row| (row.busy_ns, row.gap_ns)).collect();
    assert_eq!(times, [(700, 0), (900, 550), (900, 0), (700, 550)]);
    assert_eq!(profile.launch_ns, 700 + 900 + 900 + 700 + 1100);
    assert_eq!((profile.critical_ns, profile.critical_gap_ns), (3200, 1100));
    let off: Vec<u64> = profile.nodes.iter().map(|row| row.uncertainty_ns - profile.clock_step_ns).collect();
    assert_eq!(off, [10, 80, 80, 10]);
    assert!(profile.nodes.iter().all(|row| row.is_reliable()));
}

#[test]
fn a_fill_that_takes_less_than_the_way_to_it_has_no_time_and_no_gap() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let kernel = fill(&device, &graph, &[], "kernel");
    let short = fill(&device, &graph, &[&kernel], "short");
    let nodes = vec![
        runs(&kernel, &[(200, 1200, None)]),
        NodeRecording { switching: switching(), ..runs(&short, &[(1400, 1900, None)]) },
    ];
    let cost = Cost { inside_ns: 300, between_ns: 200, ..Cost::default() };
    let profile = profile_by("timer kernels", &graph, nodes, 1900, cost);
    let short = profile.node("short").unwrap();
    // It took 200 more than timers around nothing, half of which may lie before it.
    assert_eq!((short.busy_ns, short.gap_ns, short.is_reliable()), (0, 100, false));
    assert!(profile.launch_ns <= profile.measured_ns);
}

#[test]
fn what_ran_often_bounds_the_way_to_it() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let repeat = repeat(&graph);
    let inside = fill(&device, &repeat.body_handle(0), &[], "inside");
    let all: Vec<_> = (0..20).map(|pass| (2000 * pass + 200, 2000 * pass + 1500, None)).collect();
    let nodes = vec![
        runs(&repeat, &[(0, 40_000, None)]),
        NodeRecording { switching: switching(), ..runs(&inside, &all) },
    ];
    let cost = Cost { inside_ns: 300, between_ns: 200, ..Cost::default() };
    let profile = profile_by("timer kernels", &graph, nodes, 40_000, cost);
    let inside = profile.nodes.iter().find(|node| node.runs == 20).unwrap();
    assert_eq!((inside.busy_ns, inside.is_reliable()), (0, false));
    assert!(inside.uncertainty_ns >= 1000, "it may be anything up to all of it");
}
