//! What graphs, executables and launches keep alive.

use std::sync::Arc;

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{Gate, GraphKernels, eventually, for_each_device, for_each_engine};

/// Adds a callback that holds `alive`, so that its count tells whether the node's contents still
/// exist.
fn hold(place: &impl GraphOps, alive: &Arc<()>) -> Result<Node> {
    let held = alive.clone();
    place.callback(move || drop(held.clone()))
}

fn holders(alive: &Arc<()>) -> usize {
    Arc::strong_count(alive) - 1
}

#[test]
fn what_a_node_holds_lives_with_graph_clones_executables_and_launches() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (alive, gate) = (Arc::new(()), Gate::closed());
        let graph = Graph::new(device);
        let node = graph.callback(gate.waiter())?;
        hold(&node, &alive)?;
        let (copy, _) = graph.deep_clone()?;
        let executable = copy.instantiate()?;
        drop((graph, node));
        assert_ne!(holders(&alive), 0, "the clone holds it");
        drop(copy);
        assert_ne!(holders(&alive), 0, "the executable holds it");
        executable.launch(&stream)?;
        drop(executable);
        assert_ne!(holders(&alive), 0, "the launch in flight holds it");
        gate.open();
        stream.synchronize()?;
        eventually("everything is dropped", || holders(&alive) == 0);
        Ok(())
    });
}

#[test]
fn a_deleted_node_lets_go_at_once_unless_an_executable_needs_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let alive = Arc::new(());
        let graph = Graph::new(device);
        hold(&graph, &alive)?.delete()?;
        assert_eq!(holders(&alive), 0);

        let node = hold(&graph, &alive)?;
        let executable = graph.instantiate()?;
        node.delete()?;
        assert_ne!(holders(&alive), 0);
        // A new node does not take the deleted one's place in the executable.
        let other = Arc::new(());
        hold(&graph, &other)?;
        executable.launch(&kernels.stream)?;
        kernels.stream.synchronize()?;
        drop(executable);
        eventually("the deleted node's closure is dropped", || holders(&alive) == 0);
        assert_eq!(holders(&other), 1);
        Ok(())
    });
}

#[test]
fn deleting_a_conditional_or_child_releases_what_is_inside() {
    for_each_device(|device| {
        let alive = Arc::new(());
        let graph = Graph::new(device);
        let choice = graph.if_else(&graph.condition(Some(1))?)?;
        hold(&choice.then_body(), &alive)?;
        hold(&choice.else_body().repeat(2)?.body(), &alive)?;
        let inner = Graph::new(device);
        hold(&inner, &alive)?;
        let child = graph.embed(&inner)?;
        // The embedded copy shares the closure with the original.
        assert_eq!(holders(&alive), 3);
        drop(inner);
        choice.delete()?;
        assert_eq!(holders(&alive), 1);
        child.delete()?;
        assert_eq!(holders(&alive), 0);
        Ok(())
    });
}

#[test]
fn memory_behind_closed_and_dropped_handles_stays_while_a_graph_can_reach_it() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let out = kernels.value(0)?;
        let baseline = device.memory_use()?.0;
        let graph = Graph::new(&device);
        let closed = device.buffer_from(&vec![5i32; 10_000])?;
        let config = LaunchConfig::one();
        let copy = graph.memcpy(&out, &closed.slice(77..78)?)?;
        let node = {
            let dropped = device.buffer_from(&vec![7i32; 10_000])?;
            copy.launch(&kernels.mix, config, (&out, &dropped.slice(99..)?, 1))?
        };
        closed.close();
        let held = device.memory_use()?.0 - baseline;
        assert!(held >= 80_000, "{held}");
        let executable = kernels.run(&graph)?;
        assert_eq!(read(&out)?, 5 * 31 + 7);
        node.delete()?;
        copy.delete()?;
        assert_eq!(device.memory_use()?.0 - baseline, held, "the executable still holds it");
        drop(executable);
        eventually("the memory is freed", || device.memory_use().is_ok_and(|(used, _)| used == baseline));
        assert!(graph.is_empty());
        Ok(())
    });
}

#[test]
fn memory_enqueued_on_a_stream_is_freed_after_its_last_use() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let stream = device.stream()?;
        let out = device.alloc::<u8>(10_000)?;
        let one = device.memory_use()?.0;
        let source = device.buffer_from(&[3u8; 10_000])?;
        let gate = Gate::closed();
        stream.callback(gate.waiter())?;
        stream.memcpy(&out, &source)?;
        source.close();
        drop(source);
        assert!(device.memory_use()?.0 >= one + 10_000);
        gate.open();
        assert_eq!(out.to_vec()?, [3; 10_000]);
        eventually("the source is freed", || device.memory_use().is_ok_and(|(used, _)| used == one));
        Ok(())
    });
}

