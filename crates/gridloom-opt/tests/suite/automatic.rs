//! Executables that are optimised while they run.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gridloom_core::executable::InstantiateOptions;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::{ConditionalForm, Operation, Test};
use gridloom_core::{ErrorKind, Executable, Graph, Node, Stream};
use gridloom_opt::{GraphOptimizer, Optimizations};

use crate::graphs::{GPU, Kernels, fill, pointer};

/// Instantiates a graph that is optimised after so many launches.
pub(crate) fn automatic(graph: &Graph, launches: u32) -> Executable {
    let optimizer = GraphOptimizer::automatic(Optimizations::ALL).after(launches).with_profile(GPU);
    let options =
        InstantiateOptions { optimizer: Some(Arc::new(optimizer)), ..InstantiateOptions::default() };
    graph.instantiate_with(&options).unwrap()
}

fn is_optimized(executable: &Executable) -> bool {
    executable.optimized_graph().unwrap().is_some()
}

/// Launches until the optimised form runs. Returns how often.
fn launch_until_optimized(kernels: &Kernels, executable: &Executable) -> u32 {
    let start = Instant::now();
    let mut launches = 0;
    while !is_optimized(executable) {
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", executable.report());
        kernels.run(executable);
        launches += 1;
        thread::sleep(Duration::from_millis(1));
    }
    launches
}

/// A chain of kernels of one block: `x = x * 31 + by`, for each `by`.
fn chain(
    kernels: &Kernels,
    x: &Arc<dyn gridloom_core::backend::Allocation>,
    by: &[u32],
) -> (Graph, Vec<Node>) {
    let graph = Graph::new(&kernels.device);
    let mut nodes: Vec<Node> = Vec::new();
    for &by in by {
        let after: Vec<&Node> = nodes.last().into_iter().collect();
        nodes.push(graph.add(&after, kernels.mix(x, by, 1, 32)).unwrap());
    }
    (graph, nodes)
}

fn mixed(start: u32, by: &[u32]) -> u32 {
    by.iter().fold(start, |value, by| value.wrapping_mul(31).wrapping_add(*by))
}

#[test]
fn an_executable_that_is_launched_repeatedly_takes_the_optimised_form_over() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let by = [3, 5, 7];
        let (graph, _) = chain(&kernels, &x, &by);
        let executable = automatic(&graph, 4);
        let mut expected = 1;
        for launch in 0..4 {
            assert!(!is_optimized(&executable), "launch {launch}");
            let (_, reason) = &executable.report().not_optimized[0];
            assert!(reason.contains("more launches"), "{reason}");
            kernels.run(&executable);
            expected = mixed(expected, &by);
            assert_eq!(kernels.read(&x), [expected; 32]);
        }
        for _ in 0..launch_until_optimized(&kernels, &executable) {
            expected = mixed(expected, &by);
        }
        assert_eq!(kernels.read(&x), [expected; 32]);
        assert_eq!(executable.optimized_graph().unwrap().unwrap().len(), 1);
        assert!(executable.report().optimized[0].starts_with("chains:"), "{:?}", executable.report());
    }
}

#[test]
fn changes_before_during_and_after_the_compilation_are_honoured() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let mut by = [3, 5, 7, 9];
        let (graph, nodes) = chain(&kernels, &x, &by);
        let executable = automatic(&graph, 2);
        let (mut expected, mut was_optimized, mut launch) = (1, 0, 0u32);
        while was_optimized < 5 {
            assert!(launch < 100_000, "{:?}", executable.report());
            let at = launch as usize % 4;
            by[at] = launch;
            let operation = kernels.mix(&x, launch, 1, 32);
            executable.set_operations([(&nodes[at], operation)]).unwrap();
            kernels.run(&executable);
            expected = mixed(expected, &by);
            assert_eq!(kernels.read(&x), [expected; 32], "launch {launch}");
            was_optimized += u32::from(is_optimized(&executable));
            launch += 1;
            thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn a_change_that_needs_other_kernels_brings_the_written_form_back_until_those_are_made() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 64]);
        let (graph, nodes) = chain(&kernels, &x, &[3, 5, 7]);
        let executable = automatic(&graph, 1);
        launch_until_optimized(&kernels, &executable);
        executable.node(&nodes[1]).unwrap().set_enabled(false).unwrap();
        assert!(!is_optimized(&executable));
        let before = kernels.read(&x)[0];
        kernels.run(&executable);
        assert_eq!(kernels.read(&x)[0], mixed(before, &[3, 7]));
        executable.node(&nodes[1]).unwrap().set_enabled(true).unwrap();
        launch_until_optimized(&kernels, &executable);
        let before = kernels.read(&x)[0];
        kernels.run(&executable);
        assert_eq!(kernels.read(&x)[0], mixed(before, &[3, 5, 7]));
        // Another shape: twice as many threads.
        executable.set_operations([(&nodes[1], kernels.mix(&x, 5, 1, 64))]).unwrap();
        assert!(!is_optimized(&executable));
        let before = kernels.read(&x);
        kernels.run(&executable);
        let after = kernels.read(&x);
        assert_eq!((after[0], after[40]), (mixed(before[0], &[3, 5, 7]), mixed(before[40], &[5])));
    }
}

