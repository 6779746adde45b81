//! Chains, and loops and branches of one block: their nodes become steps of one kernel.
//!
//! Rule of a chain: each node except the first depends only on the one before it, and each except
//! the last is the only dependency of the one after it, over full edges. Every kernel is launched
//! with one block and can be a step, and the block shapes are compatible. Then no other node can
//! run between two of them or see the result of one without the others.
//!
//! Rule of a conditional: everything in its bodies can be a step, or is such a conditional itself,
//! and the steps run in an order that the edges allow. A tested condition has its default value
//! when the kernel starts and nothing outside observes it: the kernel runs once per launch, only
//! its steps receive the condition, and they receive no condition that is tested elsewhere.

use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::op::{ConditionalForm, Operation};
use gridloom_core::{Graph, Result};
use rustc_hash::FxHashSet;

use super::fusion::{Form, InnerControl};
use super::plan::{Context, has_full_edges};
use super::steps::{Run, Setters, is_inside_conditional};
use crate::cache::Recipe;
use crate::optimizations::Optimization;

pub(super) fn run(context: &mut Context<'_>, graph: &Graph) -> Result<()> {
    let runs = find(context, graph);
    for run in runs {
        let mut controls = Vec::with_capacity(run.controls.len());
        let is_inside = is_inside_conditional(&graph.definition(), run.replaced[0]);
        for &node in &run.controls {
            let Some(passes) = context.words(&[0])? else { break };
            controls.push(InnerControl { node, passes });
            // Where the kernel may not run, the count of an earlier launch must not stay.
            context.reset_words(is_inside);
        }
        let form = if run.controls.is_empty() { Form::Chain } else { Form::Program(controls.clone()) };
        let outcome = if controls.len() < run.controls.len() {
            Err("there are too many conditionals".into())
        } else {
            let (steps, parts) = (run.steps(), run.parts.clone());
            let recipe = Recipe::Program { steps, parts, limit: context.combined_limit() };
            context.fuse(graph, &recipe, form, &run.nodes, run.shared(), &run.replaced)?
        };
        match outcome {
            Ok(()) => report(context, &run),
            Err(reason) => run.replaced.iter().for_each(|&node| context.survey.note(node, reason.clone())),
        }
    }
    Ok(())
}

fn report(context: &mut Context<'_>, run: &Run) {
    let count = run.nodes.len();
    let done = match run.controls.first() {
        None => {
            let names = ends(context, &run.nodes);
            format!(
                "chains: {names} run as {count} steps of one block, about {:.1} µs instead of {:.1}",
                0.19 * count as f64,
                0.88 * count as f64
            )
        }
        Some(&first) => {
            let is_loop = |&key: &NodeKey| matches!(context.original.node(key).operation(), Operation::Conditional(op) if op.form == ConditionalForm::While);
            let pass = if run.controls.iter().any(is_loop) { "loops" } else { "branches" };
            let (name, steps) = (context.original.label(first), ends(context, &run.nodes));
            let unit = if pass == "loops" { " a pass" } else { "" };
            format!(
                "{pass}: {name} with {steps} is one kernel of one block, about {:.1} µs{unit} instead of {:.1}",
                0.3 + 0.19 * count as f64,
                3.8 + 0.83 * count as f64
            )
        }
    };
    context.plan.done.push(done);
}

/// Returns the names of the first and the last of some nodes.
pub(super) fn ends(context: &Context<'_>, nodes: &[NodeKey]) -> String {
    let label = |key: &NodeKey| context.original.label(*key);
    match nodes {
        [] => String::new(),
        [one] => label(one),
        [first, .., last] => format!("{} to {}", label(first), label(last)),
    }
}

fn find(context: &Context<'_>, graph: &Graph) -> Vec<Run> {
    let definition = graph.definition();
    let is_conditional = |key: NodeKey| matches!(definition.node(key).operation(), Operation::Conditional(_));
    let setters = Setters::new(&definition);
    let chains = context.wanted.has(Optimization::Chains);
    let (mut taken, mut runs) = (FxHashSet::default(), Vec::new());
    for &first in definition.topological(graph.key()).iter() {
        if taken.contains(&first) || !has_full_edges(&definition, first) {
            continue;
        }
        if !chains && !is_conditional(first) {
            continue;
        }
        let run = longest(context, &definition, &setters, first);
        if run.replaced.len() < 2 && run.controls.is_empty() {
            continue;
        }
        taken.extend(run.replaced.iter().copied());
        runs.push(run);
    }
    runs
}

/// Returns the node that follows another one in a chain.
fn follower(definition: &Definition, key: NodeKey) -> Option<NodeKey> {
    let [only] = definition.node(key).successors() else { return None };
    let alone = definition.node(only.node).predecessors().len() == 1;
    (alone && has_full_edges(definition, only.node)).then_some(only.node)
}

/// Returns the program of as many nodes of the chain that starts here as possible.
fn longest(context: &Context<'_>, definition: &Definition, setters: &Setters, first: NodeKey) -> Run {
    let chains = context.wanted.has(Optimization::Chains);
    let mut run = Run::default();
    // What the program was when its conditions were last all inside it.
    let mut whole = None;
    let mut next = Some(first);
    while let Some(key) = next {
        let operation = definition.node(key).operation();
        let is_conditional = matches!(operation, Operation::Conditional(_));
        if let Err(reason) = run.push(context, definition, key) {
            if is_conditional {
                context.survey.note(key, reason);
            }
            break;
        }
        let mut has_conditions = is_conditional;
        operation.for_each_condition(|_| has_conditions = true);
        if has_conditions && !run.controls.is_empty() {
            match run.conditions_obstacle(setters, definition) {
                None => whole = Some(run.clone()),
                Some(reason) => context.survey.note(key, reason),
            }
        }
        next = follower(definition, key).filter(|_| chains);
    }
    if run.controls.is_empty() || run.conditions_obstacle(setters, definition).is_none() {
        return run;
    }
    whole.unwrap_or_else(|| {
        // What comes before the first conditional.
        let mut plain = Run::default();
        let mut next = Some(first).filter(|_| chains);
        while let Some(key) = next {
            let is_conditional = matches!(definition.node(key).operation(), Operation::Conditional(_));
            if is_conditional || plain.push(context, definition, key).is_err() {
                break;
            }
            next = follower(definition, key);
        }
        plain
    })
}
