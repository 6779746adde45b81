//! Handles: identity, threads, lifetimes, and handles of deleted objects.

use std::collections::{HashMap, HashSet};

use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

#[test]
fn handles_are_the_same_from_every_query() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let a = graph.empty()?;
        let b = a.empty()?;
        assert_eq!(graph.nodes()[0], a);
        assert_eq!(b.predecessors()?[0], a);
        assert_eq!(a.graph()?, graph);
        assert_ne!(a, b);
        let names: HashMap<Node, &str> = [(a.clone(), "a"), (b.clone(), "b")].into();
        assert_eq!(names[&graph.nodes()[1]], "b");
        let conditions: HashSet<Condition> = [graph.condition(None)?, graph.condition(None)?].into();
        assert_eq!(conditions.len(), 2);
        let graphs: HashSet<Graph> = [graph.clone(), b.graph()?, Graph::new(device)].into();
        assert_eq!(graphs.len(), 2);
        Ok(())
    });
}

#[test]
fn handles_may_be_used_from_other_threads() {
    fn shared<T: Send + Sync + Clone + Eq + std::hash::Hash + std::fmt::Debug>() {}
    shared::<Graph>();
    shared::<Node>();
    shared::<Condition>();
    shared::<Stream>();
    shared::<Event>();
    fn sent<T: Send + Sync + std::fmt::Debug>() {}
    sent::<Device>();
    sent::<Executable>();
    sent::<Buffer<f32>>();
    sent::<Module>();
    sent::<Kernel<(PtrMut<f32>, Len<u32>)>>();
    sent::<Error>();
    for_each_device(|device| {
        let graph = Graph::new(device);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        graph.empty().and_then(|node| node.empty()).expect("a node");
                    }
                });
            }
        });
        assert_eq!((graph.len(), graph.edges().len()), (400, 200));
        Ok(())
    });
}

#[test]
fn a_node_keeps_its_graph_alive_and_a_body_the_whole_hierarchy() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(0)?;
        let node = Graph::new(device).empty()?;
        assert_eq!(node.graph()?.len(), 1);
        let body = Graph::new(device).repeat(3)?.body();
        kernels.bump(&body, &value, 2)?;
        let root = body.owner().expect("a body").graph()?;
        kernels.run(&root)?;
        assert_eq!(value.to_vec()?, [6]);
        Ok(())
    });
}

#[test]
fn a_deleted_nodes_handle_is_a_key_and_nothing_else() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let (node, other) = (graph.empty()?, graph.empty()?);
        let seen: HashSet<Node> = [node.clone()].into();
        node.delete()?;
        assert!(!node.is_valid() && other.is_valid());
        assert!(seen.contains(&node) && node != other);
        let deleted = |result: Result<()>| refused(result, ErrorKind::InvalidHandle, &["deleted"]);
        deleted(node.delete());
        deleted(node.kind().map(drop));
        deleted(node.operation().map(drop));
        deleted(node.graph().map(drop));
        deleted(node.predecessors().map(drop));
        deleted(node.successors().map(drop));
        deleted(node.bodies().map(drop));
        deleted(node.set_name("again"));
        deleted(node.empty().map(drop));
        deleted(node.after([&other]));
        deleted(graph.join([&node]).map(drop));
        deleted(graph.add_edge(&node, &other, EdgeKind::Full));
        deleted(graph.remove_edge(&other, &node).map(drop));
        assert!(format!("{node:?}").contains("deleted"));
        // A node that takes the place of a deleted one is another node.
        let replacement = graph.empty()?;
        assert!(replacement != node && !node.is_valid());
        Ok(())
    });
}

#[test]
fn deleting_a_conditional_invalidates_the_handles_inside_it() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let condition = graph.condition(Some(1))?;
        let choice = graph.if_else(&condition)?;
        let (body, other) = (choice.then_body(), choice.else_body());
        let inner_condition = body.condition(None)?;
        let inner = body.while_loop(&inner_condition)?;
        let deep = inner.body().empty()?;
        choice.delete()?;
        assert!(!body.is_valid() && !other.is_valid() && !inner.is_valid() && !deep.is_valid());
        refused(body.empty(), ErrorKind::InvalidHandle, &["deleted"]);
        refused(deep.empty(), ErrorKind::InvalidHandle, &["deleted"]);
        refused(body.instantiate(), ErrorKind::InvalidHandle, &["deleted"]);
        assert!(!choice.then_body().is_valid());
        // The condition of the graph around is free for another node.
        assert_eq!(condition.used_by(), None);
        graph.while_loop(&condition)?;
        Ok(())
    });
}

#[test]
fn debug_output_says_what_a_handle_is() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let node = graph.empty()?.empty()?;
        assert!(format!("{graph:?}").contains("2 nodes, 1 edges"), "{graph:?}");
        assert_eq!(format!("{node:?}"), "Node(empty#1)");
        assert!(format!("{:?}", graph.condition(Some(3))?).contains("Some(3)"));
        assert!(format!("{:?}", graph.instantiate()?).contains("2 nodes"));
        assert!(format!("{:?}", device.alloc::<f32>(4)?).contains("16 bytes"));
        Ok(())
    });
}
