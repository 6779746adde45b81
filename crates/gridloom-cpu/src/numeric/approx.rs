//! The instructions that PTX allows to be approximate.
//!
//! Results here are computed in `f64` and rounded once, so that they are the correctly rounded result but for very rare
//! double roundings. Special operands give exactly what PTX's tables say. A GPU differs within the bound of its table:
//!
//! | instruction | PTX's bound against the exact result |
//! |---|---|
//! | `div.full.f32` | 2 ulp |
//! | `div.approx.f32` | 2 ulp for divisors of 2^−126 to 2^126 |
//! | `rcp.approx.f32`, `rsqrt.approx.f32`, `sqrt.approx.f32` | relative 2^−23, 2^−22.9, 2^−23 |
//! | `rcp.approx.ftz.f64`, `rsqrt.approx.ftz.f64` | the upper half of the result; relative 2^−20 or better |
//! | `rsqrt.approx.f64` | relative 2^−51 |
//! | `sin.approx.f32`, `cos.approx.f32` | absolute 2^−20.5 in [−2π, 2π] |
//! | `lg2.approx.f32` | absolute 2^−22 for operands in (0.5, 2), else relative 2^−22 |
//! | `ex2.approx.f32` | 2 ulp and relative 2^−22 |
//! | `tanh.approx.f32` | relative 2^−11 |
//! | `ex2.approx.f16`, `.bf16` | relative 2^−9.9, 2^−7 |
//! | `tanh.approx.f16`, `.bf16` | absolute 2^−10.987, 2^−8 |

use super::float::{self, flush_bits};
use super::format::{Word, narrow};
use super::{F32, F64, Float, Mode};

/// A function of one operand, computed in `f64`.
#[inline]
fn unary<F: Float>(a: F::Bits, ftz: bool, f: impl Fn(f64) -> f64) -> F::Bits {
    let a = flush_bits::<F>(a.into(), ftz);
    let result = narrow::<F>(f(F::to_f64(a)));
    let result = if F::is_nan(result) { F::nan_from(&[a]) } else { flush_bits::<F>(result, ftz) };
    F::Bits::truncate(result)
}

/// `rcp.approx.f32`. The reciprocal of zero is infinity of its sign.
#[inline]
pub fn rcp_f32(a: u32, ftz: bool) -> u32 {
    float::rcp::<F32>(a, Mode::RN.ftz(ftz))
}

/// `sqrt.approx.f32`.
#[inline]
pub fn sqrt_f32(a: u32, ftz: bool) -> u32 {
    float::sqrt::<F32>(a, Mode::RN.ftz(ftz))
}

/// `rsqrt.approx.f32`. Of zero, infinity of its sign; of a negative number, NaN.
#[inline]
pub fn rsqrt_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, |a| 1.0 / a.sqrt())
}

/// `div.full.f32`.
#[inline]
pub fn div_full_f32(a: u32, b: u32, ftz: bool) -> u32 {
    float::div::<F32>(a, b, Mode::RN.ftz(ftz))
}

/// `div.approx.f32`: a product with the reciprocal, which is zero for a divisor past 2^126.
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

/// `sin.approx.f32`.
#[inline]
pub fn sin_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, f64::sin)
}

/// `cos.approx.f32`.
#[inline]
pub fn cos_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, f64::cos)
}

/// `lg2.approx.f32`. Of either zero, minus infinity; of a negative number, NaN.
#[inline]
pub fn lg2_f32(a: u32, ftz: bool) -> u32 {
    unary::<F32>(a, ftz, f64::log2)
}

/// `ex2.approx` on `.f32`, `.f16` and `.bf16`.
#[inline]
pub fn ex2<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    unary::<F>(a, ftz, f64::exp2)
}

/// `tanh.approx` on `.f32`, `.f16` and `.bf16`. Subnormals are kept.
#[inline]
pub fn tanh<F: Float>(a: F::Bits) -> F::Bits {
    unary::<F>(a, false, f64::tanh)
}

/// The upper half of an `.f64`, the lower one zero.
const UPPER: u64 = 0xffff_ffff_0000_0000;

/// The upper half of a result, which for NaN is all ones without the sign.
#[inline]
fn upper(result: u64) -> u64 {
    if F64::is_nan(result) { F64::MAGNITUDE & UPPER } else { result & UPPER }
}

/// `rcp.approx.ftz.f64`: from the operand's upper half, and with only the upper half of the result.
#[inline]
pub fn rcp_ftz_f64(a: u64) -> u64 {
    upper(float::rcp::<F64>(a & UPPER, Mode::RN.ftz(true)))
}

/// `rsqrt.approx.ftz.f64`: from the operand's upper half, and with only the upper half of the result.
#[inline]
pub fn rsqrt_ftz_f64(a: u64) -> u64 {
    upper(unary::<F64>(a & UPPER, true, |a| 1.0 / a.sqrt()))
}

/// `rsqrt.approx.f64`.
#[inline]
pub fn rsqrt_f64(a: u64) -> u64 {
    unary::<F64>(a, false, |a| 1.0 / a.sqrt())
}
