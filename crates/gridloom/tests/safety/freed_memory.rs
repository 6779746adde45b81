//! Memory that a free node, or the next launch, has freed cannot be used through its old handle.

use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

/// An executable that leaves memory behind at each launch, the node, and a stale handle of what its
/// first launch left. By now the second launch has left more.
struct Stale {
    kernels: GraphKernels,
    executable: Executable,
    memory: AllocNode<i32>,
    handle: Buffer<i32>,
}

/// How the first memory was freed.
#[derive(Clone, Copy)]
enum By {
    FreeNode,
    NextLaunch,
}

impl Stale {
    fn new(device: &Device, by: By, kind: MemoryKind) -> Result<Self> {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let memory = graph.alloc_in::<i32>(8, kind)?.named("result")?;
        memory.memset(&memory, 3i32)?;
        let auto_free_on_launch = matches!(by, By::NextLaunch);
        let options = InstantiateOptions::new().auto_free_on_launch(auto_free_on_launch);
        let executable = kernels.run_with(&graph, &options)?;
        let handle = executable.buffer(&memory)?;
        Ok(Stale { kernels, executable, memory, handle })
    }

    /// Frees the memory of the handle, and has the next launch use it.
    fn free(&self, by: By) -> Result<()> {
        if matches!(by, By::FreeNode) {
            let freeing = Graph::new(&self.kernels.device);
            freeing.free(&self.handle)?;
            freeing.instantiate()?.launch(&self.kernels.stream)?;
        }
        self.executable.launch(&self.kernels.stream)?;
        self.kernels.stream.synchronize()
    }
}

#[track_caller]
fn gone<T: std::fmt::Debug>(what: &str, outcome: Result<T>) {
    match outcome {
        Ok(value) => panic!("{what} gave {value:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidHandle, "{what}: {error}");
            assert!(error.to_string().contains("freed"), "{what}: {error}");
        }
    }
}

#[test]
fn memory_that_was_freed_cannot_be_read_or_written_through_its_old_handle() {
    for_each_device(|device| {
        for by in [By::FreeNode, By::NextLaunch] {
            for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
                let stale = Stale::new(device, by, kind)?;
                let slice = stale.handle.slice(2..4)?;
                assert_eq!(stale.handle.to_vec()?, [3; 8]);
                stale.free(by)?;
                let handle = &stale.handle;
                gone("to_vec", handle.to_vec());
                gone("read_into", handle.read_into(&mut [0; 8]));
                gone("write", handle.write(&[9; 8]));
                gone("to_vec of a slice", slice.to_vec());
                gone("write of a slice", slice.write(&[9; 2]));
                gone("address", handle.address());
                if kind.host_accessible() {
                    // SAFETY: nothing is in flight.
                    gone("as_slice", unsafe { handle.as_slice() });
                }
                assert_eq!(stale.executable.buffer(&stale.memory)?.to_vec()?, [3; 8]);
            }
        }
        Ok(())
    });
}

