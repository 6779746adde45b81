//! Checks on graphs that kernels launch.
//!
//! The rules are CUDA's: such a graph holds kernels, copies and fills of one device and nothing
//! that the host takes part in.

use super::InstantiateOptions;
use crate::backend;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::graph::{Definition, NodeKey};
use crate::op::{FreeTarget, Operation, Role};

/// Checks that kernels can launch a graph. `outliving` are the alloc nodes that nothing frees.
pub(super) fn check(
    device: &dyn backend::Device,
    definition: &Definition,
    outliving: &[NodeKey],
    options: &InstantiateOptions,
) -> Result<()> {
    device.check_device_launch()?;
    if options.auto_free_on_launch {
        bail!(
            InvalidArgument,
            "device_launch and auto_free_on_launch exclude each other; choose one of them"
        );
    }
    let refuse = |node: NodeKey, why: &str| {
        let message = format!("a graph that kernels launch {why}");
        Err(Error::new(ErrorKind::NotSupported, message).at_node(definition.label(node)))
    };
    if let Some(&alloc) = outliving.first() {
        return refuse(alloc, "cannot leave memory allocated; free it in the graph");
    }
    let mut is_empty = true;
    for (key, node) in definition.nodes.iter() {
        let operation = node.operation();
        let facts = operation.kind().facts();
        if !facts.in_device_launches {
            let why = format!(
                "can hold kernels, copies, fills, allocations and embedded graphs of those, and no {} node",
                facts.name
            );
            return refuse(key, &why);
        }
        if let Operation::Free(FreeTarget::Outliving(_)) = operation {
            return refuse(key, "cannot free memory of another executable");
        }
        let mut sets_condition = false;
        operation.for_each_condition(|_| sets_condition = true);
        if sets_condition {
            return refuse(key, "has no conditions that a kernel could set");
        }
        is_empty &= facts.role != Role::Work;
    }
    if is_empty {
        bail!(InvalidArgument, "a graph that kernels launch needs at least one kernel, copy or fill");
    }
    Ok(())
}
