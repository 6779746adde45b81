//! Nodes that became one kernel, and how their arguments map to its arguments.

use std::sync::Arc;

use gridloom_core::backend::Kernel;
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{
    ConditionalOp, KernelArgs, KernelOp, Launch, Operation, Owner, ParamLayout, PointerArg, PointerValue,
    Test,
};
use gridloom_core::{Error, ErrorKind, Node, Result};
use smallvec::SmallVec;

use super::builtin;
use super::steps::is_inside_conditional;
use crate::rewrite::{Accesses, Looping, Pointee, Prefix, State};

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
    /// Steps of one kernel.
    Chain,
    /// Steps of one kernel under these conditionals, in the order of their headers.
    Program(Vec<InnerControl>),
    /// Steps that each thread makes by itself, with what each accesses.
    Threads(Vec<Arc<Accesses>>),
    /// Parts of one grid.
    Batch,
    /// A fill or copy that became a kernel.
    Fill,
    /// The kernel of one node, with its own arguments.
    Single,
    /// A kernel of the optimiser's own, with these arguments.
    Builtin(Box<KernelArgs>),
}

/// A conditional inside a rewritten kernel.
#[derive(Clone, Debug)]
pub(crate) struct InnerControl {
    pub(crate) node: NodeKey,
    /// The word where the number of passes is stored.
    pub(crate) passes: Region,
}

/// An additional parameter of a kernel with a prefix.
#[derive(Clone, Debug)]
pub(crate) enum Extra {
    /// The address of memory.
    Address(Region),
    /// A number.
    Number(u64),
}

/// A launch that replaces nodes.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) form: Form,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) config: LaunchConfig,
    /// The parameters before those of the pieces are filled in.
    pub(crate) header: Vec<u8>,
    /// The instructions before those of the kernel, once [`prefixed`](Call::prefixed) is set.
    pub(crate) prefix: Prefix,
    /// The parameters of the prefix.
    pub(crate) extras: Vec<Extra>,
    /// The conditions that are stored in memory, and where.
    pub(crate) stored: Vec<(ConditionKey, Region)>,
    /// The kernel with the prefix.
    pub(crate) prefixed: Option<Arc<dyn Kernel>>,
    /// The memory that the kernel keeps between launches.
    pub(crate) state: Option<(State, Region)>,
}

/// Nodes that became one kernel.
#[derive(Clone, Debug)]
pub(crate) struct Fusion {
    /// The node in the optimised graph.
    pub(crate) node: Node,
    /// Its name in reports.
    pub(crate) name: String,
    pub(crate) call: Call,
}

/// A change that needs another rewritten kernel.
#[derive(Debug)]
pub(crate) struct NeedsAnother;

impl Fusion {
    /// Returns the operation of its node, for the nodes as they are in this definition.
    pub(crate) fn operation(&self, definition: &Definition) -> std::result::Result<Operation, NeedsAnother> {
        self.call.operation(definition)
    }
}

impl Call {
    /// Creates a launch without a prefix.
    pub(crate) fn new(form: Form, pieces: Vec<Piece>, kernel: Arc<dyn Kernel>, config: LaunchConfig) -> Self {
        Call {
            form,
            pieces,
            kernel,
            config,
            header: Vec::new(),
            prefix: Prefix::default(),
            extras: Vec::new(),
            stored: Vec::new(),
            prefixed: None,
            state: None,
        }
    }

    pub(crate) fn operation(&self, definition: &Definition) -> std::result::Result<Operation, NeedsAnother> {
        let mut args = match &self.form {
            Form::Single => self.launch(definition, &self.pieces[0])?.args().clone(),
            Form::Builtin(args) => (**args).clone(),
            // Whether threads need what others wrote depends on the memory that is passed.
            Form::Threads(accesses) if !self.are_apart(definition, accesses) => return Err(NeedsAnother),
            _ => self.args(definition)?,
        };
        let mut kernel = &self.kernel;
        if let Some(prefixed) = &self.prefixed {
            kernel = prefixed;
            self.store_conditions(&mut args)?;
            self.extras.iter().for_each(|extra| push(&mut args, extra));
        }
        // SAFETY: the kernel treats each slice of its parameters as the original kernel treats the
        // same bytes as its parameters. Whoever launched the original promised that it stays inside
        // the memory they name, in any shape, at any time. Fills and copies stay inside their
        // regions, which the core checked. The addresses for passes, tests and conditions are
        // memory of the plan of the size that the kernel uses. All regions and owners are among the
        // arguments, and so kept alive.
        let launch = unsafe { KernelOp::new(kernel.clone(), self.config, args) };
        Ok(Operation::Kernel(Launch::new(launch)))
    }

