//! Conditions, and conditionals that kernels decide.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{
    GraphKernels, for_each_device, for_each_mode, in_own_process_with, is_cpu, refused, warnings_of,
};

#[test]
fn a_default_is_taken_at_every_launch() {
    for_each_mode(|device, conditional_mode| {
        let kernels = GraphKernels::new(device)?;
        let (value, zero) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let condition = graph.condition(Some(1))?;
        let choice = graph.if_then(&condition)?;
        kernels.bump(&choice.body(), &value, 1)?.launch(
            &kernels.set_condition,
            LaunchConfig::one(),
            (&condition, &zero),
        )?;
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        let executable = graph.instantiate_with(&options)?;
        for launch in 1..=3 {
            executable.launch(&kernels.stream)?;
            assert_eq!(read(&value)?, launch);
        }
        Ok(())
    });
}

#[test]
fn without_a_default_a_condition_is_0_at_the_start_of_each_launch() {
    for_each_mode(|device, conditional_mode| {
        let kernels = GraphKernels::new(device)?;
        let (value, one) = (kernels.value(0)?, kernels.value(1)?);
        let graph = Graph::new(device);
        let condition = graph.condition(None)?;
        let choice = graph.if_then(&condition)?;
        kernels.bump(&choice.body(), &value, 1)?;
        // Set after the test, so it would be seen by the next launch if it were kept.
        choice.launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &one))?;
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        let executable = graph.instantiate_with(&options)?;
        for _ in 0..3 {
            executable.launch(&kernels.stream)?;
        }
        assert_eq!(read(&value)?, 0);
        Ok(())
    });
}

#[test]
fn if_runs_its_body_for_every_value_but_0() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for (value, runs) in [(0, 0), (1, 1), (2, 1), (-1, 1), (i32::MIN, 1)] {
            let (ran, chosen) = (kernels.value(0)?, kernels.value(value)?);
            let graph = Graph::new(device);
            let condition = graph.condition(None)?;
            let choice = graph
                .launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &chosen))?
                .if_then(&condition)?;
            kernels.bump(&choice.body(), &ran, 1)?;
            let executable = kernels.run_in(&graph, mode)?;
            assert_eq!((read(&ran)?, executable.passes(&choice)?), (runs, runs as u64), "{value}");
        }
        Ok(())
    });
}

#[test]
fn if_else_runs_exactly_one_of_its_bodies() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for (value, expected) in [(0, [0, 1]), (1, [1, 0]), (7, [1, 0])] {
            let (ran, chosen) = (kernels.buffer(&[0, 0])?, kernels.value(value)?);
            let graph = Graph::new(device);
            let condition = graph.condition(Some(3))?;
            let choice = graph
                .launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &chosen))?
                .if_else(&condition)?;
            kernels.bump(&choice.then_body(), &ran.slice(..1)?, 1)?;
            kernels.bump(&choice.else_body(), &ran.slice(1..)?, 1)?;
            kernels.run_in(&graph, mode)?;
            assert_eq!(ran.to_vec()?, expected, "{value}");
        }
        Ok(())
    });
}

#[test]
fn while_tests_before_each_pass() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for (default, count, passes) in [(Some(0), 5, 0), (None, 5, 0), (Some(1), 1, 1), (Some(9), 6, 6)] {
            let (left, ran) = (kernels.value(count)?, kernels.value(0)?);
            let graph = Graph::new(device);
            let condition = graph.condition(default)?;
            let repeat = graph.while_loop(&condition)?;
            kernels.bump(&repeat.body(), &ran, 1)?.launch(
                &kernels.countdown,
                LaunchConfig::one(),
                (&condition, &left),
            )?;
            let executable = kernels.run_in(&graph, mode)?;
            assert_eq!((read(&ran)?, executable.passes(&repeat)?), (passes, passes as u64), "{default:?}");
        }
        Ok(())
    });
}

#[test]
fn switch_runs_the_body_of_its_value_and_none_out_of_range() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for bodies in [1, 2, 5] {
            for value in [0, 1, 2, 4, 5, 6, -1, i32::MIN] {
                let (ran, chosen) = (kernels.buffer(&[0; 5])?, kernels.value(value)?);
                let graph = Graph::new(device);
                let condition = graph.condition(None)?;
                let switch = graph
                    .launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &chosen))?
                    .switch(&condition, bodies)?;
                for case in 0..bodies {
                    kernels.bump(&switch.body(case)?, &ran.slice(case..=case)?, 1)?;
                }
                let executable = kernels.run_in(&graph, mode)?;
                let expected: Vec<i32> =
                    (0..5).map(|case| i32::from(case == value && case < bodies as i32)).collect();
                assert_eq!(ran.to_vec()?, expected, "{value} of {bodies}");
                assert_eq!(executable.passes(&switch)?, u64::from(expected.contains(&1)));
            }
        }
        Ok(())
    });
}

