//! Launches of executables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gridloom::contract::{Axis, Contract, block, grid};
use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::wait::OpenOnDrop;
use crate::support::{Bench, Gate, GraphKernels, for_each_device, for_each_engine, is_cpu, refused};

#[test]
fn an_empty_graph_can_be_launched() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let executable = Graph::new(device).instantiate()?;
        executable.launch(&stream)?;
        executable.launch(&stream)?;
        stream.synchronize()
    });
}

#[test]
fn every_option_runs_kernels_copies_fills_and_allocations() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let out = device.alloc::<i32>(64)?;
        let memory = graph.alloc::<i32>(64)?;
        let config = LaunchConfig::linear(64).priority(-1);
        memory
            .memset(&memory, 2i32)?
            .launch(&kernels.affine, config, (&memory, &memory, 64, 10, 1))?
            .memcpy(&out, &memory)?
            .free(&memory)?;
        let default = InstantiateOptions::default;
        let options = [
            default(),
            default().auto_free_on_launch(true),
            default().upload(&kernels.stream),
            default().node_priority(true),
            default().conditional_mode(ConditionalMode::Native),
            InstantiateOptions::default()
                .auto_free_on_launch(true)
                .upload(&kernels.stream)
                .node_priority(true)
                .conditional_mode(ConditionalMode::Hosted)
                .count_passes(true),
        ];
        for options in &options {
            out.write(&[0; 64])?;
            kernels.run_with(&graph, options)?;
            assert_eq!(out.to_vec()?, [21; 64], "{options:?}");
        }
        Ok(())
    });
}

#[test]
fn a_graph_runs_in_order_with_the_streams_other_work() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, three) = (kernels.value(1)?, kernels.value(3)?);
        let graph = Graph::new(device);
        graph.launch(&kernels.mix, LaunchConfig::one(), (&value, &three, 1))?;
        let executable = graph.instantiate()?;
        let mut expected = 1i32;
        for _ in 0..5 {
            kernels.stream.launch(&kernels.increase, LaunchConfig::one(), (&value, 1, 7))?;
            executable.launch(&kernels.stream)?;
            expected = expected.wrapping_add(7).wrapping_mul(31).wrapping_add(3);
        }
        assert_eq!(read(&value)?, expected);
        Ok(())
    });
}

#[test]
fn launching_does_not_wait() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        graph.callback(gate.waiter())?;
        let executable = graph.instantiate()?;
        for _ in 0..5 {
            executable.launch(&stream)?;
        }
        assert!(!stream.is_idle()?);
        gate.open();
        stream.synchronize()
    });
}

#[test]
fn edits_after_instantiation_affect_later_executables_only() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let node = kernels.bump(&graph, &value, 1)?;
        let before = graph.instantiate()?;
        kernels.bump(&node, &value, 10)?;
        let between = graph.instantiate()?;
        node.delete()?;
        let after = graph.instantiate()?;
        drop((graph, node));
        for (executable, expected) in [(&before, 1), (&between, 12), (&after, 22), (&before, 23)] {
            executable.launch(&kernels.stream)?;
            assert_eq!(read(&value)?, expected);
        }
        Ok(())
    });
}

#[test]
fn several_executables_of_one_graph_run_at_once() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = device.alloc::<i32>(8)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(1)?;
        let again = graph.condition(Some(1))?;
        let repeat = memory.memset(&memory, 5i32)?.while_loop(&again)?;
        repeat.body().launch(&kernels.countdown, LaunchConfig::one(), (&again, &memory))?;
        let bump = repeat.callback(|| ())?;
        kernels.bump(&bump, &out.slice(..1)?, 1)?.free(&memory)?;
        out.write(&[0; 8])?;
        let streams: Vec<Stream> = (0..4).map(|_| device.stream()).collect::<Result<_>>()?;
        let executables: Vec<Executable> =
            streams.iter().map(|_| graph.instantiate()).collect::<Result<_>>()?;
        // Each has memory and a condition of its own; the one cell they share is written by one
        // stream at a time.
        let event = device.event()?;
        for (stream, executable) in streams.iter().zip(&executables) {
            stream.wait(&event)?;
            executable.launch(stream)?;
            stream.record(&event)?;
        }
        streams.iter().try_for_each(Stream::synchronize)?;
        assert_eq!(out.to_vec()?[0], 4);
        Ok(())
    });
}

#[test]
fn conditions_and_memory_of_executables_are_their_own() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let (memory, gate) = (graph.alloc::<i32>(100)?, Gate::closed());
        let _opens = OpenOnDrop(&gate);
        memory.memset(&memory, 1i32)?.callback(gate.waiter())?;
        let other_graph = graph.deep_clone()?.0;
        let [one, other] = [graph.instantiate()?, other_graph.instantiate()?];
        let stream = device.stream()?;
        one.launch(&kernels.stream)?;
        other.launch(&stream)?;
        let first = one.buffer(&memory)?.address()?;
        gate.open();
        device.synchronize()?;
        let same = other_graph.nodes();
        assert_eq!(same.len(), 3);
        let second = other.buffer(&same[0].as_alloc::<i32>()?)?.address()?;
        assert_ne!(first, second);
        Ok(())
    });
}

