//! Kernel nodes whose arguments change often. All parameters of the driver call, except for the
//! arguments, are prepared once.

use super::executable::{Executable, State};
use crate::driver::{Driver, DriverResult};
use crate::kernel::{Kernel, NodeArguments, PackedArguments};
use crate::sys::*;
use gridloom_core::Result;
use gridloom_core::graph::NodeKey;
use gridloom_core::lower::has_all_addresses;
use gridloom_core::op::KernelOp;

/// A kernel node, in two cache lines.
#[repr(align(64))]
pub(super) struct ReadyNode {
    exec: CUgraphExec,
    node: CUgraphNode,
    /// Without the arguments.
    parameters: CUDA_KERNEL_NODE_PARAMS_v2,
    /// How many bytes of arguments there are.
    size: usize,
}

// SAFETY: the handles are not bound to a thread; they are used by whoever has the executable to
// itself.
unsafe impl Send for ReadyNode {}

impl State {
    /// Prepares a kernel node, if its arguments can be changed in place.
    pub(super) fn prepare(&mut self, number: usize, node: NodeKey, op: &KernelOp) -> bool {
        let ready = self.ready_node(node, op);
        let can = ready.is_some();
        if self.ready.len() <= number {
            self.ready.resize_with(number + 1, || None);
        }
        self.ready[number] = ready;
        can
    }

    fn ready_node(&self, node: NodeKey, op: &KernelOp) -> Option<ReadyNode> {
        let place = self.inner.node_map.get(node)?;
        let kernel = Kernel::from_backend(&**op.kernel()).ok()?;
        let config = op.config();
        // A cooperative launch does not accept its arguments in one buffer.
        if !has_all_addresses(op.args()) || !kernel.has_known_parameters() || config.cooperative {
            return None;
        }
        kernel.allow(config).ok()?;
        let parameters = NodeArguments::new(kernel, config, &[]).describe(kernel, config);
        let exec = self.inner.units[place.unit].executable.raw();
        Some(ReadyNode { exec, node: place.node, parameters, size: op.args().bytes.len() })
    }
}

impl ReadyNode {
    /// Calls [`cuGraphExecKernelNodeSetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    ///
    /// # Safety
    /// The context is current, and the bytes are arguments for the kernel, as many as there were.
    #[inline]
    unsafe fn set(&mut self, driver: &Driver, bytes: &[u8]) -> DriverResult<()> {
        debug_assert_eq!(bytes.len(), self.size);
        let mut arguments = PackedArguments::new(bytes);
        self.parameters.extra = arguments.list();
        // SAFETY: the node is of the graph that the executable was made from, and launches the
        // kernel of the parameters; the arguments are copied. The rest is promised by the caller.
        unsafe { driver.cu_graph_exec_kernel_node_set_params(self.exec, self.node, &self.parameters) }
    }
}

impl Executable {
    /// Sets the arguments of prepared nodes. Returns `false` if they are not prepared, and changes
    /// nothing.
    #[inline]
    pub(super) fn set_ready(&mut self, arguments: &[(usize, &[u8])]) -> Result<bool> {
        let state = &mut self.state;
        if !state.is_at_rest() {
            return Ok(false);
        }
        // A single argument buffer is checked below, when it is set.
        let is_ready = |&(number, bytes): &(usize, &[u8])| matches!(state.ready.get(number), Some(Some(ready)) if ready.size == bytes.len());
        if arguments.len() > 1 && !arguments.iter().all(is_ready) {
            return Ok(false);
        }
        let context = &self.shared.context;
        let _entered = context.enter()?;
        for &(number, bytes) in arguments {
            match state.ready.get_mut(number) {
                Some(Some(ready)) if ready.size == bytes.len() => {
                    // SAFETY: the context is current; the core gives bytes for the kernel that the
                    // node was prepared with.
                    unsafe { ready.set(context.driver(), bytes) }?;
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}
