//! Logic, shifts and bit fields.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::{Operand, PredOperand};
use crate::model::types::ScalarType;

words! {
    /// Bitwise logic of two operands.
    pub enum LogicOp { And = "and", Or = "or", Xor = "xor", }
}

words! {
    /// Direction of a shift.
    pub enum ShiftDirection { Left = "l", Right = "r", }
}

words! {
    /// What `shf` does with shift amounts above 32.
    pub enum FunnelMode { Clamp = "clamp", Wrap = "wrap", }
}

words! {
    /// What `bmsk` and `szext` do with positions above 32.
    pub enum MaskMode { Clamp = "clamp", Wrap = "wrap", }
}

words! {
    /// What `bfind` returns.
    pub enum BfindMode {
        /// The position of the bit found.
        Position = "",
        /// The left shift that brings the bit found to the top.
        ShiftAmount = "shiftamt",
    }
}

words! {
    /// How `prmt` chooses bytes.
    pub enum PrmtMode {
        /// Each nibble of the selector picks a byte.
        Generic = "",
        F4e = "f4e",
        B4e = "b4e",
        Rc8 = "rc8",
        Ecl = "ecl",
        Ecr = "ecr",
        Rc16 = "rc16",
    }
}

/// The predicate half of `lop3.BoolOp.b32 d|p, a, b, c, lut, q`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lop3Pred {
    /// `.and` or `.or`; never `.xor`.
    pub op: LogicOp,
    /// Receives `(d != 0) op q`.
    pub dst: RegId,
    /// The predicate combined with.
    pub q: PredOperand,
}

/// Logic, shifts and bit fields.
#[derive(Clone, Debug, PartialEq)]
pub enum BitsOp {
    /// `and`, `or`, `xor`, on bits or predicates.
    Logic { op: LogicOp, ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `not`, on bits or predicates.
    Not { ty: ScalarType, dst: RegId, a: Operand },
    /// `cnot`: 1 if `a` is 0, else 0.
    Cnot { ty: ScalarType, dst: RegId, a: Operand },
    /// `lop3.b32`: any function of three bits, by its truth table. `dst` is `None` for `_|p`.
    Lop3 { dst: Option<RegId>, pred: Option<Lop3Pred>, a: Operand, b: Operand, c: Operand, lut: u8 },
    /// `shl`; the amount `b` is a `.u32` and clamps at the width.
    Shl { ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `shr`: arithmetic for signed types.
    Shr { ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `shf.{l,r}.{clamp,wrap}.b32`: shifts the 64 bits `b:a` and keeps half.
    Shf { direction: ShiftDirection, mode: FunnelMode, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `bfe`: extracts the `c` bits at `b`.
    Bfe { ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `bfi`: inserts the low `d` bits of `a` into `b` at `c`.
    Bfi { ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Operand, d: Operand },
    /// `bfind`: the most significant non-sign bit; the result is a `.u32`.
    Bfind { ty: ScalarType, mode: BfindMode, dst: RegId, a: Operand },
    /// `brev`.
    Brev { ty: ScalarType, dst: RegId, a: Operand },
    /// `clz`; the result is a `.u32`.
    Clz { ty: ScalarType, dst: RegId, a: Operand },
    /// `popc`; the result is a `.u32`.
    Popc { ty: ScalarType, dst: RegId, a: Operand },
    /// `fns.b32`: the `offset`-th set bit of `mask` counted from `base`.
    Fns { dst: RegId, mask: Operand, base: Operand, offset: Operand },
    /// `prmt.b32`: picks four bytes out of `b:a`.
    Prmt { mode: PrmtMode, dst: RegId, a: Operand, b: Operand, c: Operand },
    /// `szext`: sign- or zero-extends from bit `b`.
    Szext { mode: MaskMode, ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `bmsk.b32`: `b` ones from bit `a`.
    Bmsk { mode: MaskMode, dst: RegId, a: Operand, b: Operand },
}
