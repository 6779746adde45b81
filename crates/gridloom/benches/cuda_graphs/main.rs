//! What Gridloom costs beside the driver's own calls for the same graphs, in one run on one stream
//! of one GPU.
//!
//! Both ways are measured by turns, so that what else the machine does falls on both alike; each
//! number is a median. Without a GPU there is nothing to compare, and one line says so.
//!
//! With `--idle` the driver is one that does nothing, on any machine: what Gridloom takes longer
//! than that is its own part, with everything in the caches, as a real driver does not leave it.
//! There are no loops then.
//!
//! Names of groups (`build`, `launch`, `loops`, `change`, `calls`) choose what is measured. Any
//! other word chooses the rows whose names contain it.

mod bare;
mod calls;
mod idle;
mod measure;

use bare::{Bare, BareExecutable, BareGraph, Flag, Shape};
use gridloom::interop;
use gridloom::kernel::Arg;
use gridloom::prelude::*;
use gridloom_cuda::sys::{CUfunction, CUgraphNode};
use gridloom_cuda::{CudaDevice, CudaVersion};
use measure::{Aim, Table};
use std::ptr;
use std::time::{Duration, Instant};

const GROUPS: [&str; 5] = ["build", "launch", "loops", "change", "calls"];

const PLAIN: &str = include_str!("plain.ptx");
const CONDITIONAL: &str = include_str!("conditional.ptx");

const SHAPES: [(Shape, &str); 2] = [(Shape::Chain, "chain"), (Shape::FanOut, "fan-out")];
/// Nodes of a graph, how often it is built, and how often executables of it are made whose launches
/// are timed how often.
const SIZES: [(usize, usize, (usize, usize)); 4] =
    [(10, 2_001, (24, 20)), (100, 401, (24, 20)), (1_000, 41, (16, 20)), (10_000, 11, (4, 20))];
/// Launches between two waits.
const BATCH: usize = 8;
/// Passes of a loop.
const PASSES: u32 = 1_000;
/// Executables of one loop, and launches of each.
const LOOPS: (usize, usize) = (24, 8);
/// Nodes of the executable that is changed, and how many are changed in one round.
const NODES: usize = 1_000;
const CHANGED: usize = 100;
/// The first driver with a WHILE that can be relied on.
const WHILE_SINCE: CudaVersion = CudaVersion::new(12, 4);

const BUILD: Aim = Aim::Times(1.15);
const LAUNCH: Aim = Aim::TimesPlus(1.05, Duration::from_nanos(50));
const PASS: Aim = Aim::Times(1.02);
const HOSTED: Aim = Aim::Times(1.0);
const CHANGE: Aim = Aim::Times(1.35);
const UPDATE: Aim = Aim::Times(1.2);

/// What all comparisons share: memory, and the very same kernels, so that the device runs the same
/// code from the same place.
struct Work {
    device: Device,
    stream: Stream,
    bare: Bare,
    memory: Buffer<u32>,
    memory_at: u64,
    /// The passes that are left, and for the driver's hosted loop the flag behind it.
    left: Buffer<u32>,
    left_at: u64,
    store: Kernel<(PtrMut<u32>, u32)>,
    bare_store: CUfunction,
}

impl Work {
    fn new(gpu: &std::sync::Arc<CudaDevice>) -> Result<Self> {
        let device = Device::from_backend(gpu.clone());
        let stream = device.stream()?;
        let raw = interop::stream_to_raw(&stream)?;
        let bare = Bare::new(gpu.driver(), gpu.context().raw(), raw)?;
        // SAFETY: the kernel stores one word where it is told to.
        let store = unsafe { device.load_ptx(PLAIN)?.kernel("store")? };
        let (memory, left) = (device.buffer_from(&[0])?, device.buffer_from(&[PASSES, 0])?);
        Ok(Work {
            memory_at: memory.address()?,
            left_at: left.address()?,
            memory,
            left,
            bare_store: interop::kernel_to_raw(&store.untyped())?,
            device,
            stream,
            bare,
            store,
        })
    }

