//! Streams: queues of work that runs in order on the GPU.

use crate::context::Context;
use crate::device::Shared;
use crate::driver::{DriverError, DriverResult};
use crate::event::{Event, RawEvent};
use crate::failure::{Failures, HostCall};
use crate::graph;
use crate::hosted_launch::{HostedLaunch, HostedLaunches, HostedSlot};
use crate::in_flight::{Batch, InFlight, Marked, Queue, Released, Waited};
use crate::interop::{Owner, Ownership};
use crate::kernel::{Kernel, Launch};
use crate::memory::Allocator;
use crate::polling::PollingWait;
use crate::registry::{self, STREAMS};
use crate::release::{self, Handle};
use crate::sys::*;
use crate::transfer;
use gridloom_core::backend::{self, DeviceId, EventOptions, StreamOptions};
use gridloom_core::log;
use gridloom_core::lower::{Locate, OnStream};
use gridloom_core::op::{CallbackOp, KernelOp, MemcpyOp, MemsetOp, Operation};
use gridloom_core::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::any::Any;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A stream of the driver, with the marks for what its work keeps alive.
#[derive(Debug)]
pub(crate) struct RawStream {
    context: Arc<Context>,
    raw: CUstream,
    /// Events that were marks and can be again.
    spare: Mutex<Vec<RawEvent>>,
    ownership: Ownership,
}

// SAFETY: the handle may be used from any thread; the driver's functions on streams are
// thread-safe.
unsafe impl Send for RawStream {}
// SAFETY: as above.
unsafe impl Sync for RawStream {}

impl RawStream {
    /// Calls [`cuStreamCreateWithPriority`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    fn new(context: &Arc<Context>, options: StreamOptions) -> DriverResult<Self> {
        let mut raw = ptr::null_mut();
        let flags = match options.non_blocking {
            true => CUstream_flags::CU_STREAM_NON_BLOCKING.0,
            false => CUstream_flags::CU_STREAM_DEFAULT.0,
        };
        let _entered = context.enter()?;
        // SAFETY: the context is current; one handle is written.
        unsafe { context.driver().cu_stream_create_with_priority(&mut raw, flags, options.priority)? };
        let ownership = Ownership::Ours;
        Ok(Self { context: Arc::clone(context), raw, spare: Mutex::default(), ownership })
    }

    /// Calls [`cuStreamQuery`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    fn is_idle(&self) -> DriverResult<bool> {
        let _entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        match unsafe { self.context.driver().cu_stream_query(self.raw) }? {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.context.driver().check("cuStreamQuery", code).map(|()| true),
        }
    }
}

impl Queue for RawStream {
    type Mark = RawEvent;

    fn mark(&self) -> Marked<RawEvent> {
        match self.is_idle() {
            // A mark is work too, and would make an idle stream busy again.
            Ok(true) => return Marked::Idle,
            Ok(false) => {}
            Err(error) => return unmarked(&error),
        }
        let spare = self.spare.lock().pop();
        let event = match spare {
            Some(event) => event,
            None => match RawEvent::new(&self.context, EventOptions::new().timing(false)) {
                Ok(event) => event,
                Err(error) => return unmarked(&error),
            },
        };
        match event.record(self.raw) {
            Ok(()) => Marked::At(event),
            Err(error) => {
                self.recycle(event);
                unmarked(&error)
            }
        }
    }

    fn passed(&self, mark: &RawEvent) -> bool {
        // If the context is lost, nothing in the stream will run any more. Any other failure says
        // nothing about the stream.
        mark.is_reached().unwrap_or_else(|error| error.is_sticky())
    }

    fn recycle(&self, mark: RawEvent) {
        self.spare.lock().push(mark);
    }
}

/// Says what it means that a stream could not be marked.
fn unmarked(error: &DriverError) -> Marked<RawEvent> {
    if error.is_sticky() {
        return Marked::Dead;
    }
    log!(debug, %error, "a stream cannot be marked; what its work uses is kept");
    Marked::NotNow
}

impl Drop for RawStream {
    fn drop(&mut self) {
        self.spare.get_mut().clear();
        if !self.ownership.is_ours() {
            return;
        }
        let raw = Handle(self.raw);
        // SAFETY: destroyed once; the driver lets work in flight finish.
        self.context.let_go("stream", move |driver| unsafe { driver.cu_stream_destroy(raw.raw()) });
    }
}

/// A queue of work on a GPU.
#[derive(Debug)]
pub struct Stream {
    device: DeviceId,
    context: Arc<Context>,
    in_flight: Arc<InFlight<RawStream>>,
    /// Failures of callbacks enqueued here.
    failures: Arc<Failures>,
    /// Failures of executables launched here since the last wait.
    launched: Mutex<Vec<Arc<Failures>>>,
    /// The program that the host drives here, if there is one.
    hosted: HostedSlot,
    hosted_launches: Arc<HostedLaunches>,
    streams: Arc<StreamsInFlight>,
    allocator: Arc<Allocator>,
}

