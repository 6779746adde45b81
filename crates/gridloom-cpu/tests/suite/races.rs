//! Work without an order between it that touches the same memory: torn or stale values, and nothing
//! worse. Run under Miri, which would find a data race, or atomic accesses of different sizes that
//! meet.

use std::sync::Arc;

use crate::common::*;
use gridloom_core::Graph;
use gridloom_core::backend::{Allocation, Device};
use gridloom_core::executable::LaunchTarget;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{ConditionalForm, Operation, Test};
use gridloom_cpu::{CpuOptions, Engine};

/// Rounds of each test. Miri takes its time.
const ROUNDS: u32 = if cfg!(miri) { 4 } else { 200 };

const BYTES: u64 = 24;

/// The interpreter, which Miri can look into.
fn interpreter() -> Arc<dyn Device> {
    device_with(CpuOptions::new().threads(1).engine(Engine::Interpreter))
}

fn part(memory: &Arc<dyn Allocation>, offset: u64, bytes: u64) -> Region {
    Region { offset, bytes, ..Region::whole(memory.clone()) }
}

/// Enqueues each list on a stream of its own, again and again, without any order between them.
fn race(device: &Arc<dyn Device>, lists: &[Vec<Operation>]) {
    std::thread::scope(|scope| {
        for list in lists {
            let stream = stream(device);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    list.iter().for_each(|operation| stream.enqueue(operation.clone()).unwrap());
                }
                stream.synchronize().unwrap();
            });
        }
    });
}

#[test]
fn fills_and_copies_of_two_streams_may_meet() {
    let device = interpreter();
    let (one, two) = (buffer(&device, BYTES), buffer(&device, BYTES));
    let bytes = Base::Bytes(vec![7u8; BYTES as usize].into());
    race(
        &device,
        &[
            vec![fill(Region::whole(one.clone()), 0x0101_0101, 4), copy(part(&two, 8, 8), part(&one, 0, 8))],
            vec![fill(part(&one, 2, 10), 0x0202, 2), copy(part(&one, 1, 11), part(&two, 3, 11))],
            vec![copy(Region::whole(one.clone()), Region { base: bytes, offset: 0, bytes: BYTES })],
        ],
    );
    let written = [0, 1, 2, 7];
    assert!(
        read(&device, &one).iter().all(|byte| written.contains(byte)),
        "every byte is one that was written"
    );
}

#[test]
fn a_host_that_reads_and_writes_may_meet_work_that_was_enqueued_later() {
    let device = interpreter();
    let memory = buffer(&device, BYTES);
    let streams = [stream(&device), stream(&device)];
    std::thread::scope(|scope| {
        for (value, stream) in (1..).zip(&streams) {
            let operation = fill(Region::whole(memory.clone()), value, 1);
            scope.spawn(move || (0..ROUNDS).for_each(|_| stream.enqueue(operation.clone()).unwrap()));
        }
        for round in 0..ROUNDS {
            assert!(read(&device, &memory).iter().all(|&byte| byte <= 3));
            device.write(&*memory, 3 + u64::from(round % 2), &[3; 9]).unwrap();
        }
    });
}

#[test]
fn kernels_may_meet_copies_tests_of_values_and_each_other() {
    const PTX: &str = "
        .version 8.0
        .target sm_70
        .address_size 64
        .visible .entry touch(.param .u64 memory)
        {
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [memory];
            ld.global.u8 %r1, [%rd1+1];
            st.global.u16 [%rd1+2], %r1;
            ld.global.u64 %rd2, [%rd1+8];
            st.global.u32 [%rd1], 0;
            atom.global.add.u32 %r2, [%rd1+4], 1;
            ret;
        }";
    let device = interpreter();
    let (memory, other) = (buffer(&device, BYTES), buffer(&device, BYTES));
    let module = device.load_ptx(PTX).unwrap();
    let touch = launch(&module, "touch", LaunchConfig::one(), [pointer(Region::whole(memory.clone()))]);
    let graph = Graph::new(&device);
    let test = Test::Value(part(&memory, 4, 4));
    graph.add_conditional(&[], conditional(ConditionalForm::If, test, 1)).unwrap();
    let executable = graph.instantiate().unwrap();
    let asks = stream(&device);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                asks.launch_executable(&executable).unwrap();
            }
            asks.synchronize().unwrap();
        });
        race(
            &device,
            &[
                vec![touch.clone()],
                vec![touch, copy(part(&other, 0, 16), part(&memory, 0, 16))],
                vec![fill(part(&memory, 0, 12), 9, 1), copy(part(&memory, 3, 12), part(&other, 1, 12))],
            ],
        );
    });
}

#[test]
fn memory_of_alloc_nodes_may_be_filled_and_copied_without_an_order() {
    let device = interpreter();
    let result = buffer(&device, BYTES);
    let graph = Graph::new(&device);
    let memory = graph.add(&[], alloc(BYTES)).unwrap();
    let fills = [1, 2].map(|value| graph.add(&[&memory], fill(memory_of(&memory), value, 1)).unwrap());
    let copied = graph.add(&[&memory], copy(Region::whole(result.clone()), memory_of(&memory))).unwrap();
    graph.add(&[&fills[0], &fills[1], &copied], free(&memory)).unwrap();
    let executables = [graph.instantiate().unwrap(), graph.instantiate().unwrap()];
    std::thread::scope(|scope| {
        for executable in &executables {
            let stream = stream(&device);
            scope.spawn(move || {
                (0..ROUNDS).for_each(|_| executable.launch(&stream).unwrap());
                stream.synchronize().unwrap();
            });
        }
    });
    assert!(read(&device, &result).iter().all(|&byte| byte <= 2));
}
