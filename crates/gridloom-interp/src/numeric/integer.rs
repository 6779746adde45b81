//! Integer arithmetic. Results wrap unless the instruction says `.sat`.

/// An integer type of PTX: `u8` to `u64` and `i8` to `i64`, named `.u8` to `.s64` there.
pub trait Integer: Copy + Ord + std::fmt::Debug + 'static {
    /// The unsigned type of the same width.
    type Unsigned: Integer;
    /// Bits in the type.
    const BITS: u32;
    /// Whether the type is signed.
    const SIGNED: bool;
    /// Zero.
    const ZERO: Self;
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;

    /// Returns the value's bits, zero-extended.
    fn to_bits(self) -> u64;
    /// Returns the value whose bits are the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;
    /// Returns the value.
    fn to_i128(self) -> i128;
    /// Returns the value congruent to `value` modulo two to the width.
    fn wrap(value: i128) -> Self;
    /// Returns the value nearest to `value`.
    fn saturate(value: i128) -> Self;
    /// Returns the sum, wrapping.
    fn wrapping_add(self, other: Self) -> Self;
    /// Returns the difference, wrapping.
    fn wrapping_sub(self, other: Self) -> Self;
    /// Returns the low half of the product.
    fn wrapping_mul(self, other: Self) -> Self;
    /// Returns the high half of the product.
    fn high_mul(self, other: Self) -> Self;
    /// Returns the quotient, or none where the divisor is zero. The smallest value over −1 wraps.
    fn quotient(self, other: Self) -> Option<Self>;
    /// Returns the remainder, or none where the divisor is zero.
    fn remainder(self, other: Self) -> Option<Self>;
    /// Returns the same bits as the unsigned type.
    fn unsigned(self) -> Self::Unsigned;
}

/// An integer whose products `mul.wide` and `mad.wide` can hold in the next wider type.
pub trait Widening: Integer {
    /// The type of twice the width and the same signedness.
    type Wide: Integer;
}

macro_rules! integer {
    ($($int:ident $unsigned:ident $twice:ident $signed:literal),*) => {$(
        impl Integer for $int {
            type Unsigned = $unsigned;
            const BITS: u32 = $int::BITS;
            const SIGNED: bool = $signed;
            const ZERO: Self = 0;
            const MIN: Self = $int::MIN;
            const MAX: Self = $int::MAX;

            #[inline]
            fn to_bits(self) -> u64 { self as $unsigned as u64 }
            #[inline]
            fn from_bits(bits: u64) -> Self { bits as $int }
            #[inline]
            fn to_i128(self) -> i128 { self as i128 }
            #[inline]
            fn wrap(value: i128) -> Self { value as $int }
            #[inline]
            fn saturate(value: i128) -> Self { value.clamp($int::MIN as i128, $int::MAX as i128) as $int }
            #[inline]
            fn wrapping_add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline]
            fn wrapping_sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline]
            fn wrapping_mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline]
            fn high_mul(self, other: Self) -> Self {
                ((self as $twice * other as $twice) >> $int::BITS) as $int
            }
            #[inline]
            fn quotient(self, other: Self) -> Option<Self> {
                if other == 0 { None } else { Some(self.wrapping_div(other)) }
            }
            #[inline]
            fn remainder(self, other: Self) -> Option<Self> {
                if other == 0 { None } else { Some(self.wrapping_rem(other)) }
            }
            #[inline]
            fn unsigned(self) -> $unsigned { self as $unsigned }
        }
    )*};
}

integer! {
    u8 u8 u16 false, u16 u16 u32 false, u32 u32 u64 false, u64 u64 u128 false,
    i8 u8 i16 true, i16 u16 i32 true, i32 u32 i64 true, i64 u64 i128 true
}

impl Widening for u16 {
    type Wide = u32;
}
impl Widening for i16 {
    type Wide = i32;
}
impl Widening for u32 {
    type Wide = u64;
}
impl Widening for i32 {
    type Wide = i64;
}

/// Computes `add`.
#[inline]
pub fn add<T: Integer>(a: T, b: T) -> T {
    a.wrapping_add(b)
}

