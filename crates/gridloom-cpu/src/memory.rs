//! Memory of the CPU device.
//!
//! # Foreign memory
//!
//! Device memory is host memory that Rust must not know about. Kernels, copies and fills of several
//! streams access it by address, concurrently if the user orders them badly. Three rules keep this
//! harmless to the process:
//!
//! - Nothing ever creates a reference to device memory. It is accessed only through addresses whose
//!   provenance was exposed when the memory was allocated.
//! - All accesses are those of [`racy`](crate::interp::racy) and of compiled kernels. To Rust they
//!   are relaxed atomic accesses of single bytes, which may race. No value read from device memory
//!   affects the memory safety of this crate.
//! - The memory is zeroed before its address is handed out, so that every byte has a value.
//!
//! Work that is ordered by a stream, an event or an edge is also ordered by synchronization between
//! threads, so its accesses never race. Work that races reads torn or stale values, as on a GPU,
//! and nothing else happens.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gridloom_core::backend::{self, DeviceId};
use gridloom_core::memory::MemoryKind;
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::RwLock;

use crate::interp::{Budget, MemoryMap};
use crate::transfer;

/// The alignment of every allocation, as on CUDA devices.
pub(crate) const ALIGNMENT: u64 = 256;

/// The size from which allocations start at varying offsets in a page. The system hands out memory
/// of this size in whole pages, so all allocations would start at the same offset. A load waits for
/// an earlier store whose address is equal within a page, and lines that far apart share a few
/// cache sets.
const SPREAD_FROM: u64 = 1 << 16;

/// The page size that the spread is based on.
const PAGE: u64 = 4096;

/// The step between the page offsets of successive large allocations. It is less than half a page
/// and visits all aligned offsets in turn.
const SPREAD: u64 = 7 * ALIGNMENT;

/// The size from which the system is asked for large pages. These are 2 MiB on most machines, so
/// most of such memory can lie in large pages.
const LARGE_PAGES_FROM: u64 = 1 << 22;

/// The record of a device's memory: what is allocated, where, and the limit.
#[derive(Debug)]
pub(crate) struct Ledger {
    device: DeviceId,
    limit: Option<u64>,
    used: AtomicU64,
    /// The number of large allocations so far.
    large: AtomicU64,
    /// The address and size of every live block.
    blocks: RwLock<BTreeMap<u64, u64>>,
}

impl Ledger {
    pub(crate) fn new(device: DeviceId, limit: Option<u64>) -> Arc<Self> {
        Arc::new(Ledger {
            device,
            limit,
            used: AtomicU64::new(0),
            large: AtomicU64::new(0),
            blocks: RwLock::default(),
        })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the distance from the first suitable address to the start of an allocation.
    fn shift(&self, bytes: u64) -> u64 {
        match bytes {
            SPREAD_FROM.. => self.large.fetch_add(1, Ordering::Relaxed).wrapping_mul(SPREAD) % PAGE,
            _ => 0,
        }
    }

    /// Takes `bytes` from the limit. Fails if they exceed it.
    fn charge(&self, bytes: u64) -> Result<()> {
        let charged = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&used| self.limit.is_none_or(|limit| used <= limit))
        });
        match charged {
            Ok(_) => Ok(()),
            Err(used) => Err(out_of_memory(bytes, used, self.limit)),
        }
    }
}

impl Budget for Ledger {
    fn take(&self, bytes: u64) -> bool {
        self.charge(bytes).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that are taken from the limit until this value is dropped.
#[derive(Debug)]
pub(crate) struct Charged<'a> {
    ledger: &'a Ledger,
    bytes: u64,
}

impl Ledger {
    /// Takes bytes from the limit until the result is dropped. Fails if they exceed the limit.
    pub(crate) fn charge_for(&self, bytes: u64) -> Result<Charged<'_>> {
        self.charge(bytes)?;
        Ok(Charged { ledger: self, bytes })
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        self.ledger.give_back(self.bytes);
    }
}

impl Ledger {
    /// Returns the live blocks next to an address: the one that starts at or before it, and the one
    /// after it.
    pub(crate) fn around(&self, address: u64) -> Vec<Range<u64>> {
        let blocks = self.blocks.read();
        let before = blocks.range(..=address).next_back();
        let after = blocks.range(address..).next();
        before.into_iter().chain(after).map(|(&start, &bytes)| start..start + bytes).collect()
    }
}

