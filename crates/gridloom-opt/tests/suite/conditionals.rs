//! Branches and loops of any size: what becomes of them, and that they decide as written.

use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ArgValue, ConditionalForm, KernelArgs, KernelOp, Launch, NodeKind, Operation, PointerValue, Test,
};
use gridloom_core::{Condition, ErrorKind, Graph, Node, Stream};
use gridloom_cpu::{CpuDevice, CpuOptions, Engine};
use gridloom_opt::{GraphOptimizer, Optimization, Optimizations, Profile};
use std::sync::Arc;

use crate::graphs::{FEW_GPU, GPU, Kernels, WIDE_GPU, fill, only, optimized, optimized_for, pointer, value};

fn handle(condition: &Condition) -> ArgValue {
    ArgValue::Pointer(PointerValue::Condition(condition.key()))
}

fn conditional(graph: &Graph, after: &[&Node], form: ConditionalForm, test: Test, bodies: usize) -> Node {
    let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies };
    graph.add_conditional(after, spec).unwrap()
}

/// Returns the kinds of all nodes as they run, in the outermost graph.
fn kinds(executable: &gridloom_core::Executable) -> Vec<NodeKind> {
    let graph = executable.optimized_graph().unwrap().unwrap();
    graph.nodes().iter().map(|node| node.kind().unwrap()).collect()
}

#[test]
fn a_branch_of_several_blocks_becomes_kernels_that_test_its_condition() {
    for kernels in Kernels::all() {
        for (form, bodies) in
            [(ConditionalForm::If, 1), (ConditionalForm::IfElse, 2), (ConditionalForm::Switch, 3)]
        {
            let (x, choice) = (kernels.words(&[1; 64]), kernels.words(&[0]));
            let graph = Graph::new(&kernels.device);
            let condition = graph.condition(None);
            let args = vec![handle(&condition), pointer(&choice), value(100)];
            let decide =
                graph.add(&[], kernels.launch("choose", LaunchConfig::new(2u32, 32u32), args)).unwrap();
            let branch = conditional(&graph, &[&decide], form, Test::Condition(condition.key()), bodies);
            for (index, body) in branch.bodies().unwrap().iter().enumerate() {
                let first = body.add(&[], kernels.mix(&x, 10 + index as u32, 2, 32)).unwrap();
                first.add(fill(&choice, 7)).unwrap();
            }
            branch.add(kernels.mix(&x, 3, 2, 32)).unwrap();
            let executable = optimized(&graph, only(Optimization::Branches));
            assert!(!kinds(&executable).contains(&branch.kind().unwrap()), "{:?}", executable.report());
            for chosen in [0u32, 1, 2, 5] {
                let body = match form {
                    ConditionalForm::Switch => chosen as usize,
                    _ => usize::from(chosen == 0),
                };
                let runs = body < bodies;
                kernels.device.write(&*choice, 0, &chosen.to_le_bytes()).unwrap();
                kernels.device.write(&*x, 0, &1u32.to_le_bytes().repeat(64)).unwrap();
                kernels.run(&executable);
                let inside = if runs { 31 + 10 + body as u32 } else { 1 };
                assert_eq!(kernels.read(&x), [inside * 31 + 3; 64], "{form:?} {chosen}");
                assert_eq!(kernels.read(&choice), [if runs { 7 } else { chosen }], "{form:?} {chosen}");
                assert_eq!(executable.passes(&branch).unwrap(), u64::from(runs));
            }
        }
    }
}

