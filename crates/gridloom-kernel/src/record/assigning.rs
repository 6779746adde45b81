//! Recording of operators that assign.

use crate::record::arithmetic::{Given, OpAdd, OpBitAnd, OpBitOr, OpBitXor, OpDiv, OpMul, OpRem, OpSub};
use crate::record::recorder::with;
use crate::record::value::{KernelType, R, Scalar, V, assign, get};

macro_rules! operators {
    ($($op:ident, $method:ident, $plain:ident, $of:ident, $doc:literal;)*) => {$(
        #[doc = concat!("A type with the operator `", $doc, "`.")]
        #[diagnostic::on_unimplemented(
            message = "device code has no such operator for `{Self}` and `{Right}`",
            note = "for your own type, write `#[gridloom::device]` on the `impl` of the operator"
        )]
        pub trait $op<Right: KernelType = Self>: KernelType {
            #[doc(hidden)]
            fn $method(place: R<V<Self>>, value: V<Right>);
        }

        impl<T: $plain + Scalar> $op for T {
            fn $method(place: R<V<Self>>, value: V<Self>) {
                assign(&place.__place, T::$of(get(&place.__place), value));
            }
        }

        #[doc = concat!("`a ", $doc, " b`.")]
        pub fn $method<T: $op<U>, U: KernelType>(place: &V<T>, value: impl Given<U>, line: u32) {
            with(|r| r.at(line));
            T::$method(R { __place: *place }, value.given());
        }
    )*};
}
operators! {
    OpAddAssign, add_assign, OpAdd, add, "+=";
    OpSubAssign, sub_assign, OpSub, sub, "-=";
    OpMulAssign, mul_assign, OpMul, mul, "*=";
    OpDivAssign, div_assign, OpDiv, div, "/=";
    OpRemAssign, rem_assign, OpRem, rem, "%=";
    OpBitAndAssign, bitand_assign, OpBitAnd, bit_and, "&=";
    OpBitOrAssign, bitor_assign, OpBitOr, bit_or, "|=";
    OpBitXorAssign, bitxor_assign, OpBitXor, bit_xor, "^=";
}
