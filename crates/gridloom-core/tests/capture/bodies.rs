//! Conditionals recorded by a capture, and the captures of their bodies.

use gridloom_core::ErrorKind;
use gridloom_core::capture::{CaptureKind, CaptureState};
use gridloom_core::graph::Graph;
use gridloom_core::op::{ConditionalForm, NodeKind};

use crate::common::{Bench, conditional, edges, nothing, record_loop, refused, while_loop};

#[test]
fn the_capture_goes_on_after_the_conditional() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let (node, body) = record_loop(&capture);
    body.fill(|body| body.add(bench.kernel()).map(drop)).unwrap();
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(edges(&graph), [(0, 1), (1, 2)]);
    assert_eq!(graph.nodes()[1], node);
    assert_eq!(node.bodies().unwrap()[0].nodes()[0].kind().unwrap(), NodeKind::Kernel);
}

#[test]
fn every_form_gives_as_many_bodies_as_it_has() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    for (form, given, expected) in [
        (ConditionalForm::If, 1, 1),
        (ConditionalForm::IfElse, 2, 2),
        (ConditionalForm::While, 1, 1),
        (ConditionalForm::Switch, 5, 5),
    ] {
        let condition = capture.condition(1).unwrap();
        let (node, bodies) = capture.conditional(&conditional(form, &condition, given)).unwrap();
        assert_eq!((node.kind().unwrap(), bodies.len()), (form.kind(), expected));
        for (body, graph) in bodies.iter().zip(node.bodies().unwrap()) {
            assert_eq!(body.kind(), CaptureKind::Body);
            assert_eq!(body.owner().unwrap(), node);
            assert_eq!(body.graph().unwrap(), graph);
        }
    }
    assert_eq!(capture.end().unwrap().len(), 4);
}

#[test]
fn conditionals_work_on_forks_and_in_bodies() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    let (outer, body) = record_loop(&fork);
    body.begin().unwrap();
    let inner_fork = body.fork(2).unwrap().remove(0);
    let (inner, innermost) = record_loop(&inner_fork);
    innermost.fill(|body| body.add(nothing()).map(drop)).unwrap();
    body.join([&inner_fork]).unwrap();
    body.end().unwrap();
    capture.join([&fork]).unwrap();
    capture.end().unwrap();
    assert_eq!(inner.graph().unwrap().owner(), Some(outer));
    assert_eq!(inner.bodies().unwrap()[0].len(), 1);
}

#[test]
fn a_condition_of_the_primary_capture_serves_inside_bodies() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let inner = capture.condition(0).unwrap();
    let (_, body) = record_loop(&capture);
    body.fill(|body| {
        body.conditional(&while_loop(&inner))?;
        Ok(())
    })
    .unwrap();
    capture.end().unwrap();
}

#[test]
fn a_condition_decides_one_conditional_and_that_of_another_graph_none() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let condition = capture.condition(1).unwrap();
    capture.conditional(&while_loop(&condition)).unwrap();
    refused(capture.conditional(&while_loop(&condition)), ErrorKind::InvalidState, &["already decides"]);
    let foreign = Graph::new(&bench.device).condition(None);
    refused(capture.conditional(&while_loop(&foreign)), ErrorKind::WrongGraph, &["another graph"]);
    assert_eq!(capture.end().unwrap().len(), 1);
}

#[test]
fn a_body_can_be_filled_explicitly() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (node, body) = record_loop(&capture);
    body.graph().unwrap().add(&[], bench.kernel()).unwrap();
    capture.end().unwrap();
    assert_eq!(node.bodies().unwrap()[0].len(), 1);
}

#[test]
fn what_is_captured_into_a_body_comes_after_what_was_put_there_before() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    let graph = body.graph().unwrap();
    let first = graph.add(&[], nothing()).unwrap();
    graph.add(&[&first], nothing()).unwrap();
    graph.add(&[&first], nothing()).unwrap();
    body.fill(|body| body.add(nothing()).map(drop)).unwrap();
    assert_eq!(edges(&graph), [(0, 1), (0, 2), (1, 3), (2, 3)]);
}

