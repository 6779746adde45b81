//! The items that the passes of a loop have, by the number of the pass.
//!
//! A loop of a program is around kernels. Each of them finds its item from what the loop goes over.

use std::ops::{Range, RangeInclusive};

use crate::record::arithmetic::{OpDiv, le, lt};
use crate::record::control::{else_begin, if_begin, if_else_end};
use crate::record::convert::cast;
use crate::record::iterate::{Rev, Step, StepBy};
use crate::record::value::{V, assign, get, lit, var};

/// Returns the item of a pass. The loop has this pass.
pub fn nth_pass<I: IntoIterator>(over: I, pass: u64) -> I::Item {
    over.into_iter().nth(pass as usize).expect("the loop has this pass")
}

/// Returns whether a loop has a pass of this number.
pub fn has_pass<I: IntoIterator>(over: I, pass: u64) -> bool {
    over.into_iter().nth(pass as usize).is_some()
}

/// Records `nth_pass`.
#[allow(non_camel_case_types, reason = "twins are found under the name of the function")]
pub struct nth_pass {}

/// Records `has_pass`.
#[allow(non_camel_case_types, reason = "twins are found under the name of the function")]
pub struct has_pass {}

impl nth_pass {
    pub fn __twin<I: Passes>(over: I, pass: V<u64>) -> V<I::Number> {
        over.nth(pass)
    }
}

impl has_pass {
    pub fn __twin<I: Passes>(over: I, pass: V<u64>) -> V<bool> {
        over.has(pass)
    }
}

/// What a loop around parallel loops can go over.
#[diagnostic::on_unimplemented(
    message = "a loop around parallel loops cannot go over `{Self}`",
    note = "loop over a range, or over `rev()` or `step_by()` of one"
)]
pub trait Passes {
    /// The items.
    type Number: Step;
    #[doc(hidden)]
    fn nth(self, pass: V<u64>) -> V<Self::Number>;
    #[doc(hidden)]
    fn has(self, pass: V<u64>) -> V<bool>;
}

/// Returns the distance between two numbers of any type, of which the second is not smaller.
fn distance<T: Step>(from: V<T>, to: V<T>) -> V<u64> {
    cast::<u64, T>(to).wrapping_sub(cast::<u64, T>(from))
}

fn up<T: Step>(from: V<T>, by: V<u64>) -> V<T> {
    cast::<T, u64>(cast::<u64, T>(from).wrapping_add(by))
}

fn down<T: Step>(from: V<T>, by: V<u64>) -> V<T> {
    cast::<T, u64>(cast::<u64, T>(from).wrapping_sub(by))
}

/// Returns what `then` does where a condition holds, and else `false`.
fn and_then(cond: V<bool>, then: impl FnOnce() -> V<bool>) -> V<bool> {
    let result: V<bool> = var(lit(false));
    let cond = if_begin(cond);
    assign(&result, then());
    else_begin();
    if_else_end(cond);
    get(&result)
}

impl<T: Step> Passes for Range<V<T>> {
    type Number = T;

    fn nth(self, pass: V<u64>) -> V<T> {
        up(self.start, pass)
    }

    fn has(self, pass: V<u64>) -> V<bool> {
        and_then(lt(self.start, self.end), || lt(pass, distance(self.start, self.end)))
    }
}

impl<T: Step> Passes for RangeInclusive<V<T>> {
    type Number = T;

    fn nth(self, pass: V<u64>) -> V<T> {
        up(*self.start(), pass)
    }

    fn has(self, pass: V<u64>) -> V<bool> {
        let (start, end) = self.into_inner();
        and_then(le(start, end), || le(pass, distance(start, end)))
    }
}

impl<T: Step> Passes for Rev<Range<V<T>>> {
    type Number = T;

    fn nth(self, pass: V<u64>) -> V<T> {
        down(self.0.end, pass.wrapping_add(lit(1)))
    }

    fn has(self, pass: V<u64>) -> V<bool> {
        self.0.has(pass)
    }
}

impl<T: Step> Passes for Rev<RangeInclusive<V<T>>> {
    type Number = T;

    fn nth(self, pass: V<u64>) -> V<T> {
        down(*self.0.end(), pass)
    }

    fn has(self, pass: V<u64>) -> V<bool> {
        self.0.has(pass)
    }
}

impl<T: Step> Passes for StepBy<Range<V<T>>> {
    type Number = T;

    fn nth(self, pass: V<u64>) -> V<T> {
        up(self.0.start, pass.wrapping_mul(cast(self.1)))
    }

    fn has(self, pass: V<u64>) -> V<bool> {
        let (Range { start, end }, by) = (self.0, self.1);
        super::iterate::check_stride(by);
        and_then(lt(start, end), || {
            let last = distance(start, end).wrapping_sub(lit(1));
            le(pass, u64::div(last, cast(by)))
        })
    }
}
