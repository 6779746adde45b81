//! Recording of patterns of slices, and of the methods that divide a slice.

use crate::record::arithmetic::{OpEq, add, eq, ge, le, lt};
use crate::record::control::{
    if_begin, if_end, leave, leave_unless, loop_begin, loop_end, loop_step, require,
};
use crate::record::iterate::iterate;
use crate::record::memory::{Slice, SliceElement};
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, V, Var, assign, get, lit, var};

impl<T: SliceElement> Slice<T> {
    /// Returns whether a pattern of so many elements fits, or one of at least so many.
    pub fn __fits(self, count: usize, is_least: bool) -> V<bool> {
        if is_least { ge(self.len(), lit(count)) } else { eq(self.len(), lit(count)) }
    }

    /// Returns the element of a pattern that fits.
    pub fn __element(self, index: usize) -> T::Element {
        self.unchecked(lit(index))
    }

    /// Returns the element of a pattern with `..` before it: the last one is the first from the
    /// end.
    pub fn __element_from_end(self, count: usize) -> T::Element {
        self.unchecked(self.len().wrapping_sub(lit(count)))
    }

    /// Returns what a name in a pattern is bound to: a reference.
    pub fn __bound(self, index: usize) -> R<T::Element> {
        R { __place: self.__element(index) }
    }

    /// Returns what a name is bound to in a pattern with `..` before it.
    pub fn __bound_from_end(self, count: usize) -> R<T::Element> {
        R { __place: self.__element_from_end(count) }
    }

    /// Returns what `name @ ..` of a pattern that fits names.
    pub fn __rest(self, before: usize, behind: usize) -> Slice<T> {
        self.part_of(lit(before), self.len().wrapping_sub(lit(before + behind)))
    }

    /// Does what the method of the standard library does.
    pub fn split_at(self, middle: V<usize>) -> (Slice<T>, Slice<T>) {
        require(le(middle, self.len()), "mid > len", with(|r| r.line_now()));
        (self.part_of(lit(0), middle), self.part_of(middle, self.len().wrapping_sub(middle)))
    }

    /// Does what the method of the standard library does.
    pub fn split_at_mut(self, middle: V<usize>) -> (Slice<T>, Slice<T>) {
        self.split_at(middle)
    }

    /// Does what the method of the standard library does.
    pub fn get_mut(self, index: V<usize>) -> Opt<R<T::Element>> {
        self.get(index)
    }

    /// Does what the method of the standard library does.
    pub fn first_mut(self) -> Opt<R<T::Element>> {
        self.first()
    }

    /// Does what the method of the standard library does.
    pub fn last_mut(self) -> Opt<R<T::Element>> {
        self.last()
    }

    /// Does what the method of the standard library does.
    pub fn split_first(self) -> Opt<(R<T::Element>, Slice<T>)> {
        // An empty slice has no rest, and nobody looks at it.
        let rest = self.part_of(lit(1), self.len().saturating_sub(lit(1)));
        Opt { __some: self.__fits(1, true), __value: (R { __place: self.__element(0) }, rest) }
    }

    /// Does what the method of the standard library does.
    pub fn split_last(self) -> Opt<(R<T::Element>, Slice<T>)> {
        let rest = self.part_of(lit(0), self.len().saturating_sub(lit(1)));
        Opt { __some: self.__fits(1, true), __value: (R { __place: self.__element_from_end(1) }, rest) }
    }
}

impl<T: KernelType + OpEq> Slice<T> {
    /// Does what the method of the standard library does.
    pub fn contains(self, value: R<V<T>>) -> V<bool> {
        let (value, found): (V<T>, V<bool>) = (get(&value.__place), var(lit(false)));
        let around = iterate(self);
        let is_equal = if_begin(eq(get(&around.next().__place), value));
        assign(&found, lit(true));
        leave(around.label());
        if_end(is_equal);
        around.end();
        get(&found)
    }
}

impl<T: KernelType> Slice<T> {
    /// Does what the method of the standard library does.
    pub fn swap(self, a: V<usize>, b: V<usize>) {
        let line = with(|r| r.line_now());
        let a = self.__at(a, line, "index out of bounds: `swap`");
        let b = self.__at(b, line, "index out of bounds: `swap`");
        let (first, second) = (get(&a), get(&b));
        assign(&a, second);
        assign(&b, first);
    }

    /// Does what the method of the standard library does.
    pub fn reverse(self) {
        let (low, high): (V<usize>, V<usize>) = (var(lit(0)), var(self.len()));
        let around = loop_begin();
        // Elements are left to swap while there are two of them.
        leave_unless(around, lt(add(get(&low), lit(1), 0), get(&high)));
        high.assign(get(&high).wrapping_sub(lit(1)));
        let (a, b) = (self.unchecked(get(&low)), self.unchecked(get(&high)));
        let (first, second) = (get(&a), get(&b));
        assign(&a, second);
        assign(&b, first);
        loop_step();
        low.assign(get(&low).wrapping_add(lit(1)));
        loop_end(around);
    }

    /// Does what the method of the standard library does.
    pub fn copy_from_slice(self, from: Slice<T>) {
        let message = "copy_from_slice: source slice length does not match destination slice length";
        require(eq(self.len(), from.len()), message, with(|r| r.line_now()));
        let index: V<usize> = var(lit(0));
        let around = loop_begin();
        leave_unless(around, lt(get(&index), self.len()));
        assign(&self.unchecked(get(&index)), get(&from.unchecked(get(&index))));
        loop_step();
        index.assign(get(&index).wrapping_add(lit(1)));
        loop_end(around);
    }

    /// Does what the method of the standard library does.
    pub fn fill(self, value: V<T>) {
        let around = iterate(self);
        assign(&around.next().__place, value);
        around.end();
    }
}

impl<T: KernelType, const N: usize> V<[T; N]> {
    /// Returns what a name in a pattern is bound to: a value.
    pub fn __bound(self, index: usize) -> V<T> {
        get(&self.__element(index))
    }

    /// Returns what a name is bound to in a pattern with `..` before it.
    pub fn __bound_from_end(self, count: usize) -> V<T> {
        get(&self.__element_from_end(count))
    }

    /// Refuses `name @ ..` in a pattern of an array, which would be an array of another length.
    pub fn __rest(self, _: usize, _: usize)
    where
        Self: RestOfArray,
    {
    }
}

impl<T: KernelType, const N: usize> R<V<[T; N]>> {
    /// Returns what a name in a pattern is bound to: a reference.
    pub fn __bound(self, index: usize) -> R<V<T>> {
        R { __place: self.__place.__element(index) }
    }

    /// Returns what a name is bound to in a pattern with `..` before it.
    pub fn __bound_from_end(self, count: usize) -> R<V<T>> {
        R { __place: self.__place.__element_from_end(count) }
    }
}

/// A trait that nothing implements.
#[diagnostic::on_unimplemented(
    message = "device code has no `name @ ..` in patterns of arrays",
    note = "name the elements, or index the array"
)]
pub trait RestOfArray {}
