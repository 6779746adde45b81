//! All tests of this crate that run on real devices, in one program: linking is most of what
//! building a test program takes. `cargo test -p gridloom --test suite graphs::` runs one suite of
//! it.

mod support;

mod attack;
mod callables;
mod capture;
#[cfg(feature = "cudarc")]
mod cudarc;
mod files;
mod graphs;
mod interop;
mod kernels;
mod limits;
mod memory;
mod modules;
mod optimizing;
mod profiles;
mod programs;
mod ptx_files;
mod ptx_format;
mod random_graphs;
mod random_ptx;
mod safety;
mod updates;