    /// Returns whether no thread accesses what another one writes in an earlier or later step.
    fn are_apart(&self, definition: &Definition, accesses: &[Arc<Accesses>]) -> bool {
        let memory: Vec<Pointees> =
            self.pieces.iter().map(|piece| Pointees::of(definition, piece.node)).collect();
        memory.iter().zip(accesses).enumerate().all(|(at, (own, one))| {
            let mut later = memory.iter().zip(accesses).skip(at + 1);
            later.all(|(theirs, other)| one.allow(other, &|at| own.get(at), &|at| theirs.get(at)))
        })
    }

    /// Replaces the handles of conditions by the addresses of their words.
    fn store_conditions(&self, args: &mut KernelArgs) -> std::result::Result<(), NeedsAnother> {
        if !self.prefix.stored_conditions {
            return Ok(());
        }
        let KernelArgs { bytes, layout, pointers, .. } = args;
        for pointer in pointers.iter_mut() {
            let PointerValue::Condition(condition) = pointer.value else { continue };
            let (_, word) = self.stored.iter().find(|(key, _)| *key == condition).ok_or(NeedsAnother)?;
            let place = layout.get(pointer.index as usize).ok_or(NeedsAnother)?;
            put(bytes, (place.offset + pointer.offset) as usize, &address_of(word).to_le_bytes());
            pointer.value = PointerValue::Region(word.clone());
        }
        Ok(())
    }

