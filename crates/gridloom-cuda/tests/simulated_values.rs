//! Values that change often go to the driver without a detour through the definition: what an
//! executable says it does is what it does all the same, whichever call of the driver fails, and
//! memory that a value replaced lives until launches in flight have used it.

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::executable::ArgWriter;
use gridloom_core::graph::{Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::RegionId;
use gridloom_core::op::{ArgValue, CallbackOp, Operation};
use gridloom_core::{ErrorKind, Executable, Result};
use gridloom_cuda::release;
use gridloom_cuda::sys::CUresult;
use parking_lot::{Mutex, MutexGuard};
use simulator::{Failure, violations};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak, mpsc};

const UNKNOWN: CUresult = CUresult::CUDA_ERROR_UNKNOWN;
/// More than are told to the driver at once.
const NODES: usize = 20;

/// One test at a time: failures are those of all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock()
}

/// A chain of kernels that each add a tag to a log.
struct Chain {
    gpu: Gpu,
    kernel: Arc<dyn Kernel>,
    logs: [Arc<dyn Allocation>; 2],
    graph: Graph,
    nodes: Vec<Node>,
}

impl Chain {
    fn new() -> Self {
        let gpu = Gpu::new(simulator::device(None));
        let kernel = gpu.kernel("append");
        let logs = [gpu.words(&[0; 64]), gpu.words(&[0; 64])];
        let (graph, nodes) = chain(&gpu, &kernel, &logs[0], 1);
        Chain { gpu, kernel, logs, graph, nodes }
    }

    fn executable(&self) -> Executable {
        self.graph.instantiate().unwrap()
    }

    /// The same graph with another tag.
    fn with(&self, tag: u32) -> Graph {
        chain(&self.gpu, &self.kernel, &self.logs[0], tag).0
    }

    /// What a launch adds to each log.
    fn outcome(&self, executable: &Executable) -> [Vec<i32>; 2] {
        for log in &self.logs {
            self.gpu.backend.write(&**log, 0, &[0; 256]).unwrap();
        }
        executable.launch(&self.gpu.stream).unwrap();
        self.gpu.stream.synchronize().unwrap();
        self.logs.each_ref().map(|log| {
            let words = self.gpu.read(log);
            words[1..=words[0] as usize].to_vec()
        })
    }

    /// What a launch is to add, as the executable says itself.
    fn told(&self, executable: &Executable) -> [Vec<i32>; 2] {
        let definition = executable.definition();
        let mut told = [vec![], vec![]];
        for node in &self.nodes {
            let Operation::Kernel(launch) = definition.node(node.key()).operation() else {
                panic!("a kernel")
            };
            let value = |index| launch.args().value(index).unwrap();
            let address = u64::from_ne_bytes(value(0).try_into().unwrap());
            let log = self.logs.iter().position(|log| log.address() == address).unwrap();
            let kept = launch.args().pointers_in(0).map(|pointer| &pointer.value);
            let ArgValue::Pointer(expected) = at(&self.logs[log]) else { panic!("memory") };
            assert!(kept.eq([&expected]), "it keeps what it writes");
            told[log].push(i32::from_ne_bytes(value(1).try_into().unwrap()));
        }
        told
    }
}

fn chain(gpu: &Gpu, kernel: &Arc<dyn Kernel>, log: &Arc<dyn Allocation>, tag: u32) -> (Graph, Vec<Node>) {
    let graph = gpu.graph();
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..NODES {
        let launch = gpu.launch_with(kernel, LaunchConfig::one(), [at(log), uint(tag)]);
        nodes.push(graph.add(nodes.last().as_slice(), launch).unwrap());
    }
    (graph, nodes)
}

/// A way to change values.
type Change = fn(&Chain, &mut Executable) -> Result<()>;

fn one(chain: &Chain, executable: &mut Executable) -> Result<()> {
    give_arguments(chain, executable, 0)
}

fn one_with_other_memory(chain: &Chain, executable: &mut Executable) -> Result<()> {
    give_arguments(chain, executable, 1)
}

/// Gives one node all its arguments.
fn give_arguments(chain: &Chain, executable: &Executable, log: usize) -> Result<()> {
    let region = whole(&chain.logs[log]);
    write_arguments(chain, executable, |writer| {
        writer.memory(RegionId::of(&region), || Ok(region.clone()))?;
        writer.plain(&2u32.to_ne_bytes())
    })
}

fn write_arguments(
    chain: &Chain,
    executable: &Executable,
    write: impl FnOnce(&mut ArgWriter<'_, '_>) -> Result<()>,
) -> Result<()> {
    executable.change(|changes| {
        // SAFETY: a log and a word are what the kernel takes; of other values nothing is launched.
        unsafe { changes.arguments(chain.nodes[7].key(), &chain.kernel, write) }
    })
}

fn one_argument(chain: &Chain, executable: &mut Executable) -> Result<()> {
    // SAFETY: a word is what the kernel takes.
    executable.change(|changes| unsafe { changes.plain(chain.nodes[7].key(), 1, &2u32.to_ne_bytes()) })
}

fn all(chain: &Chain, executable: &mut Executable) -> Result<()> {
    executable.update(&chain.with(2))
}

