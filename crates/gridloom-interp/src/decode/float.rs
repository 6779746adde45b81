//! Floating-point arithmetic: each instruction becomes the numeric function for its format,
//! rounding and modifiers.

use super::Refusal;
use super::function::FunctionDecoder;
use crate::lanes::{Slot, Source};
use crate::numeric::compare::{self, Extremum};
use crate::numeric::float::{self, Property};
use crate::numeric::format::Word;
use crate::numeric::{self, Clamp, F32, F64, Float, Mode, approx, packed};
use gridloom_ptx::op::{ApproxOp, FloatArith, FloatOp, FloatPrecision, MinMax, Rounding, TestpOp};
use gridloom_ptx::{Operand, ScalarType};

/// Appends a function of floats in any format, packed or not. In the closure, `$F` is the format.
macro_rules! map_float {
    ($self:ident, $ty:expr, $d:expr, $s:expr, $F:ident => $function:expr) => {
        match $ty {
            ScalarType::F16 => {
                type $F = numeric::F16;
                $self.map_single::<$F, _>($d, $s, $function)
            }
            ScalarType::Bf16 => {
                type $F = numeric::Bf16;
                $self.map_single::<$F, _>($d, $s, $function)
            }
            ScalarType::F32 => {
                type $F = numeric::F32;
                $self.map_single::<$F, _>($d, $s, $function)
            }
            ScalarType::F64 => {
                type $F = numeric::F64;
                $self.map_single::<$F, _>($d, $s, $function)
            }
            ScalarType::F16x2 => {
                type $F = numeric::F16;
                $self.map_halves($d, $s, $function)
            }
            ScalarType::Bf16x2 => {
                type $F = numeric::Bf16;
                $self.map_halves($d, $s, $function)
            }
            ScalarType::F32x2 => {
                type $F = numeric::F32;
                $self.map_pairs($d, $s, $function)
            }
            other => return Err(Refusal::because(format!("floating-point arithmetic on .{other}"))),
        }
    };
}

/// Appends a function of floats in a format that is not packed.
macro_rules! with_float {
    ($ty:expr, $F:ident => $body:expr) => {
        match $ty {
            ScalarType::F16 => {
                type $F = numeric::F16;
                $body
            }
            ScalarType::Bf16 => {
                type $F = numeric::Bf16;
                $body
            }
            ScalarType::F32 => {
                type $F = numeric::F32;
                $body
            }
            ScalarType::F64 => {
                type $F = numeric::F64;
                $body
            }
            other => return Err(Refusal::because(format!("this instruction on .{other}"))),
        }
    };
}
pub(super) use with_float;

/// The operands of a function, in one format.
type Values<F, const N: usize> = [<F as Float>::Bits; N];

pub(super) fn rounding(rounding: Rounding) -> numeric::Rounding {
    match rounding {
        Rounding::Rn => numeric::Rounding::NearestEven,
        Rounding::Rz => numeric::Rounding::Zero,
        Rounding::Rm => numeric::Rounding::Down,
        Rounding::Rp => numeric::Rounding::Up,
    }
}

fn mode(round: Option<Rounding>, ftz: bool, sat: bool, relu: bool) -> Mode {
    let clamp = match (sat, relu) {
        (true, _) => Clamp::Saturate,
        (_, true) => Clamp::Relu,
        _ => Clamp::None,
    };
    Mode { rounding: rounding(round.unwrap_or(Rounding::Rn)), ftz, clamp }
}

impl FunctionDecoder<'_, '_> {
    pub(super) fn map_single<F: Float, const N: usize>(
        &mut self,
        destination: Slot,
        sources: [Source; N],
        function: impl Fn(Values<F, N>) -> F::Bits + Send + Sync + 'static,
    ) {
        self.map([destination], sources, move |values| [function(values.map(F::Bits::truncate)).into()]);
    }

    fn map_halves<const N: usize>(
        &mut self,
        destination: Slot,
        sources: [Source; N],
        function: impl Fn([u16; N]) -> u16 + Send + Sync + 'static,
    ) {
        self.map([destination], sources, move |values| {
            let (low, high) = (values.map(|v| v as u16), values.map(|v| (v >> 16) as u16));
            [packed::pack(function(low), function(high)).into()]
        });
    }

