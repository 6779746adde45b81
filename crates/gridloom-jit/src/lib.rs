#![doc = include_str!("README.md")]

mod anchor;
mod emit;
mod filled;
mod flow;
mod host;
mod idle;
mod invariant;
mod kept;
mod kernel;
mod lanewise;
mod lazy;
mod native;
mod range;
mod region;
mod runtime;
mod shape;

pub use kernel::{CompiledKernel, Listing};
