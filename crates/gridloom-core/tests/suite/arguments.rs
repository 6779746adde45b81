//! Changing single arguments of the kernels of an executable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::executable::{ArgWriter, Changes, Replaced};
use gridloom_core::graph::{Graph, Node, NodeKey};
use gridloom_core::memory::Region;
use gridloom_core::null::{Call, CallKind, FakeKernel, NullDevice};
use gridloom_core::op::*;
use gridloom_core::{ErrorKind, Executable, Result};

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

/// Gives arguments of nodes other values, together.
fn change(executable: &Executable, values: &[(&Node, u32, ArgValue)]) -> Result<()> {
    executable.change(|changes| {
        values.iter().try_for_each(|(node, index, value)| {
            // SAFETY: kernels of the null device never run.
            unsafe { changes.argument(node.key(), *index, value) }
        })
    })
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
    let values = [(first, 0, at(&other)), (first, 1, word(1)), (second, 1, word(2))];
    change(&fixture.executable, &values).unwrap();
    assert_eq!(fixture.args(0), (at(&other), 1));
    assert_eq!(fixture.args(1), (at(&fixture.memory), 2));
    assert_eq!(updated(&fixture.device), [[first.key(), second.key()]]);
}

#[test]
fn the_graph_and_other_executables_keep_their_arguments() {
    let fixture = fixture();
    let other = fixture.graph.instantiate().unwrap();
    let seen = fixture.executable.node(&fixture.nodes[0]).unwrap().operation();
    for value in [1, 2] {
        change(&fixture.executable, &[(&fixture.nodes[0], 1, word(value))]).unwrap();
    }
    assert_eq!(fixture.args(0).1, 2);
    assert_eq!(args_of(&fixture.nodes[0].operation().unwrap()).1, 0);
    assert_eq!(args_of(&other.node(&fixture.nodes[0]).unwrap().operation()).1, 0);
    assert_eq!(args_of(&seen).1, 0);
}

#[test]
fn a_backend_that_fails_leaves_arguments_as_they_were() {
    let fixture = fixture();
    let other = buffer(&fixture.device, 256);
    let [first, second] = &fixture.nodes;
    let values = [(first, 1, word(1)), (first, 1, word(2)), (second, 0, at(&other))];
    fixture.device.fail(CallKind::Update, 1, ErrorKind::Driver);
    assert_error(change(&fixture.executable, &values), ErrorKind::Driver, &[]);
    assert_eq!(fixture.args(0), (at(&fixture.memory), 0));
    assert_eq!(fixture.args(1), (at(&fixture.memory), 0));
    change(&fixture.executable, &values).unwrap();
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
        let outcome = change(&fixture.executable, &[(first, 1, word(7)), (second, index, value)]);
        assert_error(outcome, kind, &["kernel#1", said]);
        assert_eq!((fixture.args(0).1, fixture.args(1).1), (0, 0));
    }
    assert_eq!(fixture.device.count(CallKind::Update), 0);
}

#[test]
fn arguments_of_many_bytes_are_as_they_were_after_a_refusal() {
    let (device, _, graph) = setup();
    let kernel = FakeKernel::new("many").params([8; 20]).on(&device);
    let words = |from: u64| (from..from + 20).map(|value| bytes_arg(&value.to_ne_bytes()));
    let nodes = [0, 100].map(|from| graph.add(&[], launch_op(&kernel, words(from))).unwrap());
    let executable = graph.instantiate().unwrap();
    let bytes = |node: &Node| match executable.node(node).unwrap().operation() {
        Operation::Kernel(launch) => launch.args().bytes.to_vec(),
        _ => panic!("a kernel node"),
    };
    let before = nodes.each_ref().map(bytes);
    let new = || bytes_arg(&7u64.to_ne_bytes());
    let refused = [(&nodes[0], 3, new()), (&nodes[1], 19, new()), (&nodes[1], 20, new())];
    assert_error(change(&executable, &refused), ErrorKind::ParameterMismatch, &["no parameter 20"]);
    assert_eq!(nodes.each_ref().map(bytes), before);
    change(&executable, &refused[..2]).unwrap();
    let after = nodes.each_ref().map(bytes);
    assert_eq!((&after[0][24..32], &after[1][152..]), (&7u64.to_ne_bytes()[..], &7u64.to_ne_bytes()[..]));
}

