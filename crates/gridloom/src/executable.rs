//! Executables: graphs ready to be launched.

use std::fmt;

use gridloom_core as core;
use gridloom_core::graph::NodeKey;
use gridloom_core::op::Operation;

use crate::buffer::{Buffer, Element, Memory};
use crate::ops::AllocNode;
use crate::{
    Capture, ConditionalMode, Device, Error, Graph, MemoryUse, Node, Optimize, Profile, ProfileOptions,
    Report, Result, Stream,
};

/// Options of instantiation.
///
/// ```
/// use gridloom::{ConditionalMode, InstantiateOptions};
///
/// let options = InstantiateOptions::new().conditional_mode(ConditionalMode::Hosted).count_passes(true);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InstantiateOptions {
    /// Whether launching again frees memory that the previous launch left allocated. Otherwise such
    /// a launch is refused.
    pub auto_free_on_launch: bool,
    /// A stream on which instantiation prepares the first launch.
    pub upload: Option<Stream>,
    /// Whether the priorities of kernel nodes are honoured.
    pub node_priority: bool,
    /// How conditionals are run.
    ///
    /// The environment variable `GRIDLOOM_CONDITIONALS` decides for [`ConditionalMode::Auto`]:
    /// `auto`, `native` or `hosted`.
    pub conditional_mode: ConditionalMode,
    /// Whether the passes of every conditional are counted for [`Executable::passes`].
    ///
    /// Some passes are always counted, because it costs nothing: on the CPU, in loops that the host
    /// drives, and in conditionals that test a value in memory, repeat a fixed number of times, or
    /// have a bound. This option also counts the passes of conditionals that a GPU runs by itself
    /// and that only kernels decide. It adds a node to each of their bodies.
    pub count_passes: bool,
    /// Whether kernels can launch the graph, with `cudaGraphLaunch` and the handle of
    /// [`Executable::device_handle`].
    ///
    /// Such a graph holds kernels, copies, fills, allocations that it frees itself, and embedded
    /// graphs of those. It needs a GPU with a driver for CUDA 12.0. It is not optimised.
    pub device_launch: bool,
    /// What instantiation does about missing dependencies, which [`Graph::check`] looks for.
    pub hazards: HazardCheck,
    /// When the graph is optimised: made into fewer and larger kernels with the same results.
    ///
    /// By default this is [automatic](Optimize::Automatic). Instantiation takes no longer. Once the
    /// executable was launched a number of times, a thread of the library compiles the new kernels,
    /// and a later launch takes them over. [`Optimizations`](crate::Optimizations) are made at
    /// instantiation instead, which then includes the time to compile them.
    /// [`Optimizations::NONE`](crate::Optimizations::NONE) leaves the graph as it was written.
    ///
    /// The environment variable `GRIDLOOM_OPTIMIZE` overrides this option: `off`, `auto`, `on`, or
    /// names such as `chains,loops`. [`Executable::report`] says what was done.
    pub optimize: Optimize,
}

/// What instantiation does about unordered nodes that use the same memory, and about loops that can
/// never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HazardCheck {
    /// Does not look for them. This is the default of release builds.
    Off,
    /// Logs a warning that lists them. This is the default of builds with debug assertions.
    Log,
    /// Refuses the graph with [`ErrorKind::Unordered`](crate::ErrorKind::Unordered).
    Refuse,
}

impl Default for HazardCheck {
    fn default() -> Self {
        if cfg!(debug_assertions) { HazardCheck::Log } else { HazardCheck::Off }
    }
}

impl InstantiateOptions {
    /// Returns the default options. The methods below change them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether memory that the graph leaves allocated is freed when it is launched again.
    #[must_use]
    pub fn auto_free_on_launch(mut self, auto_free_on_launch: bool) -> Self {
        self.auto_free_on_launch = auto_free_on_launch;
        self
    }

    /// Prepares the first launch on this stream during instantiation.
    #[must_use]
    pub fn upload(mut self, stream: &Stream) -> Self {
        self.upload = Some(stream.clone());
        self
    }

