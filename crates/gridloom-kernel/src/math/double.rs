//! Functions of double precision.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, LOG10_E, PI};

use gridloom_macros::device;

pub use super::power::{powf, powi};
use super::reduction::reduce;
pub use super::remainder::rem_f64 as rem;
use super::select_f64;

/// ln 2, in two parts of which the first has zeros at its end.
const LN2: [f64; 2] = [0.693_147_180_485_539_1, 7.440_617_110_012_397e-11];

/// Returns a number of about 1 times a power of two, rounded once more where the result is
/// subnormal.
#[device]
pub(crate) fn scaled(x: f64, n: i32) -> f64 {
    let half = n >> 1;
    let (one, other) = (half.wrapping_add(1023), n.wrapping_sub(half).wrapping_add(1023));
    x * f64::from_bits((one as u64) << 52) * f64::from_bits((other as u64) << 52)
}

/// Returns e^r - 1 for r in the middle of zero, at most ln 2 / 2 away.
#[device]
pub(crate) fn exp_m1_near_zero(r: f64) -> f64 {
    let p = 2.091_467_958_547_083e-9f64
        .mul_add(r, 2.510_520_666_647_184e-8)
        .mul_add(r, 2.755_727_366_084_684e-7)
        .mul_add(r, 2.755_725_542_504_374_5e-6)
        .mul_add(r, 2.480_158_732_553_376e-5)
        .mul_add(r, 1.984_126_987_480_104_6e-4)
        .mul_add(r, 1.388_888_888_888_375_2e-3)
        .mul_add(r, 8.333_333_333_326_141e-3)
        .mul_add(r, 4.166_666_666_666_667e-2)
        .mul_add(r, 0.166_666_666_666_666_7)
        .mul_add(r, 0.5);
    (r * r).mul_add(p, r)
}

/// `x.exp()`.
#[device]
pub fn exp(x: f64) -> f64 {
    // Past these bounds the result is zero or infinite.
    let y = x.max(-746.0).min(710.0);
    let n = (y * LOG2_E).round_ties_even();
    let r = n.mul_add(-LN2[1], n.mul_add(-LN2[0], y));
    select_f64(x.is_nan(), x, scaled(exp_m1_near_zero(r) + 1.0, n as i32))
}

/// `x.exp2()`.
#[device]
pub fn exp2(x: f64) -> f64 {
    let y = x.max(-1080.0).min(1025.0);
    let n = y.round_ties_even();
    select_f64(x.is_nan(), x, scaled(exp_m1_near_zero((y - n) * LN_2) + 1.0, n as i32))
}

/// `x.exp_m1()`.
#[device]
pub fn exp_m1(x: f64) -> f64 {
    let y = x.max(-60.0).min(710.0);
    let n = (y * LOG2_E).round_ties_even();
    let r = n.mul_add(-LN2[1], n.mul_add(-LN2[0], y));
    let p = exp_m1_near_zero(r);
    // Where the power of two is large, the one that is taken away does not count.
    let power = f64::from_bits(((n as i32).min(1000).wrapping_add(1023) as u64) << 52);
    let middle = power.mul_add(p, power - 1.0);
    let value = select_f64(n > 60.0, scaled(p + 1.0, n as i32), middle);
    let value = select_f64(n == 0.0, exp_m1_near_zero(x), value);
    select_f64(x == 0.0 || x.is_nan(), x, value)
}

/// Returns the exponent of a positive number, and its mantissa between √½ and √2.
#[device]
pub(crate) fn exponent_and_mantissa(x: f64) -> (f64, f64) {
    let is_small = x < f64::MIN_POSITIVE;
    let y = select_f64(is_small, x * 18_014_398_509_481_984.0, x);
    let e = (y.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd) as i64) >> 52;
    let m = f64::from_bits(y.to_bits().wrapping_sub((e << 52) as u64));
    (e as f64 - select_f64(is_small, 54.0, 0.0), m)
}

