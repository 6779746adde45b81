use gridloom::prelude::*;

use super::compare::same_bits;
use super::threads;
use crate::support::{Bench, Random, for_each_device, refused};

const PTX: &str = include_str!("globals.ptx");

#[test]
fn constants_are_initialised_and_can_be_overwritten_by_the_host() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let coefficients = bench.module.global::<f32>("coefficients")?;
        assert_eq!(coefficients.to_vec()?, (0..8).map(|k| 0.5f32.powi(k)).collect::<Vec<f32>>());
        let x = Random::new(90).f32s(100, -2.0, 2.0);
        let (out, values) = (bench.zeros::<f32>(100)?, bench.buffer(&x)?);
        for round in 0..2 {
            let c = coefficients.to_vec()?;
            bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>("polynomial", threads(100), (&out, &values, 100))?;
            let horner = |x: &f32| c[..7].iter().rev().fold(c[7], |sum, c| sum.mul_add(*x, *c));
            same_bits(&out.to_vec()?, &x.iter().map(horner).collect::<Vec<f32>>());
            coefficients.write(&[1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, round as f32])?;
        }
        Ok(())
    });
}

#[test]
fn variables_keep_their_values_between_launches() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u32>(64)?;
        for launch in 0..2 {
            bench.run::<(PtrMut<u32>, u32)>("count_up", LaunchConfig::new(1, 64), (&out, 64))?;
            let mut counted = out.to_vec()?;
            counted.sort_unstable();
            assert_eq!(counted, (7 + 64 * launch..71 + 64 * launch).collect::<Vec<u32>>());
        }
        assert_eq!(bench.module.global::<u32>("counter")?.to_vec()?, [7 + 128]);

        let doubles = bench.zeros::<f64>(16)?;
        for launch in 1..=3 {
            bench.run::<(PtrMut<f64>, u32)>("use_zeros", LaunchConfig::new(1, 32), (&doubles, 16))?;
            assert_eq!(doubles.to_vec()?, [f64::from(launch); 16]);
        }
        Ok(())
    });
}

#[test]
fn a_variable_may_point_at_another() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let primes = [2, 3, 5, 7, 11, 13, 17, 19];
        let out = bench.zeros::<i32>(11)?;
        let mut expected = [0; 11];
        for by in [0, 100] {
            bench.run::<(i32,)>("bump_primes", LaunchConfig::one(), (by,))?;
            bench.run::<(PtrMut<i32>, u32)>("read_primes", LaunchConfig::new(1, 32), (&out, 10))?;
            expected[..10].iter_mut().zip(primes.iter().cycle()).for_each(|(out, prime)| *out = prime + by);
            expected[10] = 5 + by;
            assert_eq!(out.to_vec()?, expected);
        }
        Ok(())
    });
}

#[test]
fn structs_and_strings_are_laid_out_as_c_lays_them_out() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<i32>(3)?;
        bench.run::<(PtrMut<i32>,)>("read_record", LaunchConfig::one(), (&out,))?;
        assert_eq!(out.to_vec()?, [3, 5, 6]);
        let bytes = bench.zeros::<u8>(6)?;
        bench.run::<(PtrMut<u8>,)>("read_greeting", LaunchConfig::one(), (&bytes,))?;
        assert_eq!(bytes.to_vec()?, b"hello\0");
        Ok(())
    });
}

#[test]
fn the_host_sees_a_variable_where_the_kernel_does() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let out = bench.zeros::<u64>(5)?;
        bench.run::<(PtrMut<u64>,)>("addresses", LaunchConfig::one(), (&out,))?;
        let out = out.to_vec()?;
        let primes = bench.module.global::<i32>("primes")?.address()?;
        let expected = [
            bench.module.global::<u32>("counter")?.address()?,
            primes,
            primes + 8,
            bench.module.global::<f64>("zeros")?.address()?,
            bench.module.global::<i32>("aligned_total")?.address()?,
        ];
        assert_eq!(out, expected);
        assert_eq!(out[4] % 64, 0);
        Ok(())
    });
}

#[test]
fn modules_loaded_twice_have_variables_of_their_own() {
    for_each_device(|device| {
        let (one, other) = (Bench::new(device, PTX)?, Bench::new(device, PTX)?);
        one.run::<(i32,)>("bump_primes", LaunchConfig::one(), (1,))?;
        assert_eq!(one.module.global::<i32>("primes")?.to_vec()?[0], 3);
        assert_eq!(other.module.global::<i32>("primes")?.to_vec()?[0], 2);
        Ok(())
    });
}

#[test]
fn a_variable_that_is_not_there_or_does_not_fit_is_refused() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        refused(bench.module.global::<i32>("no_such"), ErrorKind::NotFound, &["no_such"]);
        refused(
            bench.module.global::<f64>("counter"),
            ErrorKind::ParameterMismatch,
            &["counter", "4 bytes", "f64"],
        );
        Ok(())
    });
}

#[test]
fn a_variable_keeps_its_module_alive() {
    for_each_device(|device| {
        let primes = device.load_ptx(PTX)?.global::<i32>("primes")?;
        assert_eq!(primes.to_vec()?, [2, 3, 5, 7, 11, 13, 17, 19]);
        let graph = Graph::new(device);
        graph.memset(&primes, 9i32)?;
        let executable = graph.instantiate()?;
        let stream = device.stream()?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(primes.to_vec()?, [9; 8]);
        Ok(())
    });
}
