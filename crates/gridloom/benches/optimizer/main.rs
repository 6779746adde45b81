//! What the optimiser makes of a graph: the same graph, optimised and not, by turns on one stream
//! of one GPU.
//!
//! Not optimised, the driver runs a CUDA graph with a node for each node (`cuda_graphs` compares
//! that with bare driver calls). Each number is a median; each pair of results is compared bit for
//! bit. Without a GPU there is nothing to measure, and one line says so. `--cpu` measures the CPU
//! device.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use gridloom::Optimizations;
use gridloom::prelude::*;

const KERNELS: &str = include_str!("kernels.ptx");
/// Kernels of a chain or fan.
const NODES: usize = 1_000;
/// Threads of a block.
const THREADS: u32 = 256;
/// Passes of a loop.
const PASSES: u32 = 1_000;
/// Pairs of a kernel and a fill.
const PAIRS: usize = 200;
const ROUNDS: usize = 21;

struct Work {
    device: Device,
    stream: Stream,
    neighbour: Kernel<(PtrMut<u32>, Ptr<u32>, Len<u32>, u32)>,
    countdown: Kernel<(ConditionHandle, PtrMut<u32>, u32)>,
}

fn main() -> Result<()> {
    // Cargo passes `--bench`, and `cargo test` nothing.
    let arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let device = if arguments.iter().any(|argument| argument == "--cpu") {
        Device::cpu()?
    } else {
        match Device::cuda(0) {
            Ok(device) => device,
            Err(error) => {
                println!("no GPU to measure the optimiser on: {error}");
                return Ok(());
            }
        }
    };
    let module = device.load_ptx(KERNELS)?;
    // SAFETY: neighbour reads and writes n words of its arrays; countdown one word.
    let (neighbour, countdown) = unsafe { (module.kernel("neighbour")?, module.kernel("countdown")?) };
    let work = Work { stream: device.stream()?, device, neighbour, countdown };
    println!("{}\n", work.device.name());
    println!("| work | not optimised µs | optimised µs | ratio |\n|---|---|---|---|");
    for blocks in [1, 16, 132] {
        work.compare(&format!("chain of {NODES} kernels of {blocks} blocks"), |work| work.chain(blocks))?;
    }
    work.compare(&format!("fan of {NODES} kernels of 1 block"), Work::fan)?;
    work.compare(&format!("{PAIRS} pairs of a kernel and a 1 KB fill"), Work::fills)?;
    for kernels in [1, 9] {
        work.compare(&format!("loop of {PASSES} passes, {kernels} kernels of 1 block"), |work| {
            work.repeat(kernels)
        })?;
    }
    Ok(())
}

impl Work {
    fn buffers(&self, blocks: u32) -> Result<[Buffer<u32>; 2]> {
        let words: Vec<u32> = (0..blocks * THREADS).collect();
        Ok([self.device.buffer_from(&words)?, self.device.buffer_from(&words)?])
    }

    fn chain(&self, blocks: u32) -> Result<(Graph, Vec<Buffer<u32>>)> {
        let data = self.buffers(blocks)?;
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(blocks, THREADS);
        let args = |index: usize| (&data[(index + 1) % 2], &data[index % 2], blocks * THREADS, index as u32);
        let mut last = graph.launch(&self.neighbour, config, args(0))?;
        for index in 1..NODES {
            last = last.launch(&self.neighbour, config, args(index))?;
        }
        Ok((graph, data.into()))
    }

    fn fan(&self) -> Result<(Graph, Vec<Buffer<u32>>)> {
        let [from, _] = self.buffers(1)?;
        let graph = Graph::new(&self.device);
        let mut data = vec![from];
        for index in 0..NODES {
            let to = self.device.buffer_from(&[0; THREADS as usize])?;
            graph.launch(
                &self.neighbour,
                LaunchConfig::new(1, THREADS),
                (&to, &data[0], THREADS, index as u32),
            )?;
            data.push(to);
        }
        Ok((graph, data))
    }

    fn fills(&self) -> Result<(Graph, Vec<Buffer<u32>>)> {
        let data = self.buffers(132)?;
        let cleared = self.device.buffer_from(&[1u32; 256])?;
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(132, THREADS);
        let mut last = graph.memset(&cleared, 7u32)?;
        for index in 0..PAIRS {
            let args = (&data[(index + 1) % 2], &data[index % 2], 132 * THREADS, index as u32);
            last = last.launch(&self.neighbour, config, args)?.memset(&cleared, index as u32)?;
        }
        let mut data: Vec<Buffer<u32>> = data.into();
        data.push(cleared);
        Ok((graph, data))
    }

    fn repeat(&self, kernels: usize) -> Result<(Graph, Vec<Buffer<u32>>)> {
        let data = self.buffers(1)?;
        let left = self.device.buffer_from(&[PASSES])?;
        let graph = Graph::new(&self.device);
        let again = graph.condition(1)?;
        let repeat = graph.while_loop(&again)?;
        let body = repeat.body();
        let mut last =
            body.launch(&self.countdown, LaunchConfig::new(1, THREADS), (&again, &left, PASSES))?;
        for index in 1..kernels {
            let args = (&data[(index + 1) % 2], &data[index % 2], THREADS, index as u32);
            last = last.launch(&self.neighbour, LaunchConfig::new(1, THREADS), args)?;
        }
        let mut data: Vec<Buffer<u32>> = data.into();
        data.push(left);
        Ok((graph, data))
    }

    /// Measures a graph in both forms, and compares what they leave.
    fn compare(&self, name: &str, make: impl Fn(&Self) -> Result<(Graph, Vec<Buffer<u32>>)>) -> Result<()> {
        let (plain, plain_data) = make(self)?;
        let (other, other_data) = make(self)?;
        let plain = plain.instantiate()?;
        let optimized = other.instantiate_with(&InstantiateOptions::new().optimize(Optimizations::ALL))?;
        let (mut slow, mut fast, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (one, two) = (self.timed(&plain)?, self.timed(&optimized)?);
            ratios.push(two.as_secs_f64() / one.as_secs_f64());
            slow.push(one.as_secs_f64() * 1e6);
            fast.push(two.as_secs_f64() * 1e6);
        }
        for (plain, optimized) in plain_data.iter().zip(&other_data) {
            assert_eq!(plain.to_vec()?, optimized.to_vec()?, "{name}: results differ");
        }
        println!("| {name} | {:.1} | {:.1} | {:.3} |", median(slow), median(fast), median(ratios));
        Ok(())
    }

    fn timed(&self, executable: &Executable) -> Result<Duration> {
        self.stream.synchronize()?;
        let start = Instant::now();
        executable.launch(&self.stream)?;
        self.stream.synchronize()?;
        Ok(start.elapsed())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
