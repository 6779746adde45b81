//! The assumptions of compiled code about a launch, which are checked once, and launches for which
//! they do not hold.

use crate::case::{Case, STORE};

/// Every thread stores its number to the buffer.
const ROW: &str = "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;\n\
                   mul.wide.u32 %rd1, %r4, 4; add.u64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r4;";

#[test]
fn a_pointer_that_is_not_aligned_or_no_memory_faults_as_in_the_interpreter() {
    for pointer in [0, 4, 0x1_0001, 0x7fff_0000_0002, 1 << 56, 1 << 60, u64::MAX - 3] {
        let case = Case { pointer: Some(pointer), ..Case::new(ROW) };
        case.same().unwrap_err();
    }
}

#[test]
fn a_pointer_close_to_the_ends_of_memory_is_not_taken_for_granted() {
    // The address is good only because the index is large, or bad only because it is.
    for (pointer, index) in
        [(1u64 << 56, 0xffff_ffff_u32), ((1 << 56) - (1 << 20), 1 << 20), (8, 0x8000_0000)]
    {
        let body = format!(
            "mov.u32 %r2, {index}; mul.wide.s32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1;\n\
                            add.u32 %r3, %r1, 1; setp.eq.u32 %p1, %r0, 0; @%p1 st.global.u32 [%rd2], %r3;"
        );
        let case = Case { pointer: Some(pointer), ..Case::new(&body) };
        case.same().unwrap();
    }
}

#[test]
fn a_pointer_that_moves_in_a_loop_is_checked() {
    let body = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; mov.u32 %r2, 0;\n\
                L: st.global.u32 [%rd2], %r2; add.u64 %rd2, %rd2, 0x0200000000000000; add.u32 %r2, %r2, 1;\n\
                setp.lt.u32 %p1, %r2, 3; @%p1 bra L;";
    Case::new(body).same().unwrap_err();
}

