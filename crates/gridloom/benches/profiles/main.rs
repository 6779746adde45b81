//! How close a profile is to what events measure, on every device there is.
//!
//! Two events also measure what lies between them and the node: the start of the launch and the
//! event itself. So each node is measured in three ways, all by turns, as medians in microseconds:
//!
//! - `profile`: its time in a profile of the whole graph;
//! - `events`: a graph of this node alone between two events, then without the cost of that: what a
//!   graph of one short kernel takes by events, less what one more such kernel adds to a row;
//! - `row`: what one more copy adds to a graph of several copies one after the other, which is the
//!   difference of two times by events.
//!
//! The whole graph is also launched between two events without being profiled, and so is a chain
//! that goes back and forth between kernels, fills and copies.
//!
//! The last lines are what a profile takes the host.
//!
//! With the argument `rows`, the benchmark prints instead how the time between two timer kernels
//! grows with the nodes between them.

use std::time::Duration;

use gridloom::prelude::*;
use gridloom::{Optimizations, Profile};

mod rows;

const ROUNDS: usize = 15;
const LOOP_ROUNDS: usize = 5;
const PASSES: u64 = 1000;
/// How many copies a row has more than a graph of one.
const MORE_COPIES: usize = 8;
/// How many copies the shorter row in a loop has.
const FEW: usize = 4;
/// How many nodes of each kind the mixed chain has.
const MIXED: usize = 20;
const KERNELS: &str = include_str!("../../tests/support/graph.ptx");

/// Adds a node behind another.
type Add<'a> = Box<dyn Fn(&Node) -> Result<Node> + 'a>;

struct Work {
    device: Device,
    stream: Stream,
    late: Kernel<(PtrMut<i32>, u32)>,
    out: Vec<Buffer<i32>>,
}

/// The median of some times in microseconds.
fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

impl Work {
    /// Launches an executable between two events.
    fn by_events(&self, executable: &Executable) -> Result<f64> {
        let (start, end) = (self.device.event()?, self.device.event()?);
        // Something before it, so that the first event does not wait for the host.
        self.stream.callback(|| std::thread::sleep(Duration::from_micros(200)))?;
        self.stream.record(&start)?;
        executable.launch(&self.stream)?;
        self.stream.record(&end)?;
        self.stream.synchronize()?;
        Ok(end.elapsed_since(&start)?.as_secs_f64() * 1e6)
    }

    /// Makes a graph of an empty node and some copies of a node behind it.
    fn copies(&self, copies: usize, add: &Add<'_>) -> Result<Executable> {
        let graph = Graph::new(&self.device);
        let first = graph.empty()?;
        (0..copies).try_fold(first, |last, _| add(&last))?;
        as_written(&graph)
    }

    /// Makes a loop around some copies of a node.
    fn repeated(&self, copies: usize, add: &Add<'_>) -> Result<Executable> {
        let graph = Graph::new(&self.device);
        let first = graph.repeat(PASSES)?.body().empty()?;
        (0..copies).try_fold(first, |last, _| add(&last))?;
        as_written(&graph)
    }

    /// A node with a time that grows with the rounds.
    fn kernel(&self, out: usize, config: LaunchConfig, rounds: u32) -> Add<'_> {
        Box::new(move |last| last.launch(&self.late, config, (&self.out[out], rounds)))
    }
}

/// Instantiates a graph as it is: profiles are of graphs as they were written.
fn as_written(graph: &Graph) -> Result<Executable> {
    graph.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::NONE))
}

/// One node, measured in three ways.
struct Row<'a> {
    name: String,
    add: Add<'a>,
    profile: Vec<f64>,
    events: Vec<f64>,
    row: Vec<f64>,
}

impl<'a> Row<'a> {
    fn new(name: impl Into<String>, add: Add<'a>) -> Self {
        Row { name: name.into(), add, profile: vec![], events: vec![], row: vec![] }
    }

