//! Graphs in files.

mod hostile;
mod random;
mod refusals;
mod round_trip;

use gridloom::prelude::*;
use gridloom::{LoadOptions, LoadedGraph};

use crate::support::for_each_device;

/// Loads what a test has just saved.
fn load(bytes: &[u8], device: &Device) -> Result<LoadedGraph> {
    // SAFETY: the kernels are those of the tests, with the contracts that the tests state.
    unsafe { LoadOptions::new().load_bytes(bytes, device) }
}

/// Instantiates and launches a graph once, and waits.
fn run(graph: &Graph) -> Result<()> {
    let stream = graph.device().stream()?;
    graph.instantiate()?.launch(&stream)?;
    stream.synchronize()
}

/// Runs a test with every device as the one that a graph is saved from and, with the CPU, as the
/// one that it is loaded on.
#[track_caller]
fn for_each_pair(test: impl Fn(&Device, &Device) -> Result<()>) {
    for_each_device(|device| {
        for engine in [Engine::Interpreter, Engine::Jit] {
            let other = Device::cpu_with(CpuOptions::new().engine(engine).threads(2))?;
            test(device, &other)?;
            test(&other, device)?;
        }
        Ok(())
    });
}
