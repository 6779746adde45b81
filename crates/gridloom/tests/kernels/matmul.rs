use gridloom::prelude::*;

use super::compare::same_bits;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("matmul.ptx");

#[test]
fn matrix_products_agree_bit_for_bit_tiled_and_naive() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        for (m, n, k) in [(1, 1, 1), (16, 16, 16), (19, 33, 21), (5, 40, 3)] {
            let mut random = Random::new(140);
            let (a, b) = (random.f32s(m * k, -2.0, 2.0), random.f32s(k * n, -2.0, 2.0));
            let expected: Vec<f32> = (0..m * n)
                .map(|i| (0..k).fold(0.0f32, |sum, j| a[i / n * k + j].mul_add(b[j * n + i % n], sum)))
                .collect();
            let (a, b) = (bench.buffer(&a)?, bench.buffer(&b)?);
            let config = LaunchConfig::new((n.div_ceil(16) as u32, m.div_ceil(16) as u32), (16, 16));
            for kernel in ["matmul_tiled", "matmul_naive"] {
                let c = bench.zeros::<f32>(m * n)?;
                bench.run::<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, i32, i32, i32)>(
                    kernel,
                    config,
                    (&c, &a, &b, m as i32, n as i32, k as i32),
                )?;
                same_bits(&c.to_vec()?, &expected);
            }
        }
        Ok(())
    });
}

#[test]
fn a_matrix_is_transposed_through_a_padded_tile() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (width, height) = (45, 70);
        let x = Random::new(141).f32s(width * height, -1.0, 1.0);
        let out = bench.zeros::<f32>(width * height)?;
        let config = LaunchConfig::new((width.div_ceil(32) as u32, height.div_ceil(32) as u32), (32, 8));
        let args = (&out, &bench.buffer(&x)?, width as i32, height as i32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, i32, i32)>("transpose", config, args)?;
        let expected: Vec<f32> = (0..width)
            .flat_map(|column| (0..height).map(move |row| (row, column)))
            .map(|(r, c)| x[r * width + c])
            .collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}
