//! Handles: identity, conversions between them, and what they keep alive.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, refused};

const GRAPH_PTX: &str = include_str!("../support/graph.ptx");

type Increase = (PtrMut<i32>, Len<u32>, i32);

fn increase(module: &Module) -> Result<Kernel<Increase>> {
    // SAFETY: it adds to as many integers as it is told that there are.
    unsafe { module.kernel("increase") }
}

#[test]
fn kernels_modules_executables_buffers_and_devices_compare_and_hash_by_identity() {
    for_each_device(|device| {
        let [one, other] = [device.load_ptx(GRAPH_PTX)?, device.load_ptx(GRAPH_PTX)?];
        assert_eq!(HashSet::from([one.clone(), one.clone(), other.clone()]).len(), 2);
        let kernels = [increase(&one)?, increase(&one)?, increase(&other)?];
        assert_eq!(HashSet::from(kernels).len(), 2);
        let untyped = ["increase", "increase", "affine"].map(|name| one.untyped_kernel(name).unwrap());
        assert_eq!(HashSet::from(untyped).len(), 2);
        let [x, y] = [device.alloc::<i32>(4)?, device.alloc::<i32>(4)?];
        assert_eq!(HashSet::from([x.clone(), x.clone(), y]).len(), 2);
        assert_eq!(HashSet::from([device.clone(), x.device(), Device::cpu()?]).len(), 2);
        let graph = Graph::new(device);
        let [one, other] = [graph.instantiate()?, graph.instantiate()?];
        assert!(one == one && one != other);
        assert_eq!(HashSet::from([&one, &one, &other]).len(), 2);
        Ok(())
    });
}

#[test]
fn a_kernel_looked_up_twice_is_the_same_kernel() {
    for_each_device(|device| {
        let module = device.load_ptx(GRAPH_PTX)?;
        let [first, second] = [increase(&module)?, increase(&module)?];
        assert_eq!(first, second);
        assert_eq!(first.untyped(), second.untyped());
        // SAFETY: as for `increase`.
        assert_eq!(first, unsafe { module.untyped_kernel("increase")?.typed()? });

        let x = device.buffer_from(&[0, 0])?;
        let build = |kernel: &Kernel<Increase>, by: i32| -> Result<(Graph, Node)> {
            let graph = Graph::new(device);
            let node = graph.launch(kernel, LaunchConfig::linear(2), (&x, 2, by))?;
            Ok((graph, node))
        };
        let ((graph, node), (same, _)) = (build(&first, 1)?, build(&second, 1)?);
        assert_eq!(graph.diff(&same), []);
        let (exec, stream) = (graph.instantiate()?, device.stream()?);
        exec.node(&node)?.set_args(&second, (&x, 2, 10))?;
        exec.launch(&stream)?;
        exec.update(&build(&second, 100)?.0)?;
        exec.launch(&stream)?;
        node.set_args(&second, (&x, 1, 1000))?;
        graph.instantiate()?.launch(&stream)?;
        assert_eq!(x.to_vec()?, [1110, 110]);
        Ok(())
    });
}

#[test]
fn another_contract_makes_it_another_kernel() {
    use gridloom::contract::{Contract, arg};
    for_each_device(|device| {
        let module = device.load_ptx(GRAPH_PTX)?;
        let bounded = || {
            let contract = Contract::new().at_most(arg(2), 5);
            // SAFETY: as for `increase`.
            unsafe { module.kernel_with::<Increase>("increase", contract) }
        };
        assert_eq!(bounded()?, bounded()?);
        assert_ne!(bounded()?, increase(&module)?);
        assert_eq!(bounded()?.untyped(), increase(&module)?.untyped());
        Ok(())
    });
}

