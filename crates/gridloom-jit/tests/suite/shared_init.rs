//! Shared memory is cleared for each block, unless it is filled before it is read.

use crate::case::{Case, STORE};

/// The thread's word of `tile` in `%rd3`, and that of the thread opposite in `%rd4`; a value of the
/// thread and its block in `%r4`.
const WORDS: &str = "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1;
    sub.u32 %r2, 255, %r1; mul.wide.u32 %rd5, %r2, 4; add.u64 %rd4, %rd2, %rd5;
    mov.u32 %r3, %ctaid.x; mad.lo.u32 %r4, %r3, 1000, %r1; add.u32 %r4, %r4, 7;\n";

/// Runs four blocks, one after the other, which leave something in shared memory; tells what the
/// last one stored.
#[track_caller]
fn last(block: [u32; 3], body: &str) -> Vec<u32> {
    let body = format!("{WORDS}{body}\n{STORE}");
    Case { block, grid: [4, 1, 1], words: vec![0; 256], ..Case::new(&body) }.same().unwrap()
}

#[test]
fn words_that_all_threads_fill_are_what_they_stored() {
    let words = last([256, 1, 1], "st.shared.u32 [%rd3], %r4; bar.sync 0; ld.shared.u32 %r19, [%rd4];");
    assert_eq!((words[0], words[255]), (3262, 3007));
}

#[test]
fn words_that_are_read_before_they_are_filled_are_zero() {
    let words = last(
        [256, 1, 1],
        "ld.shared.u32 %r19, [%rd3]; st.shared.u32 [%rd3], %r4; bar.sync 0; ld.shared.u32 %r5, [%rd4];",
    );
    assert_eq!(words, vec![0; 256]);
}

#[test]
fn an_atomic_operation_reads_too() {
    let words = last(
        [256, 1, 1],
        "atom.shared.add.u32 %r19, [%rd3], 1; st.shared.u32 [%rd3], %r4; bar.sync 0; ld.shared.u32 %r5, [%rd4];",
    );
    assert_eq!(words, vec![0; 256]);
}

#[test]
fn words_that_some_threads_do_not_fill_are_zero() {
    // By a guard, by a branch, and since they have exited: odd words in the last block, which the
    // one before has filled.
    for how in [
        "@%p1 st.shared.u32 [%rd3], %r4;",
        "@!%p1 bra PAST; st.shared.u32 [%rd3], %r4; PAST:",
        "@!%p1 exit; st.shared.u32 [%rd3], %r4;",
    ] {
        let words = last(
            [256, 1, 1],
            &format!(
                "xor.b32 %r5, %r1, %r3; and.b32 %r5, %r5, 1; setp.eq.u32 %p1, %r5, 1; {how} bar.sync 0; ld.shared.u32 %r19, [%rd4];"
            ),
        );
        assert_eq!(words[0], 0, "{how}");
    }
}

#[test]
fn words_that_no_thread_has_are_zero() {
    // Fewer threads than words, in one row or in several.
    for block in [[128, 1, 1], [128, 2, 1]] {
        let words = last(
            block,
            "st.shared.u32 [%rd3], %r4; bar.sync 0; ld.shared.u32 %r19, [%rd4]; bar.sync 0; st.shared.u32 [%rd4], %r4;",
        );
        assert_eq!(words[..128], [0; 128], "{block:?}");
    }
}

#[test]
fn words_that_are_stored_elsewhere_are_not_all() {
    // Every other one, in a loop that may not be gone through, and from the second on.
    for how in [
        "and.b32 %r5, %r1, 127; mul.wide.u32 %rd6, %r5, 8; add.u64 %rd6, %rd2, %rd6; st.shared.u32 [%rd6], %r4;",
        "and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 1; @%p1 bra PAST; st.shared.u32 [%rd3], %r4; PAST:",
        "setp.eq.u32 %p1, %r1, 255; @!%p1 st.shared.u32 [%rd3+4], %r4;",
    ] {
        let words = last(
            [256, 1, 1],
            &format!("{how} bar.sync 0; ld.shared.u32 %r19, [%rd4]; bar.sync 0; st.shared.u32 [%rd4], %r4;"),
        );
        assert!(words.contains(&0), "{how}");
    }
}
