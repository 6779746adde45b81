//! Options of instantiation, and the optimiser that one of them names.

use std::fmt;
use std::sync::Arc;

use crate::backend;
use crate::error::Result;
use crate::graph::Graph;
use crate::stream::Stream;

/// The way in which conditionals run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConditionalMode {
    /// On the device if it can, else on the host.
    #[default]
    Auto,
    /// On the device. If the device cannot, instantiation fails with the node and the reason.
    Native,
    /// On the host, which reads the condition back after each pass.
    Hosted,
}

/// Options of instantiation.
#[derive(Clone, Default)]
pub struct InstantiateOptions {
    /// Whether a launch frees the memory that the previous launch left allocated. Otherwise such a
    /// launch is refused.
    pub auto_free_on_launch: bool,
    /// A stream on which instantiation already prepares the first launch.
    pub upload: Option<Stream>,
    /// Whether the priorities of kernel nodes apply.
    pub node_priority: bool,
    /// The way in which conditionals run.
    pub conditional_mode: ConditionalMode,
    /// Whether the passes of every conditional are counted for
    /// [`Executable::passes`](super::Executable::passes).
    ///
    /// Passes are always counted where that costs nothing: on the CPU, in conditionals that the
    /// host drives, and in conditionals that test a value in memory, count, or have a bound. For
    /// conditionals that only kernels decide and that a GPU drives by itself, this option adds a
    /// node to each body.
    pub count_passes: bool,
    /// Whether kernels can launch the graph, through
    /// [`Executable::device_handle`](super::Executable::device_handle).
    pub device_launch: bool,
    /// What rewrites the graph before it is compiled. By default nothing does.
    pub optimizer: Option<Arc<dyn Optimizer>>,
}

/// Compiles graphs in another form than they were written, which computes the same.
///
/// What it returns answers for every node of the graph as it was written.
///
/// # Safety
/// What it returns upholds what the core relies on for the executables of a device. It calls
/// executables of the device as [`backend::Device::instantiate`] requires.
pub unsafe trait Optimizer: Send + Sync + fmt::Debug {
    /// Compiles a graph that was checked. It is a copy under the same keys, for the optimiser to
    /// edit.
    fn compile(&self, graph: Graph, options: &InstantiateOptions) -> Result<Box<dyn backend::Executable>>;

    /// Returns whether graphs are first compiled as they were written. The core then calls
    /// [`adaptive`](Optimizer::adaptive) instead of [`compile`](Optimizer::compile).
    fn is_automatic(&self) -> bool {
        false
    }

    /// Returns an executable that runs `plain` until it has something better. It must take next to
    /// no time.
    fn adaptive(
        &self,
        _device: &Arc<dyn backend::Device>,
        plain: Box<dyn backend::Executable>,
        _options: &InstantiateOptions,
    ) -> Box<dyn backend::Executable> {
        plain
    }
}

impl fmt::Debug for InstantiateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstantiateOptions")
            .field("auto_free_on_launch", &self.auto_free_on_launch)
            .field("upload", &self.upload.is_some())
            .field("node_priority", &self.node_priority)
            .field("conditional_mode", &self.conditional_mode)
            .field("count_passes", &self.count_passes)
            .field("device_launch", &self.device_launch)
            .field("optimizer", &self.optimizer)
            .finish()
    }
}
