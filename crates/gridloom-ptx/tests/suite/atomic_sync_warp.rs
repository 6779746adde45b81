//! Atomic operations, barriers, fences and communication within a warp.

use crate::common::{assert_canonical, assert_prints_as, check_errors, op, parse_errors};
use gridloom_ptx::op::{AtomicOp, Op, SyncOp};

#[test]
fn every_atomic_operation() {
    assert_canonical(
        "atom.global.add.u32 %r1, [%rd1], %r2
         atom.global.add.s32 %r1, [%rd1], -1
         atom.add.u64 %rd1, [%rd2], 1
         atom.shared.add.f32 %f1, [%r1], %f2
         atom.global.add.f64 %fd1, [%rd1], %fd2
         atom.global.add.noftz.f16 %rs1, [%rd1], %rs2
         atom.global.add.noftz.f16x2 %r1, [%rd1], %r2
         atom.global.add.noftz.bf16 %rs1, [%rd1], %rs2
         atom.global.add.noftz.bf16x2 %r1, [%rd1], %r2
         atom.global.and.b32 %r1, [%rd1], %r2
         atom.global.or.b64 %rd1, [%rd2], %rd3
         atom.global.xor.b32 %r1, [%rd1], %r2
         atom.global.exch.b32 %r1, [%rd1], %r2
         atom.global.exch.b128 %q1, [%rd1], %q2
         atom.global.cas.b16 %rs1, [%rd1], %rs2, %rs3
         atom.global.cas.b32 %r1, [%rd1+4], %r2, %r3
         atom.shared::cta.cas.b64 %rd1, [buffer+8], %rd2, %rd3
         atom.global.cas.b128 %q1, [%rd1], %q2, %q3
         atom.global.inc.u32 %r1, [%rd1], %r2
         atom.global.dec.u32 %r1, [%rd1], 15
         atom.global.min.s32 %r1, [%rd1], %r2
         atom.global.max.u64 %rd1, [%rd2], %rd3
         atom.global.add.u32 _, [%rd1], 1",
    );
}

#[test]
fn atomic_orders_scopes_vectors_and_hints() {
    for sem in ["relaxed", "acquire", "release", "acq_rel"] {
        for scope in ["cta", "cluster", "gpu", "sys"] {
            assert_canonical(&format!("atom.{sem}.{scope}.global.add.u32 %r1, [%rd1], %r2"));
        }
    }
    assert_canonical(
        "atom.sys.global.add.u32 %r1, [%rd1], %r2
         atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f3, %f4}
         atom.global.add.noftz.v4.f16x2 {%r1, %r2, %r3, %r4}, [%rd1], {%r5, %r6, %r7, %r8}
         atom.global.max.noftz.v8.bf16 {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8}, [%rd1], {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8}
         atom.global.add.L2::cache_hint.u32 %r1, [%rd1], %r2, %rd3
         red.global.add.u32 [%rd1], 1
         red.release.gpu.global.add.f64 [%rd1], %fd1
         red.shared.max.s32 [buffer], %r1
         red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4}
         red.relaxed.gpu.global.add.L2::cache_hint.f32 [%rd1], %f1, %rd2",
    );
    let Op::Atomic(AtomicOp::Atom { dsts, .. }) = op("atom.global.add.v2.f32 _, [%rd1], {%f1, %f2};") else {
        panic!("an atomic")
    };
    assert_eq!(dsts.as_slice(), [None, None]);
}

#[test]
fn atomic_types_are_checked() {
    assert_eq!(check_errors("atom.global.inc.s32 %r1, [%rd1], %r2;").len(), 1);
    assert_eq!(check_errors("atom.global.and.u32 %r1, [%rd1], %r2;").len(), 1);
    assert_eq!(check_errors("red.global.add.f32 [%rd1], %rd2;").len(), 1);
    assert_eq!(parse_errors("atom.global.cas.b32 %r1, [%rd1], %r2;"), ["expected `,`, found `;`"]);
}

#[test]
fn block_barriers() {
    assert_canonical(
        "bar.sync 0
         bar.sync %r1, 64
         bar.arrive 1, %r2
         bar.red.popc.u32 %r1, 0, %p1
         bar.red.and.pred %p1, 0, 64, !%p2
         bar.red.or.pred %p1, %r1, %r2, %p2
         barrier.sync 3
         barrier.arrive 3, 32
         barrier.red.popc.u32 %r1, 2, !%p1
         bar.warp.sync -1
         bar.warp.sync %r1",
    );
    assert_prints_as(&[
        ("barrier.sync.aligned 0", "bar.sync 0"),
        ("barrier.cta.sync.aligned 1, 128", "bar.sync 1, 128"),
        ("bar.cta.sync 2", "bar.sync 2"),
        ("barrier.cta.red.or.aligned.pred %p1, 0, %p2", "bar.red.or.pred %p1, 0, %p2"),
        ("bar.warp.sync 0xffffffff", "bar.warp.sync 4294967295"),
    ]);
    assert_eq!(check_errors("bar.sync 16;"), ["a block has the barriers 0 to 15, not 16"]);
}

