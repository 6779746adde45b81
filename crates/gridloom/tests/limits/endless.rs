//! Graphs and kernels that do not end by themselves.

use gridloom::prelude::*;

use crate::support::GraphKernels;

/// A loop whose condition stays 1. Each pass adds 1 to `passes`.
pub(super) fn endless_loop(kernels: &GraphKernels, passes: &Buffer<i32>) -> Result<Executable> {
    let graph = Graph::new(&kernels.device);
    let again = graph.condition(Some(1))?;
    let repeat = graph.while_loop(&again)?.named("for ever")?;
    kernels.bump(&repeat.body(), passes, 1)?;
    repeat.memset(passes, -1i32)?;
    graph.instantiate_with(&driven())
}

/// Loops are driven by the host on a GPU, where nothing could stop one that the GPU runs by itself.
pub(super) fn driven() -> InstantiateOptions {
    InstantiateOptions::new().conditional_mode(ConditionalMode::Hosted)
}
