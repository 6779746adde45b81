//! Counts and places of bits, and their reversal, in vectors.

use super::Emitter;
use super::value::Val;
use crate::native::{Class, Kind, Native};
use crate::wide::{self, Intrinsic};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_> {
    /// Counts bits, finds one or reverses their order in each element. Returns `None` if there are
    /// no vector instructions for it.
    pub(super) fn count_in_vectors(&mut self, native: &Native, operand: &Val) -> Option<Vec<Value>> {
        let class = native.operands[0];
        if !matches!(class, Class::B32 | Class::B64) {
            return None;
        }
        let finds = matches!(native.kind, Kind::CountZeros | Kind::FindBit { .. });
        if finds && !self.is_wide() {
            return None;
        }
        let parts = self.vectors(operand, class);
        let all = self.vector_of(u64::MAX, Class::B32);
        let highest = self.vector_of(u64::from(class.bits()) - 1, Class::B32);
        let mut counts = Vec::new();
        for part in parts {
            counts.push(match native.kind {
                Kind::Reverse => self.reverse_vector(part, class),
                Kind::CountOnes => self.ones_in_vector(part, class),
                Kind::FindBit { signed: true, .. } => {
                    let signs = self.signs_of(part, class);
                    let bits = self.b.ins().bxor(part, signs);
                    self.zeros_in_vector(bits, class)
                }
                _ => self.zeros_in_vector(part, class),
            });
        }
        if native.kind == Kind::Reverse {
            return Some(counts);
        }
        if class == Class::B64 {
            counts = counts.chunks(2).map(|pair| self.narrow(pair[0], pair[1])).collect();
        }
        if let Kind::FindBit { from_top, .. } = native.kind {
            for count in &mut counts {
                let place = self.b.ins().isub(highest, *count);
                *count = match from_top {
                    // Where there is no bit, there is one zero more than the place of the highest.
                    false => place,
                    true => {
                        let none = self.b.ins().icmp(IntCC::Equal, place, all);
                        self.b.ins().bitselect(none, all, *count)
                    }
                };
            }
        }
        Some(counts)
    }

    /// Returns all ones where a number is negative, and zeros elsewhere.
    pub(super) fn signs_of(&mut self, part: Value, class: Class) -> Value {
        let highest = self.b.ins().iconst(I32, i64::from(class.bits()) - 1);
        self.b.ins().sshr(part, highest)
    }

    fn zeros_in_vector(&mut self, part: Value, class: Class) -> Value {
        let ty = self.vector_type(class).unwrap_or(self.length.by(I32));
        self.operation(Intrinsic::LeadingZeros, &[part], ty)
    }

    /// Counts the bits of each element: those of pairs, of nibbles, of bytes, and then of all
    /// bytes.
    fn ones_in_vector(&mut self, part: Value, class: Class) -> Value {
        if self.is_wide() && wide::counts_ones() {
            let ty = self.vector_type(class).unwrap_or(self.length.by(I32));
            return self.operation(Intrinsic::CountOnes, &[part], ty);
        }
        let [odd, pairs, nibbles] =
            [0x55, 0x33, 0x0f].map(|byte| self.vector_of(u64::from_ne_bytes([byte; 8]), class));
        let up = self.b.ins().ushr_imm_u(part, 1);
        let up = self.b.ins().band(up, odd);
        let twos = self.b.ins().isub(part, up);
        let up = self.b.ins().ushr_imm_u(twos, 2);
        let [low, up] = [twos, up].map(|half| self.b.ins().band(half, pairs));
        let fours = self.b.ins().iadd(low, up);
        let up = self.b.ins().ushr_imm_u(fours, 4);
        let sum = self.b.ins().iadd(fours, up);
        let mut sum = self.b.ins().band(sum, nibbles);
        let mut shift = 8;
        while shift < class.bits() {
            let up = self.b.ins().ushr_imm_u(sum, i64::from(shift));
            sum = self.b.ins().iadd(sum, up);
            shift *= 2;
        }
        let whole = self.vector_of(0x7f, class);
        self.b.ins().band(sum, whole)
    }

    /// Reverses the bits of each element: in each byte, and then the bytes.
    fn reverse_vector(&mut self, part: Value, class: Class) -> Value {
        let mut bits = part;
        for (shift, byte) in [(1, 0x55), (2, 0x33), (4, 0x0f)] {
            let low = self.vector_of(u64::from_ne_bytes([byte; 8]), class);
            let up = self.b.ins().ushr_imm_u(bits, shift);
            let up = self.b.ins().band(up, low);
            let down = self.b.ins().band(bits, low);
            let down = self.b.ins().ishl_imm_u(down, shift);
            bits = self.b.ins().bor(up, down);
        }
        let words = self.pick_bytes(bits, bits, [3, 2, 1, 0]);
        if class == Class::B32 {
            return words;
        }
        let words = self.pick_words(words, words, |word| word ^ 1);
        self.vector_cast(words, self.length.by(I64))
    }
}
