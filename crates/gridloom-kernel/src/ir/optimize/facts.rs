//! Facts about values that follow from tests: orders between values, and ranges.

use std::collections::HashSet;

use super::fold::{integer_suffix, number};
use super::range::Range;
use super::ranges::{DEPTH, values};
use super::values::{Arg, Number, Pass};
use crate::ir::ty::Class;

/// The most ranges that are derived from one.
const MOST_LIMITS: usize = 64;

/// The range of a value, as an instruction of so many bits read it.
struct Limit {
    value: Number,
    range: Range,
    width: u32,
    is_signed: bool,
}

/// Returns the order and its arguments of a comparison: whether `a < b`, or its opposite.
pub(super) fn as_less(order: &str, a: Number, b: Number) -> Option<(Number, Number, bool)> {
    Some(match order {
        "lt" => (a, b, true),
        "gt" => (b, a, true),
        "ge" => (a, b, false),
        "le" => (b, a, false),
        _ => return None,
    })
}

impl Pass<'_> {
    /// Returns whether `a < b`, where that is known.
    pub(super) fn less(&self, suffix: &'static str, a: Number, b: Number, depth: usize) -> Option<bool> {
        let (width, is_signed) = integer_suffix(suffix)?;
        if a == b {
            return Some(false);
        }
        let (ra, rb) = (self.range_as(a, width, is_signed, depth), self.range_as(b, width, is_signed, depth));
        if ra.high < rb.low {
            return Some(true);
        }
        if ra.low >= rb.high {
            return Some(false);
        }
        if let Some(known) = self.order((suffix, a, b)) {
            return Some(known);
        }
        if self.order((suffix, b, a)) == Some(true) {
            return Some(false);
        }
        if is_signed || depth == 0 {
            return None;
        }
        // A sum that does not wrap around is not below its parts.
        if let Some(sum) = self.expr(a)
            && sum.op == "add"
            && sum.suffix == suffix
            && let Some(parts) = values(&sum.args)
            && parts.contains(&b)
            && let [one, other] =
                [parts[0], parts[1]].map(|part| self.range_as(part, width, false, depth - 1))
            && one.plus(other).is_in(Range::of_bits(width, false))
        {
            return Some(false);
        }
        // What is at most another value that is less.
        let expr = self.expr(a)?;
        let args = values(&expr.args)?;
        let from = match &*expr.op {
            "add" if expr.suffix == suffix => {
                let less = self.constant_of(args[1]).map(|bits| -number(bits, width, true))?;
                let x = self.range_as(args[0], width, false, depth - 1);
                (less > 0 && x.low >= less).then_some((args[0], true))?
            }
            "and" if integer_suffix(expr.suffix) == Some((width, false)) => (args[0], false),
            "shr" | "div" | "rem" if expr.suffix == suffix => (args[0], false),
            "sub" if expr.suffix == suffix => {
                (self.less(suffix, args[0], args[1], depth - 1) == Some(false)).then_some((args[0], false))?
            }
            _ => return None,
        };
        let (x, is_strict) = from;
        if self.less(suffix, x, b, depth - 1) == Some(true) {
            return Some(true);
        }
        // x ≤ b, and a < x.
        (is_strict && (x == b || self.less(suffix, b, x, depth - 1) == Some(false))).then_some(true)
    }

    /// Notes that a condition has a value.
    ///
    /// The same follows for its parts. Conditions share parts: each part gets a value once, so that
    /// this takes as many steps as there are parts.
    pub(super) fn assume(&mut self, condition: Number, holds: bool) {
        let mut assumed = HashSet::new();
        // What comes last is next.
        let mut left = vec![(condition, holds)];
        while let Some((condition, holds)) = left.pop() {
            if self.constant_of(condition).is_some() || !assumed.insert((condition, holds)) {
                continue;
            }
            self.set_truth(condition, holds);
            if let Some((op, suffix, (a, b))) = self.same_as(condition)
                && let Some(order) = op.strip_prefix("setp.")
            {
                self.assume_order(order, suffix, a, b, holds);
            }
            let Some(expr) = self.expr(condition) else { continue };
            let Some(args) = values(&expr.args) else { continue };
            match (&*expr.op, expr.suffix) {
                ("not", "pred") => left.push((args[0], !holds)),
                ("and", "pred") if holds => left.extend(args.iter().rev().map(|&arg| (arg, true))),
                ("or", "pred") if !holds => left.extend(args.iter().rev().map(|&arg| (arg, false))),
                (op, suffix) => {
                    if let Some(order) = op.strip_prefix("setp.") {
                        self.assume_order(order, suffix, args[0], args[1], holds);
                    }
                }
            }
        }
    }

    pub(super) fn assume_order(
        &mut self,
        order: &str,
        suffix: &'static str,
        a: Number,
        b: Number,
        holds: bool,
    ) {
        let Some((width, is_signed)) = integer_suffix(suffix) else { return };
        let range = |pass: &Self, number| pass.range_as(number, width, is_signed, DEPTH);
        let (ra, rb) = (range(self, a), range(self, b));
        match (order, holds) {
            ("eq", true) | ("ne", false) => {
                self.limit(a, rb, width, is_signed);
                self.limit(b, ra, width, is_signed);
            }
            ("ne", true) | ("eq", false) => {
                if rb.low == rb.high && ra.low == rb.low {
                    self.limit(a, Range::new(ra.low + 1, ra.high), width, is_signed);
                }
                if rb.low == rb.high && ra.high == rb.low {
                    self.limit(a, Range::new(ra.low, ra.high - 1), width, is_signed);
                }
            }
            _ => {
                let Some((a, b, is_less)) = as_less(order, a, b) else { return };
                let is_less = is_less == holds;
                let (ra, rb) = (range(self, a), range(self, b));
                self.set_order((suffix, a, b), is_less);
                if is_less {
                    self.limit(a, Range::new(ra.low, ra.high.min(rb.high - 1)), width, is_signed);
                    self.limit(b, Range::new(rb.low.max(ra.low + 1), rb.high), width, is_signed);
                } else {
                    self.limit(a, Range::new(ra.low.max(rb.low), ra.high), width, is_signed);
                    self.limit(b, Range::new(rb.low, rb.high.min(ra.high)), width, is_signed);
                }
            }
        }
    }

    /// Notes the range of a value, as an instruction read it, and those that follow for what it was
    /// computed from.
    ///
    /// Values share parts, and a part can get another range on each of exponentially many ways to
    /// it. Only the first `MOST_LIMITS` are noted: fewer ranges are right as well.
    pub(super) fn limit(&mut self, value: Number, range: Range, width: u32, is_signed: bool) {
        // What comes last is next.
        let mut left = vec![Limit { value, range, width, is_signed }];
        for _ in 0..MOST_LIMITS {
            let Some(limit) = left.pop() else { return };
            self.limit_one(limit, &mut left);
        }
    }

    /// Notes one range, and adds those that follow to what is left.
    fn limit_one(&mut self, Limit { value, range, width, is_signed }: Limit, left: &mut Vec<Limit>) {
        let mut limit = |value, range, width| left.push(Limit { value, range, width, is_signed: false });
        let ty = self.ty(value);
        if range.low > range.high || !ty.is_integer() {
            return;
        }
        let fits =
            |range: Range| ty.is_signed() == is_signed || range.is_in(Range::of_bits(width - 1, false));
        if !fits(range) {
            return;
        }
        self.refine(value, range);
        // What it was extended from has the same range.
        if let Some(expr) = self.expr(value)
            && let ("cvt", "u64.u32", [Arg::Value(inner)]) = (&*expr.op, expr.suffix, &expr.args[..])
            && range.is_in(Range::of_bits(32, false))
        {
            limit(*inner, range, 32);
        }
        // What it was shifted from.
        if let Some(expr) = self.expr(value)
            && expr.op == "shr"
            && integer_suffix(expr.suffix) == Some((width, false))
            && let [Arg::Value(inner), Arg::Value(count)] = expr.args[..]
            && let Some(count) = self.constant_of(count).filter(|&count| count < u64::from(width))
            && range.low >= 0
            && let most = Range::of_bits(width, false).high >> count
            && range.low <= most
        {
            let from = Range::new(range.low << count, ((range.high.min(most) + 1) << count) - 1);
            limit(inner, from.and(Range::of_bits(width, false)), width);
        }
        // What it was put together from, and what a product with a number is of.
        if !is_signed
            && range.low >= 0
            && let Some(expr) = self.expr(value)
            && let [Arg::Value(one), Arg::Value(other)] = expr.args[..]
        {
            let below = Range::new(0, range.high);
            match (&*expr.op, integer_suffix(expr.suffix)) {
                ("or", Some((of, false))) if of == width => {
                    limit(other, below, width);
                    limit(one, below, width);
                }
                ("mul.wide", Some((32, false))) => {
                    if let Some(times) = self.constant_of(other).filter(|&times| times > 0) {
                        limit(one, Range::new(0, range.high / i128::from(times)), 32);
                    }
                }
                // The one number that the sum with a number is in the range for.
                ("add", Some((of, _))) if of == width => {
                    if let Some(more) = self.constant_of(other).map(|bits| number(bits, width, true)) {
                        let from = range.minus(Range::one(more));
                        if from.is_in(Range::of_bits(width, false)) {
                            limit(one, from, width);
                        }
                    }
                }
                _ => {}
            }
        }
        // The low half of what fits into it.
        if let Some(expr) = self.expr(value)
            && let ("cvt", "u32.u64", [Arg::Value(inner)]) = (&*expr.op, expr.suffix, &expr.args[..])
            && range.low >= 0
            && self.range_as(*inner, 64, false, DEPTH).is_in(Range::of_bits(32, false))
        {
            self.refine_wide(*inner, range);
        }
    }

    /// Notes the range of a value of 64 bits, as an unsigned number that fits into 32.
    pub(super) fn refine_wide(&mut self, value: Number, range: Range) {
        if self.ty(value).class() == Class::B64 {
            self.refine(value, range);
        }
    }
}
