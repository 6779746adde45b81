//! Kernels written in Rust: each small program is run as the host function that it is, and on every
//! device, with equal results. A program of its own, apart from the other tests: its kernels take
//! long to compile.

#![allow(
    clippy::all,
    reason = "the programs are what people may write, and not what clippy would have them write"
)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what other tests use")]
mod support;

mod block_sizes;
mod blocks;
mod contracts;
mod control;
mod cooperation;
mod cuda_forms;
mod elementary;
mod enums;
mod failures;
mod functions;
mod harness;
mod iterators;
mod libraries;
mod loading;
mod numbers;
mod optimized;
mod optimized_results;
mod ordinary;
mod parts;
mod places;
mod program_loops;
mod programs;
mod structures;
mod traits;
mod user_programs;
mod values;
mod warps;
mod whole;
