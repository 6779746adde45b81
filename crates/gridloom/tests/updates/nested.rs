//! Nodes inside bodies and children, and the values that conditionals test.

use gridloom::prelude::*;

use super::changes::{ALL, LEN, Lab};
use crate::support::graph_kernels::read;
use crate::support::{for_each_device, for_each_mode, refused};

fn with(mode: ConditionalMode) -> InstantiateOptions {
    InstantiateOptions::new().conditional_mode(mode)
}

#[test]
fn nodes_in_bodies_take_every_change() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph.if_then(&graph.condition(Some(1))?)?.body())?;
            let [before, after] = change.outcomes();
            let [changed, other] =
                [graph.instantiate_with(&with(mode))?, graph.instantiate_with(&with(mode))?];
            change.make(&lab, &changed.node(&node)?)?;
            assert_eq!(lab.run(&changed)?, after, "{change:?}, changed");
            assert_eq!(lab.run(&other)?, before, "{change:?}, another executable");
            change.make(&lab, &node)?;
            assert_eq!(lab.run(&graph.instantiate_with(&with(mode))?)?, after, "{change:?}, definition");
        }
        Ok(())
    });
}

#[test]
fn nodes_in_children_take_every_change() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let inner = Graph::new(device);
            change.add(&lab, &inner)?;
            let graph = Graph::new(device);
            let node = graph.embed(&inner)?.bodies()?[0].nodes().remove(0);
            let [before, after] = change.outcomes();
            let [changed, other] = [graph.instantiate()?, graph.instantiate()?];
            change.make(&lab, &changed.node(&node)?)?;
            assert_eq!(lab.run(&changed)?, after, "{change:?}, changed");
            assert_eq!(lab.run(&other)?, before, "{change:?}, another executable");
            assert_eq!(lab.run(&inner.instantiate()?)?, before, "{change:?}, the graph that was embedded");
        }
        Ok(())
    });
}

#[test]
fn a_loop_takes_another_number_of_passes_and_another_limit() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        let ran = lab.kernels.value(0)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(2)?;
        lab.kernels.bump(&repeat.body(), &ran, 1)?;
        let executable = graph.instantiate_with(&with(mode))?;
        let passes = || {
            ran.write(&[0])?;
            executable.launch(&lab.kernels.stream)?;
            lab.kernels.stream.synchronize()?;
            assert_eq!(executable.passes(&repeat)?, read(&ran)? as u64);
            read(&ran)
        };
        assert_eq!(passes()?, 2);
        for (number, limit, expected) in [(5, None, 5), (5, Some(3), 3), (0, Some(3), 0), (4, Some(9), 4)] {
            executable.node(&repeat)?.set_passes(number)?;
            executable.node(&repeat)?.set_max_passes(limit)?;
            assert_eq!(passes()?, expected, "{number} passes, limit {limit:?}");
        }
        repeat.set_passes(7)?;
        assert_eq!(passes()?, 4, "the executable is as it was");
        executable.update(&graph)?;
        assert_eq!(passes()?, 7);
        Ok(())
    });
}

#[test]
fn a_conditional_tests_another_value() {
    for_each_mode(|device, mode| {
        let lab = Lab::new(device)?;
        let (zero, two, ran) = (lab.kernels.value(0)?, lab.kernels.value(2)?, lab.kernels.value(0)?);
        let graph = Graph::new(device);
        let choice = graph.if_nonzero(&zero)?;
        lab.kernels.bump(&choice.body(), &ran, 1)?;
        let switch = choice.switch_on(&zero, 3)?;
        for (case, by) in [(0, 10), (1, 100), (2, 1000)] {
            lab.kernels.bump(&switch.body(case)?, &ran, by)?;
        }
        let executable = graph.instantiate_with(&with(mode))?;
        let run = |executable: &Executable| {
            ran.write(&[0])?;
            executable.launch(&lab.kernels.stream)?;
            lab.kernels.stream.synchronize()?;
            read(&ran)
        };
        assert_eq!(run(&executable)?, 10);
        executable.node(&choice)?.set_tested(&two)?;
        assert_eq!(run(&executable)?, 11);
        executable.node(&switch)?.set_tested(&two)?;
        assert_eq!(run(&executable)?, 1001);
        zero.close();
        drop(zero);
        assert_eq!(run(&graph.instantiate_with(&with(mode))?)?, 10);
        Ok(())
    });
}

#[test]
fn a_child_of_an_executable_takes_over_another_graph() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let inner = |value: i32| {
            let graph = Graph::new(device);
            graph.memset(&lab.x, value)?.memset(&lab.y, value)?;
            Ok::<_, Error>(graph)
        };
        let graph = Graph::new(device);
        let child = graph.embed(&inner(1)?)?.named("child")?;
        let [changed, other] = [graph.instantiate()?, graph.instantiate()?];
        changed.node(&child)?.set_child(&inner(2)?)?;
        assert_eq!(lab.run(&changed)?.y, [2; LEN]);
        assert_eq!(lab.run(&other)?.y, [1; LEN]);
        let longer = inner(3)?;
        longer.empty()?;
        refused(changed.node(&child)?.set_child(&longer), ErrorKind::TopologyMismatch, &["empty"]);
        assert_eq!(lab.run(&changed)?.y, [2; LEN]);
        Ok(())
    });
}

#[test]
fn a_child_of_a_definition_is_replaced_with_the_handles_inside() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let (one, two) = (Graph::new(device), Graph::new(device));
        one.memset(&lab.x, 1i32)?;
        two.memset(&lab.x, 2i32)?.memset(&lab.y, 2i32)?;
        let graph = Graph::new(device);
        let child = graph.embed(&one)?;
        let inside = child.bodies()?[0].nodes().remove(0);
        let earlier = graph.instantiate()?;
        child.set_child(&two)?;
        assert!(!inside.is_valid());
        refused(inside.set_memset(&lab.x, 9i32), ErrorKind::InvalidHandle, &[]);
        assert_eq!(child.bodies()?[0].len(), 2);
        let outcome = lab.run(&graph.instantiate()?)?;
        assert_eq!((outcome.x, outcome.y), ([2; LEN], [2; LEN]));
        assert_eq!(lab.run(&earlier)?.x, [1; LEN]);
        refused(child.set_child(&graph), ErrorKind::WrongGraph, &["own hierarchy"]);
        Ok(())
    });
}
