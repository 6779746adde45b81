use proptest::prelude::*;
use rustc_apfloat::{Float as _, FloatConvert};

use super::*;
use crate::numeric::format::Word;
use crate::numeric::integer::Integer;
use crate::numeric::oracle::{Checked, ROUNDINGS, bits, edges, number, operand, round, rounding, value};
use crate::numeric::{Bf16, Clamp, F16, F32, F64, Float, Rounding};

const RN: Finish =
    Finish { rounding: Rounding::NearestEven, ftz: false, clamp: Clamp::None, satfinite: false };

#[test]
fn integers_are_extended_cut_off_or_saturated() {
    assert_eq!(integer_to_integer::<i8, u64>(-1, false), u64::MAX);
    assert_eq!(integer_to_integer::<u8, i64>(0xff, false), 255);
    assert_eq!(integer_to_integer::<i32, u8>(-1, false), 0xff);
    assert_eq!(integer_to_integer::<i64, i32>(0x1_8000_0000, false), i32::MIN);
    assert_eq!(integer_to_integer::<i32, u8>(-1, true), 0);
    assert_eq!(integer_to_integer::<i32, i8>(200, true), 127);
    assert_eq!(integer_to_integer::<i64, u32>(-5, true), 0);
    assert_eq!(integer_to_integer::<u64, i64>(u64::MAX, true), i64::MAX);
    assert_eq!(integer_to_integer::<i64, u64>(i64::MIN, true), 0);
}

#[test]
fn pack_puts_b_lowest_then_a_then_c() {
    assert_eq!(pack_sat(PackType::U16, 70_000, -1, 0), 0xffff_0000);
    assert_eq!(pack_sat(PackType::S16, -70_000, 5, 0), 0x8000_0005);
    assert_eq!(pack_sat(PackType::U8, 300, -5, 0x1234_5678), 0x5678_ff00);
    assert_eq!(pack_sat(PackType::S8, -300, 300, 0x1234_5678), 0x5678_807f);
    assert_eq!(pack_sat(PackType::U4, 20, 3, 0x1234_5678), 0x3456_78f3);
    assert_eq!(pack_sat(PackType::S4, -20, -1, 0x1234_5678), 0x3456_788f);
    assert_eq!(pack_sat(PackType::U2, 9, 1, 0xf), 0xfd);
    assert_eq!(pack_sat(PackType::S2, -9, 9, 0xf), 0xf9);
}

/// Returns the oracle's conversion to an integer, brought into range.
fn to_integer_by_oracle<F: Checked, D: Integer>(a: F::Bits, rounding: Rounding) -> i128 {
    let value = value::<F>(a).round_to_integral(round(rounding)).value;
    let (min, max) = (D::MIN.to_i128(), D::MAX.to_i128());
    if value.is_infinite() {
        return if value.is_negative() { min } else { max };
    }
    // A hundred bits hold every value that is still in any range; past them the oracle saturates by
    // itself.
    value.to_i128(100).value.clamp(min, max)
}

fn check_to_integer<F: Checked, D: Integer>(a: F::Bits) {
    for rounding in ROUNDINGS {
        let result = float_to_integer::<F, D>(a, rounding, false);
        if bits::<F>(a).is_some() {
            assert_eq!(result.to_i128(), to_integer_by_oracle::<F, D>(a, rounding), "{a:x?} {rounding:?}");
        }
    }
}

#[test]
fn every_f16_and_bf16_converts_to_every_integer_type() {
    for a in 0..=u16::MAX {
        check_to_integer::<F16, i8>(a);
        check_to_integer::<F16, u16>(a);
        check_to_integer::<F16, i32>(a);
        check_to_integer::<F16, u64>(a);
        check_to_integer::<Bf16, u8>(a);
        check_to_integer::<Bf16, i16>(a);
        check_to_integer::<Bf16, u32>(a);
        check_to_integer::<Bf16, i64>(a);
    }
}

