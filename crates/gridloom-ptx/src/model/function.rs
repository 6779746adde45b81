//! Functions and kernels: signature, directives, body.

use super::debug::SourceLocation;
use super::names::{LabelId, LocationId, RegId, SymbolId};
use super::op::{ControlOp, GridDep, Instruction, Op, Unsupported};
use super::registers::Registers;
use super::span::Span;
use super::types::{Linkage, VarSpace};
use super::variable::{Attribute, Variable};

/// Kernel or device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`.
    Func,
}

/// `.ptr` of a kernel parameter: what the pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PointerAttr {
    /// The state space pointed to; `None` is generic.
    pub space: Option<VarSpace>,
    /// The alignment of what is pointed to.
    pub align: Option<u32>,
}

/// A formal parameter or return value.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Name, type, size; its space is [`VarSpace::Param`] or [`VarSpace::Reg`].
    pub var: Variable,
    /// `.ptr`.
    pub pointer: Option<PointerAttr>,
    /// The register that holds it, for a `.reg` parameter. Register parameters are the first
    /// registers of the body: returns first, then parameters.
    pub register: Option<RegId>,
    /// Bytes from the start of the parameter buffer (each at the next multiple of its alignment).
    pub offset: u64,
}

/// Directives between signature and body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives {
    /// `.maxntid`; missing dimensions are 1.
    pub maxntid: Option<[u32; 3]>,
    /// `.reqntid`; missing dimensions are 1.
    pub reqntid: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub minnctapersm: Option<u32>,
    /// `.maxnctapersm`.
    pub maxnctapersm: Option<u32>,
    /// `.maxnreg`.
    pub maxnreg: Option<u32>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// `.reqnctapercluster`; missing dimensions are 1.
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.maxclusterrank`.
    pub maxclusterrank: Option<u32>,
    /// `.explicitcluster`.
    pub explicitcluster: bool,
    /// `.blocksareclusters`.
    pub blocksareclusters: bool,
    /// `.abi_preserve`.
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control`.
    pub abi_preserve_control: Option<u32>,
    /// `.pragma` strings.
    pub pragmas: Vec<String>,
    /// Directives this model does not know: the word, and its numbers.
    pub other: Vec<(String, Vec<i64>)>,
}

/// A kernel or device function, declared or defined.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// `.visible`, `.extern`, `.weak` or none.
    pub linkage: Linkage,
    /// `.attribute(...)`.
    pub attributes: Vec<Attribute>,
    /// Return values.
    pub returns: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
    /// Directives between signature and body.
    pub directives: Directives,
    /// The body, if this is a definition.
    pub body: Option<Box<Body>>,
    /// The function this one is another name of (`.alias`).
    pub alias_of: Option<SymbolId>,
    /// Where its name is declared (defined, if it is).
    pub span: Span,
}

impl Function {
    /// Returns the size of a launch's parameter buffer in bytes: the end of the last parameter.
    #[must_use]
    pub fn param_bytes(&self) -> u64 {
        self.params.iter().map(|param| param.offset.saturating_add(param.var.size())).max().unwrap_or(0)
    }

    /// Returns the first instruction outside the model, if any. The function cannot be executed
    /// because of it.
    #[must_use]
    pub fn unsupported(&self) -> Option<(&Instruction, &Unsupported)> {
        self.body.as_ref()?.instructions.iter().find_map(|instruction| match &instruction.op {
            Op::Unsupported(unsupported) => Some((instruction, &**unsupported)),
            _ => None,
        })
    }
}

/// A label.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The name, unique in the function.
    pub name: String,
    /// The index of the instruction after the label, or the number of instructions for a label at
    /// the end.
    pub target: u32,
    /// Where it is defined.
    pub span: Span,
}

/// `name: .branchtargets a, b, …;`
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTable {
    /// The name.
    pub name: String,
    /// The labels, by index.
    pub targets: Vec<LabelId>,
    /// Where it is declared.
    pub span: Span,
}

/// `name: .calltargets f, g, …;`
#[derive(Clone, Debug, PartialEq)]
pub struct CallTable {
    /// The name.
    pub name: String,
    /// The functions that may be called.
    pub targets: Vec<SymbolId>,
    /// Where it is declared.
    pub span: Span,
}

/// `name: .callprototype (ret) _ (params);`
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// The name.
    pub name: String,
    /// Return values.
    pub returns: Vec<Param>,
    /// Parameters.
    pub params: Vec<Param>,
    /// `.noreturn`.
    pub noreturn: bool,
    /// `.abi_preserve`.
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control`.
    pub abi_preserve_control: Option<u32>,
    /// Where it is declared.
    pub span: Span,
}

/// `.pragma` among the instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyPragma {
    /// The index of the instruction it stands before.
    pub at: u32,
    /// The strings.
    pub texts: Vec<String>,
}

/// The body of a function, with nested scopes flattened: every name is unique within it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// All registers.
    pub registers: Registers,
    /// Variables declared inside: `.shared`, `.local`, `.param`, and statics in `.global` or
    /// `.const`.
    pub locals: Vec<Variable>,
    /// Labels.
    pub labels: Vec<Label>,
    /// `.branchtargets`.
    pub branch_tables: Vec<BranchTable>,
    /// `.calltargets`.
    pub call_tables: Vec<CallTable>,
    /// `.callprototype`.
    pub prototypes: Vec<Prototype>,
    /// The instructions, in order.
    pub instructions: Vec<Instruction>,
    /// `.pragma` among the instructions, in order.
    pub pragmas: Vec<BodyPragma>,
    /// Source positions that instructions refer to, each after the position it was inlined at.
    pub locations: Vec<SourceLocation>,
}

impl Body {
    /// Returns the source position of an instruction.
    #[must_use]
    pub fn location(&self, id: LocationId) -> &SourceLocation {
        &self.locations[id.index()]
    }

    /// Returns the instruction index a label stands for.
    #[must_use]
    pub fn target(&self, label: LabelId) -> usize {
        self.labels[label.index()].target as usize
    }

    /// Returns whether every thread that reaches the end of the body has executed
    /// `griddepcontrol.wait` on the way. A kernel that does so ends after the kernels that it
    /// depends on, although it may start before they end.
    ///
    /// The answer is `false` where that cannot be told: a wait with a guard does not count, and
    /// neither does one after a call, because the called function may exit.
    #[must_use]
    pub fn always_waits(&self) -> bool {
        let mut seen = vec![false; self.instructions.len()];
        let mut ahead = vec![0];
        while let Some(at) = ahead.pop() {
            let Some(instruction) = self.instructions.get(at) else { return false };
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let next = at + 1;
            let Op::Control(op) = &instruction.op else {
                ahead.push(next);
                continue;
            };
            match op {
                ControlOp::Ret { .. } | ControlOp::Exit | ControlOp::Call { .. } => return false,
                ControlOp::Bra { target, .. } => ahead.push(self.target(*target)),
                ControlOp::BrxIdx { table, .. } => {
                    let targets = &self.branch_tables[table.index()].targets;
                    ahead.extend(targets.iter().map(|&target| self.target(target)));
                }
                ControlOp::GridDepControl { action: GridDep::Wait } | ControlOp::Trap => {}
                _ => {
                    ahead.push(next);
                    continue;
                }
            }
            if instruction.guard.is_some() {
                ahead.push(next);
            }
        }
        true
    }
}
