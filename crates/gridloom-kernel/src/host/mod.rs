//! Calling kernels on the host, as the plain functions that they are.
//!
//! A kernel asks which thread of a launch it is. [`run`] calls it as each of them, one after the
//! other. [`run_blocks`] runs the threads of a block at the same time, for kernels in which they
//! wait for each other.
//!
//! ```
//! use gridloom_kernel::{host, thread};
//!
//! let mut seen = Vec::new();
//! host::run(2, 3, || seen.push(thread::index()));
//! assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
//! ```

mod block;
mod meeting;
mod memory;

use std::cell::Cell;

pub(crate) use block::{WARP, barrier, dynamic_bytes, exchange_in_block, exchange_in_warp, shared};
pub use block::{run_blocks, run_blocks_with};
pub(crate) use memory::Division;
pub use memory::Memory;

/// The position of a thread in a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadPosition {
    /// The block.
    pub block: [u32; 3],
    /// The thread in the block.
    pub thread: [u32; 3],
    /// The threads of each block.
    pub block_size: [u32; 3],
    /// The blocks of the launch.
    pub grid_size: [u32; 3],
}

impl ThreadPosition {
    /// The only thread of a launch.
    pub const ONLY: ThreadPosition =
        ThreadPosition { block: [0; 3], thread: [0; 3], block_size: [1; 3], grid_size: [1; 3] };

    /// Returns the number of the thread in its block, counted along the first axis, then the
    /// second, then the third.
    pub fn rank(&self) -> usize {
        let [x, y, z] = self.thread.map(|index| index as usize);
        let [width, height, _] = self.block_size.map(|size| size as usize);
        (z * height + y) * width + x
    }

    /// Returns how many threads each block has.
    pub fn threads(&self) -> usize {
        self.block_size.iter().map(|&size| size as usize).product()
    }

    /// Returns how many blocks the launch has.
    pub fn blocks(&self) -> usize {
        self.grid_size.iter().map(|&size| size as usize).product()
    }

    /// Returns the number of the block in the launch, counted along the first axis, then the
    /// second, then the third.
    pub fn block_rank(&self) -> usize {
        let [x, y, z] = self.block.map(|index| index as usize);
        let [width, height, _] = self.grid_size.map(|size| size as usize);
        (z * height + y) * width + x
    }

    /// Returns whether a launch of this shape has such a thread, and can number its blocks and
    /// threads.
    fn exists(&self) -> bool {
        let is_within = |at: [u32; 3], size: [u32; 3]| (0..3).all(|axis| at[axis] < size[axis]);
        let has_number = |size: [u32; 3]| {
            size.iter().try_fold(1usize, |count, &size| count.checked_mul(size as usize)).is_some()
        };
        is_within(self.thread, self.block_size)
            && is_within(self.block, self.grid_size)
            && has_number(self.block_size)
            && has_number(self.grid_size)
    }

    /// Returns the index among all threads of the launch along an axis.
    pub fn global(&self, axis: usize) -> usize {
        self.block[axis] as usize * self.block_size[axis] as usize + self.thread[axis] as usize
    }
}

thread_local! {
    static POSITION: Cell<ThreadPosition> = const { Cell::new(ThreadPosition::ONLY) };
}

/// Returns which thread of a launch is being run. Outside of [`run`] it is the only one of a
/// launch.
pub fn position() -> ThreadPosition {
    POSITION.get()
}

/// Calls `thread` as one thread of a launch.
///
/// # Panics
/// When a launch of that shape has no such thread.
pub fn as_thread<T>(place: ThreadPosition, thread: impl FnOnce() -> T) -> T {
    /// Restores the earlier position, also when the thread panics.
    struct Back(ThreadPosition);
    impl Drop for Back {
        fn drop(&mut self) {
            POSITION.set(self.0);
        }
    }
    // Memory is divided by these numbers: two threads would own one element.
    assert!(place.exists(), "a launch of this shape has no such thread: {place:?}");
    let _back = Back(POSITION.replace(place));
    thread()
}

/// The size of a grid or block: one number, or up to three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub [u32; 3]);

impl From<u32> for Size {
    fn from(x: u32) -> Self {
        Size([x, 1, 1])
    }
}
impl From<(u32, u32)> for Size {
    fn from((x, y): (u32, u32)) -> Self {
        Size([x, y, 1])
    }
}
impl From<(u32, u32, u32)> for Size {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Size([x, y, z])
    }
}

/// Calls `thread` as every thread of a launch of so many blocks of so many threads, one after the
/// other.
pub fn run(grid: impl Into<Size>, block: impl Into<Size>, mut thread: impl FnMut()) {
    let (Size(grid_size), Size(block_size)) = (grid.into(), block.into());
    for block in indices(grid_size) {
        for index in indices(block_size) {
            as_thread(ThreadPosition { block, thread: index, block_size, grid_size }, &mut thread);
        }
    }
}

fn indices(size: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..size[2]).flat_map(move |z| (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| [x, y, z])))
}
