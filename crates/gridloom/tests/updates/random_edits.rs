//! Random graphs under random edits: an executable that took them all computes what one made anew
//! computes.
//!
//! `GRIDLOOM_RANDOM_EDITS=10000` tries more graphs; `GRIDLOOM_RANDOM_SEED=7` tries the one with
//! that seed; `GRIDLOOM_RANDOM_TRACE=1` names each seed before it is tried.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gridloom::prelude::*;
use gridloom::{Optimization, Optimizations};

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, Random, for_each_device, is_cpu, refused};

/// Graphs that a plain test run tries on each device.
const DEFAULT_GRAPHS: u64 = 200;
/// Edits of each graph.
const ROUNDS: usize = 12;
/// Buffers of a lane, and integers in each.
const BUFFERS: usize = 3;
const LEN: usize = 6;

/// What can be changed about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Kernel,
    Fill,
    Copy,
    Call,
    Repeat,
    Choice,
}

/// A node that edits may hit. It touches the buffers of its lane only, so lanes may run at once.
#[derive(Clone, Debug)]
struct Target {
    node: Node,
    class: Class,
    lane: usize,
}

struct World {
    kernels: GraphKernels,
    lanes: Vec<Vec<Buffer<i32>>>,
    called: Arc<AtomicI64>,
}

/// Everything that a launch leaves behind.
type Traces = (Vec<Vec<i32>>, i64);

/// A node that can be given other parameters, of a definition or of an executable: the same ones
/// for the same random numbers.
trait Edited {
    fn edit(&self, world: &World, class: Class, lane: usize, random: Random) -> Result<()>;
}

