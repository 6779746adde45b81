//! Barriers and fences.

use super::Mods;
use crate::lexer::Kind;
use crate::model::op::{
    BarrierKind, ClusterBarrier, FenceSem, MbarrierOp, MembarLevel, Op, Proxy, RedOp, Scope, SyncOp,
    SyncRestrict,
};
use crate::model::{Address, Operand, ScalarType, Space};
use crate::parse::{Parse, Parser};

impl<'a> Parser<'a> {
    pub(super) fn sync(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let mnemonic = m.mnemonic;
        let op = match mnemonic {
            "bar" if m.flag("warp") => {
                m.flag("sync");
                m.finish()?;
                SyncOp::WarpBarrier { mask: self.src()? }
            }
            "barrier" if m.flag("cluster") => {
                let aligned = m.flag("aligned");
                let wait = m.flag("wait");
                let relaxed = m.flag("relaxed");
                m.flag(if wait { "acquire" } else { "release" });
                if !wait && !m.flag("arrive") {
                    m.finish()?;
                    return self.error(m.span, "`barrier.cluster` needs .arrive or .wait");
                }
                m.finish()?;
                SyncOp::ClusterBarrier(if wait {
                    ClusterBarrier::Wait { aligned }
                } else {
                    ClusterBarrier::Arrive { relaxed, aligned }
                })
            }
            "bar" | "barrier" => return self.barrier(m),
            "membar" => {
                if m.flag("proxy") {
                    let proxy = self.need(m, "a proxy such as .alias")?;
                    m.finish()?;
                    SyncOp::FenceProxy { proxy }
                } else {
                    let level: MembarLevel = self.need(m, ".cta, .gl or .sys")?;
                    m.finish()?;
                    SyncOp::Membar { level }
                }
            }
            "fence" => return self.fence(m),
            _ => return self.mbarrier(m),
        };
        Ok(op.into())
    }

    fn barrier(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        // `bar.x` is `barrier.x.aligned`.
        let aligned = m.flag("aligned") | (m.mnemonic == "bar");
        m.flag("cta");
        if m.flag("red") {
            return self.barrier_red(m, aligned);
        }
        let arrive = m.flag("arrive");
        if !arrive && !m.flag("sync") {
            m.finish()?;
            return self.error(m.span, format!("`{}` needs .sync, .arrive or .red", m.mnemonic));
        }
        m.finish()?;
        let id = self.src()?;
        let threads = self.optional_src()?;
        let kind = if arrive { BarrierKind::Arrive } else { BarrierKind::Sync };
        Ok(SyncOp::Barrier { kind, aligned, id, threads }.into())
    }

    fn barrier_red(&mut self, m: &mut Mods<'a>, aligned: bool) -> Parse<Op> {
        let op: RedOp = self.need(m, ".popc, .and or .or")?;
        let ty: ScalarType = self.need_type(m)?;
        m.finish()?;
        let dst = self.dst(ty)?;
        self.comma()?;
        let id = self.src()?;
        self.comma()?;
        // `a, c` or `a, b, c`: only what follows tells whether this is the number of threads.
        let mut threads = None;
        let pred = if self.at_kind(Kind::Bang) {
            self.pred()?
        } else {
            let at = self.span();
            let operand = self.src()?;
            if self.eat(Kind::Comma) {
                threads = Some(operand);
                self.pred()?
            } else {
                self.operand_to_pred(operand, at)?
            }
        };
        Ok(SyncOp::Barrier { kind: BarrierKind::Red { op, dst, pred }, aligned, id, threads }.into())
    }

    fn fence(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        if m.flag("mbarrier_init") {
            m.flag("release");
            m.flag("cluster");
            m.finish()?;
            return Ok(SyncOp::FenceMbarrierInit.into());
        }
        if m.flag("proxy") {
            return self.fence_proxy(m);
        }
        let sem = m.take().unwrap_or(FenceSem::AcqRel);
        let restrict: Option<SyncRestrict> = m.take();
        let scope: Scope = self.need(m, "a scope such as .gpu")?;
        m.finish()?;
        Ok(SyncOp::Fence { sem, scope, restrict }.into())
    }

