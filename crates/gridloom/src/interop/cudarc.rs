//! Conversions from and to the types of the [`cudarc`](https://docs.rs/cudarc) crate.
//!
//! Both libraries use the primary context of a GPU, so what one makes the other can use. What comes from cudarc is kept alive by what is made of it
//! here. `cudarc` offers no way to make a `CudaFunction` or a `CudaEvent` of a handle; pass the raw handle instead.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, sys,
};
use gridloom_core::backend::{Allocation, AsDevice};

use super::{Owner, cuda};
use crate::kernel::UntypedKernel;
use crate::{Buffer, Device, Element, Error, ErrorKind, Event, EventOptions, ForeignStream, Result, Stream};

/// The device of a context, which must be a primary one. Each call opens the device anew, and objects of one handle do not go with another's:
/// keep the result.
pub fn device(context: &Arc<CudaContext>) -> Result<Device> {
    let ordinal = u32::try_from(context.ordinal()).map_err(|_| other_context("the context"))?;
    let device = Device::cuda(ordinal)?;
    check_context("the context", &device, context)?;
    Ok(device)
}

/// The context of a device.
pub fn to_context(device: &Device) -> Result<Arc<CudaContext>> {
    cuda(device.as_device())?;
    let context = CudaContext::new(device.ordinal() as usize).map_err(failed)?;
    check_context("the device", device, &context)?;
    Ok(context)
}

/// A stream of cudarc.
///
/// # Safety
/// While work that was enqueued through Gridloom is in flight on it, nobody puts it into a capture of the driver.
pub unsafe fn stream(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    check_context("the stream", device, stream.context())?;
    let owner = Owner::from(stream.clone());
    // SAFETY: the stream exists while its owner does, and the caller promises the rest.
    unsafe { super::stream_from_raw(device, stream.cu_stream().cast(), Some(owner)) }
}

/// A stream of Gridloom, for cudarc.
///
/// # Safety
/// The result, and what keeps it (every slice allocated on it among others), is not used after the last handle of `stream` is dropped.
pub unsafe fn to_stream(stream: &Stream, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
    check_context("the stream", &stream.device(), context)?;
    let raw = super::stream_to_raw(stream)?;
    // SAFETY: a stream of this very context; the caller promises that it is not used beyond its life.
    Ok(unsafe { context.wrap_borrowed_stream(raw.cast()) })
}

/// The stream of a [foreign capture](crate::Capture::foreign), for cudarc.
///
/// cudarc orders its streams through events of its slices, which a capture must not wait for: either turn that off for the context with
/// `disable_event_tracking`, or give its launches the addresses of Gridloom's buffers.
///
/// # Safety
/// The result, and what keeps it, is not used after the code that is captured has returned.
pub unsafe fn foreign_stream(stream: &ForeignStream, context: &Arc<CudaContext>) -> Result<Arc<CudaStream>> {
    let ours: sys::CUcontext = stream.context().cast();
    if context.cu_ctx() != ours {
        return Err(other_context("the context"));
    }
    // SAFETY: a stream of this very context; the caller promises that it is not used beyond its life.
    Ok(unsafe { context.wrap_borrowed_stream(stream.raw().cast()) })
}

/// An event of cudarc, made as `options` says.
///
/// # Safety
/// The event belongs to the device's primary context, and was made as `options` says.
pub unsafe fn event(device: &Device, event: Arc<CudaEvent>, options: EventOptions) -> Result<Event> {
    let raw = event.cu_event().cast();
    // SAFETY: the event exists while its owner does, and the caller promises the rest.
    unsafe { super::event_from_raw(device, raw, options, Some(event.into())) }
}

/// A slice of cudarc as a buffer. It waits for the slice's stream, so that the memory exists for every stream and holds what was written.
///
/// Later, order the work of both sides with a shared stream or with events. cudarc cannot lend the slice out mutably while the
/// buffer, or anything that uses it, exists.
pub fn buffer<T: Element>(device: &Device, slice: Arc<CudaSlice<T>>) -> Result<Buffer<T>> {
    check_context("the slice", device, slice.context())?;
    let (address, guard) = slice.device_ptr(slice.stream());
    drop(guard);
    slice.stream().synchronize().map_err(failed)?;
    let len = slice.len();
    let owner = Owner::from(Arc::new(KeptSlice(slice)));
    // SAFETY: the slice is memory of this context with so many elements, which is freed when its owner is dropped.
    unsafe { super::buffer_from_raw(device, address, len, Some(owner)) }
}

/// A slice that a buffer was made of. It may be dropped on a thread that has no context yet, and is freed in the current one.
struct KeptSlice<T>(Arc<CudaSlice<T>>);

impl<T> Drop for KeptSlice<T> {
    fn drop(&mut self) {
        if let Err(error) = self.0.context().bind_to_thread() {
            tracing::debug!(%error, "the context of a slice is lost");
        }
    }
}

/// A buffer lent to cudarc. Dropping it waits for the stream it was lent on; the memory stays Gridloom's.
pub struct LentSlice<T: Element> {
    /// Taken in the drop.
    slice: ManuallyDrop<CudaSlice<T>>,
    stream: Arc<CudaStream>,
    /// What the slice points to.
    _allocation: Arc<dyn Allocation>,
}

/// Lends a buffer of a GPU to cudarc, for work on `stream`.
///
/// # Safety
/// The slice is not moved out of the result (`std::mem::swap`), and work that cudarc does with it on other streams is done, or waited for by
/// `stream`, when the result is dropped.
pub unsafe fn to_slice<T: Element>(buffer: &Buffer<T>, stream: &Arc<CudaStream>) -> Result<LentSlice<T>> {
    check_context("the buffer", &buffer.device(), stream.context())?;
    let (allocation, address) = (buffer.allocation()?, super::buffer_to_raw(buffer)?);
    // SAFETY: the buffer is memory of this context with so many elements, all bit patterns of which are valid. The drop takes it back before it is freed.
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
        // Has the stream wait for what cudarc has done with the slice elsewhere, and frees nothing.
        slice.leak();
        if let Err(error) = self.stream.synchronize() {
            tracing::warn!(%error, "a lent slice could not be waited for");
        }
    }
}

/// A function of cudarc as a kernel; [`UntypedKernel::typed`] states its parameters.
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
