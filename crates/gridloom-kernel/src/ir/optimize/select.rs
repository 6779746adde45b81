//! Replaces branches by selections between two values, where both sides are cheap to compute.

use std::collections::{HashMap, HashSet};

use crate::ir::{Base, Effect, Inst, Operand, Program, Reg, Space, Stmt, Ty};

/// The most that the two sides of a branch may cost to be computed both.
const MOST: usize = 12;

/// The most that one side may cost to be computed before the other one is branched to.
const FEW: usize = 4;

pub(super) fn run(program: &mut Program) {
    let mut body = std::mem::take(&mut program.body);
    Pass { regs: &mut program.regs }.list(&mut body);
    program.body = body;
}

struct Pass<'a> {
    regs: &'a mut Vec<Ty>,
}

/// Returns whether an instruction can be computed where its result may not be wanted, and its cost.
pub(super) fn cost(inst: &Inst) -> Option<usize> {
    let is_fixed = |mem: &Operand| match mem {
        Operand::Mem(mem) => {
            mem.space == Space::Param && matches!(mem.base, Base::Param(_)) && mem.index.is_none()
        }
        _ => true,
    };
    let is_pure = inst.effect == Effect::None && inst.dst.is_some() && inst.args.iter().all(is_fixed);
    if !is_pure || super::values::is_convergent(&inst.op) {
        return None;
    }
    Some(match &*inst.op {
        "mov" => 0,
        "div" | "rem" | "div.rn" | "rcp.rn" => 16,
        op if op.starts_with("sqrt") || op.contains("approx") || op.starts_with("rcp") => 8,
        _ => 1,
    })
}

/// The statements of one side: what it computes, and the last value of each variable it writes.
struct Side {
    computed: Vec<Stmt>,
    written: Vec<(Reg, Operand)>,
    cost: usize,
}

