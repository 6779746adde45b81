//! Conditionals of more than one block: which of them can become kernels that test for themselves.
//!
//! A branch becomes the kernels of its bodies, each behind a test ([`branches`](super::branches)).
//! The body of a loop is repeated, each copy behind a test ([`repeats`](super::repeats)). Kernels
//! then store conditions in memory, where the tests read them.
//!
//! Rule: everything in the bodies is a kernel that can take instructions before its own, or a small
//! fill or copy, or a branch that is replaced itself. A kernel that sets a condition of a replaced
//! conditional can take them too, and sets no condition that a conditional tests which stays.

use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::launch::Dim3;
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, Test};
use gridloom_core::{Graph, Node, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fusion::default_of;
use super::plan::{Context, has_full_edges};
use super::state::{MARK, word};
use super::steps::{Setters, is_inside_conditional, is_on_device};
use super::{branches, builtin, repeats};
use crate::optimizations::Optimization;
use crate::rewrite::Role;

/// The most kernels of all bodies of a branch.
const MAX_BRANCH_KERNELS: usize = 8;
/// The most kernels of the body of a loop.
const MAX_LOOP_KERNELS: usize = 32;
/// The most blocks of a kernel behind a test. More take longer to start and return than a
/// conditional node takes.
const MAX_BLOCKS: u64 = 1056;

/// Finds and replaces conditionals in a graph and in the graphs inside it.
pub(super) fn run(context: &mut Context<'_>, root: &Graph) -> Result<()> {
    if context.hosted || !context.profile.costly_conditionals {
        return Ok(());
    }
    let definition = root.definition();
    let chosen = choose(context, &definition);
    if chosen.is_empty() {
        return Ok(());
    }
    let conditions: FxHashSet<ConditionKey> =
        chosen.iter().filter_map(|&key| condition_of(&definition, key)).collect();
    let setters = Setters::new(&definition);
    drop(definition);
    for &condition in &conditions {
        let default = default_of(&context.original, condition);
        let Some(stored) = context.words(&[MARK | u64::from(default)])? else {
            return Err(super::fusion::unexpected("ran out of memory for conditions"));
        };
        context.reset_words(true);
        for &setter in setters.of(condition) {
            let fusion = context.single(setter)?;
            fusion.call.prefix.stored_conditions = true;
            fusion.call.stored.push((condition, word(&stored, 0)));
        }
        context.conditions.insert(condition, stored);
    }
    // Inner conditionals first, because a branch inside a body is part of the body.
    for key in chosen {
        let definition = root.definition();
        let Operation::Conditional(conditional) = definition.node(key).operation() else { continue };
        let conditional = conditional.clone();
        drop(definition);
        let node = context.handles[&key].clone();
        let graph = node.graph()?;
        match conditional.form {
            ConditionalForm::While => repeats::replace(context, &graph, &node, &conditional)?,
            _ => branches::replace(context, &graph, &node, &conditional)?,
        }
    }
    Ok(())
}

fn condition_of(definition: &Definition, key: NodeKey) -> Option<ConditionKey> {
    match definition.node(key).operation() {
        Operation::Conditional(conditional) => match conditional.test {
            Test::Condition(condition) => Some(condition),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the conditionals to replace, inner ones before those around them.
fn choose(context: &Context<'_>, definition: &Definition) -> Vec<NodeKey> {
    let mut all = Vec::new();
    collect(definition, definition.root(), &mut all);
    let setters = Setters::new(definition);
    let testers: FxHashMap<ConditionKey, NodeKey> =
        all.iter().filter_map(|&key| Some((condition_of(definition, key)?, key))).collect();
    // Conditionals are taken out until all that are left can be replaced together.
    let mut chosen: FxHashSet<NodeKey> = all.iter().copied().collect();
    loop {
        let mut out = Vec::new();
        for &key in all.iter().filter(|key| chosen.contains(key)) {
            let Operation::Conditional(conditional) = definition.node(key).operation() else { continue };
            let obstacle = obstacle(context, definition, key, conditional, &chosen).or_else(|| {
                let condition = condition_of(definition, key)?;
                condition_obstacle(
                    context,
                    definition,
                    (key, conditional.form),
                    setters.of(condition),
                    |other| testers.get(&other).is_none_or(|tester| chosen.contains(tester)),
                )
            });
            if let Some(reason) = obstacle {
                context.survey.note(key, reason);
                out.push(key);
            }
        }
        if out.is_empty() {
            break;
        }
        for key in &out {
            chosen.remove(key);
        }
    }
    all.retain(|key| chosen.contains(key));
    all
}

fn collect(definition: &Definition, graph: gridloom_core::graph::GraphKey, found: &mut Vec<NodeKey>) {
    for key in definition.nodes(graph) {
        let node = definition.node(key);
        for &body in node.bodies() {
            collect(definition, body, found);
        }
        if matches!(node.operation(), Operation::Conditional(_)) {
            found.push(key);
        }
    }
}

fn obstacle(
    context: &Context<'_>,
    definition: &Definition,
    key: NodeKey,
    conditional: &ConditionalOp,
    chosen: &FxHashSet<NodeKey>,
) -> Option<String> {
    let is_loop = conditional.form == ConditionalForm::While;
    let wanted = if is_loop { Optimization::Loops } else { Optimization::Branches };
    if !context.wanted.has(wanted) {
        return Some(format!("{} is switched off", wanted.name()));
    }
    if context.survey.pinned.contains(&key) || !has_full_edges(definition, key) {
        return Some("it has programmatic edges".into());
    }
    if let Test::Value(region) = &conditional.test
        && !is_on_device(region)
    {
        return Some("the value that it tests is in memory of the host".into());
    }
    if is_loop && is_inside_conditional(definition, key) {
        return Some("it is inside another conditional, and does not fit one block".into());
    }
    let mut kernels = 0;
    for &body in &conditional.bodies {
        for key in definition.nodes(body) {
            match kernels_of(context, definition, key, chosen) {
                Ok(count) => kernels += count,
                Err(reason) => return Some(format!("{} in its body: {reason}", definition.label(key))),
            }
        }
    }
    let most = if is_loop { MAX_LOOP_KERNELS } else { MAX_BRANCH_KERNELS };
    match kernels {
        0 => Some("its bodies do nothing".into()),
        count if count > most => Some(format!("its bodies have {count} kernels, more than {most}")),
        _ => None,
    }
}

/// Returns how many kernels a node of a body becomes, or why it cannot become any.
fn kernels_of(
    context: &Context<'_>,
    definition: &Definition,
    key: NodeKey,
    chosen: &FxHashSet<NodeKey>,
) -> std::result::Result<usize, String> {
    if !has_full_edges(definition, key) {
        return Err("it has programmatic edges".into());
    }
    let operation = definition.node(key).operation();
    match operation {
        Operation::Empty => Ok(0),
        Operation::Kernel(_) => prefix_obstacle(context, definition, key).map_or(Ok(1), Err),
        Operation::Memset(_) | Operation::Memcpy(_) => {
            if context.survey.pinned.contains(&key) {
                return Err("it is switched off".into());
            }
            builtin::obstacle(definition, operation).map_or(Ok(1), Err)
        }
        Operation::Conditional(inner) if chosen.contains(&key) && inner.form != ConditionalForm::While => {
            let mut count = usize::from(context.needs_decision(inner, definition));
            for &body in &inner.bodies {
                for key in definition.nodes(body) {
                    count += kernels_of(context, definition, key, chosen)?;
                }
            }
            Ok(count)
        }
        Operation::Conditional(_) => Err("it stays a conditional".into()),
        other => Err(format!("a {} is no kernel", other.kind().name())),
    }
}

/// Returns why a kernel node cannot take instructions before its own, or `None` if it can.
fn prefix_obstacle(context: &Context<'_>, definition: &Definition, key: NodeKey) -> Option<String> {
    let Operation::Kernel(launch) = definition.node(key).operation() else {
        return Some("it is no kernel".into());
    };
    if context.survey.pinned.contains(&key) && !context.is_fusion(key) {
        return Some("it is switched off".into());
    }
    let config = launch.config();
    let is_plain = !config.cooperative
        && !config.programmatic
        && config.cluster.is_none_or(|cluster| cluster == Dim3::ONE)
        && config.priority.is_none();
    if !is_plain {
        return Some("its launch is cooperative, programmatic, of clusters or has a priority".into());
    }
    if config.grid.volume() > u128::from(MAX_BLOCKS) {
        return Some(format!("it has more than {MAX_BLOCKS} blocks"));
    }
    let Some(source) = context.survey.source(launch.kernel()) else {
        return Some("the PTX of its kernel is not known".into());
    };
    if let Some(reason) = source.obstacle(Role::Prefixed) {
        return Some(reason.to_owned());
    }
    // Two tests with two parameters each.
    (source.param_bytes() + 48 > u64::from(context.limit())).then(|| "its arguments leave no room".into())
}

fn condition_obstacle(
    context: &Context<'_>,
    definition: &Definition,
    (key, form): (NodeKey, ConditionalForm),
    setters: &[NodeKey],
    is_replaced: impl Fn(ConditionKey) -> bool,
) -> Option<String> {
    for &setter in setters {
        let label = || definition.label(setter);
        if let Some(reason) = prefix_obstacle(context, definition, setter) {
            return Some(format!("{}, which sets its condition: {reason}", label()));
        }
        if !has_full_edges(definition, setter) {
            return Some(format!("{}, which sets its condition, has programmatic edges", label()));
        }
        let mut other = false;
        definition.node(setter).operation().for_each_condition(|condition| other |= !is_replaced(condition));
        if other {
            return Some(format!("{} also sets a condition of a conditional that stays", label()));
        }
        if form == ConditionalForm::While && !is_within(definition, setter, key) {
            return Some(format!("{}, outside its body, sets its condition", label()));
        }
    }
    None
}

/// Returns whether a node is inside a conditional, at any depth.
pub(super) fn is_within(definition: &Definition, node: NodeKey, conditional: NodeKey) -> bool {
    let mut graph = definition.node(node).graph();
    while let Some((owner, _)) = definition.owner(graph) {
        if owner == conditional {
            return true;
        }
        graph = definition.node(owner).graph();
    }
    false
}

/// The nodes of a body, as handles, with their edges.
pub(super) struct BodyNodes {
    /// In an order that the edges allow.
    pub(super) nodes: Vec<Node>,
    /// The indices of the nodes that each depends on.
    pub(super) after: Vec<Vec<usize>>,
}

impl BodyNodes {
    /// Turns fills and copies of a body into kernels and reads its nodes.
    pub(super) fn of(context: &mut Context<'_>, body: &Graph) -> Result<Self> {
        let definition = body.definition();
        let copies: Vec<NodeKey> = definition
            .nodes(body.key())
            .filter(|&key| {
                matches!(definition.node(key).operation(), Operation::Memset(_) | Operation::Memcpy(_))
            })
            .collect();
        drop(definition);
        for key in copies {
            if let Err(reason) = super::fills::to_kernel(context, body, key)? {
                return Err(super::fusion::unexpected(&format!("cannot replace a fill or copy: {reason}")));
            }
        }
        let definition = body.definition();
        let order = definition.topological(body.key()).to_vec();
        let at: FxHashMap<NodeKey, usize> = order.iter().enumerate().map(|(at, &key)| (key, at)).collect();
        let after = order
            .iter()
            .map(|&key| definition.node(key).predecessors().iter().map(|end| at[&end.node]).collect())
            .collect();
        drop(definition);
        let handles: FxHashMap<NodeKey, Node> =
            body.nodes().into_iter().map(|node| (node.key(), node)).collect();
        Ok(BodyNodes { nodes: order.iter().map(|key| handles[key].clone()).collect(), after })
    }

    /// Returns the nodes that nothing depends on.
    pub(super) fn last(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|at| !self.after.iter().any(|after| after.contains(at)))
    }
}