#[test]
fn bodies_of_one_kernel_each_become_one_kernel_that_chooses() {
    for kernels in Kernels::all() {
        let (x, choice) = (kernels.words(&[1; 96]), kernels.words(&[0]));
        let graph = Graph::new(&kernels.device);
        let condition = graph.condition(None);
        let args = vec![handle(&condition), pointer(&choice), value(100)];
        let decide = graph.add(&[], kernels.launch("choose", LaunchConfig::new(2u32, 32u32), args)).unwrap();
        let form = ConditionalForm::Switch;
        let branch = conditional(&graph, &[&decide], form, Test::Condition(condition.key()), 4);
        let bodies = branch.bodies().unwrap();
        // Grids of different sizes, and a body that does nothing.
        let mut nodes = Vec::new();
        for (index, blocks) in [(0, 1), (1, 3), (3, 2)] {
            nodes.push(bodies[index].add(&[], kernels.mix(&x, 10 + index as u32, blocks, 32)).unwrap());
        }
        let executable = optimized(&graph, only(Optimization::Branches));
        let report = executable.report();
        assert!(report.optimized.iter().any(|line| line.contains("is 1 kernels that test")), "{report:?}");
        // The second round runs with another argument of one of the kernels.
        for by in [11, 90] {
            executable.set_operations([(&nodes[1], kernels.mix(&x, by, 3, 32))]).unwrap();
            for chosen in [0u32, 1, 2, 3, 4, 7] {
                kernels.device.write(&*choice, 0, &chosen.to_le_bytes()).unwrap();
                kernels.device.write(&*x, 0, &1u32.to_le_bytes().repeat(96)).unwrap();
                kernels.run(&executable);
                let (words, by) = match chosen {
                    0 => (32, 10),
                    1 => (96, by),
                    3 => (64, 13),
                    _ => (0, 0),
                };
                let mut expected = vec![1; 96];
                expected[..words].fill(31 + by);
                assert_eq!(kernels.read(&x), expected, "{chosen}");
            }
        }
    }
}

#[test]
fn a_body_that_changes_the_value_of_its_branch_still_runs_whole_and_alone() {
    for kernels in Kernels::all() {
        let (x, flag) = (kernels.words(&[1; 64]), kernels.words(&[1]));
        let graph = Graph::new(&kernels.device);
        let test = Test::Value(Region::whole(flag.clone()));
        let branch = conditional(&graph, &[], ConditionalForm::IfElse, test, 2);
        let bodies = branch.bodies().unwrap();
        // The first body turns the value to 0, which must not start the second.
        let off = bodies[0].add(&[], fill(&flag, 0)).unwrap();
        off.add(kernels.mix(&x, 1, 2, 32)).unwrap();
        bodies[1].add(&[], kernels.mix(&x, 2, 2, 32)).unwrap();
        let executable = optimized(&graph, only(Optimization::Branches));
        assert!(!kinds(&executable).contains(&NodeKind::IfElse));
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [32; 64]);
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [32 * 31 + 2; 64]);
    }
}

#[test]
fn a_branch_of_one_block_joins_the_kernel_that_decides_it() {
    for kernels in Kernels::all() {
        let (x, choice) = (kernels.words(&[1; 32]), kernels.words(&[1]));
        let graph = Graph::new(&kernels.device);
        let condition = graph.condition(None);
        let args = vec![handle(&condition), pointer(&choice), value(2)];
        let decide = graph.add(&[], kernels.launch("choose", LaunchConfig::new(1u32, 32u32), args)).unwrap();
        let branch =
            conditional(&graph, &[&decide], ConditionalForm::IfElse, Test::Condition(condition.key()), 2);
        let bodies = branch.bodies().unwrap();
        bodies[0].add(&[], kernels.mix(&x, 5, 1, 32)).unwrap();
        bodies[1].add(&[], kernels.mix(&x, 6, 1, 32)).unwrap();
        branch.add(kernels.mix(&x, 1, 1, 32)).unwrap();
        let executable = optimized(&graph, Optimizations::ALL);
        assert_eq!(kinds(&executable), [NodeKind::Kernel], "{:?}", executable.report());
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [36 * 31 + 1; 32]);
        kernels.device.write(&*choice, 0, &4u32.to_le_bytes()).unwrap();
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [((36 * 31 + 1) * 31 + 6) * 31 + 1; 32]);
    }
}

