//! What work in flight uses is kept, whatever else goes wrong meanwhile: on a simulated driver
//! whose streams can be held back and whose calls can be made to fail.

mod common;
mod simulator;

use common::*;
use gridloom_core::ErrorKind;
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::{CallbackOp, ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_cuda::interop::stream_to_raw;
use gridloom_cuda::release;
use gridloom_cuda::sys::CUresult;
use parking_lot::{Mutex, MutexGuard};
use simulator::{Failure, Held, violations};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// A GPU whose stream is held back, alone: failures are those of all threads.
struct Fixture {
    gpu: Gpu,
    held: Option<Held>,
    ran: Arc<AtomicU32>,
    _alone: MutexGuard<'static, ()>,
}

impl Fixture {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock();
        let gpu = Gpu::new(simulator::device(None));
        let held = simulator::hold(stream_to_raw(&**gpu.stream.backend()).unwrap());
        Self { gpu, held: Some(held), ran: Arc::default(), _alone: alone }
    }

    /// Enqueues a callback, and returns a way to see whether its closure is alive.
    fn enqueue(&self) -> Weak<()> {
        let (resource, ran) = (Arc::new(()), Arc::clone(&self.ran));
        let alive = Arc::downgrade(&resource);
        let callback = CallbackOp::closure(move || {
            let _used = &resource;
            ran.fetch_add(1, Ordering::SeqCst);
        });
        self.gpu.stream.enqueue(Operation::Callback(callback)).unwrap();
        alive
    }

    /// Lets the stream run, and expects `calls` of them to have run and everything to be let go of.
    fn finish(&mut self, calls: u32, alive: &Weak<()>) {
        self.held = None;
        self.gpu.stream.synchronize().unwrap();
        assert_eq!(self.ran.load(Ordering::SeqCst), calls);
        while alive.strong_count() > 0 {
            release::flush();
        }
        assert!(violations().is_empty(), "{:#?}", violations());
    }
}

const FAILS: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

#[test]
fn a_closure_is_kept_while_its_stream_cannot_be_marked() {
    for call in ["cuEventCreate", "cuEventRecord"] {
        let mut fixture = Fixture::new();
        let alive = fixture.enqueue();
        let failure = Failure::of(call, usize::MAX, FAILS);
        while failure.failed().len() < 3 && alive.strong_count() > 0 {
            release::flush();
        }
        assert_eq!(alive.strong_count(), 1, "{call} failed, and the work is still to run");
        drop(failure);
        fixture.finish(1, &alive);
    }
}

#[test]
fn a_closure_is_kept_while_its_mark_cannot_be_looked_at() {
    let mut fixture = Fixture::new();
    let alive = fixture.enqueue();
    let failure = Failure::of("cuEventQuery", usize::MAX, FAILS);
    while failure.failed().len() < 3 && alive.strong_count() > 0 {
        release::flush();
    }
    assert_eq!(alive.strong_count(), 1);
    drop(failure);
    fixture.finish(1, &alive);
}

#[test]
fn a_wait_that_fails_lets_go_of_nothing() {
    let mut fixture = Fixture::new();
    let alive = fixture.enqueue();
    let failure = Failure::of("cuStreamSynchronize", 1, CUresult::CUDA_ERROR_NOT_PERMITTED);
    fixture.gpu.stream.synchronize().unwrap_err();
    drop(failure);
    release::flush();
    assert_eq!(alive.strong_count(), 1);
    fixture.finish(1, &alive);
}

#[test]
fn a_wait_that_fails_does_not_swallow_the_panic_of_a_callback() {
    let mut fixture = Fixture::new();
    let graph = fixture.gpu.graph();
    graph.add(&[], Operation::Callback(CallbackOp::closure(|| panic!("as the test wants")))).unwrap();
    graph.instantiate().unwrap().launch(&fixture.gpu.stream).unwrap();
    let failure = Failure::of("cuStreamSynchronize", 1, CUresult::CUDA_ERROR_NOT_PERMITTED);
    fixture.gpu.stream.synchronize().unwrap_err();
    drop(failure);
    fixture.held = None;
    let error = fixture.gpu.stream.synchronize().unwrap_err().to_string();
    assert!(error.contains("as the test wants"), "{error}");
}

