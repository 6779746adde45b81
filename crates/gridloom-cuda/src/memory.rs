//! Memory of the GPU, pinned host memory, and managed memory.
//!
//! Device memory comes from a stream-ordered pool (`pools.rs`) that belongs to this device, on a
//! stream that is used for nothing else. An allocation is complete when it is returned, and may be
//! used on every stream. It is freed with its last reference. Work in flight holds references too
//! (see `in_flight.rs`), so nothing on the device can reach the memory then, and the free needs no
//! synchronisation.

use crate::context::Context;
use crate::driver::{DriverError, DriverResult};
use crate::host_pages::HostPage;
use crate::interop::Owner;
use crate::registry::MEMORY;
use crate::release::{self, Handle};
use crate::sys::*;
use gridloom_core::backend::{self, DeviceId};
use gridloom_core::memory::MemoryKind;
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out memory of one device.
#[derive(Debug)]
pub(crate) struct Allocator {
    context: Arc<Context>,
    device: DeviceId,
    pool: Option<CUmemoryPool>,
    stream: CUstream,
    managed: bool,
    used: AtomicU64,
}

// SAFETY: pool and stream are handles that the driver lets any thread use.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

impl Allocator {
    pub(crate) fn new(
        context: Arc<Context>,
        device: DeviceId,
        pools: bool,
        managed: bool,
    ) -> DriverResult<Arc<Self>> {
        let _entered = context.enter()?;
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING.0;
        // SAFETY: the context is current; one handle is written.
        unsafe { context.driver().cu_stream_create_with_priority(&mut stream, flags, 0)? };
        // The allocator owns the stream from here on, so a failure to make the pool destroys it.
        let mut allocator = Self {
            context: Arc::clone(&context),
            device,
            pool: None,
            stream,
            managed,
            used: AtomicU64::new(0),
        };
        if pools {
            allocator.pool = Some(context.driver().pools().take(&context)?);
        }
        Ok(Arc::new(allocator))
    }

    /// Returns a page of pinned memory for words that the host reads. The page outlives this
    /// device, so the context is kept, as for a pool.
    pub(crate) fn host_page(&self, bytes: usize) -> DriverResult<HostPage> {
        HostPage::new(&self.context, self.pool.is_some(), bytes)
    }

