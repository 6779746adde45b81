//! `cvt`: selects the conversion for a pair of types.

use super::Refusal;
use super::float::with_float;
use super::function::FunctionDecoder;
use super::integer::with_integer;
use crate::numeric::convert::{self, Finish, Narrow};
use crate::numeric::format::Word;
use crate::numeric::integer::Integer;
use crate::numeric::{self, Bf16, Clamp, F16, Float, Rounding, packed};
use gridloom_ptx::op::{Cvt, CvtRounding};
use gridloom_ptx::{Operand, ScalarType};

/// Returns the rounding direction, and whether the result is rounded to an integral value.
fn rounding(rounding: Option<CvtRounding>) -> Result<(Rounding, bool), Refusal> {
    Ok(match rounding {
        None | Some(CvtRounding::Rn) => (Rounding::NearestEven, false),
        Some(CvtRounding::Rna) => (Rounding::NearestAway, false),
        Some(CvtRounding::Rz) => (Rounding::Zero, false),
        Some(CvtRounding::Rm) => (Rounding::Down, false),
        Some(CvtRounding::Rp) => (Rounding::Up, false),
        Some(CvtRounding::Rni) => (Rounding::NearestEven, true),
        Some(CvtRounding::Rzi) => (Rounding::Zero, true),
        Some(CvtRounding::Rmi) => (Rounding::Down, true),
        Some(CvtRounding::Rpi) => (Rounding::Up, true),
        Some(CvtRounding::Rs) => return Err(Refusal::because("stochastic rounding")),
    })
}

fn narrow(ty: ScalarType) -> Option<Narrow> {
    match ty {
        ScalarType::E4m3x2 => Some(Narrow::E4M3),
        ScalarType::E5m2x2 => Some(Narrow::E5M2),
        ScalarType::E2m3x2 => Some(Narrow::E2M3),
        ScalarType::E3m2x2 => Some(Narrow::E3M2),
        ScalarType::E2m1x2 => Some(Narrow::E2M1),
        _ => None,
    }
}

/// Returns the bits of a float as a register value.
fn bits(word: impl Word) -> u64 {
    word.into()
}

/// Returns the bits of a signed result in a register wider than its type.
fn extend(bits: u64, from: u32, signed: bool, to: u32) -> u64 {
    if !signed || to <= from {
        return bits;
    }
    let unused = 64 - from;
    ((bits << unused) as i64 >> unused) as u64 & (u64::MAX >> (64 - to))
}

