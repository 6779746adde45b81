use gridloom::prelude::*;

use super::compare::{Toward, directed, same_bits};
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("convert.ptx");

const FLOATS: [f32; 22] = [
    0.0,
    -0.0,
    0.4,
    0.5,
    0.6,
    1.5,
    2.5,
    -0.5,
    -1.5,
    -2.7,
    127.5,
    128.5,
    -128.5,
    -129.5,
    2_147_483_520.0,
    2_147_483_648.0,
    -2_147_483_648.0,
    4_294_967_040.0,
    1e19,
    -1e19,
    f32::INFINITY,
    f32::NEG_INFINITY,
];

#[test]
fn floats_become_integers_by_rounding_and_saturating() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = FLOATS.to_vec();
        x.extend(Random::new(20).f32s(50, -1000.0, 1000.0));
        let n = x.len();
        let out = bench.zeros::<i64>(8 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<i64>, Ptr<f32>, u32)>("float_to_ints", threads(n), args)?;
        let expected: Vec<i64> = x
            .iter()
            .flat_map(|&x| {
                [
                    i64::from(x.round_ties_even() as i32),
                    i64::from(x as i32),
                    i64::from(x.floor() as i32),
                    i64::from(x.ceil() as i32),
                    i64::from(x as u32),
                    x as i64,
                    x as u64 as i64,
                    i64::from(x as i8),
                ]
            })
            .collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_nan_becomes_what_ptx_says() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<i64>(8)?;
        bench.run::<(PtrMut<i64>, Ptr<f32>, u32)>(
            "float_to_ints",
            threads(1),
            (&out, &bench.buffer(&[f32::NAN])?, 1),
        )?;
        assert_eq!(out.to_vec()?[..7], [0, 0, 0, 0, 0, i64::MIN, i64::MIN]);
        let out = bench.zeros::<i64>(4)?;
        bench.run::<(PtrMut<i64>, Ptr<f64>, u32)>(
            "double_to_ints",
            threads(1),
            (&out, &bench.buffer(&[f64::NAN])?, 1),
        )?;
        assert_eq!(out.to_vec()?, [i64::from(i32::MIN), 1 << 31, i64::MIN, i64::MIN]);
        Ok(())
    });
}

#[test]
fn doubles_become_integers_by_rounding_and_saturating() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x: Vec<f64> = FLOATS.iter().map(|&x| f64::from(x)).collect();
        x.extend([
            2_147_483_647.5,
            -2_147_483_648.9,
            4_294_967_295.9,
            9.3e18,
            1.9e19,
            4_503_599_627_370_497.5,
        ]);
        let n = x.len();
        let out = bench.zeros::<i64>(4 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<i64>, Ptr<f64>, u32)>("double_to_ints", threads(n), args)?;
        let expected: Vec<i64> = x
            .iter()
            .flat_map(|&x| {
                [i64::from(x as i32), i64::from(x as u32), x.round_ties_even() as i64, x as u64 as i64]
            })
            .collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn integers_become_floats_to_nearest_even() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = vec![
            0,
            1,
            -1,
            i64::MAX,
            i64::MIN,
            (1 << 24) + 1,
            (1 << 53) + 1,
            0xffff_ffff,
            0x8000_0000,
            -(1 << 40) - 3,
        ];
        x.extend(Random::new(21).vec(50, |random| random.u64() as i64));
        let n = x.len();
        let xs = bench.buffer(&x)?;
        let floats = bench.zeros::<f32>(4 * n)?;
        bench.run::<(PtrMut<f32>, Ptr<i64>, u32)>("ints_to_float", threads(n), (&floats, &xs, n as u32))?;
        let four = |x: &i64| [f64::from(*x as i32), f64::from(*x as u32)];
        let expected: Vec<f32> = x
            .iter()
            .flat_map(|x| [*x as i32 as f32, *x as u32 as f32, *x as f32, *x as u64 as f32])
            .collect();
        same_bits(&floats.to_vec()?, &expected);

        let doubles = bench.zeros::<f64>(4 * n)?;
        bench.run::<(PtrMut<f64>, Ptr<i64>, u32)>("ints_to_double", threads(n), (&doubles, &xs, n as u32))?;
        let expected: Vec<f64> =
            x.iter().flat_map(|x| [four(x)[0], four(x)[1], *x as f64, *x as u64 as f64]).collect();
        same_bits(&doubles.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn narrowing_keeps_the_low_bits() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(22).i32s(64);
        let out = bench.zeros::<i32>(4 * 64)?;
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("narrow", threads(64), (&out, &bench.buffer(&x)?, 64))?;
        let four =
            |&x: &i32| [i32::from(x as i8), i32::from(x as u8), i32::from(x as i16), i32::from(x as u16)];
        assert_eq!(out.to_vec()?, x.iter().flat_map(four).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn doubles_become_floats_in_every_rounding() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = Random::new(23).vec(50, |random| random.f64(-1e3, 1e3));
        x.extend([0.1, -0.1, 1.0, 1e-45, -1e-46, 3.5e38, -3.5e38, 1e300, f64::INFINITY, f64::NAN, -0.0]);
        let n = x.len();
        let out = bench.zeros::<f32>(4 * n)?;
        let args = (&out, &bench.buffer(&x)?, n as u32);
        bench.run::<(PtrMut<f32>, Ptr<f64>, u32)>("double_to_float", threads(n), args)?;
        let expected: Vec<f32> = x
            .iter()
            .flat_map(|&x| {
                let to = |toward| directed(x as f32, x, 0.0, toward);
                [x as f32, to(Toward::Zero), to(Toward::Up), to(Toward::Down)]
            })
            .collect();
        same_bits(&out.to_vec()?, &expected);
        Ok(())
    });
}

#[test]
fn widening_and_reinterpreting_are_exact() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut x = FLOATS.to_vec();
        x.extend([f32::NAN, f32::MIN_POSITIVE, 1e-45, f32::MAX]);
        let n = x.len();
        let xs = bench.buffer(&x)?;
        let doubles = bench.zeros::<f64>(n)?;
        bench.run::<(PtrMut<f64>, Ptr<f32>, u32)>(
            "float_to_double",
            threads(n),
            (&doubles, &xs, n as u32),
        )?;
        same_bits(&doubles.to_vec()?, &x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());

        let floats = bench.zeros::<f32>(n)?;
        bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("reinterpret", threads(n), (&floats, &xs, n as u32))?;
        let bits: Vec<u32> = floats.to_vec()?.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, x.iter().map(|x| x.to_bits().wrapping_add(1)).collect::<Vec<u32>>());
        Ok(())
    });
}
