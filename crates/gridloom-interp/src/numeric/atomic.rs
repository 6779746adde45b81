//! The arithmetic of `atom` and `red`: the value to store, from the old value and the operand.
//!
//! The rest is elsewhere: integer `add`, `min`, `max` in [`integer`], and `and`, `or`, `xor`,
//! `exch`, `cas` are Rust's own.

use super::{Bf16, F16, F32, F64, Mode, float, integer, packed};

/// Computes `atom.inc.u32`: `old + 1`, or 0 if `old` is at `limit` or above it.
#[inline]
pub fn inc(old: u32, limit: u32) -> u32 {
    if old >= limit { 0 } else { old + 1 }
}

/// Computes `atom.dec.u32`: `old - 1`, or `limit` if `old` is 0 or above the limit.
#[inline]
pub fn dec(old: u32, limit: u32) -> u32 {
    if old == 0 || old > limit { limit } else { old - 1 }
}

/// Computes `atom.add.f32`, rounded to nearest.
///
/// PTX says that this flushes subnormals in global memory and keeps them in shared memory: `ftz`
/// tells which.
#[inline]
pub fn add_f32(old: u32, value: u32, ftz: bool) -> u32 {
    float::add::<F32>(old, value, Mode::RN.ftz(ftz))
}

/// Computes `atom.add.f64`, rounded to nearest.
#[inline]
pub fn add_f64(old: u64, value: u64) -> u64 {
    float::add::<F64>(old, value, Mode::RN)
}

/// Computes `atom.add.noftz.f16`.
#[inline]
pub fn add_f16(old: u16, value: u16) -> u16 {
    float::add::<F16>(old, value, Mode::RN)
}

/// Computes `atom.add.noftz.bf16`.
#[inline]
pub fn add_bf16(old: u16, value: u16) -> u16 {
    float::add::<Bf16>(old, value, Mode::RN)
}

/// Computes `atom.add.noftz.f16x2`: each half is atomic by itself.
#[inline]
pub fn add_f16x2(old: u32, value: u32) -> u32 {
    packed::zip(old, value, add_f16)
}

/// Computes `atom.add.noftz.bf16x2`: each half is atomic by itself.
#[inline]
pub fn add_bf16x2(old: u32, value: u32) -> u32 {
    packed::zip(old, value, add_bf16)
}

/// Computes `atom.add` on an integer type.
#[inline]
pub fn add<T: integer::Integer>(old: T, value: T) -> T {
    integer::add(old, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increment_wraps_to_zero_at_the_limit() {
        assert_eq!((inc(0, 3), inc(2, 3), inc(3, 3), inc(9, 3)), (1, 3, 0, 0));
        assert_eq!((inc(u32::MAX, u32::MAX), inc(0, 0)), (0, 0));
    }

    #[test]
    fn decrement_wraps_to_the_limit_from_zero_and_from_above() {
        assert_eq!((dec(3, 3), dec(0, 3), dec(9, 3), dec(1, 3)), (2, 3, 3, 0));
        assert_eq!(dec(0, 0), 0);
    }

    #[test]
    fn f32_addition_flushes_only_where_told() {
        assert_eq!((add_f32(1, 1, true), add_f32(1, 1, false)), (0, 2));
        assert_eq!(add_f32(0x0080_0001, 0x8080_0000, true), 0);
        assert_eq!(add_f32(0x0080_0001, 0x8080_0000, false), 1);
    }

    #[test]
    fn packed_halves_add_independently_and_keep_subnormals() {
        assert_eq!(add_f16x2(0x7bff_0001, 0x7bff_0001), 0x7c00_0002);
        assert_eq!(add_bf16x2(0x3f80_0001, 0x3f80_0001), 0x4000_0002);
        assert_eq!((add_f16(0xfe00, 0), add_bf16(0x7f80, 0xff80)), (0x7fff, 0x7fff));
    }

    #[test]
    fn f64_addition_passes_nan_on() {
        assert_eq!(add_f64(0x7ff8_0000_0000_0005, 0x3ff0 << 48), 0x7ff8_0000_0000_0005);
        assert_eq!(add(u64::MAX, 2), 1);
    }
}
