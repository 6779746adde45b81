//! Values that change often go to the driver without a detour through the definition: what an executable says it does is what it does all the same, whichever call of the
//! driver fails, and memory that a value replaced lives until launches in flight have used it.

mod common;
mod simulator;

use common::*;
use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::executable::{ArgWriter, Change as NodeChange, Follower, RegionId, Value};
use gridloom_core::graph::{Graph, Node};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::op::{ArgValue, CallbackOp, Operation};
use gridloom_core::{Executable, Result};
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

    /// An executable that took the long way once.
    fn executable(&self) -> Executable {
        let executable = self.graph.instantiate().unwrap();
        executable.update(&self.with(1)).unwrap();
        executable
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

/// A way to change values; it goes the long way where the short one is not open.
type Change = fn(&Chain, &mut Executable) -> Result<()>;

fn one(chain: &Chain, executable: &mut Executable) -> Result<()> {
    let node = executable.node(&chain.nodes[7])?;
    let memory = RegionId::of(&whole(&chain.logs[0])).unwrap();
    // SAFETY: a log and a word are what the kernel takes.
    if unsafe {
        node.set_values(&chain.kernel, |writer| writer.memory(memory) && writer.plain(&2u32.to_ne_bytes()))
    } {
        return Ok(());
    }
    node.set_operation(chain.gpu.launch_with(
        &chain.kernel,
        LaunchConfig::one(),
        [at(&chain.logs[0]), uint(2)],
    ))
}

fn one_with_other_memory(chain: &Chain, executable: &mut Executable) -> Result<()> {
    let node = executable.node(&chain.nodes[7])?;
    let memory = RegionId::of(&whole(&chain.logs[1])).unwrap();
    // SAFETY: a log and a word are what the kernel takes.
    if unsafe {
        node.set_values(&chain.kernel, |writer| writer.memory(memory) && writer.plain(&2u32.to_ne_bytes()))
    } {
        return Ok(());
    }
    let arguments = [(0, at(&chain.logs[1])), (1, uint(2))];
    // SAFETY: as above.
    let argument = |(index, value)| unsafe { NodeChange::argument(node.key(), index, value) };
    node.change_args(&chain.kernel, &mut arguments.map(argument))
}

fn all(chain: &Chain, executable: &mut Executable) -> Result<()> {
    executable.update(&chain.with(2))
}

fn all_with_other_memory(chain: &Chain, executable: &mut Executable) -> Result<()> {
    executable.update(&self::chain(&chain.gpu, &chain.kernel, &chain.logs[1], 2).0)
}

fn followed(chain: &Chain, executable: &mut Executable) -> Result<()> {
    let mut given = [(0, Value::Memory(whole(&chain.logs[1]))), (1, Value::plain(&2u32.to_ne_bytes()))];
    if follow(chain, executable, &mut given) {
        return Ok(());
    }
    let launch = || chain.gpu.launch_with(&chain.kernel, LaunchConfig::one(), [at(&chain.logs[1]), uint(2)]);
    executable.set_operations(chain.nodes.iter().map(|node| (node, launch())))
}

/// Gives values to all nodes, which follow them from then on.
fn follow(chain: &Chain, executable: &mut Executable, given: &mut [(u32, Value)]) -> bool {
    let followers = |node: &Node| [0, 1].map(|index| Follower { node: node.key(), index, value: index });
    let followers: Vec<Follower> = chain.nodes.iter().flat_map(followers).collect();
    if !executable.is_followed() && !executable.follow(&followers) {
        return false;
    }
    // SAFETY: a log and a word are what the kernel takes.
    unsafe { executable.set_followed(given) }
}

const CHANGES: [(&str, Change); 5] = [
    ("one node", one),
    ("one node with other memory", one_with_other_memory),
    ("a whole update", all),
    ("a whole update with other memory", all_with_other_memory),
    ("followed values", followed),
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
    let given = |log: usize, tag: u32| {
        [(0, Value::Memory(whole(&chain.logs[log]))), (1, Value::plain(&tag.to_ne_bytes()))]
    };
    let all = |tag| vec![tag; NODES];
    assert!(follow(&chain, &mut executable, &mut given(1, 5)));
    assert_eq!(chain.outcome(&executable), [vec![], all(5)]);
    // Looking fills the gaps, which the next values open again.
    assert_eq!(chain.told(&executable), [vec![], all(5)]);
    assert!(follow(&chain, &mut executable, &mut given(0, 6)));
    executable.update(&chain.with(7)).unwrap();
    assert_eq!(chain.outcome(&executable), [all(7), vec![]]);
    one(&chain, &mut executable).unwrap();
    let mut expected = all(7);
    expected[7] = 2;
    assert_eq!(chain.told(&executable), [expected.clone(), vec![]]);
    assert_eq!(chain.outcome(&executable), [expected, vec![]]);
    // They differ now, and so cannot follow one value.
    assert!(!follow(&chain, &mut executable, &mut given(1, 8)));
    executable.update(&chain.with(9)).unwrap();
    assert!(follow(&chain, &mut executable, &mut given(1, 8)));
    let node = executable.node(&chain.nodes[3]).unwrap();
    node.set_enabled(false).unwrap();
    assert!(follow(&chain, &mut executable, &mut given(0, 4)));
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
    let node = executable.node(&chain.nodes[7]).unwrap();
    let memory = RegionId::of(&whole(&chain.logs[0])).unwrap();
    let three = 3u32.to_ne_bytes();
    // SAFETY: a log and a word are what the kernel takes; of other values nothing is launched.
    let set = |write: &dyn Fn(&mut ArgWriter<'_>) -> bool| unsafe {
        node.set_values(&chain.kernel, |writer| write(writer))
    };
    assert!(
        !set(&|writer| writer.memory(memory) && writer.plain(&three) && writer.plain(&three)),
        "too many"
    );
    assert!(!set(&|writer| writer.memory(memory)), "too few");
    assert!(!set(&|writer| writer.memory(memory) && writer.plain(&[3; 8])), "of another size");
    assert!(!set(&|writer| writer.memory(memory) && writer.memory(memory)), "no memory there");
    let panics = || set(&|writer| writer.memory(memory) && writer.plain(&three) && panic!("a user's"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    // SAFETY: as above.
    assert!(unsafe {
        !node.set_value(0, &[0; 8]) && !node.set_value(1, &[3; 2]) && !node.set_value(2, &three)
    });
    assert_eq!(chain.told(&executable), expected);
    assert_eq!(chain.outcome(&executable), expected);
    assert!(set(&|writer| writer.memory(memory) && writer.plain(&three)));
    assert_eq!(chain.outcome(&executable)[0][7], 3);
}

#[test]
fn what_was_read_stays_as_it_was_when_values_change() {
    let _alone = alone();
    let chain = Chain::new();
    let mut executable = chain.executable();
    one(&chain, &mut executable).unwrap();
    let read = executable.node(&chain.nodes[7]).unwrap().operation();
    let copy = executable.graph();
    executable.update(&chain.with(3)).unwrap();
    executable.update(&chain.with(4)).unwrap();
    let Operation::Kernel(launch) = &read else { panic!("a kernel") };
    assert_eq!(launch.args().value(1).unwrap(), 2u32.to_ne_bytes());
    let mut expected = vec![1; NODES];
    expected[7] = 2;
    assert_eq!(chain.outcome(&copy.instantiate().unwrap()), [expected, vec![]]);
    assert_eq!(chain.outcome(&executable), [vec![4; NODES], vec![]]);
}

/// Gives an executable a log of its own, then, while a launch is held up, another one, and sees that the first lives until the launch has run.
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

fn give_followed(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    assert!(follow(chain, executable, &mut [(0, Value::Memory(whole(log)))]));
}

fn give_one(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    let node = executable.node(&chain.nodes[7]).unwrap();
    // SAFETY: a log is what the kernel takes.
    let mut change = [unsafe { NodeChange::argument(node.key(), 0, at(log)) }];
    executable.change(&mut change).unwrap();
}

fn give_all(chain: &Chain, executable: &mut Executable, log: &Arc<dyn Allocation>) {
    executable.update(&self::chain(&chain.gpu, &chain.kernel, log, 3).0).unwrap();
}

#[test]
fn memory_that_was_replaced_lives_until_launches_in_flight_have_used_it_and_no_longer() {
    let _alone = alone();
    let chain = Chain::new();
    for give in [give_followed, give_one, give_all] {
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
