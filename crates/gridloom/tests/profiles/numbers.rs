//! What the numbers of a profile mean.

use std::time::Duration;

use gridloom::ProfileOptions;
use gridloom::prelude::*;

use super::{check, for_each_method, row};
use crate::support::GraphKernels;
use crate::support::graph_kernels::read;

#[test]
fn every_node_has_its_times_and_the_results_are_those_of_a_launch() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let (out, left, right) = (kernels.value(0)?, kernels.value(1)?, kernels.value(2)?);
        let graph = Graph::new(device);
        let scratch = graph.alloc::<i32>(1024)?;
        let fill = scratch.memset(&scratch, 5i32)?.named("fill")?;
        let one = kernels.bump(&fill, &left, 10)?.named("one")?;
        let two = kernels.bump(&fill, &right, 10)?.named("two")?;
        let joined = graph.join([&one, &two])?;
        let mix = joined.launch(&kernels.mix, LaunchConfig::one(), (&left, &right, 1))?.named("mix")?;
        mix.memcpy(&out, &left)?.named("copy")?.free(&scratch)?;
        let executable = graph.instantiate()?;
        let profile = executable.profile_with(&kernels.stream, options)?;
        check(&profile);
        assert_eq!(read(&out)?, 31 * 11 + 12);
        for name in ["fill", "one", "two", "mix", "copy"] {
            assert_eq!(row(&profile, name).runs, 1, "{name}");
        }
        assert_eq!(profile.nodes.len(), 5, "nodes without work have no row: {profile:#}");
        assert_eq!((row(&profile, "fill").bytes, row(&profile, "copy").bytes), (Some(4096), Some(4)));
        let at = |name: &str| (row(&profile, name).start_ns, row(&profile, name).end_ns);
        for (before, after) in
            [("fill", "one"), ("fill", "two"), ("one", "mix"), ("two", "mix"), ("mix", "copy")]
        {
            assert!(at(before).1 <= at(after).0, "{before} ends before {after} starts: {profile:#}");
        }
        let ready = at("one").1.max(at("two").1);
        assert_eq!(row(&profile, "mix").gap_ns, at("mix").0 - ready, "time between dependencies and start");
        let thread = |name: &str| {
            let id = row(&profile, name).id;
            profile.spans.iter().find(|span| span.node == id).and_then(|span| span.thread)
        };
        // If one thread ran both, one of them waited for the other.
        let both = thread("one").is_some() && thread("one") == thread("two");
        assert_eq!(profile.critical_path.len(), if both { 5 } else { 4 }, "{profile:#}");
        let text = profile.to_string();
        assert!(text.contains("mix"), "{text}");
        // A rate is shown where the time tells one. On a busy machine it may not.
        let has_rate = ["fill", "copy"].iter().any(|name| row(&profile, name).bytes_per_second().is_some());
        assert_eq!(text.contains("GB/s"), has_rate, "{text}");
        Ok(())
    });
}

#[test]
fn a_node_that_takes_long_is_on_the_critical_path_with_its_time() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let begin = kernels.bump(&graph, &value, 1)?.named("begin")?;
        let pause = Duration::from_millis(20);
        let slow = begin.callback(move || std::thread::sleep(pause))?.named("slow")?;
        let quick = begin.callback(|| ())?.named("quick")?;
        kernels.bump(&graph.join([&slow, &quick])?, &value, 1)?.named("end")?;
        let profile = graph.instantiate()?.profile_with(&kernels.stream, options)?;
        check(&profile);
        let slow = row(&profile, "slow");
        assert!(slow.on_host && !row(&profile, "begin").on_host);
        assert!(slow.busy_ns >= pause.as_nanos() as u64, "{profile:#}");
        assert!(profile.host_ns >= slow.busy_ns && profile.launch_ns >= slow.busy_ns, "{profile:#}");
        let quick = row(&profile, "quick");
        let thread =
            |id: usize| profile.spans.iter().find(|span| span.node == id).and_then(|span| span.thread);
        let path: Vec<usize> = profile.critical_path.iter().map(|piece| piece.node).collect();
        let [begin, slow_id, end] = ["begin", "slow", "end"].map(|name| row(&profile, name).id);
        if thread(slow_id).is_some() && thread(slow_id) == thread(quick.id) {
            // One waited for the other.
            let [first, second] =
                if slow.end_ns <= quick.start_ns { [slow_id, quick.id] } else { [quick.id, slow_id] };
            assert_eq!(path, [begin, first, second, end], "{profile:#}");
            assert_eq!(slow.critical_ns, slow.busy_ns, "{profile:#}");
        } else if slow.end_ns > quick.end_ns {
            assert_eq!(path, [begin, slow_id, end], "{profile:#}");
            assert_eq!(slow.critical_ns, slow.busy_ns, "{profile:#}");
        } else {
            // The thread of `quick` got no processor for as long as `slow` took, or it is the one
            // thread of a driver's callbacks, whose waiting times include.
            assert!(quick.critical_ns == quick.busy_ns && path.contains(&quick.id), "{profile:#}");
        }
        Ok(())
    });
}