    /// Sets whether the priorities of kernel nodes are honoured.
    #[must_use]
    pub fn node_priority(mut self, node_priority: bool) -> Self {
        self.node_priority = node_priority;
        self
    }

    /// Sets how conditionals are run.
    #[must_use]
    pub fn conditional_mode(mut self, conditional_mode: ConditionalMode) -> Self {
        self.conditional_mode = conditional_mode;
        self
    }

    /// Sets what instantiation does about missing dependencies.
    #[must_use]
    pub fn hazards(mut self, hazards: HazardCheck) -> Self {
        self.hazards = hazards;
        self
    }

    /// Sets whether the passes of every conditional are counted.
    #[must_use]
    pub fn count_passes(mut self, count_passes: bool) -> Self {
        self.count_passes = count_passes;
        self
    }

    /// Sets whether kernels can launch the graph.
    #[must_use]
    pub fn device_launch(mut self, device_launch: bool) -> Self {
        self.device_launch = device_launch;
        self
    }

    /// Sets when the graph is optimised, or which
    /// [`Optimizations`](crate::Optimizations) are made at instantiation.
    #[must_use]
    pub fn optimize(mut self, optimize: impl Into<Optimize>) -> Self {
        self.optimize = optimize.into();
        self
    }

    pub(crate) fn to_core(&self) -> Result<core::executable::InstantiateOptions> {
        Ok(core::executable::InstantiateOptions {
            auto_free_on_launch: self.auto_free_on_launch,
            upload: self.upload.as_ref().map(|stream| stream.0.clone()),
            node_priority: self.node_priority,
            conditional_mode: crate::conditional_mode::conditional_mode(self.conditional_mode)?,
            count_passes: self.count_passes,
            device_launch: self.device_launch,
            optimizer: crate::optimize::optimizer(self.optimize)?,
        })
    }
}

/// A graph compiled for launching. It keeps everything it needs: the graph may be changed or
/// dropped.
///
/// Launches of one executable never overlap, whichever threads and streams they come from.
///
/// Executables compare by identity.
#[derive(PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Executable(pub(crate) core::Executable);

impl Executable {
    /// Launches the graph on a stream, in order with the other work on that stream.
    ///
    /// On a stream that is capturing, or on a capture, a copy of the graph is recorded as a child
    /// node instead.
    #[inline]
    pub fn launch(&self, target: &impl LaunchTarget) -> Result<()> {
        target.launch_executable(self)
    }

