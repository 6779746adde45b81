//! An attack on the whole safe API: random operations from several threads on objects that they
//! share.
//!
//! A round is one world of shared objects (streams, events, buffers, graphs, nodes, executables,
//! captures, callables) and a number of threads, each of which does so many random steps to it.
//! Nothing is serialised and nothing left out: objects are dropped, closed, deleted and changed
//! while others use them and while their work is in flight; callbacks, print sinks and drops of
//! user values panic, wait and call back in.
//!
//! What is found: a crash; a panic that the attack does not mean, on any thread; a step that does
//! not end, which the watchdog reports with the stacks of all threads; an error of a kind that no
//! misuse explains; a wrong value in the objects that a thread has for itself, which a model on the
//! host knows; a user value that is not dropped exactly once; memory of the device or a thread that
//! is not given back.
//!
//! A seed determines the choices of every step. `CONTRIBUTING.md` says how to run more rounds, one
//! of them again, and a part of one.

#![allow(clippy::print_stderr, reason = "a find is reported in whichever way the process ends")]

mod callables;
mod captures;
mod choices;
mod common;
mod executables;
mod graphs;
mod lineage;
mod objects;
pub(crate) mod round;
mod run;
mod step;
mod token;
mod trace;
mod world;

#[allow(unused_imports, reason = "for the fuzz target")]
pub(crate) use run::run_bytes;
pub(crate) use run::{is_alone, is_left_out};
