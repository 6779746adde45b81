//! Floating-point arithmetic in every format and rounding direction.
//!
//! Rounding to nearest uses the host's operations; the other directions go through
//! [`exact`](super::exact).
//!
//! # NaN
//!
//! PTX fixes the NaN that `.f32` and the 16-bit formats produce, whatever the operands held:
//! `0x7fffffff` and `0x7fff`. For `.f64` it does not. NVIDIA GPUs pass an operand's NaN on, made
//! quiet and with its sign, and this follows them: of two, the second operand's (of `fma`, the
//! second's, then the third's), save that `div` takes the first's. An invalid operation without a
//! NaN operand gives `0xfff8000000000000`.
//!
//! # Subnormals
//!
//! `.ftz` flushes operands before, and the result after, the operation, each keeping its sign. As
//! on the GPU, a result counts as subnormal by its value rounded with an unlimited exponent: a
//! product just below the smallest normal number is flushed even where rounding it to a subnormal's
//! precision would have brought it up to that number.

use super::exact::{Exact, Value};
use super::format::Word;
use super::{Clamp, Float, Mode, Rounding};

/// Returns whether the bits are a NaN.
#[inline]
pub fn is_nan<F: Float>(a: F::Bits) -> bool {
    F::is_nan(a.into())
}

/// Returns zero of the same sign where the bits are subnormal and `ftz` is set, else the bits.
#[inline]
pub fn flush<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    F::Bits::truncate(flush_bits::<F>(a.into(), ftz))
}

#[inline]
pub(super) fn flush_bits<F: Float>(a: u64, ftz: bool) -> u64 {
    if ftz && a & F::MAGNITUDE < F::MIN_NORMAL { a & F::SIGN } else { a }
}

/// Flushes a result that was rounded from the given exact number.
#[inline]
pub(super) fn flush_rounded<F: Float>(result: u64, mode: Mode, exact: impl FnOnce() -> Option<Exact>) -> u64 {
    let rounded_up = || exact().is_some_and(|exact| exact.is_subnormal(F::LAYOUT, mode.rounding));
    if mode.ftz && result & F::MAGNITUDE == F::MIN_NORMAL && rounded_up() {
        result & F::SIGN
    } else {
        flush_bits::<F>(result, mode.ftz)
    }
}

/// Applies the clamp of an instruction to its result.
#[inline]
pub(super) fn clamp_bits<F: Float>(a: u64, clamp: Clamp) -> u64 {
    let negative = a & F::SIGN != 0;
    match clamp {
        Clamp::None => a,
        Clamp::Saturate if negative || F::is_nan(a) => 0,
        Clamp::Saturate => a.min(F::ONE),
        Clamp::Relu if F::is_nan(a) => F::NAN,
        Clamp::Relu if negative => 0,
        Clamp::Relu => a,
    }
}

/// Performs the last steps of every instruction: selects the NaN and applies the clamp.
#[inline]
fn finish<F: Float>(result: u64, operands: &[u64], clamp: Clamp) -> F::Bits {
    let result = if F::is_nan(result) { F::nan_from(operands) } else { result };
    F::Bits::truncate(clamp_bits::<F>(result, clamp))
}

/// Returns the exact values of operands, if none is infinite or NaN.
#[inline]
fn finite<F: Float, const N: usize>(operands: [u64; N]) -> Option<[Exact; N]> {
    let values = operands.map(|bits| F::LAYOUT.decode(bits));
    let zero = Exact { negative: false, significand: 0, exponent: 0 };
    let mut numbers = [zero; N];
    for (number, value) in numbers.iter_mut().zip(values) {
        let Value::Finite(exact) = value else { return None };
        *number = exact;
    }
    Some(numbers)
}

/// Computes `add`.
#[inline]
pub fn add<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    add_signed::<F>(a, b, 0, mode)
}

/// Computes `sub`.
#[inline]
pub fn sub<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    add_signed::<F>(a, b, F::SIGN, mode)
}