#[test]
fn the_critical_path_of_one_thread_has_every_node() {
    let device = Device::cpu_with(CpuOptions::new().threads(1)).unwrap();
    let graph = Graph::new(&device);
    for name in ["one", "two", "three"] {
        graph.callback(|| std::thread::sleep(Duration::from_millis(1))).unwrap().named(name).unwrap();
    }
    let profile = graph.instantiate().unwrap().profile(&device.stream().unwrap()).unwrap();
    check(&profile);
    assert_eq!(profile.critical_path.len(), 3, "{profile:#}");
    assert_eq!(profile.critical_ns, profile.host_ns, "{profile:#}");
    assert!(profile.possible_parallelism > 1.0, "they could run at once: {profile:#}");
}

#[test]
fn a_loop_of_a_thousand_passes_has_the_times_of_each() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(1000)?.named("loop")?;
        let add = kernels.bump(&repeat.body(), &value, 1)?.named("add")?;
        kernels.bump(&add, &value, 2)?.named("again")?;
        let executable = graph.instantiate()?;
        let profile = executable.profile_with(&kernels.stream, options)?;
        check(&profile);
        assert_eq!(read(&value)?, 3000);
        assert_eq!((row(&profile, "add").runs, row(&profile, "again").runs), (1000, 1000));
        assert_eq!((row(&profile, "loop").runs, row(&profile, "loop").passes), (1, Some(1000)));
        assert_eq!((profile.spans.len(), profile.spans_left_out), (2001, 0));
        assert_eq!(profile.critical_path.len(), 2000);
        let id = row(&profile, "again").id;
        let passes: Vec<_> =
            profile.spans.iter().filter(|span| span.node == id).map(|span| &span.pass[..]).collect();
        assert!(passes.iter().zip(0..).all(|(pass, number)| *pass == [number]), "{:?}", &passes[..5]);
        assert_eq!(executable.passes(&repeat)?, 1000, "the profile was the latest launch");
        Ok(())
    });
}

#[test]
fn passes_beyond_the_limit_are_summed_up() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(200)?.named("loop")?;
        kernels.bump(&repeat.body(), &value, 1)?.named("add")?;
        let profile = graph.instantiate()?.profile_with(&kernels.stream, &options.max_runs(10))?;
        check(&profile);
        assert_eq!((row(&profile, "add").runs, row(&profile, "loop").passes), (200, Some(200)));
        assert_eq!((profile.spans.len(), profile.spans_left_out), (11, 190));
        let last = profile.critical_path.last().expect("a path");
        assert_eq!(last.node, row(&profile, "loop").id, "the loop stands for its other passes");
        assert_eq!(profile.critical_path.len(), 11);
        Ok(())
    });
}

#[test]
fn nested_loops_and_branches_are_told_apart_by_pass() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let (value, flag) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let outer = graph.repeat(4)?.named("outer")?;
        let inner = outer.body().repeat(3)?.named("inner")?;
        kernels.bump(&inner.body(), &value, 1)?.named("add")?;
        // The flag is 1 in the first two passes only.
        let test = inner.launch(&kernels.below, LaunchConfig::one(), (&flag, &value, 7))?.named("test")?;
        let branch = test.if_nonzero(&flag)?.named("branch")?;
        kernels.bump(&branch.body(), &value, 0)?.named("taken")?;
        let profile = graph.instantiate()?.profile_with(&kernels.stream, options)?;
        check(&profile);
        assert_eq!(read(&value)?, 12);
        assert_eq!((row(&profile, "outer").passes, row(&profile, "inner").passes), (Some(4), Some(12)));
        assert_eq!((row(&profile, "inner").runs, row(&profile, "branch").runs), (4, 4));
        assert_eq!((row(&profile, "taken").runs, row(&profile, "branch").passes), (2, Some(2)));
        let passes = |name: &str| -> Vec<Vec<u64>> {
            let id = row(&profile, name).id;
            profile.spans.iter().filter(|span| span.node == id).map(|span| span.pass.clone()).collect()
        };
        let all: Vec<Vec<u64>> =
            (0..4).flat_map(|outer| (0..3).map(move |inner| vec![outer, inner])).collect();
        assert_eq!(passes("add"), all);
        assert_eq!(passes("taken"), [[0], [1]]);
        assert_eq!(row(&profile, "add").parent, Some(row(&profile, "inner").id));
        Ok(())
    });
}

