//! Moves constant parts of an index into the offset of its address.

use super::range::Range;
use super::ranges::{DEPTH, values};
use super::values::{Arg, MemBase, Number, Pass};
use crate::ir::Ty;

impl Pass<'_> {
    /// Returns the place of an access with the constant part of its address moved into the offset.
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

    /// Splits a 32-bit index into another index and a constant.
    pub(super) fn index_and_number(&self, index: Number) -> Option<(Number, i64)> {
        let expr = self.expr(index)?;
        let args = values(&expr.args)?;
        if expr.op != "add" || !matches!(expr.suffix, "u32" | "s32") || !self.is_usable(args[0]) {
            return None;
        }
        let bits = self.constant_of(args[1])?;
        Some((args[0], i64::from(bits as i32)))
    }

    /// Returns the address of another index, and bytes to add to it.
    pub(super) fn indexed(
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

    /// Splits an address into another address and a constant number of bytes.
    pub(super) fn split(&mut self, address: Number, depth: usize) -> (Number, i64) {
        let none = (address, 0);
        let Some(expr) = self.expr(address) else { return none };
        let Some(args) = values(&expr.args) else { return none };
        if depth == 0 {
            return none;
        }
        match (&*expr.op, expr.suffix) {
            (op @ ("mad.lo" | "mad.wide"), "u32") => {
                let (op, ty) = if op == "mad.lo" { ("mad.lo", Ty::U32) } else { ("mad.wide", Ty::U64) };
                let Some(size) = self.constant_of(args[1]) else { return none };
                let Some((index, more)) = self.index_and_number(args[0]) else { return none };
                // The sum must not wrap around: before it is widened, or in the memory of a block.
                let sum = self.range_as(index, 32, false, DEPTH).plus(Range::one(more.into()));
                if !sum.is_in(Range::of_bits(32, false)) {
                    return none;
                }
                self.indexed(address, op, ty, (index, args[1], args[2]), more.checked_mul(size as i64))
            }
            ("add", "u32") => match self.constant_of(args[1]) {
                Some(bits) if self.is_usable(args[0]) => (args[0], i64::from(bits as i32)),
                _ => none,
            },
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
