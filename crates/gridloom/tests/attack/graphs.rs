//! Operations on graphs and their nodes.

use std::sync::Arc;

use gridloom::Body;
use gridloom::prelude::*;

use super::step::{LENGTHS, Operand, PASSES, Step, ends_soon, size, with_memory};
use super::{common, is_left_out};
use crate::support::is_cpu;

/// Adds any operation to a graph, or after a node.
pub(crate) fn add(step: &mut Step<'_>) -> Result<()> {
    if step.choices.one_in(3) {
        let node = step.node()?;
        let added = common::add(step, &node)?;
        step.keep_node(&added);
    } else {
        let graph = step.graph()?;
        let added = common::add(step, &graph)?;
        step.keep_node(&added);
    }
    Ok(())
}

/// Adds what only graphs have: allocations, embedded graphs, conditionals.
pub(crate) fn add_structure(step: &mut Step<'_>) -> Result<()> {
    let bodies = if step.choices.one_in(3) {
        let node = step.node()?;
        let graph = node.graph()?;
        match size(&graph) < 60 {
            true => structure(step, &node, Some(&graph))?,
            false => Vec::new(),
        }
    } else {
        let graph = step.graph()?;
        structure(step, &graph, Some(&graph))?
    };
    for body in bodies {
        if step.choices.one_in(3) {
            step.world.graphs.put(step.choices, body.clone());
        }
        let inside = common::add(step, &body)?;
        step.keep_node(&inside);
    }
    Ok(())
}

/// Ends a loop that nothing else may end. Some CPU devices end it themselves, when it has run too
/// many nodes.
fn bounded<B: Body>(step: &mut Step<'_>, made: While<B>) -> Result<While<B>> {
    if is_cpu(&step.world.device) && step.choices.one_in(8) {
        step.trace.note(format_args!("endless"));
        return Ok(made);
    }
    made.max_passes(PASSES)
}

/// Adds one to a graph, after a node, or to a capture, and returns the bodies of what it added.
pub(crate) fn structure<P: GraphOps>(
    step: &mut Step<'_>,
    place: &P,
    graph: Option<&Graph>,
) -> Result<Vec<P::Body>> {
    let kind = step.below(16);
    let name = match kind {
        1..=5 => "allocations",
        6 | 7 => "children",
        8 | 9 | 13 => "branches",
        10 | 12 | 14 => "loops",
        11 | 15 => "switches",
        _ => "",
    };
    if is_left_out(name) {
        return Ok(Vec::new());
    }
    let (node, bodies): (Node, Vec<P::Body>) = match kind {
        0 => (place.empty()?, Vec::new()),
        1..=3 => {
            let len = match step.choices.below(20) {
                0 => 0,
                1 => usize::MAX,
                2 => 1 << 40,
                3 => isize::MAX as usize / 4,
                _ => step.choices.pick(LENGTHS),
            };
            let kind = step.choices.pick(&[MemoryKind::Device, MemoryKind::Device, MemoryKind::Host]);
            let alloc = match step.choices.one_in(8) {
                true => place.alloc_for_peers::<i32>(len, kind, &[step.choices.below(3) as u32])?,
                false => place.alloc_in::<i32>(len, kind)?,
            };
            step.world.allocs.put(step.choices, alloc.clone());
            (alloc.into(), Vec::new())
        }
        4 | 5 => match step.operand()? {
            Operand::Buffer(buffer) => (place.free(&buffer)?, Vec::new()),
            Operand::Alloc(alloc) => (place.free(&alloc)?, Vec::new()),
            _ => match step.maybe(&step.world.allocs) {
                Some(alloc) => (place.free(&alloc)?, Vec::new()),
                None => return Ok(Vec::new()),
            },
        },
        6 | 7 => {
            let inner = step.graph()?;
            let node = place.embed(&inner)?;
            for body in node.bodies()? {
                step.world.graphs.put(step.choices, body);
            }
            (node, Vec::new())
        }
        8 => {
            let made = place.if_then(&step.condition(graph)?)?;
            (made.node().clone(), vec![made.into_body()])
        }
        9 => {
            let made = place.if_else(&step.condition(graph)?)?;
            let (node, (then, otherwise)) = (made.node().clone(), made.into_bodies());
            (node, vec![then, otherwise])
        }
        10 => {
            let made = place.while_loop(&step.condition(graph)?)?;
            let made = bounded(step, made)?;
            (made.node().clone(), vec![made.into_body()])
        }
        11 => {
            let cases = step.choices.below(4);
            let made = place.switch(&step.condition(graph)?, cases)?;
            (made.node().clone(), made.into_bodies())
        }
        12 => {
            let made = place.repeat(step.choices.below(4) as u64)?;
            (made.node().clone(), vec![made.into_body()])
        }
        13 => {
            let value = step.one()?;
            let made = with_memory!(&value, |value| place.if_nonzero(value))?;
            (made.node().clone(), vec![made.into_body()])
        }
        14 => {
            let value = step.one()?;
            let made = match step.choices.one_in(2) {
                true => with_memory!(&value, |value| place.while_nonzero(value))?,
                false => with_memory!(&value, |value| place.do_while(value))?,
            };
            let made = bounded(step, made)?;
            (made.node().clone(), vec![made.into_body()])
        }
        _ => {
            let value = step.one()?;
            if step.choices.one_in(2) {
                let made = with_memory!(&value, |value| place.if_else_nonzero(value))?;
                let (node, (then, otherwise)) = (made.node().clone(), made.into_bodies());
                (node, vec![then, otherwise])
            } else {
                let made = with_memory!(&value, |value| place.switch_on(value, 2))?;
                (made.node().clone(), made.into_bodies())
            }
        }
    };
    step.keep_node(&node);
    Ok(bodies)
}

