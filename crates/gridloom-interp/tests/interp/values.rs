//! Each instruction uses the numeric function of its type and modifiers. The functions have their
//! own tests.

use crate::support::thread;

#[test]
fn integers_of_every_width_and_sign() {
    assert_eq!(thread("mov.u32 %r2, -7; div.s32 %r0, %r2, 2;"), -3i32 as u32);
    assert_eq!(thread("mov.u32 %r2, -7; div.u32 %r0, %r2, 2;"), (-7i32 as u32) / 2);
    assert_eq!(thread("mov.u32 %r2, -7; rem.s32 %r0, %r2, 4;"), -3i32 as u32);
    assert_eq!(
        thread("mov.u16 %h0, 0xffff; mov.u16 %h1, 2; mul.lo.u16 %h2, %h0, %h1; cvt.u32.u16 %r0, %h2;"),
        0xfffe
    );
    assert_eq!(thread("mov.u16 %h0, 0xffff; mul.wide.s16 %r0, %h0, %h0;"), 1);
    assert_eq!(thread("mov.u16 %h0, 0xffff; mul.wide.u16 %r0, %h0, %h0;"), 0xfffe_0001);
    assert_eq!(thread("mov.u32 %r2, 0x7fffffff; add.sat.s32 %r0, %r2, %r2;"), 0x7fff_ffff);
    assert_eq!(thread("mov.u32 %r2, -9; abs.s32 %r0, %r2;"), 9);
    assert_eq!(thread("mov.u32 %r2, -9; shr.s32 %r0, %r2, 1;"), -5i32 as u32);
    assert_eq!(thread("mov.u32 %r2, 0x80000000; mul.hi.u32 %r0, %r2, 4;"), 2);
    assert_eq!(thread("mov.u32 %r2, 3; mov.u32 %r3, 5; mad.lo.s32 %r0, %r2, %r3, %r2;"), 18);
}

#[test]
fn division_by_zero_is_a_value_not_a_fault() {
    assert_eq!(thread("mov.u32 %r2, 7; mov.u32 %r3, 0; div.u32 %r0, %r2, %r3;"), u32::MAX);
}

#[test]
fn a_carry_chain_spans_instructions() {
    let body = "mov.u32 %r2, 0xffffffff; mov.u32 %r3, 1; mov.u32 %r4, 5;
        add.cc.u32 %r5, %r2, %r3; addc.u32 %r0, %r4, 0;";
    assert_eq!(thread(body), 6);
    let body = "mov.u32 %r2, 0; mov.u32 %r4, 5; sub.cc.u32 %r5, %r2, 1; subc.u32 %r0, %r4, 0;";
    assert_eq!(thread(body), 4);
}

#[test]
fn logic_and_bit_fields() {
    assert_eq!(
        thread(
            "mov.b32 %r2, 0xf0f0; mov.b32 %r3, 0xff00; mov.b32 %r4, 0xaaaa; lop3.b32 %r0, %r2, %r3, %r4, 0x96;"
        ),
        0xf0f0 ^ 0xff00 ^ 0xaaaa
    );
    assert_eq!(thread("mov.b32 %r2, 0x12345678; bfe.u32 %r0, %r2, 8, 8;"), 0x56);
    assert_eq!(thread("mov.b32 %r2, 0xff; mov.b32 %r3, 0; bfi.b32 %r0, %r2, %r3, 4, 4;"), 0xf0);
    assert_eq!(
        thread("mov.b32 %r2, 0x33221100; mov.b32 %r3, 0x77665544; prmt.b32 %r0, %r2, %r3, 0x7531;"),
        0x7755_3311
    );
    assert_eq!(thread("mov.b32 %r2, 16; clz.b32 %r0, %r2;"), 27);
    assert_eq!(thread("mov.b64 %rd1, 0xff00ff; popc.b64 %r0, %rd1;"), 16);
    assert_eq!(thread("mov.b32 %r2, 1; brev.b32 %r0, %r2;"), 0x8000_0000);
    assert_eq!(thread("mov.b32 %r2, 0x80000000; mov.b32 %r3, 1; shf.l.wrap.b32 %r0, %r2, %r3, 1;"), 3);
    assert_eq!(thread("mov.b32 %r2, 0; not.b32 %r0, %r2;"), u32::MAX);
    assert_eq!(
        thread("mov.b32 %r2, 0x01020304; mov.b32 %r3, 0x01010101; dp4a.u32.u32 %r0, %r2, %r3, 5;"),
        15
    );
    assert_eq!(thread("mov.u16 %h0, 1; not.b16 %h1, %h0; cvt.u32.u16 %r0, %h1;"), 0xfffe);
}