    fn graph(&self, shape: Shape, count: usize, value: u32) -> Result<(Graph, Vec<Node>)> {
        let graph = Graph::new(&self.device);
        let mut nodes: Vec<Node> = Vec::with_capacity(count);
        for index in 0..count {
            let before = match shape {
                _ if index == 0 => None,
                Shape::Chain => nodes.last(),
                Shape::FanOut => nodes.first(),
            };
            let args = (&self.memory, value);
            let node = match before {
                None => graph.launch(&self.store, LaunchConfig::one(), args)?,
                Some(before) => before.launch(&self.store, LaunchConfig::one(), args)?,
            };
            nodes.push(node);
        }
        Ok((graph, nodes))
    }

    fn bare_graph(
        &self,
        shape: Shape,
        count: usize,
        value: u32,
    ) -> Result<(BareGraph<'_>, Vec<CUgraphNode>)> {
        let to = (self.memory_at, value);
        BareGraph::stores(&self.bare, self.bare_store, shape, count, to)
    }

    fn build(&self, table: &mut Table) -> Result<()> {
        // Small ones first: they would pay for the state in which large ones leave the heap.
        for (count, rounds, _) in SIZES {
            for (shape, name) in SHAPES {
                table.compare(
                    &format!("define and instantiate, {name} of {count}"),
                    BUILD,
                    (rounds, 1),
                    || {
                        let (took, built) = timed(|| {
                            let (graph, nodes) = self.graph(shape, count, 1)?;
                            let executable = graph.instantiate()?;
                            Ok((graph, nodes, executable))
                        })?;
                        drop(built);
                        Ok(took)
                    },
                    || {
                        let (took, built) = timed(|| {
                            let (graph, nodes) = self.bare_graph(shape, count, 1)?;
                            let executable = graph.instantiate()?;
                            Ok((graph, nodes, executable))
                        })?;
                        drop(built);
                        Ok(took)
                    },
                )?;
            }
        }
        Ok(())
    }

