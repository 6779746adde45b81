//! Extended-precision arithmetic: chains of instructions that hand a carry bit on.
//!
//! Each function returns the result and the carry it leaves. An instruction without `.cc` keeps the previous carry: its
//! caller drops the second value.
//!
//! A subtraction is the addition of the complement, and leaves the carry of that: the bit is *clear* where a borrow is due.
//! Within a chain of subtractions nothing shows this; a chain that mixes both kinds sees what an NVIDIA GPU shows.

use super::integer::Integer;

#[inline]
fn split<T: Integer>(sum: u128) -> (T, bool) {
    (T::from_bits(sum as u64), (sum >> T::BITS) & 1 == 1)
}

/// `add.cc`.
#[inline]
pub fn add_cc<T: Integer>(a: T, b: T) -> (T, bool) {
    addc(a, b, false)
}

/// `addc` and `addc.cc`: `a + b + carry`.
#[inline]
pub fn addc<T: Integer>(a: T, b: T, carry: bool) -> (T, bool) {
    split(u128::from(a.to_bits()) + u128::from(b.to_bits()) + u128::from(carry))
}

/// `sub.cc`.
#[inline]
pub fn sub_cc<T: Integer>(a: T, b: T) -> (T, bool) {
    subc(a, b, true)
}

/// `subc` and `subc.cc`: `a − b`, and one less where the carry is clear.
#[inline]
pub fn subc<T: Integer>(a: T, b: T, carry: bool) -> (T, bool) {
    addc(a, T::from_bits(!b.to_bits()), carry)
}

/// `mad.lo.cc`: the low half of the product, plus `c`.
#[inline]
pub fn mad_lo_cc<T: Integer>(a: T, b: T, c: T) -> (T, bool) {
    addc(a.wrapping_mul(b), c, false)
}

/// `mad.hi.cc`: the high half of the product, plus `c`.
#[inline]
pub fn mad_hi_cc<T: Integer>(a: T, b: T, c: T) -> (T, bool) {
    addc(a.high_mul(b), c, false)
}

/// `madc.lo` and `madc.lo.cc`: the low half of the product, plus `c`, plus the carry.
#[inline]
pub fn madc_lo<T: Integer>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    addc(a.wrapping_mul(b), c, carry)
}

/// `madc.hi` and `madc.hi.cc`: the high half of the product, plus `c`, plus the carry.
#[inline]
pub fn madc_hi<T: Integer>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    addc(a.high_mul(b), c, carry)
}
