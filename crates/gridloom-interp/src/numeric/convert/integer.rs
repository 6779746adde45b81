//! Integer to integer, and `cvt.pack`.

use crate::numeric::integer::Integer;

/// Computes `cvt` from one integer type to another: extended or cut off, or with `.sat` brought
/// into range.
#[inline]
pub fn integer_to_integer<S: Integer, D: Integer>(a: S, sat: bool) -> D {
    if sat { D::saturate(a.to_i128()) } else { D::wrap(a.to_i128()) }
}

/// The type that `cvt.pack` converts its operands to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are PTX's own")]
pub enum PackType {
    U2,
    S2,
    U4,
    S4,
    U8,
    S8,
    U16,
    S16,
}

impl PackType {
    /// Returns the bits of the type, and whether it is signed.
    const fn shape(self) -> (u32, bool) {
        match self {
            Self::U2 => (2, false),
            Self::S2 => (2, true),
            Self::U4 => (4, false),
            Self::S4 => (4, true),
            Self::U8 => (8, false),
            Self::S8 => (8, true),
            Self::U16 => (16, false),
            Self::S16 => (16, true),
        }
    }

    /// Returns the value brought into the type's range, as its bits.
    #[inline]
    fn saturate(self, value: i32) -> u32 {
        let (bits, signed) = self.shape();
        let (min, max) =
            if signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        value.clamp(min, max) as u32 & ((1 << bits) - 1)
    }
}

/// Computes `cvt.pack.sat`: `b` in the lowest field, `a` above it, and `c` (0 in the form without
/// it) shifted up above both.
#[inline]
pub fn pack_sat(to: PackType, a: i32, b: i32, c: u32) -> u32 {
    let (bits, _) = to.shape();
    let pair = to.saturate(a) << bits | to.saturate(b);
    c.checked_shl(2 * bits).unwrap_or(0) | pair
}
