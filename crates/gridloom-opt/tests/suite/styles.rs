//! Kernels in the styles in which people write them, in graphs of any shape, over memory that
//! overlaps: optimised or not, with edits or without, they leave the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device, Module};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ArgValue, ConditionalForm, KernelArgs, KernelOp, Launch, MemcpyOp, MemsetOp, Operation, PointerValue,
    Test,
};
use gridloom_core::{Executable, Graph, Node, Stream};
use gridloom_opt::rewrite::KernelSource;
use gridloom_opt::{GraphOptimizer, Optimization, Optimizations};

use crate::common::{Refused, buffer, devices, read};
use crate::graphs::{FEW_GPU, GPU, Kernels, PACKED_GPU, WIDE_GPU, only, optimized_for, pointer};
use crate::random::{Random, count};

const TEXT: &str = include_str!("../kernels/styles.ptx");
/// The words that a kernel reads or writes.
const WORDS: u64 = 192;
/// Where views start in an allocation, in words. Some overlap others.
const STARTS: [u64; 5] = [0, 4, 64, 192, 384];

/// The kernels that may be neither steps nor parts of a batch, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("printed", "it prints"),
    ("weighted", "a variable of its module"),
    ("shared_through_functions", "shared memory of the module"),
];
/// The kernels that may be parts of a batch but no steps, with the reason.
const NO_STEPS: &[(&str, &str)] = &[("labeled_groups", "threads may return")];
/// The kernels that may be steps but no parts of a batch, with the reason.
const NO_BATCHES: &[(&str, &str)] = &[
    ("checked", "may stop the launch"),
    ("asserted", "may stop the launch"),
    ("asserted_between_barriers", "may stop the launch"),
];

/// `WORDS` words of an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
struct View {
    allocation: usize,
    start: u64,
}

impl View {
    fn random(random: &mut Random, allocations: usize) -> Self {
        let allocation = random.below(allocations as u64) as usize;
        View { allocation, start: STARTS[random.below(STARTS.len() as u64) as usize] }
    }

    fn is_apart(self, other: Self) -> bool {
        self.allocation != other.allocation || self.start.abs_diff(other.start) >= WORDS
    }
}

struct Stage {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    parsed: Arc<gridloom_ptx::Module>,
    kernels: Kernels,
    names: Vec<String>,
    data: Vec<Arc<dyn Allocation>>,
    flag: Arc<dyn Allocation>,
    left: Arc<dyn Allocation>,
}

impl Stage {
    fn on(device: Arc<dyn Device>) -> Self {
        let module = device.load_ptx(TEXT).unwrap();
        let parsed = Arc::new(gridloom_ptx::parse(TEXT).unwrap());
        let names = module.kernel_names();
        let bytes = 4 * (STARTS[STARTS.len() - 1] + WORDS);
        let data = (0..4).map(|_| buffer(&device, &vec![0; bytes as usize])).collect();
        let [flag, left] = [(); 2].map(|()| buffer(&device, &[0; 4]));
        let kernels = Kernels::of(device.clone());
        Stage { device, module, parsed, kernels, names, data, flag, left }
    }

    fn source(&self, name: &str) -> KernelSource {
        KernelSource::new(self.parsed.clone(), name).unwrap()
    }

    fn region(&self, view: View) -> Region {
        let whole = Region::whole(self.data[view.allocation].clone());
        Region { offset: 4 * view.start, bytes: 4 * WORDS, ..whole }
    }

    fn launch(&self, name: &str, (to, from): (View, View), by: u32, blocks: u32, threads: u32) -> Operation {
        let kernel = self.module.clone().kernel(name).unwrap();
        let places = [to, from].map(|view| self.region(view));
        let mut args: Vec<ArgValue> = Vec::new();
        for (at, place) in kernel.params().unwrap().iter().enumerate() {
            let word = if at == 2 { WORDS as u32 } else { by };
            args.push(match (place.size, at) {
                // The structure with all of them.
                (24, _) => {
                    let address = |region: &Region| match &region.base {
                        gridloom_core::memory::Base::Allocation(memory) => memory.address() + region.offset,
                        _ => unreachable!(),
                    };
                    let mut bytes: Vec<u8> =
                        places.iter().flat_map(|region| address(region).to_le_bytes()).collect();
                    bytes.extend([WORDS as u32, by].into_iter().flat_map(u32::to_le_bytes));
                    ArgValue::plain(&bytes)
                }
                (8, _) => ArgValue::Pointer(PointerValue::Region(places[at].clone())),
                (size, _) => ArgValue::plain(&word.to_le_bytes()[..size as usize]),
            });
        }
        let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
        let config =
            LaunchConfig::new(blocks, threads).shared(if name.starts_with("dynamic") { 512 } else { 0 });
        // SAFETY: each kernel gets what it takes, and memory that is large enough and outlives it.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
    }

