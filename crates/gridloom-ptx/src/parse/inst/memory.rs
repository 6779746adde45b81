//! Loads, stores, and everything else about addresses and caches.

use super::Mods;
use crate::lexer::Kind;
use crate::model::op::{Access, CacheOp, CpAsync, MemoryOp, Op, Order, PolicyPriority, Scope};
use crate::model::{Address, AddressBase, Operand, PredOperand, ScalarType, Space, Span};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn memory(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let op = match m.mnemonic {
            "ld" | "st" => return self.load_store(m),
            "ldu" => {
                let space = m.space();
                let vector = m.vector();
                let ty = self.need_type(m)?;
                m.finish()?;
                let at = self.span();
                let dsts = self.dsts()?;
                self.vector_length(at, vector, dsts.len())?;
                self.comma()?;
                MemoryOp::Ldu { space, ty, dsts, addr: self.addr()? }
            }
            "prefetch" => {
                let space = m.space();
                let level = self.need(m, "a cache such as .L1")?;
                m.finish()?;
                MemoryOp::Prefetch { space, level, addr: self.addr()? }
            }
            "prefetchu" => {
                m.flag("L1");
                m.finish()?;
                MemoryOp::PrefetchUniform { addr: self.addr()? }
            }
            "discard" => {
                let space = m.space();
                m.flag("L2");
                m.finish()?;
                let addr = self.addr()?;
                self.comma()?;
                MemoryOp::Discard { space, addr, size: self.small("a size")? }
            }
            "applypriority" => {
                let space = m.space();
                m.flag("L2::evict_normal");
                m.finish()?;
                let addr = self.addr()?;
                self.comma()?;
                MemoryOp::ApplyPriority { space, addr, size: self.small("a size")? }
            }
            "createpolicy" => return self.create_policy(m),
            "cp" => return self.cp_async(m),
            "alloca" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                let (dst, size) = self.unary(ty)?;
                let align = if self.eat(Kind::Comma) { Some(self.small("an alignment")?) } else { None };
                MemoryOp::Alloca { ty, dst, size, align }
            }
            "stacksave" => {
                let ty = self.need_type(m)?;
                m.finish()?;
                MemoryOp::StackSave { ty, dst: self.dst(ty)? }
            }
            _ => {
                let ty = self.need_type(m)?;
                m.finish()?;
                MemoryOp::StackRestore { ty, src: self.src()? }
            }
        };
        Ok(op.into())
    }

    pub(super) fn vector_length(&mut self, at: Span, wanted: usize, found: usize) -> Parse<()> {
        if wanted == found {
            return Ok(());
        }
        let what =
            if wanted == 1 { "one register".to_owned() } else { format!("{wanted} elements in braces") };
        self.error(at, format!("expected {what}, found {found}"))
    }

    fn load_store(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let mut order: Order = m.take().unwrap_or(Order::Weak);
        if order == Order::Mmio || order == Order::Relaxed {
            // `.mmio.relaxed` is one thing.
            if m.flag("relaxed") || m.flag("mmio") {
                order = Order::Mmio;
            }
        }
        // After `.shared::cluster` and the like there is no other `.cluster`, so a scope is a
        // scope.
        let scope: Option<Scope> = m.take();
        let space = m.space();
        let nc = m.flag("nc");
        let cache = m.take();
        let eviction = m.take();
        let l2_eviction = m.take();
        let prefetch = m.take();
        let hint = m.flag("L2::cache_hint");
        let vector = m.vector();
        let ty = self.need_type(m)?;
        m.finish()?;
        let mut access = Access {
            space,
            order,
            scope,
            nc,
            cache,
            eviction,
            l2_eviction,
            prefetch,
            policy: None,
            unified: false,
            addr: Address { base: AddressBase::Absolute, offset: 0 },
        };
        if m.mnemonic == "ld" {
            let at = self.span();
            let dsts = self.dsts()?;
            self.vector_length(at, vector, dsts.len())?;
            self.comma()?;
            access.addr = self.addr()?;
            access.unified = self.eat_dot("unified");
            access.policy = self.policy(hint)?;
            return Ok(MemoryOp::Ld { ty, dsts, access: Box::new(access) }.into());
        }
        access.addr = self.addr()?;
        self.comma()?;
        let at = self.span();
        let srcs = self.srcs()?;
        self.vector_length(at, vector, srcs.len())?;
        access.policy = self.policy(hint)?;
        Ok(MemoryOp::St { ty, srcs, access: Box::new(access) }.into())
    }

    /// `, cache-policy`, if the instruction has `.L2::cache_hint`.
    pub(super) fn policy(&mut self, hint: bool) -> Parse<Option<Operand>> {
        if !hint {
            return Ok(None);
        }
        self.comma()?;
        self.src().map(Some)
    }

    fn create_policy(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        if m.flag("cvt") {
            m.flag("L2");
            m.flag("b64");
            m.finish()?;
            let (dst, src) = self.unary(ScalarType::B64)?;
            return Ok(MemoryOp::CreatePolicyCvt { dst, src }.into());
        }
        let range = m.flag("range");
        let fractional = m.flag("fractional");
        let space = m.space();
        let primary: PolicyPriority = self.need(m, "a priority such as .L2::evict_last")?;
        let secondary = m.take();
        m.flag("b64");
        m.finish()?;
        if range == fractional {
            return self.error(m.span, "createpolicy is .fractional, .range or .cvt");
        }
        let dst = self.dst(ScalarType::B64)?;
        if fractional {
            let fraction = self.optional_src()?;
            return Ok(MemoryOp::CreatePolicyFractional { primary, secondary, dst, fraction }.into());
        }
        self.comma()?;
        let addr = self.addr()?;
        self.comma()?;
        let primary_size = self.src()?;
        self.comma()?;
        let total_size = self.src()?;
        Ok(MemoryOp::CreatePolicyRange { space, primary, secondary, dst, addr, primary_size, total_size }
            .into())
    }

    fn cp_async(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        if !m.flag("async") {
            return Err(crate::parse::Stop::Unsupported("`cp` needs `.async`".to_owned()));
        }
        if m.flag("commit_group") {
            m.finish()?;
            return Ok(MemoryOp::CpAsyncCommitGroup.into());
        }
        if m.flag("wait_all") {
            m.finish()?;
            return Ok(MemoryOp::CpAsyncWaitAll.into());
        }
        if m.flag("wait_group") {
            m.finish()?;
            return Ok(MemoryOp::CpAsyncWaitGroup { pending: self.small("a number of groups")? }.into());
        }
        if m.flag("mbarrier") {
            m.flag("arrive");
            let noinc = m.flag("noinc");
            let space = m.space();
            m.flag("b64");
            m.finish()?;
            return Ok(MemoryOp::CpAsyncMbarrierArrive { noinc, space, addr: self.addr()? }.into());
        }
        let cache: Option<CacheOp> = m.take();
        let dst_space = m.space();
        let source: Option<Space> = m.take();
        let hint = m.flag("L2::cache_hint");
        let prefetch = m.take();
        m.finish()?;
        let Some(cache @ (CacheOp::Ca | CacheOp::Cg)) = cache else {
            return self.error(m.span, "cp.async needs .ca or .cg");
        };
        if !dst_space.is_shared() || source != Some(Space::Global) {
            return self.error(m.span, "cp.async copies from .global to .shared: cp.async.ca.shared.global");
        }
        let dst = self.addr()?;
        self.comma()?;
        let src = self.addr()?;
        self.comma()?;
        let size = self.small("a size of 4, 8 or 16")?;
        let mut copy = CpAsync {
            cache,
            dst_space,
            dst,
            src,
            size,
            src_size: None,
            ignore_src: None,
            prefetch,
            policy: None,
        };
        if self.eat(Kind::Comma) {
            if self.at_kind(Kind::Bang) {
                copy.ignore_src = Some(self.pred()?);
            } else {
                match self.src()? {
                    Operand::Reg(reg) if self.fun.body.registers.ty(reg) == ScalarType::Pred => {
                        copy.ignore_src = Some(PredOperand::Reg { reg, negated: false });
                    }
                    operand if hint && !self.at_kind(Kind::Comma) => copy.policy = Some(operand),
                    operand => copy.src_size = Some(operand),
                }
            }
            if hint && copy.policy.is_none() {
                self.comma()?;
                copy.policy = Some(self.src()?);
            }
        } else if hint {
            self.comma()?;
        }
        Ok(MemoryOp::CpAsync(Box::new(copy)).into())
    }
}
