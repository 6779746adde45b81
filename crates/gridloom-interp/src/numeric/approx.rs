//! The instructions that PTX allows to be approximate.
//!
//! Results here are computed in `f64` and rounded once, so that they are the correctly rounded
//! result but for very rare double roundings. Special operands give exactly what PTX's tables say.
//! A GPU differs within the bound of its table:
//!
//! | instruction | PTX's bound against the exact result | most that `sm_90` was seen to differ from here |
//! |---|---|---|
//! | `div.full.f32` | 2 ulp | 2 ulp |
//! | `div.approx.f32` | 2 ulp for divisors of 2^−126 to 2^126 | 2 ulp |
//! | `rcp.approx.f32` | relative 2^−23 | 1 ulp |
//! | `sqrt.approx.f32` | relative 2^−23 | 1 ulp |
//! | `rsqrt.approx.f32` | relative 2^−22.9 | 1 ulp |
//! | `rsqrt.approx.f64` | none stated | 1 ulp |
//! | `rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64` | only the upper half is computed | 1 in its last place |
//! | `sin.approx.f32`, `cos.approx.f32` | absolute 2^−20.5 in [−2π, 2π] | no relation past 2^12 |
//! | `lg2.approx.f32` | absolute 2^−22 for operands in (0.5, 2), else relative 2^−22 | within that |
//! | `ex2.approx.f32` | relative 2^−22 | 2 ulp |
//! | `tanh.approx.f32` | relative 2^−11 | 117 ulp |
//! | `ex2.approx.f16`, `.bf16` | relative 2^−9.9, 2^−7 | 1 ulp |
//! | `tanh.approx.f16`, `.bf16` | absolute 2^−10.987, 2^−8 | 1 ulp |

use super::elementary;
use super::float::{self, flush_bits};
use super::format::{Word, narrow};
use super::{F32, F64, Float, Mode};

/// Computes a function of one operand in `f64`.
#[inline]
fn unary<F: Float>(a: F::Bits, ftz: bool, f: impl Fn(f64) -> f64) -> F::Bits {
    let a = flush_bits::<F>(a.into(), ftz);
    let result = narrow::<F>(f(F::to_f64(a)));
    let result = if F::is_nan(result) { F::nan_from(&[a]) } else { flush_bits::<F>(result, ftz) };
    F::Bits::truncate(result)
}

/// Computes `rcp.approx.f32`. The reciprocal of zero is an infinity of the same sign.
#[inline]
pub fn rcp_f32(a: u32, ftz: bool) -> u32 {
    float::rcp::<F32>(a, Mode::RN.ftz(ftz))
}

/// Computes `sqrt.approx.f32`.
#[inline]
pub fn sqrt_f32(a: u32, ftz: bool) -> u32 {
    float::sqrt::<F32>(a, Mode::RN.ftz(ftz))
}

/// Computes `rsqrt.approx.f32`. The result for zero is an infinity of the same sign, and for a
/// negative number NaN.
#[inline]
pub fn rsqrt_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, |a| 1.0 / a.sqrt())
}

/// Computes `div.full.f32`.
#[inline]
pub fn div_full_f32(a: u32, b: u32, ftz: bool) -> u32 {
    float::div::<F32>(a, b, Mode::RN.ftz(ftz))
}

/// Computes `div.approx.f32`: a product with the reciprocal of the divisor. The reciprocal of a
/// divisor above 2^126 is zero.
#[inline]
pub fn div_approx_f32(a: u32, b: u32, ftz: bool) -> u32 {
    const TWO_TO_126: u32 = 0x7e80_0000;
    let magnitude = b & 0x7fff_ffff;
    if magnitude > TWO_TO_126 && u64::from(magnitude) < F32::INFINITY {
        float::mul::<F32>(a, b & 0x8000_0000, Mode::RN.ftz(ftz))
    } else {
        float::div::<F32>(a, b, Mode::RN.ftz(ftz))
    }
}

/// Computes `sin.approx.f32`.
#[inline]
pub fn sin_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, elementary::sin)
}

/// Computes `cos.approx.f32`.
#[inline]
pub fn cos_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, elementary::cos)
}

/// Computes `lg2.approx.f32`. The result for either zero is minus infinity, and for a negative
/// number NaN.
#[inline]
pub fn lg2_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, elementary::log2)
}

/// Computes `ex2.approx` on `.f32`, `.f16` and `.bf16`.
#[inline]
pub fn ex2<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    unary::<F>(a, ftz, elementary::exp2)
}

/// Computes `tanh.approx` on `.f32`, `.f16` and `.bf16`. Subnormals are kept.
#[inline]
pub fn tanh<F: Float>(a: F::Bits) -> F::Bits {
    unary::<F>(a, false, elementary::tanh)
}

/// The upper half of an `.f64`, the lower one zero.
const UPPER: u64 = 0xffff_ffff_0000_0000;

