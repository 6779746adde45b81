//! Unrolls loops with few passes.

use std::collections::HashMap;

use super::fold;
use super::values::Pass;
use crate::ir::{Base, Effect, Inst, Label, Mem, Operand, Reg, Stmt, Ty};

/// The most passes of a loop that is unrolled, and the most statements that it may become.
const MOST_PASSES: usize = 32;
const MOST_STATEMENTS: usize = 400;

impl Pass<'_> {
    /// Returns a loop as its passes one after the other, if their number is known and small.
    pub(super) fn unrolled(&mut self, label: Label, body: &[Stmt], step: &[Stmt]) -> Option<Stmt> {
        let passes = self.passes(label, body, step)?;
        let size = super::count(body) + super::count(step);
        if passes > MOST_PASSES || passes * size > MOST_STATEMENTS {
            return None;
        }
        // The copies of the loops inside are unrolled next. Each level multiplies, so that the
        // limit of one loop does not limit all.
        if !self.can_grow(passes * (size + 1)) {
            return None;
        }
        let mut all = Vec::new();
        for _ in 0..passes {
            let end = self.new_label();
            let mut copy =
                Copied { pass: self, regs: HashMap::new(), labels: HashMap::new(), next: (label, end) };
            let pass = copy.list(body);
            let behind = copy.list(step);
            all.push(Stmt::Block { label: end, body: pass });
            all.extend(behind);
        }
        Some(Stmt::Block { label, body: all })
    }

    /// Returns how many passes a loop has, where one variable that starts with a known number
    /// decides.
    fn passes(&mut self, label: Label, body: &[Stmt], step: &[Stmt]) -> Option<usize> {
        let mut definitions = HashMap::new();
        let mut writes = HashMap::new();
        for (list, is_step) in [(body, false), (step, true)] {
            collect(list, is_step, true, self, &mut definitions, &mut writes);
        }
        // What comes before the test is done once more than the rest of a pass: nothing may be seen
        // of it behind the loop.
        let is_plain = |stmt: &Stmt| matches!(stmt, Stmt::Inst(Inst { dst: Some(dst), effect: Effect::None | Effect::Load, .. }) if !self.is_var(*dst));
        let test = body.iter().position(|stmt| !is_plain(stmt))?;
        let Stmt::Break { label: to, when: Some((Operand::Reg(cond), when)) } = &body[test] else {
            return None;
        };
        if *to != label {
            return None;
        }
        let mut counter = None;
        self.find_counter(&definitions, &writes, *cond, 0, &mut counter)?;
        let counter = counter?;
        // Written once, between two passes, from itself.
        let &(Some(next), 1) = writes.get(&counter)? else { return None };
        let mut same = Some(counter);
        self.find_counter(&definitions, &writes, next, 0, &mut same)?;
        let (start, highest) = match self.known_now(counter) {
            Some(start) => (start, None),
            // The smallest start has the most passes. Each keeps its test.
            None if self.counts_up(&definitions, (*cond, *when), next, counter) => {
                let range = self.range_of_reg(counter);
                (u64::try_from(range.low).ok()?, Some(range.high))
            }
            None => return None,
        };
        let mut now = start;
        for passes in 0..=MOST_PASSES {
            let holds = self.evaluate(&definitions, Operand::Reg(*cond), (counter, now), 0)? != 0;
            if holds == *when {
                // No start may count past the greatest number.
                let counted = i128::from(now) - i128::from(start);
                let most = (1i128 << self.ty_of(counter).bits()) - 1;
                return highest.is_none_or(|highest| highest + counted <= most).then_some(passes);
            }
            let next = self.evaluate(&definitions, Operand::Reg(next), (counter, now), 0)?;
            if highest.is_some() && next <= now {
                return None;
            }
            now = next;
        }
        None
    }

    /// Returns whether a loop adds a number to its counter until that reaches a bound.
    fn counts_up(
        &mut self,
        definitions: &HashMap<Reg, Inst>,
        (cond, when): (Reg, bool),
        next: Reg,
        counter: Reg,
    ) -> bool {
        let is_unsigned = matches!(self.ty_of(counter), Ty::U32 | Ty::U64);
        let (Some(test), Some(sum)) = (definitions.get(&cond), definitions.get(&next)) else { return false };
        let is_bound =
            matches!((&*test.op, when), ("setp.lt" | "setp.le", false) | ("setp.ge" | "setp.gt", true))
                && matches!(test.suffix, "u32" | "u64");
        let (&[left, right], &[one, other]) = (&test.args[..], &sum.args[..]) else { return false };
        is_unsigned
            && is_bound
            && sum.op == "add"
            && matches!(sum.suffix, "u32" | "u64")
            && self.is_counter(definitions, left, counter)
            && self.is_counter(definitions, one, counter)
            && [right, other].into_iter().all(|operand| match operand {
                Operand::Reg(reg) => !definitions.contains_key(&reg) && self.known_now(reg).is_some(),
                Operand::Imm(..) => true,
                _ => false,
            })
    }

    /// Returns whether an operand is the counter of a loop itself.
    fn is_counter(&self, definitions: &HashMap<Reg, Inst>, operand: Operand, counter: Reg) -> bool {
        let Operand::Reg(reg) = operand else { return false };
        reg == counter
            || definitions
                .get(&reg)
                .is_some_and(|inst| inst.op == "mov" && inst.args[..] == [Operand::Reg(counter)])
    }

    /// Finds the one variable of the loop that a register depends on.
    fn find_counter(
        &mut self,
        definitions: &HashMap<Reg, Inst>,
        writes: &HashMap<Reg, (Option<Reg>, usize)>,
        reg: Reg,
        depth: usize,
        counter: &mut Option<Reg>,
    ) -> Option<()> {
        if depth > 8 {
            return None;
        }
        if writes.contains_key(&reg) {
            return (*counter.get_or_insert(reg) == reg).then_some(());
        }
        match definitions.get(&reg) {
            Some(inst) => {
                for arg in inst.args.clone() {
                    match arg {
                        Operand::Reg(reg) => {
                            self.find_counter(definitions, writes, reg, depth + 1, counter)?
                        }
                        Operand::Imm(..) => {}
                        _ => return None,
                    }
                }
                Some(())
            }
            None => self.known_now(reg).map(|_| ()),
        }
    }

    fn evaluate(
        &mut self,
        definitions: &HashMap<Reg, Inst>,
        operand: Operand,
        (counter, now): (Reg, u64),
        depth: usize,
    ) -> Option<u64> {
        match operand {
            Operand::Imm(_, bits) => Some(bits),
            Operand::Reg(reg) if reg == counter => Some(now),
            Operand::Reg(reg) => match definitions.get(&reg) {
                None => self.known_now(reg),
                Some(inst) if depth < 8 => {
                    let mut args = Vec::new();
                    for arg in &inst.args {
                        args.push(self.evaluate(definitions, *arg, (counter, now), depth + 1)?);
                    }
                    if inst.op == "mov" {
                        return args.first().copied();
                    }
                    fold::fold(&inst.op, inst.suffix, self.ty_of(reg), &args)
                }
                Some(_) => None,
            },
            _ => None,
        }
    }
}

