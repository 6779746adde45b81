//! Logic, shifts and bit fields.

use super::Mods;
use crate::model::ScalarType;
use crate::model::op::{BfindMode, BitsOp, LogicOp, Lop3Pred, Op, PrmtMode};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn bits(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        if m.mnemonic == "lop3" {
            return self.lop3(m);
        }
        let direction = if m.mnemonic == "shf" { Some(self.need(m, ".l or .r")?) } else { None };
        let funnel = if m.mnemonic == "shf" { Some(self.need(m, ".clamp or .wrap")?) } else { None };
        let mask_mode = if matches!(m.mnemonic, "szext" | "bmsk") {
            Some(self.need(m, ".clamp or .wrap")?)
        } else {
            None
        };
        let shift_amount = m.mnemonic == "bfind" && m.flag("shiftamt");
        let prmt_mode =
            if m.mnemonic == "prmt" { m.take().unwrap_or(PrmtMode::Generic) } else { PrmtMode::Generic };
        let ty = self.need_type(m)?;
        m.finish()?;
        let op = match m.mnemonic {
            "not" | "cnot" | "brev" => {
                let (dst, a) = self.unary(ty)?;
                match m.mnemonic {
                    "not" => BitsOp::Not { ty, dst, a },
                    "cnot" => BitsOp::Cnot { ty, dst, a },
                    _ => BitsOp::Brev { ty, dst, a },
                }
            }
            "clz" | "popc" | "bfind" => {
                let (dst, a) = self.unary(ScalarType::U32)?;
                match m.mnemonic {
                    "clz" => BitsOp::Clz { ty, dst, a },
                    "popc" => BitsOp::Popc { ty, dst, a },
                    _ => {
                        let mode = if shift_amount { BfindMode::ShiftAmount } else { BfindMode::Position };
                        BitsOp::Bfind { ty, mode, dst, a }
                    }
                }
            }
            "shl" | "shr" | "szext" | "bmsk" | "and" | "or" | "xor" => {
                let (dst, a, b) = self.binary_operands(ty)?;
                match (m.mnemonic, mask_mode) {
                    ("shl", _) => BitsOp::Shl { ty, dst, a, b },
                    ("shr", _) => BitsOp::Shr { ty, dst, a, b },
                    ("szext", Some(mode)) => BitsOp::Szext { mode, ty, dst, a, b },
                    (_, Some(mode)) => BitsOp::Bmsk { mode, dst, a, b },
                    ("and", None) => BitsOp::Logic { op: LogicOp::And, ty, dst, a, b },
                    ("or", None) => BitsOp::Logic { op: LogicOp::Or, ty, dst, a, b },
                    _ => BitsOp::Logic { op: LogicOp::Xor, ty, dst, a, b },
                }
            }
            "bfi" => {
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                self.comma()?;
                let d = self.src()?;
                BitsOp::Bfi { ty, dst, a, b, c, d }
            }
            _ => {
                let (dst, a, b, c) = self.ternary_operands(ty)?;
                match (m.mnemonic, direction, funnel) {
                    (_, Some(direction), Some(mode)) => BitsOp::Shf { direction, mode, dst, a, b, c },
                    ("bfe", ..) => BitsOp::Bfe { ty, dst, a, b, c },
                    ("fns", ..) => BitsOp::Fns { dst, mask: a, base: b, offset: c },
                    _ => BitsOp::Prmt { mode: prmt_mode, dst, a, b, c },
                }
            }
        };
        Ok(op.into())
    }

    /// `lop3.b32 d, a, b, c, lut` and `lop3.op.b32 d|p, a, b, c, lut, q`.
    fn lop3(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let combine = if m.flag("and") {
            Some(LogicOp::And)
        } else if m.flag("or") {
            Some(LogicOp::Or)
        } else {
            None
        };
        let _: ScalarType = self.need_type(m)?;
        m.finish()?;
        let start = self.span();
        let (dst, pred_dst) = self.dst_pair()?;
        self.comma()?;
        let a = self.src()?;
        self.comma()?;
        let b = self.src()?;
        self.comma()?;
        let c = self.src()?;
        self.comma()?;
        let lut_at = self.span();
        let Ok(lut) = u8::try_from(self.integer("a truth table")?) else {
            return self.error(lut_at, "the truth table of lop3 is between 0 and 255");
        };
        let pred = match (combine, pred_dst) {
            (None, None) => None,
            (Some(op), Some(dst)) => {
                self.comma()?;
                Some(Lop3Pred { op, dst, q: self.pred()? })
            }
            (Some(_), None) => return self.error(start, "lop3 with .and or .or writes a predicate: d|p"),
            (None, Some(_)) => return self.error(start, "lop3 writes a predicate only with .and or .or"),
        };
        Ok(BitsOp::Lop3 { dst, pred, a, b, c, lut }.into())
    }
}
