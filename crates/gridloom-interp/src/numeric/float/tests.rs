use proptest::prelude::*;
use rustc_apfloat::{Float as _, FloatConvert as _, Round, ieee};

use super::*;
use crate::numeric::oracle::{Checked, bits, edges, number, operand, round, rounding, value};
use crate::numeric::{Bf16, F16, F32, F64};

fn mode(rounding: Rounding) -> Mode {
    Mode::RN.rounding(rounding)
}

const FTZ: Mode = Mode::RN.ftz(true);
const SAT: Mode = Mode::RN.clamp(Clamp::Saturate);
const RELU: Mode = Mode::RN.clamp(Clamp::Relu);

/// Returns whether `root` is the square root of `a` rounded in this direction: its square and its
/// neighbours' lie on the right sides.
///
/// Squares of every format fit the oracle's quadruple precision exactly.
fn is_root<F: Checked>(a: F::Bits, root: F::Bits, rounding: Rounding) -> bool
where
    F::Oracle: rustc_apfloat::FloatConvert<ieee::Quad>,
{
    let quad = |value: F::Oracle| value.convert(&mut false).value;
    let (a, root) = (quad(value::<F>(a)), value::<F>(root));
    let square = |value: ieee::Quad| (value * value).value;
    let half = ieee::Quad::from_bits(0x3ffe << 112);
    let below = quad(root.next_down().value);
    let (exact, above) = (quad(root), quad(root.next_up().value));
    let middle = |x: ieee::Quad, y: ieee::Quad| ((x + y).value * half).value;
    match rounding {
        Rounding::Up => square(exact) >= a && (exact.is_zero() || square(below) < a),
        Rounding::Down | Rounding::Zero => square(exact) <= a && square(above) > a,
        // No square root lies halfway between two numbers of the same format.
        _ => square(middle(exact, above)) > a && (exact.is_zero() || square(middle(below, exact)) < a),
    }
}

macro_rules! against_the_oracle {
    ($($format:ident $name:ident),*) => {$(
        mod $name {
            use super::*;
            type F = $format;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(4000))]

                #[test]
                fn sums_and_products_are_rounded_once(a in operand::<F>(), b in operand::<F>(), r in rounding()) {
                    let (x, y) = (value::<F>(a), value::<F>(b));
                    prop_assert_eq!(bits::<F>(add::<F>(a, b, mode(r))), number::<F>(x.add_r(y, round(r)).value));
                    prop_assert_eq!(bits::<F>(sub::<F>(a, b, mode(r))), number::<F>(x.sub_r(y, round(r)).value));
                    prop_assert_eq!(bits::<F>(mul::<F>(a, b, mode(r))), number::<F>(x.mul_r(y, round(r)).value));
                }

                #[test]
                fn quotients_are_rounded_once(a in operand::<F>(), b in operand::<F>(), r in rounding()) {
                    let (x, y) = (value::<F>(a), value::<F>(b));
                    prop_assert_eq!(bits::<F>(div::<F>(a, b, mode(r))), number::<F>(x.div_r(y, round(r)).value));
                    let one = value::<F>(<F as Float>::Bits::truncate(F::ONE));
                    prop_assert_eq!(bits::<F>(rcp::<F>(b, mode(r))), number::<F>(one.div_r(y, round(r)).value));
                }

                #[test]
                fn fused_multiply_add_is_rounded_once(
                    a in operand::<F>(), b in operand::<F>(), c in operand::<F>(), r in rounding()
                ) {
                    let expected = value::<F>(a).mul_add_r(value::<F>(b), value::<F>(c), round(r)).value;
                    prop_assert_eq!(bits::<F>(fma::<F>(a, b, c, mode(r))), number::<F>(expected));
                }

                #[test]
                fn square_roots_are_rounded_once(a in operand::<F>(), r in rounding()) {
                    let a = <F as Float>::Bits::truncate(u64::from(a) & F::MAGNITUDE);
                    let root = sqrt::<F>(a, mode(r));
                    prop_assume!(u64::from(a) < F::INFINITY);
                    prop_assert!(is_root::<F>(a, root, r), "{:x?} -> {:x?}", a, root);
                }
            }
        }
    )*};
}

against_the_oracle!(F16 f16, Bf16 bf16, F32 f32, F64 f64);

