//! Recording of the methods of integers.

use crate::ir::{Operand, Ty};
use crate::record::arithmetic::{
    Int, Op, OpDiv, OpNeg, OpOrd, OpRem, bitwise, compare, least, normalize, overflowing, shift,
    shift_amount, wrapping,
};
use crate::record::convert::convert;
use crate::record::number::{Bounded, Euclid, Signed};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{Opt, Scalar, V};

/// `a` where `cond` holds, else `b`.
pub(crate) fn select(r: &mut Recorder, ty: Ty, cond: Operand, a: Operand, b: Operand) -> Operand {
    match (cond, ty) {
        (Operand::Imm(_, bits), _) => {
            if bits != 0 {
                a
            } else {
                b
            }
        }
        (cond, Ty::Bool) => {
            let first = bitwise(r, "and", Ty::Bool, cond, a);
            let not = r.compute("not", "pred", Ty::Bool, &[cond]);
            let second = bitwise(r, "and", Ty::Bool, not, b);
            bitwise(r, "or", Ty::Bool, first, second)
        }
        (cond, ty) => r.compute("selp", ty.bit_suffix(), ty, &[a, b, cond]),
    }
}

/// The unsigned integer of the same size.
pub trait Unsigned: Int {
    /// Which.
    type Unsigned: Int;
}

macro_rules! unsigned {
    ($($t:ty, $u:ty;)*) => {$(
        impl Unsigned for $t {
            type Unsigned = $u;
        }
    )*};
}
unsigned!(u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64; usize, usize; isize, usize;);

fn one<T: Int, U: Scalar>(a: V<T>, act: impl FnOnce(&mut Recorder, Ty, Operand) -> Operand) -> V<U> {
    with(|r| {
        let a = a.operand(r);
        V::of(act(r, T::TY, a))
    })
}

fn two<T: Int, U: Scalar>(
    a: V<T>,
    b: V<T>,
    act: impl FnOnce(&mut Recorder, Ty, Operand, Operand) -> Operand,
) -> V<U> {
    with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        V::of(act(r, T::TY, a, b))
    })
}

fn checked<T: Int>(op: Op, a: V<T>, b: V<T>) -> Opt<V<T>> {
    with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        let (value, lost) = overflowing(r, op, T::TY, a, b);
        let some = match lost {
            Operand::Imm(_, bits) => Operand::Imm(Ty::Bool, u64::from(bits == 0)),
            lost => r.compute("not", "pred", Ty::Bool, &[lost]),
        };
        Opt { __some: V::of(some), __value: V::of(value) }
    })
}

fn overflows<T: Int>(op: Op, a: V<T>, b: V<T>) -> (V<T>, V<bool>) {
    with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        let (value, lost) = overflowing(r, op, T::TY, a, b);
        (V::of(value), V::of(lost))
    })
}

/// Returns the greatest value.
pub(crate) fn most(ty: Ty) -> Operand {
    let bits = ty.bits() - u32::from(ty.is_signed());
    Operand::Imm(ty, if bits == 64 { u64::MAX } else { (1 << bits) - 1 })
}

fn saturating<T: Int>(op: Op, a: V<T>, b: V<T>) -> V<T> {
    two(a, b, |r, ty, a, b| {
        let (value, lost) = overflowing(r, op, ty, a, b);
        let bound = match (op, ty.is_signed()) {
            (Op::Sub, false) => Operand::Imm(ty, 0),
            (_, false) => most(ty),
            (Op::Mul, true) => {
                let bits = ty.bit_suffix();
                let sign = r.compute("xor", bits, ty, &[a, b]);
                let is_negative = compare(r, "setp.lt", ty, sign, Operand::Imm(ty, 0));
                select(r, ty, is_negative, least(ty), most(ty))
            }
            (_, true) => {
                let is_negative = compare(r, "setp.lt", ty, a, Operand::Imm(ty, 0));
                select(r, ty, is_negative, least(ty), most(ty))
            }
        };
        select(r, ty, lost, bound, value)
    })
}

fn count(r: &mut Recorder, op: &'static str, ty: Ty, a: Operand) -> Operand {
    // As unsigned: the copies of the sign above a narrow integer are not its bits.
    let a = match ty {
        Ty::I8 => normalize(r, Ty::U8, a),
        Ty::I16 => normalize(r, Ty::U16, a),
        _ => a,
    };
    r.compute(op, if ty.bits() == 64 { "b64" } else { "b32" }, Ty::U32, &[a])
}

