//! All tests of this crate in one program, because linking takes most of the build time.

#[path = "../../../gridloom/tests/support/ptx_file.rs"]
mod ptx_file;

mod common;

mod automatic;
mod cached;
mod compiled;
mod conditionals;
mod exits;
mod faults;
mod files;
mod graphs;
mod obstacles;
mod programs;
mod random;
mod random_elements;
mod reports;
mod setters;
mod shapes;
mod styles;
mod teams;
mod threads;
mod unrolled;
