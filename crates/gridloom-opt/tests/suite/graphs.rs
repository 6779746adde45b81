//! Optimised and plain graphs leave the same bytes, under every operation on them.

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
use gridloom_core::{Condition, Executable, Graph, Node, Stream};
use gridloom_opt::{GraphOptimizer, Optimization, Optimizations, Profile};

use crate::common::{buffer, devices, read};

/// Kernels of a device.
pub(crate) struct Kernels {
    pub(crate) device: Arc<dyn Device>,
    module: Arc<dyn Module>,
}

impl Kernels {
    pub(crate) fn all() -> Vec<Kernels> {
        devices().into_iter().map(Kernels::of).collect()
    }

    pub(crate) fn of(device: Arc<dyn Device>) -> Kernels {
        Kernels { module: device.load_ptx(include_str!("kernels.ptx")).unwrap(), device }
    }

    pub(crate) fn words(&self, values: &[u32]) -> Arc<dyn Allocation> {
        buffer(&self.device, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub(crate) fn read(&self, memory: &Arc<dyn Allocation>) -> Vec<u32> {
        let bytes = read(&self.device, memory);
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    pub(crate) fn launch(&self, name: &str, config: LaunchConfig, args: Vec<ArgValue>) -> Operation {
        let kernel = self.module.clone().kernel(name).unwrap();
        let args = KernelArgs::pack(name, kernel.params(), args).unwrap();
        // SAFETY: the tests give each kernel what it takes, and memory that is large enough.
        Operation::Kernel(Launch::new(unsafe { KernelOp::new(kernel, config, args) }))
    }

    /// `data[i] = data[i] * 31 + by` for all threads: the result tells the order of two of them.
    pub(crate) fn mix(&self, data: &Arc<dyn Allocation>, by: u32, blocks: u32, threads: u32) -> Operation {
        let args = vec![pointer(data), value(by)];
        self.launch("mix", LaunchConfig::new(blocks, threads), args)
    }

    pub(crate) fn run(&self, executable: &Executable) {
        let stream = Stream::new(&self.device).unwrap();
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
    }
}

pub(crate) fn pointer(memory: &Arc<dyn Allocation>) -> ArgValue {
    ArgValue::Pointer(PointerValue::Region(Region::whole(memory.clone())))
}

pub(crate) fn value(value: u32) -> ArgValue {
    ArgValue::plain(&value.to_le_bytes())
}

pub(crate) fn fill(memory: &Arc<dyn Allocation>, value: u32) -> Operation {
    let dst = Region::whole(memory.clone());
    let width = dst.bytes / 4;
    Operation::Memset(Arc::new(MemsetOp { dst, value, element_size: 4, width, height: 1, pitch: 0 }))
}

pub(crate) fn copy(dst: &Arc<dyn Allocation>, src: &Arc<dyn Allocation>) -> Operation {
    let bytes = src.bytes();
    Operation::Memcpy(Arc::new(MemcpyOp::linear(
        Region::whole(dst.clone()),
        Region::whole(src.clone()),
        bytes,
    )))
}

/// A device on which everything is worthwhile.
pub(crate) const GPU: Profile = Profile {
    early_blocks: Some(264),
    costly_nodes: true,
    costly_conditionals: true,
    max_batched_blocks: 512,
    max_batched_instructions: None,
    max_argument_bytes: u32::MAX,
    counts_passes: true,
    cluster_blocks: 0,
    resident_blocks: 0,
    packed_threads: 0,
    names_faults: true,
    without_clusters: false,
    cancels: true,
    limits_nodes: false,
};

/// As [`GPU`], with several blocks of a kernel in one block.
pub(crate) const PACKED_GPU: Profile =
    Profile { resident_blocks: 8, packed_threads: 1024, without_clusters: true, ..GPU };

/// As [`PACKED_GPU`], with as many blocks as possible where several run a program.
pub(crate) const WIDE_GPU: Profile = Profile { packed_threads: 64, names_faults: false, ..PACKED_GPU };

/// As [`PACKED_GPU`], with few blocks that run at once, so that several of a kernel share each.
pub(crate) const FEW_GPU: Profile = Profile { resident_blocks: 2, packed_threads: 128, ..PACKED_GPU };

pub(crate) fn optimized(graph: &Graph, wanted: Optimizations) -> Executable {
    optimized_for(GPU, graph, wanted)
}

pub(crate) fn optimized_for(profile: Profile, graph: &Graph, wanted: Optimizations) -> Executable {
    let optimizer = GraphOptimizer::new(wanted).with_profile(profile);
    let options =
        InstantiateOptions { optimizer: Some(Arc::new(optimizer)), ..InstantiateOptions::default() };
    graph.instantiate_with(&options).unwrap()
}

pub(crate) fn only(optimization: Optimization) -> Optimizations {
    Optimizations::of(&[optimization])
}

/// Returns the nodes of the graph as it is run.
fn nodes_run(executable: &Executable) -> usize {
    executable.optimized_graph().unwrap().unwrap().len()
}

#[test]
fn a_chain_of_kernels_fills_and_copies_is_one_node() {
    for kernels in Kernels::all() {
        let (x, y) = (kernels.words(&[0; 64]), kernels.words(&[9; 64]));
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 5, 1, 64)).unwrap();
        let last = first.add(copy(&y, &x)).unwrap().add(kernels.mix(&y, 7, 1, 32)).unwrap();
        let last = last.add(fill(&x, 3)).unwrap();
        last.add(kernels.mix(&x, 1, 1, 64)).unwrap();
        let executable = optimized(&graph, only(Optimization::Chains));
        assert_eq!(nodes_run(&executable), 1);
        assert!(executable.report().optimized[0].starts_with("chains:"), "{:?}", executable.report());
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [3 * 31 + 1; 64]);
        let expected: Vec<u32> = (0..64).map(|i| if i < 32 { 5 * 31 + 7 } else { 5 }).collect();
        assert_eq!(kernels.read(&y), expected);
    }
}

