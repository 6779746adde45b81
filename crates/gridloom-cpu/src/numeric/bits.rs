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

/// `shl`: a count past the width gives zero.
#[inline]
pub fn shl<T: Integer>(a: T, count: u32) -> T {
    if count >= T::BITS { T::ZERO } else { T::from_bits(a.to_bits() << count) }
}

/// `shr`: a signed type fills with its sign, and a count past the width gives nothing but fill.
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

/// `shf.l`: the high word of the pair `high:low` shifted left.
#[inline]
pub fn shf_l(low: u32, high: u32, count: u32, mode: CountMode) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    ((pair << funnel_count(count, mode)) >> 32) as u32
}

/// `shf.r`: the low word of the pair `high:low` shifted right.
#[inline]
pub fn shf_r(low: u32, high: u32, count: u32, mode: CountMode) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    (pair >> funnel_count(count, mode)) as u32
}

/// The `len` low bits.
#[inline]
fn low_mask(len: u32) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// A field's position or length as the hardware reads it.
///
/// PTX asks for 0 to 255. Past that, the 32-bit instructions take the low byte and the 64-bit ones the whole value; here it is
/// brought below 256, where every value past the width means the same.
#[inline]
fn field_operand<T: Integer>(operand: u32) -> u32 {
    if T::BITS == 64 { operand.min(0xff) } else { operand & 0xff }
}

/// `bfe`: the field of `len` bits at `pos`, extended.
///
/// A signed type extends with the field's last bit that lies inside `a`, or with the sign of `a` where the field ends
/// past it. An empty field is zero.
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

/// `bfi`: `b` with its field of `len` bits at `pos` replaced by the low bits of `a`. What lies past the width is dropped.
#[inline]
pub fn bfi<T: Integer>(a: T, b: T, pos: u32, len: u32) -> T {
    let (pos, len) = (field_operand::<T>(pos), field_operand::<T>(len));
    if pos >= T::BITS {
        return b;
    }
    let field = low_mask(len) << pos;
    T::from_bits(b.to_bits() & !field | a.to_bits() << pos & field)
}

/// `bfind`: the position of the highest bit that differs from the sign, or all ones where there is none.
#[inline]
pub fn bfind<T: Integer>(a: T) -> u32 {
    let magnitude = if a < T::ZERO { T::from_bits(!a.to_bits()) } else { a };
    63_u32.wrapping_sub(magnitude.to_bits().leading_zeros())
}

/// `bfind.shiftamt`: how far to shift left to bring that bit to the top, or all ones where there is none.
#[inline]
pub fn bfind_shiftamt<T: Integer>(a: T) -> u32 {
    match bfind(a) {
        u32::MAX => u32::MAX,
        position => T::BITS - 1 - position,
    }
}

/// `brev`.
#[inline]
pub fn brev<T: Integer>(a: T) -> T {
    T::from_bits(a.to_bits().reverse_bits() >> (64 - T::BITS))
}

/// `clz`: of zero, the width.
#[inline]
pub fn clz<T: Integer>(a: T) -> u32 {
    a.to_bits().leading_zeros() - (64 - T::BITS)
}

/// `popc`.
#[inline]
pub fn popc<T: Integer>(a: T) -> u32 {
    a.to_bits().count_ones()
}

/// `fns`: the position of the `|offset|`-th set bit of `mask`, counted from `base` inclusive upwards (downwards where
/// `offset` is negative), or all ones where there is none. Offset 0 asks whether bit `base` itself is set.
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

/// The lowest or highest set bit, alone.
#[inline]
fn nearest(mask: u32, lowest: bool) -> u32 {
    if lowest { mask & mask.wrapping_neg() } else { mask.checked_ilog2().map_or(0, |top| 1 << top) }
}

/// `szext`: the low `len` bits of `a`, extended by the type's signedness. A length of 0 gives 0.
#[inline]
pub fn szext<T: Integer>(a: T, len: u32, mode: CountMode) -> T {
    let len = match mode {
        CountMode::Clamp => len.min(T::BITS),
        CountMode::Wrap => len & (T::BITS - 1),
    };
    bfe(a, 0, len)
}

/// `bmsk`: `width` ones at `pos`, cut off at bit 31.
#[inline]
pub fn bmsk(pos: u32, width: u32, mode: CountMode) -> u32 {
    let (pos, width) = match mode {
        CountMode::Clamp => (pos.min(32), width.min(32)),
        CountMode::Wrap => (pos & 31, width & 31),
    };
    (low_mask(width) << pos) as u32
}

/// `cnot`: 1 where `a` is zero, else 0.
#[inline]
pub fn cnot<T: Integer>(a: T) -> T {
    T::from_bits(u64::from(a == T::ZERO))
}
