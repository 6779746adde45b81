//! Elementary functions in double precision, of operands that single precision has.
//!
//! They are within 2^−40 of the exact result, far beyond what is left when it is rounded to single
//! precision. Each is a sequence of IEEE additions, multiplications and divisions and of operations
//! on bits, without a branch or a call, so that every host computes the same bits, one by one or in
//! vectors.

use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E};

/// Adding it rounds a number to an integer, which the lowest bits of the sum then hold.
pub const ROUND: f64 = 6_755_399_441_055_744.0;

/// Evaluates a polynomial with these coefficients, the constant one first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = sum * x + coefficient;
    }
    sum
}

/// Past this and its negative, [`exp2`] is infinity and zero in single precision.
pub const MOST_EXPONENT: f64 = 200.0;

/// The coefficients of [`exp2`], the constant one first.
pub const EXP_SERIES: [f64; 12] = [
    1.0,
    1.0,
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5040.0,
    1.0 / 40320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
];

/// Returns two to the power of `x`. The compiler emits the same sequence of operations.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = if x < -MOST_EXPONENT { -MOST_EXPONENT } else { x };
    let x = if x > MOST_EXPONENT { MOST_EXPONENT } else { x };
    let sum = x + ROUND;
    let y = (x - (sum - ROUND)) * LN_2;
    polynomial(y, EXP_SERIES) * f64::from_bits(sum.to_bits().wrapping_add(1023) << 52)
}

/// Returns the logarithm to the base two; minus infinity of zero, and NaN of a negative number.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const SHIFTED: f64 = 4_503_599_627_370_496.0;
    let bits = x.to_bits();
    let ones = 1f64.to_bits();
    // From half of the root of two up to the root of two.
    let mantissa = f64::from_bits(bits & MANTISSA | ones);
    let is_large = mantissa > std::f64::consts::SQRT_2;
    let mantissa = if is_large { mantissa * 0.5 } else { mantissa };
    let bias = if is_large { 1022.0 } else { 1023.0 };
    let exponent = f64::from_bits(SHIFTED.to_bits() | bits >> 52) - SHIFTED - bias;
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0];
    let result = exponent + polynomial(s * s, series) * (s * (2.0 * LOG2_E));
    let result = if x == 0.0 { f64::NEG_INFINITY } else { result };
    let result = if x == f64::INFINITY { x } else { result };
    if x >= 0.0 { result } else { f64::NAN }
}

/// The largest operand of [`sin_cos`].
pub const MOST_RADIANS: f64 = 100_000.0;

/// Returns sine and cosine of a number that is not larger than [`MOST_RADIANS`].
#[inline(always)]
pub fn sin_cos(x: f64) -> (f64, f64) {
    // A quarter of a turn, in 33 bits and what is left.
    const QUARTER: f64 = 1.570_796_326_734_125_6;
    const REST: f64 = 6.077_100_506_506_192e-11;
    let sum = x * FRAC_2_PI + ROUND;
    let turns = sum - ROUND;
    let y = (x - turns * QUARTER) - turns * REST;
    let z = y * y;
    let sine = [
        1.0,
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5040.0,
        1.0 / 362_880.0,
        -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0,
    ];
    let cosine = [
        1.0,
        -1.0 / 2.0,
        1.0 / 24.0,
        -1.0 / 720.0,
        1.0 / 40_320.0,
        -1.0 / 3_628_800.0,
        1.0 / 479_001_600.0,
        -1.0 / 87_178_291_200.0,
    ];
    let (sine, cosine) = (polynomial(z, sine) * y, polynomial(z, cosine));
    let quarter = sum.to_bits();
    let (first, second) = if quarter & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    let sign = |value: f64, turned: u64| f64::from_bits(value.to_bits() ^ (turned & 2) << 62);
    (sign(first, quarter), sign(second, quarter.wrapping_add(1)))
}

/// Returns the sine.
#[inline(always)]
pub fn sin(x: f64) -> f64 {
    if x.abs() <= MOST_RADIANS { sin_cos(x).0 } else { x.sin() }
}

/// Returns the cosine.
#[inline(always)]
pub fn cos(x: f64) -> f64 {
    if x.abs() <= MOST_RADIANS { sin_cos(x).1 } else { x.cos() }
}

/// Returns the hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let power = exp2(x * (2.0 * LOG2_E));
    let large = (power - 1.0) / (power + 1.0);
    // Where the difference from one would lose what is left, two terms of the series are enough.
    if x.abs() < 1.0 / 512.0 { x * (1.0 - x * x * (1.0 / 3.0)) } else { large }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares both functions on every few numbers of single precision. They differ only in the
    /// last bits.
    fn close(of: impl Fn(f64) -> f64, exact: impl Fn(f64) -> f64, accepts: impl Fn(f64) -> bool) {
        for bits in (0..=u32::MAX).step_by(4099) {
            let x = f64::from(f32::from_bits(bits));
            if !accepts(x) {
                continue;
            }
            let (found, expected) = (of(x), exact(x));
            let (a, b) = (found as f32, expected as f32);
            let same = a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan();
            let near = (found - expected).abs() <= expected.abs() * 2f64.powi(-38);
            assert!(same || near, "of {x}: {found} for {expected}");
        }
    }

    #[test]
    fn powers_of_two_are_those_of_the_standard_library() {
        close(exp2, f64::exp2, |_| true);
        assert_eq!((exp2(-3.0), exp2(0.0), exp2(127.0)), (0.125, 1.0, 2f64.powi(127)));
    }

    #[test]
    fn logarithms_are_those_of_the_standard_library() {
        close(log2, f64::log2, |_| true);
        assert_eq!((log2(1.0), log2(0.125), log2(2f64.powi(-149))), (0.0, -3.0, -149.0));
    }

    #[test]
    fn sines_and_cosines_are_those_of_the_standard_library() {
        close(sin, f64::sin, |_| true);
        close(cos, f64::cos, |_| true);
    }

    #[test]
    fn hyperbolic_tangents_are_those_of_the_standard_library() {
        close(tanh, f64::tanh, |_| true);
        assert!(tanh(-0.0).is_sign_negative());
    }
}