    fn fence_proxy(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        if m.flag("tensormap::generic") {
            let sem: FenceSem = self.need(m, ".acquire or .release")?;
            let scope: Scope = self.need(m, "a scope such as .gpu")?;
            m.finish()?;
            let mut object = None;
            if self.at_kind(Kind::LBracket) {
                let addr = self.addr()?;
                self.comma()?;
                object = Some((addr, self.small("a size")?));
            }
            return Ok(SyncOp::FenceProxyTensormap { sem, scope, object }.into());
        }
        if m.flag("async::generic") {
            let sem: FenceSem = self.need(m, ".acquire or .release")?;
            let restrict: SyncRestrict = self.need(m, ".sync_restrict::shared::cta or ::cluster")?;
            m.flag("cluster");
            m.finish()?;
            return Ok(SyncOp::FenceProxyAsyncGeneric { sem, restrict }.into());
        }
        let proxy: Proxy = self.need(m, "a proxy such as .alias")?;
        let proxy = match (proxy, m.space()) {
            (proxy, Space::Generic) => proxy,
            (Proxy::Async, Space::Global) => Proxy::AsyncGlobal,
            (Proxy::Async, Space::SharedCta) => Proxy::AsyncSharedCta,
            (Proxy::Async, Space::SharedCluster) => Proxy::AsyncSharedCluster,
            (_, space) => return self.error(m.span, format!("no proxy fence is restricted to .{space}")),
        };
        m.finish()?;
        Ok(SyncOp::FenceProxy { proxy }.into())
    }

    fn mbarrier(&mut self, m: &mut Mods<'a>) -> Parse<Op> {
        let drop = m.flag("arrive_drop");
        let op = if drop || m.flag("arrive") {
            let (expect_tx, no_complete) = (m.flag("expect_tx"), m.flag("noComplete"));
            let (sem, scope, space) = self.mbarrier_mods(m)?;
            let state = self.opt_dst()?;
            self.comma()?;
            let addr = self.addr()?;
            let count = self.optional_src()?;
            MbarrierOp::Arrive { drop, expect_tx, no_complete, sem, scope, space, state, addr, count }
        } else if m.flag("init") {
            let (_, _, space) = self.mbarrier_mods(m)?;
            let (addr, count) = self.addr_and_operand()?;
            MbarrierOp::Init { space, addr, count }
        } else if m.flag("inval") {
            let (_, _, space) = self.mbarrier_mods(m)?;
            MbarrierOp::Inval { space, addr: self.addr()? }
        } else if m.starts_with("expect_tx") || m.starts_with("complete_tx") {
            let complete = m.flag("complete_tx");
            m.flag("expect_tx");
            let (_, scope, space) = self.mbarrier_mods(m)?;
            let (addr, count) = self.addr_and_operand()?;
            MbarrierOp::Tx { complete, scope, space, addr, count }
        } else if m.starts_with("test_wait") || m.starts_with("try_wait") {
            let suspend = m.flag("try_wait");
            m.flag("test_wait");
            let parity = m.flag("parity");
            let (sem, scope, space) = self.mbarrier_mods(m)?;
            let dst = self.dst(ScalarType::Pred)?;
            self.comma()?;
            let (addr, state) = self.addr_and_operand()?;
            let time_limit = self.optional_src()?;
            MbarrierOp::Wait { suspend, parity, sem, scope, space, dst, addr, state, time_limit }
        } else if m.flag("pending_count") {
            self.mbarrier_mods(m)?;
            let (dst, state) = self.unary(ScalarType::U32)?;
            MbarrierOp::PendingCount { dst, state }
        } else {
            m.finish()?;
            return self.error(m.span, "`mbarrier` needs an operation such as .init");
        };
        Ok(SyncOp::Mbarrier(Box::new(op)).into())
    }

    fn mbarrier_mods(&mut self, m: &mut Mods<'a>) -> Parse<(Option<FenceSem>, Option<Scope>, Space)> {
        let (sem, scope, space) = (m.take(), m.take(), m.space());
        m.flag("b64");
        m.finish()?;
        Ok((sem, scope, space))
    }

    fn addr_and_operand(&mut self) -> Parse<(Address, Operand)> {
        let addr = self.addr()?;
        self.comma()?;
        Ok((addr, self.src()?))
    }
}
