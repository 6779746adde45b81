//! The floating-point formats of PTX, as layouts of bits.

use super::exact::{Layout, Special};

/// A word that holds a floating-point bit pattern: `u16`, `u32` or `u64`.
pub trait Word: Copy + Eq + std::fmt::Debug + Into<u64> + 'static {
    /// Returns the low bits of `bits`.
    fn truncate(bits: u64) -> Self;
}

macro_rules! word {
    ($($word:ident)*) => {$(
        impl Word for $word {
            #[inline]
            fn truncate(bits: u64) -> Self { bits as $word }
        }
    )*};
}

word!(u16 u32 u64);

/// A floating-point format that PTX computes in.
///
/// The `*_rn` functions round to nearest even and say nothing about which NaN they return; the
/// [`float`](super::float) functions build the instructions from them.
pub trait Float: Copy + 'static {
    /// The word that holds a value.
    type Bits: Word;
    /// Where sign, exponent and fraction lie.
    const LAYOUT: Layout;
    /// The NaN of an invalid operation.
    const NAN: u64;
    /// Whether the NaN of an operand is passed on, made quiet, instead of becoming
    /// [`NAN`](Self::NAN).
    const PROPAGATES_NAN: bool;

    /// The sign bit.
    const SIGN: u64 = Self::LAYOUT.sign_mask();
    /// Plus infinity; a magnitude above it is NaN.
    const INFINITY: u64 = Self::LAYOUT.exponent_mask();
    /// All bits but the sign.
    const MAGNITUDE: u64 = Self::SIGN - 1;
    /// The smallest normal number; a magnitude below it is subnormal or zero.
    const MIN_NORMAL: u64 = 1 << Self::LAYOUT.fraction_bits;
    /// The bit that makes a NaN quiet.
    const QUIET: u64 = Self::MIN_NORMAL >> 1;
    /// One.
    const ONE: u64 = (Self::INFINITY >> 1) & Self::INFINITY;

    /// Returns the NaN that an instruction produces from its operands, the one that takes
    /// precedence first.
    #[inline]
    fn nan_from(operands: &[u64]) -> u64 {
        let propagated = operands.iter().find(|&&bits| Self::PROPAGATES_NAN && Self::is_nan(bits));
        propagated.map_or(Self::NAN, |bits| bits | Self::QUIET)
    }

    /// Returns whether the bits are a NaN.
    #[inline]
    fn is_nan(bits: u64) -> bool {
        bits & Self::MAGNITUDE > Self::INFINITY
    }

    /// Returns the value as an `f64`, exactly.
    fn to_f64(bits: u64) -> f64;
    /// Returns the sum.
    fn add_rn(a: u64, b: u64) -> u64;
    /// Returns the product.
    fn mul_rn(a: u64, b: u64) -> u64;
    /// Returns the quotient.
    fn div_rn(a: u64, b: u64) -> u64;
    /// Returns the square root.
    fn sqrt_rn(a: u64) -> u64;
    /// Returns the product plus `c`, rounded once.
    fn fma_rn(a: u64, b: u64, c: u64) -> u64;
}

/// `.f16`: IEEE binary16.
#[derive(Clone, Copy, Debug)]
pub struct F16;
/// `.bf16`: the upper half of a binary32.
#[derive(Clone, Copy, Debug)]
pub struct Bf16;
/// `.f32`: IEEE binary32.
#[derive(Clone, Copy, Debug)]
pub struct F32;
/// `.f64`: IEEE binary64.
#[derive(Clone, Copy, Debug)]
pub struct F64;

