//! Kinds of memory, and the regions of memory that operations use.

mod graph_memory;
mod outliving;

use std::fmt;
use std::sync::Arc;

pub use graph_memory::{GraphMemory, GraphMemoryMeter, MeteredBytes};
pub(crate) use outliving::Claims;
pub use outliving::OutlivingMemory;

use crate::backend;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::NodeKey;

/// The kind of an allocation: where it lives and who can access it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Device memory. The host accesses it only through copies.
    Device,
    /// Pinned host memory. The device can access it.
    Host,
    /// Memory that host and device share under one address.
    Managed,
}

impl MemoryKind {
    /// Returns the name of the kind, as errors and pictures show it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Device => "device",
            MemoryKind::Host => "host",
            MemoryKind::Managed => "managed",
        }
    }

    /// Returns whether the host may access the memory directly.
    pub fn host_accessible(self) -> bool {
        self != MemoryKind::Device
    }
}

/// The memory that a region is a part of.
#[derive(Clone)]
pub enum Base {
    /// An allocation that exists independently of graphs.
    Allocation(Arc<dyn backend::Allocation>),
    /// The memory that an alloc node of the same hierarchy allocates at each launch.
    AllocNode(NodeKey),
    /// Read-only bytes that were copied from the caller.
    Bytes(Arc<[u8]>),
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Allocation(allocation) => {
                write!(f, "{}@{:#x}", allocation.kind().name(), allocation.address())
            }
            Base::AllocNode(key) => write!(f, "{key:?}"),
            Base::Bytes(bytes) => write!(f, "bytes[{}]", bytes.len()),
        }
    }
}

impl PartialEq for Base {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Base::Allocation(a), Base::Allocation(b)) => Arc::ptr_eq(a, b),
            (Base::AllocNode(a), Base::AllocNode(b)) => a == b,
            (Base::Bytes(a), Base::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

/// A contiguous part of an allocation. It keeps the allocation alive, not the user's handle to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The memory that the region is a part of.
    pub base: Base,
    /// The start of the region, in bytes from the start of the base.
    pub offset: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Region {
    /// Returns the region of a whole allocation.
    #[inline]
    pub fn whole(allocation: Arc<dyn backend::Allocation>) -> Self {
        let bytes = allocation.bytes();
        Region { base: Base::Allocation(allocation), offset: 0, bytes }
    }

    /// Creates a region of bytes copied from the caller. Copies can read it.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Region { offset: 0, bytes: bytes.len() as u64, base: Base::Bytes(bytes) }
    }

    /// Returns the part that starts at `offset` and has `bytes` bytes, or `None` if it does not
    /// fit.
    #[inline]
    pub fn part(&self, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then(|| Region { base: self.base.clone(), offset: self.offset + offset, bytes })
    }

    /// Returns whether both have a byte in common. Memory is told apart by address, since one block
    /// may be known by several allocations.
    pub(crate) fn overlaps(&self, other: &Region) -> bool {
        let (one, two) = match (&self.base, &other.base) {
            (Base::Allocation(ours), Base::Allocation(theirs)) => {
                (ours.address().wrapping_add(self.offset), theirs.address().wrapping_add(other.offset))
            }
            (ours, theirs) if ours == theirs => (self.offset, other.offset),
            _ => return false,
        };
        ranges_overlap((one, self.bytes), (two, other.bytes))
    }

    /// Returns the region after the memory of `old` is replaced by that of `new`: the same byte of
    /// `new`. Returns `None` if this region does not start in `old`. Fails if `new` ends before
    /// that byte. The result ends at the end of `new` at the latest, because an address given to a
    /// kernel has no end of its own.
    ///
    /// Memory is compared by address, because several allocations may describe one block.
    pub(crate) fn moved(&self, old: &Region, new: &Region) -> Option<Result<Region>> {
        let from = match (&self.base, &old.base) {
            (Base::Allocation(ours), Base::Allocation(theirs)) => {
                (ours.address() + self.offset).checked_sub(theirs.address() + old.offset)?
            }
            (ours, theirs) if ours == theirs => self.offset.checked_sub(old.offset)?,
            _ => return None,
        };
        if from >= old.bytes {
            return None;
        }
        if from >= new.bytes {
            let message = format!(
                "byte {from} of the memory to replace is used, and the memory in its place has {} bytes",
                new.bytes
            );
            return Some(Err(Error::new(ErrorKind::InvalidArgument, message)));
        }
        let bytes = self.bytes.min(new.bytes - from);
        Some(Ok(Region { base: new.base.clone(), offset: new.offset + from, bytes }))
    }
}

/// The identity of a region. It does not keep the region alive.
///
/// Two equal values mean the same memory as long as one of the two regions is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId {
    /// The address of the allocation object in host memory.
    allocation: usize,
    offset: u64,
    bytes: u64,
}

impl RegionId {
    /// Creates the identity of a part of an allocation. `allocation` is the address of the
    /// allocation object in host memory.
    #[inline]
    pub fn new(allocation: *const (), offset: u64, bytes: u64) -> Self {
        RegionId { allocation: allocation.addr(), offset, bytes }
    }

    /// Returns the identity of a region, or `None` if its memory does not exist independently of
    /// graphs.
    #[inline]
    pub fn of(region: &Region) -> Option<Self> {
        match &region.base {
            Base::Allocation(allocation) => {
                Some(RegionId::new(Arc::as_ptr(allocation).cast(), region.offset, region.bytes))
            }
            _ => None,
        }
    }

    /// Returns the start of the region in its allocation.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the size in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns whether two ranges, each a start and a length, have a byte in common.
pub(crate) fn ranges_overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.1 > 0
        && other.1 > 0
        && one.0 < other.0.saturating_add(other.1)
        && other.0 < one.0.saturating_add(one.1)
}
