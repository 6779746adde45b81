//! Graphs: every kind of node, conditionals driven by the device and by the host, and [`updates`].
//! On a simulated driver everywhere, and on a GPU where there is one.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod common;
mod simulator;
#[path = "gpu_graph/updates.rs"]
mod updates;

use common::*;
use gridloom_core::backend::{Allocation, EventOptions};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::{ConditionalSpec, EdgeKind, Graph};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{AllocOp, CallbackOp, ConditionalForm, FreeTarget, Operation, Test};
use gridloom_core::{ErrorKind, Event, Executable, Stream};
use gridloom_cuda::CudaVersion;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The simulated GPU, and the real one where there is one whose driver has conditionals of every
/// form.
fn gpus() -> Vec<Gpu> {
    let real = gpu().filter(has_conditionals);
    [Some(Gpu::new(simulator::device(None))), real].into_iter().flatten().collect()
}

fn has_conditionals(gpu: &Gpu) -> bool {
    let version = gpu.device.driver().version();
    let new_enough = version >= CudaVersion::new(12, 8);
    if !new_enough {
        eprintln!(
            "CUDA skipped: the tests of native conditionals need a driver for 12.8, this one is for {version}"
        );
    }
    new_enough
}

const MODES: [ConditionalMode; 2] = [ConditionalMode::Native, ConditionalMode::Hosted];

fn instantiate(graph: &Graph, mode: ConditionalMode) -> Executable {
    let options = InstantiateOptions { conditional_mode: mode, count_passes: true, ..Default::default() };
    graph.instantiate_with(&options).unwrap_or_else(|error| panic!("{mode:?}: {error}"))
}

fn launch(gpu: &Gpu, executable: &Executable) {
    executable.launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
}

/// Memory that an alloc node provides.
fn alloc(graph: &Graph, words: u64, kind: MemoryKind) -> (gridloom_core::Node, Region) {
    let op = AllocOp { len: words, element_size: 4, kind, peers: Default::default() };
    let node = graph.add(&[], Operation::Alloc(Arc::new(op))).unwrap();
    let region = Region { base: Base::AllocNode(node.key()), offset: 0, bytes: 4 * words };
    (node, region)
}

fn value(buffer: &Arc<dyn Allocation>) -> Test {
    Test::Value(whole(buffer))
}

#[test]
fn an_empty_graph_launches() {
    for gpu in gpus() {
        gpu.run(&gpu.graph());
    }
}

#[test]
fn a_diamond_of_kernels_runs_in_order_and_again() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 16]);
        let graph = gpu.graph();
        let first = graph.add(&[], gpu.append(&log, 1)).unwrap();
        let second = graph.add(&[&first], gpu.append(&log, 2)).unwrap();
        let join = graph.join([&first, &second]).unwrap();
        graph.add(&[&join], gpu.append(&log, 3)).unwrap();
        let executable = graph.instantiate().unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&log)[..4], [3, 1, 2, 3]);
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&log)[..7], [6, 1, 2, 3, 1, 2, 3]);
    }
}

#[test]
fn fills_and_copies_are_nodes_and_host_bytes_are_copied_into_the_graph() {
    for gpu in gpus() {
        let (a, b, host) =
            (gpu.buffer(16), gpu.buffer(16), gpu.backend.allocate(16, MemoryKind::Host).unwrap());
        let graph = gpu.graph();
        let bytes: Vec<u8> = [9i32, 8, 7, 6].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let n1 = graph.add(&[], copy(&whole(&a), &Region::from_bytes(bytes))).unwrap();
        let n2 = graph.add(&[&n1], copy(&whole(&b), &whole(&a))).unwrap();
        let n3 = graph.add(&[&n2], fill(&whole(&b).part(4, 4).unwrap(), 5, 4)).unwrap();
        graph.add(&[&n3], copy(&whole(&host), &whole(&b))).unwrap();
        let executable = graph.instantiate().unwrap();
        drop(graph);
        for _ in 0..2 {
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&host), [9, 5, 7, 6]);
        }
        assert!(executable.memory().overhead > 0);
    }
}

