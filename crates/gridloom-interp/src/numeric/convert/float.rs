//! Integers to and from floating point, one floating-point format to another, and `tf32`.

use crate::numeric::exact::{Exact, Layout, Special, Value, sign};
use crate::numeric::float::{clamp_bits, flush_bits, flush_rounded};
use crate::numeric::format::Word;
use crate::numeric::integer::Integer;
use crate::numeric::{Bf16, Clamp, F32, Float, Mode, Rounding, packed};

/// How a conversion between floating-point formats ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Finish {
    /// `.rn`, `.rz`, `.rm` or `.rp`; of no consequence where the destination holds every value of
    /// the source.
    pub rounding: Rounding,
    /// `.ftz`: flushes an operand and a result that are `.f32`, and no other. (An operand that
    /// becomes `.f16` is not flushed, as on the GPU; it shows only where rounding is directed.)
    pub ftz: bool,
    /// `.sat` or `.relu`.
    pub clamp: Clamp,
    /// `.satfinite`: past the largest number, that number instead of infinity.
    pub satfinite: bool,
}

/// Returns whether this is the format that `.ftz` of `cvt` applies to.
const fn is_f32<F: Float>() -> bool {
    F::LAYOUT.exponent_bits == 8 && F::LAYOUT.fraction_bits == 23
}

/// Computes `cvt` from floating point to an integer type.
///
/// Out of range is brought into range. NaN becomes zero, save where either side has 64 bits: there
/// only the top bit is set.
#[inline]
pub fn float_to_integer<F: Float, D: Integer>(a: F::Bits, rounding: Rounding, ftz: bool) -> D {
    let a = flush_bits::<F>(a.into(), ftz && is_f32::<F>());
    let far = |negative| if negative { D::MIN } else { D::MAX };
    match F::LAYOUT.decode(a) {
        Value::Nan if F::LAYOUT.exponent_bits == 11 || D::BITS == 64 => D::from_bits(1 << (D::BITS - 1)),
        Value::Nan => D::ZERO,
        Value::Infinite { negative } => far(negative),
        Value::Finite(exact) if exact.significand == 0 => D::ZERO,
        Value::Finite(exact) => {
            if exact.exponent + exact.significand.ilog2() as i32 > 64 {
                return far(exact.negative);
            }
            let magnitude = exact.to_multiple_of(0, rounding) as i128;
            D::saturate(if exact.negative { -magnitude } else { magnitude })
        }
    }
}

/// Computes `cvt` from an integer type to floating point.
#[inline]
pub fn integer_to_float<S: Integer, F: Float>(a: S, rounding: Rounding, clamp: Clamp) -> F::Bits {
    let bits = Exact::from_i128(a.to_i128()).encode::<F>(rounding);
    F::Bits::truncate(clamp_bits::<F>(bits, clamp))
}

/// Returns whether this is `.f16`, for which the GPU leaves an `.f32` operand unflushed.
const fn is_f16<F: Float>() -> bool {
    F::LAYOUT.exponent_bits == 5
}

/// Computes `cvt` from one floating-point format to another, or to the same one without rounding to
/// an integral value.
#[inline]
pub fn float_to_float<S: Float, D: Float>(a: S::Bits, finish: Finish) -> D::Bits {
    let a = flush_bits::<S>(a.into(), finish.ftz && is_f32::<S>() && !is_f16::<D>());
    let mode = Mode { rounding: finish.rounding, ftz: finish.ftz && is_f32::<D>(), clamp: finish.clamp };
    let bits = match S::LAYOUT.decode(a) {
        Value::Nan => nan_to_nan::<S, D>(a, finish),
        Value::Infinite { negative } => sign::<D>(negative) | D::INFINITY,
        Value::Finite(exact) => flush_rounded::<D>(exact.encode::<D>(mode.rounding), mode, || Some(exact)),
    };
    let infinite = bits & D::MAGNITUDE == D::INFINITY;
    let bits = if finish.satfinite && infinite { bits & D::SIGN | D::LAYOUT.max_finite() } else { bits };
    D::Bits::truncate(clamp_bits::<D>(bits, mode.clamp))
}

