//! Conversions between single precision and the floating-point formats of 16 bits, in one thread or
//! in a vector of threads. The host may have no instructions for them. Integer arithmetic on the
//! bits, and one addition for subnormal numbers, gives the same results.
//!
//! Arithmetic on `.f16` is that of single precision, rounded to `.f16`. Single precision has more
//! than twice as many bits and two, so that the second rounding of a sum or product gives what one
//! rounding would. `fma` adds an exact product; its sum is rounded to odd, which the second
//! rounding never takes for a value halfway between two others.

use super::Emitter;
use super::value::Val;
use crate::native::{Class, HalfArith, Kind, Native};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};

/// The canonical NaN and infinity of single precision.
const NAN: u32 = 0x7fff_ffff;
const INFINITE: u32 = 0x7f80_0000;
/// The canonical NaN of `.f16` and of `.bf16`.
const SHORT_NAN: u32 = 0x7fff;
/// Infinity and the smallest normal number of `.f16`.
const HALF_INFINITE: u32 = 0x7c00;
const HALF_NORMAL: u32 = 0x0400;
/// How many more bits the fraction has in single precision, and how much greater the exponent is.
const HALF_SHIFT: u32 = 13;
const HALF_BIAS: u32 = 112 << 23;
/// In single precision: the smallest normal `.f16`, the smallest number that rounds to its
/// infinity, and a number whose last bit has the value of the smallest `.f16`.
const LEAST_NORMAL: u32 = 0x3880_0000;
const TOO_LARGE: u32 = 0x477f_f000;
const SAME_LAST_BIT: u32 = 0x3f00_0000;

