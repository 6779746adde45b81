//! The intermediate form of a recorded kernel: structured control flow over instructions that have
//! the names of PTX.

use std::borrow::Cow;
use std::collections::HashSet;

pub(crate) mod cleanup;
pub(crate) mod optimize;
pub(crate) mod print;
pub(crate) mod ty;
pub(crate) mod uniform;

pub use ty::Ty;

/// The devices that a kernel is recorded for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Any device. What is fast is what a CPU compiles to vector instructions: the threads of a
    /// warp in step, with indices that count up from one thread to the next.
    #[default]
    Any,
    /// GPUs, which approximate some functions with an instruction of their own.
    Gpu,
}

/// A virtual register. A variable of the kernel is one that is written more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub(crate) u32);

/// A block or loop that can be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub(crate) u32);

/// A place in the source that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Site(pub(crate) u32);

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Memory of the device that the kernel may write.
    Global,
    /// Memory of the device that nothing writes while the kernel runs.
    ReadOnly,
    /// Memory of the thread.
    Local,
    /// Whichever the address says.
    Generic,
    /// The parameters of the kernel.
    Param,
    /// Memory of the block.
    Shared,
    /// Memory of the block while nothing writes it.
    SharedRead,
    /// Memory of the device that a block owns, while nothing writes it.
    BlockRead,
}

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// An address in a 64-bit register.
    Reg(Reg),
    /// An array of the thread.
    Local(u32),
    /// A constant of the module.
    Constant(u32),
    /// A parameter of the kernel.
    Param(u32),
    /// An array of the block.
    Shared(u32),
    /// The memory of the block that the launch adds.
    DynamicShared,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mem {
    pub(crate) space: Space,
    pub(crate) base: Base,
    /// Bytes to add that are known when the kernel runs.
    pub(crate) index: Option<Reg>,
    /// Bytes to add that are known now.
    pub(crate) offset: i64,
}

impl Mem {
    /// Returns the place so many bytes further.
    pub fn plus(self, bytes: usize) -> Mem {
        Mem { offset: self.offset + bytes as i64, ..self }
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Reg(Reg),
    /// A number of this type, as its bits.
    Imm(Ty, u64),
    /// A special register, by its name.
    Special(&'static str),
    Mem(Mem),
    /// The address of an array.
    Address(Base),
}

/// What an instruction does besides computing its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: without a use of its result it can go.
    None,
    /// It reads memory that others may write.
    Load,
    /// It writes memory.
    Store,
}

/// One instruction, printed as `op dst, args;`.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Cow<'static, str>,
    /// What is appended to the name of the instruction.
    pub(crate) suffix: &'static str,
    pub(crate) dst: Option<Reg>,
    pub(crate) args: Vec<Operand>,
    pub(crate) effect: Effect,
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Inst(Inst),
    /// Leaves the launch with an error where the condition has this value.
    Check {
        cond: Operand,
        fails_when: bool,
        site: Site,
    },
    /// States that the condition holds here, which the caller of an `unsafe` function promises.
    /// The optimiser uses it; nothing is printed for it.
    Promise {
        cond: Operand,
    },
    /// Leaves the launch with an error.
    Fail(Site),
    If {
        cond: Operand,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    /// Statements that can be left forwards.
    Block {
        label: Label,
        body: Vec<Stmt>,
    },
    /// Statements that are repeated until they are left; `step` comes before each repetition.
    Loop {
        label: Label,
        body: Vec<Stmt>,
        step: Vec<Stmt>,
    },
    /// Goes behind a block or loop, always or where the condition has this value.
    Break {
        label: Label,
        when: Option<(Operand, bool)>,
    },
    /// Goes to the step of a loop.
    Continue(Label),
    /// Ends the thread.
    Exit,
    /// Asks that a value is the same in all threads of a launch, or of each block. Checked when the
    /// kernel is loaded.
    SameForAll {
        value: Operand,
        is_in_block: bool,
        site: Site,
    },
    /// Asks that all threads of a group come here together, or none. Checked when the kernel is
    /// loaded.
    Reached {
        by: Reached,
        site: Site,
    },
    /// Waits for all threads of the block.
    Barrier,
    /// Prints a text with arguments.
    Print {
        text: Mem,
        arguments: Mem,
    },
    /// Sets a condition of the graph.
    SetCondition {
        handle: Operand,
        value: Operand,
    },
}

/// Threads that come to a place together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Block,
    Warp,
}

