//! Conditionals: which bodies run, and how often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::*;
use gridloom_core::backend::{Device, Module};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, Operation, Test};
use gridloom_core::{Condition, ErrorKind, Graph, Node};

fn set(module: &Arc<dyn Module>, condition: &Condition, to: u32) -> Operation {
    launch(module, "set", LaunchConfig::one(), [handle(condition), value(to)])
}

/// A counter, and the callback that counts.
fn counter() -> (Arc<AtomicU32>, impl Fn() -> Operation) {
    let count = Arc::new(AtomicU32::new(0));
    let shared = count.clone();
    let op = move || {
        let count = shared.clone();
        callback(move || _ = count.fetch_add(1, Ordering::SeqCst))
    };
    (count, op)
}

fn body(node: &Node, index: usize) -> Graph {
    node.bodies().unwrap().remove(index)
}

/// Runs a conditional over so many bodies with this value, set by a kernel, and returns how often
/// each body ran.
fn choose(device: &Arc<dyn Device>, form: ConditionalForm, bodies: usize, to: u32) -> Vec<u32> {
    let graph = Graph::new(device);
    let condition = graph.condition(None);
    let decide = graph.add(&[], set(&module(device), &condition, to)).unwrap();
    let node = graph
        .add_conditional(&[&decide], conditional(form, Test::Condition(condition.key()), bodies))
        .unwrap();
    let counts: Vec<_> = (0..bodies)
        .map(|index| {
            let (count, op) = counter();
            body(&node, index).add(&[], op()).unwrap();
            count
        })
        .collect();
    let (executable, stream) = (graph.instantiate().unwrap(), stream(device));
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    let counts: Vec<u32> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert_eq!(executable.passes(&node).unwrap(), u64::from(counts.iter().sum::<u32>()));
    counts
}

#[test]
fn an_if_runs_its_body_when_the_value_is_not_zero() {
    let device = device(2);
    assert_eq!(choose(&device, ConditionalForm::If, 1, 0), [0]);
    assert_eq!(choose(&device, ConditionalForm::If, 1, 1), [1]);
    assert_eq!(choose(&device, ConditionalForm::If, 1, 77), [1]);
}

#[test]
fn an_if_else_runs_exactly_one_body() {
    let device = device(2);
    assert_eq!(choose(&device, ConditionalForm::IfElse, 2, 0), [0, 1]);
    assert_eq!(choose(&device, ConditionalForm::IfElse, 2, 3), [1, 0]);
}

#[test]
fn a_switch_runs_the_body_of_its_value_or_none() {
    let device = device(2);
    for to in 0..5 {
        let expected: Vec<u32> = (0..3).map(|index| u32::from(index == to)).collect();
        assert_eq!(choose(&device, ConditionalForm::Switch, 3, to), expected);
    }
}

#[test]
fn a_while_tests_before_each_pass_and_reports_them() {
    let device = device(2);
    let module = module(&device);
    for (default, start, passes) in [(Some(0), 5, 0), (None, 5, 0), (Some(1), 5, 5), (Some(1), 1, 1)] {
        let graph = Graph::new(&device);
        let (left, sum) = (buffer(&device, 4), number(&device, 0));
        let again = graph.condition(default);
        let init = graph.add(&[], fill(Region::whole(left.clone()), start, 4)).unwrap();
        let spec = conditional(ConditionalForm::While, Test::Condition(again.key()), 1);
        let node = graph.add_conditional(&[&init], spec).unwrap();
        let inside = body(&node, 0);
        let first = inside.add(&[], increment(&module, &sum)).unwrap();
        let args = [handle(&again), pointer(Region::whole(left))];
        inside.add(&[&first], launch(&module, "countdown", LaunchConfig::one(), args)).unwrap();
        let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
        assert_eq!(executable.passes(&node).unwrap(), 0, "nothing has run");
        for launch in 1..=3 {
            executable.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(executable.passes(&node).unwrap(), passes);
            assert_eq!(u64::from(read_u32(&device, &sum)[0]), launch * passes);
        }
    }
}