    /// Returns the threads with which a kernel may be launched.
    fn threads(&self, name: &str, random: &mut Random) -> u32 {
        let many = [64, 32, 48, 96, 128, 7];
        let any = !self.source(name).meets() && name != "bounded" && random.one_in(3);
        if any { many[random.below(6) as usize] } else { 64 }
    }

    fn start(&self) {
        for (at, memory) in self.data.iter().enumerate() {
            let words = (0..memory.bytes() / 4).map(|word| (word as u32).wrapping_mul(2_654_435 + at as u32));
            let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
            self.device.write(&**memory, 0, &bytes).unwrap();
        }
        self.device.write(&*self.flag, 0, &1u32.to_le_bytes()).unwrap();
        self.device.write(&*self.left, 0, &3u32.to_le_bytes()).unwrap();
    }

    fn run(&self, executable: &Executable) -> Vec<Vec<u8>> {
        self.start();
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        self.data.iter().chain([&self.left]).map(|memory| read(&self.device, memory)).collect()
    }

    /// Checks that the graph leaves the same with these passes, before and after each edit.
    fn compare(&self, graph: &Graph, edits: &[Edit], name: &str) -> BTreeMap<String, usize> {
        let plain = graph.instantiate().unwrap();
        let outcomes = |executable: &Executable| {
            let mut found = vec![self.run(executable)];
            for edit in edits {
                edit.apply(executable);
                found.push(self.run(executable));
            }
            found
        };
        let expected = outcomes(&plain);
        let mut done = BTreeMap::new();
        let all = [GPU, PACKED_GPU, WIDE_GPU, FEW_GPU].map(|profile| (profile, Optimizations::ALL));
        let each = Optimization::ALL.iter().map(|&pass| (PACKED_GPU, only(pass)));
        for (profile, wanted) in all.into_iter().chain(each) {
            let executable = optimized_for(profile, graph, wanted);
            let got = outcomes(&executable);
            let report = executable.report();
            assert!(got == expected, "{name}: {wanted:?}, {profile:?}\n{report:#?}\n{}", graph.to_dot());
            for line in report.optimized {
                *done.entry(line.split(':').next().unwrap().to_owned()).or_default() += 1;
            }
        }
        done
    }

    /// Returns the nodes that come before one that writes or reads these allocations.
    fn before(last: &[Vec<Node>], uses: &[(usize, bool)]) -> Vec<Node> {
        let mut found: Vec<Node> = Vec::new();
        for &(at, writes) in uses {
            // The first is the one that wrote it, the others read it since.
            let nodes = if writes { &last[at][..] } else { &last[at][..last[at].len().min(1)] };
            for node in nodes {
                if !found.iter().any(|other| other.key() == node.key()) {
                    found.push(node.clone());
                }
            }
        }
        found
    }

    fn note(last: &mut [Vec<Node>], uses: &[(usize, bool)], node: &Node) {
        for &(at, writes) in uses {
            if writes || last[at].is_empty() {
                last[at] = vec![node.clone()];
            } else {
                last[at].push(node.clone());
            }
        }
    }

    fn fill(&self, graph: &Graph, depth: u32, count: u64, made: &mut Vec<Node>, random: &mut Random) {
        let mut last: Vec<Vec<Node>> = vec![Vec::new(); self.data.len()];
        let small = random.one_in(3);
        for _ in 0..count {
            let to = View::random(random, self.data.len());
            let from = loop {
                let from = View::random(random, self.data.len());
                if from.is_apart(to) {
                    break from;
                }
            };
            let by = random.below(1 << 20) as u32;
            let mut uses = vec![(to.allocation, true)];
            let kind = random.below(if depth < 2 { 12 } else { 10 });
            let operation = match kind {
                0 => {
                    let dst = Region { bytes: 4 * 16 * 3, ..self.region(to) };
                    // Rows, with words between them that stay.
                    let (width, height, pitch) = if random.one_in(2) { (5, 3, 64) } else { (48, 1, 0) };
                    let fill = MemsetOp { dst, value: by & 0xff, element_size: 4, width, height, pitch };
                    Some(Operation::Memset(Arc::new(fill)))
                }
                1 => {
                    uses.push((from.allocation, to.allocation == from.allocation));
                    let copy = MemcpyOp::linear(self.region(to), self.region(from), 4 * WORDS);
                    Some(Operation::Memcpy(Arc::new(copy)))
                }
                2..10 => {
                    uses.push((from.allocation, to.allocation == from.allocation));
                    let name = &self.names[random.below(self.names.len() as u64) as usize];
                    let blocks = if small { 1 } else { 1 + random.below(4) as u32 };
                    let threads = self.threads(name, random);
                    Some(self.launch(name, (to, from), by, blocks, threads))
                }
                _ => None,
            };
            let node = match operation {
                Some(operation) => {
                    let before = Self::before(&last, &uses);
                    graph.add(&before.iter().collect::<Vec<_>>(), operation).unwrap()
                }
                None => {
                    uses = (0..self.data.len()).map(|at| (at, true)).collect();
                    let before = Self::before(&last, &uses);
                    self.conditional(graph, &before, depth, made, random)
                }
            };
            uses.sort_unstable();
            uses.dedup();
            Self::note(&mut last, &uses, &node);
            made.push(node);
        }
    }

