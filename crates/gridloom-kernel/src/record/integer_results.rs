//! Recording of further methods of integers: division, powers, roots and logarithms, those that
//! report overflow as an `Option` or saturate, and those that count or reorder bits.

use crate::ir::{Operand, Ty};
use crate::record::arithmetic::{
    Int, Op, OpNeg, OpOrd, bit_and, compare, eq, least, lt, ne, not, overflowing,
};
use crate::record::control::{if_begin, if_end, leave_unless, loop_begin, loop_end, loop_step};
use crate::record::convert::cast;
use crate::record::elementary::select;
use crate::record::integer_methods::Unsigned;
use crate::record::recorder::with;
use crate::record::value::{Opt, Twin, V, Var, assign, get, lit, var};

fn number<T: Int>(value: u64) -> V<T> {
    V::of(Operand::Imm(T::TY, value))
}

/// Returns whether a division has a result, and a divisor with which it has one.
fn divisor<T: Int + OpOrd>(a: V<T>, b: V<T>, can_overflow: bool) -> (V<bool>, V<T>) {
    let mut fits = ne(b, number(0));
    if T::TY.is_signed() && can_overflow {
        let overflows = bit_and(eq(a, V::of(least(T::TY))), eq(b, number(u64::MAX)), 0);
        fits = bit_and(fits, not(overflows), 0);
    }
    (fits, select(fits, b, number(1)))
}

fn divide<T: Int>(op: &'static str, a: V<T>, b: V<T>) -> V<T> {
    with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        V::of(r.compute(op, T::TY.suffix(), T::TY, &[a, b]))
    })
}

/// Returns the power by repeated squaring, and whether it overflowed.
fn power<T: Int + OpOrd>(base: V<T>, exponent: V<u32>) -> (V<T>, V<bool>) {
    let product = |a: V<T>, b: V<T>| {
        with(|r| {
            let (a, b) = (a.operand(r), b.operand(r));
            let (value, lost) = overflowing(r, Op::Mul, T::TY, a, b);
            (V::<T>::of(value), V::<bool>::of(lost))
        })
    };
    let (result, factor, left) = (var(number::<T>(1)), var(base), var(exponent));
    let is_lost: V<bool> = var(lit(false));
    let around = loop_begin();
    leave_unless(around, ne(get(&left), lit(0)));
    let odd = if_begin(eq(bit_and(get(&left), lit(1u32), 0), lit(1)));
    let (value, lost) = product(get(&result), get(&factor));
    assign(&result, value);
    assign(&is_lost, crate::record::arithmetic::bit_or(get(&is_lost), lost, 0));
    if_end(odd);
    assign(&left, get(&left).wrapping_shr(lit(1)));
    let more = if_begin(ne(get(&left), lit(0)));
    let (value, lost) = product(get(&factor), get(&factor));
    assign(&factor, value);
    assign(&is_lost, crate::record::arithmetic::bit_or(get(&is_lost), lost, 0));
    if_end(more);
    loop_step();
    loop_end(around);
    (get(&result), get(&is_lost))
}

