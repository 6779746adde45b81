//! All tests of this crate in one program, because linking takes most of the build time.

mod common;
mod generate;

mod atomic_sync_warp;
mod bits;
mod check;
mod compare_convert;
mod control;
mod corpus;
mod errors;
mod float;
mod hostile;
mod integer;
mod literals;
mod manual;
mod memory;
mod modules;
mod names;
mod round_trip;
mod unsupported;
