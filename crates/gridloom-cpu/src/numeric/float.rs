//! Floating-point arithmetic in every format and rounding direction.
//!
//! Rounding to nearest uses the host's operations; the other directions go through [`exact`](super::exact).
//!
//! # NaN
//!
//! An instruction that produces a NaN produces the canonical one of its format ([`Float::NAN`]), whatever the operands
//! held: `0x7fffffff` for `.f32` and `0x7fff` for the 16-bit formats.
//!
//! # Subnormals
//!
//! `.ftz` flushes operands before, and the result after, the operation, each keeping its sign.

use super::exact::{Exact, Value};
use super::format::Word;
use super::{Clamp, Float, Mode, Rounding};

/// Whether the bits are a NaN.
#[inline]
pub fn is_nan<F: Float>(a: F::Bits) -> bool {
    a.into() & F::MAGNITUDE > F::INFINITY
}

/// Zero of the same sign where the bits are subnormal and `ftz` is set, else the bits.
#[inline]
pub fn flush<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    F::Bits::truncate(flush_bits::<F>(a.into(), ftz))
}

#[inline]
pub(super) fn flush_bits<F: Float>(a: u64, ftz: bool) -> u64 {
    if ftz && a & F::MAGNITUDE < F::MIN_NORMAL { a & F::SIGN } else { a }
}

/// Applies the clamp of an instruction to its result.
#[inline]
pub(super) fn clamp_bits<F: Float>(a: u64, clamp: Clamp) -> u64 {
    let nan = a & F::MAGNITUDE > F::INFINITY;
    let negative = a & F::SIGN != 0;
    match clamp {
        Clamp::None => a,
        Clamp::Saturate if nan || negative => 0,
        Clamp::Saturate => a.min(F::ONE),
        Clamp::Relu if nan => F::NAN,
        Clamp::Relu if negative => 0,
        Clamp::Relu => a,
    }
}

/// The last steps of every instruction: one NaN, `.ftz`, and the clamp.
#[inline]
fn finish<F: Float>(result: u64, mode: Mode) -> F::Bits {
    let result = if result & F::MAGNITUDE > F::INFINITY { F::NAN } else { flush_bits::<F>(result, mode.ftz) };
    F::Bits::truncate(clamp_bits::<F>(result, mode.clamp))
}

/// `add`.
#[inline]
pub fn add<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    let (a, b) = (flush_bits::<F>(a.into(), mode.ftz), flush_bits::<F>(b.into(), mode.ftz));
    let sum = match mode.rounding {
        Rounding::NearestEven => F::add_rn(a, b),
        rounding => match (F::LAYOUT.decode(a), F::LAYOUT.decode(b)) {
            (Value::Finite(a), Value::Finite(b)) => a.sum(b, rounding).encode::<F>(rounding),
            // No rounding takes place where an operand is infinite or NaN.
            _ => F::add_rn(a, b),
        },
    };
    finish::<F>(sum, mode)
}

/// `sub`.
#[inline]
pub fn sub<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    add::<F>(a, F::Bits::truncate(b.into() ^ F::SIGN), mode)
}

/// `mul`.
#[inline]
pub fn mul<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    let (a, b) = (flush_bits::<F>(a.into(), mode.ftz), flush_bits::<F>(b.into(), mode.ftz));
    let product = match mode.rounding {
        Rounding::NearestEven => F::mul_rn(a, b),
        rounding => match (F::LAYOUT.decode(a), F::LAYOUT.decode(b)) {
            (Value::Finite(a), Value::Finite(b)) => a.product(b).encode::<F>(rounding),
            _ => F::mul_rn(a, b),
        },
    };
    finish::<F>(product, mode)
}

/// `fma`, and `mad` on floating-point types.
#[inline]
pub fn fma<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, mode: Mode) -> F::Bits {
    let [a, b, c] = [a.into(), b.into(), c.into()].map(|bits| flush_bits::<F>(bits, mode.ftz));
    let result = match mode.rounding {
        Rounding::NearestEven => F::fma_rn(a, b, c),
        rounding => match [a, b, c].map(|bits| F::LAYOUT.decode(bits)) {
            [Value::Finite(a), Value::Finite(b), Value::Finite(c)] => {
                a.product(b).sum(c, rounding).encode::<F>(rounding)
            }
            _ => F::fma_rn(a, b, c),
        },
    };
    finish::<F>(result, mode)
}

/// `div.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn div<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    let (a, b) = (flush_bits::<F>(a.into(), mode.ftz), flush_bits::<F>(b.into(), mode.ftz));
    let quotient = match mode.rounding {
        Rounding::NearestEven => F::div_rn(a, b),
        rounding => match (F::LAYOUT.decode(a), F::LAYOUT.decode(b)) {
            (Value::Finite(a), Value::Finite(b @ Exact { significand: 1.., .. })) => {
                a.quotient(b).encode::<F>(rounding)
            }
            _ => F::div_rn(a, b),
        },
    };
    finish::<F>(quotient, mode)
}

/// `rcp.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn rcp<F: Float>(a: F::Bits, mode: Mode) -> F::Bits {
    div::<F>(F::Bits::truncate(F::ONE), a, mode)
}

/// `sqrt.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn sqrt<F: Float>(a: F::Bits, mode: Mode) -> F::Bits {
    let a = flush_bits::<F>(a.into(), mode.ftz);
    let root = match (mode.rounding, F::LAYOUT.decode(a)) {
        (Rounding::NearestEven, _) => F::sqrt_rn(a),
        (rounding, Value::Finite(exact)) if !exact.negative => exact.root().encode::<F>(rounding),
        _ => F::sqrt_rn(a),
    };
    finish::<F>(root, mode)
}

/// `abs`: clears the sign, of a NaN too.
#[inline]
pub fn abs<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    F::Bits::truncate(flush_bits::<F>(a.into(), ftz) & F::MAGNITUDE)
}

/// `neg`: flips the sign, of a NaN too.
#[inline]
pub fn neg<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    F::Bits::truncate(flush_bits::<F>(a.into(), ftz) ^ F::SIGN)
}

/// `copysign`: the magnitude of `b` with the sign of `a`.
#[inline]
pub fn copysign<F: Float>(a: F::Bits, b: F::Bits) -> F::Bits {
    F::Bits::truncate(a.into() & F::SIGN | b.into() & F::MAGNITUDE)
}

/// The property that `testp` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// Neither infinite nor NaN.
    Finite,
    /// An infinity.
    Infinite,
    /// Not a NaN.
    Number,
    /// A NaN.
    NotANumber,
    /// Neither subnormal, infinite nor NaN. Zero counts as normal.
    Normal,
    /// Subnormal and not zero.
    Subnormal,
}

/// `testp`.
#[inline]
pub fn testp<F: Float>(property: Property, a: F::Bits) -> bool {
    let magnitude = a.into() & F::MAGNITUDE;
    let subnormal = magnitude != 0 && magnitude < F::MIN_NORMAL;
    match property {
        Property::Finite => magnitude < F::INFINITY,
        Property::Infinite => magnitude == F::INFINITY,
        Property::Number => magnitude <= F::INFINITY,
        Property::NotANumber => magnitude > F::INFINITY,
        Property::Normal => magnitude < F::INFINITY && !subnormal,
        Property::Subnormal => subnormal,
    }
}
