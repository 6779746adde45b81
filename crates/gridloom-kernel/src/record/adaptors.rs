//! Recording of iterator methods.
//!
//! An iterator is recorded as the loop over its elements. Adaptors add to a pass of that loop, and
//! closures are recorded where they are called.

use std::ops::{Range, RangeFrom, RangeInclusive};

use crate::ir::{Label, Operand, Ty};
use crate::out::EachMine2d;
use crate::record::arithmetic::{Given, OpAdd, OpMul, add, gt, mul, not};
use crate::record::control::{again, if_begin, if_end, leave, leave_unless, loop_begin, loop_end, loop_step};
use crate::record::convert::cast;
use crate::record::iterate::{
    Elements, Iter, Iterate, Parts, Rev, Reversible, Step, StepBy, Stridable, iterate,
};
use crate::record::memory::{Slice, SliceElement};
use crate::record::number::Bounded;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, Scalar, Twin, V, Var, assign, get, lit, refer, var};
use crate::shared::EachMine;

/// What has the methods of iterators: ranges, `iter()` of slices and arrays, and adaptors.
pub trait IsIterator: Iterate {}

/// An iterator of which each pass of its loop gives an item.
#[diagnostic::on_unimplemented(
    message = "device code cannot `zip` with `{Self}`",
    note = "`filter` and `skip_while` come after `zip`"
)]
pub trait EachPass: Iterate {}

macro_rules! iterators {
    ($([$($param:tt)*] $what:ty;)*) => {$(
        impl<$($param)*> IsIterator for $what {}
        impl<$($param)*> EachPass for $what {}
    )*};
}
iterators! {
    [T: Step] Range<V<T>>;
    [T: Step] RangeFrom<V<T>>;
    [T: Step] RangeInclusive<V<T>>;
    [T: Step] Rev<Range<V<T>>>;
    [T: Step] Rev<RangeInclusive<V<T>>>;
    [T: Step] StepBy<Range<V<T>>>;
    [S: Elements] Iter<S>;
    [S: Elements] Rev<Iter<S>>;
    [S: Elements] StepBy<Iter<S>>;
    [T: SliceElement] Parts<T>;
    [T: KernelType] EachMine<T>;
    [T: KernelType] EachMine2d<T>;
}

/// What `zip` takes besides iterators.
impl<T: SliceElement> EachPass for Slice<T> {}
impl<T: KernelType, const N: usize> EachPass for V<[T; N]> {}
impl<T: KernelType, const N: usize> EachPass for R<V<[T; N]>> {}

