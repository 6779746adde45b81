//! Captures used from several threads at once.

use std::sync::Barrier;
use std::thread;

use gridloom_core::capture::CaptureState;

use crate::common::{Bench, nothing, record_loop};

#[test]
fn forks_record_from_threads_of_their_own() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    let forks = capture.fork(5).unwrap();
    thread::scope(|scope| {
        for fork in &forks {
            scope.spawn(|| {
                for _ in 0..100 {
                    fork.add(nothing()).unwrap();
                }
            });
        }
    });
    capture.join(&forks).unwrap();
    capture.add(nothing()).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(graph.len(), 401);
    // Four lines of 100 nodes, and the four edges that join them.
    assert_eq!(graph.edges().len(), 4 * 99 + 4);
}

#[test]
fn threads_that_share_a_capture_record_one_line() {
    let bench = Bench::new();
    let capture = bench.stream.capture().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    bench.stream.enqueue(nothing()).unwrap();
                }
            });
        }
    });
    let graph = capture.end().unwrap();
    assert_eq!((graph.len(), graph.edges().len()), (400, 399));
}

#[test]
fn of_two_forks_that_join_each_other_one_wins() {
    for _ in 0..200 {
        let bench = Bench::new();
        let capture = bench.stream.capture().unwrap();
        let forks = capture.fork(3).unwrap();
        let (one, other) = (&forks[0], &forks[1]);
        let start = Barrier::new(2);
        let outcomes = thread::scope(|scope| {
            let first = scope.spawn(|| {
                start.wait();
                one.join([other]).is_ok()
            });
            let second = scope.spawn(|| {
                start.wait();
                other.join([one]).is_ok()
            });
            [first.join().unwrap(), second.join().unwrap()]
        });
        assert_eq!(outcomes.iter().filter(|&&won| won).count(), 1);
        let winner = if outcomes[0] { one } else { other };
        capture.join([winner]).unwrap();
        capture.end().unwrap();
    }
}

#[test]
fn of_two_threads_that_start_a_capture_one_wins() {
    for _ in 0..200 {
        let bench = Bench::new();
        let start = Barrier::new(2);
        let captures = thread::scope(|scope| {
            let begin = || {
                start.wait();
                bench.stream.capture()
            };
            let (first, second) = (scope.spawn(begin), scope.spawn(begin));
            [first.join().unwrap(), second.join().unwrap()]
        });
        assert_eq!(captures.iter().filter(|capture| capture.is_ok()).count(), 1);
    }
}

#[test]
fn of_two_threads_that_wait_for_a_captured_event_both_record_in_one_fork() {
    for _ in 0..200 {
        let bench = Bench::new();
        let (side, event) = (bench.stream(), bench.event());
        let capture = bench.stream.capture().unwrap();
        capture.record_event(&event).unwrap();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    side.wait(&event).unwrap();
                    side.enqueue(bench.kernel()).unwrap();
                });
            }
        });
        side.record(&event).unwrap();
        capture.wait_event(&event).unwrap();
        // One fork: had there been two, the work of one would be loose.
        assert_eq!(capture.end().unwrap().len(), 5);
    }
}

#[test]
fn ending_while_another_thread_records_ends_or_refuses_cleanly() {
    for _ in 0..200 {
        let bench = Bench::new();
        let capture = bench.stream.capture().unwrap();
        let start = Barrier::new(2);
        let (recorded, graph) = thread::scope(|scope| {
            let recorder = scope.spawn(|| {
                start.wait();
                (0..50).take_while(|_| capture.add(nothing()).is_ok()).count()
            });
            start.wait();
            let graph = capture.end().unwrap();
            (recorder.join().unwrap(), graph)
        });
        assert_eq!(graph.len(), recorded);
    }
}

#[test]
fn closing_while_bodies_and_forks_record_stops_them_all() {
    for _ in 0..50 {
        let bench = Bench::new();
        let capture = bench.stream.capture().unwrap();
        let fork = capture.fork(2).unwrap().remove(0);
        let (_, body) = record_loop(&capture);
        body.begin().unwrap();
        let start = Barrier::new(3);
        thread::scope(|scope| {
            for lane in [&fork, &body] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    while lane.add(nothing()).is_ok() {}
                });
            }
            start.wait();
            capture.close();
        });
        assert_eq!((fork.state(), body.state()), (CaptureState::Closed, CaptureState::Closed));
    }
}
