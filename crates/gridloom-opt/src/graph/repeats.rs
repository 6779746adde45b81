//! Repeats: a loop whose body does not fit one block makes several passes in a row before the
//! device tests again.
//!
//! The body is repeated inside a new loop. Every copy after the first starts with a test whether
//! its pass takes place. A last kernel counts the passes that did and decides about the next round.
//! The kernels of copy `i` store the condition in word `i + 1`, which the kernels of copy `i + 1`
//! test. So no kernel tests a word that a kernel of the same pass may set. A word that no kernel
//! set repeats the one before it. A value of the user's is copied to its word by a kernel between
//! two copies.

use std::sync::Arc;

use gridloom_core::graph::{ConditionalSpec, EdgeKind};
use gridloom_core::memory::Region;
use gridloom_core::op::{ConditionalForm, ConditionalOp, Test};
use gridloom_core::{Graph, Node, Result};

use super::builtin::{self, Value};
use super::control::BodyNodes;
use super::fusion::{Extra, default_of, unexpected};
use super::plan::{Context, Counted, Expanded};
use super::state::{MARK, word};
use crate::rewrite::Gate;

/// The most passes of a round.
const MAX_COPIES: u64 = 20;
/// The most kernels of a round.
const MAX_KERNELS: u64 = 128;

pub(super) fn replace(
    context: &mut Context<'_>,
    graph: &Graph,
    node: &Node,
    conditional: &Arc<ConditionalOp>,
) -> Result<()> {
    let key = node.key();
    let body = BodyNodes::of(context, &node.bodies()?[0])?;
    let tests_value = matches!(conditional.test, Test::Value(_));
    let kernels = body.nodes.len() as u64 + u64::from(tests_value);
    let mut limit = conditional.max_passes.unwrap_or(u64::MAX);
    if let Test::Count(count) = conditional.test {
        limit = limit.min(count);
    }
    let copies = (MAX_KERNELS / kernels.max(1)).clamp(1, MAX_COPIES).min(limit.max(1));
    let whole = matches!(conditional.test, Test::Count(_)) && limit >= 1 && limit * kernels <= MAX_KERNELS;
    let name = context.original.label(key);
    if whole {
        return unroll(context, graph, node, &body, limit);
    }
    let no_memory = || unexpected("ran out of memory for conditions");
    let first = match conditional.test {
        Test::Condition(condition) => u64::from(default_of(&context.original, condition)),
        _ => 1,
    };
    let mut initial = vec![MARK | first];
    initial.resize(copies as usize + 1, 0);
    let words = context.words(&initial)?.ok_or_else(no_memory)?;
    let passes = context.words(&[0])?.ok_or_else(no_memory)?;
    let starts = limit > 0 && (first != 0 || !conditional.test_first);
    let go = context.words(&[u64::from(starts)])?.ok_or_else(no_memory)?;
    let go = Region { bytes: 4, ..go };
    context.reset_words(true);
    let value = match &conditional.test {
        Test::Value(region) => Some(region.clone()),
        _ => None,
    };

    let mut before = node.predecessors()?;
    let after = node.successors()?;
    if let Some(value) = value.as_ref().filter(|_| conditional.test_first) {
        let args = builtin::args(&[
            Value::Address(value),
            Value::Address(&words),
            Value::Address(&go),
            Value::Wide(limit),
        ]);
        before =
            vec![context.add_builtin(graph, &before, builtin::BEGIN, args, &format!("starts {name}"))?];
    }
    let spec = ConditionalSpec {
        form: ConditionalForm::While,
        test: Test::Value(go.clone()),
        test_first: true,
        max_passes: None,
        bodies: 1,
    };
    let repeat = graph.add_conditional(&before.iter().collect::<Vec<_>>(), spec)?;
    repeat.set_name(&name)?;
    context.survey.pinned.insert(repeat.key());
    context.handles.insert(repeat.key(), repeat.clone());
    let inside = repeat.bodies()?.remove(0);
    let taken = body.nodes.iter().map(|inner| context.take(inner)).collect::<Result<Vec<_>>>()?;
    let mut tails: Vec<Node> = Vec::new();
    for copy in 0..copies {
        if copy > 0
            && let Some(value) = &value
        {
            let own = word(&words, copy);
            let args = builtin::args(&[
                Value::Address(value),
                Value::Address(&own),
                Value::Wide(0),
                Value::Word(1),
                Value::Word(0),
            ]);
            tails = vec![context.add_builtin(
                &inside,
                &tails,
                builtin::DECIDE,
                args,
                &format!("tests {name}"),
            )?];
        }
        let mut made: Vec<Node> = Vec::with_capacity(body.nodes.len());
        for (at, (call, name)) in taken.iter().enumerate() {
            let before: Vec<Node> = match &body.after[at][..] {
                [] => tails.clone(),
                after => after.iter().map(|&at| made[at].clone()).collect(),
            };
            let mut call = call.clone();
            if let Some(call) = &mut call {
                let mut extras = Vec::new();
                let mut gates = Vec::new();
                if copy > 0 && !matches!(conditional.test, Test::Count(_)) {
                    gates.push(Gate::Latest);
                    extras.push(Extra::Address(word(&words, copy)));
                }
                if copy > 0 && limit != u64::MAX {
                    gates.push(Gate::Below);
                    extras.push(Extra::Address(passes.clone()));
                    extras.push(Extra::Number(limit.saturating_sub(copy)));
                }
                call.prefix.gates.splice(0..0, gates);
                call.extras.splice(0..0, extras);
                if let Test::Condition(condition) = conditional.test {
                    for (_, stored) in call.stored.iter_mut().filter(|(key, _)| *key == condition) {
                        *stored = word(&words, copy + 1);
                    }
                }
            }
            made.push(context.put(&inside, &before, call, name)?);
        }
        tails = body.last().map(|at| made[at].clone()).collect();
    }
    let args = builtin::args(&[
        value.as_ref().map_or(Value::Wide(0), Value::Address),
        Value::Address(&words),
        Value::Address(&passes),
        Value::Address(&go),
        Value::Wide(limit),
        Value::Word(copies as u32),
    ]);
    context.add_builtin(&inside, &tails, builtin::NEXT, args, &format!("ends passes of {name}"))?;
    node.delete()?;
    for to in &after {
        graph.add_edge(&repeat, to, EdgeKind::Full)?;
    }
    let description = format!(
        "loops: {name} makes {copies} passes of {} kernels before the device tests again, about {:.1} µs a pass instead of {:.1}",
        body.nodes.len(),
        0.75 * kernels as f64 + 5.5 / copies as f64,
        3.8 + 0.95 * kernels as f64
    );
    context.done_with(description, key);
    context.plan.expanded.push(Expanded { node: key, name, passes: Counted::In(passes) });
    Ok(())
}