    fn map_pairs<const N: usize>(
        &mut self,
        destination: Slot,
        sources: [Source; N],
        function: impl Fn([u32; N]) -> u32 + Send + Sync + 'static,
    ) {
        self.map([destination], sources, move |values| {
            let (low, high) = (values.map(|v| v as u32), values.map(|v| (v >> 32) as u32));
            [u64::from(function(low)) | u64::from(function(high)) << 32]
        });
    }

    pub(super) fn float(&mut self, op: &FloatOp) -> Result<(), Refusal> {
        match op {
            FloatOp::Arith { op, ty, rounding, ftz, sat, dst, a, b } => {
                let (d, s, mode) =
                    (self.slot(*dst), self.sources([a, b], *ty)?, mode(*rounding, *ftz, *sat, false));
                match op {
                    FloatArith::Add => {
                        map_float!(self, *ty, d, s, F => move |[a, b]: Values<F, 2>| float::add::<F>(a, b, mode))
                    }
                    FloatArith::Sub => {
                        map_float!(self, *ty, d, s, F => move |[a, b]: Values<F, 2>| float::sub::<F>(a, b, mode))
                    }
                    FloatArith::Mul => {
                        map_float!(self, *ty, d, s, F => move |[a, b]: Values<F, 2>| float::mul::<F>(a, b, mode))
                    }
                }
            }
            FloatOp::Fma { oob: true, .. } => return Err(Refusal::because("fma.oob")),
            FloatOp::Fma { ty, rounding, ftz, sat, relu, dst, a, b, c, oob: false } => {
                let mode = mode(Some(*rounding), *ftz, *sat, *relu);
                self.fma(*ty, mode, self.slot(*dst), [a, b, c])?;
            }
            FloatOp::Mad { ty, rounding, ftz, sat, dst, a, b, c } => {
                let mode = mode(*rounding, *ftz, *sat, false);
                self.fma(*ty, mode, self.slot(*dst), [a, b, c])?;
            }
            FloatOp::Div { ty, precision, ftz, dst, a, b } => {
                let (d, s, ftz) = (self.slot(*dst), self.sources([a, b], *ty)?, *ftz);
                match (precision, ty) {
                    (FloatPrecision::Rounded(rounding), _) => {
                        let mode = mode(Some(*rounding), ftz, false, false);
                        with_float!(*ty, F => self.map_single::<F, 2>(d, s, move |[a, b]| float::div::<F>(a, b, mode)));
                    }
                    (FloatPrecision::Full, ScalarType::F32) => {
                        self.map_single::<F32, 2>(d, s, move |[a, b]| approx::div_full_f32(a, b, ftz));
                    }
                    (FloatPrecision::Approx, ScalarType::F32) => {
                        self.map_single::<F32, 2>(d, s, move |[a, b]| approx::div_approx_f32(a, b, ftz));
                    }
                    _ => return Err(Refusal::because(format!("an approximate division on .{ty}"))),
                }
            }
            FloatOp::Rcp { ty, precision, ftz, dst, a } => {
                let (d, s, ftz) = (self.slot(*dst), self.sources([a], *ty)?, *ftz);
                match (precision, ty) {
                    (FloatPrecision::Rounded(rounding), _) => {
                        let mode = mode(Some(*rounding), ftz, false, false);
                        with_float!(*ty, F => self.map_single::<F, 1>(d, s, move |[a]| float::rcp::<F>(a, mode)));
                    }
                    (_, ScalarType::F64) => self.map_single::<F64, 1>(d, s, |[a]| approx::rcp_ftz_f64(a)),
                    _ => self.map_single::<F32, 1>(d, s, move |[a]| approx::rcp_f32(a, ftz)),
                }
            }
            FloatOp::Sqrt { ty, precision, ftz, dst, a } => {
                let (d, s, ftz) = (self.slot(*dst), self.sources([a], *ty)?, *ftz);
                match precision {
                    FloatPrecision::Rounded(rounding) => {
                        let mode = mode(Some(*rounding), ftz, false, false);
                        with_float!(*ty, F => self.map_single::<F, 1>(d, s, move |[a]| float::sqrt::<F>(a, mode)));
                    }
                    _ => self.map_single::<F32, 1>(d, s, move |[a]| approx::sqrt_f32(a, ftz)),
                }
            }
            FloatOp::Approx { op, ty, ftz, dst, a } => {
                self.approximate(*op, *ty, *ftz, self.slot(*dst), a)?
            }
            FloatOp::Abs { ty, ftz, dst, a } => {
                let (d, s, ftz) = (self.slot(*dst), self.sources([a], *ty)?, *ftz);
                map_float!(self, *ty, d, s, F => move |[a]: Values<F, 1>| float::abs::<F>(a, ftz));
            }
            FloatOp::Neg { ty, ftz, dst, a } => {
                let (d, s, ftz) = (self.slot(*dst), self.sources([a], *ty)?, *ftz);
                map_float!(self, *ty, d, s, F => move |[a]: Values<F, 1>| float::neg::<F>(a, ftz));
            }
            FloatOp::MinMax { op, ty, ftz, nan, xorsign_abs, abs, dst, a, b, c } => {
                let how = Extremum { ftz: *ftz, nan: *nan, xorsign_abs: *xorsign_abs, abs: *abs };
                let (d, [a, b], min) = (self.slot(*dst), self.sources([a, b], *ty)?, *op == MinMax::Min);
                match c {
                    None => map_float!(self, *ty, d, [a, b], F => move |[a, b]: Values<F, 2>| {
                        if min { compare::min::<F>(a, b, how) } else { compare::max::<F>(a, b, how) }
                    }),
                    Some(c) => {
                        let c = self.source(c, *ty)?;
                        map_float!(self, *ty, d, [a, b, c], F => move |[a, b, c]: Values<F, 3>| {
                            if min { compare::min3::<F>(a, b, c, how) } else { compare::max3::<F>(a, b, c, how) }
                        });
                    }
                }
            }
            FloatOp::Copysign { ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                map_float!(self, *ty, d, s, F => |[a, b]: Values<F, 2>| float::copysign::<F>(a, b));
            }
            FloatOp::Testp { op, ty, dst, a } => {
                let property = match op {
                    TestpOp::Finite => Property::Finite,
                    TestpOp::Infinite => Property::Infinite,
                    TestpOp::Number => Property::Number,
                    TestpOp::NotANumber => Property::NotANumber,
                    TestpOp::Normal => Property::Normal,
                    TestpOp::Subnormal => Property::Subnormal,
                };
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_float!(*ty, F => self.map([d], s, move |[a]| {
                    [float::testp::<F>(property, <F as Float>::Bits::truncate(a)).into()]
                }));
            }
        }
        Ok(())
    }

