//! Integers of 8 and 16 bits, in rows of memory and in registers.

use crate::case::{Case, STORE};

/// Bytes and halves that are interesting, for as many threads.
fn words() -> Vec<u32> {
    (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ 0x80_7f ^ i << 8).collect()
}

#[track_caller]
fn same(body: &str) {
    let case = Case { words: words(), ..Case::new(body) };
    case.same().unwrap();
}

#[test]
fn rows_of_bytes_are_loaded_and_stored() {
    for ty in ["u8", "s8", "u16", "s16"] {
        let size = if ty.ends_with('8') { 1 } else { 2 };
        for register in ["%rs1", "%r2"] {
            same(&format!(
                ".reg .b16 %rs<9>; mul.wide.u32 %rd1, %r1, {size}; add.u64 %rd2, %rd0, %rd1;
                 ld.global.{ty} {register}, [%rd2]; st.global.{ty} [%rd2+128], {register};
                 mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %rd0; bar.sync 0;"
            ));
        }
    }
}

#[test]
fn a_row_of_bytes_that_some_threads_store_leaves_the_others() {
    for border in [3, 8, 13, 64] {
        same(&format!(
            "cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd0, %rd1; ld.global.u8 %r2, [%rd2];
             setp.ge.u32 %p1, %r1, {border}; @%p1 bra A; add.u32 %r2, %r2, 7; st.global.u8 [%rd2+64], %r2; A:"
        ));
    }
}

#[test]
fn arithmetic_of_sixteen_bits_wraps_and_extends_as_in_the_interpreter() {
    let instructions = [
        "mul.wide.u16 %r19, %rs1, %rs2;",
        "mul.wide.s16 %r19, %rs1, %rs2;",
        "mul.wide.u16 %r19, %rs1, 77;",
        "mad.wide.s16 %r19, %rs1, %rs2, %r3;",
        "add.u16 %rs3, %rs1, %rs2; cvt.u32.u16 %r19, %rs3;",
        "sub.s16 %rs3, %rs1, %rs2; cvt.s32.s16 %r19, %rs3;",
        "mul.lo.u16 %rs3, %rs1, %rs2; cvt.u32.u16 %r19, %rs3;",
        "mad.lo.u16 %rs3, %rs1, %rs2, %rs1; cvt.u32.u16 %r19, %rs3;",
        "min.s16 %rs3, %rs1, %rs2; max.u16 %rs4, %rs1, %rs2; mul.wide.u16 %r19, %rs3, %rs4;",
        "abs.s16 %rs3, %rs1; neg.s16 %rs4, %rs2; mul.wide.u16 %r19, %rs3, %rs4;",
        "and.b16 %rs3, %rs1, %rs2; not.b16 %rs4, %rs3; mul.wide.u16 %r19, %rs3, %rs4;",
        "shl.b16 %rs3, %rs1, 3; shr.u16 %rs4, %rs1, 5; mul.wide.u16 %r19, %rs3, %rs4;",
        "shr.s16 %rs3, %rs1, 5; shr.s16 %rs4, %rs1, 40; mul.wide.u16 %r19, %rs3, %rs4;",
        "shl.b16 %rs3, %rs1, 20; cvt.u32.u16 %r19, %rs3;",
        "setp.lt.s16 %p1, %rs1, %rs2; selp.u32 %r19, 1, 0, %p1;",
        "setp.hi.u16 %p1, %rs1, %rs2; selp.b16 %rs3, %rs1, %rs2, %p1; cvt.u32.u16 %r19, %rs3;",
        "cvt.u32.u8 %r19, %rs1;",
        "cvt.s32.s8 %r19, %rs1;",
        "cvt.u16.u8 %rs3, %rs1; cvt.s16.s8 %rs4, %rs2; mul.wide.u16 %r19, %rs3, %rs4;",
        "cvt.u16.u32 %rs3, %r3; cvt.u32.u16 %r19, %rs3;",
        "cvt.s8.s32 %r19, %r3;",
        "cvt.u8.u32 %r19, %r3;",
        "cvt.s16.s32 %rs3, %r3; cvt.s32.s16 %r19, %rs3;",
        "cvt.u64.u16 %rd5, %rs1; cvt.s64.s8 %rd6, %rs2; add.u64 %rd5, %rd5, %rd6; cvt.u32.u64 %r19, %rd5;",
        "cvt.s64.s16 %rd5, %rs1; shr.u64 %rd5, %rd5, 16; cvt.u32.u64 %r19, %rd5;",
        "cvt.u64.u32 %rd5, %r3; cvt.u16.u64 %rs3, %rd5; cvt.u32.u16 %r19, %rs3;",
        "mov.b32 {%rs3, %rs4}, %r3; mov.b32 %r19, {%rs4, %rs3};",
        "mov.b64 %rd5, {%r3, %r1}; mov.b64 {%r5, %r6}, %rd5; xor.b32 %r19, %r5, %r6;",
        "prmt.b32 %r19, %r3, %r1, 30212;",
        "prmt.b32 %r19, %r3, %r1, 0x9abc;",
        "prmt.b32 %r19, %r3, %r1, %r3;",
        "mov.u32 %r5, 1854871; dp4a.u32.u32 %r19, %r3, %r5, %r1;",
        "dp4a.s32.s32 %r19, %r3, %r3, %r1;",
        "dp4a.u32.s32 %r19, %r3, %r3, %r1;",
        "shf.l.wrap.b32 %r19, %r3, %r1, 5;",
        "shf.r.wrap.b32 %r19, %r3, %r1, 37;",
        "shf.l.clamp.b32 %r19, %r3, %r1, 37;",
        "shf.r.clamp.b32 %r19, %r3, %r1, 32;",
        "shf.r.clamp.b32 %r19, %r3, %r1, 0;",
    ];
    for instruction in instructions {
        same(&format!(
            ".reg .b16 %rs<9>; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;
             ld.global.u16 %rs1, [%rd2]; ld.global.u16 %rs2, [%rd2+2]; ld.global.u32 %r3, [%rd2];
             {instruction} st.global.u32 [%rd2], %r19;"
        ));
    }
}