macro_rules! native {
    ($format:ident $float:ident $bits:ident $exponent:literal $fraction:literal $nan:literal $propagates:literal) => {
        impl Float for $format {
            type Bits = $bits;
            const LAYOUT: Layout =
                Layout { exponent_bits: $exponent, fraction_bits: $fraction, special: Special::Ieee };
            const NAN: u64 = $nan;
            const PROPAGATES_NAN: bool = $propagates;

            #[inline]
            fn to_f64(bits: u64) -> f64 {
                f64::from($float::from_bits(bits as $bits))
            }
            #[inline]
            fn add_rn(a: u64, b: u64) -> u64 {
                ($float::from_bits(a as $bits) + $float::from_bits(b as $bits)).to_bits().into()
            }
            #[inline]
            fn mul_rn(a: u64, b: u64) -> u64 {
                ($float::from_bits(a as $bits) * $float::from_bits(b as $bits)).to_bits().into()
            }
            #[inline]
            fn div_rn(a: u64, b: u64) -> u64 {
                ($float::from_bits(a as $bits) / $float::from_bits(b as $bits)).to_bits().into()
            }
            #[inline]
            fn sqrt_rn(a: u64) -> u64 {
                $float::from_bits(a as $bits).sqrt().to_bits().into()
            }
            #[inline]
            fn fma_rn(a: u64, b: u64, c: u64) -> u64 {
                $float::from_bits(a as $bits)
                    .mul_add($float::from_bits(b as $bits), $float::from_bits(c as $bits))
                    .to_bits()
                    .into()
            }
        }
    };
}

native!(F32 f32 u32 8 23 0x7fff_ffff false);
native!(F64 f64 u64 11 52 0xfff8_0000_0000_0000 true);

/// A 16-bit format computes in `f64` and rounds the result.
///
/// With 53 bits against 11 and 8, rounding twice is the same as rounding once for one addition,
/// multiplication, division or square root (53 ≥ 2 · 11 + 2). It is not for a fused multiply-add,
/// where the sum is rounded to odd first: that keeps on which side of a halfway point the exact sum
/// lies.
macro_rules! half {
    ($format:ident $exponent:literal $fraction:literal, $widen:expr) => {
        impl Float for $format {
            type Bits = u16;
            const LAYOUT: Layout =
                Layout { exponent_bits: $exponent, fraction_bits: $fraction, special: Special::Ieee };
            const NAN: u64 = 0x7fff;
            const PROPAGATES_NAN: bool = false;

            #[inline]
            fn to_f64(bits: u64) -> f64 {
                let widen: fn(u16) -> f64 = $widen;
                widen(bits as u16)
            }
            #[inline]
            fn add_rn(a: u64, b: u64) -> u64 {
                narrow::<Self>(Self::to_f64(a) + Self::to_f64(b))
            }
            #[inline]
            fn mul_rn(a: u64, b: u64) -> u64 {
                narrow::<Self>(Self::to_f64(a) * Self::to_f64(b))
            }
            #[inline]
            fn div_rn(a: u64, b: u64) -> u64 {
                narrow::<Self>(Self::to_f64(a) / Self::to_f64(b))
            }
            #[inline]
            fn sqrt_rn(a: u64) -> u64 {
                narrow::<Self>(Self::to_f64(a).sqrt())
            }
            #[inline]
            fn fma_rn(a: u64, b: u64, c: u64) -> u64 {
                narrow::<Self>(sum_to_odd(Self::to_f64(a) * Self::to_f64(b), Self::to_f64(c)))
            }
        }
    };
}

half!(F16 5 10, |bits| half::f16::from_bits(bits).to_f64());
half!(Bf16 8 7, |bits| f64::from(f32::from_bits(u32::from(bits) << 16)));

/// Returns `value` in the format, rounded to nearest even.
#[inline]
pub(super) fn narrow<F: Float>(value: f64) -> u64 {
    if F::LAYOUT == F32::LAYOUT {
        // The host rounds this way itself.
        return (value as f32).to_bits().into();
    }
    F64::LAYOUT.decode(value.to_bits()).encode::<F>(super::Rounding::NearestEven)
}

/// Returns the sum of two numbers far from overflow and underflow of `f64`, rounded to odd.
#[inline]
fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let (b_part, a_part) = (sum - a, sum - (sum - a));
    let error = (a - a_part) + (b - b_part);
    if error == 0.0 || sum.to_bits() & 1 == 1 {
        sum
    } else if (error > 0.0) == (sum > 0.0) {
        f64::from_bits(sum.to_bits() + 1)
    } else {
        f64::from_bits(sum.to_bits() - 1)
    }
}
