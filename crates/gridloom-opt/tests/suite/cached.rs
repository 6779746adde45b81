//! Rewritten kernels are kept with their device.

use std::sync::{Arc, Weak};
use std::thread;

use gridloom_core::Graph;
use gridloom_core::backend::Kernel;
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::op::Operation;
use gridloom_opt::{GraphOptimizer, Optimizations};

use crate::common::devices;
use crate::graphs::Kernels;

fn options() -> InstantiateOptions {
    let optimizer = Arc::new(GraphOptimizer::new(Optimizations::ALL).everything());
    InstantiateOptions { optimizer: Some(optimizer), ..InstantiateOptions::default() }
}

/// A chain of one-block kernels, then a fan. `by` starts the arguments.
fn graph(kernels: &Kernels, by: u32) -> (Graph, Vec<Arc<dyn gridloom_core::backend::Allocation>>) {
    let graph = Graph::new(&kernels.device);
    let data: Vec<_> = (0..4).map(|_| kernels.words(&[1; 64])).collect();
    let mut last = graph.add(&[], kernels.mix(&data[0], by, 1, 64)).unwrap();
    for step in 1..5 {
        last = graph.add(&[&last], kernels.mix(&data[0], by + step, 1, 64)).unwrap();
    }
    for (index, data) in data.iter().enumerate() {
        graph.add(&[&last], kernels.mix(data, by + index as u32, 2, 32)).unwrap();
    }
    (graph, data)
}

/// The kernels that an executable of the graph runs.
fn rewritten(executable: &gridloom_core::Executable) -> Vec<Arc<dyn Kernel>> {
    let graph = executable.optimized_graph().unwrap().unwrap();
    let mut found = Vec::new();
    for node in graph.nodes() {
        if let Operation::Kernel(launch) = node.operation().unwrap() {
            found.push(launch.kernel().clone());
        }
    }
    found
}

fn same(one: &[Arc<dyn Kernel>], other: &[Arc<dyn Kernel>]) -> bool {
    // A graph has kernels of its own that know its nodes, around what the device compiled.
    let made = |kernel: &Arc<dyn Kernel>| kernel.unsigned().unwrap_or(kernel).clone();
    let pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.into_iter().all(|(one, other)| Arc::ptr_eq(&made(one), &made(other)))
}

#[test]
fn a_graph_that_is_built_again_compiles_nothing() {
    for kernels in Kernels::all() {
        let (one, _data) = graph(&kernels, 1);
        let first = rewritten(&one.instantiate_with(&options()).unwrap());
        assert_eq!(first.len(), 2, "a chain and a batch");
        // With other arguments, and after the first graph and its executable are gone.
        drop(one);
        let (two, data) = graph(&kernels, 7);
        let executable = two.instantiate_with(&options()).unwrap();
        assert!(same(&first, &rewritten(&executable)), "{first:?}");
        kernels.run(&executable);
        let optimized: Vec<_> = data.iter().map(|data| kernels.read(data)).collect();
        let (plain, data) = graph(&kernels, 7);
        kernels.run(&plain.instantiate().unwrap());
        let expected: Vec<_> = data.iter().map(|data| kernels.read(data)).collect();
        assert_eq!(optimized, expected);
    }
}

#[test]
fn modules_with_the_same_text_share_rewritten_kernels() {
    for device in devices() {
        let [one, two] = [(); 2].map(|()| Kernels::of(device.clone()));
        let (first, second) = (graph(&one, 1), graph(&two, 1));
        let (first, second) =
            (first.0.instantiate_with(&options()).unwrap(), second.0.instantiate_with(&options()).unwrap());
        assert!(same(&rewritten(&first), &rewritten(&second)));
    }
}

#[test]
fn another_shape_is_another_kernel() {
    for kernels in Kernels::all() {
        let data = kernels.words(&[1; 64]);
        let make = |threads| {
            let graph = Graph::new(&kernels.device);
            let first = graph.add(&[], kernels.mix(&data, 1, 1, threads)).unwrap();
            graph.add(&[&first], kernels.mix(&data, 2, 1, threads)).unwrap();
            rewritten(&graph.instantiate_with(&options()).unwrap())
        };
        let (small, large) = (make(32), make(64));
        assert!(!same(&small, &large));
        assert!(same(&small, &make(32)) && same(&large, &make(64)));
    }
}

#[test]
fn rewritten_kernels_go_with_their_device() {
    for kernels in Kernels::all() {
        let (graph, data) = graph(&kernels, 1);
        let executable = graph.instantiate_with(&options()).unwrap();
        kernels.run(&executable);
        let weak: Vec<Weak<dyn Kernel>> = rewritten(&executable).iter().map(Arc::downgrade).collect();
        let device = Arc::downgrade(&kernels.device);
        drop((graph, data, executable));
        // The release thread may still hold the executable.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        drop(kernels);
        while device.upgrade().is_some() || weak.iter().any(|kernel| kernel.upgrade().is_some()) {
            assert!(std::time::Instant::now() < deadline, "something keeps the device or its kernels");
            thread::yield_now();
        }
    }
}

#[test]
fn threads_that_build_the_same_graph_get_the_same_kernels() {
    for kernels in Kernels::all() {
        let built: Vec<Vec<Arc<dyn Kernel>>> = thread::scope(|scope| {
            let build = || {
                let (graph, data) = graph(&kernels, 3);
                let executable = graph.instantiate_with(&options()).unwrap();
                kernels.run(&executable);
                let expected = {
                    let (plain, data) = crate::cached::graph(&kernels, 3);
                    kernels.run(&plain.instantiate().unwrap());
                    data.iter().map(|data| kernels.read(data)).collect::<Vec<_>>()
                };
                assert_eq!(data.iter().map(|data| kernels.read(data)).collect::<Vec<_>>(), expected);
                rewritten(&executable)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(built.iter().all(|other| same(&built[0], other)));
    }
}
