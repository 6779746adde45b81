//! Elementary functions: devices give the bits that `gridloom::math` gives on the host, and the
//! methods of the standard library are near.

use gridloom::math::FastMath;
use gridloom::prelude::*;
use gridloom::{Out, host, kernel, math};

use crate::harness::*;
use crate::support::{for_each_device, is_cpu};

macro_rules! all_functions {
    ($kernel:ident, $t:ty, $module:ident, $numbers:expr, $bound:expr) => {
        mod $kernel {
            use super::*;
            #[kernel]
            fn program(x: &[$t], out: Out<[$t; 30]>) {
                if let Some((i, out)) = out.mine() {
                    let x = x[i];
                    let (s, c) = x.sin_cos();
                    *out = [
                        x.sin(),
                        x.cos(),
                        x.tan(),
                        x.asin(),
                        x.acos(),
                        x.atan(),
                        x.sinh(),
                        x.cosh(),
                        x.tanh(),
                        x.asinh(),
                        x.acosh(),
                        x.atanh(),
                        x.exp(),
                        x.exp2(),
                        x.exp_m1(),
                        x.ln(),
                        x.log2(),
                        x.log10(),
                        x.ln_1p(),
                        x.cbrt(),
                        s,
                        c,
                        x.powf(2.5),
                        x.powi(-3),
                        x.atan2(0.7),
                        x.hypot(3.0),
                        x % 0.7,
                        x.rem_euclid(0.7),
                        x.to_degrees(),
                        x.to_radians(),
                    ];
                }
            }

            #[test]
            fn equal_on_all_devices() {
                use math::$module as m;
                let numbers = $numbers;
                let mut methods = vec![[0.0; 30]; numbers.len()];
                host::run(1, numbers.len() as u32, || program(&numbers, Out::new(&mut methods)));
                let expected: Vec<[$t; 30]> = numbers
                    .iter()
                    .map(|&x| {
                        let (s, c) = m::sin_cos(x);
                        [
                            m::sin(x),
                            m::cos(x),
                            m::tan(x),
                            m::asin(x),
                            m::acos(x),
                            m::atan(x),
                            m::sinh(x),
                            m::cosh(x),
                            m::tanh(x),
                            m::asinh(x),
                            m::acosh(x),
                            m::atanh(x),
                            m::exp(x),
                            m::exp2(x),
                            m::exp_m1(x),
                            m::ln(x),
                            m::log2(x),
                            m::log10(x),
                            m::ln_1p(x),
                            m::cbrt(x),
                            s,
                            c,
                            m::powf(x, 2.5),
                            m::powi(x, -3),
                            m::atan2(x, 0.7),
                            m::hypot(x, 3.0),
                            x % 0.7,
                            x.rem_euclid(0.7),
                            x.to_degrees(),
                            x.to_radians(),
                        ]
                    })
                    .collect();
                for_each_device(|device| {
                    let (x, out) = (
                        device.buffer_from(&numbers)?,
                        device.buffer_from(&vec![[0.0 as $t; 30]; numbers.len()])?,
                    );
                    let stream = device.stream()?;
                    let kernel = program::load(device)?;
                    stream.launch(&kernel, LaunchConfig::new(1, numbers.len() as u32), (&x, &out))?;
                    for (index, found) in out.to_vec()?.iter().enumerate() {
                        for (function, (found, (expected, method))) in
                            found.iter().zip(expected[index].iter().zip(&methods[index])).enumerate()
                        {
                            let at = format!("function {function} of {:e}", numbers[index]);
                            // GPUs have an instruction for powers, whose bits are their own.
                            let is_power = size_of::<$t>() == 4 && (12..14).contains(&function);
                            if !is_power || is_cpu(device) {
                                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{at}");
                            }
                            let is_same = found == method || found.is_nan() && method.is_nan();
                            let distance = (found - method).abs() / method.abs().max(<$t>::MIN_POSITIVE);
                            assert!(is_same || distance <= $bound, "{at}: {found:e}, method {method:e}");
                        }
                    }
                    Ok(())
                });
            }
        }
    };
}
all_functions!(functions_of_single_precision, f32, single, single_numbers(), 4.0 * f32::EPSILON);
all_functions!(functions_of_double_precision, f64, double, double_numbers(), 6.0 * f64::EPSILON);

