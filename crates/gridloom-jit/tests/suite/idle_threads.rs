//! Threads that are idle between two barriers, and predicates that the ends of a group decide.

use crate::case::{Case, STORE};

/// Steps of a tree in `tile`: each is a comparison of `%r1`, `%tid.x`, that threads pass by for
/// which it holds, and the distance to the element that the others add.
fn tree(steps: &[(&str, u32)]) -> String {
    let mut text = String::from(
        "mad.lo.u32 %r2, %r1, 7, 3; mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1;\n\
         st.shared.u32 [%rd3], %r2; mov.u32 %r3, %ntid.x; shr.u32 %r4, %r3, 1; bar.sync 0;\n",
    );
    for (i, (comparison, distance)) in steps.iter().enumerate() {
        text += &format!(
            "setp.{comparison}; @%p1 bra L{i};\n\
             ld.shared.u32 %r5, [%rd3]; ld.shared.u32 %r6, [%rd3+{}]; add.u32 %r7, %r5, %r6; st.shared.u32 [%rd3], %r7;\n\
             L{i}: bar.sync 0;\n",
            4 * distance
        );
    }
    text + "ld.shared.u32 %r19, [%rd3];" + STORE
}

fn case(body: &str, block: [u32; 3]) -> Case<'_> {
    let threads = block.iter().product::<u32>();
    Case { block, grid: [3, 1, 1], words: vec![0; threads as usize], ..Case::new(body) }
}

#[test]
fn a_tree_that_halves_the_threads_comes_to_the_sum() {
    let steps: Vec<(String, u32)> =
        (0..7).rev().map(|i| (format!("ge.u32 %p1, %r1, {}", 1 << i), 1 << i)).collect();
    let steps: Vec<(&str, u32)> = steps.iter().map(|(text, distance)| (text.as_str(), *distance)).collect();
    let body = tree(&steps);
    let words = case(&body, [128, 1, 1]).same().unwrap();
    assert_eq!(words[0], (0..128).map(|i| 7 * i + 3).sum::<u32>());
}

#[test]
fn threads_are_idle_by_every_comparison_with_every_bound() {
    for compare in
        ["lt.u32", "le.u32", "gt.u32", "ge.u32", "eq.u32", "ne.u32", "lt.s32", "le.s32", "gt.s32", "ge.s32"]
    {
        for bound in [
            -2_147_483_648i64,
            -2,
            -1,
            0,
            1,
            3,
            4,
            7,
            8,
            15,
            16,
            17,
            31,
            32,
            33,
            95,
            96,
            97,
            1023,
            1024,
            1025,
            4000,
        ] {
            let bound = if compare.ends_with("u32") { i64::from(bound as u32) } else { bound };
            let forward = format!("{compare} %p1, %r1, {bound}");
            let backward = format!("{compare} %p1, {bound}, %r1");
            let body = tree(&[(&forward, 1), (&backward, 2), ("ge.u32 %p1, %r1, 64", 64)]);
            case(&body, [96, 1, 1]).same().unwrap();
        }
    }
}

#[test]
fn the_bound_may_be_the_same_in_the_block_only() {
    for compare in
        ["ge.u32 %p1, %r1, %r4", "gt.s32 %p1, %r4, %r1", "ne.u32 %p1, %r1, %r4", "lt.u32 %p1, %r1, %r3"]
    {
        let body = tree(&[(compare, 3), (compare, 5)]);
        // The same, in a register that another value is written to that differs between threads.
        let reused = body.replace(
            "shr.u32 %r4, %r3, 1;",
            "xor.b32 %r4, %r1, 5; st.shared.u32 [%rd3], %r4; shr.u32 %r4, %r3, 1;",
        );
        for threads in [32, 64, 96, 160] {
            case(&body, [threads, 1, 1]).same().unwrap();
            case(&reused, [threads, 1, 1]).same().unwrap();
        }
    }
}