#[test]
fn fused_multiply_add_of_bf16_sees_an_addend_far_below_a_tie() {
    let (plus, minus) = (0x0080, 0x8080); // ±2^-126
    // 1.5 × (1 + 2^-7) lies halfway between the first and second number after 1.5, and the second
    // is even.
    let upper_even = [0, plus, minus].map(|c| fma::<Bf16>(0x3fc0, 0x3f81, c, Mode::RN));
    assert_eq!(upper_even, [0x3fc2, 0x3fc2, 0x3fc1]);
    // 1.5 × (1 + 3 × 2^-7) lies halfway between the fourth and the fifth, and the fourth is even.
    let lower_even = [0, plus, minus].map(|c| fma::<Bf16>(0x3fc0, 0x3f83, c, Mode::RN));
    assert_eq!(lower_even, [0x3fc4, 0x3fc5, 0x3fc4]);
}

#[test]
fn cancellation_gives_plus_zero_except_when_rounding_down() {
    for r in crate::numeric::oracle::ROUNDINGS {
        let zero = if r == Rounding::Down { 0x8000_0000 } else { 0 };
        assert_eq!(sub::<F32>(0x3f80_0000, 0x3f80_0000, mode(r)), zero, "{r:?}");
        assert_eq!(add::<F32>(0, 0x8000_0000, mode(r)), zero, "{r:?}");
        assert_eq!(add::<F32>(0x8000_0000, 0x8000_0000, mode(r)), 0x8000_0000, "{r:?}");
        let fused = fma::<F64>(0x3ff0 << 48, 0x3ff0 << 48, 0xbff0 << 48, mode(r));
        assert_eq!(fused, u64::from(zero) << 32, "{r:?}");
    }
}

#[test]
fn overflow_goes_to_infinity_or_the_largest_number_as_the_direction_says() {
    let (max, inf, sign) = (0x7f7f_ffff, 0x7f80_0000, 0x8000_0000);
    for (r, up, down) in [
        (Rounding::NearestEven, inf, inf),
        (Rounding::Zero, max, max),
        (Rounding::Up, inf, max),
        (Rounding::Down, max, inf),
    ] {
        assert_eq!(mul::<F32>(max, 0x4000_0000, mode(r)), up, "{r:?}");
        assert_eq!(mul::<F32>(max | sign, 0x4000_0000, mode(r)), down | sign, "{r:?}");
    }
}

#[test]
fn narrow_formats_and_f32_produce_the_canonical_nan() {
    for nan in [0x7f80_0001, 0x7fc0_0005, 0xff80_0001, 0xffff_ffff] {
        assert_eq!(add::<F32>(nan, 0x3f80_0000, Mode::RN), 0x7fff_ffff);
        assert_eq!(mul::<F32>(0x3f80_0000, nan, mode(Rounding::Up)), 0x7fff_ffff);
        assert_eq!(fma::<F32>(0, 0, nan, Mode::RN), 0x7fff_ffff);
        assert_eq!((abs::<F32>(nan, false), neg::<F32>(nan, true)), (0x7fff_ffff, 0x7fff_ffff));
        assert_eq!(sqrt::<F32>(nan, Mode::RN), 0x7fff_ffff);
    }
    assert_eq!(sub::<F32>(0x7f80_0000, 0x7f80_0000, Mode::RN), 0x7fff_ffff);
    assert_eq!(mul::<F16>(0x7c00, 0x8000, Mode::RN), 0x7fff);
    assert_eq!(add::<Bf16>(0xff81, 0x3f80, Mode::RN), 0x7fff);
    assert_eq!((neg::<F16>(0x7e01, false), abs::<Bf16>(0xffc5, false)), (0x7fff, 0x7fff));
}

#[test]
fn f64_passes_the_nan_of_an_operand_on_made_quiet() {
    let (one, signalling, quiet) = (0x3ff0 << 48, 0xfff0_0000_0000_0001_u64, 0x7ff8_0000_0000_0005);
    let quieted = signalling | 1 << 51;
    assert_eq!(add::<F64>(signalling, one, Mode::RN), quieted);
    assert_eq!(sub::<F64>(one, signalling, mode(Rounding::Up)), quieted);
    assert_eq!((mul::<F64>(quiet, one, Mode::RN), sqrt::<F64>(quiet, Mode::RN)), (quiet, quiet));
    assert_eq!((abs::<F64>(signalling, false), neg::<F64>(quiet, false)), (quieted, quiet));
}

#[test]
fn f64_takes_the_second_operands_nan_before_the_first() {
    let nan = |payload: u64| 0x7ff8_0000_0000_0000 | payload;
    let one = 0x3ff0 << 48;
    assert_eq!(add::<F64>(nan(1), nan(2), Mode::RN), nan(2));
    assert_eq!(mul::<F64>(nan(1), nan(2), mode(Rounding::Zero)), nan(2));
    assert_eq!(div::<F64>(nan(1), nan(2), Mode::RN), nan(1));
    assert_eq!(fma::<F64>(nan(1), nan(2), nan(3), Mode::RN), nan(2));
    assert_eq!(fma::<F64>(nan(1), one, nan(3), Mode::RN), nan(3));
    assert_eq!(fma::<F64>(nan(1), nan(2), one, Mode::RN), nan(2));
}

