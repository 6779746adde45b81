//! Logic, shifts and bit fields.

use crate::common::{assert_canonical, assert_prints_as, check_errors, op, parse_errors};
use gridloom_ptx::op::{BitsOp, LogicOp, Op};

#[test]
fn logic_on_bits_and_predicates() {
    assert_canonical(
        "and.b16 %rs1, %rs2, %rs3
         or.b32 %r1, %r2, 255
         xor.b64 %rd1, %rd2, -1
         and.pred %p1, %p2, %p3
         xor.pred %p1, %p2, -1
         not.b32 %r1, %r2
         not.pred %p1, %p2
         cnot.b64 %rd1, %rd2",
    );
}

#[test]
fn three_input_logic_with_and_without_a_predicate() {
    assert_canonical(
        "lop3.b32 %r1, %r2, %r3, %r4, 150
         lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 63, %p2
         lop3.and.b32 _|%p1, %r2, %r3, %r4, 63, !%p2",
    );
    assert_prints_as(&[("lop3.b32 %r1, %r2, %r3, %r4, 0x96", "lop3.b32 %r1, %r2, %r3, %r4, 150")]);
    let Op::Bits(BitsOp::Lop3 { pred: Some(pred), lut: 63, .. }) =
        op("lop3.or.b32 %r1|%p1, %r2, 0, 0, 63, %p2;")
    else {
        panic!("a lop3 with a predicate");
    };
    assert_eq!(pred.op, LogicOp::Or);
    assert_eq!(
        parse_errors("lop3.b32 %r1, %r2, %r3, %r4, 256;"),
        ["the truth table of lop3 is between 0 and 255"]
    );
    assert_eq!(parse_errors("lop3.or.b32 %r1, %r2, %r3, %r4, 6;").len(), 1);
    assert_eq!(parse_errors("lop3.b32 %r1|%p1, %r2, %r3, %r4, 6;").len(), 1);
}

#[test]
fn shifts() {
    assert_canonical(
        "shl.b16 %rs1, %rs2, %r3
         shl.b32 %r1, %r2, 5
         shl.b64 %rd1, %rd2, %r3
         shr.u16 %rs1, %rs2, 8
         shr.s32 %r1, %r2, 31
         shr.b64 %rd1, %rd2, 32
         shf.l.wrap.b32 %r1, %r2, %r3, %r4
         shf.r.clamp.b32 %r1, %r2, %r3, 7",
    );
    assert_eq!(
        check_errors("shl.b64 %rd1, %rd2, %rd3;"),
        ["`shl.b64`: `%rd3` is a .b64; a .u32 is needed here"]
    );
}

#[test]
fn fields_and_searches() {
    assert_canonical(
        "bfe.u32 %r1, %r2, %r3, %r4
         bfe.s64 %rd1, %rd2, %r3, 8
         bfi.b32 %r1, %r2, %r3, 4, 5
         bfi.b64 %rd1, %rd2, %rd3, %r4, %r5
         bfind.u32 %r1, %r2
         bfind.shiftamt.s64 %r1, %rd2
         brev.b32 %r1, %r2
         brev.b64 %rd1, %rd2
         clz.b64 %r1, %rd2
         popc.b32 %r1, %r2
         fns.b32 %r1, %r2, %r3, %r4
         szext.clamp.u32 %r1, %r2, %r3
         szext.wrap.s32 %r1, %r2, %r3
         bmsk.wrap.b32 %r1, %r2, %r3
         bmsk.clamp.b32 %r1, 4, %r3",
    );
    assert_eq!(check_errors("popc.b64 %rd1, %rd2;").len(), 1);
}

#[test]
fn byte_permutation_in_every_mode() {
    assert_canonical("prmt.b32 %r1, %r2, %r3, 21554");
    for mode in ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"] {
        assert_canonical(&format!("prmt.b32.{mode} %r1, %r2, %r3, %r4"));
    }
}
