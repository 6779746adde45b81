//! Every driver call fails once, in turn: while a graph is instantiated, changed, launched and
//! dropped, on a simulated driver.
//!
//! After each failure the executable computes what it did before, or, where Gridloom found another
//! way, what it was asked to; the same change then succeeds; and nothing of the driver's is left
//! behind.

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{Allocation, EventOptions};
use gridloom_core::executable::{ConditionalMode, InstantiateOptions};
use gridloom_core::graph::{Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::op::{
    ArgValue, CallbackOp, ConditionalForm, ConditionalOp, Operation, PointerValue, Test,
};
use gridloom_core::{Event, Executable, Result};
use gridloom_cuda::release;
use gridloom_cuda::sys::CUresult;
use parking_lot::{Mutex, MutexGuard};
use simulator::{Alive, Failure, alive, violations};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// No driver returns it for a reason that Gridloom knows.
const UNKNOWN: CUresult = CUresult::CUDA_ERROR_UNKNOWN;
const MODES: [ConditionalMode; 2] = [ConditionalMode::Auto, ConditionalMode::Hosted];

/// What the graphs of the tests work on.
struct Stage {
    gpu: Gpu,
    log: Arc<dyn Allocation>,
    data: Arc<dyn Allocation>,
    other: Arc<dyn Allocation>,
    pinned: Arc<dyn Allocation>,
    left: Arc<dyn Allocation>,
    words: [Arc<dyn Allocation>; 2],
    events: [Event; 2],
    called: Arc<AtomicU32>,
}

/// One test at a time: failures and counts are those of all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

/// A graph with a node of every kind, at the root, in bodies and in a child.
struct Scene {
    graph: Graph,
    fill: Node,
    bytes: Node,
    copied: Node,
    kernel: Node,
    child: Node,
    in_child: Node,
    repeat: Node,
    in_repeat: Node,
    choice: Node,
    call: Node,
    record: Node,
}

/// What the nodes are given.
#[derive(Clone, Copy)]
struct Values {
    fill: u32,
    byte: u8,
    tag: u32,
    in_child: u32,
    passes: u64,
    in_repeat: u32,
    word: usize,
    call: u32,
    event: usize,
}

const FIRST: Values =
    Values { fill: 3, byte: 1, tag: 10, in_child: 20, passes: 2, in_repeat: 30, word: 0, call: 1, event: 0 };
const SECOND: Values = Values {
    fill: 4,
    byte: 2,
    tag: 11,
    in_child: 21,
    passes: 3,
    in_repeat: 31,
    word: 1,
    call: 100,
    event: 1,
};

impl Stage {
    fn new() -> Self {
        let gpu = Gpu::new(simulator::device(None));
        let events = [0, 1].map(|_| Event::new(&gpu.backend, EventOptions::default()).unwrap());
        Self {
            log: gpu.words(&[0; 64]),
            data: gpu.words(&[0; 4]),
            other: gpu.words(&[7; 4]),
            pinned: gpu.backend.allocate(16, MemoryKind::Host).unwrap(),
            left: gpu.words(&[0]),
            words: [gpu.words(&[1]), gpu.words(&[0])],
            events,
            called: Arc::default(),
            gpu,
        }
    }

    fn call(&self, values: Values) -> Operation {
        let called = Arc::clone(&self.called);
        Operation::Callback(CallbackOp::closure(move || {
            called.fetch_add(values.call, Ordering::SeqCst);
        }))
    }

    fn bytes(&self, values: Values) -> Operation {
        copy(&whole(&self.data).part(4, 4).unwrap(), &Region::from_bytes(vec![values.byte; 4]))
    }

    fn fill(&self, values: Values) -> Operation {
        fill(&whole(&self.data), values.fill, 4)
    }

    fn record(&self, values: Values) -> Operation {
        Operation::EventRecord(self.events[values.event].backend().clone())
    }

    fn child(&self, values: Values) -> Graph {
        let child = self.gpu.graph();
        child.add(&[], self.gpu.append(&self.log, values.in_child)).unwrap();
        child
    }

    /// The test of the choice is a value in memory, its body a callback, so that the host drives
    /// it.
    fn scene(&self, values: Values) -> Scene {
        let (gpu, graph) = (&self.gpu, self.gpu.graph());
        let start = graph.add(&[], fill(&whole(&self.left), 2, 4)).unwrap();
        let filled = graph.add(&[&start], self.fill(values)).unwrap();
        let bytes = graph.add(&[&filled], self.bytes(values)).unwrap();
        let half = |buffer, at| whole(buffer).part(at, 8).unwrap();
        let copied = graph.add(&[&bytes], copy(&half(&self.data, 8), &half(&self.other, 0))).unwrap();
        let kernel = graph.add(&[&copied], gpu.append(&self.log, values.tag)).unwrap();
        let child = graph.add_child(&[&kernel], &self.child(values)).unwrap();
        let in_child = child.bodies().unwrap()[0].nodes()[0].clone();
        let count = Test::Count(values.passes);
        let (repeat, bodies) = conditional(&graph, &[&child], ConditionalForm::While, count, 1);
        let in_repeat = bodies[0].add(&[], gpu.append(&self.log, values.in_repeat)).unwrap();
        let again = graph.condition(Some(1));
        let by_kernel = Test::Condition(again.key());
        let (looped, bodies) = conditional(&graph, &[&repeat], ConditionalForm::While, by_kernel, 1);
        bodies[0].add(&[], gpu.launch("countdown", [handle(&again), at(&self.left)])).unwrap();
        let by_value = Test::Value(whole(&self.words[values.word]));
        let (choice, bodies) = conditional(&graph, &[&looped], ConditionalForm::If, by_value, 1);
        bodies[0].add(&[], self.call(Values { call: 10_000, ..values })).unwrap();
        let call = graph.add(&[&choice], self.call(values)).unwrap();
        let record = graph.add(&[&call], self.record(values)).unwrap();
        Scene {
            graph,
            fill: filled,
            bytes,
            copied,
            kernel,
            child,
            in_child,
            repeat,
            in_repeat,
            choice,
            call,
            record,
        }
    }

    /// What a launch leaves: the log, the data, the pinned words, what callbacks counted, and which
    /// events were recorded.
    fn outcome(&self, executable: &Executable) -> (Vec<i32>, Vec<i32>, Vec<i32>, u32) {
        self.reset();
        executable.launch(&self.gpu.stream).unwrap();
        self.gpu.stream.synchronize().unwrap();
        let log = self.gpu.read(&self.log);
        let length = log[0] as usize;
        let outcome = (
            log[1..=length].to_vec(),
            self.gpu.read(&self.data),
            self.gpu.read(&self.pinned),
            self.called.load(Ordering::SeqCst),
        );
        assert_eq!(self.gpu.read(&self.left), [0]);
        outcome
    }

    fn reset(&self) {
        for buffer in [&self.log, &self.data, &self.pinned] {
            self.gpu.backend.write(&**buffer, 0, &vec![0; buffer.bytes() as usize]).unwrap();
        }
        self.called.store(0, Ordering::SeqCst);
    }

    fn instantiate(&self, scene: &Scene, mode: ConditionalMode) -> Result<Executable> {
        let options = InstantiateOptions { conditional_mode: mode, count_passes: true, ..Default::default() };
        scene.graph.instantiate_with(&options)
    }

    /// An executable that was updated already, so that it has copies of host bytes that came with
    /// an update.
    fn updated(&self, scene: &Scene, mode: ConditionalMode) -> Executable {
        let executable = self.instantiate(scene, mode).unwrap();
        let bytes = self.bytes(Values { byte: 5, ..FIRST });
        executable.node(&scene.bytes).unwrap().set_operation(bytes).unwrap();
        executable
    }

    /// Everything that exists but events, of which streams keep some for later use.
    fn alive(&self) -> Alive {
        self.gpu.backend.wait_all().unwrap();
        // The first hands over what the second sees dropped.
        release::flush();
        release::flush();
        self.gpu.backend.wait_all().unwrap();
        Alive { events: 0, ..alive() }
    }
}

/// Waits until `alive` is as it should be, or says how it is not.
fn expect_alive(stage: &Stage, expected: Alive, what: &str) {
    for _ in 0..200 {
        if stage.alive() == expected {
            return;
        }
    }
    assert_eq!(stage.alive(), expected, "{what}");
}

fn conditional_with(node: &Node, test: Test) -> Operation {
    let Operation::Conditional(old) = node.operation().unwrap() else { panic!("a conditional") };
    Operation::Conditional(Arc::new(ConditionalOp { test, ..(*old).clone() }))
}

/// A change, ready to be made.
type Prepared = Box<dyn Fn(&Executable) -> Result<()>>;

/// A way to change an executable.
type Change = (&'static str, fn(&Stage, &Scene) -> Prepared);

fn set(node: &Node, operation: Operation) -> Prepared {
    let node = node.clone();
    Box::new(move |executable| executable.node(&node)?.set_operation(operation.clone()))
}

fn enable(node: &Node, enabled: bool) -> Prepared {
    let node = node.clone();
    Box::new(move |executable| executable.node(&node)?.set_enabled(enabled))
}

const CHANGES: &[Change] = &[
    ("arguments", |stage, scene| set(&scene.kernel, stage.gpu.append(&stage.log, 99))),
    ("another kernel, with another shape", |stage, scene| set(&scene.kernel, stage.gpu.add(&stage.data, 5))),
    ("an attribute", |stage, scene| {
        let arguments = [at(&stage.log), uint(98)];
        let config = LaunchConfig::one().priority(-1);
        set(&scene.kernel, stage.gpu.launch_with(&stage.gpu.kernel("append"), config, arguments))
    }),
    ("a fill", |stage, scene| set(&scene.fill, stage.fill(SECOND))),
    ("host bytes", |stage, scene| set(&scene.bytes, stage.bytes(SECOND))),
    ("a copy", |stage, scene| {
        let part = |at| whole(&stage.data).part(at, 4).unwrap();
        set(&scene.copied, copy(&part(12), &part(0)))
    }),
    ("the direction of a copy", |stage, scene| {
        set(&scene.copied, copy(&whole(&stage.pinned), &whole(&stage.other)))
    }),
    ("a callback", |stage, scene| set(&scene.call, stage.call(SECOND))),
    ("an event", |stage, scene| set(&scene.record, stage.record(SECOND))),
    ("a child", |stage, scene| {
        let (node, child) = (scene.child.clone(), stage.child(SECOND));
        Box::new(move |executable| executable.node(&node)?.set_child(&child))
    }),
    ("a kernel in a child", |stage, scene| set(&scene.in_child, stage.gpu.append(&stage.log, 97))),
    ("a kernel in a body", |stage, scene| set(&scene.in_repeat, stage.gpu.append(&stage.log, 96))),
    ("a count of passes", |_, scene| set(&scene.repeat, conditional_with(&scene.repeat, Test::Count(0)))),
    ("the value that decides", |stage, scene| {
        let test = Test::Value(whole(&stage.words[1]));
        set(&scene.choice, conditional_with(&scene.choice, test))
    }),
    ("several at once", |stage, scene| {
        let changes = [
            (scene.bytes.clone(), stage.bytes(SECOND)),
            (scene.kernel.clone(), stage.gpu.append(&stage.log, 95)),
            (scene.call.clone(), stage.call(SECOND)),
            (scene.copied.clone(), copy(&whole(&stage.pinned), &whole(&stage.other))),
        ];
        Box::new(move |executable| {
            executable.set_operations(changes.iter().map(|(node, operation)| (node, operation.clone())))
        })
    }),
    ("single arguments, and something else between", |stage, scene| {
        let elsewhere = PointerValue::Region(whole(&stage.log).part(128, 128).unwrap());
        let arguments = [
            (scene.kernel.key(), 0, ArgValue::Pointer(elsewhere)),
            (scene.kernel.key(), 1, uint(94)),
            (scene.in_child.key(), 1, uint(93)),
            (scene.in_repeat.key(), 1, uint(92)),
        ];
        let (bytes, operation) = (scene.bytes.key(), stage.bytes(SECOND));
        Box::new(move |executable| {
            executable.change(|changes| {
                for (at, (node, index, value)) in arguments.iter().enumerate() {
                    if at == 3 {
                        changes.operation(bytes, operation.clone())?;
                    }
                    // SAFETY: a log and a word are what the kernel takes, and there is room behind
                    // the place in the log.
                    unsafe { changes.argument(*node, *index, value)? };
                }
                Ok(())
            })
        })
    }),
    ("everything", |stage, _| {
        let other = stage.scene(SECOND).graph;
        Box::new(move |executable| executable.update(&other))
    }),
    ("a node that does nothing", |_, scene| enable(&scene.kernel, false)),
    ("a fill that does nothing", |_, scene| enable(&scene.fill, false)),
    ("a node in a body that does nothing", |_, scene| enable(&scene.in_repeat, false)),
];

/// Makes each change once for every call that can fail in it, armed by `arm`, until none is left to
/// fail.
fn change_with(arm: impl Fn(usize) -> Failure) {
    let _alone = alone();
    for mode in MODES {
        for (name, change) in CHANGES {
            let stage = Stage::new();
            let scene = stage.scene(FIRST);
            let plain = stage.updated(&scene, mode);
            let before = stage.outcome(&plain);
            let change = change(&stage, &scene);
            change(&plain).unwrap();
            let after = stage.outcome(&plain);
            if *name != "an event" {
                assert_ne!(before, after, "{name} makes a difference that is seen");
            }
            drop(plain);
            let exists = stage.alive();
            for n in 0.. {
                let what = format!("{name}, {mode:?}, call {n}");
                let executable = stage.updated(&scene, mode);
                // Also after a launch, which then holds what the change replaces.
                if n % 2 == 1 {
                    assert_eq!(stage.outcome(&executable), before, "{what}");
                }
                let failure = arm(n);
                let changed = change(&executable);
                let failed = failure.failed();
                drop(failure);
                let expected = if changed.is_ok() { &after } else { &before };
                assert_eq!(&stage.outcome(&executable), expected, "{what}: {failed:?}, {changed:?}");
                change(&executable).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(stage.outcome(&executable), after, "{what}, made again");
                drop(executable);
                expect_alive(&stage, exists, &what);
                if failed.is_empty() {
                    break;
                }
            }
            assert!(violations().is_empty(), "{name}: {:#?}", violations());
        }
    }
}

#[test]
fn a_change_during_which_a_call_fails_is_made_or_changes_nothing() {
    change_with(|n| Failure::of_call(n, UNKNOWN));
}

#[test]
fn a_change_from_some_call_of_which_on_every_call_fails_changes_nothing() {
    change_with(|n| Failure::of_calls_from(n, UNKNOWN));
}

#[test]
fn a_change_for_which_there_is_no_memory_is_made_or_changes_nothing() {
    change_with(Failure::of_allocations);
}

/// Instantiates once for every call that can fail in it.
fn instantiate_with(arm: impl Fn(usize) -> Failure) {
    let _alone = alone();
    for mode in MODES {
        let stage = Stage::new();
        let scene = stage.scene(FIRST);
        let plain = stage.instantiate(&scene, mode).unwrap();
        let expected = stage.outcome(&plain);
        drop(plain);
        let exists = stage.alive();
        for n in 0.. {
            let what = format!("{mode:?}, call {n}");
            let failure = arm(n);
            let made = stage.instantiate(&scene, mode);
            let failed = failure.failed();
            drop(failure);
            if let Ok(executable) = &made {
                assert_eq!(stage.outcome(executable), expected, "{what}: {failed:?}");
            }
            drop(made);
            expect_alive(&stage, exists, &what);
            let executable = stage.instantiate(&scene, mode).unwrap();
            assert_eq!(stage.outcome(&executable), expected, "{what}");
            drop(executable);
            if failed.is_empty() {
                break;
            }
        }
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn instantiating_while_a_call_fails_leaves_nothing_behind() {
    instantiate_with(|n| Failure::of_call(n, UNKNOWN));
}

#[test]
fn instantiating_while_every_call_fails_from_one_on_leaves_nothing_behind() {
    instantiate_with(|n| Failure::of_calls_from(n, UNKNOWN));
}

#[test]
fn instantiating_without_memory_leaves_nothing_behind() {
    instantiate_with(Failure::of_allocations);
}

#[test]
fn a_device_that_could_not_be_opened_leaves_nothing_behind() {
    let _alone = alone();
    let stage = Stage::new();
    let exists = stage.alive();
    for n in 0.. {
        let failure = Failure::of_call(n, UNKNOWN);
        let opened = gridloom_cuda::CudaDevice::open_with(Arc::clone(stage.gpu.device.driver()), 0);
        let failed = failure.failed();
        drop(failure);
        drop(opened);
        expect_alive(&stage, exists, &format!("call {n}: {failed:?}"));
        if failed.is_empty() {
            break;
        }
    }
}

#[test]
fn a_launch_during_which_a_call_fails_says_so_and_the_next_is_right() {
    let _alone = alone();
    for mode in MODES {
        let stage = Stage::new();
        let scene = stage.scene(FIRST);
        let executable = stage.instantiate(&scene, mode).unwrap();
        let expected = stage.outcome(&executable);
        for n in 0.. {
            stage.reset();
            let failure = Failure::of_call(n, UNKNOWN);
            let launched = executable.launch(&stage.gpu.stream);
            let waited = stage.gpu.stream.synchronize();
            let failed = failure.failed();
            drop(failure);
            let told = launched.is_err() || waited.is_err();
            // Letting go of the context, not being restricted by captures, which there are none of,
            // and recording the end of a turn, which is waited for instead.
            let harmless = ["cuCtxPopCurrent_v2", "cuThreadExchangeStreamCaptureMode", "cuEventRecord"];
            assert!(
                told || failed.iter().all(|name| harmless.contains(name)),
                "{mode:?}, call {n}: {failed:?}"
            );
            // What was under way when the wait failed.
            let _ = stage.gpu.stream.synchronize();
            let _ = executable.take_error();
            assert_eq!(stage.outcome(&executable), expected, "{mode:?}, call {n}: {failed:?}");
            if failed.is_empty() {
                break;
            }
        }
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn a_drop_during_which_a_call_fails_lets_go_of_everything_else() {
    let _alone = alone();
    for mode in MODES {
        for n in 0.. {
            let stage = Stage::new();
            let scene = stage.scene(FIRST);
            let executable = stage.instantiate(&scene, mode).unwrap();
            executable.launch(&stage.gpu.stream).unwrap();
            let failure = Failure::of_release(n, UNKNOWN);
            drop((executable, scene, stage));
            for _ in 0..20_000 {
                release::flush();
                if alive() == Alive::default() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let failed = failure.failed();
            drop(failure);
            assert_eq!(alive(), Alive::default(), "{mode:?}, call {n}: {failed:?}");
            if failed.is_empty() {
                break;
            }
        }
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}
