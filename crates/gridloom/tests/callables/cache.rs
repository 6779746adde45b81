//! The cache between calls: one graph for each shape, a bounded number of them, until reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom::callable::CallableOptions;
use gridloom::prelude::*;

use super::{assert_counts, for_each_way, with_graphs};
use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, is_cpu};

type Steps = Callable<(Param<i32>, Shape)>;

/// Adds 1 as often as its shape says, a node for each.
fn steps(kernels: &GraphKernels, options: &CallableOptions) -> Steps {
    let increase = kernels.increase.clone();
    Callable::with_options(&kernels.device, options.clone(), move |g, (x, steps): (Param<i32>, Shape)| {
        for _ in 0..steps.get() {
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
        }
        Ok(())
    })
}

#[test]
fn a_shape_parameter_selects_the_graph() {
    for_each_way(|kernels, options| {
        let (work, x) = (steps(kernels, options), kernels.value(0)?);
        for shape in [2usize, 5, 2, 5, 2] {
            work.call(&kernels.stream, (&x, shape))?;
        }
        assert_eq!(read(&x)?, 16);
        assert_counts(&work, options, 2, 5);
        Ok(())
    });
}

#[test]
fn the_graph_used_longest_ago_goes_first() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let options = with_graphs().max_graphs(2);
        let (work, x) = (steps(&kernels, &options), kernels.value(0)?);
        let mut builds = Vec::new();
        for shape in [1u64, 2, 1, 3, 1, 2, 3] {
            work.call(&kernels.stream, (&x, shape))?;
            let stats = work.stats();
            builds.push(stats.builds);
            assert!(stats.graphs <= 2);
        }
        // 3 displaces 2, since 1 was used again; then 2 displaces 3, and 3 displaces 1.
        assert_eq!(builds, [1, 2, 2, 3, 3, 4, 5]);
        assert_eq!(read(&x)?, 13);
        Ok(())
    });
}

#[test]
fn a_bound_of_0_graphs_or_instances_still_keeps_the_one_in_use() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let options = with_graphs().max_graphs(0).max_instances(0);
        let (work, x) = (steps(&kernels, &options), kernels.value(0)?);
        for _ in 0..3 {
            work.call(&kernels.stream, (&x, 2usize))?;
        }
        let stats = work.stats();
        assert_eq!((stats.builds, stats.graphs, stats.instances), (1, 1, 1));
        assert_eq!(read(&x)?, 6);
        Ok(())
    });
}

#[test]
fn other_arguments_leave_one_graph_and_one_executable() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let work = steps(&kernels, &with_graphs());
        for _ in 0..8 {
            work.call(&kernels.stream, (&kernels.value(0)?, 3usize))?;
            kernels.stream.synchronize()?;
        }
        let stats = work.stats();
        assert_eq!((stats.builds, stats.replays, stats.graphs, stats.instances), (1, 7, 1, 1));
        Ok(())
    });
}

#[test]
fn reset_forgets_everything_and_the_next_call_builds_again() {
    for_each_way(|kernels, options| {
        let (work, x) = (steps(kernels, options), kernels.value(0)?);
        work.call(&kernels.stream, (&x, 3usize))?;
        work.call(&kernels.stream, (&x, 3usize))?;
        work.reset()?;
        assert_eq!(work.stats(), gridloom::CallableStats::default());
        assert!(work.graph()?.is_none());
        let y = kernels.value(0)?;
        work.call(&kernels.stream, (&y, 3usize))?;
        assert_eq!((read(&x)?, read(&y)?), (6, 3));
        assert_counts(&work, options, 1, 1);
        assert!(!work.stats().last_replayed);
        Ok(())
    });
}

#[test]
fn clones_are_one_callable() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (work, x) = (steps(&kernels, &with_graphs()), kernels.value(0)?);
        let clone = work.clone();
        work.call(&kernels.stream, (&x, 1usize))?;
        clone.call(&kernels.stream, (&x, 1usize))?;
        assert_eq!(work.stats(), clone.stats());
        assert_eq!((work.stats().builds, work.stats().calls), (1, 2));
        Ok(())
    });
}

#[test]
fn nothing_is_built_before_the_first_call() {
    for_each_device(|device| {
        let runs = Arc::new(AtomicU32::new(0));
        let inside = runs.clone();
        let work = Callable::with_options(device, with_graphs(), move |_, (): ()| {
            inside.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!((runs.load(Ordering::Relaxed), work.stats().builds), (0, 0));
        assert!(work.graph()?.is_none());
        let stream = device.stream()?;
        work.call(&stream, ())?;
        work.call(&stream, ())?;
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        Ok(())
    });
}

#[test]
fn the_graph_can_be_seen_with_names_and_bodies() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let increase = kernels.increase.clone();
        let work =
            Callable::with_options(device, with_graphs(), move |g, (x, left): (Param<i32>, Param<i32>)| {
                g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
                g.named("warm up")?;
                g.do_while(&left, |body| {
                    body.launch(&increase, LaunchConfig::one(), (&left, 1, -1))?;
                    body.named("count")
                })?;
                g.named("until done")
            });
        work.call(&kernels.stream, (&kernels.value(0)?, &kernels.value(2)?))?;
        let graph = work.graph()?.expect("it was called");
        let labels: Vec<String> = graph.nodes().iter().map(Node::label).collect();
        assert_eq!(labels.len(), 2);
        assert!(labels[0].contains("warm up") && labels[1].contains("until done"), "{labels:?}");
        let dot = graph.to_dot();
        for name in ["warm up", "until done", "count"] {
            assert!(dot.contains(name), "{name:?} in {dot}");
        }
        Ok(())
    });
}

#[test]
fn a_name_needs_an_operation_to_go_to() {
    for_each_device(|device| {
        let work = Callable::with_options(device, with_graphs(), move |g, (): ()| g.named("nothing"));
        let stream = device.stream()?;
        crate::support::refused(work.call(&stream, ()), ErrorKind::InvalidState, &["no operation to name"]);
        Ok(())
    });
}

#[test]
fn the_statistics_say_whether_and_why_loops_ran_on_the_host() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        for (mode, graphs) in
            [(ConditionalMode::Native, true), (ConditionalMode::Hosted, true), (ConditionalMode::Auto, false)]
        {
            // A driver kept down to an old version has no loops of its own to ask for.
            let capped = std::env::var_os("GRIDLOOM_CUDA_MAX_VERSION").is_some();
            if mode == ConditionalMode::Native && capped && !is_cpu(device) {
                continue;
            }
            let options = with_graphs().conditional_mode(mode).graphs(graphs);
            let increase = kernels.increase.clone();
            let work = Callable::with_options(device, options, move |g, (left,): (Param<i32>,)| {
                g.do_while(&left, |body| body.launch(&increase, LaunchConfig::one(), (&left, 1, -1)))
            });
            work.call(&kernels.stream, (&kernels.value(2)?,))?;
            let hosted = work.stats().hosted;
            // The CPU is the host; its graphs have no other way to run a loop.
            let native = graphs && (mode == ConditionalMode::Native || is_cpu(device));
            assert_eq!(hosted.is_none(), native, "{mode:?}, graphs {graphs}: {hosted:?}");
            assert!(hosted.is_none_or(|why| !why.is_empty()));
        }
        Ok(())
    });
}