#[test]
fn an_argument_may_become_one_of_another_kind() {
    let fixture = fixture();
    let address = bytes_arg(&7u64.to_ne_bytes());
    for (value, pointers) in [(address, 0), (at(&fixture.memory), 1)] {
        change(&fixture.executable, &[(&fixture.nodes[0], 0, value)]).unwrap();
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
    let both = [(&late, 0, provided()), (&early, 0, provided())];
    assert_error(change(&executable, &both), ErrorKind::Unordered, &[]);
    assert_eq!((given(&early), given(&late)), (at(&memory), at(&memory)));
    change(&executable, &[(&late, 0, provided())]).unwrap();
    assert_eq!(given(&late), provided());
}

#[test]
fn memory_that_an_argument_replaced_goes_at_once_or_with_what_was_replaced() {
    let mut fixture = fixture();
    let node = fixture.nodes[0].key();
    let before = fixture.device.live_allocations();
    for round in 0..2 {
        change(&fixture.executable, &[(&fixture.nodes[0], 0, at(&buffer(&fixture.device, 256)))]).unwrap();
        assert_eq!(fixture.device.live_allocations(), before + 1);
        if round == 0 {
            change(&fixture.executable, &[(&fixture.nodes[0], 0, at(&fixture.memory))]).unwrap();
            assert_eq!(fixture.device.live_allocations(), before);
        }
    }
    let mut replaced = Replaced::default();
    let back = at(&fixture.memory);
    // SAFETY: kernels of the null device never run.
    let write = |changes: &mut Changes<'_>| unsafe { changes.argument(node, 0, &back) };
    fixture.executable.change_exclusively(&mut replaced, write).unwrap();
    assert_eq!(fixture.device.live_allocations(), before + 1);
    drop(replaced);
    assert_eq!(fixture.device.live_allocations(), before);
}

#[test]
fn of_several_changes_of_one_node_the_last_counts() {
    let fixture = fixture();
    let [first, second] = &fixture.nodes;
    let other = buffer(&fixture.device, 256);
    let launch = || launch_op(&fixture.kernel, [at(&other), word(5)]);
    let set = |changes: &mut Changes<'_>, node: &Node, value: u32| {
        // SAFETY: kernels of the null device never run.
        unsafe { changes.argument(node.key(), 1, &word(value)) }
    };
    let all = |changes: &mut Changes<'_>| {
        set(changes, first, 1)?;
        changes.operation(first.key(), launch())?;
        set(changes, first, 6)?;
        set(changes, second, 7)?;
        changes.operation(second.key(), launch())
    };
    fixture.device.fail(CallKind::Update, 1, ErrorKind::Driver);
    assert_error(fixture.executable.change(all), ErrorKind::Driver, &[]);
    assert_eq!([0, 1].map(|node| fixture.args(node)), [0, 1].map(|_| (at(&fixture.memory), 0)));
    fixture.executable.change(all).unwrap();
    assert_eq!([0, 1].map(|node| fixture.args(node)), [(at(&other), 6), (at(&other), 5)]);
}