/// Returns the upper half of a result, which for NaN is all ones without the sign.
#[inline]
fn upper(result: u64) -> u64 {
    if F64::is_nan(result) { F64::MAGNITUDE & UPPER } else { result & UPPER }
}

/// Computes `rcp.approx.ftz.f64`, from the upper half of the operand. Only the upper half of the
/// result is computed.
#[inline]
pub fn rcp_ftz_f64(a: u64) -> u64 {
    upper(float::rcp::<F64>(a & UPPER, Mode::RN.ftz(true)))
}

/// Computes `rsqrt.approx.ftz.f64`: from the operand's upper half, and with only the upper half of
/// the result.
#[inline]
pub fn rsqrt_ftz_f64(a: u64) -> u64 {
    upper(unary::<F64>(a & UPPER, true, |a| 1.0 / a.sqrt()))
}

/// Computes `rsqrt.approx.f64`.
#[inline]
pub fn rsqrt_f64(a: u64) -> u64 {
    unary::<F64>(a, false, |a| 1.0 / a.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{Bf16, F16};

    const NAN: u32 = 0x7fff_ffff;
    const INF: u32 = 0x7f80_0000;
    const SIGN: u32 = 0x8000_0000;
    const ONE: u32 = 0x3f80_0000;

    /// A row of PTX's table of special values: operand, result with `.ftz`, result without.
    type Row = (u32, u32, u32);

    fn check(name: &str, f: impl Fn(u32, bool) -> u32, rows: &[Row]) {
        for &(a, flushed, kept) in rows {
            assert_eq!(f(a, true), flushed, "{name}.ftz of {a:#010x}");
            assert_eq!(f(a, false), kept, "{name} of {a:#010x}");
        }
    }

    #[test]
    fn reciprocal_of_special_values() {
        check(
            "rcp",
            rcp_f32,
            &[
                (0, INF, INF),
                (SIGN, INF | SIGN, INF | SIGN),
                (1, INF, INF),
                (SIGN | 1, INF | SIGN, INF | SIGN),
                (0x0040_0000, INF, 0x7f00_0000),
                (INF, 0, 0),
                (INF | SIGN, SIGN, SIGN),
                (0x7f00_0000, 0, 0x0040_0000),
                (0xffc0_0001, NAN, NAN),
            ],
        );
    }

    #[test]
    fn square_root_of_special_values() {
        check(
            "sqrt",
            sqrt_f32,
            &[
                (0, 0, 0),
                (SIGN, SIGN, SIGN),
                (SIGN | 1, SIGN, NAN),
                (1, 0, 0x1a35_04f3),
                (0xbf80_0000, NAN, NAN),
                (INF, INF, INF),
                (INF | SIGN, NAN, NAN),
            ],
        );
    }

    #[test]
    fn reciprocal_square_root_of_special_values() {
        check(
            "rsqrt",
            rsqrt_f32,
            &[
                (0, INF, INF),
                (SIGN, INF | SIGN, INF | SIGN),
                (SIGN | 1, INF | SIGN, NAN),
                (1, INF, 0x64b5_04f3),
                (0xbf80_0000, NAN, NAN),
                (INF, 0, 0),
                (INF | SIGN, NAN, NAN),
                (0x4080_0000, 0x3f00_0000, 0x3f00_0000),
            ],
        );
    }

    #[test]
    fn sine_and_cosine_of_special_values() {
        check(
            "sin",
            sin_f32,
            &[
                (0, 0, 0),
                (SIGN, SIGN, SIGN),
                (SIGN | 1, SIGN, SIGN | 1),
                (INF, NAN, NAN),
                (INF | SIGN, NAN, NAN),
                (NAN, NAN, NAN),
            ],
        );
        check(
            "cos",
            cos_f32,
            &[(0, ONE, ONE), (SIGN | 1, ONE, ONE), (INF, NAN, NAN), (INF | SIGN, NAN, NAN)],
        );
    }

    #[test]
    fn logarithm_of_special_values() {
        check(
            "lg2",
            lg2_f32,
            &[
                (0, INF | SIGN, INF | SIGN),
                (SIGN, INF | SIGN, INF | SIGN),
                (SIGN | 1, INF | SIGN, NAN),
                (1, INF | SIGN, 0xc315_0000),
                (0xbf80_0000, NAN, NAN),
                (INF, INF, INF),
                (INF | SIGN, NAN, NAN),
                (ONE, 0, 0),
                (0x4100_0000, 0x4040_0000, 0x4040_0000),
            ],
        );
    }

    #[test]
    fn power_of_two_of_special_values() {
        check(
            "ex2",
            ex2::<F32>,
            &[
                (0, ONE, ONE),
                (SIGN, ONE, ONE),
                (SIGN | 1, ONE, ONE),
                (1, ONE, ONE),
                (INF, INF, INF),
                (INF | SIGN, 0, 0),
                (0x4300_0000, INF, INF),
                (0xc300_0000, 0, 0x0020_0000),
                (0xc315_0000, 0, 1),
                (0xc316_0001, 0, 0),
                (NAN, NAN, NAN),
            ],
        );
    }

    #[test]
    fn hyperbolic_tangent_of_special_values() {
        for (a, expected) in [
            (0, 0),
            (SIGN, SIGN),
            (1, 1),
            (SIGN | 1, SIGN | 1),
            (INF, ONE),
            (INF | SIGN, ONE | SIGN),
            (NAN, NAN),
        ] {
            assert_eq!(tanh::<F32>(a), expected, "{a:#010x}");
        }
        assert_eq!((tanh::<F16>(0xfc00), tanh::<F16>(1), tanh::<Bf16>(0x7f80)), (0xbc00, 1, 0x3f80));
        assert_eq!((ex2::<F16>(0x4200, false), ex2::<F16>(0xfc00, false)), (0x4800, 0));
        assert_eq!((ex2::<Bf16>(0x0001, true), ex2::<Bf16>(0xff80, true)), (0x3f80, 0));
    }

    #[test]
    fn approximate_division_is_zero_for_divisors_past_the_range() {
        // 2^127 is past 2^126; full-range division is not.
        assert_eq!(div_approx_f32(0x7f00_0000, 0x7f00_0000, false), 0);
        assert_eq!(div_approx_f32(0x7f00_0000, 0xff00_0000, false), SIGN);
        assert_eq!(div_approx_f32(INF, 0x7f00_0000, false), NAN);
        assert_eq!(div_full_f32(0x7f00_0000, 0x7f00_0000, false), ONE);
        assert_eq!(div_approx_f32(0x4040_0000, 0x4000_0000, true), 0x3fc0_0000);
        assert_eq!((div_full_f32(INF, INF, false), div_full_f32(ONE, SIGN, true)), (NAN, INF | SIGN));
    }

    #[test]
    fn double_precision_approximations_use_the_upper_half_only() {
        assert_eq!(rcp_ftz_f64(0x4000_0000_ffff_ffff), 0x3fe0_0000_0000_0000);
        assert_eq!(rcp_ftz_f64(0x7ff0_0000_0000_0001), 0, "its upper half reads as infinity");
        assert_eq!(rcp_ftz_f64(0x7ff8_0000_0000_0000), 0x7fff_ffff_0000_0000);
        assert_eq!(rsqrt_ftz_f64(0x4010_0000_0000_0000), 0x3fe0_0000_0000_0000);
        assert_eq!(rsqrt_ftz_f64(0xbff0_0000_0000_0000), 0x7fff_ffff_0000_0000);
        assert_eq!(rsqrt_ftz_f64(0x8000_0000_0000_0001), 0xfff0_0000_0000_0000);
        assert_eq!(rsqrt_f64(0x4010_0000_0000_0000), 0x3fe0_0000_0000_0000);
    }

    #[test]
    fn results_are_correctly_rounded() {
        // Operand, then 2^a, sin a, cos a, tanh a and log2 |a|, computed elsewhere in higher
        // precision.
        for [a, power, sine, cosine, tangent, logarithm] in [
            [0x3f00_0000, 0x3fb5_04f3, 0x3ef5_7744, 0x3f60_a940, 0x3eec_9a9f, 0xbf80_0000],
            [0x3f80_0000, 0x4000_0000, 0x3f57_6aa4, 0x3f0a_5140, 0x3f42_f7d6, 0x0000_0000],
            [0xbfc0_0000, 0x3eb5_04f3, 0xbf7f_5bd5, 0x3d90_deaa, 0xbf67_b7cc, 0x3f15_c01a],
            [0x4040_0000, 0x4100_0000, 0x3e10_81c3, 0xbf7d_7026, 0x3f7e_bbe9, 0x3fca_e00d],
            [0x3e00_0000, 0x3f8b_95c2, 0x3dff_5577, 0x3f7e_00ab, 0x3dfe_acc9, 0xc040_0000],
            [0xbf40_0000, 0x3f18_37f0, 0xbf2e_7fe1, 0x3f3b_4ff6, 0xbf22_991f, 0xbed4_7fcc],
            [0x40c0_0000, 0x4280_0000, 0xbe8f_0f8c, 0x3f75_cdb8, 0x3f7f_ff32, 0x4025_7007],
        ] {
            assert_eq!(ex2::<F32>(a, false), power, "2^{a:#x}");
            assert_eq!((sin_f32(a, false), cos_f32(a, true)), (sine, cosine), "sin and cos of {a:#x}");
            assert_eq!(tanh::<F32>(a), tangent, "tanh {a:#x}");
            assert_eq!(lg2_f32(a & !SIGN, false), logarithm, "log2 {a:#x}");
        }
    }
}