macro_rules! edited {
    ($node:ty) => {
        impl Edited for $node {
            fn edit(&self, world: &World, class: Class, lane: usize, mut random: Random) -> Result<()> {
                let random = &mut random;
                match class {
                    Class::Kernel => {
                        let kernels = &world.kernels;
                        let (out, x) = (world.buffer(lane, random), world.buffer(lane, random));
                        let n = random.between(1, LEN as i64) as u32;
                        let [a, b] = [random.between(-3, 3) as i32, random.between(-9, 9) as i32];
                        match random.below(4) {
                            0 => self.set_kernel(&kernels.increase, (out, n, a)),
                            1 => self.set_kernel(&kernels.affine, (out, x, n, a, b)),
                            2 => self.set_kernel(&kernels.mix, (out, x, n)),
                            _ => self.set_config(LaunchConfig::new(n, 2)),
                        }
                    }
                    Class::Fill => {
                        let at = random.below(LEN);
                        let dst = world.buffer(lane, random).slice(at..)?;
                        match random.below(3) {
                            0 => self.set_memset(&dst, random.u32() as u8),
                            1 => self.set_memset(&dst, random.u32() as u16),
                            _ => self.set_memset(&dst, random.i32()),
                        }
                    }
                    Class::Copy => {
                        let (dst, src) = world.pair(lane, random);
                        let len = 1 + random.below(LEN);
                        if random.one_in(3) {
                            self.set_memcpy(&dst.slice(..len)?, &random.i32s(len))
                        } else {
                            self.set_memcpy(&dst.slice(..len)?, &src.slice(LEN - len..)?)
                        }
                    }
                    Class::Call => self.set_callback(world.adder(random)),
                    Class::Repeat => {
                        self.set_passes(random.below(4) as u64)?;
                        self.set_max_passes(if random.one_in(3) {
                            Some(1 + random.below(3) as u64)
                        } else {
                            None
                        })
                    }
                    Class::Choice => self.set_tested(&world.buffer(lane, random).slice(..1)?),
                }
            }
        }
    };
}
edited!(Node);
edited!(ExecutableNode<'_>);

impl World {
    fn new(device: &Device) -> Result<Self> {
        let kernels = GraphKernels::new(device)?;
        let lane = || (0..BUFFERS).map(|_| kernels.buffer(&[0; LEN])).collect::<Result<_>>();
        let lanes = (0..3).map(|_| lane()).collect::<Result<_>>()?;
        Ok(World { lanes, called: Arc::default(), kernels })
    }

    fn buffer(&self, lane: usize, random: &mut Random) -> &Buffer<i32> {
        &self.lanes[lane][random.below(BUFFERS)]
    }

    /// Two different buffers of a lane.
    fn pair(&self, lane: usize, random: &mut Random) -> (&Buffer<i32>, &Buffer<i32>) {
        let first = random.below(BUFFERS);
        let second = (first + 1 + random.below(BUFFERS - 1)) % BUFFERS;
        (&self.lanes[lane][first], &self.lanes[lane][second])
    }

    fn adder(&self, random: &mut Random) -> impl FnMut() + Send + 'static {
        let (called, amount) = (self.called.clone(), random.between(1, 1000));
        move || {
            called.fetch_add(amount, Ordering::SeqCst);
        }
    }

    /// Adds a chain of nodes to a graph.
    fn chain(
        &self,
        graph: &Graph,
        lane: usize,
        depth: usize,
        targets: &mut Vec<Target>,
        random: &mut Random,
    ) -> Result<()> {
        let mut last = graph.empty()?;
        for _ in 0..1 + random.below(4) {
            let kinds = if depth == 0 { 4 } else { 7 };
            let (node, class) = match random.below(kinds) {
                0 => {
                    let node = last.launch(
                        &self.kernels.increase,
                        LaunchConfig::new(2, 3),
                        (self.buffer(lane, random), LEN as u32, 1),
                    )?;
                    (node, Class::Kernel)
                }
                1 => (last.memset(self.buffer(lane, random), 1i32)?, Class::Fill),
                2 => {
                    let (dst, src) = self.pair(lane, random);
                    (last.memcpy(dst, src)?, Class::Copy)
                }
                3 => (last.callback(self.adder(random))?, Class::Call),
                4 => {
                    let repeat = last.repeat(random.below(3) as u64)?;
                    self.chain(&repeat.body(), lane, depth - 1, targets, random)?;
                    ((*repeat).clone(), Class::Repeat)
                }
                5 => {
                    let choice = last.if_else_nonzero(&self.buffer(lane, random).slice(..1)?)?;
                    self.chain(&choice.then_body(), lane, depth - 1, targets, random)?;
                    self.chain(&choice.else_body(), lane, depth - 1, targets, random)?;
                    ((*choice).clone(), Class::Choice)
                }
                _ => {
                    last = last.embed(&Graph::new(&self.kernels.device))?;
                    self.chain(&last.bodies()?[0], lane, depth - 1, targets, random)?;
                    continue;
                }
            };
            targets.push(Target { node: node.clone(), class, lane });
            last = node;
        }
        Ok(())
    }

    /// Launches from buffers that always hold the same at first, and does something before it
    /// waits.
    fn run(&self, executable: &Executable, meanwhile: impl FnOnce() -> Result<()>) -> Result<Traces> {
        for (at, buffer) in self.lanes.iter().flatten().enumerate() {
            buffer.write(&[at as i32 - 4, 1, 2, 3, 4, 5])?;
        }
        self.called.store(0, Ordering::SeqCst);
        let gate = Gate::closed();
        let opens = OpenOnDrop(&gate);
        self.kernels.stream.callback(gate.waiter())?;
        executable.launch(&self.kernels.stream)?;
        if !is_cpu(&self.kernels.device) {
            // Changes that compile anew, stage bytes or come to a loop that the host drives wait
            // for the device, so it must be able to go on.
            gate.open();
        }
        meanwhile()?;
        drop(opens);
        self.kernels.stream.synchronize()?;
        let buffers = self.lanes.iter().flatten().map(Buffer::to_vec).collect::<Result<_>>()?;
        Ok((buffers, self.called.load(Ordering::SeqCst)))
    }

    /// One graph and all its edits.
    fn check(&self, seed: u64) -> Result<()> {
        let mut random = Random::new(seed);
        let graph = Graph::new(&self.kernels.device);
        let mut targets = Vec::new();
        for lane in 0..1 + random.below(self.lanes.len()) {
            self.chain(&graph, lane, 2, &mut targets, &mut random)?;
        }
        let conditional_mode = if random.one_in(3) { ConditionalMode::Hosted } else { ConditionalMode::Auto };
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        let options = match seed % 3 {
            0 => options.optimize(Optimizations::ALL),
            // Every node stays as it is, but the optimiser stands between.
            1 => options.optimize(Optimizations::of(&[Optimization::Edges])),
            _ => options,
        };
        let executable = graph.instantiate_with(&options)?;
        if targets.is_empty() {
            return Ok(());
        }
        let mut disabled = Vec::new();
        let mut expected = self.run(&graph.instantiate_with(&options)?, || Ok(()))?;
        for round in 0..ROUNDS {
            // The change comes while the launch is in flight, which goes on as it was enqueued.
            let change = || self.change(&graph, &executable, &targets, &mut disabled, &mut random);
            let traces = self.run(&executable, change)?;
            assert_eq!(traces, expected, "seed {seed}, round {round}, in flight");

            let fresh = graph.instantiate_with(&options)?;
            for node in &disabled {
                fresh.node(node)?.set_enabled(false)?;
            }
            expected = self.run(&fresh, || Ok(()))?;
            let traces = self.run(&executable, || Ok(()))?;
            assert_eq!(traces, expected, "seed {seed}, round {round}, after the change");
        }
        Ok(())
    }

    /// Changes graph and executable in the same way.
    fn change(
        &self,
        graph: &Graph,
        executable: &Executable,
        targets: &[Target],
        disabled: &mut Vec<Node>,
        random: &mut Random,
    ) -> Result<()> {
        let edits: Vec<(&Target, Random)> = (0..1 + random.below(4))
            .map(|_| (&targets[random.below(targets.len())], Random::new(random.u64())))
            .collect();
        let edit_graph = || {
            let mut each = edits.iter();
            each.try_for_each(|(target, numbers)| {
                target.node.edit(self, target.class, target.lane, numbers.clone())
            })
        };
        let edit_executable = |other: u64| {
            let mut each = edits.iter();
            each.try_for_each(|(target, numbers)| {
                let numbers = Random::new(numbers.clone().u64() ^ other);
                executable.node(&target.node)?.edit(self, target.class, target.lane, numbers)
            })
        };
        match random.below(6) {
            // Node by node, in both.
            0 | 1 => {
                for (target, numbers) in &edits {
                    target.node.edit(self, target.class, target.lane, numbers.clone())?;
                    executable.node(&target.node)?.set_operation(target.node.operation()?)?;
                }
                Ok(())
            }
            // The graph, and then the executable as a whole.
            2 => {
                edit_graph()?;
                executable.update(graph)
            }
            // From a clone of the graph, which is gone afterwards.
            3 => {
                edit_graph()?;
                executable.update(&graph.deep_clone()?.0)
            }
            // The executable goes astray and is brought back, past an update that fails.
            4 => {
                edit_executable(random.u64())?;
                let longer = graph.deep_clone()?.0;
                longer.empty()?;
                refused(executable.update(&longer), ErrorKind::TopologyMismatch, &[]);
                executable.update(graph)
            }
            _ => {
                for (target, _) in edits {
                    if matches!(target.class, Class::Kernel | Class::Fill | Class::Copy) {
                        let enabled = disabled.contains(&target.node);
                        executable.node(&target.node)?.set_enabled(enabled)?;
                        if enabled {
                            disabled.retain(|node| *node != target.node);
                        } else {
                            disabled.push(target.node.clone());
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

#[test]
fn an_executable_that_took_all_edits_computes_what_a_new_one_does() {
    let trace = variable("GRIDLOOM_RANDOM_TRACE").is_some();
    let seeds = match variable("GRIDLOOM_RANDOM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("GRIDLOOM_RANDOM_EDITS").unwrap_or(DEFAULT_GRAPHS),
    };
    for_each_device(|device| {
        let world = World::new(device)?;
        for seed in seeds.clone() {
            if trace {
                // A direct write: the harness shows what it captured only after the end.
                let _ = writeln!(std::io::stderr(), "seed {seed} on {}", device.name());
            }
            world.check(seed).map_err(|error| {
                error.context(format_args!("run it alone with GRIDLOOM_RANDOM_SEED={seed}"))
            })?;
        }
        Ok(())
    });
}
