//! Operands: registers, immediates, special registers, symbols and addresses.

use smallvec::SmallVec;

use super::names::{LocalVarId, ParamId, RegId, SymbolId};
use super::special::SpecialReg;

/// A constant. Integers keep their 64 bits whatever sign they were written with; the instruction's
/// type says how many of them count and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Imm {
    /// An integer, as two's complement.
    Int(i64),
    /// Single precision, as bits (`0f3F800000`).
    F32(u32),
    /// Double precision, as bits (`0d3FF0000000000000`, or any decimal literal).
    F64(u64),
}

impl Imm {
    /// Returns the value as single precision bits, rounding a double-precision literal.
    #[must_use]
    pub fn to_f32_bits(self) -> u32 {
        match self {
            #[allow(clippy::cast_possible_truncation, reason = "rounding to nearest is what PTX asks for")]
            Imm::F64(bits) => (f64::from_bits(bits) as f32).to_bits(),
            Imm::F32(bits) => bits,
            #[allow(clippy::cast_precision_loss, reason = "rounding to nearest is what PTX asks for")]
            Imm::Int(value) => (value as f32).to_bits(),
        }
    }

    /// Returns the value as double precision bits.
    #[must_use]
    pub fn to_f64_bits(self) -> u64 {
        match self {
            Imm::F64(bits) => bits,
            Imm::F32(bits) => f64::from(f32::from_bits(bits)).to_bits(),
            #[allow(clippy::cast_precision_loss, reason = "rounding to nearest is what PTX asks for")]
            Imm::Int(value) => (value as f64).to_bits(),
        }
    }
}

/// Something with an address: a variable or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarRef {
    /// A module-scope variable or function.
    Symbol(SymbolId),
    /// A variable of this function.
    Local(LocalVarId),
    /// A formal parameter of this function.
    Param(ParamId),
    /// A return value of this function.
    Return(ParamId),
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register.
    Reg(RegId),
    /// A constant.
    Imm(Imm),
    /// A special register such as `%tid.x`.
    Special(SpecialReg),
    /// The address of a variable or function in its own state space, plus an offset in bytes.
    Address {
        /// What is addressed.
        base: VarRef,
        /// Bytes added to it.
        offset: i64,
    },
}

impl Operand {
    /// Returns the register, if it is one.
    #[must_use]
    pub const fn as_reg(&self) -> Option<RegId> {
        match self {
            Operand::Reg(reg) => Some(*reg),
            _ => None,
        }
    }
}

impl From<RegId> for Operand {
    fn from(reg: RegId) -> Self {
        Operand::Reg(reg)
    }
}

/// A predicate used as a source: `p`, `!p`, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PredOperand {
    /// A predicate register, negated or not.
    Reg {
        /// The register.
        reg: RegId,
        /// Whether `!` precedes it.
        negated: bool,
    },
    /// A constant, as compilers write for a known condition.
    Const(bool),
}

/// The predicate before an instruction: `@p` or `@!p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate register.
    pub reg: RegId,
    /// Whether the instruction runs when the predicate is false.
    pub negated: bool,
}

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBase {
    /// The value of a register.
    Reg(RegId),
    /// A variable.
    Var(VarRef),
    /// Nothing: the offset is the address.
    Absolute,
}

/// A memory operand: `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What the address starts from.
    pub base: AddressBase,
    /// Bytes added to it.
    pub offset: i64,
}

/// Destinations of a load: one register, or the elements of `{a, b, _, d}`; `None` is `_`.
/// One element means a scalar.
pub type Dsts = SmallVec<[Option<RegId>; 4]>;

/// Sources of a store: one operand, or the elements of `{a, b, c, d}`. One element means a scalar.
pub type Srcs = SmallVec<[Operand; 4]>;