/// Returns the sum of `a` and `b`, where `flip` turns the sign of a `b` that is not NaN.
#[inline]
fn add_signed<F: Float>(a: F::Bits, b: F::Bits, flip: u64, mode: Mode) -> F::Bits {
    let [a, b] = [a.into(), b.into()].map(|bits| flush_bits::<F>(bits, mode.ftz));
    let term = b ^ flip;
    let sum = match mode.rounding {
        Rounding::NearestEven => F::add_rn(a, term),
        rounding => match finite::<F, 2>([a, term]) {
            Some([a, b]) => a.sum(b, rounding).encode::<F>(rounding),
            // Nothing is rounded where an operand is infinite or NaN.
            None => F::add_rn(a, term),
        },
    };
    // A sum that is subnormal is exact, so nothing was rounded up.
    finish::<F>(flush_bits::<F>(sum, mode.ftz), &[b, a], mode.clamp)
}

/// Computes `mul`.
#[inline]
pub fn mul<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    let [a, b] = [a.into(), b.into()].map(|bits| flush_bits::<F>(bits, mode.ftz));
    let exact = || finite::<F, 2>([a, b]).map(|[a, b]| a.product(b));
    let product = match mode.rounding {
        Rounding::NearestEven => F::mul_rn(a, b),
        rounding => exact().map_or_else(|| F::mul_rn(a, b), |product| product.encode::<F>(rounding)),
    };
    finish::<F>(flush_rounded::<F>(product, mode, exact), &[b, a], mode.clamp)
}

/// Computes `fma`, and `mad` on floating-point types.
#[inline]
pub fn fma<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, mode: Mode) -> F::Bits {
    let [a, b, c] = [a.into(), b.into(), c.into()].map(|bits| flush_bits::<F>(bits, mode.ftz));
    let exact = || finite::<F, 3>([a, b, c]).map(|[a, b, c]| a.product(b).sum(c, mode.rounding));
    let result = match mode.rounding {
        Rounding::NearestEven => F::fma_rn(a, b, c),
        rounding => exact().map_or_else(|| F::fma_rn(a, b, c), |result| result.encode::<F>(rounding)),
    };
    finish::<F>(flush_rounded::<F>(result, mode, exact), &[b, c, a], mode.clamp)
}

/// Computes `div.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn div<F: Float>(a: F::Bits, b: F::Bits, mode: Mode) -> F::Bits {
    let [a, b] = [a.into(), b.into()].map(|bits| flush_bits::<F>(bits, mode.ftz));
    let exact = || match finite::<F, 2>([a, b]) {
        Some([a, b]) if b.significand != 0 => Some(a.quotient(b)),
        _ => None,
    };
    let quotient = match mode.rounding {
        Rounding::NearestEven => F::div_rn(a, b),
        rounding => exact().map_or_else(|| F::div_rn(a, b), |quotient| quotient.encode::<F>(rounding)),
    };
    finish::<F>(flush_rounded::<F>(quotient, mode, exact), &[a, b], mode.clamp)
}

/// Computes `rcp.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn rcp<F: Float>(a: F::Bits, mode: Mode) -> F::Bits {
    div::<F>(F::Bits::truncate(F::ONE), a, mode)
}

/// Computes `sqrt.rn`, `.rz`, `.rm` and `.rp`.
#[inline]
pub fn sqrt<F: Float>(a: F::Bits, mode: Mode) -> F::Bits {
    let a = flush_bits::<F>(a.into(), mode.ftz);
    let root = match (mode.rounding, F::LAYOUT.decode(a)) {
        (Rounding::NearestEven, _) => F::sqrt_rn(a),
        (rounding, Value::Finite(exact)) if !exact.negative => exact.root().encode::<F>(rounding),
        _ => F::sqrt_rn(a),
    };
    // No square root of a normal number is subnormal.
    finish::<F>(flush_bits::<F>(root, mode.ftz), &[a], mode.clamp)
}

/// Computes `abs`. A NaN is treated as by the arithmetic instructions: it does not keep its bits.
#[inline]
pub fn abs<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    let a = a.into();
    finish::<F>(if F::is_nan(a) { a } else { flush_bits::<F>(a, ftz) & F::MAGNITUDE }, &[a], Clamp::None)
}

/// Computes `neg`. A NaN is treated as by the arithmetic instructions: it does not keep its bits.
#[inline]
pub fn neg<F: Float>(a: F::Bits, ftz: bool) -> F::Bits {
    let a = a.into();
    finish::<F>(if F::is_nan(a) { a } else { flush_bits::<F>(a, ftz) ^ F::SIGN }, &[a], Clamp::None)
}

/// Computes `copysign`: the magnitude of `b` with the sign of `a`.
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

/// Computes `testp`.
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

#[cfg(test)]
mod tests;
