//! Conversions from and to the types of the [`cudarc`](https://docs.rs/cudarc) crate.
//!
//! Both libraries use the primary context of a GPU, so each can use the objects of the other. An
//! object made from a cudarc object keeps that object alive. `cudarc` offers no way to make a
//! `CudaFunction` or a `CudaEvent` from a handle; pass the raw handle instead.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, sys,
};
use gridloom_core::backend::{Allocation, AsDevice};
use gridloom_core::log;

use super::{Owner, cuda};
use crate::kernel::UntypedKernel;
use crate::{Buffer, Device, Element, Error, ErrorKind, Event, EventOptions, ForeignStream, Result, Stream};

/// Returns the device of a context, which must be a primary one. Each call opens a new device, and
/// objects of different device handles cannot be mixed: keep the result.
pub fn device(context: &Arc<CudaContext>) -> Result<Device> {
    let ordinal = u32::try_from(context.ordinal()).map_err(|_| other_context("the context"))?;
    let device = Device::cuda(ordinal)?;
    check_context("the context", &device, context)?;
    Ok(device)
}

/// Returns the context of a device.
pub fn to_context(device: &Device) -> Result<Arc<CudaContext>> {
    cuda(device.as_device())?;
    let context = CudaContext::new(device.ordinal() as usize).map_err(failed)?;
    check_context("the device", device, &context)?;
    Ok(context)
}

/// Wraps a stream of cudarc.
///
/// # Safety
/// While work that was enqueued through Gridloom is in flight on it, nobody puts it into a capture
/// of the driver.
pub unsafe fn stream(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    check_context("the stream", device, stream.context())?;
    let owner = Owner::from(stream.clone());
    // SAFETY: the stream exists while its owner does, and the caller promises the rest.
    unsafe { super::stream_from_raw(device, stream.cu_stream().cast(), Some(owner)) }
}

/// Makes a stream of Gridloom usable by cudarc.
///
/// # Safety
/// Neither the result nor anything that keeps it, such as a slice allocated on it, is used after
/// the last handle of `stream` is dropped.
pub unsafe fn to_stream(stream: &Stream, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
    check_context("the stream", &stream.device(), context)?;
    let raw = super::stream_to_raw(stream)?;
    // SAFETY: the stream belongs to this context. The caller promises not to use it after it is
    // destroyed.
    Ok(unsafe { context.wrap_borrowed_stream(raw.cast()) })
}

/// Returns the stream of a [foreign capture](crate::Capture::foreign), for cudarc.
///
/// cudarc orders its streams through events of its slices, and a capture must not wait for those.
/// Either turn that off for the context with `disable_event_tracking`, or pass the addresses of
/// Gridloom's buffers to cudarc's launches.
///
/// # Safety
/// Neither the result nor anything that keeps it is used after the captured code has returned.
pub unsafe fn foreign_stream(stream: &ForeignStream, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
    let ours: sys::CUcontext = stream.context().cast();
    if context.cu_ctx() != ours {
        return Err(other_context("the context"));
    }
    // SAFETY: the stream belongs to this context. The caller promises not to use it after it is
    // destroyed.
    Ok(unsafe { context.wrap_borrowed_stream(stream.raw().cast()) })
}

/// Wraps an event of cudarc. `options` says how it was made.
///
/// # Safety
/// The event belongs to the device's primary context, and was made as `options` says.
pub unsafe fn event(device: &Device, event: Arc<CudaEvent>, options: EventOptions) -> Result<Event> {
    let raw = event.cu_event().cast();
    // SAFETY: the event exists while its owner does, and the caller promises the rest.
    unsafe { super::event_from_raw(device, raw, options, Some(event.into())) }
}