#[test]
fn the_index_in_a_row_is_not_the_number_of_a_thread() {
    let index = "mov.u32 %r8, %tid.y; mad.lo.u32 %r9, %r8, 32, %r1; mul.wide.u32 %rd1, %r9, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1;\n\
        st.shared.u32 [%rd3], %r9; bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 16; @%p1 bra L0; ld.shared.u32 %r5, [%rd3+64]; st.shared.u32 [%rd3], %r5; L0: bar.sync 0;\n\
        setp.ne.u32 %p1, %r1, 0; @%p1 bra L1; ld.shared.u32 %r5, [%rd3+4]; st.shared.u32 [%rd3], %r5; L1: bar.sync 0;\n\
        ld.shared.u32 %r19, [%rd3]; add.u64 %rd5, %rd0, %rd1; st.global.u32 [%rd5], %r19;";
    for block in [[32, 4, 1], [32, 2, 2], [16, 4, 1], [8, 8, 1]] {
        let body = index.replace("%r8, 32,", &format!("%r8, {},", block[0]));
        let block = [block[0], block[1] * block[2], 1];
        case(&body, block).same().unwrap();
    }
}

#[test]
fn what_idle_threads_hold_is_still_theirs() {
    // A value that differs, one that is computed in the quiet part before the branch, and one of 64
    // bits.
    let body = "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1;\n\
        xor.b32 %r2, %r1, 21; mul.lo.u32 %r2, %r2, %r2; cvt.rn.f64.u32 %d1, %r2; bar.sync 0;\n\
        add.u32 %r2, %r2, 5; setp.ge.u32 %p1, %r1, 32; @%p1 bra L0; ld.shared.u32 %r5, [%rd3+128]; st.shared.u32 [%rd3], %r5; L0: bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 8; @%p1 bra L1; ld.shared.u32 %r5, [%rd3+32]; st.shared.u32 [%rd3], %r5; add.u32 %r2, %r2, %r5; L1: bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 1; @%p1 bra L2; ld.shared.u32 %r5, [%rd3+4]; st.shared.u32 [%rd3], %r5; L2: bar.sync 0;\n\
        ld.shared.u32 %r6, [%rd3]; cvt.rzi.u32.f64 %r7, %d1; mad.lo.u32 %r19, %r2, %r6, %r7;";
    case(&format!("{body}{STORE}"), [128, 1, 1]).same().unwrap();
}

#[test]
fn idle_threads_may_exit() {
    for end in ["@%p1 ret;", "@%p1 bra E;"] {
        let body = format!(
            "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; bar.sync 0;\n\
             setp.ge.u32 %p1, %r1, 35; {end} ld.shared.u32 %r19, [%rd3+4];{STORE} E:"
        );
        let words = case(&body, [128, 1, 1]).same().unwrap();
        assert_eq!((words[34], words[35]), (35, 0));
    }
}

#[test]
fn threads_that_part_while_others_are_idle_meet_them_at_the_barrier() {
    // The way is too long to be gone by some while the others wait, and loops as often as a
    // thread's index says.
    let body = "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 40; @%p1 bra L0;\n\
        mov.u32 %r5, %r1; mov.u32 %r6, 1; W: mad.lo.u32 %r6, %r6, 3, %r5; add.u32 %r5, %r5, -1; setp.gt.s32 %p2, %r5, 0; @%p2 bra W;\n\
        st.shared.u32 [%rd3], %r6; L0: bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 20; @%p1 bra L1; ld.shared.u32 %r5, [%rd3+80]; st.shared.u32 [%rd3], %r5; L1: bar.sync 0;\n\
        ld.shared.u32 %r19, [%rd3];";
    case(&format!("{body}{STORE}"), [128, 1, 1]).same().unwrap();
}

#[test]
fn a_fault_while_others_are_idle_is_that_of_the_interpreter() {
    let body = "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 40; @%p1 bra L0; ld.shared.u32 %r5, [%rd3+900]; st.shared.u32 [%rd3], %r5; L0: bar.sync 0;\n\
        ld.shared.u32 %r19, [%rd3];";
    let fault = case(&format!("{body}{STORE}"), [128, 1, 1]).same().unwrap_err();
    assert!(fault.contains("shared"), "{fault}");
}

