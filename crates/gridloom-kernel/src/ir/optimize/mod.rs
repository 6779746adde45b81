//! Makes a recorded kernel fast. Every pass keeps what the kernel computes, and whether a check
//! fails. All but [`merge`] keep which check fails first.
//!
//! | pass | what it does |
//! |---|---|
//! | [`structure`] | turns blocks that are left into branches, and removes jumps to the next statement |
//! | [`values`] | computes each value once, folds constants, drops checks that cannot fail, computes in 32 bits what fits, unrolls short loops |
//! | [`select`] | chooses between values instead of branching where that is cheap |
//! | [`unroll_by_four`] | does four passes of a short loop at once |
//! | [`merge`] | checks neighbouring indices at once |
//! | [`guarded`] | moves checks out of short branches that threads take apart from each other |
//! | [`combine`] | makes checks that follow each other one branch, on GPUs |
//! | [`sink`] | computes values in the branch that uses them |
//! | [`fuse`] | fuses products with sums, in kernels that ask for it |
//! | [`liveness`] | removes what nobody reads |
//! | [`atomics`] | lets atomic operations return nothing where nobody reads it |
//! | [`version`] | adds a second version of the kernel for launches of ordinary size and shape, which computes in 32 bits on GPUs |

mod addresses;
mod atomics;
mod combine;
mod compact;
mod conditions;
mod facts;
mod fold;
mod fuse;
mod guarded;
mod liveness;
mod merge;
mod range;
mod ranges;
mod rules;
mod select;
mod sink;
mod structure;
#[cfg(test)]
mod tests;
mod unroll;
mod unroll_by_four;
mod values;
mod version;

use super::{Operand, Program, ShapeRules, Stmt, Target, Ty};

pub(crate) use values::variables;

/// How often the passes are repeated: each makes work for the others.
const ROUNDS: usize = 3;

/// Kernels with more statements are left as they were recorded. Beyond this size, no loop is unrolled
/// and no condition is negated part by part.
const MOST: usize = 20_000;

pub(crate) fn optimize(program: &mut Program) {
    remove_questions(&mut program.body);
    if count(&program.body) > MOST {
        return;
    }
    apply_shape(&mut program.body, &program.rules);
    let recorded = program.clone();
    run_passes(program);
    let cost = version::cost_of(program);
    if let Some(mut both) = version::versioned(&recorded, cost) {
        run_passes(&mut both);
        // The second version has to be worth the code that it is.
        let is_worth = |small| version::cost(small) * 2 <= cost;
        if program.target == Target::Any || version::small_version(&both).is_some_and(is_worth) {
            *program = both;
        }
    }
    compact::run(program);
}

/// Gives places and sizes that are the same in every launch their values. Every launch is checked
/// against the rules of the kernel.
fn apply_shape(list: &mut [Stmt], rules: &ShapeRules) {
    for stmt in list {
        if let Stmt::Inst(inst) = stmt
            && let [arg] = &mut inst.args[..]
            && let Operand::Special(name) = *arg
            && let Some(value) = fixed_special(name, rules)
        {
            *arg = Operand::Imm(Ty::U32, value.into());
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| apply_shape(inner, rules));
    }
}

/// Returns the value of a special register in every launch that the rules allow, if there is one.
fn fixed_special(name: &str, rules: &ShapeRules) -> Option<u32> {
    let (register, axis) = name.split_once('.')?;
    let axis = match axis {
        "x" => 0,
        "y" => 1,
        "z" => 2,
        _ => return None,
    };
    let is_absent = axis >= rules.dimensions.unwrap_or(3) as usize;
    let size = rules.block.map(|block| block[axis]);
    match register {
        "%ntid" => size.or(is_absent.then_some(1)),
        "%tid" => (is_absent || size == Some(1)).then_some(0),
        "%nctaid" => is_absent.then_some(1),
        "%ctaid" => is_absent.then_some(0),
        _ => None,
    }
}

fn run_passes(program: &mut Program) {
    structure::run(&mut program.body);
    for round in 0..ROUNDS {
        // What the last round computes is what is left: nothing is computed for promises alone.
        if round == ROUNDS - 1 {
            remove_promises(&mut program.body);
        }
        values::run(program);
        structure::run(&mut program.body);
        liveness::run(program);
        select::run(program);
        sink::run(program);
    }
    unroll_by_four::run(program);
    values::run(program);
    merge::run(program);
    if program.is_fused {
        fuse::run(program);
    }
    values::run(program);
    structure::run(&mut program.body);
    remove_promises(&mut program.body);
    liveness::run(program);
    guarded::run(program);
    // A GPU skips over few instructions as fast as over one branch. A CPU tests each check once for
    // many threads, but computes a combination of checks for each.
    if program.target == Target::Gpu {
        combine::run(program);
    }
    atomics::run(program);
}

/// Removes what was asked of the kernel, and checked before.
fn remove_questions(list: &mut Vec<Stmt>) {
    list.retain(|stmt| !matches!(stmt, Stmt::SameForAll { .. } | Stmt::Reached { .. }));
    for stmt in list {
        stmt.inner_mut().into_iter().flatten().for_each(remove_questions);
    }
}

/// Removes promises, which the passes before have used.
fn remove_promises(list: &mut Vec<Stmt>) {
    list.retain(|stmt| !matches!(stmt, Stmt::Promise { .. }));
    for stmt in list {
        stmt.inner_mut().into_iter().flatten().for_each(remove_promises);
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
