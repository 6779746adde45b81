//! Shuffles, votes, matches, reductions and elections.

use crate::support::{fault, threads};
use gridloom_interp::FaultKind;

fn lanes(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(f).collect()
}

#[test]
fn a_shuffle_reads_the_lane_of_its_mode() {
    let shuffle = |mode: &str, b: u32, c: u32| {
        threads(&format!("add.u32 %r2, %r1, 100; shfl.sync.{mode}.b32 %r0, %r2, {b}, {c}, 0xffffffff;"), 32)
    };
    assert_eq!(shuffle("idx", 7, 31), lanes(|_| 107));
    assert_eq!(shuffle("up", 3, 0), lanes(|i| 100 + if i >= 3 { i - 3 } else { i }));
    assert_eq!(shuffle("down", 3, 31), lanes(|i| 100 + if i + 3 < 32 { i + 3 } else { i }));
    assert_eq!(shuffle("bfly", 5, 31), lanes(|i| 100 + (i ^ 5)));
}

#[test]
fn a_shuffle_stays_in_its_segment() {
    // Segments of 8 lanes: the mask 0x18 in bits 8 to 12.
    let out = threads("shfl.sync.down.b32 %r0, %r1, 2, 0x181f, 0xffffffff;", 32);
    assert_eq!(out, lanes(|i| if i % 8 + 2 < 8 { i + 2 } else { i }));
    let out = threads("shfl.sync.idx.b32 %r0, %r1, 1, 0x181f, 0xffffffff;", 32);
    assert_eq!(out, lanes(|i| i / 8 * 8 + 1));
}

#[test]
fn a_shuffle_says_whether_its_source_was_in_range() {
    let out = threads("shfl.sync.up.b32 %r2|%p0, %r1, 1, 0, 0xffffffff; selp.u32 %r0, 1, 0, %p0;", 32);
    assert_eq!(out, lanes(|i| u32::from(i >= 1)));
}

#[test]
fn shuffles_in_both_arms_of_a_branch_meet() {
    let out = threads(
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra EVEN;
         add.u32 %r3, %r1, 500; shfl.sync.bfly.b32 %r0, %r3, 1, 31, 0xffffffff; bra JOIN;
         EVEN: add.u32 %r4, %r1, 900; shfl.sync.bfly.b32 %r5, %r4, 1, 31, 0xffffffff; mov.u32 %r0, %r5;
         JOIN:",
        32,
    );
    assert_eq!(out, lanes(|i| if i % 2 == 0 { 500 + i + 1 } else { 900 + i - 1 }));
}

#[test]
fn groups_with_different_masks_exchange_among_themselves() {
    let out = threads(
        "setp.lt.u32 %p0, %r1, 16; selp.b32 %r2, 0x0000ffff, 0xffff0000, %p0; selp.u32 %r3, 3, 20, %p0;
         shfl.sync.idx.b32 %r0, %r1, %r3, 31, %r2;",
        32,
    );
    assert_eq!(out, lanes(|i| if i < 16 { 3 } else { 20 }));
}

#[test]
fn a_collective_does_not_wait_for_lanes_that_have_exited() {
    let out = threads("setp.ge.u32 %p0, %r1, 20; @%p0 exit; vote.sync.ballot.b32 %r0, 1, 0xffffffff;", 32);
    assert_eq!(out[..20], [0x000f_ffff; 20]);
}

#[test]
fn a_lane_that_exits_while_others_wait_lets_them_go() {
    let out = threads(
        "setp.eq.u32 %p0, %r1, 5; @%p0 bra LEAVE; vote.sync.ballot.b32 %r0, 1, 0xffffffff; bra OUT;
         LEAVE: add.u32 %r2, %r1, 1; exit;",
        32,
    );
    assert_eq!(out[0], !(1 << 5));
}

#[test]
fn votes_combine_predicates() {
    let vote = |what: &str, limit: u32| {
        threads(
            &format!(
                "setp.lt.u32 %p0, %r1, {limit}; vote.sync.{what}.pred %p1, %p0, 0xffffffff; selp.u32 %r0, 1, 0, %p1;"
            ),
            32,
        )[0]
    };
    assert_eq!([vote("all", 32), vote("all", 31)], [1, 0]);
    assert_eq!([vote("any", 1), vote("any", 0)], [1, 0]);
    assert_eq!([vote("uni", 32), vote("uni", 0), vote("uni", 4)], [1, 1, 0]);
    let out = threads("setp.lt.u32 %p0, %r1, 3; vote.sync.ballot.b32 %r0, !%p0, 0xffffffff;", 32);
    assert_eq!(out, lanes(|_| !7));
}

