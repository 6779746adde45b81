//! Alloc and free nodes.

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, for_each_engine, for_each_mode, is_cpu, refused};

fn auto_free() -> InstantiateOptions {
    InstantiateOptions::new().auto_free_on_launch(true)
}

#[test]
fn peers_that_do_not_exist_are_refused() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let kind = MemoryKind::Device;
        let refusal = graph.alloc_for_peers::<i32>(4, kind, &[device.ordinal(), 4711]);
        refused(refusal, ErrorKind::InvalidArgument, &["no device 4711", "peers"]);
        assert!(graph.is_empty());
        graph.alloc_for_peers::<i32>(4, kind, &[device.ordinal()])?;
        Ok(())
    });
}

#[test]
fn memory_is_there_for_the_nodes_ordered_after_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
            let out = device.alloc::<i32>(100)?;
            let graph = Graph::new(device);
            let memory = graph.alloc_in::<i32>(100, kind)?;
            assert_eq!((memory.len(), memory.is_empty()), (100, false));
            let filled = memory.memset(&memory, 5i32)?;
            let last = filled.launch(&kernels.increase, LaunchConfig::linear(100), (&memory, 100, 2))?;
            last.memcpy(&out, &memory)?.free(&memory)?;
            let executable = kernels.run(&graph)?;
            assert_eq!(out.to_vec()?, [7; 100]);
            executable.launch(&kernels.stream)?;
            assert_eq!(out.to_vec()?, [7; 100]);
        }
        Ok(())
    });
}

#[test]
fn allocations_alive_at_once_do_not_overlap() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let out = device.alloc::<i32>(16 * 20)?;
        let allocs: Vec<AllocNode<i32>> = (0..16).map(|_| graph.alloc(20)).collect::<Result<_>>()?;
        let filled: Vec<Node> =
            allocs.iter().zip(0..).map(|(alloc, k)| alloc.memset(alloc, k)).collect::<Result<_>>()?;
        let all = graph.join(&filled)?;
        for (k, alloc) in allocs.iter().enumerate() {
            all.memcpy(&out.slice(20 * k..20 * (k + 1))?, alloc)?.free(alloc)?;
        }
        kernels.run(&graph)?;
        assert_eq!(out.to_vec()?, (0..16).flat_map(|k| [k; 20]).collect::<Vec<i32>>());
        Ok(())
    });
}

#[test]
fn a_chain_of_allocations_reuses_memory_that_was_freed() {
    for_each_engine(|options| {
        let device = Device::cpu_with(options)?;
        let kernels = GraphKernels::new(&device)?;
        let total = kernels.value(0)?;
        let graph = Graph::new(&device);
        let mut last = graph.empty()?;
        for k in 0..50 {
            let memory = last.alloc::<i32>(25_000)?;
            let filled = memory.memset(&memory, k)?;
            let mixed =
                filled.launch(&kernels.mix, LaunchConfig::one(), (&total, &memory.slice(24_999..)?, 1))?;
            last = mixed.free(&memory)?;
        }
        let executable = kernels.run(&graph)?;
        let expected = (0..50).fold(0i32, |sum, k| sum.wrapping_mul(31).wrapping_add(k));
        assert_eq!(read(&total)?, expected);
        let held = executable.memory().allocations;
        assert!(held < 3 * 100_000, "50 allocations of 100,000 bytes, never two at once, take {held}");
        Ok(())
    });
}

#[test]
fn memory_may_be_allocated_and_freed_in_every_pass_of_a_body() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let total = kernels.value(0)?;
        let graph = Graph::new(device);
        let body = graph.repeat(4)?.body();
        let memory = body.alloc::<i32>(10)?;
        let mixed =
            memory.memset(&memory, 3i32)?.launch(&kernels.mix, LaunchConfig::one(), (&total, &memory, 1))?;
        mixed.free(&memory)?;
        kernels.run_in(&graph, mode)?;
        assert_eq!(read(&total)?, (0..4).fold(0, |sum, _| 31 * sum + 3));
        Ok(())
    });
}

