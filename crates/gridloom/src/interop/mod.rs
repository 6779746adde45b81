//! Sharing a GPU with other CUDA code through raw driver handles, in both directions.
//!
//! A Gridloom device works in the *primary* context of its GPU. The CUDA runtime, and therefore
//! nearly every other library, uses the same context. So streams, events, kernels and memory can be
//! passed across.
//!
//! **Out.** The `…_to_raw` functions return the driver's handle of an object. The handle is valid
//! while the object lives. The caller must not destroy it.
//!
//! **In.** The `…_from_raw` functions take a handle. A handle that came from Gridloom becomes the
//! object it was taken from: a stream keeps its capture, an event its recording, a buffer may be
//! closed. Any other handle is *borrowed*: Gridloom never destroys it. Gridloom keeps the optional
//! owner until no graph, executable or launch in flight uses the handle, and may drop it on any
//! thread. Borrow a stream once and clone the handle: two handles of one borrowed stream do not
//! know of each other's captures.
//!
//! Gridloom does not see what other code enqueues and cannot order it. Share a stream, or record an
//! event on one side and wait for it on the other. Devices that are not GPUs have no such handles:
//! there, every function returns an error of kind [`NotSupported`](ErrorKind::NotSupported).
//!
//! With the feature `cudarc`, the module `cudarc` converts the types of that crate.

#[cfg(feature = "cudarc")]
pub mod cudarc;
mod handed_out;

use std::sync::Arc;

use gridloom_core::backend::{self, AsDevice};
use gridloom_cuda::{CudaDevice, interop};

pub use gridloom_cuda::interop::{Owner, RawGraph, RawNode};
pub use gridloom_cuda::sys::{
    CUcontext, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUgraphNode, CUstream,
};

use crate::kernel::UntypedKernel;
use crate::{
    Buffer, Device, Element, Error, ErrorKind, Event, EventOptions, Executable, Node, Result, Stream,
};
use handed_out::{BUFFERS, EVENTS, STREAMS};

/// Returns the primary context of a GPU. Gridloom retains it while the device, or anything made on
/// it, lives.
pub fn context_to_raw(device: &Device) -> Result<CUcontext> {
    Ok(cuda(device.as_device())?.context().raw())
}

/// Returns the handle of a stream, valid while the stream lives.
///
/// What is enqueued through the handle is not recorded by a [capture](Stream::capture) of Gridloom.
pub fn stream_to_raw(stream: &Stream) -> Result<CUstream> {
    cuda(stream.0.device())?;
    let raw = interop::stream_to_raw(&**stream.0.backend())?;
    STREAMS.add(raw.addr(), stream.0.downgrade());
    Ok(raw)
}

/// Returns the stream behind a handle; the null handle is the legacy default stream.
///
/// # Safety
/// The handle is that of an existing stream. The stream exists until `owner` is dropped or, without
/// an owner, until nothing of Gridloom uses it any more. While work enqueued through Gridloom is in
/// flight on it, no other code puts it into a driver capture.
pub unsafe fn stream_from_raw(device: &Device, raw: CUstream, owner: Option<Owner>) -> Result<Stream> {
    // SAFETY: the caller makes the same promises.
    let backend = unsafe { interop::stream_from_raw(cuda(device.as_device())?, raw, owner) }?;
    match STREAMS.find(raw.addr()) {
        Some(known) if Arc::ptr_eq(known.backend(), &backend) => Ok(Stream(known)),
        _ => gridloom_core::Stream::from_backend(device, backend).map(Stream),
    }
}

/// Returns the handle of an event, valid while the event lives.
pub fn event_to_raw(event: &Event) -> Result<CUevent> {
    let raw = interop::event_to_raw(&**event.core.backend()).map_err(|_| no_gpu("the event"))?;
    EVENTS.add(raw.addr(), event.core.downgrade());
    Ok(raw)
}

