//! Loops that nothing ends.

use super::access;
use super::{AccessKind, Hazard};
use crate::graph::definition::{ConditionKey, Definition, GraphKey, NodeKey};
use crate::memory::Region;
use crate::op::{ConditionalForm, ConditionalOp, NodeKind, NodeKinds, Operation, Role, Test};

/// Returns the loops without a bound whose bodies cannot change what they test.
pub(super) fn endless(definition: &Definition) -> Vec<Hazard> {
    if !definition.may_have(NodeKinds::of(&[NodeKind::While])) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (key, node) in definition.all_nodes() {
        let Operation::Conditional(op) = node.operation() else { continue };
        if op.form != ConditionalForm::While || op.max_passes.is_some() {
            continue;
        }
        if let Some(reason) = endless_reason(definition, op) {
            found.push((key, reason));
        }
    }
    found.sort_unstable_by_key(|&(key, _)| key);
    let name = |key: NodeKey| definition.label(key);
    found.into_iter().map(|(node, reason)| Hazard::EndlessLoop { node, name: name(node), reason }).collect()
}

fn endless_reason(definition: &Definition, op: &ConditionalOp) -> Option<&'static str> {
    let body = *op.bodies.first()?;
    match &op.test {
        Test::Count(_) => None,
        Test::Condition(condition) => {
            if any_inside(definition, body, &|operation| may_set(operation, *condition)) {
                return None;
            }
            let default = definition.get_condition(*condition).and_then(|data| data.default_value());
            let starts = !op.test_first || default.is_some_and(|value| value != 0);
            let elsewhere = definition.all_nodes().any(|(_, node)| may_set(node.operation(), *condition));
            (starts || elsewhere).then_some(
                "is a loop that never ends once it has begun: no kernel in its body is given its condition; \
                 give it to one that sets it to 0, or set a limit with max_passes",
            )
        }
        Test::Value(region) => (!any_inside(definition, body, &|operation| may_write(operation, region)))
            .then_some(
                "is a loop that never ends once it has begun: nothing in its body writes the value that it tests; \
                 write it there, or set a limit with max_passes",
            ),
    }
}

/// Returns whether an operation in a graph, or in a graph inside it, satisfies `is`. The nesting of
/// graphs bounds the recursion.
fn any_inside(definition: &Definition, graph: GraphKey, is: &dyn Fn(&Operation) -> bool) -> bool {
    definition.nodes(graph).any(|key| {
        let node = definition.node(key);
        is(node.operation()) || node.bodies().iter().any(|&body| any_inside(definition, body, is))
    })
}

fn may_set(operation: &Operation, condition: ConditionKey) -> bool {
    match operation.kind().facts().role {
        Role::Opaque => true,
        // It tests conditions and sets none.
        Role::Conditional => false,
        Role::Order | Role::Child | Role::Work => {
            let mut is_given = false;
            operation.for_each_condition(|given| is_given |= given == condition);
            is_given
        }
    }
}

fn may_write(operation: &Operation, tested: &Region) -> bool {
    match access::of(operation) {
        // A callback may write host memory, and an untyped kernel may write any memory it is given.
        None => true,
        Some(accesses) => {
            let Some(tested) = access::read_of(tested) else { return true };
            accesses.iter().any(|access| {
                access.kind == AccessKind::Write
                    && access.space == tested.space
                    && access.footprint.overlap(&tested.footprint).is_some()
            })
        }
    }
}
