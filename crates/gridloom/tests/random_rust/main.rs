//! Random programs in the subset of Rust that kernels have, each run on the host and on every
//! device.
//!
//! There are two kinds. Those of `programs.rs` are source code, which the attribute macros
//! translate and the compiler compiles: `scripts/random-kernels` makes and runs others. Those of
//! `generate.rs` are trees, which are evaluated with the operators of Rust and recorded by the
//! functions that the macros expand to. No compiler is needed for those, so that thousands are run:
//!
//! ```sh
//! GRIDLOOM_RANDOM_PROGRAMS=20000 cargo test --release -p gridloom --test random_rust trees
//! ```

#![allow(
    clippy::all,
    unused_assignments,
    unused_comparisons,
    unused_labels,
    unused_mut,
    unused_parens,
    unused_variables,
    overflowing_literals,
    unreachable_patterns,
    dead_code,
    reason = "the programs are random"
)]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "what other tests use")]
mod support;

mod evaluate;
mod generate;
#[rustfmt::skip]
mod programs;
mod record;
mod tree;
mod trees;

use gridloom::kernel::{Read, RustParams, Write};
use gridloom::prelude::*;
use gridloom::{Out, host};

use support::for_each_device;

const INPUT: [i32; 14] = [0, 1, -1, 2, 7, -8, 33, 100, -1001, 65536, 0x1234_5678, -77, i32::MAX, i32::MIN];

/// Runs a program on the host and on every device, and compares what it writes.
#[track_caller]
fn same(
    index: usize,
    on_host: impl Fn(&[i32], Out<[u64; 3]>),
    load: impl Fn(&Device) -> Result<Kernel<RustParams<(Read<i32>, Write<[u64; 3]>)>>>,
) {
    let mut expected = vec![[0u64; 3]; INPUT.len()];
    host::run(1, 32, || on_host(&INPUT, Out::new(&mut expected)));
    for_each_device(|device| {
        let (x, out) = (device.buffer_from(&INPUT)?, device.buffer_from(&vec![[0u64; 3]; INPUT.len()])?);
        let stream = device.stream()?;
        stream.launch(&load(device)?, LaunchConfig::new(1, 32), (&x, &out))?;
        assert_eq!(out.to_vec()?, expected, "program {index}");
        Ok(())
    });
}
