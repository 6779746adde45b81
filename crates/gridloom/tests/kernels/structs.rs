use gridloom::kernel::Arg;
use gridloom::prelude::*;

use super::compare::same_bits;
use super::threads;
use crate::support::{Bench, Random, for_each_device};

const PTX: &str = include_str!("structs.ptx");

#[test]
fn a_struct_of_floats_is_passed_by_value() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let m = [1.5f32, -0.5, 2.0, 0.25, 10.0, -20.0];
        let x = Random::new(240).vec(60, |random| [random.f32(-5.0, 5.0), random.f32(-5.0, 5.0)]);
        let out = bench.zeros::<[f32; 2]>(60)?;
        let args = (&out, &bench.buffer(&x)?, 60, m);
        bench.run::<(PtrMut<[f32; 2]>, Ptr<[f32; 2]>, u32, [f32; 6])>("affine", threads(60), args)?;
        let map = |[x, y]: [f32; 2]| {
            [m[0].mul_add(x, m[1].mul_add(y, m[4])), m[2].mul_add(x, m[3].mul_add(y, m[5]))]
        };
        let expected: Vec<[f32; 2]> = x.into_iter().map(map).collect();
        same_bits(out.to_vec()?.as_flattened(), expected.as_flattened());
        Ok(())
    });
}

#[test]
fn members_of_a_struct_lie_where_c_puts_them() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let mut bytes = [0xeeu8; 32];
        bytes[0] = -5i8 as u8;
        bytes[2..4].copy_from_slice(&(-300i16).to_le_bytes());
        bytes[4..8].copy_from_slice(&70_000i32.to_le_bytes());
        bytes[8..16].copy_from_slice(&(-(1i64 << 40)).to_le_bytes());
        bytes[16..20].copy_from_slice(&1.5f32.to_le_bytes());
        bytes[24..32].copy_from_slice(&(-2.25f64).to_le_bytes());
        let out = bench.zeros::<f64>(6)?;
        bench.run::<(PtrMut<f64>, [u8; 32])>("mixed", LaunchConfig::one(), (&out, bytes))?;
        assert_eq!(out.to_vec()?, [-5.0, -300.0, 70_000.0, -(2f64.powi(40)), 1.5, -2.25]);
        Ok(())
    });
}

#[test]
fn a_struct_may_hold_a_pointer() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(241).vec(100, |random| random.between(-1000, 1000) as i32);
        let (data, out) = (bench.buffer(&x)?, bench.zeros::<i32>(20)?);
        let mut view = [0; 16];
        view[..8].copy_from_slice(&data.address()?.to_le_bytes());
        view[8..12].copy_from_slice(&7u32.to_le_bytes());
        view[12..].copy_from_slice(&4u32.to_le_bytes());
        let kernel = bench.module.untyped_kernel("window")?;
        let args = [Arg::memory(&out)?, Arg::value([100i32, 0, 3]), Arg::bytes(&view), Arg::value(20u32)];
        // SAFETY: the arguments are those of `window`, and the view stays within `data`, which
        // outlives the launch.
        unsafe { bench.stream.launch_untyped(&kernel, threads(20), args)? };
        bench.stream.synchronize()?;
        assert_eq!(out.to_vec()?, (0..20).map(|i| x[7 + 4 * i] + 103).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn large_and_small_values_arrive_whole() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let table: [i32; 128] = std::array::from_fn(|i| (i * i) as i32 - 1000);
        let out = bench.zeros::<i32>(200)?;
        bench.run::<(PtrMut<i32>, [[i32; 16]; 8], u32)>(
            "large",
            threads(200),
            (&out, std::array::from_fn(|row| std::array::from_fn(|column| table[16 * row + column])), 200),
        )?;
        assert_eq!(out.to_vec()?, (0..200).map(|i| table[i % 128]).collect::<Vec<i32>>());

        let args = (&out, 1u8, -2i16, -3i8, 250u8);
        bench.run::<(PtrMut<i32>, u8, i16, i8, u8)>("small_scalars", LaunchConfig::one(), args)?;
        assert_eq!(out.to_vec()?[..4], [1, -2, -3, 250]);
        Ok(())
    });
}

#[test]
fn templates_over_functors_become_kernels_of_their_own() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let x = Random::new(242).f32s(64, -5.0, 5.0);
        let (out, values) = (bench.zeros::<f32>(64)?, bench.buffer(&x)?);
        for (name, expected) in [("map_square", (|x| x * x) as fn(f32) -> f32), ("map_cube", |x| x * x * x)] {
            bench.run::<(PtrMut<f32>, Ptr<f32>, u32)>(name, threads(64), (&out, &values, 64))?;
            same_bits(&out.to_vec()?, &x.iter().map(|&x| expected(x)).collect::<Vec<f32>>());
        }
        Ok(())
    });
}
