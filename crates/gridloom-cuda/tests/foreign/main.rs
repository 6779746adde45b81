//! Capture of foreign code: by a simulated driver everywhere, and by the real one where there is a
//! GPU.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the tests stand for foreign code: they call the driver with objects that they made themselves"
)]
#![allow(unreachable_pub, reason = "modules of one test program")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../simulator/mod.rs"]
mod simulator;

mod conditionals;
mod edits;
mod failures;
mod kernels;
mod leaks;
mod nodes;
mod opaque;
mod raw;
mod transfers;
