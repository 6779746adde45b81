//! Barriers of the block and of the warp.

use crate::support::{HEADER, fault, kernel_text, line_of, threads, try_threads};
use gridloom_interp::FaultKind;

/// Reverses the thread numbers through shared memory, with `barrier` between store and load.
fn reversed_through_shared(barrier: &str, count: u32) -> Result<Vec<u32>, Box<gridloom_interp::Fault>> {
    try_threads(
        ".shared .align 4 .b8 mem[4096];",
        &format!(
            "mov.u32 %r2, mem; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;
             {barrier}
             mov.u32 %r4, %ntid.x; sub.u32 %r4, %r4, %r1; sub.u32 %r4, %r4, 1;
             mad.lo.u32 %r3, %r4, 4, %r2; ld.shared.u32 %r0, [%r3];"
        ),
        1,
        count,
    )
}

#[test]
fn a_barrier_makes_stores_of_all_warps_visible() {
    for (barrier, count) in
        [("bar.sync 0;", 256), ("barrier.sync 3;", 100), ("bar.sync 1, 64;", 64), ("bar.sync 15, 64;", 40)]
    {
        let out = reversed_through_shared(barrier, count);
        assert_eq!(out, Ok((0..count).rev().collect()), "{barrier}");
    }
}

#[test]
fn a_barrier_holds_until_lanes_of_both_arms_of_a_branch_arrive() {
    let out = reversed_through_shared(
        "setp.lt.u32 %p0, %r1, 7; @%p0 bra A; barrier.sync 0; bra B; A: barrier.sync 0; B:",
        64,
    );
    assert_eq!(out, Ok((0..64).rev().collect()));
}

#[test]
fn a_barrier_in_a_loop_holds_in_every_pass() {
    let out = try_threads(
        ".shared .u32 total;",
        "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [total], 0;
         mov.u32 %r2, 0; mov.u32 %r0, 0;
         LOOP: bar.sync 0;
         atom.shared.add.u32 %r3, [total], 1;
         bar.sync 0;
         ld.shared.u32 %r3, [total]; add.u32 %r0, %r0, %r3;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 3; @%p0 bra LOOP;",
        1,
        96,
    );
    assert_eq!(out, Ok(vec![96 + 192 + 288; 96]));
}

#[test]
fn producers_arrive_without_waiting_and_consumers_wait_for_them() {
    // Warp 1 produces three values; warp 0 consumes each, through a pair of barriers.
    let out = try_threads(
        ".shared .u32 slot;",
        "mov.u32 %r0, 0; mov.u32 %r2, 0; setp.ge.u32 %p0, %r1, 32; @%p0 bra PRODUCE;
         CONSUME: bar.sync 1, 64; ld.shared.u32 %r3, [slot]; mad.lo.u32 %r0, %r0, 10, %r3; bar.arrive 2, 64;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra CONSUME; bra OUT;
         PRODUCE: add.u32 %r3, %r2, 5; st.shared.u32 [slot], %r3; bar.arrive 1, 64; bar.sync 2, 64;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra PRODUCE;",
        1,
        64,
    )
    .unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(out[..32], [567; 32]);
}

#[test]
fn a_reducing_barrier_counts_and_combines_predicates() {
    let out = threads(
        "setp.lt.u32 %p0, %r1, 70;
         barrier.red.popc.u32 %r2, 0, %p0;
         barrier.red.and.pred %p1, 0, %p0;
         barrier.red.or.pred %p2, 0, !%p0;
         selp.u32 %r3, 1000, 0, %p1; selp.u32 %r4, 2000, 0, %p2;
         add.u32 %r0, %r2, %r3; add.u32 %r0, %r0, %r4;",
        96,
    );
    assert_eq!(out, vec![2070; 96]);
}

#[test]
fn a_warp_barrier_waits_for_lanes_from_elsewhere() {
    let out = try_threads(
        ".shared .u32 word;",
        "setp.eq.u32 %p0, %r1, 3; @%p0 bra WRITE;
         bar.warp.sync 0xffffffff; ld.shared.u32 %r0, [word]; bra OUT;
         WRITE: st.shared.u32 [word], 42; bar.warp.sync 0xffffffff; ld.shared.u32 %r0, [word];",
        1,
        32,
    );
    assert_eq!(out, Ok(vec![42; 32]));
}

#[test]
fn barrier_deadlock_is_reported_with_the_lines_waited_at() {
    let body = "setp.lt.u32 %p0, %r1, 32; @%p0 bra A;
        bar.sync 1; // here
        bra OUT;
        A: bar.sync 2; // there
        mov.u32 %r0, 1;";
    let fault = fault(body, 64);
    let text = format!("\n{}", kernel_text(body));
    let FaultKind::Deadlock { waiting } = &fault.kind else { panic!("{fault}") };
    let found: Vec<_> = waiting.iter().map(|w| (w.at.as_str(), w.line, w.threads)).collect();
    assert_eq!(
        found,
        [("barrier 2", line_of(&text, "// there"), 32), ("barrier 1", line_of(&text, "// here"), 32)]
    );
    assert!(HEADER.ends_with('\n'));
}

#[test]
fn a_barrier_that_too_few_threads_come_to_is_a_deadlock() {
    let fault = fault("setp.lt.u32 %p0, %r1, 32; @%p0 bra OUT; bar.sync 0, 64;", 64);
    let FaultKind::Deadlock { waiting } = &fault.kind else { panic!("{fault}") };
    assert_eq!((waiting[0].at.as_str(), waiting[0].threads), ("barrier 0 for 64 threads", 32));
}

#[test]
fn lanes_that_wait_for_each_other_in_different_ways_are_a_deadlock() {
    let fault = fault(
        "setp.eq.u32 %p0, %r1, 0; @%p0 bra A; bar.warp.sync 0x3; bra OUT; A: shfl.sync.idx.b32 %r0, %r1, 0, 31, 0x3;",
        2,
    );
    let FaultKind::Deadlock { waiting } = &fault.kind else { panic!("{fault}") };
    let mut found: Vec<_> = waiting.iter().map(|w| w.at.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["bar.warp.sync with mask 0x3", "shfl.sync.idx with mask 0x3"]);
}

#[test]
fn a_barrier_number_past_the_last_is_a_fault() {
    let fault = fault("mov.u32 %r2, 16; barrier.sync %r2;", 1);
    assert!(matches!(fault.kind, FaultKind::IllegalInstruction { .. }), "{fault}");
}

#[test]
fn an_mbarrier_lets_waiters_pass_when_all_have_arrived() {
    let out = try_threads(
        ".shared .align 8 .b64 bar; .shared .u32 word;",
        "setp.ne.u32 %p0, %r1, 0; @%p0 bra READY;
         mbarrier.init.shared.b64 [bar], 64; st.shared.u32 [word], 0;
         READY: bar.sync 0;
         atom.shared.add.u32 %r2, [word], 1;
         mbarrier.arrive.shared.b64 %rd1, [bar];
         WAIT: mbarrier.try_wait.shared.b64 %p1, [bar], %rd1; @!%p1 bra WAIT;
         ld.shared.u32 %r0, [word];",
        1,
        64,
    );
    assert_eq!(out, Ok(vec![64; 64]));
}
