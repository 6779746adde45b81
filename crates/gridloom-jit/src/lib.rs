#![doc = include_str!("README.md")]

mod analysis;
mod emit;
mod host;
mod kernel;
mod native;
mod runtime;
mod spill_frame;
mod wide;

pub use kernel::{CompiledKernel, Listing, Runs};
