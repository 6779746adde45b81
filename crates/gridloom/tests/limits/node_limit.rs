//! `node_limit` of the CPU device.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_engine, refused};

/// A device that allows so many nodes in a launch.
fn limited(options: CpuOptions, nodes: u64) -> Result<GraphKernels> {
    GraphKernels::new(&Device::cpu_with(options.node_limit(nodes))?)
}

#[test]
fn an_endless_loop_ends_at_the_node_limit() {
    for_each_engine(|options| {
        let kernels = limited(options, 1000)?;
        let passes = kernels.value(0)?;
        let graph = Graph::new(&kernels.device);
        let again = graph.condition(Some(1))?;
        let repeat = graph.while_loop(&again)?;
        kernels.bump(&repeat.body(), &passes, 1)?;
        let executable = graph.instantiate()?;
        for _ in 0..2 {
            passes.write(&[0])?;
            executable.launch(&kernels.stream)?;
            refused(kernels.stream.synchronize(), ErrorKind::LimitExceeded, &["1000", "node limit"]);
            // The loop itself is a node, and a pass counts like the node in it.
            assert_eq!(read(&passes)?, 499);
        }
        Ok(())
    });
}

#[test]
fn passes_without_nodes_count() {
    for_each_engine(|options| {
        let kernels = limited(options, 1000)?;
        let word = kernels.value(1)?;
        let graph = Graph::new(&kernels.device);
        graph.while_nonzero(&word)?;
        graph.instantiate()?.launch(&kernels.stream)?;
        refused(kernels.stream.synchronize(), ErrorKind::LimitExceeded, &["1000"]);
        Ok(())
    });
}

#[test]
fn a_launch_of_as_many_nodes_as_the_limit_runs_and_one_more_is_too_many() {
    for_each_engine(|options| {
        let kernels = limited(options, 100)?;
        for (nodes, fits) in [(100, true), (101, false)] {
            let value = kernels.value(0)?;
            let graph = Graph::new(&kernels.device);
            let mut last = kernels.bump(&graph, &value, 1)?;
            for _ in 1..nodes {
                last = kernels.bump(&last, &value, 1)?;
            }
            let executable = graph.instantiate()?;
            for _ in 0..3 {
                executable.launch(&kernels.stream)?;
                let outcome = kernels.stream.synchronize();
                match fits {
                    true => outcome?,
                    false => drop(refused(outcome, ErrorKind::LimitExceeded, &["100"])),
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_launch_has_the_limit_to_itself() {
    for_each_engine(|options| {
        let kernels = limited(options, 10)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(&kernels.device);
        kernels.bump(&graph.repeat(4)?.body(), &value, 1)?;
        let executable = graph.instantiate()?;
        for launches in 1..=20 {
            executable.launch(&kernels.stream)?;
            kernels.stream.synchronize()?;
            assert_eq!(read(&value)?, 4 * launches);
        }
        Ok(())
    });
}
