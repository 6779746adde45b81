//! Faults: what ends a launch early, and where it happened.

use std::fmt;

/// A state space of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// No named space: the address itself tells its window.
    Generic,
    /// Device memory, by its host address.
    Global,
    /// Constant memory of the module, by its host address.
    Const,
    /// The memory of one block, by the offset in its window.
    Shared,
    /// The private memory of one thread, by the offset in its window.
    Local,
    /// The parameters of the kernel, by the offset in their window.
    Param,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Const => "constant",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Param => "parameter",
        })
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes in one step.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic update",
        })
    }
}

/// A line of the source that the PTX was compiled from. It is known if the module has `.loc`
/// directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file as the `.file` directive names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Threads of a deadlocked block that wait at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What they wait for: `barrier 0`, `shfl.sync with mask 0x3`.
    pub at: String,
    /// The line of the PTX they wait at.
    pub line: u32,
    /// The source line, if known.
    pub source: Option<SourceLine>,
    /// How many threads wait there.
    pub threads: u32,
    /// The index of the instruction in the body of the kernel. In a function that the kernel calls,
    /// that of the call.
    pub instruction: u32,
}

/// The reason why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// A `trap` instruction.
    Trap,
    /// A `brkpt` instruction. There is no debugger to stop in.
    Breakpoint,
    /// A call of `__assertfail`: a failed assertion.
    Assert {
        /// The expression that was false.
        message: String,
        /// The file of the assertion.
        file: String,
        /// Its line.
        line: u32,
        /// The function of the assertion.
        function: String,
    },
    /// An access outside every live allocation of its space.
    IllegalAddress {
        /// Whether it would have been read or written.
        access: AccessKind,
        /// The address, as the instruction computed it.
        address: u64,
        /// The space of the address.
        space: Space,
        /// The size of the access in bytes.
        size: u32,
    },
    /// An access whose address is not a multiple of its size.
    Misaligned {
        /// Whether it would have been read or written.
        access: AccessKind,
        /// The address, as the instruction computed it.
        address: u64,
        /// The space it lies in.
        space: Space,
        /// The alignment that the access needs.
        size: u32,
    },
    /// The kernel cannot run with the shape or parameters of the launch.
    InvalidLaunch {
        /// What is wrong with them.
        reason: String,
    },
    /// Every live thread of a block waits for another one.
    Deadlock {
        /// The places where threads wait.
        waiting: Vec<Waiting>,
    },
    /// A warp ran more instructions than the launch allows.
    StepLimit {
        /// The limit, in instructions of one warp.
        limit: u64,
    },
    /// Nested calls or `alloca` need more memory than is left.
    OutOfMemory {
        /// The size of the last request in bytes.
        bytes: u64,
    },
    /// The launch was cancelled.
    Cancelled,
    /// An instruction whose operands are invalid.
    IllegalInstruction {
        /// What is wrong with them.
        reason: String,
    },
    /// An indirect call of an address that is not a function with the expected signature.
    InvalidIndirectCall {
        /// The value called.
        target: u64,
    },
    /// Calls are nested too deep, or `alloca` took too much memory.
    StackOverflow {
        /// The bytes of stack that one thread may use.
        limit: u64,
    },
    /// `cudaGraphSetConditional` with a handle that is no condition of this launch.
    BadCondition {
        /// The handle.
        handle: u64,
    },
    /// `free` of an address that `malloc` did not return, or that was freed before.
    InvalidFree {
        /// The address.
        address: u64,
    },
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Trap => f.write_str("trap instruction"),
            FaultKind::Breakpoint => f.write_str("breakpoint instruction"),
            FaultKind::Assert { message, file, line, function } => {
                write!(f, "assertion `{message}` failed at {file}:{line} in {function}")
            }
            FaultKind::IllegalAddress { access, address, space: Space::Param, size }
                if *access != AccessKind::Read =>
            {
                write!(
                    f,
                    "{access} of {size} bytes at parameter address {address:#x}; parameters are read-only"
                )
            }
            FaultKind::IllegalAddress { access, address, space, size } => {
                let plural = if *size == 1 { "" } else { "s" };
                write!(
                    f,
                    "{access} of {size} byte{plural} at {space} address {address:#x}, outside every live allocation"
                )
            }
            FaultKind::Misaligned { access, address, space, size } => {
                write!(f, "{access} at {space} address {address:#x}, which is not a multiple of {size}")
            }
            FaultKind::InvalidLaunch { reason } => write!(f, "invalid launch: {reason}"),
            FaultKind::Deadlock { waiting } => {
                f.write_str("deadlock: every live thread of the block waits:")?;
                for (i, w) in waiting.iter().enumerate() {
                    let (separator, plural) =
                        (if i == 0 { "" } else { "," }, if w.threads == 1 { "" } else { "s" });
                    write!(f, "{separator} {} thread{plural} at {} (line {}", w.threads, w.at, w.line)?;
                    if let Some(source) = &w.source {
                        write!(f, ", {source}")?;
                    }
                    f.write_str(")")?;
                }
                Ok(())
            }
            FaultKind::StepLimit { limit } => {
                write!(
                    f,
                    "ran past the limit of {limit} instructions per warp; raise the limit if it should run this long"
                )
            }
            FaultKind::OutOfMemory { bytes } => write!(
                f,
                "out of memory: {bytes} more bytes for the registers and stacks of calls exceed the memory limit of the device"
            ),
            FaultKind::Cancelled => f.write_str("the launch was cancelled"),
            FaultKind::IllegalInstruction { reason } => write!(f, "illegal instruction: {reason}"),
            FaultKind::InvalidIndirectCall { target } => {
                write!(f, "indirect call of {target:#x}, which is no function of the signature called")
            }
            FaultKind::StackOverflow { limit } => {
                write!(
                    f,
                    "stack overflow: the calls need more than the {limit} bytes of stack that a thread has"
                )
            }
            FaultKind::BadCondition { handle } => {
                write!(
                    f,
                    "cudaGraphSetConditional with {handle:#x}, which is the handle of no condition of this launch"
                )
            }
            FaultKind::InvalidFree { address } => {
                write!(f, "free of {address:#x}, which is not an allocation of the device heap")
            }
        }
    }
}

