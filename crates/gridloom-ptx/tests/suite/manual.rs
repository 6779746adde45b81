//! The instructions of the PTX manual: each is in the model, or in the table of those that do not
//! run on the CPU device.

use std::collections::BTreeSet;

use crate::common::{first, module};
use gridloom_ptx::op::Op;
use gridloom_ptx::{NOT_RUN, NotRun, check};

/// Instructions of every section of the manual, version 9. `ptxas` of CUDA 13.4 assembles each of
/// them for some GPU.
const INSTRUCTIONS: &str = "
    abs.s32 %r1, %r2
    activemask.b32 %r1
    add.cc.u64 %rd1, %rd2, %rd3
    add.f32.f16 %f1, %rs1, %f2
    add.rn.f32.bf16 %f1, %rs1, %f2
    add.rn.f32x2 %rd1, %rd2, %rd3
    add.s16x2 %r1, %r2, %r3
    add.sat.s16x2 %r1, %r2, %r3
    add.sat.s8x4 %r1, %r2, %r3
    add.sat.u16x2 %r1, %r2, %r3
    add.sat.u32 %r1, %r2, %r3
    add.u16x2 %r1, %r2, %r3
    add.u8x4 %r1, %r2, %r3
    addc.cc.u32 %r1, %r2, %r3
    alloca.u64 %rd1, %rd2, 16
    and.b32 %r1, %r2, %r3
    applypriority.global.L2::evict_normal [%rd1], 128
    atom.acq_rel.cluster.shared::cluster.cas.b16 %rs1, [%r1], %rs2, %rs3
    atom.global.add.noftz.bf16x2 %r1, [%rd1], %r2
    atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f5, %f6, %f7, %f8}
    atom.global.cas.b128 %q1, [%rd1], %q2, %q3
    atom.global.exch.b128 %q1, [%rd1], %q2
    atom.global.inc.u32 %r1, [%rd1], %r2
    atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%rd1], {%f5, %f6, %f7, %f8}
    bar.arrive 0, 64
    bar.cta.red.popc.u32 %r1, 0, %p1
    bar.cta.sync 0
    bar.warp.sync 0xffffffff
    barrier.cluster.arrive.relaxed.aligned
    barrier.cluster.wait.acquire
    barrier.cta.arrive 0, 64
    barrier.cta.sync.aligned 0
    barrier.red.and.pred %p1, 0, %p2
    barrier.sync 0
    bfe.u32 %r1, %r2, %r3, %r4
    bfi.b32 %r1, %r2, %r3, %r4, %r5
    bfind.shiftamt.s32 %r1, %r2
    bmsk.clamp.b32 %r1, %r2, %r3
    bra.uni end
    brev.b32 %r1, %r2
    brkpt
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, %r4}, %q1
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2]
    clz.b32 %r1, %r2
    cnot.b32 %r1, %r2
    copysign.f32 %f1, %f2, %f3
    cos.approx.f32 %f1, %f2
    cp.async.bulk.commit_group
    cp.async.bulk.prefetch.L2.global [%rd1], 16
    cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1, {%r1}]
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2]
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2]
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3}], [%r1]
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]
    cp.async.bulk.wait_group.read 0
    cp.async.ca.shared.global [%r1], [%rd1], 16
    cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2
    cp.async.commit_group
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]
    cp.async.wait_all
    cp.async.wait_group 0
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16
    cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd1, {%r1}], [%r2]
    createpolicy.cvt.L2.b64 %rd1, 7
    createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0
    createpolicy.range.global.L2::evict_last.b64 %rd1, [%rd2], 64, 128
    cvt.pack.sat.u4.s32.b32 %r1, %r2, %r3, %r4
    cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4
    cvt.rn.bf16x2.s2f6x2 %r1, %rs1
    cvt.rn.bf16x2.ue8m0x2 %r1, %rs1
    cvt.rn.f16x2.e2m3x2 %r1, %rs1
    cvt.rn.f32.s32 %f1, %r1
    cvt.rn.satfinite.e2m3x2.f32 %rs1, %f1, %f2
    cvt.rn.satfinite.e4m3x2.bf16x2 %rs1, %r1
    cvt.rn.satfinite.relu.s2f6x2.f32 %rs1, %f1, %f2
    cvt.rn.satfinite.s2f6x2.bf16x2 %rs1, %r2
    cvt.rn.satfinite.s2f6x2.f32.scaled::n2::ue8m0 %rs1, %f1, %f2, %rs2
    cvt.rn.satfinite.tf32.f32 %r1, %f1
    cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2 %r1, %rs1, %rs2
    cvt.rna.tf32.f32 %r1, %f1
    cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2
    cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2
    cvt.rz.satfinite.ue8m0x2.f32 %rs1, %f1, %f2
    cvta.param.u64 %rd1, %rd2
    cvta.to.shared::cluster.u64 %rd1, %rd2
    discard.global.L2 [%rd1], 128
    div.full.f32 %f1, %f2, %f3
    div.u32 %r1, %r2, %r3
    dp2a.lo.s32.u32 %r1, %r2, %r3, %r4
    dp4a.u32.s32 %r1, %r2, %r3, %r4
    elect.sync %r1|%p1, 0xffffffff
    ex2.approx.f16x2 %r1, %r2
    ex2.approx.ftz.bf16 %rs1, %rs2
    exit
    fence.acq_rel.sys
    fence.acquire.gpu
    fence.acquire.sync_restrict::shared::cluster.cluster
    fence.mbarrier_init.release.cluster
    fence.proxy.alias
    fence.proxy.async
    fence.proxy.async.shared::cta
    fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster
    fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128
    fence.sc.cluster
    fma.rn.f32.bf16 %f1, %rs1, %rs2, %f2
    fma.rn.f32.f16 %f1, %rs1, %rs2, %f2
    fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4
    fma.rn.oob.f16 %rs1, %rs2, %rs3, %rs4
    fma.rn.oob.relu.bf16x2 %r1, %r2, %r3, %r4
    fns.b32 %r1, %r2, %r3, %r4
    getctarank.shared::cluster.u32 %r1, %r2
    getctarank.u64 %r1, %rd2
    griddepcontrol.launch_dependents
    griddepcontrol.wait
    isspacep.param::entry %p1, %rd1
    isspacep.shared::cluster %p1, %rd1
    istypep.texref %p1, %rd1
    ld.global.L1::evict_last.L2::evict_first.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
    ld.global.b128 %q1, [%rd1]
    ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.f32 %f1, [%rd1], %rd2
    ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd5]
    ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%rd1]
    ld.mmio.relaxed.sys.global.u32 %r1, [%rd1]
    ld.relaxed.sys.global.u32 %r1, [%rd1]
    ld.volatile.shared::cluster.u32 %r1, [%r2]
    ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3]
    ldu.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]
    lg2.approx.f32 %f1, %f2
    lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x3f, %p2
    mad.hi.sat.s32 %r1, %r2, %r3, %r4
    mad.lo.cc.u32 %r1, %r2, %r3, %r4
    mad.lo.s32 %r1, %r2, %r3, %r4
    mad24.hi.sat.s32 %r1, %r2, %r3, %r4
    madc.hi.cc.u32 %r1, %r2, %r3, %r4
    madc.lo.u64 %rd1, %rd2, %rd3, %rd4
    mapa.shared::cluster.u32 %r1, %r2, %r3
    mapa.u64 %rd1, %rd2, %r3
    match.all.sync.b64 %r1|%p1, %rd1, 0xffffffff
    match.any.sync.b32 %r1, %r2, 0xffffffff
    max.NaN.xorsign.abs.f32 %f1, %f2, %f3
    max.abs.f32 %f1, %f2, %f3, %f4
    max.f32 %f1, %f2, %f3, %f4
    max.relu.s32 %r1, %r2, %r3
    max.s8x4 %r1, %r2, %r3
    max.u8x4 %r1, %r2, %r3
    mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 %rd1, [%r1], 16
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1]
    mbarrier.arrive.shared.b64 %rd1, [%r1]
    mbarrier.arrive_drop.expect_tx.shared.b64 %rd1, [%r1], 16
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16
    mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 16
    mbarrier.init.shared::cta.b64 [%r1], 1
    mbarrier.inval.shared.b64 [%r1]
    mbarrier.pending_count.b64 %r1, %rd1
    mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2
    mbarrier.try_wait.relaxed.cluster.shared::cta.b64 %p1, [%r1], %rd1, %r3
    membar.gl
    membar.proxy.alias
    min.NaN.xorsign.abs.bf16x2 %r1, %r2, %r3
    min.f32 %f1, %f2, %f3, %f4
    min.relu.s16x2 %r1, %r2, %r3
    min.s8x4 %r1, %r2, %r3
    min.u8x4 %r1, %r2, %r3
    mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5, %r6}, {%r7, %r8}, %r1, 0x0
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}
    mov.b128 %q1, {%rd1, %rd2}
    mov.u32 %r1, %tid.x
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2
    mul.lo.u32 %r1, %r2, %r3
    mul.rn.f32x2 %rd1, %rd2, %rd3
    mul.wide.u16 %r1, %rs1, %rs2
    mul24.hi.u32 %r1, %r2, %r3
    multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64
    multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 64
    multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1]
    multimem.red.relaxed.gpu.global.add.u32 [%rd1], %r1
    multimem.st.weak.global.f32 [%rd1], %f1
    nanosleep.u32 100
    neg.s32 %r1, %r2
    neg.s8x4 %r1, %r2
    not.b32 %r1, %r2
    or.pred %p1, %p2, %p3
    pmevent 7
    pmevent.mask 0xff
    popc.b64 %r1, %rd2
    prefetch.const.tensormap [%rd1]
    prefetch.global.L2::evict_last [%rd1]
    prefetch.tensormap [%rd1]
    prefetchu.L1 [%rd1]
    prmt.b32.f4e %r1, %r2, %r3, %r4
    rcp.approx.ftz.f64 %fd1, %fd2
    rcp.rn.f32 %f1, %f2
    red.async.mmio.release.sys.global.add.u32 [%rd1], %r2
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3]
    red.global.add.L2::cache_hint.u32 [%rd1], %r1, %rd2
    red.global.add.noftz.v8.f16 [%rd1], {%rs1, %rs2, %rs3, %rs4, %rs5, %rs6, %rs7, %rs8}
    red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%rd1], {%r1, %r2, %r3, %r4}
    redux.sync.add.s32 %r1, %r2, 0xffffffff
    redux.sync.min.abs.NaN.f32 %f1, %f2, 0xffffffff
    rem.s64 %rd1, %rd2, %rd3
    ret.uni
    rsqrt.approx.f32 %f1, %f2
    rsqrt.approx.ftz.f64 %fd1, %fd2
    sad.s32 %r1, %r2, %r3, %r4
    selp.b32 %r1, %r2, %r3, %p1
    set.eq.u32.f16x2 %r1, %r2, %r3
    set.ltu.bf16.bf16 %rs1, %rs2, %rs3
    setmaxnreg.inc.sync.aligned.u32 64
    setp.eq.f16x2 %p1|%p2, %r2, %r3
    setp.lt.and.s32 %p1|%p2, %r1, %r2, %p3
    shf.r.clamp.b32 %r1, %r2, %r3, %r4
    shfl.sync.bfly.b32 %r1|%p1, %r2, %r3, 31, %r4
    shl.b32 %r1, %r2, %r3
    shr.s64 %rd1, %rd2, %r3
    sin.approx.f32 %f1, %f2
    slct.f32.f32 %f1, %f2, %f3, %f4
    sqrt.rn.f64 %fd1, %fd2
    st.async.mmio.release.sys.global.u32 [%rd1], %r2
    st.async.release.gpu.global.u32 [%rd1], %r2
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3]
    st.bulk.weak.shared::cta [%rd1], %rd2, 0
    st.mmio.relaxed.sys.global.u32 [%rd1], %r1
    st.shared::cluster.u32 [%r1], %r2
    stackrestore.u64 %rd1
    stacksave.u64 %rd1
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2}
    sub.cc.u32 %r1, %r2, %r3
    sub.f32.f16 %f1, %rs1, %f2
    sub.rz.ftz.f32x2 %rd1, %rd2, %rd3
    sub.rz.sat.f32.bf16 %f1, %rs1, %f2
    sub.s8x4 %r1, %r2, %r3
    sub.u8x4 %r1, %r2, %r3
    subc.u32 %r1, %r2, %r3
    suld.b.1d.b32.trap %r1, [%rd1, {%r2}]
    suq.width.b32 %r1, [%rd1]
    sured.b.add.1d.u32.trap [%rd1, {%r2}], %r1
    sured.p.add.1d.b32.trap [%rd1, {%r2}], %r1
    sust.b.1d.b32.trap [%rd1, {%r2}], %r1
    sust.p.1d.v4.b32.trap [%rd1, {%r2}], {%r1, %r3, %r4, %r5}
    szext.wrap.u32 %r1, %r2, %r3
    tanh.approx.bf16x2 %r1, %r2
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 128
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1]
    tcgen05.cp.cta_group::1.128x256b [%r1], %rd1
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128
    tcgen05.fence::after_thread_sync
    tcgen05.fence::before_thread_sync
    tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%f1, %f2}, %f3, [%r2]
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2]
    tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1
    tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1
    tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1
    tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p1
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned
    tcgen05.shift.cta_group::1.down [%r1]
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1}
    tcgen05.wait::ld.sync.aligned
    tcgen05.wait::st.sync.aligned
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128
    tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2
    testp.subnormal.f64 %p1, %fd1
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}]
    tex.base.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}]
    tex.level.2d.v2.f16x2.f32 {%r1, %r2}, [%rd1, {%f5, %f6}], %f7
    tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}]
    trap
    txq.width.b32 %r1, [%rd1]
    vabsdiff.u32.u32.u32 %r1, %r2, %r3
    vabsdiff2.u32.u32.u32 %r1, %r2, %r3, %r4
    vabsdiff4.u32.u32.u32 %r1, %r2, %r3, %r4
    vadd.u32.u32.u32 %r1, %r2, %r3
    vadd2.u32.u32.u32 %r1, %r2, %r3, %r4
    vadd4.u32.u32.u32.add %r1, %r2, %r3, %r4
    vavrg2.s32.s32.s32 %r1, %r2, %r3, %r4
    vavrg4.u32.u32.u32 %r1, %r2, %r3, %r4
    vmad.u32.u32.u32 %r1, %r2, %r3, %r4
    vmax.u32.u32.u32 %r1, %r2, %r3
    vmax2.u32.u32.u32 %r1, %r2, %r3, %r4
    vmax4.u32.u32.u32 %r1, %r2, %r3, %r4
    vmin.s32.s32.s32 %r1, %r2, %r3
    vmin2.u32.u32.u32 %r1, %r2, %r3, %r4
    vmin4.u32.u32.u32 %r1, %r2, %r3, %r4
    vote.sync.ballot.b32 %r1, %p1, 0xffffffff
    vote.sync.uni.pred %p1, %p2, 0xffffffff
    vset.s32.u32.lt %r1, %r2, %r3
    vset2.u32.u32.lt %r1, %r2, %r3, %r4
    vset4.u32.u32.lt %r1, %r2, %r3, %r4
    vshl.u32.u32.u32.clamp %r1, %r2, %r3
    vshr.u32.u32.u32.wrap %r1, %r2, %r3
    vsub.s32.u32.u32 %r1, %r2, %r3
    vsub2.u32.u32.u32 %r1, %r2, %r3, %r4
    vsub4.u32.u32.u32 %r1, %r2, %r3, %r4
    wgmma.commit_group.sync.aligned
    wgmma.fence.sync.aligned
    wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {%r1, %r2}, %rd1, %rd2, %r3, 0, %p1, 1, 1, 0, 0
    wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd1, %rd2, %p1, 1, 1, 0, 0
    wgmma.wait_group.sync.aligned 0
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
    wmma.mma.sync.aligned.row.row.m8n8k4.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd5, %fd6}
    wmma.store.d.sync.aligned.row.m16n16k16.f16 [%rd1], {%r1, %r2, %r3, %r4}
    xor.b64 %rd1, %rd2, %rd3";

