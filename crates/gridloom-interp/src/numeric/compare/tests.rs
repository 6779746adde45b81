use proptest::prelude::*;

use super::*;
use crate::numeric::oracle::{edges, operand};
use crate::numeric::{Bf16, F16, F32, F64};

const ALL: [Comparison; 14] = [
    Comparison::Eq,
    Comparison::Ne,
    Comparison::Lt,
    Comparison::Le,
    Comparison::Gt,
    Comparison::Ge,
    Comparison::Equ,
    Comparison::Neu,
    Comparison::Ltu,
    Comparison::Leu,
    Comparison::Gtu,
    Comparison::Geu,
    Comparison::Num,
    Comparison::Nan,
];

/// Returns what the host's comparisons say.
fn on_host(comparison: Comparison, a: f64, b: f64) -> bool {
    let nan = a.is_nan() || b.is_nan();
    match comparison {
        Comparison::Eq => a == b,
        // The host's `!=` is true for NaN; PTX's `ne` is not.
        Comparison::Ne => a != b && !nan,
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Gt => a > b,
        Comparison::Ge => a >= b,
        Comparison::Equ => a == b || nan,
        Comparison::Neu => a != b,
        Comparison::Ltu => a < b || nan,
        Comparison::Leu => a <= b || nan,
        Comparison::Gtu => a > b || nan,
        Comparison::Geu => a >= b || nan,
        Comparison::Num => !nan,
        Comparison::Nan => nan,
    }
}

#[test]
fn every_f16_compares_with_every_edge_value_as_numbers_do() {
    for a in 0..=u16::MAX {
        for b in edges::<F16>() {
            for comparison in ALL {
                let expected = on_host(comparison, F16::to_f64(a.into()), F16::to_f64(b.into()));
                assert_eq!(compare::<F16>(comparison, a, b, false), expected, "{a:#x} {comparison:?} {b:#x}");
            }
        }
    }
}

proptest! {
    #[test]
    fn f32_and_f64_compare_as_on_the_host(a in operand::<F32>(), b in operand::<F32>(), x in operand::<F64>(), y in operand::<F64>()) {
        for comparison in ALL {
            let host = on_host(comparison, F32::to_f64(a.into()), F32::to_f64(b.into()));
            prop_assert_eq!(compare::<F32>(comparison, a, b, false), host);
            prop_assert_eq!(compare::<F64>(comparison, x, y, false), on_host(comparison, f64::from_bits(x), f64::from_bits(y)));
        }
    }

    #[test]
    fn integers_compare_by_their_signedness(a: i32, b: i32) {
        prop_assert_eq!(compare_integer(Comparison::Lt, a, b), a < b);
        prop_assert_eq!(compare_integer(Comparison::Ge, a as u32, b as u32), a as u32 >= b as u32);
        prop_assert_eq!(compare_integer(Comparison::Ne, a, b), a != b);
    }
}

#[test]
fn unordered_forms_mean_the_same_on_integers() {
    for (ordered, unordered) in ALL[..6].iter().zip(&ALL[6..12]) {
        for (a, b) in [(1, 2), (2, 1), (2, 2)] {
            assert_eq!(compare_integer(*ordered, a, b), compare_integer(*unordered, a, b));
        }
    }
}

#[test]
fn ftz_makes_subnormals_equal_to_zero() {
    assert!(compare::<F32>(Comparison::Gt, 1, 0, false));
    assert!(!compare::<F32>(Comparison::Gt, 1, 0, true));
    assert!(compare::<F32>(Comparison::Eq, 1, 0x807f_ffff, true));
}

const PLAIN: Extremum = Extremum { ftz: false, nan: false, xorsign_abs: false, abs: false };
const NAN: Extremum = Extremum { nan: true, ..PLAIN };
const XORSIGN: Extremum = Extremum { xorsign_abs: true, ..PLAIN };

#[test]
fn minus_zero_is_below_plus_zero() {
    for (a, b) in [(0, 0x8000_0000), (0x8000_0000, 0)] {
        assert_eq!(min::<F32>(a, b, PLAIN), 0x8000_0000);
        assert_eq!(max::<F32>(a, b, PLAIN), 0);
    }
}

#[test]
fn a_nan_operand_is_ignored_unless_nan_is_asked_for() {
    for nan in [0x7f80_0001, 0xffc0_0005] {
        let one = 0x3f80_0000;
        assert_eq!((min::<F32>(nan, one, PLAIN), max::<F32>(one, nan, PLAIN)), (one, one));
        assert_eq!((min::<F32>(nan, one, NAN), max::<F32>(one, nan, NAN)), (0x7fff_ffff, 0x7fff_ffff));
        assert_eq!(min::<F32>(nan, nan, PLAIN), 0x7fff_ffff);
    }
    assert_eq!(max::<F16>(0x7e01, 0xfc00, PLAIN), 0xfc00);
    assert_eq!(max::<Bf16>(0x7fc5, 0x3f80, NAN), 0x7fff);
    assert_eq!(min::<F64>(0x7ff0_0000_0000_0001, 0xfff0_0000_0000_0002, PLAIN), 0xfff8_0000_0000_0002);
}

#[test]
fn xorsign_compares_magnitudes_and_multiplies_signs() {
    let (two, three, sign) = (0x4000_0000, 0x4040_0000, 0x8000_0000);
    assert_eq!(min::<F32>(two | sign, three, XORSIGN), two | sign);
    assert_eq!(max::<F32>(two | sign, three | sign, XORSIGN), three);
    assert_eq!(min::<F32>(two, 0xffc0_0000, XORSIGN), two | sign);
}

#[test]
fn ftz_flushes_the_result_of_a_minimum() {
    let ftz = Extremum { ftz: true, ..PLAIN };
    assert_eq!(min::<F32>(0x8000_0001, 0x3f80_0000, ftz), 0x8000_0000);
    assert_eq!(max::<F32>(1, 0x8000_0000, ftz), 0);
}

#[test]
fn three_operands_reduce_from_the_left() {
    let (one, two, three, nan) = (0x3f80_0000, 0x4000_0000, 0x4040_0000, 0x7fc0_0000);
    assert_eq!((min3::<F32>(two, one, three, PLAIN), max3::<F32>(two, three, one, PLAIN)), (one, three));
    assert_eq!((min3::<F32>(nan, nan, three, PLAIN), max3::<F32>(one, nan, two, NAN)), (three, 0x7fff_ffff));
    let abs = Extremum { abs: true, ..PLAIN };
    assert_eq!(max3::<F32>(one, three | 1 << 31, two, abs), three);
}

#[test]
fn results_are_always_one_of_the_operands() {
    for a in edges::<Bf16>() {
        for b in edges::<Bf16>() {
            for result in [min::<Bf16>(a, b, PLAIN), max::<Bf16>(a, b, PLAIN)] {
                assert!(result == a || result == b || result == 0x7fff, "{a:#x} {b:#x} {result:#x}");
            }
        }
    }
}