impl MemoryMap for Ledger {
    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        let blocks = self.blocks.read();
        let (&start, &bytes) = blocks.range(..=address).next_back()?;
        (address - start < bytes).then_some(start..start + bytes)
    }
}

fn out_of_memory(wanted: u64, used: u64, limit: Option<u64>) -> Error {
    let message = match limit {
        Some(limit) => format!(
            "out of memory: {wanted} bytes wanted, {used} of the limit of {limit} in use; free some or raise the memory limit of the device"
        ),
        None => {
            format!("out of memory: the system refused {wanted} bytes, {used} bytes in use by this device")
        }
    };
    Error::new(ErrorKind::OutOfMemory, message)
}

/// Returns the start and length of the part of some memory that consists of whole pages, for any
/// ordinary page size.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems are not asked"))]
fn whole_pages(start: usize, bytes: usize) -> Option<(usize, usize)> {
    const LARGEST: usize = 1 << 16;
    let skipped = start.checked_next_multiple_of(LARGEST)? - start;
    let length = bytes.saturating_sub(skipped) & !(LARGEST - 1);
    (length > 0).then_some((skipped, length))
}

/// Asks the system to back memory with large pages, as a GPU does. Access then needs fewer address
/// translations. This is a hint: if the system ignores it, only the time differs.
fn ask_for_large_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if let Some((skipped, length)) = whole_pages(start.addr(), bytes) {
        // SAFETY: the range lies inside an allocation of this process, and the advice does not
        // change its contents.
        unsafe { libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// A block of memory. It is zeroed when created and returned to the system when dropped.
#[derive(Debug)]
pub(crate) struct HostBlock {
    ledger: Arc<Ledger>,
    /// The result of the allocator. The aligned address lies inside.
    raw: *mut u8,
    layout: Layout,
    address: u64,
    bytes: u64,
}

// SAFETY: the block owns its memory and hands it out only as an address. Only `drop` uses the
// pointer again.
unsafe impl Send for HostBlock {}
// SAFETY: as above, and no method reads or writes through the pointer.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// Allocates at least one byte, at a multiple of [`ALIGNMENT`].
    pub(crate) fn new(ledger: &Arc<Ledger>, bytes: u64) -> Result<Arc<Self>> {
        let refused = || out_of_memory(bytes, ledger.used(), None);
        // Aligned by hand: the allocator provides lazily zeroed pages only for small alignments.
        let shift = ledger.shift(bytes);
        let padded = bytes.checked_add(ALIGNMENT + shift).and_then(|padded| usize::try_from(padded).ok());
        let layout =
            padded.and_then(|padded| Layout::from_size_align(padded, 16).ok()).ok_or_else(refused)?;
        ledger.charge(bytes)?;
        // SAFETY: the layout has at least `ALIGNMENT` bytes.
        let raw = unsafe { alloc_zeroed(layout) };
        if raw.is_null() {
            ledger.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(refused());
        }
        if bytes >= LARGE_PAGES_FROM {
            ask_for_large_pages(raw, layout.size());
        }
        let address = (raw.expose_provenance() as u64).next_multiple_of(ALIGNMENT) + shift;
        ledger.blocks.write().insert(address, bytes);
        Ok(Arc::new(HostBlock { ledger: ledger.clone(), raw, layout, address, bytes }))
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        self.ledger.blocks.write().remove(&self.address);
        // SAFETY: `raw` came from `alloc_zeroed` with this layout. Only this owner frees it, once.
        // Everything that works with the address holds the block.
        unsafe { dealloc(self.raw, self.layout) };
        self.ledger.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An allocation: a block, with the requested size and kind.
pub(crate) struct CpuAllocation {
    block: Arc<HostBlock>,
    kind: MemoryKind,
    bytes: u64,
    /// The module and the name of a module variable.
    variable: Option<(Arc<gridloom_ptx::Module>, String)>,
}

impl CpuAllocation {
    /// Creates an allocation. The memory is freed with its last holder.
    pub(crate) fn new(block: Arc<HostBlock>, bytes: u64, kind: MemoryKind) -> Arc<Self> {
        Arc::new(CpuAllocation { block, kind, bytes, variable: None })
    }

    /// Creates the allocation of a module variable.
    pub(crate) fn of_variable(
        block: Arc<HostBlock>,
        bytes: u64,
        module: &Arc<gridloom_ptx::Module>,
        name: &str,
    ) -> Arc<Self> {
        let variable = Some((module.clone(), name.to_owned()));
        Arc::new(CpuAllocation { block, kind: MemoryKind::Device, bytes, variable })
    }
}

// SAFETY: the block has at least this many bytes at this address, lives while it is held here, and
// is accessed by address only, as the module documentation says.
unsafe impl backend::Allocation for CpuAllocation {
    fn device(&self) -> DeviceId {
        self.block.ledger.device
    }

    fn address(&self) -> u64 {
        self.block.address
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn read_host(&self, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_host_access(self, offset, dst.len())?;
        // SAFETY: the range lies in the block, which lives while it is held here.
        unsafe { transfer::read(dst, self.block.address + offset) };
        Ok(())
    }

    fn variable(&self) -> Option<backend::ModuleVariable<'_>> {
        let (module, name) = self.variable.as_ref()?;
        Some(backend::ModuleVariable { ptx: Some(module.source.text()), name })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for CpuAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuAllocation({} {} bytes at {:#x})", self.bytes, self.kind.name(), self.block.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(limit: Option<u64>) -> Arc<Ledger> {
        Ledger::new(DeviceId::fresh(), limit)
    }

    #[test]
    fn a_block_is_aligned_and_found_by_any_address_in_it_until_it_goes() {
        let ledger = ledger(None);
        let block = HostBlock::new(&ledger, 100).unwrap();
        let start = block.address();
        assert_eq!(start % ALIGNMENT, 0);
        assert_eq!(ledger.allocation(start), Some(start..start + 100));
        assert_eq!(ledger.allocation(start + 99), Some(start..start + 100));
        assert_ne!(ledger.allocation(start + 100), Some(start..start + 100));
        assert_eq!(ledger.used(), 100);
        drop(block);
        assert_eq!(ledger.allocation(start), None);
        assert_eq!(ledger.used(), 0);
    }

    #[test]
    fn large_blocks_begin_at_all_places_of_a_page_in_turn() {
        let ledger = ledger(None);
        let mut shifts: Vec<u64> = (0..16).map(|_| ledger.shift(SPREAD_FROM)).collect();
        assert_eq!(ledger.shift(SPREAD_FROM - 1), 0);
        assert_eq!(shifts[..3], [0, 1792, 3584]);
        shifts.sort_unstable();
        assert!(shifts.into_iter().eq((0..16).map(|place| place * ALIGNMENT)));
        for _ in 0..3 {
            assert_eq!(HostBlock::new(&ledger, SPREAD_FROM).unwrap().address() % ALIGNMENT, 0);
        }
    }

    #[test]
    fn whole_pages_lie_inside_of_the_memory() {
        let page = 1 << 16;
        assert_eq!(whole_pages(3 * page, 2 * page), Some((0, 2 * page)));
        assert_eq!(whole_pages(3 * page + 16, 2 * page), Some((page - 16, page)));
        assert_eq!(whole_pages(3 * page - 16, 2 * page + 15), Some((16, page)));
        assert_eq!(whole_pages(3 * page + 16, page), None);
        assert_eq!(whole_pages(usize::MAX - 5, 3), None);
    }

    #[test]
    fn memory_in_large_pages_is_zero_to_its_ends() {
        let block = HostBlock::new(&ledger(None), LARGE_PAGES_FROM).unwrap();
        for offset in [0, LARGE_PAGES_FROM / 2, LARGE_PAGES_FROM - 1] {
            let byte = std::ptr::with_exposed_provenance::<u8>((block.address() + offset) as usize);
            // SAFETY: the block has so many bytes, and nobody else knows it.
            assert_eq!(unsafe { byte.read() }, 0);
        }
    }

    #[test]
    fn the_limit_says_what_was_wanted_used_and_allowed() {
        let ledger = ledger(Some(1000));
        let _held = HostBlock::new(&ledger, 600).unwrap();
        let error = HostBlock::new(&ledger, 401).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        for number in ["401", "600", "1000"] {
            assert!(error.message().contains(number), "{error}");
        }
        assert!(HostBlock::new(&ledger, 400).is_ok());
    }

    #[test]
    fn a_size_beyond_all_addresses_is_refused_and_not_charged() {
        let ledger = ledger(None);
        for bytes in [u64::MAX, i64::MAX as u64] {
            assert_eq!(HostBlock::new(&ledger, bytes).unwrap_err().kind(), ErrorKind::OutOfMemory);
        }
        assert_eq!(ledger.used(), 0);
    }
}
