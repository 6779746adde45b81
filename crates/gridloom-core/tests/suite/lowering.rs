//! The steps of lowering that backends share: flattening, addresses, and conditionals that the host
//! decides.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use gridloom_core::graph::{ConditionKey, EdgeKind, Graph, Node, NodeKey};
use gridloom_core::lower::*;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::NullDevice;
use gridloom_core::op::*;
use gridloom_core::{Definition, Error, ErrorKind, Result};

use crate::common::*;

fn flat(graph: &Graph) -> FlatGraph {
    let definition = graph.definition();
    Flattener::new(&definition).flatten(definition.root())
}

/// The number of the step of a node.
fn number(flat: &FlatGraph, node: &Node) -> usize {
    let is_its = |step: &FlatStep| step.origin == node.key() && !step.is_join;
    flat.steps().iter().position(is_its).expect("the node has a step")
}

/// The nodes at whose steps the edges to the step of `node` start.
fn waits_for(flat: &FlatGraph, node: &Node) -> Vec<NodeKey> {
    let edges = flat.predecessors(number(flat, node)).iter();
    let mut nodes: Vec<NodeKey> = edges.map(|edge| flat.steps()[edge.step as usize].origin).collect();
    nodes.sort();
    nodes
}

fn keys(nodes: &[&Node]) -> Vec<NodeKey> {
    let mut keys: Vec<NodeKey> = nodes.iter().map(|node| node.key()).collect();
    keys.sort();
    keys
}

#[test]
fn an_empty_graph_has_no_steps() {
    let (_, _, graph) = setup();
    assert!(flat(&graph).is_empty());
}

