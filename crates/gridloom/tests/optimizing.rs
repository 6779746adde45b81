//! Graphs that are optimised before they are compiled.

use gridloom::prelude::*;
use gridloom::{Optimization, Optimizations};

use crate::support::{GraphKernels, for_each_device};

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
        assert_eq!(
            optimized.optimized_graph()?.map(|graph| graph.len()),
            Some(1),
            "{:?}",
            optimized.report()
        );
        optimized.launch(&stream)?;
        assert_eq!(data.to_vec()?, expected);
        optimized.node(&last)?.set_args(&kernels.affine, (&data, &data, 64, 0, 77))?;
        optimized.launch(&stream)?;
        assert_eq!(data.to_vec()?, [77; 64]);
        Ok(())
    });
}
