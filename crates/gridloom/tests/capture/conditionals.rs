//! Control flow in a capture.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_mode, refused};

/// A body that adds `by` to `x`.
fn bump(body: &Capture, k: &GraphKernels, x: &Buffer<i32>, by: i32) -> Result<Graph> {
    body.fill(|body| body.launch(&k.increase, LaunchConfig::one(), (x, 1, by)).map(drop))
}

#[test]
fn an_if_runs_its_body_unless_the_condition_is_0() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        for (value, expected) in [(false, 0), (true, 1)] {
            let x = k.value(0)?;
            let graph = k.stream.capture_scope(|capture| {
                let choice = capture.if_then(&capture.condition(value)?)?;
                bump(choice.body(), &k, &x, 1).map(drop)
            })?;
            k.run_in(&graph, mode)?;
            assert_eq!(read(&x)?, expected);
        }
        Ok(())
    });
}

#[test]
fn conditions_of_every_integer_type_decide() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| {
            let conditions = [
                capture.condition(1u8)?,
                capture.condition(1i8)?,
                capture.condition(1u16)?,
                capture.condition(1i16)?,
                capture.condition(1u32)?,
                capture.condition(1i32)?,
                capture.condition(1u64)?,
                capture.condition(1i64)?,
                capture.condition(1usize)?,
                capture.condition(1isize)?,
                capture.condition(Some(1))?,
                capture.condition(true)?,
            ];
            for condition in &conditions {
                bump(capture.if_then(condition)?.body(), &k, &x, 1)?;
            }
            Ok(())
        })?;
        k.run_in(&graph, mode)?;
        assert_eq!(read(&x)?, 12);
        Ok(())
    });
}

#[test]
fn an_if_else_runs_exactly_one_body() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        for (value, expected) in [(0, 100), (1, 1), (7, 1)] {
            let x = k.value(0)?;
            let graph = k.stream.capture_scope(|capture| {
                let choice = capture.if_else(&capture.condition(value)?)?;
                bump(choice.then_body(), &k, &x, 1)?;
                bump(choice.else_body(), &k, &x, 100).map(drop)
            })?;
            k.run_in(&graph, mode)?;
            assert_eq!(read(&x)?, expected, "condition {value}");
        }
        Ok(())
    });
}

#[test]
fn a_switch_of_three_runs_the_body_of_its_value_or_none() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        for (value, expected) in [(0, 1), (1, 10), (2, 100), (3, 0)] {
            let x = k.value(0)?;
            let graph = k.stream.capture_scope(|capture| {
                let switch = capture.switch(&capture.condition(value)?, 3)?;
                for (body, by) in switch.bodies().iter().zip([1, 10, 100]) {
                    bump(body, &k, &x, by)?;
                }
                Ok(())
            })?;
            k.run_in(&graph, mode)?;
            assert_eq!(read(&x)?, expected, "condition {value}");
        }
        Ok(())
    });
}

#[test]
fn a_while_runs_until_its_body_sets_the_condition_to_0_and_not_at_all_when_it_is_0_at_first() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        for (first, passes) in [(true, 5), (false, 0)] {
            let (x, left) = (k.value(0)?, k.value(5)?);
            let capture = k.stream.capture()?;
            let again = capture.condition(first)?;
            let repeat = capture.while_loop(&again)?;
            let repeat = repeat.fill(|body| {
                body.launch(&k.increase, LaunchConfig::one(), (&x, 1, 1))?;
                body.launch(&k.countdown, LaunchConfig::one(), (&again, &left)).map(drop)
            })?;
            let executable = k.run_in(&capture.end()?, mode)?;
            assert_eq!(read(&x)?, passes);
            assert_eq!(executable.passes(&repeat)?, passes as u64);
        }
        Ok(())
    });
}

#[test]
fn the_ready_made_conditionals_test_a_value_in_device_memory() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        for value in 0..4 {
            let [tested, if_, if_else, switch] = [k.value(value)?, k.value(0)?, k.value(0)?, k.value(0)?];
            let (left_while, left_do) = (k.value(value)?, k.value(value.max(1))?);
            let [while_, do_, repeat] = [k.value(0)?, k.value(0)?, k.value(0)?];
            let pass = |body: &Capture, x: &Buffer<i32>, left: &Buffer<i32>| {
                body.fill(|body| {
                    body.launch(&k.increase, LaunchConfig::one(), (x, 1, 1))?;
                    body.launch(&k.increase, LaunchConfig::one(), (left, 1, -1)).map(drop)
                })
            };
            let graph = k.stream.capture_scope(|capture| {
                bump(capture.if_nonzero(&tested)?.body(), &k, &if_, 1)?;
                let choice = capture.if_else_nonzero(&tested)?;
                bump(choice.then_body(), &k, &if_else, 1)?;
                bump(choice.else_body(), &k, &if_else, 10)?;
                for (body, by) in capture.switch_on(&tested, 3)?.bodies().iter().zip([1, 10, 100]) {
                    bump(body, &k, &switch, by)?;
                }
                pass(capture.while_nonzero(&left_while)?.body(), &while_, &left_while)?;
                pass(capture.do_while(&left_do)?.body(), &do_, &left_do)?;
                bump(capture.repeat(value as u64)?.body(), &k, &repeat, 1).map(drop)
            })?;
            k.run_in(&graph, mode)?;
            assert_eq!(read(&if_)?, i32::from(value != 0));
            assert_eq!(read(&if_else)?, if value != 0 { 1 } else { 10 });
            assert_eq!(read(&switch)?, [1, 10, 100, 0][value as usize]);
            assert_eq!((read(&while_)?, read(&left_while)?), (value, 0));
            assert_eq!((read(&do_)?, read(&left_do)?), (value.max(1), 0));
            assert_eq!(read(&repeat)?, value);
        }
        Ok(())
    });
}

