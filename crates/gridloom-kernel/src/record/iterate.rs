//! Recording of `for` loops.

use std::ops::{Range, RangeFrom, RangeInclusive};

use crate::ir::{Label, Operand};
use crate::record::arithmetic::{Int, OpOrd, add, eq, ge, le, lt, not};
use crate::record::control::{if_begin, if_end, leave_unless};
use crate::record::integer_methods::Unsigned;
use crate::record::memory::{Slice, SliceElement};
use crate::record::recorder::with;
use crate::record::value::{KernelType, R, Twin, V, Var, assign, get, lit, var};

/// What a `for` loop can go over.
#[diagnostic::on_unimplemented(
    message = "device code cannot loop over `{Self}`",
    note = "loop over a range, a slice, an array, or the `iter()` of one with its adaptors"
)]
pub trait Iterate: Sized {
    /// What the loop remembers from pass to pass.
    #[doc(hidden)]
    type State: Copy;
    /// What a pass is given.
    #[doc(hidden)]
    type Item;
    #[doc(hidden)]
    fn start(self) -> Self::State;
    /// Leaves the loop where there is no further item, else returns it.
    #[doc(hidden)]
    fn next(state: &Self::State, around: Label) -> Self::Item;
    /// Records the code between two passes.
    #[doc(hidden)]
    fn step(state: &Self::State);
}

fn unit<T: Int>() -> V<T> {
    V::of(Operand::Imm(T::TY, 1))
}

/// An integer that ranges can go over.
pub trait Step: Int + OpOrd + Unsigned {}
impl<T: Int + OpOrd + Unsigned> Step for T {}

impl<T: Step> Iterate for Range<V<T>> {
    type State = (V<T>, V<T>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        (var(self.start), self.end)
    }

    fn next((now, end): &Self::State, around: Label) -> V<T> {
        leave_unless(around, lt(now.get(), *end));
        now.get()
    }

    fn step((now, _): &Self::State) {
        now.assign(now.get().wrapping_add(unit()));
    }
}

impl<T: Step> Iterate for RangeFrom<V<T>> {
    type State = V<T>;
    type Item = V<T>;

    fn start(self) -> Self::State {
        var(self.start)
    }

    /// Returns the item. The number after it is computed before the item is used, as in the
    /// standard library.
    fn next(now: &Self::State, _: Label) -> V<T> {
        let item = now.get();
        now.assign(add(item, unit::<T>(), current_line()));
        item
    }

    fn step(_: &Self::State) {}
}

impl<T: Step> Iterate for RangeInclusive<V<T>> {
    type State = (V<T>, V<T>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        let (start, end) = self.into_inner();
        (var(start), end)
    }

    fn next((now, end): &Self::State, around: Label) -> V<T> {
        leave_unless(around, le(now.get(), *end));
        now.get()
    }

    fn step((now, end): &Self::State) {
        // Behind the last value there may be none to count to: then one loop round is too many, and
        // is left.
        let is_last = eq(now.get(), *end);
        let last = if_begin(is_last);
        leave_this_loop();
        if_end(last);
        now.assign(now.get().wrapping_add(unit()));
    }
}

/// Leaves the loop whose step is being recorded.
fn leave_this_loop() {
    with(|r| {
        let label = r.loop_of_step();
        r.push(crate::ir::Stmt::Break { label, when: None });
    });
}

/// The items of a range or slice from its end.
#[derive(Clone, Copy)]
pub struct Rev<I>(pub(super) I);

/// The items of a range or slice with a stride.
#[derive(Clone, Copy)]
pub struct StepBy<I>(pub(super) I, pub(super) V<usize>);

/// The methods of ranges that are not those of iterators.
pub trait RangeMethods<T: KernelType>: Sized {
    /// Does what the method of the standard library does.
    fn contains(&self, value: R<V<T>>) -> V<bool>;
}

impl<T: Step> RangeMethods<T> for Range<V<T>> {
    fn contains(&self, value: R<V<T>>) -> V<bool> {
        let value = value.__place.get();
        super::arithmetic::bit_and(ge(value, self.start), lt(value, self.end), 0)
    }
}

