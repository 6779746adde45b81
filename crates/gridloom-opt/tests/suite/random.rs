//! Random graphs leave the same bytes with and without the optimiser, also after random edits.

use std::sync::Arc;

use gridloom_core::backend::Allocation;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ArgValue, ConditionalForm, Launch, MemsetOp, NodeKind, Operation, PointerValue, Test,
};
use gridloom_core::{Executable, Graph, Node};
use gridloom_opt::{Optimization, Optimizations};

use crate::automatic::automatic;
use crate::graphs::{
    FEW_GPU, GPU, Kernels, PACKED_GPU, WIDE_GPU, copy, fill, only, optimized_for, pointer, value,
};

/// A small generator of random numbers, the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What a launch leaves in memory, and the passes of all conditionals.
type Outcome = (Vec<Vec<u32>>, Vec<u64>);

/// A random graph over a few buffers. A node comes after every node that used one of its buffers,
/// so that there is one result.
struct Program<'a> {
    kernels: &'a Kernels,
    root: Graph,
    data: Vec<Arc<dyn Allocation>>,
    /// Words that decide, whose final values count too.
    flags: Vec<Arc<dyn Allocation>>,
    nodes: Vec<Node>,
    conditionals: Vec<Node>,
    number: u32,
}

impl<'a> Program<'a> {
    fn new(kernels: &'a Kernels, seed: u64) -> Self {
        let data = (0..4).map(|_| kernels.words(&[0; 96])).collect();
        let root = Graph::new(&kernels.device);
        let (flags, nodes, conditionals) = (Vec::new(), Vec::new(), Vec::new());
        let mut program = Program { kernels, root, data, flags, nodes, conditionals, number: 0 };
        let mut random = Random::new(seed);
        let (graph, count) = (program.root.clone(), 3 + random.below(14));
        let one_block = random.one_in(3);
        program.fill(&graph, &[0, 1, 2, 3], count, 0, one_block, &mut random);
        program
    }

    /// Adds nodes to a graph that use these buffers.
    fn fill(
        &mut self,
        graph: &Graph,
        used: &[usize],
        count: u64,
        depth: u32,
        one_block: bool,
        random: &mut Random,
    ) {
        let mut last: Vec<Option<Node>> = vec![None; self.data.len()];
        for _ in 0..count {
            self.number += 1;
            let number = self.number;
            let a = used[random.below(used.len() as u64) as usize];
            let b = used[random.below(used.len() as u64) as usize];
            let blocks = if one_block { 1 } else { [1, 1, 2, 3][random.below(4) as usize] };
            let kind = random.below(if depth < 3 { 13 } else { 8 });
            let uses: Vec<usize> = if kind >= 6 && a != b { vec![a, b] } else { vec![a] };
            let after: Vec<Node> = uses.iter().filter_map(|&at| last[at].clone()).collect();
            let after: Vec<&Node> = after.iter().collect();
            let data = &self.data;
            let node = match kind {
                5 => graph.add(&after, fill(&data[a], number)).unwrap(),
                6 if a != b => graph.add(&after, copy(&data[a], &data[b])).unwrap(),
                7 => graph.add(&after, Operation::Empty).unwrap(),
                8 | 9 => self.repeat(graph, &after, &uses, depth, one_block, random),
                10..=12 => self.branch(graph, &after, &uses, depth, one_block, random),
                _ => {
                    let threads = if random.one_in(4) { 16 } else { 32 };
                    graph.add(&after, self.kernels.mix(&data[a], number, blocks, threads)).unwrap()
                }
            };
            for at in uses {
                last[at] = Some(node.clone());
            }
            self.nodes.push(node);
        }
    }

    fn flag(&mut self, start: u32) -> Arc<dyn Allocation> {
        let flag = self.kernels.words(&[start]);
        self.flags.push(flag.clone());
        flag
    }

    fn conditional(&mut self, graph: &Graph, after: &[&Node], spec: ConditionalSpec) -> Node {
        let node = graph.add_conditional(after, spec).unwrap();
        self.conditionals.push(node.clone());
        node
    }

