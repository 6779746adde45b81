//! Capture without control flow: lines, forks, events, children.

use gridloom::prelude::*;

use super::shape::outline;
use crate::support::{GraphKernels, for_each_device, refused};

/// Work written once, for whatever can take it.
fn three_steps<S: Ops>(on: &S, k: &GraphKernels, x: &Buffer<i32>) -> Result<()> {
    for by in [1, 10, 100] {
        on.launch(&k.increase, LaunchConfig::one(), (x, 1, by))?;
    }
    Ok(())
}

#[test]
fn a_line_of_three_kernels_runs_the_same_captured_and_direct() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (direct, by_capture, by_stream) = (k.value(0)?, k.value(0)?, k.value(0)?);
        three_steps(&k.stream, &k, &direct)?;
        let one = k.stream.capture_scope(|capture| three_steps(capture, &k, &by_capture))?;
        let other = k.stream.capture_scope(|_| three_steps(&k.stream, &k, &by_stream))?;
        for graph in [&one, &other] {
            assert_eq!(outline(graph)?, (vec![NodeKind::Kernel; 3], vec![(0, 1), (1, 2)]));
        }
        assert_eq!(by_capture.to_vec()?, [0]);
        k.run(&one)?;
        k.run(&other)?;
        for x in [&direct, &by_capture, &by_stream] {
            assert_eq!(x.to_vec()?, [111]);
        }
        Ok(())
    });
}

#[test]
fn a_diamond_of_forks_sees_both_branches() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (x, left, right) = (k.value(1)?, k.value(0)?, k.value(0)?);
        let graph = k.stream.capture_scope(|capture| {
            capture.launch(&k.increase, LaunchConfig::one(), (&x, 1, 4))?;
            let fork = capture.fork(2)?.remove(0);
            capture.launch(&k.affine, LaunchConfig::one(), (&left, &x, 1, 2, 0))?;
            fork.launch(&k.affine, LaunchConfig::one(), (&right, &x, 1, 3, 0))?;
            capture.join([&fork])?;
            capture.launch(&k.mix, LaunchConfig::one(), (&left, &right, 1)).map(drop)
        })?;
        assert_eq!(outline(&graph)?.1, [(0, 1), (0, 2), (1, 3), (2, 3)]);
        k.run(&graph)?;
        assert_eq!(left.to_vec()?, [31 * 10 + 15]);
        Ok(())
    });
}

#[test]
fn streams_and_events_make_the_diamond_too() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (side, event) = (device.stream()?, device.event()?);
        let (x, left, right) = (k.value(1)?, k.value(0)?, k.value(0)?);
        // This is code for streams, and knows nothing of captures.
        let program = |main: &Stream| -> Result<()> {
            main.launch(&k.increase, LaunchConfig::one(), (&x, 1, 4))?;
            main.record(&event)?;
            side.wait(&event)?;
            main.launch(&k.affine, LaunchConfig::one(), (&left, &x, 1, 2, 0))?;
            side.launch(&k.affine, LaunchConfig::one(), (&right, &x, 1, 3, 0))?;
            side.record(&event)?;
            main.wait(&event)?;
            main.launch(&k.mix, LaunchConfig::one(), (&left, &right, 1))
        };
        program(&k.stream)?;
        k.stream.synchronize()?;
        assert_eq!(left.to_vec()?, [31 * 10 + 15]);
        let graph = k.stream.capture_scope(|_| program(&k.stream))?;
        assert_eq!(x.to_vec()?, [5]);
        k.run(&graph)?;
        assert_eq!((x.to_vec()?, left.to_vec()?), (vec![9], vec![31 * 18 + 27]));
        side.synchronize()?;
        Ok(())
    });
}

#[test]
fn a_graph_launched_many_times_counts_every_launch() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| three_steps(capture, &k, &x))?;
        let executable = graph.instantiate()?;
        executable.upload(&k.stream)?;
        for _ in 0..20 {
            executable.launch(&k.stream)?;
        }
        k.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [20 * 111]);
        Ok(())
    });
}