#[test]
fn a_callback_runs_between_the_nodes_around_it() {
    for gpu in gpus() {
        let host = gpu.backend.allocate(4, MemoryKind::Host).unwrap();
        let (seen, address) = (Arc::new(AtomicU32::new(0)), host.address());
        let graph = gpu.graph();
        let before = graph.add(&[], fill(&whole(&host), 3, 4)).unwrap();
        let noted = Arc::clone(&seen);
        let callback = CallbackOp::closure(move || {
            // SAFETY: pinned memory of four bytes that the fill before has written and nothing
            // writes now.
            noted.fetch_add(unsafe { (address as *const u32).read_volatile() }, Ordering::SeqCst);
        });
        let call = graph.add(&[&before], Operation::Callback(callback)).unwrap();
        graph.add(&[&call], fill(&whole(&host), 0, 4)).unwrap();
        let executable = graph.instantiate().unwrap();
        for _ in 0..3 {
            launch(&gpu, &executable);
        }
        assert_eq!(seen.load(Ordering::SeqCst), 9);
    }
}

#[test]
fn a_callback_that_panics_is_reported_by_stream_and_executable_with_its_node() {
    for gpu in gpus() {
        let graph = gpu.graph();
        let panics = CallbackOp::closure(|| panic!("no"));
        graph.add(&[], Operation::Callback(panics)).unwrap().set_name("shout").unwrap();
        let executable = graph.instantiate().unwrap();
        executable.launch(&gpu.stream).unwrap();
        let error = gpu.stream.synchronize().unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::CallbackPanicked, Some("shout")));
        assert!(executable.take_error().is_some());
        assert!(executable.take_error().is_none());
        gpu.stream.synchronize().unwrap();
    }
}

#[test]
fn memory_of_alloc_nodes_lives_from_alloc_to_free_whatever_its_kind() {
    for gpu in gpus() {
        for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
            let out = gpu.words(&[0; 4]);
            let graph = gpu.graph();
            let (node, memory) = alloc(&graph, 4, kind);
            let filled = graph.add(&[&node], fill(&memory, 21, 4)).unwrap();
            let args = [at_region(&memory), int(21), uint(4)];
            let add = gpu.launch_with(&gpu.kernel("add"), LaunchConfig::linear(4), args);
            let added = graph.add(&[&filled], add).unwrap();
            let copied = graph.add(&[&added], copy(&whole(&out), &memory)).unwrap();
            graph.add(&[&copied], Operation::Free(FreeTarget::AllocNode(node.key()))).unwrap();
            gpu.run(&graph);
            assert_eq!(gpu.read(&out), [42; 4], "{kind:?}");
        }
    }
}

#[test]
fn memory_that_nothing_frees_outlives_the_launch_and_blocks_the_next() {
    for gpu in gpus() {
        let graph = gpu.graph();
        let (node, memory) = alloc(&graph, 4, MemoryKind::Device);
        graph.add(&[&node], fill(&memory, 5, 4)).unwrap();
        let executable = graph.instantiate().unwrap();
        launch(&gpu, &executable);
        let buffer = executable.outliving(&node).unwrap();
        assert_eq!(executable.launch(&gpu.stream).unwrap_err().kind(), ErrorKind::InvalidState);
        drop(executable);
        assert_eq!(gpu.read(&buffer), [5; 4]);
    }
}

#[test]
fn memory_may_be_allocated_in_the_body_of_a_native_loop() {
    for gpu in gpus() {
        let out = gpu.words(&[0]);
        let graph = gpu.graph();
        let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Count(5), 1);
        let body = &bodies[0];
        let (node, memory) = alloc(body, 1, MemoryKind::Device);
        let a = body.add(&[&node], fill(&memory, 3, 4)).unwrap();
        let b = body.add(&[&a], copy(&whole(&out), &memory)).unwrap();
        body.add(&[&b], Operation::Free(FreeTarget::AllocNode(node.key()))).unwrap();
        let executable = instantiate(&graph, ConditionalMode::Native);
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&out), [3]);
    }
}

