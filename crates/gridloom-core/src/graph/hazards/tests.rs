//! The check against one that compares every pair of nodes.

use std::sync::Arc;

use super::*;
use crate::backend::Allocation;
use crate::graph::{ConditionalSpec, EdgeKind, Graph, Node};
use crate::launch::LaunchConfig;
use crate::memory::{MemoryKind, Region};
use crate::null::{FakeKernel, NullDevice};
use crate::op::{
    ArgValue, ConditionalForm, CopySide, KernelArgs, KernelOp, Launch, MemcpyOp, MemsetOp, Operation,
    PointerValue, Test,
};

fn part(memory: &Arc<dyn Allocation>, offset: u64, bytes: u64) -> Region {
    Region::whole(memory.clone()).part(offset, bytes).expect("inside")
}

fn fill(region: Region) -> Operation {
    let width = region.bytes;
    Operation::Memset(Arc::new(MemsetOp {
        dst: region,
        value: 0,
        element_size: 1,
        width,
        height: 1,
        pitch: 0,
    }))
}

fn copy(dst: Region, src: Region) -> Operation {
    let bytes = dst.bytes;
    Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes)))
}

fn setup() -> (Graph, Arc<dyn Allocation>) {
    let device = NullDevice::new();
    let memory = device.allocate(4096, MemoryKind::Device).expect("memory");
    (Graph::new(&device), memory)
}

fn spec(form: ConditionalForm, test: Test) -> ConditionalSpec {
    let bodies = if form == ConditionalForm::IfElse { 2 } else { 1 };
    ConditionalSpec { form, test, test_first: true, max_passes: None, bodies }
}

fn edges_missing(graph: &Graph) -> Vec<(NodeKey, NodeKey)> {
    let hazards = graph.check();
    assert!(hazards.complete);
    let edge = |hazard: &Hazard| match hazard {
        Hazard::Unordered { edge, .. } | Hazard::UnorderedCondition { edge, .. } => Some(*edge),
        Hazard::EndlessLoop { .. } => None,
    };
    hazards.findings.iter().filter_map(edge).collect()
}