impl Pass<'_> {
    fn list(&mut self, list: &mut Vec<Stmt>) {
        let stmts = std::mem::take(list);
        // Which registers are written once, in these statements or before, is known by the passes
        // around: a register that both sides of a branch write is a variable.
        for mut stmt in stmts {
            stmt.inner_mut().into_iter().flatten().for_each(|inner| self.list(inner));
            match stmt {
                Stmt::If { cond, then, otherwise } => self.branch(list, cond, then, otherwise),
                other => list.push(other),
            }
        }
    }

    fn branch(&mut self, list: &mut Vec<Stmt>, cond: Operand, then: Vec<Stmt>, otherwise: Vec<Stmt>) {
        let sides = (self.side(&then, &otherwise), self.side(&otherwise, &then));
        match sides {
            (Some(a), Some(b)) if a.cost + b.cost <= MOST => {
                list.extend(a.computed);
                list.extend(b.computed);
                let (a, b): (HashMap<Reg, Operand>, HashMap<Reg, Operand>) =
                    (a.written.into_iter().collect(), b.written.into_iter().collect());
                let mut written: Vec<Reg> = a.keys().chain(b.keys()).copied().collect();
                written.sort_unstable_by_key(|reg| reg.0);
                written.dedup();
                let mut moves = Vec::new();
                for var in written {
                    let of =
                        |side: &HashMap<Reg, Operand>| side.get(&var).copied().unwrap_or(Operand::Reg(var));
                    let chosen = self.choose(list, cond, var, of(&a), of(&b));
                    moves.push(Stmt::Inst(self.moved(var, chosen)));
                }
                list.extend(moves);
            }
            // A cheap side is computed before the other one is branched to.
            (_, Some(b)) if !otherwise.is_empty() && b.cost <= FEW && self.is_before(&b, cond, &then) => {
                list.extend(b.computed);
                list.extend(b.written.iter().map(|(var, value)| Stmt::Inst(self.moved(*var, *value))));
                list.push(Stmt::If { cond, then, otherwise: Vec::new() });
            }
            (Some(a), _) if !then.is_empty() && a.cost <= FEW && self.is_before(&a, cond, &otherwise) => {
                list.extend(a.computed);
                list.extend(a.written.iter().map(|(var, value)| Stmt::Inst(self.moved(*var, *value))));
                list.push(Stmt::If { cond, then: Vec::new(), otherwise });
            }
            _ => list.push(Stmt::If { cond, then, otherwise }),
        }
    }

    /// Returns what one side of a branch does, if all of it can be done without harm where the
    /// other side is taken. Registers that the other side also writes are variables; so are those
    /// that this side writes by `mov`.
    fn side(&self, list: &[Stmt], other: &[Stmt]) -> Option<Side> {
        let mut elsewhere = HashSet::new();
        writes(other, &mut elsewhere);
        let mut result = Side { computed: Vec::new(), written: Vec::new(), cost: 0 };
        let mut values: HashMap<Reg, Operand> = HashMap::new();
        for stmt in list {
            let Stmt::Inst(inst) = stmt else { return None };
            result.cost += cost(inst)?;
            let dst = inst.dst?;
            if inst.args.iter().flat_map(Operand::regs).any(|reg| values.contains_key(&reg)) {
                return None;
            }
            let is_plain = matches!(inst.args[0], Operand::Reg(_) | Operand::Imm(..));
            if inst.op == "mov" && is_plain && self.is_same_class(inst) {
                if values.insert(dst, inst.args[0]).is_some() {
                    return None;
                }
                result.written.push((dst, inst.args[0]));
                result.cost += 1;
            } else if elsewhere.contains(&dst) || values.contains_key(&dst) {
                return None;
            } else {
                result.computed.push(stmt.clone());
            }
        }
        // What is computed is a value that is written once: a second write would be lost.
        let mut seen = HashSet::new();
        let is_single = result.computed.iter().all(|stmt| match stmt {
            Stmt::Inst(Inst { dst: Some(dst), .. }) => seen.insert(*dst),
            _ => false,
        });
        is_single.then_some(result)
    }

    /// Returns whether a `mov` keeps the class of its operand. Others give the bits of a number.
    fn is_same_class(&self, inst: &Inst) -> bool {
        let class = |reg: Reg| self.regs[reg.0 as usize].class();
        match (inst.dst, inst.args[0]) {
            (Some(dst), Operand::Reg(reg)) => class(dst) == class(reg),
            (Some(dst), Operand::Imm(ty, _)) => class(dst) == ty.class(),
            _ => false,
        }
    }

    /// Returns whether a side can be done before the branch: the other side, which writes all that
    /// this one does, reads nothing of it.
    fn is_before(&self, side: &Side, cond: Operand, other: &[Stmt]) -> bool {
        let written: HashSet<Reg> = side.written.iter().map(|(var, _)| *var).collect();
        let values_fit =
            side.written.iter().all(|(_, value)| value.regs().all(|reg| !written.contains(&reg)));
        let mut read = HashSet::new();
        reads(other, &mut read);
        let always = always_written(other);
        values_fit
            && cond.regs().all(|reg| !written.contains(&reg))
            && written.iter().all(|var| !read.contains(var) && always.contains(var))
    }

    fn moved(&self, var: Reg, value: Operand) -> Inst {
        let ty = self.regs[var.0 as usize];
        Inst {
            op: "mov".into(),
            suffix: ty.bit_suffix(),
            dst: Some(var),
            args: vec![value],
            effect: Effect::None,
        }
    }

    fn compute(
        &mut self,
        list: &mut Vec<Stmt>,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        args: &[Operand],
    ) -> Operand {
        self.regs.push(ty);
        let dst = Reg(self.regs.len() as u32 - 1);
        list.push(Stmt::Inst(Inst {
            op: op.into(),
            suffix,
            dst: Some(dst),
            args: args.to_vec(),
            effect: Effect::None,
        }));
        Operand::Reg(dst)
    }

    fn choose(&mut self, list: &mut Vec<Stmt>, cond: Operand, var: Reg, a: Operand, b: Operand) -> Operand {
        let ty = self.regs[var.0 as usize];
        if a == b {
            // Another variable that is written at the same time may be read.
            return match a {
                Operand::Reg(_) => self.compute(list, "mov", ty.bit_suffix(), ty, &[a]),
                other => other,
            };
        }
        if ty != Ty::Bool {
            return self.compute(list, "selp", ty.bit_suffix(), ty, &[a, b, cond]);
        }
        let known = |operand: Operand| match operand {
            Operand::Imm(_, bits) => Some(bits != 0),
            _ => None,
        };
        match (known(a), known(b)) {
            (Some(true), _) => self.compute(list, "or", "pred", ty, &[cond, b]),
            (_, Some(false)) => self.compute(list, "and", "pred", ty, &[cond, a]),
            (Some(false), _) => {
                let not = self.compute(list, "not", "pred", ty, &[cond]);
                self.compute(list, "and", "pred", ty, &[not, b])
            }
            (_, Some(true)) => {
                let not = self.compute(list, "not", "pred", ty, &[cond]);
                self.compute(list, "or", "pred", ty, &[not, a])
            }
            _ => {
                let not = self.compute(list, "not", "pred", ty, &[cond]);
                let first = self.compute(list, "and", "pred", ty, &[cond, a]);
                let second = self.compute(list, "and", "pred", ty, &[not, b]);
                self.compute(list, "or", "pred", ty, &[first, second])
            }
        }
    }
}

fn writes(list: &[Stmt], into: &mut HashSet<Reg>) {
    for stmt in list {
        if let Stmt::Inst(Inst { dst: Some(dst), .. }) = stmt {
            into.insert(*dst);
        }
        stmt.inner().into_iter().for_each(|inner| writes(inner, into));
    }
}

fn reads(list: &[Stmt], into: &mut HashSet<Reg>) {
    for stmt in list {
        stmt.reads(&mut |operand| into.extend(operand.regs()));
        stmt.inner().into_iter().for_each(|inner| reads(inner, into));
    }
}

/// Returns the registers that statements write wherever they are left.
fn always_written(list: &[Stmt]) -> HashSet<Reg> {
    let mut all = HashSet::new();
    for stmt in list {
        match stmt {
            Stmt::Inst(Inst { dst: Some(dst), .. }) => {
                all.insert(*dst);
            }
            // What follows may not be reached.
            Stmt::If { then, otherwise, .. } if jumps(then) || jumps(otherwise) => break,
            Stmt::If { then, otherwise, .. } => {
                let (a, b) = (always_written(then), always_written(otherwise));
                all.extend(a.intersection(&b));
            }
            Stmt::Break { .. } | Stmt::Continue(_) => break,
            Stmt::Block { .. } | Stmt::Loop { .. } => break,
            _ => {}
        }
    }
    all
}

/// Returns whether statements can go elsewhere than to their end.
fn jumps(list: &[Stmt]) -> bool {
    list.iter().any(|stmt| {
        matches!(stmt, Stmt::Break { .. } | Stmt::Continue(_)) || stmt.inner().into_iter().any(jumps)
    })
}