#[test]
fn predicates_combine() {
    let body = "setp.eq.u32 %p0, %r1, 0; setp.ne.u32 %p1, %r1, 0;
        and.pred %p2, %p0, %p1; or.pred %p3, %p0, %p1; xor.pred %p4, %p0, %p0; not.pred %p5, %p4;
        selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; selp.u32 %r4, 4, 0, %p4; selp.u32 %r5, 8, 0, %p5;
        add.u32 %r0, %r2, %r3; add.u32 %r0, %r0, %r4; add.u32 %r0, %r0, %r5;";
    assert_eq!(thread(body), 10);
    let body = "setp.eq.u32 %p0, %r1, 0; setp.lt.and.u32 %p1|%p2, %r1, 5, !%p0; selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; add.u32 %r0, %r2, %r3;";
    assert_eq!(thread(body), 0);
}

#[test]
fn comparisons_know_signs_and_nan() {
    let p = |text: &str| {
        thread(&format!(
            "mov.u32 %r2, -1; mov.f32 %f0, 0f7fc00000; mov.f32 %f1, 0f3f800000; {text} selp.u32 %r0, 1, 0, %p0;"
        ))
    };
    assert_eq!(p("setp.lt.s32 %p0, %r2, 0;"), 1);
    assert_eq!(p("setp.lt.u32 %p0, %r2, 1;"), 0);
    assert_eq!(p("setp.hi.u32 %p0, %r2, 1;"), 1);
    assert_eq!(p("setp.lt.f32 %p0, %f0, %f1;"), 0);
    assert_eq!(p("setp.ltu.f32 %p0, %f0, %f1;"), 1);
    assert_eq!(p("setp.nan.f32 %p0, %f0, %f1;"), 1);
    assert_eq!(thread("mov.f32 %f1, 0f3f800000; set.gt.u32.f32 %r0, %f1, 0f00000000;"), u32::MAX);
    assert_eq!(thread("mov.u32 %r2, 3; set.eq.f32.u32 %f0, %r2, 3; mov.b32 %r0, %f0;"), 0x3f80_0000);
    assert_eq!(thread("mov.u32 %r2, -3; slct.u32.s32 %r0, 1, 2, %r2;"), 2);
}

#[test]
fn floats_round_flush_and_saturate_as_told() {
    let f = |text: &str| f32::from_bits(thread(&format!("{text} mov.b32 %r0, %f0;")));
    assert_eq!(f("mov.f32 %f1, 0f3f800000; add.rn.f32 %f0, %f1, 0f40000000;"), 3.0);
    assert_eq!(f("mov.f32 %f1, 0f3f800000; add.rp.f32 %f0, %f1, 0f00800000;"), 1.0f32.next_up());
    assert_eq!(f("mov.f32 %f1, 0f00000001; add.ftz.f32 %f0, %f1, %f1;"), 0.0);
    assert_eq!(f("mov.f32 %f1, 0f40000000; add.sat.f32 %f0, %f1, %f1;"), 1.0);
    assert_eq!(f("mov.f32 %f1, 0f40000000; fma.rn.f32 %f0, %f1, %f1, %f1;"), 6.0);
    assert_eq!(f("mov.f32 %f1, 0f3f800000; div.rn.f32 %f0, %f1, 0f40800000;"), 0.25);
    assert_eq!(f("mov.f32 %f1, 0f40800000; sqrt.rn.f32 %f0, %f1;"), 2.0);
    assert_eq!(f("mov.f32 %f1, 0f40800000; rsqrt.approx.f32 %f0, %f1;"), 0.5);
    assert_eq!(f("mov.f32 %f1, 0f41000000; lg2.approx.f32 %f0, %f1;"), 3.0);
    assert_eq!(f("mov.f32 %f1, 0f7fc00000; max.f32 %f0, %f1, 0f40000000;"), 2.0);
    assert_eq!(f("mov.f32 %f1, 0fc0000000; neg.f32 %f2, %f1; copysign.f32 %f0, %f1, %f2;"), -2.0);
    assert_eq!(
        thread(
            ".reg .f64 %d<3>; mov.f64 %d1, 0d3ff8000000000000; mul.rn.f64 %d2, %d1, %d1; cvt.rzi.u32.f64 %r0, %d2;"
        ),
        2
    );
}

