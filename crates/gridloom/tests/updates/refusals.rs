//! Changes that are refused leave everything unchanged.

use std::sync::Arc;

use gridloom::kernel::Arg;
use gridloom::prelude::*;

use super::changes::{ALL, Change, LEN, Lab};
use crate::support::{GraphKernels, for_each_device, for_each_engine, refused};

#[test]
fn an_operation_of_another_kind_is_refused_and_changes_nothing() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let kinds = [Change::Arguments, Change::FillValue, Change::CopySize, Change::Closure];
        for has in kinds {
            let graph = Graph::new(device);
            let node = has.add(&lab, &graph)?.named("culprit")?;
            let executable = graph.instantiate()?;
            for given in kinds.into_iter().filter(|given| *given != has) {
                let other = given.add(&lab, &Graph::new(device))?.operation()?;
                let says: &[&str] = &["culprit", "cannot become"];
                refused(node.set_operation(other.clone()), ErrorKind::InvalidArgument, says);
                refused(executable.node(&node)?.set_operation(other), ErrorKind::InvalidArgument, says);
            }
            assert_eq!(lab.run(&executable)?, has.outcomes()[0], "{has:?}");
            assert_eq!(lab.run(&graph.instantiate()?)?, has.outcomes()[0], "{has:?}");
        }
        Ok(())
    });
}

#[test]
fn setters_for_another_kind_of_node_are_refused() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let callback = graph.callback(|| ())?;
        let repeat = graph.repeat(2)?;
        let executable = graph.instantiate()?;
        let refuse = |result: Result<()>| refused(result, ErrorKind::InvalidArgument, &[]);
        let (called, looped) = (executable.node(&callback)?, executable.node(&repeat)?);
        refuse(called.set_args(&lab.kernels.increase, (&lab.x, 1, 1)));
        refuse(called.set_config(LaunchConfig::one()));
        refuse(called.set_memset(&lab.x, 1i32));
        refuse(called.set_memcpy(&lab.x, &lab.y));
        refuse(called.set_event(&device.event()?));
        refuse(called.set_passes(3));
        refuse(called.set_max_passes(Some(3)));
        refuse(called.set_child(&Graph::new(device)));
        refuse(looped.set_callback(|| ()));
        refuse(looped.set_tested(&lab.x.slice(..1)?));
        let choice = graph.if_nonzero(&lab.x.slice(..1)?)?;
        refuse(choice.set_max_passes(Some(3)));
        refuse(choice.set_passes(3));
        refuse(choice.set_tested(&lab.x));
        Ok(())
    });
}

#[test]
fn wrong_parameters_are_refused_and_change_nothing() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let GraphKernels { increase, affine, .. } = &lab.kernels;
        for change in [Change::Arguments, Change::FillValue, Change::CopySize] {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?.named("culprit")?;
            let executable = graph.instantiate()?;
            let held = executable.node(&node)?;
            match change {
                Change::Arguments => {
                    let other = held.set_args(affine, (&lab.x, &lab.y, 1, 1, 1));
                    refused(other, ErrorKind::InvalidArgument, &["increase", "set_kernel"]);
                    // SAFETY: none of it is taken.
                    let outcomes = unsafe {
                        [
                            held.set_arg_unchecked(9, Arg::value(1i32)),
                            held.set_arg_unchecked(2, Arg::value(1u8)),
                        ]
                    };
                    for result in outcomes {
                        refused(result, ErrorKind::ParameterMismatch, &["increase"]);
                    }
                    refused(
                        held.set_config(LaunchConfig::new(0, 1)),
                        ErrorKind::InvalidArgument,
                        &["culprit"],
                    );
                    let closed = lab.kernels.value(1)?;
                    closed.close();
                    let late = held.set_args(increase, (&closed, 1, 1));
                    refused(late, ErrorKind::InvalidHandle, &[]);
                }
                Change::FillValue => {
                    refused(held.set_memset(&lab.x, [0u8; 3]), ErrorKind::InvalidArgument, &["1, 2 or 4"]);
                }
                _ => {
                    let longer = held.set_memcpy(&lab.x.slice(..2)?, &lab.y);
                    refused(longer, ErrorKind::InvalidArgument, &[]);
                    let overlapping = held.set_memcpy(&lab.x.slice(..2)?, &lab.x.slice(1..3)?);
                    refused(overlapping, ErrorKind::InvalidArgument, &["overlap"]);
                }
            }
            assert_eq!(lab.run(&executable)?, change.outcomes()[0], "{change:?}");
            // After a failed change, a right one is taken.
            change.make(&lab, &executable.node(&node)?)?;
            assert_eq!(lab.run(&executable)?, change.outcomes()[1], "{change:?}");
        }
        Ok(())
    });
}

