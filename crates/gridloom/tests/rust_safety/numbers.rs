//! Arithmetic at its edges: what Rust defines, devices compute.

use gridloom::kernel;
use gridloom::prelude::*;
use gridloom::{Out, host};

use crate::fails;
use crate::support::for_each_device;

/// Defines functions of two numbers that give on devices what they give on the host.
macro_rules! alike {
    ($($name:ident: $ty:ty => $out:ty, $inputs:expr, |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn program(x: &[[$ty; 2]], out: Out<$out>) {
                if let Some((i, out)) = out.mine() {
                    let ($a, $b) = (x[i][0], x[i][1]);
                    *out = $body;
                }
            }
            let inputs: Vec<[$ty; 2]> = $inputs;
            let mut expected = vec![<$out>::default(); inputs.len()];
            host::run(1, inputs.len() as u32, || program(&inputs, Out::new(&mut expected)));
            for_each_device(|device| {
                let (x, out) = (device.buffer_from(&inputs)?, device.buffer_from(&vec![<$out>::default(); inputs.len()])?);
                let stream = device.stream()?;
                stream.launch(&program::load(device)?, LaunchConfig::new(1, inputs.len() as u32), (&x, &out))?;
                assert_eq!(format!("{:?}", out.to_vec()?), format!("{expected:?}"));
                Ok(())
            });
        }
    )*};
}

const FLOATS: [f32; 9] = [0.0, -0.0, 1.5, -2.5, 3e9, -3e9, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

fn pairs<T: Copy>(all: &[T]) -> Vec<[T; 2]> {
    all.iter().flat_map(|&a| all.iter().map(move |&b| [a, b])).collect()
}

alike! {
    casts_to_signed: f32 => i32, pairs(&FLOATS), |a, b| (a as i32).wrapping_add((b as i32).wrapping_mul(3));
    casts_to_small: f32 => u32, pairs(&FLOATS), |a, b| (a as u8) as u32 * 1000 + (b as i8) as u8 as u32;
    casts_to_wide: f32 => u64, pairs(&FLOATS), |a, b| (a as u64).wrapping_sub(b as i64 as u64);
    the_lesser_and_the_greater: f32 => u32, pairs(&FLOATS), |a, b| {
        // Which zero is the lesser is not said.
        let (low, high) = (a.min(b) + 0.0, a.max(b) + 0.0);
        if low.is_nan() { 1 } else { low.to_bits().wrapping_mul(31).wrapping_add(high.to_bits()) }
    };
    shifts_that_wrap: u32 => u32, pairs(&[0, 1, 31, 32, 33, 64, u32::MAX]), |a, b| {
        a.wrapping_shl(b) ^ a.wrapping_shr(b) ^ a.checked_shl(b).unwrap_or(7) ^ a.rotate_left(b)
    };
    divisions_that_wrap: i32 => i32, pairs(&[1, -1, 7, i32::MIN, i32::MAX]), |a, b| {
        a.wrapping_div(b).wrapping_add(a.wrapping_rem(b)) ^ a.checked_div(b).unwrap_or(9) ^ a.div_euclid(if b == -1 { 2 } else { b })
    };
    divisions_by_zero_that_are_tested: i32 => i32, pairs(&[0, 1, -1, i32::MIN]), |a, b| {
        a.checked_div(b).unwrap_or(1) + a.checked_rem(b).unwrap_or(2)
    };
    truth_as_a_number: u32 => u32, pairs(&[0, 1, 2]), |a, b| {
        ((a < b) as u32) + 2 * ((a == b) as u8 as u32) + 4 * u32::from(a > b)
    };
    sums_that_wrap_in_few_bits: u8 => u32, pairs(&[0, 1, 127, 128, 255]), |a, b| {
        a.wrapping_add(b) as u32 + 1000 * ((a as i8).wrapping_sub(b as i8) as u8 as u32)
    };
}

macro_rules! failing {
    ($($name:ident($a:expr, $b:expr) says $says:expr, |$x:ident, $y:ident| $body:expr;)*) => {$(
        #[test]
        fn $name() {
            #[kernel]
            fn attack($x: i32, $y: i32, out: Out<i32>) {
                if let Some((_, out)) = out.mine() {
                    *out = $body;
                }
            }
            fails(
                |device, stream| {
                    let out = device.buffer_from(&[0i32])?;
                    stream.launch(&attack::load(device)?, LaunchConfig::one(), ($a, $b, &out))
                },
                $says,
            );
        }
    )*};
}

failing! {
    a_division_by_zero(5, 0) says "divide by zero", |x, y| x / y;
    a_remainder_by_zero(5, 0) says "divisor of zero", |x, y| x % y;
    a_division_that_overflows(i32::MIN, -1) says "overflow", |x, y| x / y;
    a_remainder_that_overflows(i32::MIN, -1) says "overflow", |x, y| x % y;
    a_panic_inside_an_expression(1, 2) says "inside", |x, y| x + if y == 2 { panic!("inside") } else { 1 };
    a_panic_inside_an_index(1, 2) says "inside", |x, y| [1, 2, 3][if x < y { panic!("inside") } else { 0 }];
}