    /// Returns the number of bytes that are allocated.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that the pool holds from the system, in use or not.
    pub(crate) fn reserved(&self) -> DriverResult<u64> {
        match self.pool {
            Some(pool) => {
                self.pool_attribute(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
            }
            None => Ok(self.used()),
        }
    }

    /// Returns the number of bytes that the pool holds from the system and nobody uses.
    pub(crate) fn unused(&self) -> DriverResult<u64> {
        let Some(pool) = self.pool else { return Ok(0) };
        let used = self.pool_attribute(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        Ok(self.reserved()?.saturating_sub(used))
    }

    /// Calls [`cuMemPoolGetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html).
    fn pool_attribute(&self, pool: CUmemoryPool, attribute: CUmemPool_attribute) -> DriverResult<u64> {
        let mut bytes: u64 = 0;
        // SAFETY: the attributes asked for are 64-bit numbers.
        unsafe { self.context.driver().cu_mem_pool_get_attribute(pool, attribute, (&raw mut bytes).cast())? };
        Ok(bytes)
    }

    /// Gives all unused memory of the pool back to the system.
    /// ([`cuMemPoolTrimTo`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html))
    pub(crate) fn trim(&self) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        self.settle()?;
        match self.pool {
            // SAFETY: the pool is alive while `self` is.
            Some(pool) => unsafe { self.context.driver().cu_mem_pool_trim_to(pool, 0) },
            None => Ok(()),
        }
    }

    /// Lets the GPU with this driver number reach the pool's memory.
    pub(crate) fn allow_peer(&self, peer: CUdevice) -> DriverResult<()> {
        let Some(pool) = self.pool else { return Ok(()) };
        let location = on_device(peer);
        let access =
            CUmemAccessDesc { location, flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        // SAFETY: the pool is alive, and one description is read.
        unsafe { self.context.driver().cu_mem_pool_set_access(pool, &access, 1) }
    }

    pub(crate) fn allocate(self: &Arc<Self>, bytes: u64, kind: MemoryKind) -> Result<Arc<Memory>> {
        match self.try_allocate(bytes, kind) {
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                // Memory may be waiting for the end of its last use, or lie unused in the pool.
                release::flush_briefly();
                self.trim()?;
                self.try_allocate(bytes, kind).map_err(|error| self.describe(error, bytes, kind))
            }
            outcome => outcome.map_err(|error| self.describe(error, bytes, kind)),
        }
    }

    fn try_allocate(self: &Arc<Self>, bytes: u64, kind: MemoryKind) -> DriverResult<Arc<Memory>> {
        let driver = self.context.driver();
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let _entered = self.context.enter()?;
        let mut address: CUdeviceptr = 0;
        match kind {
            MemoryKind::Device => match self.pool {
                Some(pool) => {
                    // SAFETY: pool and stream are alive; one address is written.
                    unsafe { driver.cu_mem_alloc_from_pool_async(&mut address, size, pool, self.stream)? };
                }
                // SAFETY: the context is current; one address is written.
                None => unsafe { driver.cu_mem_alloc(&mut address, size)? },
            },
            MemoryKind::Host => {
                let mut host: *mut c_void = ptr::null_mut();
                let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
                // SAFETY: the context is current; one pointer is written.
                unsafe { driver.cu_mem_host_alloc(&mut host, size, flags)? };
                // With unified addressing, which every supported system has, the device uses the
                // same address.
                address = host as CUdeviceptr;
            }
            MemoryKind::Managed => {
                let flags = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
                // SAFETY: the context is current; one address is written.
                unsafe { driver.cu_mem_alloc_managed(&mut address, size, flags)? };
            }
        }
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let memory = Arc::new(Memory { allocator: Arc::clone(self), address, bytes, kind });
        MEMORY.add(address, &memory);
        if kind == MemoryKind::Device && self.pool.is_some() {
            // Other streams may use the memory once this stream has reached the allocation.
            self.settle()?;
        }
        Ok(memory)
    }

    /// Waits for the allocations and frees so far. Nothing else runs on this stream, so the wait is
    /// short.
    fn settle(&self) -> DriverResult<()> {
        // SAFETY: the stream is alive while `self` is.
        unsafe { self.context.driver().cu_stream_synchronize(self.stream) }
    }

    fn describe(&self, error: DriverError, bytes: u64, kind: MemoryKind) -> Error {
        let used = self.used();
        Error::from(error).context(format_args!(
            "allocating {bytes} bytes of {} memory, with {used} bytes allocated already",
            kind.name()
        ))
    }

    /// Refuses kinds of memory that the device does not have.
    pub(crate) fn check_kind(&self, kind: MemoryKind) -> Result<()> {
        if kind == MemoryKind::Managed && !self.managed {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "this GPU has no managed memory; use device memory, or host memory that it can reach",
            ));
        }
        Ok(())
    }

    fn free(&self, memory: &Memory) {
        let (address, kind, pooled) = (memory.address, memory.kind, self.pool.is_some());
        // The free may be put off. The allocator is kept until then.
        let (allocator, stream) = (Arc::clone(&memory.allocator), Handle(self.stream));
        self.context.let_go("memory", move |driver| {
            let _allocator = allocator;
            // SAFETY: the memory was allocated with the counterpart of each call, is freed once,
            // and no work in flight can reach it, because such work would hold a reference to it.
            unsafe {
                match kind {
                    MemoryKind::Device if pooled => driver.cu_mem_free_async(address, stream.raw()),
                    MemoryKind::Host => driver.cu_mem_free_host(address as *mut c_void),
                    _ => driver.cu_mem_free(address),
                }
            }
        });
        self.used.fetch_sub(memory.bytes, Ordering::Relaxed);
    }

    /// Copies between device-visible addresses (host addresses among them) and waits for the copy.
    pub(crate) fn copy_now(&self, dst: CUdeviceptr, src: CUdeviceptr, bytes: usize) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        // SAFETY: both ranges are valid for `bytes` until the wait returns, which callers in this
        // crate ensure by holding references; nothing else runs on this stream.
        unsafe { self.context.driver().cu_memcpy_async(dst, src, bytes, self.stream)? };
        self.settle()
    }

    /// Fills device memory with a byte and waits for it.
    pub(crate) fn fill_now(&self, dst: CUdeviceptr, value: u8, bytes: usize) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        // SAFETY: as in `copy_now`.
        unsafe { self.context.driver().cu_memset_d8_async(dst, value, bytes, self.stream)? };
        self.settle()
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        let (stream, pool, device) = (Handle(self.stream), self.pool.map(Handle), self.context.device());
        self.context.let_go("memory pool", move |driver| {
            // SAFETY: the stream was made here and is destroyed last. The last frees may still be
            // queued on it, and the context may end right after this, so this waits for them.
            let settled = unsafe { driver.cu_stream_synchronize(stream.raw()) };
            // No memory of the pool is left, since each piece holds a reference to this allocator.
            let given = pool.map_or(Ok(()), |pool| driver.pools().give(driver, device, pool.raw()));
            // SAFETY: destroyed once.
            let ended = unsafe { driver.cu_stream_destroy(stream.raw()) };
            settled.and(given).and(ended)
        });
    }
}