#[test]
fn cluster_barriers_and_fences() {
    assert_canonical(
        "barrier.cluster.arrive
         barrier.cluster.arrive.relaxed.aligned
         barrier.cluster.wait.aligned
         membar.cta
         membar.gl
         membar.sys
         fence.sc.gpu
         fence.acq_rel.cta
         fence.acquire.sys
         fence.release.cluster
         fence.acquire.sync_restrict::shared::cluster.cluster
         fence.mbarrier_init.release.cluster
         fence.proxy.alias
         fence.proxy.async
         fence.proxy.async.global
         fence.proxy.async.shared::cta
         fence.proxy.async.shared::cluster
         fence.proxy.tensormap::generic.release.gpu
         fence.proxy.tensormap::generic.acquire.sys [%rd1], 128
         fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
    );
    assert_prints_as(&[
        ("fence.gpu", "fence.acq_rel.gpu"),
        ("membar.proxy.alias", "fence.proxy.alias"),
        ("barrier.cluster.arrive.release", "barrier.cluster.arrive"),
        ("barrier.cluster.wait.acquire", "barrier.cluster.wait"),
    ]);
}

#[test]
fn barrier_objects() {
    assert_canonical(
        "mbarrier.init.shared.b64 [%r1], %r2
         mbarrier.init.shared::cta.b64 [buffer], 1
         mbarrier.inval.shared.b64 [%r1]
         mbarrier.arrive.shared.b64 %rd1, [%r1]
         mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r1], 4
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2
         mbarrier.arrive.noComplete.shared.b64 %rd1, [%r1], 2
         mbarrier.arrive_drop.shared.b64 %rd1, [%r1]
         mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1]
         mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 128
         mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r1], %r2
         mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1
         mbarrier.test_wait.parity.shared.b64 %p1, [%r1], %r2
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2, %r3
         mbarrier.pending_count.b64 %r1, %rd1",
    );
    assert!(matches!(op("mbarrier.init.shared.b64 [%r1], 1;"), Op::Sync(SyncOp::Mbarrier(_))));
}

#[test]
fn shuffles_votes_and_matches() {
    for mode in ["up", "down", "bfly", "idx"] {
        assert_canonical(&format!(
            "shfl.sync.{mode}.b32 %r1, %r2, 1, 31, -1
             shfl.sync.{mode}.b32 %r1|%p1, %r2, %r3, %r4, %r5
             shfl.{mode}.b32 %r1|%p1, %r2, 16, 31
             shfl.{mode}.b32 %f1, %f2, 16, 31"
        ));
    }
    for mode in ["all", "any", "uni"] {
        assert_canonical(&format!("vote.sync.{mode}.pred %p1, %p2, -1\nvote.{mode}.pred %p1, !%p2"));
    }
    assert_canonical(
        "vote.sync.ballot.b32 %r1, %p1, %r2
         vote.ballot.b32 %r1, !%p1
         match.any.sync.b32 %r1, %r2, %r3
         match.any.sync.b64 %r1, %rd2, -1
         match.all.sync.b32 %r1|%p1, %r2, -1
         activemask.b32 %r1
         elect.sync %r1|%p1, -1
         elect.sync _|%p1, %r2",
    );
    assert_eq!(check_errors("vote.sync.ballot.b32 %p1, %p2, -1;").len(), 1);
}

#[test]
fn warp_reductions() {
    for op in ["add", "min", "max"] {
        assert_canonical(&format!("redux.sync.{op}.u32 %r1, %r2, -1\nredux.sync.{op}.s32 %r1, %r2, %r3"));
    }
    for op in ["and", "or", "xor"] {
        assert_canonical(&format!("redux.sync.{op}.b32 %r1, %r2, -1"));
    }
    assert_canonical(
        "redux.sync.min.f32 %f1, %f2, -1
         redux.sync.max.abs.f32 %f1, %f2, -1
         redux.sync.min.abs.NaN.f32 %f1, %f2, %r3",
    );
    assert_eq!(check_errors("redux.sync.add.f32 %f1, %f2, -1;").len(), 1);
}
