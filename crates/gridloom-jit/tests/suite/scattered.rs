//! Scattered host addresses in vectors: those of all threads of a group are checked at once.

use crate::case::{Case, Outcome, STORE};

/// The address of the word of another thread to `%rd2`, and in thread 13 another one, which a body
/// in front has put into `%rd3`.
const ADDRESS: &str =
    "xor.b32 %r2, %r1, 5; cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, 2; add.u64 %rd2, %rd0, %rd4;
     setp.eq.u32 %p1, %r1, 13; selp.b64 %rd2, %rd3, %rd2, %p1;";

const LOAD: &str = "ld.global.u32 %r19, [%rd2];";

#[track_caller]
fn same(other: &str, access: &str) -> Outcome {
    let body = format!("{other} {ADDRESS} {access} bar.sync 0; {STORE}");
    let words = (0..66).map(|word| word * 0x0101_0101).collect();
    Case { words, ..Case::new(&body) }.same()
}

#[test]
fn good_ones_are_loaded_and_stored_to() {
    let found = same("mov.u64 %rd3, %rd0;", LOAD).unwrap();
    assert_eq!((found[12], found[13]), (9 * 0x0101_0101, 0));
    same(
        "add.u64 %rd3, %rd0, 32;",
        "ld.global.v2.u32 {%r18, %r19}, [%rd0]; st.global.u32 [%rd2], %r1; mov.u32 %r19, %r1;",
    )
    .unwrap();
}

#[test]
fn one_that_is_not_aligned_is_refused_before_any_thread_stores() {
    for access in [LOAD, "st.global.u32 [%rd2], %r1;", "atom.global.add.u32 %r19, [%rd2], 1;"] {
        let found = same("add.u64 %rd3, %rd0, 2;", access);
        assert!(found.as_ref().is_err_and(|fault| fault.contains("multiple of")), "{access}: {found:?}");
    }
}

#[test]
fn one_at_either_end_of_memory_is_refused() {
    for address in ["0", "4", "0x0100000000010000", "0x1000000000000000", "0xfffffffffffffffc"] {
        for access in [LOAD, "st.global.u32 [%rd2], %r1;"] {
            let found = same(&format!("mov.u64 %rd3, {address};"), access);
            assert!(found.is_err(), "{address}: {access}");
        }
    }
}

