//! The CPU device of Gridloom: memory, streams, a PTX interpreter and a replay plan for graphs.
//!
//! # Design choices
//!
//! - **The core has checked.** Ranges, shapes, order and lifetimes are right when they arrive here. What is reported from here
//!   is what only execution can know: memory that ran out, kernels that fault, callbacks that panic.
//! - **Device memory is foreign memory.** It is reached by address only, never by reference; see [`memory`].
//! - **Instantiation does the thinking.** A graph becomes flat lists of prepared operations. A replay takes no lock and makes
//!   no allocation for a node, and a node without work is not there at all.
//! - **Threads must pay.** Work starts on the thread that has it and is shared out when it proves long enough to be worth
//!   waking somebody. Idle threads sleep.
//! - **A failure is local.** A fault or panic fails one launch, with the node's name; stream and device go on.
//!
//! # Map
//!
//! | module | subject |
//! |---|---|
//! | [`device`] | the device, its options, and what its parts share |
//! | [`memory`], `transfer` | allocations, and what copies and fills them |
//! | [`stream`], [`event`] | queues of work, and points in them |
//! | `cancel` | how launches are cancelled |
//! | [`module`], [`kernel`] | PTX read and placed in memory, and launches of its kernels |
//! | [`interp`] | the reference interpreter of PTX, a crate of its own; `gridloom-jit` compiles kernels for it |
//! | `operation` | one operation, ready to run |
//! | `pool`, `queue`, `sync` | the workers, the order of a stream, and the types that threads meet with |
//! | [`graph`] | executables: plan, memory and replay |

mod cancel;
pub mod device;
pub mod event;
pub mod graph;
pub mod kernel;
pub mod memory;
pub mod module;
mod operation;
mod pool;
mod queue;
mod release;
pub mod stream;
mod sync;
mod transfer;

#[doc(inline)]
pub use gridloom_interp as interp;
#[doc(hidden)]
pub use gridloom_interp::numeric;

pub use device::{CpuDevice, CpuOptions, ENGINE_VARIABLE, Engine, PrintSink};
