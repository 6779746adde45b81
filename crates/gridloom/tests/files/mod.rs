//! Graphs in files.

mod exhausting;
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

/// Makes an archive of any entries, as `zip -0` does.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in entries {
        let (sum, size) = (gridloom_file::crc32(data).to_le_bytes(), (data.len() as u32).to_le_bytes());
        let length = (name.len() as u16).to_le_bytes();
        let common = [&[10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &sum, &size, &size, &length, &[0, 0]].concat();
        let offset = (out.len() as u32).to_le_bytes();
        out.extend([b"PK\x03\x04", &common[..], name.as_bytes(), data].concat());
        directory.extend([b"PK\x01\x02\x0a\0", &common[..], &[0; 10], &offset, name.as_bytes()].concat());
    }
    let (start, size) = ((out.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    let count = (entries.len() as u16).to_le_bytes();
    out.extend([&directory[..], b"PK\x05\x06\0\0\0\0", &count, &count, &size, &start, &[0, 0]].concat());
    out
}
