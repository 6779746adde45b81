//! Recording of the methods of options.

use crate::record::arithmetic::{bit_and, not};
use crate::record::control::{else_begin, if_begin, if_else_end, if_end, require};
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, Scalar, Twin, V, Var, lit, refer};

impl<X: Twin> Opt<X> {
    /// Does what the method of the standard library does.
    pub fn is_some(self) -> V<bool> {
        self.__some.get()
    }

    /// Does what the method of the standard library does.
    pub fn is_none(self) -> V<bool> {
        not(self.__some.get())
    }

    fn require(self, message: &str) -> X {
        let line = with(|r| r.line_now());
        require(self.__some.get(), message, line);
        self.__value.get()
    }

    /// Does what the method of the standard library does.
    pub fn unwrap(self) -> X {
        self.require("called `Option::unwrap()` on a `None` value")
    }

    /// Does what the method of the standard library does.
    pub fn expect(self, message: &str) -> X {
        self.require(message)
    }
}

impl<X: Var> Opt<X> {
    /// Does what the method of the standard library does.
    pub fn unwrap_or(self, other: X) -> X {
        let result = X::declare();
        let some = if_begin(self.__some.get());
        result.assign(self.__value.get());
        else_begin();
        result.assign(other);
        if_else_end(some);
        result
    }

    /// Does what the method of the standard library does.
    pub fn unwrap_or_else(self, other: impl FnOnce() -> X) -> X {
        self.map_or_else(other, |value| value)
    }

    /// Does what the method of the standard library does.
    pub fn or(self, other: Opt<X>) -> Opt<X> {
        let result = Opt::declare();
        let some = if_begin(self.__some.get());
        result.assign(self.get());
        else_begin();
        result.assign(other.get());
        if_else_end(some);
        result
    }

    /// Does what the method of the standard library does.
    pub fn xor(self, other: Opt<X>) -> Opt<X> {
        let result = Opt::declare();
        let (first, second) = (self.get(), other.get());
        let some = if_begin(first.__some);
        result.assign(first);
        else_begin();
        result.assign(second);
        if_else_end(some);
        let is_one = super::arithmetic::ne(first.__some, second.__some);
        Opt { __some: is_one, __value: result.__value }
    }

    /// Does what the method of the standard library does: the variable has none then.
    pub fn take(self) -> Opt<X> {
        let before = self.get();
        self.__some.assign(super::value::lit(false));
        before
    }

    /// Does what the method of the standard library does: the variable has the value then.
    pub fn replace(self, value: X) -> Opt<X> {
        let before = self.get();
        self.assign(Opt { __some: super::value::lit(true), __value: value });
        before
    }

    /// Does what the method of the standard library does.
    pub fn filter(self, holds: impl FnOnce(R<X>) -> V<bool>) -> Opt<X> {
        let result: Opt<X> = Opt { __some: V::declare(), __value: self.__value.get() };
        result.__some.assign(lit(false));
        let some = if_begin(self.__some.get());
        result.__some.assign(holds(refer(result.__value)));
        if_end(some);
        result
    }
}

impl<X: Twin> Opt<X> {
    /// Does what the method of the standard library does.
    pub fn is_some_and(self, holds: impl FnOnce(X) -> V<bool>) -> V<bool> {
        self.map_or(lit(false), holds)
    }

    /// Does what the method of the standard library does.
    pub fn is_none_or(self, holds: impl FnOnce(X) -> V<bool>) -> V<bool> {
        self.map_or(lit(true), holds)
    }

    /// Does what the method of the standard library does.
    pub fn map_or<Y: Var>(self, other: Y, to: impl FnOnce(X) -> Y) -> Y {
        self.map_or_else(|| other, to)
    }

    /// Does what the method of the standard library does.
    pub fn map_or_else<Y: Var>(self, other: impl FnOnce() -> Y, to: impl FnOnce(X) -> Y) -> Y {
        let result = Y::declare();
        let some = if_begin(self.__some.get());
        result.assign(to(self.__value.get()));
        else_begin();
        result.assign(other());
        if_else_end(some);
        result
    }

    /// Does what the method of the standard library does.
    pub fn and_then<Y: Var>(self, to: impl FnOnce(X) -> Opt<Y>) -> Opt<Y> {
        let result = Opt { __some: V::declare(), __value: Y::declare() };
        let some = if_begin(self.__some.get());
        result.assign(to(self.__value.get()));
        else_begin();
        result.__some.assign(lit(false));
        if_else_end(some);
        result
    }

    /// Does what the method of the standard library does.
    pub fn zip<Y: Twin>(self, other: Opt<Y>) -> Opt<(X, Y)> {
        let is_both = bit_and(self.__some.get(), other.__some.get(), 0);
        Opt { __some: is_both, __value: (self.__value.get(), other.__value.get()) }
    }

    /// Does what the method of the standard library does.
    pub fn map<Y: Var>(self, to: impl FnOnce(X) -> Y) -> Opt<Y> {
        let result = Opt { __some: V::declare(), __value: Y::declare() };
        let some = if_begin(self.__some.get());
        result.__value.assign(to(self.__value.get()));
        result.__some.assign(lit(true));
        else_begin();
        result.__some.assign(lit(false));
        if_else_end(some);
        result
    }
}

impl<X: Twin> Opt<R<X>> {
    /// Does what the method of the standard library does. Where there is no value, nothing is read.
    pub fn copied(self) -> Opt<X>
    where
        X: Var,
    {
        self.map(|value| value.__place.get())
    }

    /// Does what the method of the standard library does.
    pub fn cloned(self) -> Opt<X>
    where
        X: Var,
    {
        self.copied()
    }
}

impl<T: KernelType> Opt<R<V<T>>> {
    /// Does what the method of the standard library does, for references to read. It refers to a
    /// copy, which has the same value as long as the reference lives.
    pub fn unwrap_or(self, other: R<V<T>>) -> R<V<T>> {
        let result: V<T> = V::declare();
        let some = if_begin(self.__some.get());
        result.assign(self.__value.__place.get());
        else_begin();
        result.assign(other.__place.get());
        if_else_end(some);
        R { __place: result }
    }
}

impl<T: Scalar> Opt<V<T>> {
    /// Does what the method of the standard library does.
    pub fn unwrap_or_default(self) -> V<T> {
        self.unwrap_or(V::of_number(0))
    }
}

impl V<bool> {
    /// Does what the method of the standard library does.
    pub fn then_some<X: Twin>(self, value: X) -> Opt<X> {
        Opt { __some: self, __value: value }
    }

    /// Does what the method of the standard library does.
    pub fn then<X: Var>(self, value: impl FnOnce() -> X) -> Opt<X> {
        let result = Opt { __some: self.get(), __value: X::declare() };
        let holds = if_begin(result.__some);
        result.__value.assign(value());
        if_end(holds);
        result
    }
}
