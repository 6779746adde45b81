//! `for` loops.

use std::ops::{Range, RangeInclusive};

use crate::ir::{Label, Operand};
use crate::record::arithmetic::{Int, OpOrd, eq, ge, le, lt, not};
use crate::record::control::{if_begin, if_end, leave_unless};
use crate::record::integer_methods::Unsigned;
use crate::record::memory::{Slice, SliceElement};
use crate::record::recorder::with;
use crate::record::value::{KernelType, R, Twin, V, Var, assign, get, lit, var};

/// What a `for` loop can go over.
#[diagnostic::on_unimplemented(
    message = "device code cannot loop over `{Self}`",
    note = "loop over `a..b`, `a..=b`, `(a..b).rev()`, `(a..b).step_by(n)`, a slice or an array"
)]
pub trait Iterate {
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
    /// What comes between two passes.
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

/// A range from its end.
#[derive(Clone, Copy)]
pub struct Rev<I>(I);

/// A range with a stride.
#[derive(Clone, Copy)]
pub struct StepBy<T: KernelType>(V<T>, V<T>, V<usize>);

/// The methods of ranges.
pub trait RangeMethods<T: KernelType>: Sized {
    /// As the method of Rust.
    fn rev(self) -> Rev<Self>;
    /// As the method of Rust.
    fn step_by(self, by: V<usize>) -> StepBy<T>;
    /// As the method of Rust.
    fn contains(&self, value: R<V<T>>) -> V<bool>;
}

impl<T: Step> RangeMethods<T> for Range<V<T>> {
    fn rev(self) -> Rev<Self> {
        Rev(self)
    }

    fn step_by(self, by: V<usize>) -> StepBy<T> {
        StepBy(self.start, self.end, by)
    }

    fn contains(&self, value: R<V<T>>) -> V<bool> {
        let value = value.__place.get();
        super::arithmetic::bit_and(ge(value, self.start), lt(value, self.end), 0)
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

impl<T: Step> Iterate for StepBy<T> {
    type State = (V<T>, V<T>, V<usize>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        super::control::require(not(eq(self.2, lit(0))), "assertion failed: step != 0", current_line());
        (var(self.0), self.1, self.2)
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

fn current_line() -> u32 {
    with(|r| r.line_now())
}

/// The elements of a slice.
#[derive(Clone, Copy)]
pub struct Iter<S>(S);

/// The elements of a slice with their indices.
#[derive(Clone, Copy)]
pub struct Enumerate<S>(S);

impl<T: SliceElement> Slice<T> {
    /// As the method of Rust.
    pub fn iter(self) -> Iter<Slice<T>> {
        Iter(self)
    }

    /// As the method of Rust.
    pub fn iter_mut(self) -> Iter<Slice<T>> {
        Iter(self)
    }
}

impl<S> Iter<S> {
    /// As the method of Rust.
    pub fn enumerate(self) -> Enumerate<S> {
        Enumerate(self.0)
    }
}

impl<T: SliceElement> Iterate for Slice<T> {
    type State = (Slice<T>, V<usize>, V<usize>);
    type Item = R<T::Element>;

    fn start(self) -> Self::State {
        (self, var(lit(0)), self.len())
    }

    fn next((slice, now, len): &Self::State, around: Label) -> R<T::Element> {
        leave_unless(around, lt(now.get(), *len));
        super::value::refer(slice.unchecked(get(now)))
    }

    fn step((_, now, _): &Self::State) {
        assign(now, now.get().wrapping_add(lit(1)));
    }
}

impl<T: SliceElement> Iterate for Iter<Slice<T>> {
    type State = (Slice<T>, V<usize>, V<usize>);
    type Item = R<T::Element>;

    fn start(self) -> Self::State {
        self.0.start()
    }

    fn next(state: &Self::State, around: Label) -> R<T::Element> {
        Slice::next(state, around)
    }

    fn step(state: &Self::State) {
        <Slice<T> as Iterate>::step(state);
    }
}

impl<T: SliceElement> Iterate for Enumerate<Slice<T>> {
    type State = (Slice<T>, V<usize>, V<usize>);
    type Item = (V<usize>, R<T::Element>);

    fn start(self) -> Self::State {
        self.0.start()
    }

    fn next(state: &Self::State, around: Label) -> Self::Item {
        let item = <Slice<T> as Iterate>::next(state, around);
        (get(&state.1), item)
    }

    fn step(state: &Self::State) {
        <Slice<T> as Iterate>::step(state);
    }
}

/// The elements of an array, one after the other.
impl<T: KernelType, const N: usize> Iterate for V<[T; N]> {
    type State = (V<[T; N]>, V<usize>);
    type Item = V<T>;

    fn start(self) -> Self::State {
        (self.get(), var(lit(0)))
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
    /// The item of a pass.
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