#[test]
fn embedded_graphs_have_the_times_of_what_is_inside() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let part = Graph::new(device);
        kernels.bump(&kernels.bump(&part, &value, 1)?.named("first")?, &value, 1)?.named("second")?;
        let graph = Graph::new(device);
        let child = graph.embed(&part)?.named("part")?;
        kernels.bump(&child, &value, 1)?.named("last")?;
        let profile = graph.instantiate()?.profile_with(&kernels.stream, options)?;
        check(&profile);
        assert_eq!(read(&value)?, 3);
        let (part, first, second) = (row(&profile, "part"), row(&profile, "first"), row(&profile, "second"));
        assert_eq!((part.start_ns, part.end_ns), (first.start_ns, second.end_ns));
        assert_eq!(first.parent, Some(part.id));
        assert!(part.critical_ns == first.critical_ns + second.critical_ns, "{profile:#}");
        Ok(())
    });
}

#[test]
fn an_empty_graph_and_a_loop_without_nodes_have_profiles() {
    for_each_method(|device, options| {
        let stream = device.stream()?;
        let profile = Graph::new(device).instantiate()?.profile_with(&stream, options)?;
        check(&profile);
        assert_eq!(profile.nodes.len(), 0);
        let graph = Graph::new(device);
        let empty = graph.repeat(5)?.named("nothing")?;
        let executable = graph.instantiate()?;
        let profile = executable.profile_with(&stream, options)?;
        check(&profile);
        assert_eq!((row(&profile, "nothing").runs, row(&profile, "nothing").passes), (1, None));
        assert_eq!(executable.passes(&empty)?, 5);
        Ok(())
    });
}

#[test]
fn a_profile_says_how_many_nodes_measuring_added() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let first = kernels.bump(&graph, &value, 1)?;
        let last = kernels.bump(&first, &value, 1)?;
        let profile = graph.instantiate()?.profile_with(&kernels.stream, options)?;
        let said = "measuring added";
        if profile.method == "workers" {
            assert_eq!((profile.added_nodes, profile.before_ns), (0, 0));
            assert!(!profile.to_string().contains(said), "{profile}");
            return Ok(());
        }
        // Two timers around each of the two kernels and of nine times nothing, and a fill.
        assert_eq!(profile.added_nodes, 2 * (2 + 9) + 1);
        assert!(profile.to_string().contains(&format!("{said} 23 nodes, and ")), "{profile}");
        // A fill is measured by further nodes.
        last.memset(&value, 0i32)?;
        let with_fill = graph.instantiate()?.profile_with(&kernels.stream, options)?;
        assert!(with_fill.added_nodes > profile.added_nodes + 100, "{with_fill}");
        Ok(())
    });
}

#[test]
fn a_graph_that_uses_all_memory_has_a_profile_that_says_what_is_missing() {
    let device = Device::cpu_with(CpuOptions::new().threads(1).memory_limit(1 << 20)).unwrap();
    let memory = device.alloc::<u8>(900 << 10).unwrap();
    let graph = Graph::new(&device);
    graph.memset(&memory, 1u8).unwrap().named("fill").unwrap();
    let options = ProfileOptions::new().timer_kernels(true);
    let profile = graph.instantiate().unwrap().profile_with(&device.stream().unwrap(), &options).unwrap();
    check(&profile);
    assert_eq!(row(&profile, "fill").runs, 1);
    assert!(profile.remarks.iter().any(|remark| remark.contains("lack of memory")), "{:?}", profile.remarks);
}

#[test]
fn a_large_graph_shows_its_slowest_nodes_and_all_on_request() {
    for_each_method(|device, options| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let mut last = kernels.bump(&graph, &value, 1)?;
        for _ in 1..300 {
            last = kernels.bump(&last, &value, 1)?;
        }
        let options = ProfileOptions::max_runs(*options, 1);
        let profile = graph.instantiate()?.profile_with(&kernels.stream, &options)?;
        check(&profile);
        assert_eq!((read(&value)?, profile.critical_path.len()), (300, 300));
        let rows = |text: String| text.lines().filter(|line| line.contains("increase")).count();
        assert_eq!((rows(profile.to_string()), rows(format!("{profile:#}"))), (40, 300));
        Ok(())
    });
}
