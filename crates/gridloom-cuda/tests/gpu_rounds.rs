//! A thousand rounds of making, launching and dropping graphs leave what there was before: on a
//! simulated driver, which counts every object, and on a GPU, by its free memory.
//!
//! One test in a process of its own, so that no other uses memory meanwhile.

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{Device as _, EventOptions};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{AllocOp, CallbackOp, ConditionalForm, FreeTarget, Operation, Test};
use gridloom_core::{Event, Stream};
use gridloom_cuda::release;
use simulator::{Alive, alive, violations};
use std::sync::Arc;

const WARM_UP: usize = 50;
const ROUNDS: usize = 1000;

/// What a GPU may have less of afterwards: its driver takes memory by the page. A round that lost
/// one small block would show.
const SLACK: u64 = 8 << 20;

/// Makes a graph with nodes of every kind, launches it, changes it, and drops everything in one of
/// several orders, mostly while it runs.
fn round(gpu: &Gpu, number: usize, held: &Arc<()>) {
    let (log, left) = (gpu.words(&[0; 16]), gpu.words(&[2]));
    let event = Event::new(&gpu.backend, EventOptions::default()).unwrap();
    let stream = Stream::new(&gpu.backend).unwrap();
    let graph = gpu.graph();
    let kind = [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed][number % 3];
    let op = AllocOp { len: 4096, element_size: 4, kind, peers: Default::default() };
    let memory = graph.add(&[], Operation::Alloc(Arc::new(op))).unwrap();
    let region = Region { base: Base::AllocNode(memory.key()), offset: 0, bytes: 4 * 4096 };
    let bytes = Region::from_bytes(vec![1u8; 4 * 4096]);
    let copied = graph.add(&[&memory], copy(&region, &bytes)).unwrap();
    let again = graph.condition(Some(1));
    let test = Test::Condition(again.key());
    let (repeat, bodies) = conditional(&graph, &[&copied], ConditionalForm::While, test, 1);
    bodies[0].add(&[], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
    let child = gpu.graph();
    child.add(&[], gpu.append(&log, 1)).unwrap();
    let embedded = graph.add_child(&[&repeat], &child).unwrap();
    let held = Arc::clone(held);
    let call = CallbackOp::closure(move || drop(Arc::clone(&held)));
    let called = graph.add(&[&embedded], Operation::Callback(call)).unwrap();
    graph.add(&[&called], Operation::EventRecord(event.backend().clone())).unwrap();
    graph.add(&[&called], Operation::Free(FreeTarget::AllocNode(memory.key()))).unwrap();
    let mode = if number % 4 == 3 { ConditionalMode::Hosted } else { ConditionalMode::Auto };
    let options = InstantiateOptions { conditional_mode: mode, ..Default::default() };
    let executable = graph.instantiate_with(&options).unwrap();
    executable.launch(&stream).unwrap();
    match number % 5 {
        0 => drop((executable, graph, stream)),
        1 => drop((stream, graph, executable, log, left)),
        2 => {
            let bytes = Region::from_bytes(vec![2u8; 4 * 4096]);
            executable.node(&copied).unwrap().set_operation(copy(&region, &bytes)).unwrap();
            executable.launch(&stream).unwrap();
        }
        3 => {
            // Compiled anew.
            executable.node(&copied).unwrap().set_operation(copy(&region, &whole(&log_of(gpu)))).unwrap();
            executable.launch(&stream).unwrap();
        }
        _ => stream.synchronize().unwrap(),
    }
}

/// Another source of the copy, which nobody but the executable holds.
fn log_of(gpu: &Gpu) -> Arc<dyn gridloom_core::backend::Allocation> {
    gpu.backend.allocate(4 * 4096, MemoryKind::Host).unwrap()
}

/// Waits until everything of the rounds was let go of.
fn settle(gpu: &Gpu, used: u64, held: &Arc<()>) {
    gpu.backend.wait_all().unwrap();
    eventually(|| (gpu.device.memory_use().unwrap().0, Arc::strong_count(held)), (used, 1));
    // The last frees are on their way, and the last streams go after what ran on them.
    release::flush();
    gpu.backend.wait_all().unwrap();
}

/// Waits until something is as it should be; the release thread works on it.
fn eventually<T: PartialEq + std::fmt::Debug>(look: impl Fn() -> T, expected: T) {
    for _ in 0..10_000 {
        release::flush();
        if look() == expected {
            return;
        }
        std::thread::yield_now();
    }
    assert_eq!(look(), expected);
}

fn rounds(gpu: &Gpu, mut after_each: impl FnMut(usize)) {
    let (held, used) = (Arc::new(()), gpu.device.memory_use().unwrap().0);
    for number in 0..ROUNDS {
        round(gpu, number, &held);
        after_each(number);
    }
    settle(gpu, used, &held);
}

fn warm_up(gpu: &Gpu) {
    let (held, used) = (Arc::new(()), gpu.device.memory_use().unwrap().0);
    (0..WARM_UP).for_each(|number| round(gpu, number, &held));
    settle(gpu, used, &held);
}

#[test]
fn a_thousand_rounds_leave_nothing_behind() {
    let simulated = Gpu::new(simulator::device(None));
    warm_up(&simulated);
    // Streams keep a few events for later use; those of the rounds go with their streams.
    let kept = || Alive { events: 0, ..alive() };
    eventually(|| (alive().executables, alive().streams), (0, 2));
    let before = kept();
    rounds(&simulated, |_| {});
    eventually(kept, before);
    drop(simulated);
    eventually(alive, Alive::default());
    assert!(violations().is_empty(), "{:#?}", violations());

    let Some(gpu) = gpu() else { return };
    let free_after_rounds = || {
        rounds(&gpu, |number| {
            // A driver takes a limited number of launches that nobody waits for.
            if number % 50 == 49 {
                gpu.backend.wait_all().unwrap();
            }
        });
        gpu.device.trim().unwrap();
        gpu.device.free_memory().unwrap()
    };
    // A driver takes memory for launches in flight in steps and keeps it, so it may have to grow
    // for a while; what leaks grows every time.
    let mut free = free_after_rounds();
    let mut gone = Vec::new();
    for _ in 0..6 {
        let before = std::mem::replace(&mut free, free_after_rounds());
        gone.push(before.saturating_sub(free));
        if gone.last().is_some_and(|gone| *gone <= SLACK) {
            return;
        }
    }
    panic!("every thousand rounds took memory: {gone:?} bytes");
}
