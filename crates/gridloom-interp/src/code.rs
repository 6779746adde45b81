//! What a kernel is decoded to: one flat array of instructions with every name resolved.

use super::fault::{SourceLine, Space};
use super::lanes::{Lanes, Lanewise, Slot, Source};
use gridloom_ptx::op::{RedOp, ReduxOp, ShuffleMode, VoteMode};
use gridloom_ptx::{ScalarType, SpecialReg};

/// An index into the instructions of a kernel.
pub(crate) type Pc = u32;

/// The instructions of a kernel and of every function it can reach.
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    /// Where each instruction came from; beside the instructions, since only faults ask.
    pub(crate) positions: Vec<Position>,
    pub(crate) constants: Vec<Lanes>,
    /// The kernel first, then the functions it can reach.
    pub(crate) functions: Vec<Function>,
    /// For each symbol of the module, which of `functions` it is.
    pub(crate) by_symbol: Vec<Option<u32>>,
}

/// Where an instruction came from.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) source: Option<SourceLine>,
}

/// A function: where it starts, and what a call of it needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) entry: Pc,
    /// Registers it uses.
    pub(crate) slots: u32,
    /// Bytes of local memory its variables and parameters take.
    pub(crate) frame: u32,
    /// What its frame must start at a multiple of.
    pub(crate) align: u32,
    pub(crate) params: Vec<Passed>,
    pub(crate) returns: Vec<Passed>,
}

/// A value passed to or from a function: where it is, on either side of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A register. `size` is that of its type.
    Slot { slot: Slot, size: u32 },
    /// An operand of the call.
    Source(Source),
    /// Bytes of the frame.
    Frame { offset: u32, size: u32 },
    /// A result that nobody wants.
    Nowhere,
}

/// The predicate of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) slot: Slot,
    pub(crate) negated: bool,
}

pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// What an instruction does.
pub(crate) enum Op {
    /// A function of registers.
    Map(Box<dyn Lanewise>),
    /// Reads a special register.
    Special {
        destination: Slot,
        register: SpecialReg,
    },
    /// The address of a variable of this frame, in local space.
    FrameAddress {
        destination: Slot,
        offset: u32,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    CopyAsync(Box<CopyAsync>),
    Alloca(Box<Alloca>),
    StackSave {
        destination: Slot,
    },
    StackRestore {
        source: Source,
    },
    Branch {
        target: Pc,
    },
    BranchTable(Box<BranchTable>),
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Breakpoint,
    /// Gives the other threads a turn.
    Yield,
    Fence,
    /// An instruction whose effect is none here: cache hints and the like.
    Nothing,
    ActiveMask {
        destination: Slot,
    },
    Collective(Box<Collective>),
    Barrier(Box<Barrier>),
    Mbarrier(Box<Mbarrier>),
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) space: Space,
    pub(crate) base: Base,
    pub(crate) offset: i64,
    /// Whether the address is one of 32 bits, where sums wrap.
    pub(crate) narrow: bool,
}

/// What the address of a memory operand starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// A value.
    Source(Source),
    /// The frame of the function.
    Frame,
}

/// How a value of memory becomes that of a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extend {
    /// Bytes in memory.
    pub(crate) size: u32,
    /// The register's bits, where the value is sign-extended to them.
    pub(crate) signed_to: Option<u32>,
}

pub(crate) struct Load {
    pub(crate) place: Place,
    pub(crate) extend: Extend,
    /// One per element; those of 16 bytes have two, low half first.
    pub(crate) destinations: Vec<Slot>,
    pub(crate) align: u32,
    pub(crate) acquire: bool,
}

pub(crate) struct Store {
    pub(crate) place: Place,
    /// Bytes of each of `sources`.
    pub(crate) size: u32,
    /// One per element; those of 16 bytes have two, low half first.
    pub(crate) sources: Vec<Source>,
    pub(crate) align: u32,
    pub(crate) release: bool,
}

/// The new value as a function of the one in memory and the operands.
pub(crate) type Rmw = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

