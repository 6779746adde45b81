//! Integer arithmetic, logic and bit fields: each instruction becomes the numeric function for its
//! type.

use super::Refusal;
use super::function::FunctionDecoder;
use crate::code::Meaning;
use crate::lanes::{Slot, Source};
use crate::numeric::bits::{self, CountMode};
use crate::numeric::integer::{self, Integer};
use crate::numeric::permute::{self, PermuteMode};
use crate::numeric::{carry, dot, packed};
use gridloom_ptx::op::{
    BfindMode, BitsOp, FunnelMode, Half, IntArith, IntOp, LogicOp, MaskMode, MulMode, PrmtMode,
    ShiftDirection,
};
use gridloom_ptx::{Operand, RegId, ScalarType};

/// Evaluates an expression with `$T` as the Rust type of a PTX integer type. Untyped bits are read
/// as unsigned.
macro_rules! with_integer {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            ScalarType::U8 | ScalarType::B8 => {
                type $T = u8;
                $body
            }
            ScalarType::S8 => {
                type $T = i8;
                $body
            }
            ScalarType::U16 | ScalarType::B16 => {
                type $T = u16;
                $body
            }
            ScalarType::S16 => {
                type $T = i16;
                $body
            }
            ScalarType::U32 | ScalarType::B32 => {
                type $T = u32;
                $body
            }
            ScalarType::S32 => {
                type $T = i32;
                $body
            }
            ScalarType::U64 | ScalarType::B64 => {
                type $T = u64;
                $body
            }
            ScalarType::S64 => {
                type $T = i64;
                $body
            }
            other => return Err(Refusal::because(format!("integer arithmetic on .{other}"))),
        }
    };
}
pub(super) use with_integer;

/// Does the same for types of 32 bits.
macro_rules! with_32_bits {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            ScalarType::S32 => {
                type $T = i32;
                $body
            }
            ScalarType::U32 | ScalarType::B32 => {
                type $T = u32;
                $body
            }
            other => return Err(Refusal::because(format!("this instruction on .{other}"))),
        }
    };
}

macro_rules! with_widening {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            ScalarType::U16 => {
                type $T = u16;
                $body
            }
            ScalarType::S16 => {
                type $T = i16;
                $body
            }
            ScalarType::U32 => {
                type $T = u32;
                $body
            }
            ScalarType::S32 => {
                type $T = i32;
                $body
            }
            other => return Err(Refusal::because(format!("a wide product of .{other}"))),
        }
    };
}

impl FunctionDecoder<'_, '_> {
    /// Appends a function of integers of one type.
    pub(super) fn map_integer<T: Integer, R: Integer, const N: usize>(
        &mut self,
        destination: Slot,
        sources: [Source; N],
        function: impl Fn([T; N]) -> R + Send + Sync + 'static,
    ) {
        self.map([destination], sources, move |values| [function(values.map(T::from_bits)).to_bits()]);
    }

    /// Appends a function of an integer whose other operands are 32-bit counts.
    fn map_counts<T: Integer, R: Integer, const N: usize>(
        &mut self,
        destination: Slot,
        sources: [Source; N],
        function: impl Fn(T, [u32; N]) -> R + Send + Sync + 'static,
    ) {
        self.map([destination], sources, move |values| {
            [function(T::from_bits(values[0]), values.map(|value| value as u32)).to_bits()]
        });
    }

