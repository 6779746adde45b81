//! Comparison, selection, conversion and data movement.

use crate::common::{assert_canonical, assert_prints_as, check_errors, op, parse_errors};
use gridloom_ptx::op::{CompareOp, ConvertOp, Op};
use gridloom_ptx::{Operand, VarRef};

#[test]
fn comparisons_to_predicates() {
    for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
        assert_canonical(&format!(
            "setp.{cmp}.s32 %p1, %r2, %r3\nsetp.{cmp}.u64 %p1, %rd2, 0\nsetp.{cmp}.f32 %p1, %f2, 0f00000000"
        ));
    }
    for cmp in ["lo", "ls", "hi", "hs"] {
        assert_canonical(&format!("setp.{cmp}.u32 %p1, %r2, %r3"));
    }
    for cmp in ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
        assert_canonical(&format!("setp.{cmp}.f32 %p1, %f2, %f3\nsetp.{cmp}.f64 %p1, %fd2, %fd3"));
    }
}

#[test]
fn comparisons_combine_and_have_two_destinations() {
    assert_canonical(
        "setp.lt.and.s32 %p1|%p2, %r2, %r3, %p4
         setp.lt.or.ftz.f32 %p1, %f2, %f3, !%p4
         setp.ne.xor.b16 _|%p2, %rs2, %rs3, %p4
         setp.gt.f16 %p1, %rs2, %rs3
         setp.gt.f16x2 %p1|%p2, %r2, %r3
         setp.le.bf16x2 %p1|%p2, %r2, %r3",
    );
    assert_prints_as(&[("setp.lt.s32 %p1|_, %r2, %r3", "setp.lt.s32 %p1, %r2, %r3")]);
    let Op::Compare(CompareOp::Setp { p: None, q: Some(_), .. }) = op("setp.eq.s32 _|%p2, %r1, %r2;") else {
        panic!("only the second destination");
    };
}

#[test]
fn comparisons_to_values_and_selection() {
    assert_canonical(
        "set.lt.u32.f32 %r1, %f2, %f3
         set.eq.f32.s32 %f1, %r2, %r3
         set.ge.and.ftz.s32.f32 %r1, %f2, %f3, %p1
         set.gt.f16.f16 %rs1, %rs2, %rs3
         set.gtu.f16x2.f16x2 %r1, %r2, %r3
         set.ne.u32.bf16x2 %r1, %r2, %r3
         selp.b32 %r1, %r2, 5, %p1
         selp.f64 %fd1, %fd2, 0d0000000000000000, %p1
         selp.b16 %rs1, 1, 0, %p1
         slct.u32.s32 %r1, %r2, %r3, %r4
         slct.ftz.b64.f32 %rd1, %rd2, %rd3, %f4",
    );
    assert_eq!(
        check_errors("selp.b32 %r1, %r2, %r3, %r4;"),
        ["`selp.b32`: `%r4` is a .b32; a predicate is needed here"]
    );
    assert_eq!(parse_errors("setp.s32 %p1, %r1, %r2;"), ["`setp` needs a comparison such as .lt"]);
}

#[test]
fn conversions_between_integers() {
    assert_canonical(
        "cvt.u64.u32 %rd1, %r2
         cvt.s32.s8 %r1, %r2
         cvt.u16.u32 %rs1, %r2
         cvt.u8.u32 %r1, %r2
         cvt.sat.u8.s32 %rs1, %r2
         cvt.u32.u64 %r1, %rd2",
    );
}

#[test]
fn conversions_with_floats_in_every_rounding() {
    for rounding in ["rn", "rz", "rm", "rp"] {
        assert_canonical(&format!(
            "cvt.{rounding}.f32.s32 %f1, %r2\ncvt.{rounding}.f32.f64 %f1, %fd2\ncvt.{rounding}.f64.u64 %fd1, %rd2"
        ));
    }
    for rounding in ["rni", "rzi", "rmi", "rpi"] {
        assert_canonical(&format!(
            "cvt.{rounding}.s32.f32 %r1, %f2\ncvt.{rounding}.ftz.u64.f32 %rd1, %f2\ncvt.{rounding}.f32.f32 %f1, %f2"
        ));
    }
    assert_canonical(
        "cvt.ftz.f64.f32 %fd1, %f2
         cvt.rn.ftz.sat.f32.f32 %f1, %f2
         cvt.f32.f16 %f1, %rs2
         cvt.rn.f16.f32 %rs1, %f2
         cvt.rz.bf16.f32 %rs1, %f2
         cvt.f32.bf16 %f1, %rs2
         cvt.rn.f16x2.f32 %r1, %f2, %f3
         cvt.rn.relu.bf16x2.f32 %r1, %f2, %f3
         cvt.rna.tf32.f32 %r1, %f2
         cvt.rn.satfinite.relu.tf32.f32 %r1, %f2
         cvt.rs.f16x2.f32 %r1, %f2, %f3, %r4",
    );
}