#[test]
fn an_access_that_no_thread_makes_checks_nothing_for_the_next_one() {
    // The address is loaded, so nothing is known of it, and no thread has a number above that of
    // words.
    let load = "ld.global.u64 %rd3, [%rd0]; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd3, %rd1;\n\
                xor.b32 %r2, %r1, 5; setp.gt.u32 %p1, %r2, %r0;";
    for pointer in [4u64, 0x1_0001, 1 << 60, u64::MAX - 3] {
        let mut words = vec![0; 64];
        (words[0], words[1]) = (pointer as u32, (pointer >> 32) as u32);
        for access in [
            "@%p1 st.global.u32 [%rd2], %r1;",
            "@%p1 ld.global.u32 %r3, [%rd2];",
            "@%p1 atom.global.add.u32 %r3, [%rd2], 1;",
        ] {
            let body = format!("{load} {access}\n ld.global.u32 %r19, [%rd2]; bar.sync 0; {STORE}");
            Case { words: words.clone(), ..Case::new(&body) }.same().unwrap_err();
            let body = format!("{load} {access}\n st.global.u32 [%rd2], %r1;");
            Case { words: words.clone(), ..Case::new(&body) }.same().unwrap_err();
            let body = format!("{load} {access} bar.sync 0; mov.u32 %r19, %r1; {STORE}");
            Case { words: words.clone(), ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn an_access_to_shared_memory_that_no_thread_makes_checks_nothing_for_the_next_one() {
    let address = "mov.u64 %rd1, tile; cvt.u32.u64 %r4, %rd1; mad.lo.u32 %r4, %r1, 4, %r4; add.u32 %r4, %r4, %r5;\n\
                   xor.b32 %r2, %r1, 5; setp.gt.u32 %p1, %r2, %r0;";
    for (more, is_good) in [(256, true), (2, false), (1024, false), (0xffff_fffc_u32, false)] {
        let words = vec![more; 64];
        for access in ["@%p1 st.shared.u32 [%r4], %r1;", "@%p1 ld.shared.u32 %r3, [%r4];"] {
            let body = format!(
                "ld.global.u32 %r5, [%rd0]; {address} {access}\n st.shared.u32 [%r4], %r2; bar.sync 0;\n\
                 ld.shared.u32 %r19, [%r4]; {STORE}"
            );
            let found = Case { words: words.clone(), ..Case::new(&body) }.same();
            assert_eq!(found.is_ok(), is_good, "{more}: {access}");
        }
    }
}

#[test]
fn negative_indices_lead_back() {
    let body = "sub.u32 %r2, %r1, 64; mul.wide.s32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1;\n\
                ld.global.u32 %r3, [%rd2+256]; add.u32 %r3, %r3, 5; st.global.u32 [%rd2+256], %r3;";
    let words = Case { words: (0..64).collect(), ..Case::new(body) }.same().unwrap();
    assert_eq!(words[7], 12);
}

/// A word of `tile` for each thread, of which there is room for 256; then each reads its
/// neighbour's.
fn words_of_threads(guard: &str) -> String {
    format!(
        "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; mad.lo.u32 %r2, %r1, 3, 1;\n\
         {guard} st.shared.u32 [%rd3], %r2; bar.sync 0; and.b32 %r3, %r1, 255; xor.b32 %r3, %r3, 1;\n\
         mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd2, %rd4; ld.shared.u32 %r19, [%rd4];{STORE}"
    )
}

#[test]
fn blocks_of_any_size_store_inside_shared_memory_or_fault() {
    for block in [32u32, 64, 96, 128, 256, 512, 1024] {
        let words = vec![0; block as usize];
        let plain = words_of_threads("");
        let case = Case { block: [block, 1, 1], words: words.clone(), ..Case::new(&plain) };
        assert_eq!(case.same().is_err(), block > 256, "{block}");
        let guarded = words_of_threads("setp.lt.u32 %p1, %r1, 256; @%p1");
        Case { block: [block, 1, 1], words, ..Case::new(&guarded) }.same().unwrap();
    }
}

#[test]
fn what_a_branch_says_of_the_index_bounds_what_is_behind_it() {
    for (compare, inside) in [
        ("setp.ge.u32 %p1, %r1, 128; @%p1 bra L;", true),
        ("setp.gt.u32 %p1, %r1, 127; @%p1 bra L;", true),
        ("setp.lt.u32 %p1, %r1, 128; @!%p1 bra L;", true),
        ("setp.le.s32 %p1, 128, %r1; @%p1 bra L;", true),
        ("setp.gt.u32 %p1, %r1, 128; @%p1 bra L;", false),
        ("setp.ge.u32 %p1, %r1, 129; @%p1 bra L;", false),
        ("setp.lt.u32 %p1, %r1, 128; @%p1 bra L;", false),
        ("setp.ne.u32 %p1, %r1, 128; @%p1 bra L;", false),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", false),
    ] {
        let body = format!(
            "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; bar.sync 0;\n\
             mov.u32 %r19, 0; {compare}\n\
             add.u32 %r6, %r1, 128; mul.wide.u32 %rd9, %r6, 4; add.u64 %rd11, %rd2, %rd9; ld.shared.u32 %r19, [%rd11];\n\
             L: bar.sync 0;{STORE}"
        );
        let case = Case { block: [256, 1, 1], words: vec![0; 256], ..Case::new(&body) };
        assert_eq!(case.same().is_ok(), inside, "{compare}");
    }
}

#[test]
fn threads_that_go_along_with_others_of_their_group_stay_inside() {
    // Below a bound inside a group, up to the last word.
    for bound in [1u32, 2, 3, 5, 8, 9, 17, 31, 33] {
        let body = format!(
            "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; bar.sync 0;\n\
             mov.u32 %r19, 0; setp.ge.u32 %p1, %r1, {bound}; @%p1 bra L;\n\
             ld.shared.u32 %r7, [%rd3+{}]; add.u32 %r19, %r7, 9; st.shared.u32 [%rd3+{}], %r19;\n\
             L: bar.sync 0; ld.shared.u32 %r8, [%rd3]; add.u32 %r19, %r19, %r8;{STORE}",
            4 * (256 - bound),
            4 * (256 - bound)
        );
        Case { block: [256, 1, 1], words: vec![0; 256], ..Case::new(&body) }.same().unwrap();
    }
}

#[test]
fn a_loop_that_fetches_ahead_past_its_buffer_does_nothing_else() {
    for step in ["%r3", "%r4"] {
        let body = format!(
            "mov.u32 %r2, %r1; mov.u32 %r3, %ntid.x; mov.u32 %r4, 0x7fffff00; mov.u64 %rd3, tile;\n\
             L: cvt.u64.u32 %rd1, %r2; add.u64 %rd2, %rd0, %rd1; ld.global.u8 %r5, [%rd2]; mul.wide.u32 %rd4, %r5, 4;\n\
             add.u64 %rd4, %rd4, %rd3; red.shared.add.u32 [%rd4], 1; add.u32 %r2, %r2, {step}; setp.lt.u32 %p1, %r2, 1024; @%p1 bra L;\n\
             bar.sync 0; mul.wide.u32 %rd5, %r1, 4; add.u64 %rd6, %rd3, %rd5; ld.shared.u32 %r19, [%rd6];{STORE}"
        );
        let words: Vec<u32> = (0..256u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        Case { block: [256, 1, 1], words, ..Case::new(&body) }.same().unwrap();
    }
}

#[test]
fn one_nan_among_all_vectors_is_made_canonical() {
    for lane in 0..32 {
        let mut words: Vec<u32> = (0..64u32).map(|i| (i as f32).to_bits()).collect();
        words[lane] = 0xff80_1234;
        let body = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f1, [%rd2]; add.f32 %f2, %f1, 0f3F800000;\n\
                    st.global.f32 [%rd2], %f2;";
        let found = Case { words, ..Case::new(body) }.same().unwrap();
        assert_eq!(found[lane], 0x7fff_ffff);
    }
}
