//! Merges checks of neighbouring indices into one.
//!
//! An unrolled loop checks `x + 0`, `x + 1`, `x + 2` and so on against the same bound. One check of
//! the greatest index, in place of the first check, fails if any of them would. What a failed
//! launch has written is unspecified, so a check may come earlier. It stays before the accesses
//! that it guards.

use std::collections::HashMap;

use crate::ir::{Effect, Inst, Operand, Program, Reg, Site, Stmt, Ty};

/// As many checks are worth one more instruction.
const FEWEST: usize = 3;

pub(super) fn run(program: &mut Program) {
    let mut writes = vec![0u32; program.regs.len()];
    super::sink::count_writes(&program.body, &mut writes);
    let mut body = std::mem::take(&mut program.body);
    merge(&mut body, &writes, program);
    program.body = body;
}

/// A check that a register and a number together are below another number.
#[derive(Clone, Copy)]
struct Bound {
    base: Reg,
    plus: u64,
    below: u64,
}

fn merge(list: &mut Vec<Stmt>, writes: &[u32], program: &mut Program) {
    // The instructions of this list that compute what is compared.
    let mut sums: HashMap<Reg, (Reg, u64)> = HashMap::new();
    let mut tests: HashMap<Reg, Bound> = HashMap::new();
    let mut groups: HashMap<(Reg, u64, Site), Vec<(usize, u64)>> = HashMap::new();
    let mut merged: Vec<(usize, Bound, Site)> = Vec::new();
    let is_fixed = |reg: Reg| writes.get(reg.0 as usize).is_some_and(|count| *count <= 1);
    let mut finish = |groups: &mut HashMap<(Reg, u64, Site), Vec<(usize, u64)>>| {
        for ((base, below, site), members) in groups.drain() {
            let Some(most) = members.iter().map(|(_, plus)| *plus).max() else { continue };
            let first = members[0].0;
            // With x itself below n, no sum wraps around.
            let is_exact = members.iter().any(|(_, plus)| *plus == 0) && below + most <= u64::from(u32::MAX);
            if members.len() >= FEWEST && below > most && is_exact {
                merged.push((first, Bound { base, plus: most, below }, site));
            }
        }
    };
    for (index, stmt) in list.iter().enumerate() {
        match stmt {
            Stmt::Inst(inst) => {
                if inst.effect == Effect::Store || super::values::is_convergent(&inst.op) {
                    finish(&mut groups);
                }
                let Some(dst) = inst.dst.filter(|&dst| is_fixed(dst)) else { continue };
                match (&*inst.op, inst.suffix, &inst.args[..]) {
                    ("add", "u32", &[Operand::Reg(base), Operand::Imm(_, plus)])
                        if is_fixed(base) && plus < 1 << 20 =>
                    {
                        sums.insert(dst, (base, plus));
                    }
                    ("setp.lt", "u32", &[Operand::Reg(value), Operand::Imm(_, below)]) if is_fixed(value) => {
                        let (base, plus) = sums.get(&value).copied().unwrap_or((value, 0));
                        tests.insert(dst, Bound { base, plus, below });
                    }
                    _ => {}
                }
            }
            Stmt::Check { cond: Operand::Reg(cond), fails_when: false, site } => {
                if let Some(bound) = tests.get(cond) {
                    groups.entry((bound.base, bound.below, *site)).or_default().push((index, bound.plus));
                }
            }
            Stmt::Check { .. } => {}
            _ => finish(&mut groups),
        }
    }
    finish(&mut groups);
    merged.sort_by_key(|(index, ..)| *index);
    for (index, bound, site) in merged.into_iter().rev() {
        // x + most < n, as x < n - most.
        program.regs.push(Ty::Bool);
        let cond = Reg(program.regs.len() as u32 - 1);
        let args = vec![Operand::Reg(bound.base), Operand::Imm(Ty::U32, bound.below - bound.plus)];
        let test = Inst { op: "setp.lt".into(), suffix: "u32", dst: Some(cond), args, effect: Effect::None };
        list.splice(
            index..index,
            [Stmt::Inst(test), Stmt::Check { cond: Operand::Reg(cond), fails_when: false, site }],
        );
    }
    for stmt in list {
        stmt.inner_mut().into_iter().flatten().for_each(|inner| merge(inner, writes, program));
    }
}
