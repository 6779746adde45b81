//! The memory that kernel arguments refer to, with each allocation held once.
//!
//! Many arguments refer to the same few allocations. A reference count for each argument would cost
//! two atomic operations per change. The pool counts uses with plain numbers, under the lock of the
//! executable.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::backend::Allocation;

/// An allocation in a [`MemoryPool`].
pub(super) type PoolEntry = u32;

struct Entry {
    /// `None` if the entry is free.
    allocation: Option<Arc<dyn Allocation>>,
    uses: u32,
    address: u64,
    outlives: bool,
}

/// Up to this many entries are searched linearly, which is faster than a hash lookup.
const FEW: usize = 16;

/// Allocations, and the number of arguments that refer to each.
#[derive(Default)]
pub(super) struct MemoryPool {
    entries: Vec<Entry>,
    free: Vec<PoolEntry>,
    /// The address of each entry's allocation object in host memory, or 0, by entry.
    places: Vec<usize>,
    /// Entries by the address of the allocation object, once there are more than [`FEW`].
    found: FxHashMap<usize, PoolEntry>,
    /// The entry that was found last. One allocation is often given to many kernels in a row.
    latest: Option<(usize, PoolEntry)>,
    /// Entries that lost their last use. They may have gained another one since.
    unused: Vec<PoolEntry>,
    /// Whether an allocation is, or was, memory that another executable left.
    holds_outliving: bool,
}

impl MemoryPool {
    /// Adds a use of an allocation.
    #[inline]
    pub(super) fn add_use(&mut self, allocation: &Arc<dyn Allocation>) -> PoolEntry {
        let place = Arc::as_ptr(allocation).cast::<()>().addr();
        let entry = match self.latest {
            Some((latest, entry)) if latest == place => entry,
            _ => self.find(place, allocation),
        };
        self.entries[entry as usize].uses += 1;
        entry
    }

    fn find(&mut self, place: usize, allocation: &Arc<dyn Allocation>) -> PoolEntry {
        let entry = if self.places.len() <= FEW {
            self.places.iter().position(|known| *known == place).map(|entry| entry as PoolEntry)
        } else {
            self.found.get(&place).copied()
        };
        let entry = entry.unwrap_or_else(|| self.insert(place, allocation));
        self.latest = Some((place, entry));
        entry
    }

    fn insert(&mut self, place: usize, allocation: &Arc<dyn Allocation>) -> PoolEntry {
        let new = Entry {
            allocation: Some(Arc::clone(allocation)),
            uses: 0,
            address: allocation.address(),
            outlives: allocation.outliving().is_some(),
        };
        self.holds_outliving |= new.outlives;
        let entry = match self.free.pop() {
            Some(entry) => {
                (self.entries[entry as usize], self.places[entry as usize]) = (new, place);
                entry
            }
            None => {
                self.entries.push(new);
                self.places.push(place);
                self.entries.len() as PoolEntry - 1
            }
        };
        match self.places.len() {
            // Too many for a linear search from here on.
            count if count == FEW + 1 && self.found.is_empty() => {
                let taken = self.places.iter().zip(0..).filter(|(place, _)| **place != 0);
                self.found.extend(taken.map(|(place, entry)| (*place, entry)));
            }
            count if count > FEW => drop(self.found.insert(place, entry)),
            _ => {}
        }
        entry
    }

    /// Removes a use. The allocation stays until [`take_unused`](MemoryPool::take_unused).
    #[inline]
    pub(super) fn remove_use(&mut self, entry: PoolEntry) {
        let uses = &mut self.entries[entry as usize].uses;
        *uses -= 1;
        if *uses == 0 {
            self.unused.push(entry);
        }
    }

    /// Moves unused allocations into `into`. The caller drops them outside of any lock.
    #[inline]
    pub(super) fn take_unused(&mut self, into: &mut SmallVec<[Arc<dyn Allocation>; 4]>) {
        if !self.unused.is_empty() {
            self.remove_unused(into);
        }
    }

    fn remove_unused(&mut self, into: &mut SmallVec<[Arc<dyn Allocation>; 4]>) {
        for number in self.unused.drain(..) {
            let entry = &mut self.entries[number as usize];
            if entry.uses == 0
                && let Some(allocation) = entry.allocation.take()
            {
                let place = std::mem::take(&mut self.places[number as usize]);
                if self.places.len() > FEW {
                    self.found.remove(&place);
                }
                self.free.push(number);
                into.push(allocation);
            }
        }
        self.latest = None;
    }

