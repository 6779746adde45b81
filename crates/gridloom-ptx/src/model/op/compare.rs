//! Comparison and selection.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::{Operand, PredOperand};
use crate::model::types::ScalarType;

words! {
    /// How two values are compared. The unordered forms are true when an operand is NaN.
    pub enum Compare {
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge",
        /// Unsigned less than.
        Lo = "lo",
        /// Unsigned less than or equal.
        Ls = "ls",
        /// Unsigned greater than.
        Hi = "hi",
        /// Unsigned greater than or equal.
        Hs = "hs",
        Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu",
        /// Neither is NaN.
        Num = "num",
        /// Either is NaN.
        Nan = "nan",
    }
}

words! {
    /// How the result of a comparison is combined with a predicate.
    pub enum BoolOp { And = "and", Or = "or", Xor = "xor", }
}

/// The combination of a comparison's result with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Combine {
    pub op: BoolOp,
    pub pred: PredOperand,
}

/// Comparison and selection.
#[derive(Clone, Debug, PartialEq)]
pub enum CompareOp {
    /// `set`: compares values of type `ty`, writes all ones or 1.0 of type `dst_ty`.
    Set {
        cmp: Compare,
        combine: Option<Combine>,
        ftz: bool,
        dst_ty: ScalarType,
        ty: ScalarType,
        dst: RegId,
        a: Operand,
        b: Operand,
    },
    /// `setp p|q, a, b, c`: `p` is `(a cmp b) op c`, `q` is `!(a cmp b) op c`. For `.f16x2` and
    /// `.bf16x2`, `p` is the low and `q` the high element's result. `None` is `_`.
    Setp {
        cmp: Compare,
        combine: Option<Combine>,
        ftz: bool,
        ty: ScalarType,
        p: Option<RegId>,
        q: Option<RegId>,
        a: Operand,
        b: Operand,
    },
    /// `selp`: `a` if the predicate holds, else `b`.
    Selp { ty: ScalarType, dst: RegId, a: Operand, b: Operand, cond: PredOperand },
    /// `slct`: `a` if `c >= 0`, else `b`; `cond_ty` is `.s32` or `.f32`.
    Slct { ty: ScalarType, cond_ty: ScalarType, ftz: bool, dst: RegId, a: Operand, b: Operand, c: Operand },
}
