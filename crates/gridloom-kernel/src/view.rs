//! Views of slices as planes and volumes.

use crate::record::arithmetic::{bit_and, lt};
use crate::record::control::require;
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, Twin, Typed, V, get, refer};

/// A slice as rows of `width` elements. Elements after the last whole row are not part of it.
///
/// ```
/// use gridloom_kernel::View2;
///
/// let plane = View2::new(&[1, 2, 3, 4, 5, 6], 3);
/// assert_eq!((plane.width(), plane.height()), (3, 2));
/// assert_eq!(plane.at(2, 1), 6);
/// assert_eq!(plane.get(3, 0), None);
/// ```
pub struct View2<'a, T> {
    elements: &'a [T],
    width: usize,
}

/// A slice as planes of `height` rows of `width` elements. Elements after the last whole plane are
/// not part of it.
///
/// ```
/// use gridloom_kernel::View3;
///
/// let volume = View3::new(&[1, 2, 3, 4, 5, 6, 7, 8], 2, 2);
/// assert_eq!(volume.depth(), 2);
/// assert_eq!(volume.at(1, 0, 1), 6);
/// assert_eq!(volume.get(0, 2, 0), None);
/// ```
pub struct View3<'a, T> {
    elements: &'a [T],
    width: usize,
    height: usize,
}

impl<T> Clone for View2<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for View2<'_, T> {}
impl<T> Clone for View3<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for View3<'_, T> {}

const NO_WIDTH: &str = "a view needs a width and a height of at least 1";
const OUTSIDE: &str = "index out of bounds of a view";

impl<'a, T: Copy> View2<'a, T> {
    /// Makes a slice a plane.
    ///
    /// # Panics
    /// When the width is 0.
    pub fn new(elements: &'a [T], width: usize) -> Self {
        assert!(width != 0, "{NO_WIDTH}");
        View2 { elements, width }
    }

    /// Returns how many elements a row has.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns how many whole rows there are.
    pub fn height(self) -> usize {
        self.elements.len() / self.width
    }

    /// Returns the element at a column and row.
    ///
    /// # Panics
    /// When it is outside.
    pub fn at(self, x: usize, y: usize) -> T {
        assert!(x < self.width && y < self.height(), "{OUTSIDE}");
        self.elements[y * self.width + x]
    }

    /// Returns the element at a column and row, if there is one.
    pub fn get(self, x: usize, y: usize) -> Option<&'a T> {
        (x < self.width && y < self.height()).then(|| &self.elements[y * self.width + x])
    }
}

impl<'a, T: Copy> View3<'a, T> {
    /// Makes a slice a volume.
    ///
    /// # Panics
    /// When the width or the height is 0, or a plane has more elements than there are addresses.
    pub fn new(elements: &'a [T], width: usize, height: usize) -> Self {
        assert!(width.checked_mul(height).is_some_and(|plane| plane != 0), "{NO_WIDTH}");
        View3 { elements, width, height }
    }

    /// Returns how many elements a row has.
    pub fn width(self) -> usize {
        self.width
    }

    /// Returns how many rows a plane has.
    pub fn height(self) -> usize {
        self.height
    }

    /// Returns how many whole planes there are.
    pub fn depth(self) -> usize {
        self.elements.len() / (self.width * self.height)
    }

    fn index(self, x: usize, y: usize, z: usize) -> Option<usize> {
        let is_inside = x < self.width && y < self.height && z < self.depth();
        is_inside.then(|| (z * self.height + y) * self.width + x)
    }

    /// Returns the element at a column, row and plane.
    ///
    /// # Panics
    /// When it is outside.
    pub fn at(self, x: usize, y: usize, z: usize) -> T {
        self.elements[self.index(x, y, z).expect(OUTSIDE)]
    }

    /// Returns the element at a column, row and plane, if there is one.
    pub fn get(self, x: usize, y: usize, z: usize) -> Option<&'a T> {
        self.index(x, y, z).map(|index| &self.elements[index])
    }
}

/// A [`View2`] while a kernel is recorded.
pub struct View2Twin<T> {
    elements: Slice<T>,
    width: V<usize>,
    height: V<usize>,
}

/// A [`View3`] while a kernel is recorded.
pub struct View3Twin<T> {
    elements: Slice<T>,
    width: V<usize>,
    height: V<usize>,
    depth: V<usize>,
}