#[test]
fn one_wrong_change_among_several_stops_all() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let (first, second) = (graph.memset(&lab.x, 1i32)?, graph.memset(&lab.y, 1i32)?);
        let executable = graph.instantiate()?;
        let five = Graph::new(device).memset(&lab.x, 5i32)?.operation()?;
        let callback = Graph::new(device).callback(|| ())?.operation()?;
        let both = executable.set_operations([(&first, five), (&second, callback)]);
        refused(both, ErrorKind::InvalidArgument, &["cannot become"]);
        assert_eq!(lab.run(&executable)?.x, [1; LEN]);
        Ok(())
    });
}

#[test]
fn a_refused_operation_is_let_go() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let alive = Arc::new(());
        let graph = Graph::new(device);
        let node = graph.memset(&lab.x, 1i32)?;
        let executable = graph.instantiate()?;
        let held = alive.clone();
        let result = executable.node(&node)?.set_callback(move || drop(held.clone()));
        refused(result, ErrorKind::InvalidArgument, &[]);
        assert_eq!(Arc::strong_count(&alive), 1);
        Ok(())
    });
}

#[test]
fn nodes_of_another_graph_are_refused() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let (graph, other) = (Graph::new(device), Graph::new(device));
            change.add(&lab, &graph)?;
            let foreign = change.add(&lab, &other)?;
            let executable = graph.instantiate()?;
            refused(executable.node(&foreign).map(drop), ErrorKind::WrongGraph, &["another graph"]);
            let added_later = change.add(&lab, &graph)?;
            refused(executable.node(&added_later).map(drop), ErrorKind::InvalidHandle, &["added after"]);
        }
        Ok(())
    });
}

#[test]
fn memory_kernels_events_and_graphs_of_another_device_are_refused() {
    for_each_engine(|options| {
        let (ours, theirs) = (Device::cpu_with(options.clone())?, Device::cpu_with(options)?);
        let (lab, foreign) = (Lab::new(&ours)?, Lab::new(&theirs)?);
        let graph = Graph::new(&ours);
        let fill = graph.memset(&lab.x, 1i32)?;
        let launch = lab.kernels.bump(&graph, &lab.x, 1)?;
        let record = graph.record(&ours.event()?)?;
        let executable = graph.instantiate()?;
        let node = |node| executable.node(node);
        let results = [
            node(&fill)?.set_memset(&foreign.x, 1i32),
            node(&launch)?.set_args(&lab.kernels.increase, (&foreign.x, 1, 1)),
            node(&launch)?.set_kernel(&foreign.kernels.increase, (&lab.x, 1, 1)),
            node(&record)?.set_event(&theirs.event()?),
            executable.update(&Graph::new(&theirs)),
        ];
        for result in results {
            refused(result, ErrorKind::WrongDevice, &[]);
        }
        Ok(())
    });
}

#[test]
fn memory_of_alloc_nodes_can_be_given_only_where_it_is_ordered() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let alloc = graph.alloc::<i32>(LEN)?;
        let fill = alloc.memset(&alloc, 1i32)?;
        fill.memcpy(&lab.x, &alloc)?.free(&alloc)?;
        let beside = graph.memset(&lab.y, 2i32)?.named("beside")?;
        let executable = graph.instantiate()?;
        let unordered = executable.node(&beside)?.set_memset(&alloc, 3i32);
        refused(unordered, ErrorKind::Unordered, &["beside"]);
        executable.node(&fill)?.set_memset(&alloc, 9i32)?;
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x, outcome.y), ([9; LEN], [2; LEN]));
        Ok(())
    });
}

#[test]
fn a_conditional_that_tests_memory_without_a_counterpart_is_a_difference() {
    for_each_device(|device| {
        let definition = |deleted: bool| -> Result<Graph> {
            let graph = Graph::new(device);
            let (tested, other) = (graph.alloc::<i32>(1)?, graph.alloc::<i32>(1)?);
            graph.join([&*tested, &*other])?.if_nonzero(&tested)?;
            if deleted {
                // Another one in its place, so that the graphs have as many nodes of each kind.
                tested.delete()?;
                graph.alloc::<i32>(1)?;
            }
            Ok(graph)
        };
        let (graph, broken) = (definition(false)?, definition(true)?);
        assert!(!graph.diff(&broken).is_empty() && !broken.diff(&graph).is_empty());
        refused(graph.instantiate()?.update(&broken), ErrorKind::InvalidHandle, &["deleted"]);

        // A body whose conditional tests memory from around it, compared on its own.
        let body = |graph: &Graph| -> Result<Graph> {
            let alloc = graph.alloc::<i32>(1)?;
            let body = alloc.repeat(1)?.into_body();
            body.if_nonzero(&alloc)?;
            Ok(body)
        };
        let (one, other) = (Graph::new(device), Graph::new(device));
        assert!(!body(&one)?.diff(&body(&other)?).is_empty());
        Ok(())
    });
}
