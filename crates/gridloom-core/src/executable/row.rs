//! Rows of the argument table: the arguments of one kernel node.

use std::sync::Arc;

use smallvec::SmallVec;

use super::memory_pool::{MemoryPool, PoolEntry};
use crate::backend;
use crate::graph::{ConditionKey, NodeKey};
use crate::launch::LaunchConfig;
use crate::memory::{Base, Region, RegionId, ranges_overlap};
use crate::op::contract::{GivenMemory, Integer, Launched, Signature, plain_address};
use crate::op::{KernelOp, ParamLayout, PointerArg, PointerValue};
use crate::speed::ArgBytes;

/// The target of eight bytes of an argument.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// Memory that exists independently of graphs. The pool holds it. Another executable may free
    /// it meanwhile if it is memory that one left (`outlives`).
    Memory { region: RegionId, entry: PoolEntry, outlives: bool },
    /// Memory of an alloc node.
    AllocNode { node: NodeKey, offset: u64, bytes: u64 },
    /// A condition.
    Condition(ConditionKey),
}

/// Eight bytes of an argument that refer to memory or a condition.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Pointer {
    pub(super) index: u32,
    pub(super) offset: u32,
    pub(super) target: Target,
}

/// The position and contents of one argument.
#[derive(Clone, Copy)]
pub(super) struct ArgSlot {
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) holds: Holds,
    /// Whether the contract of the kernel depends on the argument.
    pub(super) is_checked: bool,
}

/// The contents of an argument.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Holds {
    /// A plain value.
    Value,
    /// One address or handle and nothing else: the pointer at this index.
    Pointer(u16),
    /// Pointers among other bytes, or one beyond those that can be numbered.
    Structure,
}

/// The arguments of one kernel node.
///
/// The driver displaces rows from the caches between changes, so a change costs about as much as the
/// cache lines that it touches. The fields are in the order of their use: a change of few short
/// arguments reads the first four lines.
#[repr(C, align(64))]
pub(super) struct Row {
    pub(super) node: NodeKey,
    /// The identity of the kernel. The definition keeps the kernel alive.
    pub(super) kernel: usize,
    /// The index of the row's record in the journal, or [`NONE`] if the row is unchanged.
    pub(super) record: u32,
    /// Whether the row is valid for its node. If not, it is rebuilt from the definition when
    /// needed.
    pub(super) is_current: bool,
    /// Whether the definition lags behind the row.
    pub(super) is_ahead: bool,
    /// Whether the pointers were removed from the launch in the definition, so that it does not
    /// keep memory alive that the row no longer refers to. The definition then lags behind too.
    pub(super) is_hollow: bool,
    /// Whether the backend accepts other arguments in place.
    pub(super) in_place: bool,
    /// Whether launches of this kernel differ in nothing but shape and arguments.
    pub(super) is_simple: bool,
    /// Whether the contract depends on where memory lies.
    pub(super) checks_places: bool,
    /// The signature that changes are checked against.
    pub(super) signature: Option<Arc<Signature>>,
    pub(super) bytes: ArgBytes,
    pub(super) slots: SmallVec<[ArgSlot; 4]>,
    pub(super) pointers: Pointers,
    pub(super) config: LaunchConfig,
}

/// Stands for no row and for no record.
pub(super) const NONE: u32 = u32::MAX;

pub(super) type Pointers = SmallVec<[Pointer; 3]>;

/// Returns a number that identifies a live kernel.
#[inline]
pub(super) fn identity(kernel: &Arc<dyn backend::Kernel>) -> usize {
    Arc::as_ptr(kernel).cast::<()>().addr()
}

impl Row {
    /// Creates the row of a node from its launch in the definition. `in_place` is whether the
    /// backend accepts other arguments in place.
    pub(super) fn new(node: NodeKey, launch: &KernelOp, pool: &mut MemoryPool, in_place: bool) -> Self {
        let args = &launch.args;
        let signature = launch.kernel.signature();
        let slot = |(index, param): (usize, &ParamLayout)| ArgSlot {
            offset: param.offset,
            size: param.size,
            holds: Holds::Value,
            is_checked: signature.is_some_and(|signature| signature.depends_on(index)),
        };
        let mut row = Row {
            node,
            is_current: true,
            is_ahead: false,
            is_hollow: false,
            in_place,
            is_simple: launch.kernel.params().is_some() && args.owner.is_none(),
            record: NONE,
            kernel: identity(&launch.kernel),
            signature: signature.cloned(),
            checks_places: signature.is_some_and(|signature| signature.depends_on_places()),
            config: launch.config,
            bytes: ArgBytes::new(&args.bytes),
            slots: args.layout.iter().enumerate().map(slot).collect(),
            pointers: args.pointers.iter().map(|pointer| pool.pointer(pointer)).collect(),
        };
        row.find_pointers();
        row
    }