#[test]
fn invalid_operations_in_f64_give_the_negative_default_nan() {
    let (inf, nan) = (0x7ff0_u64 << 48, 0xfff8_u64 << 48);
    assert_eq!(sub::<F64>(inf, inf, Mode::RN), nan);
    assert_eq!((mul::<F64>(inf, 0, Mode::RN), div::<F64>(0, 0, Mode::RN)), (nan, nan));
    assert_eq!(sqrt::<F64>(0xbff0 << 48, mode(Rounding::Zero)), nan);
}

#[test]
fn zero_divisors_give_infinity_of_the_quotients_sign() {
    for r in crate::numeric::oracle::ROUNDINGS {
        assert_eq!(div::<F32>(0xbf80_0000, 0, mode(r)), 0xff80_0000, "{r:?}");
        assert_eq!(rcp::<F32>(0x8000_0000, mode(r)), 0xff80_0000, "{r:?}");
        assert_eq!(rcp::<F64>(0xfff0 << 48, mode(r)), 1 << 63, "{r:?}");
    }
}

#[test]
fn square_root_of_minus_zero_is_minus_zero() {
    for r in crate::numeric::oracle::ROUNDINGS {
        assert_eq!((sqrt::<F32>(1 << 31, mode(r)), sqrt::<F64>(1 << 63, mode(r))), (1 << 31, 1 << 63));
        assert_eq!(sqrt::<F32>(0x7f80_0000, mode(r)), 0x7f80_0000);
        assert_eq!(sqrt::<F32>(0x8000_0001, mode(r)), 0x7fff_ffff);
    }
}

#[test]
fn subnormals_are_kept_without_ftz() {
    assert_eq!(add::<F32>(1, 1, Mode::RN), 2);
    assert_eq!(mul::<F32>(0x0080_0000, 0x3f00_0000, Mode::RN), 0x0040_0000);
    assert_eq!(mul::<F32>(1, 0x3f00_0000, mode(Rounding::Up)), 1);
    assert_eq!(fma::<F16>(1, 0x3c00, 1, Mode::RN), 2);
}

#[test]
fn ftz_flushes_operands_with_their_sign() {
    assert_eq!(add::<F32>(0x8000_0001, 0x807f_ffff, FTZ), 0x8000_0000);
    assert_eq!(mul::<F32>(0x007f_ffff, 0x7f00_0000, FTZ), 0);
    assert_eq!(div::<F32>(0x3f80_0000, 0x8000_0001, FTZ), 0xff80_0000);
    assert_eq!(sqrt::<F32>(0x8000_0001, FTZ), 0x8000_0000);
    assert_eq!((abs::<F32>(0x8000_0001, true), neg::<F32>(1, true)), (0, 0x8000_0000));
    assert_eq!(fma::<F16>(0x03ff, 0x7800, 0x8000, FTZ), 0);
}

#[test]
fn ftz_flushes_results_with_their_sign() {
    assert_eq!(mul::<F32>(0x8080_0000, 0x3f00_0000, FTZ), 0x8000_0000);
    assert_eq!(sub::<F32>(0x0080_0001, 0x0080_0000, FTZ), 0);
    assert_eq!(add::<F16>(0x8401, 0x0400, FTZ), 0x8000);
}

#[test]
fn ftz_flushes_what_only_a_subnormals_precision_would_round_to_normal() {
    // (1 − 2^-24) × 2^-126 needs no rounding with an unlimited exponent, and is below 2^-126.
    assert_eq!(mul::<F32>(0x3f7f_ffff, 0x0080_0000, Mode::RN), 0x0080_0000);
    assert_eq!(mul::<F32>(0x3f7f_ffff, 0x0080_0000, FTZ), 0);
    assert_eq!(fma::<F32>(0xbf7f_ffff, 0x0080_0000, 0x8000_0000, FTZ), 0x8000_0000);
    assert_eq!(div::<F32>(0x3f7f_ffff, 0x7e80_0000, FTZ), 0);
    assert_eq!(mul::<F16>(0x3bff, 0x0400, FTZ), 0);
    // (1 − 2^-23)(1 + 2^-23) × 2^-126 is closer: it rounds to 2^-126 even with an unlimited
    // exponent.
    assert_eq!(mul::<F32>(0x3f7f_fffe, 0x0080_0001, FTZ), 0x0080_0000);
    assert_eq!(mul::<F32>(0x3f7f_fffe, 0x0080_0001, FTZ.rounding(Rounding::Up)), 0x0080_0000);
    assert_eq!(mul::<F32>(0x3f7f_fffe, 0x0080_0001, FTZ.rounding(Rounding::Zero)), 0);
    assert_eq!(mul::<F16>(0x3bfe, 0x0401, FTZ), 0x0400);
}

