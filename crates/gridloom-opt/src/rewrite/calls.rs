//! Properties of a kernel that follow from the functions that it calls.

use gridloom_ptx::op::{CallTarget, ControlOp, Op};
use gridloom_ptx::{Body, Module, SymbolId};
use rustc_hash::FxHashSet;

use super::meetings::Meeting;

/// Returns whether a function that is called from here may call itself. `open` has the functions
/// that called this one, and `done` those that are known not to.
pub(super) fn is_recursive(
    module: &Module,
    body: &Body,
    open: &mut Vec<SymbolId>,
    done: &mut FxHashSet<SymbolId>,
) -> bool {
    body.instructions.iter().any(|instruction| {
        let Op::Control(ControlOp::Call { target: CallTarget::Direct(id), .. }) = &instruction.op else {
            return false;
        };
        if open.contains(id) {
            return true;
        }
        let called = module.function(*id).and_then(|function| function.body.as_ref());
        let Some(called) = called.filter(|_| !done.contains(id)) else { return false };
        open.push(*id);
        let found = is_recursive(module, called, open, done);
        open.pop();
        done.insert(*id);
        found
    })
}

/// Returns the threads that wait for each other in a function or in one that it calls.
pub(super) fn meeting_inside(
    module: &Module,
    id: SymbolId,
    seen: &mut FxHashSet<SymbolId>,
) -> Option<Meeting> {
    if !seen.insert(id) {
        return None;
    }
    let body = module.function(id).and_then(|function| function.body.as_ref())?;
    let inside = |op: &Op| match op {
        Op::Control(ControlOp::Call { target: CallTarget::Direct(id), .. }) => {
            meeting_inside(module, *id, seen)
        }
        op => Meeting::of(op),
    };
    body.instructions.iter().map(|instruction| &instruction.op).filter_map(inside).max()
}
