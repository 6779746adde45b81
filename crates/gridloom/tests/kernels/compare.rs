//! How results are compared: bit for bit, within units in the last place, or within a bound.

use std::fmt::Debug;

/// Asserts that all bits agree; every NaN equals every other.
#[track_caller]
pub(crate) fn same_bits<T: Float>(got: &[T], expected: &[T]) {
    assert_eq!(got.len(), expected.len());
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let both_nan = got.is_nan() && expected.is_nan();
        assert!(both_nan || got.ordered() == expected.ordered(), "[{i}]: {got:?}, not {expected:?}");
    }
}

/// Asserts that each is within `ulps` units in the last place of what is expected.
#[track_caller]
pub(crate) fn within_ulps<T: Float>(what: &str, got: T, expected: T, ulps: i64) {
    let near = got.ordered().abs_diff(expected.ordered()) <= ulps as u64;
    assert!(
        near || (got.is_nan() && expected.is_nan()),
        "{what}: {got:?}, not {expected:?} within {ulps} ulps"
    );
}

/// Asserts that `got` is within `absolute + relative * |expected|` of what is expected.
#[track_caller]
pub(crate) fn within(what: &str, got: f64, expected: f64, absolute: f64, relative: f64) {
    let bound = absolute + relative * expected.abs();
    assert!((got - expected).abs() <= bound, "{what}: {got}, not {expected} within {bound:e}");
}

/// Floats that can be compared, and stepped through, by their bits.
pub(crate) trait Float: Copy + Debug {
    fn is_nan(self) -> bool;
    /// A number that rises with the value, one a step. The zeros have one each.
    fn ordered(self) -> i64;
    fn from_ordered(order: i64) -> Self;
    fn to_f64(self) -> f64;

    fn next_up(self) -> Self {
        Self::from_ordered(self.ordered() + 1)
    }

    fn next_down(self) -> Self {
        Self::from_ordered(self.ordered() - 1)
    }
}

macro_rules! float {
    ($float:ty, $signed:ty, $unsigned:ty, $to_f64:expr) => {
        impl Float for $float {
            fn is_nan(self) -> bool {
                <$float>::is_nan(self)
            }

            fn ordered(self) -> i64 {
                let bits = self.to_bits() as $signed;
                i64::from(if bits < 0 { <$signed>::MIN.wrapping_sub(bits).wrapping_sub(1) } else { bits })
            }

            fn from_ordered(order: i64) -> Self {
                let order = order as $signed;
                let bits = if order < 0 { <$signed>::MIN.wrapping_sub(order).wrapping_sub(1) } else { order };
                <$float>::from_bits(bits as $unsigned)
            }

            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
        }
    };
}
float!(f32, i32, u32, f64::from);
float!(f64, i64, u64, |value| value);
float!(half::f16, i16, u16, half::f16::to_f64);
float!(half::bf16, i16, u16, half::bf16::to_f64);

/// A direction to round in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Toward {
    Zero,
    Up,
    Down,
}

/// Returns the float next to the exact value in a direction, where `nearest` is the one closest to
/// it, and the exact value is `value + rest`, with `rest` far below the precision of the result.
pub(crate) fn directed<T: Float>(nearest: T, value: f64, rest: f64, toward: Toward) -> T {
    let above = (value - nearest.to_f64()) + rest;
    let up = match toward {
        Toward::Up => true,
        Toward::Down => false,
        Toward::Zero => value < 0.0,
    };
    match (up, above) {
        (true, above) if above > 0.0 => nearest.next_up(),
        (false, above) if above < 0.0 => nearest.next_down(),
        _ => nearest,
    }
}

/// Rounds to a float that keeps, in its last bit, that the value was not exact, so that rounding it
/// again to fewer bits is the same as rounding the value once.
pub(crate) fn round_to_odd(value: f64) -> f32 {
    let toward_zero = directed(value as f32, value, 0.0, Toward::Zero);
    if f64::from(toward_zero) == value || toward_zero.is_nan() {
        toward_zero
    } else {
        f32::from_bits(toward_zero.to_bits() | 1)
    }
}
