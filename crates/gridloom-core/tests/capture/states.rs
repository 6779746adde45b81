//! What each state of a capture allows, and the error of each thing it does not.

use gridloom_core::capture::{CaptureKind, CaptureState};
use gridloom_core::graph::EdgeKind;
use gridloom_core::{ErrorKind, Graph, Node};

use crate::common::{Bench, edges, nothing, record_loop, refused};

#[test]
fn a_primary_capture_has_begun_and_gives_its_graph_when_it_ends() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    assert_eq!((capture.kind(), capture.state()), (CaptureKind::Primary, CaptureState::Capturing));
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(capture.state(), CaptureState::Ended);
    assert_eq!(capture.graph().unwrap(), graph);
    assert_eq!(graph.len(), 1);
}

#[test]
fn what_is_recorded_on_one_capture_comes_in_order() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    for _ in 0..3 {
        capture.add(bench.kernel()).unwrap();
    }
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1), (1, 2)]);
}

#[test]
fn an_empty_capture_gives_an_empty_graph() {
    let bench = Bench::new();
    let graph = bench.stream.capture().unwrap().end().unwrap();
    assert!(graph.is_empty());
    graph.instantiate().unwrap().launch(&bench.stream).unwrap();
}

#[test]
fn a_stream_cannot_capture_twice_at_once() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(bench.stream.capture(), ErrorKind::InvalidState, &["capturing already"]);
    refused(capture.begin(), ErrorKind::InvalidState, &["begun already"]);
    capture.add(nothing()).unwrap();
    assert_eq!(capture.end().unwrap().len(), 1);
}

#[test]
fn a_stream_can_capture_again_and_again() {
    let bench = Bench::new();
    for count in 1..4 {
        let capture = bench.stream.capture().unwrap();
        for _ in 0..count {
            bench.stream.enqueue(nothing()).unwrap();
        }
        assert_eq!(capture.end().unwrap().len(), count);
    }
}

#[test]
fn the_graph_is_not_shown_while_it_is_captured() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(capture.graph(), ErrorKind::InvalidState, &["incomplete"]);
    capture.end().unwrap();
    assert!(capture.graph().is_ok());
}

#[test]
fn an_ended_capture_records_nothing_more() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let graph = capture.end().unwrap();
    refused(capture.add(nothing()), ErrorKind::InvalidState, &["has ended", "edit its graph"]);
    refused(capture.end(), ErrorKind::InvalidState, &["has ended"]);
    refused(capture.begin(), ErrorKind::InvalidState, &["cannot begin again"]);
    refused(capture.fork(2), ErrorKind::InvalidState, &["has ended"]);
    refused(capture.condition(1), ErrorKind::InvalidState, &["has ended"]);
    assert!(graph.is_empty());
}

#[test]
fn a_closed_capture_allows_nothing() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.close();
    assert_eq!(capture.state(), CaptureState::Closed);
    refused(capture.add(nothing()), ErrorKind::InvalidState, &["was closed"]);
    refused(capture.end(), ErrorKind::InvalidState, &["was closed"]);
    refused(capture.graph(), ErrorKind::InvalidState, &["was closed"]);
    refused(capture.begin(), ErrorKind::InvalidState, &["was closed"]);
    capture.close();
}

#[test]
fn closing_an_ended_capture_leaves_its_graph_alone() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    capture.close();
    refused(capture.graph(), ErrorKind::InvalidState, &["was closed"]);
    assert_eq!(graph.len(), 1);
}

#[test]
fn a_body_begins_before_it_records_and_ends_once() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    assert_eq!((body.kind(), body.state()), (CaptureKind::Body, CaptureState::NotStarted));
    refused(body.add(nothing()), ErrorKind::InvalidState, &["not begun"]);
    refused(body.end(), ErrorKind::InvalidState, &["not begun"]);
    refused(body.fork(2), ErrorKind::InvalidState, &["not begun"]);
    refused(body.condition(None), ErrorKind::InvalidState, &["not begun"]);
    body.begin().unwrap();
    refused(body.begin(), ErrorKind::InvalidState, &["begun already"]);
    body.add(nothing()).unwrap();
    body.end().unwrap();
    refused(body.begin(), ErrorKind::InvalidState, &["cannot begin again"]);
    capture.end().unwrap();
}

