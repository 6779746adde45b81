//! What a backend measured in one launch.

use crate::graph::NodeKey;

/// The raw times of one launch, in nanoseconds from any origin.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The times of each node that ran. A node is listed once.
    pub nodes: Vec<NodeRecording>,
    /// The start and the end of the launch.
    pub launch: (u64, u64),
    /// What measuring itself costs.
    pub cost: Cost,
    /// How kernels ran, where the device counts that.
    pub kernels: Vec<KernelWork>,
}

/// What measuring one node adds to the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The time between start and end of a node that does nothing.
    pub inside_ns: u64,
    /// The time between the end of a node and the start of the next one.
    pub between_ns: u64,
}

/// The times of one node. A node never runs twice at once.
#[derive(Clone, Debug)]
pub struct NodeRecording {
    /// The node.
    pub node: NodeKey,
    /// The first runs, in order.
    pub runs: Vec<Run>,
    /// The number of runs, including those that are not in `runs`.
    pub count: u64,
    /// The time of all runs together.
    pub total_ns: u64,
    /// The shortest run.
    pub min_ns: u64,
    /// The longest run.
    pub max_ns: u64,
}

impl NodeRecording {
    /// Creates a recording without runs.
    pub fn new(node: NodeKey) -> Self {
        NodeRecording { node, runs: Vec::new(), count: 0, total_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Adds a run. Only the first `most` are kept one by one.
    pub fn add(&mut self, run: Run, most: usize) {
        let time = run.end_ns.saturating_sub(run.start_ns);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(time);
        self.min_ns = self.min_ns.min(time);
        self.max_ns = self.max_ns.max(time);
        if self.runs.len() < most {
            self.runs.push(run);
        }
    }
}

/// One run of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it started.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The thread that ran it, if the device knows one. Runs of one thread do not overlap, except
    /// for those inside a conditional.
    pub thread: Option<u32>,
}

/// How one kernel ran during the launch.
#[derive(Clone, Debug, Default)]
pub struct KernelWork {
    /// The nodes that launch it.
    pub nodes: Vec<NodeKey>,
    /// The number of threads that ran in vectors.
    pub wide: u64,
    /// The number of threads that ran one by one.
    pub alone: u64,
}
