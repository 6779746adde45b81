//! Debug information: source files, source positions, DWARF sections.

/// `.file index "name"{, timestamp, size}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number `.loc` uses.
    pub index: u32,
    /// The path.
    pub name: String,
    /// Time stamp and size, if written.
    pub stamp: Option<(u64, u64)>,
}

/// A position inside a function that was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InlinedAt {
    /// The label in `.debug_str` of the name of the inlined function.
    pub function_label: String,
    /// Bytes added to that label.
    pub function_offset: i64,
    /// File of the call that was inlined.
    pub file: u32,
    /// Line of the call that was inlined.
    pub line: u32,
    /// Column of the call that was inlined.
    pub column: u32,
}

/// `.loc file line column{, function_name label, inlined_at file line column}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// The number of a [`SourceFile`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
    /// The call it was inlined at.
    pub inlined: Option<Box<InlinedAt>>,
}

impl InlinedAt {
    /// Returns file, line and column of the call.
    #[must_use]
    pub const fn position(&self) -> (u32, u32, u32) {
        (self.file, self.line, self.column)
    }
}

impl SourceLocation {
    /// Returns file, line and column.
    #[must_use]
    pub const fn position(&self) -> (u32, u32, u32) {
        (self.file, self.line, self.column)
    }
}

/// A number or address in a debug section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionValue {
    /// A number.
    Int(i64),
    /// A label or section name, plus an offset.
    Label(String, i64),
    /// The distance between two labels.
    Difference(String, String),
}

/// `.b8`, `.b16`, `.b32` or `.b64` values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionData {
    /// Bytes of each value: 1, 2, 4 or 8.
    pub width: u32,
    /// The values.
    pub values: Vec<SectionValue>,
}

/// A line of a debug section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionItem {
    /// `name:`
    Label(String),
    /// Values.
    Data(SectionData),
}

/// `.section .name { … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name, with its dot.
    pub name: String,
    /// The lines.
    pub items: Vec<SectionItem>,
}
