//! Shifts, bit fields and counts.

use super::integer::Integer;

/// What happens to a count past the width of the type in `shf`, `szext` and `bmsk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountMode {
    /// `.clamp`: the count is the width.
    Clamp,
    /// `.wrap`: the count is taken modulo the width.
    Wrap,
}

/// Computes `shl`. A count of the width or more gives zero.
#[inline]
pub fn shl<T: Integer>(a: T, count: u32) -> T {
    if count >= T::BITS { T::ZERO } else { T::from_bits(a.to_bits() << count) }
}

/// Computes `shr`. A signed type is filled with its sign, an unsigned one with zeros. A count of
/// the width or more gives only filled bits.
#[inline]
pub fn shr<T: Integer>(a: T, count: u32) -> T {
    if T::SIGNED {
        T::wrap(a.to_i128() >> count.min(T::BITS - 1))
    } else if count >= T::BITS {
        T::ZERO
    } else {
        T::from_bits(a.to_bits() >> count)
    }
}

#[inline]
fn funnel_count(count: u32, mode: CountMode) -> u32 {
    match mode {
        CountMode::Clamp => count.min(32),
        CountMode::Wrap => count & 31,
    }
}

/// Computes `shf.l`: the high word of the pair `high:low` shifted left.
#[inline]
pub fn shf_l(low: u32, high: u32, count: u32, mode: CountMode) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    ((pair << funnel_count(count, mode)) >> 32) as u32
}

/// Computes `shf.r`: the low word of the pair `high:low` shifted right.
#[inline]
pub fn shf_r(low: u32, high: u32, count: u32, mode: CountMode) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    (pair >> funnel_count(count, mode)) as u32
}

/// Returns the `len` low bits.
#[inline]
fn low_mask(len: u32) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// Returns the position or length of a field as the hardware reads it.
///
/// PTX asks for 0 to 255. Past that, the 32-bit instructions take the low byte and the 64-bit ones
/// the whole value; here it is brought below 256, where every value past the width means the same.
#[inline]
fn field_operand<T: Integer>(operand: u32) -> u32 {
    if T::BITS == 64 { operand.min(0xff) } else { operand & 0xff }
}

/// Computes `bfe`: the field of `len` bits at `pos`, extended.
///
/// A signed type extends with the field's last bit that lies inside `a`, or with the sign of `a`
/// where the field ends past it. An empty field is zero.
#[inline]
pub fn bfe<T: Integer>(a: T, pos: u32, len: u32) -> T {
    let (pos, len) = (field_operand::<T>(pos), field_operand::<T>(len));
    let fill = if T::SIGNED && len > 0 {
        let sign = (pos + len - 1).min(T::BITS - 1);
        (a.to_bits() >> sign) & 1 == 1
    } else {
        false
    };
    let inside = len.min(T::BITS.saturating_sub(pos));
    let field = if inside == 0 { 0 } else { a.to_bits() >> pos & low_mask(inside) };
    T::from_bits(if fill { field | !low_mask(inside) } else { field })
}

/// Computes `bfi`: `b` with its field of `len` bits at `pos` replaced by the low bits of `a`. What
/// lies past the width is dropped.
#[inline]
pub fn bfi<T: Integer>(a: T, b: T, pos: u32, len: u32) -> T {
    let (pos, len) = (field_operand::<T>(pos), field_operand::<T>(len));
    if pos >= T::BITS {
        return b;
    }
    let field = low_mask(len) << pos;
    T::from_bits(b.to_bits() & !field | a.to_bits() << pos & field)
}

/// Computes `bfind`: the position of the highest bit that differs from the sign, or all ones where
/// there is none.
#[inline]
pub fn bfind<T: Integer>(a: T) -> u32 {
    let magnitude = if a < T::ZERO { T::from_bits(!a.to_bits()) } else { a };
    63_u32.wrapping_sub(magnitude.to_bits().leading_zeros())
}

/// Computes `bfind.shiftamt`: how far to shift left to bring that bit to the top, or all ones where
/// there is none.
#[inline]
pub fn bfind_shiftamt<T: Integer>(a: T) -> u32 {
    match bfind(a) {
        u32::MAX => u32::MAX,
        position => T::BITS - 1 - position,
    }
}

/// Computes `brev`.
#[inline]
pub fn brev<T: Integer>(a: T) -> T {
    T::from_bits(a.to_bits().reverse_bits() >> (64 - T::BITS))
}

/// Computes `clz`, which is the width for zero.
#[inline]
pub fn clz<T: Integer>(a: T) -> u32 {
    a.to_bits().leading_zeros() - (64 - T::BITS)
}

/// Computes `popc`.
#[inline]
pub fn popc<T: Integer>(a: T) -> u32 {
    a.to_bits().count_ones()
}

/// Computes `fns`: the position of the `|offset|`-th set bit of `mask`, counted from `base`
/// inclusive upwards (downwards where `offset` is negative), or all ones where there is none.
/// Offset 0 asks whether bit `base` itself is set.
#[inline]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let mut left = if offset > 0 { mask & u32::MAX << base } else { mask & u32::MAX >> (31 - base) };
    for _ in 1..offset.unsigned_abs().min(33) {
        if left == 0 {
            break;
        }
        left &= !nearest(left, offset > 0);
    }
    nearest(left, offset > 0).checked_ilog2().unwrap_or(u32::MAX)
}

