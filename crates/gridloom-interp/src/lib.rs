#![doc = include_str!("README.md")]

mod access;
mod barrier;
mod block;
mod budget;
mod builtin;
mod call;
#[doc(hidden)]
pub mod code;
#[doc(hidden)]
pub mod collective;
#[doc(hidden)]
pub mod compiled;
mod decode;
mod error;
mod fault;
mod heap;
mod kernel;
#[doc(hidden)]
pub mod lanes;
mod launch;
mod layout;
mod memory;
#[doc(hidden)]
pub mod numeric;
mod printf;
mod program;
#[doc(hidden)]
pub mod racy;
mod special;
mod warp;

pub use budget::Budget;
pub use builtin::CONDITION_TAG;
pub use error::Error;
pub use fault::{AccessKind, Fault, FaultKind, KernelPlace, SourceLine, Space, Waiting};
pub use heap::Heap;
pub use kernel::{KernelCode, KernelParam};
pub use launch::{CANCEL_FLAGS, DEFAULT_STACK, Launch, Scratch};
pub use layout::{Layout, ModuleVariable};
pub use memory::{FUNCTION_WINDOW, LOCAL_WINDOW, MemoryMap, PARAM_WINDOW, SHARED_WINDOW};
pub use program::Program;
