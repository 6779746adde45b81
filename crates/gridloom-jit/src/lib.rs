#![doc = include_str!("README.md")]

mod emit;
mod flow;
mod host;
mod invariant;
mod kept;
mod kernel;
mod lazy;
mod native;
mod runtime;
mod shape;

pub use kernel::{CompiledKernel, Listing};
