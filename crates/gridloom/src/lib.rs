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
mod optimize;
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
pub use gridloom_kernel::{KernelParam, KernelType, Out, block, grid, host, thread};
/// Makes a struct of plain fields a type that device code can use: in variables, in parameters, in memory.
///
/// Fields are scalars, arrays and other such structs. To be in memory that a launch gives, the struct is also
/// `bytemuck::Pod`, and so `#[repr(C)]`. Its methods are device code where their `impl`, which has to be in the same
/// module, has the attribute [`device`](macro@device).
pub use gridloom_macros::KernelType;
/// Makes a function callable from kernels, or the functions of an `impl` of a [`KernelType`](derive@KernelType).
///
/// ```
/// use gridloom::{KernelType, device};
///
/// #[derive(Clone, Copy, KernelType)]
/// struct Complex {
///     re: f32,
///     im: f32,
/// }
///
/// #[device]
/// impl Complex {
///     fn size_squared(self) -> f32 {
///         square(self.re) + square(self.im)
///     }
/// }
///
/// #[device]
/// fn square(x: f32) -> f32 {
///     x * x
/// }
///
/// assert_eq!(Complex { re: 3.0, im: 4.0 }.size_squared(), 25.0);
/// ```
///
/// On an `impl` of `Add`, `Sub`, `Mul`, `Div`, `Rem` or `Neg` between values of one type it makes the operator one of device
/// code. Calls are recorded in place, so device functions cannot be recursive.
pub use gridloom_macros::device;
/// Makes a function a kernel.
///
/// The function stays as it is, for the compiler and for the host. Beside it there is `name::load(&device)`, which
/// compiles it for a device:
///
/// ```
/// use gridloom::prelude::*;
/// use gridloom::{Out, host, kernel};
///
/// #[kernel]
/// fn saxpy(a: f32, x: &[f32], y: Out<f32>) {
///     if let Some((i, y)) = y.mine() {        // the element of this thread, if there is one
///         *y = a * x[i] + *y;
///     }
/// }
///
/// # fn main() -> Result<()> {
/// // On the host, thread by thread:
/// let mut y = [1.0; 3];
/// host::run(1, 32, || saxpy(2.0, &[1.0, 2.0, 3.0], Out::new(&mut y)));
/// assert_eq!(y, [3.0, 5.0, 7.0]);
///
/// // On a device:
/// let device = Device::cpu()?;
/// let (x, y) = (device.buffer_from(&[1.0, 2.0, 3.0])?, device.buffer_from(&[1.0; 3])?);
/// let saxpy = saxpy::load(&device)?;
/// device.stream()?.launch(&saxpy, LaunchConfig::linear(3), (2.0, &x, &y))?;
/// assert_eq!(y.to_vec()?, [3.0, 5.0, 7.0]);
/// # Ok(())
/// # }
/// ```
///
/// Parameters are plain values, slices `&[T]` to read and [`Out<T>`](Out) to write. A launch gives memory for the latter two;
/// what it gives for an `Out` must not overlap with anything else that it gives. Generic kernels are loaded with their
/// types: `axpy::load::<f32>(&device)`.
///
/// The body is ordinary Rust: scalars with their operators and most of their methods, variables, branches, loops, `match`,
/// arrays, tuples, options, structs with [`KernelType`](derive@KernelType), functions with [`device`](macro@device), closures,
/// `assert!` and `panic!`. What a device cannot do is refused where it is written. Every index is checked; a check that fails is the
/// error of the launch, with file, line, block and thread. `unsafe { x.get_unchecked(i) }` promises instead, and makes `load`
/// `unsafe`:
///
/// ```compile_fail,E0133
/// # use gridloom::{Out, kernel};
/// #[kernel]
/// fn copy(x: &[u32], out: Out<u32>) {
///     if let Some((i, out)) = out.mine() {
///         *out = unsafe { *x.get_unchecked(i) };
///     }
/// }
/// # fn load(device: &gridloom::Device) {
/// let copy = copy::load(device);
/// # }
/// ```
///
/// Threads cannot get at the elements of others: they cannot write to what they read,
///
/// ```compile_fail,E0594
/// # use gridloom::kernel;
/// #[kernel]
/// fn write(x: &[u32]) {
///     x[0] = 1;
/// }
/// ```
///
/// cannot ask for their element twice,
///
/// ```compile_fail,E0382
/// # use gridloom::{Out, kernel};
/// #[kernel]
/// fn twice(out: Out<u32>) {
///     let (one, other) = (out.mine(), out.chunk(2));
/// }
/// ```
///
/// cannot index all of the memory,
///
/// ```compile_fail,E0608
/// # use gridloom::{Out, kernel};
/// #[kernel]
/// fn any(out: Out<u32>) {
///     out[3] = 1;
/// }
/// ```
///
/// and cannot all have the same slice to write:
///
/// ```compile_fail
/// # use gridloom::kernel;
/// #[kernel]
/// fn all(out: &mut [u32]) {
///     out[0] += 1;
/// }
/// ```
///
/// The README of the crate `gridloom-kernel` says what a kernel means and why it is safe.
pub use gridloom_macros::kernel;
pub use gridloom_opt::{Optimization, Optimizations};
pub use gridloom_ptx as ptx;
pub use kernel::{ConditionHandle, Kernel, Len, Null, Nullable, Ptr, PtrMut};
pub use module::Module;
pub use node::{Node, WeakNode};
pub use ops::{AllocNode, AllocSlice, GraphOps, Ops};
pub use stream::Stream;

/// What the attribute macros expand to. Not for programs.
#[doc(hidden)]
pub mod __kernel {
    pub use gridloom_kernel::record::*;

    pub use crate::kernel::rust::load;
}

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
