//! The memory accesses of operations.

use smallvec::SmallVec;

use super::AccessKind;
use crate::graph::definition::{Definition, NodeKey};
use crate::memory::{Base, Region};
use crate::op::contract::ParamKind;
use crate::op::{KernelOp, MemcpyOp, MemsetOp, Operation, PointerValue, Test};

/// A space of numbered bytes. All allocations share the addresses of the device. Each alloc node
/// has its own numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Addresses,
    AllocNode(NodeKey),
}

/// One access to memory.
#[derive(Clone, Debug)]
pub(super) struct Access<'a> {
    pub(super) kind: AccessKind,
    pub(super) space: Space,
    /// The first byte. `end` is one past the last byte.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The rows, if there are gaps between them.
    pub(super) rows: Option<Rows>,
    region: &'a Region,
}

/// Rows with gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) width: u64,
    pub(super) pitch: u64,
}

impl Access<'_> {
    fn new(kind: AccessKind, region: &Region) -> Option<Access<'_>> {
        let (space, origin) = match &region.base {
            Base::Allocation(allocation) => (Space::Addresses, allocation.address()),
            Base::AllocNode(node) => (Space::AllocNode(*node), 0),
            // Bytes that the graph owns and nothing writes.
            Base::Bytes(_) => return None,
        };
        let start = origin.saturating_add(region.offset);
        let end = start.saturating_add(region.bytes);
        (start < end).then_some(Access { kind, space, start, end, rows: None, region })
    }

    /// Returns the first byte of the memory that the region is a part of.
    pub(super) fn origin(&self) -> u64 {
        match &self.region.base {
            Base::Allocation(allocation) => allocation.address(),
            _ => 0,
        }
    }

    /// Returns a description of the memory.
    pub(super) fn memory(&self, definition: &Definition) -> String {
        match &self.region.base {
            Base::AllocNode(node) => format!("the memory of {}", definition.label(*node)),
            Base::Allocation(allocation) => format!(
                "a buffer of {} bytes in {} memory at {:#x}",
                allocation.bytes(),
                allocation.kind().name(),
                allocation.address()
            ),
            Base::Bytes(_) => "bytes of the graph".to_owned(),
        }
    }

    /// Returns whether the two accesses have a byte in common. For rows with different gaps the
    /// answer may be `true` although they have none.
    pub(super) fn overlaps(&self, other: &Footprint) -> bool {
        if self.start >= other.end || other.start >= self.end {
            return false;
        }
        match (self.rows, other.rows) {
            (None, None) => true,
            (Some(ours), Some(theirs)) if ours.pitch == theirs.pitch && ours.pitch > 0 => {
                // Columns of one matrix: the rows of both start at fixed positions of a line.
                let pitch = ours.pitch;
                let shift = if other.start >= self.start {
                    (other.start - self.start) % pitch
                } else {
                    (pitch - (self.start - other.start) % pitch) % pitch
                };
                shift < ours.width || shift + theirs.width > pitch
            }
            (Some(ours), None) => touches(self.start, self.end, ours, other.start, other.end),
            (None, Some(theirs)) => touches(other.start, other.end, theirs, self.start, self.end),
            (Some(_), Some(_)) => true,
        }
    }

    pub(super) fn footprint(&self) -> Footprint {
        Footprint { start: self.start, end: self.end, rows: self.rows }
    }
}

/// The bytes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) rows: Option<Rows>,
}

/// Returns whether a plain range touches one of the rows between `start` and `end`.
fn touches(start: u64, end: u64, rows: Rows, from: u64, to: u64) -> bool {
    if rows.pitch == 0 {
        return true;
    }
    let (from, to) = (from.max(start), to.min(end));
    let place = (from - start) % rows.pitch;
    place < rows.width || place + (to - from) > rows.pitch
}

/// The memory that an operation uses, or `None` where that is not known.
type Accesses<'a> = Option<SmallVec<[Access<'a>; 4]>>;

/// Returns the accesses of an operation. Alloc and free nodes are checked by
/// [`lifetimes`](crate::graph).
pub(super) fn of(operation: &Operation) -> Accesses<'_> {
    let mut accesses = SmallVec::new();
    match operation {
        Operation::Empty
        | Operation::Alloc(_)
        | Operation::Free(_)
        | Operation::Child(_)
        | Operation::EventRecord(_)
        | Operation::EventWait(_) => {}
        Operation::Kernel(kernel) => return of_kernel(kernel),
        Operation::Memset(memset) => accesses.extend(of_memset(memset)),
        Operation::Memcpy(memcpy) => accesses.extend(of_memcpy(memcpy)),
        Operation::Conditional(conditional) => {
            if let Test::Value(region) = &conditional.test {
                accesses.extend(Access::new(AccessKind::Read, region));
            }
        }
        // A callback without memory to read may use some that it was handed in another way.
        Operation::Callback(callback) if !callback.reads().is_empty() => {
            accesses
                .extend(callback.reads().iter().filter_map(|region| Access::new(AccessKind::Read, region)));
        }
        Operation::Callback(_) | Operation::Opaque(_) => return None,
    }
    Some(accesses)
}

/// Returns a read of a region, or `None` if nothing can write it.
pub(super) fn read_of(region: &Region) -> Option<Access<'_>> {
    Access::new(AccessKind::Read, region)
}

fn of_kernel(op: &KernelOp) -> Accesses<'_> {
    let pointers = || op.args.pointers.iter();
    let regions = || pointers().filter(|pointer| matches!(pointer.value, PointerValue::Region(_)));
    let Some(signature) = op.kernel.signature() else {
        return regions().next().is_none().then(SmallVec::new);
    };
    let mut accesses = SmallVec::new();
    for pointer in regions() {
        let PointerValue::Region(region) = &pointer.value else { continue };
        match signature.params().get(pointer.index as usize).map(|param| param.kind) {
            Some(ParamKind::Pointer { written, .. }) => {
                let kind = if written { AccessKind::Write } else { AccessKind::Read };
                accesses.extend(Access::new(kind, region));
            }
            // An address inside a structure.
            _ => return None,
        }
    }
    Some(accesses)
}

fn of_memset(op: &MemsetOp) -> Option<Access<'_>> {
    let width = op.width.saturating_mul(op.element_size.into());
    let access = Access::new(AccessKind::Write, &op.dst)?;
    Some(with_rows(access, width, op.pitch, op.height))
}

fn of_memcpy(op: &MemcpyOp) -> impl Iterator<Item = Access<'_>> {
    let side = |kind, side: &'_ crate::op::CopySide| (kind, side.pitch, side.rows);
    let (read, write) = (side(AccessKind::Read, &op.src), side(AccessKind::Write, &op.dst));
    [(read, &op.src.region), (write, &op.dst.region)].into_iter().filter_map(
        move |((kind, pitch, rows), region)| {
            let access = Access::new(kind, region)?;
            // Planes without a gap between them form rows like any others.
            let is_regular = op.depth <= 1 || rows == op.height;
            let height = if is_regular { op.height.saturating_mul(op.depth) } else { 1 };
            Some(with_rows(access, op.width, pitch, height))
        },
    )
}

fn with_rows(mut access: Access<'_>, width: u64, pitch: u64, height: u64) -> Access<'_> {
    if height > 1 && pitch > width {
        access.rows = Some(Rows { width, pitch });
    }
    access
}
