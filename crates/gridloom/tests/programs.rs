//! Three whole programs from explicit nodes (heat in a rod, a root by bisection, a switch), and the
//! solver example from a callable.

#[allow(dead_code, reason = "an example has a main function and looks at the command line")]
#[path = "../examples/conjugate_gradient/main.rs"]
mod conjugate_gradient;
#[allow(dead_code, reason = "an example has a main function and looks at the command line")]
#[path = "../examples/life.rs"]
mod life;
#[allow(dead_code, reason = "an example has a main function and looks at the command line")]
#[path = "../examples/nbody.rs"]
mod nbody;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Bench, for_each_device, for_each_mode, warnings_of};
use gridloom::contract::{Contract, arg};
use gridloom::prelude::*;

/// The temperature of the left end.
const HOT: f32 = 100.0;

/// Returns what `heat_step` computes, `passes` times over a rod of `n` floats.
fn heat_reference(n: usize, alpha: f32, passes: u32) -> Vec<f32> {
    let mut now = vec![0.0f32; n];
    (now[0], now[n - 1]) = (HOT, 0.0);
    for _ in 0..passes {
        let mut next = now.clone();
        for i in 1..n - 1 {
            next[i] = now[i] + alpha * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
        }
        now = next;
    }
    now
}

#[test]
fn heat_spreads_along_a_rod_in_a_while_loop() {
    const N: usize = 32;
    const PASSES: u32 = 50;
    const ALPHA: f32 = 0.4;

    for_each_mode(|device, conditional_mode| {
        let bench = Bench::new(device, include_str!("../kernels/heat.ptx"))?;
        let heat_step = bench.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")?;
        let set_ends = bench.kernel_with::<(PtrMut<f32>, Len<u32>, f32, f32)>(
            "set_ends",
            Contract::new().at_least(arg(1), 1),
        )?;
        let countdown = bench.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")?;
        let host = device.alloc_host::<f32>(N)?;
        let (start, end) = (device.event()?, device.event()?);
        let finished = Arc::new(AtomicU32::new(0));

        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let now = graph.alloc::<f32>(N)?;
        let next = graph.alloc::<f32>(N)?;
        let left = graph.alloc::<i32>(1)?;
        let ready = graph.join([
            &now.memset(&now, 0u8)?,
            &next.memset(&next, 0u8)?,
            &left.memset(&left, PASSES as i32)?,
        ])?;
        // An embedded copy is open for editing, and inside this graph it may use this graph's
        // memory.
        let child = ready.embed(&Graph::new(device))?;
        child.bodies()?[0].launch(&set_ends, LaunchConfig::one(), (&now, N as u32, HOT, 0.0))?;
        let repeat = child.record(&start)?.while_loop(&again)?;
        repeat
            .body()
            .launch(&heat_step, LaunchConfig::linear(N), (&next, &now, N as u32, ALPHA))?
            .memcpy(&now, &next)?
            .launch(&countdown, LaunchConfig::one(), (&again, &left))?;
        let count = finished.clone();
        repeat
            .wait(&start)?
            .record(&end)?
            .memcpy(&host, &now)?
            .callback(move || {
                count.fetch_add(1, Ordering::Relaxed);
            })?
            .free(&now)?
            .free(&next)?
            .free(&left)?;

        let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
        no_hazards(&graph);
        let executable = graph.instantiate_with(&options)?;
        let expected = heat_reference(N, ALPHA, PASSES);
        for launch in 1..=3 {
            executable.launch(&bench.stream)?;
            bench.stream.synchronize()?;
            for (i, (got, wanted)) in host.to_vec()?.iter().zip(&expected).enumerate() {
                assert!((got - wanted).abs() <= 1e-5, "launch {launch}, [{i}]: {got}, not {wanted}");
            }
            assert_eq!(finished.load(Ordering::Relaxed), launch);
            assert_eq!(executable.passes(&repeat)?, u64::from(PASSES));
            end.elapsed_since(&start)?;
        }
        Ok(())
    });
}

