//! Kinds of memory, and regions of it that operations name.

mod outliving;

use std::fmt;
use std::sync::Arc;

pub(crate) use outliving::Claims;
pub use outliving::OutlivingMemory;

use crate::backend;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::NodeKey;

/// Where an allocation lives and who can reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory of the device, not reachable by the host except through copies.
    Device,
    /// Host memory that the device can reach (pinned).
    Host,
    /// Memory that host and device share under one address.
    Managed,
}

impl MemoryKind {
    /// The kind's name, as errors and pictures show it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Device => "device",
            MemoryKind::Host => "host",
            MemoryKind::Managed => "managed",
        }
    }

    /// Whether the host may touch it directly.
    pub fn host_accessible(self) -> bool {
        self != MemoryKind::Device
    }
}

/// What a region is a part of.
#[derive(Clone)]
pub enum Base {
    /// An allocation that exists independently of graphs.
    Allocation(Arc<dyn backend::Allocation>),
    /// The memory that an alloc node of the same graph hierarchy provides at each launch.
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

/// A contiguous part of an allocation. It retains the allocation, not the user's handle to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// What it is a part of.
    pub base: Base,
    /// Where it starts, in bytes from the start of the base.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Region {
    /// The whole of an allocation.
    #[inline]
    pub fn whole(allocation: Arc<dyn backend::Allocation>) -> Self {
        let bytes = allocation.bytes();
        Region { base: Base::Allocation(allocation), offset: 0, bytes }
    }

    /// Bytes copied from the caller, to be read by a copy.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Region { offset: 0, bytes: bytes.len() as u64, base: Base::Bytes(bytes) }
    }

    /// The part that starts `offset` bytes in and has `bytes` bytes, or `None` where it would leave this region.
    #[inline]
    pub fn part(&self, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then(|| Region { base: self.base.clone(), offset: self.offset + offset, bytes })
    }

    /// Where this region goes when the memory of `old` is replaced by that of `new`: to the same byte of it. `None` where it does not start
    /// in `old`; an error where `new` ends before that byte. What has no end of its own, an address given to a kernel, then ends with `new`.
    ///
    /// Memory is told apart by address, since one block may be known by several allocations.
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

/// The region that an argument is, without keeping it alive.
///
/// Two that are equal are the same memory if one of them is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionId {
    /// Where the allocation lies in the host's memory.
    allocation: usize,
    offset: u64,
    bytes: u64,
}

impl RegionId {
    /// Returns the region of the bytes from `offset` on of the allocation at this address in the host's memory.
    #[inline]
    pub fn new(allocation: *const (), offset: u64, bytes: u64) -> Self {
        RegionId { allocation: allocation.addr(), offset, bytes }
    }

    /// Returns that of a region, where it is one of memory that is there independently of graphs.
    #[inline]
    pub fn of(region: &Region) -> Option<Self> {
        match &region.base {
            Base::Allocation(allocation) => {
                Some(RegionId::new(Arc::as_ptr(allocation).cast(), region.offset, region.bytes))
            }
            _ => None,
        }
    }

    /// Where it starts in its allocation.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes there are.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
