//! What the optimiser makes of a graph, beside the same graph built with plain driver calls, by
//! turns on one stream of one GPU.
//!
//! Both run the same kernels with the same arguments, and what they leave is compared bit for bit.
//! Each number is a median, and each ratio the median of the ratios of rounds. Without a GPU there
//! is nothing to measure, and one line says so. `--cpu` measures the CPU device, beside the graph
//! as it was written. `--passes=NAMES` measures some passes instead of all, `--report` prints what
//! was done, and a word chooses the rows whose names contain it.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod driver;
mod graphs;
mod measure;
mod programs;

use driver::Bare;
use graphs::{Branch, DECISIONS, GraphKernels, NODES, PAIRS, PASSES};
use gridloom::kernel::Arg;
use gridloom::op::Operation;
use gridloom::prelude::*;
use gridloom::{Condition, DeviceKind, Optimizations};
use gridloom_cuda::CudaDevice;
use measure::{Table, timed};
use programs::{LAYERS, PARTICLES, ProgramKernels, SUBSTEPS};
use std::time::Duration;

const ROUNDS: usize = 21;
/// The time that one round takes at least, so that the start of a launch does not decide.
const ROUND: Duration = Duration::from_millis(1);
/// The most launches of one round.
const MAX_LAUNCHES: usize = 64;

/// What all rows share.
struct Work {
    device: Device,
    stream: Stream,
    /// The driver, on a GPU.
    bare: Option<Bare>,
    graphs: GraphKernels,
    programs: ProgramKernels,
}

/// A graph, and the memory that it leaves results in.
struct Case {
    graph: Graph,
    conditions: Vec<Condition>,
    words: Vec<Buffer<u32>>,
    floats: Vec<Buffer<f32>>,
}

impl Case {
    fn new(graph: Graph) -> Self {
        Case { graph, conditions: Vec::new(), words: Vec::new(), floats: Vec::new() }
    }

