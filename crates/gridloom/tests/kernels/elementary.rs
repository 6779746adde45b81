use gridloom::prelude::*;

use super::compare::{Toward, directed, same_bits, within, within_ulps};
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("elementary.ptx");
const FAST: &str = include_str!("elementary.fast.ptx");

const NAMES_F32: [&str; 12] =
    ["sqrt", "1/x", "rsqrt", "exp", "log", "sin", "cos", "tan", "tanh", "pow", "exp2", "log2"];

/// Returns the functions of `elementary_f32`, in double.
fn elementary(x: f64) -> [f64; 12] {
    let a = x.abs();
    [
        a.sqrt(),
        1.0 / x,
        1.0 / a.sqrt(),
        x.exp(),
        a.ln(),
        x.sin(),
        x.cos(),
        x.tan(),
        x.tanh(),
        a.powf(1.5),
        x.exp2(),
        a.log2(),
    ]
}

#[test]
fn float_functions_are_within_four_units_in_the_last_place() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(60).f32s(200, -10.0, 10.0);
        let out = bench.zeros::<f32>(12 * x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("elementary_f32", threads(x.len()), args)?;
        for (row, &x) in out.to_vec()?.chunks(12).zip(&x) {
            for ((got, expected), name) in row.iter().zip(elementary(f64::from(x))).zip(NAMES_F32) {
                let ulps = if matches!(name, "sqrt" | "1/x") { 0 } else { 4 };
                within_ulps(&format!("{name} of {x}"), *got, expected as f32, ulps);
            }
        }
        Ok(())
    });
}

#[test]
fn fast_float_functions_are_within_their_bound() {
    for_each_device(|device| {
        let bench = Bench::new(device, FAST)?;
        let mut x = Random::new(61).f32s(200, 0.1, 3.0);
        x.retain(|x| (x - std::f32::consts::FRAC_PI_2).abs() > 0.2);
        let negative: Vec<f32> = x.iter().map(|x| -x).collect();
        x.extend(negative);
        let out = bench.zeros::<f32>(12 * x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("elementary_f32", threads(x.len()), args)?;
        for (row, &x) in out.to_vec()?.chunks(12).zip(&x) {
            for ((got, expected), name) in row.iter().zip(elementary(f64::from(x))).zip(NAMES_F32) {
                within(&format!("{name} of {x}"), f64::from(*got), expected, 1e-5, 1e-5);
            }
        }
        Ok(())
    });
}

#[test]
fn double_functions_are_within_two_units_in_the_last_place() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(62).vec(200, |random| random.f64(-10.0, 10.0));
        let out = bench.zeros::<f64>(8 * x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<f64>, Ptr<f64>, u32)>("elementary_f64", threads(x.len()), args)?;
        let names = ["sqrt", "1/x", "exp", "log", "sin", "cos", "cbrt", "pow"];
        for (row, &x) in out.to_vec()?.chunks(8).zip(&x) {
            let a = x.abs();
            let expected = [a.sqrt(), 1.0 / x, x.exp(), a.ln(), x.sin(), x.cos(), x.cbrt(), a.powf(1.5)];
            for ((got, expected), name) in row.iter().zip(expected).zip(names) {
                // The host's own functions are off by one at times.
                let ulps = if matches!(name, "sqrt" | "1/x") { 0 } else { 3 };
                within_ulps(&format!("{name} of {x}"), *got, expected, ulps);
            }
        }
        Ok(())
    });
}

const EDGES: [f32; 16] = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    1e-40,
    -1e-45,
    8_388_607.5,
    1e30,
    f32::MAX,
    f32::MIN_POSITIVE,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

#[test]
fn floats_round_to_integers_in_every_way() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = EDGES.to_vec();
        x.extend(Random::new(63).f32s(100, -100.0, 100.0));
        let out = bench.zeros::<f32>(6 * x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("roundings", threads(x.len()), args)?;
        let six = |x: &f32| [x.floor(), x.ceil(), x.trunc(), x.round_ties_even(), x.round(), x - x.trunc()];
        same_bits(&out.to_vec()?, &x.iter().flat_map(six).collect::<Vec<f32>>());
        Ok(())
    });
}

