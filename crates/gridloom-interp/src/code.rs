//! The decoded form of a kernel: one flat array of instructions with every name resolved.

use super::fault::{SourceLine, Space};
use super::lanes::{Lanes, Lanewise, Slot, Source};
use gridloom_ptx::op::{RedOp, ReduxOp, ShuffleMode, VoteMode};
use gridloom_ptx::{ScalarType, SpecialReg};
use std::collections::HashMap;

/// An index into the instructions of a kernel.
pub type Pc = u32;

/// The instructions of a kernel and of every function it can call.
pub struct Code {
    pub instructions: Vec<Instruction>,
    /// The source position of each instruction. They are kept apart because only faults need them.
    pub positions: Vec<Position>,
    pub constants: Vec<Lanes>,
    /// The kernel first, then the functions it can call.
    pub functions: Vec<Function>,
    /// The index in `functions` of each function, by its symbol.
    pub by_symbol: HashMap<u32, u32>,
}

/// The source position of an instruction.
#[derive(Clone, Debug)]
pub struct Position {
    pub line: u32,
    pub source: Option<SourceLine>,
    /// Its index in the body of its function.
    pub instruction: u32,
}

/// A function: its first instruction, and the facts that a call needs.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The symbol of the module.
    pub symbol: u32,
    pub entry: Pc,
    /// The number of registers it uses.
    pub slots: u32,
    /// The bytes of local memory for its variables and parameters.
    pub frame: u32,
    /// The alignment of its frame.
    pub align: u32,
    /// The type of each slot: that of its register, or of the decoder's temporary.
    pub types: Vec<ScalarType>,
    pub params: Vec<Passed>,
    pub returns: Vec<Passed>,
}

/// The place of a value that a call passes, on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A register. `size` is the size of its type.
    Slot { slot: Slot, size: u32 },
    /// An operand of the call.
    Source(Source),
    /// Bytes of the frame.
    Frame { offset: u32, size: u32 },
    /// A result that is not used.
    Nowhere,
}

/// The predicate of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    pub slot: Slot,
    pub negated: bool,
}

pub struct Instruction {
    pub guard: Option<Guard>,
    pub op: Op,
    pub meaning: Meaning,
}

/// The meaning of an [`Op::Map`], for a compiler that can do better than to call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The instruction with this index in the function's body, applied to its operands in order.
    Instruction(u32),
    /// A copy.
    Copy,
    /// The negation of a predicate.
    Not,
    /// Two values of `bits` bits joined into one, the first in the lower half.
    Pair { bits: u32 },
    /// `bits` bits from bit `start` on.
    Field { start: u32, bits: u32 },
    /// No simple meaning.
    Other,
}

/// An operation of the decoded code.
pub enum Op {
    /// A function of registers.
    Map(Box<dyn Lanewise>),
    /// Reads a special register.
    Special {
        destination: Slot,
        register: SpecialReg,
    },
    /// Computes the address of a variable of this frame, in local space.
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
    /// Lets other threads run.
    Yield,
    Fence,
    /// An instruction that has no effect here, such as a cache hint.
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
pub struct MemoryOperand {
    pub space: Space,
    pub base: Base,
    pub offset: i64,
    /// Whether the address has 32 bits, so that sums wrap.
    pub narrow: bool,
}

/// The base of a memory operand's address.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// A value.
    Source(Source),
    /// The frame of the function.
    Frame,
}

/// How a value in memory is extended to a register.
#[derive(Clone, Copy, Debug)]
pub struct Extend {
    /// The size in memory in bytes.
    pub size: u32,
    /// The width of the register in bits, if the value is sign-extended.
    pub signed_to: Option<u32>,
}

pub struct Load {
    pub operand: MemoryOperand,
    pub extend: Extend,
    /// One slot per element. An element of 16 bytes has two, low half first.
    pub destinations: Vec<Slot>,
    pub align: u32,
    pub acquire: bool,
}

pub struct Store {
    pub operand: MemoryOperand,
    /// The size of each of `sources` in bytes.
    pub size: u32,
    /// One source per element. An element of 16 bytes has two, low half first.
    pub sources: Vec<Source>,
    pub align: u32,
    pub release: bool,
}

/// Computes the new value from the one in memory and the operands.
pub type Rmw = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;