#[test]
fn a_long_chain_of_one_kernel_is_one_node_and_keeps_its_order() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let graph = Graph::new(&kernels.device);
        let mut last = graph.add(&[], kernels.mix(&x, 0, 1, 32)).unwrap();
        let mut expected = 31u32;
        for by in 1..500 {
            last = last.add(kernels.mix(&x, by, 1, 32)).unwrap();
            expected = expected.wrapping_mul(31).wrapping_add(by);
        }
        let executable = optimized(&graph, only(Optimization::Chains));
        assert_eq!(nodes_run(&executable), 1);
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [expected; 32]);
    }
}

#[test]
fn a_fan_is_one_node_for_each_level_and_shape() {
    for kernels in Kernels::all() {
        let data: Vec<_> = (0..20).map(|i| kernels.words(&vec![i; 64])).collect();
        let graph = Graph::new(&kernels.device);
        let start = graph.add(&[], fill(&data[0], 40)).unwrap();
        let fan: Vec<Node> = data
            .iter()
            .enumerate()
            .map(|(i, data)| start.add(kernels.mix(data, i as u32, 1 + i as u32 % 2, 32)).unwrap())
            .collect();
        // Each goes on by itself.
        for (node, data) in fan.iter().zip(&data) {
            node.add(kernels.mix(data, 100, 2, 32)).unwrap();
        }
        let executable = optimized(&graph, only(Optimization::Batches));
        assert_eq!(nodes_run(&executable), 3);
        kernels.run(&executable);
        for (i, data) in data.iter().enumerate() {
            let i = i as u32;
            let start = if i == 0 { 40 } else { i };
            let expected: Vec<u32> = (0..64)
                .map(|word| if word < 32 || i % 2 == 1 { start * 31 + i } else { start } * 31 + 100)
                .collect();
            assert_eq!(kernels.read(data), expected, "{i}");
        }
    }
}

#[test]
fn a_loop_whose_body_fits_one_block_is_one_node_and_counts_its_passes() {
    for kernels in Kernels::all() {
        let (x, left) = (kernels.words(&[0; 64]), kernels.words(&[7]));
        let region = Region::whole(left.clone());
        for (test, test_first, max_passes, passes) in [
            (Test::Value(region.clone()), true, None, 7),
            (Test::Value(region.clone()), false, Some(3), 3),
            (Test::Count(5), true, None, 5),
            (Test::Count(5), true, Some(2), 2),
        ] {
            kernels.device.write(&*left, 0, &7u32.to_le_bytes()).unwrap();
            kernels.device.write(&*x, 0, &[0; 256]).unwrap();
            let graph = Graph::new(&kernels.device);
            let spec =
                ConditionalSpec { form: ConditionalForm::While, test, test_first, max_passes, bodies: 1 };
            let repeat = graph.add_conditional(&[], spec).unwrap();
            let body = &repeat.bodies().unwrap()[0];
            let one = body.add(&[], kernels.mix(&x, 1, 1, 64)).unwrap();
            let other = body
                .add(&[], kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&left)]))
                .unwrap();
            body.add(&[&one, &other], kernels.mix(&x, 2, 1, 32)).unwrap();
            let executable = optimized(&graph, only(Optimization::Loops));
            assert!(executable.report().optimized[0].starts_with("loops:"), "{:?}", executable.report());
            kernels.run(&executable);
            assert_eq!(executable.passes(&repeat).unwrap(), passes);
            let (mut low, mut high) = (0u32, 0u32);
            for _ in 0..passes {
                low = (low.wrapping_mul(31).wrapping_add(1)).wrapping_mul(31).wrapping_add(2);
                high = high.wrapping_mul(31).wrapping_add(1);
            }
            assert_eq!(kernels.read(&x)[0], low);
            assert_eq!(kernels.read(&x)[63], high);
        }
    }
}

