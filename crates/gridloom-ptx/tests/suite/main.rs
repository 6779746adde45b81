//! All tests of this crate in one program, because linking takes most of the build time.

mod common;
mod generate;
#[path = "../../../gridloom/tests/support/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use more of it")]
mod random_numbers;

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
