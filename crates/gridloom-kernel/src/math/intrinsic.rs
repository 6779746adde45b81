//! Operations that Rust has no name for, or that would be a branch in device code.

use crate::ir::Ty;
use crate::record::recorder::with;
use crate::record::{V, select};

/// Defines a function of device code that is one instruction.
macro_rules! intrinsic {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $result:ty { $host:expr } records $recorded:expr) => {
        $(#[$meta])*
        #[inline]
        pub(crate) fn $name($($arg: $ty),*) -> $result {
            $host
        }

        #[allow(non_camel_case_types, reason = "it accompanies the function of that name")]
        pub(crate) struct $name {}

        impl $name {
            pub(crate) fn __twin($($arg: V<$ty>),*) -> V<$result> {
                $recorded
            }
        }
    };
}

intrinsic! {
    /// Returns the upper half of a product.
    fn mul_hi(a: u64, b: u64) -> u64 { ((u128::from(a) * u128::from(b)) >> 64) as u64 }
    records with(|r| {
        let (a, b) = (a.operand(r), b.operand(r));
        V::of(r.compute("mul.hi", "u64", Ty::U64, &[a, b]))
    })
}
intrinsic! {
    /// Returns one of two numbers, without a branch.
    fn select_f32(cond: bool, a: f32, b: f32) -> f32 { if cond { a } else { b } }
    records select(cond, a, b)
}
intrinsic! {
    /// Returns one of two numbers, without a branch.
    fn select_f64(cond: bool, a: f64, b: f64) -> f64 { if cond { a } else { b } }
    records select(cond, a, b)
}
