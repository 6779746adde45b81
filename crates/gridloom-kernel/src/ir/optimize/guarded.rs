//! Moves checks out of short branches.
//!
//! `if c { check a; load }` becomes `check !c || a; if c { load }`. What is left in the branch has no
//! way out of the kernel, so that the load becomes a conditional instruction, and the check joins its
//! neighbours ([`combine`](super::combine)). What the check needs is computed before the branch too:
//! it has no effect, and nobody looks at it where the branch is not taken.
//!
//! A CPU runs the threads of a warp in step. It tests once for all of them whether they take a
//! branch that depends on their places alone, and the check once more inside. For a CPU, only the
//! branches change whose conditions come from memory.

use super::sink::count_writes;
use super::values::is_convergent;
use crate::ir::{Effect, Inst, Operand, Program, Reg, Space, Stmt, Target, Ty};

/// The most that the computations of one branch may cost to be done always.
const MOST: usize = 10;

/// The most statements that may be left in the branch.
const REST: usize = 12;

pub(super) fn run(program: &mut Program) {
    let mut writes = vec![0u32; program.regs.len()];
    count_writes(&program.body, &mut writes);
    let sources = (program.target != Target::Gpu).then(|| from_memory(program));
    let mut body = std::mem::take(&mut program.body);
    Pass { sources, writes, regs: &mut program.regs }.list(&mut body);
    program.body = body;
}

/// How often values are followed around loops.
const PASSES: usize = 8;

/// Returns for each register whether its value comes from memory.
fn from_memory(program: &Program) -> Vec<bool> {
    fn mark(list: &[Stmt], found: &mut [bool]) -> bool {
        let mut is_changed = false;
        for stmt in list {
            if let Stmt::Inst(inst) = stmt
                && let Some(Reg(dst)) = inst.dst
                && !found[dst as usize]
            {
                let is_memory = |arg: &Operand| matches!(arg, Operand::Mem(mem) if mem.space != Space::Param);
                found[dst as usize] = inst.args.iter().any(is_memory)
                    || inst.args.iter().flat_map(Operand::regs).any(|Reg(reg)| found[reg as usize]);
                is_changed |= found[dst as usize];
            }
            for inner in stmt.inner() {
                is_changed |= mark(inner, found);
            }
        }
        is_changed
    }
    let mut found = vec![false; program.regs.len()];
    // A pass of a loop hands values on to the next. What takes more passes is rare.
    for _ in 0..PASSES {
        if !mark(&program.body, &mut found) {
            break;
        }
    }
    found
}

struct Pass<'a> {
    /// The registers that the conditions of branches that change come from, unless it is any.
    sources: Option<Vec<bool>>,
    writes: Vec<u32>,
    regs: &'a mut Vec<Ty>,
}

impl Pass<'_> {
    fn list(&mut self, list: &mut Vec<Stmt>) {
        for mut stmt in std::mem::take(list) {
            stmt.inner_mut().into_iter().flatten().for_each(|inner| self.list(inner));
            match stmt {
                Stmt::If { cond, then, otherwise } if otherwise.is_empty() => self.branch(list, cond, then),
                other => list.push(other),
            }
        }
    }

    fn branch(&mut self, list: &mut Vec<Stmt>, cond: Operand, mut then: Vec<Stmt>) {
        let count = self.leading(&then);
        let rest = then.split_off(count);
        let is_short = rest.len() <= REST && rest.iter().all(is_plain);
        let comes_from =
            |sources: &Vec<bool>| cond.regs().any(|Reg(reg)| sources.get(reg as usize) == Some(&true));
        if count == 0 || !is_short || !self.sources.as_ref().is_none_or(comes_from) {
            then.extend(rest);
            list.push(Stmt::If { cond, then, otherwise: Vec::new() });
            return;
        }
        let skipped = self.compute(list, "not", vec![cond]);
        for stmt in then {
            let Stmt::Check { cond, fails_when, site } = stmt else {
                list.push(stmt);
                continue;
            };
            let holds = if fails_when { self.compute(list, "not", vec![cond]) } else { cond };
            let cond = self.compute(list, "or", vec![skipped, holds]);
            list.push(Stmt::Check { cond, fails_when: false, site });
        }
        if !rest.is_empty() {
            list.push(Stmt::If { cond, then: rest, otherwise: Vec::new() });
        }
    }

    /// Returns how many statements at the start end with a check and can be done always.
    fn leading(&self, then: &[Stmt]) -> usize {
        let (mut count, mut cost) = (0, 0);
        for (index, stmt) in then.iter().enumerate() {
            match stmt {
                Stmt::Check { .. } => count = index + 1,
                Stmt::Inst(inst) => match self.cost(inst) {
                    Some(more) => cost += more,
                    None => break,
                },
                _ => break,
            }
            if cost > MOST {
                break;
            }
        }
        count
    }

    /// Returns what an instruction costs, if it can be done where the branch is not taken.
    fn cost(&self, inst: &Inst) -> Option<usize> {
        let is_memory = |arg: &Operand| matches!(arg, Operand::Mem(mem) if mem.space != Space::Param);
        let is_single = inst.dst.is_some_and(|dst| self.writes.get(dst.0 as usize) == Some(&1));
        let is_pure =
            inst.effect == Effect::None && !inst.args.iter().any(is_memory) && !is_convergent(&inst.op);
        if !is_single || !is_pure {
            return None;
        }
        match &*inst.op {
            "div" | "rem" => None,
            "mul.hi" => Some(4),
            _ => Some(1),
        }
    }

    fn compute(&mut self, list: &mut Vec<Stmt>, op: &'static str, args: Vec<Operand>) -> Operand {
        self.regs.push(Ty::Bool);
        let dst = Reg(self.regs.len() as u32 - 1);
        let inst = Inst { op: op.into(), suffix: "pred", dst: Some(dst), args, effect: Effect::None };
        list.push(Stmt::Inst(inst));
        Operand::Reg(dst)
    }
}

/// Returns whether a statement can become conditional instructions.
pub(super) fn is_plain(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Inst(inst) if !is_convergent(&inst.op) && !inst.op.starts_with("div") && !inst.op.starts_with("rem"))
}
