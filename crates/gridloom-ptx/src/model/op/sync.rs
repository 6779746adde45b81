//! Barriers and fences.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::{Address, Operand, PredOperand};
use crate::model::types::Space;

words! {
    /// The threads an ordering or atomicity extends to.
    pub enum Scope { Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys", }
}

words! {
    /// Ordering of a fence or atomic operation.
    pub enum FenceSem {
        Sc = "sc", AcqRel = "acq_rel", Acquire = "acquire", Release = "release", Relaxed = "relaxed",
    }
}

words! {
    /// The level of `membar`.
    pub enum MembarLevel { Cta = "cta", Gl = "gl", Sys = "sys", }
}

words! {
    /// What a one-sided fence is restricted to.
    pub enum SyncRestrict {
        SharedCta = "sync_restrict::shared::cta",
        SharedCluster = "sync_restrict::shared::cluster",
    }
}

words! {
    /// The proxies that `fence.proxy` orders.
    pub enum Proxy {
        Alias = "alias",
        Async = "async",
        AsyncGlobal = "async.global",
        AsyncSharedCta = "async.shared::cta",
        AsyncSharedCluster = "async.shared::cluster",
    }
}

words! {
    /// The reduction over a block's predicates.
    pub enum RedOp { Popc = "popc", And = "and", Or = "or", }
}

/// What a block barrier does.
#[derive(Clone, Debug, PartialEq)]
pub enum BarrierKind {
    /// Waits for all.
    Sync,
    /// Does not wait.
    Arrive,
    /// Waits for all and reduces a predicate: [`RedOp::Popc`] writes a `.u32`, the others a
    /// predicate.
    Red { op: RedOp, dst: RegId, pred: PredOperand },
}

/// A barrier over the blocks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterBarrier {
    /// `barrier.cluster.arrive`; `relaxed` drops the default release ordering.
    Arrive { relaxed: bool, aligned: bool },
    /// `barrier.cluster.wait`, which acquires.
    Wait { aligned: bool },
}

/// `mbarrier` operations on the block's own barrier objects.
#[derive(Clone, Debug, PartialEq)]
pub enum MbarrierOp {
    /// `mbarrier.init.b64 [addr], count`.
    Init { space: Space, addr: Address, count: Operand },
    /// `mbarrier.inval.b64 [addr]`.
    Inval { space: Space, addr: Address },
    /// `mbarrier.arrive{.expect_tx}{.noComplete}.b64 state, [addr]{, count}`, and `arrive_drop`.
    Arrive {
        drop: bool,
        expect_tx: bool,
        no_complete: bool,
        /// `None` is the default, `.release`.
        sem: Option<FenceSem>,
        scope: Option<Scope>,
        space: Space,
        /// `None` is `_`.
        state: Option<RegId>,
        addr: Address,
        count: Option<Operand>,
    },
    /// `mbarrier.expect_tx` and `mbarrier.complete_tx`, both `.relaxed`.
    Tx { complete: bool, scope: Option<Scope>, space: Space, addr: Address, count: Operand },
    /// `mbarrier.test_wait` and `mbarrier.try_wait`, by state or (`parity`) by phase parity.
    Wait {
        /// `try_wait` may suspend; `test_wait` never does.
        suspend: bool,
        parity: bool,
        sem: Option<FenceSem>,
        scope: Option<Scope>,
        space: Space,
        dst: RegId,
        addr: Address,
        state: Operand,
        /// Nanoseconds, for `try_wait`.
        time_limit: Option<Operand>,
    },
    /// `mbarrier.pending_count.b64`.
    PendingCount { dst: RegId, state: Operand },
}

/// Barriers and fences.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncOp {
    /// `bar` and `barrier`, of a block. `bar.x` is `barrier.x.aligned`.
    Barrier { kind: BarrierKind, aligned: bool, id: Operand, threads: Option<Operand> },
    /// `bar.warp.sync`.
    WarpBarrier { mask: Operand },
    /// `barrier.cluster`.
    ClusterBarrier(ClusterBarrier),
    /// `membar`.
    Membar { level: MembarLevel },
    /// `fence`; no ordering modifier means `.acq_rel`.
    Fence { sem: FenceSem, scope: Scope, restrict: Option<SyncRestrict> },
    /// `fence.mbarrier_init.release.cluster`.
    FenceMbarrierInit,
    /// `fence.proxy.{alias,async…}` (and `membar.proxy`).
    FenceProxy { proxy: Proxy },
    /// `fence.proxy.tensormap::generic.{acquire,release}.scope`; an acquire names the 128 bytes.
    FenceProxyTensormap { sem: FenceSem, scope: Scope, object: Option<(Address, u32)> },
    /// `fence.proxy.async::generic.{acquire,release}.sync_restrict::….cluster`.
    FenceProxyAsyncGeneric { sem: FenceSem, restrict: SyncRestrict },
    /// `mbarrier.*`.
    Mbarrier(Box<MbarrierOp>),
}
