//! The text a module was read from, and positions in it.

use std::sync::Arc;

use crate::model::Span;

/// The text a module was read from; cheap to clone, empty for a module that was built in memory.
///
/// Any two sources compare equal, for the reason any two [`Span`]s do.
#[derive(Clone, Default)]
pub struct Source {
    text: Arc<str>,
    /// The byte offset of each line's start; empty for an empty text.
    lines: Arc<[u32]>,
}

impl Source {
    /// Keeps `text`, whose length must fit in 32 bits (the parser refuses longer ones).
    #[must_use]
    pub fn new(text: &str) -> Self {
        let starts = std::iter::once(0).chain(
            text.bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX)),
        );
        Self { text: text.into(), lines: starts.collect() }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of a span; empty if the span is not of this source.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start()..span.end()).unwrap_or("")
    }

    /// Returns the line and the column (in characters) of the first byte of a span, both from 1. In
    /// an empty source both are 0.
    #[must_use]
    pub fn position(&self, span: Span) -> (u32, u32) {
        if self.text.is_empty() {
            return (0, 0);
        }
        let (line, start) = self.line_start(span);
        let before = self.text.get(start..span.start().min(self.text.len())).unwrap_or("");
        let column = u32::try_from(before.chars().count()).unwrap_or(u32::MAX);
        (line, column.saturating_add(1))
    }

    /// Returns the line a span starts on, without its end-of-line characters.
    #[must_use]
    pub fn line(&self, span: Span) -> &str {
        let (_, start) = self.line_start(span);
        let rest = self.text.get(start..).unwrap_or("");
        rest.split('\n').next().unwrap_or("").trim_end_matches('\r')
    }

    fn line_start(&self, span: Span) -> (u32, usize) {
        let after = self.lines.partition_point(|start| *start as usize <= span.start());
        let line = after.max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        (u32::try_from(line).unwrap_or(u32::MAX), start as usize)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.text.len())
    }
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}
