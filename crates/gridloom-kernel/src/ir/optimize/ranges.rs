//! Derives the ranges of values from how they are computed.

use super::fold::{integer_suffix, number};
use super::range::{Range, filled};
use super::values::{Arg, Expr, Number, Pass};
use crate::ir::Ty;
use crate::ir::ty::Class;

/// How far ranges are looked for in what a value is computed from.
pub(super) const DEPTH: usize = 5;

/// Returns the range of a special register.
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

/// Returns the size along the axis of a place.
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

/// Returns the arguments of an instruction, if all of them are values.
pub(super) fn values(args: &[Arg]) -> Option<Vec<Number>> {
    args.iter()
        .map(|arg| match arg {
            Arg::Value(number) => Some(*number),
            _ => None,
        })
        .collect()
}

impl Pass<'_> {
    /// Returns the values that a value can have, read as a type of its width.
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

    pub(super) fn full(ty: Ty) -> Range {
        match ty.class() {
            Class::B32 => Range::of_bits(32, ty.is_signed()),
            Class::B64 => Range::of_bits(64, ty.is_signed()),
            Class::Pred => Range::new(0, 1),
            _ => Range::new(i128::MIN / 4, i128::MAX / 4),
        }
    }

    pub(super) fn range_within(&self, number: Number, depth: usize) -> Range {
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

    /// Returns the range of a value as an instruction reads it.
    pub(super) fn range_as(&self, number: Number, width: u32, is_signed: bool, depth: usize) -> Range {
        let full = Range::of_bits(width, is_signed);
        let range = self.range_within(number, depth);
        let ty = self.ty(number);
        if ty.is_signed() == is_signed && range.is_in(full) || range.is_in(Range::of_bits(width - 1, false)) {
            range
        } else {
            full
        }
    }

    /// Returns the range that follows from how a value is computed, and whether it is of signed
    /// numbers.
    pub(super) fn derived(&self, result: Number, expr: &Expr, depth: usize) -> Option<(Range, bool)> {
        if let ("mov", [Arg::Special(name)]) = (&*expr.op, &expr.args[..]) {
            let range = special(name)?;
            if let Some(block) = self.block
                && let Some(axis) = ["%tid.x", "%tid.y", "%tid.z"].iter().position(|place| place == name)
            {
                return Some((Range::new(0, i128::from(block[axis]) - 1), false));
            }
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
}
