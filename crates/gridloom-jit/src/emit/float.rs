//! Floating-point arithmetic, with exactly the results of PTX.
//!
//! In single precision a NaN result is the canonical one. In double precision it depends on the
//! operands in ways specific to GPUs, so the interpreter computes it. The same holds for `.ftz`
//! where rounding decides whether a result was subnormal.

use super::Emitter;
use super::arith::Lowered;
use super::value::scalar_type;
use crate::host;
use crate::native::{Class, Integral, Kind, Native};
use crate::runtime;
use crate::wide::Intrinsic;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};

const MIN_NORMAL: u64 = 0x0080_0000;
const MAGNITUDE: u64 = 0x7fff_ffff;
const SIGN: u64 = 0x8000_0000;
const INFINITY: u64 = 0x7f80_0000;
const NAN: u64 = 0x7fff_ffff;
const TWO_TO_126: u64 = 0x7e80_0000;

impl Emitter<'_> {
    /// Returns the bits of a float as an integer.
    pub(super) fn float_bits(&mut self, value: Value, class: Class, vector: bool) -> Value {
        match (vector, class) {
            (true, Class::F64) => self.vector_cast(value, self.length.by(I64)),
            (true, _) => self.vector_cast(value, self.length.by(I32)),
            (false, Class::F64) => self.bitcast(value, I64),
            (false, _) => self.bitcast(value, I32),
        }
    }

    pub(super) fn float_of_bits(&mut self, value: Value, class: Class, vector: bool) -> Value {
        match (vector, class) {
            (true, Class::F64) => self.vector_cast(value, self.length.by(F64)),
            (true, _) => self.vector_cast(value, self.length.by(F32)),
            (false, Class::F64) => self.bitcast(value, F64),
            (false, _) => self.bitcast(value, F32),
        }
    }

    pub(super) fn bits_constant(&mut self, bits: u64, class: Class, vector: bool) -> Value {
        let class = class.untyped();
        if vector { self.vector_of(bits, class) } else { self.constant(bits, class) }
    }

    pub(super) fn float_constant(&mut self, bits: u64, class: Class, vector: bool) -> Value {
        if vector { self.vector_of(bits, class) } else { self.constant(bits, class) }
    }

    /// Selects one of two floats by a truth value or mask.
    pub(super) fn choose(
        &mut self,
        condition: Value,
        a: Value,
        b: Value,
        class: Class,
        vector: bool,
    ) -> Value {
        if !vector {
            return self.b.ins().select(condition, a, b);
        }
        let ty = self.length.by(if class == Class::F64 { F64 } else { F32 });
        let mask = self.vector_cast(condition, ty);
        self.b.ins().bitselect(mask, a, b)
    }

    /// Replaces every NaN by the canonical one.
    pub(crate) fn canonical(&mut self, value: Value, vector: bool) -> Value {
        if self.keeps_nan {
            return value;
        }
        let nan = self.float_constant(NAN, Class::F32, vector);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, value, value);
        self.choose(is_nan, nan, value, Class::F32, vector)
    }

    /// Replaces a subnormal number by a zero of the same sign if `ftz` is set. Only single
    /// precision does so.
    pub(crate) fn flush(&mut self, value: Value, ftz: bool, class: Class, vector: bool) -> Value {
        if !ftz || class != Class::F32 {
            return value;
        }
        if self.element_of(value).is_some_and(|bits| bits & MAGNITUDE >= MIN_NORMAL) {
            return value;
        }
        let bits = self.float_bits(value, class, vector);
        let (magnitude, sign, least) = (
            self.bits_constant(MAGNITUDE, class, vector),
            self.bits_constant(SIGN, class, vector),
            self.bits_constant(MIN_NORMAL, class, vector),
        );
        let size = self.b.ins().band(bits, magnitude);
        let subnormal = self.b.ins().icmp(IntCC::SignedLessThan, size, least);
        let zero = self.b.ins().band(bits, sign);
        let zero = self.float_of_bits(zero, class, vector);
        self.choose(subnormal, zero, value, class, vector)
    }

    /// Emits the last steps of arithmetic. `rounded` says whether a result equal to the smallest
    /// normal number may have been rounded up to it.
    pub(super) fn finish(
        &mut self,
        value: Value,
        ftz: bool,
        rounded: bool,
        class: Class,
        vector: bool,
    ) -> Lowered {
        if class == Class::F64 {
            let rare = self.b.ins().fcmp(FloatCC::Unordered, value, value);
            return Lowered { value, rare: Some(rare) };
        }
        let rare = (ftz && rounded).then(|| {
            let bits = self.float_bits(value, class, vector);
            let magnitude = self.bits_constant(MAGNITUDE, class, vector);
            let least = self.bits_constant(MIN_NORMAL, class, vector);
            let size = self.b.ins().band(bits, magnitude);
            self.b.ins().icmp(IntCC::Equal, size, least)
        });
        let value = self.flush(value, ftz, class, vector);
        Lowered { value: self.canonical(value, vector), rare }
    }

    pub(crate) fn lower_float(&mut self, native: &Native, x: &[Value], vector: bool) -> Lowered {
        let class = native.result;
        let from = native.operands[0];
        let flushes = match native.kind {
            Kind::FloatAdd { ftz }
            | Kind::FloatSub { ftz }
            | Kind::FloatMul { ftz }
            | Kind::FloatFma { ftz }
            | Kind::FloatDiv { ftz }
            | Kind::FloatDivApprox { ftz }
            | Kind::FloatReciprocal { ftz }
            | Kind::FloatSqrt { ftz }
            | Kind::FloatRsqrt { ftz }
            | Kind::FloatSaturate { ftz }
            | Kind::FloatMin { ftz, .. }
            | Kind::FloatMax { ftz, .. }
            | Kind::FloatAbs { ftz }
            | Kind::FloatNeg { ftz }
            | Kind::FloatToInt { ftz, .. }
            | Kind::FloatToNarrow { ftz, .. }
            | Kind::Promote { ftz }
            | Kind::Demote { ftz }
            | Kind::RoundIntegral { ftz, .. } => ftz,
            _ => false,
        };
        let x: Vec<Value> = x.iter().map(|&x| self.flush(x, flushes, from, vector)).collect();
        match native.kind {
            Kind::FloatAdd { ftz } => {
                let sum = self.b.ins().fadd(x[0], x[1]);
                // A subnormal sum is exact.
                self.finish(sum, ftz, false, class, vector)
            }
            Kind::FloatSub { ftz } => {
                let difference = self.b.ins().fsub(x[0], x[1]);
                self.finish(difference, ftz, false, class, vector)
            }
            Kind::FloatMul { ftz } => {
                let product = self.b.ins().fmul(x[0], x[1]);
                self.finish(product, ftz, true, class, vector)
            }
            Kind::FloatFma { ftz } => {
                let sum = self.b.ins().fma(x[0], x[1], x[2]);
                self.finish(sum, ftz, true, class, vector)
            }
            Kind::FloatFmaDown if vector && self.is_wide() => {
                let sum = self.operation(Intrinsic::MultiplyAddDown, &x, self.length.by(F32));
                self.canonical(sum, vector).into()
            }
            Kind::FloatFmaDown => self.fma_down(&x, vector),
            Kind::FloatApprox { op, ftz } => {
                let bits = self.float_bits(x[0], class, false);
                let ftz = self.b.ins().iconst(I32, i64::from(ftz));
                let function = runtime::approximate(op) as *const () as usize;
                let bits = self.call(function, &[bits, ftz], Some(I32)).unwrap_or(bits);
                self.float_of_bits(bits, class, false).into()
            }
            Kind::FloatSaturate { .. } => {
                let zero = self.float_constant(0, class, vector);
                let one = self.float_constant(1f32.to_bits().into(), class, vector);
                let below = self.b.ins().fcmp(FloatCC::LessThan, x[0], one);
                let value = self.choose(below, x[0], one, class, vector);
                // Neither a NaN nor a zero is above zero.
                let above = self.b.ins().fcmp(FloatCC::GreaterThan, x[0], zero);
                self.choose(above, value, zero, class, vector).into()
            }
            Kind::FloatDiv { ftz } => {
                let quotient = self.b.ins().fdiv(x[0], x[1]);
                self.finish(quotient, ftz, true, class, vector)
            }
            Kind::FloatDivApprox { ftz } => {
                let quotient = self.b.ins().fdiv(x[0], x[1]);
                let bits = self.float_bits(x[1], class, vector);
                let magnitude = self.bits_constant(MAGNITUDE, class, vector);
                let limit = self.bits_constant(TWO_TO_126, class, vector);
                let size = self.b.ins().band(bits, magnitude);
                let far = self.b.ins().icmp(IntCC::SignedGreaterThan, size, limit);
                let Lowered { value, rare } = self.finish(quotient, ftz, true, class, vector);
                let rare = rare.map_or(far, |rare| self.b.ins().bor(rare, far));
                Lowered { value, rare: Some(rare) }
            }
            Kind::FloatReciprocal { ftz } => {
                let one = if class == Class::F64 { 1f64.to_bits() } else { 1f32.to_bits().into() };
                let one = self.float_constant(one, class, vector);
                let quotient = self.b.ins().fdiv(one, x[0]);
                self.finish(quotient, ftz, true, class, vector)
            }
            Kind::FloatSqrt { ftz } => {
                let root = self.b.ins().sqrt(x[0]);
                self.finish(root, ftz, false, class, vector)
            }
            Kind::FloatRsqrt { ftz } => {
                let one = self.float_constant(1f64.to_bits(), Class::F64, vector);
                let mut inverses = Vec::new();
                for wide in self.widen(x[0], vector) {
                    let root = self.b.ins().sqrt(wide);
                    inverses.push(self.b.ins().fdiv(one, root));
                }
                let value = self.unwiden(&inverses);
                // Such a result is never subnormal.
                self.finish(value, ftz, false, class, vector)
            }
            Kind::FloatMin { nan, .. } | Kind::FloatMax { nan, .. } => {
                let largest = matches!(native.kind, Kind::FloatMax { .. });
                self.extremum(largest, nan, x[0], x[1], class, vector)
            }
            Kind::FloatAbs { .. } | Kind::FloatNeg { .. } => {
                let value = if matches!(native.kind, Kind::FloatAbs { .. }) {
                    self.b.ins().fabs(x[0])
                } else {
                    self.b.ins().fneg(x[0])
                };
                self.finish(value, false, false, class, vector)
            }
            Kind::FloatToInt { signed, integral, .. } => {
                let value = self.integral(integral, x[0]);
                let ty = if vector { self.length.by(I32) } else { scalar_type(class) };
                let rare = (from == Class::F64 || class == Class::B64)
                    .then(|| self.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]));
                let value = if signed {
                    self.b.ins().fcvt_to_sint_sat(ty, value)
                } else {
                    self.b.ins().fcvt_to_uint_sat(ty, value)
                };
                Lowered { value, rare }
            }
            Kind::FloatToNarrow { signed, bits, integral, .. } => {
                let value = self.integral(integral, x[0]);
                let value =
                    self.b.ins().fcvt_to_sint_sat(if vector { self.length.by(I32) } else { I32 }, value);
                let value = self.clamp_integer(value, true, bits, signed, vector);
                if vector { value.into() } else { self.convert(value, Class::B32, class).into() }
            }
            Kind::Promote { .. } => {
                let rare = self.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]);
                Lowered { value: self.b.ins().fpromote(F64, x[0]), rare: Some(rare) }
            }
            Kind::Demote { ftz } => {
                let value = self.b.ins().fdemote(F32, x[0]);
                let nan = self.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]);
                let Lowered { value, rare } = self.finish(value, ftz, true, class, vector);
                let rare = rare.map_or(nan, |rare| self.b.ins().bor(rare, nan));
                Lowered { value, rare: Some(rare) }
            }
            Kind::RoundIntegral { integral, .. } => {
                let value = self.integral(integral, x[0]);
                self.finish(value, false, false, class, vector)
            }
            _ => {
                self.defect("an instruction without a lowering");
                x[0].into()
            }
        }
    }

    /// Converts single precision to double. A vector becomes two.
    pub(super) fn widen(&mut self, value: Value, vector: bool) -> Vec<Value> {
        if !vector {
            return vec![self.b.ins().fpromote(F64, value)];
        }
        self.doubles_of(value).to_vec()
    }

    /// Converts double precision to single, rounded to nearest.
    pub(super) fn unwiden(&mut self, values: &[Value]) -> Value {
        let &[low, high] = values else { return self.b.ins().fdemote(F32, values[0]) };
        self.floats_of_doubles(low, high)
    }

    /// Emits `fma.rm`. The product is exact in double precision, and the sum with its rounding
    /// error is the exact result. If the nearest number is above that, the result is the next
    /// number below.
    fn fma_down(&mut self, x: &[Value], vector: bool) -> Lowered {
        let [a, b, c] = [x[0], x[1], x[2]].map(|x| self.widen(x, vector));
        let mut sums = Vec::new();
        let mut errors = Vec::new();
        for ((&a, &b), &c) in a.iter().zip(&b).zip(&c) {
            let product = self.b.ins().fmul(a, b);
            let sum = self.b.ins().fadd(product, c);
            let part = self.b.ins().fsub(sum, product);
            let rest = self.b.ins().fsub(sum, part);
            let rest = self.b.ins().fsub(product, rest);
            let part = self.b.ins().fsub(c, part);
            errors.push(self.b.ins().fadd(rest, part));
            sums.push(sum);
        }
        let nearest = self.unwiden(&sums);
        let mut above = Vec::new();
        for ((wide, &sum), &error) in self.widen(nearest, vector).into_iter().zip(&sums).zip(&errors) {
            let zero = self.float_constant(0, Class::F64, vector);
            let past = self.b.ins().fcmp(FloatCC::GreaterThan, wide, sum);
            let same = self.b.ins().fcmp(FloatCC::Equal, wide, sum);
            let less = self.b.ins().fcmp(FloatCC::LessThan, error, zero);
            let exactly = self.b.ins().band(same, less);
            above.push(self.b.ins().bor(past, exactly));
        }
        let above = match above[..] {
            [low, high] => self.narrow(low, high),
            _ => self.b.ins().bmask(I32, above[0]),
        };
        let bits = self.float_bits(nearest, Class::F32, vector);
        let shift = self.b.ins().iconst(I32, 31);
        let sign = self.b.ins().sshr(bits, shift);
        // The next lower number is one less in bits if positive, and one more if negative.
        let ones = self.bits_constant(u32::MAX.into(), Class::F32, vector);
        let twice = self.b.ins().iadd(sign, sign);
        let delta = self.b.ins().isub(ones, twice);
        let delta = self.b.ins().band(delta, above);
        let result = self.b.ins().iadd(bits, delta);
        let magnitude = self.bits_constant(MAGNITUDE, Class::F32, vector);
        let size = self.b.ins().band(bits, magnitude);
        let zero = self.bits_constant(0, Class::F32, vector);
        let largest = self.bits_constant(INFINITY - 1, Class::F32, vector);
        let is_zero = self.b.ins().icmp(IntCC::Equal, size, zero);
        let is_far = self.b.ins().icmp(IntCC::SignedGreaterThan, size, largest);
        let rare = self.b.ins().bor(is_zero, is_far);
        Lowered { value: self.float_of_bits(result, Class::F32, vector), rare: Some(rare) }
    }

    fn integral(&mut self, integral: Integral, value: Value) -> Value {
        match integral {
            Integral::Nearest => self.b.ins().nearest(value),
            Integral::Zero => self.b.ins().trunc(value),
            Integral::Down => self.b.ins().floor(value),
            Integral::Up => self.b.ins().ceil(value),
        }
    }

    /// Emits `min` and `max`. Without `.NaN`, a number is preferred to a NaN.
    fn extremum(
        &mut self,
        largest: bool,
        nan: bool,
        a: Value,
        b: Value,
        class: Class,
        vector: bool,
    ) -> Lowered {
        if class == Class::F64 {
            // The interpreter handles operands that are NaN.
            let picked = self.extremum_of_numbers(largest, a, b, class, vector);
            let rare = self.b.ins().fcmp(FloatCC::Unordered, a, b);
            return Lowered { value: picked, rare: Some(rare) };
        }
        if nan {
            let picked = if largest { self.b.ins().fmax(a, b) } else { self.b.ins().fmin(a, b) };
            return self.canonical(picked, vector).into();
        }
        if vector && host::picks_by_sign() {
            return self.extremum_in_vectors(largest, a, b).into();
        }
        let picked = self.extremum_of_numbers(largest, a, b, class, vector);
        let a_is_nan = self.b.ins().fcmp(FloatCC::Unordered, a, a);
        let b_is_nan = self.b.ins().fcmp(FloatCC::Unordered, b, b);
        let picked = self.choose(b_is_nan, a, picked, class, vector);
        let picked = self.choose(a_is_nan, b, picked, class, vector);
        self.canonical(picked, vector).into()
    }

    /// Returns the larger or smaller of two numbers. The result for a NaN is unspecified.
    fn extremum_of_numbers(
        &mut self,
        largest: bool,
        a: Value,
        b: Value,
        class: Class,
        vector: bool,
    ) -> Value {
        if !vector || cfg!(not(target_arch = "x86_64")) {
            return if largest { self.b.ins().fmax(a, b) } else { self.b.ins().fmin(a, b) };
        }
        // The results in both orders have the signs of both zeros.
        let [first, second] = [(a, b), (b, a)].map(|(a, b)| self.extremum_or_second(largest, a, b, class));
        if largest { self.b.ins().band(first, second) } else { self.b.ins().bor(first, second) }
    }

    /// Returns the larger or smaller of two vectors, or the second for a NaN or two zeros. On
    /// x86-64 this is one instruction; one that handles zeros and NaNs takes eight.
    fn extremum_or_second(&mut self, largest: bool, a: Value, b: Value, class: Class) -> Value {
        let (less, more) = if largest { (b, a) } else { (a, b) };
        let wins = self.b.ins().fcmp(FloatCC::LessThan, less, more);
        self.choose(wins, a, b, class, true)
    }

    /// Emits `min` and `max` without `.NaN` for single-precision vectors, if the machine can select
    /// elements by a sign.
    fn extremum_in_vectors(&mut self, largest: bool, a: Value, b: Value) -> Value {
        let class = Class::F32;
        // With such a constant the result is right even if the other operand is a NaN or a zero.
        let is_right = |value: Value| {
            let lesser_zero = if largest { SIGN } else { 0 };
            self.element_of(value).is_some_and(|bits| bits & MAGNITUDE <= INFINITY && bits != lesser_zero)
        };
        match (is_right(a), is_right(b)) {
            (_, true) => return self.extremum_or_second(largest, a, b, class),
            (true, _) => return self.extremum_or_second(largest, b, a, class),
            _ => {}
        }
        // Of two zeros, the one with the right sign is made the second.
        let [x, y] = [a, b].map(|value| self.vector_cast(value, self.length.by(I32)));
        let swapped = [(y, x), (x, y)];
        let [first, second] =
            if largest { swapped } else { [swapped[1], swapped[0]] }.map(|(negative, other)| {
                let picked = self.b.ins().blendv(y, negative, other);
                self.vector_cast(picked, self.length.by(F32))
            });
        let picked = self.extremum_or_second(largest, first, second, class);
        // If the first operand was a NaN, the result is the second, so only that can still be a
        // NaN.
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, second, second);
        let picked = self.choose(is_nan, first, picked, class, true);
        self.canonical(picked, true)
    }
}
