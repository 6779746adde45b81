//! Integer instructions that take several vector instructions: quotients, upper halves of products,
//! counts and places of bits, shifts of pairs; and atomic additions of floats.

use crate::case::{Case, STORE};

/// Words around the borders of integers, for 64 threads.
fn words() -> Vec<u32> {
    const BORDERS: [u32; 16] = [
        0,
        1,
        2,
        3,
        7,
        10,
        31,
        32,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_ffff,
        0xffff_fffe,
        0x0001_0000,
        0xaaaa_5555,
        0x1234_5678,
    ];
    let near = |i: u32| BORDERS[i as usize % 16].rotate_left(i / 16 * 5) ^ (i / 48);
    (0..64).map(near).collect()
}

/// Compares a computation of `%r19` from words in `%r2` and `%r3`, which together are `%rd4`, and
/// `%rd5` of the same in the other order, for all pairs of words.
#[track_caller]
fn same(compute: &str) {
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r2, [%rd2];
         mov.u32 %r18, 0; mov.u32 %r17, 0; mov.u64 %rd9, %rd0;
         L: add.u32 %r16, %r1, %r17; and.b32 %r16, %r16, 63; mul.wide.u32 %rd3, %r16, 4; add.u64 %rd3, %rd0, %rd3;
         ld.global.u32 %r3, [%rd3]; mov.b64 %rd4, {{%r2, %r3}}; mov.b64 %rd5, {{%r3, %r2}};
         ld.global.u32 %r4, [%rd9]; add.u64 %rd9, %rd9, 4;
         {compute} mad.lo.u32 %r18, %r18, 31, %r19;
         add.u32 %r17, %r17, 1; setp.lt.u32 %p8, %r17, 64; @%p8 bra L;
         bar.sync 0; mov.u32 %r19, %r18; {STORE}"
    );
    Case { words: words(), ..Case::new(&body) }.same().unwrap();
    Case { words: words(), block: [7, 1, 1], ..Case::new(&body) }.same().unwrap();
}

#[test]
fn quotients_and_remainders_are_those_of_the_interpreter() {
    for op in ["div.u32", "div.s32", "rem.u32", "rem.s32"] {
        same(&format!("{op} %r19, %r2, %r3;"));
        same(&format!("{op} %r19, %r2, %r4;"));
        same(&format!("{op} %r19, %r4, %r2;"));
    }
    for op in ["div.u64", "rem.s64"] {
        same(&format!("{op} %rd6, %rd4, %rd5; mov.b64 {{%r5, %r6}}, %rd6; xor.b32 %r19, %r5, %r6;"));
    }
}

#[test]
fn upper_halves_of_products_are_those_of_the_interpreter() {
    for op in ["mul.hi.u64", "mul.hi.s64"] {
        same(&format!("{op} %rd6, %rd4, %rd5; mov.b64 {{%r5, %r6}}, %rd6; mad.lo.u32 %r19, %r5, 7, %r6;"));
    }
    for op in ["mul.hi.u32", "mul.hi.s32"] {
        same(&format!("{op} %r19, %r2, %r3;"));
    }
}

#[test]
fn bits_are_counted_and_found_as_by_the_interpreter() {
    for op in ["popc.b32", "clz.b32", "brev.b32", "bfind.u32", "bfind.s32", "bfind.shiftamt.u32"] {
        same(&format!("xor.b32 %r5, %r2, %r3; {op} %r19, %r5;"));
    }
    for op in ["popc.b64", "clz.b64", "bfind.u64", "bfind.s64", "bfind.shiftamt.s64"] {
        same(&format!("{op} %r19, %rd4;"));
    }
    same("brev.b64 %rd6, %rd4; mov.b64 {%r5, %r6}, %rd6; mad.lo.u32 %r19, %r5, 7, %r6;");
}

#[test]
fn pairs_are_shifted_by_any_count_as_by_the_interpreter() {
    for op in ["shf.l.wrap.b32", "shf.l.clamp.b32", "shf.r.wrap.b32", "shf.r.clamp.b32"] {
        same(&format!("{op} %r19, %r2, %r4, %r3;"));
        same(&format!("{op} %r19, %r2, %r3, %r17;"));
        same(&format!("{op} %r19, %r2, %r3, %r4;"));
    }
}

/// Words of floats around the border of normal numbers, and NaNs.
fn floats() -> Vec<u32> {
    const BORDERS: [u32; 8] = [
        0x0000_0001,
        0x0080_0000,
        0x8080_0001,
        0x3f80_0000,
        0xbf80_0001,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_1234,
    ];
    (0..64).map(|i| BORDERS[i as usize % 8].wrapping_add(i / 8)).collect()
}

#[test]
fn floats_are_added_atomically_as_by_the_interpreter() {
    let start = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f2, [%rd2];
         xor.b32 %r2, %r1, 13; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd0, %rd3; ld.global.f32 %f3, [%rd3];
         mov.u64 %rd4, tile; cvt.u32.u64 %r4, %rd4; shl.b32 %r3, %r1, 2; add.u32 %r4, %r4, %r3;
         bar.sync 0; setp.ne.u32 %p2, %r2, 17; and.b32 %r5, %r1, 5; setp.ne.u32 %p3, %r5, 1;";
    for guard in ["", "@%p2 ", "@%p3 "] {
        for body in [
            format!("{guard}atom.global.add.f32 %f4, [%rd2], %f3; {guard}red.global.add.f32 [%rd2], %f4;"),
            format!(
                "st.shared.f32 [%r4], %f2; {guard}atom.shared.add.f32 %f4, [%r4], %f3;
                 ld.shared.f32 %f5, [%r4]; st.global.f32 [%rd2], %f5;"
            ),
            format!("{guard}red.global.add.f32 [%rd0+64], 0f3E800000;"),
        ] {
            let body = format!("{start} {body}");
            Case { words: floats(), ..Case::new(&body) }.same().unwrap();
            Case { words: floats(), block: [7, 1, 1], ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn doubles_are_added_atomically_as_by_the_interpreter() {
    let body = "mul.wide.u32 %rd1, %r1, 8; add.u64 %rd2, %rd0, %rd1; ld.global.f64 %d2, [%rd2];
         bar.sync 0; setp.lt.u32 %p1, %r1, 32; @!%p1 bra E;
         atom.global.add.f64 %d3, [%rd2], 0d3FF8000000000000; red.global.add.f64 [%rd2], %d3; E:";
    let words = (0..64).map(|i: u32| match i % 8 {
        1 => 0x7ff8_0005,
        3 => 0xfff0_0000,
        5 => 0,
        7 => 0x7ff0_0000 + i / 8,
        _ => i,
    });
    let words: Vec<u32> = words.chain([0; 64]).collect();
    Case { words, block: [64, 1, 1], ..Case::new(body) }.same().unwrap();
}
