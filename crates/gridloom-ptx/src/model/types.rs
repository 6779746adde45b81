//! Scalar types and state spaces.

use super::names::words;

words! {
    /// A scalar (or packed) type as written in a declaration or as an instruction's type modifier.
    pub enum ScalarType {
        U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128",
        F16 = "f16", F32 = "f32", F64 = "f64", Bf16 = "bf16", Tf32 = "tf32",
        F16x2 = "f16x2", Bf16x2 = "bf16x2", F32x2 = "f32x2",
        U16x2 = "u16x2", S16x2 = "s16x2",
        E4m3 = "e4m3", E5m2 = "e5m2",
        E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2", E2m3x2 = "e2m3x2", E3m2x2 = "e3m2x2",
        E2m1x2 = "e2m1x2", Ue8m0x2 = "ue8m0x2",
        E4m3x4 = "e4m3x4", E5m2x4 = "e5m2x4", E2m3x4 = "e2m3x4", E3m2x4 = "e3m2x4", E2m1x4 = "e2m1x4",
        Pred = "pred",
        TexRef = "texref", SamplerRef = "samplerref", SurfRef = "surfref",
    }
}

/// How the bits of a [`ScalarType`] are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// Untyped bits (`.b32`); compatible with everything of the same size.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Floating point of any format, packed or not.
    Float,
    /// A predicate.
    Predicate,
    /// A texture, sampler or surface reference.
    Opaque,
}

impl ScalarType {
    /// Returns the size in memory in bytes. A predicate is not stored in memory and counts as 1.
    /// References to textures and the like are handles of 8 bytes.
    #[must_use]
    pub const fn size(self) -> u32 {
        use ScalarType::*;
        match self {
            U8 | S8 | B8 | E4m3 | E5m2 | E2m1x2 | Pred => 1,
            U16 | S16 | B16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E2m3x2 | E3m2x2 | Ue8m0x2 | E2m1x4 => 2,
            U32 | S32 | B32 | F32 | Tf32 | F16x2 | Bf16x2 | U16x2 | S16x2 | E4m3x4 | E5m2x4 | E2m3x4
            | E3m2x4 => 4,
            U64 | S64 | B64 | F64 | F32x2 | TexRef | SamplerRef | SurfRef => 8,
            B128 => 16,
        }
    }

    /// Returns the size in bits. A predicate has 1.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            ScalarType::Pred => 1,
            _ => self.size() * 8,
        }
    }

    /// Returns how the bits are read. Packed integers count as integers, packed floats as floats.
    #[must_use]
    pub const fn class(self) -> TypeClass {
        use ScalarType::*;
        match self {
            U8 | U16 | U32 | U64 | U16x2 => TypeClass::Unsigned,
            S8 | S16 | S32 | S64 | S16x2 => TypeClass::Signed,
            B8 | B16 | B32 | B64 | B128 => TypeClass::Bits,
            Pred => TypeClass::Predicate,
            TexRef | SamplerRef | SurfRef => TypeClass::Opaque,
            _ => TypeClass::Float,
        }
    }

    /// Returns whether this is a signed integer, packed or not.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self.class(), TypeClass::Signed)
    }

    /// Returns whether this is a floating-point type, packed or not.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.class(), TypeClass::Float)
    }

    /// Returns whether this is an integer type, signed or not, packed or not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), TypeClass::Signed | TypeClass::Unsigned)
    }

    /// Returns the element type and the number of elements of a packed type.
    #[must_use]
    pub const fn packed(self) -> Option<(ScalarType, u32)> {
        use ScalarType::*;
        match self {
            F16x2 => Some((F16, 2)),
            Bf16x2 => Some((Bf16, 2)),
            F32x2 => Some((F32, 2)),
            U16x2 => Some((U16, 2)),
            S16x2 => Some((S16, 2)),
            E4m3x2 => Some((E4m3, 2)),
            E5m2x2 => Some((E5m2, 2)),
            E4m3x4 => Some((E4m3, 4)),
            E5m2x4 => Some((E5m2, 4)),
            _ => None,
        }
    }
}

words! {
    /// Where an instruction's address points. [`Space::Generic`] is the absence of a state space
    /// modifier.
    pub enum Space {
        Generic = "",
        Global = "global",
        Const = "const",
        Local = "local",
        Shared = "shared",
        SharedCta = "shared::cta",
        SharedCluster = "shared::cluster",
        Param = "param",
        ParamEntry = "param::entry",
        ParamFunc = "param::func",
    }
}

impl Space {
    /// Returns whether this is shared memory, of this block or of the cluster.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        matches!(self, Space::Shared | Space::SharedCta | Space::SharedCluster)
    }
}

words! {
    /// The state space a variable is declared in.
    pub enum VarSpace {
        Global = "global",
        Const = "const",
        Shared = "shared",
        Local = "local",
        Param = "param",
        Reg = "reg",
        /// The old space of textures, before `.global .texref`.
        Tex = "tex",
    }
}

words! {
    /// How a symbol is seen from other modules.
    pub enum Linkage {
        /// No modifier: private to the module.
        Internal = "",
        Extern = "extern",
        Visible = "visible",
        Weak = "weak",
        Common = "common",
    }
}
