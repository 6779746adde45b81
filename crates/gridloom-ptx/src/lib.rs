//! PTX: parsing, checking and printing NVIDIA's virtual instruction set.
//!
//! This crate has no other part of Gridloom as a dependency; `gridloom` re-exports it as
//! `gridloom::ptx`. [`parse`] turns text into a [`Module`]: tables of typed instructions in which
//! every name is a typed index. [`check`] finds errors in a module's types. Printing a module
//! (`Display`) gives PTX that parses to the same module.
//!
//! ```
//! let text = ".version 8.0 .target sm_80 .address_size 64 .entry k(.param .u64 p) { ret; }";
//! let module = gridloom_ptx::parse(text)?;
//! assert_eq!(module.entry("k").unwrap().1.params.len(), 1);
//! assert!(gridloom_ptx::check(&module).is_empty());
//! assert_eq!(gridloom_ptx::parse(&module.to_string())?.to_string(), module.to_string());
//! # Ok::<(), gridloom_ptx::Error>(())
//! ```
//!
//! - **Unknown instructions load.** An instruction outside the model is kept as
//!   [`op::Unsupported`]. [`Function::unsupported`] finds it before the function is executed.
//! - **Scopes are flattened.** If two names would clash, one is changed.
//! - **Everything has a position.** Spans point into [`Module::source`], so errors at any later
//!   stage can show the line. `.loc` gives the line of the program that the PTX was compiled from.
//! - **Hostile text is safe.** The parser is linear in the length of its input, bounded in depth,
//!   and never panics.

mod check;
mod cuda;
mod error;
mod lexer;
mod limits;
pub mod model;
mod not_run;
mod parse;
mod print;
mod source;

pub use check::check;
pub use cuda::{CUDA_HELP, looks_like_cuda};
pub use error::{Diagnostic, Error};
pub use model::*;
pub use not_run::{NEWEST_PTX, NOT_RUN, NotRun};
pub use parse::{parse, parse_bytes};
pub use print::instruction_text;
pub use source::Source;