fn all_with_other_memory(chain: &Chain, executable: &mut Executable) -> Result<()> {
    executable.update(&self::chain(&chain.gpu, &chain.kernel, &chain.logs[1], 2).0)
}

fn every_node(chain: &Chain, executable: &mut Executable) -> Result<()> {
    give_every_node(chain, executable, &chain.logs[1], Some(2))
}

/// Gives all nodes another log, and another tag, where there is one.
fn give_every_node(
    chain: &Chain,
    executable: &Executable,
    log: &Arc<dyn Allocation>,
    tag: Option<u32>,
) -> Result<()> {
    let region = whole(log);
    executable.change(|changes| {
        for node in &chain.nodes {
            // SAFETY: a log and a word are what the kernel takes.
            unsafe {
                changes.memory(node.key(), 0, &region)?;
                tag.map_or(Ok(()), |tag| changes.plain(node.key(), 1, &tag.to_ne_bytes()))?;
            }
        }
        Ok(())
    })
}

/// Arguments, and something else in the same step.
fn with_an_operation(chain: &Chain, executable: &mut Executable) -> Result<()> {
    let launch = chain.gpu.launch_with(&chain.kernel, LaunchConfig::one(), [at(&chain.logs[1]), uint(2)]);
    executable.change(|changes| {
        // SAFETY: a word is what the kernel takes.
        unsafe { changes.plain(chain.nodes[2].key(), 1, &2u32.to_ne_bytes()) }?;
        changes.operation(chain.nodes[3].key(), launch)
    })
}

const CHANGES: [(&str, Change); 7] = [
    ("one argument", one_argument),
    ("one node", one),
    ("one node with other memory", one_with_other_memory),
    ("a whole update", all),
    ("a whole update with other memory", all_with_other_memory),
    ("every node", every_node),
    ("an argument and an operation", with_an_operation),
];

fn fail_with(arm: impl Fn(usize) -> Failure) {
    let _alone = alone();
    for (name, change) in CHANGES {
        let chain = Chain::new();
        let mut plain = chain.executable();
        let before = chain.outcome(&plain);
        change(&chain, &mut plain).unwrap();
        let after = chain.outcome(&plain);
        assert_ne!(before, after, "{name}");
        for n in 0.. {
            let what = format!("{name}, call {n}");
            let mut executable = chain.executable();
            assert_eq!(chain.outcome(&executable), before, "{what}");
            let failure = arm(n);
            let changed = change(&chain, &mut executable);
            let failed = failure.failed();
            drop(failure);
            let expected = if changed.is_ok() { &after } else { &before };
            assert_eq!(&chain.told(&executable), expected, "{what}: {failed:?}, {changed:?}");
            assert_eq!(&chain.outcome(&executable), expected, "{what}: {failed:?}, {changed:?}");
            change(&chain, &mut executable).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(chain.outcome(&executable), after, "{what}, made again");
            if failed.is_empty() {
                break;
            }
        }
        assert!(violations().is_empty(), "{name}: {:#?}", violations());
    }
}

#[test]
fn values_during_whose_change_a_call_fails_are_all_changed_or_none() {
    fail_with(|n| Failure::of_call(n, UNKNOWN));
}

#[test]
fn values_from_some_call_of_whose_change_on_every_call_fails_are_all_as_they_were() {
    fail_with(|n| Failure::of_calls_from(n, UNKNOWN));
}

#[test]
fn whichever_way_values_are_changed_the_others_see_it() {
    let _alone = alone();
    let chain = Chain::new();
    let mut executable = chain.executable();
    let give = |executable: &Executable, log: usize, tag| {
        give_every_node(&chain, executable, &chain.logs[log], Some(tag)).unwrap();
    };
    let all = |tag| vec![tag; NODES];
    give(&executable, 1, 5);
    assert_eq!(chain.outcome(&executable), [vec![], all(5)]);
    // What was looked at holds what the nodes are given, and lets go of it with the next change.
    assert_eq!(chain.told(&executable), [vec![], all(5)]);
    give(&executable, 0, 6);
    executable.update(&chain.with(7)).unwrap();
    assert_eq!(chain.outcome(&executable), [all(7), vec![]]);
    one(&chain, &mut executable).unwrap();
    let mut expected = all(7);
    expected[7] = 2;
    assert_eq!(chain.told(&executable), [expected.clone(), vec![]]);
    assert_eq!(chain.outcome(&executable), [expected, vec![]]);
    give(&executable, 1, 8);
    let node = executable.node(&chain.nodes[3]).unwrap();
    node.set_enabled(false).unwrap();
    give(&executable, 0, 4);
    assert_eq!(chain.outcome(&executable), [vec![4; NODES - 1], vec![]]);
    assert!(violations().is_empty(), "{:#?}", violations());
}

