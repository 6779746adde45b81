//! The CUDA device of Gridloom: a driver loaded at run time, and graphs lowered to CUDA graphs.
//!
//! Programs use it through the `gridloom` crate.
//!
//! # Design choices
//!
//! - **Nothing is linked.** The driver is opened at run time, and its functions are looked up by
//!   their exact versioned names. If one is missing, the error says so.
//! - **The core has checked.** Ranges, shapes, order and lifetimes are valid when they arrive here.
//! - **Each executable has a `CUgraph` of its own**, made from the definition in host memory. The
//!   driver is never asked to clone, embed or edit a graph.
//! - **Nothing is released while work may use it.** Driver objects are destroyed on one thread,
//!   after the work that uses them has ended.
//!
//! `docs/driver-quirks.md` in the repository lists the behaviour of drivers that this crate works
//! around.
//!
//! # Modules
//!
//! | module | subject |
//! |---|---|
//! | [`sys`] | the driver's types, generated from its header |
//! | [`driver`] | the driver, found and called at run time |
//! | [`device`], [`context`], [`memory`], [`stream`], [`event`], [`module`], [`kernel`] | one object of a GPU each |
//! | `declared`, `condition_ptx` | the declarations in the PTX of a module, and how the PTX is rewritten |
//! | `graph` | graphs lowered to CUDA graphs, and how they run |
//! | `polling`, `context_wait` | waiting for the driver with a time limit, and for a whole context |
//! | `turns` | work that must not run side by side |
//! | `pools`, `host_pages` | memory that is reused and never returned to the driver |
//! | [`release`], `in_flight` | keeping resources alive while work uses them, and releasing them |
//! | [`interop`], `registry` | conversions from and to raw handles |
//! | [`foreign`] | capture of other CUDA code by the driver |
//! | [`nvrtc`] | CUDA C++ to PTX |

mod condition_ptx;
pub mod context;
mod context_wait;
mod declared;
pub mod device;
pub mod driver;
mod error;
pub mod event;
mod failure;
pub mod foreign;
mod graph;
mod host_pages;
mod hosted_launch;
mod in_flight;
pub mod interop;
pub mod kernel;
pub mod memory;
pub mod module;
pub mod nvrtc;
mod polling;
mod pools;
mod registry;
pub mod release;
mod retry_once;
pub mod stream;
mod sync;
pub mod sys;
mod transfer;
mod turns;
mod version;

pub use device::{CudaDevice, device_count};
pub use driver::{Driver, DriverError};
pub use version::{CudaVersion, ParseVersionError};
