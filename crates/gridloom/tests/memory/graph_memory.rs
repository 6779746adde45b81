//! The memory that graphs hold: now, at most, and what trimming returns.

use gridloom::prelude::*;

use crate::support::{eventually, for_each_device};

/// A graph that allocates and frees so many bytes.
fn graph_of(device: &Device, bytes: usize) -> Result<Graph> {
    let graph = Graph::new(device);
    let memory = graph.alloc::<u8>(bytes)?;
    memory.memset(&memory, 1u8)?.free(&memory)?;
    Ok(graph)
}

#[test]
fn memory_kept_by_graphs_is_counted_from_instantiation_until_the_last_launch_has_run() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let before = device.graph_memory()?.used;
        let held = || Ok::<_, Error>(device.graph_memory()?.used.saturating_sub(before));
        let graph = graph_of(device, 4096)?;
        assert_eq!(held()?, 0);
        let (one, other) = (graph.instantiate()?, graph_of(device, 1024)?.instantiate()?);
        assert_eq!(held()?, 5120);
        assert_eq!(held()?, one.memory().allocations + other.memory().allocations);
        one.launch(&stream)?;
        drop((one, other));
        stream.synchronize()?;
        eventually("nothing holds the memory of a graph", || held().is_ok_and(|bytes| bytes == 0));
        Ok(())
    });
}

#[test]
fn the_high_water_mark_stays_until_it_is_reset() {
    for_each_device(|device| {
        device.reset_graph_memory_high()?;
        let before = device.graph_memory()?;
        assert!(before.used_high >= before.used);
        drop(graph_of(device, 10_000)?.instantiate()?);
        eventually("the graph is gone", || device.graph_memory().is_ok_and(|now| now.used == before.used));
        assert!(device.graph_memory()?.used_high >= before.used + 10_000);
        device.reset_graph_memory_high()?;
        assert!(device.graph_memory()?.used_high < before.used + 10_000);
        Ok(())
    });
}

#[test]
fn trim_returns_what_the_device_keeps_and_leaves_what_is_used() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let buffer = device.buffer_from(&[7u32; 1024])?;
        let graph = graph_of(device, 1 << 20)?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        // Far more than the unit in which a driver takes memory from the system.
        drop(graph_of(device, 1 << 27)?.instantiate()?);
        device.synchronize()?;
        device.trim()?;
        assert!(device.graph_memory()?.unused < 1 << 27, "{:?}", device.graph_memory()?);
        assert_eq!(buffer.to_vec()?, [7; 1024]);
        executable.launch(&stream)?;
        stream.synchronize()
    });
}
