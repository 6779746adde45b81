//! Arithmetic, comparisons, casts and the methods of numbers.

use crate::harness::*;

programs! {
    addition(x: i32) -> i32, SMALL, { x + 3 }
    subtraction(x: i32) -> i32, SMALL, { 10 - x }
    multiplication(x: i32) -> i32, SMALL, { x * -7 }
    division(x: i32) -> i32, I32S, { x / 7 }
    division_by_the_element(x: i32) -> i32, [1, -1, 2, -3, 1000], { 1000 / x }
    remainder(x: i32) -> i32, I32S, { x % 7 }
    remainder_of_negatives(x: i64) -> i64, I64S, { x % -5 }
    negation(x: i32) -> i32, SMALL, { -x }
    complement(x: u8) -> u8, U8S, { !x }
    complement_signed(x: i16) -> i16, I16S, { !x }
    bit_operations(x: u32) -> u32, U32S, { (x & 0xff00) | (x ^ 0x0f0f) }
    shifts_left(x: u32) -> u32, COUNTS, { 1 << x }
    shifts_right_unsigned(x: u32) -> u32, COUNTS, { 0x8000_0000 >> x }
    shifts_right_signed(x: u32) -> i32, COUNTS, { i32::MIN >> x }
    shifts_of_bytes(x: u8) -> u8, U8S, { x << 3 >> 1 }
    shifts_by_other_types(x: u64) -> u64, U64S, { x >> 7u8 }
    precedence(x: i32) -> i32, SMALL, { 2 + 3 * x - (4 - x) * 2 }
    wrapping_sums(x: i32) -> i32, I32S, { x.wrapping_add(0x7000_0000).wrapping_sub(5) }
    wrapping_products(x: u64) -> u64, U64S, { x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) }
    wrapping_bytes(x: u8) -> u8, U8S, { x.wrapping_mul(3).wrapping_add(200) }
    wrapping_signed_bytes(x: i8) -> i8, I8S, { x.wrapping_mul(3).wrapping_sub(100) }
    wrapping_negation(x: i16) -> i16, I16S, { x.wrapping_neg() }
    wrapping_shifts(x: u32) -> u32, U32S, { x.wrapping_shl(x).wrapping_shr(3) }
    checked_sums(x: i32) -> i32, I32S, { x.checked_add(i32::MAX - 1000).unwrap_or(-5) }
    checked_differences(x: u32) -> u32, U32S, { match x.checked_sub(32) { Some(y) => y, None => 77 } }
    checked_products(x: i64) -> i64, I64S, { x.checked_mul(-3).unwrap_or(9) }
    checked_products_unsigned(x: u64) -> u64, U64S, { x.checked_mul(5).unwrap_or(9) }
    checked_narrow(x: i8) -> i8, I8S, { x.checked_mul(x).unwrap_or(x) }
    checked_narrow_unsigned(x: u16) -> u16, U16S, { x.checked_mul(x).unwrap_or(x) }
    overflowing(x: u8) -> u8, U8S, { let (y, lost) = x.overflowing_add(100); if lost { 1 } else { y } }
    saturating_sums(x: i32) -> i32, I32S, { x.saturating_add(0x7fff_0000).saturating_sub(3) }
    saturating_differences(x: u8) -> u8, U8S, { x.saturating_sub(100) }
    saturating_products(x: i64) -> i64, I64S, { x.saturating_mul(-1000) }
    saturating_bytes(x: i8) -> i8, I8S, { x.saturating_mul(5) }
    absolute(x: i32) -> i32, SMALL, { x.abs() }
    unsigned_absolute(x: i8) -> u8, I8S, { x.unsigned_abs() }
    distance(x: i32) -> u32, I32S, { x.abs_diff(1000) }
    signs(x: i64) -> i64, I64S, { x.signum() }
    smaller(x: i32) -> i32, I32S, { x.min(7) }
    larger(x: u8) -> u8, U8S, { x.max(100) }
    clamped(x: i32) -> i32, I32S, { x.clamp(-10, 10) }
    powers(x: i32) -> i32, SMALL, { x.pow(3) }
    powers_unsigned(x: u64) -> u64, [0, 1, 2, 3, 10], { x.pow(9) }
    bits_set(x: u32) -> u32, U32S, { x.count_ones() }
    bits_set_in_bytes(x: i8) -> u32, I8S, { x.count_ones() * 100 + x.count_zeros() }
    zeros_in_front(x: u32) -> u32, U32S, { x.leading_zeros() }
    zeros_in_front_narrow(x: i16) -> u32, I16S, { x.leading_zeros() }
    zeros_in_front_wide(x: u64) -> u32, U64S, { x.leading_zeros() }
    zeros_behind(x: u64) -> u32, U64S, { x.trailing_zeros() }
    zeros_behind_narrow(x: u8) -> u32, U8S, { x.trailing_zeros() }
    reversed_bits(x: u16) -> u16, U16S, { x.reverse_bits() }
    rotation(x: u32) -> u32, U32S, { x.rotate_left(13) ^ x.rotate_right(7) }
    rotation_of_bytes(x: i8) -> i8, I8S, { x.rotate_left(3) }
    rotation_by_any(x: u64) -> u64, U64S, { x.rotate_left((x % 64) as u32) }
    is_power(x: u32) -> u8, U32S, { x.is_power_of_two() as u8 }
    euclid(x: i32) -> i32, [7, -7, 8, -8, 0, 1], { x.rem_euclid(3) * 100 + x.div_euclid(3) }
    euclid_negative(x: i32) -> i32, [7, -7, 8, -8, 0, 1], { x.rem_euclid(-3) * 100 + x.div_euclid(-3) }
    quotient_rounded_up(x: u32) -> u32, U32S, { x.div_ceil(7) }

    float_sums(x: f32) -> f32, F32S, { x + 0.1 }
    float_products_are_not_fused(x: f32) -> f32, F32S, { x * 1.1 + 0.7 }
    float_quotients(x: f32) -> f32, F32S, { 1.0 / x - x / 3.0 }
    float_negation(x: f32) -> f32, F32S, { -x }
    double_arithmetic(x: f64) -> f64, F64S, { (x * 1.1 - 0.3) / 7.0 }
    fused(x: f32) -> f32, F32S, { x.mul_add(1.1, 0.7) }
    fused_double(x: f64) -> f64, F64S, { x.mul_add(x, -1.0) }
    roots(x: f32) -> f32, F32S, { x.sqrt() }
    double_roots(x: f64) -> f64, F64S, { x.sqrt() }
    absolutes(x: f32) -> f32, F32S, { x.abs() }
    floors(x: f32) -> f32, F32S, { x.floor() }
    ceilings(x: f64) -> f64, F64S, { x.ceil() }
    truncations(x: f32) -> f32, F32S, { x.trunc() }
    roundings(x: f32) -> f32, F32S, { x.round() }
    double_roundings(x: f64) -> f64, F64S, { x.round() }
    roundings_to_even(x: f32) -> f32, F32S, { x.round_ties_even() }
    fractions(x: f32) -> f32, F32S, { x.fract() }
    minima(x: f32) -> f32, [1.0, -1.0, 2.0, f32::NAN, f32::INFINITY], { x.min(1.5) }
    maxima(x: f64) -> f64, [1.0, -1.0, 2.0, f64::NAN, f64::INFINITY], { x.max(1.5) }
    float_clamp(x: f32) -> f32, F32S, { x.clamp(-2.0, 100.0) }
    reciprocals(x: f32) -> f32, F32S, { x.recip() }
    float_signs(x: f32) -> f32, F32S, { x.signum() }
    copied_signs(x: f32) -> f32, F32S, { 3.5f32.copysign(x) }
    bits_of_floats(x: f32) -> u32, F32S, { if x.is_nan() { 0 } else { x.to_bits() } }
    floats_of_bits(x: u32) -> f32, U32S, { f32::from_bits(x >> 1) }
    doubles_of_bits(x: u64) -> f64, U64S, { f64::from_bits(x >> 2) }
    classes(x: f32) -> u32, F32S, {
        x.is_nan() as u32 + 2 * (x.is_finite() as u32) + 4 * (x.is_infinite() as u32) + 8 * (x.is_sign_negative() && !x.is_nan()) as u32
    }

    comparisons(x: i32) -> u32, I32S, {
        (x < 7) as u32 + 2 * (x <= 7) as u32 + 4 * (x > 7) as u32 + 8 * (x >= 7) as u32 + 16 * (x == 7) as u32 + 32 * (x != 7) as u32
    }
    unsigned_comparisons(x: u64) -> u8, U64S, { (x > 1 << 62) as u8 }
    float_comparisons(x: f32) -> u32, F32S, {
        (x < 0.5) as u32 + 2 * (x <= 0.5) as u32 + 4 * (x > 0.5) as u32 + 8 * (x >= 0.5) as u32 + 16 * (x == 0.5) as u32 + 32 * (x != 0.5) as u32
    }
    a_number_equals_itself_unless_it_is_nan(x: f64) -> u8, F64S, { let y = x; (x == y) as u8 }

    i32_to_others(x: i32) -> i64, I32S, { x as i8 as i64 + x as u8 as i64 * 3 + x as i16 as i64 * 5 + x as u16 as i64 * 7 + (x as u32 as i64) * 11 }
    i8_to_others(x: i8) -> i64, I8S, { x as u8 as i64 + x as u16 as i64 * 3 + x as u32 as i64 * 5 + x as i32 as i64 * 7 }
    u8_to_others(x: u8) -> i64, U8S, { x as i8 as i64 + x as i16 as i64 * 3 + x as u64 as i64 * 5 }
    i64_to_others(x: i64) -> i32, I64S, { (x as i32) ^ (x as u8 as i32) ^ (x as i16 as i32) }
    u64_to_signed(x: u64) -> i64, U64S, { x as i64 }
    usize_to_others(x: u64) -> u32, U64S, { (x as usize) as u32 }
    integers_to_floats(x: i32) -> f32, I32S, { x as f32 }
    large_integers_to_floats(x: u64) -> f32, U64S, { x as f32 }
    large_integers_to_doubles(x: i64) -> f64, I64S, { x as f64 }
    floats_to_i32(x: f32) -> i32, F32S, { x as i32 }
    floats_to_u32(x: f32) -> u32, F32S, { x as u32 }
    floats_to_u8(x: f32) -> u8, F32S, { x as u8 }
    floats_to_i8(x: f32) -> i8, F32S, { x as i8 }
    floats_to_i16(x: f32) -> i16, F32S, { x as i16 }
    floats_to_u16(x: f32) -> u16, F32S, { x as u16 }
    floats_to_i64(x: f32) -> i64, F32S, { x as i64 }
    floats_to_u64(x: f32) -> u64, F32S, { x as u64 }
    doubles_to_i32(x: f64) -> i32, F64S, { x as i32 }
    doubles_to_u32(x: f64) -> u32, F64S, { x as u32 }
    doubles_to_u8(x: f64) -> u8, F64S, { x as u8 }
    doubles_to_i64(x: f64) -> i64, F64S, { x as i64 }
    doubles_to_u64(x: f64) -> u64, F64S, { x as u64 }
    doubles_to_floats(x: f64) -> f32, F64S, { x as f32 }
    floats_to_doubles(x: f32) -> f64, F32S, { x as f64 * 1.1 }
    bools_to_integers(x: i32) -> u64, I32S, { (x > 0) as u64 + (x < 0) as u8 as u64 * 10 }
    conversions_without_loss(x: u8) -> i64, U8S, { i64::from(x) + i64::from(u32::from(x)) }
    inferred_literals(x: u64) -> u64, U64S, { let mut sum = 0; sum += x >> 60; let one = 1; sum + one }
    inferred_floats(x: f64) -> f64, F64S, { let mut sum = 0.5; sum += x; sum }
    constants(x: f32) -> f32, F32S, { x * std::f32::consts::PI + f32::EPSILON }
    limits(x: i32) -> i32, I32S, { if x == i32::MIN { i32::MAX } else { -1 } }
    hexadecimal_and_suffixed_literals(x: u32) -> u32, U32S, { x ^ 0xdead_beef ^ 0b1010_u32 ^ 0o17 }
    negative_literals(x: i8) -> i8, I8S, { if x == -128 { -128 } else { -127 } }
}

#[test]
fn half_precision_computes_as_the_library_does() {
    use half::{bf16, f16};

    #[gridloom::kernel]
    fn halves(x: &[f16], out: gridloom::Out<f16>) {
        if let Some((i, out)) = out.mine() {
            let y = x[i];
            *out = (y * f16::from_f32(1.1) + y) / f16::from_f32(3.0) - f16::from_f32(y.to_f32());
        }
    }
    #[gridloom::kernel]
    fn brains(x: &[bf16], out: gridloom::Out<bf16>) {
        if let Some((i, out)) = out.mine() {
            let y = x[i];
            *out = if y < bf16::from_f32(2.0) { -(y * y) } else { y / bf16::from_f32(3.0) };
        }
    }
    let numbers = [0.0, -0.0, 1.0, 0.1, -2.5, 1000.0, 6.0e-8, 65504.0, f32::INFINITY, 3.1];
    same("halves", |x, out| halves(x, out), halves::load, &numbers.map(f16::from_f32));
    same("brains", |x, out| brains(x, out), brains::load, &numbers.map(bf16::from_f32));
}
