//! Drops of user values that panic, panic again, wait, or call the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom::prelude::*;

use super::ends;
use crate::support::{Gate, GraphKernels, eventually, for_each_device, for_each_engine, refused};

/// Panics when it is dropped, with something that panics again when it is dropped. Counts the
/// first.
struct PanicsAgain(Arc<AtomicUsize>);

/// What it panics with.
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

/// Waits for a stream and its device when it is dropped. Counts.
struct Waits(Stream, Arc<AtomicUsize>);

impl Drop for Waits {
    fn drop(&mut self) {
        if self.0.synchronize().is_ok() {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn holding(value: impl Send + 'static) -> impl FnMut() + Send + 'static {
    move || {
        let _held = &value;
    }
}

fn counter() -> Arc<AtomicUsize> {
    Arc::default()
}

#[track_caller]
fn reaches(what: &str, counter: &Arc<AtomicUsize>, count: usize) {
    eventually(what, || counter.load(Ordering::SeqCst) == count);
}

/// Has a stream run something, which must come to an end.
#[track_caller]
fn still_works(stream: &Stream) -> Result<()> {
    let (ran, stream) = (counter(), stream.clone());
    let count = ran.clone();
    stream.callback(move || {
        count.fetch_add(1, Ordering::SeqCst);
    })?;
    ends("the stream", move || stream.synchronize())?;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    Ok(())
}

#[test]
fn values_of_callbacks_on_a_stream_may_panic_and_wait_when_they_are_dropped() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dropped, waited) = (counter(), counter());
        for _ in 0..4 {
            stream.callback(holding(PanicsAgain(dropped.clone())))?;
            stream.callback(holding(Waits(stream.clone(), waited.clone())))?;
        }
        still_works(&stream)?;
        reaches("all are dropped", &dropped, 4);
        reaches("all have waited", &waited, 4);
        still_works(&stream)
    });
}

#[test]
fn values_of_a_graph_may_all_panic_when_they_are_dropped() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (dropped, waited) = (counter(), counter());
        for round in 1..4 {
            let (graph, gate) = (Graph::new(device), Gate::closed());
            let held_back = graph.callback(gate.waiter())?;
            for _ in 0..3 {
                held_back.callback(holding(PanicsAgain(dropped.clone())))?;
                held_back.callback(holding(Waits(stream.clone(), waited.clone())))?;
            }
            let executable = graph.instantiate()?;
            executable.launch(&stream)?;
            drop((graph, held_back, executable));
            gate.open();
            still_works(&stream)?;
            reaches("all are dropped", &dropped, 3 * round);
            reaches("all have waited", &waited, 3 * round);
        }
        still_works(&stream)
    });
}

#[test]
fn values_that_an_update_replaced_may_panic_and_wait_when_they_are_dropped() {
    for_each_device(|device| {
        let (stream, gate) = (device.stream()?, Gate::closed());
        let (dropped, waited) = (counter(), counter());
        let graph = Graph::new(device);
        let first = graph.callback(gate.waiter())?;
        let panics = first.callback(holding(PanicsAgain(dropped.clone())))?;
        let waits = first.callback(holding(Waits(stream.clone(), waited.clone())))?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        executable.node(&panics)?.set_callback(|| {})?;
        executable.node(&waits)?.set_callback(|| {})?;
        drop((graph, first, panics, waits));
        gate.open();
        still_works(&stream)?;
        executable.launch(&stream)?;
        still_works(&stream)?;
        reaches("the one is dropped", &dropped, 1);
        reaches("the other has waited", &waited, 1);
        Ok(())
    });
}

#[test]
fn values_that_go_with_a_graph_on_the_threads_of_users_may_panic_too() {
    for_each_device(|device| {
        let dropped = counter();
        let graph = Graph::new(device);
        let node = graph.callback(holding(PanicsAgain(dropped.clone())))?;
        graph.callback(holding(PanicsAgain(dropped.clone())))?;
        graph.callback(holding(PanicsAgain(dropped.clone())))?;
        node.delete()?;
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(graph.len(), 2);
        drop((graph, node));
        assert_eq!(dropped.load(Ordering::SeqCst), 3);
        Ok(())
    });
}

#[test]
fn what_a_callback_panics_with_may_panic_again() {
    for_each_device(|device| {
        let stream = device.stream()?;
        for _ in 0..3 {
            stream.callback(|| std::panic::panic_any(Payload))?;
            let waiting = stream.clone();
            let waited = ends("the stream", move || waiting.synchronize());
            refused(waited, ErrorKind::CallbackPanicked, &[]);
        }
        let graph = Graph::new(device);
        graph.callback(|| std::panic::panic_any(Payload))?;
        graph.callback(|| std::panic::panic_any(Payload))?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        let waiting = stream.clone();
        refused(ends("a launch", move || waiting.synchronize()), ErrorKind::CallbackPanicked, &[]);
        still_works(&stream)
    });
}

#[test]
fn a_value_that_launches_more_when_it_is_dropped_does_not_deadlock() {
    for_each_device(|device| {
        /// Launches an executable once more, and waits.
        struct Launches(Arc<Executable>, Stream, Arc<AtomicUsize>);
        impl Drop for Launches {
            fn drop(&mut self) {
                let launched = self.0.launch(&self.1).and_then(|()| self.1.synchronize());
                self.2.fetch_add(usize::from(launched.is_ok()), Ordering::SeqCst);
            }
        }
        let kernels = GraphKernels::new(device)?;
        let (value, launched) = (kernels.value(0)?, counter());
        let graph = Graph::new(device);
        kernels.bump(&graph, &value, 1)?;
        let executable = Arc::new(graph.instantiate()?);
        let stream = &kernels.stream;
        for _ in 0..3 {
            let guard = Launches(executable.clone(), stream.clone(), launched.clone());
            stream.callback(holding(guard))?;
        }
        still_works(stream)?;
        reaches("all have launched", &launched, 3);
        assert_eq!(value.to_vec()?, [3]);
        Ok(())
    });
}

#[test]
fn a_drop_that_waits_for_another_drop_holds_up_nothing() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        /// Waits until the gate is open.
        struct WaitsForGate(Gate, Arc<AtomicUsize>);
        impl Drop for WaitsForGate {
            fn drop(&mut self) {
                self.0.wait();
                self.1.fetch_add(1, Ordering::SeqCst);
            }
        }
        /// Opens it.
        struct Opens(Gate);
        impl Drop for Opens {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        let (stream, gate, dropped) = (device.stream()?, Gate::closed(), counter());
        let waits = WaitsForGate(gate.clone(), dropped.clone());
        // The clones that the closures hold open the gate too, but only once they are dropped.
        stream.callback(holding(waits))?;
        stream.callback(holding(Opens(gate.clone())))?;
        still_works(&stream)?;
        std::mem::forget(gate);
        reaches("the drop that waits goes on", &dropped, 1);
        Ok(())
    });
}

#[test]
fn a_long_list_of_graphs_that_own_each_other_through_closures_overflows_no_stack() {
    const LINKS: usize = 50_000;
    struct Link(#[expect(dead_code, reason = "owned")] Option<Graph>, Arc<AtomicUsize>);
    impl Drop for Link {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    for_each_device(|device| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut list = None;
        for _ in 0..LINKS {
            let (graph, link) = (Graph::new(device), Link(list.take(), dropped.clone()));
            graph.callback(move || {
                let _ = &link;
            })?;
            list = Some(graph);
        }
        drop(list);
        assert_eq!(dropped.load(Ordering::SeqCst), LINKS);
        Ok(())
    });
}
