//! Memory, events and values that threads hand to each other, small enough for Miri and
//! ThreadSanitizer. The tests of the `gridloom` crate say the same on every device.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use gridloom_core::backend::EventOptions;
use gridloom_core::memory::Region;
use gridloom_core::op::{CallbackOp, Operation, Owner, RawCallback, RawData};
use gridloom_core::{Event, Graph, Stream};

use crate::common::{alloc, buffer, callback, copy, device, eventually, fill, memory_of, read, stream};

/// How often threads are brought together.
const ROUNDS: usize = if cfg!(miri) { 8 } else { 500 };

/// Panics when it is dropped, with something that panics again. Counts.
struct PanicsAgain(Arc<AtomicUsize>);
struct Payload;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::panic::panic_any(Payload);
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        std::panic::panic_any(Payload);
    }
}

/// Waits for a stream when it is dropped. Counts.
struct Waits(Stream, Arc<AtomicUsize>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.synchronize().unwrap();
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_launch_in_flight_keeps_memory_that_outlives_its_dropped_executable() {
    for threads in [1, 2] {
        let device = device(threads);
        let (stream, out) = (stream(&device), buffer(&device, 64));
        let (open, opened) = channel::<()>();
        let graph = Graph::new(&device);
        let gate = graph.add(&[], callback(move || _ = opened.recv())).unwrap();
        let memory = graph.add(&[&gate], alloc(64)).unwrap();
        let filled = graph.add(&[&memory], fill(memory_of(&memory), 7, 1)).unwrap();
        graph.add(&[&filled], copy(Region::whole(out.clone()), memory_of(&memory))).unwrap();
        let executable = graph.instantiate().unwrap();
        executable.launch(&stream).unwrap();
        drop((executable, graph, gate, memory, filled));
        open.send(()).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(read(&device, &out), [7; 64]);
    }
}

#[test]
fn an_event_is_recorded_and_waited_for_on_one_stream_by_two_threads() {
    let device = device(1);
    let (stream, event) = (stream(&device), Event::new(&device, EventOptions::default()).unwrap());
    let graph = Graph::new(&device);
    graph.add(&[], Operation::EventRecord(event.backend().clone())).unwrap();
    let executable = graph.instantiate().unwrap();
    for _ in 0..ROUNDS {
        thread::scope(|scope| {
            scope.spawn(|| stream.wait(&event).unwrap());
            scope.spawn(|| executable.launch(&stream).unwrap());
            stream.record(&event).unwrap();
        });
        stream.synchronize().unwrap();
    }
}

#[test]
fn two_graphs_hand_two_events_to_each_other() {
    let device = device(1);
    let streams = [stream(&device), stream(&device)];
    let events = [0; 2].map(|_| Event::new(&device, EventOptions::default()).unwrap());
    let executables = [(0, 1), (1, 0)].map(|(give, take): (usize, usize)| {
        let graph = Graph::new(&device);
        graph.add(&[], Operation::EventRecord(events[give].backend().clone())).unwrap();
        graph.add(&[], Operation::EventWait(events[take].backend().clone())).unwrap();
        graph.instantiate().unwrap()
    });
    for _ in 0..ROUNDS {
        thread::scope(|scope| {
            scope.spawn(|| executables[0].launch(&streams[0]).unwrap());
            executables[1].launch(&streams[1]).unwrap();
        });
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    }
}

#[test]
fn values_that_panic_or_wait_when_they_are_dropped_stop_nothing() {
    let device = device(1);
    let stream = stream(&device);
    let (panicked, waited) = (Arc::default(), Arc::default());
    let holding = |value: Box<dyn Send>| callback(move || _ = &value);
    let rounds = if cfg!(miri) { 2 } else { 20 };
    for _ in 0..rounds {
        let graph = Graph::new(&device);
        for _ in 0..2 {
            stream.enqueue(holding(Box::new(PanicsAgain(Arc::clone(&panicked))))).unwrap();
            graph.add(&[], holding(Box::new(PanicsAgain(Arc::clone(&panicked))))).unwrap();
            stream.enqueue(holding(Box::new(Waits(stream.clone(), Arc::clone(&waited))))).unwrap();
            graph.add(&[], holding(Box::new(Waits(stream.clone(), Arc::clone(&waited))))).unwrap();
        }
        graph.instantiate().unwrap().launch(&stream).unwrap();
        drop(graph);
        stream.synchronize().unwrap();
    }
    let all = |count: &Arc<AtomicUsize>| count.load(Ordering::SeqCst) == 4 * rounds;
    eventually(|| all(&panicked) && all(&waited));
    stream.synchronize().unwrap();
}

#[test]
fn owners_that_callbacks_keep_are_dropped_off_the_thread_of_the_stream() {
    extern "C" fn nothing(_: *mut c_void) {}
    let device = device(1);
    let stream = stream(&device);
    let (panicked, waited): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
    for _ in 0..3 {
        // SAFETY: the function ignores what it is given.
        let raw = || unsafe { RawCallback::new(nothing, RawData::Bytes(Arc::from([]))) };
        let waits = Owner::new(Arc::new(parking_lot::Mutex::new(Waits(stream.clone(), waited.clone()))));
        let panics = Owner::new(Arc::new(PanicsAgain(panicked.clone())));
        for owner in [waits, panics] {
            stream.enqueue(Operation::Callback(CallbackOp::Raw(raw().keeping(owner)))).unwrap();
        }
        stream.synchronize().unwrap();
    }
    eventually(|| panicked.load(Ordering::SeqCst) == 3 && waited.load(Ordering::SeqCst) == 3);
    stream.synchronize().unwrap();
}

#[test]
fn what_is_dropped_later_is_dropped_on_a_thread_of_the_device_which_outlives_panics() {
    let device = device(1);
    let count = Arc::new(AtomicUsize::new(0));
    for dropped in 1..=2 {
        device.drop_later(Box::new(PanicsAgain(count.clone())));
        eventually(|| count.load(Ordering::SeqCst) == dropped);
    }
}
