//! What changing an executable of 1,000 kernel launches costs beside instantiating it anew, on
//! every device there is.
//!
//! All ways are measured by turns within one run, so that what else the machine does falls on all
//! alike. In each round the device is idle, but for the one way that says otherwise.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use gridloom::demo_kernels;
use gridloom::prelude::*;

const LAUNCHES: usize = 1000;
const ROUNDS: usize = 101;

struct Work {
    device: Device,
    stream: Stream,
    kernel: Kernel<(PtrMut<i32>,)>,
    /// What the nodes work on: each node on the one or the other.
    values: [Buffer<i32>; 2],
}

impl Work {
    fn new(device: Device) -> Result<Self> {
        let module = device.load_ptx(demo_kernels::SWITCH)?;
        // SAFETY: the kernel changes the one integer it is given.
        let kernel = unsafe { module.kernel("double_it")? };
        let values = [device.buffer_from(&[1])?, device.buffer_from(&[1])?];
        Ok(Work { stream: device.stream()?, kernel, values, device })
    }

    fn chain(&self, value: usize) -> Result<(Graph, Vec<Node>)> {
        let graph = Graph::new(&self.device);
        let mut nodes: Vec<Node> = Vec::with_capacity(LAUNCHES);
        for _ in 0..LAUNCHES {
            let (config, args) = (LaunchConfig::one(), (&self.values[value],));
            nodes.push(match nodes.last() {
                Some(last) => last.launch(&self.kernel, config, args)?,
                None => graph.launch(&self.kernel, config, args)?,
            });
        }
        Ok((graph, nodes))
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

const WAYS: [&str; 5] = [
    "instantiate anew, and drop",
    "update whole, 1,000 nodes differ",
    "update whole, nothing differs",
    "one argument of one node",
    "the same with a launch in flight",
];

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn measure(device: Device) -> Result<()> {
    let work = Work::new(device)?;
    let graphs = [work.chain(0)?, work.chain(1)?];
    let executable = graphs[0].0.instantiate()?;
    let mut times: [Vec<Duration>; WAYS.len()] = Default::default();
    for round in 0..ROUNDS {
        let next = &graphs[(round + 1) % 2].0;
        times[0].push(timed(|| next.instantiate().map(drop))?);
        times[1].push(timed(|| executable.update(next))?);
        times[2].push(timed(|| executable.update(next))?);
        let node = &graphs[0].1[(round * 7) % LAUNCHES];
        let set = || executable.node(node)?.set_args(&work.kernel, (&work.values[round % 2],));
        times[3].push(timed(set)?);

        let (open, opened) = channel::<()>();
        work.stream.callback(move || _ = opened.recv())?;
        executable.launch(&work.stream)?;
        let set = || executable.node(node)?.set_args(&work.kernel, (&work.values[(round + 1) % 2],));
        times[4].push(timed(set)?);
        drop(open);
        work.stream.synchronize()?;
    }
    println!("{LAUNCHES} launches on {}, median of {ROUNDS}:", work.device.name());
    let anew = median(&mut times[0]);
    for (way, times) in WAYS.iter().zip(&mut times) {
        let time = median(times);
        println!("  {way:<33}{time:>10.1?}  {:>8.4}", time.as_secs_f64() / anew.as_secs_f64());
    }
    Ok(())
}

fn main() -> Result<()> {
    Device::all()?.into_iter().try_for_each(measure)
}
