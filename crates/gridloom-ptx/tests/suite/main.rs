//! All tests of this crate in one program: linking is most of what building a test program takes.

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
mod memory;
mod modules;
mod names;
mod round_trip;
mod unsupported;
