//! Handles of another graph, or of a copy of this one, are refused in every use.

use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

/// A graph with a condition, memory and a node; a kernel of it sets the condition.
struct Parts {
    graph: Graph,
    condition: Condition,
    memory: AllocNode<i32>,
    node: Node,
}

impl Parts {
    fn new(kernels: &GraphKernels) -> Result<Self> {
        let graph = Graph::new(&kernels.device);
        let (condition, memory) = (graph.condition(None)?, graph.alloc::<i32>(1)?);
        let node = memory.memset(&memory, 0i32)?;
        let set = node.launch(&kernels.set_condition, LaunchConfig::one(), (&condition, &memory))?;
        set.free(&memory)?;
        Ok(Parts { graph, condition, memory, node })
    }
}

/// Asserts that no handle of `parts` can be used in `other`.
fn is_refused(kernels: &GraphKernels, parts: &Parts, other: &Graph) -> Result<()> {
    let (condition, memory) = (&parts.condition, &parts.memory);
    let before = other.to_json();
    let word = kernels.value(0)?;
    let wrong = |outcome: Result<()>| drop(refused(outcome, ErrorKind::WrongGraph, &[]));
    wrong(other.if_then(condition).map(drop));
    wrong(other.if_else(condition).map(drop));
    wrong(other.while_loop(condition).map(drop));
    wrong(other.switch(condition, 2).map(drop));
    wrong(other.launch(&kernels.set_condition, LaunchConfig::one(), (condition, &word)).map(drop));
    wrong(other.launch(&kernels.increase, LaunchConfig::one(), (memory, 1, 1)).map(drop));
    wrong(other.memset(memory, 1i32).map(drop));
    wrong(other.memcpy(&word, memory).map(drop));
    wrong(other.while_nonzero(memory).map(drop));
    wrong(other.free(memory).map(drop));
    wrong(other.join([&parts.node]).map(drop));
    assert_eq!(other.to_json(), before, "nothing was added");
    Ok(())
}

#[test]
fn handles_of_an_unrelated_graph_of_the_same_shape_are_refused() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (one, two) = (Parts::new(&kernels)?, Parts::new(&kernels)?);
        is_refused(&kernels, &one, &two.graph)?;
        is_refused(&kernels, &two, &one.graph)
    });
}

#[test]
fn handles_of_a_graph_are_refused_by_the_graph_of_its_executable() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let parts = Parts::new(&kernels)?;
        let executable = parts.graph.instantiate()?;
        let copy = executable.graph()?;
        is_refused(&kernels, &parts, &copy)?;
        is_refused(&kernels, &parts, &executable.graph()?)?;
        // Nor are those of the copy good for the graph. The executable takes them.
        let own = copy.condition(None)?;
        refused(parts.graph.if_then(&own), ErrorKind::WrongGraph, &[]);
        for node in copy.nodes() {
            refused(parts.graph.join([&node]), ErrorKind::WrongGraph, &[]);
            assert!(executable.node(&node)?.operation().kind() == node.kind()?);
        }
        Ok(())
    });
}

#[test]
fn handles_of_a_graph_are_refused_by_its_clones_and_where_it_was_embedded() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let parts = Parts::new(&kernels)?;
        let (clone, map) = parts.graph.deep_clone()?;
        is_refused(&kernels, &parts, &clone)?;
        let outer = Graph::new(device);
        let child = outer.embed(&parts.graph)?;
        is_refused(&kernels, &parts, &outer)?;
        for body in child.bodies()? {
            is_refused(&kernels, &parts, &body)?;
        }
        let condition = map.condition(&parts.condition).expect("it was copied");
        refused(parts.graph.if_then(&condition), ErrorKind::WrongGraph, &[]);
        clone.if_then(&condition).map(drop)
    });
}

#[test]
fn the_graph_of_an_executable_does_what_the_executable_does() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (result, left) = (kernels.value(0)?, kernels.value(0)?);
        let graph = Graph::new(device);
        let again = graph.condition(Some(1))?;
        let memory = graph.alloc::<i32>(1)?;
        let gone = graph.empty()?;
        let repeat = memory.memset(&memory, 5i32)?.while_loop(&again)?;
        kernels.bump(&repeat.body(), &result, 2)?.launch(
            &kernels.countdown,
            LaunchConfig::one(),
            (&again, &memory),
        )?;
        repeat.memcpy(&left, &memory)?.free(&memory)?;
        gone.delete()?;
        let copy = graph.instantiate()?.graph()?;
        assert_eq!(copy.to_json(), graph.to_json());
        let of_copy = copy.instantiate()?.graph()?;
        for graph in [&copy, &of_copy] {
            result.write(&[0])?;
            kernels.run(graph)?;
            assert_eq!((result.to_vec()?, left.to_vec()?), (vec![10], vec![0]));
        }
        Ok(())
    });
}
