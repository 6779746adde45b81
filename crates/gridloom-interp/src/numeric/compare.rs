//! Comparisons, and the minimum and maximum that rest on them.

use super::Float;
use super::float::flush_bits;
use super::format::Word;
use super::integer::Integer;

/// The comparison of `set` and `setp`.
///
/// On floating-point types those without `u` are false, and those with it true, where an operand is
/// NaN (`Ne` is no exception: it is false there). On integers each pair means the same; PTX's `lo`,
/// `ls`, `hi` and `hs` are `Lt`, `Le`, `Gt` and `Ge` on an unsigned type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are PTX's own, and the type says how they differ")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// Neither operand is NaN.
    Num,
    /// An operand is NaN.
    Nan,
}

impl Comparison {
    /// Returns whether it holds for operands in this order, none where one is NaN.
    #[inline]
    fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        let Some(order) = order else {
            return matches!(
                self,
                Self::Equ | Self::Neu | Self::Ltu | Self::Leu | Self::Gtu | Self::Geu | Self::Nan
            );
        };
        match self {
            Self::Eq | Self::Equ => order.is_eq(),
            Self::Ne | Self::Neu => order.is_ne(),
            Self::Lt | Self::Ltu => order.is_lt(),
            Self::Le | Self::Leu => order.is_le(),
            Self::Gt | Self::Gtu => order.is_gt(),
            Self::Ge | Self::Geu => order.is_ge(),
            Self::Num => true,
            Self::Nan => false,
        }
    }
}

/// Computes `set` and `setp` on an integer type.
#[inline]
pub fn compare_integer<T: Integer>(comparison: Comparison, a: T, b: T) -> bool {
    comparison.holds(Some(a.cmp(&b)))
}

/// Computes `set` and `setp` on a floating-point type.
#[inline]
pub fn compare<F: Float>(comparison: Comparison, a: F::Bits, b: F::Bits, ftz: bool) -> bool {
    let (a, b) = (flush_bits::<F>(a.into(), ftz), flush_bits::<F>(b.into(), ftz));
    let nan = F::is_nan(a) || F::is_nan(b);
    // Minus zero has rank zero, like plus zero.
    comparison.holds(if nan { None } else { Some(rank::<F>(a).cmp(&rank::<F>(b))) })
}

/// Returns an integer that orders as the number does. Both zeros give 0.
#[inline]
fn rank<F: Float>(a: u64) -> i64 {
    let magnitude = (a & F::MAGNITUDE) as i64;
    if a & F::SIGN != 0 { -magnitude } else { magnitude }
}

/// The modifiers of `min` and `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extremum {
    /// `.ftz`.
    pub ftz: bool,
    /// `.NaN`: a NaN operand makes the result NaN; without it, the other operand is the result.
    pub nan: bool,
    /// `.xorsign.abs`: magnitudes are compared, and the result's sign is the exclusive or of the
    /// operands' signs.
    pub xorsign_abs: bool,
    /// `.abs` of the three-operand form: magnitudes are compared, and the result is not negative.
    pub abs: bool,
}

/// Computes `min`. Minus zero is less than plus zero.
#[inline]
pub fn min<F: Float>(a: F::Bits, b: F::Bits, how: Extremum) -> F::Bits {
    extremum::<F>(a, b, how, false)
}

/// Computes `max`. Plus zero is greater than minus zero.
#[inline]
pub fn max<F: Float>(a: F::Bits, b: F::Bits, how: Extremum) -> F::Bits {
    extremum::<F>(a, b, how, true)
}

/// Computes `min` of three operands.
#[inline]
pub fn min3<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, how: Extremum) -> F::Bits {
    min::<F>(min::<F>(a, b, how), c, how)
}

/// Computes `max` of three operands.
#[inline]
pub fn max3<F: Float>(a: F::Bits, b: F::Bits, c: F::Bits, how: Extremum) -> F::Bits {
    max::<F>(max::<F>(a, b, how), c, how)
}

#[inline]
fn extremum<F: Float>(a: F::Bits, b: F::Bits, how: Extremum, largest: bool) -> F::Bits {
    let (a, b) = (flush_bits::<F>(a.into(), how.ftz), flush_bits::<F>(b.into(), how.ftz));
    let sign = (a ^ b) & F::SIGN;
    let mask = if how.xorsign_abs || how.abs { F::MAGNITUDE } else { u64::MAX };
    let (x, y) = (a & mask, b & mask);
    let picked = match (F::is_nan(a), F::is_nan(b)) {
        (true, true) => return F::Bits::truncate(F::nan_from(&[b, a])),
        (true, false) | (false, true) if how.nan => return F::Bits::truncate(F::nan_from(&[b, a])),
        (true, false) => y,
        (false, true) => x,
        // Equal ranks are equal bits or two zeros, of which the one with the sign bit is the
        // smaller.
        (false, false) => {
            let first = (rank::<F>(x), x & F::SIGN == 0) >= (rank::<F>(y), y & F::SIGN == 0);
            if first == largest { x } else { y }
        }
    };
    F::Bits::truncate(if how.xorsign_abs { picked | sign } else { picked })
}

#[cfg(test)]
mod tests;
