//! Events: how streams come into a capture and go out of it.

use gridloom_core::ErrorKind;
use gridloom_core::null::CallKind;
use gridloom_core::op::{NodeKind, Operation};

use crate::common::{Bench, edges, nothing, record_loop, refused};

fn kinds(graph: &gridloom_core::Graph) -> Vec<NodeKind> {
    graph.nodes().iter().map(|node| node.kind().unwrap()).collect()
}

#[test]
fn a_stream_that_waits_for_a_captured_event_becomes_a_fork_and_joins_through_another() {
    let bench = Bench::new();
    let (side, forked, joined) = (bench.stream(), bench.event(), bench.event());
    let capture = bench.stream.capture().unwrap();
    bench.stream.enqueue(bench.kernel()).unwrap();
    bench.stream.record(&forked).unwrap();
    side.wait(&forked).unwrap();
    assert!(side.is_capturing());
    side.enqueue(bench.memset()).unwrap();
    bench.stream.enqueue(bench.kernel()).unwrap();
    side.record(&joined).unwrap();
    bench.stream.wait(&joined).unwrap();
    bench.stream.enqueue(bench.kernel()).unwrap();
    let graph = capture.end().unwrap();

    use NodeKind::{Kernel, Memset};
    assert_eq!(kinds(&graph), [Kernel, Memset, Kernel, Kernel]);
    assert_eq!(edges(&graph), [(0, 1), (0, 2), (1, 3), (2, 3)]);
    assert!(!side.is_capturing() && !bench.stream.is_capturing());
    side.synchronize().unwrap();
    assert_eq!(bench.device.count(CallKind::Enqueue), 0);
}

#[test]
fn a_fork_through_an_event_can_bring_in_further_streams() {
    let bench = Bench::new();
    let (second, third) = (bench.stream(), bench.stream());
    let (one, two, three) = (bench.event(), bench.event(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&one).unwrap();
    second.wait(&one).unwrap();
    second.record(&two).unwrap();
    third.wait(&two).unwrap();
    third.record(&three).unwrap();
    capture.wait_event(&three).unwrap();
    // The second stream's work leads to the third's, so it is joined with it.
    let graph = capture.end().unwrap();
    assert_eq!(kinds(&graph), [NodeKind::EventRecord, NodeKind::EventRecord, NodeKind::EventWait]);
    assert_eq!(edges(&graph), [(0, 1), (0, 2), (1, 2)]);
    assert!(!second.is_capturing() && !third.is_capturing());
}

#[test]
fn a_stream_brought_in_and_not_joined_is_a_loose_end() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    bench.stream.record(&event).unwrap();
    side.wait(&event).unwrap();
    side.enqueue(bench.kernel()).unwrap();
    refused(capture.end(), ErrorKind::InvalidState, &["fork 1 at kernel#1 work", "wait for an event"]);
    side.record(&event).unwrap();
    bench.stream.wait(&event).unwrap();
    capture.end().unwrap();
    assert!(!side.is_capturing());
}

#[test]
fn work_after_the_event_that_joined_it_is_loose_again() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    side.wait(&event).unwrap();
    side.record(&event).unwrap();
    capture.wait_event(&event).unwrap();
    side.enqueue(bench.kernel()).unwrap();
    refused(capture.end(), ErrorKind::InvalidState, &["kernel#3 work"]);
}

#[test]
fn a_stream_brought_in_cannot_start_a_capture_of_its_own() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    side.wait(&event).unwrap();
    refused(side.capture(), ErrorKind::InvalidState, &["capturing already"]);
    drop(capture);
    side.capture().unwrap();
}

#[test]
fn a_forked_capture_can_be_joined_through_an_event() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    fork.add(nothing()).unwrap();
    fork.record_event(&event).unwrap();
    capture.wait_event(&event).unwrap();
    drop(fork);
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1), (1, 2)]);
}

#[test]
fn a_wait_for_an_event_of_the_same_line_adds_no_second_edge() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    capture.wait_event(&event).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1)]);
}

