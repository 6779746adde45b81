//! Capture, on a device that runs nothing: states, structure, errors and lifetimes. Each test is
//! one rule.

mod bodies;
mod common;
mod events;
mod faults;
mod forks;
mod inlining;
mod lifetimes;
mod states;
mod streams;
mod threads;