#[test]
fn those_of_any_number_of_threads_are_made_and_others_are_not_looked_at() {
    for threads in [1, 3, 5, 8, 13, 24, 31] {
        for access in [
            "@%p2 ld.global.u32 %r19, [%rd2];",
            "@%p2 ld.global.v2.u32 {%r19, %r4}, [%rd2]; add.u32 %r19, %r19, %r4;",
            "cvt.u64.u32 %rd5, %r1; @%p2 ld.global.u64 %rd5, [%rd2]; cvt.u32.u64 %r19, %rd5;",
            "@%p2 st.global.u32 [%rd2], %r1;",
            "@%p2 st.global.v2.u32 [%rd2], {%r1, %r2};",
            "cvt.u64.u32 %rd5, %r1; @%p2 st.global.u64 [%rd2], %rd5;",
        ] {
            let body = format!(
                "mov.u32 %r19, 7; xor.b32 %r2, %r1, 6; mad.lo.u32 %r3, %r1, 11, 5; and.b32 %r3, %r3, 31;
                 setp.lt.u32 %p2, %r3, {threads}; cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, 3;
                 add.u64 %rd2, %rd0, %rd4; selp.b64 %rd2, %rd2, 1, %p2; {access} bar.sync 0;
                 add.u64 %rd0, %rd0, 512; {STORE}"
            );
            let words = (0..192).map(|word| word * 0x0101_0101).collect();
            Case { words, ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn one_in_the_window_of_shared_memory_is_generic() {
    let shared = "mov.u64 %rd3, tile; mov.u32 %r3, 77; st.shared.u32 [%rd3], %r3; bar.sync 0; cvta.shared.u64 %rd3, %rd3;";
    let found = same(shared, "ld.u32 %r19, [%rd2];").unwrap();
    assert_eq!((found[12], found[13]), (9 * 0x0101_0101, 77));
    same(shared, "st.u32 [%rd2], %r1; mov.u32 %r19, %r1;").unwrap();
    assert!(same(shared, LOAD).is_err());
}

#[test]
fn those_near_checked_ones_are_not_checked_again_but_others_are() {
    let near = "ld.global.u32 %r4, [%rd2]; ld.global.u32 %r5, [%rd2+4]; add.u32 %r19, %r4, %r5;";
    same("add.u64 %rd3, %rd0, 4;", near).unwrap();
    let found = same("add.u64 %rd3, %rd0, 4;", "ld.global.u32 %r19, [%rd2]; ld.global.u64 %rd5, [%rd2];");
    assert!(
        found.is_err_and(|fault| fault.contains("multiple of")),
        "eight bytes at an address that is good for four"
    );
    let found = same("add.u64 %rd3, %rd0, 4;", "ld.global.u32 %r19, [%rd2]; ld.global.u16 %r4, [%rd2+1];");
    assert!(found.is_err_and(|fault| fault.contains("multiple of")), "an offset that is not aligned");
}

#[test]
fn a_product_with_a_constant_is_that_of_the_interpreter() {
    for factor in ["3", "5", "9", "7", "0x10001", "0x8000000000000001", "-1", "6"] {
        let body = format!(
            "mul.wide.u32 %rd1, %r1, 0x9e3779b9; mul.lo.u64 %rd2, %rd1, {factor}; add.u64 %rd3, %rd2, 1;
             mul.lo.u64 %rd3, %rd3, {factor}; cvt.u32.u64 %r2, %rd3; shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r3, %rd3;
             mul.lo.u32 %r4, %r2, 5; mad.lo.u32 %r19, %r3, 9, %r4; {STORE}"
        );
        Case::new(&body).same().unwrap();
        Case { block: [7, 1, 1], words: vec![0; 7], ..Case::new(&body) }.same().unwrap();
    }
}

#[test]
fn narrow_elements_are_loaded_from_any_byte() {
    for threads in [0, 1, 7, 20, 32] {
        for (name, mask) in [("u8", 0xff), ("s8", 0xff), ("u16", 0xfe), ("s16", 0xfe)] {
            for space in ["global", "shared"] {
                // The word of each thread is in shared memory too.
                let body = format!(
                    "mul.wide.u32 %rd6, %r1, 4; add.u64 %rd7, %rd0, %rd6; ld.global.u32 %r5, [%rd7];
                     mov.u64 %rd8, tile; add.u64 %rd9, %rd8, %rd6; st.shared.u32 [%rd9], %r5; bar.sync 0;
                     mul.lo.u32 %r2, %r1, 37; and.b32 %r2, %r2, {mask}; and.b32 %r3, %r1, 31;
                     setp.lt.u32 %p2, %r3, {threads}; cvt.u64.u32 %rd4, %r2; mov.u64 %rd5, {};
                     add.u64 %rd2, %rd5, %rd4; selp.b64 %rd2, %rd2, 1, %p2; mov.u32 %r19, 7;
                     @%p2 ld.{space}.{name} %r19, [%rd2]; add.u64 %rd3, %rd5, %rd4;
                     ld.{space}.{name} %r4, [%rd3]; shl.b32 %r4, %r4, 9; add.u32 %r19, %r19, %r4; bar.sync 0; {STORE}",
                    if space == "global" { "%rd0" } else { "%rd8" }
                );
                let words = (0..64).map(|word: u32| word.wrapping_mul(0x9e37_79b9)).collect();
                Case { words, ..Case::new(&body) }.same().unwrap();
            }
        }
    }
}

#[test]
fn indices_of_any_size_and_sign_find_their_elements() {
    for index in [
        "cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, 2;",
        "mul.wide.u32 %rd4, %r2, 4;",
        "mul.wide.s32 %rd4, %r2, 4;",
        "mul.wide.s32 %rd4, %r2, 4; add.s64 %rd4, %rd4, 16;",
    ] {
        for start in [0u32, 0x7fff_ff00, 0x8000_0000, 0xffff_ffc0] {
            // The pointer is moved back by what the index is moved on.
            let signed = index.contains(".s32");
            let by = if signed { i64::from(start as i32) } else { i64::from(start) } * 4;
            let body = format!(
                "xor.b32 %r2, %r1, 5; and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 2; add.u32 %r2, %r2, {start};
                 sub.s64 %rd3, %rd0, {by}; {index} add.s64 %rd2, %rd3, %rd4; ld.global.u32 %r19, [%rd2];
                 @%p1 ld.global.u32 %r4, [%rd2+4]; @%p1 add.u32 %r19, %r19, %r4; bar.sync 0; {STORE}"
            );
            let words = (0..80).map(|word| word * 0x0101_0101).collect();
            Case { words, ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn the_last_thread_that_stores_to_a_place_is_the_one_that_stays() {
    for ty in ["u32", "u64"] {
        let body = format!(
            "mul.lo.u32 %r2, %r1, %r1; and.b32 %r2, %r2, 24; cvt.u64.u32 %rd4, %r2; add.u64 %rd2, %rd0, %rd4;
             mul.lo.u32 %r3, %r1, 7; cvt.u64.u32 %rd3, %r3; st.global.{ty} [%rd2], {};",
            if ty == "u32" { "%r3" } else { "%rd3" }
        );
        Case::new(&body).same().unwrap();
    }
}