/// Returns the NaN that a NaN becomes.
///
/// Between `.f64` and any other format it keeps its sign and the upper bits of its payload, made
/// quiet. A conversion that is a mere move of bits, to the same format or from `.bf16` to `.f32`,
/// keeps all of it unless a modifier makes it more than a move. Everywhere else the result is the
/// canonical NaN.
#[inline]
fn nan_to_nan<S: Float, D: Float>(a: u64, finish: Finish) -> u64 {
    // With `.ftz` the conversion is arithmetic, and arithmetic makes the NaN of an `.f32`
    // canonical.
    let a = if finish.ftz && is_f32::<S>() { S::NAN } else { a };
    let (from, to) = (S::LAYOUT, D::LAYOUT);
    let payload = match to.fraction_bits.checked_sub(from.fraction_bits) {
        Some(wider) => (a & from.fraction_mask()) << wider,
        None => (a & from.fraction_mask()) >> (from.fraction_bits - to.fraction_bits),
    };
    let moved = sign::<D>(a & S::SIGN != 0) | D::INFINITY | payload;
    let is_move = from == to || (from == Bf16::LAYOUT && is_f32::<D>());
    if is_move && !finish.ftz && finish.clamp == Clamp::None {
        moved
    } else if S::PROPAGATES_NAN || D::PROPAGATES_NAN {
        moved | D::QUIET
    } else {
        D::NAN
    }
}

/// Computes `cvt` of two `.f32` to `.f16x2` or `.bf16x2`: `a` is the upper half.
#[inline]
pub fn pair_to_packed<D: Float<Bits = u16>>(a: u32, b: u32, finish: Finish) -> u32 {
    packed::pack(float_to_float::<F32, D>(b, finish), float_to_float::<F32, D>(a, finish))
}

/// Computes `cvt.rni`, `.rzi`, `.rmi` and `.rpi` within one format: the integral value in that
/// direction. Zero keeps the sign.
#[inline]
pub fn round_to_integral<F: Float>(a: F::Bits, rounding: Rounding, ftz: bool, clamp: Clamp) -> F::Bits {
    let a = flush_bits::<F>(a.into(), ftz && is_f32::<F>());
    let bits = match F::LAYOUT.decode(a) {
        Value::Nan => F::nan_from(&[a]),
        Value::Infinite { .. } => a,
        // No fraction to round away.
        Value::Finite(exact) if exact.exponent >= 0 => a,
        Value::Finite(exact) => {
            let significand = exact.to_multiple_of(0, rounding);
            // An integer below the format's precision, so nothing is left to round.
            Exact { significand, exponent: 0, ..exact }.encode::<F>(Rounding::Zero)
        }
    };
    F::Bits::truncate(clamp_bits::<F>(bits, clamp))
}

/// The significant part of `.tf32`, whose register holds it in the upper bits of an `.f32`.
const TF32: Layout = Layout { exponent_bits: 8, fraction_bits: 10, special: Special::Ieee };

/// The bits of a register that `.tf32` uses.
const TF32_BITS: u32 = 0xffff_e000;

/// Computes `cvt.rna.tf32.f32`, `cvt.rn.tf32.f32` and `cvt.rz.tf32.f32`: an `.f32` whose last 13
/// bits are zero.
///
/// NaN becomes `0x7fffe000`. The plain `.rna` form cuts its payload off instead, as the GPU does,
/// which makes an infinity of a NaN whose payload lies in the last 13 bits.
#[inline]
pub fn to_tf32(a: u32, rounding: Rounding, relu: bool, satfinite: bool) -> u32 {
    let negative = a & 0x8000_0000;
    let bits = match F32::LAYOUT.decode(a.into()) {
        Value::Nan if rounding == Rounding::NearestAway && !satfinite => return a & TF32_BITS,
        Value::Nan => return F32::NAN as u32 & TF32_BITS,
        Value::Infinite { .. } if satfinite => negative | (TF32.max_finite() as u32) << 13,
        Value::Infinite { .. } => a,
        Value::Finite(exact) => {
            let rounded = exact.round(TF32, rounding);
            let infinite = rounded.overflow && !satfinite && rounding != Rounding::Zero;
            negative | if infinite { F32::INFINITY as u32 } else { (rounded.magnitude as u32) << 13 }
        }
    };
    clamp_bits::<F32>(bits.into(), if relu { Clamp::Relu } else { Clamp::None }) as u32
}