/// Computes `sub`.
#[inline]
pub fn sub<T: Integer>(a: T, b: T) -> T {
    a.wrapping_sub(b)
}

/// Computes `add.sat`: PTX has it for `.s32`.
#[inline]
pub fn add_sat<T: Integer>(a: T, b: T) -> T {
    T::saturate(a.to_i128() + b.to_i128())
}

/// Computes `sub.sat`: PTX has it for `.s32`.
#[inline]
pub fn sub_sat<T: Integer>(a: T, b: T) -> T {
    T::saturate(a.to_i128() - b.to_i128())
}

/// Computes `mul.lo`.
#[inline]
pub fn mul_lo<T: Integer>(a: T, b: T) -> T {
    a.wrapping_mul(b)
}

/// Computes `mul.hi`.
#[inline]
pub fn mul_hi<T: Integer>(a: T, b: T) -> T {
    a.high_mul(b)
}

/// Computes `mul.wide`.
#[inline]
pub fn mul_wide<T: Widening>(a: T, b: T) -> T::Wide {
    T::Wide::wrap(a.to_i128() * b.to_i128())
}

/// Computes `mad.lo`.
#[inline]
pub fn mad_lo<T: Integer>(a: T, b: T, c: T) -> T {
    a.wrapping_mul(b).wrapping_add(c)
}

/// Computes `mad.hi`.
#[inline]
pub fn mad_hi<T: Integer>(a: T, b: T, c: T) -> T {
    a.high_mul(b).wrapping_add(c)
}

/// Computes `mad.hi.sat.s32`: the high half of the product, plus `c`, saturated.
#[inline]
pub fn mad_hi_sat<T: Integer>(a: T, b: T, c: T) -> T {
    add_sat(a.high_mul(b), c)
}

/// Computes `mad.wide`: the sum wraps in the wide type.
#[inline]
pub fn mad_wide<T: Widening>(a: T, b: T, c: T::Wide) -> T::Wide {
    mul_wide(a, b).wrapping_add(c)
}

/// A type that `mul24` and `mad24` take: `u32` or `i32`.
pub trait Integer24: Integer {
    /// Returns the product of the low 24 bits of both operands, read in this type's signedness.
    fn product24(self, other: Self) -> i64;
}

impl Integer24 for u32 {
    #[inline]
    fn product24(self, other: Self) -> i64 {
        // At most 48 bits, so the sign of the result is never in question.
        i64::from(self & 0xff_ffff) * i64::from(other & 0xff_ffff)
    }
}

impl Integer24 for i32 {
    #[inline]
    fn product24(self, other: Self) -> i64 {
        i64::from(self << 8 >> 8) * i64::from(other << 8 >> 8)
    }
}

/// Computes `mul24.lo`: bits 0 to 31 of the 48-bit product.
#[inline]
pub fn mul24_lo<T: Integer24>(a: T, b: T) -> T {
    T::from_bits(a.product24(b) as u64)
}

/// Computes `mul24.hi`: bits 16 to 47 of the 48-bit product.
#[inline]
pub fn mul24_hi<T: Integer24>(a: T, b: T) -> T {
    T::from_bits((a.product24(b) >> 16) as u64)
}

/// Computes `mad24.lo`.
#[inline]
pub fn mad24_lo<T: Integer24>(a: T, b: T, c: T) -> T {
    mul24_lo(a, b).wrapping_add(c)
}

/// Computes `mad24.hi`.
#[inline]
pub fn mad24_hi<T: Integer24>(a: T, b: T, c: T) -> T {
    mul24_hi(a, b).wrapping_add(c)
}

/// Computes `mad24.hi.sat.s32`.
#[inline]
pub fn mad24_hi_sat<T: Integer24>(a: T, b: T, c: T) -> T {
    add_sat(mul24_hi(a, b), c)
}

/// Computes `sad`: `c` plus the absolute difference of `a` and `b`.
#[inline]
pub fn sad<T: Integer>(a: T, b: T, c: T) -> T {
    c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) })
}