#[test]
fn a_wait_for_an_event_recorded_outside_is_a_node_for_the_launch() {
    let bench = Bench::new();
    let (event, never) = (bench.event(), bench.event());
    bench.stream.record(&event).unwrap();
    let capture = bench.stream.capture().unwrap();
    capture.wait_event(&event).unwrap();
    capture.wait_event(&never).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(kinds(&graph), [NodeKind::EventWait, NodeKind::EventWait]);
    assert_eq!(edges(&graph), [(0, 1)]);
}

#[test]
fn the_latest_recording_of_an_event_is_the_one_waited_for() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    // Recorded again by a stream that runs: from now on the event has nothing to do with the
    // capture.
    side.record(&event).unwrap();
    side.wait(&event).unwrap();
    assert!(!side.is_capturing());
    let first = capture.add(nothing()).unwrap();
    assert_eq!(capture.wait_event(&event).unwrap().predecessors().unwrap(), [first]);
    // And recorded again in the capture: from now on it has.
    capture.record_event(&event).unwrap();
    side.wait(&event).unwrap();
    assert!(side.is_capturing());
}

#[test]
fn a_stream_waits_as_usual_for_an_event_of_a_capture_that_ended_or_was_dropped() {
    let bench = Bench::new();
    let (side, ended, dropped) = (bench.stream(), bench.event(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&ended).unwrap();
    capture.end().unwrap();
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&dropped).unwrap();
    drop(capture);
    for event in [&ended, &dropped] {
        side.wait(event).unwrap();
        assert!(!side.is_capturing());
    }
    assert_eq!(bench.device.count(CallKind::Enqueue), 2);
    let capture = bench.stream.capture().unwrap();
    capture.wait_event(&ended).unwrap();
    capture.wait_event(&dropped).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1)]);
}

#[test]
fn a_capture_cannot_wait_for_a_part_of_another_one() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let one = bench.stream.capture().unwrap();
    let other = side.capture().unwrap();
    one.record_event(&event).unwrap();
    refused(
        other.wait_event(&event),
        ErrorKind::InvalidState,
        &["another capture that is still in progress"],
    );
    refused(side.wait(&event), ErrorKind::InvalidState, &["another capture that is still in progress"]);
    assert!(other.end().unwrap().is_empty());
}

#[test]
fn a_stream_of_another_device_is_not_brought_in() {
    let (bench, other) = (Bench::new(), Bench::new());
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    refused(other.stream.wait(&event), ErrorKind::WrongDevice, &["another device"]);
    assert!(!other.stream.is_capturing());
    assert_eq!(capture.end().unwrap().len(), 1);
}

#[test]
fn an_event_of_a_capture_that_goes_on_is_not_waited_for_by_the_host() {
    let bench = Bench::new();
    let (event, earlier) = (bench.event(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    refused(event.synchronize(), ErrorKind::InvalidState, &["recorded in a capture", "launch its graph"]);
    refused(event.is_reached(), ErrorKind::InvalidState, &["asking for"]);
    refused(event.elapsed_since(&earlier), ErrorKind::InvalidState, &["timing"]);
    refused(earlier.elapsed_since(&event), ErrorKind::InvalidState, &["timing"]);
    capture.end().unwrap();
    event.synchronize().unwrap();
    assert!(event.is_reached().unwrap());
    event.elapsed_since(&earlier).unwrap();
}

#[test]
fn a_recording_that_fails_leaves_the_event_as_it_was() {
    let (bench, other) = (Bench::new(), Bench::new());
    let event = other.event();
    let capture = bench.stream.capture().unwrap();
    refused(capture.record_event(&event), ErrorKind::WrongDevice, &[]);
    event.synchronize().unwrap();
    assert!(capture.end().unwrap().is_empty());
}

#[test]
fn a_body_waits_for_an_event_recorded_before_the_conditional() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    capture.record_event(&event).unwrap();
    let (_, body) = record_loop(&capture);
    let inside = body.fill(|body| body.wait_event(&event).map(drop)).unwrap();
    capture.end().unwrap();
    assert_eq!((kinds(&inside), edges(&inside)), (vec![NodeKind::EventWait], vec![]));
}

#[test]
fn a_body_cannot_wait_for_an_event_recorded_beside_the_conditional() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    let (node, body) = record_loop(&capture);
    let fork = capture.fork(2).unwrap().remove(0);
    capture.record_event(&event).unwrap();
    body.begin().unwrap();
    refused(body.wait_event(&event), ErrorKind::Unordered, &["record#1", "come before while#0"]);
    body.end().unwrap();
    capture.join([&fork]).unwrap();
    capture.end().unwrap();
    assert!(node.bodies().unwrap()[0].is_empty());
}

