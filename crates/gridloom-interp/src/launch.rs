//! A launch: a kernel, its shape and arguments, and the resources that the device lends it.

use super::block::{Progress, ThreadBlock};
use super::budget::Budget;
use super::compiled::{Compiled, Local, Machine};
use super::fault::{Fault, FaultKind};
use super::heap::Heap;
use super::kernel::KernelCode;
use super::lanes::{LANES, Lanes};
use super::memory::MemoryMap;
use super::warp::Warp;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The default limit on the stack that calls and `alloca` use, in bytes per thread.
pub const DEFAULT_STACK: u32 = 64 << 10;

/// The flag of a launch that cannot be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The number of flags that can cancel a launch.
pub const CANCEL_FLAGS: usize = 3;

/// The most threads of a block.
const MAX_THREADS: u32 = 1024;

/// A launch, ready to be executed block by block.
///
/// It only borrows. Workers share one launch by reference, and each runs its blocks with its own
/// [`Scratch`].
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a KernelCode,
    /// The number of blocks in each dimension.
    pub grid: [u32; 3],
    /// The number of threads in each dimension of a block.
    pub block: [u32; 3],
    /// The size of dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameters, laid out as in [`KernelCode::params`].
    pub params: &'a [u8],
    /// The map of valid addresses, for checked mode. Without a map, addresses are used as the
    /// kernel computes them.
    pub memory_map: Option<&'a dyn MemoryMap>,
    /// The conditions that `cudaGraphSetConditional` sets. The handle of the one at index `i` is
    /// [`CONDITION_TAG`](super::CONDITION_TAG)` | i`.
    pub conditions: &'a [AtomicU32],
    /// Receives the output of `printf`, one call per `printf`.
    pub print: &'a (dyn Fn(&[u8]) + Sync),
    /// The heap for `malloc` and `free`.
    pub heap: &'a Heap,
    /// The most instructions that one warp may execute.
    pub step_limit: Option<u64>,
    /// The size of the stack in bytes per thread, in addition to the kernel's own frame.
    pub stack_limit: u32,
    /// The budget for memory beyond [`block_bytes`](Launch::block_bytes), if memory is limited.
    pub budget: Option<&'a dyn Budget>,
    /// The launch ends with [`FaultKind::Cancelled`](super::FaultKind::Cancelled) when one of these
    /// becomes true. [`uncancelled`](Launch::uncancelled) returns flags that never do.
    pub cancel: [&'a AtomicBool; CANCEL_FLAGS],
    /// `%gridid`.
    pub grid_id: u64,
    /// The compiled kernel, if there is one. A launch with a memory map or a step limit is
    /// interpreted anyway.
    pub compiled: Option<&'a dyn Compiled>,
}

impl<'a> Launch<'a> {
    /// Creates an unchecked launch of one block with one thread and no parameters. Set the public
    /// fields to change it.
    pub fn new(kernel: &'a KernelCode, heap: &'a Heap) -> Self {
        Self {
            kernel,
            grid: [1; 3],
            block: [1; 3],
            dynamic_shared: 0,
            params: &[],
            memory_map: None,
            conditions: &[],
            print: &|_| {},
            heap,
            step_limit: None,
            stack_limit: DEFAULT_STACK,
            budget: None,
            cancel: Self::uncancelled(),
            grid_id: 0,
            compiled: None,
        }
    }

    /// Returns flags that never become true.
    pub fn uncancelled() -> [&'a AtomicBool; CANCEL_FLAGS] {
        [&NEVER; CANCEL_FLAGS]
    }

