//! Any sequence of calls of the safe API: the operations of the attack, chosen by the fuzzer, on
//! one thread.
#![no_main]

#[allow(dead_code, reason = "a part of it is for tests")]
#[path = "../../crates/gridloom/tests/attack/mod.rs"]
mod attack;
#[path = "../../crates/gridloom/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| attack::run_bytes(bytes));
