//! Nodes that became one kernel, and how their arguments map to its arguments.

use std::sync::Arc;

use gridloom_core::backend::{Allocation, Kernel};
use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ConditionalOp, KernelArgs, KernelOp, Launch, Operation, Owner, ParamLayout, PointerArg, PointerValue,
    Test,
};
use gridloom_core::{Error, ErrorKind, Node, Result};

use super::builtin;
use crate::rewrite::Looping;

/// A node of the original graph inside a rewritten kernel.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) node: NodeKey,
    /// The offset of its parameters in those of the rewritten kernel.
    pub(crate) slice: u32,
    /// The kernel and shape it launched when the rewritten kernel was made. Another kernel or shape
    /// needs another rewritten kernel. `None` for fills and copies.
    launch: Option<(Arc<dyn Kernel>, LaunchConfig)>,
}

impl Piece {
    pub(crate) fn new(definition: &Definition, node: NodeKey, slice: u32) -> Self {
        let launch = match definition.node(node).operation() {
            Operation::Kernel(launch) => Some((launch.kernel().clone(), *launch.config())),
            _ => None,
        };
        Piece { node, slice, launch }
    }
}

/// The form in which nodes were combined.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// Steps of one block.
    Chain,
    /// Steps of one block in a loop: the conditional, and where the number of passes is stored.
    Loop { node: NodeKey, passes: Arc<dyn Allocation> },
    /// Parts of one grid.
    Batch,
    /// A fill or copy that became a kernel.
    Fill,
    /// The same kernel with instructions before its own. Its arguments are unchanged.
    Prefixed,
}

/// Nodes that became one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Fusion {
    /// The node in the optimised graph.
    pub(crate) node: Node,
    /// Its name in reports: that of the loop, or of its nodes.
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) config: LaunchConfig,
    /// The parameters before those of the pieces are filled in.
    pub(crate) header: Vec<u8>,
}

/// A change that needs another rewritten kernel.
#[derive(Debug)]
pub(crate) struct NeedsAnother;

/// The parts of a rewritten kernel's launch, before its node exists.
pub(crate) struct Parts<'a> {
    pub(crate) form: &'a Form,
    pub(crate) pieces: &'a [Piece],
    pub(crate) kernel: &'a Arc<dyn Kernel>,
    pub(crate) config: LaunchConfig,
    pub(crate) header: &'a [u8],
}

impl Fusion {
    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            form: &self.form,
            pieces: &self.pieces,
            kernel: &self.kernel,
            config: self.config,
            header: &self.header,
        }
    }

    /// Returns the operation of its node, for the nodes as they are in this definition.
    pub(crate) fn operation(&self, definition: &Definition) -> std::result::Result<Operation, NeedsAnother> {
        self.parts().operation(definition)
    }
}

