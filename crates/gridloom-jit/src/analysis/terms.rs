//! Values of registers as terms over what registers held before, to tell whether two pieces of code
//! compute the same.
//!
//! Equal terms have equal numbers. Sums and products with constants have one form, so that `p + 4 +
//! 4` and `p + 8` are equal. Two terms that differ may still have the same value.

use crate::analysis::flow::Flow;
use crate::native::{Class, Kind, Native};
use gridloom_interp::Space;
use gridloom_interp::code::{Base, Load, MemoryOperand, Op, Pc};
use gridloom_interp::lanes::{Lanewise, Slot, Source};
use std::collections::HashMap;
use std::ops::Range;

/// The number of a term.
pub(crate) type Term = u32;

/// The most terms that are kept. Code that needs more is not compared.
const MOST: usize = 512;

/// What a term is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// What a register held at the start.
    Start(u32),
    /// What a register holds at the start of a pass of a loop.
    Pass(u32),
    /// The number of the element that a pass of a loop is for, in 32 bits.
    Index,
    /// What an instruction computes that is not looked into.
    Unknown(Pc, u32),
    Constant(u64),
    /// A term plus a constant.
    Plus(Term, u64, u32),
    /// The sum of two terms that are not constants, the one with the smaller number first.
    Sum(Term, Term, u32),
    Negated(Term, u32),
    /// A term times a constant.
    Scaled(Term, u64, u32),
    /// A term of 32 bits in 64 bits.
    Extended(Term, bool),
    /// The lowest bits of a term, without others above them.
    Lowest(Term, u32),
    Computed(Native, Vec<Term>),
    /// The second result of a comparison.
    Second(Term),
    /// An element in memory: its address, extension and number.
    Loaded {
        address: Term,
        offset: i64,
        space: Space,
        narrow: bool,
        size: u32,
        signed_to: Option<u32>,
        element: u32,
    },
}

/// Terms, each once.
pub(crate) struct Terms<'a> {
    flow: &'a Flow<'a>,
    natives: &'a [Option<Native>],
    forms: Vec<Form>,
    /// Whether the index is signed, and how far it can be advanced without wrapping around.
    index: (bool, u64),
}

/// A register file of terms.
pub(crate) type State = Vec<Term>;

impl<'a> Terms<'a> {
    pub(crate) fn new(flow: &'a Flow<'a>, natives: &'a [Option<Native>]) -> Self {
        Self { flow, natives, forms: Vec::new(), index: (false, 0) }
    }

    /// Assumes that the index does not wrap around, read with a sign or without, when a constant up
    /// to `most` is added.
    pub(crate) fn assume_index(&mut self, signed: bool, most: u64) {
        self.index = (signed, most);
    }

    pub(crate) fn form(&self, term: Term) -> &Form {
        &self.forms[term as usize]
    }

    /// Returns whether there are more terms than are compared.
    pub(crate) fn is_full(&self) -> bool {
        self.forms.len() > MOST
    }

    pub(crate) fn of(&mut self, form: Form) -> Term {
        let found = self.forms.iter().position(|other| *other == form);
        found.unwrap_or_else(|| {
            self.forms.push(form);
            self.forms.len() - 1
        }) as Term
    }

    /// Returns a term that is another plus a constant, or that with zero.
    pub(crate) fn parts(&self, term: Term) -> (Term, u64) {
        match *self.form(term) {
            Form::Plus(of, more, _) => (of, more),
            _ => (term, 0),
        }
    }

    fn constant_of(&self, term: Term) -> Option<u64> {
        match *self.form(term) {
            Form::Constant(bits) => Some(bits),
            _ => None,
        }
    }

    pub(crate) fn plus(&mut self, term: Term, more: u64, bits: u32) -> Term {
        let (of, already) = self.parts(term);
        let more = lowest(already.wrapping_add(more), bits);
        match self.constant_of(of) {
            Some(constant) => self.of(Form::Constant(lowest(constant.wrapping_add(more), bits))),
            None if more == 0 => of,
            None => self.of(Form::Plus(of, more, bits)),
        }
    }