#[test]
fn a_chain_keeps_its_edges() {
    let (device, _, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let b = kernel(&device, &graph, &[&a]);
    let flat = flat(&graph);
    assert_eq!((waits_for(&flat, &a), waits_for(&flat, &b)), (vec![], keys(&[&a])));
}

#[test]
fn nodes_that_only_order_others_become_edges() {
    let (device, _, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let b = kernel(&device, &graph, &[]);
    let join = empty(&graph, &[&a, &b]);
    let memory = alloc(&graph, &[&join]);
    let c = kernel(&device, &graph, &[&memory]);
    let freed = free(&graph, &[&c], &memory).unwrap();
    let d = kernel(&device, &graph, &[&freed]);
    let flat = flat(&graph);
    assert_eq!(flat.len(), 4);
    assert_eq!((waits_for(&flat, &c), waits_for(&flat, &d)), (keys(&[&a, &b]), keys(&[&c])));
}

#[test]
fn a_join_of_several_to_several_stays_a_step() {
    let (device, _, graph) = setup();
    let before: Vec<Node> = (0..4).map(|_| kernel(&device, &graph, &[])).collect();
    let join = graph.join(&before).unwrap();
    for _ in 0..4 {
        kernel(&device, &graph, &[&join]);
    }
    let flat = flat(&graph);
    assert_eq!((flat.len(), flat.edges().len()), (9, 8));
    assert_eq!(flat.steps()[4], FlatStep { origin: join.key(), is_join: true });
}

#[test]
fn a_step_that_is_reached_in_two_ways_is_waited_for_once() {
    let (device, _, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let (left, right) = (empty(&graph, &[&a]), empty(&graph, &[&a]));
    let b = kernel(&device, &graph, &[&left, &right]);
    let join = empty(&graph, &[&left, &right]);
    let after = [kernel(&device, &graph, &[&join]), kernel(&device, &graph, &[&join])];
    let flat = flat(&graph);
    assert_eq!(flat.len(), 4, "the join has one step before it and needs none of its own");
    for node in after.iter().chain([&b]) {
        assert_eq!(waits_for(&flat, node), keys(&[&a]));
    }
}

#[test]
fn a_long_chain_of_joins_takes_as_many_edges_as_it_has_nodes() {
    const LINKS: usize = 20_000;
    let (device, _, graph) = setup();
    let mut link = empty(&graph, &[]);
    for index in 0..LINKS {
        let beside = kernel(&device, &graph, &[]);
        // The long list comes first here and second there.
        link =
            if index % 2 == 0 { empty(&graph, &[&link, &beside]) } else { empty(&graph, &[&beside, &link]) };
    }
    let end = kernel(&device, &graph, &[&link]);
    let flat = flat(&graph);
    assert_eq!((flat.len(), flat.edges().len()), (LINKS + 1, LINKS));
    assert_eq!(waits_for(&flat, &end).len(), LINKS);
}

#[test]
fn a_child_dissolves_between_what_is_before_and_after_it() {
    let (device, _, graph) = setup();
    let inner = Graph::new(&device);
    let x = kernel(&device, &inner, &[]);
    kernel(&device, &inner, &[&x]);
    let before = kernel(&device, &graph, &[]);
    let child = graph.add_child(&[&before], &inner).unwrap();
    let after = kernel(&device, &graph, &[&child]);
    let inside = body(&child).nodes();
    let flat = flat(&graph);
    assert_eq!(flat.len(), 4);
    assert_eq!(waits_for(&flat, &inside[0]), keys(&[&before]));
    assert_eq!(waits_for(&flat, &inside[1]), keys(&[&inside[0]]));
    assert_eq!(waits_for(&flat, &after), keys(&[&inside[1]]));
}

#[test]
fn all_first_nodes_of_a_child_wait_for_all_nodes_before_it() {
    let (device, _, graph) = setup();
    let inner = Graph::new(&device);
    kernel(&device, &inner, &[]);
    kernel(&device, &inner, &[]);
    let before = [kernel(&device, &graph, &[]), kernel(&device, &graph, &[])];
    let child = graph.add_child(&[&before[0], &before[1]], &inner).unwrap();
    let after = kernel(&device, &graph, &[&child]);
    let inside = body(&child).nodes();
    let flat = flat(&graph);
    assert_eq!(flat.len(), 6, "a join lies before the child and none after it");
    for first in &inside {
        assert_eq!(waits_for(&flat, first), keys(&[&child]));
    }
    assert_eq!(waits_for(&flat, &after), keys(&[&inside[0], &inside[1]]));
}

#[test]
fn an_empty_child_is_an_edge() {
    let (device, _, graph) = setup();
    let before = kernel(&device, &graph, &[]);
    let child = graph.add_child(&[&before], &Graph::new(&device)).unwrap();
    let after = kernel(&device, &graph, &[&child]);
    assert_eq!(waits_for(&flat(&graph), &after), keys(&[&before]));
}

#[test]
fn a_conditional_is_one_step_and_its_bodies_are_flattened_on_their_own() {
    let (device, _, graph) = setup();
    let before = kernel(&device, &graph, &[]);
    let choice = conditional(&graph, &[&before], ConditionalForm::IfElse);
    let bodies = choice.bodies().unwrap();
    let inside = kernel(&device, &bodies[0], &[]);
    let definition = graph.definition();
    let mut flattener = Flattener::new(&definition);
    let outer = flattener.flatten(definition.root());
    assert_eq!((outer.len(), waits_for(&outer, &choice)), (2, keys(&[&before])));
    assert_eq!(flattener.flatten(bodies[0].key()).nodes().collect::<Vec<_>>(), [inside.key()]);
    assert!(flattener.flatten(bodies[1].key()).is_empty());
}

#[test]
fn a_node_left_out_keeps_the_order_of_those_around_it() {
    let (device, _, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let b = kernel(&device, &graph, &[&a]);
    let c = kernel(&device, &graph, &[&b]);
    let definition = graph.definition();
    let disabled = FxHashSet::from_iter([b.key()]);
    let flat = Flattener::new(&definition).without(&disabled).flatten(definition.root());
    assert_eq!((flat.len(), waits_for(&flat, &c)), (2, keys(&[&a])));
}

#[test]
fn a_programmatic_edge_stays_one_unless_its_kernel_is_left_out() {
    let (device, _, graph) = setup();
    let first = memset(&graph, &[], Region::whole(buffer(&device, 256))).unwrap();
    let early = kernel(&device, &graph, &[&first]);
    let late = kernel(&device, &graph, &[]);
    graph.add_edge(&early, &late, EdgeKind::Programmatic).unwrap();
    let definition = graph.definition();
    let kinds = |disabled: &[&Node]| {
        let disabled = disabled.iter().map(|node| node.key()).collect();
        let flat = Flattener::new(&definition).without(&disabled).flatten(definition.root());
        let edges = flat.predecessors(number(&flat, &late));
        edges.iter().map(|edge| (edge.step, edge.kind)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&[]), [(1, EdgeKind::Programmatic)]);
    // The fill cannot release a successor early.
    assert_eq!(kinds(&[&early]), [(0, EdgeKind::Full)]);
}

#[test]
fn a_full_edge_includes_a_programmatic_one() {
    let (device, _, graph) = setup();
    let a = kernel(&device, &graph, &[]);
    let join = empty(&graph, &[&a]);
    let b = kernel(&device, &graph, &[&join]);
    graph.add_edge(&a, &b, EdgeKind::Programmatic).unwrap();
    let flat = flat(&graph);
    assert_eq!(flat.predecessors(1), [FlatEdge { step: 0, kind: EdgeKind::Full }]);
}

/// Addresses for one alloc node and all conditions.
struct Addresses(NodeKey);

impl Locate for Addresses {
    fn alloc_node(&self, alloc: NodeKey) -> Option<Location> {
        (alloc == self.0).then_some(Location { address: 0x1000, kind: MemoryKind::Managed })
    }

    fn condition(&self, _: ConditionKey) -> Option<u64> {
        Some(77)
    }
}

#[test]
fn a_region_lies_at_its_offset_in_its_memory() {
    let (device, _, graph) = setup();
    let memory = buffer(&device, 256);
    let node = alloc(&graph, &[]);
    let bytes = Region::from_bytes(vec![1, 2, 3, 4]);
    let places = Addresses(node.key());
    let at = |region: Region| places.locate(&region.part(2, 2).unwrap()).unwrap();
    let location = at(Region::whole(memory.clone()));
    assert_eq!(location, Location { address: memory.address() + 2, kind: MemoryKind::Device });
    assert_eq!(at(memory_of(&node)), Location { address: 0x1002, kind: MemoryKind::Managed });
    assert_eq!(at(bytes).kind, MemoryKind::Host);
}

#[test]
fn memory_of_an_alloc_node_has_no_place_outside_of_its_graph() {
    let (_, _, graph) = setup();
    let region = memory_of(&alloc(&graph, &[]));
    assert_error(OnStream.locate(&region), ErrorKind::InvalidHandle, &["not part of this graph"]);
}

#[test]
fn addresses_and_handles_are_filled_into_kernel_arguments() {
    let (device, _, graph) = setup();
    let (node, condition) = (alloc(&graph, &[]), graph.condition(None));
    let memory = buffer(&device, 256);
    let pointer = |region| ArgValue::Pointer(PointerValue::Region(region));
    let all = [
        bytes_arg(&5u64.to_ne_bytes()),
        pointer(memory_of(&node)),
        condition_arg(&condition),
        pointer(Region::whole(memory.clone())),
    ];
    let args = KernelArgs::pack("step", None, all).unwrap();
    assert!(!has_all_addresses(&args));
    let filled = fill_in_addresses(&args, &Addresses(node.key())).unwrap();
    let words: Vec<u64> = filled.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [5, 0x1000, 77, memory.address()]);
    assert_error(fill_in_addresses(&args, &OnStream), ErrorKind::InvalidHandle, &["not part of this graph"]);
}

#[test]
fn arguments_of_memory_outside_of_graphs_have_all_their_addresses() {
    let device = NullDevice::new();
    let region = Region::whole(buffer(&device, 256));
    let args = KernelArgs::pack("step", None, [ArgValue::Pointer(PointerValue::Region(region))]).unwrap();
    assert!(has_all_addresses(&args));
    assert_eq!(fill_in_addresses(&args, &OnStream).unwrap(), args.bytes);
}

/// Bodies that note what they are asked for. The tested values are given.
#[derive(Default)]
struct Script {
    values: VecDeque<u32>,
    ran: Vec<usize>,
    fails_at: Option<usize>,
    passes: Option<u64>,
}

impl Bodies for Script {
    fn test(&mut self) -> Result<u32> {
        Ok(self.values.pop_front().expect("a value to test"))
    }

    fn run(&mut self, body: usize) -> Result<()> {
        if self.fails_at == Some(self.ran.len()) {
            return Err(Error::new(ErrorKind::Driver, "the body failed"));
        }
        self.ran.push(body);
        Ok(())
    }

    fn passed(&mut self, passes: u64) {
        self.passes = Some(passes);
    }
}

fn conditional_op(form: ConditionalForm, test: Test) -> ConditionalOp {
    ConditionalOp { form, test, test_first: true, max_passes: None, bodies: Default::default() }
}

/// A test of a value in memory.
fn value() -> Test {
    Test::Value(Region::from_bytes(vec![0; 4]))
}

fn run(op: &ConditionalOp, count: usize, values: &[u32]) -> (Vec<usize>, u64) {
    let mut script = Script { values: values.iter().copied().collect(), ..Script::default() };
    ConditionalRule::new(op).run(count, &mut script).unwrap();
    assert!(script.values.is_empty(), "every value is tested");
    (script.ran, script.passes.expect("the number of passes is told"))
}

#[test]
fn the_value_chooses_the_body() {
    use ConditionalForm::*;
    let rows: [(ConditionalForm, usize, u32, &[usize]); 8] = [
        (If, 1, 0, &[]),
        (If, 1, 7, &[0]),
        (IfElse, 2, 0, &[1]),
        (IfElse, 2, 7, &[0]),
        (Switch, 3, 0, &[0]),
        (Switch, 3, 2, &[2]),
        (Switch, 3, 3, &[]),
        (Switch, 3, u32::MAX, &[]),
    ];
    for (form, count, tested, ran) in rows {
        let outcome = run(&conditional_op(form, value()), count, &[tested]);
        assert_eq!(outcome, (ran.to_vec(), ran.len() as u64), "{form:?} of {tested}");
    }
}

#[test]
fn a_loop_runs_while_the_value_is_not_0() {
    let op = conditional_op(ConditionalForm::While, value());
    assert_eq!(run(&op, 1, &[0]), (vec![], 0));
    assert_eq!(run(&op, 1, &[9, 1, 0]), (vec![0, 0], 2));
}

#[test]
fn a_loop_that_tests_last_runs_once_before_its_first_test() {
    let op = ConditionalOp { test_first: false, ..conditional_op(ConditionalForm::While, value()) };
    assert_eq!(run(&op, 1, &[0]), (vec![0], 1));
    assert_eq!(run(&op, 1, &[1, 0]), (vec![0, 0], 2));
}

#[test]
fn a_limit_ends_a_loop_without_another_test() {
    let limited = |test_first| ConditionalOp {
        test_first,
        max_passes: Some(2),
        ..conditional_op(ConditionalForm::While, value())
    };
    assert_eq!(run(&limited(true), 1, &[1, 1]), (vec![0, 0], 2));
    assert_eq!(run(&limited(false), 1, &[1]), (vec![0, 0], 2));
}

#[test]
fn a_counted_loop_tests_nothing() {
    let op = conditional_op(ConditionalForm::While, Test::Count(3));
    assert!(!ConditionalRule::new(&op).reads_value());
    assert_eq!(run(&op, 1, &[]), (vec![0; 3], 3));
    assert_eq!(run(&ConditionalOp { max_passes: Some(2), ..op }, 1, &[]), (vec![0; 2], 2));
    for test_first in [false, true] {
        let none = ConditionalOp { test_first, ..conditional_op(ConditionalForm::While, Test::Count(0)) };
        assert_eq!(run(&none, 1, &[]), (vec![], 0));
    }
}

#[test]
fn a_failing_body_ends_the_loop_and_does_not_count() {
    let mut script = Script { fails_at: Some(2), ..Script::default() };
    let op = conditional_op(ConditionalForm::While, Test::Count(5));
    assert_error(ConditionalRule::new(&op).run(1, &mut script), ErrorKind::Driver, &["the body failed"]);
    assert_eq!((script.ran.len(), script.passes), (2, Some(2)));
}

#[test]
fn allocations_are_found_in_all_graphs_and_known_to_be_freed() {
    let (device, _, graph) = setup();
    let inner = Graph::new(&device);
    let freed = alloc(&inner, &[]);
    free(&inner, &[&freed], &freed).unwrap();
    let child = graph.add_child(&[], &inner).unwrap();
    let kept = alloc(&graph, &[]);
    let found = Allocations::of(&graph.definition());
    let inside = body(&child).nodes()[0].key();
    assert_eq!(found.nodes.len(), 2);
    assert_eq!(found.outliving().collect::<Vec<_>>(), [kept.key()]);
    assert_eq!(found.freed, FxHashSet::from_iter([inside]));
}

#[test]
fn conditionals_are_listed_outermost_first() {
    let (_, _, graph) = setup();
    let first = conditional(&graph, &[], ConditionalForm::While);
    let inner = conditional(&body(&first), &[], ConditionalForm::If);
    let second = conditional(&graph, &[], ConditionalForm::If);
    let listed: Vec<NodeKey> = conditionals(&graph.definition());
    assert_eq!(listed, [first.key(), second.key(), inner.key()]);
    let none: &Definition = &Graph::new(&NullDevice::new()).definition();
    assert!(conditionals(none).is_empty());
}
