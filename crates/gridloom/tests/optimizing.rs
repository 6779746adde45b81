//! Graphs that are optimised before they are compiled.

use std::time::{Duration, Instant};

use gridloom::prelude::*;
use gridloom::{Optimization, Optimizations};

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, for_each_device, is_cpu};

#[test]
fn a_chain_that_is_optimised_leaves_what_it_leaves_otherwise_and_takes_new_arguments() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let stream = device.stream()?;
        let data = device.buffer_from(&[1i32; 64])?;
        let graph = Graph::new(device);
        let config = LaunchConfig::new(1, 64);
        let mut last = graph.launch(&kernels.affine, config, (&data, &data, 64, 3, 1))?;
        for by in 2..20 {
            last = last.launch(&kernels.affine, config, (&data, &data, 64, 3, by))?;
        }
        let plain = graph.instantiate()?;
        plain.launch(&stream)?;
        let expected = data.to_vec()?;
        data.write(&[1i32; 64])?;
        let options = InstantiateOptions::new().optimize(Optimizations::of(&[Optimization::Chains]));
        let optimized = graph.instantiate_with(&options)?;
        if !is_cpu(device) {
            // On the CPU, nodes are faster than steps of one kernel.
            let nodes = optimized.optimized_graph()?.map(|graph| graph.len());
            assert_eq!(nodes, Some(1), "{:?}", optimized.report());
        }
        optimized.launch(&stream)?;
        assert_eq!(data.to_vec()?, expected);
        optimized.node(&last)?.set_args(&kernels.affine, (&data, &data, 64, 0, 77))?;
        optimized.launch(&stream)?;
        assert_eq!(data.to_vec()?, [77; 64]);
        Ok(())
    });
}

#[test]
fn a_changed_argument_stays_when_a_later_change_compiles_the_graph_again() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let stream = device.stream()?;
        let data = (0..4).map(|_| device.buffer_from(&[1i32; 64])).collect::<Result<Vec<_>>>()?;
        let graph = Graph::new(device);
        let wide = LaunchConfig::new(2, 32);
        let kernel = graph.launch(&kernels.affine, wide, (&data[0], &data[1], 64, 1, 1))?;
        let copy = graph.memcpy(&data[2], &data[1])?;
        // A chain that is worth optimising.
        let mut last =
            graph.launch(&kernels.affine, LaunchConfig::new(1, 64), (&data[3], &data[3], 64, 1, 1))?;
        for _ in 0..4 {
            last = last.launch(&kernels.affine, LaunchConfig::new(1, 64), (&data[3], &data[3], 64, 1, 1))?;
        }
        let optimized = graph.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::ALL))?;
        optimized.launch(&stream)?;
        for by in [5, 7] {
            optimized.node(&kernel)?.set_args(&kernels.affine, (&data[0], &data[1], 64, 1, by))?;
            optimized.launch(&stream)?;
        }
        // A driver keeps the direction of a copy, so this one is compiled again.
        optimized.node(&copy)?.set_memcpy(&data[2], &vec![9i32; 64])?;
        optimized.launch(&stream)?;
        assert_eq!(data[0].to_vec()?, [8; 64]);
        assert_eq!(data[2].to_vec()?, [9; 64]);
        Ok(())
    });
}

/// A change after which the graph is compiled again, and the launch in flight was of the old one.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another kernel with other memory.
    Kernel,
    /// Another node is disabled, and then the memory changes.
    DisabledThenMemory,
}

