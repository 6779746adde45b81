//! The heap behind `malloc` and `free` in kernels.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::budget::Budget;

/// The alignment of every allocation, as in CUDA's device heap.
const ALIGN: usize = 16;

/// A bounded heap that kernels allocate from. Like CUDA's device heap it outlives a launch: a later
/// kernel may free what an earlier one allocated. Dropping it frees everything.
pub struct Heap {
    limit: u64,
    /// The budget that every allocation is also taken from.
    budget: Option<Arc<dyn Budget>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    /// The allocations by address. Each is an array of 16-byte cells, and therefore aligned and
    /// initialised to zero.
    live: BTreeMap<u64, Box<[Cell]>>,
}

/// A cell of sixteen bytes, aligned to its size.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Cell(
    #[allow(dead_code, reason = "only its size and alignment matter; kernels access it by address")]
    [u8; ALIGN],
);

impl Heap {
    /// Creates a heap with at most `limit` bytes in live allocations. CUDA's default is 8 MiB.
    pub fn new(limit: u64) -> Self {
        Self { limit, budget: None, state: Mutex::default() }
    }

    /// Takes all allocations from a budget too.
    pub fn with_budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Allocates `size` bytes and returns their address. Returns 0 if `size` is 0 or the heap has
    /// no room.
    pub fn allocate(&self, size: u64) -> u64 {
        let Some(cells) = size.checked_add(ALIGN as u64 - 1).map(|padded| padded / ALIGN as u64) else {
            return 0;
        };
        let bytes = cells * ALIGN as u64;
        let mut state = self.state.lock();
        if size == 0 || state.used.checked_add(bytes).is_none_or(|used| used > self.limit) {
            return 0;
        }
        if self.budget.as_ref().is_some_and(|budget| !budget.take(bytes)) {
            return 0;
        }
        let memory = vec![Cell::default(); cells as usize].into_boxed_slice();
        let address = memory.as_ptr() as u64;
        state.used += bytes;
        state.live.insert(address, memory);
        address
    }

    /// Frees an allocation. Returns `false` if the address is not that of a live one.
    #[must_use]
    pub fn free(&self, address: u64) -> bool {
        let mut state = self.state.lock();
        let Some(memory) = state.live.remove(&address) else { return false };
        let bytes = (memory.len() * ALIGN) as u64;
        state.used -= bytes;
        drop((memory, state));
        if let Some(budget) = &self.budget {
            budget.give_back(bytes);
        }
        true
    }

    /// Returns whether `[address, address + size)` lies inside one live allocation.
    pub fn contains(&self, address: u64, size: u64) -> bool {
        let state = self.state.lock();
        state.live.range(..=address).next_back().is_some_and(|(start, memory)| {
            let length = (memory.len() * ALIGN) as u64;
            address - start < length && size <= length - (address - start)
        })
    }

    /// Returns how many bytes live allocations have.
    pub fn used(&self) -> u64 {
        self.state.lock().used
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give_back(self.state.get_mut().used);
        }
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap({} of {} bytes)", self.used(), self.limit)
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new(8 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_aligned_and_known_until_freed() {
        let heap = Heap::default();
        let a = heap.allocate(100);
        assert_eq!(a % 16, 0);
        assert!(heap.contains(a, 100) && heap.contains(a + 96, 4));
        assert!(!heap.contains(a, 113), "past the last cell");
        assert!(heap.free(a));
        assert!(!heap.contains(a, 1));
        assert!(!heap.free(a), "freed twice");
        assert_eq!(heap.used(), 0);
    }

    #[test]
    fn a_full_heap_returns_null_and_recovers_after_free() {
        let heap = Heap::new(64);
        let a = heap.allocate(48);
        assert_ne!(a, 0);
        assert_eq!(heap.allocate(32), 0);
        assert_eq!(heap.allocate(u64::MAX), 0);
        assert_eq!(heap.allocate(0), 0);
        assert!(heap.free(a));
        assert_ne!(heap.allocate(64), 0);
    }
}
