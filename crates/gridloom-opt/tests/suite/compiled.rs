//! Kernels from a compiler, with everything that makes combining hard, leave the same bytes.

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device, Module};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{ArgValue, ConditionalForm, KernelArgs, KernelOp, Launch, Operation, Test};
use gridloom_core::{Executable, Graph, Stream};
use gridloom_opt::Optimizations;

use crate::common::{Refused, buffer, devices, read};
use crate::graphs::{GPU, PACKED_GPU, WIDE_GPU, optimized_for, pointer, value};

const TEXT: &str = include_str!("../kernels/combined.ptx");
const THREADS: u32 = 64;
const MAX_BLOCKS: u32 = 3;

/// The kernels that may be neither steps nor parts of a batch, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("prints", "it prints"),
    ("reads_its_processor", "%smid"),
    ("reads_the_clock", "%clock"),
    ("textures", "what tex.1d.v4.u32.s32 does is not known"),
    ("constant_table", "variable of its module"),
    ("module_counter", "variable of its module"),
    ("function_pointers", "through pointers"),
    ("recursion", "calls itself"),
    ("barriers_in_functions", "has shared memory"),
];

/// The kernels that may be parts of a batch but no steps, with the reason.
const NO_STEPS: &[(&str, &str)] = &[
    ("early_return_before_barrier", "threads may return"),
    ("lanes_return_before_vote", "threads may return"),
    ("cooperative_tiles", "threads may return"),
    ("named_barriers", "threads may return"),
    ("memory_barriers", "mbarrier"),
];

/// The kernels that may be steps but no parts of a batch, with the reason.
const NO_BATCHES: &[(&str, &str)] = &[("asserts", "may stop the launch")];

/// The module on one device, and the data of a run.
struct Compiled {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    names: Vec<String>,
    data: Vec<Arc<dyn Allocation>>,
    arrivals: Arc<dyn Allocation>,
}

impl Compiled {
    fn on(device: Arc<dyn Device>) -> Self {
        let module = device.load_ptx(TEXT).unwrap();
        let mut names = module.kernel_names();
        names.retain(|name| name != "textures");
        let data = (0..4).map(|_| buffer(&device, &[0; 4 * (THREADS * MAX_BLOCKS) as usize])).collect();
        let arrivals = buffer(&device, &[0; 4]);
        Compiled { device, module, names, data, arrivals }
    }

    /// Returns a launch of a kernel on some of the data.
    fn launch(&self, name: &str, data: usize, by: u32, blocks: u32) -> Operation {
        let kernel = self.module.clone().kernel(name).unwrap();
        let memory = &self.data[data];
        let args = match name {
            "large_argument" | "address_of_an_argument" => {
                let mut bytes: Vec<u8> = (0..6u32).flat_map(|word| (word * 3 + 1).to_le_bytes()).collect();
                bytes.extend(memory.address().to_le_bytes());
                bytes.extend(1.5f64.to_le_bytes());
                bytes.extend(by.to_le_bytes());
                bytes.extend([0; 4]);
                vec![ArgValue::plain(&bytes)]
            }
            "last_block" => vec![pointer(memory), pointer(&self.arrivals)],
            _ => vec![pointer(memory), value(by)],
        };
        let shared = if name.starts_with("dynamic") { 4 * THREADS } else { 0 };
        let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
        let config = LaunchConfig::new(blocks, THREADS).shared(shared);
        // SAFETY: each kernel gets what it takes, and memory that is large enough and outlives it.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
    }

    /// Returns what two launches leave.
    fn run(&self, executable: &Executable) -> Vec<Vec<u8>> {
        for (at, memory) in self.data.iter().enumerate() {
            let words = 0..THREADS * MAX_BLOCKS;
            let bytes: Vec<u8> =
                words.flat_map(|word| (word * 2_654_435 + at as u32 * 77).to_le_bytes()).collect();
            self.device.write(&**memory, 0, &bytes).unwrap();
        }
        self.device.write(&*self.arrivals, 0, &[0; 4]).unwrap();
        let counter = self.module.clone().global("counter").unwrap();
        self.device.write(&*counter, 0, &1u32.to_le_bytes()).unwrap();
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        self.data.iter().chain([&self.arrivals, &counter]).map(|memory| read(&self.device, memory)).collect()
    }