impl<T: Int + Unsigned + OpOrd> V<T> {
    /// Does what the method of the standard library does.
    pub fn checked_div(self, other: V<T>) -> Opt<V<T>> {
        let (fits, by) = divisor(self, other, true);
        Opt { __some: fits, __value: divide("div", self, by) }
    }
    /// Does what the method of the standard library does.
    pub fn checked_rem(self, other: V<T>) -> Opt<V<T>> {
        let (fits, by) = divisor(self, other, true);
        Opt { __some: fits, __value: divide("rem", self, by) }
    }
    /// Does what the method of the standard library does. A divisor of zero fails the launch.
    pub fn wrapping_div(self, other: V<T>) -> V<T> {
        require_divisor(other, "attempt to divide by zero");
        let (fits, by) = divisor(self, other, true);
        select(fits, divide("div", self, by), self)
    }
    /// Does what the method of the standard library does. A divisor of zero fails the launch.
    pub fn wrapping_rem(self, other: V<T>) -> V<T> {
        require_divisor(other, "attempt to calculate the remainder with a divisor of zero");
        let (fits, by) = divisor(self, other, true);
        select(fits, divide("rem", self, by), number(0))
    }
    /// Does what the method of the standard library does.
    pub fn checked_neg(self) -> Opt<V<T>> {
        let (value, lost) = self.overflowing_neg();
        Opt { __some: not(lost), __value: value }
    }
    /// Does what the method of the standard library does.
    pub fn overflowing_neg(self) -> (V<T>, V<bool>) {
        with(|r| {
            let a = self.operand(r);
            let (value, lost) = overflowing(r, Op::Sub, T::TY, Operand::Imm(T::TY, 0), a);
            (V::of(value), V::of(lost))
        })
    }
    /// Does what the method of the standard library does.
    pub fn checked_shl(self, by: V<u32>) -> Opt<V<T>> {
        Opt { __some: lt(by, lit(T::TY.bits())), __value: self.wrapping_shl(by) }
    }
    /// Does what the method of the standard library does.
    pub fn checked_shr(self, by: V<u32>) -> Opt<V<T>> {
        Opt { __some: lt(by, lit(T::TY.bits())), __value: self.wrapping_shr(by) }
    }
    /// Does what the method of the standard library does.
    pub fn checked_pow(self, exponent: V<u32>) -> Opt<V<T>> {
        let (value, lost) = power(self, exponent);
        Opt { __some: not(lost), __value: value }
    }
    /// Does what the method of the standard library does.
    pub fn wrapping_pow(self, exponent: V<u32>) -> V<T> {
        power(self, exponent).0
    }
    /// Does what the method of the standard library does.
    pub fn saturating_pow(self, exponent: V<u32>) -> V<T> {
        let (value, lost) = power(self, exponent);
        let most = crate::record::integer_methods::most(T::TY);
        let mut bound = V::of(most);
        if T::TY.is_signed() {
            let is_odd = eq(bit_and(exponent, lit(1u32), 0), lit(1));
            let is_negative = bit_and(lt(self, number(0)), is_odd, 0);
            bound = select(is_negative, V::of(least(T::TY)), bound);
        }
        select(lost, bound, value)
    }
    /// Does what the method of the standard library does.
    pub fn leading_ones(self) -> V<u32> {
        complement(self).leading_zeros()
    }
    /// Does what the method of the standard library does.
    pub fn trailing_ones(self) -> V<u32> {
        complement(self).trailing_zeros()
    }
    /// Does what the method of the standard library does.
    pub fn swap_bytes(self) -> V<T> {
        let bytes = u64::from(T::TY.bits() / 8);
        (0..bytes).fold(number(0), |sum: V<T>, index| {
            let byte = bit_of::<T>("and", self.logical_shr(8 * index), number(0xff));
            bit_of("or", sum, byte.wrapping_shl(lit(8 * (bytes - 1 - index) as u32)))
        })
    }
    /// Shifts zeros in from the left.
    fn logical_shr(self, by: u64) -> V<T> {
        with(|r| {
            let a = self.operand(r);
            let suffix = if T::TY.bits() == 64 { "u64" } else { "u32" };
            V::of(r.compute("shr", suffix, T::TY, &[a, Operand::Imm(Ty::U32, by)]))
        })
    }
    /// Does what the method of the standard library does. Fails the launch where the number is not
    /// positive.
    pub fn ilog2(self) -> V<u32> {
        let line = with(|r| r.line_now());
        crate::record::control::require(
            lt(number(0), self),
            "argument of integer logarithm must be positive",
            line,
        );
        lit(T::TY.bits() - 1).wrapping_sub(self.leading_zeros())
    }
    /// Does what the method of the standard library does.
    pub fn checked_ilog2(self) -> Opt<V<u32>> {
        Opt { __some: lt(number(0), self), __value: lit(T::TY.bits() - 1).wrapping_sub(self.leading_zeros()) }
    }
    /// Does what the method of Rust does, for integers without a sign. Overflow fails where the
    /// program checks for it.
    pub fn next_multiple_of(self, of: V<T>) -> V<T> {
        let rest = T::rem(self, of);
        let up = select(eq(rest, number(0)), number(0), of.wrapping_sub(rest));
        T::add(self, up)
    }
    /// Does what the method of Rust does, for integers without a sign. Overflow fails where the
    /// program checks for it.
    pub fn next_power_of_two(self) -> V<T> {
        let below = select(lt(self, number(1)), number(0), self.wrapping_sub(number(1)));
        let zeros = below.leading_zeros();
        // All bits below the highest one, and then one more.
        let ones = number::<T>(0).wrapping_sub(number(1)).wrapping_shr(zeros);
        let ones = select(eq(zeros, lit(T::TY.bits())), number(0), ones);
        T::add(ones, number(1))
    }
    /// Does what the method of Rust does, for integers without a sign.
    pub fn checked_next_power_of_two(self) -> Opt<V<T>> {
        let below = select(lt(self, number(1)), number(0), self.wrapping_sub(number(1)));
        let zeros = below.leading_zeros();
        let ones = number::<T>(0).wrapping_sub(number(1)).wrapping_shr(zeros);
        let ones = select(eq(zeros, lit(T::TY.bits())), number(0), ones);
        let power = ones.wrapping_add(number(1));
        Opt { __some: ne(power, number(0)), __value: power }
    }
    /// Does what the method of the standard library does. Fails the launch where the number is not
    /// positive.
    pub fn ilog10(self) -> V<u32> {
        let line = with(|r| r.line_now());
        let message = "argument of integer logarithm must be positive";
        crate::record::control::require(lt(number(0), self), message, line);
        let (left, count) = (var(self), var(lit(0u32)));
        let around = loop_begin();
        leave_unless(around, not(lt(get(&left), number(10))));
        left.assign(divide("div", get(&left), number(10)));
        loop_step();
        count.assign(get(&count).wrapping_add(lit(1)));
        loop_end(around);
        get(&count)
    }
    /// Does what the method of Rust does, for integers without a sign.
    pub fn is_multiple_of(self, of: V<T>) -> V<bool> {
        let (fits, by) = divisor(self, of, false);
        let rest = select(fits, divide("rem", self, by), self);
        eq(rest, number(0))
    }
    /// Does what the method of Rust does: the greatest integer whose square is not greater.
    pub fn isqrt(self) -> V<T> {
        // One bit of the root after the other.
        let (rest, root) = (var(self), var(number::<T>(0)));
        let bits = T::TY.bits() - u32::from(T::TY.is_signed());
        let bit = var(number::<T>(1 << ((bits - 1) & !1)));
        if T::TY.is_signed() {
            let line = with(|r| r.line_now());
            let message = "argument of integer square root cannot be negative";
            crate::record::control::require(not(lt(self, number(0))), message, line);
        }
        let around = loop_begin();
        leave_unless(around, ne(get(&bit), number(0)));
        let trial = get(&root).wrapping_add(get(&bit));
        let fits = not(lt(get(&rest), trial));
        let half = get(&root).wrapping_shr(lit(1));
        let (less, more) = (get(&rest).wrapping_sub(trial), half.wrapping_add(get(&bit)));
        let (next, taken) = (select(fits, less, get(&rest)), select(fits, more, half));
        rest.assign(next);
        root.assign(taken);
        bit.assign(get(&bit).wrapping_shr(lit(2)));
        loop_step();
        loop_end(around);
        root.get()
    }
}

