//! Where the threads of a block or warp wait for each other, and whether some may never come.
//!
//! In a kernel of its own, nobody waits for a thread that has exited. A thread that has finished
//! its step of a program has not exited, so a kernel whose threads rely on that cannot be a step.

use gridloom_ptx::Body;
use gridloom_ptx::op::{BarrierKind, Instruction, Op, SyncOp, WarpOp};

use super::flow::Flow;
use super::stops::Stops;
use super::uniformity::{Known, Same, Uniformity};

/// The threads that wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meeting {
    /// Lanes of a warp.
    Warp,
    /// Threads of a block.
    Block,
}

impl Meeting {
    /// Returns the threads that wait for each other at an operation that is no call.
    pub(super) fn of(op: &Op) -> Option<Self> {
        match op {
            Op::Sync(SyncOp::Barrier { .. }) => Some(Meeting::Block),
            Op::Sync(SyncOp::WarpBarrier { .. }) => Some(Meeting::Warp),
            Op::Warp(op) if !matches!(op, WarpOp::ActiveMask { .. }) => Some(Meeting::Warp),
            _ => None,
        }
    }
}

/// Returns whether some threads may wait for others that never come, unless those exit.
///
/// Threads that a branch parts take different ways until these meet again. If one way has a
/// meeting, the threads of the other way do not come to it. They go on, and may exit or come to
/// another barrier while they are waited for. At a warp operation only lanes of the same warp
/// matter. If every way to the end leads through a barrier of the whole block, the lanes that do
/// not come wait there instead of exiting. Threads that stop the launch leave nobody waiting.
pub(super) fn leaves_others_waiting(
    body: &Body,
    known: Known,
    meeting: &dyn Fn(&Op) -> Option<Meeting>,
    stops: &Stops,
) -> bool {
    let meetings: Vec<Option<Meeting>> =
        body.instructions.iter().map(|instruction| meeting(&instruction.op)).collect();
    if meetings.iter().all(Option::is_none) {
        return false;
    }
    let flow = Flow::of(body).without(&stops.reaching(body));
    let post = flow.post_dominators();
    let uniformity = Uniformity::of(body, &flow, &post, known);
    let exits = flow.reaching_end(&|at| body.instructions.get(at).is_some_and(gathers_block));
    let waits_in_vain = |decide: Same, meeting: Option<Meeting>, after: Option<usize>| match meeting {
        None => false,
        Some(Meeting::Block) => decide > Same::Block,
        Some(Meeting::Warp) => decide > Same::Warp && after.is_none_or(|after| exits[after]),
    };
    (0..body.instructions.len()).any(|at| {
        let decide = uniformity.decide(at);
        let parts = decide > Same::Block && flow.successors[at].len() > 1;
        waits_in_vain(decide, meetings[at], Some(at + 1))
            || parts
                && flow
                    .region(at, post[at])
                    .into_iter()
                    .any(|inside| waits_in_vain(decide, meetings.get(inside).copied().flatten(), post[at]))
    })
}

