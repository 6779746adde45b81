//! What lives while work is in flight. A kernel that waits for the host holds the work back.
//!
//! The tests run one at a time, and do everything that may wait for the whole device (loading
//! kernels, allocating and freeing) while nothing is held back: the driver's locks would otherwise
//! tie the waiting kernel to a call that waits for it.

mod common;

use common::*;
use gridloom_core::backend::{Allocation, Device as _, EventOptions};
use gridloom_core::memory::MemoryKind;
use gridloom_core::op::{CallbackOp, Operation};
use gridloom_core::{Event, Stream};
use gridloom_cuda::release;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{Arc, mpsc};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A GPU, alone, with a flag that holds work back, and every kernel loaded.
struct Held {
    gpu: Gpu,
    flag: Arc<dyn Allocation>,
    _alone: MutexGuard<'static, ()>,
}

impl Held {
    fn new() -> Option<Self> {
        let alone = ONE_AT_A_TIME.lock();
        let gpu = gpu()?;
        let flag = gpu.backend.allocate(4, MemoryKind::Host).unwrap();
        let held = Self { gpu, flag, _alone: alone };
        // Kernels are loaded at their first launch, which may wait for the device.
        let log = held.gpu.words(&[0; 4]);
        held.open();
        held.gpu.stream.enqueue(held.gpu.append(&log, 1)).unwrap();
        held.gpu.stream.enqueue(held.gpu.add(&log, 0)).unwrap();
        held.gpu.stream.enqueue(held.wait()).unwrap();
        held.gpu.stream.synchronize().unwrap();
        held.set(0);
        drop(log);
        // What the warm-up used is let go of elsewhere, and would be counted.
        release::flush();
        Some(held)
    }

    fn wait(&self) -> Operation {
        self.gpu.launch("wait_for", [at(&self.flag)])
    }

    fn open(&self) {
        self.set(1);
    }

    fn set(&self, value: u32) {
        // SAFETY: pinned memory of four bytes; the kernel that waits reads it as volatile.
        unsafe { (self.flag.address() as *mut u32).write_volatile(value) };
    }

    fn used(&self) -> u64 {
        self.gpu.device.memory_use().unwrap().0
    }
}

#[test]
fn a_buffer_dropped_while_a_kernel_uses_it_lives_until_the_kernel_is_done() {
    let Some(held) = Held::new() else { return };
    let gpu = &held.gpu;
    let before = held.used();
    let buffer = gpu.buffer(1 << 20);
    gpu.stream.enqueue(held.wait()).unwrap();
    gpu.stream.enqueue(gpu.add(&buffer, 1)).unwrap();
    drop(buffer);
    assert!(!gpu.stream.is_idle().unwrap());
    assert_eq!(held.used(), before + (1 << 20));
    held.open();
    gpu.stream.synchronize().unwrap();
    release::flush();
    assert_eq!(held.used(), before);
}

#[test]
fn an_executable_dropped_while_it_runs_finishes_and_then_releases_everything() {
    let Some(held) = Held::new() else { return };
    let gpu = &held.gpu;
    let (told, hear) = mpsc::channel();
    let graph = gpu.graph();
    let wait = graph.add(&[], held.wait()).unwrap();
    graph.add(&[&wait], Operation::Callback(CallbackOp::closure(move || told.send(()).unwrap()))).unwrap();
    let executable = graph.instantiate().unwrap();
    executable.launch(&gpu.stream).unwrap();
    drop((graph, wait, executable));
    assert!(hear.try_recv().is_err());
    held.open();
    assert!(hear.recv().is_ok(), "the callback ran");
    assert!(hear.recv().is_err(), "and its closure was dropped, without a further call");
    gpu.stream.synchronize().unwrap();
}

#[test]
fn what_an_update_replaces_lives_until_the_launch_that_uses_it_is_done() {
    let Some(held) = Held::new() else { return };
    let gpu = &held.gpu;
    let (old, new) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
    let graph = gpu.graph();
    let wait = graph.add(&[], held.wait()).unwrap();
    let append = graph.add(&[&wait], gpu.append(&old, 7)).unwrap();
    let executable = graph.instantiate().unwrap();
    let replacement = gpu.append(&new, 8);
    executable.launch(&gpu.stream).unwrap();
    executable.node(&append).unwrap().set_operation(replacement).unwrap();
    held.open();
    gpu.stream.synchronize().unwrap();
    assert_eq!((gpu.read(&old)[..2].to_vec(), gpu.read(&new)[0]), (vec![1, 7], 0));
    executable.launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
    assert_eq!((gpu.read(&old)[0], gpu.read(&new)[..2].to_vec()), (1, vec![1, 8]));
}

#[test]
fn launches_of_one_executable_on_two_streams_do_not_overlap() {
    let Some(held) = Held::new() else { return };
    let gpu = &held.gpu;
    let other = gridloom_core::Stream::new(&gpu.backend).unwrap();
    let log = gpu.words(&[0; 4]);
    let graph = gpu.graph();
    let wait = graph.add(&[], held.wait()).unwrap();
    graph.add(&[&wait], gpu.append(&log, 1)).unwrap();
    let executable = graph.instantiate().unwrap();
    executable.launch(&gpu.stream).unwrap();
    executable.launch(&other).unwrap();
    assert!(!other.is_idle().unwrap());
    held.open();
    other.synchronize().unwrap();
    // The second launch came after the first one had ended.
    assert!(gpu.stream.is_idle().unwrap());
    assert_eq!(gpu.read(&log)[0], 2);
}

#[test]
fn an_event_recorded_twice_in_one_graph_is_reached_with_the_second_recording() {
    let Some(held) = Held::new() else { return };
    let gpu = &held.gpu;
    let (log, out) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
    let event = Event::new(&gpu.backend, EventOptions::default()).unwrap();
    let record = || Operation::EventRecord(event.backend().clone());
    let graph = gpu.graph();
    let first = graph.add(&[], record()).unwrap();
    let waiting = graph.add(&[&first], held.wait()).unwrap();
    let appended = graph.add(&[&waiting], gpu.append(&log, 7)).unwrap();
    graph.add(&[&appended], record()).unwrap();
    let (executable, other) = (graph.instantiate().unwrap(), Stream::new(&gpu.backend).unwrap());
    for launch in 1..=2 {
        held.set(0);
        executable.launch(&gpu.stream).unwrap();
        other.wait(&event).unwrap();
        other.enqueue(copy(&whole(&out), &whole(&log))).unwrap();
        // Asked often while the launch is held back between the two.
        let early = (0..1000).any(|_| {
            std::thread::yield_now();
            event.is_reached().unwrap() || other.is_idle().unwrap()
        });
        held.open();
        gpu.stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert!(!early, "launch {launch}: reached with the first recording");
        assert_eq!(gpu.read(&out)[0], launch);
    }
}
