//! Host memory that the threads of a block write.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::{ThreadPosition, position};
use crate::Out;

/// Host memory for an [`Out`] parameter of a kernel whose threads run at the same time.
///
/// Each thread of [`run_blocks`](super::run_blocks) asks for its [`Out`] once.
///
/// Its elements can be shared between threads, because the threads of a block read elements of each
/// other:
///
/// ```compile_fail,E0277
/// use std::cell::Cell;
///
/// use gridloom_kernel::host;
///
/// let mut cells = [Cell::new(0), Cell::new(0)];
/// let memory = host::Memory::new(&mut cells);
/// host::run_blocks(1, 2, || drop(memory.out().tile(2).map(gridloom_kernel::block::sync)));
/// ```
pub struct Memory<'a, T> {
    elements: *mut [T],
    division: Division,
    lifetime: std::marker::PhantomData<&'a mut [T]>,
}

/// How memory was divided so far, and by whom.
#[derive(Default)]
pub(crate) struct Division {
    state: Mutex<(HashSet<ThreadPosition>, Option<(&'static str, usize)>)>,
    /// The shape of the launch that it is for.
    launch: Mutex<Option<([u32; 3], [u32; 3])>>,
    height: Mutex<Option<usize>>,
}

impl Division {
    /// Notes how many rows a plane has.
    ///
    /// # Panics
    /// When it had another number before.
    pub(crate) fn claim_height(&self, height: usize) {
        let known = *self.height.lock().get_or_insert(height);
        assert_eq!(known, height, "an `Out` is divided in two ways: threads would own each other's elements");
    }

    /// Notes that the memory is divided in this way.
    ///
    /// # Panics
    /// When it was divided in another way: threads would own each other's elements.
    pub(crate) fn claim(&self, way: &'static str, size: usize) {
        let known = *self.state.lock().1.get_or_insert((way, size));
        assert_eq!(
            known,
            (way, size),
            "an `Out` is divided in two ways: threads would own each other's elements"
        );
    }
}

// SAFETY: threads get at elements through `out` alone, which gives each place of a launch its own
// elements, once. The threads of a block also read elements of each other (`Out::tile`), hence
// `T: Sync`.
unsafe impl<T: Send + Sync> Sync for Memory<'_, T> {}
// SAFETY: it is a mutable borrow of the elements.
unsafe impl<T: Send> Send for Memory<'_, T> {}

impl<'a, T> Memory<'a, T> {
    /// Makes host memory what the threads of a launch are given.
    pub fn new(elements: &'a mut [T]) -> Self {
        Memory { elements, division: Division::default(), lifetime: std::marker::PhantomData }
    }

    /// Returns what this thread is given.
    ///
    /// # Panics
    /// When the thread at this place of a launch has asked before, or a launch of another shape
    /// has. A further launch takes another `Memory`.
    pub fn out(&self) -> Out<'_, T> {
        let place = position();
        let shape = (place.grid_size, place.block_size);
        let known = *self.division.launch.lock().get_or_insert(shape);
        assert_eq!(known, shape, "the memory is that of another launch");
        let is_first = self.division.state.lock().0.insert(place);
        assert!(is_first, "a thread asks for its part of the same memory twice");
        // SAFETY: the elements are borrowed for as long as `self` is, and each place of one launch
        // is given its `Out` once, whichever place the caller takes later. An `Out` leads to the
        // elements of its place alone, which no other place has while all divide the memory in the
        // same way, and `division` checks that. `as_thread` lets in places of the launch alone.
        unsafe { Out::shared(self.elements, &self.division, place) }
    }
}
