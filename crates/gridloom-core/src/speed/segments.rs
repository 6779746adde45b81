//! A list that grows without moving its entries.
//!
//! The nodes of a graph are large, and a graph is built by adding one after the other. A growing
//! `Vec` would copy each node about once, into memory that nobody has touched yet. Here each
//! segment is twice as long as the previous one and stays in place.

use smallvec::SmallVec;

/// A list of segments. The first is `FIRST` long, a power of two.
#[derive(Clone)]
pub(crate) struct Segments<T, const FIRST: usize> {
    /// The full segments, each twice as long as the previous one.
    full: SmallVec<[Vec<T>; 2]>,
    /// The number of entries in the full segments.
    before: usize,
    /// The segment that grows. It holds most entries.
    last: Vec<T>,
}

impl<T, const FIRST: usize> Segments<T, FIRST> {
    /// Creates an empty list. `first` becomes the first segment. It comes from
    /// [`take_first`](Segments::take_first) or is an empty `Vec`.
    #[inline]
    pub(crate) fn with_first(first: Vec<T>) -> Self {
        debug_assert!(first.is_empty(), "memory alone");
        Segments { full: SmallVec::new(), before: 0, last: first }
    }

    /// Drops the entries of the first segment and returns its memory, if it has exactly the
    /// capacity of a first segment. The list must not be used afterwards.
    pub(crate) fn take_first(&mut self) -> Option<Vec<T>> {
        let mut first = std::mem::take(self.full.first_mut().unwrap_or(&mut self.last));
        first.clear();
        (first.capacity() == FIRST).then_some(first)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.before + self.last.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(self.before) {
            Some(place) => self.last.get(place),
            None => {
                let (segment, place) = place::<FIRST>(index);
                self.full.get(segment)?.get(place)
            }
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(self.before) {
            Some(place) => self.last.get_mut(place),
            None => {
                let (segment, place) = place::<FIRST>(index);
                self.full.get_mut(segment)?.get_mut(place)
            }
        }
    }

    /// Appends the result of `make`, built in place.
    #[inline]
    pub(crate) fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.last.len() == self.last.capacity() {
            self.make_room();
        }
        let len = self.last.len();
        self.last.spare_capacity_mut()[0].write(make());
        // SAFETY: there was room for one more entry, and it is now written.
        unsafe { self.last.set_len(len + 1) };
    }

    #[cold]
    fn make_room(&mut self) {
        let whole = FIRST << self.full.len();
        if self.last.len() < whole {
            // The first segment has no memory yet. The last segment of a clone may have less room
            // than the original.
            self.last.reserve_exact(whole - self.last.len());
        } else {
            debug_assert_eq!(self.last.len(), whole, "a segment has the room that was asked for");
            self.before += whole;
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(2 * whole)));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.full.iter().flatten().chain(&self.last)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.full.iter_mut().flatten().chain(&mut self.last)
    }
}

/// Returns the full segment of an entry and the entry's index in it.
#[inline]
fn place<const FIRST: usize>(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let segment = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (segment, shifted - (FIRST << segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_at_their_index_and_in_order_in_a_copy_too() {
        let mut list = Segments::<_, 4>::with_first(Vec::new());
        for value in 0..1000 {
            assert_eq!((list.len(), list.get(value)), (value, None));
            list.push_with(|| value);
        }
        let mut copy = list.clone();
        copy.push_with(|| 1000);
        *copy.get_mut(500).unwrap() += 1;
        assert!(list.iter().copied().eq(0..1000));
        assert!((0..1000).all(|index| list.get(index) == Some(&index)));
        assert_eq!((list.get(500), copy.get(500), copy.get(1000)), (Some(&500), Some(&501), Some(&1000)));
        assert_eq!(copy.get(usize::from(u16::MAX)), None);
    }

    #[test]
    fn a_list_grows_in_the_memory_of_the_first_segment_of_another() {
        for count in [1, 4, 5, 100] {
            let mut old = Segments::<_, 4>::with_first(Vec::new());
            (0..count).for_each(|value| old.push_with(|| std::rc::Rc::new(value)));
            let held = old.get(0).unwrap().clone();
            let at = std::ptr::from_ref(old.get(0).unwrap());
            let mut list = Segments::<_, 4>::with_first(old.take_first().expect("a whole one"));
            assert_eq!((list.len(), std::rc::Rc::strong_count(&held)), (0, 1));
            (0..100).for_each(|value| list.push_with(|| std::rc::Rc::new(value)));
            assert_eq!(std::ptr::from_ref(list.get(0).unwrap()), at);
            assert!(list.iter().map(|value| **value).eq(0..100));
        }
    }

    #[test]
    fn there_is_no_first_segment_to_take_where_nothing_was_added_or_a_copy_has_less_room() {
        let mut list = Segments::<u32, 4>::with_first(Vec::new());
        assert_eq!(list.take_first(), None);
        list.push_with(|| 1);
        assert_eq!(list.clone().take_first(), None);
    }

    #[test]
    fn entries_stay_where_they_are() {
        let mut list = Segments::<_, 4>::with_first(Vec::new());
        list.push_with(|| 0);
        let first = std::ptr::from_ref(list.get(0).unwrap());
        (1..100).for_each(|value| list.push_with(|| value));
        assert_eq!(std::ptr::from_ref(list.get(0).unwrap()), first);
    }
}
