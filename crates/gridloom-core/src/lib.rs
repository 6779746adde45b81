//! The core of Gridloom: graphs of device work, independent of any device.
//!
//! Most users want the `gridloom` crate, which adds devices and a typed front end. This crate is
//! for those who write a backend or another front end.
//!
//! # Design choices
//!
//! - **One definition.** A [`Graph`] lives in host memory and is the single source of truth. Every
//!   front end writes the same definition. Backends only read it.
//! - **Snapshots.** Instantiation takes an immutable snapshot, a [`Definition`]. An executable
//!   therefore sees another thread's edit completely or not at all. A snapshot is an `Arc`. While
//!   it is alive, the next edit copies the definition.
//! - **The core validates, backends trust.** This crate checks every rule before it calls a
//!   backend: handles, ranges, arity, launch limits, cycles, and the order of allocations and their
//!   uses. A backend that meets a violated precondition has found a bug in this crate.
//! - **Nodes own what they use.** An [`Operation`](op::Operation) holds kernels, allocations,
//!   events, closures and bytes by reference count. So do the snapshot behind every executable and
//!   the launches in flight.
//! - **User code never runs under a lock of this crate.** Dropping a closure may call back into the
//!   graph. An edit therefore moves out what it removes, and drops it after the lock is released.
//!
//! # Modules
//!
//! | module | subject |
//! |---|---|
//! | [`graph`] | the definition: nodes, edges, conditions, editing, checks, pictures |
//! | [`op`] | the operation of each kind of node, and what it holds |
//! | [`launch`] | grids, blocks, launch attributes and device limits |
//! | [`memory`] | kinds and regions of memory |
//! | [`backend`] | the traits that a device implements |
//! | [`lower`] | steps of lowering that every backend needs |
//! | [`capture`] | recording the work of streams into a graph |
//! | [`stream`], [`event`], [`executable`] | handles that check each use of a backend object |
//! | [`profile`] | when each node of a launch ran |
//! | [`user_code`] | calls into callbacks and drops that the user wrote |
//! | [`error`] | the one error type |
//! | [`null`] | a device that runs nothing, for tests of this crate |

pub mod backend;
pub mod capture;
pub mod error;
pub mod event;
pub mod executable;
pub mod graph;
pub mod launch;
pub mod lower;
pub mod memory;
pub mod null;
pub mod op;
pub mod profile;
mod speed;
pub mod stream;
pub mod user_code;

pub use capture::Capture;
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use executable::Executable;
pub use graph::{Condition, Definition, Graph, Node};
pub use stream::Stream;
