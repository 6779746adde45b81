//! The interface between compiled kernels and the execution of a block.
//!
//! Compiled code runs threads from one *entry*, an instruction where it can be entered. It stops
//! when each thread has exited or is at an instruction for the interpreter: a barrier, a
//! collective, a call, a fault. At that point the live registers are in their slots, as if the
//! interpreter had run the thread, and the interpreter executes that one instruction. So
//! collectives, faults and rare instructions have one definition, with and without a compiler.
//!
//! Usually all threads of a block are at the same instruction. Then the block (`block.rs`) runs
//! them together. Otherwise each warp runs its groups itself and passes those at an entry to
//! compiled code. When it runs all threads of a block ([`Compiled::run_blocks`]), compiled code
//! also handles barriers that all threads reach, and continues with the next block.

use super::code::Pc;
use super::launch::CANCEL_FLAGS;
use std::ops::Range;

/// The thread has exited.
pub const EXITED: u32 = u32::MAX;
/// The thread's turn is over: others run before it continues at this instruction.
pub const YIELDED: u32 = 1 << 31;
/// The interpreter must execute this instruction.
pub const INTERPRET: u32 = 1 << 30;
/// With [`INTERPRET`]: compiled code refused this access, so the interpreter must raise the fault.
/// Only the registers that this instruction reads are valid.
pub const REFUSED: u32 = 1 << 28;
/// With [`INTERPRET`], inside compiled code: the registers of the thread are in its group's part of
/// [`Machine::kept`]. The interpreter never sees this flag.
pub const KEPT: u32 = 1 << 27;
/// The bits that hold the index of the instruction.
pub const PC: u32 = (1 << 27) - 1;

/// Bytes before and behind shared memory that compiled code may load and store, so that it need not
/// tell apart the elements of a vector. Nobody sees what is in them.
pub const SHARED_MARGIN: usize = 256;

/// The local memory of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Its first byte.
    pub start: *mut u8,
    /// Its size in bytes.
    pub length: u64,
}

/// The state that compiled code works on: that of a block, and of its launch.
///
/// Tables indexed by thread or warp are valid only for the threads of the call.
#[repr(C)]
#[derive(Debug)]
pub struct Machine {
    /// For each warp, the lanes of the first slot of the running function. Further slots follow
    /// every 256 bytes.
    pub registers: *const *mut u64,
    /// The state of each thread when the call returns: [`EXITED`], or an instruction with flags.
    pub pcs: *mut u32,
    /// The parameters of the launch.
    pub params: *const u8,
    /// Shared memory of the block, with [`SHARED_MARGIN`] bytes before and behind it.
    pub shared: *mut u8,
    /// The size of shared memory in bytes.
    pub shared_length: u64,
    /// For each thread, its local memory.
    pub local: *const Local,
    /// For each thread, the start of its function's frame in local memory.
    pub frames: *const u32,
    /// The spill frame, for the registers of the threads' groups between barriers. It has
    /// [`Compiled::kept_bytes`] bytes for the whole block.
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
    /// The size of dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The number of blocks to run. `index` is the first.
    pub blocks: u32,
    /// Whether all threads of the block are live and part of the call, so that they may pass a
    /// barrier together.
    pub whole: u32,
}

/// The result of [`Compiled::run_blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlocksRun {
    /// How many blocks have ended, from the first on.
    pub ended: u32,
    /// Whether the block after them has also run, and its threads are where [`Machine::pcs`] says.
    pub running: bool,
}

/// A kernel compiled to machine code.
pub trait Compiled: Send + Sync {
    /// Returns whether it can be entered at an instruction.
    fn is_entry(&self, pc: Pc) -> bool;

    /// Returns whether it accesses local memory, so that [`Machine::local`] must be set.
    fn uses_local(&self) -> bool;

    /// Returns the size of [`Machine::kept`] for a block of this shape, in bytes.
    fn kept_bytes(&self, block: [u32; 3]) -> usize;

    /// Runs whole blocks. All threads of the first are at an entry. Runs [`Machine::blocks`] blocks
    /// in total, as long as each ends. Shared memory is zero at the start of each.
    ///
    /// # Safety
    /// As for [`run`](Self::run), with all threads of the block. If there is more than one block,
    /// `pc` is the start of the kernel and the code does not use local memory.
    unsafe fn run_blocks(&self, machine: &Machine, pc: Pc) -> BlocksRun;

    /// Runs threads of the block that are at an entry.
    ///
    /// # Safety
    /// The machine is that of a block of this kernel. The threads in the range are all at `pc`, in
    /// the same function, and their entries of [`Machine::pcs`] are [`EXITED`]. Memory is as
    /// [`Launch::run_blocks`](super::Launch::run_blocks) requires.
    unsafe fn run(&self, machine: &Machine, pc: Pc, threads: Range<u32>);
}
