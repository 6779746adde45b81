//! Memory with addresses and, once something is written, contents.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::backend::{Allocation, DeviceId};
use crate::error::{Result, bail};
use crate::memory::MemoryKind;

/// Counts allocations and hands out addresses.
#[derive(Default)]
pub(super) struct Ledger {
    next: AtomicU64,
    live: AtomicU64,
    bytes: AtomicU64,
}

impl Ledger {
    /// The first address. It is far from 0, so that a forgotten base is noticed.
    const FIRST_ADDRESS: u64 = 0x7000_0000_0000;
    /// The alignment of all addresses.
    const ALIGNMENT: u64 = 256;

    pub(super) fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> u64 {
        self.live.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Blocks larger than any machine are shortened, so that addresses do not run out.
        let span = bytes.clamp(1, 1 << 40).next_multiple_of(Self::ALIGNMENT);
        Self::FIRST_ADDRESS + self.next.fetch_add(span, Ordering::Relaxed)
    }

    fn give_back(&self, bytes: u64) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Memory of the null device. It reads as zeros until something is written.
pub struct FakeAllocation {
    device: DeviceId,
    ledger: Arc<Ledger>,
    address: u64,
    bytes: u64,
    kind: MemoryKind,
    written: Mutex<Vec<u8>>,
}

impl FakeAllocation {
    pub(super) fn new(device: DeviceId, ledger: &Arc<Ledger>, bytes: u64, kind: MemoryKind) -> Self {
        FakeAllocation {
            device,
            address: ledger.take(bytes),
            ledger: ledger.clone(),
            bytes,
            kind,
            written: Mutex::default(),
        }
    }

    pub(super) fn of(allocation: &dyn Allocation) -> Result<&Self> {
        match allocation.as_any().downcast_ref() {
            Some(fake) => Ok(fake),
            None => bail!(WrongDevice, "the buffer is not of the null device"),
        }
    }

    pub(super) fn read(&self, offset: u64, dst: &mut [u8]) -> Result<()> {
        let range = self.range(offset, dst.len())?;
        let written = self.written.lock();
        for (index, byte) in range.zip(dst) {
            *byte = written.get(index).copied().unwrap_or(0);
        }
        Ok(())
    }

    pub(super) fn write(&self, offset: u64, src: &[u8]) -> Result<()> {
        let range = self.range(offset, src.len())?;
        let mut written = self.written.lock();
        if written.len() < range.end {
            written.resize(range.end, 0);
        }
        written[range].copy_from_slice(src);
        Ok(())
    }

    fn range(&self, offset: u64, len: usize) -> Result<std::ops::Range<usize>> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.bytes => Ok(offset as usize..end as usize),
            _ => bail!(InvalidArgument, "{len} bytes at {offset} of a buffer of {}", self.bytes),
        }
    }
}

// SAFETY: the device runs nothing, so it may make addresses up.
unsafe impl Allocation for FakeAllocation {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for FakeAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeAllocation({} {} bytes at {:#x})", self.bytes, self.kind.name(), self.address)
    }
}

impl Drop for FakeAllocation {
    fn drop(&mut self) {
        self.ledger.give_back(self.bytes);
    }
}
