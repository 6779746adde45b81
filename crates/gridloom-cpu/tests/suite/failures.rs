//! Failures inside graphs, and what lives how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::*;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::Operation;
use gridloom_core::{ErrorKind, Graph};

#[test]
fn a_panic_in_a_callback_names_its_node_skips_the_rest_and_spoils_nothing() {
    for threads in [1, 3] {
        let device = device(threads);
        let graph = Graph::new(&device);
        let (fail, after) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
        let (flag, count) = (fail.clone(), after.clone());
        let first = graph
            .add(&[], callback(move || assert!(!flag.load(Ordering::SeqCst), "not today")))
            .unwrap()
            .named("moody")
            .unwrap();
        graph.add(&[&first], callback(move || _ = count.fetch_add(1, Ordering::SeqCst))).unwrap();
        let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
        executable.launch(&stream).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::CallbackPanicked, Some("moody")));
        assert!(error.message().contains("not today"), "{error}");
        assert_eq!(after.load(Ordering::SeqCst), 0);
        assert_eq!(executable.take_error().unwrap().node(), Some("moody"));
        assert!(executable.take_error().is_none(), "once");
        stream.synchronize().expect("once");
        fail.store(false, Ordering::SeqCst);
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(after.load(Ordering::SeqCst), 1);
        assert!(executable.take_error().is_none());
    }
}

#[test]
fn a_failure_deep_inside_loops_and_threads_stops_the_launch_and_the_next_one_works() {
    let device = device(4);
    let module = module(&device);
    let graph = Graph::new(&device);
    let (fail, passes) = (number(&device, 1), Arc::new(AtomicU32::new(0)));
    let outer = graph.add_conditional(&[], repeat(100)).unwrap();
    let body = outer.bodies().unwrap().remove(0);
    for _ in 0..4 {
        let inner = body.add_conditional(&[], repeat(3)).unwrap();
        let inside = inner.bodies().unwrap().remove(0);
        let count = passes.clone();
        let slow = callback(move || {
            std::thread::sleep(Duration::from_micros(50));
            count.fetch_add(1, Ordering::SeqCst);
        });
        let slow = inside.add(&[], slow).unwrap();
        // Runs into the trap when the number is 1: a block of that number exists only then.
        let test = gridloom_core::op::Test::Value(Region::whole(fail.clone()));
        let guard = gridloom_core::op::ConditionalForm::If;
        let guarded = inside.add_conditional(&[&slow], conditional(guard, test, 1)).unwrap();
        let stop = launch(&module, "stop", LaunchConfig::new(2, 1), [value(1), value(0)]);
        guarded.bodies().unwrap()[0].add(&[], stop).unwrap().named("trap").unwrap();
    }
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    for _ in 0..3 {
        executable.launch(&stream).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::KernelFault, Some("trap")));
        let ran = passes.swap(0, Ordering::SeqCst);
        assert!((1..=4).contains(&ran), "{ran}");
    }
    device.write(&*fail, 0, &0u32.to_ne_bytes()).unwrap();
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(passes.load(Ordering::SeqCst), 1200);
}

/// Notes when it is dropped, and on which thread.
struct Guard(std::sync::mpsc::Sender<Option<String>>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(std::thread::current().name().map(str::to_owned));
    }
}

#[test]
fn an_executable_dropped_in_flight_finishes_and_lets_go_elsewhere() {
    let device = device(2);
    let stream = stream(&device);
    let (dropped, drops) = channel();
    let (open, opened) = channel::<()>();
    let ran = Arc::new(AtomicU32::new(0));
    let graph = Graph::new(&device);
    let (guard, count) = (Guard(dropped), ran.clone());
    let gate = graph.add(&[], callback(move || _ = opened.recv())).unwrap();
    let work = callback(move || {
        let _held = &guard;
        count.fetch_add(1, Ordering::SeqCst);
    });
    graph.add(&[&gate], work).unwrap();
    let executable = graph.instantiate().unwrap();
    executable.launch(&stream).unwrap();
    drop((executable, graph, gate));
    assert!(drops.try_recv().is_err(), "the launch in flight holds it");
    open.send(()).unwrap();
    let thread = drops.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(thread.as_deref(), Some("gridloom-release"), "not on a thread that runs work");
    assert!(drops.try_recv().is_err(), "once");
    stream.synchronize().unwrap();
}

#[test]
fn a_closure_on_a_stream_is_dropped_after_it_ran_even_if_its_drop_panics_or_waits() {
    let device = device(1);
    let stream = stream(&device);
    struct Waits(gridloom_core::Stream, Arc<AtomicBool>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.synchronize().unwrap();
            self.1.store(true, Ordering::SeqCst);
            panic!("in a drop");
        }
    }
    for _ in 0..2 {
        let dropped = Arc::new(AtomicBool::new(false));
        let waits = Waits(stream.clone(), dropped.clone());
        // Held back until the stream's work is the only holder.
        let (open, opened) = channel::<()>();
        stream.enqueue(callback(move || _ = opened.recv())).unwrap();
        let held = callback(move || {
            let _held = &waits;
        });
        stream.enqueue(held.clone()).unwrap();
        drop(held);
        open.send(()).unwrap();
        stream.synchronize().unwrap();
        eventually(|| dropped.load(Ordering::SeqCst));
    }
}

#[test]
fn work_in_flight_holds_the_memory_it_uses() {
    let device = device(1);
    let stream = stream(&device);
    let (open, opened) = channel::<()>();
    stream.enqueue(callback(move || _ = opened.recv())).unwrap();
    let target = buffer(&device, 1 << 20);
    let seen = buffer(&device, 16);
    stream.enqueue(fill(Region::whole(target.clone()), 9, 1)).unwrap();
    let part = Region::whole(target).part(100, 16).unwrap();
    stream.enqueue(copy(Region::whole(seen.clone()), part)).unwrap();
    assert_eq!(device.memory_use().unwrap().0, (1 << 20) + 16);
    open.send(()).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(&device, &seen), [9; 16]);
    assert_eq!(device.memory_use().unwrap().0, 16, "freed with the work that held it");
}

#[test]
fn everything_is_freed_when_device_and_graphs_are_gone() {
    let (dropped, drops) = channel();
    for round in 0..64 {
        let device = device(2);
        let graph = Graph::new(&device);
        let guard = Guard(dropped.clone());
        graph
            .add(
                &[],
                callback(move || {
                    let _held = &guard;
                }),
            )
            .unwrap();
        let stream = stream(&device);
        let executable = graph.instantiate().unwrap();
        executable.launch(&stream).unwrap();
        if round % 2 == 0 {
            stream.synchronize().unwrap();
        }
    }
    for _ in 0..64 {
        drops.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}

/// A graph of another device's driver.
#[derive(Debug)]
struct Sealed(gridloom_core::backend::DeviceId);

// SAFETY: nothing is run.
unsafe impl gridloom_core::backend::Opaque for Sealed {
    fn device(&self) -> gridloom_core::backend::DeviceId {
        self.0
    }

    fn node_count(&self) -> usize {
        1
    }

    fn reason(&self) -> &str {
        "it is sealed"
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[test]
fn an_opaque_graph_is_refused_by_name_when_the_graph_is_instantiated() {
    let device = device(1);
    let graph = Graph::new(&device);
    graph.add(&[], Operation::Opaque(Arc::new(Sealed(device.id())))).unwrap();
    let error = graph.instantiate().unwrap_err();
    assert_eq!((error.kind(), error.node()), (ErrorKind::NotSupported, Some("opaque#0")));
    assert!(error.message().contains("only that device can run it"), "{error}");
}
