//! Machine instructions for arithmetic, in one thread or in a vector of threads.
//!
//! A lowering may be wrong for rare operands if it reports them. For those the interpreter's own
//! function is called.

use super::Emitter;
use super::value::{Val, scalar_type};
use crate::native::{Class, Kind, Native};
use crate::wide::Intrinsic;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_ptx::op::{BoolOp, Compare, LogicOp};

/// The result of a lowering, and where it is not valid.
pub(crate) struct Lowered {
    pub(crate) value: Value,
    /// Where the interpreter's function must be called: a truth value or a mask.
    pub(crate) rare: Option<Value>,
}

impl From<Value> for Lowered {
    fn from(value: Value) -> Self {
        Lowered { value, rare: None }
    }
}

impl Emitter<'_> {
    /// Emits the instruction for all threads in vectors. Returns `None` if there are no vector
    /// instructions for it.
    pub(crate) fn lower_vectors(
        &mut self,
        native: &Native,
        operands: &[Val],
    ) -> Option<(Vec<Value>, Vec<Value>)> {
        let is_narrow = |class: Class| matches!(class, Class::B8 | Class::B16);
        // The place of a field is part of the instruction.
        let operands = match native.kind {
            Kind::BitField { .. } => &operands[..1],
            Kind::InsertField { .. } => &operands[..2],
            _ => operands,
        };
        if let Kind::IntToFloat { .. }
        | Kind::Saturate { .. }
        | Kind::FloatToNarrow { .. }
        | Kind::HalfToFloat
        | Kind::BfloatToFloat
        | Kind::FloatToHalf
        | Kind::FloatToBfloat = native.kind
        {
            return Some((self.convert_narrow(native, &operands[0])?, Vec::new()));
        }
        if let Kind::Half { .. } | Kind::FloatsToHalves | Kind::FloatsToBfloats = native.kind {
            return Some((self.halves_in_vectors(native, operands)?, Vec::new()));
        }
        if is_narrow(native.result) || (0..operands.len()).any(|i| is_narrow(native.operands[i])) {
            return Some((self.lower_narrow(native, operands)?, Vec::new()));
        }
        let result = self.vector_type(native.result)?;
        let classes = native.operands;
        let (mut values, mut rare) = (Vec::new(), Vec::new());
        if let Kind::FloatApprox { op, ftz } = native.kind {
            return Some((self.approximate_many(op, ftz, &operands[0])?, rare));
        }
        match native.kind {
            Kind::ShiftLeft | Kind::ShiftRight { .. }
                if self.is_wide()
                    && !matches!(operands[1], Val::One(_))
                    && classes[1] == Class::B32
                    && matches!(native.result, Class::B32 | Class::B64) =>
            {
                let how = match native.kind {
                    Kind::ShiftLeft => Intrinsic::ShiftLeft,
                    Kind::ShiftRight { signed: true } => Intrinsic::ShiftRightSigned,
                    _ => Intrinsic::ShiftRight,
                };
                let counts = self.vectors(&operands[1], Class::B32);
                let counts = self.convert_parts(counts, Class::B32, native.result);
                for (part, count) in self.vectors(&operands[0], classes[0]).into_iter().zip(counts) {
                    values.push(self.operation(how, &[part, count], result));
                }
                return Some((values, rare));
            }
            // All elements of a vector are shifted by the same count.
            Kind::ShiftLeft | Kind::ShiftRight { .. } => {
                let Val::One(count) = operands[1] else { return None };
                for part in self.vectors(&operands[0], classes[0]) {
                    values.push(self.shift(native.kind, part, count, native.result, true));
                }
                return Some((values, rare));
            }
            Kind::Permute => {
                let Val::One(selector) = operands[2] else { return None };
                let selector = self.constant_of(selector)? as u32;
                let (a, b) = (self.vectors(&operands[0], Class::B32), self.vectors(&operands[1], Class::B32));
                for (a, b) in a.into_iter().zip(b) {
                    values.push(self.permute_by(a, b, selector)?);
                }
                return Some((values, rare));
            }
            Kind::Funnel { left, wrap } => {
                let constant = match operands[2] {
                    Val::One(count) => self.constant_of(count),
                    _ => None,
                };
                let Some(count) = constant else {
                    return Some((self.funnel_vectors(left, wrap, operands)?, rare));
                };
                let count = if wrap { count as u32 & 31 } else { (count as u32).min(32) };
                let (low, high) =
                    (self.vectors(&operands[0], Class::B32), self.vectors(&operands[1], Class::B32));
                // The word that remains if nothing is shifted, and the shift counts of both.
                let up = if left { count } else { 32 - count };
                for (low, high) in low.into_iter().zip(high) {
                    values.push(match up {
                        0 => high,
                        32 => low,
                        up if self.is_wide() && low == high => {
                            let count = self.b.ins().iconst(I32, i64::from(up));
                            self.operation(Intrinsic::Rotate, &[low, count], result)
                        }
                        up => {
                            let (up, down) = (
                                self.b.ins().iconst(I32, i64::from(up)),
                                self.b.ins().iconst(I32, i64::from(32 - up)),
                            );
                            let (high, low) = (self.b.ins().ishl(high, up), self.b.ins().ushr(low, down));
                            self.b.ins().bor(high, low)
                        }
                    });
                }
                return Some((values, rare));
            }
            Kind::Pair { bits: 32 } => {
                let (low, high) =
                    (self.vectors(&operands[0], Class::B32), self.vectors(&operands[1], Class::B32));
                for (low, high) in low.into_iter().zip(high) {
                    let count = self.per_vector(Class::B32);
                    for first in [0, count / 2] {
                        let pair = self.pick_words(low, high, |word| first + word / 2 + count * (word % 2));
                        values.push(self.vector_cast(pair, self.length.by(I64)));
                    }
                }
                return Some((values, rare));
            }
            Kind::Field { start: start @ (0 | 32), bits: 32 } if classes[0] == Class::B64 => {
                let parts = self.vectors(&operands[0], Class::B64);
                let first = start as usize / 32;
                for pair in parts.chunks(2) {
                    values.push(self.pick_words(pair[0], pair[1], |word| 2 * word + first));
                }
                return Some((values, rare));
            }
            Kind::Select => {
                let (a, b) =
                    (self.vectors(&operands[0], native.result), self.vectors(&operands[1], native.result));
                let masks = self.masks(&operands[2], native.result);
                for ((a, b), mask) in a.into_iter().zip(b).zip(masks) {
                    let mask = self.vector_cast(mask, result);
                    values.push(self.b.ins().bitselect(mask, a, b));
                }
                return Some((values, rare));
            }
            Kind::MulHigh { signed } if classes[0] == Class::B32 => {
                let a = self.vectors(&operands[0], Class::B32);
                let b = self.vectors(&operands[1], Class::B32);
                for (a, b) in a.into_iter().zip(b) {
                    let [low, high] = self.wide_products(a, b, signed);
                    values.push(self.upper_halves(low, high));
                }
                return Some((values, rare));
            }
            Kind::MulHigh { signed } if classes[0] == Class::B64 && self.is_wide() => {
                let a = self.vectors(&operands[0], Class::B64);
                let b = self.vectors(&operands[1], Class::B64);
                let each = a.into_iter().zip(b);
                let products = each.map(|(a, b)| self.upper_product(a, b, signed)).collect();
                return Some((products, rare));
            }
            Kind::Div { signed } | Kind::Rem { signed } if classes[0] == Class::B32 && self.is_wide() => {
                let a = self.vectors(&operands[0], Class::B32);
                let b = self.vectors(&operands[1], Class::B32);
                let is_rest = matches!(native.kind, Kind::Rem { .. });
                let each = a.into_iter().zip(b);
                let quotients = each.map(|(a, b)| self.divide_vectors(signed, is_rest, a, b)).collect();
                return Some((quotients, rare));
            }
            Kind::CountOnes | Kind::CountZeros | Kind::FindBit { .. } | Kind::Reverse => {
                return Some((self.count_in_vectors(native, &operands[0])?, rare));
            }
            Kind::Promote { ftz } => {
                for part in self.vectors(&operands[0], Class::F32) {
                    let part = self.flush(part, ftz, Class::F32, true);
                    rare.push(self.b.ins().fcmp(FloatCC::Unordered, part, part));
                    values.extend(self.widen(part, true));
                }
                return Some((values, rare));
            }
            Kind::Demote { ftz } => {
                for pair in self.vectors(&operands[0], Class::F64).chunks(2) {
                    let [low, high] = [pair[0], pair[1]].map(|x| self.b.ins().fcmp(FloatCC::Unordered, x, x));
                    let nan = self.narrow(low, high);
                    let single = self.unwiden(pair);
                    let lowered = self.finish(single, ftz, true, Class::F32, true);
                    values.push(lowered.value);
                    rare.push(lowered.rare.map_or(nan, |rare| self.b.ins().bor(rare, nan)));
                }
                return Some((values, rare));
            }
            Kind::MulWide { signed } | Kind::MadWide { signed } if classes[0] == Class::B32 => {
                let a = self.vectors(&operands[0], Class::B32);
                let b = self.vectors(&operands[1], Class::B32);
                for (a, b) in a.into_iter().zip(b) {
                    values.extend(self.wide_products(a, b, signed));
                }
                if let Some(c) = operands.get(2) {
                    let c = self.vectors(c, Class::B64);
                    for (value, c) in values.iter_mut().zip(c) {
                        *value = self.b.ins().iadd(*value, c);
                    }
                }
                return Some((values, rare));
            }
            Kind::Extend { .. } | Kind::Field { .. }
                if native.result == Class::B32 && classes[0] == Class::B32 =>
            {
                return Some((self.lower_narrow(native, operands)?, rare));
            }
            Kind::Extend { from: 32, signed, to: 64, .. } if native.result == Class::B64 => {
                for a in self.vectors(&operands[0], Class::B32) {
                    if signed {
                        values.extend([self.b.ins().swiden_low(a), self.b.ins().swiden_high(a)]);
                    } else {
                        values.extend([self.b.ins().uwiden_low(a), self.b.ins().uwiden_high(a)]);
                    }
                }
                return Some((values, rare));
            }
            Kind::Extend { from: 64, to: 32, .. } if native.result == Class::B32 => {
                let parts = self.vectors(&operands[0], Class::B64);
                for pair in parts.chunks(2) {
                    values.push(self.narrow(pair[0], pair[1]));
                }
                return Some((values, rare));
            }
            Kind::Extend { from, to, .. } if from == to && classes[0].bits() == native.result.bits() => {
                return Some((self.vectors(&operands[0], native.result), rare));
            }
            Kind::Compare { compare, signed, ftz, combine } => {
                let class = classes[0];
                let a = self.vectors(&operands[0], class);
                let b = self.vectors(&operands[1], class);
                let mut masks = Vec::new();
                for (a, b) in a.into_iter().zip(b) {
                    masks.push(self.compare(compare, signed, ftz, class, a, b, true));
                }
                if class.bits() == 64 {
                    masks = masks.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect();
                }
                if let Some(op) = combine {
                    let with = self.vectors(&operands[2], Class::Pred);
                    for (mask, with) in masks.iter_mut().zip(with) {
                        *mask = self.combine(op, *mask, with);
                    }
                }
                return Some((masks, rare));
            }
            _ => {}
        }
        let elementwise = match native.kind {
            Kind::Copy
            | Kind::AddConstant(_)
            | Kind::Add
            | Kind::Sub
            | Kind::Mul
            | Kind::MadLow
            | Kind::DotProduct { .. }
            | Kind::HalfDotProduct { .. }
            | Kind::BitField { .. }
            | Kind::InsertField { .. }
            | Kind::AbsDifference { .. }
            | Kind::Neg
            | Kind::Logic(_)
            | Kind::Not
            | Kind::BitNot
            | Kind::Lop3(_)
            | Kind::FloatAdd { .. }
            | Kind::FloatSub { .. }
            | Kind::FloatMul { .. }
            | Kind::FloatFma { .. }
            | Kind::FloatFmaDown
            | Kind::FloatSaturate { .. }
            | Kind::FloatDiv { .. }
            | Kind::FloatDivApprox { .. }
            | Kind::FloatReciprocal { .. }
            | Kind::FloatSqrt { .. }
            | Kind::FloatRsqrt { .. }
            | Kind::FloatMin { .. }
            | Kind::FloatMax { .. }
            | Kind::FloatAbs { .. }
            | Kind::FloatNeg { .. }
            | Kind::RoundIntegral { .. } => true,
            Kind::Min { .. } | Kind::Max { .. } | Kind::Abs => {
                native.result == Class::B32 || self.is_wide() && native.result == Class::B64
            }
            Kind::FloatToInt { .. } => (classes[0], native.result) == (Class::F32, Class::B32),
            _ => false,
        };
        if !elementwise {
            return None;
        }
        let parts: Vec<Vec<Value>> =
            operands.iter().enumerate().map(|(i, operand)| self.vectors(operand, classes[i])).collect();
        for part in 0..self.lanes as usize / self.per_vector(native.result) {
            let operands: Vec<Value> = parts.iter().map(|parts| parts[part]).collect();
            if native.kind != Kind::Copy && classes[0].bits() == 32 && native.result.bits() == 32 {
                self.sink_loads(part, &operands);
            }
            let lowered = self.lower(native, &operands, true);
            values.push(lowered.value);
            rare.extend(lowered.rare);
        }
        Some((values, rare))
    }

    /// Returns the products of two vectors of 32 bits, in 64 bits.
    fn wide_products(&mut self, a: Value, b: Value, signed: bool) -> [Value; 2] {
        let widen = |emitter: &mut Self, value: Value| match signed {
            true => [emitter.b.ins().swiden_low(value), emitter.b.ins().swiden_high(value)],
            false => [emitter.b.ins().uwiden_low(value), emitter.b.ins().uwiden_high(value)],
        };
        let wide = widen(self, a);
        if let Some(power) = self.element_of(b).filter(|b| b.is_power_of_two() && *b < 1 << 31) {
            let count = self.b.ins().iconst(I32, i64::from(power.trailing_zeros()));
            return wide.map(|a| if power == 1 { a } else { self.b.ins().ishl(a, count) });
        }
        let [low, high] = widen(self, b);
        [self.b.ins().imul(wide[0], low), self.b.ins().imul(wide[1], high)]
    }

    /// Emits the instruction for one thread, or element by element for vectors.
    pub(crate) fn lower(&mut self, native: &Native, x: &[Value], vector: bool) -> Lowered {
        let class = native.result;
        match native.kind {
            Kind::Copy => x[0].into(),
            Kind::Not if vector => self.b.ins().bnot(x[0]).into(),
            Kind::Not => self.b.ins().bxor_imm_u(x[0], 1).into(),
            Kind::Pair { bits } => {
                let wide = scalar_type(class);
                let (low, high) = (self.b.ins().uextend(wide, x[0]), self.b.ins().uextend(wide, x[1]));
                let high = self.b.ins().ishl_imm_u(high, i64::from(bits));
                self.b.ins().bor(low, high).into()
            }
            Kind::Field { start, .. } => {
                let value = self.b.ins().ushr_imm_u(x[0], i64::from(start));
                self.convert(value, native.operands[0], class).into()
            }
            Kind::Permute => self.permute(x).into(),
            Kind::DotProduct { signed } => self.dot_product(signed, x, vector).into(),
            Kind::HalfDotProduct { signed, high } => self.half_dot_product(signed, high, x, vector).into(),
            Kind::BitField { start, bits, signed } => {
                self.bit_field(x[0], [start, bits], signed, class, vector).into()
            }
            Kind::InsertField { start, bits } => self.insert_field(x, [start, bits], class, vector).into(),
            Kind::AbsDifference { signed } => {
                let (most, least) = if signed {
                    (self.b.ins().smax(x[0], x[1]), self.b.ins().smin(x[0], x[1]))
                } else {
                    (self.b.ins().umax(x[0], x[1]), self.b.ins().umin(x[0], x[1]))
                };
                let difference = self.b.ins().isub(most, least);
                self.sum(difference, x[2]).into()
            }
            Kind::Saturate { signed, bits, to_signed } => {
                let from = native.operands[0].bits();
                let value = self.extend(x[0], from, signed, 32);
                let value = self.clamp_integer(value, signed, bits, to_signed, false);
                self.convert(value, Class::B32, class).into()
            }
            Kind::AddConstant(0) => x[0].into(),
            Kind::AddConstant(more) => {
                let more = if vector { self.vector_of(more, class) } else { self.constant(more, class) };
                self.b.ins().iadd(x[0], more).into()
            }
            Kind::Add => self.sum(x[0], x[1]).into(),
            Kind::Sub => self.b.ins().isub(x[0], x[1]).into(),
            Kind::Mul => self.product(x[0], x[1]).into(),
            Kind::MadLow => {
                let product =
                    if vector { self.product(x[0], x[1]) } else { self.product_of_block(x[0], x[1]) };
                self.sum(product, x[2]).into()
            }
            Kind::MulHigh { signed } => self.mul_high(signed, class, x[0], x[1]).into(),
            Kind::Div { signed } => self.divide(signed, false, class, x[0], x[1]).into(),
            Kind::Rem { signed } => self.divide(signed, true, class, x[0], x[1]).into(),
            Kind::Min { signed: true } => self.b.ins().smin(x[0], x[1]).into(),
            Kind::Min { signed: false } => self.b.ins().umin(x[0], x[1]).into(),
            Kind::Max { signed: true } => self.b.ins().smax(x[0], x[1]).into(),
            Kind::Max { signed: false } => self.b.ins().umax(x[0], x[1]).into(),
            Kind::Abs => self.b.ins().iabs(x[0]).into(),
            Kind::Neg => self.b.ins().ineg(x[0]).into(),
            Kind::MulWide { signed } | Kind::MadWide { signed } => {
                let (a, b) = (self.widened(x[0], class, signed), self.widened(x[1], class, signed));
                let product = self.product(a, b);
                match x.get(2) {
                    Some(&c) => self.sum(product, c).into(),
                    None => product.into(),
                }
            }
            Kind::Logic(LogicOp::And) => self.b.ins().band(x[0], x[1]).into(),
            Kind::Logic(LogicOp::Or) => self.b.ins().bor(x[0], x[1]).into(),
            Kind::Logic(LogicOp::Xor) => self.b.ins().bxor(x[0], x[1]).into(),
            Kind::BitNot => self.b.ins().bnot(x[0]).into(),
            Kind::Lop3(table) => self.lop3(table, x, vector).into(),
            Kind::ShiftLeft | Kind::ShiftRight { .. } => {
                self.shift(native.kind, x[0], x[1], class, vector).into()
            }
            Kind::Funnel { left, wrap } => self.funnel(left, wrap, x).into(),
            Kind::CountZeros => {
                let zeros = self.b.ins().clz(x[0]);
                self.convert(zeros, native.operands[0], Class::B32).into()
            }
            Kind::CountOnes => {
                let ones = self.b.ins().popcnt(x[0]);
                self.convert(ones, native.operands[0], Class::B32).into()
            }
            Kind::FindBit { signed, from_top } => {
                let from = native.operands[0];
                let highest = i64::from(from.bits()) - 1;
                let mut bits = x[0];
                if signed {
                    let signs = self.b.ins().sshr_imm_u(bits, highest);
                    bits = self.b.ins().bxor(bits, signs);
                }
                let zeros = self.b.ins().clz(bits);
                let zeros = self.convert(zeros, from, Class::B32);
                let highest = self.b.ins().iconst(I32, highest);
                let place = self.b.ins().isub(highest, zeros);
                if !from_top {
                    // Where there is no bit, there is one zero more than the place of the highest.
                    return place.into();
                }
                let none = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, place, 0);
                self.b.ins().select(none, place, zeros).into()
            }
            Kind::HalfToFloat | Kind::BfloatToFloat | Kind::FloatToHalf | Kind::FloatToBfloat => {
                self.short_float(native, x[0], vector).into()
            }
            Kind::Half { .. } | Kind::FloatsToHalves | Kind::FloatsToBfloats => {
                self.halves(native, x, vector).into()
            }
            Kind::Reverse => self.b.ins().bitrev(x[0]).into(),
            Kind::Compare { compare, signed, ftz, combine } => {
                let value = self.compare(compare, signed, ftz, native.operands[0], x[0], x[1], vector);
                match combine {
                    Some(op) => self.combine(op, value, x[2]).into(),
                    None => value.into(),
                }
            }
            Kind::Select => self.b.ins().select(x[2], x[0], x[1]).into(),
            Kind::Extend { from, signed, to, to_signed } => {
                let value = self.extend(x[0], from, signed, to);
                self.extend(value, to, to_signed, class.bits()).into()
            }
            Kind::IntToFloat { signed } if native.operands[0].bits() < 32 => {
                let value = self.extend(x[0], native.operands[0].bits(), signed, 32);
                self.b.ins().fcvt_from_sint(scalar_type(class), value).into()
            }
            Kind::IntToFloat { signed } => {
                let ty = if vector { self.length.by(F32) } else { scalar_type(class) };
                if signed {
                    self.b.ins().fcvt_from_sint(ty, x[0]).into()
                } else {
                    self.b.ins().fcvt_from_uint(ty, x[0]).into()
                }
            }
            _ => self.lower_float(native, x, vector),
        }
    }

    /// Converts an integer from one width to another.
    fn extend(&mut self, value: Value, from: u32, signed: bool, to: u32) -> Value {
        let ty = scalar_type(Class::of_bits(to));
        match to.cmp(&from) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Less => self.b.ins().ireduce(ty, value),
            std::cmp::Ordering::Greater if signed => self.sign_extended(value, ty),
            std::cmp::Ordering::Greater => self.extended(value, ty),
        }
    }

    fn mul_high(&mut self, signed: bool, class: Class, a: Value, b: Value) -> Value {
        match (class, signed) {
            (Class::B64 | Class::B32, true) => self.b.ins().smulhi(a, b),
            (Class::B64 | Class::B32, false) => self.b.ins().umulhi(a, b),
            (class, signed) => {
                let (a, b) =
                    (self.extend(a, class.bits(), signed, 32), self.extend(b, class.bits(), signed, 32));
                let product = self.b.ins().imul(a, b);
                let high = self.b.ins().ushr_imm_u(product, i64::from(class.bits()));
                self.b.ins().ireduce(scalar_type(class), high)
            }
        }
    }

    /// Emits a division. Division by zero gives all ones, and the smallest number divided by minus
    /// one wraps.
    fn divide(&mut self, signed: bool, remainder: bool, class: Class, a: Value, b: Value) -> Value {
        let ty = scalar_type(class);
        let (zero, one, ones) =
            (self.b.ins().iconst(ty, 0), self.b.ins().iconst(ty, 1), self.constant(u64::MAX, class));
        let by_zero = self.b.ins().icmp(IntCC::Equal, b, zero);
        let result = if signed {
            let by_minus_one = self.b.ins().icmp(IntCC::Equal, b, ones);
            let unsafe_divisor = self.b.ins().bor(by_zero, by_minus_one);
            let divisor = self.b.ins().select(unsafe_divisor, one, b);
            let (result, special) = if remainder {
                (self.b.ins().srem(a, divisor), zero)
            } else {
                (self.b.ins().sdiv(a, divisor), self.b.ins().ineg(a))
            };
            self.b.ins().select(by_minus_one, special, result)
        } else {
            let divisor = self.b.ins().select(by_zero, one, b);
            if remainder { self.b.ins().urem(a, divisor) } else { self.b.ins().udiv(a, divisor) }
        };
        self.b.ins().select(by_zero, ones, result)
    }

    /// Emits a shift by a 32-bit count. A count past the width shifts everything out.
    fn shift(&mut self, kind: Kind, value: Value, count: Value, class: Class, vector: bool) -> Value {
        let bits = i64::from(class.bits());
        if let Kind::ShiftRight { signed: true } = kind {
            let most = self.b.ins().iconst(I32, bits - 1);
            let count = self.b.ins().umin(count, most);
            return self.b.ins().sshr(value, count);
        }
        let shifted = match kind {
            Kind::ShiftLeft => self.b.ins().ishl(value, count),
            _ => self.b.ins().ushr(value, count),
        };
        let Some(within) = self.shifts_within(count, class.bits()) else { return shifted };
        let zero = if vector { self.vector_of(0, class) } else { self.constant(0, class) };
        self.b.ins().select(within, shifted, zero)
    }

    /// Emits `shf`: half of a pair of words after a shift.
    fn funnel(&mut self, left: bool, wrap: bool, x: &[Value]) -> Value {
        let (low, high) = (self.b.ins().uextend(I64, x[0]), self.b.ins().uextend(I64, x[1]));
        let high = self.b.ins().ishl_imm_u(high, 32);
        let pair = self.b.ins().bor(low, high);
        let count = if wrap {
            self.b.ins().band_imm_u(x[2], 31)
        } else {
            let most = self.b.ins().iconst(I32, 32);
            self.b.ins().umin(x[2], most)
        };
        if left {
            let shifted = self.b.ins().ishl(pair, count);
            let shifted = self.b.ins().ushr_imm_u(shifted, 32);
            self.b.ins().ireduce(I32, shifted)
        } else {
            let shifted = self.b.ins().ushr(pair, count);
            self.b.ins().ireduce(I32, shifted)
        }
    }

    /// Emits any function of three bits, as the disjunction of the rows of its table that are true.
    fn lop3(&mut self, table: u8, x: &[Value], vector: bool) -> Value {
        let constant = |emitter: &mut Self, bits| {
            if vector { emitter.vector_of(bits, Class::B32) } else { emitter.constant(bits, Class::B32) }
        };
        match table {
            0x80 => {
                let ab = self.b.ins().band(x[0], x[1]);
                return self.b.ins().band(ab, x[2]);
            }
            0xfe => {
                let ab = self.b.ins().bor(x[0], x[1]);
                return self.b.ins().bor(ab, x[2]);
            }
            0x96 => {
                let ab = self.b.ins().bxor(x[0], x[1]);
                return self.b.ins().bxor(ab, x[2]);
            }
            _ => {}
        }
        if vector && self.is_wide() {
            let words = self.length.by(I32);
            let table = self.b.ins().iconst(I32, i64::from(table));
            return self.operation(Intrinsic::Ternary, &[x[0], x[1], x[2], table], words);
        }
        let not: Vec<Value> = x.iter().map(|&x| self.b.ins().bnot(x)).collect();
        let mut sum = None;
        for row in 0..8 {
            if table >> row & 1 == 0 {
                continue;
            }
            let pick = |i: usize| if row >> (2 - i) & 1 == 1 { x[i] } else { not[i] };
            let ab = self.b.ins().band(pick(0), pick(1));
            let term = self.b.ins().band(ab, pick(2));
            sum = Some(match sum {
                None => term,
                Some(sum) => self.b.ins().bor(sum, term),
            });
        }
        sum.unwrap_or_else(|| constant(self, 0))
    }

    fn combine(&mut self, op: BoolOp, value: Value, with: Value) -> Value {
        match op {
            BoolOp::And => self.b.ins().band(value, with),
            BoolOp::Or => self.b.ins().bor(value, with),
            BoolOp::Xor => self.b.ins().bxor(value, with),
        }
    }

    /// Emits a comparison. The result is a truth value or a mask of the operands' width.
    #[expect(clippy::too_many_arguments, reason = "the modifiers of one instruction")]
    pub(crate) fn compare(
        &mut self,
        compare: Compare,
        signed: bool,
        ftz: bool,
        class: Class,
        a: Value,
        b: Value,
        vector: bool,
    ) -> Value {
        if class.is_float() {
            let (a, b) = (self.flush(a, ftz, class, vector), self.flush(b, ftz, class, vector));
            return self.compare_float(compare, a, b);
        }
        match integer_condition(compare, signed) {
            Some(code) => self.b.ins().icmp(code, a, b),
            // An integer is always a number.
            None if compare == Compare::Num => self.b.ins().icmp(IntCC::Equal, a, a),
            None => self.b.ins().icmp(IntCC::NotEqual, a, a),
        }
    }

    fn compare_float(&mut self, compare: Compare, a: Value, b: Value) -> Value {
        let code = match compare {
            Compare::Eq => FloatCC::Equal,
            Compare::Lt | Compare::Lo => FloatCC::LessThan,
            Compare::Le | Compare::Ls => FloatCC::LessThanOrEqual,
            Compare::Gt | Compare::Hi => FloatCC::GreaterThan,
            Compare::Ge | Compare::Hs => FloatCC::GreaterThanOrEqual,
            Compare::Neu => FloatCC::NotEqual,
            Compare::Ltu => FloatCC::UnorderedOrLessThan,
            Compare::Leu => FloatCC::UnorderedOrLessThanOrEqual,
            Compare::Gtu => FloatCC::UnorderedOrGreaterThan,
            Compare::Geu => FloatCC::UnorderedOrGreaterThanOrEqual,
            Compare::Num => FloatCC::Ordered,
            Compare::Nan => FloatCC::Unordered,
            // Machines have neither as one vector instruction, so it takes two comparisons.
            Compare::Ne => {
                let (ordered, differ) =
                    (self.b.ins().fcmp(FloatCC::Ordered, a, b), self.b.ins().fcmp(FloatCC::NotEqual, a, b));
                return self.b.ins().band(ordered, differ);
            }
            Compare::Equ => {
                let (unordered, same) =
                    (self.b.ins().fcmp(FloatCC::Unordered, a, b), self.b.ins().fcmp(FloatCC::Equal, a, b));
                return self.b.ins().bor(unordered, same);
            }
        };
        self.b.ins().fcmp(code, a, b)
    }
}