    /// Returns the device address of an allocation.
    #[inline]
    pub(super) fn address(&self, entry: PoolEntry) -> u64 {
        self.entries[entry as usize].address
    }

    /// Returns whether the pool holds, or ever held, memory that can be freed while arguments refer
    /// to it.
    #[inline]
    pub(super) fn holds_outliving(&self) -> bool {
        self.holds_outliving
    }

    /// Returns whether an allocation can be freed while arguments refer to it.
    #[inline]
    pub(super) fn outlives(&self, entry: PoolEntry) -> bool {
        self.entries[entry as usize].outlives
    }

    /// Returns the allocation of an entry that is in use.
    pub(super) fn allocation(&self, entry: PoolEntry) -> &Arc<dyn Allocation> {
        self.entries[entry as usize].allocation.as_ref().expect("an entry that is in use has its allocation")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryKind;
    use crate::null::NullDevice;

    fn unused(pool: &mut MemoryPool) -> usize {
        let mut taken = SmallVec::new();
        pool.take_unused(&mut taken);
        taken.len()
    }

    #[test]
    fn an_allocation_is_held_once_and_until_its_last_use_goes() {
        let device = NullDevice::new();
        let [one, other] = [0, 1].map(|_| device.allocate(8, MemoryKind::Device).unwrap());
        let mut pool = MemoryPool::default();
        let entry = pool.add_use(&one);
        assert_ne!(pool.add_use(&other), entry);
        assert_eq!(pool.add_use(&one), entry);
        assert_eq!(Arc::strong_count(&one), 2);
        pool.remove_use(entry);
        assert_eq!(unused(&mut pool), 0);
        pool.remove_use(entry);
        assert_eq!((unused(&mut pool), Arc::strong_count(&one)), (1, 1));
    }

    #[test]
    fn an_allocation_that_is_used_again_in_time_stays() {
        let device = NullDevice::new();
        let memory = device.allocate(8, MemoryKind::Device).unwrap();
        let mut pool = MemoryPool::default();
        let entry = pool.add_use(&memory);
        pool.remove_use(entry);
        assert_eq!(pool.add_use(&memory), entry);
        assert_eq!(unused(&mut pool), 0);
        assert!(Arc::ptr_eq(pool.allocation(entry), &memory));
        pool.remove_use(entry);
        assert_eq!(pool.add_use(&memory), entry);
        pool.remove_use(entry);
        assert_eq!(unused(&mut pool), 1);
    }

    #[test]
    fn allocations_are_found_again_however_many_there_are() {
        let device = NullDevice::new();
        for count in [1, FEW - 1, FEW, FEW + 1, FEW + 2, 5 * FEW] {
            let memory: Vec<_> =
                (0..count).map(|_| device.allocate(8, MemoryKind::Device).unwrap()).collect();
            let mut pool = MemoryPool::default();
            for _ in 0..3 {
                let entries: Vec<_> = memory.iter().map(|memory| pool.add_use(memory)).collect();
                for (memory, &entry) in memory.iter().zip(&entries).rev() {
                    assert_eq!(pool.add_use(memory), entry);
                    assert!(Arc::ptr_eq(pool.allocation(entry), memory));
                    pool.remove_use(entry);
                }
                // Every other one goes, and comes back at some place.
                entries.iter().step_by(2).for_each(|&entry| pool.remove_use(entry));
                assert_eq!(unused(&mut pool), count.div_ceil(2));
                let again: Vec<_> = memory.iter().step_by(2).map(|memory| pool.add_use(memory)).collect();
                entries.iter().skip(1).step_by(2).for_each(|&entry| pool.remove_use(entry));
                again.into_iter().for_each(|entry| pool.remove_use(entry));
                assert_eq!(unused(&mut pool), count);
            }
            assert!(memory.iter().all(|memory| Arc::strong_count(memory) == 1));
        }
    }

    #[test]
    fn a_free_entry_is_used_for_another_allocation() {
        let device = NullDevice::new();
        let [one, other] = [0, 1].map(|_| device.allocate(8, MemoryKind::Device).unwrap());
        let mut pool = MemoryPool::default();
        let entry = pool.add_use(&one);
        pool.remove_use(entry);
        assert_eq!(unused(&mut pool), 1);
        assert_eq!(pool.add_use(&other), entry);
        assert_eq!(pool.address(entry), other.address());
        assert_ne!(pool.add_use(&one), entry);
    }
}