#[test]
fn bisection_finds_the_root_of_two_with_nested_conditionals() {
    const PASSES: i32 = 20;
    const TARGET: f64 = 2.0;

    for_each_mode(|device, conditional_mode| {
        let bench = Bench::new(device, include_str!("../kernels/bisect.ptx"))?;
        let two_at = |index| Contract::new().holds(index, 2);
        let set_bracket =
            bench.kernel_with::<(PtrMut<f64>, PtrMut<i32>, f64, f64, i32)>("set_bracket", two_at(0))?;
        let evaluate = bench.kernel_with::<(ConditionHandle, Ptr<f64>, f64)>("evaluate", two_at(1))?;
        let raise_low = bench.kernel_with::<(PtrMut<f64>,)>("raise_low", two_at(0))?;
        let lower_high = bench.kernel_with::<(PtrMut<f64>,)>("lower_high", two_at(0))?;
        let countdown = bench.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")?;
        let check =
            bench.kernel_with::<(ConditionHandle, PtrMut<f64>, Ptr<f64>, f64, f64)>("check", two_at(2))?;
        let newton = bench.kernel::<(PtrMut<f64>, f64)>("newton")?;
        let host = device.alloc_host::<f64>(1)?;
        let finished = Arc::new(AtomicU32::new(0));

        // After 20 passes the middle is within 2^-20 of the root, so only the second tolerance asks
        // for the Newton step.
        for (tolerance, newton_steps) in [(1e-3, 0), (1e-12, 1)] {
            let one = LaunchConfig::one();
            let graph = Graph::new(device);
            let again = graph.condition(Some(1))?;
            let to_the_right = graph.condition(None)?;
            let not_yet = graph.condition(None)?;
            let ends = graph.alloc::<f64>(2)?;
            let left = graph.alloc::<i32>(1)?;
            let root = graph.alloc::<f64>(1)?;
            let repeat = graph
                .join([&*ends, &*left, &*root])?
                .launch(&set_bracket, one, (&ends, &left, 0.0, 2.0, PASSES))?
                .while_loop(&again)?;
            let choose = repeat
                .body()
                .launch(&evaluate, one, (&to_the_right, &ends, TARGET))?
                .if_else(&to_the_right)?;
            choose.then_body().launch(&raise_low, one, (&ends,))?;
            choose.else_body().launch(&lower_high, one, (&ends,))?;
            choose.launch(&countdown, one, (&again, &left))?;
            let refine =
                repeat.launch(&check, one, (&not_yet, &root, &ends, TARGET, tolerance))?.if_then(&not_yet)?;
            refine.body().launch(&newton, one, (&root, TARGET))?;
            let count = finished.clone();
            refine
                .memcpy(&host, &root)?
                .callback(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                })?
                .free(&ends)?
                .free(&left)?
                .free(&root)?;

            let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
            no_hazards(&graph);
            let executable = graph.instantiate_with(&options)?;
            finished.store(0, Ordering::Relaxed);
            for launch in 1..=2 {
                executable.launch(&bench.stream)?;
                bench.stream.synchronize()?;
                let found = host.to_vec()?[0];
                assert!((found - TARGET.sqrt()).abs() <= 1e-6, "{found} with a tolerance of {tolerance}");
                if newton_steps == 1 {
                    assert!((found - TARGET.sqrt()).abs() <= 1e-11, "{found} after a Newton step");
                }
                assert_eq!(finished.load(Ordering::Relaxed), launch);
                assert_eq!(executable.passes(&repeat)?, PASSES as u64);
                assert_eq!(executable.passes(&refine)?, newton_steps);
            }
        }
        Ok(())
    });
}

