//! Pointing a whole graph at other memory.

use super::definition::{Definition, GraphKey, NodeKey};
use super::{Checker, Graph, deleted_graph};
use crate::error::Result;
use crate::memory::Region;
use crate::op::Operation;

/// The nodes that use some memory, with what they do once they use other memory in its place, and how many uses there are.
pub(crate) struct Replacement {
    pub(crate) operations: Vec<(NodeKey, Operation)>,
    pub(crate) uses: usize,
}

impl Definition {
    /// Finds every use of `old` in a graph and the graphs inside it, and puts `new` in its place.
    ///
    /// # Safety
    /// As for [`Graph::replace_region`].
    pub(crate) unsafe fn with_memory_replaced(
        &self,
        graph: GraphKey,
        old: &Region,
        new: &Region,
    ) -> Result<Replacement> {
        let mut replacement = Replacement { operations: Vec::new(), uses: 0 };
        for graph in self.graphs_inside(graph) {
            for key in self.nodes(graph) {
                // SAFETY: the caller makes the same promise.
                let replaced = unsafe { self.node(key).operation.with_memory_replaced(old, new) };
                if let Some((operation, uses)) = replaced.map_err(|error| error.at_node(self.label(key)))? {
                    replacement.operations.push((key, operation));
                    replacement.uses += uses;
                }
            }
        }
        Ok(replacement)
    }
}

impl Graph {
    /// Points every use of the region `old`, in this graph and those inside it, at the same byte of `new`, all or none, and says how many there were: operands of
    /// copies and fills, values that conditionals test, and addresses in kernel arguments, inside structures too.
    ///
    /// # Safety
    /// Eight bytes of a kernel argument whose value is an address in `old` are that address, and kernels that get one of `new` in its place
    /// stay within `new`.
    pub unsafe fn replace_region(&self, old: &Region, new: &Region) -> Result<usize> {
        let device = &*self.hierarchy.device;
        let (uses, replaced) = self.hierarchy.write_all_inside(self.key, |definition| {
            if definition.graphs.get(self.key).is_none() {
                return Err(deleted_graph());
            }
            // SAFETY: the caller makes the same promise.
            let replacement = unsafe { definition.with_memory_replaced(self.key, old, new) }?;
            for (key, operation) in &replacement.operations {
                let checker = Checker { device, graph: Some((definition, definition.node(*key).graph)) };
                let checked = match operation {
                    Operation::Conditional(conditional) => checker.check_replaced_test(&conditional.test),
                    operation => checker.check(operation),
                };
                checked.map_err(|error| error.at_node(definition.label(*key)))?;
            }
            let mut operations = replacement.operations;
            for (key, operation) in &mut operations {
                let node = definition.nodes.get_mut(*key).expect("listed");
                std::mem::swap(&mut node.operation, operation);
            }
            Ok((replacement.uses, operations))
        })?;
        drop(replaced);
        Ok(uses)
    }
}