    pub(super) fn integer(&mut self, op: &IntOp) -> Result<(), Refusal> {
        match op {
            IntOp::Arith {
                op, ty: ty @ (ScalarType::U16x2 | ScalarType::S16x2), relu, dst, a, b, ..
            } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                let signed = *ty == ScalarType::S16x2;
                let function: fn(u32, u32) -> u32 = match (op, signed, relu) {
                    (IntArith::Add, ..) => packed::add::<u16>,
                    (IntArith::Min, true, true) => packed::min_relu::<i16>,
                    (IntArith::Max, true, true) => packed::max_relu::<i16>,
                    (IntArith::Min, true, false) => packed::min::<i16>,
                    (IntArith::Max, true, false) => packed::max::<i16>,
                    (IntArith::Min, false, _) => packed::min::<u16>,
                    (IntArith::Max, false, _) => packed::max::<u16>,
                    _ => return Err(Refusal::because(format!("{op} on .{ty}"))),
                };
                self.map([d], s, move |[a, b]| [function(a as u32, b as u32).into()]);
            }
            IntOp::Arith { op, ty, sat, relu, dst, a, b } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                with_integer!(*ty, T => match (op, sat, relu) {
                    (IntArith::Add, false, _) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::add(a, b)),
                    (IntArith::Add, true, _) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::add_sat(a, b)),
                    (IntArith::Sub, false, _) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::sub(a, b)),
                    (IntArith::Sub, true, _) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::sub_sat(a, b)),
                    (IntArith::MulLo, ..) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::mul_lo(a, b)),
                    (IntArith::MulHi, ..) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::mul_hi(a, b)),
                    (IntArith::Div, ..) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::div(a, b)),
                    (IntArith::Rem, ..) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::rem(a, b)),
                    (IntArith::Min, _, false) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::min(a, b)),
                    (IntArith::Min, _, true) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::min_relu(a, b)),
                    (IntArith::Max, _, false) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::max(a, b)),
                    (IntArith::Max, _, true) => self.map_integer(d, s, |[a, b]: [T; 2]| integer::max_relu(a, b)),
                });
            }
            IntOp::MulWide { ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                with_widening!(*ty, T => self.map_integer(d, s, |[a, b]: [T; 2]| integer::mul_wide(a, b)));
            }
            IntOp::Mul24 { half, ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                with_32_bits!(*ty, T => match half {
                    Half::Lo => self.map_integer(d, s, |[a, b]: [T; 2]| integer::mul24_lo(a, b)),
                    Half::Hi => self.map_integer(d, s, |[a, b]: [T; 2]| integer::mul24_hi(a, b)),
                });
            }
            IntOp::Mad { mode: MulMode::Wide, ty, dst, a, b, c, .. } => {
                let [a, b] = self.sources([a, b], *ty)?;
                let wide = match ty.bits() {
                    16 => ScalarType::B32,
                    _ => ScalarType::B64,
                };
                let (d, s) = (self.slot(*dst), [a, b, self.source(c, wide)?]);
                with_widening!(*ty, T => self.map([d], s, |[a, b, c]| {
                    let c = <T as integer::Widening>::Wide::from_bits(c);
                    [integer::mad_wide(T::from_bits(a), T::from_bits(b), c).to_bits()]
                }));
            }
            IntOp::Mad { mode, ty, sat, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], *ty)?);
                with_integer!(*ty, T => match (mode, sat) {
                    (MulMode::Hi, true) => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad_hi_sat(a, b, c)),
                    (MulMode::Hi, false) => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad_hi(a, b, c)),
                    _ => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad_lo(a, b, c)),
                });
            }
            IntOp::Mad24 { half, ty, sat, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], *ty)?);
                with_32_bits!(*ty, T => match (half, sat) {
                    (Half::Lo, _) => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad24_lo(a, b, c)),
                    (Half::Hi, false) => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad24_hi(a, b, c)),
                    (Half::Hi, true) => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::mad24_hi_sat(a, b, c)),
                });
            }
            IntOp::Carry { subtract, carry_in, carry_out, ty, dst, a, b } => {
                let [a, b] = self.sources([a, b], *ty)?;
                let (d, s, subtract) = (
                    self.carry_out(*dst, *carry_out),
                    [a, b, self.carry_in(*carry_in, *subtract)],
                    *subtract,
                );
                with_integer!(*ty, T => self.map(d, s, move |[a, b, flag]| {
                    let (a, b, flag) = (T::from_bits(a), T::from_bits(b), flag != 0);
                    let (d, flag) = if subtract { carry::subc(a, b, flag) } else { carry::addc(a, b, flag) };
                    [d.to_bits(), flag.into()]
                }));
            }
            IntOp::MadCarry { half, carry_in, carry_out, ty, dst, a, b, c } => {
                let [a, b, c] = self.sources([a, b, c], *ty)?;
                let (d, s) = (self.carry_out(*dst, *carry_out), [a, b, c, self.carry_in(*carry_in, false)]);
                let high = *half == Half::Hi;
                with_integer!(*ty, T => self.map(d, s, move |[a, b, c, flag]| {
                    let (a, b, c, flag) = (T::from_bits(a), T::from_bits(b), T::from_bits(c), flag != 0);
                    let (d, flag) =
                        if high { carry::madc_hi(a, b, c, flag) } else { carry::madc_lo(a, b, c, flag) };
                    [d.to_bits(), flag.into()]
                }));
            }
            IntOp::Sad { ty, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a, b, c]: [T; 3]| integer::sad(a, b, c)));
            }
            IntOp::Abs { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| integer::abs(a)));
            }
            IntOp::Neg { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| integer::neg(a)));
            }
            IntOp::Dp4a { a_ty, b_ty, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], ScalarType::B32)?);
                let (x, y) = (a_ty.is_signed(), b_ty.is_signed());
                self.map_integer(d, s, move |[a, b, c]: [u32; 3]| dot::dp4a(a, b, c, x, y));
            }
            IntOp::Dp2a { half, a_ty, b_ty, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], ScalarType::B32)?);
                let (x, y, high) = (a_ty.is_signed(), b_ty.is_signed(), *half == Half::Hi);
                self.map_integer(d, s, move |[a, b, c]: [u32; 3]| dot::dp2a(a, b, c, x, y, high));
            }
        }
        Ok(())
    }

    /// Returns the incoming carry flag. A chain starts with a clear flag, or in subtractions with a
    /// set one, because there a clear flag means a borrow.
    fn carry_in(&mut self, used: bool, subtract: bool) -> Source {
        if used { Source::Slot(self.carry) } else { self.constant(subtract.into()) }
    }

    /// Returns the slots of sum and carry. If the carry is not wanted, the flag must not change.
    fn carry_out(&self, destination: RegId, wanted: bool) -> [Slot; 2] {
        [self.slot(destination), if wanted { self.carry } else { self.slot_or_sink(None) }]
    }

    pub(super) fn bits(&mut self, op: &BitsOp) -> Result<(), Refusal> {
        const COUNT: ScalarType = ScalarType::U32;
        match op {
            BitsOp::Logic { op, ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b], *ty)?);
                match op {
                    LogicOp::And => self.map([d], s, |[a, b]| [a & b]),
                    LogicOp::Or => self.map([d], s, |[a, b]| [a | b]),
                    LogicOp::Xor => self.map([d], s, |[a, b]| [a ^ b]),
                }
            }
            BitsOp::Not { ty, dst, a } => {
                let (d, s, ones) =
                    (self.slot(*dst), self.sources([a], *ty)?, u64::MAX >> (64 - ty.bits().min(64)));
                self.map([d], s, move |[a]| [!a & ones]);
            }
            BitsOp::Cnot { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| bits::cnot(a)));
            }
            BitsOp::Lop3 { dst, pred, a, b, c, lut } => {
                let (d, [a, b, c], lut) =
                    (self.slot_or_sink(*dst), self.sources([a, b, c], ScalarType::B32)?, *lut);
                match pred {
                    None => {
                        self.map_integer(d, [a, b, c], move |[a, b, c]: [u32; 3]| permute::lop3(a, b, c, lut))
                    }
                    Some(pred) => {
                        let (p, q, and) =
                            (self.slot(pred.dst), self.predicate(&pred.q), pred.op == LogicOp::And);
                        self.map([d, p], [a, b, c, q], move |[a, b, c, q]| {
                            let d = permute::lop3(a as u32, b as u32, c as u32, lut);
                            let set = u64::from(d != 0);
                            [d.into(), if and { set & q } else { set | q }]
                        });
                    }
                }
            }
            BitsOp::Shl { ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), [self.source(a, *ty)?, self.source(b, COUNT)?]);
                with_integer!(*ty, T => self.map_counts(d, s, |a: T, [_, count]| bits::shl(a, count)));
            }
            BitsOp::Shr { ty, dst, a, b } => {
                let (d, s) = (self.slot(*dst), [self.source(a, *ty)?, self.source(b, COUNT)?]);
                with_integer!(*ty, T => self.map_counts(d, s, |a: T, [_, count]| bits::shr(a, count)));
            }
            BitsOp::Shf { direction, mode, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], COUNT)?);
                let mode = match mode {
                    FunnelMode::Clamp => CountMode::Clamp,
                    FunnelMode::Wrap => CountMode::Wrap,
                };
                match direction {
                    ShiftDirection::Left => {
                        self.map_integer(d, s, move |[a, b, c]: [u32; 3]| bits::shf_l(a, b, c, mode));
                    }
                    ShiftDirection::Right => {
                        self.map_integer(d, s, move |[a, b, c]: [u32; 3]| bits::shf_r(a, b, c, mode));
                    }
                }
            }
            BitsOp::Bfe { ty, dst, a, b, c } => {
                let (d, [pos, len]) = (self.slot(*dst), self.sources([b, c], COUNT)?);
                let s = [self.source(a, *ty)?, pos, len];
                with_integer!(*ty, T => self.map_counts(d, s, |a: T, [_, pos, len]| bits::bfe(a, pos, len)));
            }
            BitsOp::Bfi { ty, dst, a, b, c, d } => {
                let (slot, [a, b], [pos, len]) =
                    (self.slot(*dst), self.sources([a, b], *ty)?, self.sources([c, d], COUNT)?);
                with_integer!(*ty, T => self.map([slot], [a, b, pos, len], |[a, b, pos, len]| {
                    [bits::bfi(T::from_bits(a), T::from_bits(b), pos as u32, len as u32).to_bits()]
                }));
            }
            BitsOp::Bfind { ty, mode, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => match mode {
                    BfindMode::Position => self.map_integer(d, s, |[a]: [T; 1]| bits::bfind(a)),
                    BfindMode::ShiftAmount => self.map_integer(d, s, |[a]: [T; 1]| bits::bfind_shiftamt(a)),
                });
            }
            BitsOp::Brev { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| bits::brev(a)));
            }
            BitsOp::Clz { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| bits::clz(a)));
            }
            BitsOp::Popc { ty, dst, a } => {
                let (d, s) = (self.slot(*dst), self.sources([a], *ty)?);
                with_integer!(*ty, T => self.map_integer(d, s, |[a]: [T; 1]| bits::popc(a)));
            }
            BitsOp::Fns { dst, mask, base, offset } => {
                let (d, s) = (self.slot(*dst), self.sources([mask, base, offset], COUNT)?);
                self.map_integer(d, s, |[mask, base, offset]: [u32; 3]| bits::fns(mask, base, offset as i32));
            }
            BitsOp::Prmt { mode, dst, a, b, c } => {
                let (d, s) = (self.slot(*dst), self.sources([a, b, c], ScalarType::B32)?);
                let mode = match mode {
                    PrmtMode::Generic => PermuteMode::Index,
                    PrmtMode::F4e => PermuteMode::Forward4,
                    PrmtMode::B4e => PermuteMode::Backward4,
                    PrmtMode::Rc8 => PermuteMode::Replicate8,
                    PrmtMode::Ecl => PermuteMode::EdgeClampLeft,
                    PrmtMode::Ecr => PermuteMode::EdgeClampRight,
                    PrmtMode::Rc16 => PermuteMode::Replicate16,
                };
                self.map_integer(d, s, move |[a, b, c]: [u32; 3]| permute::prmt(a, b, c, mode));
            }
            BitsOp::Szext { mode, ty, dst, a, b } => {
                let (d, s, mode) =
                    (self.slot(*dst), [self.source(a, *ty)?, self.source(b, COUNT)?], count_mode(*mode));
                with_32_bits!(*ty, T => self.map_counts(d, s, move |a: T, [_, len]| bits::szext(a, len, mode)));
            }
            BitsOp::Bmsk { mode, dst, a, b } => {
                let (d, s, mode) = (self.slot(*dst), self.sources([a, b], COUNT)?, count_mode(*mode));
                self.map_integer(d, s, move |[a, b]: [u32; 2]| bits::bmsk(a, b, mode));
            }
        }
        Ok(())
    }

    /// Decodes a copy of an operand.
    pub(super) fn copy(
        &mut self,
        destination: Slot,
        operand: &Operand,
        ty: ScalarType,
    ) -> Result<(), Refusal> {
        let source = self.source(operand, ty)?;
        self.map_as(Meaning::Copy, [destination], [source], |[a]| [a]);
        Ok(())
    }
}

fn count_mode(mode: MaskMode) -> CountMode {
    match mode {
        MaskMode::Clamp => CountMode::Clamp,
        MaskMode::Wrap => CountMode::Wrap,
    }
}
