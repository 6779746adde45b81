//! Tests that need a process of their own.

use std::process::Command;

/// Set for the process of such a test.
const VARIABLE: &str = "GRIDLOOM_TEST_OWN_PROCESS";

/// Returns whether a test runs in a process of its own. Otherwise starts that process and waits for
/// it. `module` is the test's `module_path!()`.
#[track_caller]
pub fn in_own_process(module: &str, test: &str) -> bool {
    in_own_process_with(module, test, &[])
}

/// As [`in_own_process`], with these variables in the environment of that process.
#[track_caller]
pub fn in_own_process_with(module: &str, test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    // Tests are named from below the crate on.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    let test = &format!("{module}::{test}");
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, "1")
        .envs(variables.iter().copied())
        .status()
        .expect("this program starts");
    assert!(status.success(), "{status}");
    false
}
