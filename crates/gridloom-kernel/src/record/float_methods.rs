//! Recording of the methods of floating-point numbers.

use crate::ir::{Operand, Ty};
use crate::record::arithmetic::{
    OpAdd, OpDiv, OpMul, OpNeg, OpOrd, OpSub, compare, floating, rounded, widened,
};
use crate::record::integer_methods::select;
use crate::record::number::{Bounded, Signed};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{Scalar, V};

/// A floating-point type.
pub trait Float: Scalar + OpAdd + OpSub + OpMul + OpDiv + OpNeg + OpOrd {
    /// The integer with its bits.
    type Bits: Scalar;
}

impl Float for f32 {
    type Bits = u32;
}
impl Float for f64 {
    type Bits = u64;
}
impl Float for half::f16 {
    type Bits = u16;
}
impl Float for half::bf16 {
    type Bits = u16;
}

fn one<T: Float, U: Scalar>(a: V<T>, act: impl FnOnce(&mut Recorder, Ty, Operand) -> Operand) -> V<U> {
    with(|r| {
        let a = a.operand(r);
        V::of(act(r, T::TY, a))
    })
}

fn bits_ty(ty: Ty) -> Ty {
    if ty == Ty::F64 { Ty::U64 } else { Ty::U32 }
}

/// Returns the bits of a number of 32 or 64 bits.
fn bits(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    let to = bits_ty(ty);
    match a {
        Operand::Imm(_, bits) => Operand::Imm(to, bits),
        a => r.compute("mov", to.bit_suffix(), to, &[a]),
    }
}

fn of_bits(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    match a {
        Operand::Imm(_, bits) => Operand::Imm(ty, bits),
        a => r.compute("mov", bits_ty(ty).bit_suffix(), ty, &[a]),
    }
}

/// Returns the number of one with the sign of another.
fn copysign(r: &mut Recorder, ty: Ty, a: Operand, sign: Operand) -> Operand {
    let to = bits_ty(ty);
    let mask = 1u64 << (ty.bits() - 1);
    let suffix = to.bit_suffix();
    let (a, sign) = (bits(r, ty, a), bits(r, ty, sign));
    let size = r.compute("and", suffix, to, &[a, Operand::Imm(to, mask - 1)]);
    let sign = r.compute("and", suffix, to, &[sign, Operand::Imm(to, mask)]);
    let both = r.compute("or", suffix, to, &[size, sign]);
    of_bits(r, ty, both)
}

/// Returns a number of the type.
fn number(ty: Ty, value: f64) -> Operand {
    match ty {
        Ty::F64 => Operand::Imm(ty, value.to_bits()),
        _ => Operand::Imm(Ty::F32, (value as f32).to_bits().into()),
    }
}

/// Computes in the precision of the type, or in single precision for half.
fn in_single(
    r: &mut Recorder,
    ty: Ty,
    a: Operand,
    act: impl FnOnce(&mut Recorder, Ty, Operand) -> Operand,
) -> Operand {
    let wide = widened(r, ty, a);
    let result = act(r, if ty == Ty::F64 { ty } else { Ty::F32 }, wide);
    if ty.bits() == 16 { rounded(r, ty, result) } else { result }
}

fn to_whole(r: &mut Recorder, op: &'static str, ty: Ty, a: Operand) -> Operand {
    in_single(r, ty, a, |r, ty, a| {
        let suffix = if ty == Ty::F64 { "f64.f64" } else { "f32.f32" };
        r.compute(op, suffix, ty, &[a])
    })
}