#[test]
fn events_are_nodes_and_the_time_between_two_is_read_after_the_launch() {
    for gpu in gpus() {
        let events = [0, 1].map(|_| Event::new(&gpu.backend, EventOptions::default()).unwrap());
        let log = gpu.words(&[0; 4]);
        let graph = gpu.graph();
        let a = graph.add(&[], Operation::EventRecord(events[0].backend().clone())).unwrap();
        let b = graph.add(&[&a], gpu.append(&log, 1)).unwrap();
        let c = graph.add(&[&b], Operation::EventRecord(events[1].backend().clone())).unwrap();
        graph.add(&[&c], Operation::EventWait(events[0].backend().clone())).unwrap();
        gpu.run(&graph);
        assert!(events[1].elapsed_since(&events[0]).unwrap() > std::time::Duration::ZERO);
    }
}

#[test]
fn a_while_loop_on_a_condition_that_kernels_set() {
    for gpu in gpus() {
        for mode in MODES {
            let (left, log) = (gpu.words(&[0]), gpu.words(&[0; 64]));
            let graph = gpu.graph();
            let again = graph.condition(Some(1));
            let start = graph.add(&[], fill(&whole(&left), 5, 4)).unwrap();
            let test = Test::Condition(again.key());
            let (repeat, bodies) = conditional(&graph, &[&start], ConditionalForm::While, test, 1);
            let a = bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
            bodies[0].add(&[&a], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
            graph.add(&[&repeat], gpu.append(&log, 2)).unwrap();
            let executable = instantiate(&graph, mode);
            for _ in 0..2 {
                launch(&gpu, &executable);
            }
            assert_eq!(executable.passes(&repeat).unwrap(), 5, "{mode:?}");
            let expected = [12, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2];
            assert_eq!(gpu.read(&log)[..13], expected, "{mode:?}");
            assert_eq!(executable.report().conditionals[0].native, mode == ConditionalMode::Native);
        }
    }
}

#[test]
fn passes_of_loops_that_only_kernels_decide_are_counted_on_request() {
    for gpu in gpus() {
        let (log, left) = (gpu.words(&[0; 16]), gpu.words(&[4]));
        let graph = gpu.graph();
        let again = graph.condition(Some(1));
        let by_kernel = Test::Condition(again.key());
        let (repeat, body) = conditional(&graph, &[], ConditionalForm::While, by_kernel, 1);
        let (inner, inner_body) = conditional(&body[0], &[], ConditionalForm::While, Test::Count(3), 1);
        inner_body[0].add(&[], gpu.append(&log, 1)).unwrap();
        body[0].add(&[&inner], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
        let options = InstantiateOptions { conditional_mode: ConditionalMode::Native, ..Default::default() };
        let executable = graph.instantiate_with(&options).unwrap();
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&log)[0], 12);
        let error = executable.passes(&repeat).unwrap_err().to_string();
        assert!(error.contains("count_passes"), "{error}");
        assert_eq!(executable.passes(&inner).unwrap(), 3, "a counter is counted without being asked to");
    }
}

#[test]
fn a_while_loop_whose_condition_starts_at_0_makes_no_pass() {
    for gpu in gpus() {
        for mode in MODES {
            let log = gpu.words(&[0; 8]);
            let graph = gpu.graph();
            let never = graph.condition(None);
            let (_, bodies) =
                conditional(&graph, &[], ConditionalForm::While, Test::Condition(never.key()), 1);
            bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
            launch(&gpu, &instantiate(&graph, mode));
            assert_eq!(gpu.read(&log)[0], 0, "{mode:?}");
        }
    }
}

