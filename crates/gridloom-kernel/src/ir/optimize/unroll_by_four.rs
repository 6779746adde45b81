//! Unrolls short loops by four.
//!
//! A loop that counts up to a bound, and does little in each pass, becomes two. The first does four
//! passes at once while at least four are left. The second is the original loop and does the rest.
//! Addresses and counters are then computed once for four passes, and loads of one pass need not
//! wait for those of the pass before.
//!
//! Each pass of the first loop states that its counter is below the bound, as the test of the
//! original loop would have shown.

use std::collections::HashMap;

use super::fold::held;
use super::values::{is_convergent, variables};
use super::{count, version::most_label};
use crate::ir::{Effect, Inst, Label, Operand, Program, Reg, Stmt, Ty};

/// How many passes are done at once.
const PASSES: u64 = 4;

/// The most statements of a pass.
const MOST: usize = 28;

/// Kernels with more statements are left alone.
const MOST_IN_ALL: usize = 2_000;

pub(super) fn run(program: &mut Program) {
    if count(&program.body) > MOST_IN_ALL {
        return;
    }
    let is_variable = variables(program);
    let mut body = std::mem::take(&mut program.body);
    let next_label = most_label(&body) + 1;
    Unroller { regs: &mut program.regs, is_variable, next_label }.list(&mut body);
    program.body = body;
}

/// A loop that counts up to a bound: while `counter < bound`.
struct Counted {
    counter: Operand,
    bound: Operand,
    suffix: &'static str,
    /// What is added to the counter after each pass.
    step: u64,
    /// Where the test is among the statements of the loop, and the value at which it leaves it.
    test: (usize, Operand, bool),
}

struct Unroller<'a> {
    regs: &'a mut Vec<Ty>,
    is_variable: Vec<bool>,
    next_label: u32,
}

