//! The optimisation passes over a graph.
//!
//! A pass finds nodes that its rule allows to combine, rewrites their kernels, and replaces them by
//! one node. It works on a copy of the graph with the same keys: a node that no pass changes keeps
//! its key, and [`Plan`] records where the others went.

mod builtin;
mod fusion;
mod plan;
mod state;
mod steps;
mod survey;

mod batches;
mod branches;
mod chains;
mod control;
mod early;
mod edges;
mod fills;
mod repeats;

pub(crate) use fusion::Form;
pub(crate) use plan::{Counted, Plan, handles};

use gridloom_core::backend::Device;

/// The properties of a device that decide which replacements are worthwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How many blocks of small kernels run at once, if kernels can start before those they depend
    /// on have ended.
    pub early_blocks: Option<u64>,
    /// Whether a conditional costs more than several kernels that test its value themselves.
    /// Branches and loops of more than one block are then rewritten.
    pub costly_conditionals: bool,
    /// Whether the passes of every conditional are counted, even if nobody asks.
    pub counts_passes: bool,
}

impl Profile {
    /// Returns the profile of a device.
    #[must_use]
    pub fn of(device: &dyn Device) -> Self {
        let properties = device.properties();
        let property = |wanted: &str| {
            properties.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        let capability: Option<f64> = property("compute capability").and_then(|value| value.parse().ok());
        let processors: Option<u64> = property("multiprocessors").and_then(|value| value.parse().ok());
        // Four blocks of 256 threads on each multiprocessor leave room for as many of the next
        // kernel.
        let early_blocks =
            processors.filter(|_| capability.is_some_and(|version| version >= 9.0)).map(|count| 2 * count);
        let is_gpu = capability.is_some();
        Profile { early_blocks, costly_conditionals: is_gpu, counts_passes: !is_gpu }
    }
}