fn condition_loop(kernels: &Kernels, graph: &Graph, left: &Arc<dyn Allocation>) -> (Node, Condition) {
    let condition = graph.condition(Some(1));
    let test = Test::Condition(condition.key());
    let spec =
        ConditionalSpec { form: ConditionalForm::While, test, test_first: true, max_passes: None, bodies: 1 };
    let repeat = graph.add_conditional(&[], spec).unwrap();
    let body = &repeat.bodies().unwrap()[0];
    let handle = ArgValue::Pointer(PointerValue::Condition(condition.key()));
    body.add(&[], kernels.launch("countdown", LaunchConfig::one(), vec![handle, pointer(left)])).unwrap();
    (repeat, condition)
}

#[test]
fn a_loop_that_a_kernel_ends_through_its_condition_is_one_node() {
    for kernels in Kernels::all() {
        let left = kernels.words(&[6]);
        let graph = Graph::new(&kernels.device);
        let (repeat, _) = condition_loop(&kernels, &graph, &left);
        let executable = optimized(&graph, only(Optimization::Loops));
        assert!(!executable.report().optimized.is_empty(), "{:?}", executable.report());
        for _ in 0..2 {
            kernels.device.write(&*left, 0, &6u32.to_le_bytes()).unwrap();
            kernels.run(&executable);
            assert_eq!(kernels.read(&left), [0]);
            assert_eq!(executable.passes(&repeat).unwrap(), 6);
        }
    }
}

#[test]
fn a_loop_whose_condition_is_set_outside_of_it_stays_and_the_report_says_why() {
    for kernels in Kernels::all() {
        let (left, other) = (kernels.words(&[3]), kernels.words(&[2]));
        let graph = Graph::new(&kernels.device);
        let (repeat, condition) = condition_loop(&kernels, &graph, &left);
        let handle = ArgValue::Pointer(PointerValue::Condition(condition.key()));
        let before = graph
            .add(&[], kernels.launch("countdown", LaunchConfig::one(), vec![handle, pointer(&other)]))
            .unwrap();
        graph.add_edge(&before, &repeat, gridloom_core::graph::EdgeKind::Full).unwrap();
        let executable = optimized(&graph, only(Optimization::Loops));
        let report = executable.report();
        assert!(report.optimized.is_empty(), "{report:?}");
        assert!(report.not_optimized.iter().any(|(_, why)| why.contains("outside its body")), "{report:?}");
        kernels.run(&executable);
        assert_eq!(kernels.read(&left), [0]);
    }
}

#[test]
fn a_fill_between_kernels_is_a_kernel() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[0; 200]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 2, 32)).unwrap();
        first.add(fill(&x, 8)).unwrap().add(kernels.mix(&x, 1, 2, 32)).unwrap();
        let executable = optimized(&graph, only(Optimization::Fills));
        assert_eq!(executable.report().optimized.len(), 1, "{:?}", executable.report());
        kernels.run(&executable);
        let expected: Vec<u32> = (0..200).map(|i| if i < 64 { 8 * 31 + 1 } else { 8 }).collect();
        assert_eq!(kernels.read(&x), expected);
    }
}

#[test]
fn kernels_that_follow_each_other_alone_start_early_where_both_grids_fit() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let graph = Graph::new(&kernels.device);
        let mut last = graph.add(&[], kernels.mix(&x, 0, 2, 32)).unwrap();
        for by in 1..4 {
            last = last.add(kernels.mix(&x, by, 2, 32)).unwrap();
        }
        let large = kernels.words(&[1; 300 * 32]);
        last.add(kernels.mix(&large, 5, 300, 32)).unwrap();
        let executable = optimized(&graph, only(Optimization::EarlyStart));
        let report = executable.report();
        assert!(report.optimized[0].starts_with("early-start: 3 kernels"), "{report:?}");
        assert!(report.not_optimized.iter().any(|(_, why)| why.contains("do not fit")), "{report:?}");
        let picture = executable.optimized_graph().unwrap().unwrap().to_dot();
        assert_eq!(picture.matches("dashed").count(), 3, "{picture}");
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [((31 * 31 + 1) * 31 + 2) * 31 + 3; 64]);
        assert_eq!(kernels.read(&large), [36; 300 * 32]);
    }
}

