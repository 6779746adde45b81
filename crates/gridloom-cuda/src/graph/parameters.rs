//! The work of a node in the driver's terms. It is the same when the node is added and when it is
//! changed later.

use super::builtin::{Choice, Decide, LoopStep};
use super::lower::Lowering;
use super::resources::{Held, NodePlaces};
use crate::event::Event;
use crate::failure::HostCall;
use crate::kernel::Kernel;
use crate::sys::*;
use crate::transfer;
use gridloom_core::backend;
use gridloom_core::graph::{ConditionKey, NodeKey};
use gridloom_core::lower::{self, has_all_addresses};
use gridloom_core::op::{ConditionalForm, ConditionalOp, KernelOp, Operation, PointerValue, Test};
use gridloom_core::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The parameters of every kind of node but kernels and conditionals.
pub(super) enum Parameters {
    Fill(CUDA_MEMSET_NODE_PARAMS),
    Copy(CUDA_MEMCPY3D),
    Call(CUDA_HOST_NODE_PARAMS_v1),
    Record(CUevent),
    Wait(CUevent),
    /// A graph that stays as it was captured, and is copied.
    Opaque(Arc<dyn backend::Opaque>),
    Nothing,
}

/// A kernel with the bytes it is launched with: addresses and handles filled in.
pub(super) struct KernelArguments<'a> {
    op: &'a KernelOp,
    /// The variant that stores its conditions, where that is launched.
    stored: Option<Arc<Kernel>>,
    /// The bytes, where they are not those of the operation.
    filled_in: Option<SmallVec<[u8; 48]>>,
}

