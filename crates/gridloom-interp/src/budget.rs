//! The budget for memory that running kernels use: registers, stacks, shared and local memory.
//!
//! What a block needs at its start is known before the launch
//! ([`Launch::block_bytes`](super::Launch::block_bytes)), and the caller of the launch accounts for
//! it. Nested calls and `alloca` ask the budget before they allocate more.

/// A limit on memory.
pub trait Budget: Send + Sync {
    /// Takes bytes from the budget. Returns `false` if there are not enough.
    #[must_use]
    fn take(&self, bytes: u64) -> bool;

    /// Returns bytes to the budget.
    fn give_back(&self, bytes: u64);
}

/// Returns how many bytes a vector will grow by to hold `length` elements. It grows in one step
/// that leaves some room. Returns 0 if it has the room already.
pub(crate) fn growth<T>(vector: &Vec<T>, length: usize) -> u64 {
    match vector.capacity() {
        capacity if length <= capacity => 0,
        capacity => ((length.max(2 * capacity) - capacity) * size_of::<T>()) as u64,
    }
}

/// Grows a vector to hold `length` elements, by the bytes that [`growth`] returns.
pub(crate) fn grow<T>(vector: &mut Vec<T>, length: usize) {
    let capacity = vector.capacity();
    if length > capacity {
        vector.reserve_exact(length.max(2 * capacity) - vector.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_grows_by_what_was_said_before() {
        let mut vector: Vec<u32> = Vec::new();
        for length in [0, 3, 3, 4, 5, 100, 101] {
            let (before, said) = (vector.capacity(), growth(&vector, length));
            grow(&mut vector, length);
            assert_eq!((vector.capacity() - before) as u64 * 4, said);
            vector.resize(length.max(vector.len()), 0);
        }
    }
}
