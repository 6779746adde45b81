//! Ways to free what a graph uses. None of them affects the graph.

use std::sync::Arc;

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::wait::OpenOnDrop;
use crate::support::{Gate, GraphKernels, eventually, for_each_device, for_each_engine};

/// Fills freed memory with other values, so that a use after free would show.
fn churn(device: &Device) -> Result<()> {
    for _ in 0..8 {
        drop(device.buffer_from(&vec![-1i32; 4096])?);
    }
    Ok(())
}

#[test]
fn an_argument_buffer_may_be_dropped_or_closed_once_it_was_added() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let graph = Graph::new(device);
        let (dropped, closed) = (kernels.buffer(&vec![3; 4096])?, kernels.buffer(&vec![5; 4096])?);
        let one = LaunchConfig::one();
        graph.launch(&kernels.mix, one, (&out, &dropped, 1))?.launch(
            &kernels.mix,
            one,
            (&out, &closed, 1),
        )?;
        drop(dropped);
        closed.close();
        churn(device)?;
        let executable = graph.instantiate()?;
        drop(graph);
        churn(device)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&out)?, 3 * 31 + 5);
        Ok(())
    });
}

#[test]
fn an_argument_buffer_may_be_dropped_once_an_executable_was_given_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let graph = Graph::new(device);
        let one = LaunchConfig::one();
        let node = graph.launch(&kernels.mix, one, (&out, &kernels.buffer(&vec![3; 4096])?, 1))?;
        let executable = graph.instantiate()?;
        let given = kernels.buffer(&vec![7; 4096])?;
        executable.node(&node)?.set_args(&kernels.mix, (&out, &given, 1))?;
        given.close();
        drop(given);
        churn(device)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(read(&out)?, 7);
        Ok(())
    });
}

#[test]
fn captured_arguments_may_be_dropped() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let graph = kernels.stream.capture_scope(|capture| {
            let argument = kernels.buffer(&vec![9; 4096])?;
            capture.launch(&kernels.mix, LaunchConfig::one(), (&out, &argument, 1))?;
            argument.close();
            Ok(())
        })?;
        churn(device)?;
        let executable = graph.instantiate()?;
        for expected in [9, 9 * 31 + 9] {
            executable.launch(&kernels.stream)?;
            assert_eq!(read(&out)?, expected);
        }
        Ok(())
    });
}

#[test]
fn a_host_vector_may_be_changed_or_dropped_after_a_captured_copy() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = device.alloc::<i32>(4096)?;
        let graph = {
            let mut values = vec![4; 4096];
            let graph = kernels.stream.capture_scope(|capture| capture.memcpy(&out, &values).map(drop))?;
            values.fill(-4);
            graph
        };
        churn(device)?;
        let executable = graph.instantiate()?;
        executable.launch(&kernels.stream)?;
        assert_eq!(out.to_vec()?, [4; 4096]);
        let node = graph.nodes().remove(0);
        {
            let mut values = vec![6; 4096];
            executable.node(&node)?.set_memcpy(&out, &values)?;
            values.fill(-6);
        }
        executable.launch(&kernels.stream)?;
        assert_eq!(out.to_vec()?, [6; 4096]);
        Ok(())
    });
}

#[test]
fn a_deleted_node_does_not_pin_its_arguments() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let out = kernels.value(0)?;
        let baseline = device.memory_use()?.0;
        let graph = Graph::new(&device);
        let nodes: Vec<Node> = (0..10)
            .map(|_| {
                let argument = kernels.buffer(&vec![1; 10_000])?;
                graph.launch(&kernels.mix, LaunchConfig::one(), (&out, &argument, 1))
            })
            .collect::<Result<_>>()?;
        assert!(device.memory_use()?.0 >= baseline + 400_000);
        for (deleted, node) in nodes.iter().enumerate() {
            node.delete()?;
            let held = device.memory_use()?.0 - baseline;
            assert!(held < 40_000 * (10 - deleted as u64), "{held} after {deleted} more");
        }
        // The handles are still there.
        assert!(nodes.iter().all(|node| !node.is_valid()));
        assert_eq!(device.memory_use()?.0, baseline);
        Ok(())
    });
}

#[test]
fn an_executable_dropped_in_flight_runs_to_its_end() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let gate = Gate::closed();
        let _opens = OpenOnDrop(&gate);
        let alive = Arc::new(());
        {
            let graph = Graph::new(device);
            let held = alive.clone();
            let memory = graph.alloc::<i32>(64)?;
            let argument = kernels.value(11)?;
            memory
                .callback(gate.waiter())?
                .memcpy(&memory.slice(..1)?, &argument)?
                .launch(&kernels.mix, LaunchConfig::one(), (&out, &memory, 1))?
                .callback(move || drop(held.clone()))?
                .free(&memory)?;
            let executable = graph.instantiate()?;
            executable.launch(&kernels.stream)?;
            argument.close();
        }
        gate.open();
        assert_eq!(read(&out)?, 11);
        eventually("all is dropped", || Arc::strong_count(&alive) == 1);
        Ok(())
    });
}

#[test]
fn an_executable_is_usable_after_any_number_of_failed_updates() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let build = |by: i32, extra: bool| {
            let graph = Graph::new(device);
            let node = kernels.bump(&graph, &out, by)?;
            if extra {
                node.empty()?;
            }
            Ok::<_, Error>(graph)
        };
        let executable = build(1, false)?.instantiate()?;
        let mut expected = 0;
        for round in 0..10 {
            executable.update(&build(1000, true)?).expect_err("it has a node too many");
            executable.update(&build(round, false)?)?;
            executable.update(&build(1000, true)?).expect_err("it has a node too many");
            executable.launch(&kernels.stream)?;
            expected += round;
        }
        assert_eq!(read(&out)?, expected);
        Ok(())
    });
}

#[test]
fn bodies_and_children_survive_the_handle_of_their_parent() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let (body, root) = {
            let graph = Graph::new(device);
            let repeat = graph.repeat(3)?;
            (repeat.body(), graph.deep_clone()?.0)
        };
        let node = kernels.bump(&body, &out, 1)?;
        assert!(body.is_valid() && node.is_valid());
        assert!(root.nodes()[0].bodies()?[0].is_empty(), "the copy was made before");
        let parent = body.owner().expect("a body has an owner").graph()?;
        kernels.run(&parent)?;
        assert_eq!(read(&out)?, 3);
        Ok(())
    });
}

#[test]
fn events_kernels_and_modules_may_go_after_an_update_took_them() {
    for_each_device(|device| {
        let out = device.buffer_from(&[0])?;
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let record = graph.record(&device.event()?)?;
        let launch = record.launch(&kernels.increase, LaunchConfig::one(), (&out, 1, 1))?;
        let executable = graph.instantiate()?;
        {
            // Another module, which nothing else holds.
            let others = GraphKernels::new(device)?;
            executable.node(&launch)?.set_kernel(&others.affine, (&out, &out, 1, 1, 50))?;
            executable.node(&record)?.set_event(&device.event()?)?;
        }
        let stream = kernels.stream.clone();
        drop((graph, kernels));
        executable.launch(&stream)?;
        assert_eq!(read(&out)?, 50);
        Ok(())
    });
}
