use gridloom::prelude::*;

use super::compare::same_bits;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("stencil.ptx");

#[test]
fn a_five_point_stencil_agrees_bit_for_bit() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (width, height, c) = (45, 30, 0.2f32);
        let x = Random::new(230).f32s(width * height, -10.0, 10.0);
        let out = bench.zeros::<f32>(x.len())?;
        let config = LaunchConfig::new((width.div_ceil(16) as u32, height.div_ceil(4) as u32), (16, 4));
        let args = (&out, &bench.buffer(&x)?, width as i32, height as i32, c);
        bench.run::<(PtrMut<f32>, Ptr<f32>, i32, i32, f32)>("stencil_5point", config, args)?;
        let mut expected = x.clone();
        for i in 0..x.len() {
            let (row, column) = (i / width, i % width);
            if row > 0 && row < height - 1 && column > 0 && column < width - 1 {
                let around = (x[i - 1] + x[i + 1]) + (x[i - width] + x[i + width]);
                expected[i] = x[i] + c * (around - 4.0 * x[i]);
            }
        }
        same_bits(&out.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn a_moving_sum_reads_its_halo_from_shared_memory() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for n in [1, 128, 300] {
            let x = Random::new(231).f32s(n, -10.0, 10.0);
            let out = bench.zeros::<f32>(n)?;
            let args = (&out, &bench.buffer(&x)?, n as i32);
            let config = LaunchConfig::new(n.div_ceil(128) as u32, 128);
            bench.run::<(PtrMut<f32>, Ptr<f32>, i32)>("stencil_shared", config, args)?;
            let at = |i: i64| usize::try_from(i).ok().and_then(|i| x.get(i)).copied().unwrap_or(0.0);
            let sum = |i: i64| (i - 2..=i + 3).fold(at(i - 3), |sum, k| sum + at(k));
            same_bits(&out.to_vec()?, &(0..n as i64).map(sum).collect::<Vec<f32>>());
        }
        Ok(())
    });
}
