//! Helpers of the tests, with the simulated GPU as every device.

#![allow(dead_code, unused_imports, unreachable_pub, missing_docs, reason = "the tests use a part of it")]

#[path = "../support/mod.rs"]
mod shared;

pub use shared::{
    Bench, Gate, GraphKernels, Random, bench, data, eventually, graph_kernels, in_own_process,
    in_own_process_with, is_cpu, random, refused, wait, warnings_of,
};

use crate::{interpreter, simulator};
use gridloom::{ConditionalMode, CpuOptions, Device, Result};

/// Runs a test on the simulated GPU, behind a driver as old as the environment says, and alone,
/// since it shares one thread for callbacks as a GPU does.
#[track_caller]
pub fn for_each_device(test: impl Fn(&Device) -> Result<()>) {
    let alone = shared::devices::alone();
    simulator::run_others_with(interpreter::run);
    let outcome = test(&Device::from_backend(simulator::device_of_environment()));
    let violations = simulator::violations();
    drop(alone);
    assert!(violations.is_empty(), "{violations:#?}");
    outcome.unwrap_or_else(|error| panic!("{error:?}"));
}

/// The simulated GPU is one.
#[track_caller]
pub fn for_each_gpu(test: impl Fn(&Device) -> Result<()>) {
    for_each_device(test);
}

/// Runs a test with conditionals driven by the device and by the host.
#[track_caller]
pub fn for_each_mode(test: impl Fn(&Device, ConditionalMode) -> Result<()>) {
    for mode in [ConditionalMode::Auto, ConditionalMode::Hosted] {
        for_each_device(|device| test(device, mode).map_err(|error| error.context(format_args!("{mode:?}"))));
    }
}

/// What was done that a driver leaves undefined.
pub fn violations() -> Vec<String> {
    simulator::violations()
}

/// The engines are those of the CPU; there is none here.
pub fn for_each_engine(_: impl Fn(CpuOptions) -> Result<()>) {}
