//! Diverged threads of a group: they stay in vectors, under masks, and join again.

use crate::case::{Case, STORE};
use gridloom_jit::Runs;

/// Compiled code computes what the interpreter does, with every thread run once, in a group.
#[track_caller]
fn stays_wide(body: &str) {
    let words = (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 27).collect();
    let case = Case { words, ..Case::new(body) };
    case.same().unwrap();
    assert_eq!(case.runs.get(), Runs { wide: 64, alone: 0 });
}

/// Loads the word of the thread into `%r2`.
const LOAD: &str = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r2, [%rd2];";

#[test]
fn two_long_ways_meet_behind_both() {
    let long =
        |factor: u32| format!("mad.lo.u32 %r19, %r19, {factor}, %r2; xor.b32 %r19, %r19, %r1; ").repeat(30);
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 1; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A; {} bra B; A: {} B: add.u32 %r19, %r19, 1; {STORE}",
        long(3),
        long(5)
    ));
}

#[test]
fn loops_of_different_lengths_end_for_each_thread_by_itself() {
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 0; mov.u32 %r3, 0; L: setp.ge.u32 %p1, %r3, %r2; @%p1 bra E;
         mad.lo.u32 %r19, %r19, 7, %r3; add.u32 %r3, %r3, 1; bra L; E: add.u32 %r19, %r19, %r3; {STORE}"
    ));
}

#[test]
fn a_loop_that_is_left_in_its_middle_and_goes_on_elsewhere() {
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 0; mov.u32 %r3, 0; L: add.u32 %r3, %r3, 1; setp.gt.u32 %p1, %r3, %r2; @%p1 bra E;
         and.b32 %r4, %r3, 3; setp.eq.u32 %p2, %r4, 2; @%p2 bra L; mul.lo.u32 %r19, %r19, %r3; add.u32 %r19, %r19, %r2;
         setp.gt.u32 %p3, %r19, 9000; @%p3 bra F; bra L; F: add.u32 %r19, %r19, 5; E: {STORE}"
    ));
}

#[test]
fn threads_that_exit_leave_the_others_together() {
    stays_wide(&format!(
        "{LOAD} and.b32 %r3, %r2, 5; setp.eq.u32 %p1, %r3, 1; @%p1 exit; mul.lo.u32 %r19, %r2, 3;
         setp.gt.u32 %p2, %r2, 20; @%p2 bra A; add.u32 %r19, %r19, 100; A: {STORE}"
    ));
}

#[test]
fn addresses_of_threads_that_make_no_access_are_not_looked_at() {
    for outside in ["0", "0xfffffffffffffff0", "1"] {
        stays_wide(&format!(
            "{LOAD} mov.u32 %r19, 0; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; mov.u64 %rd5, {outside};
             selp.b64 %rd6, %rd2, %rd5, %p1; @%p1 ld.global.u32 %r19, [%rd6]; @!%p1 bra A;
             ld.global.u32 %r4, [%rd6]; add.u32 %r19, %r19, %r4; st.global.u32 [%rd6], %r19; A: {STORE}"
        ));
    }
    stays_wide(&format!(
        "{LOAD} mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r2;
         sub.u32 %r7, %r6, 40; mov.u32 %r19, 0; setp.lt.u32 %p1, %r1, 10; @%p1 bra A; ld.shared.u32 %r19, [%r7]; A: {STORE}"
    ));
}

#[test]
fn a_branch_by_a_table_sends_each_thread_its_own_way() {
    stays_wide(&format!(
        "{LOAD} and.b32 %r3, %r2, 3; T: .branchtargets A, B, C, A; brx.idx %r3, T; A: mov.u32 %r19, 1; bra E;
         B: mad.lo.u32 %r19, %r2, 3, %r1; bra E; C: mov.u32 %r19, %r1; E: {STORE}"
    ));
}