#[test]
fn a_captured_graph_can_be_extended_and_run() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| three_steps(capture, &k, &x))?;
        let last = graph.nodes().pop().expect("three nodes");
        k.bump(&last, &x, 1000)?;
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [1111]);
        Ok(())
    });
}

#[test]
fn a_captured_graph_and_an_executable_are_embedded_into_another() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let child = k.stream.capture_scope(|capture| three_steps(capture, &k, &x))?;
        let executable = child.instantiate()?;
        let graph = k.stream.capture_scope(|capture| {
            capture.embed(&child)?;
            executable.launch(capture)?;
            executable.launch(&k.stream)
        })?;
        assert_eq!(outline(&graph)?, (vec![NodeKind::Child; 3], vec![(0, 1), (1, 2)]));
        drop((child, executable));
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [333]);
        Ok(())
    });
}

#[test]
fn every_operation_of_streams_is_recorded_by_a_capture() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (a, b, host) =
            (device.alloc::<u32>(16)?, device.alloc::<u32>(16)?, device.alloc_host::<u32>(16)?);
        let event = device.event()?;
        let graph = k.stream.capture_scope(|capture| {
            capture.memset(&a, 7u32)?;
            capture.memset_2d(a.rows(4)?, 1u32, 2, 4)?;
            capture.memcpy(&b, &a)?;
            capture.memcpy_2d(b.rows(4)?, a.slice(2..)?.rows(4)?, 1, 3)?;
            capture.memcpy(&b.slice(15..)?, &[99u32])?;
            capture.record(&event)?;
            capture.wait(&event)?;
            capture.memcpy(&host, &b)?;
            Ok(())
        })?;
        use NodeKind::{EventRecord, EventWait, Memcpy, Memset};
        let kinds = [Memset, Memset, Memcpy, Memcpy, Memcpy, EventRecord, EventWait, Memcpy];
        assert_eq!(outline(&graph)?.0, kinds);
        k.run(&graph)?;
        assert_eq!(host.to_vec()?, [7, 1, 7, 7, 7, 1, 7, 7, 7, 1, 7, 7, 1, 1, 7, 99]);
        Ok(())
    });
}

#[test]
fn a_programmatic_launch_gives_one_programmatic_edge_and_the_same_result() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (x, y) = (k.value(0)?, k.value(0)?);
        let graph = k.stream.capture_scope(|capture| {
            capture.launch(&k.increase, LaunchConfig::one(), (&x, 1, 1))?;
            // The two kernels share no data, so the second need not wait for the first.
            capture.launch(&k.increase, LaunchConfig::one().programmatic(), (&y, 1, 2)).map(drop)
        })?;
        let kinds: Vec<EdgeKind> = graph.edges().into_iter().map(|(_, _, kind)| kind).collect();
        assert_eq!(kinds, [EdgeKind::Programmatic]);
        k.run(&graph)?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1], vec![2]));
        Ok(())
    });
}

#[test]
fn the_rest_of_the_device_goes_on_while_a_stream_captures() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (x, y) = (k.value(0)?, k.value(0)?);
        let other = device.stream()?;
        let capture = k.stream.capture()?;
        three_steps(&k.stream, &k, &x)?;
        three_steps(&other, &k, &y)?;
        other.synchronize()?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![0], vec![111]));
        device.synchronize()?;
        let graph = capture.end()?;
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [111]);
        Ok(())
    });
}

#[test]
fn a_capture_dropped_half_way_ran_nothing_and_leaves_the_stream_working() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let capture = k.stream.capture()?;
        three_steps(&k.stream, &k, &x)?;
        refused(k.stream.synchronize(), ErrorKind::InvalidState, &["end the capture first"]);
        refused(k.stream.is_idle(), ErrorKind::InvalidState, &["end the capture first"]);
        drop(capture);
        k.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [0]);
        three_steps(&k.stream, &k, &x)?;
        k.stream.synchronize()?;
        assert_eq!(x.to_vec()?, [111]);
        Ok(())
    });
}
