//! The layout of a kernel's parameters in their buffer.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The position of one parameter in the parameter buffer of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// The offset in bytes.
    pub offset: u32,
    /// The size in bytes.
    pub size: u32,
}

impl ParamLayout {
    /// Returns offset and size as one number. Reading as two halves what was just written whole
    /// stalls the processor.
    #[inline]
    fn word(&self) -> u64 {
        u64::from(self.offset) | u64::from(self.size) << 32
    }
}

/// The number of parameters that are stored in place.
const FEW: usize = 6;

const NONE: ParamLayout = ParamLayout { offset: 0, size: 0 };

/// The layout of a kernel's parameters, in order.
///
/// Every launch holds one, so it is cheap to copy and compare. Up to six parameters are stored in
/// place. A longer list is shared.
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
    /// All parameters if they fit. Unused entries are [`NONE`].
    few: [ParamLayout; FEW],
    count: u32,
    /// One past the last byte of any parameter.
    end: u32,
    /// All parameters if they do not fit in `few`.
    more: Option<Arc<Vec<ParamLayout>>>,
}

impl Params {
    /// Creates an empty layout.
    #[inline]
    pub const fn new() -> Self {
        Params { few: [NONE; FEW], count: 0, end: 0, more: None }
    }

    /// Returns the size of a buffer for all parameters, in bytes.
    #[inline]
    pub fn buffer_bytes(&self) -> usize {
        self.end as usize
    }

    /// Appends a parameter.
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
        // All entries are compared without a branch. That is faster than stopping at the first
        // difference.
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
