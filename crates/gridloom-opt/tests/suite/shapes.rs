//! Kernels from a compiler, in blocks and grids of any shape, leave the same bytes.

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device, Module};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, KernelArgs, KernelOp, Launch, Operation, Test};
use gridloom_core::{Executable, Graph, Node, Stream};
use gridloom_opt::Optimizations;

use crate::common::{Refused, buffer, devices, read};
use crate::graphs::{GPU, PACKED_GPU, WIDE_GPU, fill, optimized_for, pointer, value};
use crate::random::{Random, count};

const TEXT: &str = include_str!("../kernels/shapes.ptx");
/// The words of an allocation: those of the most threads of a launch.
const WORDS: u32 = 64 * 3;

/// Grids and blocks. All blocks have 64 threads.
const SHAPES: [([u32; 3], [u32; 3]); 7] = [
    ([1, 1, 1], [64, 1, 1]),
    ([3, 1, 1], [64, 1, 1]),
    ([2, 1, 1], [64, 1, 1]),
    ([1, 3, 1], [8, 8, 1]),
    ([1, 1, 2], [4, 4, 4]),
    ([3, 1, 1], [32, 2, 1]),
    ([1, 1, 1], [16, 2, 2]),
];

/// The kernels that may be neither steps nor parts of a batch, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("number_of_the_warp", "%warpid"),
    ("size_of_shared", "%dynamic_smem_size"),
    ("size_of_all_shared", "%total_smem_size"),
    ("own_device_allocation", "the device's heap"),
    ("static_of_a_function", "variable of its module"),
];

/// The kernels that may be parts of a batch but no steps, with the reason.
const NO_STEPS: &[(&str, &str)] = &[
    ("functions_that_exit", "ends threads"),
    ("halves_of_a_warp", "threads may return"),
    ("producer_and_consumer", "arrives at barriers without waiting"),
    ("number_15", "or one is 15"),
];

/// The kernels that may be steps but no parts of a batch, with the reason.
const NO_BATCHES: &[(&str, &str)] = &[("functions_that_read_places", "reads the index of the block")];

struct Stage {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    names: Vec<String>,
    data: Vec<Arc<dyn Allocation>>,
    flag: Arc<dyn Allocation>,
}

impl Stage {
    fn on(device: Arc<dyn Device>) -> Self {
        let module = device.load_ptx(TEXT).unwrap();
        let mut names = module.kernel_names();
        names.retain(|name| name != "own_device_allocation");
        let data = (0..4).map(|_| buffer(&device, &[0; 4 * WORDS as usize])).collect();
        let flag = buffer(&device, &[0; 4]);
        Stage { device, module, names, data, flag }
    }

    fn launch(&self, name: &str, data: usize, by: u32, shape: usize) -> Operation {
        let kernel = self.module.clone().kernel(name).unwrap();
        let args = vec![pointer(&self.data[data]), value(by)];
        let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
        let (grid, block) = SHAPES[shape];
        let shared = if name.starts_with("dynamic") { 512 } else { 0 };
        let config = LaunchConfig::new(Dim3::from(grid), Dim3::from(block)).shared(shared);
        // SAFETY: each kernel gets what it takes, and memory that is large enough and outlives it.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
    }

    fn run(&self, executable: &Executable) -> Vec<Vec<u8>> {
        for (at, memory) in self.data.iter().enumerate() {
            let words = (0..WORDS).flat_map(|word| (word * 2_654_435 + at as u32 * 77).to_le_bytes());
            self.device.write(&**memory, 0, &words.collect::<Vec<u8>>()).unwrap();
        }
        self.device.write(&*self.flag, 0, &1u32.to_le_bytes()).unwrap();
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        self.data.iter().map(|memory| read(&self.device, memory)).collect()
    }