#[test]
fn an_argument_changed_inside_a_rewritten_kernel_is_used_from_the_next_launch_on() {
    for kernels in Kernels::all() {
        for wanted in [Optimizations::ALL, only(Optimization::Chains), only(Optimization::Batches)] {
            let (x, y) = (kernels.words(&[1; 64]), kernels.words(&[1; 64]));
            let graph = Graph::new(&kernels.device);
            let (first, second);
            if wanted.has(Optimization::Chains) {
                first = graph.add(&[], kernels.mix(&x, 2, 1, 64)).unwrap();
                second = first.add(kernels.mix(&y, 3, 1, 64)).unwrap();
            } else {
                first = graph.add(&[], kernels.mix(&x, 2, 1, 64)).unwrap();
                second = graph.add(&[], kernels.mix(&y, 3, 1, 64)).unwrap();
            }
            let executable = optimized(&graph, wanted);
            assert_eq!(nodes_run(&executable), 1);
            kernels.run(&executable);
            executable.set_operations([(&second, kernels.mix(&x, 9, 1, 64))]).unwrap();
            kernels.run(&executable);
            assert_eq!(nodes_run(&executable), 1);
            // Unordered, the two would race over the same memory.
            if wanted.has(Optimization::Chains) {
                assert_eq!(kernels.read(&x), [((31 + 2) * 31 + 2) * 31 + 9; 64]);
            }
            assert_eq!(kernels.read(&y), [31 + 3; 64]);
            drop(first);
        }
    }
}

#[test]
fn another_shape_or_kernel_has_the_graph_compiled_anew() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 2, 1, 32)).unwrap();
        let second = first.add(kernels.mix(&x, 3, 1, 32)).unwrap();
        let executable = optimized(&graph, Optimizations::ALL);
        kernels.run(&executable);
        executable.set_operations([(&second, kernels.mix(&x, 3, 2, 32))]).unwrap();
        kernels.run(&executable);
        let low = ((31 + 2) * 31 + 3) * 31 + 2;
        assert_eq!(kernels.read(&x)[0], low * 31 + 3);
        assert_eq!(kernels.read(&x)[63], 31 + 3);
        let increase = kernels.launch("increase", LaunchConfig::new(1, 32), vec![pointer(&x)]);
        executable.set_operations([(&first, increase), (&second, kernels.mix(&x, 3, 1, 32))]).unwrap();
        assert_eq!(nodes_run(&executable), 1);
        kernels.run(&executable);
        assert_eq!(kernels.read(&x)[0], (low * 31 + 3 + 1u32).wrapping_mul(31).wrapping_add(3));
    }
}

#[test]
fn a_node_inside_a_rewritten_kernel_can_be_switched_off_and_on() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let graph = Graph::new(&kernels.device);
        let nodes: Vec<Node> = (1..4)
            .scan(None, |last: &mut Option<Node>, by| {
                let operation = kernels.mix(&x, by, 1, 32);
                let node = match last {
                    Some(last) => last.add(operation),
                    None => graph.add(&[], operation),
                };
                *last = Some(node.unwrap());
                last.clone()
            })
            .collect();
        let executable = optimized(&graph, Optimizations::ALL);
        executable.node(&nodes[1]).unwrap().set_enabled(false).unwrap();
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [(31 + 1) * 31 + 3; 32]);
        executable.node(&nodes[1]).unwrap().set_enabled(true).unwrap();
        kernels.device.write(&*x, 0, &[0; 128]).unwrap();
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [(31 + 2) * 31 + 3; 32]);
    }
}

#[test]
fn an_executable_keeps_its_memory_while_launches_are_in_flight() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        first.add(kernels.mix(&x, 2, 1, 32)).unwrap();
        let stream = Stream::new(&kernels.device).unwrap();
        let executable = optimized(&graph, Optimizations::ALL);
        for _ in 0..50 {
            executable.launch(&stream).unwrap();
        }
        let there = Arc::downgrade(&x);
        drop((graph, first, x, executable));
        stream.synchronize().unwrap();
        drop(stream);
        kernels.device.wait_all().unwrap();
        for _ in 0..1000 {
            if there.strong_count() == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(there.strong_count(), 0, "the memory is still held");
    }
}
