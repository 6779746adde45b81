//! Conversions between single precision and the formats of 16 bits, and the place of the highest
//! bit.

use crate::case::{Case, STORE};

/// Words around every border of the conversions, for as many threads.
fn words() -> Vec<u32> {
    const BORDERS: [u32; 16] = [
        0x0000_0000,
        0x0000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x3300_0000,
        0x3300_0001,
        0x3380_0000,
        0x387f_e000,
        0x387f_f000,
        0x3880_0000,
        0x3f80_1000,
        0x3f80_3000,
        0x477f_efff,
        0x477f_f000,
        0x7f7f_8000,
        0x7f80_0000,
    ];
    BORDERS.into_iter().flat_map(|word| [word, word + 1, word.wrapping_sub(1), word | 1 << 31]).collect()
}

/// Compares a computation of `%r19` from the thread's word in `%r2`, in vectors, by a register that
/// is the same in all threads, and in blocks that are run thread by thread.
#[track_caller]
fn same(compute: &str) {
    let each = format!(
        ".reg .b16 %rs<9>; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r2, [%rd2];
         {compute} {STORE}"
    );
    Case { words: words(), ..Case::new(&each) }.same().unwrap();
    Case { words: words(), block: [7, 1, 1], ..Case::new(&each) }.same().unwrap();
    let one = format!(".reg .b16 %rs<9>; ld.global.u32 %r2, [%rd0+76]; bar.sync 0; {compute} {STORE}");
    Case { words: words(), ..Case::new(&one) }.same().unwrap();
}

#[test]
fn every_half_becomes_the_float_that_the_interpreter_says() {
    for ty in ["f16", "bf16"] {
        let body = format!(
            ".reg .b16 %rs<9>; mov.u32 %r2, %r1; mov.u32 %r19, 0;
             L: cvt.u16.u32 %rs1, %r2; cvt.f32.{ty} %f1, %rs1; mov.b32 %r3, %f1; mad.lo.u32 %r19, %r19, 31, %r3;
             add.u32 %r2, %r2, 64; setp.lt.u32 %p1, %r2, 65536; @%p1 bra L; {STORE}"
        );
        Case::new(&body).same().unwrap();
        Case { block: [7, 1, 1], words: vec![0; 7], ..Case::new(&body) }.same().unwrap();
    }
}

#[test]
fn floats_round_to_halves_as_in_the_interpreter() {
    for form in ["rn.f16", "rn.bf16", "rz.f16", "rn.relu.f16", "rn.satfinite.f16"] {
        same(&format!("mov.b32 %f1, %r2; cvt.{form}.f32 %rs1, %f1; cvt.u32.u16 %r19, %rs1;"));
    }
}

#[test]
fn many_floats_round_to_halves_as_in_the_interpreter() {
    for ty in ["f16", "bf16"] {
        let body = format!(
            ".reg .b16 %rs<9>; mul.lo.u32 %r2, %r1, 0x9e3779b1; mov.u32 %r19, 0; mov.u32 %r4, 0;
             L: mov.b32 %f1, %r2; cvt.rn.{ty}.f32 %rs1, %f1; cvt.u32.u16 %r3, %rs1; mad.lo.u32 %r19, %r19, 31, %r3;
             and.b32 %r5, %r2, 0x8fffffff; or.b32 %r5, %r5, 0x30000000; mov.b32 %f2, %r5;
             cvt.rn.{ty}.f32 %rs2, %f2; cvt.u32.u16 %r3, %rs2; mad.lo.u32 %r19, %r19, 31, %r3;
             mad.lo.u32 %r2, %r2, 1664525, 1013904223; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 500;
             @%p1 bra L; {STORE}"
        );
        Case::new(&body).same().unwrap();
    }
}

#[test]
fn halves_are_loaded_and_stored_in_rows() {
    let body =
        ".reg .b16 %rs<9>; mul.wide.u32 %rd1, %r1, 2; add.u64 %rd2, %rd0, %rd1; ld.global.u16 %rs1, [%rd2];
         cvt.f32.f16 %f1, %rs1; fma.rn.f32 %f2, %f1, %f1, 0f3F000000; cvt.rn.f16.f32 %rs2, %f2;
         cvt.rn.bf16.f32 %rs3, %f2; bar.sync 0; st.global.u16 [%rd2], %rs2; st.global.u16 [%rd2+128], %rs3;";
    Case { words: words(), ..Case::new(body) }.same().unwrap();
}

