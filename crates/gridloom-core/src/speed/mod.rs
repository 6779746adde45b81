#![doc = include_str!("README.md")]

mod cow_definition;
mod launch_blocks;
mod segments;
mod spares;

pub(crate) use cow_definition::CowDefinition;
pub use launch_blocks::Launch;
pub(crate) use launch_blocks::Vacancy;
pub(crate) use segments::Segments;
pub(crate) use spares::Spares;
