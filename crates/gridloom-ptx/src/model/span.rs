//! Positions in the source text.

/// A range of bytes in the source text.
///
/// Two spans always compare equal, because comparing models tells whether they mean the same
/// program. Compare [`Span::start`] and [`Span::end`] to compare positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Creates a span of the bytes from `start` up to but not including `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the first byte.
    #[must_use]
    pub const fn start(self) -> usize {
        self.start as usize
    }

    /// Returns the byte after the last.
    #[must_use]
    pub const fn end(self) -> usize {
        self.end as usize
    }

    /// Returns the smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Span {}

impl std::hash::Hash for Span {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}
