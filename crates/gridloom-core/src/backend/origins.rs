//! Whose work a rewritten kernel does, for faults that name what the user wrote.

use std::fmt::Debug;
use std::ops::Range;

/// Finds the node behind a fault of a rewritten kernel.
///
/// A kernel that does the work of several nodes has them
/// ([`Kernel::origins`](super::Kernel::origins)). A backend that reports faults asks them.
pub trait Origins: Send + Sync + Debug {
    /// Returns whose work a thread was doing. `None` if the place is between the nodes.
    fn origin(&self, place: &FaultPlace<'_>) -> Option<Origin>;
}

/// A place in a rewritten kernel that a thread has reached.
#[derive(Clone, Copy, Debug)]
pub struct FaultPlace<'a> {
    /// The block, as `%ctaid`.
    pub block: [u32; 3],
    /// The thread in its block, as `%tid`.
    pub thread: [u32; 3],
    /// The index of the instruction in the body of the kernel. In a function that the kernel calls,
    /// that of the call.
    pub instruction: u32,
    /// The thread's registers in the order of their declarations. A register of 128 bits takes two
    /// entries.
    pub registers: &'a [u64],
}

/// The same place in the launch that the user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the node.
    pub node: String,
    /// The name of its kernel.
    pub kernel: String,
    /// The block of its launch.
    pub block: [u32; 3],
    /// The thread in that block.
    pub thread: [u32; 3],
    /// The line in the PTX of its kernel, from 1. `None` if that is not known.
    pub line: Option<u32>,
    /// The file and line of the source, if the PTX tells them.
    pub source: Option<(String, u32)>,
    /// Its parameters, as ranges of the rewritten kernel's arguments.
    pub params: Vec<(String, Range<u64>)>,
}
