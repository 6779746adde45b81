//! Predicates that the first and the last thread of a group decide for all of them.
//!
//! For a value that increases from thread to thread, `i < n` holds up to some thread or not at all.
//! So it holds nowhere if it holds at neither end, and everywhere if it holds at both. The same is
//! true for a disjunction or conjunction of such comparisons. That costs two scalar comparisons for
//! a group of any size. `i == n` holds in at most one thread, and in none if `n` is not between the
//! ends.

use super::Emitter;
use super::value::Val;
use crate::analysis::uniformity::Shape;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, InstructionData, Value, ValueDef};
use gridloom_interp::code::{Guard, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::op::{BoolOp, LogicOp};
use std::rc::Rc;

/// The most comparisons of one predicate.
const MOST: usize = 8;

/// A comparison of an affine value of 32 or 64 bits with a uniform one.
#[derive(Clone, Copy)]
struct Comparison {
    class: Class,
    /// The affine value in the first thread, and its step.
    first: Value,
    step: i64,
    bound: Value,
    /// The condition between the affine value and the uniform one.
    condition: IntCC,
    signed: bool,
    /// Whether the affine value is known not to wrap within the group.
    bounded: bool,
    /// The constant that the affine value is compared with, if it is one and the value rises by one
    /// from a multiple of the threads of a group.
    index: Option<u32>,
}

impl Comparison {
    /// Returns the comparison of an instruction, if it is one. `bounded` tells which operands are
    /// not negative in any thread, if they are read as signed.
    fn of(native: &Native, operands: &[Val], bounded: impl Fn(usize) -> bool) -> Option<Self> {
        let Kind::Compare { compare, signed, .. } = native.kind else { return None };
        let class = native.operands[0];
        if !matches!(class, Class::B32 | Class::B64) {
            return None;
        }
        let condition = super::arith::integer_condition(compare, signed)?;
        let (first, step, bound, condition, affine) = match *operands {
            [Val::Affine(first, step), Val::One(bound), ..] => (first, step, bound, condition, 0),
            [Val::One(bound), Val::Affine(first, step), ..] => (first, step, bound, condition.swap_args(), 1),
            _ => return None,
        };
        let slow = step != 0 && step.unsigned_abs() < 1 << 24;
        // Equality does not depend on wrapping.
        let bounded = bounded(affine) || matches!(condition, IntCC::Equal | IntCC::NotEqual);
        slow.then_some(Self { class, first, step, bound, condition, signed, bounded, index: None })
    }

    /// Returns whether an order starts to hold from some thread on. Otherwise it ceases to hold.
    fn rises(&self) -> bool {
        let above = matches!(
            self.condition,
            IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
                | IntCC::UnsignedGreaterThan
                | IntCC::UnsignedGreaterThanOrEqual
        );
        above == (self.step > 0)
    }

    /// Returns whether the ends of a group decide anything in such a join: that an equality holds
    /// nowhere, or an inequality everywhere.
    fn tells(&self, join: Join) -> bool {
        match self.condition {
            IntCC::Equal => join != Join::And,
            IntCC::NotEqual => join != Join::Or,
            _ => true,
        }
    }
}

/// How the terms of a predicate are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// There is only one term.
    Alone,
    Or,
    And,
}

/// A predicate that the ends of a group decide.
#[derive(Clone)]
pub(super) struct Predicate {
    join: Join,
    comparisons: Vec<Comparison>,
    /// Truth values that are the same in all threads, and whether each is negated.
    uniform: Vec<(Value, bool)>,
}

impl Predicate {
    fn of_comparison(comparison: Comparison) -> Self {
        Self { join: Join::Alone, comparisons: vec![comparison], uniform: Vec::new() }
    }

    fn of_uniform(value: Value) -> Self {
        Self { join: Join::Alone, comparisons: Vec::new(), uniform: vec![(value, false)] }
    }

    /// Returns the conjunction or disjunction of two predicates.
    fn join(&self, other: &Self, join: Join) -> Option<Self> {
        let fits = |predicate: &Self| predicate.join == Join::Alone || predicate.join == join;
        let mut joined = self.clone();
        joined.join = join;
        joined.comparisons.extend(&other.comparisons);
        joined.uniform.extend(&other.uniform);
        let small = joined.comparisons.len() + joined.uniform.len() <= MOST;
        let tell = joined.comparisons.iter().all(|comparison| comparison.tells(join));
        (fits(self) && fits(other) && small && tell).then_some(joined)
    }

