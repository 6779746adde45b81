//! Flattening and cutting, without a driver.

use super::super::modes::{Capabilities, Modes};
use super::super::testing::Sketch;
use super::*;
use crate::version::CudaVersion;
use gridloom_core::executable::ConditionalMode;
use gridloom_core::graph::Node;

fn program(sketch: &Sketch, mode: ConditionalMode) -> Program {
    let capabilities = Capabilities::at(CudaVersion::new(13, 0));
    Modes::decide(&sketch.definition(), &FxHashSet::default(), mode, capabilities).unwrap().1
}

/// The steps of a program that is one graph: origin and what each waits for.
fn only_graph(program: &Program) -> &[Step] {
    match program.parts.as_slice() {
        [Part::Graph(steps)] => steps,
        parts => panic!("{} parts", parts.len()),
    }
}

fn waits_for(steps: &[Step], node: &Node) -> Vec<NodeKey> {
    let step = steps.iter().find(|step| step.origin == node.key() && !matches!(step.work, Work::Join));
    let mut before: Vec<NodeKey> =
        step.unwrap().after.iter().map(|&(index, _)| steps[index as usize].origin).collect();
    before.sort();
    before
}

#[test]
fn an_empty_graph_is_an_empty_program() {
    assert!(program(&Sketch::new(), ConditionalMode::Auto).parts.is_empty());
}

#[test]
fn a_chain_keeps_its_edges() {
    let sketch = Sketch::new();
    let a = sketch.kernel(&[], &[]);
    let b = sketch.kernel(&[&a], &[]);
    let program = program(&sketch, ConditionalMode::Auto);
    let steps = only_graph(&program);
    assert_eq!(waits_for(steps, &a), []);
    assert_eq!(waits_for(steps, &b), [a.key()]);
}

#[test]
fn a_disabled_node_keeps_the_order_of_those_around_it() {
    let sketch = Sketch::new();
    let a = sketch.kernel(&[], &[]);
    let b = sketch.kernel(&[&a], &[]);
    let c = sketch.kernel(&[&b], &[]);
    let disabled = FxHashSet::from_iter([b.key()]);
    let program = Program::new(&sketch.definition(), &Modes::default(), &disabled);
    let steps = only_graph(&program);
    assert_eq!(steps.len(), 2);
    assert_eq!(waits_for(steps, &c), [a.key()]);
}

#[test]
fn a_programmatic_edge_between_kernels_survives() {
    let sketch = Sketch::new();
    let a = sketch.kernel(&[], &[]);
    let b = sketch.kernel(&[], &[]);
    sketch.make_programmatic(&a, &b);
    let program = program(&sketch, ConditionalMode::Auto);
    let steps = only_graph(&program);
    let b = steps.iter().find(|step| step.origin == b.key()).unwrap();
    assert_eq!(b.after.as_slice(), [(0, EdgeKind::Programmatic)]);
}

#[test]
fn a_hosted_conditional_cuts_the_graph_in_two() {
    let sketch = Sketch::new();
    let before = sketch.kernel(&[], &[]);
    let (repeat, body) = sketch.repeat_in(&sketch.graph, &[&before], 3);
    sketch.kernel_in(&body, &[], &[]);
    let after = sketch.kernel(&[&repeat], &[]);
    let program = program(&sketch, ConditionalMode::Hosted);
    let [Part::Graph(first), Part::Hosted { node, bodies }, Part::Graph(second)] = program.parts.as_slice()
    else {
        panic!("{:?}", program.parts);
    };
    assert_eq!(first[0].origin, before.key());
    assert_eq!(*node, repeat.key());
    assert_eq!(only_graph(&bodies[0]).len(), 1);
    assert_eq!(second[0].origin, after.key());
    // The stream keeps the order of the two graphs.
    assert!(second[0].after.is_empty());
}

#[test]
fn work_that_does_not_depend_on_a_hosted_conditional_runs_before_it() {
    let sketch = Sketch::new();
    let (_repeat, body) = sketch.repeat_in(&sketch.graph, &[], 3);
    sketch.kernel_in(&body, &[], &[]);
    let beside = sketch.kernel(&[], &[]);
    let program = program(&sketch, ConditionalMode::Hosted);
    let [Part::Graph(first), Part::Hosted { .. }] = program.parts.as_slice() else {
        panic!("{:?}", program.parts);
    };
    assert_eq!(first[0].origin, beside.key());
}

#[test]
fn every_step_comes_after_what_it_waits_for_whatever_the_graph() {
    // A lattice with hosted and native conditionals sprinkled in.
    let sketch = Sketch::new();
    let mut rows: Vec<Vec<Node>> = Vec::new();
    for row in 0..6 {
        let nodes = (0..4)
            .map(|column| {
                let after: Vec<&Node> = match rows.last() {
                    Some(last) => last.iter().skip(column % 2).step_by(2).collect(),
                    None => Vec::new(),
                };
                if (row + column) % 3 == 0 {
                    let (node, body) = sketch.repeat_in(&sketch.graph, &after, 2);
                    sketch.callback_in(&body, &[]);
                    node
                } else {
                    sketch.kernel(&after, &[])
                }
            })
            .collect();
        rows.push(nodes);
    }
    let program = program(&sketch, ConditionalMode::Auto);
    let mut seen = std::collections::HashSet::new();
    let definition = sketch.definition();
    let mut arrive = |node: NodeKey| {
        for edge in definition.node(node).predecessors() {
            assert!(
                seen.contains(&edge.node),
                "{} before {}",
                definition.label(node),
                definition.label(edge.node)
            );
        }
        seen.insert(node);
    };
    for part in &program.parts {
        match part {
            Part::Graph(steps) => {
                for (index, step) in steps.iter().enumerate() {
                    assert!(step.after.iter().all(|&(before, _)| (before as usize) < index));
                    arrive(step.origin);
                }
            }
            Part::Hosted { node, .. } => arrive(*node),
        }
    }
    assert_eq!(seen.len(), 24);
}