    /// Returns the launch of a piece, if it still has the kernel and shape that were rewritten.
    fn launch<'d>(
        &self,
        definition: &'d Definition,
        piece: &Piece,
    ) -> std::result::Result<&'d Launch, NeedsAnother> {
        match (definition.node(piece.node).operation(), &piece.launch) {
            (Operation::Kernel(launch), Some((kernel, config)))
                if is_same(launch.kernel(), kernel) && launch.config() == config =>
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
        let mut conditions: Vec<ConditionKey> = Vec::new();
        if let Form::Program(controls) = &self.form {
            // Inside a loop the kernel runs several times in a launch, and the last execution of
            // each conditional counts. The words start at 0 then.
            let keeps = controls.first().is_some_and(|first| is_inside_conditional(definition, first.node));
            for (index, control) in controls.iter().enumerate() {
                let Operation::Conditional(conditional) = definition.node(control.node).operation() else {
                    return Err(NeedsAnother);
                };
                if let Test::Condition(condition) = conditional.test {
                    conditions.push(condition);
                }
                let at = Looping::BYTES * index as u32;
                control_header(definition, conditional, at, &mut bytes, &mut pointers);
                put(&mut bytes, (at + Looping::KEEPS) as usize, &u32::from(keeps).to_le_bytes());
                put(&mut bytes, (at + Looping::PASSES) as usize, &address_of(&control.passes).to_le_bytes());
                let value = PointerValue::Region(control.passes.clone());
                pointers.push(PointerArg { index: 0, offset: at + Looping::PASSES, value });
            }
        }
        if let Some((state, memory)) = &self.state {
            put(&mut bytes, state.at as usize, &address_of(memory).to_le_bytes());
            let value = PointerValue::Region(memory.clone());
            pointers.push(PointerArg { index: 0, offset: state.at, value });
        }
        for piece in &self.pieces {
            match definition.node(piece.node).operation() {
                Operation::Kernel(_) => {
                    let args = self.launch(definition, piece)?.args();
                    put(&mut bytes, piece.slice as usize, &args.bytes);
                    for pointer in &args.pointers {
                        let place = args.layout.get(pointer.index as usize).ok_or(NeedsAnother)?;
                        let offset = piece.slice + place.offset + pointer.offset;
                        if let PointerValue::Condition(condition) = pointer.value
                            && !conditions.is_empty()
                        {
                            let number = conditions.iter().position(|known| *known == condition);
                            let number = number.ok_or(NeedsAnother)? as u32;
                            let handle = match &self.state {
                                // In memory, it is the address of its entries.
                                Some((_, memory)) => address_of(memory) + u64::from(State::condition(number)),
                                // In shared memory, it is the offset of its word.
                                None => 4 * u64::from(number),
                            };
                            put(&mut bytes, offset as usize, &handle.to_le_bytes());
                            continue;
                        }
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
}

/// The memory that the pointers of a kernel's arguments name.
pub(crate) struct Pointees(SmallVec<[(u64, Pointee); 4]>);

impl Pointees {
    pub(crate) fn of(definition: &Definition, node: NodeKey) -> Self {
        let Operation::Kernel(launch) = definition.node(node).operation() else {
            return Pointees(SmallVec::new());
        };
        let args = launch.args();
        let pointee = |pointer: &PointerArg| {
            let PointerValue::Region(region) = &pointer.value else { return None };
            let Base::Allocation(memory) = &region.base else { return None };
            let place = args.layout.get(pointer.index as usize)?;
            let start = memory.address();
            let address = start.wrapping_add(region.offset);
            let pointee = Pointee { address, start, end: start.saturating_add(memory.bytes()) };
            Some((u64::from(place.offset + pointer.offset), pointee))
        };
        Pointees(args.pointers.iter().filter_map(pointee).collect())
    }

    /// Returns the memory of the pointer at this offset of the arguments, if it is known.
    pub(crate) fn get(&self, at: u64) -> Option<Pointee> {
        self.0.iter().find(|(offset, _)| *offset == at).map(|(_, pointee)| *pointee)
    }
}

/// Returns whether both are the same kernel, even if it was looked up twice or its module was
/// loaded twice. Kernels that use variables of their module are not rewritten.
fn is_same(one: &Arc<dyn Kernel>, other: &Arc<dyn Kernel>) -> bool {
    let backends = |kernel: &Arc<dyn Kernel>| kernel.unsigned().unwrap_or(kernel).clone();
    Arc::ptr_eq(one, other)
        || Arc::ptr_eq(&backends(one), &backends(other))
        || one.name() == other.name() && one.ptx().is_some() && one.ptx() == other.ptx()
}

/// Writes the header of a conditional inside a program.
fn control_header(
    definition: &Definition,
    conditional: &ConditionalOp,
    at: u32,
    bytes: &mut [u8],
    pointers: &mut Vec<PointerArg>,
) {
    let mut limit = conditional.max_passes.unwrap_or(u64::MAX);
    match &conditional.test {
        Test::Count(count) => limit = limit.min(*count),
        Test::Value(region) => {
            let offset = at + Looping::VALUE;
            put(bytes, offset as usize, &address_of(region).to_le_bytes());
            pointers.push(PointerArg { index: 0, offset, value: PointerValue::Region(region.clone()) });
        }
        Test::Condition(condition) => {
            put(bytes, (at + Looping::INITIAL) as usize, &default_of(definition, *condition).to_le_bytes());
        }
    }
    put(bytes, (at + Looping::LIMIT) as usize, &limit.to_le_bytes());
}

/// Returns the value that a condition has at the start of a launch.
pub(crate) fn default_of(definition: &Definition, condition: ConditionKey) -> u32 {
    definition.get_condition(condition).and_then(|data| data.default_value()).unwrap_or(0)
}

/// Returns the address of a region, or 0 if it is known only when the graph is lowered.
pub(crate) fn address_of(region: &Region) -> u64 {
    match &region.base {
        Base::Allocation(allocation) => allocation.address().wrapping_add(region.offset),
        _ => 0,
    }
}

/// Appends a parameter of 8 bytes.
pub(crate) fn push(args: &mut KernelArgs, extra: &Extra) {
    let offset = args.layout.buffer_bytes().next_multiple_of(8);
    let index = args.layout.len() as u32;
    args.bytes.resize(offset + 8, 0);
    let word = match extra {
        Extra::Address(region) => {
            let value = PointerValue::Region(region.clone());
            args.pointers.push(PointerArg { index, offset: 0, value });
            address_of(region)
        }
        Extra::Number(number) => *number,
    };
    put(&mut args.bytes, offset, &word.to_le_bytes());
    args.layout.push(ParamLayout { offset: offset as u32, size: 8 });
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    // The last parameters of a kernel may be shorter than their slice.
    let end = (at + value.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&value[..end - at]);
}

/// Returns the error for a failure that is a bug of the optimiser.
pub(crate) fn unexpected(what: &str) -> Error {
    let message =
        format!("the optimiser {what}, which is a defect in it; instantiate this graph without optimisation");
    Error::new(ErrorKind::InvalidState, message)
}

/// Unwraps the operation of a definition that was just planned, for which it cannot fail.
pub(crate) fn planned(operation: std::result::Result<Operation, NeedsAnother>) -> Result<Operation> {
    operation.map_err(|NeedsAnother| unexpected("does not know its own kernel"))
}
