//! What the core promises, tested with the device that runs nothing. One module a subject, one test a behaviour.

mod allocations;
mod common;
mod conditions;
mod copies;
mod edges;
mod fills_and_copies;
mod handles;
mod launches;
mod listing;
mod naming;
mod node_parameters;
mod order;
mod pictures;
