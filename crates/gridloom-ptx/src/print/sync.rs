//! Barriers, fences and communication within a warp.

use super::operand::{Names, flag, modifier, space};
use crate::model::op::{BarrierKind, ClusterBarrier, MbarrierOp, RedOp, SyncOp, VoteMode, WarpOp};

pub(super) fn sync(n: &Names<'_>, op: &SyncOp) -> String {
    match op {
        SyncOp::Barrier { kind, aligned, id, threads } => {
            let name = if *aligned { "bar" } else { "barrier" };
            let rest = format!("{}{}", n.src(id), n.more(threads));
            match kind {
                BarrierKind::Sync => format!("{name}.sync {rest}"),
                BarrierKind::Arrive => format!("{name}.arrive {rest}"),
                BarrierKind::Red { op, dst, pred } => {
                    let ty = if *op == RedOp::Popc { "u32" } else { "pred" };
                    format!("{name}.red.{op}.{ty} {}, {rest}, {}", n.reg(*dst), n.pred(pred))
                }
            }
        }
        SyncOp::WarpBarrier { mask } => format!("bar.warp.sync {}", n.src(mask)),
        SyncOp::ClusterBarrier(ClusterBarrier::Arrive { relaxed, aligned }) => {
            format!("barrier.cluster.arrive{}{}", flag(*relaxed, ".relaxed"), flag(*aligned, ".aligned"))
        }
        SyncOp::ClusterBarrier(ClusterBarrier::Wait { aligned }) => {
            format!("barrier.cluster.wait{}", flag(*aligned, ".aligned"))
        }
        SyncOp::Membar { level } => format!("membar.{level}"),
        SyncOp::Fence { sem, scope, restrict } => format!("fence.{sem}{}.{scope}", modifier(*restrict)),
        SyncOp::FenceMbarrierInit => "fence.mbarrier_init.release.cluster".to_owned(),
        SyncOp::FenceProxy { proxy } => format!("fence.proxy.{proxy}"),
        SyncOp::FenceProxyTensormap { sem, scope, object } => {
            let object = object.map(|(addr, size)| format!(" {}, {size}", n.addr(&addr))).unwrap_or_default();
            format!("fence.proxy.tensormap::generic.{sem}.{scope}{object}")
        }
        SyncOp::FenceProxyAsyncGeneric { sem, restrict } => {
            format!("fence.proxy.async::generic.{sem}.{restrict}.cluster")
        }
        SyncOp::Mbarrier(op) => mbarrier(n, op),
    }
}

fn mbarrier(n: &Names<'_>, op: &MbarrierOp) -> String {
    match op {
        MbarrierOp::Init { space: of, addr, count } => {
            format!("mbarrier.init{}.b64 {}{}", space(*of), n.addr(addr), n.more([count]))
        }
        MbarrierOp::Inval { space: of, addr } => format!("mbarrier.inval{}.b64 {}", space(*of), n.addr(addr)),
        MbarrierOp::Arrive { drop, expect_tx, no_complete, sem, scope, space: of, state, addr, count } => {
            let name = if *drop { "arrive_drop" } else { "arrive" };
            let mods = [
                flag(*expect_tx, ".expect_tx"),
                flag(*no_complete, ".noComplete"),
                &modifier(*sem),
                &modifier(*scope),
                &space(*of),
            ]
            .concat();
            format!("mbarrier.{name}{mods}.b64 {}, {}{}", n.dst(*state), n.addr(addr), n.more(count))
        }
        MbarrierOp::Tx { complete, scope, space: of, addr, count } => {
            let name = if *complete { "complete_tx" } else { "expect_tx" };
            let mods = format!(".relaxed{}{}", modifier(*scope), space(*of));
            format!("mbarrier.{name}{mods}.b64 {}{}", n.addr(addr), n.more([count]))
        }
        MbarrierOp::Wait { suspend, parity, sem, scope, space: of, dst, addr, state, time_limit } => {
            let name = if *suspend { "try_wait" } else { "test_wait" };
            let mods = [flag(*parity, ".parity"), &modifier(*sem), &modifier(*scope), &space(*of)].concat();
            let rest = format!("{}{}{}", n.addr(addr), n.more([state]), n.more(time_limit));
            format!("mbarrier.{name}{mods}.b64 {}, {rest}", n.reg(*dst))
        }
        MbarrierOp::PendingCount { dst, state } => {
            format!("mbarrier.pending_count.b64 {}{}", n.reg(*dst), n.more([state]))
        }
    }
}

pub(super) fn warp(n: &Names<'_>, op: &WarpOp) -> String {
    let sync = |mask: bool| flag(mask, ".sync");
    match op {
        WarpOp::Shfl { mode, dst, pred, a, b, c, mask } => {
            let dsts = n.pair(*dst, *pred);
            format!("shfl{}.{mode}.b32 {dsts}{}{}", sync(mask.is_some()), n.more([a, b, c]), n.more(mask))
        }
        WarpOp::Vote { mode, dst, pred, mask } => {
            let ty = if *mode == VoteMode::Ballot { "b32" } else { "pred" };
            let operands = format!("{}, {}{}", n.reg(*dst), n.pred(pred), n.more(mask));
            format!("vote{}.{mode}.{ty} {operands}", sync(mask.is_some()))
        }
        WarpOp::Match { mode, ty, dst, pred, a, mask } => {
            format!("match.{mode}.sync.{ty} {}{}", n.pair(*dst, *pred), n.more([a, mask]))
        }
        WarpOp::Redux { op, ty, abs, nan, dst, src, mask } => {
            let mods = [flag(*abs, ".abs"), flag(*nan, ".NaN")].concat();
            format!("redux.sync.{op}{mods}.{ty} {}{}", n.reg(*dst), n.more([src, mask]))
        }
        WarpOp::ActiveMask { dst } => format!("activemask.b32 {}", n.reg(*dst)),
        WarpOp::Elect { dst, pred, mask } => {
            format!("elect.sync {}|{}{}", n.dst(*dst), n.reg(*pred), n.more([mask]))
        }
    }
}