#[test]
fn a_write_beside_a_read_of_the_same_bytes_is_found_and_both_are_named() {
    let (graph, memory) = setup();
    let one = graph.add(&[], fill(part(&memory, 0, 64))).unwrap().named("clear").unwrap();
    let other =
        graph.add(&[], copy(part(&memory, 512, 64), part(&memory, 32, 64))).unwrap().named("save").unwrap();
    assert_eq!(edges_missing(&graph), [(one.key(), other.key())]);
    let message = graph.check().to_string();
    for part in ["clear writes", "save reads", "bytes 32 to 64", "add an edge"] {
        assert!(message.contains(part), "{message}");
    }
    graph.add_edge(&one, &other, EdgeKind::Full).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn two_reads_and_neighbouring_writes_are_right() {
    let (graph, memory) = setup();
    graph.add(&[], fill(part(&memory, 0, 64))).unwrap();
    graph.add(&[], fill(part(&memory, 64, 64))).unwrap();
    graph.add(&[], copy(part(&memory, 512, 64), part(&memory, 256, 64))).unwrap();
    graph.add(&[], copy(part(&memory, 768, 64), part(&memory, 256, 64))).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn columns_of_one_matrix_do_not_meet_and_rows_that_overlap_do() {
    let columns = |memory: &Arc<dyn Allocation>, first: u64, width: u64| {
        let dst = part(memory, first, 64 * 7 + width);
        Operation::Memset(Arc::new(MemsetOp { dst, value: 0, element_size: 1, width, height: 8, pitch: 64 }))
    };
    let (graph, memory) = setup();
    graph.add(&[], columns(&memory, 0, 32)).unwrap();
    graph.add(&[], columns(&memory, 32, 32)).unwrap();
    assert!(graph.check().is_empty());
    graph.add(&[], columns(&memory, 16, 8)).unwrap();
    assert_eq!(edges_missing(&graph).len(), 1);

    let (graph, memory) = setup();
    graph.add(&[], columns(&memory, 0, 32)).unwrap();
    graph.add(&[], fill(part(&memory, 40, 8))).unwrap();
    assert!(graph.check().is_empty(), "the gap between two rows");
    graph.add(&[], fill(part(&memory, 60, 8))).unwrap();
    assert_eq!(edges_missing(&graph).len(), 1, "over the end of the gap");
}

#[test]
fn planes_without_gaps_are_rows() {
    let (graph, memory) = setup();
    let side = |first: u64| CopySide { region: part(&memory, first, 64 * 7 + 16), pitch: 64, rows: 4 };
    let copy = |to: u64, from: u64| {
        Operation::Memcpy(Arc::new(MemcpyOp {
            dst: side(to),
            src: side(from),
            width: 16,
            height: 4,
            depth: 2,
        }))
    };
    graph.add(&[], copy(0, 16)).unwrap();
    graph.add(&[], copy(32, 16)).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn the_bodies_of_an_if_else_exclude_each_other_and_a_node_beside_it_does_not() {
    let (graph, memory) = setup();
    let condition = graph.condition(Some(1));
    let spec = spec(ConditionalForm::IfElse, Test::Condition(condition.key()));
    let branch = graph.add_conditional(&[], spec).unwrap().named("branch").unwrap();
    for body in branch.bodies().unwrap() {
        body.add(&[], fill(part(&memory, 0, 8))).unwrap();
    }
    assert!(graph.check().is_empty());
    let beside = graph.add(&[], copy(part(&memory, 512, 8), part(&memory, 0, 8))).unwrap();
    assert_eq!(edges_missing(&graph), [(branch.key(), beside.key())]);
    assert!(graph.check().to_string().contains("between branch and"), "{}", graph.check());
    graph.add_edge(&branch, &beside, EdgeKind::Full).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn a_loop_on_a_value_that_its_body_never_writes_is_found() {
    let (graph, memory) = setup();
    let spec = spec(ConditionalForm::While, Test::Value(part(&memory, 0, 4)));
    let repeat = graph.add_conditional(&[], spec).unwrap();
    let body = repeat.bodies().unwrap().remove(0);
    body.add(&[], fill(part(&memory, 8, 4))).unwrap();
    assert!(matches!(graph.check().findings[..], [Hazard::EndlessLoop { node, .. }] if node == repeat.key()));
    let last = body.nodes().remove(0);
    body.add(&[&last], fill(part(&memory, 0, 4))).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn a_loop_whose_condition_no_kernel_can_set_is_found() {
    let (graph, _) = setup();
    let never = graph.condition(None);
    let forever = graph.condition(Some(1));
    let looped = |condition| spec(ConditionalForm::While, Test::Condition(condition));
    graph.add_conditional(&[], looped(never.key())).unwrap();
    assert!(graph.check().is_empty(), "it never begins");
    let endless = graph.add_conditional(&[], looped(forever.key())).unwrap();
    assert!(
        matches!(graph.check().findings[..], [Hazard::EndlessLoop { node, .. }] if node == endless.key())
    );
}

#[test]
fn a_kernel_that_sets_a_condition_beside_the_conditional_is_found() {
    let device = NullDevice::new();
    let graph = Graph::new(&device);
    let condition = graph.condition(Some(1));
    let kernel = FakeKernel::new("set").params([8]).on(&device);
    let setter = |graph: &Graph, before: &[&Node]| {
        let handle = ArgValue::Pointer(PointerValue::Condition(condition.key()));
        let args = KernelArgs::pack(kernel.name(), kernel.params(), [handle]).unwrap();
        // SAFETY: nothing runs on this device.
        let op = unsafe { KernelOp::new(kernel.clone(), LaunchConfig::one(), args) };
        graph.add(before, Operation::Kernel(Launch::new(op))).unwrap()
    };
    let looped = spec(ConditionalForm::While, Test::Condition(condition.key()));
    let first = setter(&graph, &[]).named("first").unwrap();
    let repeat = graph.add_conditional(&[&first], looped).unwrap().named("repeat").unwrap();
    setter(&repeat.bodies().unwrap()[0], &[]);
    setter(&repeat.bodies().unwrap()[0], &[]);
    setter(&graph, &[&repeat]);
    assert!(graph.check().is_empty(), "before, inside and after: {}", graph.check());
    let beside = setter(&graph, &[]).named("beside").unwrap();
    let found = graph.check();
    assert_eq!(edges_missing(&graph), [(beside.key(), repeat.key())]);
    assert!(found.to_string().contains("beside can set the condition that repeat tests"), "{found}");
    graph.add_edge(&beside, &repeat, EdgeKind::Full).unwrap();
    assert!(graph.check().is_empty());
}

#[test]
fn copies_and_fills_use_no_more_of_their_memory_than_they_say() {
    // Strips of a matrix, each given the rest of the matrix as its region, and single rows.
    let strips = |memory: &Arc<dyn Allocation>, first_row: u64, column: u64, rows: u64, width: u64| {
        let at = first_row * 64 + column;
        let dst = part(memory, at, 4096 - at);
        Operation::Memset(Arc::new(MemsetOp {
            dst,
            value: 0,
            element_size: 1,
            width,
            height: rows,
            pitch: 64,
        }))
    };
    let (graph, memory) = setup();
    graph.add(&[], strips(&memory, 0, 0, 8, 64)).unwrap();
    graph.add(&[], strips(&memory, 8, 0, 8, 32)).unwrap();
    graph.add(&[], strips(&memory, 8, 32, 8, 32)).unwrap();
    graph.add(&[], strips(&memory, 16, 0, 1, 48)).unwrap();
    graph.add(&[], strips(&memory, 16, 48, 1, 16)).unwrap();
    assert!(graph.check().is_empty(), "{}", graph.check());
    graph.add(&[], strips(&memory, 15, 40, 2, 16)).unwrap();
    assert_eq!(edges_missing(&graph).len(), 3, "{}", graph.check());
}

#[test]
fn boxes_of_one_volume_that_do_not_meet_need_no_order() {
    // A volume of 4 planes of 8 rows of 16 bytes, cut in half along each axis.
    let (graph, memory) = setup();
    let corner = |x: u64, y: u64, z: u64| {
        let at = (z * 8 + y) * 16 + x;
        let dst = CopySide { region: part(&memory, at, 512 - at), pitch: 16, rows: 8 };
        let src = CopySide { region: part(&memory, 1024, 64), pitch: 8, rows: 4 };
        Operation::Memcpy(Arc::new(MemcpyOp { dst, src, width: 8, height: 4, depth: 2 }))
    };
    for index in 0..8 {
        graph.add(&[], corner((index & 1) * 8, (index >> 1 & 1) * 4, (index >> 2) * 2)).unwrap();
    }
    assert!(graph.check().is_empty(), "{}", graph.check());
    graph.add(&[], corner(4, 2, 1)).unwrap();
    assert_eq!(edges_missing(&graph).len(), 8, "a box in the middle meets all eight");
}

/// Numbers that a seed determines.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

struct Model {
    /// What each node reads and writes, as ranges.
    uses: Vec<Vec<(bool, u64, u64)>>,
    edges: Vec<(usize, usize)>,
}

impl Model {
    fn random(random: &mut Random) -> Self {
        let count = 2 + random.below(14) as usize;
        let mut model = Model { uses: Vec::new(), edges: Vec::new() };
        for node in 0..count {
            let range = |random: &mut Random| (random.below(6) * 16, 16 * (1 + random.below(3)));
            let (at, bytes) = range(random);
            let mut uses = vec![(true, at, bytes)];
            if random.below(2) == 0 {
                // The source of a copy lies in the other half.
                uses.push((false, 2048 + random.below(3) * 16, bytes));
            }
            if random.below(4) == 0 {
                uses[0].1 += 2048;
                uses.truncate(1);
            }
            model.uses.push(uses);
            for earlier in 0..node {
                if random.below(3) == 0 {
                    model.edges.push((earlier, node));
                }
            }
        }
        model
    }

    fn build(&self) -> (Graph, Vec<Node>) {
        let (graph, memory) = setup();
        let mut nodes: Vec<Node> = Vec::new();
        for (index, uses) in self.uses.iter().enumerate() {
            let before: Vec<Node> =
                self.edges.iter().filter(|edge| edge.1 == index).map(|edge| nodes[edge.0].clone()).collect();
            let (_, at, bytes) = uses[0];
            let operation = match uses.get(1) {
                Some(&(_, from, _)) => copy(part(&memory, at, bytes), part(&memory, from, bytes)),
                None => fill(part(&memory, at, bytes)),
            };
            let before: Vec<&Node> = before.iter().collect();
            nodes.push(graph.add(&before, operation).unwrap());
        }
        (graph, nodes)
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        from == to || self.edges.iter().any(|&(first, second)| first == from && self.reaches(second, to))
    }

    fn conflict(&self, one: usize, other: usize) -> bool {
        self.uses[one]
            .iter()
            .any(|a| self.uses[other].iter().any(|b| (a.0 || b.0) && a.1 < b.1 + b.2 && b.1 < a.1 + a.2))
    }

    /// All pairs that need an edge, by comparing each with each.
    fn missing(&self) -> Vec<(usize, usize)> {
        let count = self.uses.len();
        let pairs = (0..count).flat_map(|other| (0..other).map(move |one| (one, other)));
        pairs.filter(|&(one, other)| self.conflict(one, other) && !self.reaches(one, other)).collect()
    }
}

#[test]
fn random_graphs_have_a_finding_exactly_where_a_pair_lacks_an_order() {
    let mut random = Random(1);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..2000 {
        let model = Model::random(&mut random);
        let (graph, nodes) = model.build();
        let expected = model.missing();
        let found = edges_missing(&graph);
        assert_eq!(found.is_empty(), expected.is_empty());
        for (from, to) in &found {
            let index = |key| nodes.iter().position(|node| node.key() == key).expect("a node");
            assert!(expected.contains(&(index(*from), index(*to))));
        }
        if expected.is_empty() { right += 1 } else { wrong += 1 }
    }
    assert!(right > 100 && wrong > 100, "{right} right, {wrong} wrong");
}

#[test]
fn an_edge_that_is_taken_out_of_a_right_graph_is_named_whenever_it_was_needed() {
    let mut random = Random(7);
    let mut needed = 0;
    let mut tried = 0;
    while tried < 1000 {
        let mut model = Model::random(&mut random);
        // Every conflict gets an edge, so that the graph is right.
        for pair in model.missing() {
            model.edges.push(pair);
        }
        if model.edges.is_empty() {
            continue;
        }
        tried += 1;
        let (one, other) = model.edges.swap_remove(random.below(model.edges.len() as u64) as usize);
        model.edges.retain(|&edge| edge != (one, other));
        let (graph, nodes) = model.build();
        let found = edges_missing(&graph);
        if model.conflict(one, other) && !model.reaches(one, other) {
            needed += 1;
            assert!(found.contains(&(nodes[one].key(), nodes[other].key())), "{found:?}");
        }
        assert_eq!(found.is_empty(), model.missing().is_empty());
    }
    assert!(needed > 100, "{needed}");
}

/// Forks and joins of chains, in which most conflicts are far apart.
#[test]
fn far_apart_nodes_are_ordered_exactly_where_a_path_leads_from_one_to_the_other() {
    let mut random = Random(3);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..500 {
        let count = 20 + random.below(60) as usize;
        let mut model = Model { uses: Vec::new(), edges: Vec::new() };
        for node in 0..count {
            model.uses.push(vec![(true, 16 * random.below(240), 16)]);
            // Mostly chains; now and then a fork, a join or a start.
            match random.below(16) {
                0 => {}
                1 | 2 if node > 1 => {
                    let (one, other) =
                        (random.below(node as u64) as usize, random.below(node as u64) as usize);
                    model.edges.push((one, node));
                    if one != other {
                        model.edges.push((other, node));
                    }
                }
                3 if node > 0 => model.edges.push((random.below(node as u64) as usize, node)),
                _ if node > 0 => model.edges.push((node - 1, node)),
                _ => {}
            }
        }
        let (graph, nodes) = model.build();
        let expected = model.missing();
        let found = edges_missing(&graph);
        for (from, to) in &found {
            let index = |key| nodes.iter().position(|node| node.key() == key).expect("a node");
            assert!(expected.contains(&(index(*from), index(*to))));
        }
        assert_eq!(found.is_empty(), expected.is_empty());
        if expected.is_empty() { right += 1 } else { wrong += 1 }
    }
    assert!(right > 20 && wrong > 20, "{right} right, {wrong} wrong");
}

#[test]
fn a_long_chain_whose_nodes_all_use_what_was_made_first_is_looked_at_whole() {
    // 20,000 uploads, joined; then a chain of which each node reads one of them and the first.
    let device = NullDevice::new();
    let memory = device.allocate(20_001 * 16, MemoryKind::Device).expect("memory");
    let graph = Graph::new(&device);
    let uploads: Vec<Node> =
        (0..20_000).map(|index| graph.add(&[], fill(part(&memory, index * 16, 16))).unwrap()).collect();
    let mut last = graph.add(&uploads.iter().collect::<Vec<_>>(), Operation::Empty).unwrap();
    for index in 0..20_000 {
        let (dst, src) = (part(&memory, 320_000, 8), part(&memory, index * 16, 8));
        last = graph.add(&[&last], copy(dst, src)).unwrap();
    }
    assert!(graph.check().is_empty() && graph.check().complete, "{}", graph.check());
}

#[test]
fn a_graph_of_a_hundred_thousand_nodes_is_looked_at_whole() {
    let (graph, memory) = setup();
    let start = graph.add(&[], fill(part(&memory, 0, 4096))).unwrap();
    let mut ends = Vec::new();
    for lane in 0..256 {
        let mut last = start.clone();
        for _ in 0..390 {
            last = graph.add(&[&last], fill(part(&memory, lane * 16, 16))).unwrap();
        }
        ends.push(last);
    }
    let ends: Vec<&Node> = ends.iter().collect();
    graph.add(&ends, fill(part(&memory, 0, 4096))).unwrap();
    assert!(graph.check().is_empty() && graph.check().complete);
}

#[test]
fn nodes_that_all_write_the_same_memory_beside_each_other_are_not_all_compared() {
    let (graph, memory) = setup();
    for _ in 0..60_000 {
        graph.add(&[], fill(part(&memory, 0, 4))).unwrap();
    }
    let found = graph.check();
    assert_eq!((found.findings.len(), found.complete), (100, false));
    assert!(found.more > 10_000, "{}", found.more);
}