impl<T: Step> RangeMethods<T> for RangeInclusive<V<T>> {
    fn contains(&self, value: R<V<T>>) -> V<bool> {
        let value = value.__place.get();
        super::arithmetic::bit_and(ge(value, *self.start()), le(value, *self.end()), 0)
    }
}

/// An iterator that can go from its end.
#[diagnostic::on_unimplemented(
    message = "device code cannot go over `{Self}` from its end",
    note = "`rev` comes right after a range or `iter()`, or after `enumerate`, `map` or `copied` of one"
)]
pub trait Reversible: Iterate {
    /// The same items from the end.
    type Reversed: Iterate;
    #[doc(hidden)]
    fn reversed(self) -> Self::Reversed;
}

/// An iterator that can go with a stride.
#[diagnostic::on_unimplemented(
    message = "device code cannot go over `{Self}` with a stride",
    note = "`step_by` comes right after a range or `iter()`"
)]
pub trait Stridable: Iterate {
    /// Every so many of its items.
    type Strided: Iterate;
    #[doc(hidden)]
    fn strided(self, by: V<usize>) -> Self::Strided;
}

macro_rules! of_ends {
    ($([$($param:tt)*] $what:ty;)*) => {$(
        impl<$($param)*> Reversible for $what {
            type Reversed = Rev<Self>;

            fn reversed(self) -> Rev<Self> {
                Rev(self)
            }
        }
        impl<$($param)*> Stridable for $what {
            type Strided = StepBy<Self>;

            fn strided(self, by: V<usize>) -> StepBy<Self> {
                StepBy(self, by)
            }
        }
    )*};
}
of_ends! {
    [T: Step] Range<V<T>>;
    [T: SliceElement] Iter<Slice<T>>;
    [T: KernelType, const N: usize] Iter<V<[T; N]>>;
}

impl<T: Step> Reversible for RangeInclusive<V<T>> {
    type Reversed = Rev<Self>;

    fn reversed(self) -> Rev<Self> {
        Rev(self)
    }
}

impl<T: Step> Iterate for Rev<Range<V<T>>> {
    type State = (V<T>, V<T>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        // One above the next value.
        (self.0.start, var(self.0.end))
    }

    fn next((start, now): &Self::State, around: Label) -> V<T> {
        leave_unless(around, lt(*start, now.get()));
        now.get().wrapping_sub(unit())
    }

    fn step((_, now): &Self::State) {
        now.assign(now.get().wrapping_sub(unit()));
    }
}

impl<T: Step> Iterate for Rev<RangeInclusive<V<T>>> {
    type State = (V<T>, V<T>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        let (start, end) = self.0.into_inner();
        (start, var(end))
    }

    fn next((start, now): &Self::State, around: Label) -> V<T> {
        leave_unless(around, le(*start, now.get()));
        now.get()
    }

    fn step((start, now): &Self::State) {
        // Before the first value there may be none to count to.
        let is_first = if_begin(eq(now.get(), *start));
        leave_this_loop();
        if_end(is_first);
        now.assign(now.get().wrapping_sub(unit()));
    }
}

/// Fails the launch where a stride is 0, as `step_by` does.
pub(super) fn check_stride(by: V<usize>) {
    super::control::require(not(eq(by, lit(0))), "assertion failed: step != 0", current_line());
}

impl<T: Step> Iterate for StepBy<Range<V<T>>> {
    type State = (V<T>, V<T>, V<usize>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        check_stride(self.1);
        (var(self.0.start), self.0.end, self.1)
    }

    fn next((now, end, _): &Self::State, around: Label) -> V<T> {
        leave_unless(around, lt(now.get(), *end));
        now.get()
    }

    fn step((now, end, by): &Self::State) {
        // The distance to the end is a number of the unsigned type, however far it is.
        let left: V<T::Unsigned> = super::convert::cast(end.get().wrapping_sub(now.get()));
        let left: V<usize> = super::convert::cast(left);
        let is_last = if_begin(le(left, *by));
        leave_this_loop();
        if_end(is_last);
        now.assign(now.get().wrapping_add(super::convert::cast(*by)));
    }
}

impl<T: Step> Stridable for RangeInclusive<V<T>> {
    type Strided = StepBy<Self>;

    fn strided(self, by: V<usize>) -> StepBy<Self> {
        StepBy(self, by)
    }
}