#[test]
fn loops_over_a_value_a_count_and_a_limit_make_as_many_passes_as_they_say() {
    for gpu in gpus() {
        for mode in MODES {
            for (test_first, start, limit, passes) in [
                (true, 4, None, 4),
                (true, 0, None, 0),
                (false, 4, None, 4),
                (false, 1, None, 1),
                (true, 4, Some(3), 3),
                (false, 4, Some(2), 2),
                (true, 4, Some(0), 0),
            ] {
                let (left, log) = (gpu.words(&[start]), gpu.words(&[0; 8]));
                let graph = gpu.graph();
                let spec = ConditionalSpec {
                    form: ConditionalForm::While,
                    test: value(&left),
                    test_first,
                    max_passes: limit,
                    bodies: 1,
                };
                let node = graph.add_conditional(&[], spec).unwrap();
                let body = node.body_handle(0);
                body.add(&[], gpu.append(&log, 1)).unwrap();
                body.add(&[], gpu.add(&left, -1)).unwrap();
                let executable = instantiate(&graph, mode);
                launch(&gpu, &executable);
                let what = format!("{mode:?} first {test_first} from {start} limit {limit:?}");
                assert_eq!(gpu.read(&log)[0], passes, "{what}");
                assert_eq!(executable.passes(&node).unwrap(), passes as u64, "{what}");
            }
            for count in [0u64, 1, 7] {
                let log = gpu.words(&[0; 16]);
                let graph = gpu.graph();
                let (node, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Count(count), 1);
                bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
                let executable = instantiate(&graph, mode);
                for launches in 1..=2 {
                    launch(&gpu, &executable);
                    assert_eq!(gpu.read(&log)[0] as u64, launches * count, "{mode:?} {count}");
                    assert_eq!(executable.passes(&node).unwrap(), count, "{mode:?}");
                }
            }
        }
    }
}

#[test]
fn a_limit_stops_a_loop_that_kernels_keep_going() {
    for gpu in gpus() {
        for mode in MODES {
            let log = gpu.words(&[0; 16]);
            let graph = gpu.graph();
            let always = graph.condition(Some(1));
            let spec = ConditionalSpec {
                form: ConditionalForm::While,
                test: Test::Condition(always.key()),
                test_first: true,
                max_passes: Some(6),
                bodies: 1,
            };
            let node = graph.add_conditional(&[], spec).unwrap();
            let body = node.body_handle(0);
            let a = body.add(&[], gpu.append(&log, 1)).unwrap();
            body.add(&[&a], gpu.launch("set_condition", [handle(&always), uint(1)])).unwrap();
            let executable = instantiate(&graph, mode);
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&log)[0], 6, "{mode:?}");
            assert_eq!(executable.passes(&node).unwrap(), 6, "{mode:?}");
        }
    }
}

