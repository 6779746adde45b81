//! Typed keys into a definition, and the table they index.

use std::fmt;
use std::marker::PhantomData;

use crate::speed::Segments;

/// A key of an entry in a table of a definition. It holds the index of the entry, a generation that
/// tells it from earlier entries at the same index, and the number of the definition. A key of
/// another graph therefore never matches.
// Keys are created, passed and stored with every node. Index and generation are one number: reading
// as a whole what was just written in two parts stalls the processor. The type is packed so that a
// key and the kind of an edge fit into sixteen bytes.
#[repr(C, packed(4))]
pub struct Key<T> {
    /// The index in the low half and the generation in the high half.
    place: u64,
    owner: u32,
    kind: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    #[inline]
    fn new(index: u32, generation: u32, owner: u32) -> Self {
        Key { place: u64::from(index) | u64::from(generation) << 32, owner, kind: PhantomData }
    }

    /// Returns the index of the entry, for dense side tables.
    #[inline]
    pub fn index(self) -> usize {
        self.place as u32 as usize
    }

    /// Returns the key without the number of its definition.
    #[inline]
    pub(crate) fn local(self) -> LocalKey<T> {
        LocalKey { place: self.place, kind: PhantomData }
    }

    #[inline]
    fn generation(self) -> u32 {
        (self.place >> 32) as u32
    }
}

/// A key without the number of its definition, for handles that know the number.
pub(crate) struct LocalKey<T> {
    /// The index and the generation, as in [`Key`].
    place: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> LocalKey<T> {
    /// Returns the key of the same entry in the definition with this number.
    #[inline]
    pub(crate) fn of(self, owner: u32) -> Key<T> {
        Key { place: self.place, owner, kind: PhantomData }
    }
}

impl<T> Clone for LocalKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for LocalKey<T> {}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Key<T> {}
impl<T> PartialEq for Key<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.place == { other.place } && self.owner == other.owner
    }
}
impl<T> Eq for Key<T> {}
impl<T> std::hash::Hash for Key<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        { self.place }.hash(state);
        { self.owner }.hash(state);
    }
}
impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let parts = |key: &Self| (key.owner, key.index(), key.generation());
        parts(self).cmp(&parts(other))
    }
}
impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index())?;
        if self.generation() > 0 {
            write!(f, ".{}", self.generation())?;
        }
        Ok(())
    }
}

/// A slot of a table: an entry, or room for the next one.
#[derive(Clone)]
pub(crate) struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Entries under stable keys. Slots of removed entries are used again under a new generation. The
/// first block has room for `FEW` entries, a power of two.
#[derive(Clone)]
pub(crate) struct Table<T, const FEW: usize> {
    owner: u32,
    slots: Segments<Slot<T>, FEW>,
    free: Vec<u32>,
    /// Whether an entry was ever removed. If not, every slot has an entry of generation 0.
    has_removed: bool,
}

impl<T, const FEW: usize> Table<T, FEW> {
    /// Creates an empty table of the definition with this number.
    #[inline]
    pub(crate) fn new(owner: u32) -> Self {
        Table::with_memory(owner, Vec::new())
    }

    /// Creates an empty table in memory that [`take_memory`](Table::take_memory) returned.
    #[inline]
    pub(crate) fn with_memory(owner: u32, memory: Vec<Slot<T>>) -> Self {
        Table { owner, slots: Segments::with_first(memory), free: Vec::new(), has_removed: false }
    }

    /// Empties the first block of the table and returns it, for use by another table.
    pub(crate) fn take_memory(&mut self) -> Option<Vec<Slot<T>>> {
        self.slots.take_first()
    }

    fn key(&self, index: u32, generation: u32) -> Key<T> {
        Key::new(index, generation, self.owner)
    }

    /// Returns the number of the definition that the table belongs to.
    #[inline]
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Moves the table to another definition. Keys from before no longer match.
    pub(crate) fn set_owner(&mut self, owner: u32) {
        self.owner = owner;
    }

    /// Returns a key that never has an entry.
    pub(crate) fn nowhere(&self) -> Key<T> {
        self.key(u32::MAX, u32::MAX)
    }

    /// Returns whether the key was made by this table or a copy of it.
    pub(crate) fn owns(&self, key: Key<T>) -> bool {
        key.owner == self.owner
    }

    /// Returns the key that the next [`insert`](Table::insert) will return.
    #[inline]
    pub(crate) fn next_key(&self) -> Key<T> {
        match self.free.last() {
            None => self.key(self.slots.len() as u32, 0),
            Some(&index) => self.key_again(index),
        }
    }