#[test]
fn a_value_in_memory_decides_without_a_condition() {
    let device = device(2);
    let module = module(&device);
    for (test_first, start, passes) in [(true, 4, 4), (true, 0, 0), (false, 3, 3), (false, 1, 1)] {
        let graph = Graph::new(&device);
        let left = number(&device, start);
        let test = Test::Value(Region::whole(left.clone()));
        let node = graph
            .add_conditional(
                &[],
                ConditionalSpec { test_first, ..conditional(ConditionalForm::While, test, 1) },
            )
            .unwrap();
        let args = [pointer(Region::whole(left.clone())), value(1), value(u32::MAX)];
        body(&node, 0).add(&[], launch(&module, "add", LaunchConfig::one(), args)).unwrap();
        let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(executable.passes(&node).unwrap(), passes, "{test_first} {start}");
        assert_eq!(read_u32(&device, &left), [0]);
    }
}

#[test]
fn a_count_repeats_and_starts_again_at_each_launch() {
    let device = device(2);
    for (spec, passes) in [
        (repeat(0), 0),
        (repeat(7), 7),
        (ConditionalSpec { test_first: false, ..repeat(7) }, 7),
        (ConditionalSpec { test_first: false, ..repeat(0) }, 0),
        (ConditionalSpec { max_passes: Some(3), ..repeat(7) }, 3),
        (ConditionalSpec { max_passes: Some(9), ..repeat(7) }, 7),
    ] {
        let graph = Graph::new(&device);
        let node = graph.add_conditional(&[], spec.clone()).unwrap();
        let (count, op) = counter();
        body(&node, 0).add(&[], op()).unwrap();
        let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
        for launch in 1..=2 {
            executable.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(executable.passes(&node).unwrap(), passes, "{spec:?}");
            assert_eq!(u64::from(count.load(Ordering::SeqCst)), launch * passes);
        }
    }
}

#[test]
fn a_limit_ends_a_loop_whose_condition_never_does() {
    let device = device(1);
    let graph = Graph::new(&device);
    let forever = graph.condition(Some(1));
    let spec = ConditionalSpec {
        max_passes: Some(25),
        ..conditional(ConditionalForm::While, Test::Condition(forever.key()), 1)
    };
    let node = graph.add_conditional(&[], spec).unwrap();
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(executable.passes(&node).unwrap(), 25);
}

#[test]
fn loops_in_loops_multiply_and_report_the_passes_of_their_last_execution() {
    let device = device(3);
    let graph = Graph::new(&device);
    let (count, op) = counter();
    let outer = graph.add_conditional(&[], repeat(3)).unwrap();
    let middle = body(&outer, 0).add_conditional(&[], repeat(4)).unwrap();
    let inner = body(&middle, 0).add_conditional(&[], repeat(5)).unwrap();
    body(&inner, 0).add(&[], op()).unwrap();
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    executable.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 60);
    let passes: Vec<u64> = [&outer, &middle, &inner].map(|node| executable.passes(node).unwrap()).into();
    assert_eq!(passes, [3, 4, 5]);
}

#[test]
fn a_nested_condition_keeps_its_value_across_passes_and_takes_its_default_at_a_launch() {
    let device = device(1);
    let module = module(&device);
    let graph = Graph::new(&device);
    // True in the first pass only: the body itself turns it off, and no pass turns it on again.
    let once = graph.condition(Some(1));
    let outer = graph.add_conditional(&[], repeat(4)).unwrap();
    let spec = conditional(ConditionalForm::If, Test::Condition(once.key()), 1);
    let inner = body(&outer, 0).add_conditional(&[], spec).unwrap();
    let (count, op) = counter();
    let inside = body(&inner, 0);
    inside.add(&[], op()).unwrap();
    inside.add(&[], set(&module, &once, 0)).unwrap();
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    for launch in 1..=3 {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), launch);
        assert_eq!(executable.passes(&inner).unwrap(), 0, "its body did not run in the last pass");
    }
}

