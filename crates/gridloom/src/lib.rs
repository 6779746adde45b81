//! Graphs of device work: kernels, copies, fills, host calls and control flow that are described once and launched many times,
//! on an NVIDIA GPU as a CUDA graph or on any CPU, with the same PTX kernels.

pub mod buffer;
pub mod callable;
pub mod capture;
pub mod conditional;
pub mod demo_kernels;
pub mod device;
pub mod edit;
pub mod interop;
pub mod kernel;
pub mod module;
pub mod ops;
pub mod prelude;

pub use buffer::{Buffer, BufferSlice, Element, Memory};
pub use callable::{Callable, CallableOptions, CallableStats};
pub use capture::{CaptureMode, CaptureOps, ForeignOps, ForeignOptions, ForeignStream, StreamOps};
pub use device::{CompileOptions, CpuOptions, Device, Engine};
pub use gridloom_core::backend::{DeviceKind, EventOptions};
pub use gridloom_core::capture::{CaptureKind, CaptureState, ConditionDefault};
pub use gridloom_core::error::DriverFailure;
pub use gridloom_core::executable::{
    Change, ConditionalMode, ConditionalReport, InstantiateOptions, LaunchTarget, MemoryUse, Part, Report,
};
pub use gridloom_core::graph::{EdgeKind, NodeMap};
pub use gridloom_core::launch::{Dim3, LaunchConfig, Limits};
pub use gridloom_core::memory::MemoryKind;
pub use gridloom_core::op::NodeKind;
pub use gridloom_core::op::contract;
pub use gridloom_core::{
    Capture, Condition, Error, ErrorKind, Event, Executable, Graph, Node, Result, Stream, op,
};
pub use gridloom_ptx as ptx;
pub use kernel::{ConditionHandle, Kernel, Len, Null, Nullable, Ptr, PtrMut};
pub use module::Module;
pub use ops::{AllocNode, ExecutableOps, GraphOps, Ops};

/// The examples of the README and the guide, run as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/safety.md")]
    struct Safety;
}