macro_rules! twins {
    ($($twin:ident, $view:ident;)*) => {$(
        impl<T> Clone for $twin<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $twin<T> {}
        impl<T> Twin for $twin<T> {
            fn get(&self) -> Self {
                *self
            }
        }
        impl<T: KernelType> Typed for $view<'_, T> {
            type Twin = $twin<T>;
        }
    )*};
}
twins!(View2Twin, View2; View3Twin, View3;);

fn divide(a: V<usize>, b: V<usize>) -> V<usize> {
    crate::record::div(a, b, with(|r| r.line_now()))
}

fn require_now(cond: V<bool>, message: &str) {
    require(cond, message, with(|r| r.line_now()));
}

fn index_of(x: V<usize>, row: V<usize>, width: V<usize>) -> V<usize> {
    row.wrapping_mul(width).wrapping_add(x)
}

impl<T: KernelType> View2<'_, T> {
    #[doc(hidden)]
    pub fn __twin_new(elements: Slice<T>, width: V<usize>) -> View2Twin<T> {
        require_now(lt(crate::record::lit(0), width), NO_WIDTH);
        let (elements, width) = (elements.get_twin(), get(&width));
        View2Twin { elements, width, height: divide(elements.len(), width) }
    }
}

impl<T: KernelType> View2Twin<T> {
    /// Does what the method of [`View2`] does.
    pub fn width(self) -> V<usize> {
        self.width
    }
    /// Does what the method of [`View2`] does.
    pub fn height(self) -> V<usize> {
        self.height
    }
    fn is_inside(self, x: V<usize>, y: V<usize>) -> V<bool> {
        bit_and(lt(x, self.width), lt(y, self.height), 0)
    }
    /// Does what the method of [`View2`] does.
    pub fn at(self, x: V<usize>, y: V<usize>) -> V<T> {
        require_now(self.is_inside(x, y), OUTSIDE);
        get(&self.elements.unchecked(index_of(x, y, self.width)))
    }
    /// Does what the method of [`View2`] does.
    pub fn get(self, x: V<usize>, y: V<usize>) -> Opt<R<V<T>>> {
        let is_inside = self.is_inside(x, y);
        Opt { __some: is_inside, __value: refer(self.elements.unchecked(index_of(x, y, self.width))) }
    }
}

impl<T: KernelType> View3<'_, T> {
    #[doc(hidden)]
    pub fn __twin_new(elements: Slice<T>, width: V<usize>, height: V<usize>) -> View3Twin<T> {
        let (_, is_lost) = width.overflowing_mul(height);
        let is_some = |size| lt(crate::record::lit(0), size);
        let is_area = bit_and(is_some(width), is_some(height), 0);
        require_now(bit_and(is_area, crate::record::not(is_lost), 0), NO_WIDTH);
        let (elements, width, height) = (elements.get_twin(), get(&width), get(&height));
        // The product of both may not fit into 32 bits where they do.
        let depth = divide(divide(elements.len(), width), height);
        View3Twin { elements, width, height, depth }
    }
}

impl<T: KernelType> View3Twin<T> {
    /// Does what the method of [`View3`] does.
    pub fn width(self) -> V<usize> {
        self.width
    }
    /// Does what the method of [`View3`] does.
    pub fn height(self) -> V<usize> {
        self.height
    }
    /// Does what the method of [`View3`] does.
    pub fn depth(self) -> V<usize> {
        self.depth
    }
    fn is_inside(self, x: V<usize>, y: V<usize>, z: V<usize>) -> V<bool> {
        bit_and(bit_and(lt(x, self.width), lt(y, self.height), 0), lt(z, self.depth), 0)
    }
    fn place(self, x: V<usize>, y: V<usize>, z: V<usize>) -> V<T> {
        self.elements.unchecked(index_of(x, index_of(y, z, self.height), self.width))
    }
    /// Does what the method of [`View3`] does.
    pub fn at(self, x: V<usize>, y: V<usize>, z: V<usize>) -> V<T> {
        require_now(self.is_inside(x, y, z), OUTSIDE);
        get(&self.place(x, y, z))
    }
    /// Does what the method of [`View3`] does.
    pub fn get(self, x: V<usize>, y: V<usize>, z: V<usize>) -> Opt<R<V<T>>> {
        Opt { __some: self.is_inside(x, y, z), __value: refer(self.place(x, y, z)) }
    }
}
