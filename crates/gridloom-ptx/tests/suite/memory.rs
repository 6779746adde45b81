//! Loads, stores, caches, asynchronous copies and the stack.

use crate::common::{assert_canonical, assert_prints_as, check_errors, op, parse_errors};
use gridloom_ptx::op::{MemoryOp, Op, Order};
use gridloom_ptx::{AddressBase, Space, VarRef};

#[test]
fn loads_and_stores_in_every_space() {
    for space in ["", ".global", ".const", ".local", ".shared", ".shared::cta", ".shared::cluster", ".param"]
    {
        assert_canonical(&format!("ld{space}.b32 %r1, [%rd2]"));
    }
    for space in ["", ".global", ".local", ".shared", ".shared::cta", ".shared::cluster"] {
        assert_canonical(&format!("st{space}.b32 [%rd1], %r2"));
    }
    assert_canonical(
        "ld.param.u64 %rd1, [p]
         ld.param::entry.u32 %r1, [n]
         ld.param::func.b32 %r1, [arg]
         st.param.b32 [arg], %r1
         st.param::func.b32 [arg], 5
         ld.shared.f32 %f1, [buffer+64]
         ld.local.b64 %rd1, [depot+-8]
         st.local.b64 [depot+8], %rd1
         ld.global.u8 %rs1, [table+3]
         ld.u32 %r1, [4096]",
    );
}

#[test]
fn loads_and_stores_of_every_type() {
    for ty in ["b8", "u8", "s8", "b16", "u16", "s16"] {
        assert_canonical(&format!("ld.global.{ty} %rs1, [%rd1]\nst.global.{ty} [%rd1], %rs1"));
        assert_canonical(&format!("ld.global.{ty} %r1, [%rd1]\nst.global.{ty} [%rd1], %r1"));
    }
    for ty in ["b32", "u32", "s32"] {
        assert_canonical(&format!("ld.global.{ty} %r1, [%rd1]\nst.global.{ty} [%rd1], %r1"));
    }
    for ty in ["b64", "u64", "s64"] {
        assert_canonical(&format!("ld.global.{ty} %rd1, [%rd1]\nst.global.{ty} [%rd1], %rd2"));
    }
    assert_canonical(
        "ld.global.f32 %f1, [%rd1]
         ld.global.f64 %fd1, [%rd1]
         ld.global.b128 %q1, [%rd1]
         st.global.b128 [%rd1], %q1
         st.global.f32 [%rd1], 0f00000000",
    );
}

#[test]
fn vectors_of_two_four_and_eight() {
    assert_canonical(
        "ld.global.v2.f32 {%f1, %f2}, [%rd1]
         ld.global.v4.u32 {%r1, _, %r3, %r4}, [%rd1+16]
         ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
         ld.shared.v2.b64 {%rd1, %rd2}, [%r1]
         st.global.v4.b32 [%rd1], {%r1, 0, %r3, %r4}
         st.shared.v2.b16 [%rd1], {%rs1, %rs2}
         st.local.v2.f64 [%rd1], {%fd1, %fd2}",
    );
    // As Triton writes a single element.
    assert_prints_as(&[
        ("ld.global.b32 { %r1 }, [ %rd1 + 0 ]", "ld.global.b32 %r1, [%rd1]"),
        ("st.global.b32 [ %rd1 + 4 ], { %r1 }", "st.global.b32 [%rd1+4], %r1"),
    ]);
    assert_eq!(
        parse_errors("ld.global.v2.f32 {%f1, %f2, %f3}, [%rd1];"),
        ["expected 2 elements in braces, found 3"]
    );
    assert_eq!(parse_errors("ld.global.f32 {%f1, %f2}, [%rd1];"), ["expected one register, found 2"]);
    assert_eq!(
        check_errors("ld.global.v8.b64 {%rd1, %rd2, %rd3, %rd4, %rd5, %rd6, %rd7, %rd8}, [%rd9];").len(),
        1
    );
}

#[test]
fn memory_orders_and_scopes() {
    for scope in ["cta", "cluster", "gpu", "sys"] {
        assert_canonical(&format!(
            "ld.relaxed.{scope}.global.b32 %r1, [%rd1]
             ld.acquire.{scope}.global.b32 %r1, [%rd1]
             st.relaxed.{scope}.b64 [%rd1], %rd2
             st.release.{scope}.shared::cta.b32 [%r1], %r2"
        ));
    }
    assert_canonical(
        "ld.volatile.global.u32 %r1, [%rd1]
         st.volatile.shared.u32 [%r1], %r2
         ld.mmio.relaxed.sys.global.u32 %r1, [%rd1]
         st.mmio.relaxed.sys.global.u32 [%rd1], %r1",
    );
    assert_prints_as(&[("ld.weak.global.b32 %r1, [%rd1]", "ld.global.b32 %r1, [%rd1]")]);
    let Op::Memory(MemoryOp::Ld { access, .. }) = op("ld.volatile.u32 %r1, [%rd1];") else {
        panic!("a load")
    };
    assert_eq!((access.order, access.space), (Order::Volatile, Space::Generic));
    assert_eq!(check_errors("ld.release.gpu.global.b32 %r1, [%rd1];"), ["a load cannot be .release"]);
    assert_eq!(check_errors("st.acquire.gpu.global.b32 [%rd1], %r1;"), ["a store cannot be .acquire"]);
}

