//! Conversions between single precision and the floating-point formats of 16 bits, in one thread or
//! in a vector of threads. The host may have no instructions for them. Integer arithmetic on the
//! bits, and one addition for subnormal numbers, gives the same results.

use super::Emitter;
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::condcodes::IntCC;
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
/// In single precision: the smallest normal `.f16`, the smallest number that rounds to its infinity,
/// and a number whose last bit has the value of the smallest `.f16`.
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
}
