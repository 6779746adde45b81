//! What a call costs beside what it does by hand: 8 tiny kernels beside a launch of the same
//! executable, with the same and with alternating arguments, and a loop of 1,000 passes beside a
//! WHILE node.
//!
//! All ways are measured by turns within one run, so that what else the machine does falls on all
//! alike.

use std::time::{Duration, Instant};

use gridloom::CallableOptions;
use gridloom::prelude::*;

const KERNELS: usize = 8;
/// Calls in one measurement. The device is idle before each.
const BATCH: u32 = 64;
const ROUNDS: usize = 101;
const PASSES: i32 = 1000;
const LOOP_ROUNDS: usize = 21;

type Increase = Kernel<(PtrMut<i32>, Len<u32>, i32)>;

/// A way to do the work, and what it took at each round.
struct Way<'a> {
    name: &'static str,
    work: Box<dyn FnMut() -> Result<()> + 'a>,
    times: Vec<Duration>,
}

impl<'a> Way<'a> {
    fn new(name: &'static str, work: impl FnMut() -> Result<()> + 'a) -> Self {
        Way { name, work: Box::new(work), times: Vec::new() }
    }

    fn median(&mut self) -> Duration {
        self.times.sort_unstable();
        self.times[self.times.len() / 2]
    }
}

/// Measures all ways by turns: `batch` times the work, with the device's part where `whole`, else
/// the host's alone.
fn measure(stream: &Stream, ways: &mut [Way<'_>], rounds: usize, batch: u32, whole: bool) -> Result<()> {
    for round in 0..=rounds {
        for turn in 0..ways.len() {
            // Each way comes first as often as the others.
            let place = (turn + round) % ways.len();
            let way = &mut ways[place];
            stream.synchronize()?;
            let start = Instant::now();
            for _ in 0..batch {
                (way.work)()?;
            }
            if whole {
                stream.synchronize()?;
            }
            let took = start.elapsed() / batch;
            // The first round builds and warms up.
            if round > 0 {
                way.times.push(took);
            }
        }
    }
    stream.synchronize()
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn show(title: &str, ways: &mut [Way<'_>]) {
    println!("  {title}");
    let first = ways[0].median();
    for way in ways {
        let time = way.median();
        let ratio = time.as_secs_f64() / first.as_secs_f64();
        println!("    {:<36} {time:>10.1?}  {ratio:.2}", way.name);
    }
}

/// Adds 1 to one integer again and again.
fn chain(device: &Device, increase: &Increase, options: &CallableOptions) -> Callable<(Param<i32>,)> {
    let increase = increase.clone();
    Callable::with_options(device, options.clone(), move |g, (x,): (Param<i32>,)| {
        for _ in 0..KERNELS {
            g.launch(&increase, LaunchConfig::one(), (&x, 1, 1))?;
        }
        Ok(())
    })
}

fn calls(device: &Device, increase: &Increase, options: &CallableOptions) -> Result<()> {
    let stream = device.stream()?;
    let (x, y) = (device.buffer_from(&[0])?, device.buffer_from(&[0])?);
    let graph = Graph::new(device);
    let mut last = graph.launch(increase, LaunchConfig::one(), (&x, 1, 1))?;
    for _ in 1..KERNELS {
        last = last.launch(increase, LaunchConfig::one(), (&x, 1, 1))?;
    }
    let executable = graph.instantiate()?;
    let same = chain(device, increase, options);
    let other = chain(device, increase, options);
    let without = chain(device, increase, &options.clone().graphs(false));
    let mut turn = false;
    let mut ways = [
        Way::new("a launch of the executable", || executable.launch(&stream)),
        Way::new("a call, the same arguments", || same.call(&stream, (&x,))),
        Way::new("a call, other arguments every time", || {
            turn = !turn;
            other.call(&stream, (if turn { &x } else { &y },))
        }),
        Way::new("a call without graphs", || without.call(&stream, (&x,))),
    ];
    measure(&stream, &mut ways, ROUNDS, BATCH, false)?;
    show(&format!("{KERNELS} kernels, time of the host, median of {ROUNDS}:"), &mut ways);
    drop(ways);
    assert_eq!((same.stats().builds, other.stats().builds), (1, 1));
    // Every way ran as often as the others, on `x` or on `y`.
    let each = (KERNELS * BATCH as usize * (ROUNDS + 1)) as i32;
    assert_eq!(x.to_vec()?[0] + y.to_vec()?[0], 4 * each);
    Ok(())
}

fn loops(device: &Device, module: &Module, increase: &Increase, options: &CallableOptions) -> Result<()> {
    let stream = device.stream()?;
    let left = device.buffer_from(&[0])?;
    // SAFETY: `countdown` decreases the one integer it is given and sets the condition.
    let countdown = unsafe { module.kernel::<(ConditionHandle, PtrMut<i32>)>("countdown")? };
    let graph = Graph::new(device);
    let condition = graph.condition(Some(1))?;
    let body = graph.memset(&left, PASSES)?.while_loop(&condition)?.body();
    body.launch(&countdown, LaunchConfig::one(), (&condition, &left))?;
    let executable = graph.instantiate()?;

    let increase = increase.clone();
    let callable = Callable::with_options(device, options.clone(), move |g, (left,): (Param<i32>,)| {
        g.memset(&left, PASSES)?;
        g.do_while(&left, |body| body.launch(&increase, LaunchConfig::one(), (&left, 1, -1)))
    });
    let mut ways = [
        Way::new("a WHILE node, a kernel of the user's", || executable.launch(&stream)),
        Way::new("do_while in a callable", || callable.call(&stream, (&left,))),
    ];
    measure(&stream, &mut ways, LOOP_ROUNDS, 1, true)?;
    show(&format!("a loop of {PASSES} passes, time until done, median of {LOOP_ROUNDS}:"), &mut ways);
    drop(ways);
    assert_eq!((left.to_vec()?, callable.stats().builds), (vec![0], 1));
    Ok(())
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn main() -> Result<()> {
    // Whatever the environment says: without graphs there is nothing to compare.
    let options = CallableOptions::new().graphs(true);
    for device in Device::all()? {
        println!("{}", device.name());
        let module = device.load_ptx(include_str!("../tests/support/graph.ptx"))?;
        // SAFETY: `increase` changes as many integers as its second argument says.
        let increase = unsafe { module.kernel("increase")? };
        calls(&device, &increase, &options)?;
        loops(&device, &module, &increase, &options)?;
    }
    Ok(())
}