fn leading_zeros(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    let all = count(r, "clz", ty, a);
    let above = match ty.bits() {
        64 => return all,
        bits => u64::from(32 - bits),
    };
    if above == 0 { all } else { r.compute("sub", "u32", Ty::U32, &[all, Operand::Imm(Ty::U32, above)]) }
}

fn reverse(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    let suffix = if ty.bits() == 64 { "b64" } else { "b32" };
    let all = r.compute("brev", suffix, ty, &[a]);
    match ty.bits() {
        64 | 32 => all,
        bits => {
            let by = Operand::Imm(Ty::U32, u64::from(32 - bits));
            let low = r.compute("shr", "u32", ty, &[all, by]);
            normalize(r, ty, low)
        }
    }
}

fn trailing_zeros(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    let reversed = reverse(r, ty, a);
    leading_zeros(r, ty, reversed)
}

/// Returns the same bits without a sign.
fn as_unsigned(ty: Ty) -> Ty {
    match ty {
        Ty::I8 => Ty::U8,
        Ty::I16 => Ty::U16,
        Ty::I32 => Ty::U32,
        Ty::I64 => Ty::U64,
        other => other,
    }
}

fn rotate(r: &mut Recorder, is_left: bool, ty: Ty, a: Operand, by: Operand) -> Operand {
    let plain = as_unsigned(ty);
    let a = convert(r, ty, plain, a);
    let by = shift_amount(r, ty, Ty::U32, by);
    let bits = Operand::Imm(Ty::U32, u64::from(ty.bits()));
    let back = wrapping(r, Op::Sub, Ty::U32, bits, by);
    let back = shift_amount(r, ty, Ty::U32, back);
    let one = shift(r, is_left, plain, a, by);
    let other = shift(r, !is_left, plain, a, back);
    let both = r.compute("or", plain.bit_suffix(), plain, &[one, other]);
    convert(r, plain, ty, both)
}

fn magnitude(r: &mut Recorder, ty: Ty, a: Operand) -> Operand {
    if !ty.is_signed() {
        return a;
    }
    let negated = r.compute("neg", ty.suffix(), ty, &[a]);
    let negated = normalize(r, ty, negated);
    let is_negative = compare(r, "setp.lt", ty, a, Operand::Imm(ty, 0));
    select(r, ty, is_negative, negated, a)
}

/// Fails where an integer is the least, whose magnitude is no integer of its type.
fn check_magnitude(r: &mut Recorder, ty: Ty, a: Operand, message: &str) {
    if r.is_overflow_checked() {
        let is_least = compare(r, "setp.eq", ty, a, least(ty));
        r.check(is_least, true, message);
    }
}

fn euclid(r: &mut Recorder, ty: Ty, a: Operand, b: Operand, is_remainder: bool) -> Operand {
    let (quotient, remainder) =
        (r.compute("div", ty.suffix(), ty, &[a, b]), r.compute("rem", ty.suffix(), ty, &[a, b]));
    if !ty.is_signed() {
        return if is_remainder { remainder } else { quotient };
    }
    let zero = Operand::Imm(ty, 0);
    let is_negative = compare(r, "setp.lt", ty, remainder, zero);
    let divisor_is_negative = compare(r, "setp.lt", ty, b, zero);
    let one = Operand::Imm(ty, 1);
    if is_remainder {
        let size = magnitude(r, ty, b);
        let moved = wrapping(r, Op::Add, ty, remainder, size);
        select(r, ty, is_negative, moved, remainder)
    } else {
        let (up, down) = (wrapping(r, Op::Add, ty, quotient, one), wrapping(r, Op::Sub, ty, quotient, one));
        let moved = select(r, ty, divisor_is_negative, up, down);
        select(r, ty, is_negative, moved, quotient)
    }
}

