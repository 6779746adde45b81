//! Where compiled code takes part in the execution of a block.
//!
//! Compiled code runs threads from one *entry*, an instruction it can be entered at, until each has exited or has come to an
//! instruction that is left to the interpreter: a barrier, a collective, a call, a fault. Then the registers that are still
//! needed are in their slots, as if the interpreter had run the thread, and the interpreter executes that one instruction. So
//! collectives, faults and everything rare mean the same with and without a compiler, because there is one definition of them.
//!
//! The usual case is that all threads of a block stand at the same instruction. Then the block (`block.rs`) drives them together;
//! as soon as they do not, each warp runs its groups as ever, and hands those at an entry to compiled code. While it has all threads of a block
//! ([`Compiled::run_blocks`]), compiled code lets them pass a barrier that all of them have come to, and goes on with the next block.

use super::code::Pc;
use super::launch::CANCEL_FLAGS;
use std::ops::Range;

/// The thread has exited.
pub const EXITED: u32 = u32::MAX;
/// The thread has had its turn: others should run before it goes on at this instruction.
pub const YIELDED: u32 = 1 << 31;
/// The interpreter must execute this instruction.
pub const INTERPRET: u32 = 1 << 30;
/// With [`INTERPRET`]: compiled code refuses this access, so the interpreter must raise its fault. Only what the instruction itself
/// reads is in registers, so nothing may follow it.
pub const REFUSED: u32 = 1 << 28;
/// With [`INTERPRET`], while compiled code runs a block: the registers of the thread are with its group in [`Machine::kept`]. Nobody else
/// ever sees it.
pub const KEPT: u32 = 1 << 27;
/// Beside the flags, which instruction.
pub const PC: u32 = (1 << 27) - 1;

/// Local memory of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Its first byte.
    pub start: *mut u8,
    /// Bytes.
    pub length: u64,
}

/// What compiled code works on: the state of a block, and what its launch lends.
///
/// Pointers that are indexed by a thread or warp of the block are valid for the threads of the call only.
#[repr(C)]
#[derive(Debug)]
pub struct Machine {
    /// For each warp the lanes of the first slot of the function that runs; others follow every 256 bytes.
    pub registers: *const *mut u64,
    /// For each thread where it is, when the call returns: [`EXITED`], or an instruction with flags.
    pub pcs: *mut u32,
    /// The parameters of the launch.
    pub params: *const u8,
    /// Shared memory of the block.
    pub shared: *mut u8,
    /// Its bytes.
    pub shared_length: u64,
    /// For each thread, its local memory.
    pub local: *const Local,
    /// For each thread, where the frame of its function starts in local memory.
    pub frames: *const u32,
    /// Room for the registers of the threads' groups between barriers: [`Compiled::kept_bytes`] for the whole block.
    pub kept: *mut u8,
    /// One of these becomes 1 when the launch is cancelled.
    pub cancel: [*const u8; CANCEL_FLAGS],
    /// `%gridid`.
    pub grid_id: u64,
    /// `%nctaid`.
    pub grid: [u32; 3],
    /// `%ntid`.
    pub block: [u32; 3],
    /// `%ctaid`.
    pub index: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Blocks to be run, of which `index` is the first.
    pub blocks: u32,
    /// Whether all threads of the block are in the call, and live, so that they may pass a barrier together.
    pub whole: u32,
}

/// How far a call for whole blocks has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Blocks that have come to their end, from the first on.
    pub ended: u32,
    /// Whether the block after them has been run too, and its threads are where [`Machine::pcs`] says.
    pub running: bool,
}

/// A kernel as machine code.
pub trait Compiled: Send + Sync {
    /// Whether it can be entered at an instruction.
    fn is_entry(&self, pc: Pc) -> bool;

    /// Whether it accesses local memory, so that [`Machine::local`] must be there.
    fn uses_local(&self) -> bool;

    /// Bytes that [`Machine::kept`] must have for a block of this shape.
    fn kept_bytes(&self, block: [u32; 3]) -> usize;

    /// Runs whole blocks: the first, all of whose threads are at an entry, and [`Machine::blocks`] in all from their start on, as long as
    /// each comes to its end. Shared memory is zero at the start of each.
    ///
    /// # Safety
    /// As for [`run`](Self::run), with all threads of the block. `pc` is the start of the kernel where more than one block is run, and then the
    /// code does not use local memory.
    unsafe fn run_blocks(&self, machine: &Machine, pc: Pc) -> Came;

    /// Runs threads of the block that are at an entry.
    ///
    /// # Safety
    /// The machine is that of a block of this kernel whose threads in the range are all at `pc`, in the same function, and whose entries of
    /// [`Machine::pcs`] are [`EXITED`]; memory is as [`Launch::run_blocks`](super::Launch::run_blocks) asks for.
    unsafe fn run(&self, machine: &Machine, pc: Pc, threads: Range<u32>);
}
