//! What is known of values, and simpler ways to compute them.

use std::borrow::Cow;
use std::rc::Rc;

use super::fold::{integer_suffix, number};
use super::range::{Range, filled};
use super::values::{Arg, Expr, MemBase, Number, Pass};
use crate::ir::Ty;
use crate::ir::ty::Class;

/// How far ranges are looked for in what a value is computed from.
const DEPTH: usize = 5;

/// The range of a special register.
fn special(name: &str) -> Option<Range> {
    Some(match name {
        "%tid.x" | "%tid.y" => Range::new(0, 1023),
        "%tid.z" => Range::new(0, 63),
        "%ntid.x" | "%ntid.y" => Range::new(1, 1024),
        "%ntid.z" => Range::new(1, 64),
        "%ctaid.x" => Range::new(0, (1 << 31) - 2),
        "%nctaid.x" => Range::new(1, (1 << 31) - 1),
        "%ctaid.y" | "%ctaid.z" => Range::new(0, 65534),
        "%nctaid.y" | "%nctaid.z" => Range::new(1, 65535),
        "%laneid" => Range::new(0, 31),
        _ => return None,
    })
}

/// The size along the axis of a place.
fn size_of_axis(name: &str) -> Option<&'static str> {
    Some(match name {
        "%tid.x" => "%ntid.x",
        "%tid.y" => "%ntid.y",
        "%tid.z" => "%ntid.z",
        "%ctaid.x" => "%nctaid.x",
        "%ctaid.y" => "%nctaid.y",
        "%ctaid.z" => "%nctaid.z",
        _ => return None,
    })
}

/// The order and its arguments of a comparison: whether `a < b`, or its opposite.
fn as_less(order: &str, a: Number, b: Number) -> Option<(Number, Number, bool)> {
    Some(match order {
        "lt" => (a, b, true),
        "gt" => (b, a, true),
        "ge" => (a, b, false),
        "le" => (b, a, false),
        _ => return None,
    })
}

fn complement(order: &str) -> Option<&'static str> {
    Some(match order {
        "setp.lt" => "setp.ge",
        "setp.ge" => "setp.lt",
        "setp.gt" => "setp.le",
        "setp.le" => "setp.gt",
        "setp.eq" => "setp.ne",
        "setp.ne" => "setp.eq",
        _ => return None,
    })
}

/// The comparison with its operands exchanged.
fn exchanged(order: &str) -> Option<&'static str> {
    Some(match order {
        "setp.lt" => "setp.gt",
        "setp.gt" => "setp.lt",
        "setp.le" => "setp.ge",
        "setp.ge" => "setp.le",
        "setp.eq" => "setp.eq",
        "setp.ne" => "setp.ne",
        _ => return None,
    })
}

fn values(args: &[Arg]) -> Option<Vec<Number>> {
    args.iter()
        .map(|arg| match arg {
            Arg::Value(number) => Some(*number),
            _ => None,
        })
        .collect()
}

