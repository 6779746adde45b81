//! Sinks computations into the branch that uses them.
//!
//! An index is computed before the test whether it may be accessed. In the branch behind the test,
//! more is known about it.

use std::collections::HashMap;

use super::values::is_convergent;
use crate::ir::{Effect, Inst, Program, Reg, Stmt};

pub(super) fn run(program: &mut Program) {
    let mut writes = vec![0u32; program.regs.len()];
    count_writes(&program.body, &mut writes);
    sink(&mut program.body, &writes);
}

/// Counts how often each register is written.
pub(super) fn count_writes(list: &[Stmt], writes: &mut [u32]) {
    for stmt in list {
        if let Stmt::Inst(Inst { dst: Some(dst), .. }) = stmt {
            writes[dst.0 as usize] += 1;
        }
        stmt.inner().into_iter().for_each(|inner| count_writes(inner, writes));
    }
}

/// Where a register is read, in the statements behind its write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// In one branch of the statement at an index: whether in the first.
    Branch(usize, bool),
    Elsewhere,
}

fn note(uses: &mut HashMap<Reg, Use>, reg: Reg, at: Use) {
    uses.entry(reg)
        .and_modify(|before| {
            if *before != at {
                *before = Use::Elsewhere
            }
        })
        .or_insert(at);
}

fn reads_in(list: &[Stmt], visit: &mut impl FnMut(Reg)) {
    for stmt in list {
        stmt.reads(&mut |operand| operand.regs().for_each(&mut *visit));
        stmt.inner().into_iter().for_each(|inner| reads_in(inner, visit));
    }
}

fn sink(list: &mut Vec<Stmt>, writes: &[u32]) {
    let mut uses: HashMap<Reg, Use> = HashMap::new();
    // What goes to the start of a branch, the last first.
    let mut moved: HashMap<(usize, bool), Vec<Stmt>> = HashMap::new();
    let mut is_moved = vec![false; list.len()];
    for index in (0..list.len()).rev() {
        let stmt = &list[index];
        if let Stmt::Inst(inst) = stmt
            && let Some(dst) = inst.dst
            && can_move(inst, writes)
            && let Some(&Use::Branch(at, is_then)) = uses.get(&dst)
        {
            inst.args
                .iter()
                .flat_map(|arg| arg.regs())
                .for_each(|reg| note(&mut uses, reg, Use::Branch(at, is_then)));
            moved.entry((at, is_then)).or_default().push(stmt.clone());
            is_moved[index] = true;
            continue;
        }
        stmt.reads(&mut |operand| operand.regs().for_each(|reg| note(&mut uses, reg, Use::Elsewhere)));
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                reads_in(then, &mut |reg| note(&mut uses, reg, Use::Branch(index, true)));
                reads_in(otherwise, &mut |reg| note(&mut uses, reg, Use::Branch(index, false)));
            }
            other => {
                for inner in other.inner() {
                    reads_in(inner, &mut |reg| note(&mut uses, reg, Use::Elsewhere));
                }
            }
        }
    }
    let all = std::mem::take(list);
    for (index, (mut stmt, is_moved)) in all.into_iter().zip(is_moved).enumerate() {
        if is_moved {
            continue;
        }
        if let Stmt::If { then, otherwise, .. } = &mut stmt {
            for (branch, is_then) in [(then, true), (otherwise, false)] {
                if let Some(first) = moved.remove(&(index, is_then)) {
                    branch.splice(0..0, first.into_iter().rev());
                }
            }
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| sink(inner, writes));
        list.push(stmt);
    }
}

/// Returns whether an instruction gives the same value wherever it is: it reads nothing that
/// changes.
fn can_move(inst: &Inst, writes: &[u32]) -> bool {
    let is_fixed = |reg: Reg| writes[reg.0 as usize] <= 1;
    inst.effect == Effect::None
        && !inst.op.starts_with("ld.global")
        && !is_convergent(&inst.op)
        && inst.dst.is_some_and(is_fixed)
        && inst.args.iter().flat_map(|arg| arg.regs()).all(is_fixed)
}
