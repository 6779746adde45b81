//! All tests of this crate in one program: linking is most of what building a test program takes.

#[path = "../../../gridloom/tests/support/ptx_file.rs"]
mod ptx_file;

mod common;

mod files;
mod graphs;
mod programs;
