//! The core of Gridloom: what a graph of device work *is*, independent of any device.
//!
//! # Design choices
//!
//! - **One definition.** A [`Graph`] lives in Rust memory and is the single source of truth. Explicit construction
//!   and every other front end write the same definition; backends only read it.
//! - **Snapshots.** Instantiation takes the definition as one immutable [`Definition`] (an `Arc`, copied on the next
//!   write), so an executable is either before or after an edit made by another thread, never between.
//! - **The core validates, backends trust.** Every rule is checked here, before a backend is called: handles,
//!   ranges, arity, launch limits, cycles, the order of allocations and their uses. A backend that meets a
//!   violated precondition has found a bug in this crate.
//! - **Nodes own what they use.** An [`Operation`](op::Operation) holds kernels, allocations, events, closures and bytes by
//!   reference count. So do the snapshot behind every executable, and the launches in flight.
//! - **User code never runs under our locks.** What an edit removes is moved out and dropped after the lock is released,
//!   because the drop of a closure may come back into the graph.
//!
//! # Map
//!
//! | module | subject |
//! |---|---|
//! | [`graph`] | the definition: nodes, edges, conditions, editing, checks, pictures |
//! | [`op`] | what each kind of node does, and what it holds |
//! | [`launch`] | grids, blocks, launch attributes and device limits |
//! | [`memory`] | memory kinds and regions of memory |
//! | [`backend`] | the traits that make a device |
//! | [`capture`] | recording what streams do into a graph |
//! | [`stream`], [`event`], [`executable`] | handles that pair a backend object with the checks on its use |
//! | [`error`] | the one error type |
//! | [`null`] | a device that runs nothing, for testing this crate |

pub mod backend;
pub mod capture;
pub mod error;
pub mod event;
pub mod executable;
pub mod graph;
pub mod launch;
pub mod memory;
pub mod null;
pub mod op;
mod speed;
pub mod stream;
pub mod user_code;

pub use capture::Capture;
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use executable::Executable;
pub use graph::{Condition, Definition, Graph, Node};
pub use stream::Stream;
