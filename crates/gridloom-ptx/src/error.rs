//! Diagnostics, and their rendering.

use std::fmt;

use crate::limits;
use crate::model::Span;
use crate::source::Source;

/// An error in a module, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// A suggestion, if there is one.
    pub help: Option<String>,
    /// The line, from 1; 0 if the module was not read from text.
    pub line: u32,
    /// The column in characters, from 1; 0 if the module was not read from text.
    pub column: u32,
    /// The text of that line. Of a very long line it is the part around the position.
    pub source_line: String,
    /// The bytes concerned.
    pub span: Span,
    /// The number of characters of the line that are concerned.
    width: u32,
    /// The number of characters of the line before [`Self::source_line`].
    skipped: u32,
}

/// Lines longer than this are shown in part.
const SHOWN_CHARS: usize = 120;

impl Diagnostic {
    pub(crate) fn new(source: &Source, span: Span, message: impl Into<String>) -> Self {
        let (line, column) = source.position(span);
        let (source_line, skipped) = part(source.line(span), (column as usize).saturating_sub(1));
        let width = source.slice(span).lines().next().map_or(1, |text| text.chars().count().max(1));
        Self {
            message: message.into(),
            help: None,
            line,
            column,
            source_line,
            skipped,
            span,
            width: u32::try_from(width).unwrap_or(1),
        }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Renders the diagnostic as `file:line:column: message`, the line, and a caret under the
    /// position.
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        // An empty text has no lines.
        let position = if self.line > 0 { format!(":{}:{}", self.line, self.column) } else { String::new() };
        let mut out = format!("{file}{position}: {}", self.message);
        if self.line > 0 {
            let (shown, column, dots) = self.excerpt();
            // Tabs are kept in the line below, so that the caret is right for every tab width.
            let indent: String =
                shown.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let room = shown.chars().count().saturating_sub(column).max(1);
            let underline = "~".repeat((self.width as usize).min(room).saturating_sub(1));
            out.push_str(&format!(
                "\n  {dots}{shown}\n  {}{indent}^{underline}",
                " ".repeat(dots.chars().count())
            ));
        }
        if let Some(help) = &self.help {
            out.push_str("\n  help: ");
            out.push_str(help);
        }
        out
    }

    /// Returns the part of the line that is shown, the caret's column in it, and the marker before
    /// it.
    fn excerpt(&self) -> (String, usize, &'static str) {
        // Control characters could affect a terminal.
        let line: Vec<char> = self
            .source_line
            .chars()
            .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
            .collect();
        let column = (self.column as usize).saturating_sub(1 + self.skipped as usize);
        if line.len() <= SHOWN_CHARS {
            return (line.into_iter().collect(), column, "");
        }
        let start = column.saturating_sub(SHOWN_CHARS / 2).min(line.len().saturating_sub(1));
        let end = (start + SHOWN_CHARS).min(line.len());
        let cut = start > 0 || self.skipped > 0;
        (line[start..end].iter().collect(), column - start, if cut { "..." } else { "" })
    }
}

/// Returns a line or, if it is long, the part around a column, and how many characters come before
/// it.
fn part(line: &str, column: usize) -> (String, u32) {
    if line.len() <= limits::SOURCE_LINE {
        return (line.to_owned(), 0);
    }
    let skipped = column.saturating_sub(SHOWN_CHARS);
    let kept = line.chars().skip(skipped).take(2 * SHOWN_CHARS).collect();
    (kept, u32::try_from(skipped).unwrap_or(u32::MAX))
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render("<ptx>"))
    }
}

/// The errors in a text that is not a valid PTX module, in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    diagnostics: Vec<Diagnostic>,
}

impl Error {
    pub(crate) fn new(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }

    /// Returns the diagnostics in the order of the text. There is at least one.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Renders all diagnostics. `file` is the name of the text.
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        let parts: Vec<String> = self.diagnostics.iter().map(|diagnostic| diagnostic.render(file)).collect();
        parts.join("\n")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render("<ptx>"))
    }
}

/// Returns the candidate most similar to `wrong`, if one is similar enough: of several the first in
/// alphabetical order, so that a text always has the same messages.
pub(crate) fn closest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Suggestions for longer words are not useful, and the search must stay cheap on hostile input.
    const LONGEST: usize = 40;
    const MOST: usize = 2000;
    if wrong.len() > LONGEST {
        return None;
    }
    let allowed = match wrong.chars().count() {
        0..=2 => 1,
        3..=8 => 2,
        _ => 3,
    };
    candidates
        .take(MOST)
        .filter(|candidate| candidate.len().abs_diff(wrong.len()) <= allowed && *candidate != wrong)
        .map(|candidate| (edit_distance(wrong, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
