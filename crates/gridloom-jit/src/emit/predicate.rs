//! Predicates that the first and the last thread of a group tell for all of them.
//!
//! Whether `i < n` for a value that rises from thread to thread holds from the first thread up to some thread, or not at all. So it holds nowhere
//! if it does at neither end, and everywhere if it does at both; and so does a disjunction, or a conjunction, of such comparisons. That costs two
//! comparisons of scalars, however many threads a group has.

use super::Emitter;
use super::value::Val;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use gridloom_interp::code::Guard;
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::op::{BoolOp, LogicOp};
use std::rc::Rc;

/// Comparisons that one predicate may be made of.
const MOST: usize = 8;

/// A comparison of an affine value of 32 bits with a uniform one.
#[derive(Clone, Copy)]
struct Comparison {
    /// The affine value in the first thread, and its step.
    first: Value,
    step: i64,
    bound: Value,
    /// Of the affine value with the other.
    condition: IntCC,
    signed: bool,
}

impl Comparison {
    /// The comparison that an instruction makes, if it is one.
    fn of(native: &Native, operands: &[Val]) -> Option<Self> {
        let Kind::Compare { compare, signed, .. } = native.kind else { return None };
        if native.operands[0] != Class::B32 {
            return None;
        }
        let condition = super::arith::integer_condition(compare, signed)?;
        let (first, step, bound, condition) = match *operands {
            [Val::Affine(first, step), Val::One(bound), ..] => (first, step, bound, condition),
            [Val::One(bound), Val::Affine(first, step), ..] => (first, step, bound, condition.swap_args()),
            _ => return None,
        };
        let ordered = !matches!(condition, IntCC::Equal | IntCC::NotEqual);
        let slow = step != 0 && step.unsigned_abs() < 1 << 24;
        (ordered && slow).then_some(Self { first, step, bound, condition, signed })
    }
}

/// How the terms of a predicate are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// There is one.
    Alone,
    Or,
    And,
}

/// A predicate of which the ends of a group tell.
#[derive(Clone)]
pub(super) struct Predicate {
    join: Join,
    comparisons: Vec<Comparison>,
    /// Truth values that are the same in all threads, and whether the term is their opposite.
    uniform: Vec<(Value, bool)>,
}

impl Predicate {
    fn of_comparison(comparison: Comparison) -> Self {
        Self { join: Join::Alone, comparisons: vec![comparison], uniform: Vec::new() }
    }

    fn of_uniform(value: Value) -> Self {
        Self { join: Join::Alone, comparisons: Vec::new(), uniform: vec![(value, false)] }
    }

    /// Both of two, or any of them.
    fn join(&self, other: &Self, join: Join) -> Option<Self> {
        let fits = |predicate: &Self| predicate.join == Join::Alone || predicate.join == join;
        let mut joined = self.clone();
        joined.join = join;
        joined.comparisons.extend(&other.comparisons);
        joined.uniform.extend(&other.uniform);
        let small = joined.comparisons.len() + joined.uniform.len() <= MOST;
        (fits(self) && fits(other) && small).then_some(joined)
    }

    /// Its opposite.
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
    /// Notes what an instruction has put into a predicate register, if the ends of a group tell it.
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
            Kind::Compare { combine, .. } => Comparison::of(native, operands)
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
            self.predicates.push((slot, Rc::new(predicate)));
        }
    }

    /// What is in a predicate register in the block being written, if the ends of a group tell it.
    fn predicate_in(&self, register: Slot) -> Option<Rc<Predicate>> {
        let (_, predicate) = self.predicates.iter().rev().find(|(slot, _)| *slot == register)?;
        Some(Rc::clone(predicate))
    }

    /// The predicate of a guard, if the ends of a group tell it.
    pub(super) fn predicate(&self, guard: Guard) -> Option<Predicate> {
        let predicate = (*self.predicate_in(guard.slot)?).clone();
        Some(if guard.negated { predicate.negated() } else { predicate })
    }

    /// Goes where all threads go, or none, if the ends tell so; otherwise goes on.
    pub(super) fn sort_out_by_ends(&mut self, predicate: &Predicate, [all_go, none_goes]: [Block; 2]) {
        let slow = self.b.create_block();
        self.b.set_cold_block(slow);
        let mut known = self.unwrapped.clone();
        for &Comparison { first, step, signed, .. } in &predicate.comparisons {
            if !known.contains(&(first, step, signed)) {
                let holds = self.does_not_wrap(first, step, signed);
                let sure = self.b.create_block();
                self.b.ins().brif(holds, sure, &[], slow, &[]);
                self.go_on_in(sure);
                known.push((first, step, signed));
            }
        }
        if let (Join::Alone, [comparison]) = (predicate.join, &predicate.comparisons[..]) {
            self.sort_out_alone(comparison, [all_go, none_goes, slow]);
            return self.go_on_in(slow);
        }
        // Each term at both ends: in a disjunction whether it holds at any, in a conjunction whether at all.
        let or = predicate.join != Join::And;
        let mut terms = Vec::new();
        for &(value, negated) in &predicate.uniform {
            terms.push(if negated { self.b.ins().bxor_imm_u(value, 1) } else { value });
        }
        for comparison in &predicate.comparisons {
            let &Comparison { first, bound, condition, .. } = comparison;
            let last = self.last_of(comparison);
            terms.push(self.b.ins().icmp(condition, first, bound));
            terms.push(self.b.ins().icmp(condition, last, bound));
        }
        let mut joined = terms[0];
        for &term in &terms[1..] {
            joined = if or { self.b.ins().bor(joined, term) } else { self.b.ins().band(joined, term) };
        }
        if or {
            self.b.ins().brif(joined, slow, &[], none_goes, &[]);
        } else {
            self.b.ins().brif(joined, all_go, &[], slow, &[]);
        }
        self.go_on_in(slow);
    }

    fn last_of(&mut self, comparison: &Comparison) -> Value {
        self.b.ins().iadd_imm_s(comparison.first, comparison.step * i64::from(self.lanes - 1))
    }

    /// One comparison can be told to hold everywhere as well as nowhere.
    fn sort_out_alone(&mut self, comparison: &Comparison, [all_go, none_goes, slow]: [Block; 3]) {
        let &Comparison { first, step, bound, condition, .. } = comparison;
        let last = self.last_of(comparison);
        let in_last = self.b.ins().icmp(condition, last, bound);
        let maybe = self.b.create_block();
        let above = matches!(
            condition,
            IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
                | IntCC::UnsignedGreaterThan
                | IntCC::UnsignedGreaterThanOrEqual
        );
        // Whether it begins to hold from some thread on, or ends to.
        let rises = above == (step > 0);
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
    }

    /// The predicate in every thread, as masks.
    pub(super) fn evaluate_predicate(&mut self, predicate: &Predicate) -> Vec<Value> {
        let mut joined: Option<Vec<Value>> = None;
        let mut terms = Vec::new();
        for &(value, negated) in &predicate.uniform {
            let value = if negated { self.b.ins().bxor_imm_u(value, 1) } else { value };
            terms.push(self.vectors(&Val::One(value), Class::Pred));
        }
        for &Comparison { first, step, bound, condition, .. } in &predicate.comparisons {
            let values = self.vectors(&Val::Affine(first, step), Class::B32);
            let bounds = self.vectors(&Val::One(bound), Class::B32);
            let pairs = values.into_iter().zip(bounds);
            terms.push(pairs.map(|(value, bound)| self.b.ins().icmp(condition, value, bound)).collect());
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