    /// Prepares the first launch on this stream, so that the launch itself takes less time.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        self.0.upload(&stream.0)
    }

    /// Returns the memory of an alloc node that nothing in the graph frees. The memory is valid
    /// from a launch until it is freed.
    pub fn buffer<T: Element>(&self, alloc: &AllocNode<T>) -> Result<Buffer<T>> {
        let node: &Node = alloc;
        Ok(Buffer::from_allocation(self.0.device(), self.0.outliving(&node.0)?))
    }

    /// Returns how many passes a loop made in the latest finished launch. For other conditionals it
    /// returns 1 if a body ran, else 0. A conditional inside a loop runs several times in a launch;
    /// the result is that of its last execution.
    ///
    /// Returns an error if the passes were not counted; see [`InstantiateOptions::count_passes`].
    pub fn passes(&self, conditional: &Node) -> Result<u64> {
        self.0.passes(&conditional.0)
    }

    /// Launches the graph once on a stream, waits for the stream, and returns when each node ran.
    ///
    /// The profile has the start and end of every run of every node, the critical path, gaps, and
    /// the passes of loops. It prints as a table, and
    /// [`to_chrome_trace`](Profile::to_chrome_trace) writes it for Perfetto.
    ///
    /// The launch is a launch like any other, with the same results, and the executable does not
    /// change. An optimised graph is profiled as it was written. The CPU device measures by itself.
    /// On other devices a copy of the graph with two small timer kernels around each node is
    /// launched; it is built for the purpose, so the call takes as long as instantiation. What
    /// measuring costs is estimated in the same launch and subtracted.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let (a, b) = (device.buffer_from(&[1u32; 4096])?, device.alloc::<u32>(4096)?);
    /// let graph = Graph::new(&device);
    /// graph.memcpy(&b, &a)?.named("copy")?;
    /// let profile = graph.instantiate()?.profile(&device.stream()?)?;
    /// assert_eq!(profile.node("copy").map(|copy| copy.runs), Some(1));
    /// println!("{profile}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Returns the error of the launch or of earlier work on the stream, as
    /// [`Stream::synchronize`] does. A capturing stream is an error.
    pub fn profile(&self, stream: &Stream) -> Result<Profile> {
        self.profile_with(stream, &ProfileOptions::default())
    }

    /// Profiles like [`profile`](Executable::profile), with options.
    pub fn profile_with(&self, stream: &Stream, options: &ProfileOptions) -> Result<Profile> {
        self.0.profile(&stream.0, options)
    }

    /// Cancels the launches of this executable that were enqueued on any stream and have not ended.
    ///
    /// Each fails with [`Cancelled`](crate::ErrorKind::Cancelled), as [`Stream::cancel`] describes.
    /// The executable, its streams and the device stay usable. The call does not wait. Any thread
    /// may make it, and so may a callback of the graph itself.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns the error of the latest failed launch and clears it. It never waits.
    pub fn take_error(&self) -> Option<Error> {
        self.0.take_error()
    }

    /// Returns how each conditional runs and why, and what was optimised, what was not, and why. It
    /// never waits.
    pub fn report(&self) -> Report {
        self.0.report()
    }

    /// Returns the graph that the optimiser made, for inspection with `to_dot` or `to_json`. It is
    /// a copy: editing or instantiating it does not affect the executable. Returns `None` if the
    /// executable was not optimised, and an error inside callbacks of the device.
    pub fn optimized_graph(&self) -> Result<Option<Graph>> {
        Ok(self.0.optimized_graph()?.map(Graph))
    }

    /// Returns how many bytes the executable holds. It never waits.
    pub fn memory(&self) -> MemoryUse {
        self.0.memory()
    }

    /// Returns the handle with which kernels launch the graph: a `cudaGraphExec_t`, to be passed to
    /// a kernel as a `u64`. Returns an error unless the executable was made with
    /// [`InstantiateOptions::device_launch`].
    ///
    /// The kernel calls `cudaGraphLaunch(handle, cudaStreamGraphFireAndForget)`, or uses one of
    /// CUDA's other streams for that. It has to be part of a graph itself. Before that, the host
    /// has to [upload](Executable::upload) or launch the executable once, and again after every
    /// change.
    ///
    /// Gridloom does not see launches that kernels make: keep the executable, and change it only
    /// when none is in flight. The handle is valid until the executable is dropped or changed.
    pub fn device_handle(&self) -> Result<u64> {
        self.0.device_handle()
    }

    /// Returns the device it runs on.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Returns the executable's current operations as a graph. Editing that graph does not affect
    /// the executable.
    ///
    /// Nodes of the returned graph can be passed to [`node`](Executable::node), like those of the
    /// graph that the executable was made from.
    ///
    /// Returns an error inside callbacks of the device: a thread that launches or changes the
    /// executable may wait for the device, and the device for the callback.
    pub fn graph(&self) -> Result<Graph> {
        self.0.graph().map(Graph)
    }

    /// Takes over all parameters of a graph with the same topology. On an error nothing changes.
    ///
    /// Nodes are paired in the order in which they were added, graph by graph. If the topologies
    /// differ, the error names the first node that does not match. Allocations, conditions and
    /// bodies are part of the topology. Disabled nodes stay disabled. Only parameters that differ
    /// are sent to the device.
    pub fn update(&self, graph: &Graph) -> Result<()> {
        self.0.update(&graph.0)
    }

    /// Replaces the operations of several nodes by operations of the same kinds, all or none.
    pub fn set_operations<'a>(&self, changes: impl IntoIterator<Item = (&'a Node, Operation)>) -> Result<()> {
        self.0.set_operations(changes.into_iter().map(|(node, operation)| (&node.0, operation)))
    }

    /// Returns one node of the executable, to read and change its operation. `node` is a node of
    /// the graph that the executable was made from, or of [`graph`](Executable::graph).
    #[inline(always)]
    pub fn node(&self, node: &Node) -> Result<ExecutableNode<'_>> {
        self.0.node(&node.0).map(ExecutableNode)
    }

    /// Replaces every use of the memory `old` by the same element of `new`, all or none, from the
    /// next launch on. Returns the number of uses, as [`Graph::replace_memory`] does.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let (a, b) = (device.buffer_from(&[1u32; 4])?, device.buffer_from(&[2u32; 4])?);
    /// let out = device.alloc::<u32>(4)?;
    /// let graph = Graph::new(&device);
    /// graph.memcpy(&out, &a)?;
    /// let (exec, stream) = (graph.instantiate()?, device.stream()?);
    ///
    /// // SAFETY: no kernel is involved.
    /// assert_eq!(unsafe { exec.replace_memory(&a, &b)? }, 1);
    /// exec.launch(&stream)?;
    /// assert_eq!(out.to_vec()?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// As for [`Graph::replace_memory`].
    pub unsafe fn replace_memory<T: Element>(
        &self,
        old: &impl Memory<T>,
        new: &impl Memory<T>,
    ) -> Result<usize> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.0.replace_region(&old.region()?, &new.region()?) }
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