#[test]
fn saturation_clamps_to_the_unit_interval_and_nan_to_zero() {
    let one = 0x3f80_0000;
    for (a, expected) in [
        (0x4000_0000, one),
        (0x7f80_0000, one),
        (0xbf80_0000, 0),
        (0xff80_0000, 0),
        (0x8000_0000, 0),
        (0x7fc0_0000, 0),
        (0xffff_ffff, 0),
        (0x3f00_0000, 0x3f00_0000),
        (1, 1),
    ] {
        assert_eq!(mul::<F32>(a, one, SAT), expected, "{a:#x}");
    }
    assert_eq!(add::<F16>(0x3c00, 0x3c00, SAT), 0x3c00);
    assert_eq!(fma::<F16>(0xbc00, 0x3c00, 0, SAT), 0);
}

#[test]
fn relu_clamps_negatives_to_zero_and_keeps_nan_canonical() {
    assert_eq!(fma::<F16>(0xbc00, 0x3c00, 0, RELU), 0);
    assert_eq!(fma::<F16>(0x8000, 0x3c00, 0x8000, RELU), 0);
    assert_eq!(fma::<F16>(0xfe01, 0x3c00, 0, RELU), 0x7fff);
    assert_eq!(fma::<Bf16>(0x4000, 0x4000, 0, RELU), 0x4080);
    assert_eq!(fma::<Bf16>(0xff80, 0x3f80, 0, RELU), 0);
}

#[test]
fn copysign_takes_the_sign_of_its_first_operand() {
    assert_eq!(copysign::<F32>(0x8000_0000, 0x3f80_0000), 0xbf80_0000);
    assert_eq!(copysign::<F32>(0, 0xffc0_0001), 0x7fc0_0001);
    assert_eq!(copysign::<F64>(1 << 63, 0x3ff0 << 48), 0xbff0 << 48);
}

#[test]
fn properties_divide_all_values_as_the_manual_says() {
    let classes = |a: u32| {
        use Property::{Finite, Infinite, Normal, NotANumber, Number, Subnormal};
        [Finite, Infinite, Number, NotANumber, Normal, Subnormal].map(|p| u8::from(testp::<F32>(p, a)))
    };
    for (a, expected) in [
        (0, [1, 0, 1, 0, 1, 0]),
        (0x8000_0000, [1, 0, 1, 0, 1, 0]),
        (1, [1, 0, 1, 0, 0, 1]),
        (0x807f_ffff, [1, 0, 1, 0, 0, 1]),
        (0x0080_0000, [1, 0, 1, 0, 1, 0]),
        (0xff7f_ffff, [1, 0, 1, 0, 1, 0]),
        (0xff80_0000, [0, 1, 1, 0, 0, 0]),
        (0x7f80_0001, [0, 0, 0, 1, 0, 0]),
    ] {
        assert_eq!(classes(a), expected, "{a:#x}");
    }
}

#[test]
fn every_edge_value_survives_every_operation_and_direction() {
    // The oracle's answer for each pair of edge values, in full.
    for a in edges::<F64>() {
        for b in edges::<F64>() {
            for r in crate::numeric::oracle::ROUNDINGS {
                let (x, y) = (value::<F64>(a), value::<F64>(b));
                let context = format!("{a:#x} {b:#x} {r:?}");
                let sum = x.add_r(y, round(r)).value;
                assert_eq!(bits::<F64>(add::<F64>(a, b, mode(r))), number::<F64>(sum), "{context}");
                let product = x.mul_r(y, round(r)).value;
                assert_eq!(bits::<F64>(mul::<F64>(a, b, mode(r))), number::<F64>(product), "{context}");
                let quotient = x.div_r(y, round(r)).value;
                assert_eq!(bits::<F64>(div::<F64>(a, b, mode(r))), number::<F64>(quotient), "{context}");
                let fused = x.mul_add_r(y, x, round(r)).value;
                assert_eq!(bits::<F64>(fma::<F64>(a, b, a, mode(r))), number::<F64>(fused), "{context}");
            }
        }
    }
}

#[test]
fn oracle_rounds_in_the_direction_asked() {
    // Guards the mapping of directions that every property above relies on.
    let one = ieee::Single::from_bits(0x3f80_0000);
    let tiny = ieee::Single::from_bits(1);
    assert_eq!(one.add_r(tiny, Round::TowardPositive).value.to_bits(), 0x3f80_0001);
    assert_eq!(round(Rounding::Up), Round::TowardPositive);
    assert_eq!(round(Rounding::Down), Round::TowardNegative);
}
