//! Products, quotients and shifts of integers in vectors that take several instructions each.

use super::Emitter;
use super::value::Val;
use crate::native::Class;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_> {
    /// Returns the upper halves of products of 128 bits.
    pub(super) fn upper_product(&mut self, a: Value, b: Value, signed: bool) -> Value {
        let ty = self.length.by(I64);
        let [a_high, b_high] = [a, b].map(|x| self.b.ins().ushr_imm_u(x, 32));
        let [low, first, second, high] = [(a, b), (a, b_high), (a_high, b), (a_high, b_high)]
            .map(|(a, b)| self.operation(Intrinsic::MultiplyHalves, &[a, b], ty));
        let lower = self.vector_of(u64::from(u32::MAX), Class::B64);
        // The sum of the words that have the same weight. It does not overflow.
        let carried = self.b.ins().ushr_imm_u(low, 32);
        let middle = self.b.ins().band(first, lower);
        let middle = self.b.ins().iadd(middle, carried);
        let middle = self.b.ins().iadd(middle, second);
        let [first, middle] = [first, middle].map(|x| self.b.ins().ushr_imm_u(x, 32));
        let sum = self.b.ins().iadd(high, first);
        let mut sum = self.b.ins().iadd(sum, middle);
        if signed {
            for (x, y) in [(a, b), (b, a)] {
                let signs = self.signs_of(x, Class::B64);
                let less = self.b.ins().band(signs, y);
                sum = self.b.ins().isub(sum, less);
            }
        }
        sum
    }

    /// Returns quotients, or remainders, of words: all ones where the divisor is zero.
    pub(super) fn divide_vectors(&mut self, signed: bool, remainder: bool, a: Value, b: Value) -> Value {
        let how = if signed { Intrinsic::DivideSigned } else { Intrinsic::Divide };
        let quotient = self.operation(how, &[a, b], self.length.by(I32));
        if !remainder && !signed {
            return quotient;
        }
        let result = if remainder {
            let product = self.b.ins().imul(quotient, b);
            self.b.ins().isub(a, product)
        } else {
            quotient
        };
        let (zero, ones) = (self.vector_of(0, Class::B32), self.vector_of(u64::MAX, Class::B32));
        let by_zero = self.b.ins().icmp(IntCC::Equal, b, zero);
        self.b.ins().bitselect(by_zero, ones, result)
    }

    /// Returns halves of pairs of words after shifts by counts that are no constant.
    pub(super) fn funnel_vectors(&mut self, left: bool, wrap: bool, operands: &[Val]) -> Option<Vec<Value>> {
        if !self.is_wide() {
            return None;
        }
        let ty = self.length.by(I32);
        let [low, high, counts] = [0, 1, 2].map(|i| self.vectors(&operands[i], Class::B32));
        let (most, word) =
            (self.vector_of(if wrap { 31 } else { 32 }, Class::B32), self.vector_of(32, Class::B32));
        let mut results = Vec::new();
        for ((low, high), count) in low.into_iter().zip(high).zip(counts) {
            let count = if wrap { self.b.ins().band(count, most) } else { self.b.ins().umin(count, most) };
            let rest = self.b.ins().isub(word, count);
            // A shift by 32 leaves nothing.
            let (up, down) = if left { (count, rest) } else { (rest, count) };
            let high = self.operation(Intrinsic::ShiftLeft, &[high, up], ty);
            let low = self.operation(Intrinsic::ShiftRight, &[low, down], ty);
            results.push(self.b.ins().bor(high, low));
        }
        Some(results)
    }
}
