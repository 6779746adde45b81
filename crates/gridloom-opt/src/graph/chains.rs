//! Chains, and loops and branches: their nodes become steps of one kernel.
//!
//! Rule of a chain: each node except the first depends only on the one before it, and each except
//! the last is the only dependency of the one after it, over full edges. Every kernel can be a
//! step, and all their blocks run at once. Then no other node can run between two of them or see
//! the result of one without the others.
//!
//! The kernel has one block if every step has one. Else it has a team of blocks
//! ([`Team`](crate::rewrite::Team)), in the outermost graph only: several blocks of a step side by
//! side in one block, a cluster, or for a loop as many blocks as the device runs at once.
//!
//! Where no thread accesses what another one writes, consecutive kernels with the same block become
//! one in which each thread makes all steps by itself. That depends on the memory that is passed,
//! so a change of it needs another look.
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
use super::steps::{Run, Setters, Width, is_inside_conditional};
use crate::cache::Recipe;
use crate::optimizations::Optimization;
use crate::rewrite::{Team, TeamBarrier};

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
        let form = match (run.controls.is_empty(), run.accesses.is_empty()) {
            (true, true) => Form::Chain,
            (true, false) => Form::Threads(run.accesses.clone()),
            (false, _) => Form::Program(controls.clone()),
        };
        let outcome = if controls.len() < run.controls.len() {
            Err("there are too many conditionals".into())
        } else {
            match run.team(context) {
                None => Err("its blocks do not run at once".into()),
                Some(team) => {
                    let (steps, parts) = (run.steps(), run.parts.clone());
                    let recipe = Recipe::Program { steps, parts, team, limit: context.combined_limit() };
                    let shared = team.dynamic_shared();
                    context.fuse(graph, &recipe, form, &run.nodes, shared, &run.replaced)?
                }
            }
        };
        match outcome {
            Ok(()) => report(context, &run),
            Err(reason) => run.replaced.iter().for_each(|&node| context.survey.note_failure(node, &reason)),
        }
    }
    Ok(())
}

fn report(context: &mut Context<'_>, run: &Run) {
    let count = run.nodes.len();
    let Some(team) = run.team(context) else { return };
    let shape = match (team.barrier, team.blocks, team.slots) {
        (TeamBarrier::Block, _, 1) => "one block".to_owned(),
        (TeamBarrier::Block, _, slots) => format!("one block with room for {slots} of theirs"),
        (TeamBarrier::Cluster, blocks, 1) => format!("a cluster of {blocks} blocks"),
        (TeamBarrier::Cluster, blocks, slots) => {
            format!("a cluster of {blocks} blocks with room for {slots} of theirs each")
        }
        (TeamBarrier::Grid, blocks, _) => format!("{blocks} blocks that run at once"),
        (TeamBarrier::Thread, ..) => "each thread by itself".to_owned(),
    };
    let step = step_time(team);
    let done = match run.controls.first() {
        None => {
            let names = ends(context, &run.nodes);
            format!(
                "chains: {names} run as {count} steps of {shape}, about {:.1} µs instead of {:.1}",
                step * count as f64,
                0.88 * count as f64
            )
        }
        Some(&first) => {
            let is_loop = |&key: &NodeKey| matches!(context.original.node(key).operation(), Operation::Conditional(op) if op.form == ConditionalForm::While);
            let pass = if run.controls.iter().any(is_loop) { "loops" } else { "branches" };
            let (name, steps) = (context.original.label(first), ends(context, &run.nodes));
            let unit = if pass == "loops" { " a pass" } else { "" };
            format!(
                "{pass}: {name} with {steps} is one kernel of {shape}, about {:.1} µs{unit} instead of {:.1}",
                0.3 + step * count as f64,
                3.8 + 0.83 * count as f64
            )
        }
    };
    let mut nodes = run.replaced.clone();
    run.replaced.iter().for_each(|&key| inside(&context.original, key, &mut nodes));
    context.done(done, nodes);
}