#[test]
fn conditionals_nest_and_stand_on_forks() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        let (x, y) = (k.value(0)?, k.value(0)?);
        let graph = k.stream.capture_scope(|capture| {
            let fork = capture.fork(2)?.remove(0);
            let inner = capture.condition(1)?;
            fork.repeat(3)?.fill(|outer| {
                let branch = outer.fork(2)?.remove(0);
                branch
                    .repeat(4)?
                    .fill(|body| body.launch(&k.increase, LaunchConfig::one(), (&x, 1, 1)).map(drop))?;
                outer
                    .if_then(&inner)?
                    .fill(|body| body.launch(&k.increase, LaunchConfig::one(), (&y, 1, 1)).map(drop))?;
                outer.join([&branch])
            })?;
            capture.join([&fork])?;
            capture.launch(&k.mix, LaunchConfig::one(), (&x, &y, 1)).map(drop)
        })?;
        k.run_in(&graph, mode)?;
        assert_eq!((read(&y)?, read(&x)?), (3, 31 * 12 + 3));
        Ok(())
    });
}

#[test]
fn a_body_is_filled_explicitly_or_captured_and_then_extended() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| {
            k.bump(&capture.repeat(2)?.body().graph()?, &x, 1)?;
            let body = bump(capture.repeat(2)?.body(), &k, &x, 10)?;
            k.bump(&body.nodes()[0], &x, 100)?;
            Ok(())
        })?;
        k.run_in(&graph, mode)?;
        assert_eq!(read(&x)?, 222);
        Ok(())
    });
}

#[test]
fn a_loop_can_be_bounded_and_named() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| {
            let repeat = capture.while_loop(&capture.condition(1)?)?;
            assert_eq!(repeat.body().owner()?, *repeat.node());
            let repeat = repeat.named("bounded")?.max_passes(6)?;
            bump(repeat.body(), &k, &x, 1).map(drop)
        })?;
        assert_eq!(graph.nodes()[0].label(), "bounded");
        k.run_in(&graph, mode)?;
        assert_eq!(read(&x)?, 6);
        Ok(())
    });
}

#[test]
fn streams_are_brought_into_a_body_through_events() {
    for_each_mode(|device, mode| {
        let k = GraphKernels::new(device)?;
        let (side, event) = (device.stream()?, device.event()?);
        let (x, y) = (k.value(0)?, k.value(0)?);
        let graph = k.stream.capture_scope(|capture| {
            capture.repeat(3)?.fill(|body| {
                body.record(&event)?;
                side.wait(&event)?;
                side.launch(&k.increase, LaunchConfig::one(), (&y, 1, 1))?;
                body.launch(&k.increase, LaunchConfig::one(), (&x, 1, 1))?;
                side.record(&event)?;
                body.wait(&event)?;
                body.launch(&k.mix, LaunchConfig::one(), (&x, &y, 1)).map(drop)
            })?;
            Ok(())
        })?;
        k.run_in(&graph, mode)?;
        let expected = (1..=3).fold(0, |x, y| 31 * (x + 1) + y);
        assert_eq!((read(&y)?, read(&x)?), (3, expected));
        Ok(())
    });
}

#[test]
fn what_a_conditional_cannot_be_made_of_is_refused_and_does_not_spoil_the_capture() {
    for_each_mode(|device, _| {
        let k = GraphKernels::new(device)?;
        let capture = k.stream.capture()?;
        let foreign = Graph::new(device).condition(None)?;
        refused(capture.if_then(&foreign), ErrorKind::WrongGraph, &["another graph"]);
        let used = capture.condition(0)?;
        capture.if_then(&used)?;
        refused(capture.while_loop(&used), ErrorKind::InvalidState, &["already decides"]);
        refused(capture.switch(&capture.condition(0)?, 0), ErrorKind::InvalidArgument, &["without bodies"]);
        refused(capture.if_nonzero(&k.buffer(&[1, 2])?), ErrorKind::InvalidArgument, &["one integer"]);
        assert_eq!(capture.end()?.len(), 1);
        Ok(())
    });
}
