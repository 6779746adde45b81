//! Implementations for tuples of every length.

/// Calls a macro with no elements, with one, and so on up to the given number. Each element is the
/// name of a parameter, the name of a value, and its index.
macro_rules! for_tuples {
    ($make:ident, 12) => {
        $crate::tuples::for_tuples!(@ $make []
            P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8,
            P9 V9 9, P10 V10 10, P11 V11 11,
        );
    };
    ($make:ident, 16) => {
        $crate::tuples::for_tuples!(@ $make []
            P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8,
            P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15,
        );
    };
    ($make:ident, 24) => {
        $crate::tuples::for_tuples!(@ $make []
            P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8,
            P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15,
            P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21, P22 V22 22,
            P23 V23 23,
        );
    };
    (@ $make:ident [$($done:tt)*]) => {
        $make!($($done)*);
    };
    (@ $make:ident [] $P:ident $V:ident $index:tt, $($rest:tt)*) => {
        $make!();
        $crate::tuples::for_tuples!(@ $make [$P $V $index] $($rest)*);
    };
    (@ $make:ident [$($done:tt)+] $P:ident $V:ident $index:tt, $($rest:tt)*) => {
        $make!($($done)+);
        $crate::tuples::for_tuples!(@ $make [$($done)+, $P $V $index] $($rest)*);
    };
}
pub(crate) use for_tuples;