impl KernelArguments<'_> {
    pub(super) fn kernel(&self) -> Result<&Kernel> {
        match &self.stored {
            Some(kernel) => Ok(kernel),
            None => Kernel::from_backend(&**self.op.kernel()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.filled_in.as_ref().unwrap_or(&self.op.args().bytes)
    }
}

impl Lowering<'_> {
    /// Returns the parameters of a node. A callback is held under the node's key from here on.
    pub(super) fn parameters(
        &self,
        held: &mut Held,
        node: NodeKey,
        operation: &Operation,
        label: impl FnOnce() -> String,
    ) -> Result<Parameters> {
        Ok(match operation {
            Operation::Memset(op) => {
                let location = self.resources.locate(held, node, &op.dst)?;
                Parameters::Fill(transfer::fill_parameters(op, location.address))
            }
            Operation::Memcpy(op) => {
                let dst = self.resources.locate(held, node, &op.dst.region)?;
                let src = self.resources.locate(held, node, &op.src.region)?;
                Parameters::Copy(transfer::copy_parameters(op, dst, src))
            }
            Operation::Callback(callback) => {
                let failures = Arc::clone(self.resources.failures());
                let call = HostCall::new(callback.clone(), failures, Some(label()));
                let parameters = call.parameters();
                held.set_call(node, call);
                Parameters::Call(parameters)
            }
            Operation::EventRecord(event) => Parameters::Record(Event::from_backend(&**event)?.raw()),
            Operation::EventWait(event) => Parameters::Wait(Event::from_backend(&**event)?.raw()),
            Operation::Opaque(opaque) => Parameters::Opaque(Arc::clone(opaque)),
            // Kernels and conditionals are lowered elsewhere. The others only order nodes.
            Operation::Kernel(_)
            | Operation::Conditional(_)
            | Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Child(_) => Parameters::Nothing,
        })
    }

    /// Returns the kernel and bytes of a launch. `handles` has the conditions that it does not
    /// store.
    #[inline]
    pub(super) fn kernel_arguments<'a>(
        &self,
        held: &mut Held,
        node: NodeKey,
        op: &'a KernelOp,
        handles: &FxHashMap<ConditionKey, CUgraphConditionalHandle>,
    ) -> Result<KernelArguments<'a>> {
        let mut arguments = KernelArguments { op, stored: None, filled_in: None };
        if has_all_addresses(op.args()) {
            return Ok(arguments);
        }
        let stores = self.stores_conditions(op);
        let conditions = |condition| match stores {
            true => self.resources.cell_handle(condition),
            false => handles.get(&condition).copied(),
        };
        let places = NodePlaces { resources: self.resources, held, node, conditions: &conditions };
        let bytes = lower::fill_in_addresses(op.args(), &places)?;
        arguments.filled_in = Some(bytes);
        if stores {
            arguments.stored = Some(held.stored_kernel(op.kernel())?);
        }
        Ok(arguments)
    }

    /// Returns whether a kernel stores its conditions in memory: when the host tests one of them,
    /// or the driver knows none.
    pub(super) fn stores_conditions(&self, op: &KernelOp) -> bool {
        let mut conditions = op.args().pointers.iter().filter_map(|pointer| match &pointer.value {
            PointerValue::Condition(condition) => Some(*condition),
            PointerValue::Region(_) => None,
        });
        conditions.any(|condition| match self.resources.condition(condition).tested_by {
            Some(node) => self.modes.is_hosted(node),
            None => !self.capabilities.any(),
        })
    }

    /// Returns the kernel of Gridloom that decides a conditional, if one does.
    pub(super) fn decider(
        &self,
        held: &Held,
        node: NodeKey,
        op: &ConditionalOp,
        handle: CUgraphConditionalHandle,
    ) -> Result<Option<Decider>> {
        if !has_decider(op) {
            return Ok(None);
        }
        let state = self.counter(node)?;
        let limit = op.max_passes.unwrap_or(u64::MAX);
        let (value, limit) = match &op.test {
            Test::Value(region) => (self.resources.locate(held, node, region)?.address, limit),
            Test::Count(count) => (0, limit.min(*count)),
            Test::Condition(_) => (0, limit),
        };
        Ok(Some(match op.form {
            ConditionalForm::While => {
                let step = |decide| LoopStep { handle, value, state, limit, decide };
                let usual = match op.test {
                    Test::Condition(_) => Decide::ByUser,
                    Test::Value(_) | Test::Count(_) => Decide::ByValue,
                };
                // A counter says itself whether there is a first pass.
                let untested = !op.test_first && !matches!(op.test, Test::Count(_));
                Decider::Loop {
                    first: step(if untested { Decide::FirstPass } else { usual }),
                    next: step(usual),
                }
            }
            form => {
                let runs = match form {
                    ConditionalForm::If => 1..=u32::MAX,
                    ConditionalForm::Switch => 0..=op.bodies.len() as u32 - 1,
                    _ => 0..=u32::MAX,
                };
                Decider::Choice(Choice { handle, value, state, runs })
            }
        }))
    }

    /// Returns where the passes of a conditional are counted.
    pub(super) fn counter(&self, node: NodeKey) -> Result<u64> {
        let no_counter =
            || Error::new(ErrorKind::InvalidState, "a conditional has no counter for its passes");
        self.resources.counter(node).ok_or_else(no_counter)
    }
}

/// Returns whether a kernel of Gridloom's takes part in deciding a conditional. That kernel counts
/// the passes too.
pub(super) fn has_decider(op: &ConditionalOp) -> bool {
    !matches!(op.test, Test::Condition(_))
        || (op.form == ConditionalForm::While && (op.max_passes.is_some() || !op.test_first))
}

/// Which kernel of Gridloom's decides a conditional, and with what.
#[derive(Debug, Clone)]
pub(super) enum Decider {
    /// One kernel before the loop, one at the end of its body.
    Loop { first: LoopStep, next: LoopStep },
    /// One kernel before the conditional.
    Choice(Choice),
}

impl Decider {
    /// Returns the arguments of the kernel before the conditional.
    pub(super) fn before(&self) -> Vec<u8> {
        match self {
            Self::Loop { first, .. } => first.pack(),
            Self::Choice(choice) => choice.pack(),
        }
    }

    /// Returns the arguments of the kernel at the end of a loop's body.
    pub(super) fn next(&self) -> Option<Vec<u8>> {
        match self {
            Self::Loop { next, .. } => Some(next.pack()),
            Self::Choice(_) => None,
        }
    }
}
