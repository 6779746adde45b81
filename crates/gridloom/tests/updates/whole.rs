//! Taking over all parameters of another graph.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use gridloom::prelude::*;

use super::changes::{ALL, LEN, Lab};
use crate::support::graph_kernels::read;
use crate::support::{for_each_device, for_each_mode, refused};

#[test]
fn every_kind_of_parameter_is_taken_over() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            change.add(&lab, &graph)?;
            let executable = graph.instantiate()?;
            let changed = graph.deep_clone()?.0;
            change.make(&lab, &changed.nodes()[0])?;
            executable.update(&changed)?;
            drop(changed);
            assert_eq!(lab.run(&executable)?, change.outcomes()[1], "{change:?}");
            executable.update(&graph)?;
            assert_eq!(lab.run(&executable)?, change.outcomes()[0], "{change:?}, and back");
        }
        Ok(())
    });
}

/// A graph of every container: a loop over a child with a choice inside, all from one number.
fn nested(lab: &Lab, number: i32) -> Result<Graph> {
    let kernels = &lab.kernels;
    let (x, y) = (lab.x.slice(..1)?, lab.y.slice(..1)?);
    let inner = Graph::new(&kernels.device);
    let choice = inner.if_else_nonzero(if number % 2 == 0 { &x } else { &y })?;
    kernels.bump(&choice.then_body(), &lab.x.slice(1..2)?, number)?;
    kernels.bump(&choice.else_body(), &lab.x.slice(2..3)?, number)?;
    let graph = Graph::new(&kernels.device);
    let repeat = graph.memset(&x, number - 2)?.repeat(number as u64)?;
    repeat.body().embed(&inner)?;
    repeat.memset(&lab.y, number)?;
    Ok(graph)
}

#[test]
fn nested_bodies_and_children_take_part() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        let options = InstantiateOptions::new().conditional_mode(mode);
        let executable = nested(&lab, 1)?.instantiate_with(&options)?;
        for number in [1, 2, 3, 4, 3, 7, 1] {
            let graph = nested(&lab, number)?;
            executable.update(&graph)?;
            let expected = lab.run(&graph.instantiate_with(&options)?)?;
            assert_eq!(lab.run(&executable)?, expected, "{number}");
        }
        Ok(())
    });
}

#[test]
fn conditions_that_kernels_set_keep_working() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        let kernels = &lab.kernels;
        let (left, ran) = (kernels.value(0)?, kernels.value(0)?);
        let build = |passes: i32, by: i32| {
            let graph = Graph::new(device);
            let again = graph.condition(Some(1))?;
            let repeat = graph.memset(&left, passes)?.while_loop(&again)?;
            kernels.bump(&repeat.body(), &ran, by)?.launch(
                &kernels.countdown,
                LaunchConfig::one(),
                (&again, &left),
            )?;
            Ok::<_, Error>(graph)
        };
        let options = InstantiateOptions::new().conditional_mode(mode);
        let executable = build(3, 1)?.instantiate_with(&options)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&ran)?, 3);
        executable.update(&build(5, 10)?)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&ran)?, 53);
        Ok(())
    });
}

#[test]
fn an_update_is_the_same_as_instantiating_anew() {
    for_each_device(|device| {
        let called = Arc::new(AtomicI32::new(0));
        let build = |amount: i32| {
            let graph = Graph::new(device);
            let mut last = graph.empty()?;
            for at in 0..100 {
                let called = called.clone();
                last = last.callback(move || {
                    called.fetch_add(amount * at, Ordering::SeqCst);
                })?;
            }
            Ok::<_, Error>(graph)
        };
        let stream = device.stream()?;
        let executable = build(1)?.instantiate()?;
        for amount in [2, 3] {
            executable.update(&build(amount)?)?;
            called.store(0, Ordering::SeqCst);
            executable.launch(&stream)?;
            stream.synchronize()?;
            assert_eq!(called.load(Ordering::SeqCst), amount * 4950);
        }
        Ok(())
    });
}

