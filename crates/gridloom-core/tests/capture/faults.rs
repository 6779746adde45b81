//! Each single operation of a capture made to fail, in turn.

use std::cell::Cell;
use std::sync::Arc;

use gridloom_core::capture::CaptureState;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{MemoryKind, Region};
use gridloom_core::null::CallKind;
use gridloom_core::op::{AllocOp, ConditionalForm, FreeTarget, MemcpyOp, MemsetOp, Operation, Test};
use gridloom_core::{Capture, ErrorKind, Graph, Result};
use smallvec::SmallVec;

use crate::common::{Bench, Witness, conditional, nothing, refused};

/// Picks the one step of a program that is given something it must refuse.
struct Faults {
    at: usize,
    step: Cell<usize>,
    /// What the graph held before the step that fails.
    before: Cell<(usize, usize)>,
}

impl Faults {
    fn at(at: usize) -> Self {
        Faults { at, step: Cell::new(0), before: Cell::new((0, 0)) }
    }

    /// The good value, or the bad one where this is the step to fail.
    fn pick<T>(&self, graph: &Graph, good: T, bad: T) -> T {
        let step = self.step.replace(self.step.get() + 1);
        if step != self.at {
            return good;
        }
        self.before.set(contents(graph));
        bad
    }
}

/// Nodes and edges of a graph with everything inside it.
fn contents(graph: &Graph) -> (usize, usize) {
    let inside = graph.nodes().into_iter().flat_map(|node| node.bodies().unwrap());
    inside
        .map(|body| contents(&body))
        .fold((graph.len(), graph.edges().len()), |(nodes, edges), (n, e)| (nodes + n, edges + e))
}

/// Every kind of operation, each of which can be made to fail.
fn program(capture: &Capture, bench: &Bench, witness: &Witness, faults: &Faults) -> Result<()> {
    let (foreign, side, event) = (Bench::new(), bench.stream(), bench.event());
    let graph = &capture.add(witness.callback())?.graph()?;
    let buffer = Region::whole(bench.device.allocate(64, MemoryKind::Device)?);
    let unrelated = Graph::new(&bench.device);
    unrelated.add(&[], witness.callback())?;

    let grid = faults.pick(graph, 1, 0);
    capture.add(bench.kernel_with(LaunchConfig::new(grid, 1)))?;
    let (dst, width) = (buffer.clone(), faults.pick(graph, 64, 65));
    let memset = MemsetOp { dst, value: 0, element_size: 1, width, height: 1, pitch: 0 };
    capture.add(Operation::Memset(Arc::new(memset)))?;
    let upper = buffer.part(32, 32).expect("within the buffer");
    let memcpy = MemcpyOp::linear(upper, buffer.clone(), faults.pick(graph, 32, 33));
    capture.add(Operation::Memcpy(Arc::new(memcpy)))?;
    let (len, kind, peers) = (faults.pick(graph, 4, 0), MemoryKind::Device, SmallVec::new());
    let alloc = capture.add(Operation::Alloc(Arc::new(AllocOp { len, element_size: 4, kind, peers })))?;
    // A callback cannot be wrong in itself; a capture that was joined refuses it.
    let joined = capture.fork(2)?.remove(0);
    capture.join([&joined])?;
    faults.pick(graph, capture, &joined).add(witness.callback())?;

    capture.embed(faults.pick(graph, &unrelated, graph))?;
    let executables = (unrelated.instantiate()?, Graph::new(&foreign.device).instantiate()?);
    faults.pick(graph, &executables.0, &executables.1).launch(capture)?;

    capture.record_event(faults.pick(graph, &event, &foreign.event()))?;
    faults.pick(graph, &side, &foreign.stream).wait(&event)?;
    side.enqueue(witness.callback())?;
    side.record(faults.pick(graph, &event, &foreign.event()))?;
    capture.wait_event(faults.pick(graph, &event, &foreign.event()))?;

    let forks = capture.fork(faults.pick(graph, 3, 1))?;
    for fork in &forks {
        fork.add(witness.callback())?;
    }
    capture.join(faults.pick(graph, [&forks[0], &forks[1]], [&forks[0], &forks[0]]))?;

    let again = capture.condition(faults.pick(graph, 1, u64::MAX))?;
    let not_ours = unrelated.condition(None);
    let spec = conditional(ConditionalForm::While, faults.pick(graph, &again, &not_ours), 1);
    let body = capture.conditional(&spec)?.1.remove(0);
    faults.pick(graph, &body, capture).begin()?;
    body.add(witness.callback())?;
    faults.pick(graph, &body, capture).end()?;
    let cases = faults.pick(graph, 3, 0);
    let spec = conditional(ConditionalForm::Switch, &capture.condition(None)?, cases);
    capture.conditional(&spec)?;
    let value = buffer.part(faults.pick(graph, 4, 5), 4).expect("within the buffer");
    let spec = ConditionalSpec { form: ConditionalForm::If, test: Test::Value(value), bodies: 1, ..spec };
    capture.conditional(&spec)?;

    let free = Operation::Free(FreeTarget::AllocNode(alloc.key()));
    let elsewhere = unrelated.nodes().remove(0);
    capture.add_after(&[faults.pick(graph, &alloc, &elsewhere)], free)?;
    Ok(())
}

