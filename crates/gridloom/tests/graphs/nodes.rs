//! Nodes of each kind.

use gridloom::op::{ConditionalForm, FreeTarget, Operation, Test};
use gridloom::prelude::*;
use smallvec::smallvec;

use crate::support::{GraphKernels, for_each_device, refused};

/// A graph with one node of every kind and variant, and the kind expected of each.
fn every_node(kernels: &GraphKernels) -> Result<(Graph, Vec<(Node, NodeKind)>)> {
    let device = &kernels.device;
    let graph = Graph::new(device);
    let buffer = device.alloc::<u32>(16)?;
    let event = device.event()?;
    let conditions: Vec<Condition> =
        (0..4).map(|value| graph.condition(Some(value))).collect::<Result<_>>()?;
    let value = kernels.value(0)?;
    let child = Graph::new(device);
    child.memset(&buffer, 0u8)?;
    let alloc = graph.alloc::<f32>(8)?;
    let host_alloc = graph.alloc_in::<u8>(3, MemoryKind::Host)?;
    // SAFETY: the function ignores its argument.
    let raw = unsafe { graph.callback_raw(ignore, &[1, 2, 3])? };
    let nodes = vec![
        (graph.empty()?, NodeKind::Empty),
        (graph.join([])?, NodeKind::Empty),
        (graph.launch(&kernels.increase, LaunchConfig::new(3, 32), (&value, 1, 5))?, NodeKind::Kernel),
        ((*alloc).clone(), NodeKind::Alloc),
        ((*host_alloc).clone(), NodeKind::Alloc),
        ((*graph.alloc_in::<u8>(3, MemoryKind::Managed)?).clone(), NodeKind::Alloc),
        (graph.free(&alloc)?, NodeKind::Free),
        (graph.memset(&buffer, 7u8)?, NodeKind::Memset),
        (graph.memset(&buffer, 7u16)?, NodeKind::Memset),
        (graph.memset(&buffer, 7u32)?, NodeKind::Memset),
        (graph.memset_2d(buffer.rows(4)?, 9u32, 3, 2)?, NodeKind::Memset),
        (graph.memcpy(&buffer.slice(..8)?, &buffer.slice(8..)?)?, NodeKind::Memcpy),
        (graph.memcpy(&buffer, &[1u32; 16])?, NodeKind::Memcpy),
        (graph.memcpy_2d(buffer.rows(2)?, buffer.slice(8..)?.rows(4)?, 1, 2)?, NodeKind::Memcpy),
        (graph.embed(&child)?, NodeKind::Child),
        (graph.callback(|| ())?, NodeKind::Callback),
        (raw, NodeKind::Callback),
        (graph.record(&event)?, NodeKind::EventRecord),
        (graph.wait(&event)?, NodeKind::EventWait),
        ((*graph.if_then(&conditions[0])?).clone(), NodeKind::If),
        ((*graph.if_else(&conditions[1])?).clone(), NodeKind::IfElse),
        ((*graph.while_loop(&conditions[2])?).clone(), NodeKind::While),
        ((*graph.switch(&conditions[3], 5)?).clone(), NodeKind::Switch),
        ((*graph.if_nonzero(&value)?).clone(), NodeKind::If),
        ((*graph.repeat(3)?).clone(), NodeKind::While),
    ];
    Ok((graph, nodes))
}

extern "C" fn ignore(_: *mut std::ffi::c_void) {}

#[test]
fn every_node_knows_its_kind_also_after_travelling() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (graph, nodes) = every_node(&kernels)?;
        let kinds: Vec<NodeKind> = nodes.iter().map(|(_, kind)| *kind).collect();
        // An opaque node is made by capturing foreign code only.
        let made = NodeKind::ALL.iter().filter(|kind| **kind != NodeKind::Opaque);
        assert!(made.into_iter().all(|kind| kinds.contains(kind)));
        for (node, kind) in &nodes {
            assert_eq!(node.kind()?, *kind, "{node:?}");
            assert_eq!(node.graph()?, graph);
            assert!(graph.nodes().contains(node));
        }
        let (copy, map) = graph.deep_clone()?;
        let embedded = Graph::new(device);
        let child = embedded.embed(&graph)?;
        assert_eq!(copy.len(), graph.len());
        assert_eq!(child.bodies()?[0].len(), graph.len());
        for (node, kind) in &nodes {
            assert_eq!(map.get(node).expect("copied").kind()?, *kind);
        }
        let travelled: Vec<NodeKind> =
            child.bodies()?[0].nodes().iter().map(Node::kind).collect::<Result<_>>()?;
        let original: Vec<NodeKind> = graph.nodes().iter().map(Node::kind).collect::<Result<_>>()?;
        assert_eq!(travelled, original);
        Ok(())
    });
}