#[test]
fn a_wait_for_an_event_recorded_in_a_body_comes_after_the_conditional() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    let (node, body) = record_loop(&fork);
    body.begin().unwrap();
    body.record_event(&event).unwrap();
    refused(
        capture.wait_event(&event),
        ErrorKind::InvalidState,
        &["while#0/record#0", "end that body first"],
    );
    body.end().unwrap();
    let wait = capture.wait_event(&event).unwrap();
    assert_eq!(wait.predecessors().unwrap(), [node]);
    capture.end().unwrap();
}

#[test]
fn the_bodies_of_one_conditional_do_not_wait_for_each_other() {
    let bench = Bench::new();
    let event = bench.event();
    let capture = bench.stream.capture().unwrap();
    let condition = capture.condition(0).unwrap();
    let spec = crate::common::conditional(gridloom_core::op::ConditionalForm::IfElse, &condition, 2);
    let (_, bodies) = capture.conditional(&spec).unwrap();
    bodies[0].fill(|body| body.record_event(&event).map(drop)).unwrap();
    bodies[1].begin().unwrap();
    refused(bodies[1].wait_event(&event), ErrorKind::Unordered, &["if-else#0"]);
}

#[test]
fn a_stream_can_be_brought_into_a_body() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    let inside = body
        .fill(|body| {
            body.record_event(&event)?;
            side.wait(&event)?;
            side.enqueue(bench.kernel())?;
            side.record(&event)?;
            body.wait_event(&event).map(drop)
        })
        .unwrap();
    assert!(!side.is_capturing());
    capture.end().unwrap();
    use NodeKind::{EventRecord, EventWait, Kernel};
    assert_eq!(kinds(&inside), [EventRecord, Kernel, EventRecord, EventWait]);
    assert_eq!(edges(&inside), [(0, 1), (0, 3), (1, 2), (2, 3)]);
}

#[test]
fn events_recorded_as_plain_operations_bring_no_stream_in() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    capture.add(Operation::EventRecord(event.backend().clone())).unwrap();
    side.wait(&event).unwrap();
    assert!(!side.is_capturing());
}

#[test]
fn an_event_that_only_orders_captured_work_becomes_edges() {
    let bench = Bench::new();
    let (second, third, event) = (bench.stream(), bench.stream(), bench.event());
    let graph = bench
        .stream
        .capture_scope(|_| {
            // At the start of the capture there is nothing to wait for.
            bench.stream.record(&event)?;
            second.wait(&event)?;
            second.enqueue(bench.kernel())?;
            bench.stream.enqueue(bench.memset())?;
            // One event waited for twice, and recorded again.
            bench.stream.record(&event)?;
            second.wait(&event)?;
            third.wait(&event)?;
            third.enqueue(bench.kernel())?;
            second.enqueue(bench.memset())?;
            third.record(&event)?;
            second.wait(&event)?;
            second.record(&event)?;
            bench.stream.wait(&event)
        })
        .unwrap();
    use NodeKind::{Kernel, Memset};
    assert_eq!(kinds(&graph), [Kernel, Memset, Kernel, Memset]);
    assert_eq!(edges(&graph), [(0, 3), (1, 2), (1, 3)]);
    assert!(!second.is_capturing() && !third.is_capturing());
}

#[test]
fn an_event_is_found_after_its_recording_and_the_one_before_became_edges() {
    let bench = Bench::new();
    let (one, two) = (bench.event(), bench.event());
    let streams = [bench.stream(), bench.stream(), bench.stream()];
    let graph = bench
        .stream
        .capture_scope(|_| {
            bench.stream.enqueue(bench.kernel())?;
            bench.stream.record(&one)?;
            bench.stream.record(&two)?;
            streams[0].wait(&two)?;
            streams[1].wait(&one)?;
            streams[2].wait(&two)?;
            for stream in &streams {
                stream.enqueue(bench.memset())?;
                stream.record(&two)?;
                bench.stream.wait(&two)?;
            }
            Ok(())
        })
        .unwrap();
    use NodeKind::{Kernel, Memset};
    assert_eq!(kinds(&graph), [Kernel, Memset, Memset, Memset]);
    assert_eq!(edges(&graph), [(0, 1), (0, 2), (0, 3)]);
}

