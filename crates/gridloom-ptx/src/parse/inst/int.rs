//! Integer arithmetic.

use super::Mods;
use crate::model::ScalarType;
use crate::model::op::{Half, IntArith, IntOp, MulMode, Op, twice};
use crate::parse::{Parse, Parser, Stop};

impl<'a> Parser<'a> {
    pub(super) fn int(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let op = match m.mnemonic {
            "add" | "sub" => {
                if m.flag("cc") {
                    return self.carry(m, false, true);
                }
                let op = if m.mnemonic == "add" { IntArith::Add } else { IntArith::Sub };
                return self.int_arith(m, op);
            }
            "addc" | "subc" => {
                let carry_out = m.flag("cc");
                return self.carry(m, true, carry_out);
            }
            "div" => return self.int_arith(m, IntArith::Div),
            "rem" => return self.int_arith(m, IntArith::Rem),
            "min" => return self.int_arith(m, IntArith::Min),
            "max" => return self.int_arith(m, IntArith::Max),
            "mul" => match self.need(m, ".lo, .hi or .wide")? {
                MulMode::Lo => return self.int_arith(m, IntArith::MulLo),
                MulMode::Hi => return self.int_arith(m, IntArith::MulHi),
                MulMode::Wide => {
                    let ty = self.need_type(m)?;
                    m.finish()?;
                    let (dst, a, b) = self.binary_operands(twice(ty))?;
                    IntOp::MulWide { ty, dst, a, b }
                }
            },
            "mul24" => {
                let half: Half = self.need(m, ".lo or .hi")?;
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ty)?;
                IntOp::Mul24 { half, ty, dst, a, b }
            }
            "mad24" => {
                let half: Half = self.need(m, ".lo or .hi")?;
                let sat = m.flag("sat");
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                IntOp::Mad24 { half, ty, sat, dst, a, b, c }
            }
            "mad" | "madc" => return self.int_mad(m),
            "sad" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                IntOp::Sad { ty, dst, a, b, c }
            }
            "abs" | "neg" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a) = self.unary(ty)?;
                if m.mnemonic == "abs" { IntOp::Abs { ty, dst, a } } else { IntOp::Neg { ty, dst, a } }
            }
            "dp2a" => {
                let half: Half = self.need(m, ".lo or .hi")?;
                let (a_ty, b_ty) = (self.need_type(m)?, self.need_type(m)?);
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ScalarType::B32)?;
                IntOp::Dp2a { half, a_ty, b_ty, dst, a, b, c }
            }
            _ => {
                let (a_ty, b_ty) = (self.need_type(m)?, self.need_type(m)?);
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ScalarType::B32)?;
                IntOp::Dp4a { a_ty, b_ty, dst, a, b, c }
            }
        };
        Ok(op.into())
    }

    fn int_arith(&mut self, m: &mut Mods<'a>, op: IntArith) -> Parse<Op> {
        let sat = matches!(op, IntArith::Add | IntArith::Sub) && m.flag("sat");
        let relu = matches!(op, IntArith::Min | IntArith::Max) && m.flag("relu");
        let ty = self.need_type(m)?;
        m.finish()?;
        // These exist, but the model has no meaning for them.
        if sat && op == IntArith::Add && matches!(ty, ScalarType::U32 | ScalarType::U16x2 | ScalarType::S16x2)
        {
            return Err(Stop::Unsupported(format!("`add.sat` has no `.{ty}`")));
        }
        let (dst, a, b) = self.binary_operands(ty)?;
        Ok(IntOp::Arith { op, ty, sat, relu, dst, a, b }.into())
    }

    fn carry(&mut self, m: &mut Mods<'a>, carry_in: bool, carry_out: bool) -> Parse<Op> {
        let subtract = m.mnemonic.starts_with("sub");
        let ty = self.need_type(m)?;
        m.finish()?;
        let (dst, a, b) = self.binary_operands(ty)?;
        Ok(IntOp::Carry { subtract, carry_in, carry_out, ty, dst, a, b }.into())
    }

    fn int_mad(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let carry_in = m.mnemonic == "madc";
        let carry_out = m.flag("cc");
        if carry_in || carry_out {
            let half: Half = self.need(m, ".lo or .hi")?;
            let ty = self.need_type(m)?;
            m.finish()?;
            let (dst, a, b, c) = self.ternary_operands(ty)?;
            return Ok(IntOp::MadCarry { half, carry_in, carry_out, ty, dst, a, b, c }.into());
        }
        let mode: MulMode = self.need(m, ".lo, .hi or .wide")?;
        let sat = m.flag("sat");
        let ty = self.need_type(m)?;
        m.finish()?;
        let result = if mode == MulMode::Wide { twice(ty) } else { ty };
        let (dst, a, b, c) = self.ternary_operands(result)?;
        Ok(IntOp::Mad { mode, ty, sat, dst, a, b, c }.into())
    }
}
