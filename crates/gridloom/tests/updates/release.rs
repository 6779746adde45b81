//! When replaced, deleted and dropped objects are released.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom::prelude::*;

use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, eventually, for_each_device, for_each_engine, is_cpu};

/// Counts how often something it gave out was dropped.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

/// One thing given out.
struct Counted(Drops);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drops {
    /// A closure whose end is counted.
    fn closure(&self) -> impl FnMut() + Send + 'static {
        let counted = Counted(self.clone());
        move || assert!(Arc::strong_count(&counted.0.0) > 0)
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn what_an_update_replaced_goes_at_once_when_nothing_is_in_flight() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let stream = device.stream()?;
        let drops = Drops::default();
        let graph = Graph::new(&device);
        let node = graph.callback(drops.closure())?;
        let executable = graph.instantiate()?;
        node.delete()?;
        assert_eq!(drops.count(), 0, "the executable holds it");
        for round in 1..10 {
            executable.node(&node)?.set_callback(drops.closure())?;
            assert_eq!(drops.count(), 2 * round - 1);
            executable.launch(&stream)?;
            stream.synchronize()?;
            executable.node(&node)?.set_callback(drops.closure())?;
            assert_eq!(drops.count(), 2 * round);
        }
        drop(executable);
        eventually("the last goes too", || drops.count() == 19);
        Ok(())
    });
}

#[test]
fn updates_in_a_row_accumulate_during_a_launch_and_go_together() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (drops, gate) = (Drops::default(), Gate::closed());
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let node = graph.callback(gate.waiter())?.callback(drops.closure())?;
        let executable = graph.instantiate()?;
        drop(graph);
        executable.launch(&stream)?;
        for _ in 0..20 {
            executable.node(&node)?.set_callback(drops.closure())?;
        }
        assert!(drops.count() < 20, "the first is in flight");
        gate.open();
        stream.synchronize()?;
        // The definition, which the node handle keeps, holds the first; the executable the last.
        eventually("the others are dropped", || drops.count() == 19);
        drop(node);
        eventually("the first is dropped", || drops.count() == 20);
        drop(executable);
        eventually("all are dropped, once", || drops.count() == 21);
        Ok(())
    });
}

#[test]
fn memory_that_an_update_replaced_is_freed() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let out = device.alloc::<i32>(10_000)?;
        let baseline = device.memory_use()?.0;
        let graph = Graph::new(&device);
        let node = graph.memcpy(&out, &device.buffer_from(&vec![1; 10_000])?)?;
        let executable = graph.instantiate()?;
        drop(graph);
        for number in 2..6 {
            let source = device.buffer_from(&vec![number; 10_000])?;
            executable.node(&node)?.set_memcpy(&out, &source)?;
            source.close();
            executable.launch(&kernels.stream)?;
            assert_eq!(out.to_vec()?[9_999], number);
            let held = device.memory_use()?.0 - baseline;
            // What the definition has and what the executable has now.
            assert!(held <= 2 * 40_000 + 1000, "{held}");
        }
        drop((node, executable));
        eventually("all is freed", || device.memory_use().is_ok_and(|(used, _)| used == baseline));
        Ok(())
    });
}

#[test]
fn a_definition_lets_go_of_what_was_replaced_in_it() {
    for_each_device(|device| {
        let drops = Drops::default();
        let graph = Graph::new(device);
        let node = graph.callback(drops.closure())?;
        node.set_callback(drops.closure())?;
        assert_eq!(drops.count(), 1);
        let executable = graph.instantiate()?;
        node.set_callback(drops.closure())?;
        assert_eq!(drops.count(), 1, "the executable keeps what it was made with");
        drop(executable);
        eventually("and lets go of it", || drops.count() == 2);
        drop((graph, node));
        assert_eq!(drops.count(), 3);
        Ok(())
    });
}

#[test]
fn a_whole_update_lets_go_of_everything_it_replaced() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let drops = Drops::default();
        let build = || {
            let graph = Graph::new(&device);
            graph.callback(drops.closure())?;
            graph.repeat(2)?.body().callback(drops.closure())?;
            let inner = Graph::new(&device);
            inner.callback(drops.closure())?;
            graph.embed(&inner)?;
            Ok::<_, Error>(graph)
        };
        let executable = build()?.instantiate()?;
        assert_eq!(drops.count(), 0);
        for round in 1..5 {
            executable.update(&build()?)?;
            assert_eq!(drops.count(), 3 * round);
        }
        drop(executable);
        eventually("all are dropped, once", || drops.count() == 15);
        Ok(())
    });
}

