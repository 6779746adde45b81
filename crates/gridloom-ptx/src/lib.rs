//! PTX: reading, checking and printing NVIDIA's parallel thread code.
//!
//! [`parse`] turns text into a [`Module`]: tables of typed instructions in which every name is a typed index.
//! [`check`] says what is wrong with a module's types. A module prints (`Display`) as PTX that parses to the
//! same module.
//!
//! - **Anything loads.** An instruction outside the model is kept as [`op::Unsupported`]; whoever wants to execute
//!   the function that holds it finds out with [`Function::unsupported`].
//! - **Scopes are gone.** Nested scopes are flattened; names that would clash are changed.
//! - **Everything knows its place.** Spans point into [`Module::source`], so errors at any later stage can show the
//!   line, and `.loc` gives the line of the program it was compiled from.
//! - **No text is too bad.** The parser is linear in the length of its input, bounded in depth, and never panics.

mod check;
mod error;
mod lexer;
mod limits;
pub mod model;
mod parse;
mod print;
mod source;

pub use check::check;
pub use error::{Diagnostic, Error};
pub use model::*;
pub use parse::{parse, parse_bytes};
pub use print::instruction_text;
pub use source::Source;