/// Returns the lowest or highest set bit, alone.
#[inline]
fn nearest(mask: u32, lowest: bool) -> u32 {
    if lowest { mask & mask.wrapping_neg() } else { mask.checked_ilog2().map_or(0, |top| 1 << top) }
}

/// Computes `szext`: the low `len` bits of `a`, extended by the type's signedness. A length of 0
/// gives 0.
#[inline]
pub fn szext<T: Integer>(a: T, len: u32, mode: CountMode) -> T {
    let len = match mode {
        CountMode::Clamp => len.min(T::BITS),
        CountMode::Wrap => len & (T::BITS - 1),
    };
    bfe(a, 0, len)
}

/// Computes `bmsk`: `width` ones at `pos`, cut off at bit 31.
#[inline]
pub fn bmsk(pos: u32, width: u32, mode: CountMode) -> u32 {
    let (pos, width) = match mode {
        CountMode::Clamp => (pos.min(32), width.min(32)),
        CountMode::Wrap => (pos & 31, width & 31),
    };
    (low_mask(width) << pos) as u32
}

/// Computes `cnot`: 1 if `a` is zero, else 0.
#[inline]
pub fn cnot<T: Integer>(a: T) -> T {
    T::from_bits(u64::from(a == T::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts around every width, and any.
    fn count() -> impl Strategy<Value = u32> {
        prop_oneof![0_u32..70, 250_u32..260, any::<u32>()]
    }

    #[test]
    fn shift_past_the_width_leaves_only_fill() {
        for count in [16, 17, 255, 256, u32::MAX] {
            assert_eq!((shl(0xffff_u16, count), shr(0xffff_u16, count)), (0, 0));
            assert_eq!((shr(-5_i16, count), shr(5_i16, count)), (-1, 0));
        }
        assert_eq!((shl(1_u32, 32), shr(u32::MAX, 32), shr(i32::MIN, 32)), (0, 0, -1));
        assert_eq!((shl(1_u64, 64), shr(u64::MAX, 64), shr(i64::MIN, 64)), (0, 0, -1));
        assert_eq!((shl(1_u64, 63), shr(i64::MIN, 63)), (1 << 63, -1));
    }

    #[test]
    fn funnel_shift_clamps_or_wraps_its_count() {
        let (low, high) = (0x8000_0001, 0x1234_5678);
        assert_eq!(shf_l(low, high, 4, CountMode::Wrap), 0x2345_6788);
        assert_eq!(shf_r(low, high, 4, CountMode::Wrap), 0x8800_0000);
        for (count, left, right) in [(0, high, low), (32, low, high), (33, low, high), (u32::MAX, low, high)]
        {
            assert_eq!(shf_l(low, high, count, CountMode::Clamp), left, "left by {count}");
            assert_eq!(shf_r(low, high, count, CountMode::Clamp), right, "right by {count}");
        }
        assert_eq!(shf_l(low, high, 32, CountMode::Wrap), high);
        assert_eq!(shf_l(low, high, 33, CountMode::Wrap), shf_l(low, high, 1, CountMode::Wrap));
        assert_eq!(shf_r(low, high, 63, CountMode::Wrap), shf_r(low, high, 31, CountMode::Wrap));
    }

    /// Returns the manual's definition, bit by bit.
    fn bfe_by_the_manual<T: Integer>(a: T, pos: u32, len: u32) -> T {
        let msb = T::BITS - 1;
        let bit = |at: u32| a.to_bits() >> at & 1;
        let fill = if !T::SIGNED || len == 0 { 0 } else { bit((pos + len - 1).min(msb)) };
        T::from_bits(
            (0..=msb).fold(0, |d, i| d | (if i < len && pos + i <= msb { bit(pos + i) } else { fill }) << i),
        )
    }

    proptest! {
        #[test]
        fn bit_field_extract_is_the_manuals(a: u64, pos in 0_u32..256, len in 0_u32..256) {
            prop_assert_eq!(bfe(a as u32, pos, len), bfe_by_the_manual(a as u32, pos, len));
            prop_assert_eq!(bfe(a as i32, pos, len), bfe_by_the_manual(a as i32, pos, len));
            prop_assert_eq!(bfe(a, pos, len), bfe_by_the_manual(a, pos, len));
            prop_assert_eq!(bfe(a as i64, pos, len), bfe_by_the_manual(a as i64, pos, len));
        }

        #[test]
        fn bit_field_insert_is_the_manuals(a: u64, b: u64, pos in 0_u32..256, len in 0_u32..256) {
            let by_the_manual = |width: u32| (0..len).take_while(|i| pos + i < width).fold(b, |f, i| {
                f & !(1 << (pos + i)) | (a >> i.min(63) & 1) << (pos + i)
            });
            prop_assert_eq!(bfi(a, b, pos, len), by_the_manual(64));
            prop_assert_eq!(bfi(a as u32, b as u32, pos, len), by_the_manual(32) as u32);
        }

        #[test]
        fn no_count_is_out_of_bounds(a: u64, b: u64, x in count(), y in count()) {
            // Every one of these would overflow a shift if it were not brought into range first.
            let _ = (shl(a, x), shr(a as i32, x), bfe(a, x, y), bfi(a as u32, b as u32, x, y));
            let _ = (fns(a as u32, x, y as i32), bmsk(x, y, CountMode::Clamp), bmsk(x, y, CountMode::Wrap));
            for mode in [CountMode::Clamp, CountMode::Wrap] {
                let _ = (shf_l(a as u32, b as u32, x, mode), szext(a as i32, x, mode));
            }
        }

        #[test]
        fn masks_and_extensions_are_the_manuals(a in count(), b in count(), word: u32) {
            for (mode, clamp) in [(CountMode::Clamp, true), (CountMode::Wrap, false)] {
                let (a1, b1) = (a & 31, b & 31);
                let too_far = a1 + b1 >= 32 || (clamp && (a >= 32 || b >= 32));
                let mask0 = if clamp && a >= 32 { 0 } else { u32::MAX << a1 };
                let mask1 = if too_far { 0 } else if b1 == 0 { u32::MAX } else { u32::MAX << (a1 + b1) };
                prop_assert_eq!(bmsk(a, b, mode), mask0 & !mask1, "bmsk {} {}", a, b);

                let too_large = clamp && b >= 32;
                let mask = if too_large { 0 } else { u32::MAX << b1 };
                let sign = b1 != 0 && !too_large && word >> ((b1 + 31) & 31) & 1 == 1;
                prop_assert_eq!(szext(word, b, mode), word & !mask);
                prop_assert_eq!(szext(word as i32, b, mode) as u32, word & !mask | if sign { mask } else { 0 });
            }
        }

        #[test]
        fn find_nth_set_is_the_manuals(mask: u32, base in 0_u32..32, offset in -40_i32..40) {
            let set = |at: i32| mask >> at & 1 == 1;
            let mut found = u32::MAX;
            if offset == 0 {
                if set(base as i32) {
                    found = base;
                }
            } else {
                let (mut at, mut count) = (base as i32, offset.abs() - 1);
                while (0..32).contains(&at) {
                    if set(at) {
                        if count == 0 {
                            found = at as u32;
                            break;
                        }
                        count -= 1;
                    }
                    at += offset.signum();
                }
            }
            prop_assert_eq!(fns(mask, base, offset), found);
        }

        #[test]
        fn reversal_moves_bit_i_to_the_other_end(a: u64) {
            prop_assert_eq!(brev(a), (0..64).fold(0, |r, i| r | (a >> i & 1) << (63 - i)));
            prop_assert_eq!(brev(a as u32), (0..32).fold(0, |r, i| r | (a as u32 >> i & 1) << (31 - i)));
        }
    }

    #[test]
    fn operands_past_255_are_cut_to_a_byte_in_32_bits_and_taken_whole_in_64() {
        assert_eq!(bfe(0x1234_5678_u32, 0x104, 8), 0x67);
        assert_eq!(bfe(0x1234_5678_u64, 0x104, 8), 0);
        assert_eq!(bfe(0x8000_u64, 15, 0x100), 1);
        assert_eq!(bfe(i64::MIN, u32::MAX, 0x100), -1);
        assert_eq!(bfi(0x1234_5678_u32, 0, 4, 0x12c), 0x2345_6780);
        assert_eq!(bfi(0x1234_5678_u32, 0, 4, 0x100), 0);
        assert_eq!(bfi(0x1234_5678_1234_5678_u64, 0, 4, 0x100), 0x2345_6781_2345_6780);
    }

    #[test]
    fn find_most_significant_skips_the_sign() {
        assert_eq!((bfind(0_u32), bfind(1_u32), bfind(u32::MAX)), (u32::MAX, 0, 31));
        assert_eq!(
            (bfind(0_i32), bfind(-1_i32), bfind(-2_i32), bfind(i32::MIN)),
            (u32::MAX, u32::MAX, 0, 30)
        );
        assert_eq!((bfind(u64::MAX), bfind(i64::MIN), bfind(-1_i64)), (63, 62, u32::MAX));
        assert_eq!(
            (bfind_shiftamt(0_u32), bfind_shiftamt(1_u32), bfind_shiftamt(-1_i32)),
            (u32::MAX, 31, u32::MAX)
        );
        assert_eq!((bfind_shiftamt(1_u64), bfind_shiftamt(i64::MAX), bfind_shiftamt(i32::MIN)), (63, 1, 1));
    }

    #[test]
    fn counts_of_zero_and_of_all_ones() {
        assert_eq!((clz(0_u32), clz(0_u64), clz(1_u32), clz(u64::MAX)), (32, 64, 31, 0));
        assert_eq!((popc(0_u32), popc(u32::MAX), popc(u64::MAX)), (0, 32, 64));
        assert_eq!((cnot(0_u16), cnot(5_u16), cnot(0_u64)), (1, 0, 1));
    }
}