    /// Adds the time of one run of the node in a profile.
    fn take(&mut self, profile: &Profile) {
        let node = profile.node(&self.name);
        self.profile.push(node.map_or(0.0, |node| node.busy_ns as f64 / 1e3 / node.runs as f64));
    }
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn print(rows: &[Row<'_>], cost: f64) {
    println!(
        "{:14} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7}",
        "node", "profile", "events", "- cost", "ratio", "row", "ratio"
    );
    for Row { name, profile, events, row, .. } in rows {
        let [profile, events, row] = [profile, events, row].map(|times| median(times));
        let alone = events - cost;
        println!(
            "{name:14} {profile:9.2} {events:9.2} {alone:9.2} {:7.3} {row:9.2} {:7.3}",
            profile / alone,
            profile / row
        );
    }
}

/// A chain, and four kernels side by side behind it. Returns what measuring by events costs.
#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn nodes(work: &Work) -> Result<f64> {
    let mega = 1 << 20;
    let (from, to) = (work.device.alloc::<u32>(16 * mega)?, work.device.alloc::<u32>(16 * mega)?);
    let one = LaunchConfig::new(1, 32);
    let wide = LaunchConfig::new(132, 256);
    let mut rows: Vec<Row<'_>> =
        [(1, one), (2_000, one), (10_000, one), (40_000, one), (40_000, wide), (160_000, one)]
            .into_iter()
            .enumerate()
            .map(|(index, (rounds, config))| {
                Row::new(format!("kernel {index}"), work.kernel(0, config, rounds))
            })
            .collect();
    let sizes = [("1 KiB", 1 << 8), ("64 KiB", 1 << 14), ("1 MiB", 1 << 18), ("64 MiB", 16 * mega)];
    for (name, len) in sizes {
        let (from, to) = (from.slice(..len)?, to.slice(..len)?);
        let fill = from.clone();
        rows.push(Row::new(format!("fill {name}"), Box::new(move |last| last.memset(&fill, 7u32))));
        rows.push(Row::new(format!("copy {name}"), Box::new(move |last| last.memcpy(&to, &from))));
    }
    let whole = Graph::new(&work.device);
    let mut last = whole.empty()?;
    for row in &rows {
        last = (row.add)(&last)?.named(&row.name)?;
    }
    for index in 1..5 {
        let row = Row::new(format!("side {index}"), work.kernel(index, one, 30_000 * index as u32));
        (row.add)(&last)?.named(&row.name)?;
        rows.push(row);
    }

    let executable = as_written(&whole)?;
    let graphs = |copies: usize| -> Result<Vec<Executable>> {
        rows.iter().map(|row| work.copies(copies, &row.add)).collect()
    };
    let (alone, copied) = (graphs(1)?, graphs(1 + MORE_COPIES)?);
    let (mut launches, mut launched, mut sums, mut measured) = (vec![], vec![], vec![], vec![]);
    for warm_up in [&executable].into_iter().chain(&alone).chain(&copied) {
        work.by_events(warm_up)?;
        work.by_events(warm_up)?;
    }
    executable.profile(&work.stream)?;
    for _ in 0..ROUNDS {
        let profile = executable.profile(&work.stream)?;
        launches.push(profile.launch_ns as f64 / 1e3);
        sums.push((profile.critical_ns + profile.critical_gap_ns) as f64 / 1e3);
        measured.push(profile.measured_ns as f64 / 1e3);
        launched.push(work.by_events(&executable)?);
        for ((row, alone), copied) in rows.iter_mut().zip(&alone).zip(&copied) {
            row.take(&profile);
            let once = work.by_events(alone)?;
            row.events.push(once);
            row.row.push((work.by_events(copied)? - once) / MORE_COPIES as f64);
        }
    }
    let cost = median(&rows[0].events) - median(&rows[0].row);
    println!("measuring a graph by events costs {cost:.2}");
    print(&rows, cost);
    let events = median(&launched);
    for (name, times) in [("launch", launches), ("path and gaps", sums), ("instrumented", measured)] {
        print_launch(name, median(&times), events, cost);
    }
    Ok(cost)
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn print_launch(name: &str, profile: f64, events: f64, cost: f64) {
    let alone = events - cost;
    println!("{name:14} {profile:9.2} {events:9.2} {alone:9.2} {:7.3}", profile / alone);
}

/// A chain of kernels, fills and copies by turns.
#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn mixed(work: &Work, cost: f64) -> Result<()> {
    let (few, others) = (work.device.alloc::<u32>(256)?, work.device.alloc::<u32>(256)?);
    let kernel = work.kernel(0, LaunchConfig::new(1, 32), 1);
    for (name, has_fills, has_copies) in
        [("kernels, fills", true, false), ("kernels, copies", false, true), ("all three", true, true)]
    {
        let graph = Graph::new(&work.device);
        let mut last = graph.empty()?;
        for _ in 0..MIXED {
            last = kernel(&last)?;
            if has_fills {
                last = last.memset(&few, 7u32)?;
            }
            if has_copies {
                last = last.memcpy(&others, &few)?;
            }
        }
        let executable = as_written(&graph)?;
        work.by_events(&executable)?;
        executable.profile(&work.stream)?;
        let (mut launches, mut critical, mut launched) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let profile = executable.profile(&work.stream)?;
            launches.push(profile.launch_ns as f64 / 1e3);
            critical.push(profile.critical_ns as f64 / 1e3);
            launched.push(work.by_events(&executable)?);
        }
        let [profile, nodes, events] = [launches, critical, launched].map(|times| median(&times));
        print_launch(name, profile, events, cost);
        println!("{:14} {nodes:9.2}", "  of it nodes");
    }
    Ok(())
}

