//! Adopts a plan that another thread made from an outline of the graph.
//!
//! Such a plan has the right nodes and kernels. But its operations describe memory instead of
//! referring to it, and they are those of the moment when the outline was made. Filling in the
//! current operations takes a small part of the time of planning. It works if nothing happened to
//! the graph since then that a change in place cannot express.

use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::op::{Operation, Test};
use gridloom_core::{Node, Result};
use rustc_hash::FxHashMap;

use super::plan::{Plan, handles};

impl Plan {
    /// Gives the nodes the operations of the current definition. Returns their handles, or `None`
    /// if the graph has to be planned again. The plan is of no use then.
    pub(crate) fn adopt(
        &self,
        outline: &Definition,
        definition: &Definition,
    ) -> Result<Option<FxHashMap<NodeKey, Node>>> {
        // Kernels of the optimiser's own would need the addresses of the values that they test.
        if !self.expanded.is_empty() || !sets_the_same_conditions(outline, definition) {
            return Ok(None);
        }
        let replaced: FxHashMap<NodeKey, usize> =
            self.fusions.iter().enumerate().map(|(index, fusion)| (fusion.node.key(), index)).collect();
        let handles = handles(&self.graph)?;
        for (&key, node) in &handles {
            let operation = match replaced.get(&key) {
                Some(&index) => match self.fusions[index].operation(definition) {
                    Ok(operation) => operation,
                    Err(_) => return Ok(None),
                },
                None => match definition.get_node(key).map(|node| node.operation()) {
                    Some(now) if is_settled(outline.node(key).operation(), now) => continue,
                    Some(
                        now @ (Operation::Kernel(_)
                        | Operation::Memset(_)
                        | Operation::Memcpy(_)
                        | Operation::Callback(_)),
                    ) => now.clone(),
                    _ => return Ok(None),
                },
            };
            // Events are callbacks in an outline, and cannot be put in the place of one.
            if node.set_operation(operation).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(handles))
    }
}

/// Returns whether an operation of an outline is already the current one.
fn is_settled(outlined: &Operation, now: &Operation) -> bool {
    match (outlined, now) {
        (Operation::Empty, Operation::Empty)
        | (Operation::Alloc(_), Operation::Alloc(_))
        | (Operation::Free(_), Operation::Free(_))
        | (Operation::Child(_), Operation::Child(_)) => true,
        (Operation::Conditional(outlined), Operation::Conditional(now)) => {
            let same_test = match (&outlined.test, &now.test) {
                (Test::Count(outlined), Test::Count(now)) => outlined == now,
                (Test::Condition(outlined), Test::Condition(now)) => outlined == now,
                _ => false,
            };
            same_test && outlined.max_passes == now.max_passes
        }
        _ => false,
    }
}

/// Returns whether all operations refer to the conditions that they referred to before, with the
/// same defaults. Which kernels set which conditions is part of a plan.
fn sets_the_same_conditions(outline: &Definition, definition: &Definition) -> bool {
    let conditions = |definition: &Definition| {
        let mut all: Vec<(NodeKey, ConditionKey, Option<u32>)> = Vec::new();
        for (key, node) in definition.all_nodes() {
            node.operation().for_each_condition(|condition| {
                let default = definition.get_condition(condition).and_then(|data| data.default_value());
                all.push((key, condition, default));
            });
        }
        all
    };
    conditions(outline) == conditions(definition)
}