#[test]
fn branches_by_condition_and_by_value() {
    for gpu in gpus() {
        for mode in MODES {
            for form in [ConditionalForm::If, ConditionalForm::IfElse, ConditionalForm::Switch] {
                for chosen in 0..5u32 {
                    let bodies = match form {
                        ConditionalForm::If => 1,
                        ConditionalForm::IfElse => 2,
                        _ => 3,
                    };
                    let expected = match form {
                        ConditionalForm::If => (chosen != 0).then_some(0),
                        ConditionalForm::IfElse => Some(usize::from(chosen == 0)),
                        _ => Some(chosen as usize).filter(|&index| index < 3),
                    };
                    for by_value in [false, true] {
                        let (log, word) = (gpu.words(&[0; 4]), gpu.words(&[chosen as i32]));
                        let graph = gpu.graph();
                        let condition = graph.condition(None);
                        let (test, before) = if by_value {
                            (value(&word), graph.add(&[], Operation::Empty).unwrap())
                        } else {
                            let set = gpu.launch("set_condition", [handle(&condition), uint(chosen)]);
                            (Test::Condition(condition.key()), graph.add(&[], set).unwrap())
                        };
                        let (node, graphs) = conditional(&graph, &[&before], form, test, bodies);
                        for (index, body) in graphs.iter().enumerate() {
                            body.add(&[], gpu.append(&log, 10 + index as u32)).unwrap();
                        }
                        let executable = instantiate(&graph, mode);
                        launch(&gpu, &executable);
                        let what = format!("{mode:?} {form:?} of {chosen}, by value: {by_value}");
                        let ran = gpu.read(&log);
                        match expected {
                            Some(index) => assert_eq!(ran[..2], [1, 10 + index as i32], "{what}"),
                            None => assert_eq!(ran[0], 0, "{what}"),
                        }
                        let passes = executable.passes(&node).unwrap();
                        assert_eq!(passes, u64::from(expected.is_some()), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_conditional_inside_another_reports_its_latest_execution_and_none_where_it_was_not_reached() {
    for gpu in gpus() {
        for mode in MODES {
            let (on, left) = (gpu.words(&[1]), gpu.words(&[0]));
            let graph = gpu.graph();
            let again = graph.condition(None);
            let (_, bodies) = conditional(&graph, &[], ConditionalForm::If, value(&on), 1);
            let (_, outer) = conditional(&bodies[0], &[], ConditionalForm::While, Test::Count(2), 1);
            let start = outer[0].add(&[], fill(&whole(&left), 3, 4)).unwrap();
            let set = gpu.launch("set_condition", [handle(&again), uint(1)]);
            let set = outer[0].add(&[&start], set).unwrap();
            let test = Test::Condition(again.key());
            let (inner, inner_body) = conditional(&outer[0], &[&set], ConditionalForm::While, test, 1);
            let down = gpu.launch("countdown", [handle(&again), at(&left)]);
            inner_body[0].add(&[], down).unwrap();
            let executable = instantiate(&graph, mode);
            launch(&gpu, &executable);
            assert_eq!(executable.passes(&inner).unwrap(), 3, "{mode:?}");
            gpu.backend.write(&*on, 0, &[0; 4]).unwrap();
            launch(&gpu, &executable);
            assert_eq!(executable.passes(&inner).unwrap(), 0, "{mode:?}");
        }
    }
}

#[test]
fn nested_loops_make_the_product_of_their_passes() {
    for gpu in gpus() {
        for mode in [ConditionalMode::Native, ConditionalMode::Hosted, ConditionalMode::Auto] {
            let log = gpu.words(&[0; 64]);
            let graph = gpu.graph();
            let (_, outer) = conditional(&graph, &[], ConditionalForm::While, Test::Count(3), 1);
            let (inner_node, inner) = conditional(&outer[0], &[], ConditionalForm::While, Test::Count(4), 1);
            inner[0].add(&[], gpu.append(&log, 1)).unwrap();
            let last = outer[0].add(&[&inner_node], gpu.append(&log, 2)).unwrap();
            if mode == ConditionalMode::Auto {
                // The outer loop is hosted because of this, the inner one stays native.
                outer[0].add(&[&last], Operation::Callback(CallbackOp::closure(|| {}))).unwrap();
            }
            let executable = instantiate(&graph, mode);
            launch(&gpu, &executable);
            assert_eq!(gpu.read(&log)[0], 15, "{mode:?}");
            if mode == ConditionalMode::Auto {
                let native: Vec<bool> =
                    executable.report().conditionals.iter().map(|entry| entry.native).collect();
                assert_eq!(native, [false, true]);
            }
        }
    }
}

/// A loop that makes three passes, and the count of those that are left.
fn countdown(gpu: &Gpu) -> (Arc<dyn Allocation>, Executable) {
    let (left, graph) = (gpu.words(&[3]), gpu.graph());
    let again = graph.condition(Some(1));
    let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Condition(again.key()), 1);
    bodies[0].add(&[], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
    (left, instantiate(&graph, ConditionalMode::Native))
}

#[test]
fn graphs_with_conditionals_take_turns_across_streams_and_devices() {
    let gpus = [Gpu::new(simulator::device(None)), Gpu::new(simulator::device(None))];
    for other in &gpus {
        let gpu = &gpus[0];
        let (first, second) = (countdown(gpu), countdown(other));
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let other_stream = Stream::new(&other.backend).unwrap();
        let wait = CallbackOp::closure(move || gate.recv().unwrap_or(()));
        gpu.stream.enqueue(Operation::Callback(wait)).unwrap();
        first.1.launch(&gpu.stream).unwrap();
        second.1.launch(&other_stream).unwrap();
        // It waits for one that waits for the gate.
        for _ in 0..100 {
            assert!(!other_stream.is_idle().unwrap());
            std::thread::yield_now();
        }
        drop(open);
        gpu.stream.synchronize().unwrap();
        other_stream.synchronize().unwrap();
        assert_eq!([gpu.read(&first.0)[0], other.read(&second.0)[0]], [0, 0]);
    }
}

#[test]
fn loops_of_several_executables_on_several_streams_compute_what_one_does() {
    for gpu in gpus() {
        let streams: Vec<Stream> = (0..4).map(|_| Stream::new(&gpu.backend).unwrap()).collect();
        let loops: Vec<_> = (0..16).map(|_| countdown(&gpu)).collect();
        for round in 0..20 {
            for (number, (left, executable)) in loops.iter().enumerate() {
                let stream = &streams[(number + round) % 4];
                stream.enqueue(fill(&whole(left), 3, 4)).unwrap();
                executable.launch(stream).unwrap();
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        assert!(loops.iter().all(|(left, _)| gpu.read(left)[0] == 0));
    }
    assert_eq!(simulator::violations(), [""; 0]);
}

#[test]
fn a_graph_that_kernels_can_launch_takes_turns_with_loops() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 64]);
        let graph = gpu.graph();
        graph.add(&[], gpu.append(&log, 1)).unwrap();
        let options = InstantiateOptions { device_launch: true, ..Default::default() };
        let launched = graph.instantiate_with(&options).unwrap();
        let (other, repeat) = (Stream::new(&gpu.backend).unwrap(), countdown(&gpu));
        for _ in 0..20 {
            launched.launch(&gpu.stream).unwrap();
            other.enqueue(fill(&whole(&repeat.0), 3, 4)).unwrap();
            repeat.1.launch(&other).unwrap();
        }
        gpu.stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert_eq!(gpu.read(&log)[0], 20);
    }
    assert_eq!(simulator::violations(), [""; 0]);
}

#[test]
fn a_launch_comes_after_an_upload_on_another_stream() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 64]);
        let graph = gpu.graph();
        graph.add(&[], gpu.append(&log, 1)).unwrap();
        let plain = graph.instantiate().unwrap();
        let other = Stream::new(&gpu.backend).unwrap();
        for _ in 0..20 {
            plain.upload(&other).unwrap();
            plain.launch(&gpu.stream).unwrap();
            plain.upload(&gpu.stream).unwrap();
            plain.upload(&other).unwrap();
            plain.launch(&gpu.stream).unwrap();
        }
        gpu.stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert_eq!(gpu.read(&log)[0], 40);
    }
    assert_eq!(simulator::violations(), [""; 0]);
}

#[test]
fn uploads_of_graphs_with_conditionals_take_turns_with_their_launches() {
    for gpu in gpus() {
        let (one, two) = (countdown(&gpu), countdown(&gpu));
        let other = Stream::new(&gpu.backend).unwrap();
        for _ in 0..20 {
            gpu.stream.enqueue(fill(&whole(&one.0), 3, 4)).unwrap();
            one.1.launch(&gpu.stream).unwrap();
            two.1.upload(&other).unwrap();
        }
        gpu.stream.synchronize().unwrap();
        other.synchronize().unwrap();
        assert_eq!(gpu.read(&one.0)[0], 0);
    }
    assert_eq!(simulator::violations(), [""; 0]);
}

#[test]
fn an_older_driver_gives_the_same_results_with_hosted_conditionals() {
    let old = CudaVersion::new(12, 2);
    let gpus = [Some(Gpu::new(simulator::device(Some(old)))), gpu_capped(old)];
    for gpu in gpus.into_iter().flatten() {
        let (left, log) = (gpu.words(&[3]), gpu.words(&[0; 8]));
        let graph = gpu.graph();
        let again = graph.condition(Some(1));
        let unused = graph.condition(None);
        let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Condition(again.key()), 1);
        let a = bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
        let b = bodies[0].add(&[&a], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
        bodies[0].add(&[&b], gpu.launch("set_condition", [handle(&unused), uint(1)])).unwrap();
        let executable = graph.instantiate().unwrap();
        let report = executable.report();
        assert!(report.conditionals[0].reason.contains("12.2"), "{report:?}");
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&log)[0], 3);
        let error = graph
            .instantiate_with(&InstantiateOptions {
                conditional_mode: ConditionalMode::Native,
                ..Default::default()
            })
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
    }
}