#[test]
fn memory_that_was_freed_is_refused_by_streams_graphs_and_executables() {
    for_each_device(|device| {
        for by in [By::FreeNode, By::NextLaunch] {
            let stale = Stale::new(device, by, MemoryKind::Device)?;
            let (handle, kernels) = (&stale.handle, &stale.kernels);
            let fresh = device.buffer_from(&[1; 8])?;
            let (stream, config) = (&kernels.stream, LaunchConfig::linear(8));
            let graph = Graph::new(device);
            let launched = graph.launch(&kernels.increase, config, (&fresh, 8, 1))?;
            let filled = graph.memset(&fresh, 1i32)?;
            let copied = graph.memcpy(&fresh, &[5; 8])?;
            let executable = graph.instantiate()?;
            let increase = kernels.increase.clone();
            let callable = Callable::new(device, move |g, (x,): (Param<[i32]>,)| {
                g.launch(&increase, LaunchConfig::linear(8), (&x, 8, 1))
            });
            callable.call(stream, (&fresh,))?;
            stale.free(by)?;
            gone("memset", stream.memset(handle, 9i32));
            gone("memcpy to it", stream.memcpy(handle, &fresh));
            gone("memcpy from it", stream.memcpy(&fresh, handle));
            gone("launch", stream.launch(&kernels.increase, config, (handle, 8, 1)));
            gone("graph memset", graph.memset(handle, 9i32));
            gone("graph launch", graph.launch(&kernels.increase, config, (handle, 8, 1)));
            gone("graph free", graph.free(handle));
            gone("while_nonzero", graph.while_nonzero(&handle.slice(..1)?));
            gone("set_args", executable.node(&launched)?.set_args(&kernels.increase, (handle, 8, 1)));
            gone("set_memset", executable.node(&filled)?.set_memset(handle, 9i32));
            gone("set_memcpy", executable.node(&copied)?.set_memcpy(handle, &[5; 8]));
            gone("call", callable.call(stream, (handle,)));
            let capture = stream.capture()?;
            gone("captured memset", capture.memset(handle, 9i32));
            drop(capture);
            executable.launch(stream)?;
            stream.synchronize()?;
            assert_eq!(stale.executable.buffer(&stale.memory)?.to_vec()?, [3; 8]);
        }
        Ok(())
    });
}

#[test]
fn an_executable_that_uses_memory_freed_since_is_not_launched() {
    for_each_device(|device| {
        for by in [By::FreeNode, By::NextLaunch] {
            let stale = Stale::new(device, by, MemoryKind::Device)?;
            let (handle, kernels) = (&stale.handle, &stale.kernels);
            let graph = Graph::new(device);
            let raise = graph.launch(&kernels.increase, LaunchConfig::linear(8), (handle, 8, 1))?;
            let raise = raise.named("raise")?;
            let executable = graph.instantiate()?;
            executable.launch(&kernels.stream)?;
            stale.free(by)?;
            let refusal = executable.launch(&kernels.stream);
            refused(refusal, ErrorKind::InvalidHandle, &["raise", "freed"]);
            refused(graph.instantiate(), ErrorKind::InvalidHandle, &["raise", "freed"]);
            assert_eq!(stale.executable.buffer(&stale.memory)?.to_vec()?, [3; 8]);
            // It is as good as new with other memory.
            let fresh = stale.executable.buffer(&stale.memory)?;
            executable.node(&raise)?.set_args(&kernels.increase, (&fresh, 8, 1))?;
            executable.launch(&kernels.stream)?;
            assert_eq!(fresh.to_vec()?, [4; 8]);
        }
        Ok(())
    });
}

#[test]
fn an_executable_that_was_given_memory_later_is_not_launched_once_it_is_freed() {
    for_each_device(|device| {
        let stale = Stale::new(device, By::FreeNode, MemoryKind::Device)?;
        let (handle, kernels) = (&stale.handle, &stale.kernels);
        let fresh = device.buffer_from(&[1; 8])?;
        let graph = Graph::new(device);
        let fill = graph.memset(&fresh, 1i32)?.named("fill")?;
        let executable = graph.instantiate()?;
        executable.node(&fill)?.set_memset(handle, 7i32)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(handle.to_vec()?, [7; 8]);
        stale.free(By::FreeNode)?;
        refused(executable.launch(&kernels.stream), ErrorKind::InvalidHandle, &["fill", "freed"]);
        executable.node(&fill)?.set_enabled(false)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(stale.executable.buffer(&stale.memory)?.to_vec()?, [3; 8]);
        Ok(())
    });
}

#[test]
fn only_memory_that_outlived_a_launch_can_be_freed_by_a_graph() {
    for_each_device(|device| {
        let buffer = device.buffer_from(&[1, 2, 3])?;
        let says = ["left allocated"];
        refused(Graph::new(device).free(&buffer), ErrorKind::InvalidArgument, &says);
        assert_eq!(buffer.to_vec()?, [1, 2, 3]);
        Ok(())
    });
}