#[test]
fn everything_may_go_while_a_launch_is_held_back() {
    for mode in [ConditionalMode::Native, ConditionalMode::Hosted] {
        let mut fixture = Fixture::new();
        let gpu = &fixture.gpu;
        let alive = {
            let (log, left) = (gpu.words(&[0; 8]), gpu.words(&[2]));
            let (alive, graph) = (Arc::new(()), gpu.graph());
            let (used, ran) = (Arc::clone(&alive), Arc::clone(&fixture.ran));
            let again = graph.condition(Some(1));
            let test = Test::Condition(again.key());
            let (repeat, bodies) = conditional(&graph, &[], ConditionalForm::While, test, 1);
            bodies[0].add(&[], gpu.launch("countdown", [handle(&again), at(&left)])).unwrap();
            let appended = graph.add(&[&repeat], gpu.append(&log, 1)).unwrap();
            let count = CallbackOp::closure(move || {
                let _used = &used;
                ran.fetch_add(1, Ordering::SeqCst);
            });
            graph.add(&[&appended], Operation::Callback(count)).unwrap();
            let options = InstantiateOptions { conditional_mode: mode, ..Default::default() };
            graph.instantiate_with(&options).unwrap().launch(&gpu.stream).unwrap();
            Arc::downgrade(&alive)
        };
        release::flush();
        assert!(alive.strong_count() > 0, "{mode:?}");
        fixture.finish(1, &alive);
    }
}

#[test]
fn memory_that_an_argument_replaced_is_kept_while_a_launch_is_held_back_and_no_longer() {
    let mut fixture = Fixture::new();
    let gpu = &fixture.gpu;
    let (old, new, graph) = (gpu.words(&[0; 8]), gpu.words(&[0; 8]), gpu.graph());
    let node = graph.add(&[], gpu.append(&old, 1)).unwrap();
    let executable = graph.instantiate().unwrap();
    drop(graph);
    executable.launch(&gpu.stream).unwrap();
    let give = |memory| {
        // SAFETY: a log is what the kernel takes.
        executable.change(|changes| unsafe { changes.argument(node.key(), 0, &at(memory)) }).unwrap();
    };
    // There and back and there again: the latest launch has the first.
    [&new, &old, &new].into_iter().for_each(give);
    let replaced = Arc::downgrade(&old);
    drop((old, node));
    release::flush();
    assert!(replaced.strong_count() > 0);
    fixture.held = None;
    fixture.gpu.stream.synchronize().unwrap();
    while replaced.strong_count() > 0 {
        release::flush();
    }
    executable.launch(&fixture.gpu.stream).unwrap();
    assert_eq!(fixture.gpu.read(&new)[..2], [1, 1]);
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn a_closure_that_uses_the_device_when_it_goes_does_not_hold_up_a_loop_that_the_host_drives() {
    /// Waits for the device when it is dropped.
    struct Waits(Arc<dyn gridloom_core::backend::Device>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.wait_all().unwrap();
        }
    }
    let mut fixture = Fixture::new();
    let gpu = &fixture.gpu;
    let waits = Waits(Arc::clone(&gpu.backend));
    let first = CallbackOp::closure(move || {
        let _used = &waits;
    });
    gpu.stream.enqueue(Operation::Callback(first)).unwrap();
    let (word, graph) = (gpu.words(&[0]), gpu.graph());
    conditional(&graph, &[], ConditionalForm::While, Test::Value(whole(&word)), 1);
    let options = InstantiateOptions { conditional_mode: ConditionalMode::Hosted, ..Default::default() };
    let executable = graph.instantiate_with(&options).unwrap();
    executable.launch(&gpu.stream).unwrap();
    fixture.held = None;
    fixture.gpu.stream.synchronize().unwrap();
}

#[test]
fn a_graph_that_the_host_drove_goes_without_a_free_that_waits_for_the_context() {
    let mut fixture = Fixture::new();
    fixture.held = None;
    let gpu = &fixture.gpu;
    let (word, graph) = (gpu.words(&[0]), gpu.graph());
    conditional(&graph, &[], ConditionalForm::While, Test::Value(whole(&word)), 1);
    let options = InstantiateOptions { conditional_mode: ConditionalMode::Hosted, ..Default::default() };
    let frees = Failure::of("cuMemFreeHost", usize::MAX, FAILS);
    for _ in 0..3 {
        let executable = graph.instantiate_with(&options).unwrap();
        executable.launch(&gpu.stream).unwrap();
        gpu.stream.synchronize().unwrap();
        drop(executable);
        release::flush();
        release::flush();
    }
    assert!(frees.failed().is_empty(), "{:?}", frees.failed());
}

