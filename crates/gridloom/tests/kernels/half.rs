use gridloom::prelude::*;
use half::f16;

use super::compare::{Toward, directed, round_to_odd, same_bits};
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("half.ptx");

fn values(seed: u64, len: usize) -> Vec<f16> {
    Random::new(seed).vec(len, |random| f16::from_f32(random.f32(-8.0, 8.0)))
}

/// Rounds once. What the tests compute is exact in a double.
fn round(value: f64) -> f16 {
    f16::from_f32(round_to_odd(value))
}

fn fma(a: f16, x: f16, y: f16) -> f16 {
    round(a.to_f64().mul_add(x.to_f64(), y.to_f64()))
}

#[test]
fn half_multiply_add_rounds_once_alone_and_in_pairs() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (x, y, a) = (values(100, 200), values(101, 200), f16::from_f32(1.3));
        let expected: Vec<f16> = x.iter().zip(&y).map(|(&x, &y)| fma(a, x, y)).collect();

        let (xs, ys) = (bench.buffer(&x)?, bench.buffer(&y)?);
        bench.run::<(PtrMut<f16>, Ptr<f16>, u32, f16)>("half_axpy", threads(200), (&ys, &xs, 200, a))?;
        same_bits(&ys.to_vec()?, &expected);

        ys.write(&y)?;
        bench.run::<(PtrMut<f16>, Ptr<f16>, u32, f16)>("half2_axpy", threads(100), (&ys, &xs, 100, a))?;
        same_bits(&ys.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn half_products_are_summed_in_float() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (x, y) = (values(102, 300), values(103, 300));
        let result = bench.zeros::<f32>(1)?;
        let args = (&result, &bench.buffer(&x)?, &bench.buffer(&y)?, 300);
        bench.run::<(PtrMut<f32>, Ptr<f16>, Ptr<f16>, u32)>("half_dot", LaunchConfig::new(1, 32), args)?;
        let mut lanes = [0.0f32; 32];
        for (i, (x, y)) in x.iter().zip(&y).enumerate() {
            lanes[i % 32] = x.to_f32().mul_add(y.to_f32(), lanes[i % 32]);
        }
        for offset in [16, 8, 4, 2, 1] {
            for lane in 0..offset {
                lanes[lane] += lanes[lane + offset];
            }
        }
        same_bits(&result.to_vec()?, &lanes[..1]);
        Ok(())
    });
}

#[test]
fn half_arithmetic_rounds_to_nearest_even() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (mut a, mut b) = (values(104, 100), values(105, 100));
        a.extend([f16::MAX, f16::INFINITY, f16::NAN, f16::from_bits(1), f16::from_f32(-0.0)]);
        b.extend([f16::MAX, f16::NEG_INFINITY, f16::ONE, f16::from_bits(1), f16::ZERO]);
        let n = a.len();
        let out = bench.zeros::<f16>(8 * n)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, n as u32);
        bench.run::<(PtrMut<f16>, Ptr<f16>, Ptr<f16>, u32)>("half_basic", threads(n), args)?;
        let eight = |(&a, &b): (&f16, &f16)| {
            let (x, y) = (a.to_f64(), b.to_f64());
            let (least, most) = (a.to_f32().min(b.to_f32()), a.to_f32().max(b.to_f32()));
            let six = [x + y, x - y, x * y, x.mul_add(y, x), f64::from(least), f64::from(most)];
            let [sum, difference, product, fused, least, most] = six.map(round);
            let absolute = f16::from_bits(a.to_bits() & 0x7fff);
            [sum, difference, product, fused, least, most, -a, absolute]
        };
        same_bits(
            &out.to_vec()?[..8 * (n - 1)],
            &a.iter().zip(&b).flat_map(eight).collect::<Vec<_>>()[..8 * (n - 1)],
        );
        // The last pair is -0 and 0, where PTX orders the two for min and max.
        let last: Vec<u16> = out.to_vec()?[8 * (n - 1)..].iter().map(|x| x.to_bits()).collect();
        assert_eq!(last[4..6], [0x8000, 0]);
        Ok(())
    });
}

#[test]
fn half_comparisons_are_false_where_either_is_nan() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let edges =
            [f16::NAN, f16::ZERO, f16::NEG_ZERO, f16::ONE, f16::NEG_ONE, f16::INFINITY, f16::from_bits(1)];
        let pairs: Vec<(f16, f16)> = edges.iter().flat_map(|&a| edges.map(|b| (a, b))).collect();
        let (a, b): (Vec<f16>, Vec<f16>) = pairs.iter().copied().unzip();
        let out = bench.zeros::<u32>(pairs.len())?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, pairs.len() as u32);
        bench.run::<(PtrMut<u32>, Ptr<f16>, Ptr<f16>, u32)>("half_compare", threads(pairs.len()), args)?;
        let bits = |(a, b): &(f16, f16)| {
            #[allow(clippy::double_comparisons, reason = "a NaN is neither")]
            let unequal = a < b || a > b;
            let tests = [a < b, a <= b, a == b, unequal, a > b, a >= b, a.is_nan()];
            tests.iter().enumerate().map(|(k, &test)| u32::from(test) << k).sum()
        };
        assert_eq!(out.to_vec()?, pairs.iter().map(bits).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn half_converts_from_and_to_float_in_every_rounding() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(106).f32s(100, -1000.0, 1000.0);
        x.extend([0.0, -0.0, 65504.0, 65519.0, 65520.0, 1e9, -1e9, 5e-8, -1e-8, f32::INFINITY, f32::NAN]);
        let n = x.len();
        let out = bench.zeros::<f16>(4 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<f16>, Ptr<f32>, u32)>("half_from_float", threads(n), args)?;
        let four = |&x: &f32| {
            let nearest = f16::from_f32(x);
            let to = |toward| directed(nearest, f64::from(x), 0.0, toward);
            [nearest, to(Toward::Zero), to(Toward::Down), to(Toward::Up)]
        };
        let halves: Vec<f16> = x.iter().flat_map(four).collect();
        same_bits(&out.to_vec()?, &halves);

        let back = bench.zeros::<f32>(4 * n)?;
        bench.run::<(PtrMut<f32>, Ptr<f16>, u32)>(
            "half_to_float",
            threads(4 * n),
            (&back, &out, 4 * n as u32),
        )?;
        same_bits(&back.to_vec()?, &halves.iter().map(|x| x.to_f32()).collect::<Vec<f32>>());
        Ok(())
    });
}

#[test]
fn half_converts_from_and_to_integers() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = values(107, 50);
        x.extend([0.5, -0.5, 1.5, 2.5, 65504.0, -65504.0].map(f16::from_f32));
        let n = x.len();
        let out = bench.zeros::<i32>(4 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<i32>, Ptr<f16>, u32)>("half_to_int", threads(n), args)?;
        let four = |x: &f16| {
            let x = x.to_f32();
            [x.round_ties_even(), x.trunc(), x.floor(), x.ceil()].map(|x| x as i32)
        };
        assert_eq!(out.to_vec()?, x.iter().flat_map(four).collect::<Vec<i32>>());

        let integers = [0, 1, -1, 2047, 2049, 2051, -2049, 65504, 65519, 65520, 1_000_000, i32::MIN];
        let out = bench.zeros::<f16>(integers.len())?;
        let args = (&out, &bench.buffer(&integers)?, integers.len() as u32);
        bench.run::<(PtrMut<f16>, Ptr<i32>, u32)>("half_from_int", threads(integers.len()), args)?;
        same_bits(&out.to_vec()?, &integers.map(|x| round(f64::from(x))));
        Ok(())
    });
}
