//! The arithmetic of `atom` and `red`: what is stored, from what was there and the operand.
//!
//! The rest is elsewhere: integer `add`, `min`, `max` in [`integer`], and `and`, `or`, `xor`, `exch`, `cas` are
//! Rust's own.

use super::{Bf16, F16, F32, F64, Mode, float, integer, packed};

/// `atom.inc.u32`: one more, or zero once `limit` is reached.
#[inline]
pub fn inc(old: u32, limit: u32) -> u32 {
    if old >= limit { 0 } else { old + 1 }
}

/// `atom.dec.u32`: one less, or `limit` from zero and from above the limit.
#[inline]
pub fn dec(old: u32, limit: u32) -> u32 {
    if old == 0 || old > limit { limit } else { old - 1 }
}

/// `atom.add.f32`, rounded to nearest.
///
/// PTX says that this flushes subnormals in global memory and keeps them in shared memory: `ftz` tells which.
#[inline]
pub fn add_f32(old: u32, value: u32, ftz: bool) -> u32 {
    float::add::<F32>(old, value, Mode::RN.ftz(ftz))
}

/// `atom.add.f64`, rounded to nearest.
#[inline]
pub fn add_f64(old: u64, value: u64) -> u64 {
    float::add::<F64>(old, value, Mode::RN)
}

/// `atom.add.noftz.f16`.
#[inline]
pub fn add_f16(old: u16, value: u16) -> u16 {
    float::add::<F16>(old, value, Mode::RN)
}

/// `atom.add.noftz.bf16`.
#[inline]
pub fn add_bf16(old: u16, value: u16) -> u16 {
    float::add::<Bf16>(old, value, Mode::RN)
}

/// `atom.add.noftz.f16x2`: each half is atomic by itself.
#[inline]
pub fn add_f16x2(old: u32, value: u32) -> u32 {
    packed::zip(old, value, add_f16)
}

/// `atom.add.noftz.bf16x2`: each half is atomic by itself.
#[inline]
pub fn add_bf16x2(old: u32, value: u32) -> u32 {
    packed::zip(old, value, add_bf16)
}

/// `atom.add` on an integer type.
#[inline]
pub fn add<T: integer::Integer>(old: T, value: T) -> T {
    integer::add(old, value)
}
