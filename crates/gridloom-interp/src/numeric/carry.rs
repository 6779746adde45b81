//! Extended-precision arithmetic: chains of instructions that hand a carry bit on.
//!
//! Each function returns the result and the carry it leaves. An instruction without `.cc` keeps the
//! previous carry: its caller drops the second value.
//!
//! A subtraction is the addition of the complement, and leaves the carry of that: the bit is
//! *clear* where a borrow is due. Within a chain of subtractions nothing shows this; a chain that
//! mixes both kinds sees what an NVIDIA GPU shows.

use super::integer::Integer;

#[inline]
fn split<T: Integer>(sum: u128) -> (T, bool) {
    (T::from_bits(sum as u64), (sum >> T::BITS) & 1 == 1)
}

/// Computes `add.cc`.
#[inline]
pub fn add_cc<T: Integer>(a: T, b: T) -> (T, bool) {
    addc(a, b, false)
}

/// Computes `addc` and `addc.cc`: `a + b + carry`.
#[inline]
pub fn addc<T: Integer>(a: T, b: T, carry: bool) -> (T, bool) {
    split(u128::from(a.to_bits()) + u128::from(b.to_bits()) + u128::from(carry))
}

/// Computes `sub.cc`.
#[inline]
pub fn sub_cc<T: Integer>(a: T, b: T) -> (T, bool) {
    subc(a, b, true)
}

/// Computes `subc` and `subc.cc`: `a − b`, and one less where the carry is clear.
#[inline]
pub fn subc<T: Integer>(a: T, b: T, carry: bool) -> (T, bool) {
    addc(a, T::from_bits(!b.to_bits()), carry)
}

/// Computes `mad.lo.cc`: the low half of the product, plus `c`.
#[inline]
pub fn mad_lo_cc<T: Integer>(a: T, b: T, c: T) -> (T, bool) {
    addc(a.wrapping_mul(b), c, false)
}

/// Computes `mad.hi.cc`: the high half of the product, plus `c`.
#[inline]
pub fn mad_hi_cc<T: Integer>(a: T, b: T, c: T) -> (T, bool) {
    addc(a.high_mul(b), c, false)
}

/// Computes `madc.lo` and `madc.lo.cc`: the low half of the product, plus `c`, plus the carry.
#[inline]
pub fn madc_lo<T: Integer>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    addc(a.wrapping_mul(b), c, carry)
}

/// Computes `madc.hi` and `madc.hi.cc`: the high half of the product, plus `c`, plus the carry.
#[inline]
pub fn madc_hi<T: Integer>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    addc(a.high_mul(b), c, carry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limbs(value: u128) -> [u32; 4] {
        [0, 1, 2, 3].map(|limb| (value >> (32 * limb)) as u32)
    }

    fn join(limbs: [u32; 4]) -> u128 {
        limbs.iter().rev().fold(0, |value, &limb| value << 32 | u128::from(limb))
    }

    #[test]
    fn carry_out_is_set_exactly_on_overflow() {
        assert_eq!(add_cc(u32::MAX, 1), (0, true));
        assert_eq!(add_cc(u32::MAX, 0), (u32::MAX, false));
        assert_eq!(addc(u32::MAX, 0, true), (0, true));
        assert_eq!(addc(u64::MAX, u64::MAX, true), (u64::MAX, true));
    }

    #[test]
    fn carry_is_clear_where_a_subtraction_borrows() {
        assert_eq!(sub_cc(0_u32, 1), (u32::MAX, false));
        assert_eq!(sub_cc(1_u32, 1), (0, true));
        assert_eq!(subc(1_u32, 1, false), (u32::MAX, false));
        assert_eq!(subc(0_u64, u64::MAX, false), (0, false));
    }

    #[test]
    fn signed_operands_carry_like_their_bits() {
        assert_eq!(add_cc(-1_i32, 1), (0, true));
        assert_eq!(add_cc(i32::MAX, 1), (i32::MIN, false));
    }

    proptest! {
        #[test]
        fn chain_of_four_words_adds_128_bits(a: u128, b: u128) {
            let (x, y) = (limbs(a), limbs(b));
            let (r0, carry) = add_cc(x[0], y[0]);
            let (r1, carry) = addc(x[1], y[1], carry);
            let (r2, carry) = addc(x[2], y[2], carry);
            let (r3, _) = addc(x[3], y[3], carry);
            prop_assert_eq!(join([r0, r1, r2, r3]), a.wrapping_add(b));
        }

        #[test]
        fn chain_of_four_words_subtracts_128_bits(a: u128, b: u128) {
            let (x, y) = (limbs(a), limbs(b));
            let (r0, carry) = sub_cc(x[0], y[0]);
            let (r1, carry) = subc(x[1], y[1], carry);
            let (r2, carry) = subc(x[2], y[2], carry);
            let (r3, _) = subc(x[3], y[3], carry);
            prop_assert_eq!(join([r0, r1, r2, r3]), a.wrapping_sub(b));
        }

        #[test]
        fn multiply_chain_builds_a_128_bit_product(a: u64, b: u64) {
            // The schoolbook product as compilers emit it.
            let (a0, a1, b0, b1) = (a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32);
            let r0 = a0.wrapping_mul(b0);
            let r1 = a0.high_mul(b0);
            let (r1, carry) = mad_lo_cc(a1, b0, r1);
            let (r2, _) = madc_hi(a1, b0, 0, carry);
            let (r1, carry) = mad_lo_cc(a0, b1, r1);
            let (r2, carry) = madc_hi(a0, b1, r2, carry);
            let (r3, _) = addc(0, 0, carry);
            let (r2, carry) = mad_lo_cc(a1, b1, r2);
            let (r3, _) = madc_hi(a1, b1, r3, carry);
            prop_assert_eq!(join([r0, r1, r2, r3]), u128::from(a) * u128::from(b));
        }

        #[test]
        fn high_multiply_add_carries_out(a: u64, b: u64, c: u64, carry: bool) {
            let sum = ((u128::from(a) * u128::from(b)) >> 64) + u128::from(c);
            prop_assert_eq!(mad_hi_cc(a, b, c), (sum as u64, sum >> 64 != 0));
            let sum = u128::from(a.wrapping_mul(b)) + u128::from(c) + u128::from(carry);
            prop_assert_eq!(madc_lo(a, b, c, carry), (sum as u64, sum >> 64 != 0));
        }
    }
}