#[test]
fn memory_that_is_not_freed_stays_valid_after_the_launch() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("result")?;
        memory.memset(&memory, 6i32)?;
        let executable = graph.instantiate()?;
        refused(executable.buffer(&memory), ErrorKind::InvalidState, &["result", "not launched"]);
        executable.launch(&kernels.stream)?;
        let buffer = executable.buffer(&memory)?;
        assert_eq!((buffer.len(), buffer.to_vec()?), (8, vec![6; 8]));
        kernels.stream.launch(&kernels.increase, LaunchConfig::linear(8), (&buffer, 8, 1))?;
        assert_eq!(buffer.to_vec()?, [7; 8]);
        let again = executable.launch(&kernels.stream);
        refused(again, ErrorKind::InvalidState, &["result", "auto_free_on_launch"]);
        Ok(())
    });
}

#[test]
fn memory_that_outlives_a_launch_outlives_its_executable_while_it_is_held() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(1000)?;
        memory.memset(&memory, 4i32)?;
        let executable = kernels.run(&graph)?;
        let buffer = executable.buffer(&memory)?;
        drop((executable, graph, memory));
        assert_eq!(buffer.to_vec()?, [4; 1000]);
        Ok(())
    });
}

#[test]
fn auto_free_allows_launching_again() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?;
        let filled = memory.memset(&memory, 1i32)?;
        filled.launch(&kernels.increase, LaunchConfig::linear(8), (&memory, 8, 1))?;
        let executable = graph.instantiate_with(&auto_free())?;
        for _ in 0..3 {
            executable.launch(&kernels.stream)?;
            assert_eq!(executable.buffer(&memory)?.to_vec()?, [2; 8]);
        }
        Ok(())
    });
}

#[test]
fn another_graph_frees_memory_that_outlived_a_launch_once() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (graph, out) = (Graph::new(device), device.alloc::<i32>(8)?);
        let memory = graph.alloc::<i32>(8)?.named("result")?;
        memory.memset(&memory, 3i32)?;
        let executable = kernels.run(&graph)?;
        let buffer = executable.buffer(&memory)?;
        let other = Graph::new(device);
        other.memcpy(&out, &buffer)?.free(&buffer)?;
        let frees = kernels.run(&other)?;
        assert_eq!(out.to_vec()?, [3; 8]);
        refused(executable.buffer(&memory), ErrorKind::InvalidState, &["result"]);
        refused(frees.launch(&kernels.stream), ErrorKind::InvalidState, &["freed already"]);
        executable.launch(&kernels.stream)?;
        assert_eq!(executable.buffer(&memory)?.to_vec()?, [3; 8]);
        Ok(())
    });
}

#[test]
fn a_use_must_be_ordered_after_its_allocation() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        let fill = graph.memset(&memory, 0u8)?.named("clear")?;
        refused(graph.instantiate(), ErrorKind::Unordered, &["clear", "rod", "edge"]);
        graph.add_edge(&memory, &fill, EdgeKind::Full)?;
        graph.instantiate()?;
        Ok(())
    });
}

#[test]
fn a_free_must_be_ordered_after_every_use() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        let fill = memory.memset(&memory, 0u8)?.named("clear")?;
        let free = memory.free(&memory)?;
        refused(graph.instantiate(), ErrorKind::Unordered, &["rod", "clear", "edge"]);
        free.after([&fill])?;
        graph.instantiate()?;
        Ok(())
    });
}

#[test]
fn the_message_for_a_use_after_free_says_what_is_wrong() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        memory.free(&memory)?.named("end")?.memset(&memory, 0u8)?.named("clear")?;
        let says = ["clear", "uses the memory of rod after end has freed it"];
        let error = refused(graph.instantiate(), ErrorKind::Unordered, &says);
        assert!(!error.to_string().contains("edge"), "{error}");
        Ok(())
    });
}

#[test]
fn a_use_inside_a_body_counts_for_the_conditional_around_it() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        let repeat = graph.repeat(2)?.named("again")?;
        repeat.body().memset(&memory, 0u8)?;
        refused(graph.instantiate(), ErrorKind::Unordered, &["again", "rod"]);
        repeat.after([&*memory])?;
        let free = memory.free(&memory)?;
        refused(graph.instantiate(), ErrorKind::Unordered, &["again", "rod"]);
        free.after([&*repeat])?;
        graph.instantiate()?;
        Ok(())
    });
}