    fn sum(&mut self, a: Term, b: Term, bits: u32) -> Term {
        if let Some(more) = self.constant_of(b) {
            return self.plus(a, more, bits);
        }
        if let Some(more) = self.constant_of(a) {
            return self.plus(b, more, bits);
        }
        let ((a, first), (b, second)) = (self.parts(a), self.parts(b));
        let sum = self.of(Form::Sum(a.min(b), a.max(b), bits));
        self.plus(sum, first.wrapping_add(second), bits)
    }

    fn negated(&mut self, term: Term, bits: u32) -> Term {
        let (of, more) = self.parts(term);
        let negated = match *self.form(of) {
            Form::Constant(constant) => self.of(Form::Constant(lowest(constant.wrapping_neg(), bits))),
            Form::Negated(of, _) => of,
            _ => self.of(Form::Negated(of, bits)),
        };
        self.plus(negated, more.wrapping_neg(), bits)
    }

    fn scaled(&mut self, term: Term, by: u64, bits: u32) -> Term {
        let (of, more) = self.parts(term);
        let scaled = match *self.form(of) {
            Form::Constant(constant) => self.of(Form::Constant(lowest(constant.wrapping_mul(by), bits))),
            Form::Scaled(of, already, _) => {
                let by = lowest(already.wrapping_mul(by), bits);
                self.of(Form::Scaled(of, by, bits))
            }
            _ if by == 1 => of,
            _ => self.of(Form::Scaled(of, by, bits)),
        };
        self.plus(scaled, more.wrapping_mul(by), bits)
    }

    fn extended(&mut self, term: Term, signed: bool) -> Term {
        let (of, more) = self.parts(term);
        match *self.form(of) {
            Form::Constant(constant) if signed => {
                self.of(Form::Constant(i64::from(constant as u32 as i32) as u64))
            }
            Form::Constant(_) => of,
            // The sum does not wrap around.
            Form::Index if (signed, true) == (self.index.0, more <= self.index.1) => {
                let index = self.of(Form::Extended(of, signed));
                self.plus(index, more, 64)
            }
            _ => self.of(Form::Extended(term, signed)),
        }
    }

    fn product(&mut self, native: &Native, a: Term, b: Term, bits: u32) -> Term {
        match (self.constant_of(a), self.constant_of(b)) {
            (_, Some(by)) => self.scaled(a, by, bits),
            (Some(by), _) => self.scaled(b, by, bits),
            _ => {
                let alone = Native { kind: Kind::Mul, ..*native };
                self.of(Form::Computed(alone, vec![a.min(b), a.max(b)]))
            }
        }
    }

    /// Returns an operand in the bits of its class.
    fn operand(&mut self, state: &State, source: Source, class: Class) -> Term {
        match source {
            Source::Constant(index) => {
                let bits = self.flow.code.constants[index as usize][0];
                self.of(Form::Constant(lowest(bits, class.bits())))
            }
            Source::Slot(slot) => {
                let term = state[slot.0 as usize];
                let bits = self.flow.code.functions[self.flow.function].type_of(slot).bits();
                if bits == class.bits() { term } else { self.of(Form::Lowest(term, class.bits())) }
            }
        }
    }