#[test]
fn an_executable_whose_changes_keep_needing_other_kernels_stays_as_written() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let (graph, nodes) = chain(&kernels, &x, &[3, 5]);
        let executable = automatic(&graph, 0);
        for round in 0..4 {
            launch_until_optimized(&kernels, &executable);
            executable.node(&nodes[0]).unwrap().set_enabled(false).unwrap();
            executable.node(&nodes[0]).unwrap().set_enabled(true).unwrap();
            assert!(!is_optimized(&executable), "round {round}");
        }
        let report = executable.report();
        assert!(report.not_optimized[0].1.contains("need other kernels"), "{report:?}");
        for _ in 0..50 {
            kernels.run(&executable);
        }
        assert!(!is_optimized(&executable));
    }
}

#[test]
fn what_an_executable_uses_is_freed_with_it_even_while_its_kernels_are_compiled() {
    for kernels in Kernels::all() {
        for launches in [1, 2, 3] {
            let x = kernels.words(&[1; 32]);
            let (graph, nodes) = chain(&kernels, &x, &[3, 5, 7, 11, 13]);
            let executable = automatic(&graph, 0);
            for _ in 0..launches {
                kernels.run(&executable);
            }
            drop((graph, nodes, executable));
            kernels.device.wait_all().unwrap();
            let start = Instant::now();
            while Arc::strong_count(&x) > 1 {
                assert!(start.elapsed() < Duration::from_secs(20), "{} references", Arc::strong_count(&x));
                thread::yield_now();
            }
        }
    }
}

#[test]
fn memory_that_an_update_replaces_is_let_go_in_both_forms() {
    for kernels in Kernels::all() {
        let (x, y, z) = (kernels.words(&[1; 32]), kernels.words(&[2; 32]), kernels.words(&[3; 32]));
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 3, 1, 32)).unwrap();
        let second = first.add(kernels.mix(&x, 5, 1, 32)).unwrap();
        let executable = automatic(&graph, 0);
        drop(graph);
        let replace = |memory| {
            let changes = [(&first, kernels.mix(memory, 3, 1, 32)), (&second, kernels.mix(memory, 5, 1, 32))];
            executable.set_operations(changes).unwrap();
            kernels.run(&executable);
        };
        replace(&y);
        launch_until_optimized(&kernels, &executable);
        replace(&z);
        kernels.device.wait_all().unwrap();
        let start = Instant::now();
        while Arc::strong_count(&y) > 1 {
            assert!(start.elapsed() < Duration::from_secs(20), "{} references", Arc::strong_count(&y));
            thread::yield_now();
        }
        assert_eq!(kernels.read(&z), [mixed(3, &[3, 5]); 32]);
    }
}

#[test]
fn passes_stay_those_of_the_latest_launch_when_the_form_changes() {
    for kernels in Kernels::all() {
        let (x, left) = (kernels.words(&[1; 32]), kernels.words(&[0]));
        let graph = Graph::new(&kernels.device);
        let set = graph.add(&[], fill(&left, 5)).unwrap();
        let test = Test::Value(gridloom_core::memory::Region::whole(left.clone()));
        let form = ConditionalForm::While;
        let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 1 };
        let node = graph.add_conditional(&[&set], spec).unwrap();
        let body = node.bodies().unwrap().remove(0);
        let step = body.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        step.add(kernels.launch("decrement", LaunchConfig::one(), vec![pointer(&left)])).unwrap();
        let executable = automatic(&graph, 0);
        kernels.run(&executable);
        assert_eq!(executable.passes(&node).unwrap(), 5);
        launch_until_optimized(&kernels, &executable);
        assert_eq!(executable.passes(&node).unwrap(), 5);
        // Brings the written form back, which has not been launched.
        executable.node(&step).unwrap().set_enabled(false).unwrap();
        assert!(!is_optimized(&executable));
        assert_eq!(executable.passes(&node).unwrap(), 5);
        executable.set_operations([(&set, fill(&left, 3))]).unwrap();
        kernels.run(&executable);
        assert_eq!(executable.passes(&node).unwrap(), 3);
    }
}

