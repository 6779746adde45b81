//! The check for missing dependencies, with kernels.

use gridloom::prelude::*;
use gridloom::{AccessKind, Hazard};

use crate::support::{GraphKernels, for_each_device};

/// Returns the pairs that lack an order, by the names of their nodes.
fn pairs(graph: &Graph) -> Vec<(String, String)> {
    let name = |hazard: &Hazard| match hazard {
        Hazard::Unordered { names, .. } => Some((names[0].clone(), names[1].clone())),
        _ => None,
    };
    graph.check().findings.iter().filter_map(name).collect()
}

#[test]
fn kernels_read_what_ptr_leads_to_and_write_what_ptr_mut_leads_to() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (x, y, z) = (kernels.buffer(&[1; 8])?, kernels.buffer(&[0; 8])?, kernels.buffer(&[0; 8])?);
        let graph = Graph::new(device);
        let shape = LaunchConfig::linear(8);
        graph.launch(&kernels.affine, shape, (&y, &x, 8, 2, 0))?.named("y from x")?;
        graph.launch(&kernels.affine, shape, (&z, &x, 8, 3, 0))?.named("z from x")?;
        assert!(graph.check().is_empty(), "both only read x: {}", graph.check());
        graph.launch(&kernels.increase, shape, (&y, 8, 1))?.named("y again")?;
        assert_eq!(pairs(&graph), [("y from x".to_owned(), "y again".to_owned())]);
        let found = graph.check();
        let Hazard::Unordered { first, second, bytes, .. } = &found.findings[0] else { panic!("{found}") };
        assert_eq!((first.1, second.1, *bytes), (AccessKind::Write, AccessKind::Write, (0, 32)));
        Ok(())
    });
}

#[test]
fn parts_of_one_buffer_that_do_not_meet_need_no_order() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let x = kernels.buffer(&[1; 16])?;
        let graph = Graph::new(device);
        let shape = LaunchConfig::linear(8);
        graph.launch(&kernels.increase, shape, (&x.slice(0..8)?, 8, 1))?;
        graph.launch(&kernels.increase, shape, (&x.slice(8..16)?, 8, 1))?;
        assert!(graph.check().is_empty(), "{}", graph.check());
        graph.launch(&kernels.increase, shape, (&x.slice(4..12)?, 8, 1))?;
        assert_eq!(pairs(&graph).len(), 2);
        Ok(())
    });
}

#[test]
fn instantiation_refuses_a_graph_with_hazards_where_that_is_asked_for() {
    for_each_device(|device| {
        let x = device.alloc::<u32>(4)?;
        let graph = Graph::new(device);
        graph.memset(&x, 1u32)?.named("ones")?;
        graph.memset(&x, 2u32)?.named("twos")?;
        let options = InstantiateOptions::new().hazards(HazardCheck::Refuse);
        let error = graph.instantiate_with(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unordered);
        assert!(error.to_string().contains("ones writes and twos writes"), "{error}");
        graph.instantiate_with(&options.hazards(HazardCheck::Log))?;
        Ok(())
    });
}

#[test]
fn a_loop_whose_body_gets_no_condition_to_set_is_reported_and_one_with_a_bound_is_not() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let left = kernels.value(3)?;
        let graph = Graph::new(device);
        let again = graph.condition(true)?;
        let repeat = graph.while_loop(&again)?;
        repeat.body().memset(&left, 1i32)?;
        let found = graph.check();
        assert!(matches!(found.findings[..], [Hazard::EndlessLoop { .. }]), "{found}");
        repeat.body().launch(&kernels.countdown, LaunchConfig::one(), (&again, &left))?;
        assert!(!graph.check().findings.iter().any(|finding| matches!(finding, Hazard::EndlessLoop { .. })));

        let bounded = Graph::new(device);
        let other = bounded.condition(true)?;
        bounded.while_loop(&other)?.max_passes(7)?;
        assert!(bounded.check().is_empty());
        Ok(())
    });
}

#[test]
fn a_body_and_a_node_beside_its_loop_are_reported_with_the_edge_between_loop_and_node() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (x, out) = (kernels.value(1)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let repeat = graph.repeat(3)?;
        let repeat_node: &Node = &repeat;
        repeat_node.named("loop")?;
        kernels.bump(&repeat.body(), &x, 1)?;
        let save = graph.memcpy(&out, &x)?.named("save")?;
        let found = graph.check();
        let Hazard::Unordered { edge, .. } = &found.findings[0] else { panic!("{found}") };
        assert_eq!(*edge, (repeat_node.key(), save.key()));
        assert!(found.to_string().contains("between loop and save"), "{found}");
        Ok(())
    });
}