/// All streams of a device.
#[derive(Debug, Default)]
pub(crate) struct StreamsInFlight(Mutex<Vec<Weak<InFlight<RawStream>>>>);

impl StreamsInFlight {
    fn add(&self, in_flight: &Arc<InFlight<RawStream>>) {
        let mut streams = self.0.lock();
        streams.retain(|known| known.strong_count() > 0);
        streams.push(Arc::downgrade(in_flight));
    }

    fn alive(&self) -> Vec<Arc<InFlight<RawStream>>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the ends of what is enqueued now on the streams that are busy.
    pub(crate) fn ends(&self) -> DriverResult<Vec<RawEvent>> {
        let mut ends = Vec::new();
        for in_flight in self.alive() {
            let stream = in_flight.queue();
            if !stream.is_idle()? {
                let end = RawEvent::new(&stream.context, EventOptions::new().timing(false))?;
                end.record(stream.raw)?;
                ends.push(end);
            }
        }
        Ok(ends)
    }
}

impl Stream {
    pub(crate) fn new(shared: &Shared, options: StreamOptions) -> DriverResult<Arc<Self>> {
        let stream = Arc::new(Self::on(shared, RawStream::new(&shared.context, options)?));
        STREAMS.add(registry::key(stream.raw()), &stream);
        Ok(stream)
    }

    /// Wraps a stream that other code made and destroys.
    pub(crate) fn borrow(shared: &Shared, raw: CUstream, owner: Option<Owner>) -> Self {
        let ownership = Ownership::borrowed(owner);
        let context = Arc::clone(&shared.context);
        Self::on(shared, RawStream { context, raw, spare: Mutex::default(), ownership })
    }

    fn on(shared: &Shared, in_flight: RawStream) -> Self {
        let in_flight = InFlight::new(in_flight);
        shared.streams.add(&in_flight);
        Self {
            device: shared.id,
            context: Arc::clone(&shared.context),
            in_flight,
            failures: Arc::default(),
            launched: Mutex::default(),
            hosted: HostedSlot::default(),
            hosted_launches: Arc::clone(&shared.hosted_launches),
            streams: Arc::clone(&shared.streams),
            allocator: Arc::clone(&shared.allocator),
        }
    }

    /// Returns the driver's handle, valid while this lives.
    pub fn raw(&self) -> CUstream {
        self.in_flight.queue().raw
    }

