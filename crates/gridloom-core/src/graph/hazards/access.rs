//! The memory accesses of operations.

use smallvec::SmallVec;

use super::AccessKind;
use super::footprint::Footprint;
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
    pub(super) footprint: Footprint,
    region: &'a Region,
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
        (start < end).then_some(Access { kind, space, footprint: Footprint::plain(start, end), region })
    }

    /// Returns the access to some rows of the region only.
    fn of_rows(mut self, extents: [u64; 3], pitch: u64, plane: u64) -> Self {
        let Footprint { start, end, .. } = self.footprint;
        self.footprint = Footprint::rows(start, end, extents, pitch, plane);
        self
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
    Some(Access::new(AccessKind::Write, &op.dst)?.of_rows([width, op.height, 1], op.pitch, 0))
}

fn of_memcpy(op: &MemcpyOp) -> impl Iterator<Item = Access<'_>> {
    [(AccessKind::Read, &op.src), (AccessKind::Write, &op.dst)].into_iter().filter_map(|(kind, side)| {
        let plane = side.pitch.saturating_mul(side.rows);
        Some(Access::new(kind, &side.region)?.of_rows([op.width, op.height, op.depth], side.pitch, plane))
    })
}