#[test]
fn a_condition_that_no_node_tests_is_harmless() {
    for gpu in gpus() {
        let graph = gpu.graph();
        let unused = graph.condition(Some(3));
        graph.condition(None);
        graph.add(&[], gpu.launch("set_condition", [handle(&unused), uint(1)])).unwrap();
        gpu.run(&graph);
    }
}

#[test]
fn an_embedded_graph_may_hold_conditionals() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 16]);
        let inner = gpu.graph();
        let (_, bodies) = conditional(&inner, &[], ConditionalForm::While, Test::Count(2), 1);
        bodies[0].add(&[], gpu.append(&log, 5)).unwrap();
        let graph = gpu.graph();
        let first = graph.add(&[], gpu.append(&log, 1)).unwrap();
        let child = graph.add_child(&[&first], &inner).unwrap();
        let again = graph.add_child(&[&child], &inner).unwrap();
        graph.add(&[&again], gpu.append(&log, 2)).unwrap();
        gpu.run(&graph);
        assert_eq!(gpu.read(&log)[..7], [6, 1, 5, 5, 5, 5, 2]);
    }
}

#[test]
fn a_hosted_launch_returns_at_once_and_what_follows_on_the_stream_comes_after_it() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 64]);
        let graph = gpu.graph();
        let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Count(20), 1);
        bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
        let executable = instantiate(&graph, ConditionalMode::Hosted);
        executable.launch(&gpu.stream).unwrap();
        gpu.stream.enqueue(gpu.append(&log, 2)).unwrap();
        executable.launch(&gpu.stream).unwrap();
        gpu.stream.enqueue(gpu.append(&log, 2)).unwrap();
        gpu.stream.synchronize().unwrap();
        let words = gpu.read(&log);
        assert_eq!((words[0], words[21], words[42]), (42, 2, 2));
    }
}

