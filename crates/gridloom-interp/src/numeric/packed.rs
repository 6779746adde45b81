//! Two values in one register: the `x2` forms.
//!
//! Lane 0 is the low half. Any scalar function becomes its `x2` form through [`map`], [`zip`] or
//! [`zip3`]: `packed::zip(a, b, |a, b| float::add::<F16>(a, b, mode))` is `add.f16x2`.

use super::integer::{self, Integer};

/// Returns the two halves, low first.
#[inline]
pub fn unpack(word: u32) -> (u16, u16) {
    (word as u16, (word >> 16) as u16)
}

/// Makes a register from its two halves, low first.
#[inline]
pub fn pack(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// Applies a unary instruction on each half.
#[inline]
pub fn map(a: u32, f: impl Fn(u16) -> u16) -> u32 {
    let (low, high) = unpack(a);
    pack(f(low), f(high))
}

/// Applies a binary instruction on each pair of halves.
#[inline]
pub fn zip(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let ((a0, a1), (b0, b1)) = (unpack(a), unpack(b));
    pack(f(a0, b0), f(a1, b1))
}

/// Applies a ternary instruction on each triple of halves.
#[inline]
pub fn zip3(a: u32, b: u32, c: u32, f: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let ((a0, a1), (b0, b1), (c0, c1)) = (unpack(a), unpack(b), unpack(c));
    pack(f(a0, b0, c0), f(a1, b1, c1))
}

/// A 16-bit integer type that `.u16x2` and `.s16x2` instructions take.
pub trait Lane: Integer {}
impl Lane for u16 {}
impl Lane for i16 {}

#[inline]
fn lanes<T: Lane>(a: u32, b: u32, f: impl Fn(T, T) -> T) -> u32 {
    zip(a, b, |a, b| f(T::from_bits(a.into()), T::from_bits(b.into())).to_bits() as u16)
}

/// Computes `add.u16x2` and `add.s16x2`.
#[inline]
pub fn add<T: Lane>(a: u32, b: u32) -> u32 {
    lanes(a, b, integer::add::<T>)
}

/// Computes `min.u16x2` and `min.s16x2`.
#[inline]
pub fn min<T: Lane>(a: u32, b: u32) -> u32 {
    lanes(a, b, integer::min::<T>)
}

/// Computes `max.u16x2` and `max.s16x2`.
#[inline]
pub fn max<T: Lane>(a: u32, b: u32) -> u32 {
    lanes(a, b, integer::max::<T>)
}

/// Computes `min.relu.s16x2`.
#[inline]
pub fn min_relu<T: Lane>(a: u32, b: u32) -> u32 {
    lanes(a, b, integer::min_relu::<T>)
}

/// Computes `max.relu.s16x2`.
#[inline]
pub fn max_relu<T: Lane>(a: u32, b: u32) -> u32 {
    lanes(a, b, integer::max_relu::<T>)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{F16, Mode, float};

    #[test]
    fn lanes_do_not_carry_into_each_other() {
        assert_eq!(add::<u16>(0x0001_ffff, 0x0001_0001), 0x0002_0000);
        assert_eq!(add::<i16>(0x7fff_8000, 0x0001_8000), 0x8000_0000);
    }

    #[test]
    fn lanes_compare_by_their_signedness() {
        assert_eq!(
            (min::<u16>(0xffff_0001, 0x0001_ffff), min::<i16>(0xffff_0001, 0x0001_ffff)),
            (0x0001_0001, u32::MAX)
        );
        assert_eq!(
            (max::<u16>(0xffff_0001, 0x0001_ffff), max::<i16>(0xffff_0001, 0x0001_ffff)),
            (u32::MAX, 0x0001_0001)
        );
        assert_eq!(
            (min_relu::<i16>(0xffff_0005, 0x0001_0007), max_relu::<i16>(0xffff_8000, 0xfffe_0002)),
            (5, 2)
        );
    }

    #[test]
    fn any_scalar_function_serves_both_lanes() {
        let sum = zip(0x3c00_4000, 0x3c00_c000, |a, b| float::add::<F16>(a, b, Mode::RN));
        assert_eq!(sum, 0x4000_0000);
        assert_eq!(map(0x0001_0002, |a| a + 1), 0x0002_0003);
        let fused =
            zip3(0x3c00_4000, 0x4000_4000, 0x3c00_3c00, |a, b, c| float::fma::<F16>(a, b, c, Mode::RN));
        assert_eq!(fused, 0x4200_4500);
        assert_eq!(unpack(pack(1, 2)), (1, 2));
    }
}
