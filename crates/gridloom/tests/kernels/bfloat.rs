use gridloom::prelude::*;
use half::bf16;

use super::compare::{round_to_odd, same_bits};
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("bfloat.ptx");

fn values(seed: u64, len: usize) -> Vec<bf16> {
    Random::new(seed).vec(len, |random| bf16::from_f32(random.f32(-8.0, 8.0)))
}

fn fma(a: bf16, x: bf16, y: bf16) -> bf16 {
    bf16::from_f32(round_to_odd(a.to_f64().mul_add(x.to_f64(), y.to_f64())))
}

#[test]
fn bfloat_multiply_add_rounds_once() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (x, y, a) = (values(10, 200), values(11, 200), bf16::from_f32(1.3));
        let expected: Vec<bf16> = x.iter().zip(&y).map(|(&x, &y)| fma(a, x, y)).collect();

        let (xs, ys) = (bench.buffer(&x)?, bench.buffer(&y)?);
        bench.run::<(PtrMut<bf16>, Ptr<bf16>, u32, bf16)>("bfloat_axpy", threads(200), (&ys, &xs, 200, a))?;
        same_bits(&ys.to_vec()?, &expected);

        ys.write(&y)?;
        bench.run::<(PtrMut<bf16>, Ptr<bf16>, u32, bf16)>(
            "bfloat2_axpy",
            threads(100),
            (&ys, &xs, 100, a),
        )?;
        same_bits(&ys.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn bfloat_converts_from_and_to_float() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(12).f32s(100, -1e6, 1e6);
        x.extend([
            0.0,
            -0.0,
            1.0,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-40,
            // Half way between two, below and above an even one.
            1.0 + 1.0 / 256.0,
            1.0 + 3.0 / 256.0,
        ]);
        let n = x.len();
        let out = bench.zeros::<bf16>(2 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<bf16>, Ptr<f32>, u32)>("bfloat_from_float", threads(n), args)?;
        let rounded = |x: &f32| [bf16::from_f32(*x), bf16::from_bits((x.to_bits() >> 16) as u16)];
        let expected: Vec<bf16> = x.iter().flat_map(rounded).collect();
        same_bits(&out.to_vec()?, &expected);

        let back = bench.zeros::<f32>(2 * n)?;
        let args = (&back, &out, 2 * n as u32);
        bench.run::<(PtrMut<f32>, Ptr<bf16>, u32)>("bfloat_to_float", threads(2 * n), args)?;
        same_bits(&back.to_vec()?, &expected.iter().map(|x| x.to_f32()).collect::<Vec<f32>>());
        Ok(())
    });
}

#[test]
fn bfloat_minimum_prefers_a_number_to_nan() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (mut a, mut b) = (values(13, 64), values(14, 64));
        (a[0], b[1]) = (bf16::NAN, bf16::NAN);
        (a[2], b[2]) = (bf16::NAN, bf16::NAN);
        let out = bench.zeros::<bf16>(128)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, 64);
        bench.run::<(PtrMut<bf16>, Ptr<bf16>, Ptr<bf16>, u32)>("bfloat_minmax", threads(64), args)?;
        let expected: Vec<bf16> = a
            .iter()
            .zip(&b)
            .flat_map(|(a, b)| [a.to_f32().min(b.to_f32()), a.to_f32().max(b.to_f32())])
            .map(bf16::from_f32)
            .collect();
        same_bits(&out.to_vec()?, &expected);
        Ok(())
    });
}