/// Returns the part of a logarithm that comes after the first two terms: R in ln(1 + f) = f - f²/2
/// + s(f²/2 + R), with s = f/(2 + f).
#[device]
fn ln_rest(z: f64) -> f64 {
    z * 0.130_944_166_665_253_44f64
        .mul_add(z, 0.132_680_261_404_287_4)
        .mul_add(z, 0.153_862_676_728_822_26)
        .mul_add(z, 0.181_817_951_244_767_54)
        .mul_add(z, 0.222_222_223_965_529_82)
        .mul_add(z, 0.285_714_285_707_822_1)
        .mul_add(z, 0.400_000_000_000_009_1)
        .mul_add(z, 0.666_666_666_666_666_6)
}

/// Returns n·(a + b) + ln m·c, where `a` has zeros at its end.
#[device]
fn ln_with(n: f64, m: f64) -> f64 {
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let half = 0.5 * f * f;
    let rest = s * (half + ln_rest(s * s));
    n.mul_add(LN2[0], f - (half - n.mul_add(LN2[1], rest)))
}

/// Replaces a logarithm where it is not one of a finite positive number.
#[device]
fn ln_or_special(x: f64, log: f64) -> f64 {
    let below = select_f64(x == 0.0, f64::NEG_INFINITY, f64::NAN);
    let above = select_f64(x < f64::INFINITY, log, x);
    select_f64(x <= 0.0, below, above)
}

/// `x.ln()`.
#[device]
pub fn ln(x: f64) -> f64 {
    let (n, m) = exponent_and_mantissa(x);
    ln_or_special(x, ln_with(n, m))
}

/// `x.log2()`.
#[device]
pub fn log2(x: f64) -> f64 {
    let (n, m) = exponent_and_mantissa(x);
    let log = ln_with(0.0, m);
    ln_or_special(x, log.mul_add(LOG2_E, log.mul_add(2.035_527_374_093_103_3e-17, n)))
}

/// `x.log10()`.
#[device]
pub fn log10(x: f64) -> f64 {
    let (n, m) = exponent_and_mantissa(x);
    let log = ln_with(0.0, m);
    ln_or_special(x, n.mul_add(0.301_029_995_607_677_85, n.mul_add(5.630_334_806_675_098e-11, log * LOG10_E)))
}

/// `x.ln_1p()`.
#[device]
pub fn ln_1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    let lost = select_f64(x >= 1.0, 1.0 - (sum - x), x - (sum - 1.0));
    let log = ln(sum) + lost / sum;
    let log = select_f64(sum > 0.0 && sum < f64::INFINITY, log, ln(sum));
    select_f64(x.abs() < 1.0e-17, x, log)
}

#[device]
fn sine(x: f64, low: f64) -> f64 {
    let z = x * x;
    let p = (-7.586_636_882_825_159e-13f64)
        .mul_add(z, 1.605_853_059_664_595_3e-10)
        .mul_add(z, -2.505_210_622_599_44e-8)
        .mul_add(z, 2.755_731_921_932_058e-6)
        .mul_add(z, -1.984_126_984_126_504e-4)
        .mul_add(z, 8.333_333_333_333_331e-3);
    let cube = z * x;
    x - (z.mul_add(0.5 * low - cube * p, -low) - cube * -0.166_666_666_666_666_66)
}

#[device]
fn cosine(x: f64, low: f64) -> f64 {
    let z = x * x;
    let p = 4.745_838_412_531_023e-14f64
        .mul_add(z, -1.147_046_031_920_951_1e-11)
        .mul_add(z, 2.087_675_578_749_260_4e-9)
        .mul_add(z, -2.755_731_922_139_249e-7)
        .mul_add(z, 2.480_158_730_158_463_2e-5)
        .mul_add(z, -1.388_888_888_888_888_7e-3)
        .mul_add(z, 4.166_666_666_666_666_4e-2);
    let half = 0.5 * z;
    let first = 1.0 - half;
    first + (((1.0 - first) - half) + (z * z).mul_add(p, -(x * low)))
}

