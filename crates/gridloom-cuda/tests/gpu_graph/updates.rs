//! Updates of executables: new operations, and nodes that are disabled and enabled.

use super::common::*;
use super::{MODES, gpus, instantiate, launch, value};
use gridloom_core::Event;
use gridloom_core::backend::EventOptions;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{CallbackOp, ConditionalForm, Operation, Test};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn arguments_are_updated_in_place_also_inside_a_loop() {
    for gpu in gpus() {
        for mode in MODES {
            let (a, b) = (gpu.words(&[0; 4]), gpu.words(&[0; 4]));
            let graph = gpu.graph();
            let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Count(3), 1);
            let node = bodies[0].add(&[], gpu.add(&a, 1)).unwrap();
            let executable = instantiate(&graph, mode);
            launch(&gpu, &executable);
            executable.node(&node).unwrap().set_operation(gpu.add(&b, 10)).unwrap();
            launch(&gpu, &executable);
            assert_eq!((gpu.read(&a), gpu.read(&b)), (vec![3; 4], vec![30; 4]), "{mode:?}");
        }
    }
}

#[test]
fn a_loop_may_be_updated_to_test_other_memory_and_another_count() {
    for gpu in gpus() {
        for mode in MODES {
            let (left, other, log) = (gpu.words(&[2]), gpu.words(&[5]), gpu.words(&[0; 16]));
            let graph = gpu.graph();
            let (node, bodies) = conditional(&graph, &[], ConditionalForm::While, value(&left), 1);
            bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
            let down = bodies[0].add(&[], gpu.add(&left, -1)).unwrap();
            let executable = instantiate(&graph, mode);
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&log)[0], 2, "{mode:?}");
            let Operation::Conditional(op) = node.operation().unwrap() else { panic!() };
            let mut changed = (*op).clone();
            changed.test = value(&other);
            executable
                .set_operations([
                    (&node, Operation::Conditional(Arc::new(changed))),
                    (&down, gpu.add(&other, -1)),
                ])
                .unwrap();
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&log)[0], 7, "{mode:?}");
        }
    }
}

#[test]
fn fills_copies_callbacks_and_events_are_updated() {
    for gpu in gpus() {
        let (a, b) = (gpu.words(&[1; 4]), gpu.words(&[2; 4]));
        let host = gpu.backend.allocate(16, MemoryKind::Host).unwrap();
        let calls = Arc::new(AtomicU32::new(0));
        let call = |by: u32| {
            let calls = Arc::clone(&calls);
            let closure = move || {
                calls.fetch_add(by, Ordering::SeqCst);
            };
            Operation::Callback(CallbackOp::closure(closure))
        };
        let events = [0, 1].map(|_| Event::new(&gpu.backend, EventOptions::default()).unwrap());
        let graph = gpu.graph();
        let n1 = graph.add(&[], fill(&whole(&a), 7, 4)).unwrap();
        let n2 = graph.add(&[&n1], copy(&whole(&host), &whole(&a))).unwrap();
        let n3 = graph.add(&[&n2], call(1)).unwrap();
        let n4 = graph.add(&[&n3], Operation::EventRecord(events[0].backend().clone())).unwrap();
        let executable = graph.instantiate().unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&host), [7; 4]);
        executable.node(&n1).unwrap().set_operation(fill(&whole(&a), 9, 4)).unwrap();
        executable.node(&n3).unwrap().set_operation(call(100)).unwrap();
        executable
            .node(&n4)
            .unwrap()
            .set_operation(Operation::EventRecord(events[1].backend().clone()))
            .unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&host), [9; 4]);
        assert_eq!(calls.load(Ordering::SeqCst), 101);
        // Another direction, another shape and another source: whether in place or compiled anew,
        // the result is the same.
        executable.node(&n2).unwrap().set_operation(copy(&whole(&b), &whole(&host))).unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&b), [9; 4]);
        let bytes = Region::from_bytes(vec![1u8; 16]);
        executable.node(&n2).unwrap().set_operation(copy(&whole(&b), &bytes)).unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&b), [0x0101_0101; 4]);
    }
}

#[test]
fn a_disabled_node_does_nothing_until_it_is_enabled_also_in_a_body() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 32]);
        let graph = gpu.graph();
        let first = graph.add(&[], gpu.append(&log, 1)).unwrap();
        let (_, bodies) = conditional(&graph, &[&first], ConditionalForm::While, Test::Count(2), 1);
        let inner = bodies[0].add(&[], gpu.append(&log, 2)).unwrap();
        let executable = graph.instantiate().unwrap();
        for (first_on, inner_on, appended) in
            [(true, true, 3), (false, true, 2), (true, false, 1), (true, true, 3)]
        {
            executable.node(&first).unwrap().set_enabled(first_on).unwrap();
            executable.node(&inner).unwrap().set_enabled(inner_on).unwrap();
            let before = gpu.read(&log)[0];
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&log)[0] - before, appended, "{first_on} {inner_on}");
        }
    }
}

#[test]
fn a_disabled_cooperative_kernel_does_nothing_until_it_is_enabled() {
    for gpu in gpus() {
        let (log, buffer) = (gpu.words(&[0; 160]), gpu.words(&[0; 64]));
        let cooperative = LaunchConfig::new(2, 32).cooperative();
        let add = gpu.launch_with(&gpu.kernel("add"), cooperative, [at(&buffer), int(1), uint(64)]);
        let graph = gpu.graph();
        let first = graph.add(&[], gpu.append(&log, 1)).unwrap();
        let node = graph.add(&[&first], add).unwrap();
        graph.add(&[&node], gpu.append(&log, 2)).unwrap();
        let executable = graph.instantiate().unwrap();
        for round in 0..64 {
            executable.node(&node).unwrap().set_enabled(round % 2 == 0).unwrap();
            executable.launch(&gpu.stream).unwrap();
        }
        gpu.stream.synchronize().unwrap();
        assert_eq!(gpu.read(&buffer), [32; 64]);
        assert_eq!(gpu.read(&log)[0], 128);
    }
}

#[test]
fn a_launch_attribute_can_be_updated() {
    for gpu in gpus() {
        let buffer = gpu.words(&[0; 64]);
        let kernel = gpu.kernel("add");
        let op = |config| gpu.launch_with(&kernel, config, [at(&buffer), int(1), uint(64)]);
        let graph = gpu.graph();
        let node = graph.add(&[], op(LaunchConfig::linear(64))).unwrap();
        let executable = graph.instantiate().unwrap();
        launch(&gpu, &executable);
        let cooperative = LaunchConfig::new(2, 32).cooperative();
        executable.node(&node).unwrap().set_operation(op(cooperative)).unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&buffer), [2; 64]);
        let wider = LaunchConfig::new(1, 64).cooperative();
        executable.node(&node).unwrap().set_operation(op(wider)).unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&buffer), [3; 64]);
    }
}
