//! The element that a thread owns, under its index in the array.

use std::ops::{Index, IndexMut};

use crate::ir::Ty;
use crate::record::arithmetic::compare;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Twin, Typed, V, Var};

/// The element of an array that a thread owns. It is indexed like the array, with the index of the
/// thread and no other.
///
/// Parallel loops of a [program] see their arrays in this form.
///
/// ```
/// use gridloom_kernel::{Out, host, thread};
///
/// fn double(x: Out<f32>) {
///     if let Some(mut x) = x.own() {
///         x[thread::index()] *= 2.0;
///     }
/// }
///
/// let mut x = [1.0, 2.0, 3.0];
/// host::run(1, 4, || double(Out::new(&mut x)));
/// assert_eq!(x, [2.0, 4.0, 6.0]);
/// ```
///
/// [program]: https://docs.rs/gridloom
pub struct Own<'a, T> {
    index: usize,
    len: usize,
    element: &'a mut T,
}

const OTHER: &str = "a thread has the element of its own index alone";

impl<'a, T> Own<'a, T> {
    pub(crate) fn new(index: usize, len: usize, element: &'a mut T) -> Self {
        Own { index, len, element }
    }

    /// Returns how many elements the array has, of all threads together.
    #[allow(clippy::len_without_is_empty, reason = "it has the element of this thread")]
    pub fn len(&self) -> usize {
        self.len
    }
}

impl<T> Index<usize> for Own<'_, T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        assert!(index == self.index, "{OTHER}");
        self.element
    }
}
impl<T> IndexMut<usize> for Own<'_, T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        assert!(index == self.index, "{OTHER}");
        self.element
    }
}

/// An [`Own`] while a kernel is recorded.
pub struct OwnTwin<T: KernelType> {
    index: V<usize>,
    len: V<usize>,
    element: V<T>,
}

impl<T: KernelType> Clone for OwnTwin<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: KernelType> Copy for OwnTwin<T> {}
impl<T: KernelType> Twin for OwnTwin<T> {
    fn get(&self) -> Self {
        *self
    }
}
impl<T: KernelType> Var for OwnTwin<T> {
    fn declare() -> Self {
        with(|r| {
            r.refuse("which element a thread has is fixed when the kernel is loaded; choose between values instead")
        });
        OwnTwin { index: V::declare(), len: V::declare(), element: V::declare() }
    }

    fn assign(&self, _: Self) {
        with(|r| {
            r.refuse("which element a thread has is fixed when the kernel is loaded; assign to the element")
        });
    }

    fn own(self) -> Self {
        self
    }
}
impl<T: KernelType> Typed for Own<'_, T> {
    type Twin = OwnTwin<T>;
}

impl<T: KernelType> OwnTwin<T> {
    pub(crate) fn new(index: V<usize>, len: V<usize>, element: V<T>) -> Self {
        OwnTwin { index, len, element }
    }

    /// Does what the method of [`Own`] does.
    #[allow(clippy::len_without_is_empty, reason = "it stands for the method of that name")]
    pub fn len(self) -> V<usize> {
        self.len
    }

    /// `own[index]`.
    pub fn __at(self, index: V<usize>, line: u32, what: &str) -> V<T> {
        with(|r| {
            r.at(line);
            let (index, own) = (index.operand(r), self.index.operand(r));
            if index != own {
                let is_own = compare(r, "setp.eq", Ty::U64, index, own);
                let place = what.trim_start_matches("index out of bounds: ");
                r.check(is_own, false, &format!("{OTHER}: {place} is another's"));
            }
        });
        self.element
    }
}
