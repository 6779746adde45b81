use gridloom::prelude::*;

use super::compare::same_bits;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("pipeline.ptx");

#[test]
fn tiles_are_copied_ahead_while_others_are_added() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for tiles in [1, 2, 7] {
            let x = Random::new(160).f32s(256 * tiles, -1.0, 1.0);
            let out = bench.zeros::<f32>(256)?;
            let args = (&out, &bench.buffer(&x)?, tiles as u32);
            bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("pipelined_sum", LaunchConfig::new(1, 64), args)?;
            let sum = |t: usize| (0..tiles).fold(0.0f32, |sum, k| sum + x[256 * k + t]);
            same_bits(&out.to_vec()?, &(0..256).map(sum).collect::<Vec<f32>>());
        }
        Ok(())
    });
}

#[test]
fn asynchronous_copies_come_in_several_sizes_and_fill_with_zeros() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(161).i32s(101);
        let out = bench.zeros::<i32>(101)?;
        let values = bench.buffer(&x)?;
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>(
            "copy_sizes",
            LaunchConfig::new(1, 101),
            (&out, &values, 101),
        )?;
        assert_eq!(out.to_vec()?, x.iter().rev().copied().collect::<Vec<i32>>());

        let four = bench.buffer(&[9; 4])?;
        bench.run::<(PtrMut<i32>, Ptr<i32>)>("zero_filled", LaunchConfig::one(), (&four, &values))?;
        assert_eq!(four.to_vec()?, [x[0], x[1], 0, 0]);
        Ok(())
    });
}