impl<T: Int + Unsigned + OpOrd> V<T> {
    /// Does what the method of the standard library does.
    pub fn wrapping_add(self, other: V<T>) -> V<T> {
        two(self, other, |r, ty, a, b| wrapping(r, Op::Add, ty, a, b))
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_sub(self, other: V<T>) -> V<T> {
        two(self, other, |r, ty, a, b| wrapping(r, Op::Sub, ty, a, b))
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_mul(self, other: V<T>) -> V<T> {
        two(self, other, |r, ty, a, b| wrapping(r, Op::Mul, ty, a, b))
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_neg(self) -> V<T> {
        one(self, |r, ty, a| wrapping(r, Op::Sub, ty, Operand::Imm(ty, 0), a))
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_shl(self, by: V<u32>) -> V<T> {
        with(|r| {
            let (a, by) = (self.operand(r), by.operand(r));
            let by = shift_amount(r, T::TY, Ty::U32, by);
            V::of(shift(r, true, T::TY, a, by))
        })
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_shr(self, by: V<u32>) -> V<T> {
        with(|r| {
            let (a, by) = (self.operand(r), by.operand(r));
            let by = shift_amount(r, T::TY, Ty::U32, by);
            V::of(shift(r, false, T::TY, a, by))
        })
    }
    /// Does what the method of the standard library does.
    pub fn checked_add(self, other: V<T>) -> Opt<V<T>> {
        checked(Op::Add, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn checked_sub(self, other: V<T>) -> Opt<V<T>> {
        checked(Op::Sub, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn checked_mul(self, other: V<T>) -> Opt<V<T>> {
        checked(Op::Mul, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn overflowing_add(self, other: V<T>) -> (V<T>, V<bool>) {
        overflows(Op::Add, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn overflowing_sub(self, other: V<T>) -> (V<T>, V<bool>) {
        overflows(Op::Sub, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn overflowing_mul(self, other: V<T>) -> (V<T>, V<bool>) {
        overflows(Op::Mul, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn saturating_add(self, other: V<T>) -> V<T> {
        saturating(Op::Add, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn saturating_sub(self, other: V<T>) -> V<T> {
        saturating(Op::Sub, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn saturating_mul(self, other: V<T>) -> V<T> {
        saturating(Op::Mul, self, other)
    }
    /// Does what the method of the standard library does.
    pub fn count_ones(self) -> V<u32> {
        one(self, |r, ty, a| count(r, "popc", ty, a))
    }
    /// Does what the method of the standard library does.
    pub fn count_zeros(self) -> V<u32> {
        one(self, |r, ty, a| {
            let ones = count(r, "popc", ty, a);
            r.compute("sub", "u32", Ty::U32, &[Operand::Imm(Ty::U32, ty.bits().into()), ones])
        })
    }
    /// Does what the method of the standard library does.
    pub fn leading_zeros(self) -> V<u32> {
        one(self, leading_zeros)
    }
    /// Does what the method of the standard library does.
    pub fn trailing_zeros(self) -> V<u32> {
        one(self, trailing_zeros)
    }
    /// Does what the method of the standard library does.
    pub fn reverse_bits(self) -> V<T> {
        one(self, reverse)
    }
    /// Does what the method of the standard library does.
    pub fn rotate_left(self, by: V<u32>) -> V<T> {
        with(|r| {
            let (a, by) = (self.operand(r), by.operand(r));
            V::of(rotate(r, true, T::TY, a, by))
        })
    }
    /// Does what the method of the standard library does.
    pub fn rotate_right(self, by: V<u32>) -> V<T> {
        with(|r| {
            let (a, by) = (self.operand(r), by.operand(r));
            V::of(rotate(r, false, T::TY, a, by))
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_power_of_two(self) -> V<bool> {
        one(self, |r, ty, a| {
            let ones = count(r, "popc", ty, a);
            compare(r, "setp.eq", Ty::U32, ones, Operand::Imm(Ty::U32, 1))
        })
    }
    /// Does what the method of the standard library does.
    pub fn abs_diff(self, other: V<T>) -> V<T::Unsigned> {
        two(self, other, |r, ty, a, b| {
            let is_less = compare(r, "setp.lt", ty, a, b);
            let up = wrapping(r, Op::Sub, ty, b, a);
            let down = wrapping(r, Op::Sub, ty, a, b);
            let difference = select(r, ty, is_less, up, down);
            convert(r, ty, as_unsigned(ty), difference)
        })
    }
    /// Does what the method of the standard library does.
    pub fn div_ceil(self, other: V<T>) -> V<T> {
        let quotient = T::div(self, other);
        two(self, other, |r, ty, a, b| {
            let rest = r.compute("rem", ty.suffix(), ty, &[a, b]);
            let is_whole = compare(r, "setp.eq", ty, rest, Operand::Imm(ty, 0));
            let quotient = quotient.operand(r);
            let up = wrapping(r, Op::Add, ty, quotient, Operand::Imm(ty, 1));
            select(r, ty, is_whole, quotient, up)
        })
    }
    /// Does what the method of Rust does: overflow fails where the program checks for it.
    pub fn pow(self, exponent: V<u32>) -> V<T> {
        use crate::record::arithmetic::{bit_and, eq, gt, ne, shr};
        use crate::record::control::{if_begin, if_end, leave_unless, loop_begin, loop_end, loop_step};
        use crate::record::value::{Var, assign, get, lit, var};
        let line = with(|r| r.line_now());
        let small = |value: u64| V::<T>::of(Operand::Imm(T::TY, value));
        let result = var(small(1));
        let base = var(self);
        let left: V<u32> = var(exponent);
        let around = loop_begin();
        leave_unless(around, ne(get(&left), lit(0)));
        let odd = if_begin(eq(bit_and(get(&left), lit(1u32), line), lit(1)));
        result.assign(crate::record::arithmetic::mul_of(get(&result), get(&base)));
        if_end(odd);
        assign(&left, shr(get(&left), lit(1u32), line));
        let more = if_begin(gt(get(&left), lit(0)));
        base.assign(crate::record::arithmetic::mul_of(get(&base), get(&base)));
        if_end(more);
        loop_step();
        loop_end(around);
        result
    }
}

impl<T: Int + Unsigned + OpNeg + OpOrd> V<T> {
    /// Does what the method of the standard library does.
    pub fn wrapping_abs(self) -> V<T> {
        one(self, magnitude)
    }
    /// Does what the method of the standard library does.
    pub fn unsigned_abs(self) -> V<T::Unsigned> {
        one(self, |r, ty, a| {
            let size = magnitude(r, ty, a);
            convert(r, ty, as_unsigned(ty), size)
        })
    }
    /// Does what the method of the standard library does.
    pub fn is_negative(self) -> V<bool> {
        one(self, |r, ty, a| compare(r, "setp.lt", ty, a, Operand::Imm(ty, 0)))
    }
    /// Does what the method of the standard library does.
    pub fn is_positive(self) -> V<bool> {
        one(self, |r, ty, a| compare(r, "setp.gt", ty, a, Operand::Imm(ty, 0)))
    }
}

macro_rules! bounded {
    ($($t:ty),*) => {$(
        impl Euclid for $t {
            fn div_euclid(a: V<Self>, b: V<Self>) -> V<Self> {
                // The checks of a division are those of this one.
                let _ = <Self as OpDiv>::div(a, b);
                two(a, b, |r, ty, a, b| euclid(r, ty, a, b, false))
            }
            fn rem_euclid(a: V<Self>, b: V<Self>) -> V<Self> {
                let _ = <Self as OpRem>::rem(a, b);
                two(a, b, |r, ty, a, b| euclid(r, ty, a, b, true))
            }
        }
        impl Bounded for $t {
            fn min(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| r.compute("min", ty.suffix(), ty, &[a, b]))
            }
            fn max(a: V<Self>, b: V<Self>) -> V<Self> {
                two(a, b, |r, ty, a, b| r.compute("max", ty.suffix(), ty, &[a, b]))
            }
            fn clamp(a: V<Self>, low: V<Self>, high: V<Self>) -> V<Self> {
                with(|r| {
                    let (low, high) = (low.operand(r), high.operand(r));
                    let is_ordered = compare(r, "setp.le", Self::TY, low, high);
                    r.check(is_ordered, false, "assertion failed: min <= max");
                });
                <Self as Bounded>::min(<Self as Bounded>::max(a, low), high)
            }
        }
    )*};
}
bounded!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Signed for $t {
            fn abs(a: V<Self>) -> V<Self> {
                one(a, |r, ty, a| {
                    check_magnitude(r, ty, a, "attempt to negate with overflow");
                    magnitude(r, ty, a)
                })
            }
            fn signum(a: V<Self>) -> V<Self> {
                one(a, |r, ty, a| {
                    let zero = Operand::Imm(ty, 0);
                    let is_positive = compare(r, "setp.gt", ty, a, zero);
                    let is_negative = compare(r, "setp.lt", ty, a, zero);
                    let below = select(r, ty, is_negative, Operand::Imm(ty, u64::MAX), zero);
                    select(r, ty, is_positive, Operand::Imm(ty, 1), below)
                })
            }
        }
    )*};
}
signed!(i8, i16, i32, i64, isize);
