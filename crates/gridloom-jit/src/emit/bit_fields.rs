//! Fields of words, products of their halves, and conversions between integers and floats that
//! clamp or change the width.

use super::Emitter;
use super::value::{Val, scalar_type};
use crate::native::{Class, Kind, Native};
use cranelift_codegen::ir::types::{F32, F64, I32};
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_> {
    /// Returns a constant, or a vector of it.
    fn constant_in(&mut self, bits: u64, class: Class, vector: bool) -> Value {
        if vector { self.vector_of(bits, class) } else { self.constant(bits, class) }
    }

    pub(super) fn shift_left(&mut self, value: Value, count: u32) -> Value {
        let by = self.b.ins().iconst(I32, i64::from(count));
        if count == 0 { value } else { self.b.ins().ishl(value, by) }
    }

    pub(super) fn shift_right(&mut self, value: Value, count: u32, signed: bool) -> Value {
        let by = self.b.ins().iconst(I32, i64::from(count));
        match (count, signed) {
            (0, _) => value,
            (_, true) => self.b.ins().sshr(value, by),
            (_, false) => self.b.ins().ushr(value, by),
        }
    }

    /// Emits `bfe` of a field inside the word.
    pub(super) fn bit_field(
        &mut self,
        value: Value,
        [start, bits]: [u32; 2],
        signed: bool,
        class: Class,
        vector: bool,
    ) -> Value {
        let above = class.bits() - start - bits;
        if signed {
            let value = self.shift_left(value, above);
            return self.shift_right(value, start + above, true);
        }
        let value = self.shift_right(value, start, false);
        if above == 0 {
            return value;
        }
        let mask = self.constant_in(u64::MAX >> (64 - bits), class, vector);
        self.b.ins().band(value, mask)
    }

    /// Emits `bfi` of a field inside the word.
    pub(super) fn insert_field(
        &mut self,
        x: &[Value],
        [start, bits]: [u32; 2],
        class: Class,
        vector: bool,
    ) -> Value {
        let field = u64::MAX >> (64 - bits) << start;
        let (inside, outside) =
            (self.constant_in(field, class, vector), self.constant_in(!field, class, vector));
        let new = self.shift_left(x[0], start);
        let new = self.b.ins().band(new, inside);
        let old = self.b.ins().band(x[1], outside);
        self.b.ins().bor(old, new)
    }

    /// Emits `dp2a`, in one thread or element by element.
    pub(super) fn half_dot_product(
        &mut self,
        signed: [bool; 2],
        high: bool,
        x: &[Value],
        vector: bool,
    ) -> Value {
        let known = self.constant_of(x[1]).or_else(|| self.element_of(x[1])).map(|bits| bits as u32);
        if let (Some(bits), true, false) = (known, vector, signed[0]) {
            let byte = |half: u32| {
                let byte = (bits >> (8 * (half + if high { 2 } else { 0 }))) as u8;
                u32::from(if signed[1] { i16::from(byte as i8) as u16 } else { byte.into() })
            };
            let sum = self.half_dot_product_of_vectors(x[0], byte(0) | byte(1) << 16, x[2]);
            if let Some(sum) = sum {
                return sum;
            }
        }
        let mut sum = x[2];
        for half in 0..2 {
            let a = self.bit_field(x[0], [16 * half, 16], signed[0], Class::B32, vector);
            let start = 8 * (half + if high { 2 } else { 0 });
            let b = match known {
                Some(bits) if signed[1] => {
                    let byte = i32::from((bits >> start) as i8);
                    self.constant_in(u64::from(byte as u32), Class::B32, vector)
                }
                Some(bits) => self.constant_in(u64::from(bits >> start & 255), Class::B32, vector),
                None => self.bit_field(x[1], [start, 8], signed[1], Class::B32, vector),
            };
            let product = self.product(a, b);
            sum = self.sum(sum, product);
        }
        sum
    }

    /// Clamps integers of 32 bits to the range of a narrower type.
    pub(super) fn clamp_integer(
        &mut self,
        value: Value,
        signed: bool,
        bits: u32,
        to_signed: bool,
        vector: bool,
    ) -> Value {
        let most = if to_signed { (1 << (bits - 1)) - 1 } else { (1 << bits) - 1 };
        let most = self.constant_in(most, Class::B32, vector);
        if !signed {
            return self.b.ins().umin(value, most);
        }
        let least = if to_signed { -1i32 << (bits - 1) } else { 0 };
        let least = self.constant_in(u64::from(least as u32), Class::B32, vector);
        let value = self.b.ins().smax(value, least);
        self.b.ins().smin(value, most)
    }

    /// Emits a conversion from or to integers in vectors. Returns `None` if there are no vector
    /// instructions for it.
    pub(super) fn convert_narrow(&mut self, native: &Native, operand: &Val) -> Option<Vec<Value>> {
        let from = native.operands[0];
        let extended = |signed: bool| Native {
            kind: Kind::Extend { from: from.bits(), signed, to: 32, to_signed: signed },
            operands: [from; 4],
            result: Class::B32,
        };
        let words = |emitter: &mut Self, signed: bool| match from {
            Class::B8 | Class::B16 => emitter.lower_narrow(&extended(signed), std::slice::from_ref(operand)),
            Class::B32 => Some(emitter.vectors(operand, Class::B32)),
            _ => None,
        };
        match native.kind {
            Kind::IntToFloat { signed } => {
                let parts = words(self, signed)?;
                // What is narrower is not negative when it was extended with zeros.
                let signed = signed || from != Class::B32;
                Some(parts.into_iter().flat_map(|part| self.floats_of(part, signed, native.result)).collect())
            }
            Kind::Saturate { signed, bits, to_signed } => {
                let mut parts = words(self, signed)?;
                for part in &mut parts {
                    *part = self.clamp_integer(*part, signed, bits, to_signed, true);
                }
                Some(self.in_register(parts, to_signed, native.result))
            }
            Kind::FloatToNarrow { signed, .. } => {
                let mut parts = self.vectors(operand, Class::F32);
                for part in &mut parts {
                    *part = self.lower(native, &[*part], true).value;
                }
                Some(self.in_register(parts, signed, native.result))
            }
            Kind::HalfToFloat | Kind::BfloatToFloat => {
                let parts = words(self, false)?;
                Some(parts.into_iter().map(|part| self.short_float(native, part, true)).collect())
            }
            Kind::FloatToHalf | Kind::FloatToBfloat => {
                let parts = self.vectors(operand, Class::F32);
                Some(parts.into_iter().map(|part| self.short_float(native, part, true)).collect())
            }
            _ => None,
        }
    }

    /// Cuts integers of 32 bits to the width of a register.
    fn in_register(&mut self, parts: Vec<Value>, signed: bool, class: Class) -> Vec<Value> {
        if !signed || class == Class::B32 {
            return parts;
        }
        let mask = self.vector_of((1 << class.bits()) - 1, Class::B32);
        parts.into_iter().map(|part| self.b.ins().band(part, mask)).collect()
    }

    /// Converts a vector of 32-bit integers to floats. Doubles take two vectors.
    fn floats_of(&mut self, part: Value, signed: bool, class: Class) -> Vec<Value> {
        if class == Class::F32 {
            return vec![if signed {
                self.b.ins().fcvt_from_sint(self.length.by(F32), part)
            } else {
                self.b.ins().fcvt_from_uint(self.length.by(F32), part)
            }];
        }
        debug_assert_eq!(scalar_type(class), scalar_type(Class::F64));
        if self.is_wide() {
            let doubles = self.length.by(F64);
            return if signed {
                [self.b.ins().swiden_low(part), self.b.ins().swiden_high(part)]
                    .map(|wide| self.b.ins().fcvt_from_sint(doubles, wide))
                    .to_vec()
            } else {
                [self.b.ins().uwiden_low(part), self.b.ins().uwiden_high(part)]
                    .map(|wide| self.b.ins().fcvt_from_uint(doubles, wide))
                    .to_vec()
            };
        }
        let high = self.pick_words(part, part, |word| 2 + word % 2);
        [part, high]
            .map(|half| {
                if signed {
                    let wide = self.b.ins().swiden_low(half);
                    self.b.ins().fcvt_from_sint(self.length.by(F64), wide)
                } else {
                    let wide = self.b.ins().uwiden_low(half);
                    self.b.ins().fcvt_from_uint(self.length.by(F64), wide)
                }
            })
            .to_vec()
    }
}