#[test]
fn an_update_does_not_wait_for_a_launch_that_the_host_drives_and_does_not_change_it() {
    let mut fixture = Fixture::new();
    let gpu = &fixture.gpu;
    let (log, word, graph) = (gpu.words(&[0; 8]), gpu.words(&[0]), gpu.graph());
    let (node, _) = conditional(&graph, &[], ConditionalForm::While, Test::Value(whole(&word)), 1);
    let after = graph.add(&[&node], gpu.append(&log, 1)).unwrap();
    let options = InstantiateOptions { conditional_mode: ConditionalMode::Hosted, ..Default::default() };
    let executable = graph.instantiate_with(&options).unwrap();
    executable.launch(&gpu.stream).unwrap();
    executable.node(&after).unwrap().set_operation(gpu.append(&log, 2)).unwrap();
    executable.node(&after).unwrap().set_enabled(false).unwrap();
    executable.node(&after).unwrap().set_enabled(true).unwrap();
    fixture.held = None;
    executable.launch(&fixture.gpu.stream).unwrap();
    fixture.gpu.stream.synchronize().unwrap();
    assert_eq!(fixture.gpu.read(&log)[..3], [2, 1, 2]);
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn an_update_after_a_launch_of_counted_passes_needs_no_new_graph_and_does_not_change_the_launch() {
    let mut fixture = Fixture::new();
    let gpu = &fixture.gpu;
    let (log, graph) = (gpu.words(&[0; 16]), gpu.graph());
    let (node, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Count(2), 1);
    let inside = bodies[0].add(&[], gpu.append(&log, 1)).unwrap();
    let options = InstantiateOptions { conditional_mode: ConditionalMode::Hosted, ..Default::default() };
    let executable = graph.instantiate_with(&options).unwrap();
    // Compiling waits for the device, which may be waiting for the thread that changes the
    // executable.
    let failure = Failure::of("cuGraphInstantiateWithParams", usize::MAX, FAILS);
    for (passes, tag) in [(3, 2), (1, 3)] {
        executable.launch(&gpu.stream).unwrap();
        let Operation::Conditional(repeat) = node.operation().unwrap() else { unreachable!() };
        let repeat = ConditionalOp { test: Test::Count(passes), ..ConditionalOp::clone(&repeat) };
        executable.node(&node).unwrap().set_operation(Operation::Conditional(Arc::new(repeat))).unwrap();
        executable.node(&inside).unwrap().set_operation(gpu.append(&log, tag)).unwrap();
    }
    executable.launch(&gpu.stream).unwrap();
    assert!(failure.failed().is_empty());
    drop(failure);
    fixture.held = None;
    fixture.gpu.stream.synchronize().unwrap();
    assert_eq!(fixture.gpu.read(&log)[..7], [6, 1, 1, 2, 2, 2, 3]);
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn a_fill_is_disabled_without_the_drivers_help_and_keeps_the_changes_it_takes() {
    // A driver that disables a fill forgets the order around it.
    let mut fixture = Fixture::new();
    fixture.held = None;
    let gpu = &fixture.gpu;
    let (filled, definition) = (gpu.words(&[0; 4]), gpu.graph());
    let (_, bodies) = conditional(&definition, &[], ConditionalForm::While, Test::Count(2), 1);
    for graph in [&definition, &bodies[0]] {
        let node = graph.add(&[], fill(&whole(&filled), 1, 4)).unwrap();
        for refused in ["cuGraphNodeSetEnabled", "cuGraphInstantiateWithParams"] {
            let executable = definition.instantiate().unwrap();
            let failure = Failure::of(refused, usize::MAX, FAILS);
            for (enabled, value, expected) in [(false, 1, 0), (false, 2, 0), (true, 2, 2), (true, 3, 3)] {
                gpu.backend.write(&*filled, 0, &[0; 16]).unwrap();
                executable.node(&node).unwrap().set_enabled(enabled).unwrap();
                let change = fill(&whole(&filled), value, 4);
                executable.node(&node).unwrap().set_operation(change).unwrap();
                executable.launch(&gpu.stream).unwrap();
                gpu.stream.synchronize().unwrap();
                assert_eq!(gpu.read(&filled), [expected; 4], "{enabled}, {value}");
            }
            assert!(failure.failed().is_empty(), "{refused}");
        }
        node.delete().unwrap();
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn the_primary_context_is_retained_and_released_by_one_thread_at_a_time() {
    let _alone = Fixture::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| drop(simulator::device(None))));
        }
    });
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn an_endless_loop_that_the_host_drives_ends_soon_when_everything_is_dropped() {
    let Fixture { gpu, held, _alone, .. } = Fixture::new();
    drop(held);
    let alive = {
        let (used, graph) = (Arc::new(()), gpu.graph());
        let alive = Arc::downgrade(&used);
        let again = graph.condition(Some(1));
        let (_, bodies) = conditional(&graph, &[], ConditionalForm::While, Test::Condition(again.key()), 1);
        let hold = CallbackOp::closure(move || {
            let _used = &used;
        });
        bodies[0].add(&[], Operation::Callback(hold)).unwrap();
        let options = InstantiateOptions { conditional_mode: ConditionalMode::Hosted, ..Default::default() };
        graph.instantiate_with(&options).unwrap().launch(&gpu.stream).unwrap();
        alive
    };
    drop(gpu);
    for _ in 0..20_000 {
        if alive.strong_count() == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        release::flush();
    }
    assert_eq!(alive.strong_count(), 0, "the loop goes on");
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn the_driver_gets_no_empty_body() {
    let mut fixture = Fixture::new();
    fixture.held = None;
    let gpu = &fixture.gpu;
    for (form, bodies) in
        [(ConditionalForm::If, 1), (ConditionalForm::IfElse, 2), (ConditionalForm::Switch, 3)]
    {
        let graph = gpu.graph();
        let condition = graph.condition(Some(1));
        let (_, bodies) = conditional(&graph, &[], form, Test::Condition(condition.key()), bodies);
        // Nodes that do nothing are none for the driver.
        bodies[0].add(&[], Operation::Empty).unwrap();
        graph.instantiate().unwrap().launch(&gpu.stream).unwrap();
    }
    let graph = gpu.graph();
    let untested = graph.condition(Some(0));
    let left = gpu.words(&[1]);
    graph.add(&[], gpu.launch("countdown", [handle(&untested), at(&left)])).unwrap();
    graph.instantiate().unwrap().launch(&gpu.stream).unwrap();
    gpu.stream.synchronize().unwrap();
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn a_cooperative_kernel_is_left_out_without_disabling_it_in_the_driver() {
    let mut fixture = Fixture::new();
    fixture.held = None;
    let gpu = &fixture.gpu;
    let buffer = gpu.words(&[0; 64]);
    let config = LaunchConfig::new(2, 32).cooperative();
    let add = gpu.launch_with(&gpu.kernel("add"), config, [at(&buffer), int(1), uint(64)]);
    let graph = gpu.graph();
    let node = graph.add(&[], add).unwrap();
    let executable = graph.instantiate().unwrap();
    for enabled in [false, true, false] {
        executable.node(&node).unwrap().set_enabled(enabled).unwrap();
        executable.launch(&gpu.stream).unwrap();
    }
    gpu.stream.synchronize().unwrap();
    assert_eq!(gpu.read(&buffer), [1; 64]);
    assert!(violations().is_empty(), "{:#?}", violations());
}

/// The driver does not say which kernel an error comes from.
#[test]
fn a_lost_context_names_the_graphs_that_were_launched_last_on_the_stream() {
    let mut fixture = Fixture::new();
    fixture.held = None;
    let gpu = &fixture.gpu;
    let buffer = gpu.words(&[0; 64]);
    let add = || gpu.launch("add", [at(&buffer), int(1), uint(64)]);
    let graph = gpu.graph();
    let mut last = graph.add(&[], add()).unwrap();
    last.set_name("10 nodes, first to last").unwrap();
    for _ in 0..3 {
        last = last.add(add()).unwrap();
    }
    // The stream keeps what was launched both while the executable lives and when it does not.
    for lives in [true, false] {
        let executable = graph.instantiate().unwrap();
        executable.launch(&gpu.stream).unwrap();
        let executable = lives.then_some(executable);
        let failure = Failure::of("cuStreamSynchronize", usize::MAX, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        let error = gpu.stream.synchronize().unwrap_err();
        drop(failure);
        drop(executable);
        assert_eq!(error.kind(), ErrorKind::DeviceLost);
        let wanted = "after launches of a graph with 10 nodes, first to last, kernel#1 add and 2 more kernels on \
                      this stream";
        assert!(error.message().contains(wanted), "{error}");
        assert!(error.message().contains("GRIDLOOM_OPTIMIZE=off"), "{error}");
        gpu.stream.synchronize().unwrap();
    }
    gpu.stream.enqueue(add()).unwrap();
    let failure = Failure::of("cuStreamSynchronize", 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let error = gpu.stream.synchronize().unwrap_err();
    drop(failure);
    assert!(!error.message().contains("launches of"), "the context is not lost: {error}");
}