/// Defines an adaptor: a struct of its parts, which are what its loop remembers beside what that of
/// the iterator does.
macro_rules! adaptors {
    ($($(#[$meta:meta])* $name:ident<$($param:ident),*>($($part:ty),*);)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $name<$($param),*>($($part),*);
        impl<$($param: Copy),*> Twin for $name<$($param),*> {
            fn get(&self) -> Self {
                *self
            }
        }
    )*};
}
adaptors! {
    /// The items with their numbers.
    Enumerate<I>(I);
    /// What a function makes of each item.
    Map<I, F>(I, F);
    /// The items for which a condition holds.
    Filter<I, F>(I, F);
    /// The items up to the first for which a condition does not hold.
    TakeWhile<I, F>(I, F);
    /// The items of two iterators, in pairs.
    Zip<A, B>(A, B);
    /// The first items.
    Take<I>(I, V<usize>);
    /// The items behind the first ones.
    Skip<I>(I, V<usize>);
    /// The values that the items lead to.
    Copied<I>(I);
}

impl<S: Copy> Twin for Iter<S> {
    fn get(&self) -> Self {
        *self
    }
}
impl<I: Copy> Twin for Rev<I> {
    fn get(&self) -> Self {
        *self
    }
}
impl<I: Copy> Twin for StepBy<I> {
    fn get(&self) -> Self {
        *self
    }
}
impl<T: SliceElement> Twin for Parts<T> {
    fn get(&self) -> Self {
        *self
    }
}
impl<T: KernelType> Twin for EachMine<T> {
    fn get(&self) -> Self {
        *self
    }
}
impl<T: KernelType> Twin for EachMine2d<T> {
    fn get(&self) -> Self {
        *self
    }
}

impl<I: IsIterator> IsIterator for Enumerate<I> {}
impl<I: EachPass> EachPass for Enumerate<I> {}
impl<I: Iterate> Iterate for Enumerate<I> {
    type State = (I::State, V<usize>);
    type Item = (V<usize>, I::Item);

    fn start(self) -> Self::State {
        (self.0.start(), var(lit(0)))
    }

    fn next((inner, number): &Self::State, around: Label) -> Self::Item {
        let item = I::next(inner, around);
        let now = get(number);
        // Counted here and not between passes: a pass may have no item.
        assign(number, now.wrapping_add(lit(1)));
        (now, item)
    }

    fn step((inner, _): &Self::State) {
        I::step(inner);
    }
}

impl<I: IsIterator, Y, F: Fn(I::Item) -> Y + Copy> IsIterator for Map<I, F> {}
impl<I: IsIterator + EachPass, Y, F: Fn(I::Item) -> Y + Copy> EachPass for Map<I, F> {}
impl<I: IsIterator, Y, F: Fn(I::Item) -> Y + Copy> Iterate for Map<I, F> {
    type State = (I::State, F);
    type Item = Y;

    fn start(self) -> Self::State {
        (self.0.start(), self.1)
    }

    fn next((inner, to): &Self::State, around: Label) -> Y {
        to(I::next(inner, around))
    }

    fn step((inner, _): &Self::State) {
        I::step(inner);
    }
}
impl<I, Y, F> Reversible for Map<I, F>
where
    I: IsIterator + Reversible,
    I::Reversed: IsIterator<Item = I::Item>,
    F: Fn(I::Item) -> Y + Copy,
{
    type Reversed = Map<I::Reversed, F>;

    fn reversed(self) -> Self::Reversed {
        Map(self.0.reversed(), self.1)
    }
}

impl<I: IsIterator, F: Fn(R<I::Item>) -> V<bool> + Copy> IsIterator for Filter<I, F> where I::Item: Copy {}
impl<I: IsIterator, F: Fn(R<I::Item>) -> V<bool> + Copy> Iterate for Filter<I, F>
where
    I::Item: Copy,
{
    type State = (I::State, F);
    type Item = I::Item;

    fn start(self) -> Self::State {
        (self.0.start(), self.1)
    }

    fn next((inner, holds): &Self::State, around: Label) -> I::Item {
        let item = I::next(inner, around);
        let is_left_out = if_begin(not(holds(refer(item))));
        again(around);
        if_end(is_left_out);
        item
    }

    fn step((inner, _): &Self::State) {
        I::step(inner);
    }
}

impl<I: IsIterator, F: Fn(R<I::Item>) -> V<bool> + Copy> IsIterator for TakeWhile<I, F> where I::Item: Copy {}
impl<I: IsIterator + EachPass, F: Fn(R<I::Item>) -> V<bool> + Copy> EachPass for TakeWhile<I, F> where
    I::Item: Copy
{
}
impl<I: IsIterator, F: Fn(R<I::Item>) -> V<bool> + Copy> Iterate for TakeWhile<I, F>
where
    I::Item: Copy,
{
    type State = (I::State, F);
    type Item = I::Item;

    fn start(self) -> Self::State {
        (self.0.start(), self.1)
    }

    fn next((inner, holds): &Self::State, around: Label) -> I::Item {
        let item = I::next(inner, around);
        leave_unless(around, holds(refer(item)));
        item
    }

    fn step((inner, _): &Self::State) {
        I::step(inner);
    }
}

impl<A: IsIterator + EachPass, B: EachPass> IsIterator for Zip<A, B> {}
impl<A: IsIterator + EachPass, B: EachPass> EachPass for Zip<A, B> {}
impl<A: EachPass, B: EachPass> Iterate for Zip<A, B> {
    type State = (A::State, B::State);
    type Item = (A::Item, B::Item);

    fn start(self) -> Self::State {
        (self.0.start(), self.1.start())
    }

    fn next((a, b): &Self::State, around: Label) -> Self::Item {
        (A::next(a, around), B::next(b, around))
    }

    fn step((a, b): &Self::State) {
        A::step(a);
        B::step(b);
    }
}

impl<I: IsIterator> IsIterator for Take<I> {}
impl<I: EachPass> EachPass for Take<I> {}
impl<I: Iterate> Iterate for Take<I> {
    type State = (I::State, V<usize>);
    type Item = I::Item;

    fn start(self) -> Self::State {
        (self.0.start(), var(self.1))
    }

    fn next((inner, left): &Self::State, around: Label) -> I::Item {
        leave_unless(around, gt(get(left), lit(0)));
        let item = I::next(inner, around);
        assign(left, get(left).wrapping_sub(lit(1)));
        item
    }

    fn step((inner, _): &Self::State) {
        I::step(inner);
    }
}

impl<I: IsIterator> IsIterator for Skip<I> {}
impl<I: EachPass> EachPass for Skip<I> {}
impl<I: Iterate> Iterate for Skip<I> {
    type State = I::State;
    type Item = I::Item;

    fn start(self) -> Self::State {
        let state = self.0.start();
        let left: V<usize> = var(self.1);
        let around = loop_begin();
        leave_unless(around, gt(get(&left), lit(0)));
        let _ = I::next(&state, around);
        assign(&left, get(&left).wrapping_sub(lit(1)));
        loop_step();
        with(|r| r.enter_step(around));
        I::step(&state);
        with(|r| r.leave_step());
        loop_end(around);
        state
    }

    fn next(state: &Self::State, around: Label) -> I::Item {
        I::next(state, around)
    }

    fn step(state: &Self::State) {
        I::step(state);
    }
}

impl<I: IsIterator + Iterate<Item = R<X>>, X: Twin> IsIterator for Copied<I> {}
impl<I: EachPass + Iterate<Item = R<X>>, X: Twin> EachPass for Copied<I> {}
impl<I: Iterate<Item = R<X>>, X: Twin> Iterate for Copied<I> {
    type State = I::State;
    type Item = X;

    fn start(self) -> Self::State {
        self.0.start()
    }

    fn next(state: &Self::State, around: Label) -> X {
        I::next(state, around).__place.get()
    }

    fn step(state: &Self::State) {
        I::step(state);
    }
}
impl<I, X: Twin> Reversible for Copied<I>
where
    I: Reversible + Iterate<Item = R<X>>,
    I::Reversed: Iterate<Item = R<X>>,
{
    type Reversed = Copied<I::Reversed>;

    fn reversed(self) -> Self::Reversed {
        Copied(self.0.reversed())
    }
}

/// The methods of iterators.
pub trait IteratorMethods: IsIterator {
    /// Does what the method of the standard library does.
    fn rev(self) -> Self::Reversed
    where
        Self: Reversible,
    {
        self.reversed()
    }

    /// Does what the method of the standard library does.
    fn step_by(self, by: V<usize>) -> Self::Strided
    where
        Self: Stridable,
    {
        self.strided(by)
    }

    /// Does what the method of the standard library does.
    fn enumerate(self) -> Enumerate<Self> {
        Enumerate(self)
    }

    /// Does what the method of the standard library does.
    fn map<Y, F: Fn(Self::Item) -> Y + Copy>(self, to: F) -> Map<Self, F> {
        Map(self, to)
    }

    /// Does what the method of the standard library does.
    fn filter<F: Fn(R<Self::Item>) -> V<bool> + Copy>(self, holds: F) -> Filter<Self, F> {
        Filter(self, holds)
    }

    /// Does what the method of the standard library does.
    fn take_while<F: Fn(R<Self::Item>) -> V<bool> + Copy>(self, holds: F) -> TakeWhile<Self, F> {
        TakeWhile(self, holds)
    }

    /// Does what the method of the standard library does.
    fn zip<B: EachPass>(self, other: B) -> Zip<Self, B>
    where
        Self: EachPass,
    {
        Zip(self, other)
    }

    /// Does what the method of the standard library does.
    fn take(self, count: V<usize>) -> Take<Self> {
        Take(self, count)
    }

    /// Does what the method of the standard library does.
    fn skip(self, count: V<usize>) -> Skip<Self> {
        Skip(self, count)
    }

    /// Does what the method of the standard library does.
    fn copied(self) -> Copied<Self> {
        Copied(self)
    }

    /// Does what the method of the standard library does.
    fn cloned(self) -> Copied<Self> {
        Copied(self)
    }

    /// Does what the method of the standard library does.
    fn for_each(self, act: impl Fn(Self::Item)) {
        let around = iterate(self);
        act(around.next());
        around.end();
    }

    /// Does what the method of the standard library does.
    fn fold<B: Var>(self, start: B, to: impl Fn(B, Self::Item) -> B) -> B {
        let result = start.own();
        let around = iterate(self);
        let item = around.next();
        result.assign(to(result.get(), item));
        around.end();
        result.get()
    }

    /// Does what the method of the standard library does.
    fn sum<T: OpAdd + Scalar>(self) -> V<T>
    where
        Self::Item: Given<T>,
    {
        let line = with(|r| r.line_now());
        // The sum of no numbers is the negative zero, to which adding changes nothing. Numbers of
        // half precision are summed in single precision.
        let zero = match T::TY {
            Ty::F32 => V::of(Operand::Imm(Ty::F32, (-0.0f32).to_bits().into())),
            Ty::F64 => V::of(Operand::Imm(Ty::F64, (-0.0f64).to_bits())),
            Ty::F16 | Ty::Bf16 => {
                let sum: V<f32> =
                    self.fold(lit(-0.0), |sum, item| add(sum, cast::<f32, T>(item.given()), line));
                return cast(sum);
            }
            _ => V::of_number(0),
        };
        self.fold(zero, |sum, item| add(sum, item.given(), line))
    }

    /// Does what the method of the standard library does.
    fn product<T: OpMul + Scalar>(self) -> V<T>
    where
        Self::Item: Given<T>,
    {
        let line = with(|r| r.line_now());
        if let Ty::F16 | Ty::Bf16 = T::TY {
            let product: V<f32> =
                self.fold(lit(1.0), |product, item| mul(product, cast::<f32, T>(item.given()), line));
            return cast(product);
        }
        self.fold(V::of_number(1), |product, item| mul(product, item.given(), line))
    }

    /// Does what the method of the standard library does.
    fn count(self) -> V<usize> {
        self.fold(lit(0), |count: V<usize>, _| count.wrapping_add(lit(1)))
    }

    /// Does what the method of the standard library does, with values.
    fn min<C: Compared>(self) -> Opt<C>
    where
        Self: Iterate<Item = C>,
    {
        best(self, |best, item| best.min(item))
    }

    /// Does what the method of the standard library does, with values.
    fn max<C: Compared>(self) -> Opt<C>
    where
        Self: Iterate<Item = C>,
    {
        best(self, |best, item| best.max(item))
    }

    /// Does what the method of the standard library does.
    fn any(self, holds: impl Fn(Self::Item) -> V<bool>) -> V<bool> {
        let result = var(lit(false));
        let around = iterate(self);
        let found = if_begin(holds(around.next()));
        assign(&result, lit(true));
        leave(around.label());
        if_end(found);
        around.end();
        get(&result)
    }

    /// Does what the method of the standard library does.
    fn all(self, holds: impl Fn(Self::Item) -> V<bool>) -> V<bool> {
        not(self.any(|item| not(holds(item))))
    }

    /// Does what the method of the standard library does.
    fn position(self, holds: impl Fn(Self::Item) -> V<bool>) -> Opt<V<usize>> {
        let result = Opt { __some: var(lit(false)), __value: var(lit(0usize)) };
        let around = iterate(Enumerate(self));
        let (index, item) = around.next();
        let found = if_begin(holds(item));
        assign(&result.__some, lit(true));
        assign(&result.__value, index);
        leave(around.label());
        if_end(found);
        around.end();
        result.get()
    }

    /// Does what the method of the standard library does, with values.
    fn find(self, holds: impl Fn(R<Self::Item>) -> V<bool>) -> Opt<Self::Item>
    where
        Self::Item: Var,
    {
        let result = Opt { __some: var(lit(false)), __value: Self::Item::declare() };
        let around = iterate(self);
        let item = around.next();
        let found = if_begin(holds(refer(item)));
        assign(&result.__some, lit(true));
        result.__value.assign(item);
        leave(around.label());
        if_end(found);
        around.end();
        result.get()
    }

    /// Does what the method of the standard library does, with values.
    fn last(self) -> Opt<Self::Item>
    where
        Self::Item: Var,
    {
        let result = Opt { __some: var(lit(false)), __value: Self::Item::declare() };
        let around = iterate(self);
        let item = around.next();
        assign(&result.__some, lit(true));
        result.__value.assign(item);
        around.end();
        result.get()
    }
}
impl<I: IsIterator> IteratorMethods for I {}

/// An item of which there is a smallest and a greatest: a number, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "device code finds the smallest and the greatest of integers, and not of `{Self}`",
    note = "write a `for` loop, or `fold` with `f32::min`"
)]
pub trait Compared: Copy {
    #[doc(hidden)]
    type Number: Bounded;
    #[doc(hidden)]
    fn number(self) -> V<Self::Number>;
    #[doc(hidden)]
    fn of(number: V<Self::Number>) -> Self;
}
impl<T: Bounded> Compared for V<T> {
    type Number = T;

    fn number(self) -> V<T> {
        self
    }

    fn of(number: V<T>) -> Self {
        number
    }
}
impl<T: Bounded> Compared for R<V<T>> {
    type Number = T;

    fn number(self) -> V<T> {
        get(&self.__place)
    }

    /// Refers to a copy, which has the same value as long as the reference lives.
    fn of(number: V<T>) -> Self {
        R { __place: number }
    }
}

/// Returns the item that the others leave over.
fn best<C: Compared, I: Iterate<Item = C>>(
    items: I,
    choose: impl Fn(V<C::Number>, V<C::Number>) -> V<C::Number>,
) -> Opt<C> {
    let result = Opt { __some: var(lit(false)), __value: V::<C::Number>::declare() };
    let around = iterate(items);
    let item = around.next().number();
    let is_later = if_begin(get(&result.__some));
    assign(&result.__value, choose(get(&result.__value), item));
    crate::record::control::else_begin();
    assign(&result.__value, item);
    crate::record::control::if_else_end(is_later);
    assign(&result.__some, lit(true));
    around.end();
    let result = result.get();
    Opt { __some: result.__some, __value: C::of(result.__value) }
}