    fn compare(&self, graph: &Graph, name: &str) -> Vec<String> {
        let expected = self.run(&graph.instantiate().unwrap());
        let mut done = Vec::new();
        for profile in [GPU, PACKED_GPU, WIDE_GPU] {
            let executable = optimized_for(profile, graph, Optimizations::ALL);
            let got = self.run(&executable);
            let report = executable.report();
            assert!(got == expected, "{name}: {profile:?}\n{report:#?}");
            done.extend(report.optimized.iter().map(|line| line.split(':').next().unwrap().to_owned()));
        }
        done
    }

    /// Adds random launches in a row, and sometimes a loop or a branch around some.
    fn fill(&self, graph: &Graph, depth: u32, random: &mut Random) {
        let mut last: Vec<Option<Node>> = vec![None; self.data.len()];
        for _ in 0..2 + random.below(5) {
            let at = random.below(2 + 2 * u64::from(depth == 0)) as usize;
            let node = if depth < 2 && random.one_in(5) {
                let after: Vec<Node> = last.iter().flatten().cloned().collect();
                let after: Vec<&Node> = after.iter().collect();
                let (form, bodies) =
                    [(ConditionalForm::While, 1), (ConditionalForm::IfElse, 2), (ConditionalForm::Switch, 2)]
                        [random.below(3) as usize];
                let test = match form {
                    ConditionalForm::While => Test::Count(random.below(4)),
                    _ => Test::Value(Region::whole(self.flag.clone())),
                };
                let before = match form {
                    ConditionalForm::While => None,
                    _ => Some(graph.add(&after, fill(&self.flag, random.below(3) as u32)).unwrap()),
                };
                let after: Vec<&Node> = after.into_iter().chain(&before).collect();
                let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies };
                let node = graph.add_conditional(&after, spec).unwrap();
                for body in node.bodies().unwrap() {
                    self.fill(&body, depth + 1, random);
                }
                last.fill(Some(node.clone()));
                node
            } else {
                let name = &self.names[random.below(self.names.len() as u64) as usize];
                let shapes = if random.one_in(2) { 3 } else { 7 };
                let shape = random.below(shapes) as usize;
                let launch = self.launch(name, at, 1 + random.below(9) as u32, shape);
                let after: Vec<&Node> = last[at].iter().collect();
                graph.add(&after, launch).unwrap()
            };
            last[at] = Some(node);
        }
    }
}

#[test]
fn kernels_of_any_shape_are_refused_exactly_where_they_cannot_be_moved() {
    Refused { anywhere: REFUSED, in_batches: NO_BATCHES, in_steps: NO_STEPS }.check(TEXT);
}

#[test]
fn each_kernel_of_any_shape_in_a_chain_a_fan_and_a_loop_leaves_the_same() {
    for device in devices() {
        let stage = Stage::on(device);
        for name in &stage.names {
            for (shape, extents) in SHAPES.iter().enumerate() {
                let chain = Graph::new(&stage.device);
                let mut last = chain.add(&[], stage.launch(name, 0, 1, shape)).unwrap();
                for by in 2..5 {
                    let other = if by == 3 { SHAPES.len() - 1 - shape } else { shape };
                    last = last.add(stage.launch(name, 0, by, other)).unwrap();
                }
                stage.compare(&chain, &format!("a chain of {name}, {extents:?}"));
                let fan = Graph::new(&stage.device);
                for data in 0..4 {
                    fan.add(&[], stage.launch(name, data, data as u32 + 1, shape)).unwrap();
                }
                stage.compare(&fan, &format!("a fan of {name}, {extents:?}"));
            }
        }
    }
}

#[test]
fn random_graphs_of_kernels_of_any_shape_leave_the_same() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for device in devices() {
        let stage = Stage::on(device);
        for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 20) {
            let graph = Graph::new(&stage.device);
            stage.fill(&graph, 0, &mut Random::new(seed));
            stage.compare(&graph, &format!("seed {seed}\n{}", graph.to_dot()));
        }
    }
}
