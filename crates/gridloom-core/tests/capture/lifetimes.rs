//! What a capture retains, and when it lets go.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gridloom_core::capture::CaptureState;
use gridloom_core::{Capture, ErrorKind, Stream};
use parking_lot::Mutex;

use crate::common::{Bench, Witness, callback, nothing, record_loop, refused};

#[test]
fn what_was_captured_lives_as_long_as_the_graph() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let capture = bench.stream.capture().unwrap();
    capture.add(witness.callback()).unwrap();
    let graph = capture.end().unwrap();
    drop(capture);
    assert_eq!(witness.held(), 1);
    drop(graph);
    assert_eq!(witness.held(), 0);
}

#[test]
fn memory_is_retained_like_in_an_explicit_graph() {
    let bench = Bench::new();
    let graph = bench.stream.capture_scope(|capture| capture.add(bench.memset()).map(drop)).unwrap();
    assert_eq!(bench.device.live_allocations(), 1);
    let executable = graph.instantiate().unwrap();
    drop(graph);
    assert_eq!(bench.device.live_allocations(), 1);
    drop(executable);
    assert_eq!(bench.device.live_allocations(), 0);
}

#[test]
fn a_capture_dropped_half_way_discards_everything_and_frees_the_stream() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.add(witness.callback()).unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    fork.add(witness.callback()).unwrap();
    let (_, body) = record_loop(&fork);
    body.begin().unwrap();
    body.add(witness.callback()).unwrap();
    capture.record_event(&event).unwrap();
    side.wait(&event).unwrap();
    side.enqueue(witness.callback()).unwrap();
    assert_eq!(witness.held(), 4);

    // The fork, the body, the side stream and the event are still there, and hold nothing.
    drop(capture);
    assert_eq!(witness.held(), 0);
    assert!(!bench.stream.is_capturing() && !side.is_capturing());
    assert_eq!((fork.state(), body.state()), (CaptureState::Closed, CaptureState::Closed));
    refused(fork.add(nothing()), ErrorKind::InvalidState, &["was closed"]);
    bench.stream.synchronize().unwrap();
    side.synchronize().unwrap();
    event.synchronize().unwrap();
    assert!(bench.stream.capture().unwrap().end().unwrap().is_empty());
}

#[test]
fn closing_a_capture_half_way_discards_everything_at_once() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let capture = bench.stream.capture().unwrap();
    capture.add(witness.callback()).unwrap();
    capture.close();
    assert_eq!(witness.held(), 0);
    assert!(!bench.stream.is_capturing());
}

#[test]
fn an_early_return_leaves_the_stream_usable() {
    fn fails(stream: &Stream, witness: &Witness) -> gridloom_core::Result<()> {
        let capture = stream.capture()?;
        capture.add(witness.callback())?;
        capture.fork(1)?;
        capture.end().map(drop)
    }
    let (bench, witness) = (Bench::new(), Witness::default());
    refused(fails(&bench.stream, &witness), ErrorKind::InvalidArgument, &[]);
    assert_eq!(witness.held(), 0);
    bench.stream.synchronize().unwrap();
}

#[test]
fn a_panic_leaves_the_stream_usable() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let capture = bench.stream.capture().unwrap();
        let _fork = capture.fork(2).unwrap();
        let (_, body) = record_loop(&capture);
        body.begin().unwrap();
        body.add(witness.callback()).unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert_eq!(witness.held(), 0);
    bench.stream.synchronize().unwrap();
}

#[test]
fn a_stream_dropped_while_it_captures_takes_nothing_along() {
    let (device, witness) = (Bench::new().device, Witness::default());
    let stream = Stream::new(&device).unwrap();
    let capture = stream.capture().unwrap();
    stream.enqueue(witness.callback()).unwrap();
    drop(stream);
    capture.add(nothing()).unwrap();
    assert_eq!(capture.end().unwrap().len(), 2);
    drop(capture);
    assert_eq!(witness.held(), 0);
}

#[test]
fn neither_streams_nor_events_keep_a_captured_graph_alive() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let (side, event) = (bench.stream(), bench.event());
    let graph = bench
        .stream
        .capture_scope(|capture| {
            capture.add(witness.callback())?;
            capture.record_event(&event)?;
            side.wait(&event)?;
            side.record(&event)?;
            capture.wait_event(&event).map(drop)
        })
        .unwrap();
    drop(graph);
    assert_eq!(witness.held(), 0);
}

#[test]
fn captures_of_ended_bodies_and_forks_keep_nothing_alive_that_the_graph_let_go() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    let node = fork.add(witness.callback()).unwrap();
    capture.join([&fork]).unwrap();
    let graph = capture.end().unwrap();
    node.delete().unwrap();
    assert_eq!(witness.held(), 0);
    assert!(graph.is_empty());
}

#[test]
fn an_operation_that_is_refused_is_let_go() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(2).unwrap();
    capture.join(&forks).unwrap();
    refused(forks[0].add(witness.callback()), ErrorKind::InvalidState, &["joined"]);
    assert_eq!(witness.held(), 0);
    assert!(capture.end().unwrap().is_empty());
}

/// Uses the capture when it is dropped, as a closure of a user's may.
struct RecordsOnDrop(Arc<Mutex<Option<Capture>>>);

impl Drop for RecordsOnDrop {
    fn drop(&mut self) {
        if let Some(capture) = self.0.lock().as_ref() {
            // Only that it comes back matters: under a lock of the capture it would not.
            let _ = capture.add(nothing());
        }
    }
}

#[test]
fn a_refused_operation_may_use_the_capture_while_it_is_dropped() {
    let bench = Bench::new();
    let shared = Arc::new(Mutex::new(None));
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    capture.join([&fork]).unwrap();
    *shared.lock() = Some(capture);
    let bomb = RecordsOnDrop(shared.clone());
    refused(
        fork.add(callback(move || {
            let _ = &bomb;
        })),
        ErrorKind::InvalidState,
        &["joined"],
    );
    let capture = shared.lock().take().unwrap();
    assert_eq!(capture.end().unwrap().len(), 1);
}

#[test]
fn a_discarded_operation_may_use_a_stream_while_it_is_dropped() {
    struct UsesStreamOnDrop(Stream);
    impl Drop for UsesStreamOnDrop {
        fn drop(&mut self) {
            assert!(!self.0.is_capturing());
            self.0.capture().unwrap().end().unwrap();
        }
    }
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let bomb = UsesStreamOnDrop(bench.stream.clone());
    capture
        .add(callback(move || {
            let _ = &bomb;
        }))
        .unwrap();
    drop(capture);
    assert!(!bench.stream.is_capturing());
}
