use gridloom::prelude::*;

use super::compare::same_bits;
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("saxpy.ptx");

#[test]
fn saxpy_agrees_bit_for_bit_in_every_form() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(190);
        let (n, a) = (1000, 1.7f32);
        let (x, y) = (random.f32s(n, -9.0, 9.0), random.f32s(n, -9.0, 9.0));
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a.mul_add(*x, *y)).collect();
        let xs = bench.buffer(&x)?;
        let forms = [
            ("saxpy", threads(n), n),
            ("saxpy_strided", LaunchConfig::new(3, 32), n),
            ("saxpy_vector", threads(n / 4), n / 4),
        ];
        for (name, config, count) in forms {
            let ys = bench.buffer(&y)?;
            bench.run::<(PtrMut<f32>, Ptr<f32>, u32, f32)>(name, config, (&ys, &xs, count as u32, a))?;
            same_bits(&ys.to_vec()?, &expected);
        }
        Ok(())
    });
}

#[test]
fn daxpy_leaves_elements_past_the_end_alone() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (x, y) = (bench.buffer(&[1.5f64; 100])?, bench.buffer(&[0.25f64; 100])?);
        bench.run::<(PtrMut<f64>, Ptr<f64>, u32, f64)>("daxpy", threads(100), (&y, &x, 70, 3.0))?;
        let expected: Vec<f64> = (0..100).map(|i| if i < 70 { 4.75 } else { 0.25 }).collect();
        assert_eq!(y.to_vec()?, expected);
        Ok(())
    });
}
