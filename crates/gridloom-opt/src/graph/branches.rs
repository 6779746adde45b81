//! Branches: the bodies of `if`, `if_else` and `switch` become kernels behind a test.
//!
//! The kernels of the bodies follow each other in the graph around the branch, and each starts with
//! a test of the word that decides. The word must not change while any of them runs. A condition is
//! in memory of the plan, where only kernels that set it change it. A value of the user's, and a
//! condition that the bodies set themselves, are copied by a kernel before the first body.

use std::sync::Arc;

use gridloom_core::graph::EdgeKind;
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, ConditionalOp, Test};
use gridloom_core::{Graph, Node, Result};

use super::builtin::{self, Value};
use super::control::BodyNodes;
use super::fusion::{Call, Extra, unexpected};
use super::plan::{Context, Counted, Expanded};
use super::state::MARK;
use crate::rewrite::{Case, Gate, Predicate, Role};

fn predicate(form: ConditionalForm, body: usize) -> Predicate {
    match (form, body) {
        (ConditionalForm::Switch, case) => Predicate::Equals(case as u32),
        (_, 0) => Predicate::NonZero,
        (_, _) => Predicate::Zero,
    }
}

/// Returns one launch for bodies of one kernel each, if there are several and they go together.
fn combined(
    context: &mut Context<'_>,
    graph: &Graph,
    conditional: &ConditionalOp,
    bodies: &[BodyNodes],
    word: &Region,
) -> Option<Call> {
    let (mut cases, mut nodes, mut shape) = (Vec::new(), Vec::new(), None);
    let definition = graph.definition();
    for (index, body) in bodies.iter().enumerate() {
        let [inner] = &body.nodes[..] else {
            if body.nodes.is_empty() {
                continue;
            }
            return None;
        };
        let candidate = context.survey.candidate(&definition, inner.key(), Role::Batched)?;
        let own = (candidate.block?, candidate.shared);
        if candidate.source.sets_conditions() || *shape.get_or_insert(own) != own {
            return None;
        }
        let predicate = predicate(conditional.form, index);
        cases.push(Case { predicate, kernel: candidate.source, grid: candidate.grid });
        nodes.push(inner.key());
    }
    drop(definition);
    if cases.len() < 2 {
        return None;
    }
    context.choose(cases, &nodes, shape?, word).ok()
}

pub(super) fn replace(
    context: &mut Context<'_>,
    graph: &Graph,
    node: &Node,
    conditional: &Arc<ConditionalOp>,
) -> Result<()> {
    let key = node.key();
    let bodies: Vec<BodyNodes> =
        node.bodies()?.iter().map(|body| BodyNodes::of(context, body)).collect::<Result<_>>()?;
    let decides = context.needs_decision(conditional, &graph.definition());
    let (mut tails, after) = (node.predecessors()?, node.successors()?);
    let source = match &conditional.test {
        Test::Value(region) => region.clone(),
        Test::Condition(condition) => context.conditions[condition].clone(),
        Test::Count(_) => return Err(unexpected("found an `if` node that counts passes")),
    };
    let mut expanded = Expanded { node: key, name: context.original.label(key), passes: Counted::Not };
    let mut word = source.clone();
    if decides {
        let no_memory = || unexpected("ran out of memory for conditions");
        word = context.words(&[MARK])?.ok_or_else(no_memory)?;
        let passes = context.words(&[0])?.ok_or_else(no_memory)?;
        context.reset_words(true);
        let is_switch = u32::from(conditional.form == ConditionalForm::Switch);
        let args = builtin::args(&[
            Value::Address(&source),
            Value::Address(&word),
            Value::Address(&passes),
            Value::Word(bodies.len() as u32),
            Value::Word(is_switch),
        ]);
        expanded.passes = Counted::In(passes);
        let name = format!("decides {}", context.original.label(key));
        tails = vec![context.add_builtin(graph, &tails, builtin::DECIDE, args, &name)?];
    }
    let mut kernels = 0;
    let mut apart = &bodies[..];
    if let Some(call) = combined(context, graph, conditional, &bodies, &word) {
        tails = vec![context.put(graph, &tails, Some(call), &expanded.name)?];
        (kernels, apart) = (1, &[]);
    }
    for (index, body) in apart.iter().enumerate() {
        let predicate = predicate(conditional.form, index);
        let mut made: Vec<Node> = Vec::with_capacity(body.nodes.len());
        for (at, inner) in body.nodes.iter().enumerate() {
            let before: Vec<Node> = match &body.after[at][..] {
                [] => tails.clone(),
                after => after.iter().map(|&at| made[at].clone()).collect(),
            };
            let (mut call, name) = context.take(inner)?;
            if let Some(call) = &mut call {
                call.prefix.gates.insert(0, Gate::Word(predicate));
                call.extras.insert(0, Extra::Address(word.clone()));
                kernels += 1;
            }
            made.push(context.put(graph, &before, call, &name)?);
        }
        let last: Vec<Node> = body.last().map(|at| made[at].clone()).collect();
        if !last.is_empty() {
            tails = last;
        }
    }
    node.delete()?;
    for to in &after {
        for from in &tails {
            graph.add_edge(from, to, EdgeKind::Full)?;
        }
    }
    let description = format!(
        "branches: {} is {kernels} kernels that test the value themselves, about {:.1} µs instead of 4.8 to 9.1",
        expanded.name,
        0.75 * (kernels + usize::from(decides)) as f64,
    );
    context.done_with(description, key);
    context.plan.expanded.push(expanded);
    Ok(())
}