    fn condition(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    fn words(mut self, words: impl IntoIterator<Item = Buffer<u32>>) -> Self {
        self.words.extend(words);
        self
    }

    fn floats(mut self, floats: impl IntoIterator<Item = Buffer<f32>>) -> Self {
        self.floats.extend(floats);
        self
    }

    /// Returns everything that the graph left, as bits.
    fn results(&self) -> Result<Vec<Vec<u32>>> {
        let words = self.words.iter().map(Buffer::to_vec);
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
        words.chain(self.floats.iter().map(|buffer| buffer.to_vec().map(bits))).collect()
    }
}

fn main() -> Result<()> {
    // Cargo passes `--bench`, and `cargo test` nothing.
    let arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    if arguments.iter().any(|argument| argument == "--cpu") {
        return run(&Work::new(Device::cpu()?, None)?);
    }
    match CudaDevice::open(0) {
        Ok(gpu) => run(&Work::new(Device::from_backend(gpu.clone()), Some(&gpu))?),
        Err(error) => {
            println!("no GPU to measure the optimiser on: {error}");
            Ok(())
        }
    }
}

fn run(work: &Work) -> Result<()> {
    println!("{}\n", work.device.name());
    let is_gpu = work.device.kind() == DeviceKind::Cuda;
    let mut table = Table::of_arguments(if is_gpu { "driver" } else { "not optimised" });
    for (blocks, aim) in [(1, 0.30), (16, 0.75), (132, 0.75)] {
        let name = format!("chain of {NODES} kernels of {blocks} blocks");
        work.compare(&mut table, (&name, aim), ROUNDS, |work| work.chain(blocks));
    }
    for millions in [4, 64] {
        let name = format!("chain of {NODES} streaming kernels over {millions} M floats");
        // The CPU takes minutes for the large one.
        if is_gpu || millions == 4 {
            let rounds = if millions == 4 { 7 } else { 3 };
            work.compare(&mut table, (&name, 1.02), rounds, |work| work.streaming(millions << 20));
        }
    }
    work.compare(&mut table, (&format!("fan of {NODES} kernels of 1 block"), 0.05), ROUNDS, |work| {
        work.fan(NODES, 1)
    });
    let name = format!("fan of {NODES} kernels of 1 block, 10 different");
    work.compare(&mut table, (&name, 0.10), ROUNDS, |work| work.fan(NODES, 10));
    for count in [2, 4, 16] {
        let name = format!("fan of {count} kernels of 1 block, {count} different");
        work.compare(&mut table, (&name, 1.0), ROUNDS, |work| work.fan(count, count.min(10)));
    }
    let name = format!("{PAIRS} pairs of a kernel and a 1 KB fill");
    work.compare(&mut table, (&name, 0.60), ROUNDS, Work::fills);
    for (kernels, aim) in [(1, 0.15), (9, 0.25)] {
        let name = format!("loop of {PASSES} passes, {kernels} kernels of 1 block");
        work.compare(&mut table, (&name, aim), 11, |work| work.repeat(kernels));
    }
    for blocks in [16, 132] {
        let name = format!("loop of {PASSES} passes, 1 kernel of {blocks} blocks");
        work.compare(&mut table, (&name, 0.30), 11, |work| work.repeat_wide(blocks));
    }
    for (branch, form) in Branch::ALL {
        for blocks in [1, 16, 132] {
            for (taken, word) in [(true, "taken"), (false, "not taken")] {
                let name = format!("{DECISIONS} decisions and {form}, bodies of {blocks} blocks, {word}");
                work.compare(&mut table, (&name, 0.35), 11, |work| work.branches(branch, blocks, taken));
            }
        }
    }
    let name = "conjugate gradients on a plate of 128 x 128";
    work.compare(&mut table, (name, 0.60), ROUNDS, Work::conjugate_gradients);
    let name = format!("particle step, 8 kernels x {SUBSTEPS} substeps, {PARTICLES} particles");
    work.compare(&mut table, (&name, 0.60), ROUNDS, Work::particles);
    let name = format!("perceptron of {LAYERS} layers, batch 1");
    work.compare(&mut table, (&name, 0.60), ROUNDS, Work::perceptron);
    work.host(&mut table);
    table.end();
    Ok(())
}

impl Work {
    fn new(device: Device, gpu: Option<&CudaDevice>) -> Result<Self> {
        let plain = device.load_ptx(include_str!("kernels.ptx"))?;
        let programs = device.load_ptx(include_str!("programs.ptx"))?;
        let stream = device.stream()?;
        let bare = match gpu {
            Some(gpu) => Some(Bare::new(gpu.driver(), gpu.context().raw(), &stream)?),
            None => None,
        };
        Ok(Work {
            graphs: GraphKernels::new(&plain, &programs)?,
            programs: ProgramKernels::new(&programs)?,
            device,
            stream,
            bare,
        })
    }

    /// Measures a graph in both forms and compares what they leave. A failure becomes a row.
    fn compare(
        &self,
        table: &mut Table,
        row: (&str, f64),
        rounds: usize,
        make: impl Fn(&Self) -> Result<Case>,
    ) {
        if !table.wants(row.0) {
            return;
        }
        if let Err(error) = self.try_compare(table, row, rounds, make) {
            table.failed(row.0, &error);
        }
    }

    fn try_compare(
        &self,
        table: &mut Table,
        row: (&str, f64),
        rounds: usize,
        make: impl Fn(&Self) -> Result<Case>,
    ) -> Result<()> {
        let (plain, case) = (make(self)?, make(self)?);
        let options = InstantiateOptions::new().optimize(passes()?);
        let optimized = case.graph.instantiate_with(&options)?;
        if std::env::args().any(|argument| argument == "--report") {
            println!("{:#?}", optimized.report());
        }
        // Such nodes run as they were written, and the row says nothing about what was planned.
        for (node, reason) in optimized.report().not_optimized {
            if reason.contains("does not take the rewritten kernel") {
                println!("{}, {node}: {reason}", row.0);
            }
        }
        // Both are launched equally often, so that results can be compared.
        let mut optimized = |launches: usize| {
            self.stream.synchronize()?;
            let run = || {
                (0..launches).try_for_each(|_| optimized.launch(&self.stream))?;
                self.stream.synchronize()
            };
            timed(run).map(|(took, ())| took / launches as u32)
        };
        match &self.bare {
            Some(bare) => {
                let graph = bare.define(&plain.graph, &plain.conditions)?;
                let executable = graph.instantiate()?;
                let mut baseline = |launches: usize| {
                    executable.synchronize()?;
                    let run = || {
                        (0..launches).try_for_each(|_| executable.launch())?;
                        executable.synchronize()
                    };
                    timed(run).map(|(took, ())| took / launches as u32)
                };
                by_turns(table, row, rounds, &mut baseline, &mut optimized)?;
            }
            None => {
                let written = InstantiateOptions::new().optimize(Optimizations::NONE);
                let executable = plain.graph.instantiate_with(&written)?;
                let mut baseline = |launches: usize| {
                    let run = || {
                        (0..launches).try_for_each(|_| executable.launch(&self.stream))?;
                        self.stream.synchronize()
                    };
                    timed(run).map(|(took, ())| took / launches as u32)
                };
                by_turns(table, row, rounds, &mut baseline, &mut optimized)?;
            }
        }
        assert!(plain.results()? == case.results()?, "{}: results differ", row.0);
        Ok(())
    }