#[test]
fn a_loop_of_several_blocks_makes_several_passes_before_it_is_tested() {
    for kernels in Kernels::all() {
        for (passes, max_passes, test_first) in
            [(1u32, None, true), (5, None, true), (16, None, false), (40, None, true), (40, Some(21), true)]
        {
            let (x, left) = (kernels.words(&[0; 64]), kernels.words(&[0]));
            let graph = Graph::new(&kernels.device);
            let condition = graph.condition(Some(1));
            let start = graph.add(&[], fill(&left, passes)).unwrap();
            let spec = ConditionalSpec {
                form: ConditionalForm::While,
                test: Test::Condition(condition.key()),
                test_first,
                max_passes,
                bodies: 1,
            };
            let repeat = graph.add_conditional(&[&start], spec).unwrap();
            let body = &repeat.bodies().unwrap()[0];
            // What decides comes first, so that the rest of the pass must still take place.
            let args = vec![handle(&condition), pointer(&left)];
            let first = body.add(&[], kernels.launch("countdown", LaunchConfig::one(), args)).unwrap();
            first.add(kernels.mix(&x, 1, 2, 32)).unwrap();
            let executable = optimized(&graph, only(Optimization::Loops));
            let report = executable.report();
            assert!(report.optimized[0].contains("20 passes of 2 kernels"), "{report:?}");
            let expected = u64::from(passes).min(max_passes.unwrap_or(u64::MAX));
            for _ in 0..2 {
                kernels.device.write(&*x, 0, &[0; 256]).unwrap();
                kernels.run(&executable);
                let word = (0..expected).fold(0u32, |word, _| word.wrapping_mul(31).wrapping_add(1));
                assert_eq!(kernels.read(&x), [word; 64], "{passes} {max_passes:?}");
                assert_eq!(executable.passes(&repeat).unwrap(), expected);
            }
        }
    }
}

#[test]
fn a_loop_of_a_known_number_of_passes_becomes_that_many_copies() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[0; 64]);
        let graph = Graph::new(&kernels.device);
        let repeat = conditional(&graph, &[], ConditionalForm::While, Test::Count(6), 1);
        repeat.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 2, 32)).unwrap();
        let executable = optimized(&graph, only(Optimization::Loops));
        assert_eq!(kinds(&executable), [NodeKind::Kernel; 6]);
        kernels.run(&executable);
        assert_eq!(executable.passes(&repeat).unwrap(), 6);
        let Operation::Conditional(before) = repeat.operation().unwrap() else { unreachable!("it is one") };
        let mut changed = (*before).clone();
        changed.test = Test::Count(2);
        executable.set_operations([(&repeat, Operation::Conditional(changed.into()))]).unwrap();
        kernels.device.write(&*x, 0, &[0; 256]).unwrap();
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), [32; 64]);
        assert_eq!(executable.passes(&repeat).unwrap(), 2);
    }
}

#[test]
fn a_kernel_that_also_sets_the_condition_of_a_conditional_that_stays_keeps_both() {
    for kernels in Kernels::all() {
        let (x, y, choice) = (kernels.words(&[1; 64]), kernels.words(&[1; 64]), kernels.words(&[1]));
        let graph = Graph::new(&kernels.device);
        let (one, other) = (graph.condition(None), graph.condition(None));
        let args = vec![handle(&one), handle(&other), pointer(&choice)];
        let decide = graph.add(&[], kernels.launch("choose_two", LaunchConfig::one(), args)).unwrap();
        let first = conditional(&graph, &[&decide], ConditionalForm::If, Test::Condition(one.key()), 1);
        first.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 2, 32)).unwrap();
        let second = conditional(&graph, &[&first], ConditionalForm::If, Test::Condition(other.key()), 1);
        let body = &second.bodies().unwrap()[0];
        let inner = body.add(&[], kernels.mix(&y, 1, 2, 32)).unwrap();
        let replaced = optimized(&graph, Optimizations::ALL);
        assert!(!kinds(&replaced).contains(&NodeKind::If), "{:?}", replaced.report());
        kernels.run(&replaced);
        assert_eq!((kernels.read(&x)[0], kernels.read(&y)[63]), (32, 32));
        // A kernel that uses a variable of its module has to stay as it is.
        inner.add(kernels.launch("bumps", LaunchConfig::one(), vec![])).unwrap();
        let kept = optimized(&graph, Optimizations::ALL);
        let report = kept.report();
        assert_eq!(kinds(&kept).iter().filter(|kind| **kind == NodeKind::If).count(), 2, "{report:?}");
        for node in [&first, &second] {
            let is_told = |(name, _): &(String, String)| *name == node.label();
            assert!(report.not_optimized.iter().any(is_told), "{report:?}");
        }
        kernels.run(&kept);
        assert_eq!((kernels.read(&x)[0], kernels.read(&y)[63]), (32 * 31 + 1, 32 * 31 + 1));
    }
}

