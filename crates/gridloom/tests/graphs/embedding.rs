//! Embedded graphs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom::prelude::*;

use crate::support::graph_kernels::read;
use crate::support::{GraphKernels, for_each_device, for_each_engine, for_each_mode, refused};

#[test]
fn an_embedded_graph_is_a_snapshot() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let inner = Graph::new(device);
        kernels.bump(&inner, &value, 1)?;
        let outer = Graph::new(device);
        let child = outer.embed(&inner)?;
        inner.nodes()[0].delete()?;
        kernels.bump(&inner, &value, 100)?;
        kernels.run(&outer)?;
        assert_eq!(read(&value)?, 1);
        // The copy itself is open for editing.
        kernels.bump(&child.bodies()?[0].nodes()[0], &value, 1000)?;
        kernels.run(&outer)?;
        assert_eq!(read(&value)?, 1002);
        Ok(())
    });
}

#[test]
fn an_embedded_graph_takes_its_place_in_the_order() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (value, three, five) = (kernels.value(1)?, kernels.value(3)?, kernels.value(5)?);
        let one = LaunchConfig::one();
        let inner = Graph::new(device);
        inner.launch(&kernels.mix, one, (&value, &three, 1))?;
        let outer = Graph::new(device);
        kernels.bump(&outer, &value, 1)?.embed(&inner)?.launch(&kernels.mix, one, (&value, &five, 1))?;
        kernels.run(&outer)?;
        assert_eq!(read(&value)?, (2 * 31 + 3) * 31 + 5);
        Ok(())
    });
}

#[test]
fn conditionals_allocations_and_callbacks_may_be_embedded_and_cloned() {
    for_each_mode(|device, mode| {
        let kernels = GraphKernels::new(device)?;
        let (value, calls) = (kernels.value(0)?, Arc::new(AtomicU32::new(0)));
        let inner = Graph::new(device);
        let again = inner.condition(Some(1))?;
        let left = inner.alloc::<i32>(1)?;
        let repeat = left.memset(&left, 3i32)?.while_loop(&again)?;
        kernels.bump(&repeat.body(), &value, 1)?.launch(
            &kernels.countdown,
            LaunchConfig::one(),
            (&again, &left),
        )?;
        let count = calls.clone();
        repeat
            .callback(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })?
            .free(&left)?;
        let outer = Graph::new(device);
        outer.embed(&inner)?.embed(&inner)?;
        let (copy, map) = outer.deep_clone()?;
        assert_eq!(map.len(), 2 * (1 + inner.len() + 2));
        drop((inner, again, left, repeat));
        kernels.run_in(&outer, mode)?;
        assert_eq!((read(&value)?, calls.load(Ordering::SeqCst)), (6, 2));
        drop(outer);
        kernels.run_in(&copy, mode)?;
        assert_eq!((read(&value)?, calls.load(Ordering::SeqCst)), (12, 4));
        Ok(())
    });
}

#[test]
fn a_clone_and_its_original_do_not_affect_each_other() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let node = kernels.bump(&graph, &value, 1)?.named("first")?;
        let (copy, map) = graph.deep_clone()?;
        let copied = map.get(&node).expect("copied");
        assert_eq!((copied.label(), copied.graph()?), ("first".to_owned(), copy.clone()));
        assert_eq!(map.get(&copied), None);
        kernels.bump(&copied, &value, 10)?;
        node.delete()?;
        assert_eq!((graph.len(), copy.len()), (0, 2));
        kernels.run(&copy)?;
        assert_eq!(read(&value)?, 11);
        Ok(())
    });
}

#[test]
fn a_graph_is_not_embedded_into_itself() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let repeat = graph.repeat(2)?;
        refused(graph.embed(&graph), ErrorKind::WrongGraph, &["itself", "clone"]);
        refused(repeat.body().embed(&graph), ErrorKind::WrongGraph, &["clone"]);
        refused(graph.embed(&repeat.body()), ErrorKind::WrongGraph, &["clone"]);
        graph.embed(&graph.deep_clone()?.0)?;
        Ok(())
    });
}

#[test]
fn a_body_that_uses_memory_around_it_cannot_be_taken_out() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let alloc = graph.alloc::<i32>(4)?.named("rod")?;
        let repeat = alloc.repeat(2)?;
        repeat.body().memset(&alloc, 0u8)?.named("clear")?;
        repeat.free(&alloc)?;
        refused(repeat.body().deep_clone(), ErrorKind::WrongGraph, &["clear", "rod", "outside"]);
        refused(Graph::new(device).embed(&repeat.body()), ErrorKind::WrongGraph, &["clear", "rod"]);
        Ok(())
    });
}

#[test]
fn a_graph_of_another_device_is_refused() {
    for_each_engine(|options| {
        let (ours, theirs) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        let graph = Graph::new(&ours);
        refused(graph.embed(&Graph::new(&theirs)), ErrorKind::WrongDevice, &["another device"]);
        refused(graph.instantiate()?.launch(&theirs.stream()?), ErrorKind::WrongDevice, &["another device"]);
        Ok(())
    });
}

#[test]
fn graphs_nest_64_deep_and_no_deeper() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let root = Graph::new(device);
        let mut graph = root.clone();
        for _ in 0..64 {
            graph = graph.repeat(1)?.body();
        }
        refused(graph.repeat(1), ErrorKind::InvalidArgument, &["65 deep", "64"]);
        refused(graph.embed(&Graph::new(device)), ErrorKind::InvalidArgument, &["64"]);
        kernels.bump(&graph, &value, 1)?;
        kernels.run(&root)?;
        assert_eq!(read(&value)?, 1);
        Ok(())
    });
}

#[test]
fn only_a_root_can_be_instantiated() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let repeat = graph.repeat(2)?.named("again")?;
        refused(repeat.body().instantiate(), ErrorKind::InvalidState, &["again", "deep_clone"]);
        repeat.body().deep_clone()?.0.instantiate()?;
        Ok(())
    });
}