#[test]
fn collectives_of_a_warp_are_executed_by_its_group() {
    for instruction in [
        "shfl.sync.down.b32 %r19, %r2, 16, 31, -1;",
        "shfl.sync.up.b32 %r19|%p1, %r2, 3, 0, -1;",
        "shfl.sync.bfly.b32 %r19, %r2, 5, 31, -1;",
        "shfl.sync.idx.b32 %r19, %r2, 7, 31, -1;",
        "shfl.sync.idx.b32 %r19, %r2, %r2, 31, -1;",
        "shfl.sync.down.b32 %r19, %r2, 4, 0x181f, -1;",
        "setp.gt.u32 %p1, %r2, 15; vote.sync.ballot.b32 %r19, %p1, -1;",
        "setp.gt.u32 %p1, %r2, 15; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r19, 7, 9, %p2;",
        "match.any.sync.b32 %r19, %r2, -1;",
        "redux.sync.add.u32 %r19, %r2, -1;",
        "redux.sync.max.s32 %r19, %r2, -1;",
        "elect.sync %r19|%p1, -1;",
        "bar.warp.sync -1; mov.u32 %r19, %r2;",
    ] {
        stays_wide(&format!("{LOAD} mov.u32 %r19, 0; {instruction} {STORE}"));
    }
}

#[test]
fn collectives_of_the_threads_that_have_taken_a_branch_are_executed_by_its_group() {
    for instruction in [
        "shfl.sync.bfly.b32 %r19, %r2, 2, 31, %r9;",
        "vote.sync.ballot.b32 %r19, %p3, %r9;",
        "redux.sync.min.u32 %r19, %r2, %r9;",
        "match.any.sync.b32 %r19, %r2, %r9;",
    ] {
        stays_wide(&format!(
            "{LOAD} mov.u32 %r19, 0; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; setp.gt.u32 %p3, %r2, 9;
             vote.sync.ballot.b32 %r9, %p1, -1; @!%p1 bra A; {instruction} A: {STORE}"
        ));
    }
}

#[test]
fn lanes_that_come_to_a_collective_by_different_ways_are_waited_for() {
    let body = format!(
        "{LOAD} and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A;
         shfl.sync.bfly.b32 %r19, %r2, 1, 31, -1; bra B; A: shfl.sync.bfly.b32 %r19, %r2, 1, 31, -1; add.u32 %r19, %r19, 1; B: {STORE}"
    );
    let words = (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 27).collect();
    Case { words, ..Case::new(&body) }.same().unwrap();
}

#[test]
fn the_active_mask_is_that_of_the_threads_that_run_together() {
    stays_wide(&format!("activemask.b32 %r19; {STORE}"));
    // On both sides of a branch, behind it, and in a loop that threads leave one after the other.
    stays_wide(&format!(
        "{LOAD} and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A;
         activemask.b32 %r19; mul.lo.u32 %r19, %r19, 3; bra B;
         A: activemask.b32 %r19; B: activemask.b32 %r4; xor.b32 %r19, %r19, %r4; {STORE}"
    ));
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 0; mov.u32 %r3, 0; L: setp.ge.u32 %p1, %r3, %r2; @%p1 bra E;
         activemask.b32 %r4; mad.lo.u32 %r19, %r19, 7, %r4; add.u32 %r3, %r3, 1; bra L;
         E: activemask.b32 %r4; add.u32 %r19, %r19, %r4; {STORE}"
    ));
    // Under a guard, it is that of the threads whose guard holds.
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 5; and.b32 %r3, %r2, 2; setp.eq.u32 %p1, %r3, 0; @%p1 activemask.b32 %r19; {STORE}"
    ));
}

