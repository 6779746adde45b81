//! The formats of 8, 6 and 4 bits, which exist in registers only as packed pairs.
//!
//! Conversions to them always saturate to the largest finite number (`.satfinite` is mandatory) and
//! round to nearest even.

use crate::numeric::exact::{Layout, Special, Value};
use crate::numeric::format::Word;
use crate::numeric::{Bf16, F16, F32, Float, Rounding, packed};

/// A format narrower than 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Narrow {
    /// `.e4m3`: no infinity, and one NaN of each sign.
    E4M3,
    /// `.e5m2`: the upper half of an `.f16`.
    E5M2,
    /// `.e2m3`: six bits, every pattern a number.
    E2M3,
    /// `.e3m2`: six bits, every pattern a number.
    E3M2,
    /// `.e2m1`: four bits, every pattern a number.
    E2M1,
}

impl Narrow {
    /// Returns where sign, exponent and fraction lie.
    pub const fn layout(self) -> Layout {
        let (exponent_bits, fraction_bits, special) = match self {
            Self::E4M3 => (4, 3, Special::OneNan),
            Self::E5M2 => (5, 2, Special::Ieee),
            Self::E2M3 => (2, 3, Special::Finite),
            Self::E3M2 => (3, 2, Special::Finite),
            Self::E2M1 => (2, 1, Special::Finite),
        };
        Layout { exponent_bits, fraction_bits, special }
    }

    /// Returns the result for a NaN: all ones without the sign, which the finite formats read as
    /// their largest number.
    const fn nan(self) -> u8 {
        self.layout().sign_mask() as u8 - 1
    }

    /// Returns the bits between the two values of a packed pair.
    const fn stride(self) -> u32 {
        match self {
            Self::E2M1 => 4,
            _ => 8,
        }
    }
}

/// Converts one value of `F` to a narrow format: `cvt.rn.satfinite{.relu}`.
#[inline]
pub fn narrow_from<F: Float>(to: Narrow, a: F::Bits, relu: bool) -> u8 {
    let layout = to.layout();
    let sign = if a.into() & F::SIGN != 0 { layout.sign_mask() as u8 } else { 0 };
    let magnitude = match F::LAYOUT.decode(a.into()) {
        Value::Nan => return to.nan(),
        _ if relu && sign != 0 => return 0,
        Value::Infinite { .. } => layout.max_finite() as u8,
        Value::Finite(exact) => exact.round(layout, Rounding::NearestEven).magnitude as u8,
    };
    sign | magnitude
}

/// Computes `cvt.rn.satfinite{.relu}` of two `.f32` to a packed pair: `a` is the upper one.
#[inline]
pub fn narrow_pair(to: Narrow, a: u32, b: u32, relu: bool) -> u16 {
    u16::from(narrow_from::<F32>(to, a, relu)) << to.stride() | u16::from(narrow_from::<F32>(to, b, relu))
}

/// Computes `cvt.rn.satfinite{.relu}` of an `.f16x2` to a packed pair.
#[inline]
pub fn narrow_packed_f16(to: Narrow, a: u32, relu: bool) -> u16 {
    let (low, high) = packed::unpack(a);
    u16::from(narrow_from::<F16>(to, high, relu)) << to.stride()
        | u16::from(narrow_from::<F16>(to, low, relu))
}

/// Returns one value of a narrow format as an `.f16`, which holds them all exactly.
#[inline]
pub fn narrow_to_f16(from: Narrow, a: u8, relu: bool) -> u16 {
    let bits = from.layout().decode(a.into()).encode::<F16>(Rounding::NearestEven);
    let clamp = if relu { crate::numeric::Clamp::Relu } else { crate::numeric::Clamp::None };
    crate::numeric::float::clamp_bits::<F16>(bits, clamp) as u16
}

/// Computes `cvt.rn{.relu}.f16x2` of a packed pair.
#[inline]
pub fn widen_packed(from: Narrow, a: u16, relu: bool) -> u32 {
    let mask = (1 << from.stride()) - 1;
    let half = |bits: u16| narrow_to_f16(from, (bits & mask) as u8, relu);
    packed::pack(half(a), half(a >> from.stride()))
}

/// Computes `.ue8m0`, the power of two `2^(bits − 127)`: the magnitude of `a` rounded up (`.rp`) or
/// down (`.rz`) to one.
///
/// `0xff` is NaN. Past `2^127`, and for an infinity, the result is `2^127` with `.satfinite` and
/// NaN without.
#[inline]
fn to_ue8m0<F: Float>(a: F::Bits, up: bool, satfinite: bool) -> u8 {
    let exact = match F::LAYOUT.decode(a.into()) {
        Value::Nan => return 0xff,
        Value::Infinite { .. } => return if satfinite { 0xfe } else { 0xff },
        Value::Finite(exact) if exact.significand == 0 => return 0,
        Value::Finite(exact) => exact,
    };
    let inexact = !exact.significand.is_power_of_two();
    let exponent = exact.exponent + exact.significand.ilog2() as i32 + i32::from(up && inexact);
    match exponent + 127 {
        255.. => {
            if satfinite {
                0xfe
            } else {
                0xff
            }
        }
        bits => bits.max(0) as u8,
    }
}

/// Converts one `.f32` to `.ue8m0`.
#[inline]
pub fn f32_to_ue8m0(a: u32, up: bool, satfinite: bool) -> u8 {
    to_ue8m0::<F32>(a, up, satfinite)
}

/// Converts one `.bf16` to `.ue8m0`.
#[inline]
pub fn bf16_to_ue8m0(a: u16, up: bool, satfinite: bool) -> u8 {
    to_ue8m0::<Bf16>(a, up, satfinite)
}

/// Converts one `.ue8m0` to `.bf16`, exactly.
#[inline]
pub fn ue8m0_to_bf16(a: u8) -> u16 {
    match a {
        0xff => <Bf16 as Float>::Bits::truncate(Bf16::NAN),
        // 2^-127 is half the smallest normal number.
        0 => 0x0040,
        _ => u16::from(a) << 7,
    }
}
