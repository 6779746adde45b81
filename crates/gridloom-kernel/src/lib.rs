//! Kernels written in Rust: the types that they use, the form that they are recorded in, and its printing as PTX.
//!
//! Programs use it through the `gridloom` crate, whose attribute macros expand to what is in [`record`].

pub mod block;
pub mod grid;
pub mod host;
pub mod ir;
mod out;
#[doc(hidden)]
pub mod record;
pub mod thread;

pub use out::{Out, OutTwin};
pub use record::{KernelParam, KernelType};
