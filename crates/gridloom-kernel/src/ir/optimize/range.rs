//! Ranges of integers.

/// The values from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: i128,
    pub(super) high: i128,
}

impl Range {
    pub(super) fn new(low: i128, high: i128) -> Self {
        Range { low, high }
    }

    pub(super) fn one(value: i128) -> Self {
        Range { low: value, high: value }
    }

    /// Returns the values of an integer of so many bits.
    pub(super) fn of_bits(bits: u32, is_signed: bool) -> Self {
        if is_signed {
            Range { low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 }
        } else {
            Range { low: 0, high: (1 << bits) - 1 }
        }
    }

    pub(super) fn is_in(self, other: Range) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Returns the values of both. Where there are none, the code is not reached, and any answer is
    /// right.
    pub(super) fn and(self, other: Range) -> Range {
        let both = Range { low: self.low.max(other.low), high: self.high.min(other.high) };
        if both.low <= both.high { both } else { self }
    }

    /// Returns the values of either.
    pub(super) fn or(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub(super) fn plus(self, other: Range) -> Range {
        Range { low: self.low + other.low, high: self.high + other.high }
    }

    pub(super) fn minus(self, other: Range) -> Range {
        Range { low: self.low - other.high, high: self.high - other.low }
    }

    /// Products of values of at most 64 bits.
    pub(super) fn times(self, other: Range) -> Range {
        let ends = [
            self.low.saturating_mul(other.low),
            self.low.saturating_mul(other.high),
            self.high.saturating_mul(other.low),
            self.high.saturating_mul(other.high),
        ];
        let (mut low, mut high) = (ends[0], ends[0]);
        for end in ends {
            low = low.min(end);
            high = high.max(end);
        }
        Range { low, high }
    }
}

/// Returns all bits up to the highest one of a value that is not negative.
pub(super) fn filled(value: i128) -> i128 {
    if value <= 0 { 0 } else { (1 << (128 - value.leading_zeros())) - 1 }
}
