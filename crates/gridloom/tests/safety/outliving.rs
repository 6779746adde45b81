//! Memory that outlives a launch, and executables that are dropped before it.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{Gate, GraphKernels, for_each_device, for_each_engine, for_each_mode};

/// Adds work on memory that nothing in the graph frees, and what shows the result.
fn fill_and_show(kernels: &GraphKernels, after: &Node, out: &Buffer<i32>) -> Result<AllocNode<i32>> {
    // Large enough for the system to take it back at once when it is freed.
    let memory = after.alloc::<i32>(1 << 20)?;
    let filled = memory.memset(&memory, 20i32)?;
    let config = LaunchConfig::linear(1 << 20);
    let raised = filled.launch(&kernels.increase, config, (&memory, 1 << 20, 1))?;
    raised.memcpy(out, &memory.slice((1 << 20) - 1..)?)?;
    Ok(memory)
}

#[test]
fn an_executable_may_be_dropped_while_its_launch_uses_memory_that_outlives_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (out, gate) = (kernels.value(0)?, Gate::closed());
        let graph = Graph::new(device);
        let held_back = graph.callback(gate.waiter())?;
        fill_and_show(&kernels, &held_back, &out)?;
        let executable = graph.instantiate()?;
        executable.launch(&kernels.stream)?;
        drop((executable, graph, held_back));
        gate.open();
        kernels.stream.synchronize()?;
        assert_eq!(read(&out)?, 21);
        Ok(())
    });
}

#[test]
fn an_executable_that_nobody_names_runs_to_its_end() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = kernels.value(0)?;
        let graph = Graph::new(device);
        fill_and_show(&kernels, &graph.empty()?, &out)?;
        graph.instantiate()?.launch(&kernels.stream)?;
        kernels.stream.synchronize()?;
        assert_eq!(read(&out)?, 21);
        Ok(())
    });
}

#[test]
fn memory_that_outlives_a_launch_stays_for_a_loop_whose_executable_is_gone() {
    for_each_mode(|device, conditional_mode| {
        let kernels = GraphKernels::new(device)?;
        let (out, gate) = (kernels.value(0)?, Gate::closed());
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(1 << 20)?;
        let cleared = memory.memset(&memory, 0i32)?;
        let repeat = cleared.repeat(5)?;
        let config = LaunchConfig::linear(1 << 20);
        repeat.body().launch(&kernels.increase, config, (&memory, 1 << 20, 2))?;
        repeat.memcpy(&out, &memory.slice(77..78)?)?;
        let options = InstantiateOptions::new().conditional_mode(conditional_mode);
        // Before the gate: a driver may wait for the device where it instantiates.
        let executable = graph.instantiate_with(&options)?;
        kernels.stream.callback(gate.waiter())?;
        executable.launch(&kernels.stream)?;
        drop((executable, graph, memory));
        gate.open();
        kernels.stream.synchronize()?;
        assert_eq!(read(&out)?, 10);
        Ok(())
    });
}

#[test]
fn a_handle_taken_before_the_executable_went_keeps_what_the_launch_in_flight_writes() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (out, gate) = (kernels.value(0)?, Gate::closed());
        let graph = Graph::new(device);
        let memory = fill_and_show(&kernels, &graph.callback(gate.waiter())?, &out)?;
        let executable = graph.instantiate()?;
        executable.launch(&kernels.stream)?;
        let buffer = executable.buffer(&memory)?;
        drop(executable);
        gate.open();
        assert_eq!(buffer.slice(..3)?.to_vec()?, [21; 3]);
        Ok(())
    });
}

#[test]
fn memory_of_dropped_executables_is_given_back() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let out = kernels.value(0)?;
        let before = device.memory_use()?.0;
        for _ in 0..8 {
            let graph = Graph::new(&device);
            fill_and_show(&kernels, &graph.empty()?, &out)?;
            graph.instantiate()?.launch(&kernels.stream)?;
        }
        kernels.stream.synchronize()?;
        crate::support::eventually("the memory is freed", || {
            device.memory_use().is_ok_and(|(used, _)| used == before)
        });
        Ok(())
    });
}