    /// Compares a graph with itself, optimised for several devices. Returns the names of the passes
    /// that did anything.
    fn compare(&self, graph: &Graph, name: &str) -> Vec<String> {
        let expected = self.run(&graph.instantiate().unwrap());
        let mut done = Vec::new();
        for profile in [GPU, PACKED_GPU, WIDE_GPU] {
            let executable = optimized_for(profile, graph, Optimizations::ALL);
            let got = self.run(&executable);
            assert!(got == expected, "{name}: {profile:?}\n{:#?}", executable.report());
            let report = executable.report();
            done.extend(report.optimized.iter().map(|line| line.split(':').next().unwrap().to_owned()));
        }
        done
    }
}

#[test]
fn kernels_of_a_compiler_are_refused_exactly_where_they_cannot_be_moved() {
    Refused { anywhere: REFUSED, in_batches: NO_BATCHES, in_steps: NO_STEPS }.check(TEXT);
}

#[test]
fn each_kernel_of_a_compiler_combined_with_itself_leaves_the_same() {
    for device in devices() {
        let compiled = Compiled::on(device);
        for name in &compiled.names {
            for blocks in [1, MAX_BLOCKS] {
                let launch = |data, by| compiled.launch(name, data, by, blocks);
                let chain = Graph::new(&compiled.device);
                let mut last = chain.add(&[], launch(0, 1)).unwrap();
                for by in 2..5 {
                    last = last.add(launch(0, by)).unwrap();
                }
                compiled.compare(&chain, &format!("a chain of {name}, {blocks} blocks"));
                // Kernels that share a counter have an order.
                if name != "last_block" && name != "module_counter" {
                    let fan = Graph::new(&compiled.device);
                    for data in 0..4 {
                        fan.add(&[], launch(data, data as u32 + 1)).unwrap();
                    }
                    compiled.compare(&fan, &format!("a fan of {name}, {blocks} blocks"));
                }
                let looped = Graph::new(&compiled.device);
                let spec = ConditionalSpec {
                    form: ConditionalForm::While,
                    test: Test::Count(3),
                    test_first: true,
                    max_passes: None,
                    bodies: 1,
                };
                let node = looped.add_conditional(&[], spec).unwrap();
                let body = node.bodies().unwrap().remove(0);
                body.add(&[], launch(0, 3)).unwrap().add(launch(0, 4)).unwrap();
                compiled.compare(&looped, &format!("a loop of {name}, {blocks} blocks"));
            }
        }
    }
}

#[test]
fn different_kernels_of_a_compiler_leave_the_same_in_one_chain_one_fan_and_one_branch() {
    for device in devices() {
        let compiled = Compiled::on(device);
        let mut done = Vec::new();
        for (start, _) in compiled.names.iter().enumerate() {
            let names: Vec<&String> = compiled.names.iter().cycle().skip(start).take(4).collect();
            for blocks in [1, MAX_BLOCKS] {
                let chain = Graph::new(&compiled.device);
                let mut last = chain.add(&[], Operation::Empty).unwrap();
                for (by, name) in (3..).zip(names.iter().chain(&names)) {
                    last = last.add(compiled.launch(name, 0, by, blocks)).unwrap();
                }
                done.extend(compiled.compare(&chain, &format!("a chain of {names:?}, {blocks} blocks")));
                let fan = Graph::new(&compiled.device);
                for (data, name) in names.iter().enumerate() {
                    fan.add(&[], compiled.launch(name, data, data as u32 + 3, blocks)).unwrap();
                }
                done.extend(compiled.compare(&fan, &format!("a fan of {names:?}, {blocks} blocks")));
                let branch = Graph::new(&compiled.device);
                let spec = ConditionalSpec {
                    form: ConditionalForm::Switch,
                    test: Test::Value(Region {
                        offset: 4,
                        bytes: 4,
                        ..Region::whole(compiled.data[3].clone())
                    }),
                    test_first: true,
                    max_passes: None,
                    bodies: 2,
                };
                let node = branch.add_conditional(&[], spec).unwrap();
                for (at, body) in node.bodies().unwrap().iter().enumerate() {
                    let first = body.add(&[], compiled.launch(names[2 * at], 0, 5, blocks)).unwrap();
                    first.add(compiled.launch(names[2 * at + 1], 1, 6, blocks)).unwrap();
                }
                done.extend(compiled.compare(&branch, &format!("a branch of {names:?}, {blocks} blocks")));
            }
        }
        for pass in ["chains", "batches", "branches", "early-start"] {
            assert!(done.iter().any(|done| done == pass), "{pass} did nothing");
        }
    }
}
