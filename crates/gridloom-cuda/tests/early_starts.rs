//! Kernels start before the one they follow has ended only if they wait for it themselves. On a
//! simulated driver everywhere, and on a GPU where there is one.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{Allocation, Kernel, Module};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::{EdgeKind, Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::{ConditionalForm, Operation, Test};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The kernels of a device, and a word for each of two kernels of a graph.
struct Stage {
    gpu: Gpu,
    module: Arc<dyn Module>,
    words: [Arc<dyn Allocation>; 2],
    simulated: bool,
    _alone: MutexGuard<'static, ()>,
}

/// One test at a time: what the simulated driver has seen is that of all threads.
fn for_each_stage(test: impl Fn(&Stage)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let real = gpu().filter(|gpu| gpu.device.compute_capability() >= (9, 0));
    for (simulated, gpu) in [(true, Some(Gpu::new(simulator::device(None)))), (false, real)] {
        let Some(gpu) = gpu else { continue };
        let module = gpu.backend.load_ptx(include_str!("kernels/early.ptx")).unwrap();
        let words = [gpu.words(&[0]), gpu.words(&[0])];
        test(&Stage { gpu, module, words, simulated, _alone: ALONE.lock() });
        assert_eq!(simulator::violations(), [""; 0]);
    }
}

impl Stage {
    fn kernel(&self, name: &str) -> Arc<dyn Kernel> {
        self.module.clone().kernel(name).unwrap()
    }

    fn launch(&self, name: &str, word: usize, config: LaunchConfig) -> Operation {
        self.gpu.launch_with(&self.kernel(name), config, [at(&self.words[word]), uint(20)])
    }

    /// Adds a slow kernel that lets others start, and `name` after it, over a programmatic edge.
    fn pair(&self, graph: &Graph, name: &str) -> [Node; 2] {
        let first = graph.add(&[], self.launch("trigger_and_add", 0, LaunchConfig::one())).unwrap();
        let second = graph.add(&[], self.launch(name, 1, LaunchConfig::one())).unwrap();
        graph.add_edge(&first, &second, EdgeKind::Programmatic).unwrap();
        [first, second]
    }

    /// The values of both words.
    fn values(&self) -> [i32; 2] {
        [self.gpu.read(&self.words[0])[0], self.gpu.read(&self.words[1])[0]]
    }

    /// How many early starts the latest executable of the simulated driver has.
    fn assert_early_starts(&self, expected: usize) {
        if self.simulated {
            assert_eq!(simulator::early_starts(), expected);
        }
    }
}

const LAUNCHES: i32 = 30;

#[test]
fn a_kernel_that_waits_starts_early() {
    for_each_stage(|stage| {
        let graph = stage.gpu.graph();
        stage.pair(&graph, "wait_and_add");
        let executable = graph.instantiate().unwrap();
        stage.assert_early_starts(1);
        (0..LAUNCHES).for_each(|_| executable.launch(&stage.gpu.stream).unwrap());
        assert_eq!(stage.values(), [LAUNCHES; 2]);
    });
}

#[test]
fn a_kernel_that_does_not_wait_starts_after_the_one_before_it() {
    for_each_stage(|stage| {
        let graph = stage.gpu.graph();
        stage.pair(&graph, "only_add");
        let executable = graph.instantiate().unwrap();
        stage.assert_early_starts(0);
        (0..LAUNCHES).for_each(|_| executable.launch(&stage.gpu.stream).unwrap());
        assert_eq!(stage.values(), [LAUNCHES; 2]);
    });
}

#[test]
fn in_a_loop_the_kernels_of_one_pass_end_before_those_of_the_next_begin() {
    for_each_stage(|stage| {
        for (index, name) in ["only_add", "wait_and_add"].into_iter().enumerate() {
            let graph = stage.gpu.graph();
            let passes = Test::Count(LAUNCHES as u64);
            let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, passes, 1);
            stage.pair(&bodies[0], name);
            let options =
                InstantiateOptions { conditional_mode: ConditionalMode::Native, ..Default::default() };
            let executable = graph.instantiate_with(&options).unwrap();
            (0..2).for_each(|_| executable.launch(&stage.gpu.stream).unwrap());
            assert_eq!(stage.values(), [2 * (index as i32 + 1) * LAUNCHES; 2], "{name}");
        }
    });
}

#[test]
fn on_a_stream_a_kernel_that_does_not_wait_starts_after_the_graph_before_it() {
    for_each_stage(|stage| {
        for (index, name) in ["only_add", "wait_and_add"].into_iter().enumerate() {
            let graph = stage.gpu.graph();
            graph.add(&[], stage.launch("trigger_and_add", 0, LaunchConfig::one())).unwrap();
            let executable = graph.instantiate().unwrap();
            for _ in 0..LAUNCHES {
                executable.launch(&stage.gpu.stream).unwrap();
                let launch = stage.launch(name, 1, LaunchConfig::one().programmatic());
                stage.gpu.stream.enqueue(launch).unwrap();
            }
            assert_eq!(stage.values(), [(index as i32 + 1) * LAUNCHES; 2], "{name}");
        }
    });
}

#[test]
fn an_update_to_a_kernel_that_does_not_wait_ends_the_early_start() {
    for_each_stage(|stage| {
        let graph = stage.gpu.graph();
        let [_, second] = stage.pair(&graph, "wait_and_add");
        let executable = graph.instantiate().unwrap();
        executable.launch(&stage.gpu.stream).unwrap();
        let other = stage.launch("only_add", 1, LaunchConfig::one());
        executable.node(&second).unwrap().set_operation(other).unwrap();
        (0..LAUNCHES).for_each(|_| executable.launch(&stage.gpu.stream).unwrap());
        assert_eq!(stage.values(), [LAUNCHES + 1; 2]);
        stage.assert_early_starts(0);
        let waiting = stage.launch("wait_and_add", 1, LaunchConfig::one());
        executable.node(&second).unwrap().set_operation(waiting).unwrap();
        executable.launch(&stage.gpu.stream).unwrap();
        assert_eq!(stage.values(), [LAUNCHES + 2; 2]);
    });
}

#[test]
fn a_disabled_kernel_takes_no_part_in_an_early_start() {
    for_each_stage(|stage| {
        for disabled in [0, 1] {
            let before = stage.values();
            let graph = stage.gpu.graph();
            let pair = stage.pair(&graph, "wait_and_add");
            let executable = graph.instantiate().unwrap();
            executable.launch(&stage.gpu.stream).unwrap();
            executable.node(&pair[disabled]).unwrap().set_enabled(false).unwrap();
            (0..LAUNCHES).for_each(|_| executable.launch(&stage.gpu.stream).unwrap());
            executable.node(&pair[disabled]).unwrap().set_enabled(true).unwrap();
            executable.launch(&stage.gpu.stream).unwrap();
            let mut expected = before.map(|value| value + LAUNCHES + 2);
            expected[disabled] = before[disabled] + 2;
            assert_eq!(stage.values(), expected);
        }
    });
}