    fn repeat(
        &mut self,
        graph: &Graph,
        after: &[&Node],
        uses: &[usize],
        depth: u32,
        one_block: bool,
        random: &mut Random,
    ) -> Node {
        let passes = random.below(7) as u32;
        let test_first = !random.one_in(3);
        let max_passes = random.one_in(4).then(|| random.below(40));
        let left = self.flag(0);
        let region = Region::whole(left.clone());
        // How often it repeats is set before it, in every launch and at every execution.
        let set = graph.add(after, fill(&left, passes.max(1))).unwrap();
        let kernels = self.kernels;
        let kind = random.below(3);
        let mut condition = None;
        let test = match kind {
            0 => Test::Count([passes.into(), 40][usize::from(random.one_in(4))]),
            1 => Test::Value(region),
            _ => {
                let made = self.root.condition(Some(u32::from(passes > 0)));
                condition = Some(made.clone());
                Test::Condition(made.key())
            }
        };
        // Inside another conditional, a condition is 0 from its first execution on.
        let spec = ConditionalSpec { form: ConditionalForm::While, test, test_first, max_passes, bodies: 1 };
        let node = self.conditional(graph, &[&set], spec);
        let body = node.bodies().unwrap().remove(0);
        let step = match (kind, condition) {
            (_, Some(condition)) => {
                let handle = ArgValue::Pointer(PointerValue::Condition(condition.key()));
                kernels.launch("countdown", LaunchConfig::one(), vec![handle, pointer(&left)])
            }
            _ => kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&left)]),
        };
        let at_end = random.one_in(2);
        if !at_end {
            body.add(&[], step.clone()).unwrap();
        }
        let count = 1 + random.below(3);
        self.fill(&body, uses, count, depth + 1, one_block, random);
        if at_end {
            let all = body.nodes();
            body.add(&all.iter().collect::<Vec<_>>(), step).unwrap();
        }
        node
    }

    fn branch(
        &mut self,
        graph: &Graph,
        after: &[&Node],
        uses: &[usize],
        depth: u32,
        one_block: bool,
        random: &mut Random,
    ) -> Node {
        let (form, bodies) = match random.below(3) {
            0 => (ConditionalForm::If, 1),
            1 => (ConditionalForm::IfElse, 2),
            _ => (ConditionalForm::Switch, 1 + random.below(3) as usize),
        };
        let modulo = 2 + random.below(3) as u32;
        let source = self.data[uses[0]].clone();
        let kernels = self.kernels;
        let blocks = if one_block { 1 } else { 1 + random.below(2) as u32 };
        let config = LaunchConfig::new(blocks, 32);
        let (test, set) = if random.one_in(2) {
            let flag = self.flag(0);
            let args = vec![pointer(&flag), pointer(&source), value(modulo)];
            let pick = |config| kernels.launch("pick", config, args.clone());
            // The same value from every block.
            (Test::Value(Region::whole(flag.clone())), pick(LaunchConfig::new(1u32, 32u32)))
        } else {
            let condition = self.root.condition(random.one_in(2).then(|| random.below(3) as u32));
            let handle = ArgValue::Pointer(PointerValue::Condition(condition.key()));
            let args = vec![handle, pointer(&source), value(modulo)];
            (Test::Condition(condition.key()), kernels.launch("choose", config, args))
        };
        // Sometimes nothing sets it, and it keeps its default or its value.
        let decides = !random.one_in(5);
        let before = if decides { Some(graph.add(after, set.clone()).unwrap()) } else { None };
        let after: Vec<&Node> = before.iter().chain(after.iter().copied()).collect();
        let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies };
        let node = self.conditional(graph, &after, spec);
        let changes_itself = random.one_in(4);
        for body in node.bodies().unwrap() {
            if random.one_in(6) {
                continue;
            }
            let count = 1 + random.below(2);
            self.fill(&body, uses, count, depth + 1, one_block, random);
            if changes_itself {
                let all = body.nodes();
                body.add(&all.iter().collect::<Vec<_>>(), set.clone()).unwrap();
            }
        }
        node
    }

    fn start(&self) {
        for (at, memory) in self.data.iter().enumerate() {
            let bytes: Vec<u8> = (0..96u32).flat_map(|i| (i + 100 * at as u32).to_le_bytes()).collect();
            self.kernels.device.write(&**memory, 0, &bytes).unwrap();
        }
        for flag in &self.flags {
            self.kernels.device.write(&**flag, 0, &1u32.to_le_bytes()).unwrap();
        }
    }

    fn state(&self) -> Vec<Vec<u32>> {
        self.data.iter().chain(&self.flags).map(|memory| self.kernels.read(memory)).collect()
    }

    /// Fails with the first difference, the graph as written and the graph as it runs.
    fn check(&self, got: &Outcome, expected: &Outcome, executable: &Executable, name: &str) {
        if got == expected {
            return;
        }
        let mut message = format!("{name}\npasses: {:?} instead of {:?}\n", got.1, expected.1);
        for (at, (got, expected)) in got.0.iter().zip(&expected.0).enumerate() {
            if let Some(word) = (0..got.len()).find(|&word| got[word] != expected[word]) {
                let (got, expected) = (got[word], expected[word]);
                message += &format!("buffer {at}, word {word}: {got} instead of {expected}\n");
            }
        }
        message += &self.root.to_dot();
        if let Some(graph) = executable.optimized_graph().unwrap() {
            message += &format!("{}\n{:#?}", graph.to_dot(), executable.report());
        }
        panic!("{message}");
    }

    /// Returns all nodes, those of bodies included.
    fn everything(&self) -> Vec<Node> {
        let (mut found, mut open) = (Vec::new(), vec![self.root.clone()]);
        while let Some(graph) = open.pop() {
            for node in graph.nodes() {
                open.extend(node.bodies().unwrap_or_default());
                found.push(node);
            }
        }
        found
    }

    fn run(&self, executable: &Executable) -> Outcome {
        self.kernels.run(executable);
        let passes = self.conditionals.iter().map(|node| executable.passes(node).unwrap()).collect();
        (self.state(), passes)
    }
}