/// Numbers in and around the range of every integer type.
fn near_integers<F: Float>() -> impl Strategy<Value = F::Bits> {
    let scaled = (any::<u64>(), 0_u64..70).prop_map(|(bits, exponent)| {
        let fraction = bits & (F::SIGN | (F::MIN_NORMAL - 1));
        F::Bits::truncate(fraction | (F::ONE - F::MIN_NORMAL + exponent * F::MIN_NORMAL))
    });
    prop_oneof![scaled, operand::<F>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn f32_and_f64_convert_to_integers_as_the_oracle_does(a in near_integers::<F32>(), b in near_integers::<F64>()) {
        check_to_integer::<F32, u8>(a);
        check_to_integer::<F32, i32>(a);
        check_to_integer::<F32, u32>(a);
        check_to_integer::<F32, i64>(a);
        check_to_integer::<F32, u64>(a);
        check_to_integer::<F64, i16>(b);
        check_to_integer::<F64, i32>(b);
        check_to_integer::<F64, u32>(b);
        check_to_integer::<F64, i64>(b);
        check_to_integer::<F64, u64>(b);
    }

    #[test]
    fn integers_convert_to_every_format_as_the_oracle_does(a: i64, shift in 0_u32..64, r in rounding()) {
        let a = a >> shift;
        check_from_integer::<F16>(a, r);
        check_from_integer::<Bf16>(a, r);
        check_from_integer::<F32>(a, r);
        check_from_integer::<F64>(a, r);
    }

    #[test]
    fn f64_narrows_as_the_oracle_does(a in operand::<F64>(), b in near_integers::<F64>(), r in rounding()) {
        for a in [a, b] {
            check_float::<F64, F32>(a, r);
            check_float::<F64, F16>(a, r);
            check_float::<F64, Bf16>(a, r);
        }
    }

    #[test]
    fn f32_narrows_as_the_oracle_does(a in operand::<F32>(), b in near_integers::<F32>(), r in rounding()) {
        for a in [a, b] {
            check_float::<F32, F16>(a, r);
            check_float::<F32, Bf16>(a, r);
            check_float::<F32, F64>(a, r);
        }
    }

    #[test]
    fn rounding_to_an_integral_value_is_the_oracles(a in near_integers::<F32>(), b in near_integers::<F64>(), r in rounding()) {
        let expected = number::<F32>(value::<F32>(a).round_to_integral(round(r)).value);
        prop_assert_eq!(bits::<F32>(round_to_integral::<F32>(a, r, false, Clamp::None)), expected);
        let expected = number::<F64>(value::<F64>(b).round_to_integral(round(r)).value);
        prop_assert_eq!(bits::<F64>(round_to_integral::<F64>(b, r, false, Clamp::None)), expected);
    }

    #[test]
    fn tf32_is_an_f32_rounded_to_eleven_bits(a in operand::<F32>()) {
        prop_assume!(!F32::is_nan(a.into()));
        // On the bits of the magnitude a carry runs into the exponent, and out of it into infinity,
        // by itself.
        let (sign, magnitude) = (a & 0x8000_0000, a & 0x7fff_ffff);
        for (r, carry) in [
            (Rounding::NearestEven, 0xfff + (magnitude >> 13 & 1)),
            (Rounding::NearestAway, 0x1000),
            (Rounding::Zero, 0),
        ] {
            let rounded = if magnitude < 0x7f80_0000 { (magnitude + carry) & 0xffff_e000 } else { magnitude };
            prop_assert_eq!(to_tf32(a, r, false, false), sign | rounded, "{:?}", r);
            prop_assert_eq!(to_tf32(a, r, false, true), sign | rounded.min(0x7f7f_e000), "{:?}", r);
        }
    }
}

fn check_from_integer<F: Checked>(a: i64, r: Rounding) {
    let signed = F::Oracle::from_i128_r(a.into(), round(r)).value;
    assert_eq!(bits::<F>(integer_to_float::<i64, F>(a, r, Clamp::None)), number::<F>(signed), "{a} {r:?}");
    let unsigned = F::Oracle::from_u128_r((a as u64).into(), round(r)).value;
    assert_eq!(
        bits::<F>(integer_to_float::<u64, F>(a as u64, r, Clamp::None)),
        number::<F>(unsigned),
        "{a} {r:?}"
    );
}

fn check_float<S: Checked, D: Checked>(a: S::Bits, rounding: Rounding)
where
    S::Oracle: FloatConvert<D::Oracle>,
{
    let expected: D::Oracle = value::<S>(a).convert_r(round(rounding), &mut false).value;
    let result = float_to_float::<S, D>(a, Finish { rounding, ..RN });
    assert_eq!(bits::<D>(result), number::<D>(expected), "{a:x?} {rounding:?}");
}

#[test]
fn every_f16_and_bf16_converts_to_every_other_format() {
    for a in 0..=u16::MAX {
        check_float::<F16, F32>(a, Rounding::NearestEven);
        check_float::<F16, F64>(a, Rounding::NearestEven);
        check_float::<Bf16, F32>(a, Rounding::NearestEven);
        check_float::<Bf16, F64>(a, Rounding::NearestEven);
        for rounding in ROUNDINGS {
            check_float::<F16, Bf16>(a, rounding);
            check_float::<Bf16, F16>(a, rounding);
        }
    }
}

#[test]
fn every_f16_and_bf16_rounds_to_an_integral_value() {
    for a in 0..=u16::MAX {
        for r in ROUNDINGS {
            let half = number::<F16>(value::<F16>(a).round_to_integral(round(r)).value);
            assert_eq!(bits::<F16>(round_to_integral::<F16>(a, r, false, Clamp::None)), half, "{a:#x} {r:?}");
            let bfloat = number::<Bf16>(value::<Bf16>(a).round_to_integral(round(r)).value);
            let result = bits::<Bf16>(round_to_integral::<Bf16>(a, r, false, Clamp::None));
            assert_eq!(result, bfloat, "{a:#x} {r:?}");
        }
    }
}

#[test]
fn nan_becomes_integer_zero_unless_a_side_has_64_bits() {
    for nan in [0x7fff_ffff, 0xff80_0001] {
        assert_eq!(float_to_integer::<F32, i32>(nan, Rounding::Zero, false), 0);
        assert_eq!(float_to_integer::<F32, u8>(nan, Rounding::Zero, false), 0);
        assert_eq!(float_to_integer::<F32, i64>(nan, Rounding::Zero, false), i64::MIN);
        assert_eq!(float_to_integer::<F32, u64>(nan, Rounding::Zero, false), 1 << 63);
    }
    let nan = 0xfff8 << 48;
    assert_eq!(float_to_integer::<F64, i32>(nan, Rounding::Zero, false), i32::MIN);
    assert_eq!(float_to_integer::<F64, u32>(nan, Rounding::Zero, false), 1 << 31);
    assert_eq!(float_to_integer::<F64, i16>(nan, Rounding::Zero, false), i16::MIN);
    assert_eq!(float_to_integer::<F16, i16>(0x7e00, Rounding::Zero, false), 0);
    assert_eq!(float_to_integer::<Bf16, u64>(0x7fc0, Rounding::Zero, false), 1 << 63);
}

#[test]
fn ftz_flushes_before_an_integer_is_rounded_up() {
    assert_eq!(float_to_integer::<F32, i32>(1, Rounding::Up, false), 1);
    assert_eq!(float_to_integer::<F32, i32>(1, Rounding::Up, true), 0);
    assert_eq!(round_to_integral::<F32>(1, Rounding::Up, true, Clamp::None), 0);
    assert_eq!(round_to_integral::<F32>(0x8000_0001, Rounding::Down, true, Clamp::None), 0x8000_0000);
    // Only f32 is ever flushed.
    assert_eq!(float_to_integer::<F16, i32>(1, Rounding::Up, true), 1);
}

#[test]
fn integral_zero_keeps_the_sign() {
    assert_eq!(round_to_integral::<F32>(0xbe80_0000, Rounding::NearestEven, false, Clamp::None), 0x8000_0000);
    assert_eq!(round_to_integral::<F32>(0xbe80_0000, Rounding::Up, false, Clamp::None), 0x8000_0000);
    assert_eq!(round_to_integral::<F32>(0xbe80_0000, Rounding::Up, false, Clamp::Saturate), 0);
}

#[test]
fn nan_keeps_sign_and_payload_between_f64_and_other_formats() {
    assert_eq!(float_to_float::<F32, F64>(0xff80_0001, RN), 0xfff8_0000_2000_0000);
    assert_eq!(float_to_float::<F16, F64>(0x7c01, RN), 0x7ff8_0400_0000_0000);
    assert_eq!(float_to_float::<F64, F32>(0xfff0_0000_0000_0001, RN), 0xffc0_0000);
    assert_eq!(float_to_float::<F64, F16>(0x7ff6_7aef_ab31_7225, RN), 0x7f9e);
    assert_eq!(float_to_float::<F64, Bf16>(u64::MAX, RN), 0xffff);
    let ftz = Finish { ftz: true, ..RN };
    assert_eq!(float_to_float::<F32, F64>(0xffc0_0005, ftz), 0x7fff_ffff_e000_0000);
}

#[test]
fn nan_becomes_canonical_between_the_other_formats() {
    assert_eq!(float_to_float::<F16, F32>(0xfc01, RN), 0x7fff_ffff);
    assert_eq!(float_to_float::<F32, F16>(0xffc0_0000, RN), 0x7fff);
    assert_eq!(float_to_float::<F32, Bf16>(0xffc0_0000, RN), 0x7fff);
    assert_eq!(float_to_float::<Bf16, F16>(0xffc1, RN), 0x7fff);
}

#[test]
fn conversions_that_only_move_bits_keep_a_nan() {
    assert_eq!(float_to_float::<F32, F32>(0xff80_0001, RN), 0xff80_0001);
    assert_eq!(float_to_float::<Bf16, F32>(0xff81, RN), 0xff81_0000);
    let ftz = Finish { ftz: true, ..RN };
    assert_eq!(float_to_float::<F32, F32>(0xff80_0001, ftz), 0x7fff_ffff);
    assert_eq!(float_to_float::<Bf16, F32>(0xff81, ftz), 0x7fff_ffff);
}

#[test]
fn ftz_flushes_f32_on_either_side() {
    let ftz = Finish { ftz: true, ..RN };
    assert_eq!(float_to_float::<F32, F64>(0x8000_0001, ftz), 1 << 63);
    assert_eq!(float_to_float::<F64, F32>(0x3800_0000_0000_0000, ftz), 0);
    assert_eq!(float_to_float::<F64, F32>(0x380f_ffff_e000_0000, ftz), 0);
    assert_eq!(float_to_float::<F64, F32>(0x380f_ffff_f000_0000, ftz), 0x0080_0000);
    assert_eq!(float_to_float::<Bf16, F32>(0x8001, ftz), 0x8000_0000);
    // An f16 subnormal is a normal f32.
    assert_eq!(float_to_float::<F16, F32>(1, ftz), 0x3380_0000);
}

#[test]
fn saturation_clamps_after_rounding() {
    let sat = Finish { clamp: Clamp::Saturate, ..RN };
    assert_eq!(float_to_float::<F32, F16>(0x4000_0000, sat), 0x3c00);
    assert_eq!(float_to_float::<F32, F32>(0x8000_0000, sat), 0);
    assert_eq!(float_to_float::<F64, F32>(0xfff8_0000_0000_0001, sat), 0);
    assert_eq!(integer_to_float::<i32, F32>(-3, Rounding::NearestEven, Clamp::Saturate), 0);
    assert_eq!(integer_to_float::<i32, F16>(3, Rounding::NearestEven, Clamp::Saturate), 0x3c00);
}

#[test]
fn satfinite_stops_at_the_largest_number_and_keeps_nan() {
    let satfinite = Finish { satfinite: true, ..RN };
    assert_eq!(float_to_float::<F32, F16>(0x7f80_0000, satfinite), 0x7bff);
    assert_eq!(float_to_float::<F32, F16>(0xc77f_ffff, satfinite), 0xfbff);
    assert_eq!(float_to_float::<F32, Bf16>(0xff80_0000, satfinite), 0xff7f);
    assert_eq!(float_to_float::<F32, Bf16>(0x7fc0_0001, satfinite), 0x7fff);
    assert_eq!(to_tf32(0x7f7f_ffff, Rounding::NearestEven, false, true), 0x7f7f_e000);
}

#[test]
fn packed_conversion_puts_its_first_operand_in_the_upper_half() {
    let relu = Finish { clamp: Clamp::Relu, ..RN };
    assert_eq!(pair_to_packed::<F16>(0x3f80_0000, 0xc000_0000, RN), 0x3c00_c000);
    assert_eq!(pair_to_packed::<Bf16>(0xbf80_0000, 0x4000_0000, relu), 0x0000_4000);
}

#[test]
fn tf32_makes_its_own_nan() {
    for rounding in [Rounding::NearestEven, Rounding::Zero] {
        assert_eq!(to_tf32(0xffc0_0005, rounding, false, false), 0x7fff_e000);
    }
    assert_eq!(to_tf32(0xffc0_3005, Rounding::NearestAway, false, false), 0xffc0_2000);
    assert_eq!(to_tf32(0xbf80_0000, Rounding::NearestEven, true, false), 0);
}

/// Every value of a format by arithmetic, where no more than eight bits make that easy: `None` is
/// NaN, infinity is itself.
fn narrow_value(format: Narrow, bits: u8) -> Option<f64> {
    let (exponent_bits, fraction_bits) = match format {
        Narrow::E4M3 => (4, 3),
        Narrow::E5M2 => (5, 2),
        Narrow::E2M3 => (2, 3),
        Narrow::E3M2 => (3, 2),
        Narrow::E2M1 => (2, 1),
    };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
    let exponent = i32::from(bits >> fraction_bits & ((1 << exponent_bits) - 1));
    let sign = if bits >> (exponent_bits + fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
    match (format, exponent) {
        (Narrow::E4M3, 15) if fraction == 0.875 => None,
        (Narrow::E5M2, 31) if fraction == 0.0 => Some(sign * f64::INFINITY),
        (Narrow::E5M2, 31) => None,
        (_, 0) => Some(sign * fraction * 2_f64.powi(1 - bias)),
        _ => Some(sign * (1.0 + fraction) * 2_f64.powi(exponent - bias)),
    }
}

const NARROW: [(Narrow, u32); 5] =
    [(Narrow::E4M3, 8), (Narrow::E5M2, 8), (Narrow::E2M3, 6), (Narrow::E3M2, 6), (Narrow::E2M1, 4)];

#[test]
fn every_narrow_value_widens_to_f16_exactly() {
    for (format, width) in NARROW {
        for bits in 0..=(u8::MAX >> (8 - width)) {
            let half = narrow_to_f16(format, bits, false);
            match narrow_value(format, bits) {
                None => assert_eq!(half, 0x7fff, "{format:?} {bits:#x}"),
                Some(value) => {
                    let widened = F16::to_f64(half.into());
                    assert_eq!(widened.to_bits(), value.to_bits(), "{format:?} {bits:#x}");
                }
            }
        }
    }
}

#[test]
fn every_f16_narrows_to_the_nearest_value() {
    for (format, width) in NARROW {
        let positive: Vec<(u8, f64)> = (0..=(u8::MAX >> (9 - width)))
            .filter_map(|bits| Some((bits, narrow_value(format, bits)?)))
            .filter(|(_, value)| value.is_finite())
            .collect();
        for half in 0..0x7c00_u16 {
            let exact = F16::to_f64(half.into());
            // The nearest, and of two equally near the one with an even last bit.
            let nearest = positive.iter().min_by(|(a, x), (b, y)| {
                (x - exact).abs().total_cmp(&(y - exact).abs()).then((a & 1).cmp(&(b & 1)))
            });
            let &(bits, _) = nearest.expect("a format has values");
            assert_eq!(narrow_from::<F16>(format, half, false), bits, "{format:?} {half:#x}");
            let sign = 1 << (width - 1);
            assert_eq!(
                narrow_from::<F16>(format, half | 0x8000, false),
                bits | sign,
                "{format:?} −{half:#x}"
            );
        }
    }
}

#[test]
fn narrowing_saturates_infinity_and_maps_nan() {
    for (format, max, nan) in [
        (Narrow::E4M3, 0x7e, 0x7f),
        (Narrow::E5M2, 0x7b, 0x7f),
        (Narrow::E2M3, 0x1f, 0x1f),
        (Narrow::E3M2, 0x1f, 0x1f),
        (Narrow::E2M1, 0x07, 0x07),
    ] {
        assert_eq!(narrow_from::<F32>(format, 0x7f80_0000, false), max, "{format:?}");
        assert_eq!(narrow_from::<F32>(format, 0x7f7f_ffff, false), max, "{format:?}");
        assert_eq!(narrow_from::<F32>(format, 0xffc0_0000, false), nan, "{format:?}");
        assert_eq!(narrow_from::<F32>(format, 0xff80_0000, true), 0, "{format:?}");
        assert_eq!(narrow_from::<F32>(format, 0xffc0_0000, true), nan, "{format:?}");
    }
}

#[test]
fn narrow_pairs_hold_their_first_operand_above_the_second() {
    let (one, minus_two) = (0x3f80_0000, 0xc000_0000);
    assert_eq!(narrow_pair(Narrow::E4M3, one, minus_two, false), 0x38c0);
    assert_eq!(narrow_pair(Narrow::E5M2, minus_two, one, true), 0x003c);
    assert_eq!(narrow_pair(Narrow::E2M1, one, minus_two, false), 0x2c);
    assert_eq!(narrow_packed_f16(Narrow::E5M2, 0x3c00_c000, false), 0x3cc0);
    assert_eq!(widen_packed(Narrow::E4M3, 0x38c0, false), 0x3c00_c000);
    assert_eq!(widen_packed(Narrow::E4M3, 0x38c0, true), 0x3c00_0000);
    assert_eq!(widen_packed(Narrow::E2M1, 0x2c, false), 0x3c00_c000);
}

#[test]
fn f32_narrows_once_and_not_through_f16() {
    // 1.0625 + 2^-20 is above the tie between 1 and 1.125; an f16 in between would round to the
    // tie, and that to 1.
    assert_eq!(narrow_from::<F32>(Narrow::E4M3, 0x3f88_0008, false), 0x39);
    assert_eq!(narrow_from::<F32>(Narrow::E4M3, 0x3f88_0000, false), 0x38);
}

#[test]
fn powers_of_two_in_ue8m0() {
    for (a, down, up) in [
        (0x3f80_0000, 127, 127),
        (0x3f80_0001, 127, 128),
        (0xbf80_0001, 127, 128),
        (0, 0, 0),
        (1, 0, 0),
        (0x0040_0001, 0, 1),
        (0x7f7f_ffff, 254, 254),
        (0x7f80_0000, 254, 254),
        (0x7fc0_0000, 255, 255),
    ] {
        assert_eq!((f32_to_ue8m0(a, false, true), f32_to_ue8m0(a, true, true)), (down, up), "{a:#x}");
    }
    assert_eq!(bf16_to_ue8m0(0x4040, true, true), 129);
    assert_eq!((ue8m0_to_bf16(127), ue8m0_to_bf16(0), ue8m0_to_bf16(255)), (0x3f80, 0x0040, 0x7fff));
}

#[test]
fn every_edge_value_converts_in_every_direction() {
    for a in edges::<F64>() {
        for r in ROUNDINGS {
            check_float::<F64, F32>(a, r);
            check_float::<F64, F16>(a, r);
            check_float::<F64, Bf16>(a, r);
        }
    }
    for a in edges::<F32>() {
        for r in ROUNDINGS {
            check_float::<F32, F16>(a, r);
            check_float::<F32, Bf16>(a, r);
        }
    }
}