#[test]
fn passes_of_a_branch_that_only_kernels_decide_are_counted_where_they_are_asked_for() {
    use gridloom_opt::{GraphOptimizer, Profile};
    let gpu = Profile { early_blocks: None, counts_passes: false, ..GPU };
    for kernels in Kernels::all() {
        let (x, choice) = (kernels.words(&[1; 64]), kernels.words(&[1]));
        let graph = Graph::new(&kernels.device);
        let condition = graph.condition(None);
        let args = vec![handle(&condition), pointer(&choice), value(2)];
        let decide = graph.add(&[], kernels.launch("choose", LaunchConfig::one(), args)).unwrap();
        let branch =
            conditional(&graph, &[&decide], ConditionalForm::If, Test::Condition(condition.key()), 1);
        branch.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 2, 32)).unwrap();
        for count_passes in [false, true] {
            let optimizer = GraphOptimizer::new(Optimizations::ALL).with_profile(gpu);
            let options = InstantiateOptions {
                optimizer: Some(std::sync::Arc::new(optimizer)),
                count_passes,
                ..InstantiateOptions::default()
            };
            let executable = graph.instantiate_with(&options).unwrap();
            kernels.run(&executable);
            match executable.passes(&branch) {
                Ok(passes) => assert!(count_passes && passes == 1, "{passes}"),
                Err(error) => assert!(!count_passes && error.to_string().contains("count_passes"), "{error}"),
            }
        }
    }
}

#[test]
fn a_loop_of_several_blocks_that_comes_first_is_repeated() {
    for kernels in Kernels::all() {
        let (x, left) = (kernels.words(&[1; 64]), kernels.words(&[20]));
        let graph = Graph::new(&kernels.device);
        let test = Test::Value(Region::whole(left.clone()));
        let repeat = conditional(&graph, &[], ConditionalForm::While, test, 1);
        let body = repeat.bodies().unwrap().remove(0);
        body.add(&[], kernels.mix(&x, 1, 2, 32)).unwrap();
        let last =
            body.add(&[], kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&left)])).unwrap();
        drop(last);
        let executable = optimized(&graph, Optimizations::ALL);
        let report = executable.report();
        assert!(
            report.optimized.iter().any(|line| line.contains("before the device tests again")),
            "{report:?}"
        );
        kernels.run(&executable);
        let expected = (0..20).fold(1u32, |value, _| value.wrapping_mul(31).wrapping_add(1));
        assert_eq!(kernels.read(&x), [expected; 64]);
        assert_eq!(executable.passes(&repeat).unwrap(), 20);
    }
}

#[test]
fn a_conditional_that_a_later_pass_does_not_reach_keeps_the_passes_of_its_last_execution() {
    for kernels in Kernels::all() {
        let (x, left) = (kernels.words(&[1; 32]), kernels.words(&[0]));
        let graph = Graph::new(&kernels.device);
        // Passes with 3, 2 and 1 left. The branch inside is taken while 2 or more are left.
        let set = graph.add(&[], fill(&left, 3)).unwrap();
        let around =
            conditional(&graph, &[&set], ConditionalForm::While, Test::Value(Region::whole(left.clone())), 1);
        let body = around.bodies().unwrap().remove(0);
        // A kernel of two blocks keeps the outer loop from being one kernel.
        let wide = kernels.words(&[1; 64]);
        let first = body.add(&[], kernels.mix(&wide, 1, 2, 32)).unwrap();
        let second =
            first.add(kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&left)])).unwrap();
        let test = Test::Value(Region::whole(left.clone()));
        let branch = conditional(&body, &[&second], ConditionalForm::If, test, 1);
        let inside = branch.bodies().unwrap().remove(0);
        let inner = conditional(&inside, &[], ConditionalForm::While, Test::Count(4), 1);
        inner.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let plain = graph.instantiate().unwrap();
        for executable in [plain, optimized(&graph, Optimizations::ALL)] {
            kernels.run(&executable);
            let passes = [&around, &branch, &inner].map(|node| executable.passes(node).unwrap());
            assert_eq!(passes, [3, 0, 4], "{:?}", executable.report());
        }
    }
}

