//! Fuses products with the sums that they are added to, in kernels that ask for it.
//!
//! If nothing else reads a product, it is not rounded before the sum: `a * b + c` becomes `fma(a,
//! b, c)`. The last bit of the result may then differ from that of the host.

use std::collections::HashMap;

use crate::ir::{Effect, Inst, Operand, Program, Reg, Stmt, Ty};

pub(super) fn run(program: &mut Program) {
    let mut counts = Counts::default();
    counts.list(&program.body);
    let mut fuser = Fuser { regs: &mut program.regs, counts, products: HashMap::new() };
    let body = std::mem::take(&mut program.body);
    program.body = fuser.list(body);
}

/// How often each register is written, read, and read by a sum.
#[derive(Default)]
struct Counts {
    writes: HashMap<Reg, usize>,
    reads: HashMap<Reg, usize>,
    sums: HashMap<Reg, usize>,
}

impl Counts {
    fn list(&mut self, list: &[Stmt]) {
        for stmt in list {
            stmt.reads(&mut |operand| {
                operand.regs().for_each(|reg| *self.reads.entry(reg).or_default() += 1);
            });
            if let Stmt::Inst(inst) = stmt {
                if let Some(dst) = inst.dst {
                    *self.writes.entry(dst).or_default() += 1;
                }
                if matches!((&*inst.op, inst.suffix), ("add.rn" | "sub.rn", "f32" | "f64")) {
                    let regs = inst.args.iter().flat_map(Operand::regs);
                    regs.for_each(|reg| *self.sums.entry(reg).or_default() += 1);
                }
            }
            stmt.inner().into_iter().for_each(|inner| self.list(inner));
        }
    }

    /// Returns whether an operand has the same value wherever it is read.
    fn is_fixed(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Reg(reg) => self.writes.get(reg) == Some(&1),
            Operand::Imm(..) => true,
            _ => false,
        }
    }
}

struct Fuser<'a> {
    regs: &'a mut Vec<Ty>,
    counts: Counts,
    /// The factors of the products that can be fused.
    products: HashMap<Reg, [Operand; 2]>,
}

impl Fuser<'_> {
    fn list(&mut self, list: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(list.len());
        for mut stmt in list {
            for inner in stmt.inner_mut().into_iter().flatten() {
                *inner = self.list(std::mem::take(inner));
            }
            if let Stmt::Inst(inst) = &mut stmt
                && matches!(inst.suffix, "f32" | "f64")
            {
                self.inst(inst, &mut out);
            }
            out.push(stmt);
        }
        out
    }

    fn inst(&mut self, inst: &mut Inst, out: &mut Vec<Stmt>) {
        let &[a, b] = &inst.args[..] else { return };
        match &*inst.op {
            "mul.rn" => {
                if let Some(dst) = inst.dst
                    && self.counts.writes.get(&dst) == Some(&1)
                    && self.counts.reads.get(&dst) == self.counts.sums.get(&dst)
                    && [a, b].iter().all(|factor| self.counts.is_fixed(factor))
                {
                    self.products.insert(dst, [a, b]);
                }
            }
            "add.rn" => {
                let fused = self.factors(&a).map(|factors| (factors, b));
                if let Some(([x, y], rest)) = fused.or_else(|| Some((self.factors(&b)?, a))) {
                    inst.op = "fma.rn".into();
                    inst.args = vec![x, y, rest];
                }
            }
            "sub.rn" => {
                if let Some([x, y]) = self.factors(&a) {
                    let rest = self.negated(b, inst.suffix, out);
                    inst.op = "fma.rn".into();
                    inst.args = vec![x, y, rest];
                } else if let Some([x, y]) = self.factors(&b) {
                    // A number is negated for nothing.
                    let (x, y) = if matches!(y, Operand::Imm(..)) { (y, x) } else { (x, y) };
                    let x = self.negated(x, inst.suffix, out);
                    inst.op = "fma.rn".into();
                    inst.args = vec![y, x, a];
                }
            }
            _ => {}
        }
    }

    fn factors(&self, operand: &Operand) -> Option<[Operand; 2]> {
        match operand {
            Operand::Reg(reg) => self.products.get(reg).copied(),
            _ => None,
        }
    }

    fn negated(&mut self, operand: Operand, suffix: &'static str, out: &mut Vec<Stmt>) -> Operand {
        let ty = if suffix == "f32" { Ty::F32 } else { Ty::F64 };
        if let Operand::Imm(_, bits) = operand {
            return Operand::Imm(ty, bits ^ 1 << (ty.bits() - 1));
        }
        self.regs.push(ty);
        let dst = Reg(self.regs.len() as u32 - 1);
        let args = vec![operand];
        out.push(Stmt::Inst(Inst { op: "neg".into(), suffix, dst: Some(dst), args, effect: Effect::None }));
        Operand::Reg(dst)
    }
}
