//! One block of host threads.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use super::meeting::Meeting;
use super::{Size, ThreadPosition, as_thread, indices, position};

/// The threads of a warp.
pub(crate) const WARP: usize = 32;

/// What the threads of a block share.
struct HostBlock {
    all: Meeting,
    warps: Vec<Meeting>,
    /// The shared memory, in the order in which every thread asks for it.
    memory: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    dynamic_bytes: usize,
}

thread_local! {
    /// The block of this thread, and its place there.
    static BLOCK: RefCell<Option<(Arc<HostBlock>, ThreadPosition)>> = const { RefCell::new(None) };
    /// How many pieces of shared memory this thread has asked for.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// Returns the block of this thread. The only thread of a launch has a block of its own.
///
/// # Panics
/// When a thread of a block acts as another one, whose part in the block it would take.
fn block() -> Option<Arc<HostBlock>> {
    let place = position();
    let Some((block, own)) = BLOCK.with_borrow(Clone::clone) else {
        assert!(
            place.block_size == [1; 3],
            "the threads of this block run one after the other and cannot wait for each other: use `host::run_blocks`"
        );
        return None;
    };
    assert!(own == place, "a thread of a block acts as another thread and cannot wait for the others");
    Some(block)
}

/// Waits for all threads of the block.
pub(crate) fn barrier(reason: &'static str) {
    if let Some(block) = block() {
        block.all.wait(reason);
    }
}

/// Gives what every thread of the block brings.
pub(crate) fn exchange_in_block(reason: &'static str, bits: u64) -> Vec<u64> {
    match block() {
        Some(block) => block.all.exchange(reason, position().rank(), bits),
        None => vec![bits],
    }
}

/// Gives what every thread of the warp brings, and which of them this one is.
pub(crate) fn exchange_in_warp(reason: &'static str, bits: u64) -> (Vec<u64>, usize) {
    let rank = position().rank();
    match block() {
        Some(block) => (block.warps[rank / WARP].exchange(reason, rank % WARP, bits), rank % WARP),
        None => (vec![bits], 0),
    }
}

/// Returns the shared memory that all threads of the block ask for with this call. The first makes
/// it.
///
/// # Panics
/// When the threads ask for different memory.
pub(crate) fn shared<M: Any + Send + Sync>(make: impl FnOnce() -> M) -> Arc<M> {
    let Some(block) = block() else { return Arc::new(make()) };
    let index = ASKED.replace(ASKED.get() + 1);
    let mut memory = block.memory.lock();
    if memory.len() == index {
        memory.push(Arc::new(make()));
    }
    let found = memory[index].clone();
    drop(memory);
    found.downcast().unwrap_or_else(|_| panic!("the threads of a block ask for different shared memory"))
}

/// Returns the bytes of dynamic shared memory of the launch.
pub(crate) fn dynamic_bytes() -> usize {
    block().map_or(0, |block| block.dynamic_bytes)
}

/// Calls `thread` as every thread of a launch. Blocks run one after the other, the threads of a
/// block at the same time.
///
/// Kernels in which threads wait for each other (`block::sync`, the functions of `warp`) need it.
/// What they write comes from [`Memory`](super::Memory):
///
/// ```
/// use gridloom_kernel::{Out, block, host, thread};
///
/// fn reverse(x: &[u32], out: Out<u32>) {
///     let mut tile = block::shared::<u32, 4>(0);
///     if let Some(slot) = tile.mine() {
///         *slot = x[thread::index()];
///     }
///     let tile = block::sync(tile);
///     if let Some((_, out)) = out.mine() {
///         *out = tile[3 - thread::x() as usize];
///     }
/// }
///
/// let mut result = [0; 8];
/// let out = host::Memory::new(&mut result);
/// host::run_blocks(2, 4, || reverse(&[1, 2, 3, 4, 5, 6, 7, 8], out.out()));
/// assert_eq!(result, [4, 3, 2, 1, 8, 7, 6, 5]);
/// ```
///
/// # Panics
/// When a thread does, and when threads of a block wait for one that does not come.
pub fn run_blocks(grid: impl Into<Size>, block: impl Into<Size>, thread: impl Fn() + Sync) {
    run_blocks_with(grid, block, 0, thread);
}

/// Calls `thread` as [`run_blocks`] does, with so many bytes of dynamic shared memory.
///
/// # Panics
/// As [`run_blocks`].
pub fn run_blocks_with(
    grid: impl Into<Size>,
    block: impl Into<Size>,
    dynamic_bytes: usize,
    thread: impl Fn() + Sync,
) {
    let (Size(grid_size), Size(block_size)) = (grid.into(), block.into());
    let count: usize = block_size.iter().map(|&size| size as usize).product();
    for block in indices(grid_size) {
        let warp_size = |warp: usize| (count - warp * WARP).min(WARP);
        let shared = Arc::new(HostBlock {
            all: Meeting::new(count),
            warps: (0..count.div_ceil(WARP)).map(|warp| Meeting::new(warp_size(warp))).collect(),
            memory: Mutex::default(),
            dynamic_bytes,
        });
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for index in indices(block_size) {
                let (shared, failures, thread) = (shared.clone(), &failures, &thread);
                scope.spawn(move || {
                    let place = ThreadPosition { block, thread: index, block_size, grid_size };
                    BLOCK.set(Some((shared.clone(), place)));
                    let ended = catch_unwind(AssertUnwindSafe(|| as_thread(place, thread)));
                    // The first to fail is why others do.
                    if let Err(panic) = ended {
                        failures.lock().push(panic);
                    }
                    shared.all.end();
                    shared.warps[place.rank() / WARP].end();
                });
            }
        });
        if let Some(panic) = failures.into_inner().into_iter().next() {
            resume_unwind(panic);
        }
    }
}