pub(crate) struct Atomic {
    pub(crate) place: Place,
    pub(crate) kind: AtomicKind,
    /// None for `red`.
    pub(crate) destinations: Vec<Slot>,
}

pub(crate) enum AtomicKind {
    /// 2, 4 or 8 bytes; one operand pair per element.
    Update { size: u32, function: Rmw, operands: Vec<[Source; 2]> },
    /// 16 bytes, halves low first: exchange, or compare and exchange with `compare`.
    Wide { compare: Option<[Source; 2]>, value: [Source; 2] },
}

pub(crate) struct CopyAsync {
    pub(crate) to: Place,
    pub(crate) from: Place,
    pub(crate) size: u32,
    pub(crate) source_size: Option<Source>,
    /// Where it holds, zeros are written.
    pub(crate) ignore: Option<Source>,
}

pub(crate) struct Alloca {
    pub(crate) destination: Slot,
    pub(crate) size: Source,
    pub(crate) align: u32,
}

pub(crate) struct BranchTable {
    pub(crate) index: Source,
    pub(crate) targets: Vec<Pc>,
}

pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) arguments: Vec<Passed>,
    pub(crate) results: Vec<Passed>,
    /// Registers of the calling function; those of the called one come after.
    pub(crate) slots: u32,
}

pub(crate) enum Target {
    /// One of [`Code::functions`].
    Function(u32),
    /// The function whose address a register holds; it must be among `table`, where there is one.
    Indirect { address: Source, table: Option<Vec<u32>> },
    /// A function that the device itself provides.
    Builtin(Builtin),
}

/// Functions that CUDA's device runtime provides and kernels declare `.extern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
    SetConditional,
}

impl Builtin {
    /// The builtin of a name, with the sizes of what it takes and returns.
    pub(crate) fn from_name(name: &str) -> Option<(Self, &'static [u32], &'static [u32])> {
        Some(match name {
            "vprintf" => (Self::Vprintf, &[8, 8], &[4]),
            "__assertfail" => (Self::AssertFail, &[8, 8, 4, 8, 8], &[]),
            "malloc" => (Self::Malloc, &[8], &[8]),
            "free" => (Self::Free, &[8], &[]),
            "cudaGraphSetConditional" => (Self::SetConditional, &[8, 4], &[]),
            _ => return None,
        })
    }
}

/// An instruction that lanes of one warp execute together.
pub(crate) struct Collective {
    pub(crate) kind: CollectiveKind,
    /// The lanes that take part. None in the forms before `.sync`: those that happen to be active.
    pub(crate) mask: Option<Source>,
    /// The value a lane contributes.
    pub(crate) value: Source,
    pub(crate) b: Source,
    pub(crate) c: Source,
    pub(crate) destination: Option<Slot>,
    pub(crate) predicate: Option<Slot>,
}

/// What a collective computes. Lanes meet only in equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    Shuffle(ShuffleMode),
    Vote(VoteMode),
    MatchAny,
    MatchAll,
    Redux { op: ReduxOp, ty: ScalarType, abs: bool, nan: bool },
    Elect,
    Barrier,
}

/// A barrier of the block.
pub(crate) struct Barrier {
    pub(crate) id: Source,
    /// How many threads take part; all of the block where none is given.
    pub(crate) threads: Option<Source>,
    pub(crate) action: BarrierAction,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierAction {
    Sync,
    Arrive,
    Reduce { op: RedOp, predicate: Source, destination: Slot },
}

/// A barrier object in shared memory.
pub(crate) struct Mbarrier {
    pub(crate) place: Place,
    pub(crate) action: MbarrierAction,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MbarrierAction {
    Init {
        count: Source,
    },
    Invalidate,
    /// `drop` also lowers the count that later phases expect.
    Arrive {
        count: Source,
        drop: bool,
        state: Option<Slot>,
        expect_tx: bool,
    },
    Transactions {
        count: Source,
        complete: bool,
    },
    Wait {
        state: Source,
        parity: bool,
        suspend: bool,
        destination: Slot,
    },
}
