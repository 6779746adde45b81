//! One change to what an executable does.

use rustc_hash::FxHashMap;

use crate::graph::{Definition, NodeKey};
use crate::op::{ArgValue, Launch, Operation};

/// Something to put in the place of what a node of an executable does, or of a part of that. Once it is in place, it is what was there before.
#[derive(Debug)]
pub struct Change {
    pub(super) node: NodeKey,
    pub(super) part: Part,
}

/// What a [`Change`] is about.
#[derive(Debug)]
pub enum Part {
    /// All that the node does.
    Operation(Operation),
    /// One argument of the kernel that the node launches, by its number. It is a plain value, or the address of memory that is there
    /// independently of graphs, in the place of the same; a backend sees nothing else.
    Argument(u32, ArgValue),
}

impl Change {
    /// A change of all that a node does.
    pub fn operation(node: NodeKey, operation: Operation) -> Self {
        Change { node, part: Part::Operation(operation) }
    }

    /// A change of one argument of the kernel that a node launches.
    ///
    /// # Safety
    /// As for [`KernelOp::with_args`](crate::op::KernelOp::with_args) with what becomes of the arguments.
    #[inline]
    pub unsafe fn argument(node: NodeKey, index: u32, value: ArgValue) -> Self {
        Change { node, part: Part::Argument(index, value) }
    }

    /// The node.
    pub fn node(&self) -> NodeKey {
        self.node
    }

    /// What is in its place, or was there before.
    pub fn part(&self) -> &Part {
        &self.part
    }
}

/// The operation of each changed node as it was before that change, given what the changes replaced and the definition after them all.
pub fn operations_before(definition: &Definition, replaced: &[Change]) -> Vec<(NodeKey, Operation)> {
    let mut later: FxHashMap<NodeKey, Operation> = FxHashMap::default();
    let mut before: Vec<(NodeKey, Operation)> = Vec::with_capacity(replaced.len());
    for change in replaced.iter().rev() {
        let after = || later.get(&change.node).unwrap_or_else(|| definition.node(change.node).operation());
        let operation = match &change.part {
            Part::Operation(operation) => operation.clone(),
            Part::Argument(index, value) => match after() {
                Operation::Kernel(kernel) => {
                    let mut kernel = (**kernel).clone();
                    let exchanged = kernel.args.exchange(*index as usize, &mut value.clone());
                    debug_assert!(exchanged, "it was there before");
                    Operation::Kernel(Launch::new(kernel))
                }
                other => other.clone(),
            },
        };
        later.insert(change.node, operation.clone());
        before.push((change.node, operation));
    }
    before.reverse();
    before
}
