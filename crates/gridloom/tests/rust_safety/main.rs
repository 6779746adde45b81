//! Kernels in Rust without `unsafe` that try to race, or to touch memory that is not theirs. Each
//! is refused when it is loaded or launched, fails its launch, or computes what the host function
//! does. What the compiler refuses is in `crates/gridloom-kernel/ESCAPES.md`.

#![allow(clippy::all, reason = "the programs are what people may write")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what other tests use")]
mod support;

mod bounds;
mod launches;
mod numbers;
mod ownership;
mod uniformity;

use gridloom::kernel::{Parameters, RustParams};
use gridloom::prelude::*;

/// Asserts that loading a kernel is refused for this reason.
#[track_caller]
pub(crate) fn refused<P>(load: impl Fn(&Device) -> Result<Kernel<RustParams<P>>>, says: &str)
where
    RustParams<P>: Parameters,
{
    let device = Device::cpu().expect("there is a CPU");
    match load(&device) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => assert!(error.to_string().contains(says), "{error}"),
    }
}

/// Asserts that a launch on the CPU fails, and what its error says. A failed check costs a GPU its
/// context.
#[track_caller]
pub(crate) fn fails(launch: impl Fn(&Device, &Stream) -> Result<()>, says: &str) {
    let device = Device::cpu().expect("there is a CPU");
    let stream = device.stream().expect("it has streams");
    let error = launch(&device, &stream).and_then(|()| stream.synchronize()).expect_err("the launch fails");
    assert!(error.to_string().contains(says), "{error}");
}
