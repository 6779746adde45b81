//! All tests of this crate in one program: linking is most of what building a test program takes.

mod common;

mod conditionals;
mod failures;
mod hand_over;
mod kernels;
mod memory;
mod order;
mod races;
mod streams;
mod updates;