/// What fails at a place, and where that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteInfo {
    pub(crate) message: String,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) function: &'static str,
}

/// Bytes that a kernel has: an array of a thread, or a parameter.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) bytes: usize,
    pub(crate) align: usize,
}

/// What a recorded kernel asks of the shape of its launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShapeRules {
    /// How many dimensions a launch may have, where threads own memory by their place in it.
    pub dimensions: Option<u32>,
    /// The exact size of its blocks, where the kernel states it.
    pub block: Option<[u32; 3]>,
}

/// A recorded kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) params: Vec<Array>,
    pub(crate) regs: Vec<Ty>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) sites: Vec<SiteInfo>,
    pub(crate) locals: Vec<Array>,
    /// Constants: alignment and bytes.
    pub(crate) constants: Vec<(usize, Vec<u8>)>,
    pub(crate) rules: ShapeRules,
    /// The arrays of a block.
    pub(crate) shared: Vec<Array>,
    /// The alignment of the memory of a block that launches add.
    pub(crate) dynamic_shared: Option<usize>,
    /// Registers that have the same value in all threads of a warp.
    pub(crate) same_in_warp: HashSet<Reg>,
    /// The parameters that are lengths or sizes.
    pub(crate) sizes: Vec<u32>,
    /// Whether the kernel computes the number of a thread or block from its place along all axes.
    pub(crate) uses_rank: bool,
    /// Whether the kernel asks for a place or size along the second or third axis.
    pub(crate) uses_axes: bool,
    /// Whether products that are added become fused operations.
    pub(crate) is_fused: bool,
    /// The devices that the kernel is for.
    pub(crate) target: Target,
}

impl Stmt {
    /// Calls `visit` with every operand that is read.
    pub(crate) fn reads(&self, visit: &mut impl FnMut(&Operand)) {
        match self {
            Stmt::Inst(inst) => inst.args.iter().for_each(&mut *visit),
            Stmt::Check { cond, .. } | Stmt::Promise { cond } | Stmt::If { cond, .. } => visit(cond),
            Stmt::Break { when: Some((cond, _)), .. } => visit(cond),
            Stmt::SameForAll { value, .. } => visit(value),
            Stmt::SetCondition { handle, value } => {
                visit(handle);
                visit(value);
            }
            _ => {}
        }
    }

    /// Returns the lists of statements inside.
    pub(crate) fn inner(&self) -> [&[Stmt]; 2] {
        match self {
            Stmt::If { then, otherwise, .. } => [then, otherwise],
            Stmt::Block { body, .. } => [body, &[]],
            Stmt::Loop { body, step, .. } => [body, step],
            _ => [&[], &[]],
        }
    }

    /// Returns the lists of statements inside, to change them.
    pub(crate) fn inner_mut(&mut self) -> [Option<&mut Vec<Stmt>>; 2] {
        match self {
            Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Stmt::Block { body, .. } => [Some(body), None],
            Stmt::Loop { body, step, .. } => [Some(body), Some(step)],
            _ => [None, None],
        }
    }
}

impl Operand {
    /// Returns the registers of the operand.
    pub(crate) fn regs(&self) -> impl Iterator<Item = Reg> + use<> {
        let pair = match *self {
            Operand::Reg(reg) => [Some(reg), None],
            Operand::Mem(mem) => {
                let base = match mem.base {
                    Base::Reg(reg) => Some(reg),
                    _ => None,
                };
                [base, mem.index]
            }
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }
}
