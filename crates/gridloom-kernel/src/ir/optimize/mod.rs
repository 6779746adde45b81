//! Makes a recorded kernel fast. Every pass keeps what the kernel computes, and which check fails
//! first.
//!
//! | pass | what it does |
//! |---|---|
//! | [`structure`] | turns blocks that are left into branches, and removes jumps to the next statement |
//! | [`values`] | computes each value once, folds constants, drops checks that cannot fail, computes in 32 bits what fits, unrolls short loops |
//! | [`select`] | chooses between values instead of branching where that is cheap |
//! | [`liveness`] | removes what nobody reads |

mod compact;
mod fold;
mod liveness;
mod range;
mod rules;
mod select;
mod structure;
mod unroll;
mod values;

use super::{Program, Stmt};

/// How often the passes are repeated: each makes work for the others.
const ROUNDS: usize = 3;

/// Kernels with more statements are left as they were recorded.
const MOST: usize = 20_000;

pub(crate) fn optimize(program: &mut Program) {
    remove_questions(&mut program.body);
    if count(&program.body) > MOST {
        return;
    }
    structure::run(&mut program.body);
    for _ in 0..ROUNDS {
        values::run(program);
        structure::run(&mut program.body);
        liveness::run(program);
        select::run(program);
    }
    values::run(program);
    structure::run(&mut program.body);
    liveness::run(program);
    compact::run(program);
}

/// Removes what was asked of the kernel, and checked before.
fn remove_questions(list: &mut Vec<Stmt>) {
    list.retain(|stmt| !matches!(stmt, Stmt::SameForAll { .. } | Stmt::Reached { .. }));
    for stmt in list {
        stmt.inner_mut().into_iter().flatten().for_each(remove_questions);
    }
}

/// Returns how many statements there are.
fn count(list: &[Stmt]) -> usize {
    list.iter().map(|stmt| 1 + stmt.inner().into_iter().map(count).sum::<usize>()).sum()
}

/// Returns whether statements end with a jump, so that what follows is not reached.
fn ends(list: &[Stmt]) -> bool {
    match list.last() {
        Some(Stmt::Break { when: None, .. } | Stmt::Continue(_) | Stmt::Exit | Stmt::Fail(_)) => true,
        Some(Stmt::If { then, otherwise, .. }) => ends(then) && ends(otherwise),
        _ => false,
    }
}
