//! Recording of the methods that integers and floating-point numbers share.

use crate::record::value::{KernelType, V};

/// A type with `min`, `max` and `clamp`.
pub trait Bounded: KernelType {
    #[doc(hidden)]
    fn min(a: V<Self>, b: V<Self>) -> V<Self>;
    #[doc(hidden)]
    fn max(a: V<Self>, b: V<Self>) -> V<Self>;
    #[doc(hidden)]
    fn clamp(a: V<Self>, low: V<Self>, high: V<Self>) -> V<Self>;
}

/// A type with `abs` and `signum`.
pub trait Signed: KernelType {
    #[doc(hidden)]
    fn abs(a: V<Self>) -> V<Self>;
    #[doc(hidden)]
    fn signum(a: V<Self>) -> V<Self>;
}

/// A type with a division whose remainder is not negative.
pub trait Euclid: KernelType {
    #[doc(hidden)]
    fn div_euclid(a: V<Self>, b: V<Self>) -> V<Self>;
    #[doc(hidden)]
    fn rem_euclid(a: V<Self>, b: V<Self>) -> V<Self>;
}

impl<T: Euclid> V<T> {
    /// Does what the method of the standard library does.
    pub fn div_euclid(self, other: V<T>) -> V<T> {
        T::div_euclid(self, other)
    }

    /// Does what the method of the standard library does.
    pub fn rem_euclid(self, other: V<T>) -> V<T> {
        T::rem_euclid(self, other)
    }
}

impl<T: Bounded> V<T> {
    /// Does what the method of the standard library does.
    pub fn min(self, other: V<T>) -> V<T> {
        T::min(self, other)
    }

    /// Does what the method of the standard library does.
    pub fn max(self, other: V<T>) -> V<T> {
        T::max(self, other)
    }

    /// Does what the method of the standard library does. Fails where the bounds are the wrong way
    /// round.
    pub fn clamp(self, low: V<T>, high: V<T>) -> V<T> {
        T::clamp(self, low, high)
    }
}

impl<T: Signed> V<T> {
    /// Does what the method of the standard library does. For integers, overflow fails where the
    /// program checks for it.
    pub fn abs(self) -> V<T> {
        T::abs(self)
    }

    /// Does what the method of the standard library does.
    pub fn signum(self) -> V<T> {
        T::signum(self)
    }
}
