//! Executables: graphs ready to be launched.

use std::fmt;

use gridloom_core as core;
use gridloom_core::graph::NodeKey;
use gridloom_core::op::Operation;

use crate::buffer::{Buffer, Element, Memory};
use crate::ops::AllocNode;
use crate::{
    Capture, ConditionalMode, Device, Error, Graph, MemoryUse, Node, Optimizations, Report, Result, Stream,
};

/// How a graph is compiled.
///
/// ```
/// use gridloom::{ConditionalMode, InstantiateOptions};
///
/// let options = InstantiateOptions::new().conditional_mode(ConditionalMode::Hosted).count_passes(true);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InstantiateOptions {
    /// Whether memory that the graph leaves allocated is freed when it is launched again, rather than
    /// the launch refused.
    pub auto_free_on_launch: bool,
    /// A stream on which to prepare the first launch already.
    pub upload: Option<Stream>,
    /// Whether the priorities of kernel nodes are honoured.
    pub node_priority: bool,
    /// How conditionals are run.
    pub conditional_mode: ConditionalMode,
    /// Whether the passes of every conditional are counted for [`Executable::passes`].
    ///
    /// Where it costs nothing they are counted anyway: on the CPU, by the host, and of conditionals that
    /// test a value in memory, count, or have a bound. What this adds is a node in the bodies of
    /// conditionals that a GPU runs by itself and that only kernels decide.
    pub count_passes: bool,
    /// What is done about forgotten dependencies, which [`Graph::check`] looks for.
    pub hazards: HazardCheck,
    /// The optimisations that are made before the graph is compiled: fewer and larger kernels, with the
    /// same results. By default there are none. The environment variable `GRIDLOOM_OPTIMIZE` overrides
    /// this: `off`, `on`, or names such as `chains,loops`. [`Executable::report`] tells what was done.
    ///
    /// Instantiation takes longer, since the device compiles the new kernels.
    pub optimize: Optimizations,
}

/// What instantiation does about nodes that use the same memory without an order between them, and
/// about loops that nothing can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HazardCheck {
    /// Does not look for them. The default of release builds.
    Off,
    /// Logs a warning that lists them. The default of builds with debug assertions.
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
    /// The default options, to be changed with the methods below.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether memory that the graph leaves allocated is freed when it is launched again.
    #[must_use]
    pub fn auto_free_on_launch(mut self, auto_free_on_launch: bool) -> Self {
        self.auto_free_on_launch = auto_free_on_launch;
        self
    }

    /// Prepares the first launch on this stream already.
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

    /// Sets what is done about forgotten dependencies.
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

    /// Sets the optimisations that are made before the graph is compiled.
    #[must_use]
    pub fn optimize(mut self, optimize: Optimizations) -> Self {
        self.optimize = optimize;
        self
    }

    pub(crate) fn to_core(&self) -> Result<core::executable::InstantiateOptions> {
        Ok(core::executable::InstantiateOptions {
            auto_free_on_launch: self.auto_free_on_launch,
            upload: self.upload.as_ref().map(|stream| stream.0.clone()),
            node_priority: self.node_priority,
            conditional_mode: self.conditional_mode,
            count_passes: self.count_passes,
            optimizer: crate::optimize::optimizer(self.optimize)?,
        })
    }
}

/// A graph compiled for launching. It keeps all it needs; the graph may be changed or dropped.
///
/// Launches of one executable never overlap each other, from whichever threads and streams they come.
///
/// It compares by identity.
#[derive(PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Executable(pub(crate) core::Executable);

impl Executable {
    /// Launches the graph on a stream: it runs after what was enqueued there before, and before what
    /// comes later.
    ///
    /// On a stream that is capturing, or on a capture, a copy of the graph is recorded as a child node
    /// instead.
    #[inline]
    pub fn launch(&self, target: &impl LaunchTarget) -> Result<()> {
        target.launch_executable(self)
    }