impl<T: Float> V<T> {
    /// Does what the method of the standard library does.
    pub fn sqrt(self) -> V<T> {
        one(self, |r, ty, a| floating(r, "sqrt.rn", ty, &[a]))
    }
    /// Does what the method of the standard library does.
    pub fn floor(self) -> V<T> {
        one(self, |r, ty, a| to_whole(r, "cvt.rmi", ty, a))
    }
    /// Does what the method of the standard library does.
    pub fn ceil(self) -> V<T> {
        one(self, |r, ty, a| to_whole(r, "cvt.rpi", ty, a))
    }
    /// Does what the method of the standard library does.
    pub fn trunc(self) -> V<T> {
        one(self, |r, ty, a| to_whole(r, "cvt.rzi", ty, a))
    }
    /// Does what the method of the standard library does.
    pub fn round_ties_even(self) -> V<T> {
        one(self, |r, ty, a| to_whole(r, "cvt.rni", ty, a))
    }
    /// Does what the method of Rust does: halves away from zero.
    pub fn round(self) -> V<T> {
        one(self, |r, ty, a| {
            in_single(r, ty, a, |r, ty, a| {
                let whole = to_whole(r, "cvt.rzi", ty, a);
                let rest = r.compute("sub.rn", ty.suffix(), ty, &[a, whole]);
                let rest = r.compute("abs", ty.suffix(), ty, &[rest]);
                let is_half = compare(r, "setp.ge", ty, rest, number(ty, 0.5));
                let unit = copysign(r, ty, number(ty, 1.0), a);
                let away = r.compute("add.rn", ty.suffix(), ty, &[whole, unit]);
                let result = select(r, ty, is_half, away, whole);
                copysign(r, ty, result, a)
            })
        })
    }
    /// Does what the method of the standard library does.
    pub fn fract(self) -> V<T> {
        T::sub(self, self.trunc())
    }
    /// Does what the method of the standard library does.
    pub fn recip(self) -> V<T> {
        with(|r| {
            let a = self.operand(r);
            let unit = match T::TY {
                Ty::F16 => Operand::Imm(Ty::F16, half::f16::ONE.to_bits().into()),
                Ty::Bf16 => Operand::Imm(Ty::Bf16, half::bf16::ONE.to_bits().into()),
                ty => number(ty, 1.0),
            };
            V::of(floating(r, "div.rn", T::TY, &[unit, a]))
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_nan(self) -> V<bool> {
        one(self, |r, ty, a| {
            let a = widened(r, ty, a);
            r.compute("setp.nan", if ty == Ty::F64 { "f64" } else { "f32" }, Ty::Bool, &[a, a])
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_finite(self) -> V<bool> {
        one(self, |r, ty, a| {
            let a = widened(r, ty, a);
            let ty = if ty == Ty::F64 { ty } else { Ty::F32 };
            let size = r.compute("abs", ty.suffix(), ty, &[a]);
            compare(r, "setp.lt", ty, size, number(ty, f64::INFINITY))
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_infinite(self) -> V<bool> {
        one(self, |r, ty, a| {
            let a = widened(r, ty, a);
            let ty = if ty == Ty::F64 { ty } else { Ty::F32 };
            let size = r.compute("abs", ty.suffix(), ty, &[a]);
            compare(r, "setp.eq", ty, size, number(ty, f64::INFINITY))
        })
    }
}

/// A floating-point type whose bits have a register of their own.
pub trait WholeFloat: Float {}
impl WholeFloat for f32 {}
impl WholeFloat for f64 {}

impl<T: WholeFloat> V<T> {
    /// Does what the method of Rust does: rounded once.
    pub fn mul_add(self, by: V<T>, plus: V<T>) -> V<T> {
        with(|r| {
            let (a, b, c) = (self.operand(r), by.operand(r), plus.operand(r));
            V::of(r.compute("fma.rn", T::TY.suffix(), T::TY, &[a, b, c]))
        })
    }
    /// Does what the method of the standard library does.
    pub fn to_bits(self) -> V<T::Bits> {
        one(self, bits)
    }
    /// Does what the function of Rust does.
    pub fn from_bits(value: V<T::Bits>) -> V<T> {
        with(|r| {
            let value = value.operand(r);
            V::of(of_bits(r, T::TY, value))
        })
    }
    /// Does what the method of the standard library does.
    pub fn copysign(self, sign: V<T>) -> V<T> {
        with(|r| {
            let (a, sign) = (self.operand(r), sign.operand(r));
            V::of(copysign(r, T::TY, a, sign))
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_sign_negative(self) -> V<bool> {
        one(self, |r, ty, a| {
            let a = bits(r, ty, a);
            let to = bits_ty(ty);
            let sign = r.compute("and", to.bit_suffix(), to, &[a, Operand::Imm(to, 1 << (ty.bits() - 1))]);
            compare(r, "setp.ne", to, sign, Operand::Imm(to, 0))
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_sign_positive(self) -> V<bool> {
        super::arithmetic::not(self.is_sign_negative())
    }
}

macro_rules! half_conversions {
    ($($t:ty),*) => {$(
        impl V<$t> {
            /// Does what the function of the `half` crate does.
            pub fn to_bits(self) -> V<u16> {
                with(|r| {
                    let value = self.operand(r);
                    V::of(match value {
                        Operand::Imm(_, bits) => Operand::Imm(Ty::U16, bits),
                        value => r.compute("cvt", "u32.u16", Ty::U16, &[value]),
                    })
                })
            }
            /// Does what the function of that type does.
            pub fn from_bits(bits: V<u16>) -> V<$t> {
                with(|r| {
                    let ty = <$t as Scalar>::TY;
                    let value = bits.operand(r);
                    V::of(match value {
                        Operand::Imm(_, bits) => Operand::Imm(ty, bits),
                        value => r.compute("cvt", "u16.u32", ty, &[value]),
                    })
                })
            }
            /// Does what the function of that type does.
            pub fn from_f32(value: V<f32>) -> V<$t> {
                super::convert::cast(value)
            }
            /// Does what the method of the `half` crate does.
            pub fn to_f32(self) -> V<f32> {
                super::convert::cast(self)
            }
            /// Does what the method of the `half` crate does.
            pub fn to_f64(self) -> V<f64> {
                super::convert::cast(self)
            }
        }
    )*};
}
half_conversions!(half::f16, half::bf16);

/// `min` and `max` of half precision, which choose between zeros as the `half` crate does.
fn of_halves(r: &mut Recorder, order: &'static str, ty: Ty, a: Operand, b: Operand) -> Operand {
    let is_past = compare(r, order, ty, b, a);
    let is_number = compare(r, "setp.eq", ty, a, a);
    let kept = select(r, ty, is_past, b, a);
    select(r, ty, is_number, kept, b)
}

macro_rules! bounded {
    ($($t:ty),*) => {$(
        impl Bounded for $t {
            // Of a number and NaN, the number.
            fn min(a: V<Self>, b: V<Self>) -> V<Self> {
                with(|r| {
                    let (a, b) = (a.operand(r), b.operand(r));
                    if let Ty::F16 | Ty::Bf16 = Self::TY {
                        return V::of(of_halves(r, "setp.lt", Self::TY, a, b));
                    }
                    V::of(floating(r, "min", Self::TY, &[a, b]))
                })
            }
            fn max(a: V<Self>, b: V<Self>) -> V<Self> {
                with(|r| {
                    let (a, b) = (a.operand(r), b.operand(r));
                    if let Ty::F16 | Ty::Bf16 = Self::TY {
                        return V::of(of_halves(r, "setp.gt", Self::TY, a, b));
                    }
                    V::of(floating(r, "max", Self::TY, &[a, b]))
                })
            }
            fn clamp(a: V<Self>, low: V<Self>, high: V<Self>) -> V<Self> {
                with(|r| {
                    let ty = Self::TY;
                    let (x, low, high) = (a.operand(r), low.operand(r), high.operand(r));
                    let is_ordered = compare(r, "setp.le", ty, low, high);
                    r.check(is_ordered, false, "min > max, or either was NaN");
                    let is_below = compare(r, "setp.lt", ty, x, low);
                    let x = select(r, ty, is_below, low, x);
                    let is_above = compare(r, "setp.gt", ty, x, high);
                    V::of(select(r, ty, is_above, high, x))
                })
            }
        }
    )*};
}
bounded!(f32, f64, half::f16, half::bf16);

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Signed for $t {
            fn abs(a: V<Self>) -> V<Self> {
                one(a, |r, ty, a| r.compute("abs", ty.suffix(), ty, &[a]))
            }
            fn signum(a: V<Self>) -> V<Self> {
                one(a, |r, ty, a| {
                    let unit = copysign(r, ty, number(ty, 1.0), a);
                    let is_number = compare(r, "setp.eq", ty, a, a);
                    select(r, ty, is_number, unit, a)
                })
            }
        }
    )*};
}
signed!(f32, f64);