mod sealed {
    pub trait LaunchTarget {}
}

/// A place where an executable can be launched: a [`Stream`], or a [`Capture`], which records its
/// graph.
pub trait LaunchTarget: sealed::LaunchTarget {
    /// Launches or records the executable.
    #[doc(hidden)]
    fn launch_executable(&self, executable: &Executable) -> Result<()>;
}

impl sealed::LaunchTarget for Stream {}
impl LaunchTarget for Stream {
    #[inline]
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        executable.0.launch(&self.0)
    }
}

impl sealed::LaunchTarget for Capture {}
impl LaunchTarget for Capture {
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        executable.0.launch(&self.0)
    }
}

impl<T: LaunchTarget + ?Sized> sealed::LaunchTarget for &T {}
impl<T: LaunchTarget + ?Sized> LaunchTarget for &T {
    fn launch_executable(&self, executable: &Executable) -> Result<()> {
        (**self).launch_executable(executable)
    }
}

/// A node of an [`Executable`], from [`Executable::node`].
///
/// The `set_…` methods change that executable only, from its next launch on. Each either takes
/// effect completely, or fails and changes nothing.
///
/// It stays on its thread, so that no callback can own one. Another thread asks the executable for
/// its own:
///
/// ```compile_fail,E0277
/// # use gridloom::prelude::*;
/// fn elsewhere(graph: &Graph, node: ExecutableNode<'static>) -> Result<Node> {
///     graph.callback(move || drop(node.label()))
/// }
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ExecutableNode<'a>(pub(crate) core::executable::ExecutableNode<'a>);

impl ExecutableNode<'_> {
    /// Returns the operation that the executable will run at this node in its next launch.
    pub fn operation(&self) -> Operation {
        self.0.operation()
    }

    /// Returns the node's name.
    pub fn label(&self) -> String {
        self.0.label()
    }

    /// Returns the node's key, by which operations and reports name it.
    pub fn key(&self) -> NodeKey {
        self.0.key()
    }

    /// Takes over the parameters of a graph with the same topology as the one embedded at this
    /// node.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        self.0.set_child(&graph.0)
    }

    /// Returns whether the node is enabled. Nodes are enabled at first.
    pub fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    /// Enables or disables a kernel, copy or fill. A disabled node does nothing but keeps its place
    /// in the order.
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        self.0.set_enabled(enabled)
    }
}

impl fmt::Debug for ExecutableNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutableNode({})", self.label())
    }
}
