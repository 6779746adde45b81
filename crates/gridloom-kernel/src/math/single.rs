//! Functions of single precision.

use std::f32::consts::{FRAC_2_PI, LN_2, LOG2_E, LOG10_E};

use gridloom_macros::device;

use super::reduction::reduce_large;
pub use super::remainder::rem_f32 as rem;
use super::{double, power, select_f32};

/// π/2, in three parts.
const HALF_PI: [f32; 3] = [1.570_796_4, -4.371_138_8e-8, -1.715_124_5e-15];

/// Added to a small number, it leaves the nearest integer in the lowest bits of the sum. Conversions
/// to integers are slow on GPUs.
const ROUND: f32 = 12_582_912.0;

/// Returns e^r · 4^m for r at most ln 2 away from zero. `shifted` is m + [`ROUND`]. The result is
/// rounded once more where it is subnormal.
#[device]
fn exp_scaled(r: f32, shifted: f32) -> f32 {
    let p = 1.962_975_1e-4f32
        .mul_add(r, 1.410_477_8e-3)
        .mul_add(r, 8.335_935e-3)
        .mul_add(r, 4.166_123e-2)
        .mul_add(r, 0.166_666_18)
        .mul_add(r, 0.500_000_36)
        .mul_add(r, 1.0)
        .mul_add(r, 1.0);
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    p * scale * scale
}

/// `x.exp()`.
#[device]
pub fn exp(x: f32) -> f32 {
    // Past these bounds the result is zero or infinite.
    let y = x.max(-104.5).min(89.5);
    let shifted = y.mul_add(0.5 * LOG2_E, ROUND);
    let m = shifted - ROUND;
    let r = m.mul_add(-6.389_237e-5, m.mul_add(-1.386_230_5, y));
    select_f32(x.is_nan(), x, exp_scaled(r, shifted))
}

/// `x.exp2()`.
#[device]
pub fn exp2(x: f32) -> f32 {
    let y = x.max(-151.0).min(129.0);
    let shifted = y.mul_add(0.5, ROUND);
    let r = (shifted - ROUND).mul_add(-2.0, y) * LN_2;
    select_f32(x.is_nan(), x, exp_scaled(r, shifted))
}

/// Returns the exponent of a positive number, and the logarithm of its mantissa between 2/3 and
/// 4/3.
#[device]
fn ln_parts(x: f32) -> (f32, f32) {
    let is_small = x < f32::MIN_POSITIVE;
    let y = select_f32(is_small, x * 8_388_608.0, x);
    // The exponent in the bits of an exponent.
    let e = y.to_bits().wrapping_sub(0x3f2a_aaab) & 0xff80_0000;
    let f = f32::from_bits(y.to_bits().wrapping_sub(e)) - 1.0;
    let p = 0.113_306_17f32
        .mul_add(f, -0.124_222)
        .mul_add(f, 0.109_156_55)
        .mul_add(f, -0.122_887_22)
        .mul_add(f, 0.142_918_68)
        .mul_add(f, -0.166_733_16)
        .mul_add(f, 0.199_999_48)
        .mul_add(f, -0.249_999_45)
        .mul_add(f, 0.333_333_34);
    let log = (f * f).mul_add(p.mul_add(f, -0.5), f);
    ((e as i32 as f32).mul_add(1.192_092_9e-7, select_f32(is_small, -23.0, 0.0)), log)
}

/// Replaces a logarithm where it is not one of a finite positive number.
#[device]
fn ln_or_special(x: f32, log: f32) -> f32 {
    // Infinity and NaN stay. Of negative numbers, which these bits follow too, infinities of both
    // signs are added, which gives NaN.
    let special = x.mul_add(f32::INFINITY, f32::INFINITY);
    let log = select_f32(x.to_bits() < f32::INFINITY.to_bits(), log, special);
    select_f32(x == 0.0, f32::NEG_INFINITY, log)
}

/// `x.ln()`.
#[device]
pub fn ln(x: f32) -> f32 {
    let (e, log) = ln_parts(x);
    // The error of this constant is a tenth of a place of the result.
    ln_or_special(x, e.mul_add(LN_2, log))
}

/// `x.log2()`.
#[device]
pub fn log2(x: f32) -> f32 {
    let (e, log) = ln_parts(x);
    ln_or_special(x, log.mul_add(LOG2_E, log.mul_add(1.925_963e-8, e)))
}