#[test]
fn strips_and_columns_of_one_matrix_that_do_not_meet_need_no_order() {
    for_each_device(|device| {
        // A matrix of 8 rows of 16, and where strips of it are copied from.
        let (matrix, source) = (device.alloc::<i32>(8 * 16)?, device.alloc::<i32>(64)?);
        let graph = Graph::new(device);
        let strip = |row: usize, column: usize, width: usize, height: usize| {
            let dst = matrix.slice(row * 16 + column..)?.rows(16)?;
            graph.memcpy_2d(dst, source.rows(width)?, width, height)
        };
        strip(0, 0, 16, 2)?;
        strip(2, 0, 8, 4)?;
        strip(2, 8, 8, 4)?;
        strip(6, 0, 4, 1)?;
        graph.memset_2d(matrix.slice(6 * 16 + 4..)?.rows(16)?, 1i32, 4, 2)?;
        graph.memset(&matrix.slice(6 * 16 + 8..7 * 16)?, 1i32)?;
        assert!(graph.check().is_empty(), "{}", graph.check());
        strip(5, 7, 2, 2)?.named("across")?;
        assert_eq!(pairs(&graph).len(), 4, "{}", graph.check());
        Ok(())
    });
}

#[test]
fn a_graph_that_is_embedded_twice_side_by_side_is_reported_for_buffers_and_not_for_its_own_memory() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let shared = kernels.value(1)?;
        let with_own = Graph::new(device);
        let own = with_own.alloc::<i32>(1)?;
        own.memset(&own, 1i32)?.free(&own)?;
        let with_shared = Graph::new(device);
        kernels.bump(&with_shared, &shared, 1)?;

        let graph = Graph::new(device);
        graph.embed(&with_own)?;
        graph.embed(&with_own)?;
        let first = graph.embed(&with_shared)?;
        assert!(graph.check().is_empty(), "{}", graph.check());
        let second = graph.embed(&with_shared)?;
        let found = graph.check();
        let [Hazard::Unordered { edge, .. }] = &found.findings[..] else { panic!("{found}") };
        assert_eq!(*edge, (first.key(), second.key()));
        graph.add_edge(&first, &second, EdgeKind::Full)?;
        assert!(graph.check().is_empty());
        Ok(())
    });
}

#[test]
fn a_kernel_that_sets_a_condition_beside_its_conditional_is_reported() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (left, out) = (kernels.value(3)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let chosen = graph.condition(false)?;
        let decide =
            graph.launch(&kernels.countdown, LaunchConfig::one(), (&chosen, &left))?.named("decide")?;
        let branch = graph.if_then(&chosen)?.named("branch")?;
        kernels.bump(&branch.body(), &out, 1)?;
        let found = graph.check();
        assert!(found.to_string().contains("decide can set the condition that branch tests"), "{found}");
        let [Hazard::UnorderedCondition { edge, .. }] = &found.findings[..] else { panic!("{found}") };
        assert_eq!(*edge, (decide.key(), branch.key()));
        graph.add_edge(&decide, &branch, EdgeKind::Full)?;
        assert_eq!(graph.check().to_string(), "no missing dependency was found");
        Ok(())
    });
}

#[test]
fn events_and_captures_order_what_they_order() {
    for_each_device(|device| {
        let (stream, other, event) = (device.stream()?, device.stream()?, device.event()?);
        let x = device.alloc::<i32>(4)?;
        let capture = |waits: bool| {
            let graph = stream.capture_scope(|capture| {
                let fork = capture.fork(2)?.remove(0);
                capture.memset(&x, 1i32)?;
                if waits {
                    stream.record(&event)?;
                    other.wait(&event)?;
                    other.memset(&x, 2i32)?;
                    other.record(&event)?;
                    stream.wait(&event)?;
                } else {
                    fork.memset(&x, 2i32)?;
                }
                capture.join([&fork])
            });
            graph.map(|graph| graph.check())
        };
        assert!(capture(true)?.is_empty());
        assert_eq!(capture(false)?.findings.len(), 1);
        Ok(())
    });
}
