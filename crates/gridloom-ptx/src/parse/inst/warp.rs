//! Communication within a warp.

use super::Mods;
use crate::model::ScalarType;
use crate::model::op::{MatchMode, Op, ReduxOp, ShuffleMode, VoteMode, WarpOp};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn warp(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let sync = m.flag("sync");
        let op = match m.mnemonic {
            "shfl" => {
                let mode: ShuffleMode = self.need(m, ".up, .down, .bfly or .idx")?;
                m.flag("b32");
                m.finish()?;
                let (dst, pred) = self.dst_pair()?;
                self.comma()?;
                let a = self.src()?;
                self.comma()?;
                let b = self.src()?;
                self.comma()?;
                let c = self.src()?;
                let mask = self.policy(sync)?;
                WarpOp::Shfl { mode, dst, pred, a, b, c, mask }
            }
            "vote" => {
                let mode: VoteMode = self.need(m, ".all, .any, .uni or .ballot")?;
                let ty = self.need_type(m)?;
                m.finish()?;
                let dst = self.dst(ty)?;
                self.comma()?;
                let pred = self.pred()?;
                let mask = self.policy(sync)?;
                WarpOp::Vote { mode, dst, pred, mask }
            }
            "match" => {
                let mode: MatchMode = self.need(m, ".any or .all")?;
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, pred) = self.dst_pair()?;
                self.comma()?;
                let a = self.src()?;
                self.comma()?;
                WarpOp::Match { mode, ty, dst, pred, a, mask: self.src()? }
            }
            "redux" => {
                let op: ReduxOp = self.need(m, "an operation such as .add")?;
                let (abs, nan) = (m.flag("abs"), m.flag("NaN"));
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, src, mask) = self.binary_operands(ty)?;
                WarpOp::Redux { op, ty, abs, nan, dst, src, mask }
            }
            "activemask" => {
                m.flag("b32");
                m.finish()?;
                WarpOp::ActiveMask { dst: self.dst(ScalarType::B32)? }
            }
            _ => {
                m.finish()?;
                let at = self.span();
                let (dst, pred) = self.dst_pair()?;
                let Some(pred) = pred else {
                    return self.error(at, "`elect.sync` writes a lane and a predicate: d|p");
                };
                self.comma()?;
                WarpOp::Elect { dst, pred, mask: self.src()? }
            }
        };
        Ok(op.into())
    }
}