impl<T: Step> Iterate for StepBy<RangeInclusive<V<T>>> {
    type State = (V<T>, V<T>, V<usize>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        check_stride(self.1);
        let (start, end) = self.0.into_inner();
        (var(start), end, self.1)
    }

    fn next((now, end, _): &Self::State, around: Label) -> V<T> {
        leave_unless(around, le(now.get(), *end));
        now.get()
    }

    fn step((now, end, by): &Self::State) {
        let left: V<T::Unsigned> = super::convert::cast(end.get().wrapping_sub(now.get()));
        let left: V<usize> = super::convert::cast(left);
        let is_last = if_begin(lt(left, *by));
        leave_this_loop();
        if_end(is_last);
        now.assign(now.get().wrapping_add(super::convert::cast(*by)));
    }
}

fn current_line() -> u32 {
    with(|r| r.line_now())
}

/// The elements of a slice or array, as references.
#[derive(Clone, Copy)]
pub struct Iter<S>(S);

/// A slice or array, whose elements have places.
pub trait Elements: Copy {
    #[doc(hidden)]
    type Place: Copy;
    #[doc(hidden)]
    fn count(&self) -> V<usize>;
    /// Returns the place of an element whose index is in range.
    #[doc(hidden)]
    fn place(&self, index: V<usize>) -> Self::Place;
}

impl<T: SliceElement> Elements for Slice<T> {
    type Place = T::Element;

    fn count(&self) -> V<usize> {
        self.len()
    }

    fn place(&self, index: V<usize>) -> T::Element {
        self.unchecked(index)
    }
}

impl<T: KernelType, const N: usize> Elements for V<[T; N]> {
    type Place = V<T>;

    fn count(&self) -> V<usize> {
        lit(N)
    }

    fn place(&self, index: V<usize>) -> V<T> {
        self.place_of(index)
    }
}

impl<T: SliceElement> Slice<T> {
    /// Does what the method of the standard library does.
    pub fn iter(self) -> Iter<Slice<T>> {
        Iter(self)
    }

    /// Does what the method of the standard library does.
    pub fn iter_mut(self) -> Iter<Slice<T>> {
        Iter(self)
    }

    /// Does what the method of the standard library does.
    pub fn windows(self, size: V<usize>) -> Parts<T> {
        let line = current_line();
        super::control::require(not(eq(size, lit(0))), "window size must be non-zero", line);
        let len = self.len();
        let count =
            super::elementary::select(le(size, len), len.wrapping_sub(size).wrapping_add(lit(1)), lit(0));
        Parts { slice: self, size, stride: lit(1), count }
    }

    /// Does what the method of the standard library does.
    pub fn chunks_exact_mut(self, size: V<usize>) -> Parts<T> {
        self.chunks_exact(size)
    }

    /// Does what the method of the standard library does.
    pub fn chunks_exact(self, size: V<usize>) -> Parts<T> {
        let line = current_line();
        super::control::require(not(eq(size, lit(0))), "chunk size must be non-zero", line);
        let count = super::arithmetic::div(self.len(), size, line);
        Parts { slice: self, size, stride: size, count }
    }
}

impl<T: KernelType, const N: usize> V<[T; N]> {
    /// Does what the method of the standard library does.
    pub fn iter(self) -> Iter<V<[T; N]>> {
        Iter(self)
    }

    /// Does what the method of the standard library does.
    pub fn iter_mut(self) -> Iter<V<[T; N]>> {
        Iter(self)
    }
}

impl<S: Elements> Iterate for Iter<S> {
    type State = (S, V<usize>, V<usize>);
    type Item = R<S::Place>;

    fn start(self) -> Self::State {
        (self.0, var(lit(0)), self.0.count())
    }

    fn next((all, now, len): &Self::State, around: Label) -> R<S::Place> {
        leave_unless(around, lt(now.get(), *len));
        super::value::refer(all.place(get(now)))
    }

    fn step((_, now, _): &Self::State) {
        assign(now, now.get().wrapping_add(lit(1)));
    }
}

impl<S: Elements> Iterate for Rev<Iter<S>> {
    type State = (S, V<usize>);
    type Item = R<S::Place>;

    fn start(self) -> Self::State {
        // One above the next index.
        let all = self.0.0;
        (all, var(all.count()))
    }

