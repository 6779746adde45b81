//! Forks and joins.

use gridloom_core::ErrorKind;
use gridloom_core::capture::{CaptureKind, CaptureState, MAX_BRANCHES};
use gridloom_core::graph::EdgeKind;
use gridloom_core::launch::LaunchConfig;

use crate::common::{Bench, edge_kinds, edges, nothing, refused};

#[test]
fn fork_and_join_make_a_diamond() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let forks = capture.fork(2).unwrap();
    assert_eq!(forks.len(), 1);
    assert_eq!((forks[0].kind(), forks[0].state()), (CaptureKind::Forked, CaptureState::Capturing));
    capture.add(nothing()).unwrap();
    forks[0].add(nothing()).unwrap();
    capture.join(&forks).unwrap();
    assert_eq!(forks[0].state(), CaptureState::Joined);
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1), (0, 2), (1, 3), (2, 3)]);
}

#[test]
fn a_fork_at_the_start_begins_with_nothing_before_it() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(3).unwrap();
    for branch in [&capture, &forks[0], &forks[1]] {
        branch.add(nothing()).unwrap();
    }
    capture.join(&forks).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 3), (1, 3), (2, 3)]);
}

#[test]
fn a_fork_can_be_forked_and_joined() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    fork.add(nothing()).unwrap();
    let inner = fork.fork(2).unwrap().remove(0);
    inner.add(nothing()).unwrap();
    fork.add(nothing()).unwrap();
    fork.join([&inner]).unwrap();
    capture.join([&fork]).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)]);
}

#[test]
fn forks_can_be_joined_with_each_other_first() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(3).unwrap();
    forks[0].add(nothing()).unwrap();
    forks[1].add(nothing()).unwrap();
    forks[0].join([&forks[1]]).unwrap();
    forks[0].add(nothing()).unwrap();
    capture.join([&forks[0]]).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 2), (1, 2)]);
}

#[test]
fn a_fork_that_recorded_nothing_need_not_be_joined() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let forks = capture.fork(2).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(capture.end().unwrap().len(), 2);
    assert_eq!(forks[0].state(), CaptureState::Ended);
    refused(forks[0].add(nothing()), ErrorKind::InvalidState, &["has ended"]);
}

#[test]
fn joining_forks_that_did_nothing_adds_no_edge() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(nothing()).unwrap();
    let forks = capture.fork(3).unwrap();
    capture.join(&forks).unwrap();
    capture.add(nothing()).unwrap();
    assert_eq!(edges(&capture.end().unwrap()), [(0, 1)]);
}

#[test]
fn a_capture_with_forks_that_were_not_joined_does_not_end_and_lists_them() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(3).unwrap();
    forks[0].add(bench.memset()).unwrap().set_name("loose fill").unwrap();
    forks[1].add(bench.kernel()).unwrap();
    let error =
        refused(capture.end(), ErrorKind::InvalidState, &["fork 1 at loose fill", "fork 2 at kernel#1 work"]);
    assert!(error.to_string().contains("join them"));

    assert_eq!(capture.state(), CaptureState::Capturing);
    capture.join(&forks).unwrap();
    assert_eq!(capture.end().unwrap().len(), 2);
}

#[test]
fn a_fork_that_was_dropped_unjoined_is_a_loose_end_too() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    fork.add(nothing()).unwrap();
    drop(fork);
    refused(capture.end(), ErrorKind::InvalidState, &["fork 1 (closed or dropped) at empty#0"]);
}

#[test]
fn a_fork_that_was_closed_unjoined_is_a_loose_end_too() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let fork = capture.fork(2).unwrap().remove(0);
    fork.add(nothing()).unwrap();
    fork.close();
    refused(fork.add(nothing()), ErrorKind::InvalidState, &["was closed"]);
    refused(capture.join([&fork]), ErrorKind::InvalidState, &["was closed"]);
    refused(capture.end(), ErrorKind::InvalidState, &["closed or dropped"]);
}

#[test]
fn a_fork_has_no_end_and_no_graph_of_its_own() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(2).unwrap();
    refused(forks[0].end(), ErrorKind::InvalidState, &["not ended", "join it"]);
    refused(forks[0].graph(), ErrorKind::InvalidState, &["no graph of its own"]);
    refused(forks[0].begin(), ErrorKind::InvalidState, &["begun already"]);
    capture.end().unwrap();
    refused(forks[0].graph(), ErrorKind::InvalidState, &["no graph of its own"]);
}