fn complement<T: Int>(a: V<T>) -> V<T> {
    bit_of("xor", a, number(u64::MAX))
}

fn bit_of<T: Int>(op: &'static str, a: V<T>, b: V<T>) -> V<T> {
    with(|r| {
        let ty = T::TY;
        let (a, b) = (a.operand(r), b.operand(r));
        let b = match b {
            Operand::Imm(_, bits) => Operand::Imm(ty, crate::record::arithmetic::narrow_bits(ty, bits)),
            b => b,
        };
        V::of(crate::record::arithmetic::bitwise(r, op, ty, a, b))
    })
}

fn require_divisor<T: Int>(b: V<T>, message: &str) {
    with(|r| {
        let b = b.operand(r);
        let is_zero = compare(r, "setp.eq", T::TY, b, Operand::Imm(T::TY, 0));
        r.check(is_zero, true, message);
    });
}

impl<T: Int + Unsigned + OpNeg + OpOrd> V<T> {
    /// Does what the method of the standard library does.
    pub fn checked_abs(self) -> Opt<V<T>> {
        Opt { __some: ne(self, V::of(least(T::TY))), __value: self.wrapping_abs() }
    }
    /// Does what the method of the standard library does.
    pub fn saturating_neg(self) -> V<T> {
        let (value, lost) = self.overflowing_neg();
        select(lost, V::of(crate::record::integer_methods::most(T::TY)), value)
    }
    /// Does what the method of the standard library does.
    pub fn saturating_abs(self) -> V<T> {
        let most = V::of(crate::record::integer_methods::most(T::TY));
        select(eq(self, V::of(least(T::TY))), most, self.wrapping_abs())
    }
}

