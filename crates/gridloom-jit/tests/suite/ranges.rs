//! Addresses whose range is known, and addresses that only seem to have a known range.

use crate::case::{Case, STORE};

/// Adds 1 to the word of `tile` that a byte of the buffer names by way of some instructions, which
/// leave the address in `%rd4`; then each thread reads one word of `tile`.
fn count(address: &str, offset: i64) -> String {
    format!(
        "cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd0, %rd1; ld.global.u8 %r2, [%rd2]; mov.u64 %rd3, tile;\n{address}\n\
         red.shared.add.u32 [%rd4+{offset}], 1; atom.shared.add.u32 %r3, [%rd4+{offset}], %r1; bar.sync 0;\n\
         mul.wide.u32 %rd5, %r1, 4; add.u64 %rd6, %rd3, %rd5; ld.shared.u32 %r19, [%rd6];{STORE}"
    )
}

fn case(body: &str, high: u32) -> Case<'_> {
    let mut words: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    words[3] = 0xfffe_7f01;
    words.iter_mut().for_each(|word| *word &= high);
    Case { words, ..Case::new(body) }
}

#[test]
fn a_table_of_words_for_every_byte_is_counted_in() {
    for address in [
        "mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4;",
        "shl.b32 %r4, %r2, 2; cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd4, %rd3;",
        "mad.wide.u32 %rd4, %r2, 4, %rd3;",
        "and.b32 %r4, %r2, 15; mul.wide.s32 %rd4, %r4, 16; add.u64 %rd4, %rd3, %rd4;",
    ] {
        case(&count(address, 0), u32::MAX).same().unwrap();
    }
}

#[test]
fn what_may_lie_outside_is_refused_as_in_the_interpreter() {
    for (address, offset) in [
        ("mul.wide.u32 %rd4, %r2, 8; add.u64 %rd4, %rd3, %rd4;", 0),
        ("mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4;", 4),
        ("mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4;", 1 << 20),
        ("mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4;", -4),
        ("mul.wide.u32 %rd4, %r2, 2; add.u64 %rd4, %rd3, %rd4;", 0),
        ("mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4;", 2),
        ("sub.u32 %r4, %r2, 128; mul.wide.s32 %rd4, %r4, 4; add.u64 %rd4, %rd3, %rd4;", 0),
        ("ld.global.s8 %r4, [%rd2]; mul.wide.s32 %rd4, %r4, 4; add.u64 %rd4, %rd3, %rd4;", 0),
        (
            "mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4; setp.gt.u32 %p1, %r2, 250; @%p1 add.u64 %rd4, %rd4, 4096;",
            0,
        ),
    ] {
        let body = count(address, offset);
        // Bytes that are in bounds still, and any.
        let _ = case(&body, 0x0404_0404).same();
        let fault = case(&body, u32::MAX).same().unwrap_err();
        assert!(fault.contains("shared"), "{address} {offset}: {fault}");
    }
}

#[test]
fn addresses_are_kept_thread_by_thread_until_they_are_needed_together() {
    // A byte is used as an address, in arithmetic, behind a branch, and after a barrier.
    let body = "cvt.u64.u32 %rd1, %r1; add.u64 %rd2, %rd0, %rd1; ld.global.u8 %r2, [%rd2]; mov.u64 %rd3, tile;\n\
        mul.wide.u32 %rd4, %r2, 4; add.u64 %rd5, %rd3, %rd4; red.shared.add.u32 [%rd5], %r2; add.u32 %r5, %r2, 9;\n\
        setp.gt.u32 %p1, %r2, 100; @%p1 bra L0; add.u32 %r5, %r5, 7; L0: bar.sync 0;\n\
        ld.shared.u32 %r6, [%rd5]; cvt.u32.u64 %r7, %rd4; mad.lo.u32 %r19, %r6, %r5, %r7;";
    let body = format!("{body}{STORE}");
    case(&body, u32::MAX).same().unwrap();
    // The same byte in all threads.
    case(&body, 0).same().unwrap();
}

#[test]
fn a_register_that_was_loaded_and_then_set_is_what_it_was_set_to() {
    // The address differs in any way, so that what is stored there is kept thread by thread.
    let body = "xor.b32 %r2, %r1, 1; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r3, [%rd2]; bar.sync 0;\n\
        ld.global.u32 %r3, [%rd2]; shr.u32 %r3, 65536, 1; st.global.u32 [%rd2], %r3;\n\
        setp.lt.u32 %p1, %r1, 9; setp.eq.u32 %p1, 0, 0; @%p1 bra E; st.global.u32 [%rd2], %r1; E:";
    let words = case(body, u32::MAX).same().unwrap();
    assert!(words.iter().all(|&word| word == 32768));
}
