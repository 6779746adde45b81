//! Atomic operations.

use super::Mods;
use crate::model::op::{AtomOp, AtomicOp, AtomicRmw, FenceSem, Op, Scope};
use crate::model::{Dsts, Srcs};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn atomic(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let sem: Option<FenceSem> = m.take();
        let scope: Option<Scope> = m.take();
        let space = m.space();
        let op: AtomOp = self.need(m, "an operation such as .add")?;
        let noftz = m.flag("noftz");
        let hint = m.flag("L2::cache_hint");
        let vector = m.vector();
        let ty = self.need_type(m)?;
        m.finish()?;
        let mut dsts = Dsts::new();
        if m.mnemonic == "atom" {
            let at = self.span();
            dsts = self.dsts()?;
            // One `_` stands for the whole vector.
            if dsts.len() != vector && dsts.as_slice() != [None] {
                return self.error(at, format!("expected {vector} destinations, found {}", dsts.len()));
            }
            dsts.resize(vector, None);
            self.comma()?;
        }
        let addr = self.addr()?;
        self.comma()?;
        let at = self.span();
        let b: Srcs = self.srcs()?;
        if b.len() != vector {
            return self.error(at, format!("expected {vector} operands, found {}", b.len()));
        }
        let mut c = None;
        if op == AtomOp::Cas {
            self.comma()?;
            c = Some(self.src()?);
        }
        let policy = self.policy(hint)?;
        let rmw = Box::new(AtomicRmw { op, ty, space, sem, scope, noftz, addr, b, c, policy });
        Ok(if m.mnemonic == "atom" { AtomicOp::Atom { dsts, rmw } } else { AtomicOp::Red { rmw } }.into())
    }
}
