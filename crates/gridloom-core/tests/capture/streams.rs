//! A stream while it captures.

use gridloom_core::executable::InstantiateOptions;
use gridloom_core::null::{CallKind, NullDevice};
use gridloom_core::op::NodeKind;
use gridloom_core::{Capture, ErrorKind, Stream};

use crate::common::{Bench, edges, nothing, refused};

fn recorded(capture: &Capture) -> usize {
    capture.end().unwrap().len()
}

#[test]
fn what_is_enqueued_is_recorded_and_not_run() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    bench.stream.enqueue(bench.kernel()).unwrap();
    bench.stream.enqueue(bench.memset()).unwrap();
    assert_eq!(bench.device.count(CallKind::Enqueue), 0);
    let graph = capture.end().unwrap();
    let kinds: Vec<_> = graph.nodes().iter().map(|node| node.kind().unwrap()).collect();
    assert_eq!(kinds, [NodeKind::Kernel, NodeKind::Memset]);
    bench.stream.enqueue(bench.kernel()).unwrap();
    assert_eq!(bench.device.count(CallKind::Enqueue), 1);
}

#[test]
fn the_stream_and_its_capture_record_one_line() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    bench.stream.enqueue(nothing()).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1), (1, 2)]);
}

#[test]
fn clones_of_a_stream_capture_together() {
    let bench = Bench::new();
    let clone = bench.stream.clone();
    let capture = bench.stream.capture().unwrap();
    assert!(clone.is_capturing());
    refused(clone.capture(), ErrorKind::InvalidState, &["capturing already"]);
    clone.enqueue(nothing()).unwrap();
    assert_eq!(recorded(&capture), 1);
    assert!(!clone.is_capturing());
}

#[test]
fn other_streams_of_the_device_run_on() {
    let bench = Bench::new();
    let other = bench.stream();
    let _capture = bench.stream.capture().unwrap();
    other.enqueue(bench.kernel()).unwrap();
    other.synchronize().unwrap();
    assert_eq!(bench.device.count(CallKind::Enqueue), 1);
}

#[test]
fn synchronising_or_querying_is_refused_and_does_not_spoil_the_capture() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    bench.stream.enqueue(nothing()).unwrap();
    refused(bench.stream.synchronize(), ErrorKind::InvalidState, &["synchronize", "end the capture first"]);
    refused(bench.stream.is_idle(), ErrorKind::InvalidState, &["query", "end the capture first"]);
    bench.stream.enqueue(nothing()).unwrap();
    assert_eq!(recorded(&capture), 2);
    bench.stream.synchronize().unwrap();
    assert!(bench.stream.is_idle().unwrap());
}

#[test]
fn uploading_on_a_capturing_stream_is_refused() {
    let bench = Bench::new();
    let graph = bench.stream.capture_scope(|capture| capture.add(nothing()).map(drop)).unwrap();
    let executable = graph.instantiate().unwrap();
    let capture = bench.stream.capture().unwrap();
    refused(executable.upload(&bench.stream), ErrorKind::InvalidState, &["upload", "another stream"]);
    let options = InstantiateOptions { upload: Some(bench.stream.clone()), ..InstantiateOptions::default() };
    refused(graph.instantiate_with(&options), ErrorKind::InvalidState, &["upload"]);
    assert_eq!(recorded(&capture), 0);
}

#[test]
fn launching_an_executable_records_its_graph() {
    let bench = Bench::new();
    let graph = bench.stream.capture_scope(|capture| capture.add(bench.kernel()).map(drop)).unwrap();
    let executable = graph.instantiate().unwrap();
    let capture = bench.stream.capture().unwrap();
    executable.launch(&bench.stream).unwrap();
    executable.launch(&capture).unwrap();
    assert_eq!(bench.device.count(CallKind::Launch), 0);
    let graph = capture.end().unwrap();
    assert_eq!(edges(&graph), [(0, 1)]);
    assert!(graph.nodes().iter().all(|node| node.kind().unwrap() == NodeKind::Child));
}

#[test]
fn objects_of_another_device_are_refused_and_do_not_spoil_the_capture() {
    let (bench, other) = (Bench::new(), Bench::new());
    let capture = bench.stream.capture().unwrap();
    refused(capture.add(other.kernel()), ErrorKind::WrongDevice, &["another device"]);
    refused(capture.record_event(&other.event()), ErrorKind::WrongDevice, &["another device"]);
    refused(bench.stream.record(&other.event()), ErrorKind::WrongDevice, &["another device"]);
    let foreign = other.stream.capture_scope(|_| Ok(())).unwrap();
    refused(capture.embed(&foreign), ErrorKind::WrongDevice, &["another device"]);
    refused(
        capture.launch_graph(&foreign.instantiate().unwrap()),
        ErrorKind::WrongDevice,
        &["another device"],
    );
    assert_eq!(recorded(&capture), 0);
}

#[test]
fn a_graph_outlives_its_capture_and_its_stream() {
    let device = NullDevice::new();
    let graph = {
        let stream = Stream::new(&device).unwrap();
        stream.capture_scope(|capture| capture.add(nothing()).map(drop)).unwrap()
    };
    let last = graph.nodes().remove(0);
    graph.add(&[&last], nothing()).unwrap();
    assert_eq!(edges(&graph), [(0, 1)]);
    graph.instantiate().unwrap();
}

#[test]
fn captures_are_used_from_any_thread() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Capture>();
    assert_send_sync::<Stream>();
}