#[test]
fn launches_on_many_streams_keep_their_order_when_the_form_changes() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let by = [3, 5, 7];
        let (graph, nodes) = chain(&kernels, &x, &by);
        let executable = automatic(&graph, 3);
        let streams: Vec<Stream> = (0..4).map(|_| Stream::new(&kernels.device).unwrap()).collect();
        let (mut expected, mut after) = (1, 0);
        for launch in 0..100_000 {
            executable.launch(&streams[launch % 4]).unwrap();
            expected = mixed(expected, &by);
            if is_optimized(&executable) {
                after += 1;
                if after == 20 {
                    executable.node(&nodes[0]).unwrap().set_enabled(false).unwrap();
                    executable.node(&nodes[0]).unwrap().set_enabled(true).unwrap();
                }
            }
            if after > 30 || after == 20 && launch > 90_000 {
                break;
            }
            if launch % 16 == 15 {
                kernels.device.wait_all().unwrap();
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        assert!(after > 20, "{after}");
        assert_eq!(kernels.read(&x), [expected; 32]);
    }
}

#[test]
fn an_executable_is_cancelled_in_either_form() {
    for kernels in Kernels::all() {
        // A loop that ends only when it is cancelled.
        let (x, flag) = (kernels.words(&[1; 32]), kernels.words(&[0]));
        let graph = Graph::new(&kernels.device);
        let test = Test::Value(gridloom_core::memory::Region::whole(flag.clone()));
        let form = ConditionalForm::While;
        let spec = ConditionalSpec { form, test, test_first: true, max_passes: None, bodies: 1 };
        let node = graph.add_conditional(&[], spec).unwrap();
        node.bodies().unwrap()[0].add(&[], kernels.mix(&x, 1, 3, 8)).unwrap();
        let chain = node.add(kernels.mix(&x, 1, 1, 32)).unwrap();
        chain.add(kernels.mix(&x, 2, 1, 32)).unwrap();
        let executable = automatic(&graph, 0);
        launch_until_optimized(&kernels, &executable);
        kernels.device.write(&*flag, 0, &1u32.to_le_bytes()).unwrap();
        let stream = Stream::new(&kernels.device).unwrap();
        executable.launch(&stream).unwrap();
        executable.cancel();
        assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn a_graph_without_anything_to_gain_stays_as_written_and_says_so() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 2048]);
        let one = Graph::new(&kernels.device);
        one.add(&[], kernels.mix(&x, 1, 1, 32)).unwrap();
        let executable = automatic(&one, 0);
        kernels.run(&executable);
        kernels.run(&executable);
        assert_eq!(executable.report().not_optimized, [("the graph".into(), "it has one node".into())]);
        let two = Graph::new(&kernels.device);
        two.add(&[], kernels.mix(&x, 1, 600, 1)).unwrap().add(kernels.mix(&x, 1, 599, 2)).unwrap();
        let executable = automatic(&two, 0);
        let start = Instant::now();
        while !executable.report().not_optimized[0].1.contains("nothing to gain") {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?}", executable.report());
            kernels.run(&executable);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn many_threads_share_executables_that_are_optimised_meanwhile() {
    for kernels in Kernels::all() {
        let executables: Vec<_> = (0..6u32)
            .map(|number| {
                let x = kernels.words(&[number; 32]);
                let (graph, nodes) = chain(&kernels, &x, &[number + 1, 5, number + 9]);
                (x, nodes, automatic(&graph, number))
            })
            .collect();
        thread::scope(|scope| {
            for thread in 0..3 {
                let (executables, kernels) = (&executables, &kernels);
                scope.spawn(move || {
                    let stream = Stream::new(&kernels.device).unwrap();
                    for round in 0..200 {
                        let (x, nodes, executable) = &executables[(round + thread) % executables.len()];
                        if round % 7 == thread {
                            let operation = kernels.mix(x, 77, 1, 32);
                            executable.set_operations([(&nodes[1], operation)]).unwrap();
                        }
                        executable.launch(&stream).unwrap();
                        if round % 10 == 0 {
                            stream.synchronize().unwrap();
                            drop(executable.report());
                        }
                    }
                    stream.synchronize().unwrap();
                });
            }
        });
        for (number, (x, nodes, executable)) in executables.iter().enumerate() {
            let number = number as u32;
            launch_until_optimized(&kernels, executable);
            executable.set_operations([(&nodes[1], kernels.mix(x, 6, 1, 32))]).unwrap();
            let before = kernels.read(x)[0];
            kernels.run(executable);
            assert_eq!(kernels.read(x), [mixed(before, &[number + 1, 6, number + 9]); 32]);
        }
    }
}

#[test]
fn an_operation_that_is_refused_leaves_the_optimised_form() {
    for kernels in Kernels::all() {
        let x = kernels.words(&[1; 32]);
        let (graph, nodes) = chain(&kernels, &x, &[3, 5]);
        let executable = automatic(&graph, 0);
        launch_until_optimized(&kernels, &executable);
        assert!(executable.set_operations([(&nodes[0], Operation::Empty)]).is_err());
        assert!(is_optimized(&executable));
        let before = kernels.read(&x)[0];
        kernels.run(&executable);
        assert_eq!(kernels.read(&x)[0], mixed(before, &[3, 5]));
    }
}