/// Computes `div`, rounded towards zero. The smallest value divided by −1 wraps to itself.
///
/// PTX leaves division by zero to the machine. Here it gives all ones, as NVIDIA GPUs do (measured
/// on `sm_90`).
#[inline]
pub fn div<T: Integer>(a: T, b: T) -> T {
    a.quotient(b).unwrap_or(T::from_bits(u64::MAX))
}

/// Computes `rem`. The result has the sign of the dividend.
///
/// PTX leaves a zero divisor to the machine. Here it gives all ones, as NVIDIA GPUs do (measured on
/// `sm_90`).
#[inline]
pub fn rem<T: Integer>(a: T, b: T) -> T {
    a.remainder(b).unwrap_or(T::from_bits(u64::MAX))
}

/// Computes `abs`. The smallest value stays as it is.
#[inline]
pub fn abs<T: Integer>(a: T) -> T {
    if a < T::ZERO { neg(a) } else { a }
}

/// Computes `neg`. The smallest value stays as it is.
#[inline]
pub fn neg<T: Integer>(a: T) -> T {
    T::ZERO.wrapping_sub(a)
}

/// Computes `min`.
#[inline]
pub fn min<T: Integer>(a: T, b: T) -> T {
    a.min(b)
}

/// Computes `max`.
#[inline]
pub fn max<T: Integer>(a: T, b: T) -> T {
    a.max(b)
}

/// Computes `min.relu`: the smaller value, or zero if it is negative.
#[inline]
pub fn min_relu<T: Integer>(a: T, b: T) -> T {
    a.min(b).max(T::ZERO)
}

