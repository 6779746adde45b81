//! Profiles on a device whose nodes take known times, and that takes long to go from a kernel to a
//! fill or a copy and back, as GPUs do.

use gridloom::prelude::*;
use gridloom::{Optimizations, Profile, ProfileOptions};

use crate::profiles::check;
use crate::simulator::{FixedTimes, Times};
use crate::support::{GraphKernels, for_each_device};

const TIMES: Times =
    Times { kernel: 700, fill: 900, copy: 1300, switch: 2100, switch_in_body: 400, detour: 0 };

/// Profiles a graph, and launches it without.
fn profile_and_launch(graph: &Graph, kernels: &GraphKernels, clock: &FixedTimes) -> Result<(Profile, u64)> {
    let executable = graph.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::NONE))?;
    let profile = executable.profile(&kernels.stream)?;
    let before = clock.now();
    executable.launch(&kernels.stream)?;
    kernels.stream.synchronize()?;
    Ok((profile, clock.now() - before))
}

#[track_caller]
fn each(profile: &Profile, name: &str) -> u64 {
    profile.node(name).unwrap_or_else(|| panic!("no {name} in {profile:#}")).mean_ns()
}

#[test]
fn short_fills_and_copies_have_their_own_time_and_the_launch_is_that_without_timers() {
    for_each_device(|device| {
        let clock = FixedTimes::new(TIMES);
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(0)?, kernels.value(0)?);
        let large = device.alloc::<u32>(3 << 20)?;
        let graph = Graph::new(device);
        let first = kernels.bump(&graph, &value, 1)?.named("first")?;
        let fill = first.memset(&other, 7i32)?.named("fill")?;
        let again = fill.memset(&large, 7u32)?.named("large fill")?;
        let copy = again.memcpy(&value, &other)?.named("copy")?;
        kernels.bump(&copy, &value, 1)?.named("last")?;
        let (profile, launch) = profile_and_launch(&graph, &kernels, &clock)?;
        check(&profile);
        for (name, time) in
            [("first", 700), ("fill", 900), ("large fill", 900), ("copy", 1300), ("last", 700)]
        {
            assert_eq!(each(&profile, name), time, "{name}: {profile:#}");
        }
        assert_eq!(profile.critical_gap_ns, 2 * TIMES.switch, "{profile:#}");
        assert_eq!(profile.critical_ns + profile.critical_gap_ns, profile.launch_ns);
        assert_eq!(profile.launch_ns, launch, "{profile:#}");
        assert!(profile.nodes.iter().all(|row| row.is_reliable()), "{profile:#}");
        Ok(())
    });
}

#[test]
fn short_fills_have_their_own_time_where_the_way_to_them_is_now_short_and_now_long() {
    for_each_device(|device| {
        let clock = FixedTimes::new(Times { detour: 600, ..TIMES });
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let mut last = kernels.bump(&graph, &value, 1)?;
        for number in 0..20 {
            let fill = last.memset(&other, 7i32)?.named(&format!("fill {number}"))?;
            let copy = kernels.bump(&fill, &value, 1)?.memcpy(&value, &other)?;
            last = kernels.bump(&copy.named(&format!("copy {number}"))?, &value, 1)?;
        }
        let (profile, _) = profile_and_launch(&graph, &kernels, &clock)?;
        check(&profile);
        for number in 0..20 {
            for (kind, time) in [("fill", TIMES.fill), ("copy", TIMES.copy)] {
                let name = format!("{kind} {number}");
                let off = each(&profile, &name).abs_diff(time);
                assert!(off <= time / 10, "{name} is {off} off: {profile:#}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_row_of_fills_takes_no_longer_than_its_fills() {
    for_each_device(|device| {
        let clock = FixedTimes::new(TIMES);
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let mut last = graph.memset(&value, 0i32)?;
        for _ in 1..20 {
            last = last.memset(&value, 0i32)?;
        }
        let (profile, _) = profile_and_launch(&graph, &kernels, &clock)?;
        assert_eq!(profile.launch_ns, 20 * TIMES.fill, "{profile:#}");
        assert_eq!((profile.critical_ns, profile.critical_gap_ns), (20 * TIMES.fill, 0));
        Ok(())
    });
}

#[test]
fn fills_and_copies_of_any_shape_and_memory_have_their_own_time() {
    for_each_device(|device| {
        let clock = FixedTimes::new(TIMES);
        let kernels = GraphKernels::new(device)?;
        let host = device.alloc_host::<u32>(4096)?;
        let (one, two) = (device.alloc::<u32>(1 << 21)?, device.alloc::<u32>(1 << 21)?);
        let graph = Graph::new(device);
        let own = graph.alloc::<u32>(64)?;
        let filled = own.memset(&own, 3u32)?.named("of the graph")?;
        let inside = filled.memcpy(&one.slice(0..64)?, &own)?.named("from the graph")?;
        let mut names = vec!["of the graph".to_owned(), "from the graph".to_owned()];
        let mut at = inside;
        for bits in 0..12 {
            let name = format!("download {bits}");
            at = at.memcpy(&host.slice(0..1 << bits)?, &one.slice(0..1 << bits)?)?.named(&name)?;
            names.push(name);
            let name = format!("copy {bits}");
            at = at.memcpy(&one.slice(0..1 << bits)?, &two.slice(0..1 << bits)?)?.named(&name)?;
            names.push(name);
        }
        at = at.memcpy_2d(one.rows(64)?, two.rows(128)?, 48, 100)?.named("rows")?;
        names.push("rows".to_owned());
        at = at.memset_2d(one.rows(1000)?, 1u32, 900, 200)?.named("fill of rows")?;
        names.push("fill of rows".to_owned());
        at.free(&own)?;
        let (profile, _) = profile_and_launch(&graph, &kernels, &clock)?;
        for name in &names {
            let is_fill = ["of the graph", "fill of rows"].contains(&&**name);
            let time = if is_fill { TIMES.fill } else { TIMES.copy };
            assert_eq!(each(&profile, name), time, "{name}: {profile:#}");
        }
        Ok(())
    });
}

#[test]
fn fills_in_loops_have_their_own_time_in_every_pass() {
    for_each_device(|device| {
        let _clock = FixedTimes::new(TIMES);
        let kernels = GraphKernels::new(device)?;
        let (value, other) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let repeat = graph.repeat(300)?.named("loop")?;
        let add = kernels.bump(&repeat.body(), &value, 1)?.named("add")?;
        let fill = add.memset(&other, 7i32)?.named("fill")?;
        fill.memcpy(&value, &other)?.named("copy")?;
        // The same nodes elsewhere are reached in another way.
        let outside = repeat.memset(&other, 7i32)?.named("fill outside")?;
        outside.memcpy(&value, &other)?.named("copy outside")?;
        let executable = graph.instantiate()?;
        let options = ProfileOptions::new().max_runs(100);
        let profile = executable.profile_with(&kernels.stream, &options)?;
        assert_eq!(
            (each(&profile, "add"), each(&profile, "fill")),
            (TIMES.kernel, TIMES.fill),
            "{profile:#}"
        );
        assert_eq!((each(&profile, "copy"), each(&profile, "copy outside")), (TIMES.copy, TIMES.copy));
        assert_eq!(each(&profile, "fill outside"), TIMES.fill);
        assert_eq!(profile.node("fill").map(|row| (row.runs, row.min_ns, row.max_ns)), Some((300, 900, 900)));
        Ok(())
    });
}
