//! Elementary functions in vectors, as [`elementary`] defines them.

use super::Emitter;
use crate::native::Class;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::numeric::elementary;

impl Emitter<'_> {
    /// Emits `ex2` in a vector of floats: [`elementary::exp2`], operation by operation.
    pub(super) fn power_of_two(&mut self, part: Value, ftz: bool) -> Value {
        let part = self.flush(part, ftz, Class::F32, true);
        let powers = self.doubles_of(part).map(|x| self.power_of_two_of_doubles(x));
        let power = self.floats_of_doubles(powers[0], powers[1]);
        let power = self.flush(power, ftz, Class::F32, true);
        self.canonical(power, true)
    }

    fn power_of_two_of_doubles(&mut self, x: Value) -> Value {
        let double = |emitter: &mut Self, value: f64| emitter.vector_of(value.to_bits(), Class::F64);
        let mut x = x;
        let (least, most) =
            (double(self, -elementary::MOST_EXPONENT), double(self, elementary::MOST_EXPONENT));
        for (condition, limit) in [(FloatCC::LessThan, least), (FloatCC::GreaterThan, most)] {
            let is_past = self.b.ins().fcmp(condition, x, limit);
            x = self.choose(is_past, limit, x, Class::F64, true);
        }
        let round = double(self, elementary::ROUND);
        let sum = self.b.ins().fadd(x, round);
        let whole = self.b.ins().fsub(sum, round);
        let rest = self.b.ins().fsub(x, whole);
        let natural = double(self, std::f64::consts::LN_2);
        let y = self.b.ins().fmul(rest, natural);
        let [others @ .., last] = elementary::EXP_SERIES;
        let mut series = double(self, last);
        for coefficient in others.into_iter().rev() {
            let coefficient = double(self, coefficient);
            let product = self.b.ins().fmul(series, y);
            series = self.b.ins().fadd(product, coefficient);
        }
        let bits = self.float_bits(sum, Class::F64, true);
        let bias = self.vector_of(1023, Class::B64);
        let exponent = self.b.ins().iadd(bits, bias);
        let count = self.b.ins().iconst(I32, 52);
        let scale = self.b.ins().ishl(exponent, count);
        let scale = self.float_of_bits(scale, Class::F64, true);
        self.b.ins().fmul(series, scale)
    }
}
