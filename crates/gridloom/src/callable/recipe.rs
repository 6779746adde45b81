//! How the nodes of a callable's graph follow its arguments.

use std::sync::Arc;

use gridloom_core::backend;
use gridloom_core::graph::NodeKey;
use gridloom_core::op::{KernelOp, Operation};

use super::operands::{LaunchShape, Slot};
use super::params::Binding;
use crate::Result;

/// Makes the operation of a node from the arguments of a call.
type Make = Box<dyn Fn(&[Binding]) -> Result<Operation> + Send + Sync>;

/// A node that follows the arguments.
pub(super) struct Recipe {
    pub(super) node: NodeKey,
    /// A bit for each parameter that it follows.
    pub(super) follows: u64,
    /// Bytes of kernel arguments.
    pub(super) bytes: u64,
    pub(super) what: What,
}

/// How a node follows the arguments.
pub(super) enum What {
    Kernel(KernelRecipe),
    Other(Make),
}

/// A kernel launch that follows the arguments.
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
        let config = self.shape.config(bindings)?;
        // SAFETY: the arguments are of the types that the kernel was looked up with (`CallArguments`), and whoever looked it up
        // promised that it stays within what they lead to where its contract is kept (`Module::kernel`), which is checked before it
        // is launched; or `launch_unchecked` was promised it of these arguments.
        let launch = unsafe {
            KernelOp::pack(&self.kernel, config, |packer| {
                self.slots.iter().try_for_each(|slot| packer.push(slot.value(bindings)?))
            })
        };
        Ok(Operation::Kernel(launch?))
    }
}
