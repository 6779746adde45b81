//! Launches with memory and shapes that a kernel would race on.

use std::sync::atomic::Ordering::Relaxed;

use gridloom::prelude::*;
use gridloom::{Atomic, Out, kernel};

use crate::support::for_each_device;

#[kernel]
fn copy(x: &[u32], out: Out<u32>) {
    if let Some((i, out)) = out.mine() {
        *out = x[x.len() - 1 - i];
    }
}

#[kernel]
fn both(a: Out<u32>, b: Out<u32>) {
    if let (Some((_, a)), Some((_, b))) = (a.mine(), b.mine()) {
        (*a, *b) = (*b, *a);
    }
}

#[kernel]
fn count(x: &[u32], counts: &[Atomic<u32>]) {
    for &x in x {
        counts[0].fetch_add(x, Relaxed);
    }
}

#[kernel]
fn plane(width: usize, out: Out<u32>) {
    if let Some((_, out)) = out.mine_2d(width) {
        *out += 1;
    }
}

/// Asserts that memory is refused, by streams, graphs, and changes of graphs.
#[test]
fn memory_that_is_written_and_read() {
    for_each_device(|device| {
        let (memory, other) = (device.buffer_from(&[0u32; 8])?, device.buffer_from(&[0u32; 8])?);
        let (stream, graph) = (device.stream()?, Graph::new(device));
        let kernel = copy::load(device)?;
        let config = LaunchConfig::linear(8);
        assert!(stream.launch(&kernel, config, (&memory, &memory)).is_err());
        assert!(stream.launch(&kernel, config, (&memory.slice(..5)?, &memory.slice(4..)?)).is_err());
        assert!(graph.launch(&kernel, config, (&memory, &memory)).is_err());
        let node = graph.launch(&kernel, config, (&other, &memory))?;
        assert!(node.set_args(&kernel, (&memory, &memory)).is_err());
        stream.launch(&kernel, LaunchConfig::linear(4), (&memory.slice(..4)?, &memory.slice(4..)?))?;
        stream.synchronize()
    });
}

#[test]
fn memory_that_is_written_twice() {
    for_each_device(|device| {
        let memory = device.buffer_from(&[0u32; 8])?;
        let stream = device.stream()?;
        let kernel = both::load(device)?;
        let config = LaunchConfig::linear(8);
        assert!(stream.launch(&kernel, config, (&memory, &memory)).is_err());
        assert!(stream.launch(&kernel, config, (&memory.slice(2..)?, &memory.slice(..3)?)).is_err());
        Ok(())
    });
}

#[test]
fn memory_that_is_atomic_and_read() {
    for_each_device(|device| {
        let memory = device.buffer_from(&[0u32; 8])?;
        let stream = device.stream()?;
        let kernel = count::load(device)?;
        assert!(stream.launch(&kernel, LaunchConfig::one(), (&memory, &memory.slice(7..)?)).is_err());
        Ok(())
    });
}

#[test]
fn more_dimensions_than_the_kernel_divides() {
    for_each_device(|device| {
        let (x, out) = (device.buffer_from(&[0u32; 64])?, device.buffer_from(&[0u32; 64])?);
        let stream = device.stream()?;
        let (line, plane) = (copy::load(device)?, plane::load(device)?);
        for (grid, block) in
            [((1, 2, 1), (8, 1, 1)), ((1, 1, 2), (8, 1, 1)), ((1, 1, 1), (8, 2, 1)), ((1, 1, 1), (8, 1, 2))]
        {
            assert!(stream.launch(&line, LaunchConfig::new(grid, block), (&x, &out)).is_err());
        }
        for (grid, block) in [((1, 1, 2), (8, 1, 1)), ((1, 1, 1), (4, 4, 2))] {
            assert!(stream.launch(&plane, LaunchConfig::new(grid, block), (8, &out)).is_err());
        }
        let graph = Graph::new(device);
        let node = graph.launch(&line, LaunchConfig::new(1, 8), (&x, &out))?;
        assert!(node.set_config(LaunchConfig::new((1, 2), 8)).is_err());
        Ok(())
    });
}

/// The ranges of indices that the optimiser relies on are those that devices allow.
#[test]
fn launches_larger_than_any_device_has() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0u32; 64])?;
        let stream = device.stream()?;
        let plane = plane::load(device)?;
        for (grid, block) in
            [((1, 65_536), (1, 1)), ((1, 1), (2048, 1)), ((1, 1), (1, 2048)), ((u32::MAX, 1), (1, 1))]
        {
            assert!(stream.launch(&plane, LaunchConfig::new(grid, block), (8, &out)).is_err());
        }
        #[kernel]
        fn deep(out: Out<u32>) {
            if let Some((_, out)) = out.mine_3d(1, 1) {
                *out += 1;
            }
        }
        let deep = deep::load(device)?;
        assert!(stream.launch(&deep, LaunchConfig::new(1, (1, 1, 65)), (&out,)).is_err());
        assert!(stream.launch(&deep, LaunchConfig::new((1, 1, 65_536), 1), (&out,)).is_err());
        Ok(())
    });
}

/// A grid whose threads are more than the memory: indices stay 64 bits wide where they have to.
#[test]
fn a_launch_far_beyond_the_memory() {
    #[kernel]
    fn far(x: &[u32], out: Out<u32>) {
        if let Some((i, out)) = out.mine() {
            *out += x[i] + 1;
        }
    }
    for_each_device(|device| {
        let (x, out) = (device.buffer_from(&[1u32; 4])?, device.buffer_from(&[0u32; 4])?);
        let stream = device.stream()?;
        let blocks = if crate::support::is_cpu(device) { 70_000 } else { 5_000_000 };
        stream.launch(&far::load(device)?, LaunchConfig::new(blocks, 1024), (&x, &out))?;
        assert_eq!(out.to_vec()?, [2; 4]);
        Ok(())
    });
}