#[test]
fn values_that_are_refused_half_way_are_as_they_were() {
    let _alone = alone();
    let chain = Chain::new();
    let mut executable = chain.executable();
    // From here on the definition lags behind.
    one(&chain, &mut executable).unwrap();
    let expected = chain.outcome(&executable);
    let (memory, three) = (at(&chain.logs[0]), 3u32.to_ne_bytes());
    type Write<'a> = &'a dyn Fn(&mut ArgWriter<'_, '_>) -> Result<()>;
    let set = |write: Write<'_>| write_arguments(&chain, &executable, |writer| write(writer));
    let refused: [(&str, Write<'_>); 4] = [
        ("too many", &|writer| {
            writer.value(memory.clone())?;
            writer.plain(&three)?;
            writer.plain(&three)
        }),
        ("too few", &|writer| writer.value(at(&chain.logs[1]))),
        ("of another size", &|writer| {
            writer.value(at(&chain.logs[1]))?;
            writer.plain(&[3; 8])
        }),
        ("of another size at last", &|writer| {
            writer.value(memory.clone())?;
            writer.value(memory.clone())
        }),
    ];
    for (what, write) in refused {
        assert_eq!(set(write).unwrap_err().kind(), ErrorKind::ParameterMismatch, "{what}");
        assert_eq!(chain.told(&executable), expected, "{what}");
    }
    let panics = || {
        set(&|writer| {
            writer.value(at(&chain.logs[1]))?;
            writer.plain(&three)?;
            panic!("a user's")
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    for (index, value) in [(0, &[0; 4][..]), (1, &[3; 2]), (2, &three)] {
        // SAFETY: nothing is launched of these.
        let set = executable.change(|changes| unsafe { changes.plain(chain.nodes[7].key(), index, value) });
        assert_eq!(set.unwrap_err().kind(), ErrorKind::ParameterMismatch);
    }
    assert_eq!(chain.told(&executable), expected);
    assert_eq!(chain.outcome(&executable), expected);
    set(&|writer| {
        writer.value(memory.clone())?;
        writer.plain(&three)
    })
    .unwrap();
    assert_eq!(chain.outcome(&executable)[0][7], 3);
}

#[test]
fn what_was_read_stays_as_it_was_when_values_change() {
    let _alone = alone();
    let chain = Chain::new();
    let mut executable = chain.executable();
    one(&chain, &mut executable).unwrap();
    let read = executable.node(&chain.nodes[7]).unwrap().operation();
    let copy = executable.graph().unwrap();
    executable.update(&chain.with(3)).unwrap();
    executable.update(&chain.with(4)).unwrap();
    let Operation::Kernel(launch) = &read else { panic!("a kernel") };
    assert_eq!(launch.args().value(1).unwrap(), 2u32.to_ne_bytes());
    let mut expected = vec![1; NODES];
    expected[7] = 2;
    assert_eq!(chain.outcome(&copy.instantiate().unwrap()), [expected, vec![]]);
    assert_eq!(chain.outcome(&executable), [vec![4; NODES], vec![]]);
}

/// Gives an executable a log of its own, then, while a launch is held up, another one, and sees
/// that the first lives until the launch has run.
fn replace_in_flight(
    chain: &Chain,
    executable: &mut Executable,
    give: fn(&Chain, &mut Executable, &Arc<dyn Allocation>),
) {
    // There is room for a few launches.
    chain.gpu.backend.write(&*chain.logs[0], 0, &[0; 256]).unwrap();
    let log = chain.gpu.words(&[0; 64]);
    let gone = Arc::downgrade(&log);
    give(chain, executable, &log);
    let (open, gate) = mpsc::channel::<()>();
    let hold = CallbackOp::closure(move || {
        let _ = gate.recv();
    });
    chain.gpu.stream.enqueue(Operation::Callback(hold)).unwrap();
    executable.launch(&chain.gpu.stream).unwrap();
    drop(log);
    give(chain, executable, &chain.logs[0]);
    release::flush();
    assert!(gone.upgrade().is_some(), "the launch has it");
    drop(open);
    chain.gpu.stream.synchronize().unwrap();
    expect_gone(&gone);
}

fn expect_gone(memory: &Weak<dyn Allocation>) {
    while memory.upgrade().is_some() {
        release::flush();
        std::thread::yield_now();
    }
}

fn give_every(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    give_every_node(chain, executable, log, None).unwrap();
}

fn give_one(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    // SAFETY: a log is what the kernel takes.
    executable.change(|changes| unsafe { changes.argument(chain.nodes[7].key(), 0, &at(log)) }).unwrap();
}

fn give_all(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    executable.update(&self::chain(&chain.gpu, &chain.kernel, log, 3).0).unwrap();
}

#[test]
fn memory_that_was_replaced_lives_until_launches_in_flight_have_used_it_and_no_longer() {
    let _alone = alone();
    let chain = Chain::new();
    for give in [give_every, give_one, give_all] {
        let mut executable = chain.executable();
        for _ in 0..20 {
            replace_in_flight(&chain, &mut executable, give);
        }
        let log = chain.gpu.words(&[0; 64]);
        let gone = Arc::downgrade(&log);
        give(&chain, &mut executable, &log);
        executable.launch(&chain.gpu.stream).unwrap();
        drop((log, executable));
        chain.gpu.stream.synchronize().unwrap();
        expect_gone(&gone);
    }
    assert!(violations().is_empty(), "{:#?}", violations());
}
