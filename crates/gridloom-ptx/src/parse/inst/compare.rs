//! Comparison and selection.

use super::Mods;
use crate::model::op::{BoolOp, Combine, Compare, CompareOp, Op};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn compare(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let ftz = m.flag("ftz");
        let op = match m.mnemonic {
            "set" | "setp" => {
                let cmp: Compare = self.need(m, "a comparison such as .lt")?;
                let bool_op: Option<BoolOp> = m.take();
                let first = self.need_type(m)?;
                if m.mnemonic == "set" {
                    let ty = self.need_type(m)?;
                    m.finish()?;
                    let (dst, a, b) = self.binary_operands(first)?;
                    let combine = self.combine(bool_op)?;
                    CompareOp::Set { cmp, combine, ftz, dst_ty: first, ty, dst, a, b }
                } else {
                    m.finish()?;
                    let (p, q) = self.dst_pair()?;
                    self.comma()?;
                    let a = self.src()?;
                    self.comma()?;
                    let b = self.src()?;
                    let combine = self.combine(bool_op)?;
                    CompareOp::Setp { cmp, combine, ftz, ty: first, p, q, a, b }
                }
            }
            "selp" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, a, b) = self.binary_operands(ty)?;
                self.comma()?;
                CompareOp::Selp { ty, dst, a, b, cond: self.pred()? }
            }
            _ => {
                let (ty, cond_ty) = (self.need_type(m)?, self.need_type(m)?);
                m.finish()?;
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                CompareOp::Slct { ty, cond_ty, ftz, dst, a, b, c }
            }
        };
        Ok(op.into())
    }

    /// `, {!}c`, if the instruction combines.
    fn combine(&mut self, op: Option<BoolOp>) -> Parse<Option<Combine>> {
        let Some(op) = op else { return Ok(None) };
        self.comma()?;
        Ok(Some(Combine { op, pred: self.pred()? }))
    }
}