#[test]
fn a_kernel_with_fewer_pointers_may_replace_one_whose_pointers_just_changed() {
    let Fixture { device, memory, nodes: [node, _], .. } = &fixture();
    let wide = FakeKernel::new("wide").params([8, 8, 8]).on(device);
    let narrow = FakeKernel::new("narrow").params([8, 4]).on(device);
    let graph = Graph::new(device);
    let launch = launch_op(&wide, [at(memory), at(memory), at(memory)]);
    let wide_node = graph.add(&[], launch).unwrap();
    let executable = graph.instantiate().unwrap();
    let others: Vec<_> = (0..4).map(|_| buffer(device, 8)).collect();
    for fails in [true, false] {
        let outcome = executable.change(|changes| {
            // SAFETY: kernels of the null device never run.
            unsafe {
                changes.argument(wide_node.key(), 2, &at(&others[0]))?;
                changes.argument(wide_node.key(), 2, &at(&others[1]))?;
                changes.operation(wide_node.key(), launch_op(&narrow, [at(&others[2]), word(1)]))?;
                changes.argument(wide_node.key(), 0, &at(&others[3]))?;
                changes.argument(if fails { node } else { &wide_node }.key(), 1, &word(2))
            }
        });
        assert_eq!(outcome.is_err(), fails);
        let now = executable.node(&wide_node).unwrap().operation();
        let Operation::Kernel(launch) = &now else { panic!("a kernel node") };
        assert_eq!(launch.kernel().name(), if fails { "wide" } else { "narrow" });
        if !fails {
            assert_eq!(args_of(&now), (at(&others[3]), 2));
        }
    }
    assert!(others[..3].iter().all(|memory| Arc::strong_count(memory) == 1));
}

#[test]
fn a_panic_on_the_way_takes_everything_back() {
    let fixture = fixture();
    let [first, second] = &fixture.nodes;
    let other = buffer(&fixture.device, 256);
    for with_operation in [false, true] {
        let panics = || {
            fixture.executable.change(|changes| -> Result<()> {
                // SAFETY: kernels of the null device never run.
                unsafe { changes.argument(first.key(), 0, &at(&other)) }?;
                if with_operation {
                    changes.operation(second.key(), launch_op(&fixture.kernel, [at(&other), word(5)]))?;
                }
                panic!("on the way")
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!([0, 1].map(|node| fixture.args(node)), [0, 1].map(|_| (at(&fixture.memory), 0)));
    }
    assert_eq!(fixture.device.count(CallKind::Update), 0);
    assert_eq!(Arc::strong_count(&other), 1);
}

#[test]
fn all_arguments_of_a_node_are_given_only_where_it_launches_that_kernel() {
    let fixture = fixture();
    let node = fixture.nodes[0].key();
    let stranger = FakeKernel::new("stranger").params([8, 4]).on(&fixture.device);
    let give = |kernel: &Arc<dyn Kernel>, values: &[ArgValue]| {
        fixture.executable.change(|changes| {
            let write = |writer: &mut ArgWriter<'_, '_>| {
                values.iter().try_for_each(|value| writer.value(value.clone()))
            };
            // SAFETY: kernels of the null device never run.
            unsafe { changes.arguments(node, kernel, write) }
        })
    };
    let all = [at(&fixture.memory), word(3), word(4)];
    assert_error(give(&stranger, &all[..2]), ErrorKind::InvalidArgument, &["store", "stranger"]);
    let too_few = give(&fixture.kernel, &all[..1]);
    assert_error(too_few, ErrorKind::ParameterMismatch, &["takes 2 parameters, 1"]);
    let too_many = give(&fixture.kernel, &all);
    assert_error(too_many, ErrorKind::ParameterMismatch, &["takes 2 parameters, more"]);
    assert_eq!(fixture.args(0).1, 0);
    give(&fixture.kernel, &all[..2]).unwrap();
    assert_eq!(fixture.args(0).1, 3);
}

#[test]
fn nodes_that_launch_no_kernel_or_are_of_another_graph_have_no_arguments() {
    let (device, _, graph) = setup();
    let empty = graph.add(&[], Operation::Empty).unwrap();
    let executable = graph.instantiate().unwrap();
    let refused = change(&executable, &[(&empty, 0, word(1))]);
    assert_error(refused, ErrorKind::InvalidArgument, &["empty", "launches no kernel"]);
    let kernel = FakeKernel::new("store").params([4]).on(&device);
    let stranger = Graph::new(&device).add(&[], launch_op(&kernel, [word(1)])).unwrap();
    let refused = change(&executable, &[(&stranger, 0, word(1))]);
    assert_error(refused, ErrorKind::InvalidHandle, &["no node"]);
}