/// Collects the instructions that compute values of a loop, and the writes of its variables: from
/// which register, if it is one write in the step of the loop itself, and how many.
fn collect(
    list: &[Stmt],
    is_step: bool,
    is_top: bool,
    pass: &Pass<'_>,
    definitions: &mut HashMap<Reg, Inst>,
    writes: &mut HashMap<Reg, (Option<Reg>, usize)>,
) {
    for stmt in list {
        if let Stmt::Inst(inst) = stmt
            && let Some(dst) = inst.dst
        {
            if pass.is_var(dst) {
                let from = match inst.args.first() {
                    Some(Operand::Reg(reg)) if inst.op == "mov" && is_step && is_top => Some(*reg),
                    _ => None,
                };
                let entry = writes.entry(dst).or_insert((from, 0));
                entry.0 = if entry.1 == 0 { from } else { None };
                entry.1 += 1;
            } else {
                definitions.insert(dst, inst.clone());
            }
        }
        stmt.inner().into_iter().for_each(|inner| collect(inner, is_step, false, pass, definitions, writes));
    }
}

fn renamed_in_place(mem: Mem, regs: &HashMap<Reg, Reg>) -> Mem {
    let of = |reg: Reg| regs.get(&reg).copied().unwrap_or(reg);
    let base = match mem.base {
        Base::Reg(reg) => Base::Reg(of(reg)),
        other => other,
    };
    Mem { base, index: mem.index.map(of), ..mem }
}

