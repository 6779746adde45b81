//! Branches, calls, returns and exits.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{BranchTableId, CallTableId, LabelId, PrototypeId, RegId, SymbolId, words};
use crate::model::operand::{Imm, Operand, VarRef};

words! {
    /// What `griddepcontrol` does.
    pub enum GridDep { LaunchDependents = "launch_dependents", Wait = "wait", }
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallTarget {
    /// A function.
    Direct(SymbolId),
    /// The function that a register points to, with this prototype.
    Prototype(RegId, PrototypeId),
    /// The function that a register points to, which is one of this table.
    Table(RegId, CallTableId),
}

/// An argument or a result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallArg {
    /// A `.param` variable, of this function or one of its own formal parameters.
    Var(VarRef),
    /// A register.
    Reg(RegId),
    /// A constant argument.
    Imm(Imm),
    /// `_`: a result that is not used.
    Sink,
}

/// Branches, calls, returns and exits.
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
