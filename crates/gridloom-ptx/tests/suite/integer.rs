//! Integer arithmetic.

use crate::common::{assert_canonical, check_errors, op, parse_errors};
use gridloom_ptx::op::{IntArith, IntOp, Op};
use gridloom_ptx::{Imm, Operand, RegId, ScalarType};

#[test]
fn arithmetic_on_every_integer_type() {
    for ty in ["u16", "s16"] {
        assert_canonical(&format!(
            "add.{ty} %rs1, %rs2, %rs3\nsub.{ty} %rs1, %rs2, -4\nmul.lo.{ty} %rs1, %rs2, %rs3"
        ));
    }
    for ty in ["u32", "s32"] {
        for name in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            assert_canonical(&format!("{name}.{ty} %r1, %r2, %r3"));
        }
    }
    for ty in ["u64", "s64"] {
        for name in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            assert_canonical(&format!("{name}.{ty} %rd1, %rd2, 12345678901234"));
        }
    }
}

#[test]
fn packed_halves_and_saturation() {
    assert_canonical(
        "add.u16x2 %r1, %r2, %r3
         add.s16x2 %r1, %r2, %r3
         min.u16x2 %r1, %r2, %r3
         max.relu.s16x2 %r1, %r2, %r3
         min.relu.s32 %r1, %r2, %r3
         add.sat.s32 %r1, %r2, %r3
         sub.sat.s32 %r1, %r2, %r3",
    );
}

#[test]
fn products_and_sums_of_products() {
    assert_canonical(
        "mul.wide.u16 %r1, %rs2, %rs3
         mul.wide.s32 %rd1, %r2, %r3
         mul.wide.u32 %rd1, %r2, 4
         mul24.lo.u32 %r1, %r2, %r3
         mul24.hi.s32 %r1, %r2, %r3
         mad.lo.s32 %r1, %r2, %r3, %r4
         mad.hi.u64 %rd1, %rd2, %rd3, %rd4
         mad.wide.s32 %rd1, %r2, %r3, %rd4
         mad.wide.u16 %r1, %rs2, %rs3, %r4
         mad.hi.sat.s32 %r1, %r2, %r3, %r4
         mad24.lo.u32 %r1, %r2, %r3, %r4
         mad24.hi.sat.s32 %r1, %r2, %r3, %r4
         sad.u32 %r1, %r2, %r3, %r4
         sad.s64 %rd1, %rd2, %rd3, %rd4",
    );
}

#[test]
fn carry_chains() {
    assert_canonical(
        "add.cc.u32 %r1, %r2, %r3
         addc.cc.u32 %r1, %r2, %r3
         addc.u64 %rd1, %rd2, 0
         sub.cc.s32 %r1, %r2, %r3
         subc.cc.u32 %r1, %r2, %r3
         subc.s64 %rd1, %rd2, %rd3
         mad.lo.cc.u32 %r1, %r2, %r3, %r4
         madc.hi.cc.u32 %r1, %r2, %r3, %r4
         madc.lo.u64 %rd1, %rd2, %rd3, %rd4
         madc.hi.s32 %r1, %r2, %r3, %r4",
    );
}

#[test]
fn signs_and_dot_products() {
    assert_canonical(
        "abs.s16 %rs1, %rs2
         abs.s32 %r1, %r2
         neg.s64 %rd1, %rd2
         dp4a.u32.s32 %r1, %r2, %r3, %r4
         dp2a.lo.s32.u32 %r1, %r2, %r3, %r4
         dp2a.hi.u32.u32 %r1, %r2, %r3, %r4",
    );
}

#[test]
fn operands_resolve_to_registers_and_constants() {
    // %p<8> and %rs<16> come first.
    let expected = IntOp::Arith {
        op: IntArith::Sub,
        ty: ScalarType::S32,
        sat: false,
        relu: false,
        dst: RegId(24 + 1),
        a: Operand::Reg(RegId(24 + 2)),
        b: Operand::Imm(Imm::Int(-7)),
    };
    assert_eq!(op("sub.s32 %r1, %r2, -7;"), Op::Int(expected));
}

#[test]
fn a_sink_becomes_a_register_nothing_reads() {
    assert!(crate::common::printed("add.cc.u32 _, %r1, %r2;").starts_with("add.cc.u32 %sink"));
    crate::common::assert_round_trip(&crate::common::module(
        "add.cc.u32 _, %r1, %r2; add.cc.u64 _, %rd1, %rd2;",
    ));
}

#[test]
fn a_missing_part_is_named() {
    assert_eq!(parse_errors("add %r1, %r2, %r3;"), ["`add` needs a type such as .u32"]);
    assert_eq!(parse_errors("mul.s32 %r1, %r2, %r3;"), ["`mul` needs .lo, .hi or .wide"]);
    assert_eq!(parse_errors("add.s32 %r1, %r2;"), ["expected `,`, found `;`"]);
    assert_eq!(
        parse_errors("add.s32 %r1, %r2, %r3, %r4;"),
        ["expected `;`: `add` takes no more operands, found `,`"]
    );
    assert_eq!(parse_errors("add.s32 5, %r2, %r3;"), ["expected a destination register, found `5`"]);
}

#[test]
fn widths_and_kinds_must_agree() {
    assert_eq!(
        check_errors("add.s32 %r1, %rd2, %r3;"),
        ["`add.s32`: `%rd2` is a .b64; a .s32 is needed here"]
    );
    assert_eq!(check_errors("add.s32 %r1, %f2, %r3;"), ["`add.s32`: `%f2` is a .f32; a .s32 is needed here"]);
    assert_eq!(
        check_errors("add.s32 %r1, %p2, %r3;"),
        ["`add.s32`: `%p2` is a .pred; a .s32 is needed here"]
    );
    assert_eq!(check_errors("mul.wide.s32 %r1, %r2, %r3;").len(), 1);
    assert_eq!(check_errors("add.s32 %r1, %r2, 0f3F800000;").len(), 1);
    assert_eq!(check_errors("add.b32 %r1, %r2, %r3;").len(), 1);
    assert_eq!(check_errors("sub.sat.u32 %r1, %r2, %r3;").len(), 1);
}
