//! Pages of pinned memory for words that the device writes and the host reads, used again and never
//! freed.
//!
//! To free pinned memory, the driver waits for everything in the context, and other callers of the
//! driver wait meanwhile. Freeing the page of a graph would therefore wait for unrelated work, and
//! would deadlock if that work waits for the dropping thread. A page whose graph is gone is kept
//! for the next graph instead. A page needs its context, so the context is kept too.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::sys::*;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// The smallest size of a page. The driver takes no less from the system.
const PAGE: usize = 4096;

/// The pages that are not in use.
#[derive(Debug, Default)]
pub(crate) struct HostPages(Mutex<Vec<Page>>);

#[derive(Debug, Clone, Copy)]
struct Page {
    device: CUdevice,
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: pinned memory is not bound to a thread.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

/// A page in use. Dropping it returns the page; no work in flight may use the page then.
#[derive(Debug)]
pub(crate) struct HostPage {
    context: Arc<Context>,
    page: Page,
}

impl HostPage {
    /// Returns a page of at least this many bytes, with arbitrary content. The context stays until
    /// the process ends; if it is not `kept` yet, this call keeps it.
    /// ([`cuMemHostAlloc`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html))
    pub(crate) fn new(context: &Arc<Context>, kept: bool, bytes: usize) -> DriverResult<Self> {
        let (driver, device) = (context.driver(), context.device());
        let bytes = bytes.max(1).next_multiple_of(PAGE);
        let mut idle = driver.host_pages().0.lock();
        let fitting = idle.iter().position(|page| page.device == device && page.bytes >= bytes);
        let found = fitting.map(|index| idle.swap_remove(index));
        drop(idle);
        if let Some(page) = found {
            return Ok(Self { context: Arc::clone(context), page });
        }
        if !kept {
            context.keep()?;
        }
        let _entered = context.enter()?;
        let mut start = ptr::null_mut();
        // SAFETY: the context is current; one pointer is written.
        unsafe { driver.cu_mem_host_alloc(&mut start, bytes, CU_MEMHOSTALLOC_DEVICEMAP)? };
        Ok(Self { context: Arc::clone(context), page: Page { device, start, bytes } })
    }

    /// Returns its address on the host. With unified addressing, which every supported system has,
    /// the device uses the same address.
    pub(crate) fn start(&self) -> *mut u32 {
        self.page.start.cast()
    }
}

impl Drop for HostPage {
    fn drop(&mut self) {
        self.context.driver().host_pages().0.lock().push(self.page);
    }
}
