//! Variables and their initial values.

use super::names::SymbolId;
use super::span::Span;
use super::types::{Linkage, ScalarType, VarSpace};

/// `.attribute(...)` of a variable or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// `.managed`: the host sees the variable at the same address.
    Managed,
    /// `.unified(a, b)`: a 128-bit identity shared between host and device.
    Unified(u64, u64),
}

/// An address in a variable's initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// Bytes from the start of the variable.
    pub offset: u64,
    /// How many bytes of the address are stored: the element's size, or 1 for a byte taken by
    /// [`Self::byte`].
    pub size: u32,
    /// The variable or function whose address it is.
    pub symbol: SymbolId,
    /// Bytes added to the address.
    pub addend: i64,
    /// The generic address (`generic(x)`) rather than the one in the symbol's own state space.
    pub generic: bool,
    /// `0xFF00(x)` takes byte 1 of the address: the index of that byte.
    pub byte: Option<u8>,
}

/// The initial bytes of a variable. Bytes beyond the end are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The bytes, little endian; zero where a relocation applies.
    pub bytes: Vec<u8>,
    /// Addresses to be written over them, by rising offset.
    pub relocations: Vec<Relocation>,
}

/// The initial value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initializer {
    /// Bytes.
    Data(Image),
    /// The fields of a texture, sampler or surface reference, as written.
    Opaque(Vec<(String, String)>),
}

/// A variable at module scope, inside a function, or in a parameter list.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name. May be empty for an unnamed parameter of a prototype.
    pub name: String,
    /// How other modules see it.
    pub linkage: Linkage,
    /// The state space.
    pub space: VarSpace,
    /// `.align`, if written.
    pub align: Option<u32>,
    /// The element type.
    pub ty: ScalarType,
    /// Elements of the vector type: 1, 2, 4 or 8.
    pub vector: u32,
    /// Array dimensions, outermost first; empty for a scalar. `None` is `[]`: sized elsewhere (only
    /// outermost).
    pub dims: Vec<Option<u64>>,
    /// The initial value.
    pub init: Option<Initializer>,
    /// `.attribute(...)`.
    pub attributes: Vec<Attribute>,
    /// Where the name is declared.
    pub span: Span,
}

impl Variable {
    /// Returns the size of one element in bytes. For a vector type, that of the whole vector.
    #[must_use]
    pub fn element_size(&self) -> u64 {
        u64::from(self.ty.size()) * u64::from(self.vector)
    }

    /// Returns the size in bytes, or 0 for an array sized elsewhere (`extern .shared x[]`). The
    /// parser refuses sizes that overflow.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.dims.iter().fold(self.element_size(), |size, dim| size.saturating_mul(dim.unwrap_or(0)))
    }

    /// Returns the alignment in bytes: that of `.align`, else that of the (vector) type.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.align.map_or_else(|| self.element_size(), u64::from)
    }

    /// Returns whether this is an array sized elsewhere: dynamic shared memory, or an array of
    /// another module.
    #[must_use]
    pub fn is_unsized(&self) -> bool {
        self.dims.iter().any(Option::is_none)
    }

    /// Returns the initial bytes, if it has any.
    #[must_use]
    pub fn image(&self) -> Option<&Image> {
        match &self.init {
            Some(Initializer::Data(image)) => Some(image),
            _ => None,
        }
    }
}
