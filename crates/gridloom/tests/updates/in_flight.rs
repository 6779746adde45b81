//! Launches that are enqueued or running while their executable changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::channel;

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::wait::OpenOnDrop;
use crate::support::{Bench, Gate, GraphKernels, eventually, for_each_device, for_each_engine, refused};

#[test]
fn each_launch_runs_what_was_set_when_it_was_enqueued() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let node = kernels.bump(&graph, &value, 1)?;
        let executable = graph.instantiate()?;
        kernels.stream.callback(gate.waiter())?;
        executable.launch(&kernels.stream)?;
        for by in [10, 100, 1000] {
            executable.node(&node)?.set_args(&kernels.increase, (&value, 1, by))?;
            executable.launch(&kernels.stream)?;
        }
        executable.node(&node)?.set_args(&kernels.increase, (&value, 1, 1_000_000))?;
        gate.open();
        kernels.stream.synchronize()?;
        assert_eq!(read(&value)?, 1111);
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&value)?, 1_001_111);
        Ok(())
    });
}

#[test]
fn a_launch_that_runs_already_is_not_disturbed() {
    for_each_device(|device| {
        let called = Arc::new(AtomicI32::new(0));
        let adder = |amount: i32| {
            let called = called.clone();
            move || {
                called.fetch_add(amount, Ordering::SeqCst);
            }
        };
        let (started, starts) = channel();
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let mut wait = gate.waiter();
        let graph = Graph::new(device);
        let first = graph.callback(move || {
            started.send(()).expect("the test listens");
            wait();
        })?;
        let node = first.callback(adder(1))?;
        let executable = graph.instantiate()?;
        let stream = device.stream()?;
        executable.launch(&stream)?;
        starts.recv().expect("the launch runs");
        executable.node(&node)?.set_callback(adder(10))?;
        executable.node(&first)?.set_callback(|| ())?;
        gate.open();
        stream.synchronize()?;
        assert_eq!(called.load(Ordering::SeqCst), 1);
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(called.load(Ordering::SeqCst), 11);
        Ok(())
    });
}

#[test]
fn disabling_waits_for_the_next_launch() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let node = kernels.bump(&graph, &value, 1)?;
        let executable = graph.instantiate()?;
        kernels.stream.callback(gate.waiter())?;
        executable.launch(&kernels.stream)?;
        executable.node(&node)?.set_enabled(false)?;
        executable.launch(&kernels.stream)?;
        executable.node(&node)?.set_enabled(true)?;
        executable.launch(&kernels.stream)?;
        gate.open();
        kernels.stream.synchronize()?;
        assert_eq!(read(&value)?, 2);
        Ok(())
    });
}

#[test]
fn launches_on_several_streams_keep_their_order_through_updates() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let inputs: Vec<Buffer<i32>> = (1..6).map(|number| kernels.value(number)).collect::<Result<_>>()?;
        let one = LaunchConfig::one();
        let node = graph.launch(&kernels.mix, one, (&value, &inputs[0], 1))?;
        let executable = graph.instantiate()?;
        let streams: Vec<Stream> = (0..3).map(|_| device.stream()).collect::<Result<_>>()?;
        let mut expected = 0i32;
        for round in 0..60 {
            let input = &inputs[round % inputs.len()];
            executable.node(&node)?.set_args(&kernels.mix, (&value, input, 1))?;
            executable.launch(&streams[round % streams.len()])?;
            expected = expected.wrapping_mul(31).wrapping_add((round % inputs.len()) as i32 + 1);
        }
        streams.iter().try_for_each(Stream::synchronize)?;
        assert_eq!(read(&value)?, expected);
        Ok(())
    });
}

#[test]
fn a_loop_in_flight_keeps_its_passes() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let repeat = graph.repeat(3)?;
        let inside = kernels.bump(&repeat.body(), &value, 1)?;
        let executable = graph.instantiate()?;
        kernels.stream.callback(gate.waiter())?;
        executable.launch(&kernels.stream)?;
        executable.node(&repeat)?.set_passes(5)?;
        executable.node(&inside)?.set_args(&kernels.increase, (&value, 1, 100))?;
        executable.launch(&kernels.stream)?;
        gate.open();
        kernels.stream.synchronize()?;
        assert_eq!(read(&value)?, 503);
        Ok(())
    });
}

#[test]
fn a_launch_that_failed_leaves_the_executable_open_to_changes() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let node = graph.callback(|| panic!("as the test wants"))?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        stream.synchronize().expect_err("the callback panics");
        let called = Arc::new(AtomicI32::new(0));
        let inside = called.clone();
        executable.node(&node)?.set_callback(move || inside.store(7, Ordering::SeqCst))?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(called.load(Ordering::SeqCst), 7);
        Ok(())
    });
}

#[test]
fn a_failure_names_the_kernel_that_an_update_put_in_place() {
    // One that fails loses a GPU for the rest of the process.
    for_each_engine(|options| {
        const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
            .visible .entry returns() { ret; }\n.visible .entry traps() { trap; }\n";
        let bench = Bench::new(&Device::cpu_with(options)?, PTX)?;
        let (returns, traps) = (bench.kernel::<()>("returns")?, bench.kernel::<()>("traps")?);
        let graph = Graph::new(&bench.device);
        let body = graph.repeat(1)?.body();
        let unnamed = body.launch(&returns, LaunchConfig::one(), ())?;
        let named = unnamed.launch(&returns, LaunchConfig::one(), ())?.named("heat returns")?;
        let executable = graph.instantiate()?;
        for (node, name) in [(&named, "heat returns"), (&unnamed, "/kernel#0 traps")] {
            executable.node(node)?.set_kernel(&traps, ())?;
            executable.launch(&bench.stream)?;
            refused(bench.stream.synchronize(), ErrorKind::KernelFault, &[name]);
        }
        executable.update(&graph)?;
        executable.launch(&bench.stream)?;
        bench.stream.synchronize()
    });
}

#[test]
fn an_executable_closed_during_a_launch_lets_go_after_it() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (old, new, gate) = (Arc::new(()), Arc::new(()), Gate::closed());
        let _opens = OpenOnDrop(&gate);
        let holding = |alive: &Arc<()>| {
            let alive = alive.clone();
            move || drop(alive.clone())
        };
        let graph = Graph::new(device);
        let node = graph.callback(gate.waiter())?.callback(holding(&old))?;
        let executable = graph.instantiate()?;
        drop(graph);
        executable.launch(&stream)?;
        executable.node(&node)?.set_callback(holding(&new))?;
        drop((node, executable));
        assert_ne!(Arc::strong_count(&old), 1, "the launch in flight still calls it");
        gate.open();
        stream.synchronize()?;
        eventually("both are dropped", || Arc::strong_count(&old) == 1 && Arc::strong_count(&new) == 1);
        Ok(())
    });
}
