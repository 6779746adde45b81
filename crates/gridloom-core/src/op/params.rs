//! Where the parameters of a kernel lie in their buffer.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Where one parameter of a kernel lies in its parameter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Byte offset in the parameter buffer.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

impl ParamLayout {
    /// Both numbers in one, as they lie in memory. What was just written whole is not to be read across the middle.
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.offset) | u64::from(self.size) << 32
    }
}

/// As many are kept in place.
const FEW: usize = 6;

const NONE: ParamLayout = ParamLayout { offset: 0, size: 0 };

/// The places of parameters, in the order of the parameters.
///
/// Every launch has its own, so they are made to be copied and compared: few of them as they are, without looking at each, and many of them by
/// sharing the list.
///
/// ```
/// use gridloom_core::op::{ParamLayout, Params};
///
/// let place = |offset, size| ParamLayout { offset, size };
/// let params: Params = [place(0, 8), place(8, 4)].into_iter().collect();
/// assert_eq!((params.len(), params[1].offset, params.buffer_bytes()), (2, 8, 12));
/// ```
#[derive(Clone)]
pub struct Params {
    /// All of them, where they are few. What is past the last is [`NONE`].
    few: [ParamLayout; FEW],
    count: u32,
    /// One past the last byte of any of them.
    end: u32,
    /// All of them, where they are more.
    more: Option<Arc<Vec<ParamLayout>>>,
}

impl Params {
    /// No parameters.
    #[inline]
    pub const fn new() -> Self {
        Params { few: [NONE; FEW], count: 0, end: 0, more: None }
    }

    /// The bytes of a buffer that has room for all of them.
    #[inline]
    pub fn buffer_bytes(&self) -> usize {
        self.end as usize
    }

    /// Adds a parameter behind the others.
    pub fn push(&mut self, place: ParamLayout) {
        match (&mut self.more, self.few.get_mut(self.count as usize)) {
            (Some(more), _) => Arc::make_mut(more).push(place),
            (None, Some(free)) => *free = place,
            (None, None) => {
                let all = self.few.into_iter().chain([place]).collect();
                (self.few, self.more) = ([NONE; FEW], Some(Arc::new(all)));
            }
        }
        self.count += 1;
        self.end = self.end.max(place.offset.saturating_add(place.size));
    }
}

impl Deref for Params {
    type Target = [ParamLayout];

    #[inline]
    fn deref(&self) -> &[ParamLayout] {
        match &self.more {
            None => &self.few[..self.count as usize],
            Some(more) => more,
        }
    }
}

impl PartialEq for Params {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let differs = |(one, other): (&ParamLayout, &ParamLayout)| one.word() ^ other.word();
        // All at once: to stop at the first that differs takes longer than to look at the others.
        let few = self.few.iter().zip(&other.few).map(differs).fold(0, |a, b| a | b);
        few | u64::from(self.count ^ other.count) == 0
            && match (&self.more, &other.more) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
                _ => true,
            }
    }
}

impl Eq for Params {}

impl Default for Params {
    fn default() -> Self {
        Params::new()
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<ParamLayout> for Params {
    fn from_iter<I: IntoIterator<Item = ParamLayout>>(places: I) -> Self {
        let mut params = Params::new();
        places.into_iter().for_each(|place| params.push(place));
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: u32) -> Vec<ParamLayout> {
        (0..count).map(|index| ParamLayout { offset: 8 * index, size: 8 }).collect()
    }

    #[test]
    fn few_and_many_read_back_and_compare_as_the_list_they_were_made_of() {
        let lists: Vec<Vec<ParamLayout>> = (0..20).map(words).collect();
        for (at, list) in lists.iter().enumerate() {
            let params: Params = list.iter().copied().collect();
            assert_eq!((&*params, params.buffer_bytes()), (list.as_slice(), 8 * at));
            for (other_at, other) in lists.iter().enumerate() {
                assert_eq!(params == other.iter().copied().collect(), at == other_at);
            }
        }
    }

    #[test]
    fn one_place_that_differs_makes_two_lists_differ() {
        for count in [1, 6, 7, 12] {
            let params: Params = words(count).into_iter().collect();
            for at in 0..count as usize {
                for change in
                    [|place: &mut ParamLayout| place.offset += 1, |place: &mut ParamLayout| place.size = 4]
                {
                    let mut changed = words(count);
                    change(&mut changed[at]);
                    assert_ne!(params, changed.into_iter().collect());
                }
            }
        }
    }

    #[test]
    fn a_copy_that_grows_leaves_the_original() {
        for count in [0, 5, 6, 7, 12] {
            let params: Params = words(count).into_iter().collect();
            let mut copy = params.clone();
            copy.push(ParamLayout { offset: 8 * count, size: 8 });
            assert_eq!(&*params, words(count));
            assert_eq!(&*copy, words(count + 1));
        }
    }

    #[test]
    fn the_buffer_ends_with_the_parameter_that_ends_last() {
        let params: Params =
            [ParamLayout { offset: 8, size: 8 }, ParamLayout { offset: 0, size: 8 }].into_iter().collect();
        assert_eq!(params.buffer_bytes(), 16);
    }
}
