//! Kernel nodes that are ready to be given other values.
//!
//! In a loop the same nodes get other plain values again and again, and the memory they are given stays. Such a change goes to a copy of the node's argument
//! buffer and to the backend, which keeps what else it has to tell the device: no reference is counted, nothing is moved, and the definition is not
//! touched. It catches up when somebody looks at it.

use std::sync::Arc;

use smallvec::SmallVec;

use super::bytes::{Bytes, Undo};
use crate::backend;
use crate::graph::{Definition, NodeKey};
use crate::launch::LaunchConfig;
use crate::memory::{Base, Region};
use crate::op::contract::{GivenMemory, Integer, Launched, Signature, plain_address};
use crate::op::{KernelOp, Operation, PointerArg, PointerValue};

/// The region that an argument is, without keeping it alive.
///
/// Two that are equal are the same memory if one of them is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId {
    allocation: usize,
    offset: u64,
    bytes: u64,
}

impl RegionId {
    /// The bytes from `offset` on of the allocation at this address in the host's memory.
    #[inline]
    pub fn new(allocation: *const (), offset: u64, bytes: u64) -> Self {
        RegionId { allocation: allocation.addr(), offset, bytes }
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// That of a region, where it is one of memory that is there independently of graphs.
    #[inline]
    pub fn of(region: &Region) -> Option<Self> {
        match &region.base {
            Base::Allocation(allocation) => {
                Some(RegionId::new(Arc::as_ptr(allocation).cast(), region.offset, region.bytes))
            }
            _ => None,
        }
    }
}

/// Where an argument lies, and what it is.
#[derive(Clone, Copy)]
struct Place {
    offset: u32,
    size: u32,
    /// The memory it is the address of.
    memory: Option<RegionId>,
}

/// A kernel node and its arguments.
struct Block {
    node: NodeKey,
    /// Whether it is the node's: else something else was put there since.
    is_valid: bool,
    /// Whether the definition is behind. It is not where the block is not valid.
    is_ahead: bool,
    /// Tells kernels apart. The definition keeps it.
    kernel: usize,
    /// What every change is checked against.
    signature: Option<Arc<Signature>>,
    bytes: Bytes,
    places: SmallVec<[Place; 4]>,
    /// How many of the arguments are memory.
    memories: usize,
    config: LaunchConfig,
    /// Whether a launch of the kernel differs in its shape and its arguments at most: where they lie is known, and it keeps nothing else.
    is_plain: bool,
}

/// In what a launch differs from what is there.
enum Difference {
    Nothing,
    /// In plain values.
    Values,
    /// In memory, and maybe in values.
    Memory,
    More,
}

/// The memory that is an argument by itself.
#[inline]
fn given_memory(pointer: &PointerArg) -> Option<RegionId> {
    match &pointer.value {
        PointerValue::Region(region) if pointer.offset == 0 => RegionId::of(region),
        _ => None,
    }
}

/// Whether memory cannot be freed under a node, so that it has to be looked at once.
fn stays(pointer: &PointerArg) -> bool {
    match &pointer.value {
        PointerValue::Region(Region { base: Base::Allocation(memory), .. }) => !memory.may_be_released(),
        _ => false,
    }
}

/// The nodes of an executable that are ready.
#[derive(Default)]
pub(super) struct Ready {
    /// By the index of a node: the number of its block and 1; 0 where it has none, and [`NEVER`] where that was tried in vain.
    numbers: Vec<u32>,
    blocks: Vec<Block>,
    /// The blocks that the definition is behind of.
    ahead: Vec<u32>,
}

const NEVER: u32 = u32::MAX;

impl Ready {
    /// Whether the definition says what the nodes do.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Has a definition catch up.
    pub(super) fn settle(&mut self, definition: &mut Definition) {
        for number in self.ahead.drain(..) {
            let block = &mut self.blocks[number as usize];
            block.is_ahead = false;
            let node = definition.nodes.get_mut(block.node);
            if let Some(Operation::Kernel(kernel)) = node.map(|node| &mut node.operation)
                && kernel.args.bytes[..] != block.bytes[..]
            {
                kernel.make_mut().args.bytes.copy_from_slice(&block.bytes);
            }
        }
    }

    /// Something else is put into the place of what the node of a block does, or of a part of it. The definition does not lag behind.
    #[inline]
    pub(super) fn forget_number(&mut self, number: usize) {
        self.blocks[number].is_valid = false;
    }

    /// The same for a node that may have a block.
    #[inline]
    pub(super) fn forget(&mut self, node: NodeKey) {
        if let Some(&number) = self.numbers.get(node.index())
            && let Some(block) = self.blocks.get_mut((number as usize).wrapping_sub(1))
        {
            block.is_valid = false;
        }
    }

