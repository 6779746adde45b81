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

    /// The value's bits, zero-extended.
    fn to_bits(self) -> u64;
    /// The value whose bits are the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;
    /// The value.
    fn to_i128(self) -> i128;
    /// The value congruent to `value` modulo two to the width.
    fn wrap(value: i128) -> Self;
    /// The value nearest to `value`.
    fn saturate(value: i128) -> Self;
    /// The sum, wrapping.
    fn wrapping_add(self, other: Self) -> Self;
    /// The difference, wrapping.
    fn wrapping_sub(self, other: Self) -> Self;
    /// The low half of the product.
    fn wrapping_mul(self, other: Self) -> Self;
    /// The high half of the product.
    fn high_mul(self, other: Self) -> Self;
    /// The quotient, or none where the divisor is zero. The smallest value over −1 wraps.
    fn quotient(self, other: Self) -> Option<Self>;
    /// The remainder, or none where the divisor is zero.
    fn remainder(self, other: Self) -> Option<Self>;
    /// The same bits as the unsigned type.
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

/// `add`.
#[inline]
pub fn add<T: Integer>(a: T, b: T) -> T {
    a.wrapping_add(b)
}

/// `sub`.
#[inline]
pub fn sub<T: Integer>(a: T, b: T) -> T {
    a.wrapping_sub(b)
}

/// `add.sat`: PTX has it for `.s32`.
#[inline]
pub fn add_sat<T: Integer>(a: T, b: T) -> T {
    T::saturate(a.to_i128() + b.to_i128())
}

/// `sub.sat`: PTX has it for `.s32`.
#[inline]
pub fn sub_sat<T: Integer>(a: T, b: T) -> T {
    T::saturate(a.to_i128() - b.to_i128())
}

/// `mul.lo`.
#[inline]
pub fn mul_lo<T: Integer>(a: T, b: T) -> T {
    a.wrapping_mul(b)
}

/// `mul.hi`.
#[inline]
pub fn mul_hi<T: Integer>(a: T, b: T) -> T {
    a.high_mul(b)
}

/// `mul.wide`.
#[inline]
pub fn mul_wide<T: Widening>(a: T, b: T) -> T::Wide {
    T::Wide::wrap(a.to_i128() * b.to_i128())
}

/// `mad.lo`.
#[inline]
pub fn mad_lo<T: Integer>(a: T, b: T, c: T) -> T {
    a.wrapping_mul(b).wrapping_add(c)
}

/// `mad.hi`.
#[inline]
pub fn mad_hi<T: Integer>(a: T, b: T, c: T) -> T {
    a.high_mul(b).wrapping_add(c)
}

/// `mad.hi.sat.s32`: the high half of the product, plus `c`, saturated.
#[inline]
pub fn mad_hi_sat<T: Integer>(a: T, b: T, c: T) -> T {
    add_sat(a.high_mul(b), c)
}

/// `mad.wide`: the sum wraps in the wide type.
#[inline]
pub fn mad_wide<T: Widening>(a: T, b: T, c: T::Wide) -> T::Wide {
    mul_wide(a, b).wrapping_add(c)
}

/// A type that `mul24` and `mad24` take: `u32` or `i32`.
pub trait Integer24: Integer {
    /// The product of the low 24 bits of both operands, read in this type's signedness.
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

/// `mul24.lo`: bits 0 to 31 of the 48-bit product.
#[inline]
pub fn mul24_lo<T: Integer24>(a: T, b: T) -> T {
    T::from_bits(a.product24(b) as u64)
}

/// `mul24.hi`: bits 16 to 47 of the 48-bit product.
#[inline]
pub fn mul24_hi<T: Integer24>(a: T, b: T) -> T {
    T::from_bits((a.product24(b) >> 16) as u64)
}

/// `mad24.lo`.
#[inline]
pub fn mad24_lo<T: Integer24>(a: T, b: T, c: T) -> T {
    mul24_lo(a, b).wrapping_add(c)
}

/// `mad24.hi`.
#[inline]
pub fn mad24_hi<T: Integer24>(a: T, b: T, c: T) -> T {
    mul24_hi(a, b).wrapping_add(c)
}

/// `mad24.hi.sat.s32`.
#[inline]
pub fn mad24_hi_sat<T: Integer24>(a: T, b: T, c: T) -> T {
    add_sat(mul24_hi(a, b), c)
}

/// `sad`: `c` plus the absolute difference of `a` and `b`.
#[inline]
pub fn sad<T: Integer>(a: T, b: T, c: T) -> T {
    c.wrapping_add(if a < b { b.wrapping_sub(a) } else { a.wrapping_sub(b) })
}

/// `div`: towards zero. The smallest value over −1 wraps to itself.
///
/// PTX leaves division by zero to the machine. Here it gives all ones, as NVIDIA GPUs do (measured on `sm_90`).
#[inline]
pub fn div<T: Integer>(a: T, b: T) -> T {
    a.quotient(b).unwrap_or(T::from_bits(u64::MAX))
}

/// `rem`: with the sign of the dividend.
///
/// PTX leaves a zero divisor to the machine. Here it gives all ones, as NVIDIA GPUs do (measured on `sm_90`).
#[inline]
pub fn rem<T: Integer>(a: T, b: T) -> T {
    a.remainder(b).unwrap_or(T::from_bits(u64::MAX))
}

/// `abs`: of the smallest value, itself.
#[inline]
pub fn abs<T: Integer>(a: T) -> T {
    if a < T::ZERO { neg(a) } else { a }
}

/// `neg`: of the smallest value, itself.
#[inline]
pub fn neg<T: Integer>(a: T) -> T {
    T::ZERO.wrapping_sub(a)
}

/// `min`.
#[inline]
pub fn min<T: Integer>(a: T, b: T) -> T {
    a.min(b)
}

/// `max`.
#[inline]
pub fn max<T: Integer>(a: T, b: T) -> T {
    a.max(b)
}

/// `min.relu`: the smaller, and zero where that is negative.
#[inline]
pub fn min_relu<T: Integer>(a: T, b: T) -> T {
    a.min(b).max(T::ZERO)
}

/// `max.relu`: the larger, and zero where that is negative.
#[inline]
pub fn max_relu<T: Integer>(a: T, b: T) -> T {
    a.max(b).max(T::ZERO)
}