/// Returns whether no thread passes an instruction before all others of its block reach it.
pub(super) fn gathers_block(instruction: &Instruction) -> bool {
    let waits = |kind: &BarrierKind| !matches!(kind, BarrierKind::Arrive);
    instruction.guard.is_none()
        && matches!(&instruction.op, Op::Sync(SyncOp::Barrier { kind, threads: None, .. }) if waits(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer for a kernel with the index of the thread in `%i`, the number of a loop
    /// in `%n`, and predicates: `%p` differs between threads, `%w` between warps, `%b` between
    /// blocks.
    fn leaves_with(warps_along_x: bool, text: &str) -> bool {
        let source = format!(
            ".version 8.0 .target sm_80 .address_size 64 .entry k(.param .b32 n) {{ \
             .reg .pred %p, %w, %b, %q; .reg .b32 %i, %j, %n, %r, %s; .shared .b32 flag; \
             mov.u32 %i, %tid.x; mov.u32 %j, %ctaid.x; ld.param.b32 %n, [n]; \
             setp.gt.u32 %p, %i, 3; setp.ge.u32 %w, %i, 64; setp.eq.u32 %b, %j, %n; {text} }}"
        );
        let module = gridloom_ptx::parse(&source).unwrap();
        let (_, entry) = module.entry("k").unwrap();
        let known = Known { warps_along_x, is_entry: true };
        let stops = Stops::among(&module, &[]);
        leaves_others_waiting(entry.body.as_ref().unwrap(), known, &Meeting::of, &stops)
    }

    fn leaves(text: &str) -> bool {
        leaves_with(true, text)
    }

    #[test]
    fn an_early_return_before_a_barrier_leaves_others_waiting() {
        for branch in ["@%p ret;", "@%w ret;", "@%p exit;"] {
            assert!(leaves(&format!("{branch} bar.sync 0; ret;")));
            assert!(leaves(&format!("again: bar.sync 0; {branch} bra again;")));
        }
        assert!(leaves("@%p bra out; bar.sync 0; ret; out: ret;"));
        assert!(!leaves("@%b ret; bar.sync 0; ret;"));
    }

    #[test]
    fn a_barrier_that_some_skip_leaves_others_waiting() {
        for predicate in ["%p", "%w"] {
            assert!(leaves(&format!("@{predicate} bra out; bar.sync 0; out: ret;")));
            assert!(leaves(&format!("@{predicate} bra out; bar.sync 0; out: bar.sync 0; ret;")));
            assert!(leaves(&format!("@{predicate} bar.sync 0; ret;")));
            assert!(leaves(&format!("@{predicate} bar.sync 1, 64; ret;")));
        }
        assert!(!leaves("@%b bra out; bar.sync 0; out: ret;"));
        assert!(!leaves("@%b bar.sync 0; ret;"));
    }

    #[test]
    fn threads_that_stop_the_launch_leave_nobody_waiting() {
        assert!(!leaves("@%p bra bad; bar.sync 0; ret; bad: trap;"));
        assert!(!leaves("@%p bra bad; bar.sync 0; ret; bad: mov.u32 %r, 1; trap; ret;"));
        assert!(!leaves("@%p trap; bar.sync 0; ret;"));
        assert!(!leaves("again: @%p bra bad; bar.sync 0; @%b bra again; ret; bad: trap;"));
        assert!(leaves("@%p bra bad; bar.sync 0; ret; bad: @%w trap; ret;"));
        assert!(leaves("@%p ret; @%w bra bad; bar.sync 0; ret; bad: trap;"));
    }

    #[test]
    fn a_return_after_every_barrier_leaves_nobody_waiting() {
        assert!(!leaves("bar.sync 0; @%p ret; mov.u32 %r, 0; ret;"));
        assert!(!leaves("@%p ret; mov.u32 %r, 0; ret;"));
        assert!(!leaves(
            "@%p bra low; mov.u32 %r, 1; low: bar.sync 0; @%p bra out; mov.u32 %r, 2; out: ret;"
        ));
    }

    #[test]
    fn loops_of_as_many_passes_for_all_threads_leave_nobody_waiting() {
        let passes = "again: bar.sync 0; sub.u32 %r, %r, 1; setp.ne.u32 %q, %r, 0; @%q bra again; ret;";
        assert!(!leaves(&format!("mov.u32 %r, 5; {passes}")));
        assert!(!leaves(&format!("mov.u32 %r, %n; {passes}")));
        assert!(leaves(&format!("mov.u32 %r, %i; {passes}")));
        assert!(leaves(&format!("shr.u32 %r, %i, 5; {passes}")));
        assert!(leaves(&format!("mov.u32 %r, %n; @%p mov.u32 %r, 3; {passes}")));
        assert!(leaves(&format!("mov.u32 %r, 5; @%p bra low; mov.u32 %r, 3; low: {passes}")));
        // Threads leave the first loop with different numbers of passes.
        assert!(leaves(&format!(
            "mov.u32 %r, 0; first: add.u32 %r, %r, 1; setp.lt.u32 %q, %r, %i; @%q bra first; {passes}"
        )));
        let counted = "mov.u32 %r, %n; setp.gt.u32 %p, %i, %r;";
        assert!(leaves(&format!("{counted} spin: @%p ret; @%b bra spin; bar.sync 0; bra spin;")));
    }

    #[test]
    fn a_flag_in_shared_memory_that_nobody_writes_between_two_barriers_is_the_same_for_all() {
        let set = "@%p st.shared.b32 [flag], %i; bar.sync 0;";
        let read = "ld.shared.b32 %r, [flag]; setp.ne.u32 %q, %r, 0;";
        assert!(!leaves(&format!("{set} {read} bar.sync 0; @%q ret; bar.sync 0; ret;")));
        assert!(!leaves(&format!("{set} {read} @%q bra out; bar.sync 0; out: ret;")));
        assert!(!leaves(&format!("again: {set} {read} bar.sync 0; @%q bra again; ret;")));
        // A thread that is ahead sets it again.
        assert!(leaves(&format!("again: {set} {read} @%q bra again; ret;")));
        assert!(leaves(&format!("{set} {read} st.shared.b32 [flag], %j; @%q ret; bar.sync 0; ret;")));
        // Others write while some read.
        assert!(leaves(&format!(
            "{set} @%w bra other; {read} bra on; other: st.shared.b32 [flag], %j; on: bar.sync 0; @%q ret; \
             bar.sync 0; ret;"
        )));
        // Each reads a word of its own, or what nobody waited for.
        assert!(leaves(&format!(
            "{set} ld.shared.b32 %r, [%i]; setp.ne.u32 %q, %r, 0; @%q ret; bar.sync 0; ret;"
        )));
        assert!(leaves(&format!("{read} @%q ret; bar.sync 0; ret;")));
        assert!(leaves(&format!(
            "@%p st.shared.b32 [flag], %i; bar.sync 1, 32; {read} @%q ret; bar.sync 0; ret;"
        )));
    }

    #[test]
    fn warp_operations_count_only_the_lanes_of_a_warp() {
        let meet = "shfl.sync.bfly.b32 %s, %i, 1, 31, 0xffffffff;";
        assert!(leaves(&format!("@%p bra out; {meet} out: ret;")));
        assert!(leaves(&format!("@%p ret; {meet} ret;")));
        assert!(leaves("@%p bar.warp.sync 0xffffffff; ret;"));
        assert!(!leaves(&format!("@%w bra out; {meet} out: ret;")));
        assert!(!leaves(&format!("@%w ret; {meet} ret;")));
        // Lanes that skip it wait at the barrier.
        assert!(!leaves(&format!("@%p bra out; {meet} out: bar.sync 0; ret;")));
        assert!(leaves(&format!("@%p bra out; {meet} out: @%b bar.sync 0; ret;")));
        // Warps of blocks of other shapes do not follow the index along x.
        assert!(leaves_with(false, &format!("@%w bra out; {meet} out: ret;")));
        for (warp, whole) in [
            ("shr.u32 %r, %i, 5; setp.eq.u32 %q, %r, 1;", true),
            ("and.b32 %r, %i, 96; setp.eq.u32 %q, %r, 32;", true),
            ("div.u32 %r, %i, 64; setp.eq.u32 %q, %r, 1;", true),
            ("setp.le.u32 %q, %i, 31;", true),
            ("shr.u32 %r, %i, 4; setp.eq.u32 %q, %r, 1;", false),
            ("and.b32 %r, %i, 16; setp.eq.u32 %q, %r, 16;", false),
            ("setp.le.u32 %q, %i, 32;", false),
            ("setp.eq.u32 %q, %i, 32;", false),
            ("add.u32 %r, %i, 1; setp.lt.u32 %q, %r, 32;", false),
        ] {
            assert_eq!(!leaves(&format!("{warp} @%q bra out; {meet} out: ret;")), whole, "{warp}");
        }
    }
}