#[test]
fn memory_of_a_launch_in_flight_stays_when_a_change_compiles_the_graph_again() {
    for change in [Change::Kernel, Change::DisabledThenMemory] {
        for_each_device(|device| {
            let kernels = GraphKernels::new(device)?;
            let stream = device.stream()?;
            let gate = Gate::closed();
            let _opens = OpenOnDrop(&gate);
            let [out, x, other] = [0, 1, 2].map(|value| device.buffer_from(&[value; 64]));
            let (out, x, other) = (out?, x?, other?);
            let config = LaunchConfig::new(1, 64);
            let graph = Graph::new(device);
            let first = graph.launch(&kernels.affine, config, (&out, &x, 64, 1, 0))?;
            let mut last = first.launch(&kernels.affine, config, (&out, &out, 64, 1, 1))?;
            for _ in 0..4 {
                last = last.launch(&kernels.affine, config, (&out, &out, 64, 1, 1))?;
            }
            let optimized =
                graph.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::ALL))?;
            let node = optimized.node(&first)?;
            for value in [5, 7] {
                let memory = device.buffer_from(&[value; 64])?;
                node.set_args(&kernels.affine, (&out, &memory, 64, 1, 0))?;
                if value == 7 {
                    stream.callback(gate.waiter())?;
                }
                optimized.launch(&stream)?;
            }
            // A driver may wait for the device when it compiles, so the gate opens by itself there.
            let opens = gate.clone();
            let opener = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(200));
                opens.open();
            });
            // Nothing but the launch in flight uses the 7s afterwards.
            match change {
                Change::Kernel => node.set_kernel(&kernels.mix, (&out, &other, 64))?,
                Change::DisabledThenMemory => {
                    optimized.node(&last)?.set_enabled(false)?;
                    node.set_args(&kernels.affine, (&out, &other, 64, 1, 0))?;
                }
            }
            // Whatever is freed is freed now. The simulated driver sees a use of it.
            std::thread::sleep(Duration::from_millis(20));
            gate.open();
            stream.synchronize()?;
            opener.join().expect("it only sleeps");
            assert_eq!(out.to_vec()?, [7 + 5; 64], "{change:?}");
            optimized.launch(&stream)?;
            let expected = match change {
                Change::Kernel => 12 * 31 + 2 + 5,
                Change::DisabledThenMemory => 2 + 4,
            };
            assert_eq!(out.to_vec()?, [expected; 64], "{change:?}");
            Ok(())
        });
    }
}

#[test]
fn an_executable_takes_the_optimised_form_over_while_it_is_launched_and_changed() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let stream = device.stream()?;
        let data = (0..8).map(|_| device.buffer_from(&[1i32; 64])).collect::<Result<Vec<_>>>()?;
        let graph = Graph::new(device);
        let start = graph.empty()?;
        let config = LaunchConfig::new(1, 64);
        let nodes = data
            .iter()
            .map(|data| start.launch(&kernels.affine, config, (data, data, 64, 3, 1)))
            .collect::<Result<Vec<_>>>()?;
        let executable = graph.instantiate()?;
        let mut expected = [1i32; 8];
        let (begin, mut after) = (Instant::now(), 0);
        for launch in 0i32.. {
            let at = launch as usize % 8;
            executable.node(&nodes[at])?.set_args(&kernels.affine, (&data[at], &data[at], 64, 3, launch))?;
            executable.launch(&stream)?;
            for (index, value) in expected.iter_mut().enumerate() {
                // The last change of each node counts.
                let by = (0..=launch).rev().find(|launch| *launch as usize % 8 == index).unwrap_or(1);
                *value = value.wrapping_mul(3).wrapping_add(by);
            }
            if launch % 8 == 7 {
                for (data, value) in data.iter().zip(expected) {
                    assert_eq!(data.to_vec()?, [value; 64], "launch {launch}");
                }
            }
            after += usize::from(executable.optimized_graph()?.is_some());
            // A device without anything to gain says so. Others get the time that a compiler takes.
            let report = executable.report();
            let never = report.not_optimized.iter().any(|(_, reason)| reason.contains("nothing to gain"));
            if after == 20 || never || begin.elapsed() > Duration::from_secs(60) {
                assert!(after == 20 || never, "{report:?}");
                break;
            }
        }
        Ok(())
    });
}
