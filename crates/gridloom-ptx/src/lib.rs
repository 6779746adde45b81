//! PTX: reading, checking and printing NVIDIA's parallel thread code.

pub mod model;

pub use model::*;
