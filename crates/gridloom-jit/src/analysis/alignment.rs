//! Finds powers of two that divide the value of a register in the first thread of each group.
//!
//! The first thread of a group has an index that is a multiple of the threads of a group. So
//! `%tid.x & 31` rises by one from thread to thread in groups of up to 32, and `%tid.x >> 5` is the
//! same in all of them.

use crate::analysis::uniformity::Shape;
use crate::native::{Kind, Native};
use gridloom_ptx::op::LogicOp;
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};

/// The exponent for zero, which is a multiple of all.
pub(crate) const MOST: u32 = 63;

/// Returns the exponent of a special register, in groups of so many threads.
pub(crate) fn special(register: SpecialReg, lanes: u32) -> u32 {
    match register {
        SpecialReg::Dim(DimSpecial::Tid, Dim::X) | SpecialReg::Plain(PlainSpecial::LaneId) => {
            lanes.trailing_zeros()
        }
        // Small groups are also made of rows whose length is not a multiple.
        SpecialReg::Dim(DimSpecial::NTid, Dim::X) if lanes >= 16 => lanes.trailing_zeros(),
        _ => 0,
    }
}

/// Returns the exponent of a constant.
pub(crate) fn constant(value: u64) -> u32 {
    value.trailing_zeros().min(MOST)
}

/// Returns the exponent of what an instruction computes of operands whose exponents are known.
pub(crate) fn of(
    native: &Native,
    operand: impl Fn(usize) -> u32,
    value: impl Fn(usize) -> Option<u64>,
) -> u32 {
    let is_word = native.operands[0].bits() >= 32 && !native.result.is_float();
    let exponent = match native.kind {
        _ if !is_word => 0,
        Kind::Copy | Kind::Neg | Kind::Extend { from: 32 | 64, to: 32 | 64, .. } => operand(0),
        Kind::AddConstant(more) => operand(0).min(constant(more)),
        Kind::Add | Kind::Sub | Kind::Logic(LogicOp::Or | LogicOp::Xor) => operand(0).min(operand(1)),
        Kind::Logic(LogicOp::And) => operand(0).max(operand(1)),
        Kind::Mul | Kind::MulWide { .. } => operand(0) + operand(1),
        Kind::MadLow | Kind::MadWide { .. } => (operand(0) + operand(1)).min(operand(2)),
        Kind::ShiftLeft => match value(1) {
            Some(count) if count < 64 => operand(0) + count as u32,
            _ => operand(0),
        },
        Kind::ShiftRight { .. } => match value(1) {
            Some(count) if count < 64 => operand(0).saturating_sub(count as u32),
            _ => 0,
        },
        _ => 0,
    };
    exponent.min(MOST)
}

/// Returns the shape of a result whose first operand rises by a step from a multiple of a power of
/// two that no thread of the group gets past.
pub(crate) fn shape(
    native: &Native,
    operands: &[Shape],
    exponent: impl Fn(usize) -> u32,
    value: impl Fn(usize) -> Option<u64>,
    lanes: u32,
) -> Option<Shape> {
    let bits = native.result.bits();
    if bits != 32 && bits != 64 || native.result.is_float() || native.operands[0].bits() != bits {
        return None;
    }
    let (of, with) = match (operands.first()?, operands.get(1)?, native.kind) {
        (Shape::Affine(_), Shape::Uniform, _) => (0, 1),
        (Shape::Uniform, Shape::Affine(_), Kind::Logic(_)) => (1, 0),
        _ => return None,
    };
    let Shape::Affine(step @ 1..0x1_0000) = operands[of] else { return None };
    // The bits that differ between threads.
    let differing = u64::BITS - (step as u64 * u64::from(lanes - 1)).leading_zeros();
    let with = value(with)?;
    if exponent(of) < differing {
        return None;
    }
    let low = with & ((1 << differing) - 1);
    match native.kind {
        Kind::Logic(LogicOp::And) if low == 0 => Some(Shape::Uniform),
        Kind::Logic(LogicOp::And) if low == (1 << differing) - 1 => Some(Shape::Affine(step)),
        Kind::Logic(LogicOp::Or | LogicOp::Xor) if low == 0 => Some(Shape::Affine(step)),
        Kind::ShiftRight { .. } if with >= u64::from(differing) && with < u64::from(bits) => {
            Some(Shape::Uniform)
        }
        Kind::ShiftRight { .. } if with < u64::from(bits) && step.trailing_zeros() >= with as u32 => {
            Some(Shape::Affine(step >> with))
        }
        _ => None,
    }
}
