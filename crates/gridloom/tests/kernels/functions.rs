use gridloom::prelude::*;

use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("functions.ptx");
const N: usize = 150;

fn apply(which: u32, x: i32) -> i32 {
    match which % 4 {
        0 => x.wrapping_neg(),
        1 => x.wrapping_mul(2),
        2 => x.wrapping_mul(x),
        _ => x.wrapping_add(1),
    }
}

#[test]
fn a_table_of_functions_is_called_lane_by_lane() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(80);
        let (x, which) = (random.i32s(N), random.u32s(N));
        let out = bench.zeros::<i32>(N)?;
        let args = (&out, &bench.buffer(&x)?, &bench.buffer(&which)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, Ptr<u32>, u32)>("apply_table", threads(N), args)?;
        let expected: Vec<i32> = x.iter().zip(&which).map(|(&x, &which)| apply(which, x)).collect();
        assert_eq!(out.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn the_address_of_a_function_travels_through_memory_between_launches() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(81).i32s(N);
        let (out, slot, values) = (bench.zeros::<i32>(N)?, bench.zeros::<u64>(1)?, bench.buffer(&x)?);
        for which in 0..4 {
            bench.run::<(PtrMut<u64>, u32)>("take_address", LaunchConfig::one(), (&slot, which))?;
            let args = (&out, &values, &slot, N as u32);
            bench.run::<(PtrMut<i32>, Ptr<i32>, Ptr<u64>, u32)>("apply_address", threads(N), args)?;
            assert_eq!(out.to_vec()?, x.iter().map(|&x| apply(which, x)).collect::<Vec<i32>>());
        }
        Ok(())
    });
}

#[test]
fn calls_nest_and_take_arguments_of_many_types() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(82);
        let x = random.i32s(N);
        let out = bench.zeros::<i32>(N)?;
        let args = (&out, &bench.buffer(&x)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, u32)>("compose", threads(N), args)?;
        let expected: Vec<i32> = x.iter().map(|&x| apply(2, apply(3, apply(1, x)))).collect();
        assert_eq!(out.to_vec()?, expected);

        // Integers, so that every order of rounding gives the same.
        let a = random.vec(N, |random| random.between(-100, 100) as f32);
        let b = random.vec(N, |random| random.between(-100, 100) as f64);
        let doubles = bench.zeros::<f64>(N)?;
        let args = (&doubles, &bench.buffer(&a)?, &bench.buffer(&b)?, N as u32);
        bench.run::<(PtrMut<f64>, Ptr<f32>, Ptr<f64>, u32)>("many_arguments", threads(N), args)?;
        let expected: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) + 2.0 * b + 42.0).collect();
        assert_eq!(doubles.to_vec()?, expected);
        Ok(())
    });
}

#[test]
fn a_call_can_return_a_struct() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut random = Random::new(83);
        let a = random.i32s(N);
        let b =
            random.vec(N, |random| random.between(1, 1000) as i32 * if random.one_in(2) { -1 } else { 1 });
        let out = bench.zeros::<i32>(2 * N)?;
        let args = (&out, &bench.buffer(&a)?, &bench.buffer(&b)?, N as u32);
        bench.run::<(PtrMut<i32>, Ptr<i32>, Ptr<i32>, u32)>("returns_struct", threads(N), args)?;
        let both = |(&a, &b): (&i32, &i32)| [a.wrapping_div(b), a.wrapping_rem(b)];
        assert_eq!(out.to_vec()?, a.iter().zip(&b).flat_map(both).collect::<Vec<i32>>());
        Ok(())
    });
}