    fn next((all, now): &Self::State, around: Label) -> R<S::Place> {
        leave_unless(around, lt(lit(0), now.get()));
        super::value::refer(all.place(now.get().wrapping_sub(lit(1))))
    }

    fn step((_, now): &Self::State) {
        assign(now, now.get().wrapping_sub(lit(1)));
    }
}

impl<S: Elements> Iterate for StepBy<Iter<S>> {
    type State = (S, <StepBy<Range<V<usize>>> as Iterate>::State);
    type Item = R<S::Place>;

    fn start(self) -> Self::State {
        let all = self.0.0;
        (all, StepBy(lit(0)..all.count(), self.1).start())
    }

    fn next((all, indices): &Self::State, around: Label) -> R<S::Place> {
        super::value::refer(all.place(StepBy::<Range<V<usize>>>::next(indices, around)))
    }

    fn step((_, indices): &Self::State) {
        StepBy::<Range<V<usize>>>::step(indices);
    }
}

/// Parts of a slice that have one size, at a stride.
pub struct Parts<T: SliceElement> {
    slice: Slice<T>,
    size: V<usize>,
    stride: V<usize>,
    count: V<usize>,
}

impl<T: SliceElement> Clone for Parts<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: SliceElement> Copy for Parts<T> {}

impl<T: SliceElement> Iterate for Parts<T> {
    type State = (Parts<T>, V<usize>);
    type Item = Slice<T>;

    fn start(self) -> Self::State {
        (self, var(lit(0)))
    }

    fn next((parts, now): &Self::State, around: Label) -> Slice<T> {
        leave_unless(around, lt(now.get(), parts.count));
        parts.slice.part_of(now.get().wrapping_mul(parts.stride), parts.size)
    }

    fn step((_, now): &Self::State) {
        assign(now, now.get().wrapping_add(lit(1)));
    }
}

impl<T: SliceElement> Iterate for Slice<T> {
    type State = <Iter<Slice<T>> as Iterate>::State;
    type Item = R<T::Element>;

    fn start(self) -> Self::State {
        Iter(self).start()
    }

    fn next(state: &Self::State, around: Label) -> R<T::Element> {
        Iter::<Slice<T>>::next(state, around)
    }

    fn step(state: &Self::State) {
        Iter::<Slice<T>>::step(state);
    }
}

/// `for x in &array`.
impl<T: KernelType, const N: usize> Iterate for R<V<[T; N]>> {
    type State = <Iter<V<[T; N]>> as Iterate>::State;
    type Item = R<V<T>>;

    fn start(self) -> Self::State {
        Iter(self.__place).start()
    }

    fn next(state: &Self::State, around: Label) -> R<V<T>> {
        Iter::<V<[T; N]>>::next(state, around)
    }

    fn step(state: &Self::State) {
        Iter::<V<[T; N]>>::step(state);
    }
}

/// The elements of an array, one after the other.
impl<T: KernelType, const N: usize> Iterate for V<[T; N]> {
    type State = (V<[T; N]>, V<usize>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        (self, var(lit(0)))
    }

    fn next((array, now): &Self::State, around: Label) -> V<T> {
        leave_unless(around, lt(now.get(), lit(N)));
        array.place_of(now.get()).get()
    }

    fn step((_, now): &Self::State) {
        assign(now, now.get().wrapping_add(lit(1)));
    }
}

/// Starts a `for` loop.
pub fn iterate<I: Iterate>(over: I) -> Loop<I> {
    Loop { state: over.start(), around: super::control::loop_begin() }
}

/// A `for` loop that is being recorded.
pub struct Loop<I: Iterate> {
    state: I::State,
    around: Label,
}

impl<I: Iterate> Loop<I> {
    /// Returns the item of a pass.
    pub fn next(&self) -> I::Item {
        I::next(&self.state, self.around)
    }

    /// Returns what `break` and `continue` name.
    pub fn label(&self) -> Label {
        self.around
    }

    /// Ends the loop.
    pub fn end(self) {
        super::control::loop_step();
        with(|r| r.enter_step(self.around));
        I::step(&self.state);
        with(|r| r.leave_step());
        super::control::loop_end(self.around);
    }
}