    /// The host's time for a few launches; waiting for them is not counted.
    fn batch(&self, launch: impl Fn() -> Result<()>) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..BATCH {
            launch()?;
        }
        let took = start.elapsed();
        self.stream.synchronize()?;
        Ok(took)
    }

    fn launch(&self, table: &mut Table) -> Result<()> {
        for (shape, name) in SHAPES {
            for (count, _, (times, rounds)) in SIZES {
                table.compare_made(
                    &format!("launch, host time, {name} of {count}"),
                    LAUNCH,
                    (times, rounds, BATCH),
                    (
                        || self.graph(shape, count, 1)?.0.instantiate(),
                        |made: &Executable| self.batch(|| made.launch(&self.stream)),
                    ),
                    (
                        || self.bare_graph(shape, count, 1)?.0.instantiate(),
                        |made: &BareExecutable<'_>| self.batch(|| made.launch()),
                    ),
                )?;
            }
        }
        let (count, _, (times, rounds)) = SIZES[0];
        let ours = self.graph(Shape::Chain, count, 1)?.0.instantiate()?;
        let theirs = self.bare_graph(Shape::Chain, count, 1)?.0.instantiate()?;
        table.compare(
            &format!("launch of a chain of {count}, no context current"),
            Aim::None,
            (times * rounds, BATCH),
            || self.without_context(|| self.batch(|| ours.launch(&self.stream))),
            || self.batch(|| theirs.launch()),
        )
    }

    /// On a thread whose user never heard of contexts there is none.
    fn without_context<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut popped = ptr::null_mut();
        // SAFETY: takes the context off and puts it back; nothing of the driver's is called
        // directly in between.
        unsafe { self.bare.driver.cu_ctx_pop_current(&mut popped) }?;
        let done = work();
        // SAFETY: as above.
        unsafe { self.bare.driver.cu_ctx_push_current(popped) }?;
        done
    }

    fn loops(&self, table: &mut Table) -> Result<()> {
        if !self.bare.driver.supports(WHILE_SINCE) {
            table.skip("loops", &format!("the driver has no WHILE before CUDA {WHILE_SINCE}"));
            return Ok(());
        }
        // SAFETY: the kernel changes the one counter it is given.
        let countdown: Kernel<_> = unsafe { self.device.load_ptx(CONDITIONAL)?.kernel("countdown")? };
        let bare_countdown = interop::kernel_to_raw(&countdown.untyped())?;
        for stores in [0, 8] {
            table.compare_made(
                &format!("WHILE, a pass of {}, device time", kernels(stores + 1)),
                PASS,
                (LOOPS.0, LOOPS.1, PASSES as usize),
                (
                    || self.while_loop(&countdown, stores, ConditionalMode::Native),
                    |made: &Executable| self.bare.device_time(|| made.launch(&self.stream)),
                ),
                (
                    || {
                        let store = (self.bare_store, self.memory_at, stores);
                        let counter = (bare_countdown, self.left_at, PASSES);
                        BareGraph::while_loop(&self.bare, store, counter)?.instantiate()
                    },
                    |made: &BareExecutable<'_>| self.bare.device_time(|| made.launch()),
                ),
            )?;
        }
        self.do_while(table)?;
        self.hosted(table, &countdown)
    }

    fn while_loop(
        &self,
        countdown: &Kernel<(ConditionHandle, PtrMut<u32>, u32)>,
        stores: usize,
        conditional_mode: ConditionalMode,
    ) -> Result<Executable> {
        let graph = Graph::new(&self.device);
        let goes_on = graph.condition(Some(1))?;
        let body = graph.while_loop(&goes_on)?.body();
        let args = (&goes_on, &self.left.slice(0..1)?, PASSES);
        let mut last: Option<Node> = None;
        for value in 0..stores as u32 {
            let store = (&self.memory, value);
            last = Some(match &last {
                None => body.launch(&self.store, LaunchConfig::one(), store)?,
                Some(last) => last.launch(&self.store, LaunchConfig::one(), store)?,
            });
        }
        match &last {
            None => body.launch(countdown, LaunchConfig::one(), args)?,
            Some(last) => last.launch(countdown, LaunchConfig::one(), args)?,
        };
        graph.instantiate_with(&InstantiateOptions::new().conditional_mode(conditional_mode))
    }

    fn hosted(
        &self,
        table: &mut Table,
        countdown: &Kernel<(ConditionHandle, PtrMut<u32>, u32)>,
    ) -> Result<()> {
        let executable = self.while_loop(countdown, 0, ConditionalMode::Hosted)?;
        let left = self.left_at;
        let goes_on = left + size_of::<u32>() as u64;
        let body = BareGraph::new(&self.bare)?;
        let countdown_flag = self.bare.function(PLAIN, c"countdown_flag")?;
        body.countdown(body.raw(), None, countdown_flag, (goes_on, left, PASSES))?;
        let body = body.instantiate()?;
        let flag = Flag::new(&self.bare)?;
        let wait = || self.stream.synchronize();
        table.compare(
            "loop driven by the host, a pass of 1 kernel",
            HOSTED,
            (31, PASSES as usize),
            || Ok(timed(|| executable.launch(&self.stream).and_then(|()| wait()))?.0),
            || Ok(timed(|| self.drive(&body, &flag, goes_on))?.0),
        )
    }

    /// The loop as one writes it by hand.
    fn drive(&self, body: &BareExecutable<'_>, flag: &Flag<'_>, goes_on: u64) -> Result<()> {
        loop {
            body.launch()?;
            if !flag.read(goes_on)? {
                return Ok(());
            }
        }
    }

    fn change(&self, table: &mut Table) -> Result<()> {
        let (graph, nodes) = self.graph(Shape::Chain, NODES, 1)?;
        let executable = graph.instantiate()?;
        let (bare_graph, bare_nodes) = self.bare_graph(Shape::Chain, NODES, 1)?;
        let bare = bare_graph.instantiate()?;
        let address = self.memory_at;
        let (mut ours, mut theirs) = (1u32, 1u32);
        let mut change_bare = || {
            theirs += 1;
            let (took, ()) = timed(|| {
                bare_nodes[..CHANGED]
                    .iter()
                    .try_for_each(|&node| bare.set_store(node, self.bare_store, address, theirs))
            })?;
            bare.launch()?;
            self.bare.synchronize()?;
            Ok(took)
        };
        table.compare(
            &format!("change one argument, executable of {NODES}"),
            CHANGE,
            (301, CHANGED),
            || {
                ours += 1;
                let (took, ()) = timed(|| {
                    nodes[..CHANGED].iter().try_for_each(|node| {
                        executable.node(node)?.set_args(&self.store, (&self.memory, ours))
                    })
                })?;
                executable.launch(&self.stream)?;
                self.stream.synchronize()?;
                Ok(took)
            },
            &mut change_bare,
        )?;
        let (node, bare_node) = (&nodes[0], bare_nodes[0]);
        table.compare(
            "the same, one node again and again",
            Aim::None,
            (301, CHANGED),
            || {
                let (took, ()) = timed(|| {
                    (0..CHANGED).try_for_each(|_| {
                        ours += 1;
                        executable.node(node)?.set_args(&self.store, (&self.memory, ours))
                    })
                })?;
                executable.launch(&self.stream)?;
                self.stream.synchronize()?;
                Ok(took)
            },
            || {
                let (took, ()) = timed(|| {
                    (0..CHANGED as u32)
                        .try_for_each(|value| bare.set_store(bare_node, self.bare_store, address, value))
                })?;
                bare.launch()?;
                self.bare.synchronize()?;
                Ok(took)
            },
        )?;
        table.compare(
            "the same by its number, no context current",
            Aim::None,
            (301, CHANGED),
            || {
                ours += 1;
                let change = || {
                    nodes[..CHANGED].iter().try_for_each(|node| {
                        // SAFETY: the kernel stores any word.
                        unsafe { executable.node(node)?.set_arg_unchecked(1, Arg::value(ours)) }
                    })
                };
                let (took, ()) = self.without_context(|| timed(change))?;
                executable.launch(&self.stream)?;
                self.stream.synchronize()?;
                Ok(took)
            },
            &mut change_bare,
        )?;
        for (all, what) in [(true, "all"), (false, "no")] {
            table.compare(
                &format!("build {NODES} nodes and update, {what} nodes differ"),
                UPDATE,
                (101, 1),
                || {
                    ours += u32::from(all);
                    let (took, source) = timed(|| {
                        let (source, nodes) = self.graph(Shape::Chain, NODES, ours)?;
                        executable.update(&source)?;
                        Ok((source, nodes))
                    })?;
                    drop(source);
                    executable.launch(&self.stream)?;
                    self.stream.synchronize()?;
                    Ok(took)
                },
                || {
                    theirs += u32::from(all);
                    let (took, source) = timed(|| {
                        let (source, nodes) = self.bare_graph(Shape::Chain, NODES, theirs)?;
                        bare.update(&source)?;
                        Ok((source, nodes))
                    })?;
                    drop(source);
                    bare.launch()?;
                    self.bare.synchronize()?;
                    Ok(took)
                },
            )?;
        }
        Ok(())
    }
}