    /// Determines which arguments hold pointers.
    pub(super) fn find_pointers(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.holds = Holds::Value);
        for (number, pointer) in self.pointers.iter().enumerate() {
            if let Some(slot) = self.slots.get_mut(pointer.index as usize) {
                let is_all = slot.holds == Holds::Value && slot.size == 8 && pointer.offset == 0;
                slot.holds = match u16::try_from(number) {
                    Ok(number) if is_all => Holds::Pointer(number),
                    _ => Holds::Structure,
                };
            }
        }
    }

    #[inline]
    fn value(&self, index: usize) -> Option<&[u8]> {
        let slot = self.slots.get(index)?;
        self.bytes.get(slot.offset as usize..)?.get(..slot.size as usize)
    }

    /// Returns the target of the pointer that an argument starts with.
    #[inline]
    fn target(&self, index: usize) -> Option<Target> {
        let pointer = match self.slots.get(index).map(|slot| slot.holds) {
            Some(Holds::Pointer(pointer)) => self.pointers.get(pointer as usize),
            Some(Holds::Structure) => {
                self.pointers.iter().find(|pointer| (pointer.index as usize, pointer.offset) == (index, 0))
            }
            _ => None,
        };
        pointer.map(|pointer| pointer.target)
    }

    /// Returns the memory that an argument refers to: an alloc node with offset and size, or no node
    /// with address and size.
    fn range(&self, index: usize) -> Option<(Option<NodeKey>, (u64, u64))> {
        match self.target(index)? {
            Target::Memory { region, .. } => {
                let address = self.value(index)?.first_chunk().copied().map(u64::from_ne_bytes)?;
                Some((None, (address, region.bytes())))
            }
            Target::AllocNode { node, offset, bytes } => Some((Some(node), (offset, bytes))),
            Target::Condition(_) => None,
        }
    }
}

/// A row as contracts see it.
impl Launched for Row {
    #[inline]
    fn integer(&self, index: usize, integer: Integer) -> Option<i64> {
        integer.read(self.value(index)?)
    }

    #[inline]
    fn memory(&self, index: usize) -> GivenMemory {
        match self.target(index) {
            Some(Target::Memory { region, .. }) => GivenMemory::Bytes(region.bytes()),
            Some(Target::AllocNode { bytes, .. }) => GivenMemory::Bytes(bytes),
            Some(Target::Condition(_)) => GivenMemory::Unknown,
            None => plain_address(self.value(index)),
        }
    }

    fn may_overlap(&self, one: usize, other: usize) -> bool {
        match (self.range(one), self.range(other)) {
            (Some((of, one)), Some((of_other, other))) => of == of_other && ranges_overlap(one, other),
            _ => false,
        }
    }

    fn config(&self) -> &LaunchConfig {
        &self.config
    }
}

impl Target {
    /// Returns whether this is the target of a launch's argument.
    #[inline]
    pub(super) fn is(&self, given: &PointerValue) -> bool {
        match (self, given) {
            (Target::Memory { region, .. }, PointerValue::Region(given)) => {
                RegionId::of(given) == Some(*region)
            }
            (
                Target::AllocNode { node, offset, bytes },
                PointerValue::Region(Region { base: Base::AllocNode(given), offset: at, bytes: of }),
            ) => (node, offset, bytes) == (given, at, of),
            (Target::Condition(condition), PointerValue::Condition(given)) => condition == given,
            _ => false,
        }
    }
}

impl MemoryPool {
    /// Converts an argument of a launch and adds a use of its memory.
    pub(super) fn pointer(&mut self, pointer: &PointerArg) -> Pointer {
        let target = match &pointer.value {
            PointerValue::Region(region) => match &region.base {
                Base::Allocation(allocation) => {
                    let place = Arc::as_ptr(allocation).cast();
                    let entry = self.add_use(allocation);
                    self.target(RegionId::new(place, region.offset, region.bytes), entry)
                }
                Base::AllocNode(node) => {
                    Target::AllocNode { node: *node, offset: region.offset, bytes: region.bytes }
                }
                Base::Bytes(_) => unreachable!("copied bytes have no address, and so are no argument"),
            },
            PointerValue::Condition(condition) => Target::Condition(*condition),
        };
        Pointer { index: pointer.index, offset: pointer.offset, target }
    }

    /// Returns the target of an argument that is a part of an allocation.
    #[inline]
    pub(super) fn target(&self, region: RegionId, entry: PoolEntry) -> Target {
        Target::Memory { region, entry, outlives: self.outlives(entry) }
    }

    /// Converts back to an argument of a launch.
    pub(super) fn pointer_arg(&self, pointer: &Pointer) -> PointerArg {
        let region = |base, offset, bytes| PointerValue::Region(Region { base, offset, bytes });
        let value = match pointer.target {
            Target::Memory { region: id, entry, .. } => {
                region(Base::Allocation(Arc::clone(self.allocation(entry))), id.offset(), id.bytes())
            }
            Target::AllocNode { node, offset, bytes } => region(Base::AllocNode(node), offset, bytes),
            Target::Condition(condition) => PointerValue::Condition(condition),
        };
        PointerArg { index: pointer.index, offset: pointer.offset, value }
    }

    #[inline]
    pub(super) fn remove_use_of_pointer(&mut self, pointer: &Pointer) {
        if let Target::Memory { entry, .. } = pointer.target {
            self.remove_use(entry);
        }
    }

    /// Invalidates a row and removes its uses of memory.
    pub(super) fn forget(&mut self, row: &mut Row) {
        row.is_current = false;
        for pointer in row.pointers.drain(..) {
            self.remove_use_of_pointer(&pointer);
        }
    }
}

/// Writes a value into an argument buffer.
#[inline]
pub(super) fn write_at(bytes: &mut [u8], offset: usize, value: &[u8]) {
    let there = &mut bytes[offset..][..value.len()];
    match value.len() {
        // The compiler turns copies of constant size into single stores.
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

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn what_a_change_of_few_arguments_reads_lies_in_the_first_four_cache_lines_of_a_row() {
        let second_slot =
            offset_of!(Row, slots) + size_of::<SmallVec<[ArgSlot; 0]>>() + 2 * size_of::<ArgSlot>();
        let first_pointer =
            offset_of!(Row, pointers) + size_of::<SmallVec<[Pointer; 0]>>() + size_of::<Pointer>();
        assert!(second_slot <= 192 && first_pointer <= 256, "{second_slot} {first_pointer}");
    }
}
