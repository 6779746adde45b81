//! All tests of this crate in one program, because linking takes most of the build time.

#[path = "../../../gridloom/tests/support/ptx_file.rs"]
mod ptx_file;

mod common;

mod automatic;
mod cached;
mod conditionals;
mod exits;
mod files;
mod graphs;
mod obstacles;
mod programs;
mod random;
mod teams;
mod threads;
