//! The typed instruction model, one file per family.
//!
//! Fields are named as in the syntax lines of the PTX manual: `dst` (its `d`), `a`, `b`, `c`, and
//! the modifiers by their meaning. A modifier that was left out and has a defined default is stored
//! as that default, so two spellings of one instruction are one value.

mod atomic;
mod bits;
mod compare;
mod control;
mod convert;
mod float;
mod int;
mod memory;
mod sync;
mod visit;
mod visit_mut;
mod warp;

pub use atomic::{AtomOp, AtomicOp, AtomicRmw};
pub use bits::{BfindMode, BitsOp, FunnelMode, LogicOp, Lop3Pred, MaskMode, PrmtMode, ShiftDirection};
pub use compare::{BoolOp, Combine, Compare, CompareOp};
pub use control::{CallArg, CallTarget, ControlOp, GridDep};
pub use convert::{ConvertOp, Cvt, CvtRounding, PackType};
pub use float::{ApproxOp, FloatArith, FloatOp, FloatPrecision, MinMax, Rounding, TestpOp};
pub use int::{Half, IntArith, IntOp, MulMode};
pub use memory::{
    Access, CacheOp, CpAsync, Eviction, L2Eviction, MemoryOp, Order, PolicyPriority, PrefetchLevel,
    PrefetchSize,
};
pub use sync::{
    BarrierKind, ClusterBarrier, FenceSem, MbarrierOp, MembarLevel, Proxy, RedOp, Scope, SyncOp, SyncRestrict,
};
pub(crate) use visit::twice;
pub use visit::{OperandRef, Rule};
pub use visit_mut::OperandMut;
pub use warp::{MatchMode, ReduxOp, ShuffleMode, VoteMode, WarpOp};

use super::names::{LabelId, LocationId, RegId};
use super::operand::{Guard, VarRef};
use super::span::Span;
use super::special::SpecialReg;

/// One instruction of a function's flat body.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The predicate that guards it.
    pub guard: Option<Guard>,
    /// The operation.
    pub op: Op,
    /// The source position that `.loc` gives.
    pub location: Option<LocationId>,
    /// Its position in the PTX text.
    pub span: Span,
}

/// An operation, by family.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Integer arithmetic.
    Int(IntOp),
    /// Logic, shifts and bit fields.
    Bits(BitsOp),
    /// Floating point arithmetic.
    Float(FloatOp),
    /// Comparison and selection.
    Compare(CompareOp),
    /// Conversion and data movement between registers.
    Convert(ConvertOp),
    /// Loads, stores, and everything else about addresses and caches.
    Memory(MemoryOp),
    /// Atomic operations.
    Atomic(AtomicOp),
    /// Branches, calls, returns and exits.
    Control(ControlOp),
    /// Barriers and fences.
    Sync(SyncOp),
    /// Communication within a warp.
    Warp(WarpOp),
    /// An instruction outside the model, kept so that the module loads and prints back.
    Unsupported(Box<Unsupported>),
}

/// An instruction outside the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsupported {
    /// The first word: `wgmma`, `tex`, `mma`.
    pub mnemonic: String,
    /// The modifiers after it, without dots.
    pub modifiers: Vec<String>,
    /// The operands, as tokens with their names resolved.
    pub operands: Vec<RawToken>,
    /// Why it is outside the model.
    pub reason: String,
}

impl Unsupported {
    /// Returns the mnemonic with all its modifiers, as written.
    #[must_use]
    pub fn full_name(&self) -> String {
        let mut name = self.mnemonic.clone();
        for modifier in &self.modifiers {
            name.push('.');
            name.push_str(modifier);
        }
        name
    }
}

/// A token among the operands of an [`Unsupported`] instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum RawToken {
    /// A register.
    Reg(RegId),
    /// A special register.
    Special(SpecialReg),
    /// A variable or function.
    Var(VarRef),
    /// A label.
    Label(LabelId),
    /// Anything else, as written.
    Text(String),
}

macro_rules! from_family {
    ($($variant:ident($family:ty);)+) => {$(
        impl From<$family> for Op {
            fn from(op: $family) -> Self {
                Op::$variant(op)
            }
        }
    )+};
}

from_family! {
    Int(IntOp);
    Bits(BitsOp);
    Float(FloatOp);
    Compare(CompareOp);
    Convert(ConvertOp);
    Memory(MemoryOp);
    Atomic(AtomicOp);
    Control(ControlOp);
    Sync(SyncOp);
    Warp(WarpOp);
}
