//! Memory of the device, and of alloc nodes.

use std::sync::Arc;

use crate::common::*;
use crate::random_numbers::Random;
use gridloom_core::backend::{Allocation, Device};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{FreeTarget, Operation};
use gridloom_core::{ErrorKind, Graph, Node};
use gridloom_cpu::CpuOptions;
use proptest::prelude::*;

#[test]
fn memory_of_every_kind_is_counted_and_freed_with_its_last_holder() {
    let device = device(1);
    let held: Vec<_> = [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed]
        .map(|kind| device.allocate(1000, kind).unwrap())
        .into();
    assert_eq!(device.memory_use().unwrap(), (3000, None));
    assert!(held.iter().all(|memory| memory.address() % 256 == 0 && memory.bytes() == 1000));
    let also = held[0].clone();
    drop(held);
    assert_eq!(device.memory_use().unwrap().0, 1000);
    drop(also);
    assert_eq!(device.memory_use().unwrap().0, 0);
}

#[test]
fn the_host_reads_and_writes_only_inside_an_allocation_of_the_device() {
    let (device, other) = (device(1), device(1));
    let memory = device.allocate(8, MemoryKind::Host).unwrap();
    device.write(&*memory, 4, &[7; 4]).unwrap();
    let mut bytes = [1; 8];
    device.read(&*memory, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 7, 7, 7, 7]);
    for offset in [1, 9, u64::MAX] {
        assert_eq!(device.read(&*memory, offset, &mut bytes).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(device.write(&*memory, offset, &bytes).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(other.read(&*memory, 0, &mut bytes).unwrap_err().kind(), ErrorKind::WrongDevice);
    assert_eq!(other.write(&*memory, 0, &bytes).unwrap_err().kind(), ErrorKind::WrongDevice);
}

#[test]
fn the_memory_limit_holds_for_allocations_and_for_graphs() {
    let device = device_with(CpuOptions::new().memory_limit(10_000));
    let held = device.allocate(6000, MemoryKind::Device).unwrap();
    let error = device.allocate(4001, MemoryKind::Device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    for part in ["4001", "6000", "10000"] {
        assert!(error.message().contains(part), "{error}");
    }
    let graph = Graph::new(&device);
    let big = graph.add(&[], alloc(5000)).unwrap();
    graph.add(&[&big], free(&big)).unwrap();
    assert_eq!(graph.instantiate().unwrap_err().kind(), ErrorKind::OutOfMemory);
    drop(held);
    let executable = graph.instantiate().unwrap();
    assert!(executable.memory().allocations >= 5000);
    assert_eq!(device.memory_use().unwrap().0, executable.memory().allocations);
    drop(executable);
    assert_eq!(device.memory_use().unwrap().0, 0);
}

#[test]
fn allocations_one_after_the_other_share_memory() {
    let device = device(2);
    let graph = Graph::new(&device);
    let out = buffer(&device, 1000);
    let mut last: Option<Node> = None;
    for index in 0..50 {
        let made = graph.add(&last.iter().collect::<Vec<_>>(), alloc(1000)).unwrap();
        let filled = graph.add(&[&made], fill(memory_of(&made), index, 1)).unwrap();
        let copied = graph.add(&[&filled], copy(Region::whole(out.clone()), memory_of(&made))).unwrap();
        last = Some(graph.add(&[&copied], free(&made)).unwrap());
    }
    let executable = graph.instantiate().unwrap();
    assert_eq!(executable.memory().allocations, 1024);
    let stream = stream(&device);
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert!(read(&device, &out).iter().all(|&byte| byte == 49));
}

#[test]
fn bodies_of_which_one_runs_share_memory() {
    let device = device(1);
    let graph = Graph::new(&device);
    let which = graph.condition(Some(1));
    let test = gridloom_core::op::Test::Condition(which.key());
    let switch = conditional(gridloom_core::op::ConditionalForm::Switch, test, 4);
    let node = graph.add_conditional(&[], switch).unwrap();
    let out = buffer(&device, 4096);
    for (index, body) in node.bodies().unwrap().iter().enumerate() {
        let made = body.add(&[], alloc(4096)).unwrap();
        let filled = body.add(&[&made], fill(memory_of(&made), index as u32 + 10, 1)).unwrap();
        let copied = body.add(&[&filled], copy(Region::whole(out.clone()), memory_of(&made))).unwrap();
        body.add(&[&copied], free(&made)).unwrap();
    }
    let executable = graph.instantiate().unwrap();
    assert_eq!(executable.memory().allocations, 4096);
    let stream = stream(&device);
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert!(read(&device, &out).iter().all(|&byte| byte == 11));
}

fn is_freed(memory: &Arc<dyn Allocation>) -> bool {
    memory.outliving().expect("memory that outlived a launch").is_freed()
}

#[test]
fn memory_that_outlives_a_launch_stays_until_it_is_freed() {
    let device = device(1);
    let stream = stream(&device);
    let graph = Graph::new(&device);
    let made = graph.add(&[], alloc(64)).unwrap();
    graph.add(&[&made], fill(memory_of(&made), 5, 1)).unwrap();
    let executable = graph.instantiate().unwrap();
    assert_eq!(executable.outliving(&made).unwrap_err().kind(), ErrorKind::InvalidState);
    executable.launch(&stream).unwrap();
    let memory = executable.outliving(&made).unwrap();
    assert_eq!(read(&device, &memory), [5; 64]);
    assert_eq!(executable.launch(&stream).unwrap_err().kind(), ErrorKind::InvalidState);

    let freeing = {
        let graph = Graph::new(&device);
        graph.add(&[], Operation::Free(FreeTarget::Outliving(memory.clone()))).unwrap();
        graph.instantiate().unwrap()
    };
    freeing.launch(&stream).unwrap();
    assert!(is_freed(&memory));
    assert_eq!(executable.outliving(&made).unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(freeing.launch(&stream).unwrap_err().kind(), ErrorKind::InvalidState, "freed already");
    executable.launch(&stream).unwrap();
    let again = executable.outliving(&made).unwrap();
    assert!(!is_freed(&again) && is_freed(&memory));
    drop(executable);
    assert_eq!(read(&device, &again), [5; 64], "it outlives the executable too");
    drop((graph, made, freeing, memory, again));
    stream.synchronize().unwrap();
    eventually(|| device.memory_use().unwrap().0 == 0);
}

#[test]
fn auto_free_allows_the_next_launch_and_ends_the_old_memory() {
    let device = device(1);
    let stream = stream(&device);
    let graph = Graph::new(&device);
    let made = graph.add(&[], alloc(64)).unwrap();
    let options = InstantiateOptions { auto_free_on_launch: true, ..InstantiateOptions::default() };
    let executable = graph.instantiate_with(&options).unwrap();
    executable.launch(&stream).unwrap();
    let first = executable.outliving(&made).unwrap();
    executable.launch(&stream).unwrap();
    let second = executable.outliving(&made).unwrap();
    assert!(is_freed(&first) && !is_freed(&second));
    stream.synchronize().unwrap();
}

/// Where the value of an alloc node arrives, and which.
type Output = (Arc<dyn Allocation>, u8);

/// A random graph where every alloc node is filled with a value of its own, kept for a while,
/// copied out and freed.
fn random_lives(device: &Arc<dyn Device>, seed: u64, lives: usize) -> (Graph, Vec<Output>) {
    let mut random = Random::new(seed);
    let graph = Graph::new(device);
    let mut nodes: Vec<Node> = Vec::new();
    let mut outputs = Vec::new();
    for index in 0..lives {
        let before: Vec<Node> =
            (0..random.below(4).min(nodes.len())).map(|_| nodes[random.below(nodes.len())].clone()).collect();
        let bytes = 1 + random.below(3000) as u64;
        let value = (index % 255) as u8 + 1;
        let made = graph.add(&before.iter().collect::<Vec<_>>(), alloc(bytes)).unwrap();
        let filled = graph.add(&[&made], fill(memory_of(&made), value.into(), 1)).unwrap();
        let mut last = filled;
        for _ in 0..random.below(3) {
            let pause = std::time::Duration::from_micros(random.below(60) as u64);
            last = graph.add(&[&last], callback(move || std::thread::sleep(pause))).unwrap();
        }
        let out = buffer(device, bytes);
        let copied = graph.add(&[&last], copy(Region::whole(out.clone()), memory_of(&made))).unwrap();
        outputs.push((out, value));
        nodes.push(graph.add(&[&copied], free(&made)).unwrap());
    }
    (graph, outputs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn memory_that_is_alive_is_never_given_to_another(seed: u64, lives in 1usize..80) {
        let device = device(4);
        let (graph, outputs) = random_lives(&device, seed, lives);
        let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
        for _ in 0..3 {
            executable.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            for (out, value) in &outputs {
                prop_assert!(read(&device, out).iter().all(|byte| byte == value));
                device.write(&**out, 0, &vec![0; out.bytes() as usize]).unwrap();
            }
        }
    }
}
