//! Floating point arithmetic.

use crate::common::{assert_canonical, assert_prints_as, check_errors, parse_errors};

#[test]
fn arithmetic_in_every_rounding() {
    for name in ["add", "sub", "mul"] {
        for rounding in ["", ".rn", ".rz", ".rm", ".rp"] {
            assert_canonical(&format!("{name}{rounding}.f32 %f1, %f2, %f3"));
            assert_canonical(&format!("{name}{rounding}.ftz.sat.f32 %f1, %f2, 0f3F800000"));
            assert_canonical(&format!("{name}{rounding}.f64 %fd1, %fd2, 0d3FF0000000000000"));
            assert_canonical(&format!("{name}{rounding}.ftz.f32x2 %rd1, %rd2, %rd3"));
        }
    }
    for rounding in ["rn", "rz", "rm", "rp"] {
        assert_canonical(&format!("fma.{rounding}.f32 %f1, %f2, %f3, %f4"));
        assert_canonical(&format!("fma.{rounding}.ftz.sat.f32 %f1, %f2, %f3, %f4"));
        assert_canonical(&format!("fma.{rounding}.f64 %fd1, %fd2, %fd3, %fd4"));
        assert_canonical(&format!("mad.{rounding}.f32 %f1, %f2, %f3, %f4"));
        assert_canonical(&format!("fma.{rounding}.f32x2 %rd1, %rd2, %rd3, %rd4"));
    }
}

#[test]
fn division_roots_and_reciprocals() {
    assert_canonical(
        "div.approx.f32 %f1, %f2, %f3
         div.approx.ftz.f32 %f1, %f2, %f3
         div.full.ftz.f32 %f1, %f2, %f3
         div.rn.f32 %f1, %f2, %f3
         div.rz.f64 %fd1, %fd2, %fd3
         rcp.approx.ftz.f32 %f1, %f2
         rcp.rn.f64 %fd1, %fd2
         rcp.approx.ftz.f64 %fd1, %fd2
         sqrt.approx.f32 %f1, %f2
         sqrt.rn.ftz.f32 %f1, %f2
         sqrt.rp.f64 %fd1, %fd2
         rsqrt.approx.f32 %f1, %f2
         rsqrt.approx.ftz.f64 %fd1, %fd2",
    );
    // Before PTX 1.4 the precision was not written.
    assert_prints_as(&[
        ("div.f32 %f1, %f2, %f3", "div.approx.f32 %f1, %f2, %f3"),
        ("div.f64 %fd1, %fd2, %fd3", "div.rn.f64 %fd1, %fd2, %fd3"),
        ("sin.f32 %f1, %f2", "sin.approx.f32 %f1, %f2"),
    ]);
}

#[test]
fn approximate_functions() {
    assert_canonical(
        "sin.approx.f32 %f1, %f2
         cos.approx.ftz.f32 %f1, %f2
         lg2.approx.f32 %f1, %f2
         ex2.approx.ftz.f32 %f1, %f2
         ex2.approx.f16 %rs1, %rs2
         ex2.approx.f16x2 %r1, %r2
         ex2.approx.ftz.bf16 %rs1, %rs2
         ex2.approx.ftz.bf16x2 %r1, %r2
         tanh.approx.f32 %f1, %f2
         tanh.approx.f16 %rs1, %rs2
         tanh.approx.bf16x2 %r1, %r2",
    );
}

#[test]
fn half_precision_of_both_kinds() {
    for (one, two) in [("f16", "f16x2"), ("bf16", "bf16x2")] {
        for name in ["add", "sub", "mul"] {
            assert_canonical(&format!("{name}.{one} %rs1, %rs2, %rs3\n{name}.rn.{two} %r1, %r2, %r3"));
        }
        assert_canonical(&format!(
            "fma.rn.{one} %rs1, %rs2, %rs3, %rs4
             fma.rn.relu.{two} %r1, %r2, %r3, %r4
             fma.rn.oob.{one} %rs1, %rs2, %rs3, %rs4
             fma.rn.oob.relu.{two} %r1, %r2, %r3, %r4
             neg.{one} %rs1, %rs2
             abs.{two} %r1, %r2
             min.{one} %rs1, %rs2, %rs3
             max.NaN.{two} %r1, %r2, %r3
             min.NaN.xorsign.abs.{two} %r1, %r2, %r3"
        ));
    }
    assert_canonical(
        "add.ftz.sat.f16 %rs1, %rs2, %rs3\nfma.rn.ftz.sat.f16x2 %r1, %r2, %r3, %r4\nneg.ftz.f16x2 %r1, %r2",
    );
}

#[test]
fn smaller_larger_signs_and_properties() {
    assert_canonical(
        "min.f32 %f1, %f2, %f3
         max.ftz.NaN.f32 %f1, %f2, %f3
         min.xorsign.abs.f32 %f1, %f2, %f3
         max.ftz.NaN.xorsign.abs.f32 %f1, %f2, %f3
         min.f64 %fd1, %fd2, %fd3
         max.f32 %f1, %f2, %f3, %f4
         min.NaN.abs.f32 %f1, %f2, %f3, %f4
         abs.f32 %f1, %f2
         abs.ftz.f32 %f1, %f2
         neg.f64 %fd1, %fd2
         copysign.f32 %f1, %f2, %f3
         copysign.f64 %fd1, %fd2, %fd3",
    );
    for property in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
        assert_canonical(&format!("testp.{property}.f32 %p1, %f2\ntestp.{property}.f64 %p1, %fd2"));
    }
}

#[test]
fn a_float_instruction_takes_float_registers_or_bits() {
    assert_canonical("add.f32 %r1, %r2, %r3\nadd.f64 %rd1, %fd2, %rd3");
    assert_eq!(
        check_errors(".reg .u32 %u; add.f32 %f1, %f2, %u;"),
        ["`add.f32`: `%u` is a .u32; a .f32 is needed here"]
    );
    assert_eq!(check_errors("add.f32 %f1, %f2, %fd3;").len(), 1);
    assert_eq!(check_errors("sin.approx.f64 %fd1, %fd2;").len(), 1);
    assert_eq!(check_errors("div.approx.f64 %fd1, %fd2, %fd3;").len(), 1);
}

#[test]
fn fma_needs_a_rounding() {
    assert_eq!(parse_errors("fma.f32 %f1, %f2, %f3, %f4;"), ["`fma` needs a rounding such as .rn"]);
}