impl FunctionDecoder<'_, '_> {
    pub(super) fn cvt(&mut self, cvt: &Cvt) -> Result<(), Refusal> {
        if cvt.scaled {
            return Err(Refusal::because("a scaled conversion"));
        }
        let (rounding, integral) = rounding(cvt.rounding)?;
        let (from, to) = (cvt.src_ty, cvt.dst_ty);
        let d = self.slot(cvt.dst);
        let (sat, ftz, relu, satfinite) = (cvt.sat, cvt.ftz, cvt.relu, cvt.satfinite);
        let clamp = match (sat, relu) {
            (true, _) => Clamp::Saturate,
            (_, true) => Clamp::Relu,
            _ => Clamp::None,
        };
        let finish = Finish { rounding, ftz, clamp, satfinite };
        let unsupported = || Refusal::because(format!("a conversion from .{from} to .{to}"));
        let scalar = |ty: ScalarType| {
            ty.is_integer() && ty.packed().is_none()
                || matches!(ty, ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F64)
        };
        match &cvt.srcs[..] {
            [a] if scalar(from) && scalar(to) => {
                let s = [self.source(a, from)?];
                match (from.is_float(), to.is_float()) {
                    (false, false) => {
                        let width = self.type_of(cvt.dst).bits();
                        with_integer!(from, S => with_integer!(to, D => self.map([d], s, move |[a]| {
                            let result: D = convert::integer_to_integer(S::from_bits(a), sat);
                            [extend(result.to_bits(), D::BITS, D::SIGNED, width)]
                        })));
                    }
                    (false, true) => {
                        with_integer!(from, S => with_float!(to, D => self.map([d], s, move |[a]| {
                            [bits(convert::integer_to_float::<S, D>(S::from_bits(a), rounding, clamp))]
                        })));
                    }
                    (true, false) => {
                        let width = self.type_of(cvt.dst).bits();
                        with_float!(from, S => with_integer!(to, D => self.map([d], s, move |[a]| {
                            let a = <S as Float>::Bits::truncate(a);
                            let result: D = convert::float_to_integer::<S, D>(a, rounding, ftz);
                            [extend(result.to_bits(), D::BITS, D::SIGNED, width)]
                        })));
                    }
                    (true, true) if integral && from == to => {
                        with_float!(from, F => self.map_single::<F, 1>(d, s, move |[a]| {
                            convert::round_to_integral::<F>(a, rounding, ftz, clamp)
                        }));
                    }
                    (true, true) => {
                        with_float!(from, S => with_float!(to, D => self.map([d], s, move |[a]| {
                            let a = <S as Float>::Bits::truncate(a);
                            [bits(convert::float_to_float::<S, D>(a, finish))]
                        })));
                    }
                }
            }
            [a] if (from, to) == (ScalarType::F32, ScalarType::Tf32) => {
                let s = [self.source(a, from)?];
                self.map_integer(d, s, move |[a]: [u32; 1]| convert::to_tf32(a, rounding, relu, satfinite));
            }
            [a, b] if from == ScalarType::F32 => self.cvt_pair(cvt, [a, b], finish)?,
            [a] if from == ScalarType::F16x2 => {
                let to = narrow(to).ok_or_else(unsupported)?;
                let s = [self.source(a, from)?];
                self.map([d], s, move |[a]| [convert::narrow_packed_f16(to, a as u32, relu).into()]);
            }
            [a] if to == ScalarType::F16x2 => {
                let from = narrow(from).ok_or_else(unsupported)?;
                let s = [self.source(a, ScalarType::B16)?];
                self.map([d], s, move |[a]| [convert::widen_packed(from, a as u16, relu).into()]);
            }
            [a] if (from, to) == (ScalarType::Bf16x2, ScalarType::Ue8m0x2) => {
                let (s, up) = ([self.source(a, from)?], rounding == Rounding::Up);
                self.map([d], s, move |[a]| {
                    let (low, high) = packed::unpack(a as u32);
                    let half = |bits| u64::from(convert::bf16_to_ue8m0(bits, up, satfinite));
                    [half(low) | half(high) << 8]
                });
            }
            [a] if (from, to) == (ScalarType::Ue8m0x2, ScalarType::Bf16x2) => {
                let s = [self.source(a, ScalarType::B16)?];
                self.map([d], s, |[a]| {
                    [packed::pack(convert::ue8m0_to_bf16(a as u8), convert::ue8m0_to_bf16((a >> 8) as u8))
                        .into()]
                });
            }
            _ => return Err(unsupported()),
        }
        Ok(())
    }

    /// Decodes a conversion of two single values to a packed pair, the first in the upper half.
    fn cvt_pair(&mut self, cvt: &Cvt, operands: [&Operand; 2], finish: Finish) -> Result<(), Refusal> {
        let (d, s) = (self.slot(cvt.dst), self.sources(operands, ScalarType::F32)?);
        let (relu, satfinite, up) = (cvt.relu, cvt.satfinite, finish.rounding == Rounding::Up);
        match cvt.dst_ty {
            ScalarType::F16x2 => {
                self.map_integer(d, s, move |[a, b]: [u32; 2]| convert::pair_to_packed::<F16>(a, b, finish))
            }
            ScalarType::Bf16x2 => {
                self.map_integer(d, s, move |[a, b]: [u32; 2]| convert::pair_to_packed::<Bf16>(a, b, finish))
            }
            ScalarType::Ue8m0x2 => self.map([d], s, move |[a, b]| {
                let value = |bits: u64| u64::from(convert::f32_to_ue8m0(bits as u32, up, satfinite));
                [value(b) | value(a) << 8]
            }),
            to => {
                let Some(to) = narrow(to) else {
                    return Err(Refusal::because(format!("a conversion of two .f32 to .{to}")));
                };
                self.map([d], s, move |[a, b]| [convert::narrow_pair(to, a as u32, b as u32, relu).into()]);
            }
        }
        Ok(())
    }
}