#[test]
fn the_highest_bit_is_found_as_in_the_interpreter() {
    for form in ["u32", "s32", "shiftamt.u32", "shiftamt.s32"] {
        same(&format!("bfind.{form} %r19, %r2;"));
    }
    for form in ["u64", "s64", "shiftamt.u64", "shiftamt.s64"] {
        same(&format!(
            "cvt.s64.s32 %rd3, %r2; bfind.{form} %r3, %rd3; shl.b64 %rd3, %rd3, 21; bfind.{form} %r4, %rd3;
             mad.lo.u32 %r19, %r3, 31, %r4;"
        ));
    }
}

#[test]
fn arithmetic_of_halves_is_that_of_the_interpreter() {
    for ty in ["f16", "f16x2"] {
        let (registers, to, back) = match ty {
            "f16" => ("%rs", "cvt.u16.u32", "cvt.u32.u16"),
            _ => ("%x", "mov.b32", "mov.b32"),
        };
        for form in ["add", "add.rn", "sub", "mul", "fma.rn", "add.sat", "mul.ftz"] {
            let third = if form == "fma.rn" { format!(", {registers}3") } else { String::new() };
            let body = format!(
                ".reg .b16 %rs<9>; .reg .b32 %x<9>; mul.lo.u32 %r2, %r1, 0x9e3779b1; mov.u32 %r19, 0; mov.u32 %r4, 0;
                 L: shr.u32 %r5, %r2, 7; shl.b32 %r6, %r4, 4; and.b32 %r7, %r4, 3; setp.eq.u32 %p2, %r7, 0;
                 {to} {registers}1, %r2; {to} {registers}2, %r5; {to} {registers}3, %r6;
                 {form}.{ty} {registers}4, {registers}1, {registers}2{third}; {back} %r3, {registers}4;
                 mad.lo.u32 %r19, %r19, 31, %r3; and.b32 %r8, %r2, 0x3fff3fff; {to} {registers}1, %r8;
                 {form}.{ty} {registers}4, {registers}1, {registers}2{third}; {back} %r3, {registers}4;
                 mad.lo.u32 %r19, %r19, 31, %r3;
                 mad.lo.u32 %r2, %r2, 1664525, 1013904223; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 400;
                 @%p1 bra L; {STORE}"
            );
            Case::new(&body).same().unwrap();
            Case { block: [7, 1, 1], words: vec![0; 7], ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn a_sum_halfway_between_two_halves_is_rounded_by_what_is_far_below_it() {
    // Products that are halfway between two numbers, and addends that decide.
    let pairs =
        [(0x3c01u32, 0x3c20u32), (0x3c03, 0x3e00), (0x5801, 0x3c20), (0x0401, 0x3800), (0x3c00, 0x3c00)];
    for (a, b) in pairs {
        for c in [0x0000u32, 0x8000, 0x0001, 0x8001, 0x1000, 0x9000, 0x1400, 0x3c00, 0xbc00, 0x7bff] {
            same(&format!(
                "cvt.u16.u32 %rs4, %r2; xor.b32 %r4, %r2, {a}; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0;
                 selp.b32 %r4, {a}, %r4, %p1; cvt.u16.u32 %rs1, %r4; mov.b16 %rs2, {b}; mov.b16 %rs3, {c};
                 fma.rn.f16 %rs5, %rs1, %rs2, %rs3; cvt.u32.u16 %r19, %rs5;"
            ));
        }
    }
}

#[test]
fn two_floats_become_a_pair_as_in_the_interpreter() {
    for form in ["rn.f16x2", "rn.bf16x2", "rz.f16x2", "rn.relu.f16x2"] {
        same(&format!(
            "mov.b32 %f1, %r2; xor.b32 %r3, %r2, 0x80001; mov.b32 %f2, %r3; cvt.{form}.f32 %r19, %f1, %f2;"
        ));
    }
}
