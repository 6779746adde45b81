//! The report of what became of each node of the graph.

use gridloom_core::executable::{ConditionalReport, NodeReport, Report};
use gridloom_core::graph::{Definition, GraphKey, NodeKey};
use gridloom_core::op::{NodeKind, Operation};
use rustc_hash::FxHashMap;

use super::Profile;
use super::fusion::Form;
use super::plan::{Done, Plan};
use super::survey::Survey;
use crate::optimizations::{Optimization, Optimizations};

impl Plan {
    /// Returns what the plan adds to the report of the backend.
    pub(crate) fn report(&self) -> Report {
        let mut report = Report::default();
        let mut add = |node, name: &str, reason: &str| {
            report.conditionals.push(ConditionalReport::new(node, name.to_owned(), true, reason));
        };
        for fusion in &self.fusions {
            if let Form::Program(controls) = &fusion.call.form {
                for control in controls {
                    add(control.node, &self.label(control.node), "it is inside one kernel");
                }
            }
        }
        for expanded in &self.expanded {
            add(expanded.node, &expanded.name, "its kernels test the value themselves");
        }
        report.optimized = self.done.iter().map(|done| done.description.clone()).collect();
        report.not_optimized.clone_from(&self.kept);
        report.nodes.clone_from(&self.nodes);
        report
    }
}

/// Records what was done with each node, and why others run as they were written.
pub(super) fn describe(
    plan: &mut Plan,
    survey: Survey,
    original: &Definition,
    (wanted, profile): (Optimizations, Profile),
) {
    if plan.removed_edges > 0 || !plan.removed.is_empty() {
        let (nodes, edges) = (plan.removed.len(), plan.removed_edges);
        let description = format!("edges: {nodes} empty nodes and {edges} redundant edges are removed");
        let mut nodes: Vec<NodeKey> = plan.removed.iter().copied().collect();
        nodes.sort_unstable_by_key(|node| node.index());
        plan.done.push(Done { description, nodes });
    }
    let mut lines: FxHashMap<NodeKey, Vec<usize>> = FxHashMap::default();
    for (line, done) in plan.done.iter().enumerate() {
        for &node in &done.nodes {
            let lines = lines.entry(node).or_default();
            if lines.last() != Some(&line) {
                lines.push(line);
            }
        }
    }
    let disabled = survey.disabled.clone();
    let (reasons, held) = survey.into_reasons();
    for (node, reason) in &reasons {
        if !lines.contains_key(node) && original.get_node(*node).is_some() {
            plan.kept.push((original.label(*node), reason.clone()));
        }
    }
    let mut reasons: FxHashMap<NodeKey, String> = reasons.into_iter().collect();
    let mut all = Vec::new();
    in_order(original, original.root(), &mut all);
    plan.nodes = all
        .into_iter()
        .map(|node| {
            let done = lines.remove(&node).unwrap_or_default();
            let reason = done.is_empty().then(|| match held {
                Some(reason) => reason.to_owned(),
                None if disabled.contains(&node) => "it is disabled".to_owned(),
                None => reasons
                    .remove(&node)
                    .unwrap_or_else(|| usual_reason(original, node, wanted, profile).to_owned()),
            });
            NodeReport::new(node, original.label(node), done, reason)
        })
        .collect();
}

/// Adds the nodes of a graph in topological order, each before those inside it.
fn in_order(definition: &Definition, graph: GraphKey, found: &mut Vec<NodeKey>) {
    for &node in definition.topological(graph).iter() {
        found.push(node);
        for &body in definition.node(node).bodies() {
            in_order(definition, body, found);
        }
    }
}

/// Returns why a node runs as it was written, if no pass had a reason of its own.
fn usual_reason(
    definition: &Definition,
    node: NodeKey,
    wanted: Optimizations,
    profile: Profile,
) -> &'static str {
    let operation = definition.node(node).operation();
    let combines = wanted.has(Optimization::Batches)
        || profile.costly_nodes && (wanted.has(Optimization::Chains) || wanted.has(Optimization::Loops));
    match operation {
        Operation::Empty if wanted.has(Optimization::Edges) => {
            "it saves edges between several nodes before it and several after it"
        }
        Operation::Empty => "edges is switched off",
        Operation::Kernel(_) if !combines => "the passes that combine kernels are switched off",
        Operation::Kernel(_) if !profile.costly_nodes => {
            "this device gains only from kernels side by side, and none with the same dependencies is beside it"
        }
        Operation::Kernel(_) => "no node before, behind or beside it goes together with it",
        Operation::Memset(_) | Operation::Memcpy(_) if !profile.costly_nodes => {
            "on this device it takes no longer than a kernel"
        }
        Operation::Memset(_) | Operation::Memcpy(_) => "no kernel before or behind it goes together with it",
        Operation::Conditional(_) if !profile.costly_conditionals => {
            "on this device it takes no longer than kernels that test the value themselves"
        }
        Operation::Conditional(_) => "loops or branches are switched off",
        operation => match operation.kind() {
            NodeKind::Child => "what it embeds is optimised by itself",
            _ => "it is no work that a kernel could do",
        },
    }
}