#[test]
fn a_fork_takes_two_branches_or_more() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(capture.fork(0), ErrorKind::InvalidArgument, &["fork into 0"]);
    refused(capture.fork(1), ErrorKind::InvalidArgument, &["fork into 1", "2 to"]);
    refused(capture.fork(MAX_BRANCHES + 1), ErrorKind::InvalidArgument, &["fork into"]);
    assert_eq!(capture.fork(20).unwrap().len(), 19);
}

#[test]
fn a_join_takes_two_captures_or_more() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    refused(capture.join([]), ErrorKind::InvalidArgument, &["join of one"]);
}

#[test]
fn a_joined_fork_allows_nothing_more() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(2).unwrap();
    capture.join(&forks).unwrap();
    refused(forks[0].add(nothing()), ErrorKind::InvalidState, &["joined into another"]);
    refused(forks[0].fork(2), ErrorKind::InvalidState, &["joined into another"]);
    refused(forks[0].begin(), ErrorKind::InvalidState, &["joined into another", "begin again"]);
    refused(capture.join(&forks), ErrorKind::InvalidState, &["joined into another"]);
}

#[test]
fn a_primary_capture_is_not_joined_into_its_fork() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(2).unwrap();
    refused(forks[0].join([&capture]), ErrorKind::InvalidState, &["only a forked capture is joined"]);
    assert_eq!(capture.state(), CaptureState::Capturing);
}

#[test]
fn captures_of_different_graphs_are_not_joined() {
    let bench = Bench::new();
    let other_stream = bench.stream();
    let (one, other) = (bench.stream.capture().unwrap(), other_stream.capture().unwrap());
    let forks = other.fork(2).unwrap();
    refused(one.join(&forks), ErrorKind::WrongGraph, &["different graphs"]);
    assert_eq!(forks[0].state(), CaptureState::Capturing);
}

#[test]
fn a_capture_is_joined_once() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(2).unwrap();
    refused(capture.join([&forks[0], &forks[0]]), ErrorKind::InvalidArgument, &["twice"]);
    refused(capture.join([&capture]), ErrorKind::InvalidArgument, &["twice"]);
    assert_eq!(forks[0].state(), CaptureState::Capturing);
}

#[test]
fn a_join_that_fails_half_way_joins_nothing() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(3).unwrap();
    for fork in &forks {
        fork.add(nothing()).unwrap();
    }
    forks[1].close();
    refused(capture.join(&forks), ErrorKind::InvalidState, &["was closed"]);
    assert_eq!(forks[0].state(), CaptureState::Capturing);
    capture.add(nothing()).unwrap();
    forks[0].add(nothing()).unwrap();
}

#[test]
fn the_bodies_of_different_conditionals_are_different_graphs() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let (_, one) = crate::common::record_loop(&capture);
    let (_, other) = crate::common::record_loop(&capture);
    one.begin().unwrap();
    other.begin().unwrap();
    let forks = other.fork(2).unwrap();
    refused(one.join(&forks), ErrorKind::WrongGraph, &["different graphs"]);
    refused(capture.join(&forks), ErrorKind::WrongGraph, &["different graphs"]);
}

#[test]
fn a_programmatic_launch_gives_one_programmatic_edge() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    capture.add(bench.memset()).unwrap();
    let early = || bench.kernel_with(LaunchConfig::one().programmatic());
    capture.add(early()).unwrap();
    capture.add(early()).unwrap();
    capture.add(bench.kernel()).unwrap();
    // A fill cannot be overlapped; a launch without the attribute is not.
    let kinds = edge_kinds(&capture.end().unwrap());
    assert_eq!(kinds, [EdgeKind::Full, EdgeKind::Programmatic, EdgeKind::Full]);
}

#[test]
fn as_many_forks_as_there_can_be_are_joined_at_once() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(MAX_BRANCHES).unwrap();
    for fork in &forks {
        fork.add(nothing()).unwrap();
    }
    capture.join(&forks).unwrap();
    let last = capture.add(nothing()).unwrap();
    assert_eq!(last.predecessors().unwrap().len(), MAX_BRANCHES - 1);
    assert_eq!(capture.end().unwrap().len(), MAX_BRANCHES);
}