#[test]
fn rounds_with_idle_threads_are_many() {
    // More than are passed before others are let run.
    let body = "mul.wide.u32 %rd1, %r1, 4; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; st.shared.u32 [%rd3], %r1; mov.u32 %r4, 0;\n\
        W: bar.sync 0;\n\
        setp.ge.u32 %p1, %r1, 16; @%p1 bra L0; ld.shared.u32 %r5, [%rd3+64]; add.u32 %r5, %r5, %r1; st.shared.u32 [%rd3], %r5; L0: bar.sync 0;\n\
        setp.lt.u32 %p1, %r1, 48; @%p1 bra L1; ld.shared.u32 %r5, [%rd3+-64]; add.u32 %r5, %r5, 3; st.shared.u32 [%rd3], %r5; L1: bar.sync 0;\n\
        add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 3000; @%p2 bra W; ld.shared.u32 %r19, [%rd3];";
    case(&format!("{body}{STORE}"), [64, 1, 1]).same().unwrap();
}

#[test]
fn the_first_threads_go_a_short_way() {
    for threads in 0..34 {
        for compare in [format!("ge.u32 %p1, %r1, {threads}"), format!("ne.s32 %p1, %r1, {threads}")] {
            // Values that are seen behind the way, of one and two words, from a row and from
            // anywhere, and an instruction with a guard.
            let body = format!(
                "mul.wide.u32 %rd1, %r1, 8; mov.u64 %rd2, tile; add.u64 %rd3, %rd2, %rd1; cvt.rn.f64.u32 %d1, %r1; st.shared.f64 [%rd3], %d1;\n\
                 xor.b32 %r2, %r1, 3; and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, 0; mov.u32 %r4, 77; mov.f64 %d2, %d1;\n\
                 setp.{compare}; @%p1 bra L0;\n\
                 ld.shared.f64 %d3, [%rd3]; add.f64 %d2, %d3, 0d3FF8000000000000; cvt.rzi.u32.f64 %r5, %d2; @%p2 mad.lo.u32 %r4, %r5, 3, %r2; st.shared.f64 [%rd3], %d2;\n\
                 L0: ld.shared.u32 %r6, [%rd3+4]; cvt.rzi.u32.f64 %r7, %d2; mad.lo.u32 %r19, %r4, %r6, %r7;{STORE}"
            );
            case(&body, [96, 1, 1]).same().unwrap();
        }
    }
}

#[test]
fn equality_is_told_by_the_ends_of_a_group() {
    for (value, bounds) in [
        ("mov.u32 %r2, %r1", 0..70),
        ("mul.lo.u32 %r2, %r1, 3", 0..100),
        ("sub.u32 %r2, 40, %r1", 0..45),
        ("add.u32 %r2, %r1, -20", 0..40),
    ] {
        for bound in bounds {
            for (compare, bound) in
                [("eq.u32", bound), ("ne.s32", bound), ("eq.u32", -bound), ("ne.s32", -bound)]
            {
                let bound = if compare == "eq.u32" { i64::from(bound as u32) } else { bound.into() };
                let body = format!(
                    "{value}; mov.u32 %r19, 5; setp.{compare} %p1, %r2, {bound}; setp.{compare}.and %p2, %r2, 7, %p1; setp.{compare}.or %p3, %r2, 9, %p1;\n\
                     @%p1 bra L0; add.u32 %r19, %r2, 1; L0: @!%p2 bra L1; mad.lo.u32 %r19, %r19, 3, %r2; L1: @%p3 bra L2; mad.lo.u32 %r19, %r19, 5, %r2; L2:{STORE}"
                );
                Case::new(&body).same().unwrap();
            }
        }
    }
}

#[test]
fn one_address_for_all_takes_what_the_last_thread_stores() {
    let body = "mov.u64 %rd2, tile; xor.b32 %r2, %r1, 5; st.shared.u32 [%rd2+8], %r2; st.global.u32 [%rd0], %r2; bar.sync 0;\n\
        ld.shared.u32 %r3, [%rd2+8]; st.global.u32 [%rd0+4], %r3; st.global.v2.u32 [%rd0+8], {%r2, %r1};";
    let words = Case::new(body).same().unwrap();
    assert_eq!(words[..4], [63 ^ 5, 63 ^ 5, 63 ^ 5, 63]);
}