fn edge_kind(step: &mut Step<'_>) -> EdgeKind {
    if step.choices.one_in(3) && !is_left_out("programmatic") {
        EdgeKind::Programmatic
    } else {
        EdgeKind::Full
    }
}

/// Changes or asks one node.
pub(crate) fn node(step: &mut Step<'_>) -> Result<()> {
    let node = step.node()?;
    match step.below(18) {
        0 => node.set_name("named by the attack"),
        1 => node.named("another name").map(drop),
        2 => node.predecessors().map(drop),
        3 => node.successors().map(drop),
        4 => {
            let _ = (node.label(), node.is_valid(), format!("{node:?}"));
            node.kind().map(drop)
        }
        5 => {
            // What it holds outlives the node here.
            let operation = node.operation()?;
            let _ = format!("{operation:?}");
            Ok(())
        }
        6 => {
            for body in node.bodies()? {
                step.world.graphs.put(step.choices, body);
            }
            Ok(())
        }
        7 => {
            let _ = (
                node.as_if().is_ok(),
                node.as_if_else().is_ok(),
                node.as_switch().is_ok(),
                node.event().is_ok(),
            );
            let alloc = node.as_alloc::<i32>()?;
            step.world.allocs.put(step.choices, alloc);
            Ok(())
        }
        8 => node.set_max_passes(Some(step.choices.below(4) as u64)),
        9 | 10 => {
            let other = step.node()?;
            let kind = edge_kind(step);
            node.after_with([&other], kind)
        }
        11 | 12 => node.delete(),
        13 => node.set_child(&step.graph()?),
        14 => {
            let _ = node.key();
            node.as_while().map(drop)
        }
        _ => edit(step, &node),
    }
}

/// Changes the parameters of a node. Nodes of definitions and of executables have the same methods.
macro_rules! edit {
    ($step:ident, $node:ident) => {{
        let kernels = &$step.world.kernels;
        match $step.below(14) {
            0 | 1 => {
                let operand = $step.operand()?;
                let (len, by) = (operand.len(), $step.choices.i32());
                with_memory!(&operand, |x| $node.set_args(&kernels.increase, (x, len, by)))
            }
            2 => {
                let operand = $step.operand()?;
                let len = operand.len() + usize::from($step.choices.one_in(6));
                with_memory!(&operand, |x| $node.set_kernel(&kernels.mix, (x, x, len)))
            }
            3 => {
                let len = $step.choices.pick(LENGTHS);
                $node.set_config($step.config(len))
            }
            4 => {
                let (dst, src) = ($step.buffer()?, $step.buffer()?);
                $node.set_memcpy(&dst, &src)
            }
            5 => {
                let dst = $step.operand()?;
                let values = vec![4; dst.len()];
                with_memory!(&dst, |dst| $node.set_memcpy(dst, &values))
            }
            6 => {
                let (dst, value) = ($step.operand()?, $step.choices.i32());
                with_memory!(&dst, |dst| $node.set_memset(dst, value))
            }
            7 => $node.set_callback($step.callback()),
            8 => {
                let (memory, mut callback) = ($step.buffer()?, $step.callback());
                $node.set_callback_with(&memory, move |_| callback())
            }
            9 => {
                let value = $step.one()?;
                with_memory!(&value, |value| $node.set_tested(value))
            }
            10 => $node.set_passes($step.choices.below(4) as u64),
            11 => $node.set_max_passes(Some($step.choices.below(4) as u64)),
            12 => $node.set_event(&$step.event()?),
            _ => {
                let operation = $step.node()?.operation()?;
                $node.set_operation(operation)
            }
        }
    }};
}