    /// Returns what an instruction computes.
    fn computed(&mut self, state: &State, native: &Native, map: &dyn Lanewise) -> Term {
        let operands: Vec<Term> = (map.sources().iter().zip(native.operands))
            .map(|(&source, class)| self.operand(state, source, class))
            .collect();
        let bits = native.result.bits();
        let narrow = native.operands[0].bits() == 32;
        match (native.kind, &operands[..]) {
            (Kind::Copy, &[a]) => a,
            (Kind::Add, &[a, b]) => self.sum(a, b, bits),
            (Kind::AddConstant(more), &[a]) => self.plus(a, more, bits),
            (Kind::Sub, &[a, b]) => {
                let b = self.negated(b, bits);
                self.sum(a, b, bits)
            }
            (Kind::Neg, &[a]) => self.negated(a, bits),
            (Kind::BitNot, &[a]) => {
                let negated = self.negated(a, bits);
                self.plus(negated, u64::MAX, bits)
            }
            (Kind::Mul, &[a, b]) => self.product(native, a, b, bits),
            (Kind::ShiftLeft, &[a, b]) if self.constant_of(b).is_some_and(|by| by < bits.into()) => {
                let by = self.constant_of(b).unwrap_or(0);
                self.scaled(a, 1 << by, bits)
            }
            (Kind::MadLow, &[a, b, c]) => {
                let product = self.product(native, a, b, bits);
                self.sum(product, c, bits)
            }
            (Kind::MulWide { signed }, &[a, b]) if narrow => {
                let (a, b) = (self.extended(a, signed), self.extended(b, signed));
                self.product(native, a, b, bits)
            }
            (Kind::MadWide { signed }, &[a, b, c]) if narrow => {
                let (a, b) = (self.extended(a, signed), self.extended(b, signed));
                let product = self.product(native, a, b, bits);
                self.sum(product, c, bits)
            }
            (Kind::Extend { from: 32, signed, to: 64, .. }, &[a]) if bits == 64 => self.extended(a, signed),
            _ => self.of(Form::Computed(*native, operands)),
        }
    }

    /// Returns an element that is loaded.
    fn loaded(&mut self, state: &State, load: &Load, element: u32) -> Term {
        let MemoryOperand { space, base, offset, narrow } = load.operand;
        let (address, more) = match base {
            Base::Source(source) => {
                let class = if narrow { Class::B32 } else { Class::B64 };
                let term = self.operand(state, source, class);
                self.parts(term)
            }
            Base::Frame => (self.of(Form::Constant(0)), 0),
        };
        let more = if narrow { i64::from(more as u32 as i32) } else { more as i64 };
        let (size, signed_to) = (load.extend.size, load.extend.signed_to);
        let offset = offset.wrapping_add(more);
        self.of(Form::Loaded { address, offset, space, narrow, size, signed_to, element })
    }

    /// Executes instructions. Returns `None` at one that is not looked into, unless those may be:
    /// their results are then unknown.
    pub(crate) fn run(&mut self, state: &mut State, range: Range<Pc>, any: bool) -> Option<()> {
        for pc in range {
            let flow = self.flow;
            let instruction = flow.instruction(pc);
            let native = self.natives[(pc - flow.range.start) as usize];
            let results: Vec<Term> = match (&instruction.op, native) {
                _ if instruction.guard.is_some() || self.is_full() => Vec::new(),
                (Op::Nothing, _) => continue,
                (Op::Map(map), Some(native)) => {
                    let first = self.computed(state, &native, map.as_ref());
                    let is_comparison = matches!(native.kind, Kind::Compare { .. });
                    match map.destinations().len() {
                        1 => vec![first],
                        2 if is_comparison => vec![first, self.of(Form::Second(first))],
                        _ => Vec::new(),
                    }
                }
                // Memory may change before the next load.
                (Op::Load(load), _) if !any && !load.acquire => {
                    (0..load.destinations.len() as u32).map(|i| self.loaded(state, load, i)).collect()
                }
                _ => Vec::new(),
            };
            let mut defined = Vec::new();
            instruction.for_each_definition(&mut |slot| defined.push(slot));
            if results.len() != defined.len() || results.is_empty() {
                if !any {
                    return None;
                }
                for (i, Slot(slot)) in (0..).zip(defined) {
                    state[slot as usize] = self.of(Form::Unknown(pc, i));
                }
                continue;
            }
            // A result is as wide as its register, or is cut or extended with zeros there.
            for (slot, result) in defined.into_iter().zip(results) {
                let bits = flow.code.functions[flow.function].type_of(slot).bits();
                let made = native.filter(|_| matches!(instruction.op, Op::Map(_)));
                let fits = made.is_none_or(|native| native.result.bits() == bits);
                state[slot.0 as usize] = if fits { result } else { self.of(Form::Lowest(result, bits)) };
            }
        }
        Some(())
    }