/// The failure of a launch: what happened, in which thread and at which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The launched kernel.
    pub kernel: String,
    /// The block, as `%ctaid`.
    pub block: [u32; 3],
    /// The thread in its block, as `%tid`. If several are concerned, the first of them.
    pub thread: [u32; 3],
    /// The line of the PTX, if one instruction caused the fault.
    pub line: Option<u32>,
    /// The source line, if `.loc` tells it.
    pub source: Option<SourceLine>,
    /// Where the thread is in the kernel itself, if there is such a place.
    pub place: Option<KernelPlace>,
}

/// A place in the body of a kernel that a thread has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace {
    /// The index of the instruction. In a function that the kernel calls, that of the call.
    pub instruction: u32,
    /// The thread's registers in the order of their declarations. A register of 128 bits takes two
    /// entries.
    pub registers: Vec<u64>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
        write!(f, "kernel {}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})", self.kernel)?;
        if let Some(line) = self.line {
            write!(f, ", PTX line {line}")?;
        }
        if let Some(source) = &self.source {
            write!(f, ", {source}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for Fault {}

/// A fault as an instruction raises it, with its lane. The warp adds the position.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) kind: Box<FaultKind>,
    pub(crate) lane: u32,
}

impl FaultKind {
    /// Attaches the lane that raised the fault.
    pub(crate) fn in_lane(self, lane: u32) -> Raised {
        Raised { kind: Box::new(self), lane }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_kernel_block_thread_and_line() {
        let fault = Fault {
            kind: FaultKind::IllegalAddress {
                access: AccessKind::Write,
                address: 0x10,
                space: Space::Global,
                size: 4,
            },
            kernel: "saxpy".into(),
            block: [1, 2, 0],
            thread: [3, 0, 0],
            line: Some(17),
            source: Some(SourceLine { file: "saxpy.cu".into(), line: 5 }),
            place: None,
        };
        assert_eq!(
            fault.to_string(),
            "kernel saxpy, block (1, 2, 0), thread (3, 0, 0), PTX line 17, saxpy.cu:5: \
             write of 4 bytes at global address 0x10, outside every live allocation"
        );
    }

    #[test]
    fn a_deadlock_lists_the_places_waited_at() {
        let wait =
            |at: &str, line, threads| Waiting { at: at.into(), line, source: None, threads, instruction: 0 };
        let kind = FaultKind::Deadlock { waiting: vec![wait("barrier 0", 9, 31), wait("barrier 1", 12, 1)] };
        assert_eq!(
            kind.to_string(),
            "deadlock: every live thread of the block waits: 31 threads at barrier 0 (line 9), 1 thread at barrier 1 (line 12)"
        );
    }
}