    /// Arguments of a node were changed in the definition.
    #[inline]
    pub(super) fn look_again(&mut self, definition: &Definition, node: NodeKey) {
        if let Some(number) = self.find(node) {
            let block = &mut self.blocks[number];
            block.is_valid = match definition.get_node(node).map(|node| node.operation()) {
                Some(Operation::Kernel(launch)) => block.look_again(launch),
                _ => false,
            };
        }
    }

    /// The number of the block of a node, where it has one that is its own.
    #[inline]
    pub(super) fn find(&self, node: NodeKey) -> Option<usize> {
        let number = (*self.numbers.get(node.index())? as usize).wrapping_sub(1);
        self.blocks.get(number).filter(|block| block.is_valid).map(|_| number)
    }

    /// Whether it is worth trying to get a node ready.
    #[inline]
    pub(super) fn may_add(&self, node: NodeKey) -> bool {
        self.numbers.get(node.index()) != Some(&NEVER)
    }

    /// Gets a node ready, if it launches a kernel whose arguments are plain values and memory that is there for good. The definition does not lag behind.
    #[cold]
    pub(super) fn add(
        &mut self,
        definition: &Definition,
        node: NodeKey,
        backend: &mut dyn backend::Executable,
    ) -> Option<usize> {
        if self.numbers.is_empty() {
            self.numbers = vec![0; definition.node_bound()];
        }
        let known = self.numbers.get_mut(node.index())?;
        let number = if *known == 0 { self.blocks.len() } else { *known as usize - 1 };
        let block = match definition.get_node(node)?.operation() {
            Operation::Kernel(launch) => {
                Block::new(node, launch).filter(|_| backend.prepare(number, node, launch))
            }
            _ => None,
        };
        let Some(block) = block else {
            *known = NEVER;
            return None;
        };
        *known = number as u32 + 1;
        match self.blocks.get_mut(number) {
            Some(there) => *there = block,
            None => self.blocks.push(block),
        }
        Some(number)
    }

