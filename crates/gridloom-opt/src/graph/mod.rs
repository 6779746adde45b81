//! The optimisation passes over a graph.
//!
//! A pass finds nodes that its rule allows to combine, rewrites their kernels, and replaces them by
//! one node. It works on a copy of the graph with the same keys: a node that no pass changes keeps
//! its key, and [`Plan`] records where the others went.

mod adoption;
mod builtin;
mod fusion;
mod names;
mod plan;
mod report;
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

pub(crate) use fusion::{Form, unexpected};
pub(crate) use plan::{Counted, Kernels, Plan, handles};

use gridloom_core::backend::Device;

/// The properties of a device that decide which replacements are worthwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How many blocks of small kernels run at once, if kernels can start before those they depend
    /// on have ended.
    pub early_blocks: Option<u64>,
    /// Whether steps of one block with barriers between them take less time than nodes, and fills
    /// more than kernels.
    pub costly_nodes: bool,
    /// Whether a conditional costs more than several kernels that test its value themselves.
    /// Branches and loops of more than one block are then rewritten.
    pub costly_conditionals: bool,
    /// The most blocks of a kernel in a batch. Larger kernels keep the device busy by themselves.
    pub max_batched_blocks: u64,
    /// The most instructions of a kernel in a batch, which then has no loops either. `None` for any
    /// number. Longer kernels take much longer than a node, and compile better alone.
    pub max_batched_instructions: Option<usize>,
    /// The most bytes of arguments of one rewritten kernel, within the limit of the device. A
    /// driver copies all of them when one changes.
    pub max_argument_bytes: u32,
    /// Whether the passes of every conditional are counted, even if nobody asks.
    pub counts_passes: bool,
    /// The most blocks of a cluster, or 0 if there are none.
    pub cluster_blocks: u32,
    /// The most blocks of a kernel that wait for each other in memory, or 0 if none can.
    pub resident_blocks: u32,
    /// The most threads of a block in which several blocks of a kernel run side by side.
    pub packed_threads: u32,
    /// Whether blocks wait for each other in memory also where a cluster would do, and the device
    /// has no clusters.
    pub without_clusters: bool,
    /// Whether the device says where a kernel failed. Rewritten kernels then know their nodes.
    pub names_faults: bool,
    /// Whether launches can be cancelled. The memory of a plan is then reset before each.
    pub cancels: bool,
    /// Whether the device ends a launch that runs too many nodes. Those that were written count, so
    /// graphs run as they were written.
    pub limits_nodes: bool,
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
        // A device that checks every access is there to name the node that made a wrong one.
        let is_checked = property("checked memory") == Some("true");
        let max_batched_blocks = match (is_gpu, is_checked) {
            (true, _) => 512,
            (false, true) => 0,
            (false, false) => 4,
        };
        Profile {
            early_blocks,
            costly_nodes: is_gpu,
            costly_conditionals: is_gpu,
            max_batched_blocks,
            max_batched_instructions: (!is_gpu).then_some(200),
            max_argument_bytes: if is_gpu { 2048 } else { u32::MAX },
            counts_passes: !is_gpu,
            cluster_blocks: cluster_blocks(capability, property("clusters") == Some("1")),
            resident_blocks: processors
                .filter(|_| property("cooperative launch") == Some("1"))
                .map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
            packed_threads: 1024,
            without_clusters: false,
            names_faults: !is_gpu,
            cancels: !is_gpu,
            limits_nodes: property("node limit").is_some_and(|limit| limit != "none"),
        }
    }

    /// Returns whether several blocks may run one program.
    pub(crate) fn has_teams(&self) -> bool {
        self.cluster_blocks > 0 || self.resident_blocks > 0
    }

    /// Returns the profile without programs of several blocks.
    pub(crate) fn without_teams(self) -> Self {
        Profile { cluster_blocks: 0, resident_blocks: 0, without_clusters: false, ..self }
    }

    /// Returns the profile with which every replacement is worthwhile that the device supports.
    #[must_use]
    pub fn with_everything(self) -> Self {
        Profile {
            costly_nodes: true,
            costly_conditionals: true,
            max_batched_blocks: 512,
            max_batched_instructions: None,
            // The CPU interleaves the blocks of a cooperative launch.
            resident_blocks: self.resident_blocks.max(8),
            without_clusters: self.cluster_blocks == 0,
            ..self
        }
    }
}

/// Returns the most blocks of a cluster. Eight are portable. Devices of computing centres have room
/// for sixteen.
fn cluster_blocks(capability: Option<f64>, has_clusters: bool) -> u32 {
    match capability {
        Some(version) if has_clusters && [9.0, 10.0, 10.3].contains(&version) => 16,
        Some(version) if has_clusters && version >= 9.0 => 8,
        _ => 0,
    }
}
