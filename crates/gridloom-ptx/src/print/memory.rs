//! Loads, stores, caches and atomic operations.

use super::operand::{Names, flag, modifier, space, vector};
use crate::model::op::{Access, AtomicOp, AtomicRmw, MemoryOp, Order};

/// Writes everything of a load or store between its name and its type.
fn access_mods(access: &Access, count: usize) -> String {
    let order = match access.order {
        Order::Weak => String::new(),
        Order::Mmio => ".mmio.relaxed".to_owned(),
        order => format!(".{order}"),
    };
    [
        order,
        modifier(access.scope),
        space(access.space),
        modifier(access.cache),
        flag(access.nc, ".nc").to_owned(),
        modifier(access.eviction),
        modifier(access.l2_eviction),
        flag(access.policy.is_some(), ".L2::cache_hint").to_owned(),
        modifier(access.prefetch),
        vector(count),
    ]
    .concat()
}

pub(super) fn memory(n: &Names<'_>, op: &MemoryOp) -> String {
    match op {
        MemoryOp::Ld { ty, dsts, access } => {
            let unified = flag(access.unified, ".unified");
            let mods = access_mods(access, dsts.len());
            format!(
                "ld{mods}.{ty} {}, {}{unified}{}",
                n.dsts(dsts),
                n.addr(&access.addr),
                n.more(&access.policy)
            )
        }
        MemoryOp::Ldu { space: from, ty, dsts, addr } => {
            format!("ldu{}{}.{ty} {}, {}", space(*from), vector(dsts.len()), n.dsts(dsts), n.addr(addr))
        }
        MemoryOp::St { ty, srcs, access } => {
            let mods = access_mods(access, srcs.len());
            format!("st{mods}.{ty} {}, {}{}", n.addr(&access.addr), n.srcs(srcs), n.more(&access.policy))
        }
        MemoryOp::Prefetch { space: of, level, addr } => {
            format!("prefetch{}.{level} {}", space(*of), n.addr(addr))
        }
        MemoryOp::PrefetchUniform { addr } => format!("prefetchu.L1 {}", n.addr(addr)),
        MemoryOp::Discard { space: of, addr, size } => {
            format!("discard{}.L2 {}, {size}", space(*of), n.addr(addr))
        }
        MemoryOp::ApplyPriority { space: of, addr, size } => {
            format!("applypriority{}.L2::evict_normal {}, {size}", space(*of), n.addr(addr))
        }
        MemoryOp::CreatePolicyFractional { primary, secondary, dst, fraction } => {
            let second = modifier(*secondary);
            format!("createpolicy.fractional.{primary}{second}.b64 {}{}", n.reg(*dst), n.more(fraction))
        }
        MemoryOp::CreatePolicyRange {
            space: of,
            primary,
            secondary,
            dst,
            addr,
            primary_size,
            total_size,
        } => {
            let mods = format!("{}.{primary}{}", space(*of), modifier(*secondary));
            let sizes = n.more([primary_size, total_size]);
            format!("createpolicy.range{mods}.b64 {}, {}{sizes}", n.reg(*dst), n.addr(addr))
        }
        MemoryOp::CreatePolicyCvt { dst, src } => {
            format!("createpolicy.cvt.L2.b64 {}{}", n.reg(*dst), n.more([src]))
        }
        MemoryOp::CpAsync(copy) => {
            let mods = format!(
                ".{}{}.global{}{}",
                copy.cache,
                space(copy.dst_space),
                flag(copy.policy.is_some(), ".L2::cache_hint"),
                modifier(copy.prefetch)
            );
            let ignore = copy.ignore_src.map(|pred| format!(", {}", n.pred(&pred))).unwrap_or_default();
            format!(
                "cp.async{mods} {}, {}, {}{}{ignore}{}",
                n.addr(&copy.dst),
                n.addr(&copy.src),
                copy.size,
                n.more(&copy.src_size),
                n.more(&copy.policy)
            )
        }
        MemoryOp::CpAsyncCommitGroup => "cp.async.commit_group".to_owned(),
        MemoryOp::CpAsyncWaitGroup { pending } => format!("cp.async.wait_group {pending}"),
        MemoryOp::CpAsyncWaitAll => "cp.async.wait_all".to_owned(),
        MemoryOp::CpAsyncMbarrierArrive { noinc, space: of, addr } => {
            format!("cp.async.mbarrier.arrive{}{}.b64 {}", flag(*noinc, ".noinc"), space(*of), n.addr(addr))
        }
        MemoryOp::Alloca { ty, dst, size, align } => {
            let align = align.map(|align| format!(", {align}")).unwrap_or_default();
            format!("alloca.{ty} {}{}{align}", n.reg(*dst), n.more([size]))
        }
        MemoryOp::StackSave { ty, dst } => format!("stacksave.{ty} {}", n.reg(*dst)),
        MemoryOp::StackRestore { ty, src } => format!("stackrestore.{ty} {}", n.src(src)),
    }
}

/// Writes everything of an atomic operation after its name and destination.
fn rmw_mods(rmw: &AtomicRmw) -> String {
    format!(
        "{}{}{}.{}{}{}{}.{}",
        modifier(rmw.sem),
        modifier(rmw.scope),
        space(rmw.space),
        rmw.op,
        flag(rmw.noftz, ".noftz"),
        flag(rmw.policy.is_some(), ".L2::cache_hint"),
        vector(rmw.b.len()),
        rmw.ty
    )
}

pub(super) fn atomic(n: &Names<'_>, op: &AtomicOp) -> String {
    let (name, rmw, dsts) = match op {
        AtomicOp::Atom { dsts, rmw } if dsts.iter().all(Option::is_none) => ("atom", rmw, "_, ".to_owned()),
        AtomicOp::Atom { dsts, rmw } => ("atom", rmw, format!("{}, ", n.dsts(dsts))),
        AtomicOp::Red { rmw } => ("red", rmw, String::new()),
    };
    let operands =
        format!("{}, {}{}{}", n.addr(&rmw.addr), n.srcs(&rmw.b), n.more(&rmw.c), n.more(&rmw.policy));
    format!("{name}{} {dsts}{operands}", rmw_mods(rmw))
}
