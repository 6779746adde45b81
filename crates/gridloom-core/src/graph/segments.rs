//! A list that grows without moving what is in it.
//!
//! The nodes of a graph are large, and a graph is built by adding one after the other: a `Vec` would copy each of them about once more, into
//! memory that nobody has touched yet. Here each segment is twice as long as the one before, and stays where it is.

use smallvec::SmallVec;

/// Such a list whose first segment is `FIRST` long, a power of two.
#[derive(Clone)]
pub(crate) struct Segments<T, const FIRST: usize> {
    /// Those that are full, each twice as long as the one before.
    full: SmallVec<[Vec<T>; 2]>,
    /// The entries of the full ones.
    before: usize,
    /// The one that grows, which most entries are in.
    last: Vec<T>,
}

impl<T, const FIRST: usize> Segments<T, FIRST> {
    pub(crate) fn new() -> Self {
        Segments { full: SmallVec::new(), before: 0, last: Vec::new() }
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

    /// Adds what `make` makes, right where it stays.
    #[inline]
    pub(crate) fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.last.len() == self.last.capacity() {
            self.make_room();
        }
        let len = self.last.len();
        self.last.spare_capacity_mut()[0].write(make());
        // SAFETY: there was room for one more, which is written now.
        unsafe { self.last.set_len(len + 1) };
    }

    #[cold]
    fn make_room(&mut self) {
        let whole = FIRST << self.full.len();
        if self.last.len() < whole {
            // The first, and in a copy also another, which then may have less room than it had.
            self.last.reserve_exact(whole - self.last.len());
        } else {
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

/// The full segment of an entry, and its place there.
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
        let mut list = Segments::<_, 4>::new();
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
    fn entries_stay_where_they_are() {
        let mut list = Segments::<_, 4>::new();
        list.push_with(|| 0);
        let first = std::ptr::from_ref(list.get(0).unwrap());
        (1..100).for_each(|value| list.push_with(|| value));
        assert_eq!(std::ptr::from_ref(list.get(0).unwrap()), first);
    }
}