/// Returns an operand with other registers.
pub(super) fn renamed(operand: &Operand, regs: &HashMap<Reg, Reg>) -> Operand {
    match *operand {
        Operand::Reg(reg) => Operand::Reg(regs.get(&reg).copied().unwrap_or(reg)),
        Operand::Mem(mem) => Operand::Mem(renamed_in_place(mem, regs)),
        other => other,
    }
}

/// A copy of statements with registers and labels of its own.
struct Copied<'a, 'b> {
    pass: &'a mut Pass<'b>,
    regs: HashMap<Reg, Reg>,
    labels: HashMap<Label, Label>,
    /// The loop that is copied, and the block that its step follows.
    next: (Label, Label),
}

impl Copied<'_, '_> {
    fn list(&mut self, list: &[Stmt]) -> Vec<Stmt> {
        list.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn label(&self, label: Label) -> Label {
        self.labels.get(&label).copied().unwrap_or(label)
    }

    fn mem(&self, mem: Mem) -> Mem {
        renamed_in_place(mem, &self.regs)
    }

    fn operand(&self, operand: &Operand) -> Operand {
        renamed(operand, &self.regs)
    }

    fn new_label(&mut self, label: Label) -> Label {
        let new = self.pass.new_label();
        self.labels.insert(label, new);
        new
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Inst(inst) => {
                let args = inst.args.iter().map(|arg| self.operand(arg)).collect();
                let dst = inst.dst.map(|dst| {
                    if self.pass.is_var(dst) {
                        return dst;
                    }
                    let new = self.pass.new_reg(self.pass.ty_of(dst));
                    self.regs.insert(dst, new);
                    new
                });
                Stmt::Inst(Inst { args, dst, ..inst.clone() })
            }
            Stmt::Check { cond, fails_when, site } => {
                Stmt::Check { cond: self.operand(cond), fails_when: *fails_when, site: *site }
            }
            Stmt::Promise { cond } => Stmt::Promise { cond: self.operand(cond) },
            Stmt::If { cond, then, otherwise } => {
                let cond = self.operand(cond);
                Stmt::If { cond, then: self.list(then), otherwise: self.list(otherwise) }
            }
            Stmt::Block { label, body } => {
                let label = self.new_label(*label);
                Stmt::Block { label, body: self.list(body) }
            }
            Stmt::Loop { label, body, step } => {
                let label = self.new_label(*label);
                Stmt::Loop { label, body: self.list(body), step: self.list(step) }
            }
            Stmt::Break { label, when } => {
                let when = when.as_ref().map(|(cond, value)| (self.operand(cond), *value));
                Stmt::Break { label: self.label(*label), when }
            }
            Stmt::Continue(label) if *label == self.next.0 => Stmt::Break { label: self.next.1, when: None },
            Stmt::Continue(label) => Stmt::Continue(self.label(*label)),
            Stmt::SetCondition { handle, value } => {
                Stmt::SetCondition { handle: self.operand(handle), value: self.operand(value) }
            }
            Stmt::Print { text, arguments } => {
                Stmt::Print { text: self.mem(*text), arguments: self.mem(*arguments) }
            }
            Stmt::SameForAll { value, is_in_block, site } => {
                Stmt::SameForAll { value: self.operand(value), is_in_block: *is_in_block, site: *site }
            }
            Stmt::Fail(_) | Stmt::Exit | Stmt::Reached { .. } | Stmt::Barrier => stmt.clone(),
        }
    }
}
