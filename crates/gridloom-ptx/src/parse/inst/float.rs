//! Floating point arithmetic.

use super::Mods;
use crate::model::ScalarType;
use crate::model::op::{ApproxOp, FloatArith, FloatOp, FloatPrecision, MinMax, Op, Rounding, TestpOp};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn float(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let ftz = m.flag("ftz");
        let op = match m.mnemonic {
            "add" | "sub" | "mul" => {
                let (rounding, sat) = (m.take(), m.flag("sat"));
                let ty = self.need_type(m)?;
                m.finish()?;
                let op = match m.mnemonic {
                    "add" => FloatArith::Add,
                    "sub" => FloatArith::Sub,
                    _ => FloatArith::Mul,
                };
                let (dst, a, b) = self.binary_operands(ty)?;
                FloatOp::Arith { op, ty, rounding, ftz, sat, dst, a, b }
            }
            "fma" => {
                let rounding = self.need(m, "a rounding such as .rn")?;
                let (sat, relu, oob) = (m.flag("sat"), m.flag("relu"), m.flag("oob"));
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                FloatOp::Fma { ty, rounding, ftz, sat, relu, oob, dst, a, b, c }
            }
            "mad" => {
                let (rounding, sat) = (m.take(), m.flag("sat"));
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                FloatOp::Mad { ty, rounding, ftz, sat, dst, a, b, c }
            }
            "div" => {
                let (precision, ty) = self.precision(m)?;
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ty)?;
                FloatOp::Div { ty, precision, ftz, dst, a, b }
            }
            "rcp" | "sqrt" => {
                let (precision, ty) = self.precision(m)?;
                m.finish()?;
                let (dst, a) = self.unary(ty)?;
                if m.mnemonic == "rcp" {
                    FloatOp::Rcp { ty, precision, ftz, dst, a }
                } else {
                    FloatOp::Sqrt { ty, precision, ftz, dst, a }
                }
            }
            "abs" | "neg" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a) = self.unary(ty)?;
                if m.mnemonic == "abs" {
                    FloatOp::Abs { ty, ftz, dst, a }
                } else {
                    FloatOp::Neg { ty, ftz, dst, a }
                }
            }
            "min" | "max" => {
                let op = if m.mnemonic == "min" { MinMax::Min } else { MinMax::Max };
                let (nan, xorsign_abs, abs) = (m.flag("NaN"), m.flag("xorsign"), m.flag("abs"));
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ty)?;
                let c = self.optional_src()?;
                FloatOp::MinMax { op, ty, ftz, nan, xorsign_abs, abs: abs && !xorsign_abs, dst, a, b, c }
            }
            "copysign" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ty)?;
                FloatOp::Copysign { ty, dst, a, b }
            }
            "testp" => {
                let op: TestpOp = self.need(m, "a property such as .finite")?;
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a) = self.unary(ScalarType::Pred)?;
                FloatOp::Testp { op, ty, dst, a }
            }
            _ => {
                // `.approx` may be left out in old PTX; there is no other kind.
                m.flag("approx");
                let ty = self.need_type(m)?;
                m.finish()?;
                let op = ApproxOp::from_word(m.mnemonic).unwrap_or(ApproxOp::Rsqrt);
                let (dst, a) = self.unary(ty)?;
                FloatOp::Approx { op, ty, ftz, dst, a }
            }
        };
        Ok(op.into())
    }

    /// Returns how exact, and the type. Before PTX 1.4 neither `.approx` nor a rounding was
    /// written.
    fn precision(&mut self, m: &mut Mods<'a>) -> Parse<(FloatPrecision, ScalarType)> {
        let written = if m.flag("approx") {
            Some(FloatPrecision::Approx)
        } else if m.mnemonic == "div" && m.flag("full") {
            Some(FloatPrecision::Full)
        } else {
            m.take::<Rounding>().map(FloatPrecision::Rounded)
        };
        let ty = self.need_type(m)?;
        let default = match ty {
            ScalarType::F64 => FloatPrecision::Rounded(Rounding::Rn),
            _ => FloatPrecision::Approx,
        };
        Ok((written.unwrap_or(default), ty))
    }
}
