//! Replacing one region of memory by another in a whole graph.

use super::definition::{Definition, GraphKey, NodeKey};
use super::{Checker, Graph, deleted_graph};
use crate::error::Result;
use crate::memory::Region;
use crate::op::Operation;

/// The nodes that use a region, with the operations that use another region instead, and the number
/// of uses.
pub(crate) struct Replacement {
    pub(crate) operations: Vec<(NodeKey, Operation)>,
    pub(crate) uses: usize,
}

impl Definition {
    /// Builds the operations that use `new` wherever `graph` or a graph inside it uses `old`.
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
    /// Replaces every use of the region `old` in this graph and the graphs inside it by the same
    /// byte of `new`. Returns the number of uses. On failure nothing changes.
    ///
    /// Uses are the operands of copies and fills, the values that conditionals test, and addresses
    /// in kernel arguments, including those inside structures.
    ///
    /// # Safety
    /// The caller promises two things. Where eight aligned bytes of a kernel argument equal an
    /// address in `old`, they are that address. Kernels that receive an address in `new` instead
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
                let checked = checker.check_replacing(operation);
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
