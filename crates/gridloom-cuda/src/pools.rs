//! The memory pools of a driver's GPUs, which are used again and never destroyed.
//!
//! A device has its own pool while it is open. Destroying the pool afterwards is not safe: driver
//! 580.159 (CUDA 13.0) crashed in `cuCtxSynchronize` on one thread while another was in
//! `cuMemPoolDestroy`. So the pool of a closed device is trimmed, which returns its memory to the
//! system, and is kept for the next device. A pool needs its context, so the primary context is
//! kept from the first pool on.

use crate::context::Context;
use crate::driver::{Driver, DriverResult};
use crate::memory::on_device;
use crate::sys::*;
use gridloom_core::log;
use parking_lot::Mutex;
use std::ptr;

/// Freed memory that a pool keeps for the next allocation, at most; the rest goes back to the
/// system.
const KEPT_BY_POOL: u64 = 1 << 30;

/// The pools that are not in use.
#[derive(Debug, Default)]
pub(crate) struct Pools(Mutex<Vec<(CUdevice, CUmemoryPool)>>);

// SAFETY: pools are handles that the driver lets any thread use.
unsafe impl Send for Pools {}
// SAFETY: as above.
unsafe impl Sync for Pools {}

impl Pools {
    /// Creates a pool for memory of the context's GPU. The context is current.
    pub(crate) fn take(&self, context: &Context) -> DriverResult<CUmemoryPool> {
        let device = context.device();
        let mut idle = self.0.lock();
        match idle.iter().position(|&(of, _)| of == device) {
            Some(index) => Ok(idle.swap_remove(index).1),
            None => {
                drop(idle);
                create(context)
            }
        }
    }

    /// Takes a pool back from which nothing is allocated any more.
    /// ([`cuMemPoolTrimTo`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html))
    pub(crate) fn give(&self, driver: &Driver, device: CUdevice, pool: CUmemoryPool) -> DriverResult<()> {
        // SAFETY: the pool is alive, as all are.
        let emptied = unsafe { driver.cu_mem_pool_trim_to(pool, 0) };
        self.0.lock().push((device, pool));
        emptied
    }
}

/// Calls [`cuMemPoolCreate`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html).
fn create(context: &Context) -> DriverResult<CUmemoryPool> {
    let driver = context.driver();
    context.keep()?;
    let properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: on_device(context.device()),
        ..Default::default()
    };
    let mut pool = ptr::null_mut();
    // SAFETY: the properties are read, and one handle is written.
    unsafe { driver.cu_mem_pool_create(&mut pool, &properties)? };
    let mut threshold: u64 = KEPT_BY_POOL;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute is a 64-bit number.
    let set = unsafe { driver.cu_mem_pool_set_attribute(pool, attribute, (&raw mut threshold).cast()) };
    if let Err(error) = set {
        log!(debug, %error, "the memory pool keeps its own threshold");
    }
    Ok(pool)
}
