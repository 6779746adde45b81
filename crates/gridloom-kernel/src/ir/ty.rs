//! The scalar types of a kernel, and the registers that hold them.

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// `bool`, in a predicate register; one byte in memory.
    Bool,
    /// `u8`, zero-extended in a 32-bit register.
    U8,
    /// `i8`, sign-extended in a 32-bit register.
    I8,
    /// `u16`, zero-extended in a 32-bit register.
    U16,
    /// `i16`, sign-extended in a 32-bit register.
    I16,
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `u64` and `usize`.
    U64,
    /// `i64` and `isize`.
    I64,
    /// `half::f16`, as its bits in a 16-bit register.
    F16,
    /// `half::bf16`, as its bits in a 16-bit register.
    Bf16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

/// A kind of register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Ty {
    /// Returns the number of bits of a value.
    pub fn bits(self) -> u32 {
        match self {
            Ty::Bool => 1,
            Ty::U8 | Ty::I8 => 8,
            Ty::U16 | Ty::I16 | Ty::F16 | Ty::Bf16 => 16,
            Ty::U32 | Ty::I32 | Ty::F32 => 32,
            Ty::U64 | Ty::I64 | Ty::F64 => 64,
        }
    }

    /// Returns the number of bytes in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Returns whether it is an integer that can be negative.
    pub fn is_signed(self) -> bool {
        matches!(self, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64)
    }

    /// Returns whether it is an integer.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Ty::Bool
    }

    /// Returns whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F16 | Ty::Bf16 | Ty::F32 | Ty::F64)
    }

    /// Returns whether it is an integer that is narrower than its register.
    pub(crate) fn is_narrow(self) -> bool {
        matches!(self, Ty::U8 | Ty::I8 | Ty::U16 | Ty::I16)
    }

    pub(crate) fn class(self) -> Class {
        match self {
            Ty::Bool => Class::Pred,
            Ty::F16 | Ty::Bf16 => Class::B16,
            Ty::F32 => Class::F32,
            Ty::F64 => Class::F64,
            _ if self.bits() == 64 => Class::B64,
            _ => Class::B32,
        }
    }

    /// Returns the suffix of arithmetic on the register that holds the type: narrow integers
    /// compute in 32 bits.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Ty::Bool => "pred",
            Ty::U8 | Ty::U16 | Ty::U32 => "u32",
            Ty::I8 | Ty::I16 | Ty::I32 => "s32",
            Ty::U64 => "u64",
            Ty::I64 => "s64",
            Ty::F16 | Ty::Bf16 => "b16",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        }
    }

    /// Returns the suffix of an operation on bits.
    pub(crate) fn bit_suffix(self) -> &'static str {
        match self.class() {
            Class::Pred => "pred",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    /// Returns the suffix of a load or store.
    pub(crate) fn memory_suffix(self) -> &'static str {
        match self {
            Ty::Bool | Ty::U8 => "u8",
            Ty::I8 => "s8",
            Ty::U16 => "u16",
            Ty::I16 => "s16",
            other => other.suffix(),
        }
    }
}

impl Class {
    pub(crate) const ALL: [Class; 6] =
        [Class::Pred, Class::B16, Class::B32, Class::B64, Class::F32, Class::F64];

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Class::Pred => "%p",
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
        }
    }

    pub(crate) fn declaration(self) -> &'static str {
        match self {
            Class::Pred => ".pred",
            Class::B16 => ".b16",
            Class::B32 => ".b32",
            Class::B64 => ".b64",
            Class::F32 => ".f32",
            Class::F64 => ".f64",
        }
    }
}
