//! Loads from shared memory that give all threads of a block the same value.
//!
//! After a barrier of the whole block, nobody writes shared memory until the next one. Then every
//! thread that reads the same word in between reads the same value. Kernels decide like that about
//! another pass of a loop: a thread writes a flag, all wait, all read it, and all wait again.

use gridloom_ptx::Body;
use gridloom_ptx::Space;
use gridloom_ptx::op::{AtomicOp, ControlOp, MemoryOp, Op, SyncOp};

use super::flow::Flow;
use super::meetings::gathers_block;

/// Returns for each instruction whether it is such a load. All threads must come to the same
/// barriers in the same order.
pub(super) fn settled_loads(body: &Body, flow: &Flow) -> Vec<bool> {
    let instructions = &body.instructions;
    let is_load = |at: usize| match &instructions[at].op {
        Op::Memory(MemoryOp::Ld { access, .. }) => matches!(access.space, Space::Shared | Space::SharedCta),
        _ => false,
    };
    let gathers: Vec<bool> = instructions.iter().map(gathers_block).collect();
    // Whether nobody writes between a barrier and those that follow it.
    let mut quiet: Vec<Option<bool>> = vec![None; instructions.len()];
    let mut is_quiet_after = |barrier: usize| {
        *quiet[barrier].get_or_insert_with(|| {
            let mut seen = vec![false; instructions.len()];
            let mut open = flow.successors[barrier].clone();
            while let Some(at) = open.pop() {
                if at >= instructions.len() || std::mem::replace(&mut seen[at], true) || gathers[at] {
                    continue;
                }
                if may_write(&instructions[at].op) {
                    return false;
                }
                open.extend(&flow.successors[at]);
            }
            true
        })
    };
    let mut settled = vec![false; instructions.len()];
    for (load, is_settled) in settled.iter_mut().enumerate().filter(|(at, _)| is_load(*at)) {
        let mut seen = vec![false; instructions.len()];
        let mut open = vec![load];
        *is_settled = true;
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let before = flow.before(at);
            // What a block finds at its start is not the same for all.
            let starts = at == 0;
            let ok = |&before: &usize| !gathers[before] || is_quiet_after(before);
            if starts || !before.iter().all(ok) {
                *is_settled = false;
                break;
            }
            open.extend(before.iter().filter(|&&before| !gathers[before]));
        }
    }
    settled
}

/// Returns whether an instruction may write shared memory.
fn may_write(op: &Op) -> bool {
    let is_elsewhere = |space: Space| {
        matches!(
            space,
            Space::Global | Space::Local | Space::Const | Space::Param | Space::ParamEntry | Space::ParamFunc
        )
    };
    match op {
        Op::Int(_) | Op::Bits(_) | Op::Float(_) | Op::Compare(_) | Op::Convert(_) | Op::Warp(_) => false,
        Op::Memory(MemoryOp::Ld { .. } | MemoryOp::Ldu { .. } | MemoryOp::Prefetch { .. }) => false,
        Op::Memory(MemoryOp::St { access, .. }) => !is_elsewhere(access.space),
        Op::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => !is_elsewhere(rmw.space),
        Op::Sync(
            SyncOp::Barrier { .. }
            | SyncOp::WarpBarrier { .. }
            | SyncOp::Membar { .. }
            | SyncOp::Fence { .. },
        ) => false,
        Op::Control(ControlOp::Call { .. }) => true,
        Op::Control(_) => false,
        Op::Memory(_) | Op::Sync(_) | Op::Unsupported(_) => true,
    }
}