#[test]
fn match_finds_lanes_with_the_same_value() {
    let out = threads("and.b32 %r2, %r1, 3; match.any.sync.b32 %r0, %r2, 0xffffffff;", 32);
    assert_eq!(out, lanes(|i| 0x1111_1111 << (i % 4)));
    let out = threads("match.all.sync.b32 %r2|%p0, 9, 0xffffffff; selp.u32 %r0, %r2, 1, %p0;", 32);
    assert_eq!(out, lanes(|_| u32::MAX));
    let out = threads("match.all.sync.b32 %r2|%p0, %r1, 0xffffffff; selp.u32 %r0, 1, %r2, %p0;", 32);
    assert_eq!(out, lanes(|_| 0));
    let out = threads(
        "cvt.u64.u32 %rd1, %r1; shl.b64 %rd1, %rd1, 40; match.any.sync.b64 %r0, %rd1, 0xffffffff;",
        32,
    );
    assert_eq!(out, lanes(|i| 1 << i));
}

#[test]
fn redux_reduces_over_the_mask() {
    let redux =
        |what: &str, value: &str| threads(&format!("{value} redux.sync.{what} %r0, %r2, 0xffffffff;"), 32);
    let minus = "sub.u32 %r2, %r1, 10;";
    assert_eq!(redux("add.u32", "mov.u32 %r2, %r1;"), lanes(|_| 496));
    assert_eq!(redux("min.s32", minus), lanes(|_| -10i32 as u32));
    assert_eq!(redux("max.s32", minus), lanes(|_| 21));
    assert_eq!(redux("min.u32", minus), lanes(|_| 0));
    assert_eq!(redux("max.u32", minus), lanes(|_| u32::MAX));
    assert_eq!(redux("and.b32", "or.b32 %r2, %r1, 64;"), lanes(|_| 64));
    assert_eq!(redux("or.b32", "mov.u32 %r2, %r1;"), lanes(|_| 31));
    assert_eq!(redux("xor.b32", "mov.u32 %r2, %r1;"), lanes(|_| 0));
}

#[test]
fn one_lane_is_elected() {
    let out = threads(
        "setp.ge.u32 %p1, %r1, 3; @%p1 elect.sync %r2|%p0, 0xfffffff8; selp.u32 %r0, 100, %r2, %p0;",
        32,
    );
    assert_eq!(out, lanes(|i| [0, 0, 0, 100].get(i as usize).copied().unwrap_or(3)));
}

#[test]
fn a_lane_outside_its_own_mask_is_a_fault() {
    let fault = fault("vote.sync.ballot.b32 %r0, 1, 0x1;", 2);
    let FaultKind::IllegalInstruction { reason } = &fault.kind else { panic!("{fault}") };
    assert_eq!(reason, "lane 1 executes vote.sync.ballot with mask 0x1, which leaves it out");
    assert_eq!(fault.thread, [1, 0, 0]);
}

#[test]
fn a_partial_warp_has_only_its_lanes() {
    assert_eq!(threads("activemask.b32 %r0;", 5), vec![31; 5]);
    assert_eq!(threads("vote.sync.ballot.b32 %r0, 1, 0xffffffff;", 5), vec![31; 5]);
}

#[test]
fn forms_without_sync_take_the_active_lanes() {
    let out = threads(
        "setp.lt.u32 %p0, %r1, 4; mov.u32 %r0, 0; @%p0 vote.ballot.b32 %r0, 1; @%p0 shfl.bfly.b32 %r2, %r1, 1, 31;
         @%p0 mad.lo.u32 %r0, %r2, 100, %r0;",
        8,
    );
    assert_eq!(out, [115, 15, 315, 215, 0, 0, 0, 0]);
}

#[test]
fn lane_masks_follow_the_lane() {
    for (register, expected) in [
        ("%laneid", 5),
        ("%lanemask_eq", 1 << 5),
        ("%lanemask_lt", 31),
        ("%lanemask_le", 63),
        ("%lanemask_gt", !63),
        ("%lanemask_ge", !31),
    ] {
        assert_eq!(threads(&format!("mov.u32 %r0, {register};"), 64)[37], expected, "{register}");
    }
}
