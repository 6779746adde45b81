//! Callables: results of calls, changes without a rebuild, refusals, and concurrent calls.

mod arguments;
mod branches;
mod cache;
mod capturing;
mod concurrency;
mod contracts;
mod inlining;
mod lifetimes;
mod loops;
mod refusals;
mod sections;
mod shapes;
mod without_graphs;

use gridloom::callable::Specs;
use gridloom::prelude::*;
use gridloom::{Callable, CallableOptions};

use crate::support::{GraphKernels, for_each_device};

/// Options that use graphs, whatever the environment says.
fn with_graphs() -> CallableOptions {
    CallableOptions::new().graphs(true)
}

/// Runs a test on each device: with graphs whose loops the device runs where it can, with graphs
/// whose loops the host runs, and without graphs.
#[track_caller]
fn for_each_way(test: impl Fn(&GraphKernels, &CallableOptions) -> Result<()>) {
    let hosted = with_graphs().conditional_mode(ConditionalMode::Hosted);
    let without = with_graphs().graphs(false);
    for (name, options) in [("graphs", with_graphs()), ("hosted loops", hosted), ("no graphs", without)] {
        for_each_device(|device| {
            test(&GraphKernels::new(device)?, &options).map_err(|error| error.context(name))
        });
    }
}

/// Asserts how often a callable was built and called. Without graphs it is built at every call.
#[track_caller]
fn assert_counts<S: Specs>(callable: &Callable<S>, options: &CallableOptions, builds: u64, calls: u64) {
    let stats = callable.stats();
    let builds = if options.graphs { builds } else { calls };
    assert_eq!((stats.builds, stats.calls), (builds, calls), "builds and calls");
}

/// Asserts that one graph was built, for all calls.
#[track_caller]
fn assert_built_once<S: Specs>(callable: &Callable<S>, options: &CallableOptions, calls: u64) {
    assert_counts(callable, options, 1, calls);
}
