//! Conversion and data movement between registers.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::{Dsts, Operand, Srcs};
use crate::model::types::{ScalarType, Space};

words! {
    /// Rounding of a conversion.
    pub enum CvtRounding {
        Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp",
        /// To nearest, ties away from zero.
        Rna = "rna",
        /// Stochastic: random bits come as an operand.
        Rs = "rs",
        /// To an integral value, nearest even.
        Rni = "rni",
        /// To an integral value, towards zero.
        Rzi = "rzi",
        /// To an integral value, towards negative infinity.
        Rmi = "rmi",
        /// To an integral value, towards positive infinity.
        Rpi = "rpi",
    }
}

/// `cvt`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cvt {
    pub dst_ty: ScalarType,
    pub src_ty: ScalarType,
    pub rounding: Option<CvtRounding>,
    pub ftz: bool,
    /// Clamp to the destination's range; for float destinations to [0, 1].
    pub sat: bool,
    /// Clamp to the destination's largest finite value.
    pub satfinite: bool,
    pub relu: bool,
    /// `.scaled::n2::ue8m0`: the last operand scales.
    pub scaled: bool,
    pub dst: RegId,
    /// One value; two for packed destinations from single values (`a` becomes the upper half);
    /// four (written in braces) for `x4` destinations.
    pub srcs: Srcs,
    /// The random bits of [`CvtRounding::Rs`].
    pub random: Option<Operand>,
    /// The scale factor of `.scaled`.
    pub scale: Option<Operand>,
}

words! {
    /// The fields that `cvt.pack` packs: those of 16 bits fill a register, smaller ones go below
    /// what was packed before.
    pub enum PackType {
        U2 = "u2", S2 = "s2", U4 = "u4", S4 = "s4", U8 = "u8", S8 = "s8", U16 = "u16", S16 = "s16",
    }
}

/// Conversion and data movement between registers.
#[derive(Clone, Debug, PartialEq)]
pub enum ConvertOp {
    /// `cvt`.
    Cvt(Box<Cvt>),
    /// `cvt.pack.sat.dst_ty.ty{.b32} d, a, b{, c}`.
    CvtPack { dst_ty: PackType, ty: ScalarType, dst: RegId, a: Operand, b: Operand, c: Option<Operand> },
    /// `cvta{.to}.space`: from (or with `.to`, to) an address in `space`, to (or from) a generic
    /// one.
    Cvta { to: bool, space: Space, ty: ScalarType, dst: RegId, src: Operand },
    /// `isspacep`: whether a generic address is in `space`.
    Isspacep { space: Space, dst: RegId, src: Operand },
    /// `mapa`: the address in another block of the cluster that corresponds to `src`.
    Mapa { space: Space, ty: ScalarType, dst: RegId, src: Operand, rank: Operand },
    /// `getctarank`: the block of the cluster an address belongs to.
    Getctarank { space: Space, ty: ScalarType, dst: RegId, src: Operand },
    /// `mov` between registers, of a constant, of a special register, or of an address (`.pred`
    /// too).
    Mov { ty: ScalarType, dst: RegId, src: Operand },
    /// `mov.v2`, `.v4`: as many moves at once, for vector registers as a whole. An element without
    /// a destination is written `_`.
    MovVector { ty: ScalarType, dsts: Dsts, srcs: Srcs },
    /// `mov d, {a, b, …}`: packs, first element lowest.
    Pack { ty: ScalarType, dst: RegId, srcs: Srcs },
    /// `mov {a, b, …}, s`: unpacks, first element lowest.
    Unpack { ty: ScalarType, dsts: Dsts, src: Operand },
}
