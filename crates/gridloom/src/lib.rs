//! Graphs of device work: kernels, copies, fills, host calls and control flow that are described once and
//! launched many times, on an NVIDIA GPU as a CUDA graph or on any CPU, with the same PTX kernels.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `cpu` | yes | the CPU device, with its interpreter and JIT: `Device::cpu`, `CpuOptions`, `Engine` |
//! | `cuda` | yes | CUDA GPUs (`Device::cuda`), CUDA C++ through NVRTC (`Device::load_cuda`), capture of other CUDA code, `interop` |
//! | `cudarc` | no | conversions from and to the types of the `cudarc` crate; implies `cuda` |
//!
//! Neither needs anything but Rust to build. A program for GPUs alone saves the compile time of Cranelift with
//! `default-features = false, features = ["cuda"]`.

pub mod buffer;
pub mod callable;
pub mod capture;
pub mod conditional;
pub mod demo_kernels;
pub mod device;
mod edit;
mod event;
mod executable;
mod graph;
#[cfg(feature = "cuda")]
pub mod interop;
pub mod kernel;
pub mod module;
mod node;
pub mod ops;
pub mod prelude;
mod stream;

pub use buffer::{Buffer, BufferSlice, Element, Memory, WeakBuffer};
pub use callable::{Callable, CallableOptions, CallableStats};
pub use capture::Capture;
#[cfg(feature = "cuda")]
pub use capture::{CaptureMode, ForeignOptions, ForeignStream};
pub use conditional::{Body, Conditional, If, IfElse, Switch, While};
pub use device::Device;
#[cfg(feature = "cuda")]
pub use device::{CompileOptions, CudaVersion, DriverOptions};
#[cfg(feature = "cpu")]
pub use device::{CpuOptions, Engine};
pub use event::Event;
pub use executable::{Executable, ExecutableNode, HazardCheck, InstantiateOptions, LaunchTarget};
pub use graph::{Condition, Graph, NodeMap, WeakGraph};
pub use gridloom_core::backend::{DeviceKind, EventOptions};
pub use gridloom_core::capture::{CaptureKind, CaptureState, ConditionDefault};
pub use gridloom_core::error::DriverFailure;
pub use gridloom_core::executable::{ConditionalMode, ConditionalReport, MemoryUse, Report};
pub use gridloom_core::graph::hazards::{AccessKind, Hazard, Hazards};
pub use gridloom_core::graph::{
    ConditionKey, ConditionalSpec, Difference, DifferenceKind, EdgeKind, GraphKey, NodeKey,
};
pub use gridloom_core::launch::{Dim3, LaunchConfig, Limits};
pub use gridloom_core::memory::{Base, MemoryKind, Region};
pub use gridloom_core::op::NodeKind;
pub use gridloom_core::op::contract;
pub use gridloom_core::{Error, ErrorKind, Result, op};
pub use gridloom_ptx as ptx;
pub use kernel::{ConditionHandle, Kernel, Len, Null, Nullable, Ptr, PtrMut};
pub use module::Module;
pub use node::{Node, WeakNode};
pub use ops::{AllocNode, AllocSlice, GraphOps, Ops};
pub use stream::Stream;

/// The examples of the README and the guide, run as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/safety.md")]
    struct Safety;
    #[doc = include_str!("../../../docs/coming-from/cuda-core.md")]
    struct ComingFromCudaCore;
    #[doc = include_str!("../../../docs/coming-from/cudarc.md")]
    struct ComingFromCudarc;
    #[doc = include_str!("../../../docs/coming-from/quadrants.md")]
    struct ComingFromQuadrants;
}