/// A change that an executable can take.
#[derive(Clone)]
enum Edit {
    Operation(Node, Operation),
    Enabled(Node, bool),
}

impl Edit {
    fn random(program: &Program<'_>, random: &mut Random) -> Option<Self> {
        let node = program.nodes[random.below(program.nodes.len() as u64) as usize].clone();
        let operation = node.operation().unwrap();
        let kind = operation.kind();
        if random.one_in(4) && matches!(kind, NodeKind::Kernel | NodeKind::Memset | NodeKind::Memcpy) {
            return Some(Edit::Enabled(node, random.one_in(2)));
        }
        let operation = match operation {
            Operation::Kernel(launch) => {
                let mut args = launch.args().clone();
                let last = args.bytes.len() - 4;
                let number = 1 + random.below(1000) as u32;
                args.bytes[last..].copy_from_slice(&number.to_le_bytes());
                let blocks =
                    if random.one_in(3) { 1 + random.below(2) as u32 } else { launch.config().grid.x };
                let threads = launch.config().block.x;
                // SAFETY: the same kernel on the same memory, which is large enough.
                let launch =
                    unsafe { launch.with_args(args) }.with_config(LaunchConfig::new(blocks, threads));
                Operation::Kernel(Launch::new(launch))
            }
            Operation::Memset(fill) => {
                let value = random.below(1000) as u32;
                Operation::Memset(Arc::new(MemsetOp { value, ..(*fill).clone() }))
            }
            Operation::Conditional(conditional) if matches!(conditional.test, Test::Count(_)) => {
                let mut changed = (*conditional).clone();
                changed.test = Test::Count(random.below(5));
                changed.max_passes = random.one_in(2).then(|| random.below(4));
                Operation::Conditional(Arc::new(changed))
            }
            _ => return None,
        };
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

/// What happens to random graphs, by words of the report.
const KINDS: [&str; 12] = [
    "chains:",
    "batches:",
    "fills:",
    "early-start:",
    "passes of",
    "copies of its",
    "that test the value themselves",
    "is one kernel of one block, about",
    "one block with room for",
    "blocks that run at once",
    "each thread by itself",
    "µs a pass instead",
];

pub(crate) fn count(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_graphs_leave_the_same_with_every_optimisation_and_with_each_alone() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for kernels in Kernels::all() {
        let mut done = std::collections::BTreeMap::<&str, usize>::new();
        for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 20) {
            let program = Program::new(&kernels, seed);
            let plain = program.root.instantiate().unwrap();
            program.start();
            let expected = [program.run(&plain), program.run(&plain)];
            let mut random = Random::new(seed + 77);
            let edits: Vec<Edit> =
                (0..6).filter_map(|_| Edit::random(&program, &mut random)).take(3).collect();
            let edited: Vec<_> = edits
                .iter()
                .map(|edit| {
                    edit.apply(&plain);
                    program.start();
                    program.run(&plain)
                })
                .collect();
            let all = [GPU, PACKED_GPU, WIDE_GPU, FEW_GPU].map(|profile| (profile, Optimizations::ALL));
            let each = Optimization::ALL.iter().map(|&pass| (GPU, only(pass)));
            let wide = [Optimization::Chains, Optimization::Loops].map(|pass| (WIDE_GPU, only(pass)));
            for (profile, wanted) in all.into_iter().chain(each).chain(wide) {
                let executable = optimized_for(profile, &program.root, wanted);
                crate::reports::check(&executable, &program.everything());
                for line in executable.report().optimized {
                    for kind in KINDS.iter().filter(|kind| line.contains(**kind)) {
                        *done.entry(*kind).or_default() += 1;
                    }
                }
                program.start();
                for (launch, expected) in expected.iter().enumerate() {
                    let got = program.run(&executable);
                    program.check(
                        &got,
                        expected,
                        &executable,
                        &format!("seed {seed}, {wanted:?}, {profile:?}, launch {launch}"),
                    );
                }
                for (number, (edit, expected)) in edits.iter().zip(&edited).enumerate() {
                    edit.apply(&executable);
                    program.start();
                    let got = program.run(&executable);
                    program.check(
                        &got,
                        expected,
                        &executable,
                        &format!("seed {seed}, {wanted:?}, {profile:?}, edit {number}"),
                    );
                }
            }
        }
        // Other seeds than those of a plain test run may leave some out.
        let is_plain = first == 0;
        assert!(!is_plain || done.len() == KINDS.len(), "some of {KINDS:?} happened in no graph: {done:?}");
    }
}

#[test]
fn random_graphs_leave_the_same_while_they_are_optimised_and_edited() {
    let first = count("GRIDLOOM_RANDOM_FIRST", 0);
    for kernels in Kernels::all() {
        let mut switched = 0;
        for seed in first..first + count("GRIDLOOM_RANDOM_GRAPHS", 20) {
            let program = Program::new(&kernels, seed);
            let plain = program.root.instantiate().unwrap();
            let executable = automatic(&program.root, 1);
            let mut random = Random::new(seed + 99);
            let mut was_optimized = false;
            for round in 0..16 {
                if random.one_in(4)
                    && let Some(edit) = Edit::random(&program, &mut random)
                {
                    edit.apply(&plain);
                    edit.apply(&executable);
                }
                program.start();
                let expected = program.run(&plain);
                program.start();
                let got = program.run(&executable);
                let is_optimized = executable.optimized_graph().unwrap().is_some();
                let name = format!("seed {seed}, round {round}, optimised: {is_optimized}");
                program.check(&got, &expected, &executable, &name);
                was_optimized |= is_optimized;
                // Sometimes the kernels get the time to be finished.
                if random.one_in(3) {
                    std::thread::sleep(std::time::Duration::from_millis(random.below(8)));
                }
            }
            switched += u32::from(was_optimized);
        }
        assert!(switched > 0, "no graph was optimised");
    }
}