#[test]
fn memory_stays_where_the_launch_that_would_free_it_is_refused() {
    for_each_device(|device| {
        let stale = Stale::new(device, By::FreeNode, MemoryKind::Device)?;
        let other = Stale::new(device, By::FreeNode, MemoryKind::Device)?;
        let graph = Graph::new(device);
        graph.free(&stale.handle)?.free(&other.handle)?;
        let both = graph.instantiate()?;
        other.free(By::FreeNode)?;
        refused(both.launch(&stale.kernels.stream), ErrorKind::InvalidState, &["freed already"]);
        assert_eq!(stale.handle.to_vec()?, [3; 8], "none of them was freed");
        let again = Graph::new(device);
        again.free(&stale.handle)?;
        again.instantiate()?.launch(&stale.kernels.stream)?;
        gone("to_vec", stale.handle.to_vec());
        Ok(())
    });
}

#[test]
fn an_executable_that_was_given_the_memory_of_its_own_launch_is_not_launched_again() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let left = graph.alloc::<i32>(2)?;
        left.memset(&left, 3i32)?;
        let (from, out) = (kernels.buffer(&[5, 6])?, kernels.buffer(&[0, 0])?);
        let copy = graph.memcpy(&out, &from)?.named("copy")?;
        let options = InstantiateOptions::new().auto_free_on_launch(true);
        let executable = kernels.run_with(&graph, &options)?;

        let memory = executable.buffer(&left)?;
        executable.node(&copy)?.set_memcpy(&out, &memory)?;
        let outcome = executable.launch(&kernels.stream);
        refused(outcome, ErrorKind::InvalidHandle, &["copy", "this launch frees"]);
        let outcome = executable.profile(&kernels.stream).map(drop);
        refused(outcome, ErrorKind::InvalidHandle, &["copy", "this launch frees"]);
        // Nothing was freed, and the executable runs again once the node uses other memory.
        assert_eq!(memory.to_vec()?, [3, 3]);
        executable.node(&copy)?.set_memcpy(&out, &from)?;
        executable.launch(&kernels.stream)?;
        assert_eq!(out.to_vec()?, [5, 6]);
        gone("the memory of the launch before", memory.to_vec());
        Ok(())
    });
}

#[test]
fn an_executable_that_frees_memory_does_not_use_it_without_an_order_if_it_gets_it_later() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let left = graph.alloc::<i32>(2)?;
        left.memset(&left, 3i32)?;
        let executable = kernels.run(&graph)?;
        let memory = executable.buffer(&left)?;

        let (from, out) = (kernels.buffer(&[5, 6])?, kernels.buffer(&[0, 0])?);
        let graph = Graph::new(device);
        graph.free(&memory)?;
        let copy = graph.memcpy(&out, &from)?.named("copy")?;
        let add = graph.launch(&kernels.increase, LaunchConfig::one(), (&from, 1, 1))?;
        let freeing = graph.instantiate()?;
        freeing.node(&copy)?.set_memcpy(&out, &memory)?;
        refused(freeing.launch(&kernels.stream), ErrorKind::Unordered, &["copy"]);
        freeing.node(&copy)?.set_memcpy(&out, &from)?;
        freeing.node(&add)?.set_args(&kernels.increase, (&memory, 1, 1))?;
        refused(freeing.launch(&kernels.stream), ErrorKind::Unordered, &[]);
        freeing.node(&add)?.set_args(&kernels.increase, (&from, 1, 1))?;
        assert_eq!(memory.to_vec()?, [3, 3]);
        freeing.launch(&kernels.stream)?;
        kernels.stream.synchronize()?;
        gone("freed memory", memory.to_vec());
        Ok(())
    });
}