impl Parts<'_> {
    pub(crate) fn operation(&self, definition: &Definition) -> std::result::Result<Operation, NeedsAnother> {
        let args = match self.form {
            Form::Prefixed => {
                let launch = self.launch(definition, &self.pieces[0])?;
                launch.args().clone()
            }
            _ => self.args(definition)?,
        };
        // SAFETY: the kernel treats each slice of its parameters as the original kernel treats the
        // same bytes as its parameters. Whoever launched the original promised that it stays inside
        // the memory they name, in any shape, at any time. Fills and copies stay inside their
        // regions, which the core checked. The address for passes is memory of 8 bytes. All regions
        // and owners are among the arguments, and so kept alive.
        let launch = unsafe { KernelOp::new(self.kernel.clone(), self.config, args) };
        Ok(Operation::Kernel(Launch::new(launch)))
    }

    /// Returns the launch of a piece, if it still has the kernel and shape that were rewritten.
    fn launch<'d>(
        &self,
        definition: &'d Definition,
        piece: &Piece,
    ) -> std::result::Result<&'d Launch, NeedsAnother> {
        match (definition.node(piece.node).operation(), &piece.launch) {
            (Operation::Kernel(launch), Some((kernel, config)))
                if Arc::ptr_eq(launch.kernel(), kernel) && launch.config() == config =>
            {
                Ok(launch)
            }
            _ => Err(NeedsAnother),
        }
    }

    fn args(&self, definition: &Definition) -> std::result::Result<KernelArgs, NeedsAnother> {
        let mut bytes = self.header.to_vec();
        let mut pointers = Vec::new();
        let mut keeps: Vec<Owner> = Vec::new();
        if let Form::Loop { node, passes } = self.form {
            let Operation::Conditional(conditional) = definition.node(*node).operation() else {
                return Err(NeedsAnother);
            };
            self.loop_header(definition, conditional, &mut bytes, &mut pointers);
            let region = Region::whole(passes.clone());
            put(&mut bytes, Looping::PASSES as usize, &passes.address().to_le_bytes());
            pointers.push(PointerArg {
                index: 0,
                offset: Looping::PASSES,
                value: PointerValue::Region(region),
            });
        }
        let in_loop = matches!(self.form, Form::Loop { .. });
        for piece in self.pieces {
            match definition.node(piece.node).operation() {
                Operation::Kernel(_) => {
                    let args = self.launch(definition, piece)?.args();
                    put(&mut bytes, piece.slice as usize, &args.bytes);
                    for pointer in &args.pointers {
                        // Inside its own loop there is one condition, and the handle is not read.
                        if in_loop && matches!(pointer.value, PointerValue::Condition(_)) {
                            continue;
                        }
                        let place = args.layout.get(pointer.index as usize).ok_or(NeedsAnother)?;
                        let offset = piece.slice + place.offset + pointer.offset;
                        pointers.push(PointerArg { index: 0, offset, value: pointer.value.clone() });
                    }
                    keeps.extend(args.owner.clone());
                }
                operation @ (Operation::Memset(_) | Operation::Memcpy(_)) => {
                    if builtin::obstacle(definition, operation).is_some() {
                        return Err(NeedsAnother);
                    }
                    let args = match operation {
                        Operation::Memset(fill) => builtin::fill_args(fill),
                        Operation::Memcpy(copy) => builtin::copy_args(copy),
                        _ => return Err(NeedsAnother),
                    };
                    put(&mut bytes, piece.slice as usize, &args.bytes);
                    pointers.extend(
                        args.pointers
                            .into_iter()
                            .map(|pointer| PointerArg { offset: piece.slice + pointer.offset, ..pointer }),
                    );
                }
                _ => return Err(NeedsAnother),
            }
        }
        let keep = match keeps.len() {
            0 => None,
            1 => keeps.pop(),
            _ => Some(Owner::new(Arc::new(keeps))),
        };
        let size = u32::try_from(bytes.len()).map_err(|_| NeedsAnother)?;
        let layout = [ParamLayout { offset: 0, size }].into_iter().collect();
        Ok(KernelArgs { bytes: bytes.as_slice().into(), layout, pointers: pointers.into(), owner: keep })
    }

    fn loop_header(
        &self,
        definition: &Definition,
        conditional: &ConditionalOp,
        bytes: &mut [u8],
        pointers: &mut Vec<PointerArg>,
    ) {
        let mut limit = conditional.max_passes.unwrap_or(u64::MAX);
        match &conditional.test {
            Test::Count(count) => limit = limit.min(*count),
            Test::Value(region) => {
                if let gridloom_core::memory::Base::Allocation(allocation) = &region.base {
                    let address = allocation.address().wrapping_add(region.offset);
                    put(bytes, Looping::VALUE as usize, &address.to_le_bytes());
                }
                let value = PointerValue::Region(region.clone());
                pointers.push(PointerArg { index: 0, offset: Looping::VALUE, value });
            }
            Test::Condition(condition) => {
                let initial =
                    definition.get_condition(*condition).and_then(|data| data.default_value()).unwrap_or(0);
                put(bytes, Looping::INITIAL as usize, &initial.to_le_bytes());
            }
        }
        put(bytes, Looping::LIMIT as usize, &limit.to_le_bytes());
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    // The last parameters of a kernel may be shorter than their slice.
    let end = (at + value.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&value[..end - at]);
}

/// Returns the error for a failure that is a bug of the optimiser.
pub(crate) fn unexpected(what: &str) -> Error {
    Error::new(ErrorKind::InvalidState, format!("the optimiser {what}; switch it off for this graph"))
}

/// Unwraps the operation of a definition that was just planned, for which it cannot fail.
pub(crate) fn planned(operation: std::result::Result<Operation, NeedsAnother>) -> Result<Operation> {
    operation.map_err(|NeedsAnother| unexpected("does not know its own kernel"))
}