/// Computes `max.relu`: the larger value, or zero if it is negative.
#[inline]
pub fn max_relu<T: Integer>(a: T, b: T) -> T {
    a.max(b).max(T::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_by_zero_is_all_ones() {
        assert_eq!(div(7_u16, 0), 0xffff);
        assert_eq!(div(7_u32, 0), u32::MAX);
        assert_eq!(div(7_u64, 0), u64::MAX);
        assert_eq!(div(7_i16, 0), -1);
        assert_eq!(div(i32::MIN, 0), -1);
        assert_eq!(div(-7_i64, 0), -1);
    }

    #[test]
    fn remainder_by_zero_is_all_ones() {
        assert_eq!(rem(7_u16, 0), 0xffff);
        assert_eq!(rem(7_u32, 0), u32::MAX);
        assert_eq!(rem(-7_i32, 0), -1);
        assert_eq!(rem(7_u64, 0), u64::MAX);
        assert_eq!(rem(i64::MIN, 0), -1);
    }

    #[test]
    fn smallest_value_over_minus_one_wraps() {
        assert_eq!((div(i16::MIN, -1), rem(i16::MIN, -1)), (i16::MIN, 0));
        assert_eq!((div(i32::MIN, -1), rem(i32::MIN, -1)), (i32::MIN, 0));
        assert_eq!((div(i64::MIN, -1), rem(i64::MIN, -1)), (i64::MIN, 0));
    }

    #[test]
    fn quotient_truncates_and_remainder_takes_the_dividends_sign() {
        for (a, b, quotient, remainder) in
            [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (1, 3, 0, 1)]
        {
            assert_eq!((div(a, b), rem(a, b)), (quotient, remainder), "{a} / {b}");
        }
    }

    #[test]
    fn absolute_value_and_negation_of_the_smallest_value_are_itself() {
        assert_eq!((abs(i16::MIN), neg(i16::MIN)), (i16::MIN, i16::MIN));
        assert_eq!((abs(i32::MIN), neg(i32::MIN)), (i32::MIN, i32::MIN));
        assert_eq!((abs(i64::MIN), neg(i64::MIN)), (i64::MIN, i64::MIN));
    }

    #[test]
    fn saturating_addition_stops_at_both_ends() {
        assert_eq!(add_sat(i32::MAX, 1), i32::MAX);
        assert_eq!(add_sat(i32::MIN, -1), i32::MIN);
        assert_eq!(sub_sat(i32::MIN, 1), i32::MIN);
        assert_eq!(sub_sat(0, i32::MIN), i32::MAX);
        assert_eq!(add_sat(i32::MAX, i32::MIN), -1);
    }

    #[test]
    fn saturating_high_multiply_add_saturates_the_sum_only() {
        // The high half of −1 is −1 itself.
        assert_eq!(mad_hi_sat(-1, 1, i32::MIN), i32::MIN);
        assert_eq!(mad_hi_sat(i32::MAX, i32::MAX, i32::MAX), i32::MAX);
        assert_eq!(mad24_hi_sat(0x7f_ffff, 0x7f_ffff, i32::MAX), i32::MAX);
        assert_eq!(mad24_hi_sat(0x80_0000, 0x7f_ffff, i32::MIN), i32::MIN);
    }

    #[test]
    fn multiplication_of_24_bits_ignores_the_upper_byte() {
        assert_eq!(mul24_lo(0xff00_0003_u32, 0xab00_0005), 15);
        assert_eq!(mul24_lo(0x00ff_ffff_i32, 2), -2);
        assert_eq!(mul24_hi(0x00ff_ffff_u32, 0x00ff_ffff), 0xffff_fe00);
        assert_eq!(mul24_hi(0x0080_0000_i32, 0x007f_ffff), 0xc000_0080_u32 as i32);
    }

    #[test]
    fn sum_of_absolute_difference_wraps_the_difference() {
        assert_eq!(sad(3_u32, 10, 100), 107);
        assert_eq!(sad(10_u32, 3, 100), 107);
        assert_eq!(sad(i32::MIN, i32::MAX, 0), -1);
    }

    #[test]
    fn relu_forms_clamp_at_zero() {
        assert_eq!((min_relu(-5, 3), min_relu(4, 3), max_relu(-5, -3)), (0, 3, 0));
    }

    /// Returns the mathematical result, wrapped to the width in unsigned arithmetic of 256 bits cut
    /// to 128.
    fn wide<T: Integer>(a: T, b: T) -> i128 {
        a.to_i128().wrapping_mul(b.to_i128())
    }

    macro_rules! against_wide_arithmetic {
        ($($name:ident $int:ident)*) => {$(
            proptest! {
                #[test]
                fn $name(a: $int, b: $int, c: $int) {
                    prop_assert_eq!(add(a, b), $int::wrap(a.to_i128() + b.to_i128()));
                    prop_assert_eq!(sub(a, b), $int::wrap(a.to_i128() - b.to_i128()));
                    prop_assert_eq!(mul_lo(a, b), $int::wrap(wide(a, b)));
                    prop_assert_eq!(mul_hi(a, b), $int::wrap(wide(a, b) >> $int::BITS));
                    prop_assert_eq!(mad_lo(a, b, c), $int::wrap(wide(a, b).wrapping_add(c.to_i128())));
                    prop_assert_eq!(mad_hi(a, b, c), $int::wrap((wide(a, b) >> $int::BITS) + c.to_i128()));
                    prop_assert_eq!(sad(a, b, c), $int::wrap((a.to_i128() - b.to_i128()).abs() + c.to_i128()));
                    prop_assert_eq!(min(a, b).to_i128(), a.to_i128().min(b.to_i128()));
                    prop_assert_eq!(max(a, b).to_i128(), a.to_i128().max(b.to_i128()));
                    prop_assert_eq!($int::from_bits(a.to_bits()), a);
                }
            }
        )*};
    }

    against_wide_arithmetic! {
        u16_arithmetic_wraps u16
        s16_arithmetic_wraps i16
        u32_arithmetic_wraps u32
        s32_arithmetic_wraps i32
        u64_arithmetic_wraps u64
        s64_arithmetic_wraps i64
    }

    proptest! {
        #[test]
        fn wide_products_lose_nothing(a: i32, b: i32, c: i64) {
            prop_assert_eq!(mul_wide(a, b), i64::from(a) * i64::from(b));
            prop_assert_eq!(mad_wide(a, b, c), (i64::from(a) * i64::from(b)).wrapping_add(c));
            prop_assert_eq!(mul_wide(a as u32, b as u32), u64::from(a as u32) * u64::from(b as u32));
            prop_assert_eq!(mul_wide(a as u16, b as u16), u32::from(a as u16) * u32::from(b as u16));
        }
    }
}