/// Replaces a loop of a known number of passes by that many copies of its body.
fn unroll(context: &mut Context<'_>, graph: &Graph, node: &Node, body: &BodyNodes, count: u64) -> Result<()> {
    let key = node.key();
    let (mut tails, after) = (node.predecessors()?, node.successors()?);
    let taken = body.nodes.iter().map(|inner| context.take(inner)).collect::<Result<Vec<_>>>()?;
    for _ in 0..count {
        let mut made: Vec<Node> = Vec::with_capacity(body.nodes.len());
        for (at, (call, name)) in taken.iter().enumerate() {
            let before: Vec<Node> = match &body.after[at][..] {
                [] => tails.clone(),
                after => after.iter().map(|&at| made[at].clone()).collect(),
            };
            made.push(context.put(graph, &before, call.clone(), name)?);
        }
        tails = body.last().map(|at| made[at].clone()).collect();
    }
    node.delete()?;
    for to in &after {
        for from in &tails {
            graph.add_edge(from, to, EdgeKind::Full)?;
        }
    }
    let name = context.original.label(key);
    let kernels = body.nodes.len();
    let description = format!(
        "loops: {name} is {count} copies of its {kernels} kernels in a row, about {:.1} µs a pass instead of {:.1}",
        0.75 * kernels as f64,
        3.8 + 0.95 * kernels as f64
    );
    context.done_with(description, key);
    context.plan.expanded.push(Expanded { node: key, name, passes: Counted::Always(count) });
    Ok(())
}
