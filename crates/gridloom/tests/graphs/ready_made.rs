//! Conditionals that need no device code of the user: they test a value in device memory, or count.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, for_each_mode, refused};

#[test]
fn while_nonzero_counts_a_value_down_to_0() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for count in [0, 1, 7] {
            let (left, ran) = (kernels.value(count)?, kernels.value(0)?);
            let graph = Graph::new(device);
            let repeat = graph.while_nonzero(&left)?;
            let bump = kernels.bump(&repeat.body(), &ran, 1)?;
            kernels.bump(&bump, &left, -1)?;
            let executable = kernels.run_in(&graph, mode)?;
            assert_eq!((read(&ran)?, read(&left)?), (count, 0));
            assert_eq!(executable.passes(&repeat)?, count as u64);
        }
        Ok(())
    });
}

#[test]
fn do_while_runs_its_body_at_least_once() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        // The body counts down first, so a counter that starts at 1 makes one pass, and one at 0
        // goes on below.
        for (count, passes) in [(1, 1), (5, 5)] {
            let (left, ran) = (kernels.value(count)?, kernels.value(0)?);
            let graph = Graph::new(device);
            let repeat = graph.do_while(&left)?;
            let bump = kernels.bump(&repeat.body(), &ran, 1)?;
            kernels.bump(&bump, &left, -1)?;
            let executable = kernels.run_in(&graph, mode)?;
            assert_eq!((read(&ran)?, executable.passes(&repeat)?), (passes, passes as u64));
        }
        let (flag, ran) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        kernels.bump(&graph.do_while(&flag)?.body(), &ran, 1)?;
        kernels.run_in(&graph, mode)?;
        assert_eq!(read(&ran)?, 1, "once with a flag that is 0 from the start");
        Ok(())
    });
}

#[test]
fn repeat_makes_its_passes_at_every_launch() {
    for_each_mode(|device, conditional_mode| {
        let kernels = GraphKernels::new(device)?;
        for passes in [0, 1, 10, 1000] {
            let ran = kernels.value(0)?;
            let graph = Graph::new(device);
            let repeat = graph.repeat(passes)?;
            kernels.bump(&repeat.body(), &ran, 1)?;
            let options = InstantiateOptions::new().conditional_mode(conditional_mode);
            let executable = graph.instantiate_with(&options)?;
            for launch in 1..=2 {
                executable.launch(&kernels.stream)?;
                assert_eq!(read(&ran)?, passes as i32 * launch);
                assert_eq!(executable.passes(&repeat)?, passes);
            }
        }
        Ok(())
    });
}

#[test]
fn a_nested_repeat_starts_anew_in_every_pass() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let ran = kernels.value(0)?;
        let graph = Graph::new(device);
        let inner = graph.repeat(3)?.body().repeat(4)?;
        let innermost = inner.body().repeat(5)?;
        kernels.bump(&innermost.body(), &ran, 1)?;
        kernels.bump(&*innermost, &ran, 100)?;
        kernels.run_in(&graph, mode)?;
        assert_eq!(read(&ran)?, 3 * 4 * (5 + 100));
        Ok(())
    });
}

#[test]
fn if_nonzero_and_its_else_read_the_value_when_they_run() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        for start in [-1, 0, 1] {
            let (value, ran) = (kernels.value(start)?, kernels.buffer(&[0; 3])?);
            let graph = Graph::new(device);
            // The value is changed inside the launch, before it is tested.
            let bump = kernels.bump(&graph, &value, 1)?;
            let choice = bump.if_nonzero(&value)?;
            kernels.bump(&choice.body(), &ran.slice(..1)?, 1)?;
            let both = choice.if_else_nonzero(&value)?;
            kernels.bump(&both.then_body(), &ran.slice(1..2)?, 1)?;
            kernels.bump(&both.else_body(), &ran.slice(2..)?, 1)?;
            kernels.run_in(&graph, mode)?;
            let nonzero = i32::from(start != -1);
            assert_eq!(ran.to_vec()?, [nonzero, nonzero, 1 - nonzero], "{start} + 1");
        }
        Ok(())
    });
}