pub struct Atomic {
    pub operand: MemoryOperand,
    pub kind: AtomicKind,
    /// Empty for `red`.
    pub destinations: Vec<Slot>,
}

pub enum AtomicKind {
    /// Updates values of 2, 4 or 8 bytes, with one pair of operands per element.
    Update { size: u32, function: Rmw, operands: Vec<[Source; 2]> },
    /// Exchanges 16 bytes, low half first, or compares and exchanges them if there is `compare`.
    Wide { compare: Option<[Source; 2]>, value: [Source; 2] },
}

pub struct CopyAsync {
    pub to: MemoryOperand,
    pub from: MemoryOperand,
    pub size: u32,
    pub source_size: Option<Source>,
    /// If this predicate is true, zeros are written.
    pub ignore: Option<Source>,
}

pub struct Alloca {
    pub destination: Slot,
    pub size: Source,
    pub align: u32,
}

pub struct BranchTable {
    pub index: Source,
    pub targets: Vec<Pc>,
}

pub struct Call {
    pub target: Target,
    pub arguments: Vec<Passed>,
    pub results: Vec<Passed>,
    /// The number of registers of the calling function. Those of the called one follow.
    pub slots: u32,
}

pub enum Target {
    /// One of [`Code::functions`].
    Function(u32),
    /// The function whose address is in a register. It must be in `table` if there is one.
    Indirect { address: Source, table: Option<Vec<u32>> },
    /// A function that the device provides.
    Builtin(Builtin),
}

/// The functions of CUDA's device runtime, which kernels declare `.extern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    Vprintf,
    AssertFail,
    Malloc,
    Free,
    SetConditional,
}

impl Builtin {
    /// Returns the builtin with a name, and the sizes of its parameters and results.
    pub fn from_name(name: &str) -> Option<(Self, &'static [u32], &'static [u32])> {
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

/// An instruction that the lanes of a warp execute together.
pub struct Collective {
    pub kind: CollectiveKind,
    /// The participating lanes. The forms without `.sync` have no mask; the active lanes
    /// participate.
    pub mask: Option<Source>,
    /// The value a lane contributes.
    pub value: Source,
    pub b: Source,
    pub c: Source,
    pub destination: Option<Slot>,
    pub predicate: Option<Slot>,
}

/// The operation of a collective. Lanes meet only in the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    Shuffle(ShuffleMode),
    Vote(VoteMode),
    MatchAny,
    MatchAll,
    Redux { op: ReduxOp, ty: ScalarType, abs: bool, nan: bool },
    Elect,
    Barrier,
}

/// A barrier of the block.
pub struct Barrier {
    pub id: Source,
    /// The number of participating threads, or `None` for all threads of the block.
    pub threads: Option<Source>,
    pub action: BarrierAction,
}

#[derive(Clone, Copy, Debug)]
pub enum BarrierAction {
    Sync,
    Arrive,
    Reduce { op: RedOp, predicate: Source, destination: Slot },
}

/// A barrier object in shared memory.
pub struct Mbarrier {
    pub operand: MemoryOperand,
    pub action: MbarrierAction,
}

#[derive(Clone, Copy, Debug)]
pub enum MbarrierAction {
    Init {
        count: Source,
    },
    Invalidate,
    /// `drop` also lowers the number of arrivals that later phases expect.
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

impl Function {
    /// Returns the type of a slot.
    pub fn type_of(&self, slot: Slot) -> ScalarType {
        self.types.get(slot.0 as usize).copied().unwrap_or(ScalarType::B64)
    }
}

impl Instruction {
    /// Returns whether it is a barrier for all threads of the block, like `__syncthreads()`.
    pub fn is_plain_barrier(&self, code: &Code) -> bool {
        let Op::Barrier(barrier) = &self.op else { return false };
        self.guard.is_none()
            && barrier.threads.is_none()
            && matches!(barrier.action, BarrierAction::Sync)
            && matches!(barrier.id, Source::Constant(id) if code.constants[id as usize][0] < 16)
    }