    /// Measures what the host does: instantiating, and changing an argument.
    fn host(&self, table: &mut Table) {
        let name = format!("define and instantiate a chain of {NODES}, default options");
        if table.wants(&name)
            && let Err(error) = self.instantiate(table, &name)
        {
            table.failed(&name, &error);
        }
        let name = "change one argument of a node inside a rewritten kernel";
        if table.wants(name)
            && let Err(error) = self.change(table, name)
        {
            table.failed(name, &error);
        }
        let name = format!("launches of a chain of {NODES} that is optimised meanwhile");
        if table.wants(&name)
            && let Err(error) = self.automatic(&name)
        {
            table.failed(&name, &error);
        }
    }

    /// Launches a graph with the default options until its optimised form runs, and prints what the
    /// launches before, meanwhile and after took the host. Also prints what parts of that take: a
    /// first launch, and instantiation with kernels that are known.
    fn automatic(&self, name: &str) -> Result<()> {
        const MOST: usize = 20_000;
        let options = InstantiateOptions::new().optimize(Optimizations::NONE);
        let (plain, case, known) = (self.chain(1)?, self.chain(1)?, self.chain(1)?);
        let (plain, executable) = (plain.graph.instantiate_with(&options)?, case.graph.instantiate()?);
        let launch = |executable: &Executable| {
            self.stream.synchronize()?;
            timed(|| executable.launch(&self.stream)).map(|(took, ())| took.as_secs_f64() * 1e6)
        };
        let mut alone = Vec::new();
        let first = launch(&plain)?;
        for _ in 0..200 {
            alone.push(launch(&plain)?);
        }
        let (mut meanwhile, mut after) = (Vec::new(), Vec::new());
        while after.len() < 200 && meanwhile.len() < MOST {
            let is_taken = executable.optimized_graph()?.is_some();
            let took = launch(&executable)?;
            if is_taken { after.push(took) } else { meanwhile.push(took) }
        }
        // The last of them took the optimised form over.
        let takes_over = meanwhile.pop().unwrap_or(f64::NAN);
        let slowest = meanwhile.iter().copied().fold(0.0, f64::max);
        println!(
            "\n{name}, host time in µs: {:.2} without the optimiser; {:.2} in {} launches until the kernels were \
             made, the slowest {slowest:.1}; {takes_over:.1} in the launch that took them over; {:.2} after",
            measure::median(alone),
            measure::median(meanwhile.clone()),
            meanwhile.len(),
            measure::median(after)
        );
        let options = InstantiateOptions::new().optimize(Optimizations::ALL);
        let (instantiated, executable) = timed(|| known.graph.instantiate_with(&options))?;
        let first_optimized = launch(&executable)?;
        println!(
            "of these, in µs: a first launch without the optimiser {first:.1}; with kernels that are known, \
             instantiating the optimised form {:.1} and its first launch {first_optimized:.1}",
            instantiated.as_secs_f64() * 1e6
        );
        Ok(())
    }

