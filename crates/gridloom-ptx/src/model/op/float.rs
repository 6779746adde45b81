//! Floating point arithmetic.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::Operand;
use crate::model::types::ScalarType;

words! {
    /// IEEE rounding.
    pub enum Rounding {
        /// To nearest, ties to even.
        Rn = "rn",
        /// Towards zero.
        Rz = "rz",
        /// Towards negative infinity.
        Rm = "rm",
        /// Towards positive infinity.
        Rp = "rp",
    }
}

words! {
    /// Two-operand arithmetic.
    pub enum FloatArith { Add = "add", Sub = "sub", Mul = "mul", }
}

words! {
    /// Smaller or larger.
    pub enum MinMax { Min = "min", Max = "max", }
}

words! {
    /// Functions that exist only as approximations.
    pub enum ApproxOp {
        Rsqrt = "rsqrt", Sin = "sin", Cos = "cos", Lg2 = "lg2", Ex2 = "ex2", Tanh = "tanh",
    }
}

words! {
    /// The property `testp` asks about.
    pub enum TestpOp {
        Finite = "finite", Infinite = "infinite", Number = "number", NotANumber = "notanumber",
        Normal = "normal", Subnormal = "subnormal",
    }
}

/// How exact a division, reciprocal or square root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatPrecision {
    /// `.approx`: fast.
    Approx,
    /// `.full`: fast, full range (`div` only).
    Full,
    /// Correctly rounded.
    Rounded(Rounding),
}

/// Floating point arithmetic. `ftz` flushes subnormal inputs and results to zero of the same sign.
#[derive(Clone, Debug, PartialEq)]
pub enum FloatOp {
    /// `add`, `sub`, `mul` on any floating point type, packed or not. No rounding modifier means
    /// `.rn`, and lets a compiler contract the instruction into an `fma`; hence the `Option`.
    Arith {
        op: FloatArith,
        ty: ScalarType,
        rounding: Option<Rounding>,
        ftz: bool,
        /// Clamp to [0, 1], NaN to 0.
        sat: bool,
        dst: RegId,
        a: Operand,
        b: Operand,
    },
    /// `fma`: one rounding.
    Fma {
        ty: ScalarType,
        rounding: Rounding,
        ftz: bool,
        sat: bool,
        /// Clamp negative results and NaN (to canonical) as `max(x, 0)`.
        relu: bool,
        /// Out-of-bounds NaN handling (`.oob`).
        oob: bool,
        dst: RegId,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    /// `mad`: the same as `fma` on every device that still exists.
    Mad {
        ty: ScalarType,
        rounding: Option<Rounding>,
        ftz: bool,
        sat: bool,
        dst: RegId,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    /// `div`.
    Div { ty: ScalarType, precision: FloatPrecision, ftz: bool, dst: RegId, a: Operand, b: Operand },
    /// `rcp`; also `rcp.approx.ftz.f64`.
    Rcp { ty: ScalarType, precision: FloatPrecision, ftz: bool, dst: RegId, a: Operand },
    /// `sqrt`.
    Sqrt { ty: ScalarType, precision: FloatPrecision, ftz: bool, dst: RegId, a: Operand },
    /// `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`.
    Approx { op: ApproxOp, ty: ScalarType, ftz: bool, dst: RegId, a: Operand },
    /// `abs`.
    Abs { ty: ScalarType, ftz: bool, dst: RegId, a: Operand },
    /// `neg`.
    Neg { ty: ScalarType, ftz: bool, dst: RegId, a: Operand },
    /// `min`, `max`, of two or three operands.
    MinMax {
        op: MinMax,
        ty: ScalarType,
        ftz: bool,
        /// A NaN operand makes the result NaN.
        nan: bool,
        /// The magnitude of the result is that of the operands' absolute values, its sign the XOR
        /// of theirs.
        xorsign_abs: bool,
        /// Takes absolute values first (`.abs`, three operands).
        abs: bool,
        dst: RegId,
        a: Operand,
        b: Operand,
        c: Option<Operand>,
    },
    /// `copysign`: the sign of `a` on the magnitude of `b`.
    Copysign { ty: ScalarType, dst: RegId, a: Operand, b: Operand },
    /// `testp`.
    Testp { op: TestpOp, ty: ScalarType, dst: RegId, a: Operand },
}
