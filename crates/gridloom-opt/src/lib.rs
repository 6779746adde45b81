//! The graph optimiser: fewer and larger kernels that compute the same.

pub mod rewrite;
