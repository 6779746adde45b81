//! Renumbers the remaining registers without gaps.

use crate::ir::{Base, Inst, Operand, Program, Reg, Stmt};

pub(super) fn run(program: &mut Program) {
    let mut numbers = vec![None; program.regs.len()];
    let mut regs = Vec::new();
    let mut body = std::mem::take(&mut program.body);
    list(&mut body, &mut |reg| {
        let index = reg.0 as usize;
        let new = *numbers[index].get_or_insert_with(|| {
            regs.push(program.regs[index]);
            Reg(regs.len() as u32 - 1)
        });
        *reg = new;
    });
    program.body = body;
    program.regs = regs;
    // They were needed to look for threads that diverge.
    program.same_in_warp.clear();
}

fn operand(operand: &mut Operand, visit: &mut impl FnMut(&mut Reg)) {
    match operand {
        Operand::Reg(reg) => visit(reg),
        Operand::Mem(mem) => {
            if let Base::Reg(reg) = &mut mem.base {
                visit(reg);
            }
            if let Some(reg) = &mut mem.index {
                visit(reg);
            }
        }
        Operand::Imm(..) | Operand::Special(_) | Operand::Address(_) => {}
    }
}

fn list(stmts: &mut [Stmt], visit: &mut impl FnMut(&mut Reg)) {
    for stmt in stmts {
        match stmt {
            Stmt::Inst(Inst { dst, args, .. }) => {
                args.iter_mut().for_each(|arg| operand(arg, visit));
                if let Some(dst) = dst {
                    visit(dst);
                }
            }
            Stmt::Check { cond, .. } | Stmt::Promise { cond } | Stmt::If { cond, .. } => operand(cond, visit),
            Stmt::Break { when: Some((cond, _)), .. } => operand(cond, visit),
            Stmt::SameForAll { value, .. } => operand(value, visit),
            Stmt::SetCondition { handle, value } => {
                operand(handle, visit);
                operand(value, visit);
            }
            _ => {}
        }
        stmt.inner_mut().into_iter().flatten().for_each(|inner| list(inner, visit));
    }
}