#[test]
fn under_a_node_limit_an_endless_loop_of_one_block_ends() {
    for engine in [Engine::Interpreter, Engine::Jit] {
        let device = CpuDevice::new(CpuOptions::new().engine(engine).node_limit(1000)).unwrap();
        let kernels = Kernels::of(device);
        let x = kernels.words(&[0; 32]);
        let graph = Graph::new(&kernels.device);
        let again = graph.condition(Some(1));
        let repeat = conditional(&graph, &[], ConditionalForm::While, Test::Condition(again.key()), 1);
        repeat.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let optimizer = GraphOptimizer::new(Optimizations::ALL).everything();
        let options = InstantiateOptions { optimizer: Some(Arc::new(optimizer)), ..Default::default() };
        let executable = graph.instantiate_with(&options).unwrap();
        let stream = Stream::new(&kernels.device).unwrap();
        executable.launch(&stream).unwrap();
        assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}

#[test]
fn a_node_limit_counts_the_nodes_that_were_written() {
    for engine in [Engine::Interpreter, Engine::Jit] {
        for nodes in [4, 5] {
            let device = CpuDevice::new(CpuOptions::new().engine(engine).node_limit(4)).unwrap();
            let kernels = Kernels::of(device);
            let x = kernels.words(&[0; 32]);
            let graph = Graph::new(&kernels.device);
            let mut last = graph.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
            for by in 1..nodes {
                last = last.add(kernels.mix(&x, by, 1, 32)).unwrap();
            }
            let optimizer = GraphOptimizer::new(Optimizations::ALL).everything();
            let options = InstantiateOptions { optimizer: Some(Arc::new(optimizer)), ..Default::default() };
            let executable = graph.instantiate_with(&options).unwrap();
            let reason = executable.report().nodes[0].reason.clone().unwrap_or_default();
            assert!(reason.contains("limits the nodes"), "{:?}", executable.report());
            let stream = Stream::new(&kernels.device).unwrap();
            executable.launch(&stream).unwrap();
            assert_eq!(stream.synchronize().is_err(), nodes > 4);
        }
    }
}

#[test]
fn decisions_that_take_several_kernels_of_one_block_start_them_early() {
    let gpu = gridloom_opt::Profile {
        counts_passes: false,
        names_faults: false,
        cancels: false,
        max_argument_bytes: 512,
        ..GPU
    };
    for kernels in Kernels::all() {
        let (x, choice) = (kernels.words(&[1; 64]), kernels.words(&[1]));
        let graph = Graph::new(&kernels.device);
        let (mut last, mut conditions): (Option<Node>, Vec<Condition>) = (None, Vec::new());
        for by in 0..20 {
            let condition = graph.condition(Some(0));
            let args = vec![handle(&condition), pointer(&choice), value(2)];
            let after: Vec<&Node> = last.iter().collect();
            let choose = kernels.launch("choose", LaunchConfig::new(1, 32), args);
            let decide = graph.add(&after, choose).unwrap();
            let test = Test::Condition(condition.key());
            let branch = conditional(&graph, &[&decide], ConditionalForm::If, test, 1);
            branch.bodies().unwrap()[0].add(&[], kernels.mix(&x, by, 1, 64)).unwrap();
            last = Some(branch);
            conditions.push(condition);
        }
        let executable = optimized_for(gpu, &graph, Optimizations::ALL);
        let report = executable.report();
        let nodes = executable.optimized_graph().unwrap().unwrap().len();
        assert!((2..20).contains(&nodes), "{nodes} nodes, {report:?}");
        assert!(report.optimized.iter().any(|line| line.starts_with("early-start:")), "{report:?}");
        for _ in 0..2 {
            let before = kernels.read(&x)[0];
            kernels.run(&executable);
            let expected = (0..20u32).fold(before, |value, by| value.wrapping_mul(31).wrapping_add(by));
            assert_eq!(kernels.read(&x), [expected; 64]);
        }
    }
}

#[test]
fn blocks_that_wait_for_each_other_decide_as_whoever_set_the_condition_last() {
    for device in crate::common::devices() {
        let module = device.load_ptx(include_str!("../kernels/deciding.ptx")).unwrap();
        for name in module.kernel_names() {
            for (profile, blocks, passes, test_first) in [
                (WIDE_GPU, 2u32, 1u32, true),
                (WIDE_GPU, 5, 3, true),
                (WIDE_GPU, 5, 4, false),
                (WIDE_GPU, 8, 9, true),
                (Profile { resident_blocks: 16, ..WIDE_GPU }, 13, 4, true),
                (FEW_GPU, 3, 4, true),
                (FEW_GPU, 4, 5, false),
            ] {
                let words = |count: u32| {
                    let bytes: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
                    crate::common::buffer(&device, &bytes)
                };
                let (data, left, arrivals) = (words(64 * blocks), words(1), words(1));
                let graph = Graph::new(&device);
                let condition = graph.condition(Some(1));
                let form = ConditionalForm::While;
                let test = Test::Condition(condition.key());
                let spec = ConditionalSpec { form, test, test_first, max_passes: Some(20), bodies: 1 };
                let node = graph.add_conditional(&[], spec).unwrap();
                let kernel = module.clone().kernel(&name).unwrap();
                let args = vec![handle(&condition), pointer(&data), pointer(&left), pointer(&arrivals)];
                let args = KernelArgs::pack(&name, kernel.params(), args).unwrap();
                // SAFETY: the kernel gets what it takes, and memory that is large enough.
                let launch = unsafe { KernelOp::new(kernel, LaunchConfig::new(blocks, 64u32), args) };
                let body = node.bodies().unwrap().remove(0);
                let decides = body.add(&[], Operation::Kernel(Launch::new(launch))).unwrap();
                // Something may follow.
                if passes > 3 && profile == FEW_GPU {
                    let increase = vec![pointer(&data)];
                    let config = LaunchConfig::new(2u32, 32u32);
                    decides
                        .add(Kernels::of(device.clone()).launch("increase_all", config, increase))
                        .unwrap();
                }
                let run = |executable: &gridloom_core::Executable| {
                    let stream = Stream::new(&device).unwrap();
                    let mut found = Vec::new();
                    // Later launches start where the earlier ones ended.
                    for launch in 0..4 {
                        device.write(&*left, 0, &(passes + launch % 2).to_le_bytes()).unwrap();
                        executable.launch(&stream).unwrap();
                        stream.synchronize().unwrap();
                        let passes = executable.passes(&node).unwrap();
                        found.push((passes, crate::common::read(&device, &data)));
                    }
                    device.write(&*data, 0, &vec![7; 256 * blocks as usize]).unwrap();
                    found
                };
                device.write(&*data, 0, &vec![7; 256 * blocks as usize]).unwrap();
                let expected = run(&graph.instantiate().unwrap());
                let executable = optimized_for(profile, &graph, only(Optimization::Loops));
                let report = executable.report();
                assert!(report.optimized.iter().any(|line| line.contains("that run at once")), "{report:#?}");
                assert!(run(&executable) == expected, "{name}, {blocks} blocks, {passes} passes");
                let wanted: Vec<u64> = (0..4).map(|launch| u64::from(passes + launch % 2)).collect();
                let counted: Vec<u64> = expected.iter().map(|(passes, _)| *passes).collect();
                assert_eq!(counted, wanted, "{name}");
            }
        }
    }
}
