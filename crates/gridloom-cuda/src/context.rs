//! The context of a GPU, which is made current on each thread that needs it.

use crate::driver::{Driver, DriverResult};
use crate::release;
use crate::sys::{CUcontext, CUdevice, CUdevice_attribute, CUstreamCaptureMode};
use crate::version::CudaVersion;
use gridloom_core::log;
use parking_lot::Mutex;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

/// Tells Gridloom's own threads from those of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Others,
    Ours,
    /// One of Gridloom's threads, which captures on other threads do not restrict.
    Relaxed,
}

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(Thread::Others) };
}

/// Marks this thread as one of Gridloom's own, which waits, queries and frees in the background.
/// While another thread captures a stream in the strictest mode, the driver prohibits such calls to
/// every thread that does not opt out.
pub(crate) fn this_thread_is_ours() {
    THREAD.set(Thread::Ours);
}

/// Held while a primary context is retained or released. The last release destroys the context and
/// the next retain creates it again. Nothing is gained by letting the driver do both at once.
static PRIMARY: Mutex<()> = Mutex::new(());

/// The primary context of one GPU, shared with every other CUDA library in the process. Gridloom
/// releases its reference with the last object that uses it. A context that had a memory pool
/// (`pools.rs`) or a page of pinned memory (`host_pages.rs`) stays until the process ends.
#[derive(Debug)]
pub struct Context {
    driver: Arc<Driver>,
    device: CUdevice,
    raw: CUcontext,
    overlaps_kernels: bool,
    launches_anywhere: bool,
}

/// The first compute capability on which a kernel may start before the one it follows has ended.
const OVERLAPS_SINCE: i32 = 9;

/// The first driver (580.159) that is known to launch a graph whatever context is current, or none.
/// NVIDIA does not document this. Changing a graph without a current context crashes the same
/// driver.
const LAUNCHES_ANYWHERE_SINCE: CudaVersion = CudaVersion::new(13, 0);

// SAFETY: a context may be current on any number of threads at once, and the driver's functions are
// thread-safe.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of `device`.
    /// ([`cuDevicePrimaryCtxRetain`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PRIMARY__CTX.html))
    pub(crate) fn retain(driver: &Arc<Driver>, device: CUdevice) -> DriverResult<Arc<Self>> {
        let mut raw = ptr::null_mut();
        let _one_at_a_time = PRIMARY.lock();
        // SAFETY: the device is one that the driver enumerated; one handle is written.
        unsafe { driver.cu_device_primary_ctx_retain(&mut raw, device)? };
        let mut major = 0;
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        // SAFETY: one number is written.
        let asked = unsafe { driver.cu_device_get_attribute(&mut major, attribute, device) };
        let overlaps_kernels = asked.is_ok() && major >= OVERLAPS_SINCE;
        let launches_anywhere = driver.supports(LAUNCHES_ANYWHERE_SINCE);
        Ok(Arc::new(Self { driver: Arc::clone(driver), device, raw, overlaps_kernels, launches_anywhere }))
    }

    /// Keeps the context until the process ends.
    /// ([`cuDevicePrimaryCtxRetain`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PRIMARY__CTX.html))
    pub(crate) fn keep(&self) -> DriverResult<()> {
        let mut raw = ptr::null_mut();
        let _one_at_a_time = PRIMARY.lock();
        // SAFETY: as in `retain`; this reference is not given back.
        unsafe { self.driver.cu_device_primary_ctx_retain(&mut raw, self.device) }
    }

    /// Returns the driver it belongs to.
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Returns the driver's handle.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// Returns whether a kernel can be allowed to start before the one it follows on a stream has
    /// ended.
    pub(crate) fn overlaps_kernels(&self) -> bool {
        self.overlaps_kernels
    }

    /// Returns the driver's number of the GPU.
    pub(crate) fn device(&self) -> CUdevice {
        self.device
    }

    /// Makes the context current on this thread until the guard goes.
    ///
    /// If it is current already, which is the usual case, nothing is pushed.
    // Always inlined: returning the result through memory takes longer than the comparison.
    #[inline(always)]
    pub(crate) fn enter(&self) -> DriverResult<Entered<'_>> {
        if THREAD.get() == Thread::Ours {
            self.relax_thread();
        }
        let mut current = ptr::null_mut();
        // SAFETY: one handle is written.
        unsafe { self.driver.cu_ctx_get_current(&mut current)? };
        let pushed = current != self.raw;
        if pushed {
            self.push()?;
        }
        Ok(Entered { context: self, pushed, thread_bound: PhantomData })
    }

    #[cold]
    fn push(&self) -> DriverResult<()> {
        // SAFETY: the context is alive while `self` is.
        unsafe { self.driver.cu_ctx_push_current(self.raw) }
    }

    #[cold]
    fn pop(&self) {
        let mut popped = ptr::null_mut();
        // SAFETY: takes off what `push` put on; guards end in reverse order on their thread.
        let result = unsafe { self.driver.cu_ctx_pop_current(&mut popped) };
        released("context stack", result);
    }

    /// Enters the context for launching a graph. Some drivers need no current context for that.
    #[inline]
    pub(crate) fn enter_for_launch(&self) -> DriverResult<Option<Entered<'_>>> {
        if self.launches_anywhere { Ok(None) } else { self.enter().map(Some) }
    }

    /// Exempts background work of Gridloom from the restrictions of stream captures. It never
    /// touches a captured stream.
    /// ([`cuThreadExchangeStreamCaptureMode`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html))
    #[cold]
    fn relax_thread(&self) {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the mode of this thread, which is ours, is exchanged.
        if let Err(error) = unsafe { self.driver.cu_thread_exchange_stream_capture_mode(&mut mode) } {
            log!(debug, %error, "captures restrict a thread of Gridloom's");
        }
        THREAD.set(Thread::Relaxed);
    }

    /// Releases something of this context, with the context current, and not in a callback. The
    /// objects of a lost context are lost with it.
    pub(crate) fn let_go(
        self: &Arc<Self>,
        what: &'static str,
        release: impl FnOnce(&Driver) -> DriverResult<()> + Send + 'static,
    ) {
        let context = Arc::clone(self);
        release::let_go(move || match context.enter() {
            Err(error) if error.is_sticky() => log!(debug, %error, what, "lost with the context"),
            // Released even if the context cannot be entered: most objects know their context.
            _entered => released(what, release(&context.driver)),
        });
    }
}

/// Logs an error of a release. A lost context fails every release, so that is logged for debugging
/// only.
fn released(what: &str, result: DriverResult<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.is_sticky() => log!(debug, %error, what, "lost with the context"),
        Err(error) => log!(warn, %error, what, "could not be released"),
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let (driver, device) = (Arc::clone(&self.driver), self.device);
        release::let_go(move || {
            let _one_at_a_time = PRIMARY.lock();
            // SAFETY: gives back the one reference that `retain` took.
            released("primary context", unsafe { driver.cu_device_primary_ctx_release(device) });
        });
    }
}

/// A guard. The context is current on this thread while the guard lives.
#[derive(Debug)]
#[must_use = "the context is current only while the guard lives"]
pub(crate) struct Entered<'a> {
    context: &'a Context,
    pushed: bool,
    /// The stack of contexts belongs to the thread.
    thread_bound: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.pushed {
            self.context.pop();
        }
    }
}
