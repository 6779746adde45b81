//! Recording of conversions: `as`, and conversions by name.

use crate::ir::{Operand, Ty};
use crate::record::arithmetic::{compare, narrow_bits, normalize, rounded, widened};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{Cast, Scalar, V};

/// `value as U`.
pub fn cast<U: Scalar, T: Cast>(value: V<T>) -> V<U> {
    let value = T::number(value);
    with(|r| {
        let value = value.operand(r);
        V::of(convert(r, T::Number::TY, U::TY, value))
    })
}

pub(crate) fn convert(r: &mut Recorder, from: Ty, to: Ty, value: Operand) -> Operand {
    match (from.is_float(), to.is_float()) {
        _ if from == to => value,
        (false, false) => integer(r, from, to, value),
        (false, true) => {
            // Converting from 64 bits is slow on GPUs, and on CPUs without AVX-512.
            let wide = match (from.is_signed(), from.bits() == 64) {
                (true, true) => Ty::I64,
                (true, false) => Ty::I32,
                (false, true) => Ty::U64,
                (false, false) => Ty::U32,
            };
            let value = integer(r, from, wide, value);
            from_integer(r, wide, to, value)
        }
        (true, false) => to_integer(r, from, to, value),
        (true, true) => between_floats(r, from, to, value),
    }
}

fn integer(r: &mut Recorder, from: Ty, to: Ty, value: Operand) -> Operand {
    if let Operand::Imm(_, bits) = value {
        return Operand::Imm(to, narrow_bits(to, bits));
    }
    if from == Ty::Bool {
        let (one, zero) = (Operand::Imm(to, 1), Operand::Imm(to, 0));
        let suffix = if to.bits() == 64 { "b64" } else { "b32" };
        return r.compute("selp", suffix, to, &[one, zero, value]);
    }
    match (from.bits() == 64, to.bits() == 64) {
        (true, true) => value,
        (true, false) => {
            let low = r.compute("cvt", "u32.u64", to, &[value]);
            normalize(r, to, low)
        }
        (false, true) => r.compute("cvt", if from.is_signed() { "s64.s32" } else { "u64.u32" }, to, &[value]),
        // A value of a narrower integer is in its register as one of 32 bits.
        (false, false) => normalize(r, to, value),
    }
}

fn from_integer(r: &mut Recorder, from: Ty, to: Ty, value: Operand) -> Operand {
    if let Operand::Imm(_, bits) = value {
        let is_signed = from.is_signed();
        let bits = match (to, is_signed) {
            (Ty::F64, true) => (bits as i64 as f64).to_bits(),
            (Ty::F64, false) => (bits as f64).to_bits(),
            (_, true) => (bits as i64 as f32).to_bits().into(),
            (_, false) => (bits as f32).to_bits().into(),
        };
        return if to == Ty::F64 {
            Operand::Imm(to, bits)
        } else {
            rounded(r, to, Operand::Imm(Ty::F32, bits))
        };
    }
    let suffix = match (to, from) {
        (Ty::F64, Ty::I64) => "f64.s64",
        (Ty::F64, Ty::U64) => "f64.u64",
        (Ty::F64, Ty::I32) => "f64.s32",
        (Ty::F64, _) => "f64.u32",
        (_, Ty::I64) => "f32.s64",
        (_, Ty::U64) => "f32.u64",
        (_, Ty::I32) => "f32.s32",
        _ => "f32.u32",
    };
    let wide = r.compute("cvt.rn", suffix, if to == Ty::F64 { Ty::F64 } else { Ty::F32 }, &[value]);
    if to == Ty::F64 { wide } else { rounded(r, to, wide) }
}

/// Towards zero, to the nearest value there is, and NaN to 0.
fn to_integer(r: &mut Recorder, from: Ty, to: Ty, value: Operand) -> Operand {
    let value = widened(r, from, value);
    let from = if from == Ty::F64 { Ty::F64 } else { Ty::F32 };
    if let Operand::Imm(_, bits) = value {
        let number = if from == Ty::F64 { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
        let bits = match to {
            Ty::U8 => u64::from(number as u8),
            Ty::I8 => i64::from(number as i8) as u64,
            Ty::U16 => u64::from(number as u16),
            Ty::I16 => i64::from(number as i16) as u64,
            Ty::U32 => u64::from(number as u32),
            Ty::I32 => i64::from(number as i32) as u64,
            Ty::U64 => number as u64,
            _ => number as i64 as u64,
        };
        return Operand::Imm(to, bits);
    }
    let suffix = match (from, to) {
        (Ty::F64, Ty::U64) => "u64.f64",
        (Ty::F64, Ty::I64) => "s64.f64",
        (Ty::F64, Ty::U32) => "u32.f64",
        (Ty::F64, _) => "s32.f64",
        (_, Ty::U64) => "u64.f32",
        (_, Ty::I64) => "s64.f32",
        (_, Ty::U32) => "u32.f32",
        _ => "s32.f32",
    };
    let mut result = r.compute("cvt.rzi", suffix, to, &[value]);
    if to.is_narrow() {
        let (low, high) = match to {
            Ty::U8 => (0, 0xff),
            Ty::I8 => (-0x80, 0x7f),
            Ty::U16 => (0, 0xffff),
            _ => (-0x8000, 0x7fff),
        };
        result = r.compute("max", "s32", to, &[result, Operand::Imm(Ty::I32, low as i64 as u64)]);
        result = r.compute("min", "s32", to, &[result, Operand::Imm(Ty::I32, high as u64)]);
    }
    // PTX gives 0 for NaN where neither side has 64 bits.
    if from == Ty::F64 || to.bits() == 64 {
        let is_number = compare(r, "setp.eq", from, value, value);
        let suffix = if to.bits() == 64 { "b64" } else { "b32" };
        result = r.compute("selp", suffix, to, &[result, Operand::Imm(to, 0), is_number]);
    }
    result
}

fn between_floats(r: &mut Recorder, from: Ty, to: Ty, value: Operand) -> Operand {
    let value = widened(r, from, value);
    match (from, to, value) {
        (Ty::F64, Ty::F32, Operand::Imm(_, bits)) => {
            Operand::Imm(to, (f64::from_bits(bits) as f32).to_bits().into())
        }
        (Ty::F64, Ty::F32, _) => r.compute("cvt.rn", "f32.f64", to, &[value]),
        (Ty::F64, Ty::F16, Operand::Imm(_, bits)) => {
            Operand::Imm(to, half::f16::from_f64(f64::from_bits(bits)).to_bits().into())
        }
        (Ty::F64, Ty::F16, _) => r.compute("cvt.rn", "f16.f64", to, &[value]),
        (_, Ty::F64, Operand::Imm(_, bits)) => {
            Operand::Imm(to, f64::from(f32::from_bits(bits as u32)).to_bits())
        }
        (_, Ty::F64, _) => r.compute("cvt", "f64.f32", to, &[value]),
        _ => rounded(r, to, value),
    }
}

impl<T: Scalar> V<T> {
    /// Converts without loss, as `T::from`.
    pub fn from<U: Scalar>(value: V<U>) -> V<T>
    where
        T: From<U>,
    {
        cast(value)
    }

    /// Converts without loss, as `into`.
    #[allow(clippy::should_implement_trait, reason = "it stands for the method of that name")]
    pub fn into<U: Scalar + From<T>>(self) -> V<U> {
        cast(self)
    }
}
