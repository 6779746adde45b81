//! Loops: a loop whose body fits one block becomes one kernel.
//!
//! Rule: everything in the body can be a step, and the steps run in an order that the body's edges
//! allow. The loop runs once per launch, so that its passes can be counted by what it stores. If it
//! tests a condition, no other conditional is around the loop, and only kernels of the body receive
//! the condition and no other. The condition then has its default value when the loop starts, and
//! nothing else observes it.

use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::memory::{Base, MemoryKind};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Graph, Result};

use super::chains::{Run, ends, step};
use super::fusion::Form;
use super::plan::{Context, has_full_edges};
use crate::rewrite::{LoopTest, Looping, block_program};

struct Found {
    node: NodeKey,
    looping: Looping,
    run: Run,
}

pub(super) fn run(context: &mut Context, graph: &Graph) -> Result<()> {
    let definition = graph.definition();
    let mut found = Vec::new();
    for node in definition.nodes(graph.key()) {
        let Operation::Conditional(conditional) = definition.node(node).operation() else { continue };
        if conditional.form != ConditionalForm::While || context.survey.pinned.contains(&node) {
            continue;
        }
        match look(context, &definition, node, conditional) {
            Ok(it) => found.push(it),
            Err(reason) => context.survey.note(node, reason),
        }
    }
    drop(definition);
    for Found { node, looping, run } in found {
        let passes = context.device.allocate(8, MemoryKind::Device)?;
        context.device.write(&*passes, 0, &[0; 8])?;
        let form = Form::Loop { node, passes };
        let outcome = match block_program(&run.steps(), Some(looping), context.limit()) {
            Ok(program) => context.fuse(graph, &program, form, &run.nodes, run.shared(), &[node])?,
            Err(reason) => Err(reason),
        };
        match outcome {
            Ok(()) => {
                let (name, steps) = (context.original.label(node), ends(context, &run.nodes));
                let count = run.nodes.len() as f64;
                context.plan.done.push(format!(
                    "loops: {name} with {steps} inside is one kernel, about {:.1} µs a pass instead of {:.1}",
                    0.3 + 0.19 * count,
                    3.8 + 0.83 * count
                ));
            }
            Err(reason) => context.survey.note(node, reason),
        }
    }
    Ok(())
}

fn look(
    context: &Context,
    definition: &Definition,
    node: NodeKey,
    conditional: &ConditionalOp,
) -> std::result::Result<Found, String> {
    if !has_full_edges(definition, node) {
        return Err("it has programmatic edges".into());
    }
    if is_inside_conditional(definition, node) {
        return Err("it is inside another conditional, and may run several times in a launch".into());
    }
    let test = match &conditional.test {
        Test::Count(_) => LoopTest::Count,
        Test::Value(region) => {
            let on_device = match &region.base {
                Base::Allocation(allocation) => allocation.kind() != MemoryKind::Host,
                Base::AllocNode(_) => true,
                Base::Bytes(_) => false,
            };
            if !on_device {
                return Err("the value that it tests is in memory of the host".into());
            }
            LoopTest::Value
        }
        Test::Condition(_) => LoopTest::Condition,
    };
    let body = conditional.bodies[0];
    let mut run = Run::default();
    for &key in definition.topological(body).iter() {
        let inner = definition.node(key);
        if matches!(inner.operation(), Operation::Empty) && has_full_edges(definition, key) {
            continue;
        }
        if !has_full_edges(definition, key) {
            return Err("its body has programmatic edges".into());
        }
        let label = || definition.label(key);
        let candidate = step(context, definition, key)
            .ok_or_else(|| format!("its body does not fit one block: {} cannot be a step of one", label()))?;
        if !run.push(key, candidate, context.limit()) {
            return Err(format!("its body does not fit one block: {} does not go with the others", label()));
        }
    }
    if run.nodes.is_empty() {
        return Err("its body does nothing".into());
    }
    check_conditions(definition, &run, conditional)?;
    Ok(Found { node, looping: Looping { test, test_first: conditional.test_first }, run })
}

/// Returns whether a node is inside a conditional.
fn is_inside_conditional(definition: &Definition, node: NodeKey) -> bool {
    let mut graph = definition.node(node).graph();
    while let Some((owner, _)) = definition.owner(graph) {
        if matches!(definition.node(owner).operation(), Operation::Conditional(_)) {
            return true;
        }
        graph = definition.node(owner).graph();
    }
    false
}

fn check_conditions(
    definition: &Definition,
    run: &Run,
    conditional: &ConditionalOp,
) -> std::result::Result<(), String> {
    let own = match &conditional.test {
        Test::Condition(condition) => Some(*condition),
        _ => None,
    };
    for (key, node) in definition.all_nodes() {
        let inside = run.nodes.contains(&key);
        let mut wrong = None;
        if !matches!(node.operation(), Operation::Kernel(_)) {
            continue;
        }
        node.operation().for_each_condition(|condition| {
            if inside && Some(condition) != own {
                wrong = Some(format!("{} sets another condition too", definition.label(key)));
            }
            if !inside && Some(condition) == own {
                wrong = Some(format!("{}, outside its body, sets its condition", definition.label(key)));
            }
        });
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
    }
    // A kernel may also have received a handle as a plain number. Only the device's own function
    // understands that.
    let sets = |index: usize| {
        let gives_own = |key: NodeKey| {
            let mut gives = false;
            definition.node(key).operation().for_each_condition(|condition| gives |= Some(condition) == own);
            gives
        };
        run.candidates[index].source.sets_conditions() && !gives_own(run.nodes[index])
    };
    match (0..run.nodes.len()).find(|&index| sets(index)) {
        Some(index) => {
            Err(format!("{} sets conditions that it is not given", definition.label(run.nodes[index])))
        }
        None => Ok(()),
    }
}
