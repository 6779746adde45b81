//! Argument reduction of `sin`, `cos` and `tan` to the eighth of a turn around zero.

use gridloom_macros::device;

use super::mul_hi;

/// The first 1,344 bits of 2/π, behind a word of zeros.
const TWO_OVER_PI: [u64; 22] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
    0xa9e3_9161_5ee6_1b08,
];

/// π/2, in three parts.
const HALF_PI: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// Returns the sum of two numbers and what rounding lost of it.
#[device]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Returns 64 bits of a number of 192 bits from a bit on.
#[device]
fn word_at(bit: u32) -> u64 {
    let (index, shift) = (((bit >> 6) as usize).min(20), bit & 63);
    // SAFETY: the indices are at most 20 and 21.
    let (high, low) = unsafe { (*TWO_OVER_PI.get_unchecked(index), *TWO_OVER_PI.get_unchecked(index + 1)) };
    high.wrapping_shl(shift) | (low >> 1).wrapping_shr(63 - shift)
}

/// Returns the quarter turns nearest to a number of at least 2^10, modulo 4, and what is left, in
/// two parts.
///
/// The number is M·2^e with a whole number M of 53 bits. Bits of 2/π that make multiples of 4 with
/// it do not count. The 192 bits after them, times M, are the number of quarter turns modulo 4,
/// with 190 bits after the point.
#[device]
pub(crate) fn reduce_large(x: f64) -> (i32, f64, f64) {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as u32;
    let mantissa = (bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000;
    // Bit 64 of the table has the weight 1/2. The first that counts has the weight 2^(1-e).
    let first = exponent.wrapping_sub(1075 - 62);
    let (w0, w1, w2) = (word_at(first), word_at(first.wrapping_add(64)), word_at(first.wrapping_add(128)));
    let p2 = mantissa.wrapping_mul(w2);
    let carried = mul_hi(mantissa, w2);
    let low = mantissa.wrapping_mul(w1);
    let p1 = low.wrapping_add(carried);
    let carry = (p1 < carried) as u64;
    let p0 = mantissa.wrapping_mul(w0).wrapping_add(mul_hi(mantissa, w1)).wrapping_add(carry);

    // The fraction as a signed number: to the nearest quarter turn.
    let mut quarter = (p0 >> 62) as i32;
    let (mut f0, mut f1) = ((p0 << 2) | (p1 >> 62), (p1 << 2) | (p2 >> 62));
    let is_above = (f0 >> 63) != 0;
    if is_above {
        quarter += 1;
        f1 = f1.wrapping_neg();
        f0 = (!f0).wrapping_add((f1 == 0) as u64);
    }
    let zeros = f0.leading_zeros().min(63);
    let (h0, h1) = (f0.wrapping_shl(zeros) | (f1 >> 1).wrapping_shr(63 - zeros), f1.wrapping_shl(zeros));
    let scale = f64::from_bits(((1023u32 - 64).wrapping_sub(zeros) as u64) << 52);
    let high = (h0 >> 11) as f64 * 2048.0 * scale;
    let low = (((h0 << 53) | (h1 >> 11)) as f64) * scale * 5.421_010_862_427_522e-20;

    let product = high * HALF_PI[0];
    let rest = high.mul_add(HALF_PI[0], -product) + high.mul_add(HALF_PI[1], low * HALF_PI[0]);
    let sum = product + rest;
    let left = rest - (sum - product);
    let is_negative = (x < 0.0) != is_above;
    let quarter = if x < 0.0 { -quarter } else { quarter };
    if is_negative { (quarter, -sum, -left) } else { (quarter, sum, left) }
}

/// Returns the quarter turns nearest to a number, and what is left, in two parts.
#[device]
pub(crate) fn reduce(x: f64) -> (i32, f64, f64) {
    let size = x.abs();
    if size <= std::f64::consts::FRAC_PI_4 {
        (0, x, 0.0)
    } else if size < 1_000_000.0 {
        let turns = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
        // Exact: all is a multiple of the last bit of π/2, and small.
        let first = turns.mul_add(-HALF_PI[0], x);
        let product = turns * HALF_PI[1];
        let lost = turns.mul_add(HALF_PI[1], -product);
        let (sum, left) = two_sum(first, -product);
        let left = turns.mul_add(-HALF_PI[2], left - lost);
        let high = sum + left;
        (turns as i32, high, left - (high - sum))
    } else {
        reduce_large(x)
    }
}