#[test]
fn switch_on_runs_the_body_of_the_value_in_memory() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let ran = kernels.buffer(&[0; 4])?;
        let value = kernels.value(-2)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(8)?;
        let switch = repeat.body().switch_on(&value, 4)?;
        for case in 0..4 {
            kernels.bump(&switch.body(case)?, &ran.slice(case..=case)?, 1 + case as i32)?;
        }
        kernels.bump(&*switch, &value, 1)?;
        kernels.run_in(&graph, mode)?;
        // The value runs from -2 to 5: each of the four bodies once, none for the others.
        assert_eq!((ran.to_vec()?, read(&value)?), (vec![1, 2, 3, 4], 6));
        Ok(())
    });
}

#[test]
fn a_limit_ends_a_loop_that_would_go_on() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let flag = kernels.value(1)?;
        for limit in [0, 1, 6] {
            let ran = kernels.value(0)?;
            let graph = Graph::new(device);
            let always = graph.condition(Some(1))?;
            let first = graph.while_nonzero(&flag)?.max_passes(limit)?;
            let second = first.while_loop(&always)?.max_passes(limit)?;
            let third = second.repeat(100)?.max_passes(limit)?;
            for repeat in [&first, &second, &third] {
                kernels.bump(&repeat.body(), &ran, 1)?;
            }
            let executable = kernels.run_in(&graph, mode)?;
            assert_eq!(read(&ran)?, 3 * limit as i32);
            for repeat in [&first, &second, &third] {
                assert_eq!(executable.passes(repeat)?, limit);
            }
        }
        Ok(())
    });
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (left, ran) = (kernels.value(3)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let repeat = graph.while_nonzero(&left)?.max_passes(50)?;
        let bump = kernels.bump(&repeat.body(), &ran, 1)?;
        kernels.bump(&bump, &left, -1)?;
        let executable = kernels.run_in(&graph, mode)?;
        assert_eq!((read(&ran)?, executable.passes(&repeat)?), (3, 3));
        Ok(())
    });
}

#[test]
fn a_limit_is_for_loops_only() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let choice = Graph::new(device).if_nonzero(&value)?.named("choice")?;
        refused(choice.set_max_passes(Some(3)), ErrorKind::InvalidArgument, &["choice", "not a loop"]);
        Ok(())
    });
}

#[test]
fn loops_test_memory_that_the_graph_allocates() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let ran = kernels.value(0)?;
        let graph = Graph::new(device);
        let cells = graph.alloc::<i32>(4)?;
        let left = cells.slice(2..3)?;
        let repeat = cells.memset(&cells, 0u8)?.memset(&left, 6i32)?.while_nonzero(&left)?;
        let bump = kernels.bump(&repeat.body(), &ran, 1)?;
        kernels.bump(&bump, &left, -1)?;
        repeat.free(&cells)?;
        let executable = kernels.run_in(&graph, mode)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&ran)?, 12);
        Ok(())
    });
}

#[test]
fn siblings_loop_apart_and_work_around_them_runs_once() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let ran = kernels.buffer(&[0; 4])?;
        let cell = |k: usize| ran.slice(k..=k);
        let graph = Graph::new(device);
        let before = kernels.bump(&graph, &cell(0)?, 1)?;
        let loops = [before.repeat(3)?, before.repeat(5)?];
        kernels.bump(&loops[0].body(), &cell(1)?, 1)?;
        kernels.bump(&loops[1].body(), &cell(2)?, 1)?;
        let both = graph.join([&*loops[0], &*loops[1]])?;
        kernels.bump(&both, &cell(3)?, 1)?;
        kernels.run_in(&graph, mode)?;
        assert_eq!(ran.to_vec()?, [1, 3, 5, 1]);
        Ok(())
    });
}

#[test]
fn the_passes_of_a_conditional_in_a_loop_are_those_of_its_last_execution() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (flag, ran, chosen) = (kernels.value(1)?, kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let outer = graph.repeat(3)?;
        let inner = outer.body().repeat(2)?;
        kernels.bump(&inner.body(), &ran, 1)?;
        // Its body runs in the first pass of the outer loop alone.
        let choice = inner.if_nonzero(&flag)?;
        kernels.bump(&choice.body(), &chosen, 1)?;
        choice.memset(&flag, 0i32)?;
        let executable = kernels.run_in(&graph, mode)?;
        assert_eq!((read(&ran)?, read(&chosen)?), (6, 1));
        let passes = [&*outer, &*inner, &*choice].map(|node| executable.passes(node));
        assert_eq!(passes.into_iter().collect::<Result<Vec<_>>>()?, [3, 2, 0]);
        Ok(())
    });
}
