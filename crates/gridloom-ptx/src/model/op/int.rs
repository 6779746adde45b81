//! Integer arithmetic.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::Operand;
use crate::model::types::ScalarType;

words! {
    /// Two-operand integer arithmetic whose result has the operands' type.
    pub enum IntArith {
        Add = "add",
        Sub = "sub",
        /// The low half of the product.
        MulLo = "mul.lo",
        /// The high half of the product.
        MulHi = "mul.hi",
        Div = "div",
        Rem = "rem",
        Min = "min",
        Max = "max",
    }
}

words! {
    /// Which part of a product counts.
    pub enum MulMode {
        Lo = "lo",
        Hi = "hi",
        /// All of it: the result is twice as wide as the operands.
        Wide = "wide",
    }
}

words! {
    /// The low or high half.
    pub enum Half { Lo = "lo", Hi = "hi", }
}

/// Integer arithmetic.
#[derive(Clone, Debug, PartialEq)]
pub enum IntOp {
    /// `add`, `sub`, `mul.lo`, `mul.hi`, `div`, `rem`, `min`, `max`; also on `.u16x2` and `.s16x2`.
    Arith {
        op: IntArith,
        ty: ScalarType,
        /// Clamp to the type's range (`add`/`sub` on `.s32`).
        sat: bool,
        /// Clamp below at 0 (`min`/`max` on `.s32`, `.s16x2`).
        relu: bool,
        dst: RegId,
        a: Operand,
        b: Operand,
    },
    /// `mul.wide`: `ty` is the operands' type, the result is twice as wide.
    MulWide { ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `mul24`: the low 32 (`.lo`) or high 32 (`.hi`) of the 48 bits of the product of two 24-bit
    /// values.
    Mul24 { half: Half, ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `mad`: product, plus `c`. For [`MulMode::Wide`], `dst` and `c` are twice as wide as `ty`.
    Mad { mode: MulMode, ty: ScalarType, sat: bool, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `mad24`.
    Mad24 { half: Half, ty: ScalarType, sat: bool, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `add.cc`, `addc`, `addc.cc`, and the same for `sub`.
    Carry {
        /// Subtract with borrow rather than add with carry.
        subtract: bool,
        /// Adds the carry flag in (`addc`, `subc`).
        carry_in: bool,
        /// Writes the carry flag (`.cc`).
        carry_out: bool,
        ty: ScalarType,
        dst: RegId,
        a: Operand,
        b: Operand,
    },
    /// `mad.lo.cc`, `madc.lo`, `madc.hi.cc` and the like.
    MadCarry {
        half: Half,
        carry_in: bool,
        carry_out: bool,
        ty: ScalarType,
        dst: RegId,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    /// `sad`: `c + |a - b|`.
    Sad { ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `abs`.
    Abs { ty: ScalarType, dst: RegId, a: Operand },
    /// `neg`.
    Neg { ty: ScalarType, dst: RegId, a: Operand },
    /// `dp4a`: dot product of four bytes each, plus `c`. The types are `.u32` or `.s32`: how bytes
    /// are read.
    Dp4a { a_ty: ScalarType, b_ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `dp2a`: dot product of the halves of `a` with the low or high two bytes of `b`, plus `c`.
    Dp2a { half: Half, a_ty: ScalarType, b_ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Operand },
}