#[test]
fn bodies_may_be_empty() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let one = || graph.condition(Some(1));
        let last = graph
            .if_then(&one()?)?
            .if_else(&one()?)?
            .switch(&one()?, 2)?
            .while_loop(&graph.condition(None)?)?;
        let repeat = last.repeat(3)?;
        kernels.bump(&*repeat, &value, 1)?;
        let executable = kernels.run_in(&graph, mode)?;
        assert_eq!((read(&value)?, executable.passes(&repeat)?), (1, 3));
        Ok(())
    });
}

#[test]
fn bodies_inside_a_loop_may_be_empty() {
    for_each_mode(|device, conditional_mode| {
        let kernels = GraphKernels::new(device)?;
        let (value, selector) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let body = graph.repeat(3)?.body();
        let last = body.if_else_nonzero(&selector)?.switch_on(&selector, 2)?;
        let condition = body.condition(Some(0))?;
        let last = last.switch(&condition, 1)?;
        kernels.bump(&*last, &value, 1)?;
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        let executable = graph.instantiate_with(&options)?;
        for launch in 1..=3 {
            executable.launch(&kernels.stream)?;
            assert_eq!(read(&value)?, 3 * launch);
        }
        Ok(())
    });
}

#[test]
fn a_nested_condition_keeps_the_value_last_set_across_passes() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (ran, zero) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let inner = graph.condition(Some(1))?;
        let repeat = graph.repeat(4)?;
        let choice = repeat.body().if_then(&inner)?;
        // The first pass clears the condition, and the default is not applied again until the next
        // launch.
        kernels.bump(&choice.body(), &ran, 1)?.launch(
            &kernels.set_condition,
            LaunchConfig::one(),
            (&inner, &zero),
        )?;
        let executable = kernels.run_in(&graph, mode)?;
        assert_eq!(read(&ran)?, 1);
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&ran)?, 2);
        Ok(())
    });
}

#[test]
fn loops_nest_and_their_passes_multiply() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let one = LaunchConfig::one();
        let ran = kernels.value(0)?;
        let lefts = kernels.buffer(&[0; 3])?;
        let [a, b, c] = [lefts.slice(..1)?, lefts.slice(1..2)?, lefts.slice(2..)?];
        let graph = Graph::new(device);
        let conditions = [graph.condition(Some(1))?, graph.condition(None)?, graph.condition(None)?];
        let one_value = kernels.value(1)?;
        let outer = graph.memset(&a, 2i32)?.while_loop(&conditions[0])?;
        let middle = outer
            .body()
            .memset(&b, 3i32)?
            .launch(&kernels.set_condition, one, (&conditions[1], &one_value))?
            .while_loop(&conditions[1])?;
        middle.launch(&kernels.countdown, one, (&conditions[0], &a))?;
        let inner = middle
            .body()
            .memset(&c, 5i32)?
            .launch(&kernels.set_condition, one, (&conditions[2], &one_value))?
            .while_loop(&conditions[2])?;
        inner.launch(&kernels.countdown, one, (&conditions[1], &b))?;
        kernels.bump(&inner.body(), &ran, 1)?.launch(&kernels.countdown, one, (&conditions[2], &c))?;
        let executable = kernels.run_in(&graph, mode)?;
        assert_eq!(read(&ran)?, 2 * 3 * 5);
        assert_eq!(executable.passes(&outer)?, 2);
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&ran)?, 2 * 30);
        Ok(())
    });
}

#[test]
fn a_condition_of_the_root_is_set_from_inside_a_body() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (ran, two) = (kernels.buffer(&[0; 3])?, kernels.value(2)?);
        let graph = Graph::new(device);
        let later = graph.condition(None)?;
        let first = graph.if_then(&graph.condition(Some(1))?)?;
        first.body().launch(&kernels.set_condition, LaunchConfig::one(), (&later, &two))?;
        let switch = first.switch(&later, 3)?;
        for case in 0..3 {
            kernels.bump(&switch.body(case)?, &ran.slice(case..=case)?, 1)?;
        }
        kernels.run_in(&graph, mode)?;
        assert_eq!(ran.to_vec()?, [0, 0, 1]);
        Ok(())
    });
}

#[test]
fn a_condition_that_no_node_uses_is_harmless() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (value, five) = (kernels.value(0)?, kernels.value(5)?);
        let graph = Graph::new(device);
        let unused = graph.condition(Some(3))?;
        let _another = graph.condition(None)?;
        let set = graph.launch(&kernels.set_condition, LaunchConfig::one(), (&unused, &five))?;
        kernels.bump(&set, &value, 1)?;
        kernels.run_in(&graph, mode)?;
        assert_eq!(read(&value)?, 1);
        Ok(())
    });
}

#[test]
fn a_condition_decides_one_node_of_its_own_graph() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(1)?;
        let (graph, other) = (Graph::new(device), Graph::new(device));
        let condition = graph.condition(None)?;
        let choice = graph.if_then(&condition)?.named("choice")?;
        refused(graph.while_loop(&condition), ErrorKind::InvalidState, &["choice", "another"]);
        refused(choice.body().if_then(&condition), ErrorKind::InvalidState, &["choice"]);
        let foreign = other.condition(None)?;
        refused(graph.if_then(&foreign), ErrorKind::WrongGraph, &["another graph"]);
        let set = graph.launch(&kernels.set_condition, LaunchConfig::one(), (&foreign, &value));
        refused(set, ErrorKind::WrongGraph, &["another graph"]);
        let inside = choice.body().condition(None)?;
        refused(graph.if_then(&inside), ErrorKind::WrongGraph, &["not around"]);
        choice.body().if_then(&inside)?;
        Ok(())
    });
}