/// Wraps a slice of cudarc as a buffer. The call waits for the slice's stream, so the memory exists
/// for every stream and holds what was written to it.
///
/// After that, order the work of both sides with a shared stream or with events. cudarc cannot lend
/// the slice out mutably while the buffer, or anything that uses it, exists.
pub fn buffer<T: Element>(device: &Device, slice: Arc<CudaSlice<T>>) -> Result<Buffer<T>> {
    check_context("the slice", device, slice.context())?;
    let (address, guard) = slice.device_ptr(slice.stream());
    drop(guard);
    slice.stream().synchronize().map_err(failed)?;
    let len = slice.len();
    let owner = Owner::from(Arc::new(KeptSlice(slice)));
    // SAFETY: the slice is memory of this context with so many elements, which is freed when its
    // owner is dropped.
    unsafe { super::buffer_from_raw(device, address, len, Some(owner)) }
}

/// The slice that a buffer was made from. cudarc frees a slice in the current context, so the drop
/// makes the slice's context current first: it may run on a thread that has none.
struct KeptSlice<T>(Arc<CudaSlice<T>>);

impl<T> Drop for KeptSlice<T> {
    fn drop(&mut self) {
        if let Err(error) = self.0.context().bind_to_thread() {
            log!(debug, %error, "a slice of cudarc is dropped although its context cannot be entered");
        }
    }
}

/// A buffer lent to cudarc. Dropping it waits for the stream it was lent on. Gridloom keeps the
/// memory.
pub struct LentSlice<T: Element> {
    /// The slice, taken out in `drop`.
    slice: ManuallyDrop<CudaSlice<T>>,
    stream: Arc<CudaStream>,
    /// The memory that the slice points to.
    _allocation: Arc<dyn Allocation>,
}

/// Lends a buffer of a GPU to cudarc, for work on `stream`.
///
/// # Safety
/// The slice is not moved out of the result (`std::mem::swap`). When the result is dropped, work
/// that cudarc does with the slice on other streams has ended or `stream` waits for it.
pub unsafe fn to_slice<T: Element>(buffer: &Buffer<T>, stream: &Arc<CudaStream>) -> Result<LentSlice<T>> {
    check_context("the buffer", &buffer.device(), stream.context())?;
    let (allocation, address) = (buffer.allocation()?, super::buffer_to_raw(buffer)?);
    // SAFETY: the buffer is memory of this context with so many elements, all bit patterns of which
    // are valid. The drop takes it back before it is freed.
    let slice = unsafe { stream.upgrade_device_ptr(address, buffer.len()) };
    Ok(LentSlice { slice: ManuallyDrop::new(slice), stream: stream.clone(), _allocation: allocation })
}

impl<T: Element> Deref for LentSlice<T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T: Element> DerefMut for LentSlice<T> {
    fn deref_mut(&mut self) -> &mut CudaSlice<T> {
        &mut self.slice
    }
}

impl<T: Element> Drop for LentSlice<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and not used any more.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        // Makes the stream wait for cudarc's work on the slice elsewhere. It frees nothing.
        slice.leak();
        if let Err(error) = self.stream.synchronize() {
            log!(warn, %error, "a lent slice could not be waited for");
        }
    }
}

/// Wraps a function of cudarc as a kernel. [`UntypedKernel::typed`] states its parameters.
///
/// # Safety
/// The function was loaded into the device's primary context.
pub unsafe fn kernel(device: &Device, function: &CudaFunction) -> Result<UntypedKernel> {
    let owner = Owner::from(Arc::new(function.clone()));
    // SAFETY: the function keeps its module loaded, and the caller promises the context.
    unsafe { super::kernel_from_raw(device, function.cu_function().cast(), Some(owner)) }
}

fn check_context(what: &str, device: &Device, context: &CudaContext) -> Result<()> {
    let ours: sys::CUcontext = super::context_to_raw(device)?.cast();
    if context.cu_ctx() == ours { Ok(()) } else { Err(other_context(what)) }
}

fn other_context(what: &str) -> Error {
    Error::new(
        ErrorKind::WrongDevice,
        format!(
            "{what} is not of the primary context of the device; make it with CudaContext::new and the device's ordinal"
        ),
    )
}

fn failed(error: DriverError) -> Error {
    Error::new(ErrorKind::Driver, "a call of cudarc failed").with_source(error)
}