impl Unroller<'_> {
    fn list(&mut self, list: &mut Vec<Stmt>) {
        for mut stmt in std::mem::take(list) {
            stmt.inner_mut().into_iter().flatten().for_each(|inner| self.list(inner));
            if let Stmt::Loop { label, body, step } = &stmt {
                self.unroll(list, *label, body, step);
            }
            list.push(stmt);
        }
    }

    fn is_var(&self, reg: Reg) -> bool {
        self.is_variable.get(reg.0 as usize).copied().unwrap_or(false)
    }

    fn unroll(&mut self, list: &mut Vec<Stmt>, label: Label, body: &[Stmt], step: &[Stmt]) {
        let size = count(body) + count(step);
        let mut but_first_test = body
            .iter()
            .enumerate()
            .filter(|(index, stmt)| {
                let first = body.iter().position(|stmt| matches!(stmt, Stmt::Break { .. }));
                Some(*index) != first || !matches!(stmt, Stmt::Break { when: Some(_), .. })
            })
            .map(|(_, stmt)| stmt);
        let is_plain = but_first_test.all(is_simple) && step.iter().all(is_simple);
        let loads = body.iter().any(|stmt| matches!(stmt, Stmt::Inst(inst) if inst.op.starts_with("ld.")));
        let Some(counted) = self.counted(label, body, step).filter(|_| is_plain && loads && size <= MOST)
        else {
            return;
        };
        let (test, cond, leaves_when) = counted.test;
        // The bound, before the loop.
        let mut before = Copied { unroller: self, regs: HashMap::new() };
        let first = body[..test].iter().map(|stmt| before.stmt(stmt)).collect::<Vec<_>>();
        let bound = before.operand(&counted.bound);
        list.extend(first);
        let (ty, is_signed) = (self.type_of(counted.suffix), counted.suffix.starts_with('s'));
        let ahead = (PASSES - 1) * counted.step;
        let smallest = if is_signed { -(1i128 << (ty.bits() - 1)) } else { 0 };
        let least = held(ty, smallest + i128::from(ahead));
        let most = self.compute(list, "max", counted.suffix, ty, vec![bound, Operand::Imm(ty, least)]);
        let limit = self.compute(list, "sub", counted.suffix, ty, vec![most, Operand::Imm(ty, ahead)]);
        let four = Label(self.next_label);
        self.next_label += 1;
        let mut passes = Vec::new();
        let go_on =
            self.compute(&mut passes, "setp.lt", counted.suffix, Ty::Bool, vec![counted.counter, limit]);
        passes.push(Stmt::Break { label: four, when: Some((go_on, false)) });
        // Passes after the first are computed from where the counters are now.
        for stmt in step {
            if let Stmt::Inst(Inst { dst: Some(dst), .. }) = stmt
                && self.is_var(*dst)
                && self.regs[dst.0 as usize].is_integer()
            {
                let ty = self.regs[dst.0 as usize];
                self.compute(&mut passes, "mov", ty.bit_suffix(), ty, vec![Operand::Reg(*dst)]);
            }
        }
        let mut last = Vec::new();
        for pass in 0..PASSES {
            let mut copy = Copied { unroller: self, regs: HashMap::new() };
            let head: Vec<Stmt> = body[..test].iter().map(|stmt| copy.stmt(stmt)).collect();
            let cond = copy.operand(&cond);
            let rest: Vec<Stmt> = body[test + 1..].iter().map(|stmt| copy.stmt(stmt)).collect();
            let behind: Vec<Stmt> = step.iter().map(|stmt| copy.stmt(stmt)).collect();
            passes.extend(head);
            let holds = match leaves_when {
                false => cond,
                true => self.compute(&mut passes, "not", "pred", Ty::Bool, vec![cond]),
            };
            passes.push(Stmt::Promise { cond: holds });
            passes.extend(rest);
            if pass + 1 < PASSES {
                passes.extend(behind);
            } else {
                last = behind;
            }
        }
        list.push(Stmt::Loop { label: four, body: passes, step: last });
    }

    fn type_of(&self, suffix: &str) -> Ty {
        match suffix {
            "u32" => Ty::U32,
            "s32" => Ty::I32,
            "u64" => Ty::U64,
            _ => Ty::I64,
        }
    }

    /// Returns how a loop counts, if it starts with a test of one variable, which only its step
    /// writes, against what it does not change.
    fn counted(&self, label: Label, body: &[Stmt], step: &[Stmt]) -> Option<Counted> {
        let test = body.iter().position(|stmt| !self.is_computation(stmt))?;
        let Stmt::Break { label: to, when: Some((cond @ Operand::Reg(cond_reg), leaves_when)) } = &body[test]
        else {
            return None;
        };
        if *to != label {
            return None;
        }
        let compare = definition(&body[..test], *cond_reg)?;
        let (counter, bound) = match (&*compare.op, leaves_when, &compare.args[..]) {
            ("setp.lt", false, &[a, b]) | ("setp.ge", true, &[a, b]) => (a, b),
            ("setp.gt", false, &[a, b]) | ("setp.le", true, &[a, b]) => (b, a),
            _ => return None,
        };
        let suffix = ["u32", "s32", "u64", "s64"].into_iter().find(|suffix| *suffix == compare.suffix)?;
        let Operand::Reg(variable) = counter else { return None };
        let mut writes = Vec::new();
        writes_of(body, variable, &mut writes);
        if !writes.is_empty() {
            return None;
        }
        writes_of(step, variable, &mut writes);
        let [write] = writes[..] else { return None };
        let is_at_top = step.iter().any(|stmt| matches!(stmt, Stmt::Inst(inst) if std::ptr::eq(inst, write)));
        let sum = match (&*write.op, &write.args[..]) {
            ("mov", [Operand::Reg(next)]) => {
                definition(step, *next).or_else(|| definition(&body[test + 1..], *next))?
            }
            _ => write,
        };
        let (&[Operand::Reg(from), Operand::Imm(_, by)], "add") = (&sum.args[..], &*sum.op) else {
            return None;
        };
        let is_step = from == variable && (1..=1 << 16).contains(&by) && sum.suffix.len() == 3;
        let is_same = sum.suffix[1..] == suffix[1..] && is_at_top && is_step;
        (is_same && self.is_unchanged(bound, &body[..test], body, step)).then_some(Counted {
            counter,
            bound,
            suffix,
            step: by,
            test: (test, *cond, *leaves_when),
        })
    }

    /// Returns whether a statement computes a value from others.
    fn is_computation(&self, stmt: &Stmt) -> bool {
        matches!(stmt, Stmt::Inst(inst) if inst.effect == Effect::None
            && !inst.op.starts_with("ld.global")
            && !is_convergent(&inst.op)
            && inst.dst.is_some_and(|dst| !self.is_var(dst)))
    }

    /// Returns whether an operand of the test is the same in every pass.
    fn is_unchanged(&self, operand: Operand, head: &[Stmt], body: &[Stmt], step: &[Stmt]) -> bool {
        operand.regs().all(|reg| match definition(head, reg) {
            Some(inst) => inst.args.iter().all(|arg| {
                !matches!(arg, Operand::Mem(mem) if mem.space != crate::ir::Space::Param)
                    && self.is_unchanged(*arg, head, body, step)
            }),
            None => {
                let mut writes = Vec::new();
                writes_of(body, reg, &mut writes);
                writes_of(step, reg, &mut writes);
                writes.is_empty()
            }
        })
    }

    fn compute(
        &mut self,
        list: &mut Vec<Stmt>,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        args: Vec<Operand>,
    ) -> Operand {
        self.regs.push(ty);
        let dst = Reg(self.regs.len() as u32 - 1);
        list.push(Stmt::Inst(Inst { op: op.into(), suffix, dst: Some(dst), args, effect: Effect::None }));
        Operand::Reg(dst)
    }
}

