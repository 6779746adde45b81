//! Branches, divergence and forward progress.

use crate::support::{thread, threads, try_threads};

#[test]
fn a_uniform_loop_runs_its_count() {
    assert_eq!(
        thread(
            "mov.u32 %r0, 0;
             LOOP: add.u32 %r0, %r0, 3; setp.lt.u32 %p0, %r0, 30; @%p0 bra.uni LOOP;"
        ),
        30
    );
}

#[test]
fn both_arms_of_a_divergent_branch_run() {
    let out = threads(
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p0, %r2, 0;
         @%p0 bra EVEN;
         mov.u32 %r0, 100; bra JOIN;
         EVEN: mov.u32 %r0, 200;
         JOIN: add.u32 %r0, %r0, %r1;",
        40,
    );
    let expected: Vec<u32> = (0..40).map(|i| if i % 2 == 0 { 200 + i } else { 100 + i }).collect();
    assert_eq!(out, expected);
}

#[test]
fn lanes_meet_again_behind_a_branch() {
    let out = threads(
        "setp.lt.u32 %p0, %r1, 5;
         @!%p0 bra JOIN;
         add.u32 %r2, %r1, 1;
         JOIN: activemask.b32 %r0;",
        32,
    );
    assert_eq!(out, vec![u32::MAX; 32]);
}

#[test]
fn loops_with_a_different_count_in_every_lane_end() {
    let out = threads(
        "mov.u32 %r0, 0; mov.u32 %r2, 0;
         LOOP: setp.ge.u32 %p0, %r2, %r1; @%p0 bra DONE;
         add.u32 %r2, %r2, 1; add.u32 %r0, %r0, %r2; bra LOOP;
         DONE:",
        32,
    );
    assert_eq!(out, (0..32).map(|i| i * (i + 1) / 2).collect::<Vec<u32>>());
}

#[test]
fn a_predicated_instruction_runs_only_where_its_predicate_holds() {
    let out = threads(
        "setp.gt.u32 %p0, %r1, 1; mov.u32 %r0, 1; @%p0 mov.u32 %r0, 2; @!%p0 add.u32 %r0, %r0, 10;",
        4,
    );
    assert_eq!(out, [11, 11, 2, 2]);
}

#[test]
fn an_indexed_branch_takes_the_target_of_its_index() {
    let out = threads(
        "T: .branchtargets A, B, C;
         brx.idx %r1, T;
         A: mov.u32 %r0, 10; bra OUT;
         B: mov.u32 %r0, 20; bra OUT;
         C: mov.u32 %r0, 30; bra OUT;",
        3,
    );
    assert_eq!(out, [10, 20, 30]);
}

#[test]
fn threads_that_exit_early_do_not_hold_up_the_others() {
    let out = threads("setp.eq.u32 %p0, %r1, 2; @%p0 exit; bar.sync 0; mov.u32 %r0, 7;", 64);
    assert_eq!(out[2], u32::MAX, "it never stored");
    assert!(out.iter().enumerate().all(|(i, &value)| i == 2 || value == 7));
}

#[test]
fn a_lane_waiting_for_a_lock_held_by_its_neighbour_makes_progress() {
    let out = try_threads(
        ".global .u32 lock; .global .u32 counter;",
        "SPIN: atom.global.cas.b32 %r2, [lock], 0, 1;
         setp.ne.u32 %p0, %r2, 0; @%p0 bra SPIN;
         ld.volatile.global.u32 %r0, [counter];
         add.u32 %r3, %r0, 1;
         st.volatile.global.u32 [counter], %r3;
         atom.global.exch.b32 %r4, [lock], 0;",
        1,
        32,
    );
    let mut out = out.unwrap_or_else(|fault| panic!("{fault}"));
    out.sort_unstable();
    assert_eq!(out, (0..32).collect::<Vec<u32>>(), "each lane had the lock alone");
}

#[test]
fn a_lane_waiting_for_a_later_instruction_of_its_neighbour_makes_progress() {
    // Lane 0 waits in a loop that comes before the store of lane 1, and that has a branch inside.
    let out = try_threads(
        ".global .u32 flag;",
        "setp.ne.u32 %p0, %r1, 0; @%p0 bra SET;
         mov.u32 %r3, 0;
         WAIT: ld.volatile.global.u32 %r2, [flag];
         xor.b32 %r3, %r3, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra SKIP; add.u32 %r4, %r4, 1;
         SKIP: setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT;
         mov.u32 %r0, %r2; bra OUT;
         SET: mov.u32 %r2, 5; st.volatile.global.u32 [flag], %r2; mov.u32 %r0, 1;",
        1,
        2,
    );
    assert_eq!(out, Ok(vec![5, 1]));
}

#[test]
fn a_warp_waiting_for_another_warp_makes_progress() {
    let out = try_threads(
        ".shared .u32 flag;",
        "setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.u32 [flag], 0; bar.sync 0;
         setp.ge.u32 %p0, %r1, 32; @%p0 bra SET;
         WAIT: ld.volatile.shared.u32 %r0, [flag]; setp.eq.u32 %p1, %r0, 0; @%p1 bra WAIT;
         bra OUT;
         SET: st.volatile.shared.u32 [flag], 9; mov.u32 %r0, 1;",
        1,
        64,
    );
    let expected: Vec<u32> = (0..64).map(|i| if i < 32 { 9 } else { 1 }).collect();
    assert_eq!(out, Ok(expected));
}

#[test]
fn a_sleeping_lane_lets_the_others_run() {
    let out = try_threads(
        ".global .u32 flag;",
        "setp.ne.u32 %p0, %r1, 0; @%p0 bra SET;
         WAIT: nanosleep.u32 100; ld.volatile.global.u32 %r0, [flag]; setp.eq.u32 %p1, %r0, 0; @%p1 bra WAIT;
         bra OUT;
         SET: st.volatile.global.u32 [flag], 3; mov.u32 %r0, 1;",
        1,
        2,
    );
    assert_eq!(out, Ok(vec![3, 1]));
}

#[test]
fn falling_off_the_end_of_a_kernel_returns() {
    assert_eq!(thread("mov.u32 %r0, 4;"), 4);
}
