//! Sums rounded down and powers of two, which are what `expf` is compiled to, and bytes at indices.

use crate::case::{Case, STORE};

/// Floats around the borders of what is rounded, for 64 threads.
fn floats() -> Vec<u32> {
    const BORDERS: [u32; 16] = [
        0x0000_0000,
        0x0000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x3300_0000,
        0x3f7f_ffff,
        0x3f80_0001,
        0x4049_0fdb,
        0x42fe_0000,
        0x4300_0000,
        0x4316_0000,
        0x4b40_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fa0_0000,
        0x7fff_ffff,
    ];
    let near = |i: u32| BORDERS[i as usize % 16] ^ (((i / 16) & 1) << 31) ^ (i / 32);
    (0..64).map(near).collect()
}

/// Compares a computation of `%f3` from floats in `%f1` and `%f2`, for all pairs.
#[track_caller]
fn same(compute: &str) {
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f1, [%rd2];
         mov.u32 %r18, 0; mov.u32 %r17, 0;
         L: add.u32 %r16, %r1, %r17; and.b32 %r16, %r16, 63; mul.wide.u32 %rd3, %r16, 4; add.u64 %rd3, %rd0, %rd3;
         ld.global.f32 %f2, [%rd3]; {compute} mov.b32 %r19, %f3; mad.lo.u32 %r18, %r18, 31, %r19;
         add.u32 %r17, %r17, 1; setp.lt.u32 %p8, %r17, 64; @%p8 bra L;
         bar.sync 0; mov.u32 %r19, %r18; {STORE}"
    );
    Case { words: floats(), ..Case::new(&body) }.same().unwrap();
    Case { words: floats(), block: [7, 1, 1], ..Case::new(&body) }.same().unwrap();
}

#[test]
fn sums_are_rounded_down_as_by_the_interpreter() {
    same("fma.rm.f32 %f3, %f1, %f2, 0f3F000000;");
    same("fma.rm.f32 %f3, %f1, 0f437C0000, %f2;");
    same("fma.rm.f32 %f3, %f1, %f2, %f1; fma.rm.f32 %f3, %f3, %f2, %f3;");
    same("mul.f32 %f4, %f1, %f2; neg.f32 %f4, %f4; fma.rm.f32 %f3, %f1, %f2, %f4;");
}

#[test]
fn powers_of_two_are_those_of_the_interpreter() {
    for form in ["ex2.approx.f32", "ex2.approx.ftz.f32"] {
        same(&format!("add.f32 %f4, %f1, %f2; {form} %f3, %f4;"));
        same(&format!("{form} %f3, %f2; {form} %f3, %f3;"));
    }
}

#[test]
fn bytes_and_halves_at_indices_are_those_of_the_interpreter() {
    let words: Vec<u32> = (0..256u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    for (extend, most) in [("cvt.u64.u32", 0x0003_ffff), ("cvt.s64.s32", 0x0003_ffff)] {
        for (load, shift, offset) in [
            ("ld.global.u8", 0, 3),
            ("ld.global.s8", 0, 1),
            ("ld.global.u8", 1, 1),
            ("ld.global.u16", 1, 2),
            ("ld.global.s16", 1, 6),
        ] {
            let body = format!(
                "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r2, [%rd2];
                 and.b32 %r2, %r2, {most}; shr.u32 %r2, %r2, 10; {extend} %rd3, %r2; shl.b64 %rd3, %rd3, {shift};
                 add.u64 %rd4, %rd0, %rd3; setp.ne.u32 %p1, %r2, 7; mov.u32 %r3, 5;
                 .reg .b16 %h<2>; {load} %h0, [%rd4+{offset}]; cvt.s32.s16 %r4, %h0;
                 @%p1 {load} %h0, [%rd4+{more}]; cvt.s32.s16 %r5, %h0; mad.lo.u32 %r19, %r4, 31, %r5;
                 bar.sync 0; {STORE}",
                more = offset + 2,
            );
            Case { words: words.clone(), ..Case::new(&body) }.same().unwrap();
            Case { words: words.clone(), block: [32, 2, 1], ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn loaded_bytes_and_halves_are_indices_as_in_the_interpreter() {
    let words: Vec<u32> = (0..256u32).map(|i| i.wrapping_mul(0x9e37_79b9) & 0x00ff_03ff).collect();
    for (index, load) in [
        ("add.u64 %rd3, %rd0, %rd1; ld.global.u8 %rd4, [%rd3+5];", "ld.global.u8 %r4, [%rd5+3];"),
        ("mad.wide.u32 %rd3, %r1, 2, %rd0; ld.global.u16 %rd4, [%rd3];", "ld.global.s8 %r4, [%rd5];"),
        (
            "mad.wide.u32 %rd3, %r1, 2, %rd0; ld.global.u16 %h0, [%rd3]; cvt.u64.u16 %rd4, %h0;",
            "ld.global.u8 %r4, [%rd5+1];",
        ),
        (
            "add.u64 %rd3, %rd0, %rd1; ld.global.u8 %h0, [%rd3]; cvt.u64.u16 %rd4, %h0; shl.b64 %rd4, %rd4, 1;",
            "ld.global.u16 %r4, [%rd5+2];",
        ),
        (
            "add.u64 %rd3, %rd0, %rd1; ld.global.s8 %h0, [%rd3]; and.b16 %h0, %h0, 255; cvt.u64.u16 %rd4, %h0;",
            "ld.global.u8 %r4, [%rd5];",
        ),
    ] {
        let body = format!(
            ".reg .b16 %h<2>; cvt.u64.u32 %rd1, %r1; {index} add.u64 %rd5, %rd0, %rd4; {load} mov.u32 %r19, %r4;
             bar.sync 0; {STORE}"
        );
        Case { words: words.clone(), ..Case::new(&body) }.same().unwrap();
        Case { words: words.clone(), block: [7, 1, 1], ..Case::new(&body) }.same().unwrap();
    }
}