/// Returns the condition of an integer comparison, if it depends on the operands.
pub(crate) fn integer_condition(compare: Compare, signed: bool) -> Option<IntCC> {
    Some(match (compare, signed) {
        (Compare::Eq | Compare::Equ, _) => IntCC::Equal,
        (Compare::Ne | Compare::Neu, _) => IntCC::NotEqual,
        (Compare::Lt | Compare::Ltu | Compare::Lo, true) => IntCC::SignedLessThan,
        (Compare::Le | Compare::Leu | Compare::Ls, true) => IntCC::SignedLessThanOrEqual,
        (Compare::Gt | Compare::Gtu | Compare::Hi, true) => IntCC::SignedGreaterThan,
        (Compare::Ge | Compare::Geu | Compare::Hs, true) => IntCC::SignedGreaterThanOrEqual,
        (Compare::Lt | Compare::Ltu | Compare::Lo, false) => IntCC::UnsignedLessThan,
        (Compare::Le | Compare::Leu | Compare::Ls, false) => IntCC::UnsignedLessThanOrEqual,
        (Compare::Gt | Compare::Gtu | Compare::Hi, false) => IntCC::UnsignedGreaterThan,
        (Compare::Ge | Compare::Geu | Compare::Hs, false) => IntCC::UnsignedGreaterThanOrEqual,
        (Compare::Num | Compare::Nan, _) => return None,
    })
}
