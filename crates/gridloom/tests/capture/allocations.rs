//! Graph memory that is allocated and freed in a capture.

use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

#[test]
fn memory_of_every_kind_is_allocated_used_and_freed_at_each_launch() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let out = k.buffer(&[0; 8])?;
        for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
            out.write(&[0; 8])?;
            let graph = k.stream.capture_scope(|capture| {
                let memory = capture.alloc_in::<i32>(8, kind)?;
                capture.memset(&memory, 5i32)?;
                capture.launch(&k.increase, LaunchConfig::linear(8), (&memory, 8, 2))?;
                capture.launch(&k.mix, LaunchConfig::linear(8), (&out, &memory, 8))?;
                capture.free(&memory).map(drop)
            })?;
            let executable = graph.instantiate()?;
            for _ in 0..2 {
                executable.launch(&k.stream)?;
            }
            k.stream.synchronize()?;
            assert_eq!(out.to_vec()?, [31 * 7 + 7; 8], "{kind:?}");
        }
        Ok(())
    });
}

#[test]
fn memory_that_is_not_freed_outlives_the_launch() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let capture = k.stream.capture()?;
        let memory = capture.alloc::<i32>(4)?;
        capture.memset(&memory, 9i32)?;
        let executable = capture.end()?.instantiate()?;
        executable.launch(&k.stream)?;
        let left = executable.buffer(&memory)?;
        k.stream.synchronize()?;
        assert_eq!(left.to_vec()?, [9; 4]);
        // And is freed by another capture.
        let free = k.stream.capture_scope(|capture| capture.free(&left).map(drop))?.instantiate()?;
        free.launch(&k.stream)?;
        executable.launch(&k.stream)?;
        k.stream.synchronize()
    });
}

#[test]
fn memory_of_no_size_is_refused() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let capture = stream.capture()?;
        refused(capture.alloc::<i32>(0), ErrorKind::InvalidArgument, &["0 bytes"]);
        assert!(capture.end()?.is_empty());
        Ok(())
    });
}

#[test]
fn memory_allocated_on_a_fork_serves_what_comes_after_the_join() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let out = k.value(0)?;
        let graph = k.stream.capture_scope(|capture| {
            let fork = capture.fork(2)?.remove(0);
            let memory = fork.alloc::<i32>(1)?;
            fork.memset(&memory, 3i32)?;
            capture.join([&fork])?;
            capture.memcpy(&out, &memory)?;
            capture.free(&memory).map(drop)
        })?;
        k.run(&graph)?;
        assert_eq!(out.to_vec()?, [3]);
        Ok(())
    });
}

#[test]
fn memory_of_a_fork_that_is_used_before_the_join_is_refused_when_instantiated() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let graph = k.stream.capture_scope(|capture| {
            let fork = capture.fork(2)?.remove(0);
            let memory = fork.alloc::<i32>(1)?;
            capture.memset(&memory, 3i32)?;
            capture.join([&fork])?;
            capture.free(&memory).map(drop)
        })?;
        refused(graph.instantiate(), ErrorKind::Unordered, &["alloc#0"]);
        Ok(())
    });
}

#[test]
fn memory_of_another_graph_is_neither_used_nor_freed() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let foreign = Graph::new(device).alloc::<i32>(1)?;
        let capture = stream.capture()?;
        refused(capture.memset(&foreign, 0i32), ErrorKind::WrongGraph, &["another graph"]);
        refused(capture.free(&foreign), ErrorKind::WrongGraph, &["another graph"]);
        assert!(capture.end()?.is_empty());
        Ok(())
    });
}

#[test]
fn ordinary_allocation_on_a_capturing_stream_is_refused_with_a_hint() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let before = stream.alloc::<i32>(4)?;
        assert_eq!(before.len(), 4);
        let capture = stream.capture()?;
        let hint = ["capturing", "alloc of the capture"];
        refused(stream.alloc::<i32>(4), ErrorKind::InvalidState, &hint);
        refused(stream.alloc_in::<i32>(4, MemoryKind::Host), ErrorKind::InvalidState, &hint);
        // The device itself is not concerned, and the capture is not spoilt.
        let memory = device.alloc::<i32>(4)?;
        stream.memset(&memory, 1i32)?;
        assert_eq!(capture.end()?.len(), 1);
        stream.alloc::<i32>(4)?;
        Ok(())
    });
}
