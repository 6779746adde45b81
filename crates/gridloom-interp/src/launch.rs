//! A launch: a kernel, its shape and arguments, and what the device lends it.

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

/// Bytes of stack that calls and `alloca` may take per thread, unless a launch says otherwise.
pub const DEFAULT_STACK: u32 = 64 << 10;

/// The flag of a launch that nobody can cancel.
static NEVER: AtomicBool = AtomicBool::new(false);

/// How many flags can end a launch: one of its own, and those of others who may want it to end.
pub const CANCEL_FLAGS: usize = 3;

/// Threads of a block, at most.
const MAX_THREADS: u32 = 1024;

/// A launch, ready to be executed block by block.
///
/// It is a value of plain borrows: workers share one by reference, and each runs its own blocks with its own
/// [`Scratch`].
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a KernelCode,
    /// Blocks in each dimension.
    pub grid: [u32; 3],
    /// Threads in each dimension of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameters, laid out as [`KernelCode::params`] says.
    pub params: &'a [u8],
    /// In checked mode, knows which addresses are memory. Without it, addresses are used as the kernel computes them.
    pub memory_map: Option<&'a dyn MemoryMap>,
    /// Conditions that `cudaGraphSetConditional` sets; the handle of the one at index `i` is
    /// [`CONDITION_TAG`](super::CONDITION_TAG)` | i`.
    pub conditions: &'a [AtomicU32],
    /// Takes what `printf` prints, one call per `printf`.
    pub print: &'a (dyn Fn(&[u8]) + Sync),
    /// Serves `malloc` and `free`.
    pub heap: &'a Heap,
    /// Instructions that one warp may execute.
    pub step_limit: Option<u64>,
    /// Bytes of stack per thread, on top of what the kernel itself takes.
    pub stack_limit: u32,
    /// Where there is a limit on memory: what blocks ask for more than [`block_bytes`](Launch::block_bytes).
    pub budget: Option<&'a dyn Budget>,
    /// Each ends the launch with [`FaultKind::Cancelled`](super::FaultKind::Cancelled) when it becomes true. See
    /// [`uncancelled`](Launch::uncancelled) for where there is no need of one.
    pub cancel: [&'a AtomicBool; CANCEL_FLAGS],
    /// `%gridid`.
    pub grid_id: u64,
    /// The kernel compiled, where it is. A launch with a memory map or a step limit is interpreted all the same.
    pub compiled: Option<&'a dyn Compiled>,
}

impl<'a> Launch<'a> {
    /// A launch of one block of one thread, unchecked, without parameters; the fields are public, to be set.
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

    /// Flags that never become true.
    pub fn uncancelled() -> [&'a AtomicBool; CANCEL_FLAGS] {
        [&NEVER; CANCEL_FLAGS]
    }

    /// Blocks of the grid. Their linear index counts `x` fastest.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1, |blocks, &extent| blocks.saturating_mul(u64::from(extent)))
    }

    /// Threads of a block.
    pub fn threads_per_block(&self) -> u32 {
        self.block.iter().fold(1, |threads, &extent| threads.saturating_mul(extent))
    }

    /// Bytes that a block takes while it runs: registers, local and shared memory, and what compiled code keeps. Nested calls and `alloca` may take
    /// more, which the [budget](Launch::budget) is asked for.
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

    /// What the execution of any launch rests on. A device has limits of its own besides.
    fn validate(&self) -> Result<(), Box<Fault>> {
        let threads = self.threads_per_block();
        let reason = if threads == 0 || threads > MAX_THREADS {
            format!("a block of {threads} threads; it has 1 to {MAX_THREADS}")
        } else if (self.params.len() as u64) < self.kernel.param_bytes() {
            let (given, needed) = (self.params.len(), self.kernel.param_bytes());
            format!("{given} bytes of parameters; the kernel takes {needed}")
        } else if self.kernel.shared_bytes().checked_add(self.dynamic_shared).is_none() {
            format!("{} bytes of dynamic shared memory", self.dynamic_shared)
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
        }))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.iter().any(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// The compiled kernel, where it can serve this launch.
    pub(crate) fn machine_code(&self) -> Option<&'a dyn Compiled> {
        self.compiled.filter(|_| self.memory_map.is_none() && self.step_limit.is_none())
    }

    /// What compiled code needs of the launch and of the block at `index`, without its threads.
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

    /// Runs the blocks of a range of linear indexes, one after the other, each to its end.
    ///
    /// Several workers may do so at once with ranges that do not overlap. A block may wait for another one that started
    /// before it, so workers should take blocks in rising order.
    ///
    /// # Errors
    /// The first fault of a block; the blocks after it are not run.
    ///
    /// # Safety
    /// The kernel's loads, stores and atomics must be allowed to happen: every address that it computes in global or
    /// constant memory is either refused by the memory map of the launch, or valid for that access, and no other thread
    /// accesses that memory at the same time except by atomic operations (as other blocks of this launch do).
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

    /// Runs the blocks of a range in turns, so that they may wait for each other, as those of a cooperative launch do.
    ///
    /// Where several workers share such a launch, all their ranges must run at once.
    ///
    /// # Errors
    /// The first fault of a block; the others are left where they are.
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

/// The memory that blocks run in: registers, shared and local memory. A worker keeps one and runs block after block in it, so
/// that nothing is allocated for a block once the first has run.
#[derive(Default)]
pub struct Scratch {
    blocks: Vec<ThreadBlock>,
}

impl Scratch {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back what blocks took of the budget, and frees their memory where all in all that of a launch is more than `keep` bytes.
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