#[test]
fn a_switch_negates_doubles_squares_or_leaves_alone() {
    for_each_mode(|device, conditional_mode| {
        let bench = Bench::new(device, include_str!("../kernels/switch.ptx"))?;
        let operations = ["negate", "double_it", "square"];
        for (default, expected) in [(0, -42), (1, 84), (2, 1764), (3, 42), (u32::MAX, 42)] {
            let graph = Graph::new(device);
            let which = graph.condition(Some(default))?;
            let value = device.buffer_from(&[42i32])?;
            let switch = graph.switch(&which, operations.len())?;
            for (case, name) in operations.iter().enumerate() {
                let kernel = bench.kernel::<(PtrMut<i32>,)>(name)?;
                switch.body(case)?.launch(&kernel, LaunchConfig::one(), (&value,))?;
            }
            let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
            no_hazards(&graph);
            let executable = graph.instantiate_with(&options)?;
            executable.launch(&bench.stream)?;
            bench.stream.synchronize()?;
            assert_eq!(value.to_vec()?, [expected], "default {default}");
            assert_eq!(executable.passes(&switch)?, u64::from(default < 3));
        }
        Ok(())
    });
}

#[test]
fn a_kernel_chooses_the_case_of_a_switch() {
    for_each_mode(|device, conditional_mode| {
        let bench = Bench::new(device, include_str!("../kernels/switch.ptx"))?;
        let choose = bench.kernel::<(ConditionHandle, Ptr<u32>)>("choose")?;
        let operations = ["negate", "double_it", "square"];
        let (value, selector) = (device.buffer_from(&[7i32])?, device.buffer_from(&[0u32])?);
        let graph = Graph::new(device);
        let which = graph.condition(None)?;
        let switch = graph
            .launch(&choose, LaunchConfig::one(), (&which, &selector))?
            .switch(&which, operations.len())?;
        for (case, name) in operations.iter().enumerate() {
            let kernel = bench.kernel::<(PtrMut<i32>,)>(name)?;
            switch.body(case)?.launch(&kernel, LaunchConfig::one(), (&value,))?;
        }
        let options = InstantiateOptions::new().conditional_mode(conditional_mode).count_passes(true);
        no_hazards(&graph);
        let executable = graph.instantiate_with(&options)?;
        // One executable, another case at each launch: the value in memory decides.
        for (case, expected) in [(1, 14), (0, -14), (3, -14), (2, 196), (1, 392)] {
            selector.write(&[case])?;
            executable.launch(&bench.stream)?;
            bench.stream.synchronize()?;
            assert_eq!(value.to_vec()?, [expected], "case {case}");
        }
        Ok(())
    });
}

#[test]
fn the_example_of_conjugate_gradients_solves_both_problems_and_has_residuals_to_draw() {
    for_each_device(|device| {
        let (curves, warnings) = warnings_of(|| conjugate_gradient::run(device));
        let curves = curves?;
        // An older driver has no conditional nodes, and the host drives the loop.
        let is_expected = |warning: &String| warning.contains("the host drives a conditional");
        assert!(warnings.iter().all(is_expected), "{warnings:?}");
        assert_eq!(curves.len(), 2);
        assert!(curves.iter().all(|curve| curve.points.len() > 10));
        Ok(())
    });
}

/// Checks that a graph lacks no dependency.
#[track_caller]
fn no_hazards(graph: &Graph) {
    let found = graph.check();
    assert!(found.is_empty() && found.complete, "{found}");
}

#[test]
fn the_check_reports_nothing_about_the_graphs_of_the_examples() {
    for_each_device(|device| {
        let (now, next) = (device.alloc::<u8>(64 * 32)?, device.alloc::<u8>(64 * 32)?);
        no_hazards(&life::two_generations(device, &now, &next)?);
        let (bodies, velocities) = (device.alloc::<[f32; 4]>(32)?, device.alloc::<[f32; 3]>(32)?);
        no_hazards(&nbody::hundred_steps(device, &bodies, &velocities)?);
        Ok(())
    });
}