    /// Has `write` give the node of a block other plain values, or fails and leaves it with those it had; the definition has to be settled then.
    #[inline]
    pub(super) fn set(
        &mut self,
        backend: &mut dyn backend::Executable,
        number: usize,
        which: Which<'_>,
        write: impl FnOnce(&mut ArgWriter<'_>) -> bool,
    ) -> Result<(), Refusal> {
        let block = &mut self.blocks[number];
        let places = match which {
            Which::All(kernel) if block.kernel == identity(kernel) => Some(&block.places[..]),
            Which::All(_) => None,
            Which::One(index) => block.places.get(index..=index),
        };
        let Some(places) = places else { return Err(Refusal::Other) };
        let mut bytes = Undo::new(&mut block.bytes);
        let mut writer = ArgWriter { places: places.iter(), bytes: &mut bytes };
        if !write(&mut writer) || !writer.is_done() {
            return Err(Refusal::Other);
        }
        let is_looked_at = |signature: &Signature| match which {
            Which::All(_) => true,
            Which::One(index) => signature.mentions(index),
        };
        if let Some(signature) = block.signature.as_deref().filter(|signature| is_looked_at(signature))
            && !signature.is_kept_by(&GivenArgs {
                bytes: &bytes,
                places: &block.places,
                config: &block.config,
            })
        {
            return Err(Refusal::Other);
        }
        match backend.set_arguments(&[(number, &bytes)]) {
            Ok(true) => bytes.keep(),
            refused => {
                drop(bytes);
                block.is_valid = false;
                return Err(if refused.is_err() { Refusal::Failed } else { Refusal::Other });
            }
        }
        if !block.is_ahead {
            block.is_ahead = true;
            self.ahead.push(number as u32);
        }
        Ok(())
    }

    /// The node of a block.
    pub(super) fn node(&self, number: usize) -> NodeKey {
        self.blocks[number].node
    }

    /// Where an argument of the node of a block lies.
    pub(super) fn offset(&self, number: usize, index: u32) -> Option<u32> {
        self.blocks[number].places.get(index as usize).map(|place| place.offset)
    }

    /// Notes the memory that was written as an argument of the node of a block.
    #[inline]
    pub(super) fn set_memory(&mut self, number: usize, index: u32, memory: Option<RegionId>) {
        if let Some(place) = self.blocks[number].places.get_mut(index as usize) {
            place.memory = memory;
        }
    }

    /// Returns whether the arguments of the node of a block keep the contract of its kernel.
    #[inline]
    pub(super) fn keeps_contract(&self, number: usize) -> bool {
        let block = &self.blocks[number];
        block.signature.as_deref().is_none_or(|signature| {
            let (bytes, places, config) = (&*block.bytes, &*block.places, &block.config);
            signature.is_kept_by(&GivenArgs { bytes, places, config })
        })
    }

    /// The arguments of the node of a block, to be written; [`tell`](Ready::tell) is to follow.
    #[inline]
    pub(super) fn bytes_mut(&mut self, number: usize) -> &mut [u8] {
        let block = &mut self.blocks[number];
        if !block.is_ahead {
            block.is_ahead = true;
            self.ahead.push(number as u32);
        }
        &mut block.bytes
    }

    /// Writes the arguments of an operation that is to take the place of another one; [`tell`](Ready::tell) is to follow. Whether there is nothing else in which it differs.
    #[inline]
    pub(super) fn take_arguments(
        &mut self,
        definition: &Definition,
        backend: &mut dyn backend::Executable,
        (node, old): (NodeKey, &Operation),
        (other, new): (NodeKey, &Operation),
        written: &mut Written,
    ) -> bool {
        let number = match self.find(node) {
            Some(number) => number,
            None if old.same(new) => return true,
            None if !self.may_add(node) => return false,
            None => match self.add(definition, node, backend) {
                Some(number) => number,
                None => return false,
            },
        };
        let block = &mut self.blocks[number];
        let Operation::Kernel(new) = new else { return false };
        match block.compare(new) {
            Difference::Nothing => return true,
            Difference::Values => {}
            Difference::Memory => {
                written.moved.push((number, other));
                for pointer in &new.args.pointers {
                    block.places[pointer.index as usize].memory = given_memory(pointer);
                }
            }
            Difference::More => return false,
        }
        written.numbers.push(number);
        written.bytes.extend_from_slice(&block.bytes);
        block.bytes.copy_from_slice(&new.args.bytes);
        if !block.is_ahead {
            block.is_ahead = true;
            self.ahead.push(number as u32);
        }
        true
    }

    /// Puts back what was there before. The definition has to be settled then.
    #[cold]
    pub(super) fn take_back(&mut self, written: &Written) {
        for &(number, _) in &written.moved {
            self.blocks[number].is_valid = false;
        }
        let mut bytes = &written.bytes[..];
        for &number in &written.numbers {
            let there = &mut self.blocks[number].bytes;
            let (old, rest) = bytes.split_at(there.len());
            there.copy_from_slice(old);
            bytes = rest;
        }
    }

    /// Has the backend launch these nodes with what was written to their arguments.
    #[inline]
    pub(super) fn tell(
        &self,
        backend: &mut dyn backend::Executable,
        mut numbers: impl Iterator<Item = usize>,
    ) -> Result<(), Refusal> {
        let mut refusal = Refusal::Other;
        while let Some(first) = numbers.next() {
            let mut arguments: [(usize, &[u8]); TOGETHER] = [(first, &self.blocks[first].bytes); TOGETHER];
            let mut count = 1;
            for (slot, number) in arguments[1..].iter_mut().zip(&mut numbers) {
                *slot = (number, &self.blocks[number].bytes);
                count += 1;
            }
            match backend.set_arguments(&arguments[..count]) {
                // From here on there is something to put back.
                Ok(true) => refusal = Refusal::Failed,
                Ok(false) => return Err(refusal),
                Err(_) => return Err(Refusal::Failed),
            }
        }
        Ok(())
    }
}

/// Arguments that a kernel is to be launched with, as contracts look at them.
struct GivenArgs<'a> {
    bytes: &'a [u8],
    places: &'a [Place],
    config: &'a LaunchConfig,
}

impl GivenArgs<'_> {
    #[inline]
    fn value(&self, index: usize) -> Option<&[u8]> {
        let place = self.places.get(index)?;
        self.bytes.get(place.offset as usize..)?.get(..place.size as usize)
    }
}

impl Launched for GivenArgs<'_> {
    #[inline]
    fn integer(&self, index: usize, integer: Integer) -> Option<i64> {
        integer.read(self.value(index)?)
    }

    #[inline]
    fn memory(&self, index: usize) -> GivenMemory {
        match self.places.get(index).and_then(|place| place.memory) {
            Some(memory) => GivenMemory::Bytes(memory.bytes),
            None => plain_address(self.value(index)),
        }
    }

    fn config(&self) -> &LaunchConfig {
        self.config
    }
}

/// Nodes that the backend is told of at once.
const TOGETHER: usize = 8;

/// Nodes whose arguments were written, and what was there before.
#[derive(Default)]
pub(super) struct Written {
    numbers: Vec<usize>,
    bytes: Vec<u8>,
    /// Those that were given other memory, each with the node that has it.
    moved: Vec<(usize, NodeKey)>,
}

impl Written {
    pub(super) fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    pub(super) fn moved(&self) -> &[(usize, NodeKey)] {
        &self.moved
    }
}

/// Why a node was not given other values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It takes more than that, or is to be done in another way.
    Other,
    /// The backend failed, and what it was told of may have been changed.
    Failed,
}

