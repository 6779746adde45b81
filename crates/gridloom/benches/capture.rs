//! What capturing costs beside building the same graph explicitly: 1,000 launches, in several ways of writing either.
//!
//! All ways are measured by turns within one run, so that what else the machine does falls on all alike. The bound is 1.2.

use std::time::{Duration, Instant};

use gridloom::demo_kernels;
use gridloom::prelude::*;

const LAUNCHES: usize = 1000;
const ROUNDS: usize = 301;
const BOUND: f64 = 1.2;

struct Work {
    device: Device,
    stream: Stream,
    kernel: Kernel<(PtrMut<i32>,)>,
    value: Buffer<i32>,
}

impl Work {
    /// Adds every launch to one place, whatever it is.
    fn on<S: Ops>(&self, place: &S) -> Result<()> {
        for _ in 0..LAUNCHES {
            place.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        }
        Ok(())
    }

    /// Explicitly: each node after the one before.
    fn chain(&self) -> Result<Graph> {
        let graph = Graph::new(&self.device);
        let mut last = graph.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        for _ in 1..LAUNCHES {
            last = last.launch(&self.kernel, LaunchConfig::one(), (&self.value,))?;
        }
        Ok(graph)
    }

    fn through_the_capture(&self) -> Result<Graph> {
        self.stream.capture_scope(|capture| self.on(capture))
    }

    fn through_the_stream(&self) -> Result<Graph> {
        self.stream.capture_scope(|_| self.on(&self.stream))
    }
}

fn timed(build: impl Fn(&Work) -> Result<Graph>, work: &Work) -> Result<Duration> {
    let start = Instant::now();
    let graph = build(work)?;
    let took = start.elapsed();
    assert_eq!((graph.len(), graph.edges().len()), (LAUNCHES, LAUNCHES - 1));
    Ok(took)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn main() -> Result<()> {
    let device = Device::best()?;
    let module = device.load_ptx(demo_kernels::SWITCH)?;
    // SAFETY: the kernel changes the one integer it is given.
    let kernel = unsafe { module.kernel("double_it")? };
    let work = Work { stream: device.stream()?, value: device.buffer_from(&[1])?, kernel, device };

    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let ways: [fn(&Work) -> Result<Graph>; 3] =
            [Work::chain, Work::through_the_capture, Work::through_the_stream];
        for turn in 0..ways.len() {
            // Each way comes first as often as the others.
            let way = (turn + round) % ways.len();
            times[way].push(timed(ways[way], &work)?);
        }
    }
    let [explicit, capture, stream] = times.map(median);
    let ratio = |time: Duration| time.as_secs_f64() / explicit.as_secs_f64();
    println!("{LAUNCHES} launches on {}, median of {ROUNDS}:", work.device.name());
    println!("  explicit nodes       {explicit:>10.1?}  1.00");
    println!("  through the capture  {capture:>10.1?}  {:.2}", ratio(capture));
    println!("  through the stream   {stream:>10.1?}  {:.2}", ratio(stream));
    let worst = ratio(capture).max(ratio(stream));
    let verdict = if worst <= BOUND { "within" } else { "NOT within" };
    println!("capture / explicit = {worst:.2}, {verdict} the bound of {BOUND}");
    Ok(())
}