#[test]
fn conversions_to_and_from_small_floats() {
    assert_canonical(
        "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f2, %f3
         cvt.rn.satfinite.relu.e5m2x2.f32 %rs1, %f2, %f3
         cvt.rn.satfinite.e4m3x2.f16x2 %rs1, %r2
         cvt.rn.f16x2.e4m3x2 %r1, %rs2
         cvt.rn.relu.f16x2.e5m2x2 %r1, %rs2
         cvt.rn.satfinite.e2m3x2.f32 %rs1, %f2, %f3
         cvt.rn.f16x2.e3m2x2 %r1, %rs2
         cvt.rp.satfinite.ue8m0x2.f32 %rs1, %f2, %f3
         cvt.rn.bf16x2.ue8m0x2 %r1, %rs2
         cvt.rs.satfinite.e4m3x4.f32 %r1, {%f2, %f3, %f4, %f5}, %r6
         cvt.pack.sat.s16.s32 %r1, %r2, %r3
         cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4
         cvt.pack.sat.s8.s32.b32 %r1, %r2, %r3, 0
         cvt.pack.sat.u4.s32.b32 %r1, %r2, %r3, %r4
         cvt.pack.sat.s4.s32.b32 %r1, %r2, %r3, %r4
         cvt.pack.sat.u2.s32.b32 %r1, %r2, %r3, %r4
         cvt.pack.sat.s2.s32.b32 %r1, %r2, %r3, %r4",
    );
    let Op::Convert(ConvertOp::Cvt(cvt)) = op("cvt.rs.satfinite.e2m1x4.f32 %rs1, {%f2, %f3, %f4, %f5}, %r6;")
    else {
        panic!("a conversion");
    };
    assert_eq!(cvt.srcs.len(), 4);
    assert!(cvt.random.is_some());
}

#[test]
fn addresses_between_spaces() {
    assert_canonical(
        "cvta.global.u64 %rd1, table
         cvta.to.global.u64 %rd1, %rd2
         cvta.shared.u64 %rd1, buffer+16
         cvta.to.shared.u64 %rd1, %rd2
         cvta.local.u64 %rd1, %rd2
         cvta.to.const.u64 %rd1, %rd2
         cvta.param.u64 %rd1, p
         isspacep.global %p1, %rd2
         isspacep.shared::cluster %p1, %rd2
         mapa.u64 %rd1, %rd2, %r3
         mapa.shared::cluster.u32 %r1, buffer, 2
         getctarank.u64 %r1, %rd2
         getctarank.shared::cluster.u32 %r1, %r2",
    );
    let Op::Convert(ConvertOp::Cvta { src: Operand::Address { base: VarRef::Symbol(_), offset: 8 }, .. }) =
        op("cvta.global.u64 %rd1, table+8;")
    else {
        panic!("the address of a module variable");
    };
}

#[test]
fn moves_of_everything() {
    assert_canonical(
        "mov.u32 %r1, %tid.x
         mov.u64 %rd1, %clock64
         mov.pred %p1, %p2
         mov.pred %p1, 1
         mov.b16 %rs1, 16256
         mov.f32 %f1, 0fBF800000
         mov.f64 %fd1, %fd2
         mov.b32 %r1, %f2
         mov.b32 %f1, %r2
         mov.u64 %rd1, table
         mov.u64 %rd1, table+32
         mov.u32 %r1, buffer
         mov.b64 %rd1, depot
         mov.u64 %rd1, twice
         mov.b64 %rd1, p
         mov.b32 %r1, {%rs2, %rs3}
         mov.b64 %rd1, {%r2, %r3}
         mov.b64 %rd1, {%rs2, %rs3, %rs4, %rs5}
         mov.b32 {%rs1, %rs2}, %r3
         mov.b64 {_, %r2}, %rd3
         mov.b64 {%f1, %f2}, %fd3
         mov.v2.b32 {%r1, %r2}, {%r2, %r1}
         mov.v4.f32 {%f1, _, %f3, %f4}, {%f5, %f6, 0f3F800000, %f8}
         mov.b128 %q1, {%rd1, %rd2}
         mov.b128 {%rd1, %rd2}, %q1",
    );
    assert_eq!(check_errors("mov.b64 %rd1, {%rs2, %rs3};"), ["2 elements of 2 bytes do not make a .b64"]);
    assert_eq!(check_errors("mov.b32 {%r1, %r2}, %r3;").len(), 1);
    assert_eq!(check_errors("mov.u32 %r1, %rd2;").len(), 1);
    assert_eq!(check_errors("mov.v2.b32 {%r1, %r2}, {%r3, %rd4};").len(), 1);
}