/// The first words of all instructions in the manual, version 9.
const MNEMONICS: &str = "
    abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call clusterlaunchcontrol
    clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol
    isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem
    nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl
    shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tcgen05 tensormap testp tex tld4
    trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4
    vshl vshr vsub vsub2 vsub4 wgmma wmma xor";

/// Names that `ptxas` refuses: forms that one might expect, and words of machine code.
const NOT_THERE: &str = "
    add.sat.u64 %rd1, %rd2, %rd3
    sub.sat.u32 %r1, %r2, %r3
    neg.s16x2 %r1, %r2
    abs.s16x2 %r1, %r2
    cvt.rn.f32.s2f7x2 %f1, %rs1
    warpsync %r1
    mov3.b32 %r1, %r2
    vadd3.u32.u32.u32 %r1, %r2, %r3
    ld.everywhere.u32 %r1, [%rd1]
    tcgen06.ld.sync.aligned %r1, [%r2]
    iadd3 %r1, %r2, %r3";

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

#[test]
fn every_instruction_of_the_manual_is_in_the_model_or_in_the_table() {
    for line in lines(INSTRUCTIONS) {
        let module = module(&format!("{line};"));
        if let Op::Unsupported(op) = &first(&module).op {
            let family = NotRun::find(&op.mnemonic, &op.modifiers);
            assert!(family.is_some(), "{line}: {}", op.reason);
        }
        assert_eq!(check(&module), [], "{line}");
    }
}