/// Tells kernels apart that are alive.
#[inline]
fn identity(kernel: &Arc<dyn backend::Kernel>) -> usize {
    Arc::as_ptr(kernel).addr()
}

/// Which arguments of a node are given.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    /// All, where it launches this kernel.
    All(&'a Arc<dyn backend::Kernel>),
    /// The one at this place.
    One(usize),
}

/// Writes the arguments of a kernel node, one after the other: plain values where there are plain values, and memory where it is there already.
///
/// Whoever writes holds a lock of the executable, and must not call it.
pub struct ArgWriter<'a> {
    places: std::slice::Iter<'a, Place>,
    bytes: &'a mut [u8],
}

impl ArgWriter<'_> {
    /// Writes the next argument, where it is a plain value of this size. Whether it is.
    #[inline]
    pub fn plain(&mut self, value: &[u8]) -> bool {
        let Some(place) = self.places.next() else { return false };
        let takes = place.size as usize == value.len() && place.memory.is_none();
        if takes {
            write_at(self.bytes, place.offset as usize, value);
        }
        takes
    }

    /// Whether the next argument is this memory.
    #[inline]
    pub fn memory(&mut self, memory: RegionId) -> bool {
        self.places.next().is_some_and(|place| place.memory == Some(memory))
    }

    fn is_done(&self) -> bool {
        self.places.len() == 0
    }
}

impl Block {
    fn new(node: NodeKey, launch: &KernelOp) -> Option<Self> {
        let args = &launch.args;
        let mut places: SmallVec<[Place; 4]> = args
            .layout
            .iter()
            .map(|place| Place { offset: place.offset, size: place.size, memory: None })
            .collect();
        for pointer in &args.pointers {
            let place = places.get_mut(pointer.index as usize)?;
            // Memory that can be freed under a node has to be looked at each time.
            if !stays(pointer) || place.size != 8 {
                return None;
            }
            place.memory = Some(given_memory(pointer)?);
        }
        let is_inside = |place: &Place| (place.offset as usize + place.size as usize) <= args.bytes.len();
        if !places.iter().all(is_inside) {
            return None;
        }
        let kernel = identity(&launch.kernel);
        let bytes = Bytes::new(&args.bytes);
        let is_plain = launch.kernel.params().is_some() && args.keep.is_none();
        let (memories, config) = (args.pointers.len(), launch.config);
        Some(Block {
            node,
            is_valid: true,
            is_ahead: false,
            kernel,
            signature: launch.kernel.signature().cloned(),
            bytes,
            places,
            memories,
            config,
            is_plain,
        })
    }

    /// Takes over the arguments of a launch, which differs in nothing else. Whether it can.
    #[inline]
    fn look_again(&mut self, launch: &KernelOp) -> bool {
        let args = &launch.args;
        if self.bytes.len() != args.bytes.len() || self.memories != args.pointers.len() {
            return false;
        }
        self.bytes.copy_from_slice(&args.bytes);
        args.pointers.iter().all(|pointer| {
            let place = self.places.get_mut(pointer.index as usize);
            match (place, given_memory(pointer)) {
                (Some(place), Some(given)) if place.memory.is_some() && stays(pointer) => {
                    place.memory = Some(given);
                    true
                }
                _ => false,
            }
        })
    }

    /// In what a launch differs.
    #[inline]
    fn compare(&self, launch: &KernelOp) -> Difference {
        let args = &launch.args;
        let is_like = self.is_plain
            && self.kernel == identity(&launch.kernel)
            && self.config == launch.config
            && self.bytes.len() == args.bytes.len()
            && self.memories == args.pointers.len()
            && args.keep.is_none();
        if !is_like {
            return Difference::More;
        }
        let mut memory = false;
        for pointer in &args.pointers {
            let there = self.places.get(pointer.index as usize).and_then(|place| place.memory);
            let given = given_memory(pointer);
            if there.is_none() || given.is_none() {
                return Difference::More;
            }
            memory |= there != given;
        }
        match memory {
            true if !args.pointers.iter().all(stays) => Difference::More,
            true => Difference::Memory,
            false if self.bytes[..] != args.bytes[..] => Difference::Values,
            false => Difference::Nothing,
        }
    }
}

/// Writes a value to arguments.
#[inline]
pub(super) fn write_at(bytes: &mut [u8], offset: usize, value: &[u8]) {
    let there = &mut bytes[offset..][..value.len()];
    match value.len() {
        4 => copy_chunk::<4>(there, value),
        8 => copy_chunk::<8>(there, value),
        _ => there.copy_from_slice(value),
    }
}

#[inline]
fn copy_chunk<const N: usize>(there: &mut [u8], value: &[u8]) {
    if let (Some(there), Some(value)) = (there.first_chunk_mut::<N>(), value.first_chunk::<N>()) {
        *there = *value;
    }
}
