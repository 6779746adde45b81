//! Loads, stores, and everything else about addresses and caches.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use super::sync::Scope;
use crate::model::names::{RegId, words};
use crate::model::operand::{Address, Dsts, Operand, PredOperand, Srcs};
use crate::model::types::{ScalarType, Space};

words! {
    /// Ordering of one access.
    pub enum Order {
        /// The default.
        Weak = "weak",
        Volatile = "volatile",
        Relaxed = "relaxed",
        Acquire = "acquire",
        Release = "release",
        /// Relaxed, for memory-mapped devices.
        Mmio = "mmio",
    }
}

words! {
    /// Cache operators.
    pub enum CacheOp {
        Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt",
    }
}

words! {
    /// Eviction priority in L1.
    pub enum Eviction {
        Normal = "L1::evict_normal",
        Unchanged = "L1::evict_unchanged",
        First = "L1::evict_first",
        Last = "L1::evict_last",
        NoAllocate = "L1::no_allocate",
    }
}

words! {
    /// Eviction priority in L2.
    pub enum L2Eviction {
        First = "L2::evict_first",
        Last = "L2::evict_last",
        Normal = "L2::evict_normal",
        Unchanged = "L2::evict_unchanged",
    }
}

words! {
    /// How much a load brings into L2.
    pub enum PrefetchSize { B64 = "L2::64B", B128 = "L2::128B", B256 = "L2::256B", }
}

words! {
    /// The cache a prefetch fills.
    pub enum PrefetchLevel {
        L1 = "L1",
        L2 = "L2",
        L2EvictLast = "L2::evict_last",
        L2EvictNormal = "L2::evict_normal",
    }
}

words! {
    /// What `createpolicy` does with a line.
    pub enum PolicyPriority {
        EvictLast = "L2::evict_last",
        EvictNormal = "L2::evict_normal",
        EvictFirst = "L2::evict_first",
        EvictUnchanged = "L2::evict_unchanged",
    }
}

/// The modifiers that loads and stores share.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub space: Space,
    pub order: Order,
    /// Present with `.relaxed`, `.acquire`, `.release` and `.mmio`.
    pub scope: Option<Scope>,
    /// Read through the non-coherent cache (`ld.global.nc`).
    pub nc: bool,
    pub cache: Option<CacheOp>,
    pub eviction: Option<Eviction>,
    pub l2_eviction: Option<L2Eviction>,
    pub prefetch: Option<PrefetchSize>,
    /// The cache policy operand of `.L2::cache_hint`.
    pub policy: Option<Operand>,
    pub unified: bool,
    pub addr: Address,
}

/// The fields of `cp.async`.
#[derive(Clone, Debug, PartialEq)]
pub struct CpAsync {
    /// [`CacheOp::Ca`] or [`CacheOp::Cg`].
    pub cache: CacheOp,
    /// [`Space::Shared`] or [`Space::SharedCta`].
    pub dst_space: Space,
    pub dst: Address,
    /// In global memory.
    pub src: Address,
    /// Bytes written: 4, 8 or 16.
    pub size: u32,
    /// Bytes read; the rest of `size` is zero.
    pub src_size: Option<Operand>,
    /// Writes zeros only, if it holds.
    pub ignore_src: Option<PredOperand>,
    pub prefetch: Option<PrefetchSize>,
    pub policy: Option<Operand>,
}

/// Loads, stores, and everything else about addresses and caches.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryOp {
    /// `ld` and `ld.global.nc`; `ty` is that of one element, `dsts` says how many.
    Ld { ty: ScalarType, dsts: Dsts, access: Box<Access> },
    /// `ldu`.
    Ldu { space: Space, ty: ScalarType, dsts: Dsts, addr: Address },
    /// `st`.
    St { ty: ScalarType, srcs: Srcs, access: Box<Access> },
    /// `prefetch`.
    Prefetch { space: Space, level: PrefetchLevel, addr: Address },
    /// `prefetchu.L1`.
    PrefetchUniform { addr: Address },
    /// `discard`: the 128 bytes may be forgotten.
    Discard { space: Space, addr: Address, size: u32 },
    /// `applypriority`.
    ApplyPriority { space: Space, addr: Address, size: u32 },
    /// `createpolicy.fractional`.
    CreatePolicyFractional {
        primary: PolicyPriority,
        secondary: Option<PolicyPriority>,
        dst: RegId,
        /// In (0, 1]; absent means 1.
        fraction: Option<Operand>,
    },
    /// `createpolicy.range`.
    CreatePolicyRange {
        space: Space,
        primary: PolicyPriority,
        secondary: Option<PolicyPriority>,
        dst: RegId,
        addr: Address,
        primary_size: Operand,
        total_size: Operand,
    },
    /// `createpolicy.cvt.L2.b64`.
    CreatePolicyCvt { dst: RegId, src: Operand },
    /// `cp.async`.
    CpAsync(Box<CpAsync>),
    /// `cp.async.commit_group`.
    CpAsyncCommitGroup,
    /// `cp.async.wait_group`: waits until at most `pending` groups are pending.
    CpAsyncWaitGroup { pending: u32 },
    /// `cp.async.wait_all`.
    CpAsyncWaitAll,
    /// `cp.async.mbarrier.arrive`.
    CpAsyncMbarrierArrive { noinc: bool, space: Space, addr: Address },
    /// `alloca`: `size` bytes of the stack, aligned.
    Alloca { ty: ScalarType, dst: RegId, size: Operand, align: Option<u32> },
    /// `stacksave`.
    StackSave { ty: ScalarType, dst: RegId },
    /// `stackrestore`.
    StackRestore { ty: ScalarType, src: Operand },
}
