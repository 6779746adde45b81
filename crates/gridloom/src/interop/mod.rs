//! Sharing a GPU with other CUDA code: raw handles of the driver, both ways.
//!
//! A Gridloom device works in the *primary* context of its GPU, the one that the CUDA runtime, and with it nearly every other library, uses
//! too. So streams, events, kernels and memory can be passed across.
//!
//! **Out.** The `…_to_raw` functions give the driver's handle of an object. It is valid while the object lives and must not be destroyed.
//!
//! **In.** The `…_from_raw` functions take a handle. One that came from Gridloom comes back as the object it was taken from: a stream with the
//! capture it takes part in, an event with the recording it marks, a buffer that may have been closed. Any other is
//! *borrowed*: Gridloom never destroys it, and keeps an optional owner until the last graph, executable or launch in flight that uses it
//! has let go. The owner may be dropped on any thread. Borrow a stream once and clone the handle: two handles of one borrowed stream do not know of each
//! other's captures.
//!
//! Gridloom does not see what other code enqueues, so it orders nothing against that: share a stream, or record an event on one side
//! and wait for it on the other. Devices that are no GPU have no such handles; there, every function is an error of kind
//! [`NotSupported`](ErrorKind::NotSupported).
//!
//! With the feature `cudarc`, the module `cudarc` does the same for the types of that crate.

#[cfg(feature = "cudarc")]
pub mod cudarc;
mod handed_out;

use std::sync::Arc;

use gridloom_core::backend::{self, AsDevice};
use gridloom_cuda::{CudaDevice, interop};

pub use gridloom_cuda::interop::Owner;
pub use gridloom_cuda::sys::{CUcontext, CUdeviceptr, CUevent, CUfunction, CUstream};

use crate::kernel::UntypedKernel;
use crate::{Buffer, Device, Element, Error, ErrorKind, Event, EventOptions, Result, Stream};
use handed_out::{BUFFERS, EVENTS, STREAMS};

/// The primary context of a GPU. It is retained while the device, or anything made on it, lives.
pub fn context_to_raw(device: &Device) -> Result<CUcontext> {
    Ok(cuda(device.as_device())?.context().raw())
}

/// The handle of a stream, valid while the stream lives.
///
/// What is enqueued through the handle is not recorded by a [capture](Stream::capture) of Gridloom.
pub fn stream_to_raw(stream: &Stream) -> Result<CUstream> {
    cuda(stream.0.device())?;
    let raw = interop::stream_to_raw(&**stream.0.backend())?;
    STREAMS.add(raw.addr(), stream.0.downgrade());
    Ok(raw)
}

/// The stream behind a handle; the null handle is the legacy default stream.
///
/// # Safety
/// The handle is that of a stream that exists, and goes on to exist until `owner` is dropped, or, without an owner, until nothing of
/// Gridloom uses the stream any more. While work that was enqueued through Gridloom is in flight on it, nobody puts it into a capture of
/// the driver.
pub unsafe fn stream_from_raw(device: &Device, raw: CUstream, owner: Option<Owner>) -> Result<Stream> {
    // SAFETY: the caller makes the same promises.
    let backend = unsafe { interop::stream_from_raw(cuda(device.as_device())?, raw, owner) }?;
    match STREAMS.find(raw.addr()) {
        Some(known) if Arc::ptr_eq(known.backend(), &backend) => Ok(Stream(known)),
        _ => gridloom_core::Stream::from_backend(device, backend).map(Stream),
    }
}

/// The handle of an event, valid while the event lives.
pub fn event_to_raw(event: &Event) -> Result<CUevent> {
    let raw = interop::event_to_raw(&**event.core.backend()).map_err(|_| no_gpu("the event"))?;
    EVENTS.add(raw.addr(), event.core.downgrade());
    Ok(raw)
}

/// The event behind a handle. The driver does not tell how an event was made, so `options` says it for one that is not Gridloom's.
///
/// # Safety
/// The handle is that of an event of the device's primary context, made as `options` says, which exists until `owner` is dropped, or, without
/// an owner, until nothing of Gridloom uses the event any more.
pub unsafe fn event_from_raw(
    device: &Device,
    raw: CUevent,
    options: EventOptions,
    owner: Option<Owner>,
) -> Result<Event> {
    // SAFETY: the caller makes the same promises.
    let backend = unsafe { interop::event_from_raw(cuda(device.as_device())?, raw, options, owner) }?;
    let event = match EVENTS.find(raw.addr()) {
        Some(known) if Arc::ptr_eq(known.backend(), &backend) => known,
        _ => gridloom_core::Event::from_backend(backend),
    };
    Ok(Event::new(event, device.as_device()))
}

/// The address of a buffer, valid while the buffer, or anything that uses it, lives.
pub fn buffer_to_raw<T: Element>(buffer: &Buffer<T>) -> Result<CUdeviceptr> {
    cuda(buffer.device().as_device())?;
    let address = buffer.address()?;
    BUFFERS.add(address as usize, buffer.downgrade().cast());
    Ok(address)
}

/// The `len` elements at an address as a buffer. A part of a buffer of Gridloom keeps the memory of the whole.
///
/// # Safety
/// There are `len` elements from `address` on in memory that the device can reach, until `owner` is dropped, or, without an owner, until
/// nothing of Gridloom uses the memory any more.
pub unsafe fn buffer_from_raw<T: Element>(
    device: &Device,
    address: CUdeviceptr,
    len: usize,
    owner: Option<Owner>,
) -> Result<Buffer<T>> {
    let gpu = cuda(device.as_device())?;
    if !address.is_multiple_of(align_of::<T>() as u64) {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{address:#x} is not aligned for {}", std::any::type_name::<T>()),
        ));
    }
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize);
    let Some(bytes) = bytes else {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("{len} elements of {} bytes are more than there are addresses", size_of::<T>()),
        ));
    };
    // SAFETY: the caller makes the same promises of these bytes.
    let allocation = unsafe { interop::memory_from_raw(gpu, address, bytes as u64, owner) }?;
    let known = BUFFERS.find(address as usize, &allocation);
    Ok(known.unwrap_or_else(|| Buffer::from_allocation(device.as_device(), allocation)))
}

/// The handle of a kernel, valid while the kernel, or anything that uses it, lives.
pub fn kernel_to_raw(kernel: &UntypedKernel) -> Result<CUfunction> {
    interop::kernel_to_raw(&**kernel.backend()).map_err(|_| no_gpu("the kernel"))
}

/// The kernel behind a handle. Its name, parameters and limits are those that the driver tells, the name since CUDA 12.3 and the
/// parameters since 12.4. [`UntypedKernel::typed`] states them.
///
/// # Safety
/// The handle is that of a function that is loaded into the device's primary context, until `owner` is dropped, or, without an owner, until
/// nothing of Gridloom uses the kernel any more.
pub unsafe fn kernel_from_raw(
    device: &Device,
    raw: CUfunction,
    owner: Option<Owner>,
) -> Result<UntypedKernel> {
    // SAFETY: the caller makes the same promises.
    let backend = unsafe { interop::kernel_from_raw(cuda(device.as_device())?, raw, owner) }?;
    Ok(UntypedKernel::new(backend))
}

/// The GPU behind a device.
fn cuda(device: &Arc<dyn backend::Device>) -> Result<&CudaDevice> {
    device.as_any().downcast_ref().ok_or_else(|| no_gpu(&device.name()))
}

fn no_gpu(what: &str) -> Error {
    Error::new(
        ErrorKind::NotSupported,
        format!("{what} is not of a CUDA GPU; only those have handles of the driver"),
    )
}
