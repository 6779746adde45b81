//! Branches, calls and ends.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{BranchTableId, CallTableId, LabelId, PrototypeId, RegId, SymbolId, words};
use crate::model::operand::{Imm, Operand, VarRef};

words! {
    /// What `griddepcontrol` does.
    pub enum GridDep { LaunchDependents = "launch_dependents", Wait = "wait", }
}

/// What a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallTarget {
    /// A function.
    Direct(SymbolId),
    /// The function a register points to, of this prototype.
    Prototype(RegId, PrototypeId),
    /// The function a register points to, one of these.
    Table(RegId, CallTableId),
}

/// An argument or return place of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallArg {
    /// A `.param` variable, of this function or one of its own formal parameters.
    Var(VarRef),
    /// A register.
    Reg(RegId),
    /// A constant argument.
    Imm(Imm),
    /// `_`: a return value nobody wants.
    Sink,
}

/// Branches, calls and ends.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlOp {
    /// `bra`.
    Bra { uni: bool, target: LabelId },
    /// `brx.idx`.
    BrxIdx { uni: bool, index: Operand, table: BranchTableId },
    /// `call`.
    Call { uni: bool, target: CallTarget, returns: Vec<CallArg>, args: Vec<CallArg> },
    /// `ret`.
    Ret { uni: bool },
    /// `exit`.
    Exit,
    /// `trap`.
    Trap,
    /// `brkpt`.
    Brkpt,
    /// `nanosleep`.
    Nanosleep { duration: Operand },
    /// `griddepcontrol`.
    GridDepControl { action: GridDep },
    /// `pmevent`; with `.mask`, `event` is a mask of events.
    PmEvent { mask: bool, event: Operand },
    /// `setmaxnreg.{inc,dec}.sync.aligned.u32`.
    SetMaxNReg { increase: bool, count: u32 },
}
