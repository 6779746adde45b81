//! The memory that running kernels take for themselves: registers, stacks, shared and local memory.
//!
//! What blocks take from the start is known before a launch ([`Launch::block_bytes`](super::Launch::block_bytes)), and whoever launches sees to it.
//! What nested calls and `alloca` add is asked for here, before it is allocated.

/// Says whether there is memory left.
pub trait Budget: Send + Sync {
    /// Takes bytes, or says that there are not so many.
    #[must_use]
    fn take(&self, bytes: u64) -> bool;

    /// Gives bytes back that were taken.
    fn give_back(&self, bytes: u64);
}

/// The bytes by which a vector will have grown when it has `length` elements, in one step that leaves some room: what its next allocation takes.
/// 0 where it has the room already.
pub(crate) fn growth<T>(vector: &Vec<T>, length: usize) -> u64 {
    match vector.capacity() {
        capacity if length <= capacity => 0,
        capacity => ((length.max(2 * capacity) - capacity) * size_of::<T>()) as u64,
    }
}

/// Makes room for `length` elements, by as many bytes as [`growth`] says.
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
