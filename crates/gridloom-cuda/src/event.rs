//! Events: points in a stream that can be waited for and timed.

use crate::context::Context;
use crate::driver::DriverResult;
use crate::interop::{Owner, Ownership};
use crate::polling::PollingWait;
use crate::registry::{self, EVENTS};
use crate::release::Handle;
use crate::sys::*;
use gridloom_core::backend::{self, DeviceId, EventOptions};
use gridloom_core::event::CaptureMark;
use gridloom_core::{Error, ErrorKind, Result};
use std::any::Any;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// An event of the driver, destroyed with its owner unless it is borrowed.
#[derive(Debug)]
pub(crate) struct RawEvent {
    context: Arc<Context>,
    raw: CUevent,
    ownership: Ownership,
}

// SAFETY: the handle may be used from any thread.
unsafe impl Send for RawEvent {}
// SAFETY: as above; the driver's functions on events are thread-safe.
unsafe impl Sync for RawEvent {}

impl RawEvent {
    /// Makes an event.
    /// ([`cuEventCreate`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html))
    pub(crate) fn new(context: &Arc<Context>, options: EventOptions) -> DriverResult<Self> {
        let mut flags = CUevent_flags::CU_EVENT_DEFAULT.0;
        if !options.timing {
            flags |= CUevent_flags::CU_EVENT_DISABLE_TIMING.0;
        }
        if options.blocking {
            flags |= CUevent_flags::CU_EVENT_BLOCKING_SYNC.0;
        }
        let mut raw = ptr::null_mut();
        let _entered = context.enter()?;
        // SAFETY: the context is current; one handle is written.
        unsafe { context.driver().cu_event_create(&mut raw, flags)? };
        Ok(Self { context: Arc::clone(context), raw, ownership: Ownership::Ours })
    }

    pub(crate) fn raw(&self) -> CUevent {
        self.raw
    }

    /// Records it at the present end of a stream.
    /// ([`cuEventRecord`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html))
    pub(crate) fn record(&self, stream: CUstream) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        // SAFETY: both handles are alive and of one context.
        unsafe { self.context.driver().cu_event_record(self.raw, stream) }
    }

    /// Returns whether the latest recording has been reached.
    /// ([`cuEventQuery`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html))
    pub(crate) fn is_reached(&self) -> DriverResult<bool> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        match unsafe { self.context.driver().cu_event_query(self.raw)? } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.context.driver().check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Waits for the latest recording.
    /// ([`cuEventSynchronize`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html))
    pub(crate) fn synchronize(&self) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        unsafe { self.context.driver().cu_event_synchronize(self.raw) }
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        if !self.ownership.is_ours() {
            return;
        }
        let raw = Handle(self.raw);
        // SAFETY: destroyed once; the driver lets recordings and waits in flight finish.
        self.context.let_go("event", move |driver| unsafe { driver.cu_event_destroy(raw.raw()) });
    }
}

/// An event as users hold it.
#[derive(Debug)]
pub struct Event {
    device: DeviceId,
    options: EventOptions,
    inner: RawEvent,
    mark: CaptureMark,
}

impl Event {
    pub(crate) fn new(
        context: &Arc<Context>,
        device: DeviceId,
        options: EventOptions,
    ) -> DriverResult<Arc<Self>> {
        let event = Arc::new(Self {
            device,
            options,
            inner: RawEvent::new(context, options)?,
            mark: CaptureMark::default(),
        });
        EVENTS.add(registry::key(event.raw()), &event);
        Ok(event)
    }

    /// Wraps an event that other code made and destroys.
    pub(crate) fn borrow(
        context: &Arc<Context>,
        device: DeviceId,
        raw: CUevent,
        options: EventOptions,
        owner: Option<Owner>,
    ) -> Self {
        let ownership = Ownership::borrowed(owner);
        let inner = RawEvent { context: Arc::clone(context), raw, ownership };
        Self { device, options, inner, mark: CaptureMark::default() }
    }

    /// Returns the driver's handle, valid while this lives.
    pub fn raw(&self) -> CUevent {
        self.inner.raw()
    }

    /// Returns the CUDA event behind an event of the core.
    pub(crate) fn from_backend(event: &dyn backend::Event) -> Result<&Self> {
        event
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Error::new(ErrorKind::WrongDevice, "the event does not belong to a CUDA device"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        EVENTS.remove(registry::key(self.raw()), self);
    }
}

// SAFETY: it belongs to the device that made it.
unsafe impl backend::Event for Event {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn options(&self) -> EventOptions {
        self.options
    }

    fn capture_mark(&self) -> &CaptureMark {
        &self.mark
    }

    fn synchronize(&self) -> Result<()> {
        Ok(self.inner.synchronize()?)
    }

    fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        match PollingWait::new(timeout).until(|| self.inner.is_reached())? {
            true => Ok(()),
            false => Err(backend::timed_out("the work before the event", timeout)),
        }
    }

    fn is_reached(&self) -> Result<bool> {
        Ok(self.inner.is_reached()?)
    }

    /// Calls [`cuEventElapsedTime`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html).
    fn elapsed_since(&self, earlier: &dyn backend::Event) -> Result<Duration> {
        let earlier = Self::from_backend(earlier)?;
        let context = &self.inner.context;
        let _entered = context.enter()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: both handles are alive; one number is written.
        let elapsed = unsafe {
            context.driver().cu_event_elapsed_time(&mut milliseconds, earlier.inner.raw, self.inner.raw)
        };
        match elapsed {
            Ok(()) => Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_READY) => Err(Error::new(
                ErrorKind::InvalidState,
                "an event has not been reached yet; synchronize it before reading the time",
            )),
            Err(error) if error.code() == Some(CUresult::CUDA_ERROR_INVALID_HANDLE) => Err(Error::new(
                ErrorKind::InvalidState,
                "an event was never recorded; record both before reading the time between them",
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