#[test]
fn a_node_becomes_the_handle_it_was_made_as_and_back() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let event = device.event()?;
        let value = device.buffer_from(&[1])?;
        let alloc = graph.alloc::<i32>(6)?;
        let choice = alloc.if_nonzero(&value)?;
        let two = choice.if_else_nonzero(&value)?;
        let repeat = two.repeat(3)?;
        let switch = repeat.switch_on(&value, 4)?;
        let record = switch.record(&event)?;

        let nodes = graph.nodes();
        assert_eq!(nodes[0].as_alloc::<i32>()?.len(), 6);
        assert_eq!(nodes[0].as_alloc::<[i32; 3]>()?.len(), 2);
        assert_eq!(nodes[1].as_if()?, choice);
        assert_eq!(nodes[1].as_if()?.body(), choice.body());
        assert_eq!(nodes[2].as_if_else()?.else_body(), two.else_body());
        assert_eq!(nodes[3].as_while()?.max_passes(2)?.body(), repeat.body());
        assert_eq!(nodes[4].as_switch()?.body(3)?, switch.body(3)?);
        assert_eq!(nodes[5].event()?, event);
        let back: Vec<Node> =
            vec![alloc.into(), choice.into(), two.into(), repeat.into(), switch.into(), record];
        assert_eq!(back, nodes);

        refused(nodes[0].as_alloc::<[i32; 4]>(), ErrorKind::InvalidArgument, &["24 bytes", "whole elements"]);
        refused(nodes[0].as_while(), ErrorKind::InvalidArgument, &["is of kind alloc, not while"]);
        refused(nodes[1].as_alloc::<i32>(), ErrorKind::InvalidArgument, &["is of kind if, not alloc"]);
        refused(nodes[1].event(), ErrorKind::InvalidArgument, &["has no event"]);
        nodes[1].delete()?;
        refused(nodes[1].as_if(), ErrorKind::InvalidHandle, &["deleted"]);
        Ok(())
    });
}

#[test]
fn nodes_of_copies_and_embedded_graphs_become_typed_handles() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (graph, out) = (Graph::new(device), k.value(0)?);
        let alloc = graph.alloc::<i32>(1)?;
        let repeat = alloc.memset(&alloc, 0i32)?.repeat(3)?;
        k.bump(&repeat.body(), &alloc, 1)?;
        repeat.memcpy(&out, &alloc)?.free(&alloc)?;

        let (copy, map) = graph.deep_clone()?;
        let copied = map.get(&repeat).expect("copied").as_while()?;
        k.bump(&copied.body().nodes()[0], &map.get(&alloc).expect("copied").as_alloc::<i32>()?, 10)?;
        k.run(&copy)?;
        assert_eq!(read(&out)?, 33);

        let outer = Graph::new(device);
        let child = outer.embed(&graph)?;
        let inside = child.bodies()?[0].nodes();
        let memory = inside[0].as_alloc::<i32>()?;
        k.bump(&inside[2].as_while()?.body().nodes()[0], &memory, 100)?;
        k.run(&outer)?;
        assert_eq!(read(&out)?, 303);
        Ok(())
    });
}

#[test]
fn an_executable_takes_nodes_of_its_own_graph() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (graph, x) = (Graph::new(device), k.value(0)?);
        k.bump(&graph, &x, 1)?;
        let exec = graph.instantiate()?;
        drop(graph);
        let own = exec.graph()?;
        exec.node(&own.nodes()[0])?.set_args(&k.increase, (&x, 1, 10))?;
        exec.launch(&k.stream)?;
        assert_eq!(x.to_vec()?, [10]);
        // What the executable does now is in a graph that is asked for now.
        let node = &exec.graph()?.nodes()[0];
        assert!(exec.node(node)?.operation().same(&node.operation()?));

        let added = own.empty()?;
        refused(exec.node(&added), ErrorKind::InvalidHandle, &["not in this executable"]);
        let other = own.instantiate()?;
        refused(other.node(node), ErrorKind::WrongGraph, &["another graph"]);
        Ok(())
    });
}

#[test]
fn memory_that_outlives_a_launch_of_a_copy_is_reachable() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let graph = Graph::new(device);
        let alloc = graph.alloc::<i32>(2)?;
        alloc.memset(&alloc, 5i32)?;
        let (copy, map) = graph.deep_clone()?;
        let exec = k.run(&copy)?;
        let of_copy = map.get(&alloc).expect("copied").as_alloc::<i32>()?;
        let buffer = exec.buffer(&of_copy)?;
        assert_eq!(buffer.to_vec()?, [5, 5]);
        assert_eq!(exec.buffer(&of_copy)?, buffer);
        assert_eq!(exec.buffer(&exec.graph()?.nodes()[0].as_alloc::<i32>()?)?, buffer);
        refused(exec.buffer(&alloc), ErrorKind::WrongGraph, &["another graph"]);
        Ok(())
    });
}