    /// Returns the number of blocks of the grid. In their linear index `x` varies fastest.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |blocks, &extent| blocks.saturating_mul(u64::from(extent)))
    }

    /// Returns the number of threads of a block.
    pub fn threads_per_block(&self) -> u32 {
        self.block.iter().fold(1, |threads, &extent| threads.saturating_mul(extent))
    }

    /// Returns how many bytes a block needs: registers, local and shared memory, and the spill
    /// frame of compiled code. Nested calls and `alloca` may need more, which they take from the
    /// [budget](Launch::budget).
    pub fn block_bytes(&self) -> u64 {
        let warps = u64::from(self.threads_per_block().div_ceil(LANES as u32));
        let function = &self.kernel.code.functions[0];
        let registers = u64::from(function.slots) * size_of::<Lanes>() as u64;
        let local = u64::from(function.frame) + size_of::<Vec<u8>>() as u64;
        let tables = (size_of::<u32>() + size_of::<Local>()) as u64;
        let warp = size_of::<Warp>() as u64 + registers + LANES as u64 * (local + tables);
        let kept = self.machine_code().map_or(0, |compiled| compiled.kept_bytes(self.block) as u64);
        let shared = u64::from(self.kernel.shared_bytes()) + u64::from(self.dynamic_shared);
        warp.saturating_mul(warps).saturating_add(kept).saturating_add(shared)
    }

    /// Checks the conditions that execution relies on. A device has limits of its own.
    fn validate(&self) -> Result<(), Box<Fault>> {
        let threads = self.threads_per_block();
        let reason = if threads == 0 || threads > MAX_THREADS {
            format!("a block of {threads} threads; it must have 1 to {MAX_THREADS}")
        } else if (self.params.len() as u64) < self.kernel.param_bytes() {
            let (given, needed) = (self.params.len(), self.kernel.param_bytes());
            format!("{given} bytes of parameters; the kernel needs {needed}")
        } else if self.kernel.shared_bytes().checked_add(self.dynamic_shared).is_none() {
            format!("{} bytes of dynamic shared memory are too many", self.dynamic_shared)
        } else {
            return Ok(());
        };
        Err(Box::new(Fault {
            kind: FaultKind::InvalidLaunch { reason },
            kernel: self.kernel.name().to_owned(),
            block: [0; 3],
            thread: [0; 3],
            line: None,
            source: None,
            place: None,
        }))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.iter().any(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// Returns the compiled kernel, if this launch can use it.
    pub(crate) fn machine_code(&self) -> Option<&'a dyn Compiled> {
        self.compiled.filter(|_| self.memory_map.is_none() && self.step_limit.is_none())
    }

    /// Returns the state that compiled code needs of the launch and of the block at `index`. The
    /// tables of its threads are left empty.
    pub(crate) fn machine(&self, shared: &mut [u8], index: [u32; 3]) -> Machine {
        Machine {
            registers: std::ptr::null(),
            pcs: std::ptr::null_mut(),
            params: self.params.as_ptr(),
            shared: shared.as_mut_ptr(),
            shared_length: shared.len() as u64,
            local: std::ptr::null(),
            frames: std::ptr::null(),
            kept: std::ptr::null_mut(),
            cancel: self.cancel.map(|cancel| cancel.as_ptr().cast_const().cast()),
            grid_id: self.grid_id,
            grid: self.grid,
            block: self.block,
            index,
            dynamic_shared: self.dynamic_shared,
            blocks: 1,
            whole: 0,
        }
    }

    pub(crate) fn stack_bytes(&self) -> u64 {
        u64::from(self.stack_limit) + u64::from(self.kernel.local_bytes())
    }

    /// Runs the blocks of a range of linear indexes, each to its end before the next.
    ///
    /// Several workers may do so at once with ranges that do not overlap. A block may wait for an
    /// earlier one, so workers should take blocks in ascending order.
    ///
    /// # Errors
    /// Returns the first fault of a block. The blocks after it do not run.
    ///
    /// # Safety
    /// Every address in global or constant memory that the kernel accesses is either refused by the
    /// memory map of the launch or valid for that access. No other thread accesses that memory at
    /// the same time except by atomic operations, as other blocks of this launch do.
    pub unsafe fn run_blocks(&self, range: Range<u64>, scratch: &mut Scratch) -> Result<(), Box<Fault>> {
        self.validate()?;
        let block = scratch.block(0);
        let mut next = range.start;
        while next < range.end {
            block.reset(self, next, range.end - next);
            while block.run(self)? == Progress::Running {}
            next = block.number() + 1;
        }
        Ok(())
    }

    /// Runs the blocks of a range in turns, so that they may wait for each other, as in a
    /// cooperative launch.
    ///
    /// If several workers share such a launch, all their ranges must run at the same time.
    ///
    /// # Errors
    /// Returns the first fault of a block. The other blocks stop where they are.
    ///
    /// # Safety
    /// As for [`run_blocks`](Self::run_blocks).
    pub unsafe fn run_cooperative(&self, range: Range<u64>, scratch: &mut Scratch) -> Result<(), Box<Fault>> {
        self.validate()?;
        let mut running: Vec<usize> = Vec::new();
        for (i, linear) in range.enumerate() {
            scratch.block(i).reset(self, linear, 1);
            running.push(i);
        }
        while !running.is_empty() {
            let mut fault = None;
            running.retain(|&i| match fault {
                Some(_) => true,
                None => match scratch.blocks[i].run(self) {
                    Ok(progress) => progress == Progress::Running,
                    Err(raised) => {
                        fault = Some(raised);
                        true
                    }
                },
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(())
    }
}

/// The memory that blocks run in: registers, shared and local memory. A worker keeps one and runs
/// all its blocks in it, so that only the first block allocates.
#[derive(Default)]
pub struct Scratch {
    blocks: Vec<ThreadBlock>,
}

impl Scratch {
    /// Creates an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what blocks took from the budget. Frees their memory if that of the launch is more
    /// than `keep` bytes.
    pub fn settle(&mut self, launch: &Launch<'_>, keep: u64) {
        let taken = self.blocks.iter().fold(0u64, |sum, block| sum.saturating_add(block.taken()));
        let all = launch.block_bytes().saturating_mul(self.blocks.len() as u64).saturating_add(taken);
        if all > keep {
            self.blocks = Vec::new();
        }
        self.blocks.iter_mut().for_each(ThreadBlock::forget_taken);
        if let Some(budget) = launch.budget.filter(|_| taken > 0) {
            budget.give_back(taken);
        }
    }

    fn block(&mut self, index: usize) -> &mut ThreadBlock {
        while self.blocks.len() <= index {
            self.blocks.push(ThreadBlock::default());
        }
        &mut self.blocks[index]
    }
}