#[test]
fn the_first_node_that_does_not_match_is_named_and_nothing_changes() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let first = graph.memset(&lab.x, 1i32)?.named("first")?;
        let second = first.memset(&lab.y, 1i32)?.named("second")?;
        let executable = graph.instantiate()?;
        let before = lab.run(&executable)?;
        type Edit<'a> = (&'a str, &'a dyn Fn(&Graph) -> Result<()>);
        let edits: [Edit<'_>; 6] = [
            ("second", &|other| other.nodes()[1].delete()),
            ("extra", &|other| other.nodes()[1].callback(|| ())?.named("extra").map(drop)),
            ("second", &|other| {
                let nodes = other.nodes();
                other.remove_edge(&nodes[0], &nodes[1]).map(drop)
            }),
            ("first", &|other| {
                let nodes = other.nodes();
                other.remove_edge(&nodes[0], &nodes[1])?;
                other.add_edge(&nodes[1], &nodes[0], EdgeKind::Full)
            }),
            ("second", &|other| {
                other.nodes()[1].delete()?;
                other.nodes()[0].callback(|| ()).map(drop)
            }),
            ("second", &|other| {
                other.nodes()[1].delete()?;
                other.nodes()[0].repeat(2).map(drop)
            }),
        ];
        for (culprit, edit) in edits {
            let other = graph.deep_clone()?.0;
            // Parameters that would be taken over if the rest matched.
            other.nodes()[0].set_memset(&lab.x, 77i32)?;
            edit(&other)?;
            refused(executable.update(&other), ErrorKind::TopologyMismatch, &[culprit]);
            assert_eq!(lab.run(&executable)?, before, "{culprit}");
        }
        // And it is as usable as before.
        second.set_memset(&lab.y, 3i32)?;
        executable.update(&graph)?;
        assert_eq!(lab.run(&executable)?.y, [3; LEN]);
        Ok(())
    });
}

#[test]
fn bodies_children_and_allocations_are_part_of_the_topology() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let build = |bodies: usize, passes_node: bool, len: usize| {
            let graph = Graph::new(device);
            let inner = Graph::new(device);
            if passes_node {
                inner.callback(|| ())?;
            }
            let child = graph.embed(&inner)?.named("child")?;
            let alloc = child.alloc::<i32>(len)?.named("memory")?;
            alloc.free(&alloc)?;
            graph.switch(&graph.condition(Some(0))?, bodies)?.named("switch")?;
            Ok::<_, Error>(graph)
        };
        let executable = build(2, true, 8)?.instantiate()?;
        for (culprit, other) in [
            ("switch", build(3, true, 8)?),
            ("callback", build(2, false, 8)?),
            ("memory", build(2, true, 9)?),
        ] {
            refused(executable.update(&other), ErrorKind::TopologyMismatch, &[culprit]);
        }
        executable.update(&build(2, true, 8)?)?;
        lab.run(&executable).map(drop)
    });
}

#[test]
fn a_changed_default_of_a_condition_is_taken_over() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        let kernels = &lab.kernels;
        let x = lab.x.slice(..1)?;
        // A kernel changes at the same time.
        let build = |defaults: [Option<u32>; 2], number: i32| {
            let graph = Graph::new(device);
            let choice = graph.switch(&graph.condition(defaults[0])?, 3)?;
            for (case, body) in (1..).zip(choice.bodies()) {
                kernels.bump(body, &x, 10 * case)?;
            }
            let inner = choice.if_then(&graph.condition(defaults[1])?)?;
            kernels.bump(&inner.body(), &x, 100)?;
            kernels.bump(&graph, &lab.x.slice(1..2)?, number)?;
            Ok::<_, Error>(graph)
        };
        let options = InstantiateOptions::new().conditional_mode(mode);
        let executable = build([Some(0), None], 0)?.instantiate_with(&options)?;
        let defaults =
            [[Some(1), Some(1)], [None, None], [Some(2), None], [Some(7), Some(2)], [Some(0), None]];
        for (number, defaults) in (1..).zip(defaults) {
            let graph = build(defaults, number)?;
            executable.update(&graph)?;
            let expected = lab.run(&graph.instantiate_with(&options)?)?;
            assert_eq!(lab.run(&executable)?, expected, "{defaults:?}");
            assert_eq!(executable.graph()?.diff(&graph), [], "{defaults:?}");
        }
        Ok(())
    });
}

#[test]
fn a_body_or_an_unfinished_capture_cannot_be_updated_from() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let repeat = graph.repeat(1)?;
        let executable = graph.instantiate()?;
        refused(executable.update(&repeat.body()), ErrorKind::InvalidArgument, &["root graph"]);
        let stream = device.stream()?;
        let capture = stream.capture()?;
        refused(capture.graph().map(drop), ErrorKind::InvalidState, &[]);
        drop(capture);
        Ok(())
    });
}

#[test]
fn a_captured_graph_updates_one_that_was_captured_before() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let stream = &lab.kernels.stream;
        let record = |by: i32| {
            stream.capture_scope(|capture| {
                let config = LaunchConfig::new(1, 4);
                capture
                    .repeat(2)?
                    .fill(|body| body.launch(&lab.kernels.increase, config, (&lab.x, 4, by)).map(drop))?;
                capture.memcpy(&lab.y, &vec![by; LEN]).map(drop)
            })
        };
        let executable = record(1)?.instantiate()?;
        executable.update(&record(50)?)?;
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x, outcome.y), ([101, 102, 103, 104], [50; LEN]));
        Ok(())
    });
}