#[test]
fn a_kernel_node_reads_back_its_kernel_shape_and_arguments() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.buffer(&[0; 7])?;
        let config = LaunchConfig::new((3, 2), 64).shared(128).priority(-1);
        let node = Graph::new(device).launch(&kernels.increase, config, (&value, 7, -5))?;
        let Operation::Kernel(kernel) = node.operation()? else { panic!("{node:?}") };
        assert_eq!((kernel.kernel().name(), kernel.config()), ("increase", &config));
        assert_eq!(kernel.args().value(0), Some(&value.address()?.to_ne_bytes()[..]));
        assert_eq!(kernel.args().value(1), Some(&7u32.to_ne_bytes()[..]));
        assert_eq!(kernel.args().value(2), Some(&(-5i32).to_ne_bytes()[..]));
        assert_eq!(kernel.args().value(3), None);
        Ok(())
    });
}

#[test]
fn alloc_fill_and_copy_nodes_read_back_their_parameters() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let buffer = device.alloc::<u16>(40)?;
        let alloc = graph.alloc_for_peers::<f64>(5, MemoryKind::Device, &[])?;
        let Operation::Alloc(op) = alloc.operation()? else { panic!("{alloc:?}") };
        assert_eq!((op.len, op.element_size, op.kind, op.bytes()), (5, 8, MemoryKind::Device, 40));
        assert_eq!(op.peers, smallvec![0u32; 0] as smallvec::SmallVec<[u32; 2]>);

        let free = graph.free(&alloc)?;
        let Operation::Free(FreeTarget::AllocNode(key)) = free.operation()? else { panic!("{free:?}") };
        assert_eq!(key, alloc.key());
        assert_eq!(free.predecessors()?, [(*alloc).clone()]);

        let memset = graph.memset_2d(buffer.slice(2..)?.rows(10)?, 0xabcdu16, 6, 3)?;
        let Operation::Memset(op) = memset.operation()? else { panic!("{memset:?}") };
        assert_eq!((op.value, op.element_size, op.width, op.height, op.pitch), (0xabcd, 2, 6, 3, 20));
        assert_eq!((op.dst.offset, op.dst.bytes), (4, 76));

        let memcpy = graph.memcpy_3d(buffer.planes(3, 2)?, buffer.slice(20..)?.planes(4, 2)?, [2, 2, 2])?;
        let Operation::Memcpy(op) = memcpy.operation()? else { panic!("{memcpy:?}") };
        assert_eq!((op.width, op.height, op.depth), (4, 2, 2));
        assert_eq!((op.dst.pitch, op.dst.rows, op.dst.region.offset), (6, 2, 0));
        assert_eq!((op.src.pitch, op.src.rows, op.src.region.offset), (8, 2, 40));
        Ok(())
    });
}

#[test]
fn event_nodes_read_back_their_events_with_all_options() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        for (timing, blocking) in [(true, false), (false, true), (false, false), (true, true)] {
            let event = device.event_with(EventOptions::new().timing(timing).blocking(blocking))?;
            for node in [graph.record(&event)?, graph.wait(&event)?] {
                let held = node.event()?;
                assert_eq!(
                    (&held, held.options()),
                    (&event, EventOptions::new().timing(timing).blocking(blocking))
                );
            }
        }
        Ok(())
    });
}

#[test]
fn conditional_nodes_read_back_form_test_and_bodies() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        let condition = graph.condition(Some(2))?;
        let switch = graph.switch(&condition, 4)?;
        let until = graph.do_while(&value)?.max_passes(9)?;
        let repeat = graph.repeat(12)?;
        let forms = [
            (&*switch, ConditionalForm::Switch, true, None, 4),
            (&*until, ConditionalForm::While, false, Some(9), 1),
            (&*repeat, ConditionalForm::While, true, None, 1),
        ];
        for (node, form, test_first, limit, bodies) in forms {
            let Operation::Conditional(op) = node.operation()? else { panic!("{node:?}") };
            assert_eq!(
                (op.form, op.test_first, op.max_passes, op.bodies.len()),
                (form, test_first, limit, bodies)
            );
            assert_eq!(node.bodies()?.len(), bodies);
            for body in node.bodies()? {
                assert_eq!((body.owner().as_ref(), body.is_empty()), (Some(node), true));
            }
            match &op.test {
                Test::Condition(key) => assert_eq!(*key, condition.key()),
                Test::Value(region) => assert_eq!((region.offset, region.bytes), (0, 4)),
                Test::Count(count) => assert_eq!(*count, 12),
            }
        }
        assert_eq!(condition.used_by().as_ref(), Some(&*switch));
        assert_eq!(condition.default_value(), Some(2));
        Ok(())
    });
}