    fn conditional(
        &self,
        graph: &Graph,
        before: &[Node],
        depth: u32,
        made: &mut Vec<Node>,
        random: &mut Random,
    ) -> Node {
        let before: Vec<&Node> = before.iter().collect();
        let (form, bodies) =
            [(ConditionalForm::While, 1), (ConditionalForm::IfElse, 2), (ConditionalForm::Switch, 3)]
                [random.below(3) as usize];
        let decides = if form == ConditionalForm::While { &self.left } else { &self.flag };
        let value = random.below(4) as u32;
        let counts = form == ConditionalForm::While && random.one_in(2);
        let test = match counts {
            true => Test::Count(value.into()),
            false => Test::Value(Region::whole(decides.clone())),
        };
        let set = graph.add(&before, crate::graphs::fill(decides, value)).unwrap();
        let spec = ConditionalSpec { form, test, test_first: true, max_passes: Some(9), bodies };
        let node = graph.add_conditional(&[&set], spec).unwrap();
        for body in node.bodies().unwrap() {
            let count = 1 + random.below(4);
            self.fill(&body, depth + 1, count, made, random);
            if form == ConditionalForm::While && !counts {
                let all = body.nodes();
                let step = self.kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&self.left)]);
                body.add(&all.iter().collect::<Vec<_>>(), step).unwrap();
            }
        }
        node
    }
}

/// A change that an executable can take.
#[derive(Clone)]
enum Edit {
    Operation(Node, Operation),
    Enabled(Node, bool),
}

impl Edit {
    fn random(stage: &Stage, nodes: &[Node], random: &mut Random) -> Option<Self> {
        let node = nodes[random.below(nodes.len() as u64) as usize].clone();
        let by = random.below(1 << 20) as u32;
        let operation = match node.operation().unwrap() {
            Operation::Kernel(_) | Operation::Memset(_) | Operation::Memcpy(_) if random.one_in(4) => {
                return Some(Edit::Enabled(node, random.one_in(2)));
            }
            Operation::Kernel(launch) => {
                let mut args = launch.args().clone();
                let place = *args.layout.last().unwrap();
                // The last bytes: also of the structure with all arguments.
                let size = (place.size as usize).min(4);
                let start = (place.offset + place.size) as usize - size;
                args.bytes[start..start + size].copy_from_slice(&by.to_le_bytes()[..size]);
                // Other memory of the same allocations, so that the order of nodes still fits.
                for pointer in args.pointers.iter_mut().take(1) {
                    let PointerValue::Region(region) = &mut pointer.value else { continue };
                    let start = STARTS[random.below(5) as usize];
                    let old = region.offset;
                    region.offset = 4 * start;
                    let other = launch.args().pointers.get(1).map(|other| other.value.clone());
                    if let Some(PointerValue::Region(other)) = other {
                        let apart = region.offset.abs_diff(other.offset) >= 4 * WORDS;
                        if !same_memory(region, &other) || apart {
                            let gridloom_core::memory::Base::Allocation(memory) = &region.base else {
                                continue;
                            };
                            let address = memory.address() + region.offset;
                            let at = args.layout[pointer.index as usize].offset as usize;
                            args.bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
                            continue;
                        }
                    }
                    region.offset = old;
                }
                let config = launch.config();
                let blocks = if random.one_in(3) { 1 + random.below(4) as u32 } else { config.grid.x };
                let config = LaunchConfig::new(blocks, config.block).shared(config.shared);
                // SAFETY: the same kernel on memory that is as large.
                let launch = unsafe { launch.with_args(args) }.with_config(config);
                Operation::Kernel(Launch::new(launch))
            }
            Operation::Memset(fill) => {
                Operation::Memset(Arc::new(MemsetOp { value: by & 0xff, ..(*fill).clone() }))
            }
            Operation::Conditional(conditional) if matches!(conditional.test, Test::Count(_)) => {
                let mut changed = (*conditional).clone();
                changed.test = Test::Count(random.below(5));
                Operation::Conditional(Arc::new(changed))
            }
            _ => return None,
        };
        let _ = stage;
        Some(Edit::Operation(node, operation))
    }