#[test]
fn launches_of_one_executable_from_several_threads_never_overlap() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let (running, ran) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let overlapped = Arc::new(AtomicBool::new(false));
        let (enter, over) = (running.clone(), overlapped.clone());
        let first = graph.callback(move || {
            if enter.swap(true, Ordering::SeqCst) {
                over.store(true, Ordering::SeqCst);
            }
            std::thread::yield_now();
        })?;
        let (leave, count) = (running, ran.clone());
        first.empty()?.callback(move || {
            count.fetch_add(1, Ordering::SeqCst);
            leave.store(false, Ordering::SeqCst);
        })?;
        let executable = graph.instantiate()?;
        std::thread::scope(|scope| {
            let launchers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let stream = device.stream()?;
                        (0..25).try_for_each(|_| executable.launch(&stream))?;
                        stream.synchronize()
                    })
                })
                .collect();
            launchers.into_iter().try_for_each(|launcher| launcher.join().expect("no panic"))
        })?;
        assert_eq!(ran.load(Ordering::SeqCst), 100);
        assert!(!overlapped.load(Ordering::SeqCst));
        Ok(())
    });
}

#[test]
fn uploading_ahead_runs_nothing() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        kernels.bump(&graph, &value, 1)?;
        let executable = graph.instantiate()?;
        executable.upload(&kernels.stream)?;
        kernels.stream.synchronize()?;
        assert_eq!(read(&value)?, 0);
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&value)?, 1);
        Ok(())
    });
}

#[test]
fn a_stream_of_another_device_is_refused() {
    for_each_engine(|options| {
        let (ours, theirs) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        let graph = Graph::new(&ours);
        let executable = graph.instantiate()?;
        let foreign = theirs.stream()?;
        refused(executable.launch(&foreign), ErrorKind::WrongDevice, &["another device"]);
        refused(executable.upload(&foreign), ErrorKind::WrongDevice, &["another device"]);
        let upload = InstantiateOptions::new().upload(&foreign);
        refused(graph.instantiate_with(&upload), ErrorKind::WrongDevice, &["another device"]);
        Ok(())
    });
}

#[test]
fn a_failure_ends_a_launch_where_the_device_can_end_one_and_not_the_next() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (fail, ran) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
        let graph = Graph::new(device);
        let (flag, count) = (fail.clone(), ran.clone());
        graph
            .callback(move || assert!(!flag.load(Ordering::SeqCst), "told to fail"))?
            .named("checks")?
            .callback(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        refused(stream.synchronize(), ErrorKind::CallbackPanicked, &["checks", "told to fail"]);
        // A CUDA graph cannot be stopped half way.
        let after_failure = ran.load(Ordering::SeqCst);
        assert_eq!(after_failure, if is_cpu(device) { 0 } else { 1 });
        fail.store(false, Ordering::SeqCst);
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(ran.load(Ordering::SeqCst), after_failure + 1);
        Ok(())
    });
}

#[test]
fn the_memory_of_an_executable_is_told() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<u8>(100_000)?;
        memory.memset(&memory, 0u8)?.free(&memory)?;
        let executable = kernels.run(&graph)?;
        let held = executable.memory();
        assert!(held.allocations >= 100_000, "{held:?}");
        assert_eq!(Graph::new(device).instantiate()?.memory().allocations, 0);
        Ok(())
    });
}

#[test]
fn an_attribute_that_the_device_cannot_run_is_refused_at_instantiation() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(&device);
        let clusters = LaunchConfig::new(4, 32).cluster(2);
        let node = graph.launch(&kernels.increase, clusters, (&value, 1, 1))?.named("clustered")?;
        refused(graph.instantiate(), ErrorKind::NotSupported, &["clustered", "clusters", "CPU"]);
        node.delete()?;
        // A cluster of one block is no cluster.
        graph.launch(&kernels.increase, LaunchConfig::new(4, 32).cluster(1), (&value, 1, 1))?;
        kernels.run(&graph)?;
        assert_eq!(read(&value)?, 1);
        Ok(())
    });
}

/// Returns what `grid_barrier` asks for: an element for each thread, and two for its state.
fn whole_grid() -> Contract {
    Contract::new().holds(0, grid(Axis::X) * block(Axis::X)).holds(1, 2)
}

#[test]
fn blocks_of_a_cooperative_node_wait_for_each_other() {
    for_each_device(|device| {
        let bench = Bench::new(device, include_str!("../kernels/barriers.ptx"))?;
        let barrier = bench.kernel_with::<(PtrMut<u32>, PtrMut<u32>, u32)>("grid_barrier", whole_grid())?;
        let (data, state) = (bench.buffer(&[1u32; 128])?, bench.zeros::<u32>(2)?);
        let graph = Graph::new(device);
        let repeat = graph.repeat(2)?;
        repeat.body().memset(&state, 0u8)?.launch(
            &barrier,
            LaunchConfig::new(4, 32).cooperative(),
            (&data, &state, 3),
        )?;
        graph.instantiate()?.launch(&bench.stream)?;
        bench.stream.synchronize()?;
        // Each round doubles a ring of equal numbers.
        assert_eq!(data.to_vec()?, [1 << 6; 128]);
        Ok(())
    });
}

#[test]
fn a_cooperative_node_takes_other_arguments() {
    for_each_device(|device| {
        let bench = Bench::new(device, include_str!("../kernels/barriers.ptx"))?;
        let barrier = bench.kernel_with::<(PtrMut<u32>, PtrMut<u32>, u32)>("grid_barrier", whole_grid())?;
        let (data, state) = (bench.buffer(&[1u32; 128])?, bench.zeros::<u32>(2)?);
        let graph = Graph::new(device);
        let cooperative = LaunchConfig::new(4, 32).cooperative();
        let node = graph.memset(&state, 0u8)?.launch(&barrier, cooperative, (&data, &state, 1))?;
        let executable = graph.instantiate()?;
        // Again and again, since what changes often goes another way from the second time on.
        for (passes, doubled) in [(1, 1), (2, 3), (3, 6)] {
            executable.node(&node)?.set_args(&barrier, (&data, &state, passes))?;
            executable.launch(&bench.stream)?;
            bench.stream.synchronize()?;
            assert_eq!(data.to_vec()?, [1 << doubled; 128]);
        }
        Ok(())
    });
}