#[test]
fn a_body_can_be_extended_explicitly_after_its_capture() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    let graph = body.fill(|body| body.add(nothing()).map(drop)).unwrap();
    assert_eq!(body.graph().unwrap(), graph);
    graph.add(&[&graph.nodes()[0]], nothing()).unwrap();
    capture.end().unwrap();
    assert_eq!(edges(&graph), [(0, 1)]);
}

#[test]
fn a_body_can_stay_empty() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    drop(record_loop(&capture));
    capture.end().unwrap().instantiate().unwrap();
}

#[test]
fn a_capture_does_not_end_before_its_bodies() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (node, body) = record_loop(&capture);
    node.set_name("relax").unwrap();
    body.begin().unwrap();
    refused(capture.end(), ErrorKind::InvalidState, &["body of relax", "end it first"]);
    body.end().unwrap();
    capture.end().unwrap();
}

#[test]
fn a_body_dropped_half_way_keeps_the_capture_around_it_from_ending() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    capture.add(nothing()).unwrap();
    body.begin().unwrap();
    drop(body);
    refused(
        capture.end(),
        ErrorKind::InvalidState,
        &["body of while#0", "incomplete", "close the whole capture"],
    );
}

#[test]
fn filling_a_body_that_fails_keeps_the_capture_around_it_from_ending() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    refused(body.fill(|body| body.fork(1).map(drop)), ErrorKind::InvalidArgument, &["fork into 1"]);
    assert_eq!(body.state(), CaptureState::Closed);
    refused(capture.end(), ErrorKind::InvalidState, &["incomplete"]);
}

#[test]
fn a_body_ends_with_its_own_forks_joined() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    body.begin().unwrap();
    let fork = body.fork(2).unwrap().remove(0);
    fork.add(nothing()).unwrap();
    refused(body.end(), ErrorKind::InvalidState, &["fork 1 at while#0/empty#0"]);
    body.join([&fork]).unwrap();
    body.end().unwrap();
    capture.end().unwrap();
}

#[test]
fn a_body_that_was_not_begun_cannot_begin_after_the_capture_around_it_ended() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    capture.end().unwrap();
    refused(body.begin(), ErrorKind::InvalidState, &["has ended", "edit its graph"]);
    body.graph().unwrap().add(&[], nothing()).unwrap();
}

#[test]
fn a_body_is_closed_with_the_capture_around_it() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, body) = record_loop(&capture);
    body.begin().unwrap();
    let (_, inner) = record_loop(&body);
    let fork = body.fork(2).unwrap().remove(0);
    drop(capture);
    for capture in [&body, &inner, &fork] {
        assert_eq!(capture.state(), CaptureState::Closed);
        refused(capture.add(nothing()), ErrorKind::InvalidState, &["was closed"]);
    }
    refused(inner.graph(), ErrorKind::InvalidState, &["was closed"]);
}

#[test]
fn only_bodies_have_a_conditional_around_them() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(capture.owner(), ErrorKind::InvalidState, &["not of the body of a conditional"]);
    let (node, body) = record_loop(&capture);
    body.owner().unwrap().set_max_passes(Some(3)).unwrap();
    assert_eq!(body.owner().unwrap(), node);
}

#[test]
fn a_captured_graph_is_embedded_into_a_capture() {
    let bench = Bench::new();
    let child = bench.stream.capture_scope(|capture| capture.add(bench.kernel()).map(drop)).unwrap();
    let graph = bench
        .stream
        .capture_scope(|capture| {
            capture.embed(&child)?;
            capture.launch_graph(&child.instantiate()?)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(edges(&graph), [(0, 1)]);
    for node in graph.nodes() {
        assert_eq!(node.kind().unwrap(), NodeKind::Child);
        assert_eq!(node.bodies().unwrap()[0].nodes()[0].kind().unwrap(), NodeKind::Kernel);
    }
}

#[test]
fn a_capture_is_not_embedded_into_itself() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let node = capture.add(nothing()).unwrap();
    refused(capture.embed(&node.graph().unwrap()), ErrorKind::WrongGraph, &["into itself"]);
    assert_eq!(capture.end().unwrap().len(), 1);
}