#[test]
fn a_scope_cannot_be_left_open() {
    let bench = Bench::new();
    let graph = bench.stream.capture_scope(|capture| capture.add(nothing()).map(drop)).unwrap();
    assert_eq!(graph.len(), 1);

    let failed = bench.stream.capture_scope(|capture| {
        capture.add(nothing())?;
        capture.fork(1).map(drop)
    });
    refused(failed, ErrorKind::InvalidArgument, &["fork into 1"]);
    assert!(!bench.stream.is_capturing());

    let stream = bench.stream.clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture_scope(|_| std::panic::resume_unwind(Box::new("on purpose")))
    }));
    assert!(panicked.is_err());
    assert!(!bench.stream.is_capturing());
    bench.stream.synchronize().unwrap();
}

#[test]
fn a_scope_with_loose_ends_fails_and_leaves_the_stream_usable() {
    let bench = Bench::new();
    let failed = bench.stream.capture_scope(|capture| {
        let forks = capture.fork(2)?;
        forks[0].add(nothing()).map(drop)
    });
    refused(failed, ErrorKind::InvalidState, &["not joined"]);
    assert!(!bench.stream.is_capturing());
}

#[test]
fn conditions_take_booleans_and_every_integer_type() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let value =
        |condition: gridloom_core::Result<gridloom_core::Condition>| condition.unwrap().default_value();
    assert_eq!(value(capture.condition(true)), Some(1));
    assert_eq!(value(capture.condition(false)), Some(0));
    assert_eq!(value(capture.condition(None)), None);
    assert_eq!(value(capture.condition(Some(9))), Some(9));
    assert_eq!(value(capture.condition(9)), Some(9));
    assert_eq!(value(capture.condition(9u8)), Some(9));
    assert_eq!(value(capture.condition(9i8)), Some(9));
    assert_eq!(value(capture.condition(9u16)), Some(9));
    assert_eq!(value(capture.condition(9i16)), Some(9));
    assert_eq!(value(capture.condition(u32::MAX)), Some(u32::MAX));
    assert_eq!(value(capture.condition(9i32)), Some(9));
    assert_eq!(value(capture.condition(9u64)), Some(9));
    assert_eq!(value(capture.condition(9i64)), Some(9));
    assert_eq!(value(capture.condition(9usize)), Some(9));
    assert_eq!(value(capture.condition(9isize)), Some(9));
    assert_eq!(value(capture.condition(9u128)), Some(9));
    assert_eq!(value(capture.condition(9i128)), Some(9));
}

#[test]
fn a_condition_holds_no_value_that_does_not_fit() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(capture.condition(-1), ErrorKind::InvalidArgument, &["-1"]);
    refused(capture.condition(1u64 << 32), ErrorKind::InvalidArgument, &["4294967296"]);
}

#[test]
fn while_a_capture_records_nobody_else_writes_its_graph() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (first, second) = (capture.add(nothing()).unwrap(), capture.add(nothing()).unwrap());
    let (conditional, body) = record_loop(&capture);
    let graph = first.graph().unwrap();
    let refuses = |graph: &Graph, first: &Node, second: &Node| {
        let says = &["a capture records this graph"];
        refused(graph.add(&[], nothing()), ErrorKind::InvalidState, says);
        refused(graph.join([first]), ErrorKind::InvalidState, says);
        refused(graph.add_edge(first, second, EdgeKind::Full), ErrorKind::InvalidState, says);
        refused(graph.remove_edge(first, second), ErrorKind::InvalidState, says);
        refused(graph.add_child(&[], &Graph::new(&bench.device)), ErrorKind::InvalidState, says);
        refused(first.add(nothing()), ErrorKind::InvalidState, says);
        refused(second.after([first]), ErrorKind::InvalidState, says);
        refused(first.set_operation(nothing()), ErrorKind::InvalidState, says);
        refused(first.delete(), ErrorKind::InvalidState, says);
    };
    refuses(&graph, &first, &second);
    // Naming adds no work, and the body is not recorded yet.
    first.named("first").unwrap();
    conditional.set_max_passes(Some(3)).unwrap();
    let inside = body.graph().unwrap().add(&[], nothing()).unwrap();
    body.begin().unwrap();
    let last = body.add(nothing()).unwrap();
    refuses(&inside.graph().unwrap(), &inside, &last);
    let filled = body.end().unwrap();
    filled.add(&[&last], nothing()).unwrap();
    refuses(&graph, &first, &second);

    let ended = capture.end().unwrap();
    assert_eq!((ended.len(), filled.len()), (3, 3));
    ended.add(&[&second], nothing()).unwrap();
    first.delete().unwrap();
}

#[test]
fn a_graph_whose_capture_was_given_up_can_be_written() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let node = capture.add(nothing()).unwrap();
    let (_, body) = record_loop(&capture);
    body.begin().unwrap();
    let inside = body.add(nothing()).unwrap();
    drop(capture);
    node.add(nothing()).unwrap();
    inside.add(nothing()).unwrap();
}