    fn instantiate(&self, table: &mut Table, name: &str) -> Result<()> {
        let Some(bare) = &self.bare else { return Ok(()) };
        let (data, case) = (self.buffers(1)?, self.chain(1)?);
        table.compare(
            (name, 1.15),
            41,
            &mut || {
                let (took, made) = timed(|| {
                    let graph = bare.define(&case.graph, &[])?;
                    Ok((graph.instantiate()?, graph))
                })?;
                drop(made);
                Ok(took)
            },
            &mut || {
                let (took, made) = timed(|| {
                    let graph = self.chain_in(1, &data)?;
                    Ok((graph.instantiate()?, graph))
                })?;
                drop(made);
                Ok(took)
            },
        )
    }

    fn change(&self, table: &mut Table, name: &str) -> Result<()> {
        const CHANGED: usize = 100;
        let Some(bare) = &self.bare else { return Ok(()) };
        let (plain, case) = (self.chain(1)?, self.chain(1)?);
        let graph = bare.define(&plain.graph, &[])?;
        let executable = graph.instantiate()?;
        let options = InstantiateOptions::new().optimize(Optimizations::ALL);
        let optimized = case.graph.instantiate_with(&options)?;
        let (plain_nodes, nodes) = (plain.graph.nodes(), case.graph.nodes());
        let launches = plain_nodes[..CHANGED]
            .iter()
            .map(|node| match node.operation()? {
                Operation::Kernel(launch) => Ok((node, launch)),
                _ => Err(Error::new(gridloom::ErrorKind::InvalidState, "not a kernel")),
            })
            .collect::<Result<Vec<_>>>()?;
        let mut by = 0u32;
        let with_launch = format!("{name}, and launch");
        table.compare(
            (&with_launch, 1.0),
            41,
            &mut || {
                let (took, ()) = timed(|| {
                    let (node, launch) = &launches[0];
                    graph.set_parameters(&executable, node, launch)?;
                    executable.launch()
                })?;
                executable.synchronize()?;
                Ok(took)
            },
            &mut || {
                by += 1;
                let (took, ()) = timed(|| {
                    // SAFETY: the kernel takes any number there.
                    unsafe { optimized.node(&nodes[0])?.set_arg_unchecked(3, Arg::value(by)) }?;
                    optimized.launch(&self.stream)
                })?;
                self.stream.synchronize()?;
                Ok(took)
            },
        )?;
        table.compare(
            (name, 1.5),
            41,
            &mut || {
                let change = || {
                    launches
                        .iter()
                        .try_for_each(|(node, launch)| graph.set_parameters(&executable, node, launch))
                };
                let (took, ()) = timed(change)?;
                executable.launch()?;
                executable.synchronize()?;
                Ok(took / CHANGED as u32)
            },
            &mut || {
                by += 1;
                let change = || {
                    nodes[..CHANGED].iter().try_for_each(|node| {
                        // SAFETY: the kernel takes any number there.
                        unsafe { optimized.node(node)?.set_arg_unchecked(3, Arg::value(by)) }
                    })
                };
                let (took, ()) = timed(change)?;
                optimized.launch(&self.stream)?;
                self.stream.synchronize()?;
                Ok(took / CHANGED as u32)
            },
        )
    }
}

/// Returns the passes to measure.
fn passes() -> Result<Optimizations> {
    let chosen = std::env::args().find_map(|argument| argument.strip_prefix("--passes=").map(str::to_owned));
    match chosen {
        Some(names) => {
            names.parse().map_err(|message: String| Error::new(gridloom::ErrorKind::InvalidArgument, message))
        }
        None => Ok(Optimizations::ALL),
    }
}

/// Finds out how many launches a round needs, and measures.
fn by_turns(
    table: &mut Table,
    row: (&str, f64),
    rounds: usize,
    baseline: &mut dyn FnMut(usize) -> Result<Duration>,
    optimized: &mut dyn FnMut(usize) -> Result<Duration>,
) -> Result<()> {
    let (one, two) = (baseline(1)?, optimized(1)?);
    let faster = one.min(two).max(Duration::from_nanos(1));
    let launches = (ROUND.as_nanos().div_ceil(faster.as_nanos()) as usize).clamp(1, MAX_LAUNCHES);
    table.compare(row, rounds, &mut || baseline(launches), &mut || optimized(launches))
}
