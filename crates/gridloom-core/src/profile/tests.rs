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
    let recording = Recording { nodes, launch: (0, end), cost, kernels: Vec::new() };
    let facts = Facts {
        device: String::new(),
        method: "workers",
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
    let cost = Cost { inside_ns: 10, between_ns: 10 };
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
    let profile = profile(&graph, nodes, 5000, Cost { inside_ns: 700, between_ns: 5 });
    assert_eq!(profile.node_cost_ns, 40);
    assert_eq!(profile.nodes.iter().find(|node| node.runs == 100).unwrap().busy_ns, 250);
}
