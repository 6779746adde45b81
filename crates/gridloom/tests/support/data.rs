//! The folder of the test files: in the repository, or where a bundle was unpacked.

#![allow(unreachable_pub, reason = "some test binaries take this file in as their own module")]

use std::path::{Path, PathBuf};

/// A folder of this crate. `GRIDLOOM_TEST_DATA` stands for the root of the repository where that is
/// not at hand.
pub(crate) fn folder(relative: &str) -> PathBuf {
    match std::env::var_os("GRIDLOOM_TEST_DATA") {
        Some(root) => Path::new(&root).join("crates/gridloom").join(relative),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(relative),
    }
}