    /// Does ahead, on this stream, what the first launch would otherwise do.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        self.0.upload(&stream.0)
    }

    /// Returns the memory of an alloc node that nothing in the graph frees. It is valid from a launch on
    /// until it is freed.
    pub fn buffer<T: Element>(&self, alloc: &AllocNode<T>) -> Result<Buffer<T>> {
        let node: &Node = alloc;
        Ok(Buffer::from_allocation(self.0.device(), self.0.outliving(&node.0)?))
    }

    /// Returns the passes that a loop made in the latest finished launch; 1 or 0 for other conditionals,
    /// as a body ran or not.
    ///
    /// It is an error where they were not counted; [`InstantiateOptions::count_passes`] says which are.
    pub fn passes(&self, conditional: &Node) -> Result<u64> {
        self.0.passes(&conditional.0)
    }

    /// Cancels the launches of this executable that were enqueued so far, on whichever streams, and have not
    /// ended.
    ///
    /// Each fails with [`Cancelled`](crate::ErrorKind::Cancelled), as [`Stream::cancel`] says; the executable,
    /// its streams and the device stay usable. The call waits for nothing, and may come from any thread, or
    /// from a callback of the graph itself.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns the failure of the latest launch that failed, once.
    pub fn take_error(&self) -> Option<Error> {
        self.0.take_error()
    }

    /// Returns how each conditional runs, and why; and what was optimised, what was not, and why.
    pub fn report(&self) -> Report {
        self.0.report()
    }

    /// Returns the graph in the form that the optimiser gave it, to be looked at: `to_dot`, `to_json`. It is
    /// a graph of its own, which can be edited and instantiated without touching the executable. `None`
    /// where nothing was to be optimised.
    pub fn optimized_graph(&self) -> Option<Graph> {
        self.0.optimized_graph().map(Graph)
    }

    /// Returns the bytes that the executable holds.
    pub fn memory(&self) -> MemoryUse {
        self.0.memory()
    }

    /// Returns the device it runs on.
    pub fn device(&self) -> Device {
        Device::from_backend(self.0.device().clone())
    }

    /// Returns what it does now, as a graph of its own. Editing that graph leaves the executable as it is.
    ///
    /// Its nodes name nodes of this executable, like those of the graph that it was made from.
    pub fn graph(&self) -> Graph {
        Graph(self.0.graph())
    }

    /// Takes over all parameters of a graph with the same topology, or changes nothing.
    ///
    /// Nodes are paired in the order in which they were added, graph by graph. Where the topologies
    /// differ, the error names the first node that does not match. Allocations, conditions and bodies are
    /// part of the topology. Nodes that are disabled stay so. Only what really differs reaches the device.
    pub fn update(&self, graph: &Graph) -> Result<()> {
        self.0.update(&graph.0)
    }

    /// Replaces what several nodes do by operations of the same kinds, all or none.
    pub fn set_operations<'a>(&self, changes: impl IntoIterator<Item = (&'a Node, Operation)>) -> Result<()> {
        self.0.set_operations(changes.into_iter().map(|(node, operation)| (&node.0, operation)))
    }

    /// Returns one node of the executable: what it does now, and ways to change it. The node is given as one
    /// of the graph that it was made from, or of [`graph`](Executable::graph).
    #[inline(always)]
    pub fn node(&self, node: &Node) -> Result<ExecutableNode<'_>> {
        self.0.node(&node.0).map(ExecutableNode)
    }

    /// Points every use of the memory `old` at the same element of `new`, all or none, from the next
    /// launch on. Returns how many there were, as [`Graph::replace_memory`] does.
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

/// Where an executable can be launched: a [`Stream`], or a [`Capture`], which records its graph.
pub trait LaunchTarget: sealed::LaunchTarget {
    /// Launches or records it.
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
/// The `set_…` methods change that executable alone, from its next launch on. Each is one step that
/// happens whole, or fails and changes nothing.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ExecutableNode<'a>(pub(crate) core::executable::ExecutableNode<'a>);

impl ExecutableNode<'_> {
    /// Returns what the executable will do at this node when it is launched next.
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

    /// Takes over the parameters of a graph with the same topology as the one embedded at this node.
    pub fn set_child(&self, graph: &Graph) -> Result<()> {
        self.0.set_child(&graph.0)
    }

    /// Returns whether the node does its work. Every node does at first.
    pub fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    /// Lets a kernel, copy or fill do its work, or makes it do nothing while keeping its place in the
    /// order.
    pub fn set_enabled(&self, enabled: bool) -> Result<()> {
        self.0.set_enabled(enabled)
    }
}

impl fmt::Debug for ExecutableNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutableNode({})", self.label())
    }
}