#[test]
fn nodes_have_the_name_they_were_given_or_one_of_kind_and_number() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let graph = Graph::new(device);
        assert_eq!(graph.empty()?.label(), "empty#0");
        let bump = kernels.bump(&graph, &value, 1)?;
        assert_eq!(bump.label(), "kernel#1 increase");
        assert_eq!(bump.named("relax")?.label(), "relax");
        assert_eq!(format!("{bump:?}"), "Node(relax)");
        let alloc = graph.alloc::<i32>(1)?.named("rod")?;
        assert_eq!(graph.free(&alloc)?.label(), "free#3 of rod");
        let switch = graph.switch(&graph.condition(None)?, 2)?;
        assert_eq!(switch.body(1)?.empty()?.label(), "switch#4[1]/empty#0");
        let repeat = graph.repeat(1)?.named("again")?;
        assert_eq!(kernels.bump(&repeat.body(), &value, 1)?.label(), "again/kernel#0 increase");
        Ok(())
    });
}

#[test]
fn launches_that_no_device_can_run_are_refused_at_the_call() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let limits = device.limits().clone();
        let graph = Graph::new(device);
        let launch = |config: LaunchConfig| graph.launch(&kernels.increase, config, (&value, 1, 1));
        let too_many = limits.max_threads_per_block + 1;
        let cases = [
            (LaunchConfig::new(0, 1), "at least 1"),
            (LaunchConfig::new(1, (1, 0)), "at least 1"),
            (LaunchConfig::new((1, 1, 0), 1), "at least 1"),
            (LaunchConfig::linear(0), "at least 1"),
            (LaunchConfig::new(1, too_many), "at most"),
            (LaunchConfig::new(1, (limits.max_threads_per_block / 2, 3)), "threads"),
            (LaunchConfig::new((1, limits.max_grid.y.saturating_add(1)), 1), "at most"),
            (LaunchConfig::new(1, (1, 1, limits.max_block.z + 1)), "along z"),
            (LaunchConfig::new(1, 1).shared(limits.max_shared_per_block + 1), "shared memory"),
            (LaunchConfig::new(3, 1).cluster(2), "clusters"),
            (LaunchConfig::new(4, 1).cluster(0), "clusters"),
        ];
        for (config, says) in cases {
            if config.grid.y == limits.max_grid.y {
                continue; // there is no larger grid
            }
            refused(launch(config), ErrorKind::InvalidArgument, &["increase", says]);
        }
        assert!(graph.is_empty(), "a refused node is not added");
        Ok(())
    });
}

#[test]
fn an_allocation_of_nothing_is_refused() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        refused(graph.alloc::<i32>(0), ErrorKind::InvalidArgument, &["at least 1"]);
        refused(graph.alloc::<u64>(usize::MAX), ErrorKind::InvalidArgument, &["address space"]);
        assert!(graph.is_empty());
        Ok(())
    });
}

#[test]
fn a_switch_of_no_bodies_and_a_test_of_many_values_are_refused() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let condition = graph.condition(None)?;
        refused(graph.switch(&condition, 0), ErrorKind::InvalidArgument, &["without bodies"]);
        refused(graph.switch(&condition, 1 << 20), ErrorKind::InvalidArgument, &["at most"]);
        let two = device.alloc::<i32>(2)?;
        refused(graph.while_nonzero(&two), ErrorKind::InvalidArgument, &["one integer", "2"]);
        refused(graph.switch_on(&two.slice(..0)?, 2), ErrorKind::InvalidArgument, &["one integer"]);
        graph.if_nonzero(&two.slice(1..)?)?;
        refused(graph.switch(&condition, 2)?.body(2), ErrorKind::InvalidArgument, &["2 bodies", "no body 2"]);
        Ok(())
    });
}