/// Sums of integers with and without a sign.
macro_rules! with_sign {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        impl V<$unsigned> {
            /// Does what the method of the standard library does.
            pub fn wrapping_add_signed(self, other: V<$signed>) -> Self {
                self.wrapping_add(cast(other))
            }
            /// Does what the method of the standard library does.
            pub fn checked_add_signed(self, other: V<$signed>) -> Opt<Self> {
                let sum = self.wrapping_add_signed(other);
                Opt { __some: eq(lt(sum, self), lt(other, lit(0))), __value: sum }
            }
            /// Does what the method of the standard library does.
            pub fn saturating_add_signed(self, other: V<$signed>) -> Self {
                let sum = self.checked_add_signed(other);
                select(sum.__some, sum.__value, select(lt(other, lit(0)), lit(0), lit(<$unsigned>::MAX)))
            }
        }
        impl V<$signed> {
            /// Does what the method of the standard library does.
            pub fn wrapping_add_unsigned(self, other: V<$unsigned>) -> Self {
                self.wrapping_add(cast(other))
            }
            /// Does what the method of the standard library does.
            pub fn wrapping_sub_unsigned(self, other: V<$unsigned>) -> Self {
                self.wrapping_sub(cast(other))
            }
            /// Does what the method of the standard library does.
            pub fn checked_add_unsigned(self, other: V<$unsigned>) -> Opt<Self> {
                let sum = self.wrapping_add_unsigned(other);
                Opt { __some: not(lt(sum, self)), __value: sum }
            }
            /// Does what the method of the standard library does.
            pub fn checked_sub_unsigned(self, other: V<$unsigned>) -> Opt<Self> {
                let difference = self.wrapping_sub_unsigned(other);
                Opt { __some: not(lt(self, difference)), __value: difference }
            }
            /// Does what the method of the standard library does.
            pub fn saturating_add_unsigned(self, other: V<$unsigned>) -> Self {
                let sum = self.checked_add_unsigned(other);
                select(sum.__some, sum.__value, lit(<$signed>::MAX))
            }
            /// Does what the method of the standard library does.
            pub fn saturating_sub_unsigned(self, other: V<$unsigned>) -> Self {
                let difference = self.checked_sub_unsigned(other);
                select(difference.__some, difference.__value, lit(<$signed>::MIN))
            }
        }
    )*};
}
with_sign!(u8, i8; u16, i16; u32, i32; u64, i64; usize, isize;);
