//! Value numbering of statements: branches, loops, and jumps out of them.

use std::collections::HashSet;
use std::rc::Rc;

use super::{Arg, Expr, Number, Pass, Undo, is_convergent};
use crate::ir::optimize::range::Range;
use crate::ir::{Effect, Inst, Label, Operand, Reg, Stmt, Ty};

/// Trials of loops inside of loops are repeated for each loop around: so many are nested at most.
const MOST_TRIALS: usize = 3;

/// How often variables are assumed not to grow in a loop.
const MOST_GUESSES: usize = 3;

impl Pass<'_> {
    /// Goes through a list. Returns it, and whether its end is reached.
    pub(super) fn in_list(&mut self, list: Vec<Stmt>) -> (Vec<Stmt>, bool) {
        let outer = std::mem::take(&mut self.out);
        let mark = self.undo.len();
        let reached = self.list(list);
        self.undo_to(mark);
        (std::mem::replace(&mut self.out, outer), reached)
    }

    pub(super) fn list(&mut self, list: Vec<Stmt>) -> bool {
        list.into_iter().all(|stmt| self.stmt(stmt))
    }

    /// Goes through a statement. Returns whether what follows is reached.
    pub(super) fn stmt(&mut self, stmt: Stmt) -> bool {
        match stmt {
            Stmt::Inst(inst) => {
                self.inst(inst);
                true
            }
            Stmt::Check { cond, fails_when, site } => {
                let Some(number) = self.value(&cond) else { return true };
                match self.truth(number) {
                    Some(truth) if truth == fails_when => {
                        self.out.push(Stmt::Fail(site));
                        false
                    }
                    Some(_) => true,
                    None => {
                        let cond = self.operand(number).unwrap_or(cond);
                        self.out.push(Stmt::Check { cond, fails_when, site });
                        self.assume(number, !fails_when);
                        true
                    }
                }
            }
            Stmt::Promise { cond } => {
                let Some(number) = self.value(&cond) else { return true };
                if self.truth(number).is_none() {
                    let cond = self.operand(number).unwrap_or(cond);
                    self.out.push(Stmt::Promise { cond });
                    self.assume(number, true);
                }
                true
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise),
            Stmt::Block { label, body } => {
                let (body, reached) = self.in_list(body);
                let mut join = self.left.remove(&label);
                if reached {
                    join = Some(self.join(join));
                }
                self.out.push(Stmt::Block { label, body });
                match join {
                    Some(join) => {
                        self.meet(join);
                        true
                    }
                    None => false,
                }
            }
            Stmt::Loop { label, body, step } => self.repeat(label, body, step),
            Stmt::Break { label, when: None } => {
                let join = self.left.remove(&label);
                let join = self.join(join);
                self.left.insert(label, join);
                self.out.push(Stmt::Break { label, when: None });
                false
            }
            Stmt::Break { label, when: Some((cond, when)) } => {
                let Some(number) = self.value(&cond) else { return true };
                match self.truth(number) {
                    Some(truth) if truth == when => self.stmt(Stmt::Break { label, when: None }),
                    Some(_) => true,
                    None => {
                        let cond = self.operand(number).unwrap_or(cond);
                        let mark = self.undo.len();
                        self.assume(number, when);
                        let join = self.left.remove(&label);
                        let join = self.join(join);
                        self.left.insert(label, join);
                        self.undo_to(mark);
                        self.out.push(Stmt::Break { label, when: Some((cond, when)) });
                        self.assume(number, !when);
                        true
                    }
                }
            }
            Stmt::Continue(label) => {
                let join = self.continued.remove(&label);
                let join = self.join(join);
                self.continued.insert(label, join);
                self.out.push(Stmt::Continue(label));
                false
            }
            Stmt::Exit | Stmt::Fail(_) => {
                self.out.push(stmt);
                false
            }
            Stmt::SetCondition { handle, value } => {
                let handle = self.replaced(&handle);
                let value = self.replaced(&value);
                self.out.push(Stmt::SetCondition { handle, value });
                true
            }
            Stmt::SameForAll { .. } | Stmt::Reached { .. } | Stmt::Barrier | Stmt::Print { .. } => {
                self.out.push(stmt);
                true
            }
        }
    }

    pub(super) fn replaced(&mut self, operand: &Operand) -> Operand {
        let number = self.value(operand);
        number.and_then(|number| self.operand(number)).unwrap_or(*operand)
    }

    pub(super) fn inst(&mut self, inst: Inst) {
        let args: Vec<Arg> = inst.args.iter().map(|arg| self.arg(arg)).collect();
        let Some(dst) = inst.dst else {
            let operands = self.operands(&args).unwrap_or(inst.args.clone());
            self.out.push(Stmt::Inst(Inst { args: operands, ..inst }));
            return;
        };
        let ty = self.regs[dst.0 as usize];
        let is_var = self.var_index[dst.0 as usize].is_some();
        let is_pure = inst.effect == Effect::None && !is_convergent(&inst.op);
        if is_pure {
            let home = if is_var { None } else { Some(dst) };
            let number = match (&*inst.op, &args[..]) {
                ("mov", [Arg::Value(number)]) if self.ty(*number).class() == ty.class() => Some(*number),
                _ => self.make(inst.op.clone(), inst.suffix, ty, args.clone(), home),
            };
            if let Some(number) = number
                && self.is_usable(number)
            {
                return if is_var { self.write_var(dst, number) } else { self.alias(dst, ty, number) };
            }
        }
        // Computed as it is.
        let operands = self.operands(&args).unwrap_or(inst.args.clone());
        let range = loaded(&inst, ty);
        let number = self.opaque(ty, range);
        if is_var {
            let value = self.new_reg(ty);
            self.out.push(Stmt::Inst(Inst { args: operands, dst: Some(value), ..inst }));
            self.give_home(number, value);
            self.of_reg[value.0 as usize] = Some(number);
            self.write_var(dst, number);
        } else {
            self.out.push(Stmt::Inst(Inst { args: operands, ..inst }));
            self.give_home(number, dst);
            self.of_reg[dst.0 as usize] = Some(number);
        }
    }

    /// Notes that a register has a value that is known.
    pub(super) fn alias(&mut self, dst: Reg, ty: Ty, number: Number) {
        self.of_reg[dst.0 as usize] = Some(number);
        let value = &self.values[number as usize];
        if value.constant.is_none() && value.home.is_none() && !self.copies.contains_key(&number) {
            // A variable has it, and may be written before this register is read.
            if let Some(holder) = self.holder(number) {
                self.push_mov(dst, ty, Operand::Reg(holder));
                self.copies.insert(number, dst);
                self.undo.push(Undo::Copy(number));
            }
        }
    }

    pub(super) fn branch(&mut self, cond: Operand, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> bool {
        let Some(number) = self.value(&cond) else { return true };
        if let Some(truth) = self.truth(number) {
            return self.list(if truth { then } else { otherwise });
        }
        let cond = self.operand(number).unwrap_or(cond);
        let before = self.now.clone();
        let mut join = None;
        let mut lists = Vec::new();
        let mut ends = Vec::new();
        for (side, truth) in [(then, true), (otherwise, false)] {
            self.now[..before.len()].copy_from_slice(&before);
            self.forget_new(before.len());
            let outer = std::mem::take(&mut self.out);
            let mark = self.undo.len();
            self.assume(number, truth);
            let reached = self.list(side);
            if reached {
                join = Some(self.join(join));
            }
            self.undo_to(mark);
            lists.push(std::mem::replace(&mut self.out, outer));
            ends.push(reached);
        }
        let otherwise = lists.pop().unwrap_or_default();
        let then = lists.pop().unwrap_or_default();
        self.out.push(Stmt::If { cond, then, otherwise });
        let Some(join) = join else { return false };
        self.meet(join);
        match ends[..] {
            [true, false] => self.assume(number, true),
            [false, true] => self.assume(number, false),
            _ => {}
        }
        true
    }

    pub(super) fn repeat(&mut self, label: Label, body: Vec<Stmt>, step: Vec<Stmt>) -> bool {
        if !self.is_trial
            && let Some(unrolled) = self.unrolled(label, &body, &step)
        {
            return self.stmt(unrolled);
        }
        let mut written = HashSet::new();
        written_in(&body, &mut written);
        written_in(&step, &mut written);
        let written: Vec<usize> =
            (0..self.vars.len()).filter(|&index| written.contains(&self.vars[index])).collect();
        let start: Vec<Range> = written.iter().map(|&index| self.range_now(index)).collect();
        let unknown = vec![None; written.len()];
        let back = (self.loops < MOST_TRIALS).then(|| self.trial(label, &body, &step, &written, &unknown));
        let ranges: Vec<Option<Range>> = match back {
            Some(Some(back)) => {
                let ranges = start.iter().zip(&back).map(|(start, back)| Some(start.or(*back))).collect();
                self.without_growth(label, &body, &step, &written, &start, ranges)
            }
            // It is not repeated.
            Some(None) => start.iter().copied().map(Some).collect(),
            None => unknown,
        };
        let is_integer = |pass: &Self, index: usize| pass.regs[pass.vars[index].0 as usize].is_integer();
        let mut halves = Vec::new();
        for (&index, range) in written.iter().zip(&ranges) {
            let reg = self.vars[index];
            let range = range.filter(|_| is_integer(self, index));
            let fits = range.is_some_and(|range| range.is_in(Range::of_bits(32, false)));
            if self.regs[reg.0 as usize] == Ty::U64
                && fits
                && !self.halves.contains_key(&reg)
                && let Some(low) = self.low_half(self.now[index])
                && self.is_usable(low)
            {
                let half = self.new_reg(Ty::U32);
                self.add_var(half);
                self.write_var(half, low);
                self.halves.insert(reg, half);
                halves.push(reg);
            }
        }
        self.at_head(&written, &ranges);
        self.loops += 1;
        let (body, step) = self.once(label, body, step).0;
        self.loops -= 1;
        for reg in halves {
            self.halves.remove(&reg);
        }
        self.out.push(Stmt::Loop { label, body, step });
        match self.left.remove(&label) {
            Some(join) => {
                self.meet(join);
                true
            }
            None => false,
        }
    }

    /// Finds variables that a loop does not make greater than they were before it. Each is assumed
    /// to be one, and a pass of the loop shows which are, if all are.
    fn without_growth(
        &mut self,
        label: Label,
        body: &[Stmt],
        step: &[Stmt],
        written: &[usize],
        start: &[Range],
        ranges: Vec<Option<Range>>,
    ) -> Vec<Option<Range>> {
        let word = Range::of_bits(32, false);
        let mut assumed: Vec<Option<Range>> = (0..written.len())
            .map(|place| {
                let reg = self.vars[written[place]];
                let is_wide = ranges[place].is_none_or(|range| !range.is_in(word));
                let is_candidate =
                    self.regs[reg.0 as usize] == Ty::U64 && is_wide && start[place].is_in(word);
                is_candidate.then(|| Range::new(0, start[place].high))
            })
            .collect();
        for _ in 0..MOST_GUESSES {
            if assumed.iter().all(Option::is_none) {
                break;
            }
            let heads: Vec<Option<Range>> =
                assumed.iter().zip(&ranges).map(|(assumed, range)| assumed.or(*range)).collect();
            let Some(back) = self.trial(label, body, step, written, &heads) else { break };
            let mut holds = true;
            for (assumed, back) in assumed.iter_mut().zip(&back) {
                if assumed.is_some_and(|range| !back.is_in(range)) {
                    *assumed = None;
                    holds = false;
                }
            }
            if holds {
                return heads;
            }
        }
        ranges
    }

    /// Gives the written variables new values, as at the start of a pass of a loop.
    pub(super) fn at_head(&mut self, written: &[usize], ranges: &[Option<Range>]) {
        for (&index, range) in written.iter().zip(ranges) {
            let reg = self.vars[index];
            let is_integer = self.regs[reg.0 as usize].is_integer();
            let number = self.fresh(reg, range.filter(|_| is_integer));
            self.now[index] = number;
            let fits = range.is_some_and(|range| range.is_in(Range::of_bits(32, false)));
            if let Some(&half) = self.halves.get(&reg) {
                let low = self.fresh(half, range.filter(|_| fits));
                if let Some(half_index) = self.var_index[half.0 as usize] {
                    self.now[half_index] = low;
                }
                if fits {
                    let expr = Expr { op: "cvt".into(), suffix: "u64.u32", args: vec![Arg::Value(low)] };
                    self.values[number as usize].expr = Some(Rc::new(expr));
                }
            }
        }
    }

    /// Goes through a pass of a loop. Returns its statements, and whether there is a next pass;
    /// then the variables are those at its end.
    pub(super) fn once(
        &mut self,
        label: Label,
        body: Vec<Stmt>,
        step: Vec<Stmt>,
    ) -> ((Vec<Stmt>, Vec<Stmt>), bool) {
        let outer = std::mem::take(&mut self.out);
        let mark = self.undo.len();
        let reached = self.list(body);
        let mut join = self.continued.remove(&label);
        if reached {
            join = Some(self.join(join));
        }
        self.undo_to(mark);
        let body = std::mem::take(&mut self.out);
        let again = match join {
            Some(join) => {
                self.meet(join);
                self.list(step)
            }
            None => false,
        };
        // The ranges at the end are read before what is known of them is undone.
        let ends =
            if again { Some((0..self.now.len()).map(|index| self.range_now(index)).collect()) } else { None };
        self.ends = ends;
        self.undo_to(mark);
        ((body, std::mem::replace(&mut self.out, outer)), again)
    }

    /// Goes through a pass of a loop without keeping it. Returns the ranges of variables at its
    /// end, if there is a next pass.
    pub(super) fn trial(
        &mut self,
        label: Label,
        body: &[Stmt],
        step: &[Stmt],
        written: &[usize],
        heads: &[Option<Range>],
    ) -> Option<Vec<Range>> {
        let was_trial = std::mem::replace(&mut self.is_trial, true);
        let now = self.now.clone();
        let of_reg = self.of_reg.clone();
        let joins = (std::mem::take(&mut self.left), std::mem::take(&mut self.continued));
        let halves = std::mem::take(&mut self.halves);
        let mark = self.undo.len();
        let statements = self.statements;
        self.at_head(written, heads);
        self.loops += 1;
        let (_, again) = self.once(label, body.to_vec(), step.to_vec());
        self.loops -= 1;
        let ends = self.ends.take();
        self.undo_to(mark);
        (self.left, self.continued) = joins;
        self.halves = halves;
        self.statements = statements;
        self.now[..now.len()].copy_from_slice(&now);
        self.forget_new(now.len());
        self.of_reg[..of_reg.len()].copy_from_slice(&of_reg);
        self.is_trial = was_trial;
        let ends = ends.filter(|_| again)?;
        Some(written.iter().map(|&index| ends[index]).collect())
    }
}

/// Returns the range of what an instruction loads.
fn loaded(inst: &Inst, ty: Ty) -> Option<Range> {
    if !inst.op.starts_with("ld") || !ty.is_integer() {
        return None;
    }
    match inst.suffix {
        "u8" => Some(Range::of_bits(8, false)),
        "u16" => Some(Range::of_bits(16, false)),
        "s8" => Some(Range::of_bits(8, true)),
        "s16" => Some(Range::of_bits(16, true)),
        _ => None,
    }
}

/// Collects the registers that statements write.
fn written_in(list: &[Stmt], into: &mut HashSet<Reg>) {
    for stmt in list {
        if let Stmt::Inst(Inst { dst: Some(dst), .. }) = stmt {
            into.insert(*dst);
        }
        stmt.inner().into_iter().for_each(|inner| written_in(inner, into));
    }
}