#[test]
fn caches_and_priorities() {
    for cache in ["ca", "cg", "cs", "lu", "cv"] {
        assert_canonical(&format!("ld.global.{cache}.b32 %r1, [%rd1]"));
    }
    for cache in ["wb", "cg", "cs", "wt"] {
        assert_canonical(&format!("st.global.{cache}.b32 [%rd1], %r1"));
    }
    for priority in ["evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate"] {
        assert_canonical(&format!("ld.global.L1::{priority}.b32 %r1, [%rd1]"));
    }
    assert_canonical(
        "ld.global.nc.b32 %r1, [%rd1]
         ld.global.ca.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]
         ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1], %rd2
         ld.global.L1::evict_last.L2::evict_first.L2::64B.b32 %r1, [%rd1]
         ld.global.L2::128B.b32 %r1, [%rd1]
         st.global.L1::no_allocate.L2::cache_hint.b32 [%rd1], %r1, %rd2
         ld.global.b32 %r1, [%rd1].unified
         ldu.global.v2.f32 {%f1, %f2}, [%rd1]
         prefetch.global.L1 [%rd1]
         prefetch.L2 [%rd1+128]
         prefetch.global.L2::evict_last [%rd1]
         prefetchu.L1 [%rd1]
         discard.global.L2 [%rd1], 128
         applypriority.global.L2::evict_normal [%rd1], 128
         createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F800000
         createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd1
         createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd1, [%rd2], %r3, 1024
         createpolicy.cvt.L2.b64 %rd1, %rd2",
    );
    assert_eq!(check_errors("discard.global.L2 [%rd1], 64;"), ["the size is 128 bytes, not 64"]);
}

#[test]
fn asynchronous_copies() {
    assert_canonical(
        "cp.async.ca.shared.global [%r1], [%rd2], 4
         cp.async.cg.shared.global [%r1+16], [%rd2+32], 16
         cp.async.cg.shared::cta.global [%r1], [%rd2], 16, %r3
         cp.async.ca.shared.global.L2::128B [%r1], [%rd2], 8, 0
         cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd2], 8, %rd3
         cp.async.cg.shared.global.L2::cache_hint.L2::256B [%r1], [%rd2], 16, %r4, %rd3
         cp.async.ca.shared.global [%r1], [%rd2], 8, %p1
         cp.async.ca.shared.global [%r1], [%rd2], 8, !%p1
         cp.async.commit_group
         cp.async.wait_group 3
         cp.async.wait_all
         cp.async.mbarrier.arrive.shared.b64 [%r1]
         cp.async.mbarrier.arrive.noinc.shared::cta.b64 [buffer]",
    );
    assert_eq!(
        check_errors("cp.async.cg.shared.global [%r1], [%rd2], 8;"),
        ["cp.async.cg does not copy 8 bytes"]
    );
    assert_eq!(parse_errors("cp.async.ca.global.shared [%r1], [%rd2], 8;").len(), 1);
}

#[test]
fn the_stack() {
    assert_canonical(
        "alloca.u64 %rd1, %rd2
         alloca.u64 %rd1, 64, 16
         stacksave.u64 %rd1
         stackrestore.u64 %rd1",
    );
}

#[test]
fn addresses_resolve_to_their_variables() {
    let Op::Memory(MemoryOp::Ld { access, .. }) = op("ld.param.u32 %r1, [n];") else { panic!("a load") };
    assert!(matches!(access.addr.base, AddressBase::Var(VarRef::Param(id)) if id.0 == 1));
    // The old form with an index counts elements.
    let Op::Memory(MemoryOp::Ld { access, .. }) =
        op(".shared .f64 values[8]; ld.shared.f64 %fd1, values[3];")
    else {
        panic!("a load")
    };
    assert_eq!(access.addr.offset, 24);
}

#[test]
fn registers_of_loads_may_be_wider_but_not_narrower() {
    assert_canonical("ld.global.u8 %rd1, [%rd2]\nst.global.u16 [%rd1], %r1");
    assert_eq!(
        check_errors("ld.global.u64 %r1, [%rd1];"),
        ["`ld.global.u64`: `%r1` is a .b32; a .u64 or wider is needed here"]
    );
    assert_eq!(check_errors("ld.global.u32 %f1, [%rd1];").len(), 1);
    assert_eq!(
        check_errors("ld.global.b32 %r1, [%f1];"),
        ["`ld.global.b32`: `%f1` is a .f32; an address is needed here"]
    );
}
