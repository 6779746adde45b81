//! Makes a recorded kernel fast. Every pass keeps what the kernel computes, and whether a check
//! fails. All but [`merge`] keep which check fails first.
//!
//! | pass | what it does |
//! |---|---|
//! | [`structure`] | turns blocks that are left into branches, and removes jumps to the next statement |
//! | [`values`] | computes each value once, folds constants, drops checks that cannot fail, computes in 32 bits what fits, unrolls short loops |
//! | [`select`] | chooses between values instead of branching where that is cheap |
//! | [`merge`] | checks neighbouring indices at once |
//! | [`sink`] | computes values in the branch that uses them |
//! | [`liveness`] | removes what nobody reads |
//! | [`version`] | adds a second version of the kernel for launches of ordinary size, which computes in 32 bits |

mod addresses;
mod compact;
mod conditions;
mod facts;
mod fold;
mod liveness;
mod merge;
mod range;
mod ranges;
mod rules;
mod select;
mod sink;
mod structure;
mod unroll;
mod values;
mod version;

use super::{Operand, Program, Stmt, Ty};

/// How often the passes are repeated: each makes work for the others.
const ROUNDS: usize = 3;

/// Kernels with more statements are left as they were recorded.
const MOST: usize = 20_000;

pub(crate) fn optimize(program: &mut Program) {
    remove_questions(&mut program.body);
    if count(&program.body) > MOST {
        return;
    }
    apply_shape(&mut program.body, program.rules.dimensions.unwrap_or(3));
    let recorded = program.clone();
    run_passes(program);
    let cost = version::cost_of(program);
    if let Some(mut both) = version::versioned(&recorded, cost) {
        run_passes(&mut both);
        // The second version has to be worth the code that it is.
        if version::small_version(&both).is_some_and(|small| version::cost(small) * 2 <= cost) {
            *program = both;
        }
    }
    compact::run(program);
}

/// Gives the places and sizes along the axes that no launch has their values. Every launch is
/// checked against the rules of the kernel.
fn apply_shape(list: &mut [Stmt], dimensions: u32) {
    for stmt in list {
        if let Stmt::Inst(inst) = stmt
            && let [arg] = &mut inst.args[..]
            && let Operand::Special(name) = *arg
        {
            let is_absent = name.ends_with(".y") && dimensions < 2 || name.ends_with(".z") && dimensions < 3;
            if is_absent {
                *arg = Operand::Imm(Ty::U32, name.starts_with("%n").into());
            }
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| apply_shape(inner, dimensions));
    }
}

fn run_passes(program: &mut Program) {
    structure::run(&mut program.body);
    for _ in 0..ROUNDS {
        values::run(program);
        structure::run(&mut program.body);
        liveness::run(program);
        select::run(program);
        sink::run(program);
    }
    merge::run(program);
    values::run(program);
    structure::run(&mut program.body);
    liveness::run(program);
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
