//! Conditions that are set and tested without an order.

use super::history::Conflict;
use super::order::Search;
use super::{AccessKind, Hazard};
use crate::graph::definition::{Definition, NodeKey};
use crate::op::{NodeKind, NodeKinds, Operation};

/// Returns the kernels that can set the condition of a conditional, and run neither before nor
/// after nor inside it.
///
/// Two kernels that can both set a condition need no order: each may be there to end the same loop.
pub(super) fn unordered(definition: &Definition, search: &mut Search<'_>) -> Vec<Hazard> {
    let conditionals = NodeKinds::of(&[NodeKind::If, NodeKind::IfElse, NodeKind::While, NodeKind::Switch]);
    if !definition.may_have(conditionals) {
        return Vec::new();
    }
    let mut found: Vec<(NodeKey, NodeKey)> = Vec::new();
    for (setter, node) in definition.all_nodes() {
        if !matches!(node.operation(), Operation::Kernel(_)) {
            continue;
        }
        node.operation().for_each_condition(|condition| {
            let tested_by = definition.get_condition(condition).and_then(|data| data.used_by());
            found.extend(tested_by.map(|conditional| (setter, conditional)));
        });
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|&(setter, conditional)| !is_ordered(definition, search, setter, conditional));
    let label = |node| definition.label(node);
    let hazard = |(setter, conditional)| {
        let edge = definition.in_common_graph(setter, conditional);
        let names = [label(setter), label(conditional), label(edge.0), label(edge.1)];
        Hazard::UnorderedCondition { setter, conditional, edge, names }
    };
    found.into_iter().map(hazard).collect()
}

/// Returns whether one of two nodes precedes the other or contains it.
fn is_ordered(definition: &Definition, search: &mut Search<'_>, one: NodeKey, other: NodeKey) -> bool {
    let (from, to) = definition.in_common_graph(one, other);
    let earlier = |node| Conflict { node, kind: AccessKind::Write, start: 0, bytes: 0 };
    let (first, second) =
        if definition.node(from).order <= definition.node(to).order { (one, other) } else { (other, one) };
    let mut unordered = Vec::new();
    search.unordered(second, &[earlier(first)], &mut unordered);
    unordered.is_empty()
}
