//! Profiles: when each node of one launch ran, and what the launch waited for.
//!
//! | module | subject |
//! |---|---|
//! | `recording` | the raw times that a backend measures |
//! | `instrument` | a copy of a graph with timer kernels around its nodes, for devices that cannot measure by themselves |
//! | `switching` | what it takes to go from a kernel to a fill or copy and back, measured beside the graph |
//! | `timeline` | the runs of all nodes as points with causes, the removal of what measuring costs, the critical path |
//! | `analysis` | times of each node and gaps |
//! | `uncertainty` | how far off the times may be |
//! | `table`, `trace` | a profile for people, and for trace viewers |

mod analysis;
pub(crate) mod instrument;
mod recording;
mod switching;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod trace;
mod uncertainty;

pub(crate) use analysis::{Facts, analyse};
pub use recording::{Cost, KernelWork, NodeRecording, Recording, Run, Switching};
use serde::{Deserialize, Serialize};

/// The version of the form of [`Profile::to_json`]. It is raised when an older reader would
/// misunderstand the new form.
pub const PROFILE_VERSION: u32 = 1;

/// Options of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileOptions {
    /// How many runs of each node are kept one by one. Further runs are summed up.
    pub max_runs: usize,
    /// Whether timer kernels measure even if the device can measure by itself.
    pub timer_kernels: bool,
}

impl ProfileOptions {
    /// Returns the default options: 1,000 runs of each node, measured by the device if it can.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many runs of each node are kept one by one, at least 1. Further passes of a loop
    /// are summed up.
    #[must_use]
    pub fn max_runs(mut self, max_runs: usize) -> Self {
        self.max_runs = max_runs.max(1);
        self
    }

    /// Sets whether timer kernels measure even if the device can measure by itself, as the CPU
    /// device does.
    #[must_use]
    pub fn timer_kernels(mut self, timer_kernels: bool) -> Self {
        self.timer_kernels = timer_kernels;
        self
    }
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions { max_runs: 1000, timer_kernels: false }
    }
}

/// The times of one launch.
///
/// All times are nanoseconds from the start of the launch. What measuring costs is estimated during
/// the same launch and subtracted; [`measured_ns`](Profile::measured_ns) includes it.
///
/// Nodes have the numbers of [`Graph::to_json`](crate::Graph::to_json).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// The name of the device.
    pub device: String,
    /// How the times were measured: `workers` or `timer kernels`.
    pub method: String,
    /// The time of the launch.
    pub launch_ns: u64,
    /// The time of the launch with what measuring cost.
    pub measured_ns: u64,
    /// The cost of measuring one run of a node. It is subtracted from all other times. Fills and
    /// copies between timer kernels cost more, which is subtracted too.
    pub node_cost_ns: u64,
    /// How far off the time of a single run may be: how much the cost of measuring differs from run
    /// to run, and the step of the clock. [`NodeProfile::uncertainty_ns`] has that of each node.
    #[serde(default)]
    pub uncertainty_ns: u64,
    /// The step of the clock, if it could be told.
    #[serde(default)]
    pub clock_step_ns: u64,
    /// How many nodes were launched besides those of the graph, to measure. Timers in the body of a
    /// loop run at every pass.
    #[serde(default)]
    pub added_nodes: u64,
    /// How long the launch took before the graph started, to find out what measuring costs. No
    /// other time but `wall_ns` includes it.
    #[serde(default)]
    pub before_ns: u64,
    /// The host's time in the call that launches.
    pub enqueue_ns: u64,
    /// The host's time from that call until it learned of the end.
    pub wall_ns: u64,
    /// The time of nodes that a device runs, all together.
    pub device_ns: u64,
    /// The time of callbacks, all together.
    pub host_ns: u64,
    /// The time of nodes on the critical path.
    pub critical_ns: u64,
    /// The rest of the launch: the time in which no node of the critical path ran.
    pub critical_gap_ns: u64,
    /// How many nodes ran at once, on average over the launch.
    pub parallelism: f64,
    /// How many could run at once if only dependencies counted: the time of all nodes over that of
    /// the longest chain of nodes that depend on each other.
    pub possible_parallelism: f64,
    /// The share of the threads of kernels that ran in vectors, if the device counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_wide: Option<f64>,
    /// What a reader should know about these numbers.
    pub remarks: Vec<String>,
    /// The nodes, in the order of their numbers. Nodes without work are left out.
    pub nodes: Vec<NodeProfile>,
    /// The runs that were kept one by one, by their start.
    pub spans: Vec<Span>,
    /// How many further runs were only summed up.
    pub spans_left_out: u64,
    /// The critical path, from the start of the launch to its end: the run that ended last, the one
    /// that it waited for last, and so on. A run waits for its dependencies, and for the thread
    /// that runs it if the device knows one.
    pub critical_path: Vec<CriticalSpan>,
}

