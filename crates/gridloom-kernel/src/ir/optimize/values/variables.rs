//! The values of variables, from write to write and where control-flow paths join.

use super::{Join, Number, Pass};
use crate::ir::optimize::range::Range;
use crate::ir::{Effect, Inst, Operand, Reg, Stmt, Ty};

impl Pass<'_> {
    pub(super) fn write_var(&mut self, reg: Reg, number: Number) {
        let Some(index) = self.var_index[reg.0 as usize] else { return };
        if self.now[index] == number {
            return;
        }
        let Some(operand) = self.operand(number) else { return };
        let ty = self.regs[reg.0 as usize];
        self.push_mov(reg, ty, operand);
        self.now[index] = number;
        let holders = self.holders.entry(number).or_default();
        if !holders.contains(&reg) {
            holders.push(reg);
        }
        if let Some(&half) = self.halves.get(&reg) {
            match self.low_half(number).filter(|&low| self.is_usable(low)) {
                Some(low) => self.write_var(half, low),
                // The half is always that of the variable.
                None => self.write_half(half, reg),
            }
        }
    }

    /// Writes the low half of a variable from the variable itself.
    pub(super) fn write_half(&mut self, half: Reg, reg: Reg) {
        self.out.push(Stmt::Inst(Inst {
            op: "cvt".into(),
            suffix: "u32.u64",
            dst: Some(half),
            args: vec![Operand::Reg(reg)],
            effect: Effect::None,
        }));
        if let Some(index) = self.var_index[half.0 as usize] {
            self.now[index] = self.fresh(half, None);
        }
    }

    /// Returns the present range of a variable, read by the sign of its type.
    pub(super) fn range_now(&self, index: usize) -> Range {
        self.range_in(self.now[index], self.regs[self.vars[index].0 as usize])
    }

    pub(super) fn push_mov(&mut self, dst: Reg, ty: Ty, value: Operand) {
        self.out.push(Stmt::Inst(Inst {
            op: "mov".into(),
            suffix: ty.bit_suffix(),
            dst: Some(dst),
            args: vec![value],
            effect: Effect::None,
        }));
    }

    /// Adds the variables as they are now to those that come to a place.
    pub(super) fn join(&mut self, into: Option<Join>) -> Join {
        let ranges: Vec<Option<Range>> = self
            .now
            .iter()
            .zip(&self.vars)
            .map(|(&number, reg)| {
                let ty = self.regs[reg.0 as usize];
                ty.is_integer().then(|| self.range_in(number, ty))
            })
            .collect();
        match into {
            None => Join { values: self.now.clone(), differs: vec![false; self.now.len()], ranges },
            Some(mut join) => {
                for (index, range) in ranges.into_iter().enumerate().take(join.values.len()) {
                    join.differs[index] |= join.values[index] != self.now[index];
                    join.ranges[index] = match (join.ranges[index], range) {
                        (Some(a), Some(b)) => Some(a.or(b)),
                        _ => None,
                    };
                }
                join
            }
        }
    }

    /// Goes on where several ways have met.
    pub(super) fn meet(&mut self, join: Join) {
        self.forget_new(join.values.len());
        for index in 0..join.values.len() {
            let reg = self.vars[index];
            if join.differs[index] {
                self.now[index] = self.fresh(reg, join.ranges[index]);
            } else {
                self.now[index] = join.values[index];
                if let Some(range) = join.ranges[index] {
                    self.limit_in(join.values[index], range, self.regs[reg.0 as usize]);
                }
            }
        }
    }

    /// Forgets the values of variables that were added after the first so many.
    pub(super) fn forget_new(&mut self, count: usize) {
        for index in count..self.now.len() {
            self.now[index] = self.fresh(self.vars[index], None);
        }
    }

    /// Returns a new value that a variable has.
    pub(super) fn fresh(&mut self, reg: Reg, range: Option<Range>) -> Number {
        let number = self.opaque(self.regs[reg.0 as usize], range);
        self.holders.entry(number).or_default().push(reg);
        number
    }
}