    /// Returns the context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the CUDA stream behind a stream of the core.
    pub(crate) fn from_backend(stream: &dyn backend::Stream) -> Result<&Self> {
        stream
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Error::new(ErrorKind::WrongDevice, "the stream does not belong to a CUDA device"))
    }

    /// Returns the CUDA stream of a stream of the core, with a reference.
    pub(crate) fn keep_from_backend(stream: &Arc<dyn backend::Stream>) -> Result<Arc<Self>> {
        Arc::clone(stream)
            .into_any()
            .downcast()
            .map_err(|_| Error::new(ErrorKind::WrongDevice, "the stream does not belong to a CUDA device"))
    }

    /// Holds `payload` until the work enqueued so far has run.
    pub(crate) fn keep(&self, payload: impl Send + 'static) {
        self.in_flight.keep(payload);
    }

    /// Keeps a shared object, which is often kept several times in a row.
    pub(crate) fn keep_shared<T: Any + Send + Sync>(&self, payload: &Arc<T>) -> Batch {
        self.in_flight.keep_shared(payload)
    }

    /// Returns whether what was put into this batch is held until the work enqueued so far has run.
    #[inline]
    pub(crate) fn holds(&self, batch: Batch) -> bool {
        self.in_flight.holds(batch)
    }

    /// Keeps several blocks of memory.
    pub(crate) fn keep_memory(&self, memory: &[&Arc<dyn backend::Allocation>]) {
        self.in_flight.keep_memory(memory);
    }

    /// Makes the next wait report failures of an executable that was launched here.
    pub(crate) fn report(&self, failures: &Arc<Failures>) {
        let mut launched = self.launched.lock();
        if !launched.iter().any(|known| Arc::ptr_eq(known, failures)) {
            launched.push(Arc::clone(failures));
        }
    }

    /// Runs `work`, which enqueues on this stream, on its own thread. Other work that is enqueued
    /// here comes after it.
    pub(crate) fn start_hosted(&self, work: impl FnOnce() + Send + 'static) -> Result<Arc<HostedLaunch>> {
        self.hosted.start(&self.hosted_launches, work)
    }

    /// Waits until no program enqueues here.
    pub(crate) fn settle(&self) {
        self.hosted.settle();
    }

    /// Orders what is enqueued here next after everything enqueued so far on any stream of the
    /// device.
    pub(crate) fn come_after_everything(&self) -> DriverResult<()> {
        let _entered = self.context.enter()?;
        for in_flight in self.streams.alive() {
            if Arc::ptr_eq(&in_flight, &self.in_flight) {
                continue;
            }
            let event = RawEvent::new(&self.context, EventOptions::new().timing(false))?;
            event.record(in_flight.queue().raw)?;
            // SAFETY: both handles are alive; 0 is the one flag there is.
            unsafe { self.context.driver().cu_stream_wait_event(self.raw(), event.raw(), 0)? };
        }
        Ok(())
    }

    /// Waits for everything enqueued so far, without reading failures of callbacks. Objects that
    /// only this work kept alive are dropped on the release thread: the drop may run user code and
    /// take long, and the caller may hold locks.
    pub(crate) fn wait_for_device(&self) -> DriverResult<()> {
        let (waited, released) = self.wait();
        if !released.is_empty() {
            release::hand_over(Box::new(released));
        }
        waited
    }

    /// As [`wait_for_device`](Self::wait_for_device). If the context is lost, the error says which
    /// graphs were launched last, because the driver does not say which kernel failed.
    fn wait_and_explain(&self) -> Result<()> {
        let (waited, released) = self.wait();
        let outcome = waited.map_err(|error| {
            let is_lost = error.is_sticky();
            let error = Error::from(error);
            let mut launched = Vec::new();
            if is_lost {
                self.in_flight.for_each_shared(&released, |kept| {
                    launched.extend(graph::about(kept).map(str::to_owned));
                });
            }
            launched.sort();
            launched.dedup();
            match launched.is_empty() {
                true => error,
                false => error.context(format_args!(
                    "after launches of {} on this stream (a combined kernel has the name of its nodes; with \
                     GRIDLOOM_OPTIMIZE=off each node runs by itself, and a CPU device that checks memory names \
                     the node)",
                    launched.join(", and of ")
                )),
            }
        });
        if !released.is_empty() {
            release::hand_over(Box::new(released));
        }
        outcome
    }

    /// Waits for the device. Also returns what the work kept alive.
    fn wait(&self) -> (DriverResult<()>, Released) {
        self.in_flight.wait(|| {
            let waited = self.context.enter().and_then(|_entered| {
                // SAFETY: the handle is alive.
                unsafe { self.context.driver().cu_stream_synchronize(self.raw()) }
            });
            match waited {
                Err(error) if !error.is_sticky() => Waited::Unknown(Err(error)),
                waited => Waited::Over(waited),
            }
        })
    }

    fn launch(&self, op: &KernelOp) -> Result<()> {
        let kernel = Kernel::from_backend(&**op.kernel())?;
        let launch = Launch::new(kernel, op.config(), op.args())?;
        // SAFETY: the arguments were made for this kernel's parameters, whose types its looker-up
        // has promised, and what they refer to is kept until the kernel has run.
        Ok(unsafe { launch.enqueue(self.raw()) }?)
    }

    /// ([`cuMemsetD8Async`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html) and
    /// its siblings)
    fn fill(&self, op: &MemsetOp) -> Result<()> {
        let location = OnStream.locate(&op.dst)?;
        let p = transfer::fill_parameters(op, location.address);
        let (driver, stream) = (self.context.driver(), self.raw());
        // SAFETY: the core has checked that the destination holds the fill and is aligned; it is
        // kept until it has run.
        let filled = unsafe {
            match (p.elementSize, p.height) {
                (1, 1) => driver.cu_memset_d8_async(p.dst, p.value as u8, p.width, stream),
                (2, 1) => driver.cu_memset_d16_async(p.dst, p.value as u16, p.width, stream),
                (_, 1) => driver.cu_memset_d32_async(p.dst, p.value, p.width, stream),
                (1, _) => {
                    driver.cu_memset_d2d8_async(p.dst, p.pitch, p.value as u8, p.width, p.height, stream)
                }
                (2, _) => {
                    driver.cu_memset_d2d16_async(p.dst, p.pitch, p.value as u16, p.width, p.height, stream)
                }
                (_, _) => driver.cu_memset_d2d32_async(p.dst, p.pitch, p.value, p.width, p.height, stream),
            }
        };
        Ok(filled?)
    }

    /// ([`cuMemcpyAsync` and
    /// `cuMemcpy3DAsync`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html))
    fn copy(&self, op: &MemcpyOp) -> Result<()> {
        let dst = OnStream.locate(&op.dst.region)?;
        let src = OnStream.locate(&op.src.region)?;
        let (driver, stream) = (self.context.driver(), self.raw());
        // SAFETY: the core has checked that both sides hold the copy; they are kept until it has
        // run.
        let copied = unsafe {
            if transfer::is_linear(op) {
                driver.cu_memcpy_async(dst.address, src.address, op.width as usize, stream)
            } else {
                driver.cu_memcpy_3d_async(&transfer::copy_parameters(op, dst, src), stream)
            }
        };
        Ok(copied?)
    }

    /// Calls [`cuLaunchHostFunc`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html).
    fn call(&self, callback: &CallbackOp) -> Result<()> {
        let call = HostCall::new(callback.clone(), Arc::clone(&self.failures), None);
        // SAFETY: the function gets the number it asks for, of a call that is kept until it has
        // run.
        unsafe { self.context.driver().cu_launch_host_func(self.raw(), Some(HostCall::run), call.data()) }?;
        self.keep(call);
        Ok(())
    }

    /// Returns the first failure of executables that were launched here and of callbacks. All are
    /// taken.
    fn take_failures(&self, launched: &[Arc<Failures>]) -> Result<()> {
        let failed = launched.iter().chain([&self.failures]).map(|failures| failures.take_for_stream());
        let failed: Vec<Result<()>> = failed.collect();
        failed.into_iter().collect()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        STREAMS.remove(registry::key(self.raw()), self);
    }
}