    fn apply(&self, executable: &Executable) {
        match self {
            Edit::Operation(node, operation) => {
                executable.set_operations([(node, operation.clone())]).unwrap();
            }
            Edit::Enabled(node, enabled) => executable.node(node).unwrap().set_enabled(*enabled).unwrap(),
        }
    }
}

fn same_memory(one: &Region, other: &Region) -> bool {
    use gridloom_core::memory::Base;
    matches!((&one.base, &other.base), (Base::Allocation(a), Base::Allocation(b)) if a.address() == b.address())
}

#[test]
fn kernels_in_any_style_are_refused_exactly_where_they_cannot_be_moved() {
    Refused { anywhere: REFUSED, in_batches: NO_BATCHES, in_steps: NO_STEPS }.check(TEXT);
}

#[test]
fn each_kernel_in_any_style_in_chains_fans_and_loops_leaves_the_same() {
    for device in devices() {
        let stage = Stage::on(device);
        let view = |allocation, start| View { allocation, start };
        for name in &stage.names {
            for blocks in [1, 3] {
                // There and back, over memory that overlaps, and on itself.
                let chain = Graph::new(&stage.device);
                let mut last = chain.add(&[], Operation::Empty).unwrap();
                for (by, views) in
                    [(view(0, 0), view(1, 0)), (view(1, 4), view(0, 0)), (view(0, 192), view(0, 0))]
                        .iter()
                        .enumerate()
                {
                    last = last.add(stage.launch(name, *views, 3 + by as u32, blocks, 64)).unwrap();
                }
                stage.compare(&chain, &[], &format!("a chain of {name}, {blocks} blocks"));
                let fan = Graph::new(&stage.device);
                for at in 0..3 {
                    let views = (view(at, 0), view(3, 64 * (at as u64 % 2)));
                    fan.add(&[], stage.launch(name, views, at as u32 + 1, blocks, 64)).unwrap();
                }
                stage.compare(&fan, &[], &format!("a fan of {name}, {blocks} blocks"));
                let repeated = Graph::new(&stage.device);
                let spec = ConditionalSpec {
                    form: ConditionalForm::While,
                    test: Test::Count(3),
                    test_first: true,
                    max_passes: None,
                    bodies: 1,
                };
                let node = repeated.add_conditional(&[], spec).unwrap();
                let body = node.bodies().unwrap().remove(0);
                let one = body.add(&[], stage.launch(name, (view(0, 0), view(1, 0)), 5, blocks, 64)).unwrap();
                one.add(stage.launch(name, (view(1, 0), view(0, 0)), 6, blocks, 64)).unwrap();
                stage.compare(&repeated, &[], &format!("a loop of {name}, {blocks} blocks"));
            }
        }
    }
}

#[test]
fn random_graphs_of_kernels_in_any_style_leave_the_same_before_and_after_edits() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for device in devices() {
        let stage = Stage::on(device);
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 12) {
            let graph = Graph::new(&stage.device);
            let mut random = Random::new(seed);
            let (count, mut nodes) = (3 + random.below(12), Vec::new());
            stage.fill(&graph, 0, count, &mut nodes, &mut random);
            let edits: Vec<Edit> =
                (0..8).filter_map(|_| Edit::random(&stage, &nodes, &mut random)).take(3).collect();
            for (pass, times) in stage.compare(&graph, &edits, &format!("seed {seed}")) {
                *done.entry(pass).or_default() += times;
            }
        }
        assert!(first > 0 || done.len() > 4, "{done:?}");
    }
}

#[test]
fn random_graphs_of_kernels_in_any_style_leave_the_same_while_they_are_optimised() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for device in devices() {
        let stage = Stage::on(device);
        for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 12) {
            let graph = Graph::new(&stage.device);
            let mut random = Random::new(seed + 5000);
            let (count, mut nodes) = (3 + random.below(9), Vec::new());
            stage.fill(&graph, 0, count, &mut nodes, &mut random);
            let plain = graph.instantiate().unwrap();
            let optimizer = GraphOptimizer::automatic(Optimizations::ALL).after(1).with_profile(PACKED_GPU);
            let options =
                InstantiateOptions { optimizer: Some(Arc::new(optimizer)), ..InstantiateOptions::default() };
            let executable = graph.instantiate_with(&options).unwrap();
            for round in 0..10 {
                if random.one_in(4)
                    && let Some(edit) = Edit::random(&stage, &nodes, &mut random)
                {
                    edit.apply(&plain);
                    edit.apply(&executable);
                }
                let (expected, got) = (stage.run(&plain), stage.run(&executable));
                assert!(
                    got == expected,
                    "seed {seed}, round {round}\n{:#?}\n{}",
                    executable.report(),
                    graph.to_dot()
                );
                if random.one_in(2) {
                    std::thread::sleep(std::time::Duration::from_millis(random.below(10)));
                }
            }
        }
    }
}
