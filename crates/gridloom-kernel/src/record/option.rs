//! The methods of options.

use crate::record::arithmetic::not;
use crate::record::control::{else_begin, if_begin, if_else_end, require};
use crate::record::recorder::with;
use crate::record::value::{Opt, Twin, V, Var, lit};

impl<X: Twin> Opt<X> {
    /// As the method of Rust.
    pub fn is_some(self) -> V<bool> {
        self.__some.get()
    }

    /// As the method of Rust.
    pub fn is_none(self) -> V<bool> {
        not(self.__some.get())
    }

    fn require(self, message: &str) -> X {
        let line = with(|r| r.line_now());
        require(self.__some.get(), message, line);
        self.__value.get()
    }

    /// As the method of Rust.
    pub fn unwrap(self) -> X {
        self.require("called `Option::unwrap()` on a `None` value")
    }

    /// As the method of Rust.
    pub fn expect(self, message: &str) -> X {
        self.require(message)
    }
}

impl<X: Var> Opt<X> {
    /// As the method of Rust.
    pub fn unwrap_or(self, other: X) -> X {
        let result = X::declare();
        let some = if_begin(self.__some.get());
        result.assign(self.__value.get());
        else_begin();
        result.assign(other);
        if_else_end(some);
        result
    }

    /// As the method of Rust.
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
