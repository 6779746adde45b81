//! Helpers of all integration tests: the devices to run on, small kernels for graphs, and random
//! numbers with a seed.

// Each test binary uses a part of it.
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

pub mod bench;
pub mod data;
pub mod devices;
pub mod graph_kernels;
pub mod log;
pub mod own_process;
pub(crate) mod ptx_file;
pub mod random;
pub mod wait;

pub use bench::Bench;
pub use devices::{for_each_device, for_each_engine, for_each_gpu, for_each_mode, is_cpu};
pub use graph_kernels::GraphKernels;
pub use log::warnings_of;
pub use own_process::{in_own_process, in_own_process_with};
pub use random::Random;
pub use wait::{Gate, eventually};

use gridloom::{Error, ErrorKind, Result};

/// Returns the error of a call that must fail, which must be of this kind and say all of these
/// things.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, says: &[&str]) -> Error {
    let error = match result {
        Ok(value) => panic!("expected {kind:?}, got {value:?}"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    for word in says {
        assert!(text.contains(word), "expected {word:?} in: {text}");
    }
    error
}

/// Returns what was done to a device that it leaves undefined, where that can be told: on a
/// simulated driver.
pub fn violations() -> Vec<String> {
    Vec::new()
}