#[test]
fn a_thread_that_the_interpreter_has_helped_waits_for_its_warp_before_the_next_pass() {
    // Some threads of each pass make an access that is interpreted, on one side of a branch or the
    // other. All of them ask together which are active at the start of a pass.
    const COPY: &str = "cp.async.ca.shared.global [%rd4], [%rd2], 4; add.u32 %r19, %r19, %r6;";
    for [one, other] in [[COPY, "add.u32 %r9, %r9, 3;"], ["add.u32 %r9, %r9, 3;", COPY], [COPY, COPY]] {
        let body = format!(
            "{LOAD} mov.u64 %rd4, tile; add.u64 %rd4, %rd4, %rd1; mov.u32 %r19, 0; mov.u32 %r3, 0; mov.u32 %r9, 0; L: activemask.b32 %r4;
             mad.lo.u32 %r19, %r19, 7, %r4; shfl.sync.bfly.b32 %r5, %r19, 1, 31, %r4; add.u32 %r19, %r19, %r5;
             shr.u32 %r6, %r2, %r3; and.b32 %r6, %r6, 1; setp.eq.u32 %p1, %r6, 0; @%p1 bra A;
             {one} bra B; A: {other}
             B: shr.u32 %r6, %r2, 2; setp.lt.u32 %p2, %r6, %r3; @%p2 bra C; add.u32 %r9, %r9, 5; C:
             add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 5; @%p3 bra L; xor.b32 %r19, %r19, %r9; {STORE}"
        );
        for threads in [64, 32, 96, 50] {
            let words = (0..threads).map(|i: u32| i.wrapping_mul(0x9e37_79b9) >> 27).collect();
            Case { words, block: [threads, 1, 1], ..Case::new(&body) }.same().unwrap();
        }
    }
}

#[test]
fn the_first_of_the_active_threads_adds_for_all_of_them() {
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 0; and.b32 %r3, %r2, 3; setp.eq.u32 %p1, %r3, 0; @%p1 bra E;
         activemask.b32 %r4; popc.b32 %r5, %r4; brev.b32 %r6, %r4; clz.b32 %r6, %r6; mov.u32 %r7, %laneid;
         setp.eq.u32 %p2, %r6, %r7; selp.u32 %r8, %r5, 0, %p2;
         shfl.sync.idx.b32 %r9, %r8, %r6, 31, %r4; add.u32 %r19, %r9, 1; E: {STORE}"
    ));
}

#[test]
fn the_active_mask_of_a_part_of_a_warp_is_that_of_the_interpreter() {
    let body = format!(
        "{LOAD} and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A;
         activemask.b32 %r19; mul.lo.u32 %r19, %r19, 3; bra B;
         A: activemask.b32 %r19; B: activemask.b32 %r4; xor.b32 %r19, %r19, %r4; {STORE}"
    );
    for threads in [1, 7, 20, 33, 50] {
        let words: Vec<u32> = (0..threads).map(|i: u32| i.wrapping_mul(0x9e37_79b9) >> 27).collect();
        Case { words, block: [threads, 1, 1], ..Case::new(&body) }.same().unwrap();
    }
}

#[test]
fn votes_and_shuffles_without_a_mask_are_of_the_threads_that_run_together() {
    stays_wide(&format!(
        "{LOAD} mov.u32 %r19, 0; and.b32 %r3, %r2, 1; setp.eq.u32 %p1, %r3, 0; and.b32 %r4, %r2, 4;
         setp.eq.u32 %p2, %r4, 0; vote.ballot.b32 %r5, %p2; @%p1 bra A; vote.ballot.b32 %r6, %p2;
         shfl.down.b32 %r7, %r2, 3, 31; mad.lo.u32 %r19, %r6, 7, %r7; A: xor.b32 %r19, %r19, %r5; {STORE}"
    ));
}

#[test]
fn threads_that_continue_alone_have_not_run_in_vectors() {
    // The interpreter reads the clock.
    let counting = "mov.u32 %r3, 0; L: mad.lo.u32 %r19, %r19, 7, %r2; add.u32 %r3, %r3, 1;
         setp.lt.u32 %p2, %r3, 50; @%p2 bra L;";
    let body = format!(
        "{LOAD} mov.u32 %r19, 0; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra A;
         mov.u32 %r4, %clock; A: {counting} {STORE}"
    );
    let case = Case::new(&body);
    case.same().unwrap();
    assert_eq!(case.runs.get(), Runs { wide: 0, alone: 64 });
    // Those that come back from it together have.
    let body = format!("{LOAD} mov.u32 %r19, 0; mov.u32 %r4, %clock; {counting} {STORE}");
    let case = Case::new(&body);
    case.same().unwrap();
    assert_eq!(case.runs.get(), Runs { wide: 128, alone: 0 });
}