#[test]
fn weak_handles_keep_nothing_alive() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let (node, buffer) = (graph.empty()?, device.alloc::<i32>(1)?);
        let weak = (graph.downgrade(), node.downgrade(), buffer.downgrade());
        assert_eq!(weak.0.upgrade().as_ref(), Some(&graph));
        assert_eq!(weak.1.upgrade().as_ref(), Some(&node));
        assert_eq!(weak.2.upgrade().as_ref(), Some(&buffer));
        drop(graph);
        // A node keeps its graph.
        assert!(weak.0.upgrade().is_some());
        drop((node, buffer));
        assert!(weak.0.upgrade().is_none() && weak.1.upgrade().is_none() && weak.2.upgrade().is_none());
        Ok(())
    });
}

#[test]
fn a_callback_refers_to_its_own_graph_without_keeping_it() {
    for_each_device(|device| {
        let (graph, stream) = (Graph::new(device), device.stream()?);
        let seen = Arc::new(AtomicUsize::new(0));
        let (weak, inside) = (graph.downgrade(), seen.clone());
        graph.callback(move || {
            let nodes = weak.upgrade().map_or(99, |graph| graph.len());
            inside.store(nodes, Ordering::SeqCst);
        })?;
        let exec = graph.instantiate()?;
        exec.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(seen.load(Ordering::SeqCst), 1);

        let weak = graph.downgrade();
        drop(graph);
        assert!(weak.upgrade().is_none());
        exec.launch(&stream)?;
        stream.synchronize()?;
        assert_eq!(seen.load(Ordering::SeqCst), 99);
        Ok(())
    });
}

#[test]
fn an_event_tells_its_device() {
    for_each_device(|device| {
        let event = device.event()?;
        assert_eq!(event.device(), *device);
        assert_eq!(Graph::new(device).record(&event)?.event()?.device(), *device);
        Ok(())
    });
}

#[test]
fn free_of_memory_that_is_no_graph_allocation_is_refused_at_the_call() {
    for_each_device(|device| {
        let (graph, stream) = (Graph::new(device), device.stream()?);
        let says = &["not memory that a launch of a graph left allocated", "drop or close it"];
        for kind in [MemoryKind::Device, MemoryKind::Host, MemoryKind::Managed] {
            let buffer = device.alloc_in::<i32>(1, kind)?;
            refused(graph.free(&buffer), ErrorKind::InvalidArgument, says);
            refused(graph.empty()?.free(&buffer), ErrorKind::InvalidArgument, says);
            let capture = stream.capture()?;
            refused(capture.free(&buffer), ErrorKind::InvalidArgument, says);
        }
        Ok(())
    });
}

#[test]
fn while_a_capture_records_nobody_else_writes_its_graph() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.value(0)?;
        let capture = k.stream.capture()?;
        let node = capture.launch(&k.increase, LaunchConfig::one(), (&x, 1, 1))?;
        let graph = node.graph()?;
        let says = &["a capture records this graph"];
        refused(graph.memset(&x, 9i32), ErrorKind::InvalidState, says);
        refused(node.memset(&x, 9i32), ErrorKind::InvalidState, says);
        refused(node.repeat(9), ErrorKind::InvalidState, says);
        refused(node.set_args(&k.increase, (&x, 1, 9)), ErrorKind::InvalidState, says);
        refused(node.delete(), ErrorKind::InvalidState, says);
        // SAFETY: the memory is as long.
        refused(unsafe { graph.replace_memory(&x, &k.value(0)?) }, ErrorKind::InvalidState, says);
        node.named("first")?;
        capture.launch(&k.increase, LaunchConfig::one(), (&x, 1, 10))?;
        let ended = capture.end()?;
        assert_eq!(ended, graph);
        k.bump(&ended.nodes()[1], &x, 100)?;
        k.run(&ended)?;
        assert_eq!(read(&x)?, 111);
        Ok(())
    });
}
