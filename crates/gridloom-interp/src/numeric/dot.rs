//! Dot products of packed bytes with 32-bit accumulation, which wraps.

/// Returns byte `lane` of `word`, extended.
#[inline]
fn byte(word: u32, lane: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * lane)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

/// Returns half `lane` of `word`, extended.
#[inline]
fn half(word: u32, lane: u32, signed: bool) -> i32 {
    let half = (word >> (16 * lane)) as u16;
    if signed { i32::from(half as i16) } else { i32::from(half) }
}

/// Computes `dp4a`: four byte products, added to `c`. Each operand has its own signedness.
#[inline]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, lane| sum.wrapping_add_signed(byte(a, lane, a_signed) * byte(b, lane, b_signed)))
}

/// Computes `dp2a`: the two halves of `a` times the low (or high) two bytes of `b`, added to `c`.
#[inline]
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let first = if high { 2 } else { 0 };
    (0..2).fold(c, |sum, lane| {
        sum.wrapping_add_signed(half(a, lane, a_signed) * byte(b, first + lane, b_signed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dp4a_reads_each_operand_in_its_own_signedness() {
        let (a, b) = (0xff80_7f01, 0x02ff_8003);
        // Bytes, low first: a is 1, 127, 128 or −128, 255 or −1; b is 3, 128 or −128, 255 or −1, 2.
        assert_eq!(dp4a(a, b, 0, false, false), 3 + 127 * 128 + 128 * 255 + 255 * 2);
        assert_eq!(dp4a(a, b, 0, true, true) as i32, 3 - 127 * 128 + 128 - 2);
        assert_eq!(dp4a(a, b, 0, true, false) as i32, 3 + 127 * 128 - 128 * 255 - 2);
        assert_eq!(dp4a(a, b, 0, false, true) as i32, 3 - 127 * 128 - 128 + 255 * 2);
    }

    #[test]
    fn dp2a_takes_the_low_or_high_bytes_of_b() {
        let (a, b) = (0xffff_0002, 0x0504_03ff);
        assert_eq!(dp2a(a, b, 10, false, false, false), 10 + 2 * 255 + 65535 * 3);
        assert_eq!(dp2a(a, b, 10, true, true, false) as i32, 10 - 2 - 3);
        assert_eq!(dp2a(a, b, 10, false, false, true), 10 + 2 * 4 + 65535 * 5);
        assert_eq!(dp2a(a, b, 10, true, true, true) as i32, 10 + 2 * 4 - 5);
    }

    #[test]
    fn accumulation_wraps() {
        assert_eq!(dp4a(1, 1, u32::MAX, false, false), 0);
        assert_eq!(dp2a(1, 0xff, 0, true, true, false), u32::MAX);
    }
}