/// The methods of the standard library overflow where the numbers are too large for their formulas.
fn single_numbers() -> Vec<f32> {
    let more = [0.3, -0.7, 0.999, 3.0, -12.5, 40.0, 100_000.0, 48_001.0, 1.0e30, 88.6, -103.5];
    F32S.into_iter().filter(|x| x.abs() < 1e37 || x.is_nan()).chain(more).collect()
}

fn double_numbers() -> Vec<f64> {
    let more = [0.3, -0.7, 0.999, 3.0, -12.5, 40.0, 100_000.0, 1.0e7, 1.0e200, 709.5, -745.0];
    F64S.into_iter().filter(|x| x.abs() < 1e300 || x.is_nan()).chain(more).collect()
}

/// What a GPU runs, run by the interpreter and by compiled code, whose `ex2.approx` is as near as
/// that of a GPU.
#[test]
fn powers_of_gpus_are_near() {
    use gridloom::__kernel as k;
    let recorded = k::record_anew(false, k::Target::Gpu, "powers", &|| {
        let _frame = k::enter("elementary.rs", "powers", false);
        let x = k::param::<&[f32]>();
        let out = k::param::<Out<[f32; 2]>>();
        let end = k::block_begin();
        let mine = out.mine();
        k::leave_unless(end, k::get(&mine.__some));
        let x = k::get(&x.__at(mine.__value.0, 0, "x"));
        k::assign(&mine.__value.1.__place, k::array([x.exp(), x.exp2()]));
        k::block_end(end);
    })
    .expect("it can be recorded");
    assert!(recorded.ptx.contains("ex2.approx"));
    let steps = (-160_000..140_000).step_by(37).map(|step| step as f32 * 1e-3);
    let numbers: Vec<f32> = steps.chain(F32S).collect();
    for_each_device(|device| {
        let (x, out) = (device.buffer_from(&numbers)?, device.alloc::<[f32; 2]>(numbers.len())?);
        // SAFETY: the kernel checks its indices against the lengths, which are those of the memory.
        let kernel: Kernel<(Ptr<f32>, u64, PtrMut<[f32; 2]>, u64)> =
            unsafe { device.load_ptx(&recorded.ptx)?.kernel("powers")? };
        let stream = device.stream()?;
        let len = numbers.len() as u64;
        // SAFETY: as above.
        unsafe {
            stream.launch_unchecked(&kernel, LaunchConfig::linear(numbers.len()), (&x, len, &out, len))?;
        }
        for (&x, found) in numbers.iter().zip(out.to_vec()?) {
            for (found, exact) in found.into_iter().zip([f64::from(x).exp(), f64::from(x).exp2()]) {
                let nearest = exact as f32;
                let ulp = f64::from(nearest.abs().max(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON);
                let is_same = found == nearest || found.is_nan() && nearest.is_nan();
                let is_near = is_same || (f64::from(found) - exact).abs() <= 2.0 * ulp;
                assert!(is_near, "of {x:e}: {found:e}, exactly {exact:e}");
            }
        }
        Ok(())
    });
}

#[test]
fn fast_functions_are_near() {
    #[kernel]
    fn fast(x: &[f32], out: Out<[f32; 14]>) {
        if let Some((i, out)) = out.mine() {
            let x = x[i];
            *out = [
                x.fast_sin(),
                x.fast_cos(),
                x.fast_tan(),
                x.fast_exp(),
                x.fast_exp2(),
                x.fast_ln(),
                x.fast_log2(),
                x.fast_log10(),
                x.fast_powf(1.7),
                x.fast_tanh(),
                x.fast_sqrt(),
                x.fast_rsqrt(),
                x.fast_recip(),
                x.fast_div(3.0),
            ];
        }
    }
    let numbers = [0.1f32, 0.5, 1.0, 1.4, 2.0, 3.0, 6.0];
    let mut expected = vec![[0.0f32; 14]; numbers.len()];
    host::run(1, 8, || fast(&numbers, Out::new(&mut expected)));
    for_each_device(|device| {
        let (x, out) =
            (device.buffer_from(&numbers)?, device.buffer_from(&vec![[0.0f32; 14]; numbers.len()])?);
        let stream = device.stream()?;
        stream.launch(&fast::load(device)?, LaunchConfig::new(1, 8), (&x, &out))?;
        for (index, (found, expected)) in out.to_vec()?.iter().zip(&expected).enumerate() {
            for (function, (found, expected)) in found.iter().zip(expected).enumerate() {
                // Tangents near a quarter turn magnify the error of the cosine.
                let bound = if function == 2 { 1e-4 } else { 4e-6 };
                let near = (found - expected).abs() <= bound * expected.abs().max(1.0);
                assert!(near, "function {function} of {}: {found:e}, exactly {expected:e}", numbers[index]);
            }
        }
        Ok(())
    });
}

programs! {
    float_remainders(x: f32) -> f32, F32S, { x % 0.3 }
    float_remainders_of_the_element(x: f32) -> f32, F32S, { -1.0e20 % x }
    double_remainders(x: f64) -> f64, F64S, { x % -7.25 }
    double_remainders_of_the_element(x: f64) -> f64, F64S, { 1.0e300 % x }
    float_remainder_assigned(x: f32) -> f32, F32S, { let mut y = x; y %= 2.5; y }
    euclid_of_floats(x: f32) -> f32, F32S, { x.rem_euclid(2.5) + x.div_euclid(-2.5) }
    whole_powers(x: f32) -> f32, F32S, { x.powi(7) + x.powi(-2) }
    degrees(x: f64) -> f64, F64S, { x.to_degrees() }
    radians(x: f32) -> f32, F32S, { x.to_radians() }

    checked_quotients(x: i32) -> i32, I32S, { i32::MIN.checked_div(x).unwrap_or(7) }
    checked_quotients_unsigned(x: u8) -> u8, U8S, { 200u8.checked_div(x).unwrap_or(7) }
    checked_remainders(x: i8) -> i8, I8S, { i8::MIN.checked_rem(x).unwrap_or(7) }
    wrapping_quotients(x: i8) -> i8, [1i8, -1, 2, -128, 127], { i8::MIN.wrapping_div(x).wrapping_add(i8::MIN.wrapping_rem(x)) }
    checked_negations(x: i16) -> i16, I16S, { x.checked_neg().unwrap_or(7) }
    checked_negations_unsigned(x: u16) -> u16, U16S, { x.checked_neg().unwrap_or(7) }
    checked_absolutes(x: i8) -> i8, I8S, { x.checked_abs().unwrap_or(7) }
    saturating_absolutes(x: i64) -> i64, I64S, { x.saturating_abs().wrapping_add(x.saturating_neg()) }
    checked_shifts(x: u32) -> u32, U32S, { 3u32.checked_shl(x).unwrap_or(7) ^ 0x8000_0000u32.checked_shr(x).unwrap_or(9) }
    checked_powers(x: i32) -> i32, I32S, { x.checked_pow(3).unwrap_or(7) }
    wrapping_powers(x: u8) -> u8, U8S, { x.wrapping_pow(5) }
    saturating_powers(x: i16) -> i16, I16S, { x.saturating_pow(3) }
    overflowing_negations(x: i8) -> i8, I8S, { let (y, lost) = x.overflowing_neg(); if lost { 5 } else { y } }
    ones_in_front(x: i16) -> u32, I16S, { x.leading_ones() * 100 + x.trailing_ones() }
    ones_in_front_unsigned(x: u64) -> u32, U64S, { x.leading_ones() * 100 + x.trailing_ones() }
    swapped_bytes(x: u32) -> u32, U32S, { x.swap_bytes() }
    swapped_bytes_signed(x: i16) -> i16, I16S, { x.swap_bytes() }
    swapped_bytes_wide(x: i64) -> i64, I64S, { x.swap_bytes() }
    integer_logarithms(x: u32) -> u32, [1u32, 2, 3, 255, 256, u32::MAX], { x.ilog2() }
    integer_logarithms_checked(x: i16) -> u32, I16S, { x.checked_ilog2().unwrap_or(99) }
    integer_roots(x: u32) -> u32, U32S, { x.isqrt() }
    integer_roots_signed(x: i64) -> i64, [0i64, 1, 2, 3, 4, 99, 1 << 40, i64::MAX], { x.isqrt() }
    integer_roots_of_bytes(x: u8) -> u8, U8S, { x.isqrt() }
    next_multiples(x: u32) -> u32, [0u32, 1, 6, 7, 8, 100], { x.next_multiple_of(7) }
    next_powers(x: u8) -> u8, [0u8, 1, 2, 3, 4, 5, 63, 64, 65, 128], { x.next_power_of_two() }
    multiples(x: u32) -> u8, U32S, { x.is_multiple_of(31) as u8 + 2 * x.is_multiple_of(0) as u8 }
}
