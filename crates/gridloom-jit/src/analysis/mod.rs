//! Analyses of a function, made before code is generated for it.

pub(crate) mod alignment;
pub(crate) mod bounds_checks;
pub(crate) mod divergence;
pub(crate) mod flow;
pub(crate) mod idle_threads;
pub(crate) mod lane_offsets;
pub(crate) mod lanewise;
pub(crate) mod nan_canonicalization;
pub(crate) mod range;
pub(crate) mod region;
pub(crate) mod rematerialization;
pub(crate) mod shared_init;
pub(crate) mod terms;
pub(crate) mod uniformity;
pub(crate) mod unrolled;
