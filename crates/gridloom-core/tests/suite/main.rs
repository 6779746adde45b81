//! What the core promises, tested with the device that runs nothing. One module a subject, one test
//! a behaviour.

#![expect(clippy::type_complexity, reason = "rows of tables are tuples; a name for each would say less")]

mod allocations;
mod arguments;
mod callbacks;
mod common;
mod conditions;
mod copies;
mod edges;
mod errors;
mod executables;
mod fills_and_copies;
mod foreign;
mod handles;
mod launches;
mod listing;
mod lowering;
mod naming;
mod node_parameters;
mod null_device;
mod order;
mod pictures;
mod release;
mod streams;
mod threads;
mod updates;