#[test]
fn fields_products_and_clamped_conversions_are_those_of_the_interpreter() {
    let mut instructions = vec![
        "dp2a.lo.u32.u32 %r19, %r3, %r4, %r1;".to_owned(),
        "dp2a.hi.s32.u32 %r19, %r3, %r4, %r1;".to_owned(),
        "dp2a.lo.u32.s32 %r19, %r3, 61090, %r1;".to_owned(),
        "dp2a.hi.s32.s32 %r19, %r3, 0x80ff7f01, %r1;".to_owned(),
        // Halves that are known to be small, and not quite.
        "and.b32 %r5, %r3, 0x7fff; dp2a.lo.u32.s32 %r19, %r5, 61090, %r1;".to_owned(),
        "and.b32 %r5, %r3, 0xffff; dp2a.lo.u32.s32 %r19, %r5, 61090, %r1;".to_owned(),
        "and.b32 %r5, %r3, 255; shr.u32 %r6, %r3, 17; shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6;
         dp2a.hi.u32.u32 %r19, %r5, 0x8081ff7f, %r1;"
            .to_owned(),
        "and.b32 %r5, %r3, 255; shr.u32 %r6, %r3, 16; shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6;
         dp2a.hi.u32.s32 %r19, %r5, 0x8081ff7f, 0;"
            .to_owned(),
        "dp4a.u32.u32 %r19, %r3, 0xff800100, %r1;".to_owned(),
        "dp4a.s32.s32 %r19, %r3, 0xff800180, 0;".to_owned(),
        "dp4a.u32.s32 %r19, %r3, 0x00ff0080, %r1;".to_owned(),
        // Masks that do nothing, that cut more than one before, and that cut less.
        "and.b32 %r5, %r3, 0xfff0; and.b32 %r6, %r5, 0xff; shl.b32 %r7, %r6, 25; and.b32 %r19, %r7, 0xffff;"
            .to_owned(),
        "and.b32 %r5, %r3, 0xffff; mul.lo.u32 %r6, %r5, 0x10001; and.b32 %r7, %r6, 0xffff; add.u32 %r19, %r7, %r6;"
            .to_owned(),
        "and.b32 %r5, %r3, 255; sub.u32 %r6, 3, %r5; and.b32 %r7, %r6, 255; shr.u32 %r19, %r7, 3;".to_owned(),
        "mul.hi.u32 %r19, %r3, 0x38e38e39;".to_owned(),
        "mul.hi.s32 %r19, %r3, %r4;".to_owned(),
        "mul.hi.u32 %r19, %r3, 64;".to_owned(),
        "mul.lo.u32 %r5, %r3, 8; add.u32 %r19, %r5, 0;".to_owned(),
        "mul.wide.u32 %rd5, %r3, 4; shr.u64 %rd5, %rd5, 7; cvt.u32.u64 %r19, %rd5;".to_owned(),
        "mul.wide.s32 %rd5, %r3, 16; shr.u64 %rd5, %rd5, 9; cvt.u32.u64 %r19, %rd5;".to_owned(),
        "mul.wide.s32 %rd5, %r3, 0x80000000; shr.u64 %rd5, %rd5, 9; cvt.u32.u64 %r19, %rd5;".to_owned(),
        "cvt.u64.u32 %rd5, %r3; bfe.u64 %rd6, %rd5, 5, 40; cvt.u32.u64 %r19, %rd6;".to_owned(),
        "cvt.s64.s32 %rd5, %r3; bfe.s64 %rd6, %rd5, 20, 30; cvt.u32.u64 %r19, %rd6;".to_owned(),
        "cvt.u64.u32 %rd5, %r3; bfi.b64 %rd6, %rd5, %rd5, 24, 20; cvt.u32.u64 %r19, %rd6;".to_owned(),
        "cvt.f64.f32 %fd1, %f1; add.f64 %fd1, %fd1, %fd1; cvt.rn.f32.f64 %f3, %fd1; mov.b32 %r19, %f3;"
            .to_owned(),
        "cvt.rn.f64.u32 %fd1, %r3; cvt.rn.f64.s32 %fd2, %r4; sub.f64 %fd1, %fd1, %fd2;
         cvt.rn.ftz.f32.f64 %f3, %fd1; mov.b32 %r19, %f3;"
            .to_owned(),
    ];
    for ty in ["u32", "s32"] {
        instructions.push(format!("sad.{ty} %r19, %r3, %r4, %r1;"));
        for [start, bits] in [[0, 8], [8, 8], [24, 8], [6, 26], [0, 32], [31, 1], [0, 0], [20, 20], [40, 4]] {
            instructions.push(format!("bfe.{ty} %r19, %r3, {start}, {bits};"));
            instructions.push(format!("bfi.b32 %r19, %r3, %r4, {start}, {bits};"));
        }
    }
    for to in ["u8", "s8", "u16", "s16"] {
        for from in ["u16", "s16", "u32", "s32"].into_iter().filter(|from| from[1..] != to[1..]) {
            let source = if from.ends_with("16") { "%rs1" } else { "%r3" };
            instructions.push(format!("cvt.sat.{to}.{from} %r19, {source};"));
            instructions.push(format!("cvt.sat.{to}.{from} %rs3, {source}; cvt.s32.s16 %r19, %rs3;"));
        }
        for rounding in ["rni", "rzi", "rmi", "rpi"] {
            instructions.push(format!("cvt.{rounding}.{to}.f32 %r19, %f1;"));
            instructions.push(format!("cvt.{rounding}.ftz.{to}.f32 %rs3, %f2; cvt.s32.s16 %r19, %rs3;"));
        }
        instructions.push(format!("cvt.rn.f32.{to} %f3, %rs1; mov.b32 %r19, %f3;"));
        instructions.push(format!("cvt.rz.f32.{to} %f3, %r3; mov.b32 %r19, %f3;"));
        instructions.push(format!(
            "cvt.rn.f64.{to} %fd1, %rs1; add.f64 %fd1, %fd1, %fd1; cvt.rn.f32.f64 %f3, %fd1; mov.b32 %r19, %f3;"
        ));
    }
    // Floats of every size beside words of any kind: %f2 is a number of about the size of the
    // types.
    for instruction in instructions {
        same(&format!(
            ".reg .b16 %rs<9>; .reg .f64 %fd<3>; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;
             ld.global.u16 %rs1, [%rd2]; ld.global.u32 %r3, [%rd2]; ld.global.f32 %f1, [%rd2];
             shr.u32 %r4, %r3, 3; cvt.rn.f32.s32 %f2, %r3; mul.f32 %f2, %f2, 0f38000000; bar.sync 0;
             {instruction} st.global.u32 [%rd2], %r19;"
        ));
    }
}

#[test]
fn lower_halves_of_affine_registers_are_read_as_floats() {
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 65536; add.u64 %rd1, %rd1, 0x13f800000; mov.f32 %f1, 0f3F000000;\n\
         add.f32 %f2, %rd1, %f1; mov.b32 %r19, %f2; {STORE}"
    );
    let found = Case::new(&body).same().unwrap();
    for (thread, &word) in (0u32..).zip(&found) {
        assert_eq!(f32::from_bits(word), f32::from_bits(0x3f80_0000 + 65536 * thread) + 0.5, "{thread}");
    }
}
