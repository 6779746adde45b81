//! Rules that replace a computation by a simpler one.

use std::borrow::Cow;

use super::fold::{held, integer_suffix, number};
use super::range::{Range, filled};
use super::ranges::{DEPTH, values};
use super::values::{Arg, Expr, Number, Pass};
use crate::ir::Ty;
use crate::ir::ty::Class;

impl Pass<'_> {
    pub(super) fn two(
        &mut self,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        a: Number,
        b: Number,
    ) -> Option<Number> {
        self.make(op.into(), suffix, ty, vec![Arg::Value(a), Arg::Value(b)], None)
    }

    pub(super) fn one(
        &mut self,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        a: Number,
    ) -> Option<Number> {
        self.make(op.into(), suffix, ty, vec![Arg::Value(a)], None)
    }

    /// Returns the low 32 bits of a value of 64 bits, computed in 32 bits where that is possible.
    pub(super) fn low_half(&mut self, value: Number) -> Option<Number> {
        self.low_half_within(value, 4).or_else(|| self.one("cvt", "u32.u64", Ty::U32, value))
    }

    pub(super) fn low_half_within(&mut self, value: Number, depth: usize) -> Option<Number> {
        let low = self.low_half_of(value, depth)?;
        let range = self.range_as(value, 64, false, DEPTH);
        // The low half is the whole value here.
        if range.is_in(Range::of_bits(32, false))
            && self.ty(low).class() == Class::B32
            && !self.range_as(low, 32, false, DEPTH).is_in(range)
        {
            self.limit(low, range, 32, false);
        }
        Some(low)
    }

    fn low_half_of(&mut self, value: Number, depth: usize) -> Option<Number> {
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

    /// Returns the value of 32 bits that a value of 64 bits extends.
    pub(super) fn narrow(&mut self, value: Number) -> Option<Number> {
        if self.ty(value).class() != Class::B64 {
            return None;
        }
        if !self.range_as(value, 64, false, DEPTH).is_in(Range::of_bits(32, false)) {
            return None;
        }
        self.low_half_within(value, 4)
    }

    /// Returns the difference of two numbers below 2^31 as that of their low halves. As unsigned
    /// numbers, both differences are below another number up to 2^31 or both are not.
    pub(super) fn low_difference(&mut self, value: Number, bound: Number) -> Option<Number> {
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

    /// Returns the numbers that a value of 64 bits can be as a signed number, where it is a sum or
    /// difference of small numbers.
    fn signed_range(&self, value: Number, depth: usize) -> Option<Range> {
        if let Some(bits) = self.constant_of(value) {
            return Some(Range::one(i128::from(bits as i64)));
        }
        let range = self.range_as(value, 64, false, DEPTH);
        if range.is_in(Range::of_bits(63, false)) {
            return Some(range);
        }
        let expr = self.expr(value).filter(|_| depth > 0)?;
        let args = values(&expr.args)?;
        if !matches!(expr.suffix, "u64" | "s64") {
            return None;
        }
        let part = |index: usize| self.signed_range(args[index], depth - 1);
        let sum = match &*expr.op {
            "add" => part(0)?.plus(part(1)?),
            "sub" => part(0)?.minus(part(1)?),
            _ => return None,
        };
        sum.is_in(Range::of_bits(64, true)).then_some(sum)
    }

    /// Returns the low halves of two values that each are their halves with the sign extended,
    /// which keeps the order of signed and of unsigned numbers.
    pub(super) fn signed_halves(&mut self, a: Number, b: Number) -> Option<(Number, Number)> {
        let word = Range::of_bits(32, true);
        let fits = |pass: &Self, value| pass.signed_range(value, 3).is_some_and(|range| range.is_in(word));
        if !fits(self, a) || !fits(self, b) {
            return None;
        }
        let mut half = |value| match self.constant_of(value) {
            Some(bits) => Some(self.constant(Ty::I32, held(Ty::I32, i128::from(bits as i64)))),
            None => self.low_half_within(value, 4),
        };
        Some((half(a)?, half(b)?))
    }

    pub(super) fn widened(&mut self, value: Number) -> Option<Number> {
        self.one("cvt", "u64.u32", Ty::U64, value)
    }

    /// Returns a simpler value that is the same, if there is one.
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
            // The number last, where it can become part of an address.
            ("add", &[a, b]) => {
                let parts = [(a, b), (b, a)].into_iter().find_map(|(whole, sum)| {
                    let (part, number) = self.sum_with_number(sum, suffix)?;
                    Some((whole, part, number))
                });
                if let Some((whole, part, number)) = parts {
                    let sum = self.two("add", suffix, ty, whole, part)?;
                    return self.two("add", suffix, ty, sum, number);
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
        match &**op {
            "mul.wide" | "mad.wide" if suffix == "u32" => self.product_in_32_bits(op, ty, &args),
            _ if width == 64 && !is_signed => self.in_32_bits(op, suffix, ty, &args),
            _ => None,
        }
    }

    /// Returns a product that widens, and its sum, in 32 bits, where the result fits.
    fn product_in_32_bits(&mut self, op: &str, ty: Ty, args: &[Number]) -> Option<Number> {
        if ty.class() != Class::B64 || !self.fits_in_32(op, "u32", args) {
            return None;
        }
        let low = match *args {
            [a, b] => self.two("mul.lo", "u32", Ty::U32, a, b)?,
            [a, b, c] => {
                let c = self.narrow(c)?;
                let args = vec![Arg::Value(a), Arg::Value(b), Arg::Value(c)];
                self.make("mad.lo".into(), "u32", Ty::U32, args, None)?
            }
            _ => return None,
        };
        self.widened(low)
    }

    /// Returns a sum with a number as its parts. A sum of 32 bits that was extended is one of 64
    /// bits where it does not wrap around.
    fn sum_with_number(&mut self, sum: Number, suffix: &'static str) -> Option<(Number, Number)> {
        let expr = self.expr(sum)?;
        let args = values(&expr.args)?;
        if expr.op == "add" && expr.suffix == suffix {
            return (self.constant_of(args[1]).is_some() && self.is_usable(args[0]))
                .then_some((args[0], args[1]));
        }
        if (&*expr.op, expr.suffix, suffix) != ("cvt", "u64.u32", "u64") {
            return None;
        }
        let (part, more) = self.index_and_number(args[0])?;
        let exact = self.range_as(part, 32, false, DEPTH).plus(Range::one(more.into()));
        if !exact.is_in(Range::of_bits(32, false)) {
            return None;
        }
        Some((self.widened(part)?, self.constant(Ty::U64, more as u64)))
    }

    /// Returns the arguments with numbers for those whose range has one value, if there are any.
    pub(super) fn with_numbers(&mut self, args: &[Number], known: &[Option<u64>]) -> Option<Vec<Arg>> {
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
    pub(super) fn fits_in_32(&self, op: &str, suffix: &'static str, args: &[Number]) -> bool {
        let args = args.iter().map(|&arg| Arg::Value(arg)).collect();
        let expr = Expr { op: op.to_owned().into(), suffix, args };
        self.derived(Number::MAX, &expr, DEPTH)
            .is_some_and(|(range, _)| range.is_in(Range::of_bits(32, false)))
    }

    /// Returns the argument or the constant that an instruction always results in, if there is one.
    pub(super) fn without_effect(
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

    /// Returns an instruction on 64 bits in 32 bits, where all that it reads and gives fits.
    pub(super) fn in_32_bits(
        &mut self,
        op: &str,
        suffix: &'static str,
        ty: Ty,
        args: &[Number],
    ) -> Option<Number> {
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

    pub(super) fn conversion(&mut self, suffix: &'static str, ty: Ty, a: Number) -> Option<Number> {
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

    pub(super) fn choice(
        &mut self,
        suffix: &'static str,
        ty: Ty,
        a: Number,
        b: Number,
        cond: Number,
    ) -> Option<Number> {
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
}