// SAFETY: it belongs to the device that made it.
unsafe impl backend::Stream for Stream {
    fn device(&self) -> DeviceId {
        self.device
    }

    unsafe fn enqueue(&self, operation: &Operation) -> Result<()> {
        self.settle();
        let _entered = self.context.enter()?;
        match operation {
            Operation::Empty => return Ok(()),
            Operation::Kernel(op) => self.launch(op)?,
            Operation::Memset(op) => self.fill(op)?,
            Operation::Memcpy(op) => self.copy(op)?,
            Operation::Callback(callback) => return self.call(callback),
            Operation::EventRecord(event) => {
                let event = Event::from_backend(&**event)?;
                // SAFETY: both handles are alive and of one context.
                unsafe { self.context.driver().cu_event_record(event.raw(), self.raw()) }?;
            }
            Operation::EventWait(event) => {
                let event = Event::from_backend(&**event)?;
                // SAFETY: both handles are alive; 0 is the one flag there is.
                unsafe { self.context.driver().cu_stream_wait_event(self.raw(), event.raw(), 0) }?;
            }
            Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Child(_)
            | Operation::Conditional(_)
            | Operation::Opaque(_) => {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{} belongs in a graph, not on a stream", operation.kind().name()),
                ));
            }
        }
        self.keep(operation.clone());
        Ok(())
    }

    /// Calls [`cuStreamSynchronize`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    fn synchronize(&self) -> Result<()> {
        // Taken before the waits: what is added meanwhile belongs to launches that they do not wait
        // for.
        let launched = std::mem::take(&mut *self.launched.lock());
        self.settle();
        if let Err(error) = self.wait_and_explain() {
            // This error explains later ones. Failures of callbacks are reported by the next call.
            launched.iter().for_each(|failures| self.report(failures));
            return Err(error);
        }
        self.take_failures(&launched)
    }

    fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        let wait = PollingWait::new(timeout);
        let late = || backend::timed_out("the work on the stream", timeout);
        if !self.hosted.settle_until(wait.deadline()) {
            return Err(late());
        }
        let queue = self.in_flight.queue();
        if !queue.is_idle()? {
            let end = RawEvent::new(&self.context, EventOptions::new().timing(false))?;
            end.record(queue.raw)?;
            if !wait.until(|| end.is_reached())? {
                return Err(late());
            }
        }
        let launched = std::mem::take(&mut *self.launched.lock());
        self.take_failures(&launched)
    }

    fn cancel(&self) {
        self.hosted.cancel();
    }

    fn is_idle(&self) -> Result<bool> {
        if self.hosted.is_busy() {
            return Ok(false);
        }
        Ok(self.in_flight.queue().is_idle()?)
    }

    /// Calls [`cuStreamGetPriority`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html).
    fn priority(&self) -> Result<i32> {
        let mut priority = 0;
        let _entered = self.context.enter()?;
        // SAFETY: the handle is alive; one number is written.
        unsafe { self.context.driver().cu_stream_get_priority(self.raw(), &mut priority) }?;
        Ok(priority)
    }

    fn read(&self, src: &dyn backend::Allocation, offset: u64, dst: &mut [u8]) -> Result<()> {
        backend::check_access(self.device, src, offset, dst.len())?;
        self.settle();
        self.wait_for_device()?;
        if dst.is_empty() {
            return Ok(());
        }
        // The copy runs on the stream of the allocator, which does nothing else, so it does not
        // wait for work that is enqueued on this stream meanwhile.
        let (address, from) = (dst.as_mut_ptr() as u64, src.address() + offset);
        Ok(self.allocator.copy_now(address, from, dst.len())?)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
