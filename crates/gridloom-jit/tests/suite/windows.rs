//! Gathers whose elements lie close to each other: in a table, or next to those of other threads.

use crate::case::{Case, STORE};

/// Compiled code computes what the interpreter does, on words that all differ. Results are stored
/// behind the first 256 words.
#[track_caller]
fn same(threads: u32, body: &str) -> Vec<u32> {
    let body = format!("{body} bar.sync 0; add.u64 %rd0, %rd0, 1024; {STORE}");
    let words = (0..256 + threads).map(|word: u32| word.wrapping_mul(0x0101_0101) ^ word << 9).collect();
    let case = Case { words, block: [threads, 1, 1], ..Case::new(&body) };
    case.same().unwrap()
}

#[test]
fn words_of_neighbours_are_those_that_each_thread_would_load() {
    // Shared by some threads, in another order, a few words apart, and far apart.
    for index in [
        "and.b32 %r2, %r1, -4;",
        "shr.u32 %r2, %r1, 1;",
        "xor.b32 %r2, %r1, 5;",
        "xor.b32 %r2, %r1, 15;",
        "mul.lo.u32 %r3, %r1, 3; shr.u32 %r2, %r3, 1;",
        "mul.lo.u32 %r3, %r1, 7; and.b32 %r2, %r3, 31;",
        "sub.u32 %r3, 63, %r1; shr.u32 %r2, %r3, 2;",
        "mul.lo.u32 %r3, %r1, 67; and.b32 %r2, %r3, 63;",
        "shl.b32 %r3, %r1, 4; and.b32 %r2, %r3, 0x73;",
    ] {
        for start in 0..20 {
            for (widen, space) in [
                ("mul.wide.u32 %rd1, %r2, 4;", "global"),
                ("mul.wide.s32 %rd1, %r2, 4;", "global"),
                ("cvt.u64.u32 %rd1, %r2; shl.b64 %rd1, %rd1, 2;", "global"),
                ("mul.wide.u32 %rd1, %r2, 4;", "shared"),
            ] {
                let (fill, base) = match space {
                    "global" => (String::new(), "add.u64 %rd2, %rd0, %rd1;"),
                    _ => (
                        "mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd5, tile; add.u64 %rd6, %rd5, %rd4;
                         mul.lo.u32 %r5, %r1, 77; st.shared.u32 [%rd6], %r5; st.shared.u32 [%rd6+256], %r5; bar.sync 0;"
                            .to_owned(),
                        "mov.u64 %rd5, tile; add.u64 %rd2, %rd5, %rd1;",
                    ),
                };
                same(
                    64,
                    &format!("{fill} {index} {widen} {base} ld.{space}.u32 %r19, [%rd2+{}];", 4 * start),
                );
            }
        }
    }
}

#[test]
fn threads_beside_others_that_load_nothing_load_their_own() {
    for threads in [1, 5, 16, 31] {
        same(
            64,
            &format!(
                "and.b32 %r2, %r1, -2; and.b32 %r3, %r1, 31; setp.lt.u32 %p1, %r3, {threads}; mov.u32 %r19, 7;
                 mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1; selp.b64 %rd2, %rd2, 1, %p1;
                 @%p1 ld.global.u32 %r19, [%rd2];"
            ),
        );
    }
}

#[test]
fn indices_that_wrap_are_not_neighbours() {
    // The first thread of each group has the largest index of all.
    let body =
        "and.b32 %r2, %r1, 15; sub.u32 %r2, %r2, 1; mul.wide.u32 %rd1, %r2, 4; setp.eq.u32 %p1, %r2, -1;
         selp.b64 %rd1, 0, %rd1, %p1; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r19, [%rd2];";
    same(64, body);
}

#[test]
fn bytes_of_neighbours_are_those_that_each_thread_would_load() {
    for name in ["u8", "s8", "u16", "s16"] {
        for start in [0, 2, 30, 62] {
            same(
                64,
                &format!(
                    "shr.u32 %r2, %r1, 1; mul.wide.u32 %rd1, %r2, 2; add.u64 %rd2, %rd0, %rd1;
                     ld.global.{name} %r19, [%rd2+{start}];"
                ),
            );
        }
    }
}

/// An index that depends on memory, of so many bits, in `%r2`.
fn loaded_index(bits: u32) -> String {
    let most = (1u32 << bits) - 1;
    format!(
        "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd0, %rd4; ld.global.u32 %r3, [%rd5];
         mul.lo.u32 %r3, %r3, 0x9e3779b9; shr.u32 %r3, %r3, 7; and.b32 %r2, %r3, {most};"
    )
}

#[test]
fn words_are_looked_up_in_small_tables() {
    for bits in 0..8 {
        for start in [0, 4, 60, 400] {
            for widen in ["mul.wide.u32 %rd1, %r2, 4;", "mul.wide.s32 %rd1, %r2, 4;"] {
                let index = loaded_index(bits);
                same(
                    64,
                    &format!("{index} {widen} add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r19, [%rd2+{start}];"),
                );
            }
        }
    }
}

#[test]
fn bytes_are_looked_up_in_small_tables() {
    for bits in 0..9 {
        for name in ["u8", "s8"] {
            let index = loaded_index(bits);
            same(
                64,
                &format!(
                    "{index} cvt.u64.u32 %rd1, %r2; add.u64 %rd2, %rd0, %rd1; ld.global.{name} %r19, [%rd2+5];"
                ),
            );
        }
    }
    // By bytes from memory.
    same(
        64,
        "cvt.u64.u32 %rd4, %r1; add.u64 %rd5, %rd0, %rd4; ld.global.u8 %rd6, [%rd5]; add.u64 %rd2, %rd0, %rd6;
         ld.global.u8 %r19, [%rd2];",
    );
}

#[test]
fn a_table_is_looked_up_by_some_threads_and_at_unchecked_pointers() {
    for threads in [0, 1, 9, 32] {
        let index = loaded_index(5);
        let guard = format!("and.b32 %r4, %r1, 31; setp.lt.u32 %p1, %r4, {threads}; mov.u32 %r19, 3;");
        same(
            64,
            &format!(
                "{index} {guard} mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1; @%p1 ld.global.u32 %r19, [%rd2];"
            ),
        );
        // The pointer is itself loaded.
        same(
            64,
            &format!(
                "{index} {guard} setp.eq.u32 %p2, %r1, 0; @%p2 st.global.u64 [%rd0+1000], %rd0; bar.sync 0;
                 ld.global.u64 %rd7, [%rd0+1000]; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %rd7, %rd1;
                 @%p1 ld.global.u32 %r19, [%rd2]; ld.global.u32 %r5, [%rd2+4]; add.u32 %r19, %r19, %r5;
                 bar.sync 0; @%p2 st.global.u64 [%rd0+1000], 0;"
            ),
        );
    }
}

#[test]
fn a_table_at_an_address_that_is_not_valid_is_refused() {
    let index = loaded_index(4);
    for address in ["0", "2", "0xfffffffffffffff0"] {
        let body = format!(
            "{index} mul.wide.u32 %rd1, %r2, 4; mov.u64 %rd7, {address}; add.u64 %rd2, %rd7, %rd1;
             ld.global.u32 %r19, [%rd2]; {STORE}"
        );
        let case = Case { words: (0..64).collect(), ..Case::new(&body) };
        assert!(case.same().is_err(), "{address}");
    }
}
