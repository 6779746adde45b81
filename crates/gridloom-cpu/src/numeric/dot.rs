//! Dot products of packed bytes with 32-bit accumulation, which wraps.

/// Byte `lane` of `word`, extended.
#[inline]
fn byte(word: u32, lane: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * lane)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// Half `lane` of `word`, extended.
#[inline]
fn half(word: u32, lane: u32, signed: bool) -> i32 {
    let half = (word >> (16 * lane)) as u16;
    if signed { i32::from(half as i16) } else { i32::from(half) }
}

/// `dp4a`: four byte products, added to `c`. Each operand has its own signedness.
#[inline]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, lane| sum.wrapping_add_signed(byte(a, lane, a_signed) * byte(b, lane, b_signed)))
}

/// `dp2a`: the two halves of `a` times the low (or high) two bytes of `b`, added to `c`.
#[inline]
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let first = if high { 2 } else { 0 };
    (0..2).fold(c, |sum, lane| {
        sum.wrapping_add_signed(half(a, lane, a_signed) * byte(b, first + lane, b_signed))
    })
}