#[test]
fn memory_of_alloc_nodes_is_freed_with_the_executable() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let baseline = device.memory_use()?.0;
        let graph = Graph::new(&device);
        let freed = graph.alloc::<u8>(50_000)?;
        freed.memset(&freed, 1u8)?.free(&freed)?;
        let outliving = graph.alloc::<u8>(50_000)?;
        outliving.memset(&outliving, 1u8)?;
        let executable = kernels.run(&graph)?;
        let buffer = executable.buffer(&outliving)?;
        drop(executable);
        assert_eq!(buffer.to_vec()?, [1; 50_000]);
        drop((buffer, graph));
        eventually("all is freed", || device.memory_use().is_ok_and(|(used, _)| used == baseline));
        Ok(())
    });
}

#[test]
fn everything_may_be_dropped_while_a_launch_runs() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0; 4])?;
        let gate = Gate::closed();
        {
            let kernels = GraphKernels::new(device)?;
            let graph = Graph::new(device);
            let event = device.event()?;
            let number = kernels.value(9)?;
            graph
                .callback(gate.waiter())?
                .launch(&kernels.mix, LaunchConfig::one(), (&out, &number, 1))?
                .record(&event)?
                .memcpy(&out.slice(1..)?, &[1, 2, 3])?;
            let executable = graph.instantiate()?;
            executable.launch(&kernels.stream)?;
            number.close();
        }
        gate.open();
        assert_eq!(out.to_vec()?, [9, 1, 2, 3]);
        Ok(())
    });
}

#[test]
fn a_kernel_keeps_its_module_and_an_executable_its_device() {
    for_each_engine(|options| {
        let (executable, value, stream) = {
            let device = Device::cpu_with(options)?;
            let kernels = GraphKernels::new(&device)?;
            let value = kernels.value(1)?;
            let graph = Graph::new(&device);
            kernels.bump(&graph, &value, 1)?;
            (graph.instantiate()?, value, kernels.stream)
        };
        executable.launch(&stream)?;
        assert_eq!(read(&value)?, 2);
        Ok(())
    });
}

#[test]
fn sixty_four_graphs_dropped_at_once_release_everything() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (alive, gate) = (Arc::new(()), Gate::closed());
        let graphs: Vec<(Graph, Executable)> = (0..64)
            .map(|_| {
                let graph = Graph::new(device);
                hold(&hold(&graph, &alive)?, &alive)?;
                let executable = graph.instantiate()?;
                Ok((graph, executable))
            })
            .collect::<Result<_>>()?;
        stream.callback(gate.waiter())?;
        // A driver queues a few launches behind work that does not end, not any number.
        let step = if crate::support::is_cpu(device) { 1 } else { 8 };
        graphs.iter().step_by(step).try_for_each(|(_, executable)| executable.launch(&stream))?;
        drop(graphs);
        assert_ne!(holders(&alive), 0, "launches are in flight");
        gate.open();
        stream.synchronize()?;
        eventually("all 128 closures are dropped", || holders(&alive) == 0);
        Ok(())
    });
}

#[test]
fn dropping_a_closure_may_use_the_device() {
    for_each_device(|device| {
        /// What a closure holds, that reads a buffer when it goes.
        struct ReadsOnDrop(Buffer<i32>, Arc<parking_lot::Mutex<Option<Result<Vec<i32>>>>>);
        impl Drop for ReadsOnDrop {
            fn drop(&mut self) {
                *self.1.lock() = Some(self.0.to_vec());
            }
        }
        let stream = device.stream()?;
        let answer = Arc::new(parking_lot::Mutex::new(None));
        let guard = ReadsOnDrop(device.buffer_from(&[1, 2])?, answer.clone());
        let graph = Graph::new(device);
        graph.callback(move || assert!(!guard.0.is_closed()))?;
        let executable = graph.instantiate()?;
        executable.launch(&stream)?;
        drop((graph, executable));
        stream.synchronize()?;
        eventually("the closure is dropped", || answer.lock().is_some());
        assert_eq!(answer.lock().take().expect("just seen")?, [1, 2]);
        Ok(())
    });
}

#[test]
fn a_node_added_by_the_drop_of_a_closure_does_not_deadlock() {
    for_each_device(|device| {
        /// Comes back into the graph that lets go of it.
        struct AddsOnDrop(Graph);
        impl Drop for AddsOnDrop {
            fn drop(&mut self) {
                self.0.empty().expect("the graph is not locked");
            }
        }
        let graph = Graph::new(device);
        let guard = AddsOnDrop(graph.clone());
        let node = graph.callback(move || assert!(!guard.0.is_empty()))?;
        node.delete()?;
        assert_eq!(graph.len(), 1);
        Ok(())
    });
}