    /// Calls `visit` with every operand it reads, including its guard.
    pub fn for_each_use(&self, visit: &mut dyn FnMut(Source)) {
        if let Some(guard) = self.guard {
            visit(Source::Slot(guard.slot));
        }
        let mut operand = |operand: &MemoryOperand| {
            if let Base::Source(source) = operand.base {
                visit(source);
            }
        };
        match &self.op {
            Op::Load(load) => operand(&load.operand),
            Op::Store(store) => operand(&store.operand),
            Op::Atomic(atomic) => operand(&atomic.operand),
            Op::CopyAsync(copy) => {
                operand(&copy.to);
                operand(&copy.from);
            }
            Op::Mbarrier(mbarrier) => operand(&mbarrier.operand),
            _ => {}
        }
        match &self.op {
            Op::Map(map) => map.sources().iter().for_each(|&source| visit(source)),
            Op::Store(store) => store.sources.iter().for_each(|&source| visit(source)),
            Op::Atomic(atomic) => match &atomic.kind {
                AtomicKind::Update { operands, .. } => operands.iter().flatten().for_each(|&s| visit(s)),
                AtomicKind::Wide { compare, value } => {
                    compare.iter().flatten().chain(value).for_each(|&source| visit(source));
                }
            },
            Op::CopyAsync(copy) => copy.source_size.iter().chain(&copy.ignore).for_each(|&s| visit(s)),
            Op::Alloca(alloca) => visit(alloca.size),
            Op::StackRestore { source } => visit(*source),
            Op::BranchTable(table) => visit(table.index),
            Op::Call(call) => {
                if let Target::Indirect { address, .. } = call.target {
                    visit(address);
                }
                for argument in &call.arguments {
                    match *argument {
                        Passed::Slot { slot, .. } => visit(Source::Slot(slot)),
                        Passed::Source(source) => visit(source),
                        Passed::Frame { .. } | Passed::Nowhere => {}
                    }
                }
            }
            Op::Collective(collective) => {
                [collective.value, collective.b, collective.c].iter().for_each(|&source| visit(source));
                if let Some(mask) = collective.mask {
                    visit(mask);
                }
            }
            Op::Barrier(barrier) => {
                visit(barrier.id);
                if let Some(threads) = barrier.threads {
                    visit(threads);
                }
                if let BarrierAction::Reduce { predicate, .. } = barrier.action {
                    visit(predicate);
                }
            }
            Op::Mbarrier(mbarrier) => match mbarrier.action {
                MbarrierAction::Init { count }
                | MbarrierAction::Arrive { count, .. }
                | MbarrierAction::Transactions { count, .. } => visit(count),
                MbarrierAction::Wait { state, .. } => visit(state),
                MbarrierAction::Invalidate => {}
            },
            Op::Special { .. }
            | Op::FrameAddress { .. }
            | Op::Load(_)
            | Op::StackSave { .. }
            | Op::Branch { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Yield
            | Op::Fence
            | Op::Nothing
            | Op::ActiveMask { .. } => {}
        }
    }

    /// Calls `visit` with every slot it may write. With a guard, and for results of a call, a slot
    /// may keep its value.
    pub fn for_each_definition(&self, visit: &mut dyn FnMut(Slot)) {
        match &self.op {
            Op::Map(map) => map.destinations().iter().for_each(|&slot| visit(slot)),
            Op::Load(load) => load.destinations.iter().for_each(|&slot| visit(slot)),
            Op::Atomic(atomic) => atomic.destinations.iter().for_each(|&slot| visit(slot)),
            Op::Alloca(alloca) => visit(alloca.destination),
            Op::Special { destination, .. }
            | Op::FrameAddress { destination, .. }
            | Op::StackSave { destination }
            | Op::ActiveMask { destination } => visit(*destination),
            Op::Call(call) => {
                for result in &call.results {
                    if let Passed::Slot { slot, .. } = result {
                        visit(*slot);
                    }
                }
            }
            Op::Collective(collective) => {
                collective.destination.iter().chain(&collective.predicate).for_each(|&slot| visit(slot));
            }
            Op::Barrier(barrier) => {
                if let BarrierAction::Reduce { destination, .. } = barrier.action {
                    visit(destination);
                }
            }
            Op::Mbarrier(mbarrier) => match mbarrier.action {
                MbarrierAction::Arrive { state: Some(slot), .. }
                | MbarrierAction::Wait { destination: slot, .. } => visit(slot),
                _ => {}
            },
            _ => {}
        }
    }
}