#[test]
fn handles_may_be_dropped_on_other_threads() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let drops = Drops::default();
        let mut expected = 0;
        for _ in 0..20 {
            let graph = Graph::new(device);
            let node = graph.callback(drops.closure())?;
            let executable = graph.instantiate()?;
            executable.launch(&stream)?;
            executable.node(&node)?.set_callback(drops.closure())?;
            expected += 2;
            std::thread::scope(|scope| {
                scope.spawn(move || drop(graph));
                scope.spawn(move || drop(node));
                scope.spawn(move || drop(executable));
            });
        }
        stream.synchronize()?;
        eventually("all are dropped, once", || drops.count() == expected);
        Ok(())
    });
}

#[test]
fn the_last_handles_may_be_dropped_inside_a_callback() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let drops = Drops::default();
        let inner = Graph::new(device);
        inner.callback(drops.closure())?;
        let executable = inner.instantiate()?;
        executable.launch(&stream)?;
        let mut held = Some((inner, executable, device.buffer_from(&[1, 2, 3])?, device.event()?));
        stream.callback(move || drop(held.take()))?;
        stream.synchronize()?;
        eventually("the closure is dropped", || drops.count() == 1);
        Ok(())
    });
}

#[test]
fn drops_run_neither_on_the_threads_of_a_stream_nor_in_the_way_of_a_launch() {
    for_each_device(|device| {
        /// Waits at a gate when it is dropped.
        struct SlowToGo(Gate, Drops);
        impl Drop for SlowToGo {
            fn drop(&mut self) {
                self.0.wait();
                self.1.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let stream = device.stream()?;
        let (drops, gate) = (Drops::default(), Gate::closed());
        let _opens = OpenOnDrop(&gate);
        let graph = Graph::new(device);
        let slow = SlowToGo(gate.clone(), drops.clone());
        let start = Gate::closed();
        let node = graph.callback(start.waiter())?.callback(move || assert!(slow.1.count() < 2))?;
        let executable = graph.instantiate()?;
        node.delete()?;
        executable.launch(&stream)?;
        // The launch in flight is the last to hold it.
        executable.node(&node)?.set_callback(|| ())?;
        start.open();
        stream.synchronize()?;
        let ran = Drops::default();
        stream.callback(ran.closure())?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(drops.count(), 0, "it still waits, and held up nothing");
        gate.open();
        eventually("it is dropped", || drops.count() == 1);
        Ok(())
    });
}

#[test]
fn sixty_four_updated_graphs_dropped_at_once_release_everything() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (drops, gate) = (Drops::default(), Gate::closed());
        let _opens = OpenOnDrop(&gate);
        let all: Vec<(Graph, Node, Executable)> = (0..64)
            .map(|_| {
                let graph = Graph::new(device);
                let node = graph.callback(drops.closure())?;
                let executable = graph.instantiate()?;
                Ok((graph, node, executable))
            })
            .collect::<Result<_>>()?;
        stream.callback(gate.waiter())?;
        for (index, (_, node, executable)) in all.iter().enumerate() {
            // A driver queues a few launches behind work that does not end, not any number.
            let launches = is_cpu(device) || index % 16 == 0;
            for _ in 0..2 {
                if launches {
                    executable.launch(&stream)?;
                }
                executable.node(node)?.set_callback(drops.closure())?;
            }
        }
        drop(all);
        gate.open();
        stream.synchronize()?;
        eventually("all 192 closures are dropped, once", || drops.count() == 192);
        Ok(())
    });
}

#[test]
fn a_drop_may_come_back_to_the_executable_it_was_replaced_in() {
    for_each_device(|device| {
        /// Reads the executable when it goes.
        struct AsksOnDrop(Arc<Executable>, Arc<AtomicUsize>);
        impl Drop for AsksOnDrop {
            fn drop(&mut self) {
                let _ = (self.0.memory(), self.0.report());
                self.1.store(self.0.graph().map_or(0, |graph| graph.len()), Ordering::SeqCst);
            }
        }
        let graph = Graph::new(device);
        let node = graph.callback(|| ())?;
        let executable = Arc::new(graph.instantiate()?);
        let answer = Arc::new(AtomicUsize::new(0));
        let asks = AsksOnDrop(executable.clone(), answer.clone());
        executable.node(&node)?.set_callback(move || assert!(Arc::strong_count(&asks.1) > 0))?;
        executable.node(&node)?.set_callback(|| ())?;
        eventually("it was dropped and not stopped", || answer.load(Ordering::SeqCst) > 0);
        Ok(())
    });
}