#[test]
fn every_name_of_the_manual_is_known() {
    for name in MNEMONICS.split_whitespace() {
        // A modifier that nobody has is the culprit then, and not the name.
        let text = format!(".version 9.0 .target sm_100a .entry k() {{ {name}.nobodyhasit; }}");
        let said = match gridloom_ptx::parse(&text) {
            Ok(module) => check(&module).iter().map(|found| found.message.clone()).collect(),
            Err(error) => error.to_string(),
        };
        assert!(!said.contains("there is no instruction"), "{name}: {said}");
    }
}

#[test]
fn every_row_of_the_table_has_an_instruction_that_exists() {
    // `ptxas` of CUDA 13.4 knows the name, the manual has no form of it yet.
    let undescribed = ["spdecompress"];
    let names: BTreeSet<&str> =
        lines(INSTRUCTIONS).map(|line| line.split(' ').next().unwrap_or_default()).collect();
    for pattern in NOT_RUN.iter().flat_map(|family| family.instructions) {
        let is_meant = |name: &&str| {
            let (mut words, mut wanted) = (name.split('.'), pattern.split('.'));
            let (mnemonic, words) = (words.next(), words.collect::<Vec<_>>());
            mnemonic == wanted.next() && wanted.all(|word| words.contains(&word))
        };
        let exists = undescribed.contains(pattern) || names.iter().any(is_meant);
        assert!(exists, "no instruction of the list is `{pattern}`");
    }
}

#[test]
fn instructions_that_no_manual_has_are_refused() {
    for line in lines(NOT_THERE) {
        assert_eq!(check(&module(&format!("{line};"))).len(), 1, "{line}");
    }
}
