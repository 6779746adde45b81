//! Large and deeply nested graphs.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, Random, for_each_device};

#[test]
fn a_chain_of_100_000_nodes_runs_in_order() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let n = 100_000;
        let values = device.buffer_from(&[0; 2])?;
        let (here, there) = (values.slice(..1)?, values.slice(1..)?);
        let graph = Graph::new(device);
        let mut last = graph.empty()?;
        for i in 0..n / 2 {
            last = last.memset(&here, i)?.memcpy(&there, &here)?;
        }
        assert_eq!(graph.len(), n as usize + 1);
        let executable = kernels.run(&graph)?;
        assert_eq!(values.to_vec()?, [n / 2 - 1; 2]);
        let (copy, map) = graph.deep_clone()?;
        assert_eq!(map.len(), graph.len());
        drop((graph, copy, executable, last));
        Ok(())
    });
}

#[test]
fn a_thousand_kernels_in_a_chain_each_see_the_one_before() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(1)?;
        let graph = Graph::new(device);
        let mut last = graph.empty()?;
        let mut expected = 1i32;
        for k in 0..1000 {
            last = last.launch(&kernels.affine, LaunchConfig::one(), (&value, &value, 1, 3, k))?;
            expected = expected.wrapping_mul(3).wrapping_add(k);
        }
        kernels.run(&graph)?;
        assert_eq!(read(&value)?, expected);
        Ok(())
    });
}

#[test]
fn a_node_may_have_10_000_neighbours() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let cells = device.buffer_from(&[0u8; 10_000])?;
        let graph = Graph::new(device);
        let hub = graph.empty()?;
        let spokes: Vec<Node> =
            (0..10_000).map(|i| hub.memset(&cells.slice(i..=i)?, 1u8)).collect::<Result<_>>()?;
        let rim = graph.join(&spokes)?;
        assert_eq!((hub.successors()?.len(), rim.predecessors()?.len()), (10_000, 10_000));
        kernels.run(&graph)?;
        assert!(cells.to_vec()?.iter().all(|&cell| cell == 1));
        Ok(())
    });
}

#[test]
fn a_wide_random_graph_of_kernels_respects_every_edge() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let mut random = Random::new(300);
        // Each node sums its predecessors' cells, plus one: a path count that any missing edge
        // changes.
        let n = 400;
        let cells = device.buffer_from(&vec![1i32; n])?;
        let cell = |i: usize| cells.slice(i..=i);
        let graph = Graph::new(device);
        let mut ends: Vec<Node> = Vec::new();
        let mut expected = vec![1i32; n];
        for i in 0..n {
            let mut last = graph.empty()?;
            for _ in 0..random.below(4).min(i) {
                let from = random.below(i);
                last.after([&ends[from]])?;
                last = last.launch(&kernels.mix, LaunchConfig::one(), (&cell(i)?, &cell(from)?, 1))?;
                expected[i] = expected[i].wrapping_mul(31).wrapping_add(expected[from]);
            }
            ends.push(last);
        }
        kernels.run(&graph)?;
        assert_eq!(cells.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_loop_makes_100_000_passes() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (a, b) = (kernels.value(1)?, kernels.value(2)?);
        let graph = Graph::new(device);
        let repeat = graph.repeat(100_000)?;
        repeat.body().memcpy(&a, &b)?;
        let executable = kernels.run(&graph)?;
        assert_eq!((read(&a)?, executable.passes(&repeat)?), (2, 100_000));
        Ok(())
    });
}