#[device]
fn of_quarter(quarter: i32, sine: f64, cosine: f64) -> f64 {
    let value = select_f64(quarter & 1 == 0, sine, cosine);
    select_f64(quarter & 2 == 0, value, -value)
}

/// `x.sin_cos()`.
#[device]
pub fn sin_cos(x: f64) -> (f64, f64) {
    let (quarter, high, low) = reduce(x);
    let (s, c) = (sine(high, low), cosine(high, low));
    let (s, c) = (of_quarter(quarter, s, c), of_quarter(quarter.wrapping_add(1), s, c));
    (select_f64(x.is_finite(), s, f64::NAN), select_f64(x.is_finite(), c, f64::NAN))
}

/// `x.sin()`.
#[device]
pub fn sin(x: f64) -> f64 {
    sin_cos(x).0
}

/// `x.cos()`.
#[device]
pub fn cos(x: f64) -> f64 {
    sin_cos(x).1
}

/// `x.tan()`.
#[device]
pub fn tan(x: f64) -> f64 {
    let (quarter, high, low) = reduce(x);
    let (s, c) = (sine(high, low), cosine(high, low));
    let is_odd = quarter & 1 == 1;
    let value = select_f64(is_odd, -c, s) / select_f64(is_odd, s, c);
    select_f64(x.is_finite(), value, f64::NAN)
}

/// `x.atan()`.
#[device]
pub fn atan(x: f64) -> f64 {
    // The angle is a known one and a small one.
    let size = x.abs();
    let (mut high, mut low, mut t) = (0.0, 0.0, size);
    if size >= 2.4375 {
        (high, low, t) = (FRAC_PI_2, 6.123_233_995_736_766e-17, -1.0 / size);
    } else if size >= 1.1875 {
        (high, low) = (0.982_793_723_247_329, 1.390_331_103_123_099_8e-17);
        t = (size - 1.5) / size.mul_add(1.5, 1.0);
    } else if size >= 0.6875 {
        (high, low, t) = (FRAC_PI_4, 3.061_616_997_868_383e-17, (size - 1.0) / (size + 1.0));
    } else if size >= 0.4375 {
        (high, low) = (0.463_647_609_000_806_1, 2.269_877_745_296_168_7e-17);
        t = (2.0 * size - 1.0) / (2.0 + size);
    }
    let z = t * t;
    let p = (-1.251_062_844_763_908_1e-2f64)
        .mul_add(z, 2.916_553_894_887_765e-2)
        .mul_add(z, -4.037_306_510_850_071e-2)
        .mul_add(z, 4.701_802_228_655_186e-2)
        .mul_add(z, -5.255_120_874_455_882e-2)
        .mul_add(z, 5.881_605_406_582_395e-2)
        .mul_add(z, -6.666_618_690_270_118e-2)
        .mul_add(z, 7.692_305_617_869_367e-2)
        .mul_add(z, -9.090_909_033_111_81e-2)
        .mul_add(z, 0.111_111_111_101_499_22)
        .mul_add(z, -0.142_857_142_857_059_6)
        .mul_add(z, 0.199_999_999_999_999_7)
        .mul_add(z, -0.333_333_333_333_333_3);
    (high + (t + (t * z).mul_add(p, low))).copysign(x)
}

/// `y.atan2(x)`.
#[device]
pub fn atan2(y: f64, x: f64) -> f64 {
    let (width, height) = (x.abs(), y.abs());
    let mut angle = atan(height / width);
    if height == 0.0 {
        angle = 0.0;
    } else if width == f64::INFINITY && height == f64::INFINITY {
        angle = FRAC_PI_4;
    }
    if x.is_sign_negative() {
        angle = PI - (angle - 1.224_646_799_147_353_2e-16);
    }
    select_f64(x.is_nan() || y.is_nan(), f64::NAN, angle.copysign(y))
}

