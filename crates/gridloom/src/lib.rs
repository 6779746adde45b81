//! Graphs of device work in Rust. You describe kernels, copies, fills, host callbacks and control
//! flow once, and launch them many times. On an NVIDIA GPU the graph becomes a CUDA graph. On any
//! other machine the CPU runs it, with the same kernels.
//!
//! ```
//! use gridloom::prelude::*;
//! use gridloom::{Out, kernel};
//!
//! /// Each thread doubles its own element.
//! #[kernel]
//! fn double(x: Out<f32>) {
//!     if let Some((_, x)) = x.mine() {
//!         *x *= 2.0;
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let device = Device::best()?; // the first CUDA GPU, else the CPU
//! let stream = device.stream()?;
//! let double = double::load(&device)?;
//! let x = device.alloc::<f32>(1000)?;
//!
//! let graph = Graph::new(&device);
//! let start = graph.memset(&x, 1.0f32)?; // a node
//! start.repeat(10)?.body().launch(&double, LaunchConfig::linear(1000), (&x,))?; // after it, a loop
//!
//! let executable = graph.instantiate()?; // compile once, launch many times
//! executable.launch(&stream)?;
//! assert_eq!(x.to_vec()?, [1024.0; 1000]);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to begin
//!
//! | to | look at |
//! |---|---|
//! | choose a device, allocate memory, load kernels | [`Device`] |
//! | write a graph node by node | [`Graph`], [`Node`] |
//! | record what streams do | [`Stream::capture`], [`Capture`] |
//! | call a graph like a function | [`Callable`], [`program`](macro@program) |
//! | launch, change and profile | [`Executable`] |
//! | write kernels in Rust | [`kernel`](macro@kernel) |
//! | use kernels from PTX and CUDA C++ | [`Module`] |
//! | say what a kernel needs of its arguments | [`contract`] |
//! | measure | [`Event`], [`Executable::profile`] |
//! | save a graph and run it elsewhere | [`mod@file`], [`Graph`] |
//! | use streams, memory and graphs of other CUDA code | `interop` (feature `cuda`) |
//! | handle errors | [`Error`], [`ErrorKind`] |
//!
//! `docs/guide.md` in the repository leads from the first graph to a solver, and `docs/safety.md`
//! says what the `unsafe` calls require.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `cpu` | yes | the CPU device, with its interpreter and JIT: `Device::cpu`, `CpuOptions`, `Engine` |
//! | `cuda` | yes | CUDA GPUs (`Device::cuda`), CUDA C++ through NVRTC (`Device::load_cuda`), capture of other CUDA code, `interop` |
//! | `cudarc` | no | conversions from and to the types of the `cudarc` crate; implies `cuda` |
//!
//! Building needs Rust and a C linker, whichever features are on. The CUDA driver and NVRTC are
//! opened at run time. A program for GPUs only saves the compile time of Cranelift with
//! `default-features = false, features = ["cuda"]`.

pub mod buffer;
pub mod callable;
pub mod capture;
pub mod conditional;
mod conditional_mode;
pub mod demo_kernels;
mod device;
mod edit;
mod event;
mod executable;
pub mod file;
mod graph;
#[cfg(feature = "cuda")]
pub mod interop;
pub mod kernel;
mod module;
mod node;
pub mod ops;
mod optimize;
pub mod prelude;
mod stream;
mod tuples;