/// The times of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeProfile {
    /// The number of the node, as in [`Graph::to_json`](crate::Graph::to_json).
    pub id: usize,
    /// The name of the node.
    pub name: String,
    /// The kind of the node.
    pub kind: String,
    /// The conditional or embedded graph around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Whether the host runs it: a callback, or a conditional that the host decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_host: bool,
    /// Whether it is disabled. It then has no times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// How often it ran.
    pub runs: u64,
    /// The start of the first run.
    pub start_ns: u64,
    /// The end of the last run.
    pub end_ns: u64,
    /// The time of all runs together.
    pub busy_ns: u64,
    /// The shortest run.
    pub min_ns: u64,
    /// The longest run.
    pub max_ns: u64,
    /// How far off the time of one run may be. For conditionals and embedded graphs this includes
    /// what is inside them.
    #[serde(default)]
    pub uncertainty_ns: u64,
    /// The time between the end of its dependencies and its start, in the runs that were kept.
    pub gap_ns: u64,
    /// Its time on the critical path, in the runs that were kept. For a conditional this includes
    /// its bodies.
    pub critical_ns: u64,
    /// For conditionals: how many bodies ran, all runs together. `None` if no node inside was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u64>,
    /// For copies and fills: the bytes that one run writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// For kernels: the share of its threads that ran in vectors, if the device counts them. Nodes
    /// that launch the same kernel share the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_wide: Option<f64>,
}

impl NodeProfile {
    /// Returns the mean time of a run.
    pub fn mean_ns(&self) -> u64 {
        self.busy_ns.checked_div(self.runs).unwrap_or(0)
    }

    /// Returns whether the mean time of a run is longer than it may be off. Otherwise the node takes
    /// next to nothing, and the profile cannot tell how much.
    pub fn is_reliable(&self) -> bool {
        self.mean_ns() > self.uncertainty_ns
    }

    /// Returns the rate of a copy or fill. Returns `None` for other nodes, and if its time is not
    /// reliable.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let bytes = self.bytes? as f64 * self.runs as f64;
        self.is_reliable().then(|| bytes * 1e9 / self.busy_ns as f64)
    }
}

/// One run of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Span {
    /// The number of the node.
    pub node: usize,
    /// When it started.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The pass of each loop around it, outermost first, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<u64>,
    /// The thread that ran it, if the device knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

/// A piece of the critical path. The time between two pieces is a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CriticalSpan {
    /// The number of the node. A loop stands for those of its passes that were only summed up.
    pub node: usize,
    /// When the piece starts.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
}

/// A profile in a file.
#[derive(Serialize)]
struct File<'a> {
    format: &'static str,
    version: u32,
    #[serde(flatten)]
    profile: &'a Profile,
}

impl Profile {
    /// Returns the times of the node with this name. If several have it, the first one.
    pub fn node(&self, name: &str) -> Option<&NodeProfile> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Returns the profile as JSON: the fields of this structure, with `format` and `version`.
    pub fn to_json(&self) -> String {
        let file = File { format: "gridloom-profile", version: PROFILE_VERSION, profile: self };
        // Writing strings, numbers and lists to a string cannot fail.
        serde_json::to_string_pretty(&file).unwrap_or_default()
    }
}