/// Returns the location of this GPU's memory, as the driver describes it.
pub(crate) fn on_device(device: CUdevice) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: device },
    }
}

/// Copies pinned host memory to a slice. The GPU may write the memory meanwhile. Rust knows nothing
/// of the memory, which the driver allocated, and volatile reads assume nothing of its contents.
///
/// # Safety
/// `dst.len()` bytes from `address` on are host memory that exists during the call.
unsafe fn read_host(address: u64, dst: &mut [u8]) {
    let source: *const u8 = ptr::with_exposed_provenance(address as usize);
    let words = if address.is_multiple_of(8) { dst.len() / 8 } else { 0 };
    let (whole, rest) = dst.split_at_mut(words * 8);
    for (index, word) in whole.chunks_exact_mut(8).enumerate() {
        // SAFETY: promised by the caller; the address is aligned for a word.
        let value = unsafe { source.cast::<u64>().add(index).read_volatile() };
        word.copy_from_slice(&value.to_ne_bytes());
    }
    for (index, byte) in rest.iter_mut().enumerate() {
        // SAFETY: promised by the caller.
        *byte = unsafe { source.add(words * 8 + index).read_volatile() };
    }
}

/// A block of memory, freed when the last reference goes.
#[derive(Debug)]
pub struct Memory {
    allocator: Arc<Allocator>,
    address: CUdeviceptr,
    bytes: u64,
    kind: MemoryKind,
}

impl Memory {
    /// Returns the context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.allocator.context
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        MEMORY.remove(self.address, self);
        self.allocator.free(self);
    }
}

// SAFETY: the driver gave this address for so many bytes of this kind, which are freed in the drop.
unsafe impl backend::Allocation for Memory {
    fn device(&self) -> DeviceId {
        self.allocator.device
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

    fn read_host(&self, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_host_access(self, offset, dst.len())?;
        // SAFETY: the range lies in this host memory, which lives while `self` does.
        unsafe { read_host(self.address + offset, dst) };
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Memory that is not freed here: borrowed memory, or a part of another block.
#[derive(Debug)]
pub(crate) struct BorrowedMemory {
    device: DeviceId,
    address: CUdeviceptr,
    bytes: u64,
    kind: MemoryKind,
    _owner: Option<Owner>,
}

impl BorrowedMemory {
    pub(crate) fn new(
        device: DeviceId,
        address: CUdeviceptr,
        bytes: u64,
        kind: MemoryKind,
        owner: Option<Owner>,
    ) -> Self {
        Self { device, address, bytes, kind, _owner: owner }
    }
}

// SAFETY: whoever made it from an address promised that these bytes are there until the owner is
// dropped.
unsafe impl backend::Allocation for BorrowedMemory {
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

    fn read_host(&self, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_host_access(self, offset, dst.len())?;
        // SAFETY: the range lies in this host memory, which lives while `self` does.
        unsafe { read_host(self.address + offset, dst) };
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