fn edit(step: &mut Step<'_>, node: &Node) -> Result<()> {
    edit!(step, node)
}

pub(crate) fn edit_executable(step: &mut Step<'_>, node: &ExecutableNode<'_>) -> Result<()> {
    edit!(step, node)
}

/// Changes or asks a whole graph.
pub(crate) fn graph(step: &mut Step<'_>) -> Result<()> {
    let graph = step.graph()?;
    match step.below(15) {
        0 => {
            let (copy, map) = graph.deep_clone()?;
            for (original, copied) in map.iter() {
                assert_ne!(original, copied);
                assert_eq!(map.get(&original).as_ref(), Some(&copied));
            }
            step.world.graphs.put(step.choices, copy);
            Ok(())
        }
        1 => {
            let other = step.graph()?;
            let _ = graph.diff(&other).iter().map(ToString::to_string).collect::<Vec<_>>();
            Ok(())
        }
        2 | 3 => {
            let (from, to) = (step.node()?, step.node()?);
            let kind = edge_kind(step);
            graph.add_edge(&from, &to, kind)
        }
        4 => {
            // One of its own.
            let edges = graph.edges();
            match edges.get(step.choices.below(edges.len().max(1))) {
                Some((from, to, _)) => graph.remove_edge(from, to).map(drop),
                None => graph.remove_edge(&step.node()?, &step.node()?).map(drop),
            }
        }
        5 => {
            let nodes = graph.nodes();
            step.choices.below(3);
            let joined = graph.join(nodes.iter().take(4))?;
            step.keep_node(&joined);
            Ok(())
        }
        6 => {
            let nodes = graph.nodes();
            match nodes.get(step.choices.below(nodes.len().max(1))) {
                Some(node) => node.delete(),
                None => Ok(()),
            }
        }
        7 => {
            let condition = step.condition(Some(&graph))?;
            let _ = (condition.is_valid(), condition.default_value(), condition.used_by());
            let _ = (condition.belongs_to(&graph), condition.key(), format!("{condition:?}"));
            Ok(())
        }
        8 => {
            let taken = step.world.graphs.take(step.choices);
            drop(taken);
            Ok(())
        }
        9 => {
            let found = graph.check();
            let _ = (found.to_string(), found.is_empty(), found.unknown);
            Ok(())
        }
        10 | 11 => {
            let (weak, nodes) = (graph.downgrade(), graph.nodes());
            let weak_nodes: Vec<_> = nodes.iter().map(Node::downgrade).collect();
            drop((graph, nodes));
            for node in weak_nodes.iter().filter_map(|node| node.upgrade()).take(3) {
                step.keep_node(&node);
            }
            if let Some(graph) = weak.upgrade() {
                step.world.graphs.put(step.choices, graph);
            }
            Ok(())
        }
        _ => check(&graph),
    }
}

/// A copy of a graph is consistent, whatever others do to the graph meanwhile.
fn check(graph: &Graph) -> Result<()> {
    let _ = (graph.is_empty(), graph.owner().map(|owner| owner.label()), format!("{graph:?}"));
    let _ = (graph.to_dot(), graph.to_mermaid(), graph.to_json());
    let (copy, _) = graph.deep_clone()?;
    let nodes = copy.nodes();
    assert_eq!(nodes.len(), copy.len());
    for (from, to, _) in copy.edges() {
        assert!(nodes.contains(&from) && nodes.contains(&to));
        assert!(from.successors()?.contains(&to) && to.predecessors()?.contains(&from));
    }
    // What was not a cycle in the graph is none in its copy.
    for node in &nodes {
        let before = node.predecessors()?;
        assert!(before.iter().all(|before| nodes.contains(before)));
    }
    Ok(())
}

/// Makes an executable.
pub(crate) fn instantiate(step: &mut Step<'_>) -> Result<()> {
    let graph = step.graph()?;
    let modes =
        [ConditionalMode::Auto, ConditionalMode::Auto, ConditionalMode::Hosted, ConditionalMode::Native];
    let mut options = InstantiateOptions::new()
        .auto_free_on_launch(step.choices.one_in(2))
        .node_priority(step.choices.one_in(4))
        .conditional_mode(step.choices.pick(&modes))
        .count_passes(step.choices.one_in(2))
        .device_launch(step.choices.one_in(16) && !is_left_out("device-launch"));
    if step.choices.one_in(8) && !is_left_out("uploads") {
        options = options.upload(&step.stream()?);
    }
    let executable = graph.instantiate_with(&options)?;
    if !ends_soon(&executable)? {
        return Ok(());
    }
    step.world.executables.put(step.choices, Arc::new(executable));
    Ok(())
}