/// Returns whether a statement can be repeated, and that pays: no loop, nothing that threads come
/// to together, nothing slow, and no way out of the loop.
fn is_simple(stmt: &Stmt) -> bool {
    match stmt {
        // Beside a division, counting and testing cost nothing.
        Stmt::Inst(inst) => {
            let is_slow = ["div", "rem", "sqrt", "rcp"].iter().any(|name| inst.op.starts_with(name));
            !is_convergent(&inst.op) && !is_slow
        }
        Stmt::Check { .. } | Stmt::Promise { .. } => true,
        Stmt::If { then, otherwise, .. } => then.iter().chain(otherwise).all(is_simple),
        _ => false,
    }
}

/// Returns the instruction of a list that writes a register.
fn definition(list: &[Stmt], reg: Reg) -> Option<&Inst> {
    list.iter().find_map(|stmt| match stmt {
        Stmt::Inst(inst) if inst.dst == Some(reg) => Some(inst),
        _ => None,
    })
}

fn writes_of<'a>(list: &'a [Stmt], reg: Reg, into: &mut Vec<&'a Inst>) {
    for stmt in list {
        if let Stmt::Inst(inst) = stmt
            && inst.dst == Some(reg)
        {
            into.push(inst);
        }
        stmt.inner().into_iter().for_each(|inner| writes_of(inner, reg, into));
    }
}

/// A copy of statements with registers of its own for what is written once.
struct Copied<'a, 'b> {
    unroller: &'a mut Unroller<'b>,
    regs: HashMap<Reg, Reg>,
}

impl Copied<'_, '_> {
    fn operand(&self, operand: &Operand) -> Operand {
        super::unroll::renamed(operand, &self.regs)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Inst(inst) => {
                let args = inst.args.iter().map(|arg| self.operand(arg)).collect();
                let dst = inst.dst.map(|dst| {
                    if self.unroller.is_var(dst) {
                        return dst;
                    }
                    let regs = &mut *self.unroller.regs;
                    regs.push(regs[dst.0 as usize]);
                    let new = Reg(regs.len() as u32 - 1);
                    self.regs.insert(dst, new);
                    new
                });
                Stmt::Inst(Inst { args, dst, ..inst.clone() })
            }
            Stmt::Check { cond, fails_when, site } => {
                Stmt::Check { cond: self.operand(cond), fails_when: *fails_when, site: *site }
            }
            Stmt::Promise { cond } => Stmt::Promise { cond: self.operand(cond) },
            Stmt::If { cond, then, otherwise } => Stmt::If {
                cond: self.operand(cond),
                then: then.iter().map(|stmt| self.stmt(stmt)).collect(),
                otherwise: otherwise.iter().map(|stmt| self.stmt(stmt)).collect(),
            },
            other => other.clone(),
        }
    }
}