    fn fma(&mut self, ty: ScalarType, mode: Mode, d: Slot, operands: [&Operand; 3]) -> Result<(), Refusal> {
        let s = self.sources(operands, ty)?;
        map_float!(self, ty, d, s, F => move |[a, b, c]: Values<F, 3>| float::fma::<F>(a, b, c, mode));
        Ok(())
    }

    fn approximate(
        &mut self,
        op: ApproxOp,
        ty: ScalarType,
        ftz: bool,
        d: Slot,
        a: &Operand,
    ) -> Result<(), Refusal> {
        let s = self.sources([a], ty)?;
        match (op, ty) {
            (ApproxOp::Ex2, _) if ty != ScalarType::F64 => {
                map_float!(self, ty, d, s, F => move |[a]: Values<F, 1>| approx::ex2::<F>(a, ftz));
            }
            (ApproxOp::Tanh, _) if ty != ScalarType::F64 => {
                map_float!(self, ty, d, s, F => |[a]: Values<F, 1>| approx::tanh::<F>(a));
            }
            (ApproxOp::Rsqrt, ScalarType::F64) if ftz => {
                self.map_single::<F64, 1>(d, s, |[a]| approx::rsqrt_ftz_f64(a))
            }
            (ApproxOp::Rsqrt, ScalarType::F64) => self.map_single::<F64, 1>(d, s, |[a]| approx::rsqrt_f64(a)),
            (ApproxOp::Rsqrt, ScalarType::F32) => {
                self.map_single::<F32, 1>(d, s, move |[a]| approx::rsqrt_f32(a, ftz))
            }
            (ApproxOp::Sin, ScalarType::F32) => {
                self.map_single::<F32, 1>(d, s, move |[a]| approx::sin_f32(a, ftz))
            }
            (ApproxOp::Cos, ScalarType::F32) => {
                self.map_single::<F32, 1>(d, s, move |[a]| approx::cos_f32(a, ftz))
            }
            (ApproxOp::Lg2, ScalarType::F32) => {
                self.map_single::<F32, 1>(d, s, move |[a]| approx::lg2_f32(a, ftz))
            }
            _ => return Err(Refusal::because(format!("{op} on .{ty}"))),
        }
        Ok(())
    }
}
