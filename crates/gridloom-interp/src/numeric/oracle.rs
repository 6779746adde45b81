//! The reference that the tests compare with: `rustc_apfloat`, which shares no code with this
//! crate. Also operands worth testing.

use proptest::prelude::*;
use rustc_apfloat::{Float as _, Round, ieee};

use super::format::Word;
use super::{Bf16, F16, F32, F64, Float, Rounding};

/// A format that the oracle computes in too.
pub(super) trait Checked: Float {
    /// The oracle's type.
    type Oracle: rustc_apfloat::Float;
}

impl Checked for F16 {
    type Oracle = ieee::Half;
}
impl Checked for Bf16 {
    type Oracle = ieee::BFloat;
}
impl Checked for F32 {
    type Oracle = ieee::Single;
}
impl Checked for F64 {
    type Oracle = ieee::Double;
}

pub(super) const ROUNDINGS: [Rounding; 4] =
    [Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up];

pub(super) fn round(rounding: Rounding) -> Round {
    match rounding {
        Rounding::NearestEven => Round::NearestTiesToEven,
        Rounding::NearestAway => Round::NearestTiesToAway,
        Rounding::Zero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
    }
}

/// Returns the oracle's value of a bit pattern.
pub(super) fn value<F: Checked>(bits: F::Bits) -> F::Oracle {
    let bits: u64 = bits.into();
    F::Oracle::from_bits(bits.into())
}

/// Returns the bits of the oracle's value, or `None` for a NaN. Tables test which NaN it is.
pub(super) fn number<F: Checked>(value: F::Oracle) -> Option<F::Bits> {
    (!value.is_nan()).then(|| F::Bits::truncate(value.to_bits() as u64))
}

/// Returns the bits, with every NaN as `None`.
pub(super) fn bits<F: Float>(bits: F::Bits) -> Option<F::Bits> {
    (!F::is_nan(bits.into())).then_some(bits)
}

/// Returns edge values of a format, with both signs.
pub(super) fn edges<F: Float>() -> Vec<F::Bits> {
    let (one, min, inf) = (F::ONE, F::MIN_NORMAL, F::INFINITY);
    let magnitudes = [
        0,
        1,
        min - 1,
        min,
        min + 1,
        one - 1,
        one,
        one + 1,
        one + min / 2,
        one + min,
        one - min,
        inf - min,
        inf - 1,
        inf,
        inf + 1,
        inf | F::QUIET,
        inf | F::QUIET | 5,
        F::MAGNITUDE,
    ];
    magnitudes.iter().flat_map(|&bits| [bits, bits | F::SIGN]).map(F::Bits::truncate).collect()
}

/// Any bits, edge values, and numbers near one (so that sums cancel and products stay finite).
pub(super) fn operand<F: Float>() -> impl Strategy<Value = F::Bits>
where
    F::Bits: std::fmt::Debug,
{
    let near = (any::<u64>(), 0_u64..16).prop_map(|(bits, exponent)| {
        let fraction = bits & (F::SIGN | (F::MIN_NORMAL - 1));
        F::Bits::truncate(fraction | (F::ONE - 8 * F::MIN_NORMAL + exponent * F::MIN_NORMAL))
    });
    prop_oneof![
        2 => any::<u64>().prop_map(F::Bits::truncate),
        1 => prop::sample::select(edges::<F>()),
        3 => near,
    ]
}

/// Every rounding direction that arithmetic has.
pub(super) fn rounding() -> impl Strategy<Value = Rounding> {
    prop::sample::select(ROUNDINGS.to_vec())
}
