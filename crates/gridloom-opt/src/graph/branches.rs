//! Branches: the bodies of `if`, `if_else` and `switch` become kernels behind a test.
//!
//! The kernels of the bodies follow each other in the graph around the branch, and each starts with
//! a test of the word that decides. The word must not change while any of them runs. A condition is
//! in memory of the plan, where only kernels that set it change it. A value of the user's, and a
//! condition that the bodies set themselves, are copied by a kernel before the first body.

use std::sync::Arc;

use gridloom_core::graph::EdgeKind;
use gridloom_core::op::{ConditionalForm, ConditionalOp, Test};
use gridloom_core::{Graph, Node, Result};

use super::builtin::{self, Value};
use super::control::BodyNodes;
use super::fusion::{Extra, unexpected};
use super::plan::{Context, Counted, Expanded};
use super::state::MARK;
use crate::rewrite::{Gate, Predicate};

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
        Test::Count(_) => return Err(unexpected("met a branch that counts")),
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
    for (index, body) in bodies.iter().enumerate() {
        let predicate = match (conditional.form, index) {
            (ConditionalForm::Switch, case) => Predicate::Equals(case as u32),
            (_, 0) => Predicate::NonZero,
            (_, _) => Predicate::Zero,
        };
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
    context.plan.done.push(format!(
        "branches: {} is {kernels} kernels that test the value themselves, about {:.1} µs instead of 4.8 to 9.1",
        expanded.name,
        0.75 * (kernels + usize::from(decides)) as f64,
    ));
    context.plan.expanded.push(expanded);
    Ok(())
}