/// `x.asin()`.
#[device]
pub fn asin(x: f64) -> f64 {
    atan(x / ((1.0 - x) * (1.0 + x)).sqrt())
}

/// `x.acos()`.
#[device]
pub fn acos(x: f64) -> f64 {
    2.0 * atan(((1.0 - x) / (1.0 + x)).sqrt())
}

/// `x.sinh()`.
#[device]
pub fn sinh(x: f64) -> f64 {
    let size = x.abs();
    let mut value;
    if size < 30.0 {
        let t = exp_m1(size);
        value = if size < 1.0 { 0.5 * (2.0 * t - t * t / (t + 1.0)) } else { 0.5 * (t + t / (t + 1.0)) };
    } else {
        let root = exp(0.5 * size);
        value = 0.5 * root * root;
    }
    if x == 0.0 || x.is_nan() {
        value = x;
    }
    value.copysign(x)
}

/// `x.cosh()`.
#[device]
pub fn cosh(x: f64) -> f64 {
    let size = x.abs();
    if size < 30.0 {
        let t = exp(size);
        0.5 * t + 0.5 / t
    } else {
        let root = exp(0.5 * size);
        0.5 * root * root
    }
}

/// `x.tanh()`.
#[device]
pub fn tanh(x: f64) -> f64 {
    let size = x.abs().min(22.0);
    let t = exp_m1(2.0 * size);
    let value = select_f64(size < 0.55, t / (t + 2.0), 1.0 - 2.0 / (t + 2.0));
    select_f64(x.is_nan(), x, value.copysign(x))
}

/// `x.asinh()`.
#[device]
pub fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let small = ln_1p(size + size * size / (1.0 + size.mul_add(size, 1.0).sqrt()));
    let value = if size < 1.0e8 { small } else { ln(size) + LN_2 };
    value.copysign(x)
}

/// `x.acosh()`.
#[device]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if x < 1.0 {
        f64::NAN
    } else if x < 1.0e8 {
        ln_1p(t + t.mul_add(t, 2.0 * t).sqrt())
    } else {
        ln(x) + LN_2
    }
}

/// `x.atanh()`.
#[device]
pub fn atanh(x: f64) -> f64 {
    let size = x.abs();
    (0.5 * ln_1p(2.0 * size / (1.0 - size))).copysign(x)
}

/// `x.cbrt()`.
#[device]
pub fn cbrt(x: f64) -> f64 {
    // Small numbers are brought into the middle first: the cube of the guess must not vanish.
    let is_small = x.abs() < 1.0e-280;
    let size = select_f64(is_small, x.abs() * 18_014_398_509_481_984.0, x.abs());
    let guess = exp(ln(size) / 3.0);
    // One step of Newton's method.
    let square = guess * guess;
    let error = guess.mul_add(square, -size) + guess * guess.mul_add(guess, -square);
    let root = guess - error / (3.0 * square);
    let root = select_f64(is_small, root * 3.814_697_265_625e-6, root);
    select_f64(size > 0.0 && size < f64::INFINITY, root.copysign(x), x)
}

/// `x.hypot(y)`.
#[device]
pub fn hypot(x: f64, y: f64) -> f64 {
    let (a, b) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    // Where squares would overflow or vanish, the numbers are brought into the middle first.
    let up = select_f64(a < 1.0e-150, 1.0e300, 1.0);
    let scale = select_f64(a > 1.0e150, 1.0e-300, up);
    let (p, q) = (a * scale, b * scale);
    let size = p.mul_add(p, q * q).sqrt() / scale;
    let finite = select_f64(x.is_nan() || y.is_nan(), f64::NAN, size);
    select_f64(x.is_infinite() || y.is_infinite(), f64::INFINITY, finite)
}