#[test]
fn halves_and_pairs_of_halves() {
    assert_eq!(thread("mov.b16 %h0, 0x3c00; add.f16 %h1, %h0, %h0; cvt.u32.u16 %r0, %h1;"), 0x4000);
    assert_eq!(thread("mov.b32 %r2, 0x40003c00; fma.rn.f16x2 %r0, %r2, %r2, %r2;"), 0x4600_4000);
    assert_eq!(thread("mov.b32 %r2, 0x40003f80; fma.rn.bf16x2 %r0, %r2, %r2, %r2;"), 0x40c0_4000);
}

#[test]
fn conversions_between_kinds() {
    assert_eq!(thread("mov.f32 %f0, 0fc0200000; cvt.rni.s32.f32 %r0, %f0;"), -2i32 as u32);
    assert_eq!(thread("mov.f32 %f0, 0f4f800000; cvt.rzi.s32.f32 %r0, %f0;"), i32::MAX as u32);
    assert_eq!(thread("mov.u32 %r2, -1; cvt.rn.f32.s32 %f0, %r2; mov.b32 %r0, %f0;"), (-1.0f32).to_bits());
    assert_eq!(thread("mov.u32 %r2, 0x180; cvt.s32.s8 %r0, %r2;"), 0xffff_ff80);
    assert_eq!(thread("mov.u32 %r2, 300; cvt.sat.u8.u32 %r0, %r2;"), 255);
    assert_eq!(thread("mov.f32 %f0, 0f3f800000; cvt.rn.f16.f32 %h0, %f0; cvt.u32.u16 %r0, %h0;"), 0x3c00);
    assert_eq!(
        thread("mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000; cvt.rn.f16x2.f32 %r0, %f0, %f1;"),
        0x3c00_4000
    );
    assert_eq!(
        thread("mov.f32 %f0, 0f3f800000; cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f0; cvt.u32.u16 %r0, %h0;"),
        0x3838
    );
    assert_eq!(thread("mov.f32 %f0, 0f3fc00000; cvt.rzi.f32.f32 %f1, %f0; mov.b32 %r0, %f1;"), 0x3f80_0000);
    assert_eq!(
        thread("mov.u32 %r2, 300; mov.u32 %r3, -5; cvt.pack.sat.u8.s32.b32 %r0, %r2, %r3, 0;"),
        0xff00
    );
}

#[test]
fn the_elements_of_a_vector_may_change_places() {
    assert_eq!(
        thread(
            "mov.u32 %r2, 7; mov.u32 %r3, 5; mov.v2.u32 {%r2, %r3}, {%r3, %r2}; shl.b32 %r2, %r2, 4; or.b32 %r0, %r2, %r3;"
        ),
        0x57
    );
    assert_eq!(thread("mov.u32 %r2, 7; mov.u32 %r0, 5; mov.v2.u32 {_, %r0}, {%r0, %r2};"), 7);
    assert_eq!(
        thread(
            "mov.u32 %r4, 9; mov.v4.u32 {_, %r2, %r3, %r4}, %ntid; mad.lo.u32 %r0, %r2, 10, %r3; mad.lo.u32 %r0, %r0, 10, %r4;"
        ),
        110
    );
}
