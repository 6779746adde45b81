//! All tests of this crate in one program, which is smaller than one program each: for `scripts/gpu-bundle`, which runs one suite at a
//! time. It is built only when it is named.

#![allow(clippy::duplicate_mod, reason = "each suite is a program of its own elsewhere, with all it needs")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../callables/main.rs"]
mod callables;
#[path = "../capture/main.rs"]
mod capture;
#[cfg(feature = "cudarc")]
#[path = "../cudarc.rs"]
mod cudarc;
#[path = "../graphs/main.rs"]
mod graphs;
#[path = "../interop.rs"]
mod interop;
#[path = "../kernels/main.rs"]
mod kernels;
#[path = "../memory/main.rs"]
mod memory;
#[path = "../modules/main.rs"]
mod modules;
#[path = "../programs.rs"]
mod programs;
#[path = "../ptx_files.rs"]
mod ptx_files;
#[path = "../ptx_format.rs"]
mod ptx_format;
#[path = "../random_graphs/main.rs"]
mod random_graphs;
#[path = "../updates/main.rs"]
mod updates;
