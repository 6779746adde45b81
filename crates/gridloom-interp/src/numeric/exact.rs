//! Exact binary arithmetic, rounded once into any format in any direction.
//!
//! The host computes most results itself, but only rounded to nearest and only in its own formats.
//! Everything else goes through here: a bit pattern is decoded into an exact number, the operation
//! is carried out on whole significands, and the result is rounded where it is stored.
//!
//! Numbers that need more than 127 bits are cut off with a *sticky* last bit: it is set where
//! anything non-zero was dropped. Since at least 60 bits stay above it, and no format here keeps
//! more than 53, it can break a tie or push a directed rounding but never changes a bit that is
//! kept.

use super::{Float, Rounding};

/// What the patterns with all exponent bits set stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Infinity with a zero fraction, NaN otherwise.
    Ieee,
    /// Numbers, save that all ones is NaN (`e4m3`).
    OneNan,
    /// Numbers (`e2m1`, `e2m3`, `e3m2`).
    Finite,
}

/// Where a format keeps its fields: a sign, then the exponent, then the fraction in the low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the fraction.
    pub fraction_bits: u32,
    /// The meaning of the largest exponent.
    pub special: Special,
}

/// A decoded bit pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// An infinity.
    Infinite {
        /// Whether it is minus infinity.
        negative: bool,
    },
    /// A number, zero included.
    Finite(Exact),
}

/// The number `significand × 2^exponent`, or its negative. Zero keeps its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The sign.
    pub negative: bool,
    /// Below 2^127.
    pub significand: u128,
    /// The weight of the significand's last bit.
    pub exponent: i32,
}

/// A number rounded into a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The bits of the magnitude: the largest finite number where the result overflowed.
    pub magnitude: u64,
    /// Whether the result, rounded as if exponents were unlimited, is past the largest finite
    /// number.
    pub overflow: bool,
}

impl Layout {
    /// Returns the sign bit.
    pub const fn sign_mask(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// Returns all bits of the exponent.
    pub const fn exponent_mask(self) -> u64 {
        self.sign_mask() - (1 << self.fraction_bits)
    }

    /// Returns all bits of the fraction.
    pub const fn fraction_mask(self) -> u64 {
        (1 << self.fraction_bits) - 1
    }

    /// Returns the largest finite magnitude.
    pub const fn max_finite(self) -> u64 {
        match self.special {
            Special::Ieee => self.exponent_mask() - 1,
            Special::OneNan => self.sign_mask() - 2,
            Special::Finite => self.sign_mask() - 1,
        }
    }

    /// Returns the exponent of the smallest normal number.
    const fn min_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// Returns what a bit pattern means.
    #[inline]
    pub fn decode(self, bits: u64) -> Value {
        let negative = bits & self.sign_mask() != 0;
        let magnitude = bits & (self.sign_mask() - 1);
        if magnitude > self.max_finite() {
            let infinite = self.special == Special::Ieee && magnitude == self.exponent_mask();
            return if infinite { Value::Infinite { negative } } else { Value::Nan };
        }
        let field = (magnitude >> self.fraction_bits) as i32;
        let fraction = magnitude & self.fraction_mask();
        let significand = if field == 0 { fraction } else { fraction | 1 << self.fraction_bits };
        Value::Finite(Exact {
            negative,
            significand: significand.into(),
            exponent: self.min_exponent() - self.fraction_bits as i32 + (field - 1).max(0),
        })
    }
}

impl Value {
    /// Returns the value as bits of `F`, rounded. An overflow goes to infinity or to the largest
    /// number, as the direction says.
    #[inline]
    pub fn encode<F: Float>(self, rounding: Rounding) -> u64 {
        match self {
            Self::Nan => F::NAN,
            Self::Infinite { negative } => F::INFINITY | sign::<F>(negative),
            Self::Finite(exact) => exact.encode::<F>(rounding),
        }
    }
}

/// Returns the sign bit of a format, or none.
#[inline]
pub(super) fn sign<F: Float>(negative: bool) -> u64 {
    if negative { F::SIGN } else { 0 }
}

impl Exact {
    /// Creates an integer.
    pub fn from_i128(value: i128) -> Self {
        Self { negative: value < 0, significand: value.unsigned_abs(), exponent: 0 }
    }

    /// Rounds into `F`. An overflow goes to infinity or to the largest number, as the direction
    /// says.
    #[inline]
    pub fn encode<F: Float>(self, rounding: Rounding) -> u64 {
        let rounded = self.round(F::LAYOUT, rounding);
        let to_infinity = rounded.overflow
            && match rounding {
                Rounding::NearestEven | Rounding::NearestAway => true,
                Rounding::Zero => false,
                Rounding::Down => self.negative,
                Rounding::Up => !self.negative,
            };
        sign::<F>(self.negative) | if to_infinity { F::INFINITY } else { rounded.magnitude }
    }

