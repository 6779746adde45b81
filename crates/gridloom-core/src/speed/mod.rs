#![doc = include_str!("README.md")]

mod arg_bytes;
mod cow_definition;
mod launch_blocks;
mod segments;
mod spares;

pub(crate) use arg_bytes::{ArgBytes, FEW_BYTES};
pub(crate) use cow_definition::CowDefinition;
pub use launch_blocks::Launch;
pub(crate) use launch_blocks::Vacancy;
pub(crate) use segments::Segments;
pub(crate) use spares::Spares;
