//! All tests of this crate in one program: linking is most of what building a test program takes.

mod common;
#[path = "../../../gridloom/tests/support/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use more of it")]
mod random_numbers;

mod conditionals;
mod failures;
mod hand_over;
mod kernels;
mod memory;
mod order;
mod races;
mod streams;
mod updates;