fn kernels(count: usize) -> String {
    if count == 1 { "1 kernel".to_owned() } else { format!("{count} kernels") }
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let made = work()?;
    Ok((start.elapsed(), made))
}

#[allow(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn main() -> Result<()> {
    let is_idle = std::env::args().any(|argument| argument == "--idle");
    let gpu = match if is_idle { idle::device() } else { CudaDevice::open(0) } {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("no CUDA GPU to compare on: {error}");
            return Ok(());
        }
    };
    let work = Work::new(&gpu)?;
    let words = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (groups, others): (Vec<String>, Vec<String>) = words.partition(|word| GROUPS.contains(&&**word));
    let mut table = Table::new(others.into_iter().next().unwrap_or_default(), is_idle);
    let is_asked = |group: &str| groups.is_empty() || groups.iter().any(|asked| asked == group);
    if is_asked("build") {
        work.build(&mut table)?;
    }
    if is_asked("launch") {
        work.launch(&mut table)?;
    }
    if is_asked("loops") && !is_idle {
        work.loops(&mut table)?;
    }
    if is_asked("change") {
        work.change(&mut table)?;
    }
    if is_asked("calls") {
        work.calls(&mut table)?;
    }
    println!("{} with a driver for CUDA {}, medians:", work.device.name(), gpu.driver().version());
    println!("{table}");
    Ok(())
}