#[test]
fn a_report_says_how_each_conditional_runs_and_why() {
    for_each_mode(|device, mode| {
        let graph = Graph::new(device);
        let outer = graph.repeat(2)?.named("outer")?;
        outer.body().if_then(&graph.condition(Some(1))?)?.named("inner")?;
        let options = InstantiateOptions::new().conditional_mode(mode);
        let report = graph.instantiate_with(&options)?.report();
        let names: Vec<&str> = report.conditionals.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names.first(), Some(&"outer"));
        assert!(names.iter().any(|name| name.contains("inner")), "{names:?}");
        assert!(report.conditionals.iter().all(|one| !one.reason.is_empty()));
        // The CPU is its own host.
        if mode == ConditionalMode::Hosted && !is_cpu(device) {
            assert!(report.conditionals.iter().all(|one| !one.native), "{report:?}");
        }
        Ok(())
    });
}

#[test]
fn passes_are_asked_of_conditionals_only() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let node = graph.empty()?.named("plain")?;
        let executable = kernels.run(&graph)?;
        refused(executable.passes(&node), ErrorKind::InvalidArgument, &["plain", "not a conditional"]);
        let late = graph.repeat(1)?;
        refused(executable.passes(&late), ErrorKind::InvalidHandle, &["not in this executable"]);
        let foreign = Graph::new(device).repeat(1)?;
        refused(executable.passes(&foreign), ErrorKind::WrongGraph, &["another graph"]);
        Ok(())
    });
}

#[test]
fn where_the_host_has_to_drive_a_loop_one_warning_gives_the_reason() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        for name in ["calls back", "calls back too"] {
            let repeat = graph.repeat(2)?.named(name)?;
            kernels.bump(&repeat.body(), &value, 1)?.callback(|| {})?;
        }
        // The two loops have no order between them, which the check for hazards warns of.
        let options = InstantiateOptions::new().hazards(HazardCheck::Off);
        let (executable, warnings) = warnings_of(|| graph.instantiate_with(&options));
        let hosted = executable?.report().conditionals.iter().filter(|entry| !entry.native).count();
        if is_cpu(device) {
            assert_eq!((hosted, warnings.len()), (0, 0), "{warnings:?}");
        } else {
            assert_eq!((hosted, warnings.len()), (2, 1), "{warnings:?}");
            for part in ["the host drives", "calls back"] {
                assert!(warnings[0].contains(part), "{warnings:?}");
            }
            // An older driver has no conditional nodes at all.
            let reasons = ["CUDA allows no callback node there", "needs a driver for CUDA 12.4"];
            assert!(reasons.iter().any(|reason| warnings[0].contains(reason)), "{warnings:?}");
        }
        let asked_for = options.conditional_mode(ConditionalMode::Hosted);
        let (executable, warnings) = warnings_of(|| graph.instantiate_with(&asked_for));
        executable?;
        assert_eq!(warnings.len(), 0, "{warnings:?}");
        Ok(())
    });
}

/// The variable that decides how conditionals run where the program leaves it open.
const CONDITIONALS: &str = "GRIDLOOM_CONDITIONALS";

#[test]
fn the_environment_lets_the_host_drive_conditionals() {
    let test = "the_environment_lets_the_host_drive_conditionals";
    if !in_own_process_with(module_path!(), test, &[(CONDITIONALS, "hosted")]) {
        return;
    }
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(3)?;
        kernels.bump(&repeat.body(), &value, 1)?;
        let executable = graph.instantiate()?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&value)?, 3);
        // The CPU runs every conditional itself.
        let report = executable.report();
        assert!(
            report.conditionals.iter().all(|conditional| conditional.native == is_cpu(device)),
            "{report:?}"
        );
        // What a program asks for counts more.
        let auto_is_not_native = InstantiateOptions::new().conditional_mode(ConditionalMode::Native);
        match graph.instantiate_with(&auto_is_not_native) {
            Ok(executable) => {
                assert!(executable.report().conditionals.iter().all(|conditional| conditional.native))
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotSupported),
        }
        Ok(())
    });
}

#[test]
fn a_wrong_word_in_the_environment_is_an_error_of_instantiation() {
    let test = "a_wrong_word_in_the_environment_is_an_error_of_instantiation";
    if !in_own_process_with(module_path!(), test, &[(CONDITIONALS, "sometimes")]) {
        return;
    }
    for_each_device(|device| {
        let says = ["GRIDLOOM_CONDITIONALS", "sometimes", "auto, native or hosted"];
        refused(Graph::new(device).instantiate(), ErrorKind::InvalidArgument, &says);
        Ok(())
    });
}