/// Returns the event behind a handle. The driver does not tell how an event was made, so `options`
/// must say it for an event that is not Gridloom's.
///
/// # Safety
/// The handle is that of an event of the device's primary context, made as `options` says. The
/// event exists until `owner` is dropped or, without an owner, until nothing of Gridloom uses it
/// any more.
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

/// Returns the address of a buffer, valid while the buffer, or anything that uses it, lives.
pub fn buffer_to_raw<T: Element>(buffer: &Buffer<T>) -> Result<CUdeviceptr> {
    cuda(buffer.device().as_device())?;
    let address = buffer.address()?;
    BUFFERS.add(address as usize, buffer.downgrade().cast());
    Ok(address)
}

/// Returns the `len` elements at an address as a buffer. A part of a buffer of Gridloom keeps the
/// memory of the whole.
///
/// # Safety
/// `len` elements start at `address` in memory that the device can access. The memory exists until
/// `owner` is dropped or, without an owner, until nothing of Gridloom uses it any more.
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
            format!("{len} elements of {} bytes do not fit in the address space", size_of::<T>()),
        ));
    };
    // SAFETY: the caller makes the same promises of these bytes.
    let allocation = unsafe { interop::memory_from_raw(gpu, address, bytes as u64, owner) }?;
    let known = BUFFERS.find(address as usize, &allocation);
    Ok(known.unwrap_or_else(|| Buffer::from_allocation(device.as_device(), allocation)))
}

/// Returns the handles of an executable: the `CUgraph` and `CUgraphExec` of each of its parts.
///
/// Most executables have one part. If the host drives a conditional, there are several, in the
/// order in which they first run. The handles are valid until the executable is dropped or changed:
/// an update may compile the graph again. They are for looking and for launching. Gridloom does not
/// see changes that are made through them, and keeps nothing alive for launches that are.
pub fn executable_to_raw(executable: &Executable) -> Result<Vec<RawGraph>> {
    cuda(executable.0.device())?;
    executable.0.with_backend(interop::executable_to_raw)
}

/// Returns the handle of a node of an executable, and the index of its graph among those of
/// [`executable_to_raw`]. It is valid as long as they are.
///
/// Returns `None` if the node has no counterpart: allocations, frees, empty nodes and embedded
/// graphs become edges, the host may drive a conditional, and an optimiser may fuse a node with
/// others.
pub fn node_to_raw(executable: &Executable, node: &Node) -> Result<Option<RawNode>> {
    cuda(executable.0.device())?;
    let key = executable.0.key_of(&node.0)?;
    executable.0.with_backend(|backend| interop::node_to_raw(backend, key))
}

/// Returns the handle of a kernel, valid while the kernel, or anything that uses it, lives.
pub fn kernel_to_raw(kernel: &UntypedKernel) -> Result<CUfunction> {
    interop::kernel_to_raw(&**kernel.backend()).map_err(|_| no_gpu("the kernel"))
}

/// Returns the kernel behind a handle. Its name, parameters and limits come from the driver, which
/// tells the name since CUDA 12.3 and the parameters since 12.4. [`UntypedKernel::typed`] states
/// the parameters.
///
/// # Safety
/// The handle is that of a function loaded into the device's primary context. The function stays
/// loaded until `owner` is dropped or, without an owner, until nothing of Gridloom uses the kernel
/// any more.
pub unsafe fn kernel_from_raw(
    device: &Device,
    raw: CUfunction,
    owner: Option<Owner>,
) -> Result<UntypedKernel> {
    // SAFETY: the caller makes the same promises.
    let backend = unsafe { interop::kernel_from_raw(cuda(device.as_device())?, raw, owner) }?;
    Ok(UntypedKernel::new(backend))
}

/// Returns the GPU behind a device.
fn cuda(device: &Arc<dyn backend::Device>) -> Result<&CudaDevice> {
    device.as_any().downcast_ref().ok_or_else(|| no_gpu(&device.name()))
}

fn no_gpu(what: &str) -> Error {
    Error::new(
        ErrorKind::NotSupported,
        format!("{what} is not of a CUDA GPU; only those have handles of the driver"),
    )
}
