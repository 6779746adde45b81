//! How close a profile is to what events measure, on every device there is.
//!
//! Each node is also launched in a graph of its own between two events, and the whole graph is
//! launched between two events without being profiled. All ways are measured by turns. The columns
//! are medians in microseconds.

use std::time::Duration;

use gridloom::prelude::*;

const ROUNDS: usize = 15;
const PASSES: u64 = 1000;
const KERNELS: &str = include_str!("../tests/support/graph.ptx");

struct Work {
    device: Device,
    stream: Stream,
    late: Kernel<(PtrMut<i32>, u32)>,
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
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn measure(device: Device) -> Result<()> {
    let module = device.load_ptx(KERNELS)?;
    // SAFETY: the kernel writes the one integer it is given.
    let late = unsafe { module.kernel("late")? };
    let work = Work { stream: device.stream()?, device, late };
    println!("{}", work.device.name());
    let mega = 1 << 20;
    let (from, to) = (work.device.alloc::<u32>(16 * mega)?, work.device.alloc::<u32>(16 * mega)?);
    let outs: Vec<Buffer<i32>> = (0..8).map(|_| work.device.alloc(1)).collect::<Result<_>>()?;

    // A chain, and four kernels side by side behind it.
    let whole = Graph::new(&work.device);
    let mut names: Vec<(String, Graph)> = Vec::new();
    let mut alone = |name: &str, add: &dyn Fn(&Graph) -> Result<Node>| -> Result<()> {
        let graph = Graph::new(&work.device);
        add(&graph)?;
        names.push((name.to_owned(), graph));
        Ok(())
    };
    let one = LaunchConfig::new(1, 32);
    let wide = LaunchConfig::new(132, 256);
    let mut last = whole.empty()?;
    for (index, (rounds, config)) in
        [(10_000, one), (40_000, one), (40_000, wide), (160_000, one)].into_iter().enumerate()
    {
        let name = format!("kernel {index}");
        last = last.launch(&work.late, config, (&outs[0], rounds))?.named(&name)?;
        alone(&name, &|graph| graph.launch(&work.late, config, (&outs[0], rounds)))?;
    }
    last = last.memset(&from, 7u32)?.named("fill 64 MiB")?;
    alone("fill 64 MiB", &|graph| graph.memset(&from, 7u32))?;
    last = last.memcpy(&to, &from)?.named("copy 64 MiB")?;
    alone("copy 64 MiB", &|graph| graph.memcpy(&to, &from))?;
    let side: Vec<Node> = (1..5u32)
        .map(|index| {
            last.launch(&work.late, one, (&outs[index as usize], 30_000 * index))?
                .named(&format!("side {index}"))
        })
        .collect::<Result<_>>()?;
    for index in 1..5u32 {
        alone(&format!("side {index}"), &|graph| {
            graph.launch(&work.late, one, (&outs[index as usize], 30_000 * index))
        })?;
    }
    whole.join(&side)?;

    let executable = whole.instantiate()?;
    let singles: Vec<Executable> =
        names.iter().map(|(_, graph)| graph.instantiate()).collect::<Result<_>>()?;
    let mut profiled = vec![Vec::new(); names.len()];
    let mut timed = vec![Vec::new(); names.len()];
    let (mut launches, mut launched, mut sums, mut measured) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS + 2 {
        let profile = executable.profile(&work.stream)?;
        let whole = work.by_events(&executable)?;
        let single: Vec<f64> = singles.iter().map(|single| work.by_events(single)).collect::<Result<_>>()?;
        // The first rounds warm up.
        if round < 2 {
            continue;
        }
        for (index, (name, _)) in names.iter().enumerate() {
            profiled[index].push(profile.node(name).map_or(0.0, |node| node.busy_ns as f64 / 1e3));
            timed[index].push(single[index]);
        }
        launches.push(profile.launch_ns as f64 / 1e3);
        sums.push((profile.critical_ns + profile.critical_gap_ns) as f64 / 1e3);
        measured.push(profile.measured_ns as f64 / 1e3);
        launched.push(whole);
    }
    println!("{:14} {:>10} {:>10} {:>7}", "node", "profile", "events", "ratio");
    for (index, (name, _)) in names.iter().enumerate() {
        let (profile, events) = (median(&profiled[index]), median(&timed[index]));
        println!("{name:14} {profile:10.1} {events:10.1} {:7.3}", profile / events);
    }
    let events = median(&launched);
    println!("{:14} {:10.1} {events:10.1} {:7.3}", "launch", median(&launches), median(&launches) / events);
    println!("{:14} {:10.1} {events:10.1} {:7.3}", "path and gaps", median(&sums), median(&sums) / events);
    println!(
        "{:14} {:10.1} {events:10.1} {:7.3}",
        "instrumented",
        median(&measured),
        median(&measured) / events
    );

    // A loop.
    let graph = Graph::new(&work.device);
    let repeat = graph.repeat(PASSES)?.named("loop")?;
    repeat
        .body()
        .launch(&work.late, one, (&outs[0], 2_000))?
        .named("in loop")?
        .launch(&work.late, one, (&outs[0], 500))?
        .named("then")?;
    let executable = graph.instantiate()?;
    let (mut launches, mut launched, mut passes, mut kept) = (vec![], vec![], 0, 0);
    let mut inside = Vec::new();
    for _ in 0..5 {
        let profile = executable.profile(&work.stream)?;
        launches.push(profile.launch_ns as f64 / 1e3 / PASSES as f64);
        inside.push(profile.node("in loop").map_or(0.0, |node| node.busy_ns as f64 / 1e3 / node.runs as f64));
        passes = profile.node("loop").and_then(|node| node.passes).unwrap_or(0);
        kept = profile.spans.len();
        launched.push(work.by_events(&executable)? / PASSES as f64);
    }
    let single = Graph::new(&work.device);
    single.launch(&work.late, one, (&outs[0], 2_000))?;
    let single = single.instantiate()?;
    let alone: Vec<f64> = (0..5).map(|_| work.by_events(&single)).collect::<Result<_>>()?;
    println!("loop of {PASSES} passes: {passes} counted, {kept} runs kept");
    let row = |name: &str, profile: f64, events: f64| {
        println!("{name:14} {profile:10.2} {events:10.2} {:7.3}", profile / events);
    };
    row("a pass", median(&launches), median(&launched));
    row("in loop", median(&inside), median(&alone));
    println!();
    Ok(())
}

fn main() -> Result<()> {
    Device::all()?.into_iter().try_for_each(measure)
}