pub use buffer::{Buffer, BufferSlice, Element, Memory, WeakBuffer};
pub use callable::{Callable, CallableOptions, CallableStats};
pub use capture::Capture;
#[cfg(feature = "cuda")]
pub use capture::{CaptureMode, ForeignOptions, ForeignStream};
pub use conditional::{Body, Conditional, If, IfElse, Switch, While};
pub use device::Device;
#[cfg(feature = "cuda")]
pub use device::{CompileOptions, CudaVersion, DriverOptions, Ptx, compile_cuda};
#[cfg(feature = "cpu")]
pub use device::{CpuOptions, Engine};
pub use event::Event;
pub use executable::{Executable, ExecutableNode, HazardCheck, InstantiateOptions, LaunchTarget};
pub use file::{GraphSaver, LoadOptions, LoadedGraph};
pub use graph::{Condition, Graph, NodeMap, WeakGraph};
pub use gridloom_core::backend::{DeviceKind, EventOptions, StreamOptions};
pub use gridloom_core::capture::{CaptureKind, CaptureState, ConditionDefault};
pub use gridloom_core::error::DriverFailure;
pub use gridloom_core::executable::{ConditionalMode, ConditionalReport, MemoryUse, NodeReport, Report};
pub use gridloom_core::graph::hazards::{AccessKind, Hazard, Hazards};
pub use gridloom_core::graph::{
    ConditionKey, ConditionalSpec, Difference, DifferenceKind, EdgeKind, GraphKey, NodeKey,
};
pub use gridloom_core::launch::{Dim3, LaunchConfig, Limits};
pub use gridloom_core::memory::{Base, GraphMemory, MemoryKind, Region};
pub use gridloom_core::op::NodeKind;
pub use gridloom_core::op::contract;
pub use gridloom_core::profile::{CriticalSpan, NodeProfile, Profile, ProfileOptions, Span};
pub use gridloom_core::{Error, ErrorKind, Result, op};
pub use gridloom_kernel::{
    Atomic, KernelParam, KernelType, Out, Own, Pairs, ParallelRange, SetCondition, Shared, SharedAtomics,
    SharedView, View2, View3, block, grid, host, math, par, thread, warp,
};
/// Makes a struct or enum usable in device code: in variables, parameters and memory.
///
/// Fields are scalars, arrays and other such types. A type in memory that a launch passes must also
/// be `bytemuck::Pod`, and therefore `#[repr(C)]`. Its methods become device code when their `impl`
/// has the attribute [`device`](macro@device). That `impl` must be in the same module as the type.
///
/// An enum names the integer type of its discriminants, for example with `#[repr(u8)]`. Its
/// variants can have fields.
pub use gridloom_macros::KernelType;
/// Makes a function callable from kernels, or the functions of an `impl`, or the methods of a
/// trait.
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
/// The attribute also accepts an `impl` of `Add`, `Sub`, `Mul`, `Div`, `Rem` or `Neg` whose result
/// has the type of the left operand, of `AddAssign` and its kind, and of `PartialEq`. The operator
/// then works in device code. On a trait and on its `impl`s, it lets generic device functions call the
/// methods of their bounds. Calls are inlined, so device functions cannot be recursive.
///
/// A device function takes closures as `impl Fn(f32) -> f32` or by a type parameter:
///
/// ```
/// use gridloom::{Out, device, kernel};
///
/// #[device]
/// fn integral(f: impl Fn(f32) -> f32, steps: u32) -> f32 {
///     let width = 1.0 / steps as f32;
///     (0..steps).map(|k| f((k as f32 + 0.5) * width)).sum::<f32>() * width
/// }
///
/// #[kernel]
/// fn powers(x: &[f32], out: Out<f32>) {
///     if let Some((i, out)) = out.mine() {
///         *out = integral(|t| t * t * x[i], 64);
///     }
/// }
/// ```
pub use gridloom_macros::device;
/// Makes a function a kernel.
///
/// The function itself is unchanged: it still compiles and runs on the host. The attribute adds
/// `name::load(&device)`, which compiles the function for a device:
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
/// A parameter is a plain value, a slice `&[T]` to read, an [`Out<T>`](Out) to write,
/// `&[Atomic<T>]` to share, or a [`SetCondition`]. A launch passes memory for slices and for `Out`.
/// Memory passed for an `Out` or for atomics must not overlap any other argument of the launch. A
/// generic kernel is loaded with its types: `axpy::load::<f32>(&device)`.
///
/// The body is ordinary Rust: scalars with their operators and most of their methods, variables,
/// branches, loops, `match`, arrays, tuples, options, structs with
/// [`KernelType`](derive@KernelType), functions with [`device`](macro@device), closures, `assert!`
/// and `panic!`. Anything a device cannot do is a compile error at that place. Every index is
/// checked. A failed check becomes the error of the launch and names file, line, block and thread.
/// A kernel that skips a check with `get_unchecked` in an `unsafe` block makes `load` `unsafe`:
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
/// The attribute takes two arguments. `#[kernel(block(32, 8))]` states the exact size of the blocks,
/// in one to three numbers: launches with another size are refused, and what depends on the size is
/// computed when the kernel is loaded. `#[kernel(fmad)]` fuses products with the sums that they are
/// added to; results then differ from those of the host in their last bits.
///
/// A thread cannot access the elements of other threads. It cannot write to a slice that it reads,
///
/// ```compile_fail,E0594
/// # use gridloom::kernel;
/// #[kernel]
/// fn write(x: &[u32]) {
///     x[0] = 1;
/// }
/// ```
///
/// ask for its element twice,
///
/// ```compile_fail,E0382
/// # use gridloom::{Out, kernel};
/// #[kernel]
/// fn twice(out: Out<u32>) {
///     let (one, other) = (out.mine(), out.chunk(2));
/// }
/// ```
///
/// index the whole memory,
///
/// ```compile_fail,E0608
/// # use gridloom::{Out, kernel};
/// #[kernel]
/// fn any(out: Out<u32>) {
///     out[3] = 1;
/// }
/// ```
///
/// or share one mutable slice with other threads:
///
/// ```compile_fail
/// # use gridloom::kernel;
/// #[kernel]
/// fn all(out: &mut [u32]) {
///     out[0] += 1;
/// }
/// ```
///
/// The threads of a block share memory in phases: each writes its own elements, [`block::sync`]
/// waits for all of them, and then all read.
///
/// ```
/// use gridloom::{Out, block, host, kernel, thread};
///
/// #[kernel]
/// fn reverse(x: &[u32], out: Out<u32>) {
///     let mut tile = block::shared::<u32, 256>(0);
///     if let Some(slot) = tile.mine() {
///         *slot = x[thread::index()];
///     }
///     let tile = block::sync(tile);
///     if let Some((_, out)) = out.mine() {
///         *out = tile[block::threads() - 1 - thread::rank()];
///     }
/// }
///
/// let mut result = [0; 4];
/// let out = host::Memory::new(&mut result);
/// host::run_blocks(1, 4, || reverse(&[1, 2, 3, 4], out.out()));
/// assert_eq!(result, [4, 3, 2, 1]);
/// ```
///
/// In the writing phase, no thread reads the elements of others,
///
/// ```compile_fail,E0608
/// # use gridloom::{block, kernel};
/// #[kernel]
/// fn early(x: &[u32]) {
///     let tile = block::shared::<u32, 256>(x[0]);
///     let other = tile[1];
/// }
/// ```
///
/// in the reading phase, no thread writes,
///
/// ```compile_fail,E0594
/// # use gridloom::{block, kernel};
/// #[kernel]
/// fn late(x: &[u32]) {
///     let mut tile = block::sync(block::shared::<u32, 256>(x[0]));
///     tile[0] = 1;
/// }
/// ```
///
/// and no reference outlives its phase:
///
/// ```compile_fail,E0505
/// # use gridloom::{block, kernel};
/// #[kernel]
/// fn kept(x: &[u32]) {
///     let tile = block::sync(block::shared::<u32, 256>(x[0]));
///     let element = &tile[0];
///     let tile = block::sync(tile);
///     assert!(*element == 0);
/// }
/// ```
///
/// Shared memory has one owner,
///
/// ```compile_fail,E0382
/// # use gridloom::{block, kernel};
/// #[kernel]
/// fn twice(x: &[u32]) {
///     let mut tile = block::shared::<u32, 256>(x[0]);
///     let view = block::sync(tile);
///     tile.mine();
/// }
/// ```
///
/// and changes its phase only at a barrier:
///
/// ```compile_fail
/// # use gridloom::{block, kernel};
/// use gridloom_kernel::Phase;
/// fn change(tile: gridloom::Shared<u32>) -> gridloom::SharedView<u32> {
///     tile.next()
/// }
/// ```
///
/// Numbers that several threads change are [`Atomic`] and cannot be read as plain numbers:
///
/// ```compile_fail
/// # use gridloom::{Atomic, kernel};
/// #[kernel]
/// fn plain(counts: &[Atomic<u32>]) {
///     let count: u32 = counts[0] + 1;
/// }
/// ```
///
/// The README of the crate `gridloom-kernel` defines what a kernel means and argues why it is safe.
pub use gridloom_macros::kernel;
/// Makes a function of device arrays a [`Callable`] graph: parallel loops become kernels, and loops
/// around them become loops on the device.
///
/// ```
/// use gridloom::prelude::*;
/// use gridloom::{par, program};
///
/// /// Replaces each element by the mean of its neighbours, until `left` is 0.
/// #[program]
/// fn smooth(x: &mut [f32], next: &mut [f32], left: &mut i32) {
///     let n = x.len();
///     while *left != 0 {
///         for i in par(0..n) {                            // one thread for each index
///             next[i] = if i == 0 || i + 1 == n { x[i] } else { 0.5 * (x[i - 1] + x[i + 1]) };
///         }
///         for i in par(0..n) {
///             x[i] = next[i];
///         }
///         *left -= 1;                                     // one thread
///     }
/// }
///
/// # fn main() -> Result<()> {
/// // On the host it is a function:
/// let mut x = [0.0, 8.0, 0.0, 0.0];
/// smooth(&mut x, &mut [0.0; 4], &mut 2);
/// assert_eq!(x, [0.0, 2.0, 0.0, 0.0]);
///
/// // On a device it is a graph with a loop, built once and replayed with other arguments:
/// let device = Device::cpu()?;
/// let smooth = smooth::load(&device)?;
/// let (x, next, left) =
///     (device.buffer_from(&[0.0f32, 8.0, 0.0, 0.0])?, device.alloc::<f32>(4)?, device.buffer_from(&[2])?);
/// smooth.call(&device.stream()?, (&x, &next, &left))?;
/// assert_eq!(x.to_vec()?, [0.0, 2.0, 0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// | in the function | on the device |
/// |---|---|
/// | a parameter `T`; `&[T]`, `&mut [T]`; `&T`, `&mut T`; `&[Atomic<T>]` | a plain value; an array; one value in memory; atomic numbers |
/// | `for i in par(0..n)`, `for (x, y) in par((0..w, 0..h))`, three ranges likewise | a kernel with a thread for each index |
/// | `while condition { … }`, `loop { … }` | a loop on the device, left where the condition fails or by a statement `if condition { …; break; }` of its body |
/// | `for k in 0..n { … }`, also `a..=b`, `.rev()`, `.step_by(s)` | a loop on the device |
/// | `if condition { … } else { … }` | a branch on the device |
/// | `let n = x.len();` and other values of arguments | computed in each kernel that uses them |
/// | `let mut pass: u32 = 0;` and other values that the device computes | a variable in device memory |
/// | `match value { 0 => { … } 1 \| 2 => { … } _ => { … } }` | branches on the device |
/// | other code | a kernel of one thread |
///
/// A condition is any `bool`. `while *flag != 0` with a parameter `flag: &mut i32` costs least: the
/// loop tests the parameter itself. For others a kernel of one thread writes what the loop tests. A
/// variable that later kernels use states its type, unless it is clear from the code
/// (`let first = x[0];`). It has one value at a time, so calls of such a program on several streams
/// run one after the other.
///
/// A parallel loop writes only the elements at its own index: `a[i]`, or `a[y * width + x]` if the
/// ranges are `0..width` and `0..height`. It reads the arrays that it writes only at that index,
/// and other arrays anywhere. A pass that indexes another element fails the launch, with file and line.
/// All arrays that a loop writes have as many elements as it has passes. A loop that changes atomic
/// numbers alone can have any bounds.
pub use gridloom_macros::program;
pub use gridloom_opt::{Optimization, Optimizations, Optimize};
pub use gridloom_ptx as ptx;
pub use kernel::{ConditionHandle, Kernel, Len, Null, Nullable, Ptr, PtrMut};
pub use module::Module;
pub use node::{Node, WeakNode};
pub use ops::{AllocNode, AllocSlice, GraphOps, Ops};
pub use stream::Stream;

/// The items that the attribute macros expand to. Programs do not use them directly.
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
    #[doc = include_str!("../../gridloom-kernel/ESCAPES.md")]
    struct Escapes;
    #[doc = include_str!("../../../docs/safety.md")]
    struct Safety;
    #[doc = include_str!("../../../docs/coming-from/cuda-core.md")]
    struct ComingFromCudaCore;
    #[doc = include_str!("../../../docs/coming-from/cudarc.md")]
    struct ComingFromCudarc;
    #[doc = include_str!("../../../docs/coming-from/quadrants.md")]
    struct ComingFromQuadrants;
}