#[test]
fn memory_is_freed_once_and_in_its_own_graph() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        memory.free(&memory)?.named("first")?.free(&memory)?.named("second")?;
        refused(graph.instantiate(), ErrorKind::InvalidState, &["second", "first", "rod"]);

        let other = Graph::new(device);
        refused(other.free(&memory), ErrorKind::WrongGraph, &["another graph"]);
        refused(other.memset(&memory, 0u8), ErrorKind::WrongGraph, &["another graph"]);
        let body = graph.repeat(2)?.body();
        refused(body.free(&memory), ErrorKind::WrongGraph, &["another graph"]);
        Ok(())
    });
}

#[test]
fn memory_of_a_body_must_be_freed_there() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let repeat = graph.repeat(2)?.named("again")?;
        let memory = repeat.body().alloc::<i32>(8)?;
        refused(graph.instantiate(), ErrorKind::InvalidState, &["again", "free it in the same body"]);
        memory.free(&memory)?;
        graph.instantiate()?;
        let sibling = graph.repeat(2)?.body();
        refused(sibling.memset(&memory, 0u8), ErrorKind::WrongGraph, &["visible"]);
        Ok(())
    });
}

#[test]
fn memory_of_a_deleted_alloc_node_is_refused() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?;
        let fill = memory.memset(&memory, 0u8)?.named("clear")?;
        memory.delete()?;
        refused(graph.memset(&memory, 1u8), ErrorKind::InvalidHandle, &["deleted"]);
        refused(graph.instantiate(), ErrorKind::InvalidHandle, &["clear", "deleted"]);
        fill.delete()?;
        graph.instantiate()?;
        Ok(())
    });
}

#[test]
fn memory_freed_inside_the_graph_cannot_be_read_after_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?.named("rod")?;
        memory.free(&memory)?;
        let executable = kernels.run(&graph)?;
        refused(executable.buffer(&memory), ErrorKind::InvalidArgument, &["rod", "freed inside"]);
        Ok(())
    });
}

#[test]
fn slices_of_allocated_memory_are_checked_like_those_of_buffers() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let out = device.alloc::<i32>(8)?;
        let graph = Graph::new(device);
        let memory = graph.alloc::<i32>(8)?;
        refused(memory.slice(3..9), ErrorKind::InvalidArgument, &["8 elements"]);
        let filled = memory.memset(&memory.slice(..5)?, 1i32)?.memset(&memory.slice(5..)?, 2i32)?;
        filled.memcpy(&out, &memory)?.free(&memory)?;
        kernels.run(&graph)?;
        assert_eq!(out.to_vec()?, [1, 1, 1, 1, 1, 2, 2, 2]);
        Ok(())
    });
}

#[test]
fn memory_too_large_for_the_device_is_out_of_memory_and_nothing_is_lost() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let before = device.memory_use()?.0;
        let graph = Graph::new(device);
        let memory = graph.alloc::<u8>(1 << 50)?.named("vast")?;
        memory.memset(&memory, 0u8)?.free(&memory)?;
        // A device may find out when it instantiates, when it launches or when it runs.
        let outcome = graph.instantiate().and_then(|executable| {
            executable.launch(&kernels.stream)?;
            kernels.stream.synchronize()
        });
        refused(outcome, ErrorKind::OutOfMemory, &[]);
        let value = kernels.value(1)?;
        assert_eq!(read(&value)?, 1);
        drop(value);
        if is_cpu(device) {
            assert_eq!(device.memory_use()?.0, before);
        }
        Ok(())
    });
}

#[test]
fn memory_whose_sizes_add_up_to_more_than_there_are_addresses_is_out_of_memory() {
    for_each_device(|device| {
        let largest = isize::MAX as usize;
        for sizes in [&[largest; 3][..], &[largest, largest, 256, 256], &[largest / 2; 9]] {
            let graph = Graph::new(device);
            let all = sizes.iter().map(|&size| graph.alloc::<u8>(size)).collect::<Result<Vec<_>>>()?;
            let mut last = graph.join(all.iter().map(|memory| &**memory))?;
            for memory in &all {
                last = last.free(memory)?;
            }
            // Ranges that were freed are given out again.
            let again = last.alloc::<u8>(largest)?;
            again.free(&again)?;
            refused(graph.instantiate().map(drop), ErrorKind::OutOfMemory, &[]);
        }
        Ok(())
    });
}