impl Pass<'_> {
    // Ranges.

    /// The values that a value can have, read as a type of its width.
    pub(super) fn range_in(&self, number: Number, ty: Ty) -> Range {
        match ty.class() {
            Class::B32 => self.range_as(number, 32, ty.is_signed(), DEPTH),
            Class::B64 => self.range_as(number, 64, ty.is_signed(), DEPTH),
            _ => Self::full(ty),
        }
    }

    /// Notes that a value, read as a type of its width, is in a range.
    pub(super) fn limit_in(&mut self, number: Number, range: Range, ty: Ty) {
        match ty.class() {
            Class::B32 => self.limit(number, range, 32, ty.is_signed()),
            Class::B64 => self.limit(number, range, 64, ty.is_signed()),
            _ => {}
        }
    }

    fn full(ty: Ty) -> Range {
        match ty.class() {
            Class::B32 => Range::of_bits(32, ty.is_signed()),
            Class::B64 => Range::of_bits(64, ty.is_signed()),
            Class::Pred => Range::new(0, 1),
            _ => Range::new(i128::MIN / 4, i128::MAX / 4),
        }
    }

    fn range_within(&self, number: Number, depth: usize) -> Range {
        let value = &self.values[number as usize];
        let full = Self::full(value.ty);
        if !value.ty.is_integer() {
            return full;
        }
        if let Some(bits) = value.constant {
            let width = if value.ty.class() == Class::B64 { 64 } else { 32 };
            return Range::one(super::fold::number(bits, width, value.ty.is_signed()));
        }
        let mut range = value.range.map_or(full, |range| range.and(full));
        if let Some(refined) = self.refined(number) {
            range = range.and(refined);
        }
        if depth > 0
            && let Some(expr) = &value.expr
            && let Some((found, is_signed)) = self.derived(number, expr, depth - 1)
        {
            // Read as the type has it.
            let width = if value.ty.class() == Class::B64 { 64 } else { 32 };
            let both = Range::of_bits(width - 1, false);
            if is_signed == value.ty.is_signed() && found.is_in(full) || found.is_in(both) {
                range = range.and(found);
            }
        }
        range
    }

    /// The range of a value as an instruction reads it.
    fn range_as(&self, number: Number, width: u32, is_signed: bool, depth: usize) -> Range {
        let full = Range::of_bits(width, is_signed);
        let range = self.range_within(number, depth);
        let ty = self.ty(number);
        if ty.is_signed() == is_signed && range.is_in(full) || range.is_in(Range::of_bits(width - 1, false)) {
            range
        } else {
            full
        }
    }

    /// The range that follows from how a value is computed, and whether it is of signed numbers.
    fn derived(&self, result: Number, expr: &Expr, depth: usize) -> Option<(Range, bool)> {
        if let ("mov", [Arg::Special(name)]) = (&*expr.op, &expr.args[..]) {
            let range = special(name)?;
            // A place is below the size along its axis.
            if let Some(size) = size_of_axis(name)
                && let Some(size) = self.known_special(size)
                && depth > 0
            {
                let most = self.range_as(size, 32, false, depth - 1).high - 1;
                return Some((Range::new(range.low, range.high.min(most.max(range.low))), false));
            }
            return Some((range, false));
        }
        if expr.op.starts_with("ld") {
            let range = match expr.suffix {
                "u8" => (Range::of_bits(8, false), false),
                "u16" => (Range::of_bits(16, false), false),
                "s8" => (Range::of_bits(8, true), true),
                "s16" => (Range::of_bits(16, true), true),
                _ => return None,
            };
            return Some(range);
        }
        let args = values(&expr.args)?;
        if expr.op == "cvt" {
            let (range, is_signed, to) = match expr.suffix {
                "u64.u32" => (self.range_as(args[0], 32, false, depth), false, Range::of_bits(64, false)),
                "s64.s32" => (self.range_as(args[0], 32, true, depth), true, Range::of_bits(64, true)),
                "u32.u64" => (self.range_as(args[0], 64, false, depth), false, Range::of_bits(32, false)),
                "s32.s8" => (self.range_as(args[0], 32, true, depth), true, Range::of_bits(8, true)),
                "s32.s16" => (self.range_as(args[0], 32, true, depth), true, Range::of_bits(16, true)),
                _ => return None,
            };
            return Some((if range.is_in(to) { range } else { to }, is_signed));
        }
        if expr.op == "selp" {
            let (a, b) = (self.range_within(args[0], depth), self.range_within(args[1], depth));
            let is_signed = self.ty(args[0]).is_signed();
            let same = is_signed == self.ty(args[1]).is_signed();
            return same.then(|| (a.or(b), is_signed));
        }
        if let "popc" | "clz" = &*expr.op {
            return Some((Range::new(0, 64), false));
        }
        let (width, is_signed) = integer_suffix(expr.suffix)?;
        let full = Range::of_bits(width, is_signed);
        let of = |index: usize| self.range_as(args[index], width, is_signed, depth);
        let exact = |range: Range| range.is_in(full).then_some((range, is_signed));
        match &*expr.op {
            "add" => {
                let (a, b) = (of(0), of(1));
                if let Some(found) = exact(a.plus(b)) {
                    return Some(found);
                }
                // A number that is taken away.
                if let Some(bits) = self.constant_of(args[1])
                    && !is_signed
                {
                    let less = a.plus(Range::one(number(bits, width, true)));
                    return exact(less);
                }
                let wraps =
                    self.order((expr.suffix, result, args[0])).or(self.order((expr.suffix, result, args[1])));
                if wraps == Some(false) && !is_signed {
                    return Some((a.plus(b).and(full), false));
                }
                None
            }
            "sub" => {
                let (a, b) = (of(0), of(1));
                if let Some(found) = exact(a.minus(b)) {
                    return Some(found);
                }
                if !is_signed && self.less(expr.suffix, args[0], args[1], depth) == Some(false) {
                    return Some((a.minus(b).and(full), false));
                }
                None
            }
            "mul.lo" => exact(of(0).times(of(1))),
            "mad.lo" => exact(of(0).times(of(1)).plus(of(2))),
            "mul.wide" => Some((of(0).times(of(1)), is_signed)),
            "mad.wide" => {
                let sum = of(0).times(of(1)).plus(self.range_as(args[2], 64, is_signed, depth));
                sum.is_in(Range::of_bits(64, is_signed)).then_some((sum, is_signed))
            }
            "and" => {
                let (a, b) = (of(0), of(1));
                Some((Range::new(0, a.high.min(b.high)), false))
            }
            "or" | "xor" => {
                let (a, b) = (of(0), of(1));
                Some((Range::new(0, filled(a.high.max(b.high))), false))
            }
            "shl" => {
                let count = self.constant_of(args[1]).filter(|&count| count < u64::from(width))?;
                exact(of(0).times(Range::one(1 << count)))
            }
            "shr" => {
                let a = of(0);
                match self.constant_of(args[1]) {
                    Some(count) if count < u64::from(width) => {
                        Some((Range::new(a.low >> count, a.high >> count), is_signed))
                    }
                    _ if a.low >= 0 => Some((Range::new(0, a.high), is_signed)),
                    _ => None,
                }
            }
            "min" => {
                let (a, b) = (of(0), of(1));
                Some((Range::new(a.low.min(b.low), a.high.min(b.high)), is_signed))
            }
            "max" => {
                let (a, b) = (of(0), of(1));
                Some((Range::new(a.low.max(b.low), a.high.max(b.high)), is_signed))
            }
            "div" => {
                let (a, b) = (of(0), of(1));
                (a.low >= 0 && b.low >= 1).then(|| (Range::new(a.low / b.high, a.high / b.low), is_signed))
            }
            "rem" => {
                let (a, b) = (of(0), of(1));
                (a.low >= 0 && b.low >= 1).then(|| (Range::new(0, a.high.min(b.high - 1)), is_signed))
            }
            _ => None,
        }
    }

    // Comparisons.

    /// Returns whether `a < b`, where that is known.
    fn less(&self, suffix: &'static str, a: Number, b: Number, depth: usize) -> Option<bool> {
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
    pub(super) fn assume(&mut self, condition: Number, holds: bool) {
        if self.constant_of(condition).is_some() {
            return;
        }
        self.set_truth(condition, holds);
        if let Some((op, suffix, (a, b))) = self.same_as(condition)
            && let Some(order) = op.strip_prefix("setp.")
        {
            self.assume_order(order, suffix, a, b, holds);
        }
        let Some(expr) = self.expr(condition) else { return };
        let Some(args) = values(&expr.args) else { return };
        match (&*expr.op, expr.suffix) {
            ("not", "pred") => self.assume(args[0], !holds),
            ("and", "pred") if holds => args.iter().for_each(|&arg| self.assume(arg, true)),
            ("or", "pred") if !holds => args.iter().for_each(|&arg| self.assume(arg, false)),
            (op, suffix) => {
                if let Some(order) = op.strip_prefix("setp.") {
                    self.assume_order(order, suffix, args[0], args[1], holds);
                }
            }
        }
    }

    fn assume_order(&mut self, order: &str, suffix: &'static str, a: Number, b: Number, holds: bool) {
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

    /// Notes the range of a value, as an instruction read it.
    fn limit(&mut self, value: Number, range: Range, width: u32, is_signed: bool) {
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
            self.limit(*inner, range, 32, false);
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
    fn refine_wide(&mut self, value: Number, range: Range) {
        if self.ty(value).class() == Class::B64 {
            self.refine(value, range);
        }
    }

    // Simpler values.

    fn two(
        &mut self,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        a: Number,
        b: Number,
    ) -> Option<Number> {
        self.make(op.into(), suffix, ty, vec![Arg::Value(a), Arg::Value(b)], None)
    }

    fn one(&mut self, op: &'static str, suffix: &'static str, ty: Ty, a: Number) -> Option<Number> {
        self.make(op.into(), suffix, ty, vec![Arg::Value(a)], None)
    }

    /// The low 32 bits of a value of 64 bits, computed in 32 bits where that is possible.
    pub(super) fn low_half(&mut self, value: Number) -> Option<Number> {
        self.low_half_within(value, 4).or_else(|| self.one("cvt", "u32.u64", Ty::U32, value))
    }

    fn low_half_within(&mut self, value: Number, depth: usize) -> Option<Number> {
        if self.ty(value).class() != Class::B64 {
            return None;
        }
        if let Some(bits) = self.constant_of(value) {
            return Some(self.constant(Ty::U32, u64::from(bits as u32)));
        }
        let expr = self.expr(value)?;
        if let ("cvt", "u64.u32" | "s64.s32", [Arg::Value(inner)]) = (&*expr.op, expr.suffix, &expr.args[..])
        {
            return self.is_usable(*inner).then_some(*inner);
        }
        // The low half of a parameter is there without an instruction.
        if expr.op == "ld.param" {
            return self.make("cvt".into(), "u32.u64", Ty::U32, vec![Arg::Value(value)], None);
        }
        if depth == 0 {
            return None;
        }
        let args = values(&expr.args)?;
        let (op, suffix): (&'static str, &'static str) = match &*expr.op {
            "add" => ("add", "u32"),
            "sub" => ("sub", "u32"),
            "mul.lo" => ("mul.lo", "u32"),
            "and" => ("and", "b32"),
            "or" => ("or", "b32"),
            "xor" => ("xor", "b32"),
            "shl" if self.constant_of(args[1]).is_some_and(|count| count < 32) => {
                let low = self.low_half_within(args[0], depth - 1)?;
                return self.two("shl", "b32", Ty::U32, low, args[1]);
            }
            "mad.wide" => {
                let third = self.low_half_within(args[2], depth - 1)?;
                let all = args[..2].iter().all(|&arg| self.is_usable(arg));
                let args = vec![Arg::Value(args[0]), Arg::Value(args[1]), Arg::Value(third)];
                return if all { self.make("mad.lo".into(), "u32", Ty::U32, args, None) } else { None };
            }
            "mul.wide" => {
                let all = args.iter().all(|&arg| self.is_usable(arg));
                return if all { self.two("mul.lo", "u32", Ty::U32, args[0], args[1]) } else { None };
            }
            _ => return None,
        };
        let (a, b) = (self.low_half_within(args[0], depth - 1)?, self.low_half_within(args[1], depth - 1)?);
        self.two(op, suffix, Ty::U32, a, b)
    }

    /// The value of 32 bits that a value of 64 bits extends.
    fn narrow(&mut self, value: Number) -> Option<Number> {
        if self.ty(value).class() != Class::B64
            || !self.range_as(value, 64, false, DEPTH).is_in(Range::of_bits(32, false))
        {
            return None;
        }
        self.low_half_within(value, 4)
    }

    /// The difference of two numbers below 2^31 as that of their low halves. As unsigned numbers,
    /// both differences are below another number up to 2^31 or both are not.
    fn low_difference(&mut self, value: Number, bound: Number) -> Option<Number> {
        let small = Range::new(0, (1 << 31) - 1);
        let expr = self.expr(value)?;
        let args = values(&expr.args)?;
        let is_difference = match (&*expr.op, expr.suffix) {
            ("sub", "u64") => self.range_as(args[1], 64, false, DEPTH).is_in(small),
            ("add", "u64" | "s64") => {
                self.constant_of(args[1]).is_some_and(|bits| (-(1 << 31)..0).contains(&(bits as i64)))
            }
            _ => false,
        };
        let is_small = self.range_as(args[0], 64, false, DEPTH).is_in(small)
            && self.range_as(bound, 64, false, DEPTH).is_in(Range::new(0, 1 << 31));
        if !is_difference || !is_small {
            return None;
        }
        self.low_half_within(value, 4)
    }

    fn widened(&mut self, value: Number) -> Option<Number> {
        self.one("cvt", "u64.u32", Ty::U64, value)
    }

    /// A simpler value that is the same, if there is one.
    #[expect(clippy::ptr_arg, reason = "the name is kept in the instruction")]
    pub(super) fn simplify(
        &mut self,
        op: &Cow<'static, str>,
        suffix: &'static str,
        ty: Ty,
        args: &[Arg],
    ) -> Option<Number> {
        let args = values(args)?;
        let known: Vec<Option<u64>> = args.iter().map(|&arg| self.constant_of(arg)).collect();
        // What can have one value only is a number.
        if let "add" | "mul.lo" | "mad.lo" | "mul.wide" | "mad.wide" | "sub" = &**op
            && let Some(args) = self.with_numbers(&args, &known)
        {
            return self.make(op.clone(), suffix, ty, args, None);
        }
        match (&**op, suffix, &args[..]) {
            (op, "pred", _) if ty == Ty::Bool => return self.logic(op, &args),
            ("selp", _, &[a, b, cond]) => return self.choice(suffix, ty, a, b, cond),
            ("cvt", _, &[a]) => return self.conversion(suffix, ty, a),
            (name, _, &[a, b]) if name.starts_with("setp.") => return self.comparison(op, suffix, a, b),
            _ => {}
        }
        let (width, is_signed) = integer_suffix(suffix)?;
        if !ty.is_integer() {
            return None;
        }
        // Numbers stand on the right.
        if let ("add" | "mul.lo" | "mul.hi" | "and" | "or" | "xor" | "min" | "max", &[a, b]) =
            (&**op, &args[..])
            && (known[0].is_some() && known[1].is_none() || known[0].is_none() && known[1].is_none() && a > b)
        {
            return self.make(op.clone(), suffix, ty, vec![Arg::Value(b), Arg::Value(a)], None);
        }
        if let Some(number) = self.without_effect(op, suffix, ty, &args, &known) {
            return Some(number);
        }
        let range = |pass: &Self, index: usize| pass.range_as(args[index], width, is_signed, DEPTH);
        match (&**op, &args[..]) {
            // The same sum from fewer parts.
            ("add", &[a, _]) if known[1].is_some() => {
                if let Some(expr) = self.expr(a)
                    && expr.op == "add"
                    && expr.suffix == suffix
                    && let [Arg::Value(x), Arg::Value(before)] = expr.args[..]
                    && let (Some(before), Some(more)) = (self.constant_of(before), known[1])
                    && self.is_usable(x)
                {
                    let of = self.ty(a);
                    let sum = super::fold::held(of, i128::from(before) + i128::from(more));
                    let sum = self.constant(of, sum);
                    return self.two("add", suffix, ty, x, sum);
                }
            }
            ("sub", &[a, b]) => {
                if let Some(bits) = known[1] {
                    let of = self.ty(b);
                    let negative = super::fold::held(of, -i128::from(bits));
                    let negative = self.constant(of, negative);
                    return self.two("add", suffix, ty, a, negative);
                }
            }
            ("div", &[a, _]) => {
                if let Some(power) = known[1].filter(|bits| bits.is_power_of_two())
                    && range(self, 0).low >= 0
                    && number(power, width, is_signed) > 0
                {
                    let count = self.constant(Ty::U32, power.trailing_zeros().into());
                    let suffix = if width == 64 { "u64" } else { "u32" };
                    return self.two("shr", suffix, ty, a, count);
                }
            }
            ("rem", &[a, b]) => {
                if let Some(power) = known[1].filter(|bits| bits.is_power_of_two())
                    && range(self, 0).low >= 0
                    && number(power, width, is_signed) > 0
                {
                    let mask = self.constant(self.ty(b), power - 1);
                    let suffix = if width == 64 { "b64" } else { "b32" };
                    return self.two("and", suffix, ty, a, mask);
                }
            }
            ("mul.hi", _)
                if !is_signed && range(self, 0).times(range(self, 1)).is_in(Range::of_bits(width, false)) =>
            {
                return Some(self.constant(ty, 0));
            }
            // A product with a number and a sum as one instruction that widens.
            ("mad.lo", &[a, b, c]) if width == 64 && !self.fits_in_32(op, suffix, &args) => {
                if let (Some(a), Some(b)) = (self.narrow(a), self.narrow(b)) {
                    let args = vec![Arg::Value(a), Arg::Value(b), Arg::Value(c)];
                    return self.make("mad.wide".into(), "u32", ty, args, None);
                }
            }
            ("mul.lo", &[a, b]) if width == 64 && !is_signed && !self.fits_in_32(op, suffix, &args) => {
                if let (Some(a), Some(b)) = (self.narrow(a), self.narrow(b)) {
                    return self.make("mul.wide".into(), "u32", ty, vec![Arg::Value(a), Arg::Value(b)], None);
                }
            }
            _ => {}
        }
        if width == 64 && !is_signed {
            return self.in_32_bits(op, suffix, ty, &args);
        }
        None
    }

    /// The arguments with numbers for those whose range has one value, if there are any.
    fn with_numbers(&mut self, args: &[Number], known: &[Option<u64>]) -> Option<Vec<Arg>> {
        let mut is_changed = false;
        let mut all = Vec::with_capacity(args.len());
        for (&arg, known) in args.iter().zip(known) {
            let ty = self.ty(arg);
            let range = if known.is_none() && ty.is_integer() { Some(self.range_in(arg, ty)) } else { None };
            all.push(Arg::Value(match range.filter(|range| range.low == range.high) {
                Some(range) if matches!(ty.class(), Class::B32 | Class::B64) => {
                    is_changed = true;
                    let bits = super::fold::held(ty, range.low);
                    self.constant(ty, bits)
                }
                _ => arg,
            }));
        }
        is_changed.then_some(all)
    }

    /// Returns whether the result of an instruction is known to fit into 32 bits.
    fn fits_in_32(&self, op: &str, suffix: &'static str, args: &[Number]) -> bool {
        let args = args.iter().map(|&arg| Arg::Value(arg)).collect();
        let expr = Expr { op: op.to_owned().into(), suffix, args };
        self.derived(Number::MAX, &expr, DEPTH)
            .is_some_and(|(range, _)| range.is_in(Range::of_bits(32, false)))
    }

    /// One of the arguments, or a number, where the instruction gives that.
    fn without_effect(
        &mut self,
        op: &str,
        suffix: &'static str,
        ty: Ty,
        args: &[Number],
        known: &[Option<u64>],
    ) -> Option<Number> {
        let (width, is_signed) = integer_suffix(suffix)?;
        let range = |pass: &Self, index: usize| pass.range_as(args[index], width, is_signed, DEPTH);
        let all_ones = |bits: u64| if width == 32 { bits as u32 == u32::MAX } else { bits == u64::MAX };
        match (op, args, known) {
            ("add" | "sub" | "or" | "xor" | "shl" | "shr", &[a, _], [_, Some(0)]) => Some(a),
            ("mul.lo" | "div", &[a, _], [_, Some(1)]) => Some(a),
            ("mul.lo" | "and", _, [_, Some(0)]) => Some(self.constant(ty, 0)),
            ("and", &[a, _], &[_, Some(bits)]) if all_ones(bits) => Some(a),
            ("and" | "or" | "min" | "max", &[a, b], _) if a == b => Some(a),
            ("sub" | "xor", &[a, b], _) if a == b => Some(self.constant(ty, 0)),
            ("mad.lo", &[a, b, _], [_, _, Some(0)]) => self.two("mul.lo", suffix, ty, a, b),
            ("mad.lo" | "mad.wide", &[_, _, c], [Some(0), ..] | [_, Some(0), _]) => Some(c),
            ("mul.wide", _, [Some(0), _] | [_, Some(0)]) => Some(self.constant(ty, 0)),
            ("mul.wide", &[a, _], [_, Some(1)]) | ("mul.wide", &[_, a], [Some(1), _]) if !is_signed => {
                self.widened(a)
            }
            ("mad.wide", &[a, _, c], [_, Some(1), _]) | ("mad.wide", &[_, a, c], [Some(1), ..])
                if !is_signed =>
            {
                let wide = self.widened(a)?;
                self.two("add", "u64", ty, wide, c)
            }
            ("mad.lo", &[_, b, c], [Some(1), ..]) => self.two("add", suffix, ty, b, c),
            ("mad.lo", &[a, _, c], [_, Some(1), _]) => self.two("add", suffix, ty, a, c),
            ("mad.lo", &[a, b, c], [Some(_), Some(_), _]) => {
                let product = self.two("mul.lo", suffix, ty, a, b)?;
                self.two("add", suffix, ty, c, product)
            }
            // A mask that keeps all that can be there.
            ("and", &[a, _], &[_, Some(bits)]) => {
                let mask = number(bits, width, false);
                let a_range = self.range_as(a, width, false, DEPTH);
                (mask == filled(mask) && a_range.is_in(Range::new(0, mask))).then_some(a)
            }
            ("min", &[a, b], _) => {
                let (ra, rb) = (range(self, 0), range(self, 1));
                (ra.high <= rb.low).then_some(a).or((rb.high <= ra.low).then_some(b))
            }
            ("max", &[a, b], _) => {
                let (ra, rb) = (range(self, 0), range(self, 1));
                (ra.low >= rb.high).then_some(a).or((rb.low >= ra.high).then_some(b))
            }
            ("rem", &[a, _], _) => {
                let (ra, rb) = (range(self, 0), range(self, 1));
                (ra.low >= 0 && rb.low >= 1 && ra.high < rb.low).then_some(a)
            }
            _ => None,
        }
    }

    /// An instruction on 64 bits in 32 bits, where all that it reads and gives fits.
    fn in_32_bits(&mut self, op: &str, suffix: &'static str, ty: Ty, args: &[Number]) -> Option<Number> {
        let (op, narrow): (&'static str, &'static str) = match op {
            "add" => ("add", "u32"),
            "sub" => ("sub", "u32"),
            "mul.lo" => ("mul.lo", "u32"),
            "mad.lo" => ("mad.lo", "u32"),
            "and" => ("and", "b32"),
            "or" => ("or", "b32"),
            "xor" => ("xor", "b32"),
            "min" => ("min", "u32"),
            "max" => ("max", "u32"),
            "div" => ("div", "u32"),
            "rem" => ("rem", "u32"),
            "shr" if suffix == "u64" => ("shr", "u32"),
            "shl" => ("shl", "b32"),
            _ => return None,
        };
        if ty.class() != Class::B64 {
            return None;
        }
        let expr = Expr { op: op.into(), suffix, args: args.iter().map(|&arg| Arg::Value(arg)).collect() };
        let fits = match op {
            // Never more than what is read.
            "and" | "or" | "xor" | "min" | "max" | "div" | "rem" => true,
            "shr" => self.constant_of(args[1]).is_some_and(|count| count < 32),
            _ => self
                .derived(Number::MAX, &expr, DEPTH)
                .is_some_and(|(range, _)| range.is_in(Range::of_bits(32, false))),
        };
        if !fits {
            return None;
        }
        let is_shift = matches!(op, "shr" | "shl");
        let mut parts = Vec::new();
        for (index, &arg) in args.iter().enumerate() {
            parts.push(Arg::Value(if is_shift && index == 1 { arg } else { self.narrow(arg)? }));
        }
        let low = self.make(op.into(), narrow, Ty::U32, parts, None)?;
        self.widened(low)
    }

    fn conversion(&mut self, suffix: &'static str, ty: Ty, a: Number) -> Option<Number> {
        match suffix {
            "u32.u64" => {
                // Addresses of a block's memory have 32 bits.
                if let Some(expr) = self.expr(a)
                    && let ("mov", [Arg::Address(base)]) = (&*expr.op, &expr.args[..])
                {
                    return self.make("mov".into(), "u32", ty, vec![Arg::Address(*base)], None);
                }
                if self.expr(a).is_some_and(|expr| expr.op == "ld.param") {
                    return None;
                }
                let low = self.low_half_within(a, 4)?;
                (self.ty(low).class() == Class::B32 && ty.class() == Class::B32).then_some(low)
            }
            "s32.s8" | "s32.s16" => {
                let to = Range::of_bits(if suffix == "s32.s8" { 8 } else { 16 }, true);
                self.range_as(a, 32, true, DEPTH).is_in(to).then_some(a)
            }
            // Both extend what is not negative alike.
            "s64.s32" => {
                let fits = self.range_as(a, 32, true, DEPTH).low >= 0;
                if fits { self.one("cvt", "u64.u32", ty, a) } else { None }
            }
            _ => None,
        }
    }

    fn choice(&mut self, suffix: &'static str, ty: Ty, a: Number, b: Number, cond: Number) -> Option<Number> {
        if a == b {
            return Some(a);
        }
        if let Some(truth) = self.truth(cond) {
            return Some(if truth { a } else { b });
        }
        if let Some(expr) = self.expr(cond)
            && let ("not", [Arg::Value(inner)]) = (&*expr.op, &expr.args[..])
            && self.is_usable(*inner)
        {
            let args = vec![Arg::Value(b), Arg::Value(a), Arg::Value(*inner)];
            return self.make("selp".into(), suffix, ty, args, None);
        }
        if ty == Ty::U64
            && let (Some(a), Some(b)) = (self.narrow(a), self.narrow(b))
        {
            let args = vec![Arg::Value(a), Arg::Value(b), Arg::Value(cond)];
            let low = self.make("selp".into(), "b32", Ty::U32, args, None)?;
            return self.widened(low);
        }
        None
    }

    /// Returns whether one of two conditions is known to be the opposite of the other.
    fn are_opposite(&self, a: Number, b: Number) -> bool {
        let (Some(x), Some(y)) = (self.expr(a), self.expr(b)) else { return false };
        let is_not = |expr: &Expr, of: Number| {
            expr.op == "not" && expr.suffix == "pred" && expr.args[..] == [Arg::Value(of)]
        };
        is_not(&x, b)
            || is_not(&y, a)
            || integer_suffix(x.suffix).is_some()
                && x.suffix == y.suffix
                && x.args == y.args
                && complement(&x.op) == Some(&*y.op)
    }

    fn logic(&mut self, op: &str, args: &[Number]) -> Option<Number> {
        let truths: Vec<Option<bool>> = args.iter().map(|&arg| self.truth(arg)).collect();
        match (op, args, &truths[..]) {
            ("and" | "or", &[a, b], _) if a == b => Some(a),
            ("and", &[a, b], _) if self.are_opposite(a, b) => Some(self.constant(Ty::Bool, 0)),
            ("or", &[a, b], _) if self.are_opposite(a, b) => Some(self.constant(Ty::Bool, 1)),
            ("and", &[_, b], [Some(true), _]) => Some(b),
            ("and", &[a, _], [_, Some(true)]) => Some(a),
            ("and", _, [Some(false), _] | [_, Some(false)]) => Some(self.constant(Ty::Bool, 0)),
            ("or", &[_, b], [Some(false), _]) => Some(b),
            ("or", &[a, _], [_, Some(false)]) => Some(a),
            ("or", _, [Some(true), _] | [_, Some(true)]) => Some(self.constant(Ty::Bool, 1)),
            ("xor", &[_, b], [Some(false), _]) => Some(b),
            ("xor", &[a, _], [_, Some(false)]) => Some(a),
            ("xor", &[_, b], [Some(true), _]) => self.one("not", "pred", Ty::Bool, b),
            ("xor", &[a, _], [_, Some(true)]) => self.one("not", "pred", Ty::Bool, a),
            ("not", _, &[Some(truth)]) => Some(self.constant(Ty::Bool, (!truth).into())),
            ("not", &[a], _) => {
                let expr: Rc<Expr> = self.expr(a)?;
                let inner = values(&expr.args)?;
                if !inner.iter().all(|&arg| self.is_usable(arg)) {
                    return None;
                }
                match (&*expr.op, expr.suffix) {
                    ("not", "pred") => Some(inner[0]),
                    ("and" | "or", "pred") => {
                        let op = if expr.op == "and" { "or" } else { "and" };
                        let (a, b) = (
                            self.one("not", "pred", Ty::Bool, inner[0])?,
                            self.one("not", "pred", Ty::Bool, inner[1])?,
                        );
                        self.two(op, "pred", Ty::Bool, a, b)
                    }
                    (order, suffix) if integer_suffix(suffix).is_some() => {
                        let order = complement(order)?;
                        self.two(order, suffix, Ty::Bool, inner[0], inner[1])
                    }
                    _ => None,
                }
            }
            ("and" | "or", &[a, b], _) if a > b => {
                let op = if op == "and" { "and" } else { "or" };
                self.two(op, "pred", Ty::Bool, b, a)
            }
            _ => None,
        }
    }

    fn comparison(&mut self, op: &str, suffix: &'static str, a: Number, b: Number) -> Option<Number> {
        let (width, is_signed) = integer_suffix(suffix)?;
        let order = op.strip_prefix("setp.")?;
        let whole = (a, b);
        let decided = match as_less(order, a, b) {
            Some((a, b, is_less)) => self.less(suffix, a, b, DEPTH).map(|less| less == is_less),
            None => {
                let (ra, rb) =
                    (self.range_as(a, width, is_signed, DEPTH), self.range_as(b, width, is_signed, DEPTH));
                let apart = ra.high < rb.low || rb.high < ra.low;
                let is_equal = if a == b { Some(true) } else { apart.then_some(false) };
                is_equal.map(|equal| equal == (order == "eq"))
            }
        };
        if let Some(decided) = decided {
            return Some(self.constant(Ty::Bool, decided.into()));
        }
        // A condition that was stored as a number.
        if self.constant_of(b) == Some(0)
            && let "eq" | "ne" = order
            && let Some(expr) = self.expr(a)
            && expr.op == "selp"
            && let Some(args) = values(&expr.args)
            && let (Some(1), Some(0)) = (self.constant_of(args[0]), self.constant_of(args[1]))
            && self.is_usable(args[2])
        {
            return if order == "ne" { Some(args[2]) } else { self.one("not", "pred", Ty::Bool, args[2]) };
        }
        if self.constant_of(a).is_some() && self.constant_of(b).is_none() {
            let op = exchanged(op)?;
            return self.two(op, suffix, Ty::Bool, b, a);
        }
        // Two values that each fit into 32 bits.
        if width == 64
            && (!is_signed || [a, b].iter().all(|&value| self.range_as(value, 64, true, DEPTH).low >= 0))
            && let (Some(a), Some(b)) = (self.narrow(a), self.narrow(b))
        {
            let op: &'static str = match order {
                "eq" => "setp.eq",
                "ne" => "setp.ne",
                "lt" => "setp.lt",
                "le" => "setp.le",
                "gt" => "setp.gt",
                "ge" => "setp.ge",
                _ => return None,
            };
            let narrow = self.two(op, "u32", Ty::Bool, a, b)?;
            self.note_same(narrow, op, suffix, whole);
            return Some(narrow);
        }
        if width == 64
            && !is_signed
            && let "lt" | "ge" = order
            && let (Some(a), Some(b)) = (self.low_difference(a, b), self.narrow(b))
        {
            let op = if order == "lt" { "setp.lt" } else { "setp.ge" };
            let narrow = self.two(op, "u32", Ty::Bool, a, b)?;
            self.note_same(narrow, op, suffix, whole);
            return Some(narrow);
        }
        None
    }

    /// The place of an access with what is known of its address in its offset.
    pub(super) fn place(&mut self, arg: Arg) -> Arg {
        let Arg::Mem { space, base: MemBase::Value(base), index, offset } = arg else { return arg };
        // The start of an array of the block.
        if let Some(expr) = self.expr(base)
            && let ("mov", "u32", &[Arg::Address(array)]) = (&*expr.op, expr.suffix, &expr.args[..])
            && index.is_none()
        {
            return Arg::Mem { space, base: MemBase::Fixed(array), index, offset };
        }
        let (base, more) = self.split(base, 3);
        match offset.checked_add(more) {
            // Offsets have 32 bits.
            Some(sum) if i32::try_from(sum).is_ok() && self.is_usable(base) => {
                Arg::Mem { space, base: MemBase::Value(base), index, offset: sum }
            }
            _ => arg,
        }
    }

    /// An index of 32 bits as another one and a number.
    fn index_and_number(&self, index: Number) -> Option<(Number, i64)> {
        let expr = self.expr(index)?;
        let args = values(&expr.args)?;
        if expr.op != "add" || !matches!(expr.suffix, "u32" | "s32") || !self.is_usable(args[0]) {
            return None;
        }
        let bits = self.constant_of(args[1])?;
        Some((args[0], i64::from(bits as i32)))
    }

    /// The address of another index, and bytes to add to it.
    fn indexed(
        &mut self,
        address: Number,
        op: &'static str,
        ty: Ty,
        (index, size, base): (Number, Number, Number),
        bytes: Option<i64>,
    ) -> (Number, i64) {
        let Some(bytes) = bytes.filter(|&bytes| i32::try_from(bytes).is_ok() && self.is_usable(base)) else {
            return (address, 0);
        };
        let args = vec![Arg::Value(index), Arg::Value(size), Arg::Value(base)];
        self.make(op.into(), "u32", ty, args, None).map_or((address, 0), |other| (other, bytes))
    }

    /// An address as another one and a number of bytes.
    fn split(&mut self, address: Number, depth: usize) -> (Number, i64) {
        let none = (address, 0);
        let Some(expr) = self.expr(address) else { return none };
        let Some(args) = values(&expr.args) else { return none };
        if depth == 0 {
            return none;
        }
        match (&*expr.op, expr.suffix) {
            ("mad.lo", "u32") => {
                let Some(size) = self.constant_of(args[1]) else { return none };
                let Some((index, more)) = self.index_and_number(args[0]) else { return none };
                // Only where the address stays in the memory of the block.
                let sum = self.range_as(index, 32, false, DEPTH).plus(Range::one(more.into()));
                if !sum.is_in(Range::of_bits(32, false)) {
                    return none;
                }
                self.indexed(
                    address,
                    "mad.lo",
                    Ty::U32,
                    (index, args[1], args[2]),
                    more.checked_mul(size as i64),
                )
            }
            ("add", "u32") => match self.constant_of(args[1]) {
                Some(bits) if self.is_usable(args[0]) => (args[0], i64::from(bits as i32)),
                _ => none,
            },
            ("mad.wide", "u32") => {
                let Some(size) = self.constant_of(args[1]) else { return none };
                let Some((index, more)) = self.index_and_number(args[0]) else { return none };
                // Only where the sum does not wrap around before it is widened.
                let sum = self.range_as(index, 32, false, DEPTH).plus(Range::one(more.into()));
                if !sum.is_in(Range::of_bits(32, false)) {
                    return none;
                }
                self.indexed(
                    address,
                    "mad.wide",
                    Ty::U64,
                    (index, args[1], args[2]),
                    more.checked_mul(size as i64),
                )
            }
            ("add", "u64" | "s64") => match self.constant_of(args[1]) {
                Some(bits) if self.is_usable(args[0]) => {
                    let (base, more) = self.split(args[0], depth - 1);
                    match more.checked_add(bits as i64) {
                        Some(sum) => (base, sum),
                        None => none,
                    }
                }
                _ => none,
            },
            // The index is a sum with a number.
            ("mad.lo", "u64") => {
                let Some(size) = self.constant_of(args[1]) else { return none };
                let Some(inner) = self.expr(args[0]) else { return none };
                let Some(parts) = values(&inner.args) else { return none };
                if inner.op != "add"
                    || inner.suffix != "u64"
                    || !parts.iter().all(|&part| self.is_usable(part))
                {
                    return none;
                }
                let Some(more) = self.constant_of(parts[1]) else { return none };
                let bytes =
                    (more as i64).checked_mul(size as i64).filter(|&bytes| i32::try_from(bytes).is_ok());
                let Some(bytes) = bytes else { return none };
                let from = vec![Arg::Value(parts[0]), Arg::Value(args[1]), Arg::Value(args[2])];
                if !self.is_usable(args[2]) {
                    return none;
                }
                match self.make("mad.lo".into(), "u64", Ty::U64, from, None) {
                    Some(base) => (base, bytes),
                    None => none,
                }
            }
            _ => none,
        }
    }
}