#[test]
fn an_event_that_nothing_in_the_capture_needs_stays_a_node_for_others_to_see() {
    let bench = Bench::new();
    let (start, end) = (bench.event(), bench.event());
    let graph = bench
        .stream
        .capture_scope(|_| {
            bench.stream.record(&start)?;
            bench.stream.enqueue(bench.kernel())?;
            // On the same stream it comes before anyway.
            bench.stream.wait(&start)?;
            bench.stream.record(&end)
        })
        .unwrap();
    use NodeKind::{EventRecord, Kernel};
    assert_eq!(kinds(&graph), [EventRecord, Kernel, EventRecord]);
    assert_eq!(edges(&graph), [(0, 1), (1, 2)]);
    end.elapsed_since(&start).unwrap();
}

#[test]
fn an_event_that_became_edges_cannot_be_waited_for_after_its_capture_until_it_is_recorded_again() {
    let bench = Bench::new();
    let (side, event, other) = (bench.stream(), bench.event(), bench.event());
    bench
        .stream
        .capture_scope(|_| {
            bench.stream.record(&event)?;
            side.wait(&event)?;
            side.record(&other)?;
            bench.stream.wait(&other)
        })
        .unwrap();
    let says = ["only ordered work", "Capture::record"];
    refused(event.synchronize(), ErrorKind::InvalidState, &says);
    refused(event.is_reached(), ErrorKind::InvalidState, &says);
    refused(event.elapsed_since(&other), ErrorKind::InvalidState, &says);
    refused(side.wait(&event), ErrorKind::InvalidState, &says);
    let capture = bench.stream.capture().unwrap();
    refused(capture.wait_event(&event), ErrorKind::InvalidState, &says);
    refused(bench.stream.wait(&event), ErrorKind::InvalidState, &says);
    drop(capture);
    bench.stream.record(&event).unwrap();
    event.synchronize().unwrap();
    side.wait(&event).unwrap();
}

#[test]
fn a_wait_node_for_an_event_that_became_edges_is_an_empty_node_in_its_place() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    let first = capture.add(bench.kernel()).unwrap();
    bench.stream.record(&event).unwrap();
    side.wait(&event).unwrap();
    let wait = fork.wait_event(&event).unwrap();
    assert_eq!((wait.kind().unwrap(), wait.predecessors().unwrap()), (NodeKind::Empty, vec![first]));
}

#[test]
fn a_body_waits_for_an_event_that_became_edges_outside() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    bench.stream.enqueue(bench.kernel()).unwrap();
    bench.stream.record(&event).unwrap();
    side.wait(&event).unwrap();
    let (_, body) = record_loop(&capture);
    let beside = capture.fork(2).unwrap().remove(0);
    let inside = body.fill(|body| body.wait_event(&event).map(drop)).unwrap();
    assert_eq!(kinds(&inside), [NodeKind::Empty]);
    capture.join([&beside]).unwrap();
    side.record(&event).unwrap();
    bench.stream.wait(&event).unwrap();
    capture.end().unwrap();
}

#[test]
fn the_event_that_a_node_returns_knows_that_it_was_captured() {
    let bench = Bench::new();
    let (side, event) = (bench.stream(), bench.event());
    let capture = bench.stream.capture().unwrap();
    let node = capture.record_event(&event).unwrap();
    let Operation::EventRecord(backend) = node.operation().unwrap() else { panic!("it records an event") };
    let same = gridloom_core::Event::from_backend(backend);
    assert!(same == event);
    refused(same.synchronize(), ErrorKind::InvalidState, &["recorded in a capture"]);
    side.wait(&same).unwrap();
    assert!(side.is_capturing());
    drop(capture);
    assert!(!side.is_capturing());
}
