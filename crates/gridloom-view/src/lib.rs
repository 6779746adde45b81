//! Pictures of graphs: a self-contained page, SVG, and a text tree. The commands `gridloom show`
//! and `gridloom diff` use this crate.
//!
//! The crate works on files only and knows neither devices nor Gridloom's graphs. It reads a saved
//! graph, the JSON of `Graph::to_json`, or the DOT of CUDA's `cuGraphDebugDotPrint`, and makes a
//! [`Picture`] of it, which it draws.
//!
//! ```
//! let json = r#"{ "format": "gridloom-graph", "version": 1, "graph": {
//!     "nodes": [{ "id": 0, "name": "fill", "kind": "memset" }, { "id": 1, "name": "step", "kind": "kernel" }],
//!     "edges": [{ "from": 0, "to": 1, "kind": "full" }] } }"#;
//! let picture = gridloom_view::read(json)?;
//! assert!(picture.to_tree().contains("step"));
//! let page = picture.to_html(None);
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), gridloom_view::ReadError>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`picture`] | the graph as it is drawn: nodes, edges, bodies, facts |
//! | [`json`], [`dot`], [`saved`] | the readers |
//! | `diff` | the differences between two pictures |
//! | `layers` | the layer of each node, and its position in the layer |
//! | `html`, `svg`, `tree`, `markup`, `colour` | the writers |

mod colour;
mod diff;
pub mod dot;
mod html;
pub mod json;
mod layers;
mod markup;
pub mod picture;
pub mod saved;
mod svg;
mod tree;

pub use diff::{Difference, DifferenceKind};
pub use picture::{Body, Edge, Graph, Node, Picture};

/// The most bytes of text that are read.
pub const MOST_BYTES: usize = 256 << 20;
/// The most nodes of a picture, including those of bodies.
pub const MOST_NODES: usize = 1_000_000;
/// The deepest nesting of bodies.
pub const MOST_DEPTH: usize = 128;

/// The reason why a text cannot be read as a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl ReadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ReadError { line: None, message: message.into() }
    }

    pub(crate) fn at(line: usize, message: impl Into<String>) -> Self {
        ReadError { line: Some(line), message: message.into() }
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "line {line}: {}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads a graph from the contents of a file: a saved graph if they are a zip archive, else the
/// text that [`read`] reads.
///
/// # Errors
/// Fails as [`read`] does, and if the bytes are neither an archive nor text.
pub fn read_bytes(bytes: &[u8]) -> Result<Picture, ReadError> {
    if gridloom_file::GraphFile::is_archive(bytes) {
        return saved::read(bytes);
    }
    read(
        std::str::from_utf8(bytes)
            .map_err(|_| ReadError::new("neither a text file (UTF-8) nor a saved graph"))?,
    )
}

/// Reads a graph: JSON if the text begins with `{`, else DOT.
///
/// # Errors
/// Fails if the text is neither, refers to something it does not contain, or exceeds
/// [`MOST_BYTES`], [`MOST_NODES`] or [`MOST_DEPTH`].
pub fn read(text: &str) -> Result<Picture, ReadError> {
    if text.len() > MOST_BYTES {
        return Err(ReadError::new(format!("more than {} MiB of text", MOST_BYTES >> 20)));
    }
    let start = text.trim_start();
    if start.starts_with('{') {
        json::read(text)
    } else if start.is_empty() {
        Err(ReadError::new("this is empty"))
    } else {
        dot::read(text)
    }
}