    /// Rounds to a multiple of the format's last place.
    #[inline]
    pub fn round(self, layout: Layout, rounding: Rounding) -> Rounded {
        if self.significand == 0 {
            return Rounded { magnitude: 0, overflow: false };
        }
        let top = self.exponent + self.significand.ilog2() as i32;
        let overflow = Rounded { magnitude: layout.max_finite(), overflow: true };
        // One past the largest exponent that `Special::Finite` has: anything there overflows every
        // layout, and everything below it fits the arithmetic that follows.
        if top > layout.min_exponent() + (1 << layout.exponent_bits) {
            return overflow;
        }
        let binade = top.max(layout.min_exponent());
        let kept = self.to_multiple_of(binade - layout.fraction_bits as i32, rounding) as u64;
        // A normal significand carries its leading one, which adds one to the exponent field; a
        // subnormal one does not. A significand that was rounded up to the next power of two
        // carries into the exponent by itself.
        let field = (binade - layout.min_exponent()) as u64;
        let magnitude = (field << layout.fraction_bits) + kept;
        if magnitude > layout.max_finite() { overflow } else { Rounded { magnitude, overflow: false } }
    }

    /// Returns the magnitude divided by `2^place`, as an integer rounded in the given direction
    /// (which heeds the sign).
    #[inline]
    pub fn to_multiple_of(self, place: i32, rounding: Rounding) -> u128 {
        let drop = place - self.exponent;
        if drop <= 0 {
            return self.significand << (-drop).min(127);
        }
        let (kept, rest, half) = if drop >= 128 {
            // The significand is below 2^127, so what is dropped is less than half.
            (0, u128::from(self.significand != 0), 2)
        } else {
            let rest = self.significand & ((1 << drop) - 1);
            (self.significand >> drop, rest, 1 << (drop - 1))
        };
        let up = match rounding {
            Rounding::NearestEven => rest > half || (rest == half && kept & 1 == 1),
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => self.negative && rest != 0,
            Rounding::Up => !self.negative && rest != 0,
        };
        kept + u128::from(up)
    }

    /// Returns whether the number, rounded to the layout's precision with an unlimited exponent,
    /// lies below its normal range.
    pub fn is_subnormal(self, layout: Layout, rounding: Rounding) -> bool {
        if self.significand == 0 {
            return false;
        }
        let top = self.exponent + self.significand.ilog2() as i32;
        let precision = layout.fraction_bits + 1;
        let carries = || self.to_multiple_of(top - layout.fraction_bits as i32, rounding) >> precision != 0;
        top < layout.min_exponent() - 1 || (top == layout.min_exponent() - 1 && !carries())
    }

    /// Returns the same number with its highest bit moved to bit 125, as far as it does not lie
    /// higher already.
    #[inline]
    fn normalized(self) -> Self {
        if self.significand == 0 {
            return self;
        }
        let shift = 125_u32.saturating_sub(self.significand.ilog2());
        Self { significand: self.significand << shift, exponent: self.exponent - shift as i32, ..self }
    }

    /// Returns the sum, with a sticky last bit. Two operands that cancel give −0 when rounding
    /// down, else +0.
    pub fn sum(self, other: Self, rounding: Rounding) -> Self {
        if self.significand == 0 && other.significand == 0 {
            let negative =
                if self.negative == other.negative { self.negative } else { rounding == Rounding::Down };
            return Self { negative, ..self };
        }
        if self.significand == 0 {
            return other;
        }
        if other.significand == 0 {
            return self;
        }
        let (a, b) = (self.normalized(), other.normalized());
        // Where bits of the smaller one are dropped, it lies so far below that at most one leading
        // bit cancels.
        let (large, small) =
            if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
        let aligned = shift_right_sticky(small.significand, (large.exponent - small.exponent) as u32);
        if large.negative == small.negative {
            Self { significand: large.significand + aligned, ..large }
        } else if large.significand == aligned {
            Self { negative: rounding == Rounding::Down, significand: 0, exponent: 0 }
        } else {
            Self { significand: large.significand - aligned, ..large }
        }
    }

    /// Returns the product of two numbers of at most 63 bits each, exactly.
    pub fn product(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Returns the quotient of two numbers of at most 63 bits each, with a sticky last bit. The
    /// divisor is not zero.
    pub fn quotient(self, other: Self) -> Self {
        let dividend = self.normalized();
        let quotient = dividend.significand / other.significand;
        let inexact = !dividend.significand.is_multiple_of(other.significand);
        Self {
            negative: self.negative != other.negative,
            significand: quotient | u128::from(inexact),
            exponent: dividend.exponent - other.exponent,
        }
    }

    /// Returns the square root of a number that is not negative, with a sticky last bit.
    pub fn root(self) -> Self {
        let mut radicand = self.normalized();
        if radicand.exponent % 2 != 0 {
            radicand.significand <<= 1;
            radicand.exponent -= 1;
        }
        let root = radicand.significand.isqrt();
        let inexact = root * root != radicand.significand;
        Self {
            negative: self.negative,
            significand: root | u128::from(inexact),
            exponent: radicand.exponent / 2,
        }
    }
}

/// Computes `value >> count` with the last bit set where anything non-zero was shifted out.
#[inline]
fn shift_right_sticky(value: u128, count: u32) -> u128 {
    if count >= 128 {
        u128::from(value != 0)
    } else {
        let lost = value & ((1 << count) - 1) != 0;
        value >> count | u128::from(lost)
    }
}
