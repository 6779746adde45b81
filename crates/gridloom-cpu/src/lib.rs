//! The CPU device of Gridloom: memory, streams, kernels written in PTX, and graphs.
//!
//! Programs use it through the `gridloom` crate.
//!
//! # Design choices
//!
//! - **The core has checked.** Ranges, shapes, order and lifetimes are valid when they arrive here.
//!   This crate reports only what execution finds: memory that runs out, kernels that fault,
//!   callbacks that panic.
//! - **Device memory is foreign memory.** It is accessed by address only, never by reference. See
//!   `memory.rs`.
//! - **Instantiation does the work.** A graph becomes flat lists of prepared operations. A launch
//!   takes no lock and makes no allocation per node. Nodes without work are left out.
//! - **Threads must pay off.** Work starts on the thread that has it. Other threads take a share
//!   when the work proves long enough to be worth waking them. Idle threads sleep.
//! - **A failure is local.** A fault or panic fails one launch, with the node's name. Stream and
//!   device stay usable.
//!
//! # Modules
//!
//! | module | subject |
//! |---|---|
//! | `device` | the device, its options, and what its parts share |
//! | `memory`, `transfer` | allocations, copies and fills |
//! | `stream`, `event` | queues of work, and points in them |
//! | `cancel` | cancelling launches |
//! | `module`, `kernel` | PTX modules in memory, and launches of their kernels |
//! | `operation` | one operation, ready to run |
//! | `pool`, `queue`, `sync` | the workers, the order of a stream, and synchronization types |
//! | `release` | the threads that drop user values |
//! | `graph` | executables: plan, memory and replay |

mod blame;
mod cancel;
mod device;
mod event;
mod graph;
mod kernel;
mod memory;
mod module;
mod operation;
mod pool;
mod queue;
mod release;
mod stream;
mod sync;
mod transfer;

use gridloom_interp as interp;

pub use device::{CpuDevice, CpuOptions, Engine, PrintSink};