/// How many steps of the program can fail.
fn steps() -> usize {
    let (bench, faults) = (Bench::new(), Faults::at(usize::MAX));
    let capture = bench.stream.capture().unwrap();
    program(&capture, &bench, &Witness::default(), &faults).unwrap();
    capture.end().unwrap().instantiate().unwrap().launch(&bench.stream).unwrap();
    faults.step.get()
}

#[test]
fn the_program_itself_has_no_fault() {
    assert!(steps() > 15);
}

#[test]
fn an_operation_that_fails_leaves_the_graph_as_it_was_and_the_capture_going() {
    for at in 0..steps() {
        let (bench, witness, faults) = (Bench::new(), Witness::default(), Faults::at(at));
        let capture = bench.stream.capture().unwrap();
        let graph = capture.add(nothing()).unwrap().graph().unwrap();
        program(&capture, &bench, &witness, &faults).expect_err("one step fails");
        assert_eq!(contents(&graph), faults.before.get(), "step {at}");
        assert_eq!(capture.state(), CaptureState::Capturing, "step {at}");
        capture.add(nothing()).unwrap();
    }
}

#[test]
fn a_capture_dropped_after_any_failure_leaves_the_stream_usable_and_nothing_behind() {
    for at in 0..steps() {
        let (bench, witness) = (Bench::new(), Witness::default());
        let failed =
            bench.stream.capture_scope(|capture| program(capture, &bench, &witness, &Faults::at(at)));
        failed.expect_err("one step fails");
        assert!(!bench.stream.is_capturing(), "step {at}");
        bench.stream.synchronize().unwrap();
        assert_eq!(witness.held(), 0, "step {at}");
        assert_eq!(bench.device.live_allocations(), 0, "step {at}");
        assert_eq!(bench.device.count(CallKind::Enqueue), 0, "step {at}");

        bench
            .stream
            .capture_scope(|capture| program(capture, &bench, &witness, &Faults::at(usize::MAX)))
            .unwrap();
        assert_eq!(witness.held(), 0, "step {at}");
    }
}

#[test]
fn a_graph_whose_instantiation_or_launch_fails_is_still_whole() {
    let (bench, witness) = (Bench::new(), Witness::default());
    let graph = bench
        .stream
        .capture_scope(|capture| program(capture, &bench, &witness, &Faults::at(usize::MAX)))
        .unwrap();
    let held = witness.held();
    bench.device.fail(CallKind::Instantiate, 1, ErrorKind::OutOfMemory);
    refused(graph.instantiate(), ErrorKind::OutOfMemory, &[]);
    let executable = graph.instantiate().unwrap();
    bench.device.fail(CallKind::Launch, 1, ErrorKind::OutOfMemory);
    refused(executable.launch(&bench.stream), ErrorKind::OutOfMemory, &[]);
    executable.launch(&bench.stream).unwrap();
    assert_eq!(witness.held(), held);
    drop((graph, executable));
    assert_eq!((witness.held(), bench.device.live_allocations()), (0, 0));
}
