//! All tests of this crate in one program, which is smaller than one program each: for
//! `scripts/gpu-bundle`, which runs one suite at a time. It is built only when it is named.

#![allow(clippy::duplicate_mod, reason = "each suite is a program of its own elsewhere, with all it needs")]

#[path = "../early_starts.rs"]
mod early_starts;
#[path = "../foreign/main.rs"]
mod foreign;
#[path = "../gpu_device.rs"]
mod gpu_device;
#[path = "../gpu_fault.rs"]
mod gpu_fault;
#[path = "../gpu_graph.rs"]
mod gpu_graph;
#[path = "../gpu_in_flight.rs"]
mod gpu_in_flight;
#[path = "../gpu_kernels.rs"]
mod gpu_kernels;
#[path = "../gpu_rounds.rs"]
mod gpu_rounds;
#[path = "../nvrtc.rs"]
mod nvrtc;
#[path = "../release_at_exit.rs"]
mod release_at_exit;
#[path = "../simulated_failures.rs"]
mod simulated_failures;
#[path = "../simulated_in_flight.rs"]
mod simulated_in_flight;
#[path = "../simulated_interop.rs"]
mod simulated_interop;
#[path = "../simulated_lifetimes.rs"]
mod simulated_lifetimes;
#[path = "../simulated_values.rs"]
mod simulated_values;