#[test]
fn arithmetic_rounds_in_every_direction() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(64);
        let (mut a, mut b) = (random.f32s(100, -100.0, 100.0), random.f32s(100, -1.0, 1.0));
        a.extend([1.0, 1e38, -1e38, 1e-38, 1.0, 16_777_216.0]);
        b.extend([3.0, 3.0e38, 3.3e38, 1e-3, 1e-30, 1.0]);
        let n = a.len();
        let out = bench.zeros::<f32>(12 * n)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, n as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, u32)>("directed", threads(n), args)?;
        let expected: Vec<f32> = a
            .iter()
            .zip(&b)
            .flat_map(|(&a, &b)| {
                let (x, y) = (f64::from(a), f64::from(b));
                // Each result as a double and what the double leaves out, exactly or to far more
                // than a float's precision.
                let sum = x + y;
                let rest = (x - (sum - (sum - x))) + (y - (sum - x));
                let quotient = x / y;
                let over = (-quotient).mul_add(y, x) / y;
                [(a + b, sum, rest), (a * b, x * y, 0.0), (a / b, quotient, over)]
            })
            .flat_map(|(nearest, value, rest)| {
                let to = |toward| directed(nearest, value, rest, toward);
                [nearest, to(Toward::Zero), to(Toward::Up), to(Toward::Down)]
            })
            .collect();
        same_bits(&out.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn floats_are_classified() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(EDGES.len())?;
        let args = (&out, &bench.buffer(&EDGES)?, EDGES.len() as u32);
        bench.run::<(PtrMut<u32>, Ptr<f32>, u32)>("classes", threads(EDGES.len()), args)?;
        let class = |x: &f32| {
            u32::from(x.is_nan())
                | u32::from(x.is_infinite()) << 1
                | u32::from(x.is_finite()) << 2
                | u32::from(x.is_sign_negative()) << 3
                | u32::from(*x == 0.0) << 4
                | u32::from(x.is_normal()) << 5
        };
        assert_eq!(out.to_vec()?, EDGES.iter().map(class).collect::<Vec<u32>>());
        Ok(())
    });
}

#[test]
fn a_minimum_prefers_a_number_to_nan() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let a = [1.0, -1.0, f32::NAN, 2.0, f32::NAN, f32::INFINITY, 5.0];
        let b = [2.0, -3.0, 1.0, f32::NAN, f32::NAN, 1.0, -0.0];
        let out = bench.zeros::<f32>(4 * a.len())?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, a.len() as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, u32)>("minmax", threads(a.len()), args)?;
        let four = |(&a, &b): (&f32, &f32)| {
            let positive_difference = if a <= b { 0.0 } else { a - b };
            [a.min(b), a.max(b), a.copysign(b), positive_difference]
        };
        same_bits(&out.to_vec()?, &a.iter().zip(&b).flat_map(four).collect::<Vec<f32>>());
        Ok(())
    });
}

#[test]
fn the_approximate_instructions_are_within_their_stated_error() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(65).f32s(300, -3.0, 3.0);
        let out = bench.zeros::<f32>(7 * x.len())?;
        let args = (&out, &bench.buffer(&x)?, x.len() as u32);
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("specials", threads(x.len()), args)?;
        // The bounds of the PTX manual: absolute for sine, cosine and the logarithm, relative for
        // the rest.
        let bounds = [
            ("sin", 5.2e-7, 0.0),
            ("cos", 5.2e-7, 0.0),
            ("lg2", 2.4e-7, 2.4e-7),
            ("ex2", 0.0, 2.4e-7),
            ("rcp", 0.0, 1.2e-7),
            ("rsqrt", 0.0, 3.0e-7),
            ("sqrt", 0.0, 3.0e-7),
        ];
        for (row, &x) in out.to_vec()?.chunks(7).zip(&x) {
            let (x, a) = (f64::from(x), f64::from(x.abs()));
            let expected = [x.sin(), x.cos(), a.log2(), x.exp2(), 1.0 / x, 1.0 / a.sqrt(), a.sqrt()];
            for ((got, expected), (name, absolute, relative)) in row.iter().zip(expected).zip(bounds) {
                within(&format!("{name} of {x}"), f64::from(*got), expected, absolute, relative);
            }
        }
        Ok(())
    });
}
