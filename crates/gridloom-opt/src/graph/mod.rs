//! The passes over a graph.
//!
//! A pass finds nodes that its rule allows to put together, has their kernels rewritten, and puts one node in their place. It works on a copy of the
//! graph under the same keys: a node that no pass touches keeps its key, and [`Plan`] knows which nodes went where.

mod builtin;
mod fusion;
mod plan;
mod survey;

mod batches;
mod chains;
mod early;
mod edges;
mod fills;
mod loops;

pub(crate) use fusion::Form;
pub(crate) use plan::Plan;

use gridloom_core::backend::Device;

/// What decides which replacement pays on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Blocks of small kernels that run at once, where kernels can start before those that they follow have ended.
    pub early_blocks: Option<u64>,
}

impl Profile {
    /// What a device says of itself.
    #[must_use]
    pub fn of(device: &dyn Device) -> Self {
        let properties = device.properties();
        let property = |wanted: &str| {
            properties.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        let capability: Option<f64> = property("compute capability").and_then(|value| value.parse().ok());
        let processors: Option<u64> = property("multiprocessors").and_then(|value| value.parse().ok());
        // Four blocks of 256 threads on each multiprocessor leave room for as many of the next kernel.
        let early_blocks =
            processors.filter(|_| capability.is_some_and(|version| version >= 9.0)).map(|count| 2 * count);
        Profile { early_blocks }
    }
}
