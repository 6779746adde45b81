//! Powers.

use gridloom_macros::device;

use super::double::{exp_m1_near_zero, exponent_and_mantissa, scaled};
use super::reduction::two_sum;
use super::select_f64;

/// Returns a product and what rounding lost of it.
#[device]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// Returns the logarithm of a positive number in two parts, together as good as 66 bits.
#[device]
fn ln_twice(x: f64) -> (f64, f64) {
    let (n, m) = exponent_and_mantissa(x);
    // ln m = 2 artanh(s), with s = (m - 1)/(m + 1).
    let f = m - 1.0;
    let t = m + 1.0;
    let t_low = m - (t - 1.0);
    let s = f / t;
    let s_low = ((-s).mul_add(t, f) - s * t_low) / t;
    let (z, z_low) = two_product(s, s);
    let z_low = (2.0 * s).mul_add(s_low, z_low);
    let p = 5.384_823_743_690_403_4e-2f64
        .mul_add(z, 5.227_764_020_128_866_7e-2)
        .mul_add(z, 5.883_424_442_783_862e-2)
        .mul_add(z, 6.666_647_852_697_478e-2)
        .mul_add(z, 7.692_307_885_876_093e-2)
        .mul_add(z, 9.090_909_089_792_047e-2)
        .mul_add(z, 0.111_111_111_111_143_37)
        .mul_add(z, 0.142_857_142_857_142_82)
        .mul_add(z, 0.2);
    let (c, c_low) = two_sum(0.333_333_333_333_333_3, z * p);
    let c_low = c_low + 1.850_371_707_708_594e-17;
    // s³ (1/3 + …), then all of it twice.
    let (cube, cube_low) = two_product(s, z);
    let cube_low = cube_low + s.mul_add(z_low, s_low * z);
    let (rest, rest_low) = two_product(cube, c);
    let rest_low = rest_low + cube.mul_add(c_low, cube_low * c);
    let (log, log_low) = two_sum(s, rest);
    let log_low = log_low + (s_low + rest_low);
    let (ln2, ln2_low) = two_product(n, std::f64::consts::LN_2);
    let ln2_low = n.mul_add(2.319_046_813_846_299_6e-17, ln2_low);
    let (sum, low) = two_sum(ln2, 2.0 * log);
    let low = low + (ln2_low + 2.0 * log_low);
    let high = sum + low;
    (high, low - (high - sum))
}

/// Gives a power its sign, and its value where the numbers are not ordinary. `size` is the power of
/// the absolute value.
#[device]
pub(crate) fn with_special_cases(x: f64, y: f64, size: f64) -> f64 {
    let (base, exponent) = (x.abs(), y.abs());
    let is_whole = exponent.trunc() == exponent;
    // Whole numbers from 2^53 on are even.
    let is_odd = is_whole && exponent < 9_007_199_254_740_992.0 && (exponent as u64) & 1 == 1;
    let is_large = (base > 1.0) == (y > 0.0);
    let mut value = size;
    if base == 0.0 || base == f64::INFINITY || exponent == f64::INFINITY {
        value = if is_large { f64::INFINITY } else { 0.0 };
    }
    if base == 1.0 && exponent == f64::INFINITY {
        value = 1.0;
    }
    if x.is_sign_negative() && is_odd {
        value = -value;
    }
    if x < 0.0 && !is_whole && base < f64::INFINITY {
        value = f64::NAN;
    }
    value = select_f64(x.is_nan() || y.is_nan(), f64::NAN, value);
    select_f64(x == 1.0 || y == 0.0, 1.0, value)
}

/// `x.powf(y)`.
#[device]
pub fn powf(x: f64, y: f64) -> f64 {
    let (log, log_low) = ln_twice(x.abs());
    // Past these bounds the result is zero or infinite, and the product of the low parts would not
    // be a number.
    let y_near = y.max(-1.0e300).min(1.0e300);
    let rough = (log * y_near).max(-800.0).min(800.0);
    let is_in_range = rough.abs() < 800.0;
    let (high, low) = two_product(log, y_near);
    let low = log_low.mul_add(y_near, low);
    let (high, low) = (select_f64(is_in_range, high, rough), select_f64(is_in_range, low, 0.0));
    let n = (high * std::f64::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-0.693_147_180_485_539_1, high);
    let (r, r_low) = two_sum(r, n.mul_add(-7.440_617_110_012_397e-11, low));
    let p = exp_m1_near_zero(r);
    let e = p + r_low.mul_add(p, r_low) + 1.0;
    with_special_cases(x, y, scaled(e, n as i32))
}

/// `x.powi(n)`.
#[device]
pub fn powi(x: f64, n: i32) -> f64 {
    let (mut base, mut left, mut result) = (x, n.unsigned_abs(), 1.0f64);
    loop {
        if left & 1 == 1 {
            result *= base;
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        base *= base;
    }
    if n < 0 { 1.0 / result } else { result }
}