#[test]
fn fields_of_sixteen_bits_fill_a_register_and_smaller_ones_go_below_a_third_operand() {
    assert_eq!(
        check_errors("cvt.pack.sat.u16.s32.b32 %r1, %r2, %r3, %r4;"),
        ["two fields of .u16 fill a register: there is no third operand"]
    );
    assert_eq!(
        check_errors("cvt.pack.sat.s4.s32 %r1, %r2, %r3;"),
        ["two fields of .s4 go below a third operand, of .b32"]
    );
}

#[test]
fn every_special_register() {
    let mut lines = String::new();
    for name in
        ["tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"]
    {
        for dim in ["x", "y", "z"] {
            lines.push_str(&format!("mov.u32 %r1, %{name}.{dim}\n"));
        }
    }
    for name in [
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "clock",
        "clock_hi",
        "globaltimer_lo",
        "globaltimer_hi",
        "dynamic_smem_size",
        "total_smem_size",
        "aggr_smem_size",
        "cluster_ctarank",
        "cluster_nctarank",
        "envreg0",
        "envreg31",
        "pm0",
        "pm7",
        "reserved_smem_offset_begin",
        "reserved_smem_offset_end",
        "reserved_smem_offset_cap",
        "reserved_smem_offset_0",
        "reserved_smem_offset_1",
    ] {
        lines.push_str(&format!("mov.u32 %r1, %{name}\n"));
    }
    for name in ["clock64", "globaltimer", "gridid", "current_graph_exec", "pm0_64"] {
        lines.push_str(&format!("mov.u64 %rd1, %{name}\n"));
    }
    lines.push_str("mov.pred %p1, %is_explicit_cluster\n");
    assert_canonical(&lines);
    assert_eq!(parse_errors("mov.u32 %r1, %envreg32;"), ["unknown register `%envreg32`"]);
    assert_eq!(
        parse_errors("mov.u32 %r1, %tid;"),
        ["`%tid` has three components: write %tid.x, %tid.y or %tid.z"]
    );
    assert_eq!(
        parse_errors("mov.u32 %tid.x, %r1;"),
        ["`%tid` can only be read; expected a destination register"]
    );
}

// As `ptxas` of CUDA 12.9 and 13.5 takes and refuses them.
#[test]
fn special_registers_are_moved_or_converted_to_others_and_read_nowhere_else() {
    for allowed in [
        "mov.u32 %r1, %tid.x;",
        "mov.s32 %r1, %tid.x;",
        "mov.b16 %rs1, %tid.x;",
        "mov.u64 %rd1, %clock64;",
        "mov.u32 %r1, %gridid;",
        "mov.b64 %rd1, {%tid.x, %r1};",
        "mov.b64 {%r1, %r2}, %clock64;",
        "cvt.u64.u32 %rd1, %tid.x;",
        "cvt.u16.u32 %rs1, %tid.x;",
        "cvt.u32.u64 %r1, %clock64;",
    ] {
        assert_eq!(check_errors(allowed), [""; 0], "{allowed}");
    }
    let moved = "can only be moved to a register of integers, or converted to one";
    for (refused, name, register, reason) in [
        ("setp.ge.u32 %p1, %tid.x, 3;", "setp.ge.u32", "%tid.x", moved),
        ("add.u32 %r1, 1, %ctaid.y;", "add.u32", "%ctaid.y", moved),
        ("and.b32 %r1, %laneid, 3;", "and.b32", "%laneid", moved),
        ("st.global.b32 [%rd1], %tid.x;", "st.global.b32", "%tid.x", moved),
        ("mov.f32 %f1, %tid.x;", "mov.f32", "%tid.x", moved),
        ("cvt.rn.f32.u32 %f1, %tid.x;", "cvt.rn.f32.u32", "%tid.x", moved),
        ("mov.u64 %rd1, %tid.x;", "mov.u64", "%tid.x", "has 32 bits, and is read as .u64"),
        ("cvt.u32.u64 %r1, %tid.x;", "cvt.u32.u64", "%tid.x", "has 32 bits, and is read as .u64"),
    ] {
        assert_eq!(check_errors(refused), [format!("`{name}`: `{register}` {reason}")], "{refused}");
    }
}