    /// Returns a term with another in the place of one.
    pub(crate) fn replaced(&mut self, term: Term, from: Term, to: Term) -> Term {
        self.replaced_in(term, &mut HashMap::from([(from, to)]))
    }

    fn replaced_in(&mut self, term: Term, known: &mut HashMap<Term, Term>) -> Term {
        if let Some(&known) = known.get(&term) {
            return known;
        }
        let replaced = self.rebuilt(term, known);
        known.insert(term, replaced);
        replaced
    }

    /// Returns a term made of others in the place of those that it is made of.
    fn rebuilt(&mut self, term: Term, known: &mut HashMap<Term, Term>) -> Term {
        match self.form(term).clone() {
            Form::Start(_) | Form::Pass(_) | Form::Index | Form::Unknown(..) | Form::Constant(_) => term,
            Form::Plus(of, more, bits) => {
                let of = self.replaced_in(of, known);
                self.plus(of, more, bits)
            }
            Form::Sum(a, b, bits) => {
                let (a, b) = (self.replaced_in(a, known), self.replaced_in(b, known));
                self.sum(a, b, bits)
            }
            Form::Negated(of, bits) => {
                let of = self.replaced_in(of, known);
                self.negated(of, bits)
            }
            Form::Scaled(of, by, bits) => {
                let of = self.replaced_in(of, known);
                self.scaled(of, by, bits)
            }
            Form::Extended(of, signed) => {
                let of = self.replaced_in(of, known);
                self.extended(of, signed)
            }
            Form::Lowest(of, bits) => {
                let of = self.replaced_in(of, known);
                self.of(Form::Lowest(of, bits))
            }
            Form::Computed(native, operands) => {
                let operands = operands.into_iter().map(|operand| self.replaced_in(operand, known)).collect();
                self.of(Form::Computed(native, operands))
            }
            Form::Second(of) => {
                let of = self.replaced_in(of, known);
                self.of(Form::Second(of))
            }
            Form::Loaded { address, offset, space, narrow, size, signed_to, element } => {
                let address = self.replaced_in(address, known);
                let (address, more) = self.parts(address);
                let more = if narrow { i64::from(more as u32 as i32) } else { more as i64 };
                let offset = offset.wrapping_add(more);
                self.of(Form::Loaded { address, offset, space, narrow, size, signed_to, element })
            }
        }
    }

    /// Returns whether a term depends on one that is chosen.
    pub(crate) fn depends(&self, term: Term, on: impl Fn(&Form) -> bool) -> bool {
        let (mut work, mut seen) = (vec![term], vec![false; self.forms.len()]);
        while let Some(term) = work.pop() {
            if std::mem::replace(&mut seen[term as usize], true) {
                continue;
            }
            let form = self.form(term);
            if on(form) {
                return true;
            }
            match form {
                Form::Start(_) | Form::Pass(_) | Form::Index | Form::Unknown(..) | Form::Constant(_) => {}
                &Form::Sum(a, b, _) => work.extend([a, b]),
                &Form::Plus(of, ..)
                | &Form::Negated(of, _)
                | &Form::Scaled(of, ..)
                | &Form::Extended(of, _)
                | &Form::Lowest(of, _)
                | &Form::Second(of)
                | &Form::Loaded { address: of, .. } => work.push(of),
                Form::Computed(_, operands) => work.extend(operands),
            }
        }
        false
    }
}

fn lowest(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}