impl Emitter<'_> {
    /// Emits a conversion from or to a format of 16 bits. In vectors, such a number takes a word,
    /// whose upper half is zero.
    pub(super) fn short_float(&mut self, native: &Native, value: Value, vector: bool) -> Value {
        let word = match (native.operands[0], vector) {
            (Class::F32, _) => self.float_bits(value, Class::F32, vector),
            (_, true) => value,
            (_, false) => self.b.ins().uextend(I32, value),
        };
        let bits = match native.kind {
            Kind::HalfToFloat => self.half_to_float(word, vector),
            Kind::BfloatToFloat => self.shift_left(word, 16),
            Kind::FloatToHalf => self.float_to_half(word, vector),
            _ => self.float_to_bfloat(word, vector),
        };
        match native.result {
            Class::F32 => self.float_of_bits(bits, Class::F32, vector),
            _ if vector => bits,
            result => self.convert(bits, Class::B32, result),
        }
    }

    fn word_of(&mut self, bits: u32, vector: bool) -> Value {
        self.bits_constant(bits.into(), Class::B32, vector)
    }

    fn plus(&mut self, value: Value, bits: u32, vector: bool) -> Value {
        let more = self.word_of(bits, vector);
        self.b.ins().iadd(value, more)
    }

    fn bits_in(&mut self, value: Value, mask: u32, vector: bool) -> Value {
        let mask = self.word_of(mask, vector);
        self.b.ins().band(value, mask)
    }

    /// Returns one of two words by a comparison of another, which is less than 2^31, with a limit.
    fn by_limit(&mut self, word: Value, limit: u32, [below, from]: [Value; 2], vector: bool) -> Value {
        let limit = self.word_of(limit, vector);
        let is_below = self.b.ins().icmp(IntCC::SignedLessThan, word, limit);
        if vector {
            self.b.ins().bitselect(is_below, below, from)
        } else {
            self.b.ins().select(is_below, below, from)
        }
    }

    fn half_to_float(&mut self, half: Value, vector: bool) -> Value {
        let magnitude = self.bits_in(half, 0x7fff, vector);
        let shifted = self.shift_left(magnitude, HALF_SHIFT);
        let normal = self.plus(shifted, HALF_BIAS, vector);
        // With the exponent of the smallest normal number, the fraction has an implicit bit, which
        // is subtracted.
        let with_bit = self.plus(shifted, LEAST_NORMAL, vector);
        let with_bit = self.float_of_bits(with_bit, Class::F32, vector);
        let least = self.word_of(LEAST_NORMAL, vector);
        let least = self.float_of_bits(least, Class::F32, vector);
        let subnormal = self.b.ins().fsub(with_bit, least);
        let subnormal = self.float_bits(subnormal, Class::F32, vector);
        let finite = self.by_limit(magnitude, HALF_NORMAL, [subnormal, normal], vector);
        let infinite = self.word_of(INFINITE, vector);
        let number = self.by_limit(magnitude, HALF_INFINITE, [finite, infinite], vector);
        let sign = self.bits_in(half, 0x8000, vector);
        let sign = self.shift_left(sign, 16);
        let number = self.b.ins().bor(number, sign);
        let nan = self.word_of(NAN, vector);
        self.by_limit(magnitude, HALF_INFINITE + 1, [number, nan], vector)
    }

    fn float_to_half(&mut self, float: Value, vector: bool) -> Value {
        let magnitude = self.bits_in(float, NAN, vector);
        // To the nearest, and to an even fraction between two numbers.
        let odd = self.shift_right(magnitude, HALF_SHIFT, false);
        let odd = self.bits_in(odd, 1, vector);
        let rounded = self.plus(magnitude, 0x0fff_u32.wrapping_sub(HALF_BIAS), vector);
        let rounded = self.b.ins().iadd(rounded, odd);
        let normal = self.shift_right(rounded, HALF_SHIFT, false);
        let small = self.float_of_bits(magnitude, Class::F32, vector);
        let more = self.word_of(SAME_LAST_BIT, vector);
        let more = self.float_of_bits(more, Class::F32, vector);
        let sum = self.b.ins().fadd(small, more);
        let sum = self.float_bits(sum, Class::F32, vector);
        let subnormal = self.plus(sum, SAME_LAST_BIT.wrapping_neg(), vector);
        let number = self.by_limit(magnitude, LEAST_NORMAL, [subnormal, normal], vector);
        let infinite = self.word_of(HALF_INFINITE, vector);
        let number = self.by_limit(magnitude, TOO_LARGE, [number, infinite], vector);
        self.short_of(float, magnitude, number, vector)
    }

    fn float_to_bfloat(&mut self, float: Value, vector: bool) -> Value {
        let magnitude = self.bits_in(float, NAN, vector);
        let odd = self.shift_right(magnitude, 16, false);
        let odd = self.bits_in(odd, 1, vector);
        let rounded = self.plus(magnitude, 0x7fff, vector);
        let rounded = self.b.ins().iadd(rounded, odd);
        let number = self.shift_right(rounded, 16, false);
        self.short_of(float, magnitude, number, vector)
    }

    /// Gives a number of 16 bits the sign of the float it was made of, or makes it a NaN.
    fn short_of(&mut self, float: Value, magnitude: Value, number: Value, vector: bool) -> Value {
        let sign = self.shift_right(float, 16, false);
        let sign = self.bits_in(sign, 0x8000, vector);
        let number = self.b.ins().bor(number, sign);
        let nan = self.word_of(SHORT_NAN, vector);
        self.by_limit(magnitude, INFINITE + 1, [number, nan], vector)
    }

    /// Emits arithmetic on `.f16` or `.f16x2`, or a conversion of two floats, for all threads in
    /// vectors.
    pub(super) fn halves_in_vectors(&mut self, native: &Native, operands: &[Val]) -> Option<Vec<Value>> {
        let mut columns = Vec::new();
        for (operand, class) in operands.iter().zip(native.operands) {
            columns.push(match class {
                Class::B16 => {
                    let kind = Kind::Extend { from: 16, signed: false, to: 32, to_signed: false };
                    let extend = Native { kind, operands: [Class::B16; 4], result: Class::B32 };
                    self.lower_narrow(&extend, std::slice::from_ref(operand))?
                }
                class => self.vectors(operand, class),
            });
        }
        let parts = 0..columns.first()?.len();
        Some(
            parts
                .map(|part| {
                    let x: Vec<Value> = columns.iter().map(|column| column[part]).collect();
                    self.halves(native, &x, true)
                })
                .collect(),
        )
    }

    /// Emits arithmetic on `.f16` or `.f16x2`, or a conversion of two floats. In vectors, `.f16`
    /// takes a word, whose upper half is zero.
    pub(super) fn halves(&mut self, native: &Native, x: &[Value], vector: bool) -> Value {
        let (op, packed) = match native.kind {
            Kind::Half { op, packed } => (op, packed),
            kind => {
                let [high, low] = [x[0], x[1]].map(|float| {
                    let bits = self.float_bits(float, Class::F32, vector);
                    match kind {
                        Kind::FloatsToHalves => self.float_to_half(bits, vector),
                        _ => self.float_to_bfloat(bits, vector),
                    }
                });
                return self.two_halves(low, high);
            }
        };
        if packed {
            let low = self.half_arith(op, x, vector);
            let high: Vec<Value> = x.iter().map(|&word| self.shift_right(word, 16, false)).collect();
            let high = self.half_arith(op, &high, vector);
            return self.two_halves(low, high);
        }
        if vector {
            return self.half_arith(op, x, vector);
        }
        let words: Vec<Value> = x.iter().map(|&half| self.b.ins().uextend(I32, half)).collect();
        let word = self.half_arith(op, &words, vector);
        self.convert(word, Class::B32, native.result)
    }

    fn two_halves(&mut self, low: Value, high: Value) -> Value {
        let high = self.shift_left(high, 16);
        self.b.ins().bor(low, high)
    }

    /// Emits arithmetic on the lower halves of words.
    fn half_arith(&mut self, op: HalfArith, x: &[Value], vector: bool) -> Value {
        let floats: Vec<Value> = x
            .iter()
            .map(|&half| {
                let bits = self.half_to_float(half, vector);
                self.float_of_bits(bits, Class::F32, vector)
            })
            .collect();
        let bits = match (op, &floats[..]) {
            (HalfArith::Fma, &[a, b, c]) => {
                let product = self.b.ins().fmul(a, b);
                self.sum_to_odd(product, c, vector)
            }
            (op, &[a, b, ..]) => {
                let value = match op {
                    HalfArith::Add => self.b.ins().fadd(a, b),
                    HalfArith::Sub => self.b.ins().fsub(a, b),
                    HalfArith::Mul | HalfArith::Fma => self.b.ins().fmul(a, b),
                };
                self.float_bits(value, Class::F32, vector)
            }
            _ => {
                self.defect("arithmetic without operands");
                x[0]
            }
        };
        self.float_to_half(bits, vector)
    }

    /// Returns the bits of a sum in single precision. If it is not exact, it is that of its two
    /// neighbours whose last bit is set.
    fn sum_to_odd(&mut self, a: Value, b: Value, vector: bool) -> Value {
        let sum = self.b.ins().fadd(a, b);
        // What rounding has lost, which is exact. It is a NaN if the sum is infinite or a NaN.
        let from_b = self.b.ins().fsub(sum, a);
        let from_a = self.b.ins().fsub(sum, from_b);
        let (lost_a, lost_b) = (self.b.ins().fsub(a, from_a), self.b.ins().fsub(b, from_b));
        let lost = self.b.ins().fadd(lost_a, lost_b);
        let zero = self.word_of(0, vector);
        let none = self.float_of_bits(zero, Class::F32, vector);
        let (below, above) = (
            self.b.ins().fcmp(FloatCC::LessThan, lost, none),
            self.b.ins().fcmp(FloatCC::GreaterThan, lost, none),
        );
        let inexact = self.b.ins().bor(below, above);
        let bits = self.float_bits(sum, Class::F32, vector);
        let last = self.bits_in(bits, 1, vector);
        let even = self.b.ins().icmp(IntCC::Equal, last, zero);
        let moves = self.b.ins().band(inexact, even);
        // Away from zero if the lost part has the sign of the sum, else towards it.
        let lost = self.float_bits(lost, Class::F32, vector);
        let signs = self.b.ins().bxor(lost, bits);
        let signs = self.shift_right(signs, 31, true);
        let one = self.word_of(1, vector);
        let step = self.b.ins().bor(signs, one);
        let moved = self.b.ins().iadd(bits, step);
        if vector {
            self.b.ins().bitselect(moves, moved, bits)
        } else {
            self.b.ins().select(moves, moved, bits)
        }
    }
}