#[test]
fn a_loop_on_a_value_sees_what_the_last_block_of_its_last_kernel_wrote() {
    // What ends a pass may be started while that kernel still runs.
    const WORDS: usize = 1 << 20;
    for gpu in gpus() {
        for mode in [ConditionalMode::Auto, ConditionalMode::Hosted] {
            let words = gpu.words(&vec![20; WORDS]);
            let graph = gpu.graph();
            let last = whole(&words).part(4 * (WORDS as u64 - 1), 4).unwrap();
            let (repeat, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Value(last), 1);
            bodies[0].add(&[], gpu.add(&words, -1)).unwrap();
            let options = InstantiateOptions { conditional_mode: mode, ..Default::default() };
            let executable = graph.instantiate_with(&options).unwrap();
            launch(&gpu, &executable);
            assert_eq!(executable.passes(&repeat).unwrap(), 20, "{mode:?}");
            assert!(gpu.read(&words).iter().all(|&word| word == 0), "{mode:?}");
        }
    }
}

#[test]
fn programmatic_edges_keep_the_order_of_data() {
    for gpu in gpus() {
        if gpu.device.compute_capability() < (9, 0) {
            continue;
        }
        let module = gpu.backend.load_ptx(include_str!("kernels/programmatic.ptx")).unwrap();
        let kernel = module.kernel("add_overlapped").unwrap();
        let buffer = gpu.words(&[0; 4096]);
        let add = |value| {
            gpu.launch_with(&kernel, LaunchConfig::linear(4096), [at(&buffer), int(value), uint(4096)])
        };
        let graph = gpu.graph();
        let mut last = graph.add(&[], add(1)).unwrap();
        for value in 2..=20 {
            let next = graph.add(&[], add(value)).unwrap();
            graph.add_edge(&last, &next, EdgeKind::Programmatic).unwrap();
            last = next;
        }
        gpu.run(&graph);
        assert_eq!(gpu.read(&buffer), [210; 4096]);
    }
}