#[test]
fn a_wide_body_runs_all_its_nodes_in_every_pass() {
    // Enough work in each pass to be shared between threads.
    let device = device(4);
    let module = module(&device);
    let graph = Graph::new(&device);
    let lanes: Vec<_> = (0..6).map(|_| buffer(&device, 40_000)).collect();
    let node = graph.add_conditional(&[], repeat(20)).unwrap();
    let inside = body(&node, 0);
    for lane in &lanes {
        let args = || [pointer(Region::whole(lane.clone())), value(10_000), value(1)];
        let first = inside.add(&[], launch(&module, "add", LaunchConfig::linear(10_000), args())).unwrap();
        inside.add(&[&first], launch(&module, "add", LaunchConfig::linear(10_000), args())).unwrap();
    }
    run(&graph).unwrap();
    for lane in &lanes {
        assert!(read_u32(&device, lane).iter().all(|&value| value == 40));
    }
}

#[test]
fn conditionals_beside_each_other_run_at_once_without_harm() {
    let device = device(4);
    let graph = Graph::new(&device);
    let (count, op) = counter();
    for _ in 0..20 {
        let outer = graph.add_conditional(&[], repeat(10)).unwrap();
        for _ in 0..3 {
            let inner = body(&outer, 0).add_conditional(&[], repeat(2)).unwrap();
            let inside = body(&inner, 0);
            let slow = callback(|| std::thread::sleep(std::time::Duration::from_micros(30)));
            let first = inside.add(&[], op()).unwrap();
            inside.add(&[], slow).unwrap();
            inside.add(&[&first], op()).unwrap();
        }
    }
    let (executable, stream) = (graph.instantiate().unwrap(), stream(&device));
    for launch in 1..=4 {
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), launch * 20 * 10 * 3 * 2 * 2);
    }
}

#[test]
fn empty_bodies_and_children_with_conditionals_run() {
    let device = device(2);
    let child = Graph::new(&device);
    let (count, op) = counter();
    let inner = child.add_conditional(&[], repeat(3)).unwrap();
    body(&inner, 0).add(&[], op()).unwrap();
    let graph = Graph::new(&device);
    let empty = graph.add_conditional(&[], repeat(1000)).unwrap();
    let first = graph.add_child(&[&empty], &child).unwrap();
    graph.add_child(&[&first], &child).unwrap();
    run(&graph).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[test]
fn a_handle_that_is_no_condition_of_the_launch_is_a_fault() {
    let device = device(1);
    let module = module(&device);
    let stream = stream(&device);
    let raw = gridloom_core::op::ArgValue::Bytes(7u64.to_ne_bytes().as_slice().into());
    stream.enqueue(launch(&module, "set", LaunchConfig::one(), [raw, value(1)])).unwrap();
    assert_eq!(stream.synchronize().unwrap_err().kind(), ErrorKind::KernelFault);
}

#[test]
fn every_mode_runs_natively_and_the_report_says_so() {
    let device = device(1);
    let graph = Graph::new(&device);
    let outer = graph.add_conditional(&[], repeat(2)).unwrap().named("outer").unwrap();
    let inner = body(&outer, 0).add_conditional(&[], repeat(2)).unwrap().named("inner").unwrap();
    let (count, op) = counter();
    body(&inner, 0).add(&[], op()).unwrap();
    for mode in [ConditionalMode::Auto, ConditionalMode::Native, ConditionalMode::Hosted] {
        let options = InstantiateOptions { conditional_mode: mode, ..InstantiateOptions::default() };
        let executable = graph.instantiate_with(&options).unwrap();
        let report = executable.report();
        let names: Vec<&str> = report.conditionals.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["outer", "inner"]);
        assert!(report.conditionals.iter().all(|entry| entry.native && !entry.reason.is_empty()));
        let stream = stream(&device);
        executable.launch(&stream).unwrap();
        stream.synchronize().unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 12);
}
