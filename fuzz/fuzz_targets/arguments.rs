//! Any text: what the command reads from its command line, and versions and engines from the
//! environment.
#![no_main]

use gridloom::Engine;
use gridloom_cuda::CudaVersion;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "only the reading is of interest")]
#[path = "../../crates/gridloom-cli/src/ptx/argument.rs"]
mod argument;

type Failure = Box<dyn std::error::Error>;

fuzz_target!(|text: &str| {
    if let Err(error) = text.parse::<argument::Argument>() {
        assert!(error.contains(text));
    }
    if let Err(error) = text.parse::<Engine>() {
        assert!(!error.to_string().is_empty());
    }
    let _ = text.parse::<CudaVersion>();
});