    /// Returns its negation.
    fn negated(mut self) -> Self {
        for comparison in &mut self.comparisons {
            comparison.condition = comparison.condition.complement();
        }
        for (_, negated) in &mut self.uniform {
            *negated = !*negated;
        }
        self.join = match self.join {
            Join::Alone => Join::Alone,
            Join::Or => Join::And,
            Join::And => Join::Or,
        };
        self
    }
}

impl Emitter<'_> {
    /// Records the predicate that an instruction has put into a register, if the ends of a group
    /// decide it.
    pub(super) fn note_predicate(
        &mut self,
        slot: Slot,
        native: &Native,
        operands: &[Val],
        sources: &[Source],
    ) {
        if self.lanes == 1 || native.result != Class::Pred {
            return;
        }
        let operand = |emitter: &Self, i: usize| match (operands.get(i)?, sources.get(i)?) {
            (Val::One(value), _) => Some(Predicate::of_uniform(*value)),
            (_, Source::Slot(slot)) => emitter.predicate_in(*slot).map(|predicate| (*predicate).clone()),
            _ => None,
        };
        let predicate = match native.kind {
            Kind::Compare { combine, .. } => self
                .comparison(native, operands, sources)
                .map(Predicate::of_comparison)
                .and_then(|predicate| match combine {
                    None => Some(predicate),
                    Some(BoolOp::Or) => predicate.join(&operand(self, 2)?, Join::Or),
                    Some(BoolOp::And) => predicate.join(&operand(self, 2)?, Join::And),
                    Some(BoolOp::Xor) => None,
                }),
            Kind::Logic(op @ (LogicOp::And | LogicOp::Or)) => {
                let join = if op == LogicOp::And { Join::And } else { Join::Or };
                operand(self, 0).zip(operand(self, 1)).and_then(|(a, b)| a.join(&b, join))
            }
            Kind::Copy => operand(self, 0),
            _ => None,
        };
        if let Some(predicate) = predicate.filter(|predicate| !predicate.comparisons.is_empty()) {
            self.facts.predicates.push((slot, Rc::new(predicate)));
        }
    }

    fn comparison(&self, native: &Native, operands: &[Val], sources: &[Source]) -> Option<Comparison> {
        let mut comparison =
            Comparison::of(native, operands, |i| self.is_bounded(sources[i], native.operands[0]))?;
        if comparison.class != Class::B32 {
            return Some(comparison);
        }
        let constant = |source: Source| match source {
            Source::Constant(index) => Some(self.plan.flow.code.constants[index as usize][0] as u32),
            Source::Slot(_) => None,
        };
        comparison.index = match *sources {
            [Source::Slot(slot), other, ..] | [other @ Source::Constant(_), Source::Slot(slot), ..]
                if self.plan.uniformity.get(slot) == Shape::Affine(1)
                    && self.plan.uniformity.exponent(slot) >= self.plan.lanes.trailing_zeros() =>
            {
                constant(other)
            }
            _ => None,
        };
        Some(comparison)
    }

    /// Returns how many of the first threads include all threads for which a predicate does not
    /// hold, and whether it holds for none of them. It is known if the predicate differs within a
    /// group and compares the thread index. The index of a group's first thread is a multiple of
    /// the group size, so these are threads of the first group of a row.
    pub(super) fn first_threads(&self, predicate: &Predicate) -> Option<(u32, bool)> {
        let (Join::Alone, [comparison]) = (predicate.join, &predicate.comparisons[..]) else { return None };
        let bound = comparison.index.filter(|&bound| bound < self.lanes)?;
        let (threads, all) = match comparison.condition.complement() {
            IntCC::UnsignedLessThan | IntCC::SignedLessThan => (bound, true),
            IntCC::UnsignedLessThanOrEqual | IntCC::SignedLessThanOrEqual => (bound + 1, true),
            IntCC::Equal => (bound + 1, false),
            _ => return None,
        };
        (threads > 0).then_some((threads, all))
    }

    /// Returns whether an operand that is read as signed is not negative in any thread.
    fn is_bounded(&self, source: Source, class: Class) -> bool {
        matches!(source, Source::Slot(slot) if self.plan.ranges.get(slot).most < 1 << (class.bits() - 1))
    }

    /// Returns the comparison of an invariant definition that is the only one to reach the current
    /// block, if its operands are unchanged.
    fn predicate_before(&mut self, register: Slot) -> Option<Predicate> {
        let (flow, invariants) = (self.plan.flow, self.plan.rematerialization);
        let block = flow.blocks.partition_point(|block| block.range.end <= self.pc);
        let start = flow.blocks[block].range.start;
        let defined = |slot: Slot| {
            let mut found = false;
            for pc in start..self.pc {
                flow.instruction(pc).for_each_definition(&mut |defined| found |= defined == slot);
            }
            found
        };
        let definition = invariants.at_block(block, register)?;
        let native = self.plan.natives[(definition - flow.range.start) as usize]?;
        let Op::Map(map) = &flow.instruction(definition).op else { return None };
        let (_, reads) = invariants.order.iter().find(|(pc, _)| *pc == definition)?;
        let same =
            |&(slot, read): &(Slot, Pc)| invariants.at_block(block, slot) == Some(read) && !defined(slot);
        let is_alone = matches!(native.kind, Kind::Compare { combine: None, .. });
        if self.lanes == 1 || !is_alone || defined(register) || !reads.iter().all(same) {
            return None;
        }
        let sources = map.sources();
        let operands: Vec<Val> =
            sources.iter().zip(native.operands).map(|(&source, class)| self.get(source, class)).collect();
        self.comparison(&native, &operands, sources).map(Predicate::of_comparison)
    }

    /// Returns the predicate in a register in the current block, if the ends of a group decide it.
    fn predicate_in(&self, register: Slot) -> Option<Rc<Predicate>> {
        let (_, predicate) = self.facts.predicates.iter().rev().find(|(slot, _)| *slot == register)?;
        Some(Rc::clone(predicate))
    }

    /// Returns the predicate of a guard, if the ends of a group decide it.
    pub(super) fn predicate(&mut self, guard: Guard) -> Option<Predicate> {
        let predicate = match self.predicate_in(guard.slot) {
            Some(predicate) => (*predicate).clone(),
            None => self.predicate_before(guard.slot)?,
        };
        Some(if guard.negated { predicate.negated() } else { predicate })
    }

    /// Branches to where all threads go, or none, if the ends decide so; otherwise continues.
    /// Returns whether it is then known that some threads go and some do not.
    pub(super) fn sort_out_by_ends(
        &mut self,
        predicate: &Predicate,
        [all_go, none_goes]: [Block; 2],
    ) -> bool {
        let slow = self.b.create_block();
        self.b.set_cold_block(slow);
        let mut known = self.facts.unwrapped.clone();
        let mut bounded = true;
        for &Comparison { first, step, signed, bounded: sure, .. } in &predicate.comparisons {
            if !sure && !known.contains(&(first, step, signed)) {
                bounded = false;
                let holds = self.does_not_wrap(first, step, signed);
                let sure = self.b.create_block();
                self.b.ins().brif(holds, sure, &[], slow, &[]);
                self.go_on_in(sure);
                known.push((first, step, signed));
            }
        }
        if let (Join::Alone, [comparison]) = (predicate.join, &predicate.comparisons[..]) {
            let exact = self.sort_out_alone(comparison, [all_go, none_goes, slow]);
            self.go_on_in(slow);
            return bounded && exact;
        }
        // Each term is tested at one end: in a disjunction where it holds if it holds anywhere, in
        // a conjunction where it fails if it fails anywhere.
        let or = predicate.join != Join::And;
        let mut terms = Vec::new();
        for &(value, negated) in &predicate.uniform {
            terms.push(if negated { self.b.ins().bxor_imm_u(value, 1) } else { value });
        }
        for comparison in &predicate.comparisons {
            let &Comparison { first, bound, condition, .. } = comparison;
            let rises = comparison.rises();
            if let IntCC::Equal | IntCC::NotEqual = condition {
                let within = self.is_within(comparison);
                terms.push(if or { within } else { self.b.ins().bxor_imm_u(within, 1) });
                continue;
            }
            let end = if rises == or { self.last_of(comparison) } else { first };
            terms.push(self.b.ins().icmp(condition, end, bound));
        }
        // Most machines fuse a comparison and its branch, so each has its own branch.
        for (i, &term) in terms.iter().enumerate() {
            let last = i + 1 == terms.len();
            let next = if last && or {
                none_goes
            } else if last {
                all_go
            } else {
                self.b.create_block()
            };
            if or {
                self.b.ins().brif(term, slow, &[], next, &[]);
            } else {
                self.b.ins().brif(term, next, &[], slow, &[]);
            }
            if !last {
                self.go_on_in(next);
            }
        }
        self.go_on_in(slow);
        false
    }

    /// Returns the truth of the bound being between the ends of the group, even if the value wraps.
    fn is_within(&mut self, comparison: &Comparison) -> Value {
        let &Comparison { first, step, bound, .. } = comparison;
        let span = step.abs() * i64::from(self.lanes - 1);
        let away = if step > 0 { self.b.ins().isub(bound, first) } else { self.b.ins().isub(first, bound) };
        self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, away, span)
    }

    fn last_of(&mut self, comparison: &Comparison) -> Value {
        self.b.ins().iadd_imm_s(comparison.first, comparison.step * i64::from(self.lanes - 1))
    }

    /// Decides one comparison: whether it holds everywhere or nowhere. Returns whether it otherwise
    /// holds in some threads and not in others.
    fn sort_out_alone(&mut self, comparison: &Comparison, [all_go, none_goes, slow]: [Block; 3]) -> bool {
        let &Comparison { first, step, bound, condition, .. } = comparison;
        if let IntCC::Equal | IntCC::NotEqual = condition {
            let otherwise = if condition == IntCC::Equal { none_goes } else { all_go };
            let within = self.is_within(comparison);
            self.b.ins().brif(within, slow, &[], otherwise, &[]);
            // A bound between the ends may lie between two threads.
            return step.abs() == 1;
        }
        let last = self.last_of(comparison);
        let in_last = self.b.ins().icmp(condition, last, bound);
        let maybe = self.b.create_block();
        let rises = comparison.rises();
        if rises {
            self.b.ins().brif(in_last, maybe, &[], none_goes, &[]);
        } else {
            self.b.ins().brif(in_last, all_go, &[], maybe, &[]);
        }
        self.go_on_in(maybe);
        let in_first = self.b.ins().icmp(condition, first, bound);
        if rises {
            self.b.ins().brif(in_first, all_go, &[], slow, &[]);
        } else {
            self.b.ins().brif(in_first, slow, &[], none_goes, &[]);
        }
        true
    }

    /// Returns a truth value, compared again if a comparison produced it. A comparison that only a
    /// branch uses stays in the machine's flags.
    fn compared_again(&mut self, value: Value) -> Value {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(dfg.resolve_aliases(value)) else { return value };
        match dfg.insts[inst] {
            InstructionData::IntCompare { args: [a, b], cond, .. } => {
                let (a, b) = (self.integer_again(a), self.integer_again(b));
                self.b.ins().icmp(cond, a, b)
            }
            _ => value,
        }
    }

    /// Returns a value. A constant is made again, because it would otherwise occupy a register from
    /// its first use on.
    fn integer_again(&mut self, value: Value) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        match self.constant_of(value) {
            Some(bits) => self.b.ins().iconst(ty, bits as i64),
            None => value,
        }
    }

    /// Returns the predicate in every thread, as masks.
    pub(super) fn evaluate_predicate(&mut self, predicate: &Predicate) -> Vec<Value> {
        let mut joined: Option<Vec<Value>> = None;
        let mut terms = Vec::new();
        for &(value, negated) in &predicate.uniform {
            let value = self.compared_again(value);
            let value = if negated { self.b.ins().bxor_imm_u(value, 1) } else { value };
            terms.push(self.vectors(&Val::One(value), Class::Pred));
        }
        for &Comparison { class, first, step, bound, condition, .. } in &predicate.comparisons {
            let values = self.vectors(&Val::Affine(first, step), class);
            let bound = self.integer_again(bound);
            let bounds = self.vectors(&Val::One(bound), class);
            let pairs = values.into_iter().zip(bounds);
            let masks: Vec<Value> =
                pairs.map(|(value, bound)| self.b.ins().icmp(condition, value, bound)).collect();
            terms.push(match class {
                Class::B64 => masks.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect(),
                _ => masks,
            });
        }
        for term in terms {
            joined = Some(match joined {
                None => term,
                Some(before) => before
                    .into_iter()
                    .zip(term)
                    .map(|(a, b)| match predicate.join {
                        Join::And => self.b.ins().band(a, b),
                        _ => self.b.ins().bor(a, b),
                    })
                    .collect(),
            });
        }
        joined.unwrap_or_default()
    }
}
