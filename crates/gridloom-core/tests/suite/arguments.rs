//! Changing single arguments of the kernels of an executable.

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::executable::{Change, Part, operations_before};
use gridloom_core::graph::{Graph, Node, NodeKey};
use gridloom_core::memory::Region;
use gridloom_core::null::{Call, CallKind, FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Executable};

use crate::common::*;

/// Two launches of a kernel of an address and a word, on one block of memory.
struct Fixture {
    device: NullDevice,
    kernel: Arc<dyn Kernel>,
    memory: Arc<dyn Allocation>,
    graph: Graph,
    nodes: [Node; 2],
    executable: Executable,
}

fn fixture() -> Fixture {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("store").params([8, 4]).on(&device);
    let memory = buffer(&device, 256);
    let launch = || launch_op(&kernel, [at(&memory), word(0)]);
    let first = graph.add(&[], launch()).unwrap();
    let second = graph.add(&[&first], launch()).unwrap();
    let executable = graph.instantiate().unwrap();
    device.take_calls();
    Fixture { device, kernel, memory, graph, nodes: [first, second], executable }
}

fn at(memory: &Arc<dyn Allocation>) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(Region::whole(memory.clone())))
}

fn word(value: u32) -> ArgValue {
    bytes_arg(&value.to_ne_bytes())
}

fn change(node: &Node, index: u32, value: ArgValue) -> Change {
    // SAFETY: kernels of the null device never run.
    unsafe { Change::argument(node.key(), index, value) }
}

impl Fixture {
    /// Memory and word that a node is given now.
    fn args(&self, node: usize) -> (ArgValue, u32) {
        args_of(&self.executable.node(&self.nodes[node]).unwrap().operation())
    }
}

fn args_of(operation: &Operation) -> (ArgValue, u32) {
    let Operation::Kernel(launch) = operation else { panic!("a kernel node") };
    let args = launch.args();
    let pointer = args.pointers_in(0).next().unwrap().value.clone();
    if let PointerValue::Region(region) = &pointer
        && let gridloom_core::memory::Base::Allocation(memory) = &region.base
    {
        assert_eq!(args.value(0).unwrap(), (memory.address() + region.offset).to_ne_bytes());
    }
    (ArgValue::Pointer(pointer), u32::from_ne_bytes(args.value(1).unwrap().try_into().unwrap()))
}

fn updated(device: &NullDevice) -> Vec<Vec<NodeKey>> {
    let calls = device.take_calls().into_iter();
    calls.filter_map(|call| if let Call::Update { nodes, .. } = call { Some(nodes) } else { None }).collect()
}

#[test]
fn arguments_of_several_nodes_are_exchanged_in_one_step() {
    let fixture = fixture();
    let other = buffer(&fixture.device, 256);
    let [first, second] = &fixture.nodes;
    let mut changes = [change(first, 0, at(&other)), change(first, 1, word(1)), change(second, 1, word(2))];
    fixture.executable.change(&mut changes).unwrap();
    assert_eq!(fixture.args(0), (at(&other), 1));
    assert_eq!(fixture.args(1), (at(&fixture.memory), 2));
    assert_eq!(updated(&fixture.device), [[first.key(), second.key()]]);
    let replaced = changes.iter().map(|change| match change.part() {
        Part::Argument(_, value) => value.clone(),
        Part::Operation(_) => panic!("only arguments were replaced"),
    });
    assert_eq!(replaced.collect::<Vec<_>>(), [at(&fixture.memory), word(0), word(0)]);
}

#[test]
fn the_graph_and_other_executables_keep_their_arguments() {
    let fixture = fixture();
    let other = fixture.graph.instantiate().unwrap();
    let seen = fixture.executable.node(&fixture.nodes[0]).unwrap().operation();
    for value in [1, 2] {
        fixture.executable.change(&mut [change(&fixture.nodes[0], 1, word(value))]).unwrap();
    }
    assert_eq!(fixture.args(0).1, 2);
    assert_eq!(args_of(&fixture.nodes[0].operation().unwrap()).1, 0);
    assert_eq!(args_of(&other.node(&fixture.nodes[0]).unwrap().operation()).1, 0);
    assert_eq!(args_of(&seen).1, 0);
}

#[test]
fn a_backend_that_fails_leaves_arguments_and_changes_as_they_were() {
    let fixture = fixture();
    let other = buffer(&fixture.device, 256);
    let [first, second] = &fixture.nodes;
    let mut changes = [change(first, 1, word(1)), change(first, 1, word(2)), change(second, 0, at(&other))];
    fixture.device.fail(CallKind::Update, 1, ErrorKind::Driver);
    assert_error(fixture.executable.change(&mut changes), ErrorKind::Driver, &[]);
    assert_eq!(fixture.args(0), (at(&fixture.memory), 0));
    assert_eq!(fixture.args(1), (at(&fixture.memory), 0));
    fixture.executable.change(&mut changes).unwrap();
    assert_eq!((fixture.args(0).1, fixture.args(1).0), (2, at(&other)));
}