/// A loop around kernels, a fill and a copy.
#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn passes(work: &Work, cost: f64) -> Result<()> {
    let one = LaunchConfig::new(1, 32);
    let (few, others) = (work.device.alloc::<u32>(256)?, work.device.alloc::<u32>(256)?);
    let mut rows: Vec<Row<'_>> = [("in loop", 2_000), ("then", 500), ("short", 1)]
        .into_iter()
        .map(|(name, rounds)| Row::new(name, work.kernel(0, one, rounds)))
        .collect();
    rows.push(Row::new("fill in loop", Box::new(|last| last.memset(&few, 7u32))));
    rows.push(Row::new("copy in loop", Box::new(|last| last.memcpy(&others, &few))));
    let graph = Graph::new(&work.device);
    let repeat = graph.repeat(PASSES)?.named("loop")?;
    let mut last = repeat.body().empty()?;
    for row in &rows {
        last = (row.add)(&last)?.named(&row.name)?;
    }
    let executable = as_written(&graph)?;
    let alone: Vec<Executable> = rows.iter().map(|row| work.copies(1, &row.add)).collect::<Result<_>>()?;
    // The end of a pass can hide a part of the first copies, so the row is that of the later ones.
    let loops: Vec<[Executable; 3]> = rows
        .iter()
        .map(|row| {
            let [one, few, more] = [1, FEW, FEW + MORE_COPIES].map(|copies| work.repeated(copies, &row.add));
            Ok([one?, few?, more?])
        })
        .collect::<Result<_>>()?;
    let mut firsts: Vec<Vec<f64>> = vec![vec![]; rows.len()];
    let (mut launches, mut launched) = (vec![], vec![]);
    let (mut counted, mut kept) = (0, 0);
    for _ in 0..LOOP_ROUNDS {
        let profile = executable.profile(&work.stream)?;
        launches.push(profile.launch_ns as f64 / 1e3 / PASSES as f64);
        counted = profile.node("loop").and_then(|node| node.passes).unwrap_or(0);
        kept = profile.spans.len();
        launched.push(work.by_events(&executable)? / PASSES as f64);
        for (((row, alone), [one, few, more]), firsts) in
            rows.iter_mut().zip(&alone).zip(&loops).zip(&mut firsts)
        {
            row.take(&profile);
            row.events.push(work.by_events(alone)?);
            let [one, few, more] = [work.by_events(one)?, work.by_events(few)?, work.by_events(more)?];
            firsts.push((few - one) / (FEW - 1) as f64 / PASSES as f64);
            row.row.push((more - few) / MORE_COPIES as f64 / PASSES as f64);
        }
    }
    println!(
        "a loop of {PASSES} passes: {counted} counted, {kept} runs kept; `row` is another copy in the body"
    );
    print(&rows, cost);
    for (row, firsts) in rows.iter().zip(&firsts) {
        println!("{:14} {:9.2} by each of the {} copies after the first", row.name, median(firsts), FEW - 1);
    }
    print_launch("a pass", median(&launches), median(&launched), cost / PASSES as f64);
    println!();
    Ok(())
}

/// What a profile takes the host, by how many kinds of fills there are. Each kind is measured
/// beside the graph.
#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn calls(work: &Work) -> Result<()> {
    let memory = work.device.alloc::<u32>(1 << 12)?;
    let kernel = work.kernel(0, LaunchConfig::new(1, 32), 1);
    for kinds in [0, 1, 2, 4, 8, 16, 32] {
        let graph = Graph::new(&work.device);
        let mut last = kernel(&graph.empty()?)?;
        for kind in 0..kinds {
            last = last.memset(&memory.slice(..8 * (kind + 1))?, 7u32)?;
        }
        let executable = as_written(&graph)?;
        executable.profile(&work.stream)?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begin = std::time::Instant::now();
            executable.profile(&work.stream)?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        println!("a profile of a kernel and fills of {kinds:2} sizes: {:7.3} ms on the host", median(&times));
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn measure(device: Device) -> Result<()> {
    let module = device.load_ptx(KERNELS)?;
    // SAFETY: the kernel writes the one integer it is given.
    let late = unsafe { module.kernel("late")? };
    let out = (0..5).map(|_| device.alloc(1)).collect::<Result<_>>()?;
    let work = Work { stream: device.stream()?, device, late, out };
    println!("{}", work.device.name());
    if std::env::args().any(|argument| argument == "rows") {
        return rows::print(&work);
    }
    let cost = nodes(&work)?;
    mixed(&work, cost)?;
    passes(&work, cost)?;
    calls(&work)
}

fn main() -> Result<()> {
    Device::all()?.into_iter().try_for_each(measure)
}
