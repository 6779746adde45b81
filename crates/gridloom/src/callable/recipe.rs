//! How the nodes of a callable's graph depend on its arguments.

use std::sync::Arc;

use gridloom_core::backend;
use gridloom_core::graph::NodeKey;
use gridloom_core::op::{KernelOp, Operation};

use super::operands::{LaunchShape, MemorySlot, Slot};
use super::params::Binding;
use crate::{Error, ErrorKind, LaunchConfig, Result};

/// Builds the operation of a node from the arguments of a call.
type MakeOperation = Box<dyn Fn(&[Binding]) -> Result<Operation> + Send + Sync>;

/// A node that depends on the arguments.
pub(super) struct Recipe {
    pub(super) node: NodeKey,
    /// The parameters it depends on, as bits.
    pub(super) follows: u64,
    /// The bytes of its kernel arguments.
    pub(super) bytes: u64,
    pub(super) what: RecipeKind,
}

/// How a node depends on the arguments.
pub(super) enum RecipeKind {
    Kernel(KernelRecipe),
    Other(MakeOperation),
}

/// A kernel launch that depends on the arguments.
pub(super) struct KernelRecipe {
    pub(super) kernel: Arc<dyn backend::Kernel>,
    pub(super) shape: LaunchShape,
    pub(super) slots: Vec<Slot>,
}

impl KernelRecipe {
    pub(super) fn follows(&self) -> u64 {
        self.slots.iter().fold(self.shape.follows(), |follows, slot| follows | slot.follows())
    }

    pub(super) fn operation(&self, bindings: &[Binding]) -> Result<Operation> {
        self.operation_in(self.shape.config(bindings)?, bindings)
    }

    /// Returns the launch in a shape that is known.
    pub(super) fn operation_in(&self, config: LaunchConfig, bindings: &[Binding]) -> Result<Operation> {
        // SAFETY: the arguments have the types that the kernel was looked up with
        // (`CallArguments`). Whoever looked it up promised that it stays within what they point to,
        // as long as its contract holds (`Module::kernel`). The contract is checked before the
        // launch. For `launch_unchecked`, its caller made the promise for these arguments.
        let launch = unsafe {
            KernelOp::pack(&self.kernel, config, |packer| {
                self.slots.iter().try_for_each(|slot| packer.push(slot.value(bindings)?))
            })
        };
        Ok(Operation::Kernel(launch?))
    }

    /// Adds to a violated contract which arguments of the call are meant. The contract knows only
    /// the arguments of the kernel.
    #[cold]
    pub(super) fn explain(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::ContractViolation {
            return error;
        }
        let (message, name) = (error.message(), self.kernel.name());
        let mut meant = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            let origin = match slot {
                Slot::Memory(MemorySlot::Param(param)) | Slot::Scalar(param) => param.to_string(),
                Slot::Length(length, ..) => format!("the length of {}", length.param),
                Slot::Memory(MemorySlot::Fixed(_)) => "memory that the closure chose".to_owned(),
                Slot::Fixed(_) => "a value that the closure chose".to_owned(),
            };
            if mentions(message, index) {
                meant.push(format!("argument {index} of {name} is {origin}"));
            }
        }
        let shape = self.shape.params();
        if !shape.is_empty() && (message.contains("grid.") || message.contains("block.")) {
            let lengths: Vec<String> = shape.iter().map(ToString::to_string).collect();
            meant.push(format!("the launch shape follows the length of {}", lengths.join(" and ")));
        }
        if meant.is_empty() {
            return error;
        }
        let explained = Error::new(error.kind(), format!("{message}; here {}", meant.join(", ")));
        match error.node() {
            Some(node) => explained.at_node(node),
            None => explained,
        }
    }
}

/// Returns whether a message speaks of the kernel's argument `index`.
fn mentions(message: &str, index: usize) -> bool {
    let words = format!("argument {index}");
    message
        .match_indices(&words)
        .any(|(at, _)| !message[at + words.len()..].starts_with(|next: char| next.is_ascii_digit()))
}