#[test]
fn several_executables_of_one_graph_are_independent() {
    for gpu in gpus() {
        let graph = gpu.graph();
        let out = gpu.words(&[0; 4]);
        let (node, memory) = alloc(&graph, 4, MemoryKind::Device);
        let a = graph.add(&[&node], fill(&memory, 1, 4)).unwrap();
        let b = graph.add(&[&a], copy(&whole(&out), &memory)).unwrap();
        graph.add(&[&b], Operation::Free(FreeTarget::AllocNode(node.key()))).unwrap();
        let executables: Vec<Executable> = (0..3).map(|_| graph.instantiate().unwrap()).collect();
        executables[1].node(&a).unwrap().set_operation(fill(&memory, 2, 4)).unwrap();
        for (executable, expected) in executables.iter().zip([1, 2, 1]) {
            launch(&gpu, executable);
            assert_eq!(gpu.read(&out), [expected; 4]);
        }
    }
}

#[test]
fn uploading_ahead_changes_nothing_but_the_cost_of_the_first_launch() {
    for gpu in gpus() {
        let log = gpu.words(&[0; 4]);
        let graph = gpu.graph();
        graph.add(&[], gpu.append(&log, 1)).unwrap();
        let options = InstantiateOptions { upload: Some(gpu.stream.clone()), ..Default::default() };
        let executable = graph.instantiate_with(&options).unwrap();
        gpu.stream.synchronize().unwrap();
        assert_eq!(gpu.read(&log)[0], 0);
        launch(&gpu, &executable);
        assert_eq!(gpu.read(&log)[0], 1);
    }
}

#[test]
fn an_event_recorded_twice_in_one_launch_has_the_time_of_the_last_recording() {
    for gpu in gpus() {
        for mode in MODES {
            let [twice, between] = [0, 1].map(|_| Event::new(&gpu.backend, EventOptions::default()).unwrap());
            let log = gpu.words(&[0; 16]);
            let graph = gpu.graph();
            let record = |event: &Event| Operation::EventRecord(event.backend().clone());
            let first = graph.add(&[], record(&twice)).unwrap();
            let a = graph.add(&[&first], gpu.append(&log, 1)).unwrap();
            let middle = graph.add(&[&a], record(&between)).unwrap();
            let (looped, bodies) = conditional(&graph, &[&middle], ConditionalForm::While, Test::Count(3), 1);
            bodies[0].add(&[], gpu.append(&log, 2)).unwrap();
            graph.add(&[&looped], record(&twice)).unwrap();
            let executable = instantiate(&graph, mode);
            for _ in 0..2 {
                launch(&gpu, &executable);
                assert!(twice.elapsed_since(&between).unwrap() > std::time::Duration::ZERO, "{mode:?}");
            }
        }
    }
}
