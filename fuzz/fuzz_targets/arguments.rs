//! Any text: what the command reads from its command line, and versions and engines from the
//! environment.
#![no_main]

use gridloom::Engine;
use gridloom_cuda::CudaVersion;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "only the reading is of interest")]
#[path = "../../crates/gridloom-cli/src/ptx/argument.rs"]
mod argument;

fuzz_target!(|text: &str| {
    if let Err(error) = text.parse::<argument::Argument>() {
        // Long ones are cut.
        let start: String = text.chars().take(50).collect();
        assert!(error.contains(&start));
    }
    if let Err(error) = text.parse::<Engine>() {
        assert!(!error.to_string().is_empty());
    }
    let _ = text.parse::<CudaVersion>();
});