    /// Returns the key of the next entry in a slot that was used before.
    #[cold]
    fn key_again(&self, index: u32) -> Key<T> {
        let slot = self.slots.get(index as usize).expect("a place that was used");
        self.key(index, slot.generation)
    }

    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        let key = self.next_key();
        self.insert_next(key, || value);
        key
    }

    /// Adds an entry under the next key. `make` builds it in its final place.
    #[inline]
    pub(crate) fn insert_next(&mut self, key: Key<T>, make: impl FnOnce() -> T) {
        if key.index() == self.slots.len() {
            self.slots.push_with(|| Slot { generation: 0, value: Some(make()) });
        } else {
            self.free.pop();
            self.slots.get_mut(key.index()).expect("a place that was used").value = Some(make());
        }
    }

    pub(crate) fn remove(&mut self, key: Key<T>) -> Option<T> {
        let owns = self.owns(key);
        let slot =
            self.slots.get_mut(key.index()).filter(|slot| owns && slot.generation == key.generation())?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.has_removed = true;
        self.free.push(key.index() as u32);
        Some(value)
    }

    #[inline]
    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        let slot = self.slots.get(key.index())?;
        if slot.generation != key.generation() || !self.owns(key) {
            return None;
        }
        slot.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        let owns = self.owns(key);
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation != key.generation() || !owns {
            return None;
        }
        slot.value.as_mut()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key<T>, &mut T)> {
        let owner = self.owner;
        self.slots.iter_mut().enumerate().filter_map(move |(index, slot)| {
            let key = Key::new(index as u32, slot.generation, owner);
            slot.value.as_mut().map(|value| (key, value))
        })
    }

    /// Returns one past the largest index in use: the size of a dense side table.
    pub(crate) fn bound(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let key = self.key(index as u32, slot.generation);
            slot.value.as_ref().map(|value| (key, value))
        })
    }
}

/// The keys that a table had at one moment, for owners that never add or remove an entry.
pub(crate) struct Keys<T> {
    owner: u32,
    /// The number of slots.
    bound: usize,
    /// The generation of the entry in each slot. `None` if every slot has an entry of generation 0.
    generations: Option<Box<[Option<u32>]>>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Keys<T> {
    pub(crate) fn of<const FEW: usize>(table: &Table<T, FEW>) -> Self {
        let generations = table.has_removed.then(|| {
            table.slots.iter().map(|slot| slot.value.is_some().then_some(slot.generation)).collect()
        });
        Keys { owner: table.owner, bound: table.bound(), generations, kind: PhantomData }
    }

    /// Returns the key of the same slot in this table, for a key of a copy of the table.
    pub(crate) fn renumbered(&self, key: Key<T>) -> Key<T> {
        key.local().of(self.owner)
    }

    /// Returns whether there was an entry under this key.
    #[inline]
    pub(crate) fn contains(&self, key: Key<T>) -> bool {
        let is_there = match &self.generations {
            None => key.generation() == 0 && key.index() < self.bound,
            Some(generations) => generations.get(key.index()) == Some(&Some(key.generation())),
        };
        is_there && key.owner == self.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_table_that_lost_nothing_are_all_it_had_then() {
        let mut table = Table::<_, 1>::new(1);
        let had = [table.insert("one"), table.insert("two")];
        let keys = Keys::of(&table);
        let late = table.insert("late");
        table.remove(had[1]);
        let again = table.insert("again");
        assert_eq!([had[0], had[1], late, again].map(|key| keys.contains(key)), [true, true, false, false]);
        assert!(!keys.contains(Table::<_, 1>::new(2).insert("elsewhere")));
    }

    #[test]
    fn the_keys_of_a_moment_leave_out_what_was_removed_before_and_added_later() {
        let mut table = Table::<_, 1>::new(1);
        let (stays, goes) = (table.insert("stays"), table.insert("goes"));
        table.remove(goes);
        let keys = Keys::of(&table);
        let (comes, late) = (table.insert("comes"), table.insert("late"));
        assert_eq!([stays, goes, comes, late].map(|key| keys.contains(key)), [true, false, false, false]);
        assert!(!keys.contains(Table::<_, 1>::new(2).insert("elsewhere")));
    }

    #[test]
    fn a_key_of_a_removed_entry_does_not_find_its_successor() {
        let mut table = Table::<_, 1>::new(1);
        let old = table.insert("old");
        assert_eq!(table.remove(old), Some("old"));
        let new = table.insert("new");
        assert_eq!(old.index(), new.index());
        assert_eq!(table.get(old), None);
        assert_eq!(table.get(new), Some(&"new"));
        assert_eq!(table.remove(old), None);
    }

    #[test]
    fn a_key_of_another_table_finds_nothing() {
        let (mut ours, mut theirs) = (Table::<_, 1>::new(1), Table::<_, 1>::new(2));
        let (our_key, their_key) = (ours.insert("ours"), theirs.insert("theirs"));
        assert_ne!(our_key, their_key);
        assert_eq!(ours.get(their_key), None);
        assert_eq!(ours.remove(their_key), None);
        assert!(ours.owns(our_key) && !ours.owns(their_key));
    }

    #[test]
    fn the_next_key_is_the_one_that_insert_returns() {
        let mut table = Table::<_, 1>::new(1);
        let (a, b) = (table.insert(0), table.insert(1));
        table.remove(a);
        let next = table.next_key();
        assert_eq!(table.insert(2), next);
        let next = table.next_key();
        assert_eq!(table.insert(3), next);
        assert_eq!(table.get(b), Some(&1));
    }
}
