//! Sharing a GPU with cudarc. Without a GPU one line says so.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use cudarc::driver::{CudaContext, LaunchConfig as CudarcConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use gridloom::interop::cudarc as shared;
use gridloom::kernel::Arg;
use gridloom::prelude::*;
use std::sync::Arc;

/// A GPU as both libraries see it, or `None` with a line. `GRIDLOOM_REQUIRE_CUDA=1` makes that a failure.
fn gpu() -> Option<(Device, Arc<CudaContext>)> {
    match Device::cuda(0) {
        Ok(device) => {
            let context = shared::to_context(&device).unwrap();
            Some((device, context))
        }
        Err(error) => {
            let required = std::env::var_os("GRIDLOOM_REQUIRE_CUDA").is_some_and(|value| value == "1");
            assert!(!required, "a GPU is required: {error}");
            eprintln!("skipped: {}", error.message());
            None
        }
    }
}