#[test]
fn one_argument_that_does_not_fit_changes_nothing() {
    let fixture = fixture();
    let elsewhere = buffer(&NullDevice::new(), 256);
    let past = Region { offset: 200, bytes: 100, ..Region::whole(fixture.memory.clone()) };
    let past = ArgValue::Pointer(PointerValue::Region(past));
    let cases = [
        (1, bytes_arg(&[0; 8]), ErrorKind::ParameterMismatch, "parameter 1 of kernel store has 4 bytes"),
        (2, word(1), ErrorKind::ParameterMismatch, "no parameter 2"),
        (0, at(&elsewhere), ErrorKind::WrongDevice, "argument 0 of store"),
        (0, past, ErrorKind::InvalidArgument, "argument 0 of store"),
    ];
    for (index, value, kind, said) in cases {
        let [first, second] = &fixture.nodes;
        let mut changes = [change(first, 1, word(7)), change(second, index, value)];
        let outcome = fixture.executable.change(&mut changes);
        assert_error(outcome, kind, &["kernel#1", said]);
        assert_eq!((fixture.args(0).1, fixture.args(1).1), (0, 0));
    }
    assert_eq!(fixture.device.count(CallKind::Update), 0);
}

#[test]
fn an_argument_may_become_one_of_another_kind() {
    let fixture = fixture();
    let address = bytes_arg(&7u64.to_ne_bytes());
    for (value, pointers) in [(address, 0), (at(&fixture.memory), 1)] {
        fixture.executable.change(&mut [change(&fixture.nodes[0], 0, value)]).unwrap();
        let operation = fixture.executable.node(&fixture.nodes[0]).unwrap().operation();
        let Operation::Kernel(launch) = operation else { panic!("a kernel node") };
        assert_eq!(launch.args().pointers.len(), pointers);
    }
}

#[test]
fn memory_of_an_alloc_node_is_given_only_where_it_is_ordered_after_the_alloc_node() {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("store").params([8, 4]).on(&device);
    let memory = buffer(&device, 256);
    let early = graph.add(&[], launch_op(&kernel, [at(&memory), word(0)])).unwrap();
    let alloc = alloc(&graph, &[&early]);
    let late = graph.add(&[&alloc], launch_op(&kernel, [at(&memory), word(0)])).unwrap();
    free(&graph, &[&late], &alloc).unwrap();
    let executable = graph.instantiate().unwrap();
    let provided = || ArgValue::Pointer(PointerValue::Region(memory_of(&alloc)));
    let given = |node: &Node| args_of(&executable.node(node).unwrap().operation()).0;
    let mut both = [change(&late, 0, provided()), change(&early, 0, provided())];
    assert_error(executable.change(&mut both), ErrorKind::Unordered, &[]);
    assert_eq!((given(&early), given(&late)), (at(&memory), at(&memory)));
    executable.change(&mut [change(&late, 0, provided())]).unwrap();
    assert_eq!(given(&late), provided());
}

#[test]
fn memory_that_an_argument_replaced_is_with_the_change_and_goes_with_it() {
    let fixture = fixture();
    let node = &fixture.nodes[0];
    let before = fixture.device.live_allocations();
    fixture.executable.change(&mut [change(node, 0, at(&buffer(&fixture.device, 256)))]).unwrap();
    assert_eq!(fixture.device.live_allocations(), before + 1);
    let mut back = [change(node, 0, at(&fixture.memory))];
    fixture.executable.change(&mut back).unwrap();
    assert_eq!(fixture.device.live_allocations(), before + 1);
    drop(back);
    assert_eq!(fixture.device.live_allocations(), before);
}

#[test]
fn what_a_node_did_before_each_of_several_changes_can_be_told() {
    let fixture = fixture();
    let [first, second] = &fixture.nodes;
    let other = launch_op(&fixture.kernel, [at(&fixture.memory), word(5)]);
    let mut changes = [
        change(first, 1, word(1)),
        Change::operation(first.key(), other),
        change(first, 1, word(6)),
        change(second, 1, word(7)),
    ];
    fixture.executable.change(&mut changes).unwrap();
    let before = operations_before(&fixture.executable.definition(), &changes);
    let told: Vec<(NodeKey, u32)> = before.iter().map(|(node, op)| (*node, args_of(op).1)).collect();
    assert_eq!(told, [(first.key(), 0), (first.key(), 1), (first.key(), 5), (second.key(), 0)]);
}

#[test]
fn all_arguments_of_a_node_are_changed_only_where_it_launches_that_kernel() {
    let fixture = fixture();
    let node = fixture.executable.node(&fixture.nodes[0]).unwrap();
    let stranger = FakeKernel::new("stranger").params([8, 4]).on(&fixture.device);
    let mut all = [change(&fixture.nodes[0], 0, at(&fixture.memory)), change(&fixture.nodes[0], 1, word(3))];
    let refused = node.change_args(&stranger, &mut all);
    assert_error(refused, ErrorKind::InvalidArgument, &["store", "stranger"]);
    let too_few = node.change_args(&fixture.kernel, &mut all[1..]);
    assert_error(too_few, ErrorKind::ParameterMismatch, &["takes 2 parameters, 1"]);
    assert_eq!(fixture.args(0).1, 0);
    node.change_args(&fixture.kernel, &mut all).unwrap();
    assert_eq!(fixture.args(0).1, 3);
}