/// Adds the nodes inside a node to `found`.
pub(super) fn inside(definition: &Definition, key: NodeKey, found: &mut Vec<NodeKey>) {
    let Some(node) = definition.get_node(key) else { return };
    for &body in node.bodies() {
        for key in definition.nodes(body) {
            found.push(key);
            inside(definition, key, found);
        }
    }
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
        let mut run = longest(context, &definition, &setters, first, Width::Block);
        if run.replaced.len() < 2 && run.controls.is_empty() {
            let alone = longest(context, &definition, &setters, first, Width::Threads);
            if alone.replaced.len() > 1 {
                run = alone;
            }
        }
        if !is_inside_conditional(&definition, first) {
            let wide = longest(context, &definition, &setters, first, Width::Team);
            if is_better(context, &wide, &run) {
                run = wide;
            }
        }
        if run.replaced.len() < 2 && run.controls.is_empty() {
            continue;
        }
        taken.extend(run.replaced.iter().copied());
        runs.push(run);
    }
    runs
}

/// The time of a kernel that starts early, in microseconds.
const NODE: f64 = 0.72;
/// The time of a kernel that starts after the one before it has ended.
const LATE_NODE: f64 = 1.0;

/// Returns about how long a step of a team takes, in microseconds.
fn step_time(team: Team) -> f64 {
    match team.barrier {
        TeamBarrier::Block if team.slots == 1 => 0.19,
        TeamBarrier::Block => 0.25,
        TeamBarrier::Cluster if team.slots == 1 => 0.55,
        TeamBarrier::Cluster => 0.8,
        TeamBarrier::Grid => 1.15,
        TeamBarrier::Thread => 0.1,
    }
}

/// Returns whether a team should run the steps of `wide` instead of one block those of `narrow`,
/// with kernels of their own for the others.
fn is_better(context: &Context<'_>, wide: &Run, narrow: &Run) -> bool {
    let more = wide.nodes.len().saturating_sub(narrow.nodes.len()) as f64;
    let Some(team) = wide.team(context).filter(|_| more > 0.0) else { return false };
    let has_more_loops = wide.controls.len() > narrow.controls.len();
    let steps = narrow.nodes.len() as f64;
    let together = match narrow.team(context) {
        Some(team) if narrow.replaced.len() > 1 => step_time(team) * steps,
        _ => NODE * steps,
    };
    let apart = together + NODE * more;
    let count = wide.nodes.len() as f64;
    let starts_early = context.profile.early_blocks.is_some() && context.wanted.has(Optimization::EarlyStart);
    let wide = match team.barrier {
        // Neither it nor the kernel after it starts early.
        TeamBarrier::Cluster | TeamBarrier::Grid if starts_early => {
            LATE_NODE + step_time(team) * (count - 1.0) + (LATE_NODE - NODE)
        }
        _ => step_time(team) * count,
    };
    has_more_loops || wide < apart
}

/// Returns the node that follows another one in a chain.
fn follower(definition: &Definition, key: NodeKey) -> Option<NodeKey> {
    let [only] = definition.node(key).successors() else { return None };
    let alone = definition.node(only.node).predecessors().len() == 1;
    (alone && has_full_edges(definition, only.node)).then_some(only.node)
}

/// The most kernels of one block in a row that a team runs between others.
const MAX_NARROW: usize = 3;

/// Returns whether a node is a kernel of one block, or a fill or copy.
fn is_narrow(definition: &Definition, key: NodeKey) -> bool {
    match definition.node(key).operation() {
        Operation::Kernel(launch) => launch.config().grid.volume() == 1,
        Operation::Conditional(_) => false,
        _ => true,
    }
}

/// Returns the program of as many nodes of the chain that starts here as possible.
fn longest(
    context: &Context<'_>,
    definition: &Definition,
    setters: &Setters,
    first: NodeKey,
    width: Width,
) -> Run {
    let chains = context.wanted.has(Optimization::Chains);
    let mut run = Run::new(width);
    // What the program was when its conditions were last all inside it.
    let mut whole = None;
    // What the program was before the last kernels of one block.
    let mut before_narrow: Option<(usize, Run)> = None;
    let mut next = Some(first);
    while let Some(key) = next {
        if width == Width::Team {
            let count = match before_narrow.take() {
                _ if !is_narrow(definition, key) => None,
                None => Some((1, run.clone())),
                // One block runs them faster than a team does.
                Some((MAX_NARROW, before)) => return before,
                Some((count, before)) => Some((count + 1, before)),
            };
            before_narrow = count;
        }
        let operation = definition.node(key).operation();
        let is_conditional = matches!(operation, Operation::Conditional(_));
        if let Err(reason) = run.push(context, definition, key) {
            let is_work =
                matches!(operation, Operation::Kernel(_) | Operation::Memset(_) | Operation::Memcpy(_));
            if is_conditional || is_work && !run.replaced.is_empty() {
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
        let mut plain = Run::new(width);
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
