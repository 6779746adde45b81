//! Addresses: where the regions of an operation lie, and kernel arguments with addresses filled in.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{ConditionKey, NodeKey};
use crate::memory::{Base, MemoryKind, Region};
use crate::op::{KernelArgs, PointerValue};

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The address.
    pub address: u64,
    /// The kind of the memory.
    pub kind: MemoryKind,
}

/// Locates what operations name but do not hold: the memory of alloc nodes, and conditions.
///
/// An executable implements it for its graph. [`OnStream`] is for operations outside of graphs.
pub trait Locate {
    /// Returns the memory of an alloc node.
    fn alloc_node(&self, alloc: NodeKey) -> Option<Location>;

    /// Returns the handle that kernels get for a condition.
    fn condition(&self, condition: ConditionKey) -> Option<u64>;

    /// Returns where bytes of the caller are read from. By default that is where they are.
    fn bytes(&self, bytes: &Arc<[u8]>) -> Option<Location> {
        let address = bytes.as_ptr().expose_provenance() as u64;
        Some(Location { address, kind: MemoryKind::Host })
    }

    /// Returns where a region lies.
    ///
    /// The core has checked that the memory of the region is part of the graph. If it is not, the
    /// result is an error and not an address.
    #[inline]
    fn locate(&self, region: &Region) -> Result<Location> {
        let base = match &region.base {
            Base::Allocation(allocation) => {
                Some(Location { address: allocation.address(), kind: allocation.kind() })
            }
            Base::AllocNode(alloc) => self.alloc_node(*alloc),
            Base::Bytes(bytes) => self.bytes(bytes),
        };
        let lost = || {
            Error::new(ErrorKind::InvalidHandle, "the operation uses memory that is not part of this graph")
        };
        let base = base.ok_or_else(lost)?;
        Ok(Location { address: base.address + region.offset, kind: base.kind })
    }
}

/// Locates the memory of operations on a stream, which uses no alloc nodes and no conditions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnStream;

impl Locate for OnStream {
    fn alloc_node(&self, _: NodeKey) -> Option<Location> {
        None
    }

    fn condition(&self, _: ConditionKey) -> Option<u64> {
        None
    }
}

/// Returns whether kernel arguments are complete. Addresses of memory that exists independently of
/// graphs were filled in when the arguments were packed.
#[inline]
pub fn has_all_addresses(args: &KernelArgs) -> bool {
    let is_allocated = |value: &PointerValue| {
        matches!(value, PointerValue::Region(Region { base: Base::Allocation(_), .. }))
    };
    args.pointers.iter().all(|pointer| is_allocated(&pointer.value))
}

/// Returns the bytes of kernel arguments with all addresses and handles filled in.
pub fn fill_in_addresses(args: &KernelArgs, places: &(impl Locate + ?Sized)) -> Result<SmallVec<[u8; 48]>> {
    let mut bytes = args.bytes.clone();
    for pointer in &args.pointers {
        let value = match &pointer.value {
            PointerValue::Region(region) => places.locate(region)?.address,
            PointerValue::Condition(condition) => places.condition(*condition).ok_or_else(|| {
                Error::new(ErrorKind::InvalidState, "a condition argument of this kernel has no handle")
            })?,
        };
        let start = args.layout.get(pointer.index as usize).map(|param| param.offset + pointer.offset);
        let slot = start.and_then(|start| bytes.get_mut(start as usize..)?.first_chunk_mut());
        if let Some(slot) = slot {
            *slot = value.to_ne_bytes();
        }
    }
    Ok(bytes)
}