/// `x.log10()`.
#[device]
pub fn log10(x: f32) -> f32 {
    let (e, log) = ln_parts(x);
    ln_or_special(x, e.mul_add(0.301_025_4, e.mul_add(4.605_039e-6, log * LOG10_E)))
}

/// Returns the quarter turns nearest to a number, and what is left.
#[device]
fn reduce(x: f32) -> (i32, f32) {
    let turns = (x * FRAC_2_PI).round_ties_even();
    let left = turns.mul_add(-HALF_PI[2], turns.mul_add(-HALF_PI[1], turns.mul_add(-HALF_PI[0], x)));
    let (mut quarter, mut left) = (turns as i32, select_f32(turns == 0.0, x, left));
    if x.abs() > 48_000.0 {
        let (turns, high, _) = reduce_large(x as f64);
        quarter = turns;
        left = select_f32(x.is_finite(), high as f32, f32::NAN);
    }
    (quarter, left)
}

/// Returns the sine, or the cosine, of an angle of at most an eighth of a turn.
#[device]
fn sin_or_cos(quarter: i32, x: f32) -> f32 {
    let z = x * x;
    let s = 2.724_962e-6f32.mul_add(z, -1.984_008_4e-4).mul_add(z, 8.333_332e-3).mul_add(z, -0.166_666_67);
    let c = (-2.730_070_3e-7f32)
        .mul_add(z, 2.480_059_8e-5)
        .mul_add(z, -1.388_888_8e-3)
        .mul_add(z, 4.166_666_8e-2);
    // Zero keeps its sign.
    let sine = select_f32(x == 0.0, x, (x * z).mul_add(s, x));
    let cosine = (z * z).mul_add(c, z.mul_add(-0.5, 1.0));
    let value = select_f32(quarter & 1 == 0, sine, cosine);
    select_f32(quarter & 2 == 0, value, -value)
}

/// `x.sin()`.
#[device]
pub fn sin(x: f32) -> f32 {
    let (quarter, left) = reduce(x);
    sin_or_cos(quarter, left)
}

/// `x.cos()`.
#[device]
pub fn cos(x: f32) -> f32 {
    let (quarter, left) = reduce(x);
    sin_or_cos(quarter.wrapping_add(1), left)
}

/// `x.sin_cos()`.
#[device]
pub fn sin_cos(x: f32) -> (f32, f32) {
    let (quarter, left) = reduce(x);
    (sin_or_cos(quarter, left), sin_or_cos(quarter.wrapping_add(1), left))
}

/// `x.tanh()`.
#[device]
pub fn tanh(x: f32) -> f32 {
    let size = x.abs().min(9.5);
    let z = x * x;
    let p = (-6.542_542e-3f32)
        .mul_add(z, 2.127_274_9e-2)
        .mul_add(z, -5.390_335e-2)
        .mul_add(z, 0.133_330_82)
        .mul_add(z, -0.333_333_3);
    let small = (x * z).mul_add(p, x);
    let large = (1.0 - 2.0 / (exp(size + size) + 1.0)).copysign(x);
    let value = select_f32(size < 0.55, small, large);
    select_f32(x == 0.0 || x.is_nan(), x, value)
}

/// `x.powf(y)`.
#[device]
pub fn powf(x: f32, y: f32) -> f32 {
    let (x, y) = (x as f64, y as f64);
    power::with_special_cases(x, y, double::exp(y * double::ln(x.abs()))) as f32
}

/// `x.powi(n)`.
#[device]
pub fn powi(x: f32, n: i32) -> f32 {
    let (mut base, mut left, mut result) = (x, n.unsigned_abs(), 1.0f32);
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

/// `x.hypot(y)`.
#[device]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (a, b) = (x as f64, y as f64);
    let size = (a * a + b * b).sqrt() as f32;
    select_f32(x.is_infinite() || y.is_infinite(), f32::INFINITY, size)
}

/// Functions that are computed in double precision.
macro_rules! in_double {
    ($($name:ident),*) => {$(
        #[doc = concat!("`x.", stringify!($name), "()`.")]
        #[device]
        pub fn $name(x: f32) -> f32 {
            double::$name(x as f64) as f32
        }
    )*};
}
in_double!(tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, exp_m1, ln_1p, cbrt);

/// `y.atan2(x)`.
#[device]
pub fn atan2(y: f32, x: f32) -> f32 {
    double::atan2(y as f64, x as f64) as f32
}
