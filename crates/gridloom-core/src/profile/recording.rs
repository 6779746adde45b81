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
    /// How much the cost differs from node to node: nine of ten nodes that do nothing are within
    /// this of the others' median.
    pub spread_ns: u64,
    /// The step of the clock.
    pub step_ns: u64,
}

impl Cost {
    /// Returns the cost that follows from runs of nodes that did nothing, one after the other.
    pub fn of_empty(runs: &[Run]) -> Self {
        let inside: Vec<u64> = runs.iter().map(|run| run.end_ns.saturating_sub(run.start_ns)).collect();
        let between: Vec<u64> =
            runs.windows(2).map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)).collect();
        let (inside_ns, between_ns) = (quantile(&inside, 1, 2), quantile(&between, 1, 2));
        let from = |median: u64, times: &[u64]| -> Vec<u64> {
            times.iter().map(|time| time.abs_diff(median)).collect()
        };
        let spread_ns = quantile(&from(inside_ns, &inside), 9, 10);
        let step_ns = inside.iter().chain(&between).copied().fold(0, greatest_divisor);
        Cost { inside_ns, between_ns, spread_ns, step_ns }
    }
}

/// How many runs of a node the two rows have that show what one of them takes by itself.
pub(super) const FEW: usize = 5;
pub(super) const MANY: usize = 13;
/// How often the shorter and the longer chain, in which kernels alternate with nodes, switch to a
/// node and back.
pub(super) const TURNS: [usize; 2] = [1, 5];

/// The time that a device takes to switch from a kernel to a node of another kind and back. Many
/// devices run fills and copies on other units than kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switching {
    /// The time to switch from a timer kernel to the node and back. The measured time of the node
    /// includes it, in addition to [`Cost::inside_ns`].
    pub measured_ns: u64,
    /// The time to switch from a kernel of the graph to the node and on to another kernel, at most
    /// `measured_ns`. Half of it comes before the node, and half after it.
    pub usual_ns: u64,
    /// What it adds to [`Cost::between_ns`] before the timer of the node.
    pub before_ns: u64,
    /// What it adds to [`Cost::between_ns`] after the timer of the node.
    pub after_ns: u64,
    /// The time of the node alone: what one more of them adds to a row of them.
    pub alone_ns: u64,
    /// How far off `measured_ns` may be for a single run.
    pub spread_ns: u64,
}

/// The times of chains around one kind of node. Each has the times of several rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChainTimes<'a> {
    /// Timers around one node.
    pub(super) one: &'a [u64],
    /// Timers around a row of [`FEW`] nodes.
    pub(super) few: &'a [u64],
    /// Timers around a row of [`MANY`] nodes.
    pub(super) many: &'a [u64],
    /// Timers around kernels: one more than there are [`TURNS`].
    pub(super) kernels: [&'a [u64]; 2],
    /// Timers around as many kernels, with the node between any two of them.
    pub(super) by_turns: [&'a [u64]; 2],
    /// From the end of the timer of a kernel to the start of the timer around one node.
    pub(super) before: &'a [u64],
    /// From the end of that timer to the start of the timer of a kernel.
    pub(super) after: &'a [u64],
}

impl Switching {
    /// Returns what going to a node and back takes. `cost` is that of timers around nothing.
    ///
    /// Each further run in a row adds the time of the node alone. What a first run adds beyond that
    /// is the way there and back. The way differs from round to round, and is never shorter than
    /// some time; so the rows are compared by times among the shortest of each.
    pub(super) fn of_chains(times: ChainTimes<'_>, cost: Cost) -> Self {
        let median = |times: &[u64]| quantile(times, 1, 2);
        let ChainTimes { one, few, many, kernels, by_turns, before, after } = times;
        let first = median(one);
        let further = (MANY - FEW) as u64;
        let low = |times: &[u64]| quantile(times, 1, 10);
        let [shorter, longer] = [few, many].map(low);
        let alone_ns = (longer.saturating_sub(shorter) / further).min(first);
        let measured_ns = (first - alone_ns).saturating_sub(cost.inside_ns);
        // What each further turn adds: a device may prepare the next one meanwhile.
        let turns = (TURNS[1] - TURNS[0]) as u64;
        let [with_nodes, without] =
            [by_turns, kernels].map(|[shorter, longer]| low(longer).saturating_sub(low(shorter)) / turns);
        let usual_ns = with_nodes.saturating_sub(without + alone_ns).min(measured_ns);
        let [before_ns, after_ns] =
            [before, after].map(|times| median(times).saturating_sub(cost.between_ns));
        // A median is off by about as much as half of the times it is taken of.
        let off = |times: &[u64], median: u64, share| {
            let distances: Vec<u64> = times.iter().map(|time| time.abs_diff(median)).collect();
            quantile(&distances, share, 10)
        };
        let spread_ns =
            off(one, first, 9) + off(one, first, 5) + (off(few, shorter, 5) + off(many, longer, 5)) / further;
        Switching { measured_ns, usual_ns, before_ns, after_ns, alone_ns, spread_ns }
    }

    /// Returns this for runs of a node that is the same as those of the chains.
    ///
    /// The way to a node differs with what ran before, and so does the measured time. As long as it
    /// differs from that of the chains by no more than the way itself, the node is taken to need
    /// the time that it needs in a row. By how much it differs is how far off that may be.
    pub(super) fn fitted_to(self, runs: &[Run], cost: Cost) -> Self {
        let times: Vec<u64> = runs.iter().map(|run| run.end_ns.saturating_sub(run.start_ns)).collect();
        let alone = cost.inside_ns + self.alone_ns;
        let typical = quantile(&times, 1, 2);
        let differs_ns = typical.abs_diff(alone + self.measured_ns);
        if runs.is_empty() {
            return self;
        }
        if typical < alone {
            // It took less than in a row, so that nothing is left for a way.
            let spread_ns = self.spread_ns.max(alone - typical);
            return Switching { measured_ns: 0, usual_ns: 0, spread_ns, ..self };
        }
        if differs_ns > self.spread_ns + self.measured_ns {
            return self;
        }
        let measured_ns = typical - alone;
        let spread_ns = self.spread_ns.max(differs_ns);
        Switching { measured_ns, usual_ns: self.usual_ns.min(measured_ns), spread_ns, ..self }
    }
}

/// Returns a value that the given share of all values does not exceed.
fn quantile(values: &[u64], share: usize, of: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    sorted.get((last * share).div_ceil(of)).copied().unwrap_or(0)
}

/// Returns the greatest common divisor. All times of a clock that advances in steps are multiples
/// of its step.
pub(super) fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
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
    /// What going to the node and back takes, if the times include it.
    pub switching: Switching,
}

impl NodeRecording {
    /// Creates a recording without runs.
    pub fn new(node: NodeKey) -> Self {
        NodeRecording {
            node,
            runs: Vec::new(),
            count: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            switching: Switching::default(),
        }
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
