//! Raw handles of the driver, both ways, for programs that use CUDA through other libraries as
//! well.
//!
//! Out: every object has a `raw` function ([`Stream::raw`], [`Event::raw`], [`Kernel::raw`],
//! [`Context::raw`](crate::context::Context::raw), and the address of an allocation). The handle is
//! valid while the object lives. Gridloom owns it: other code must not destroy it.
//!
//! In: a handle that Gridloom made comes back as the same object. Any other handle is *borrowed*:
//! Gridloom never destroys it, and keeps an optional owner until the last user (a graph, an
//! executable, a launch in flight) is gone. Owners may be dropped on any thread.

use crate::CudaDevice;
use crate::event::Event;
use crate::graph;
use crate::kernel::Kernel;
use crate::memory::BorrowedMemory;
use crate::registry::{self, EVENTS, KERNELS, MEMORY, STREAMS};
use crate::stream::Stream;
use crate::sys::*;
use gridloom_core::backend::{self, Allocation, Device, DeviceId, EventOptions};
use gridloom_core::graph::NodeKey;
use gridloom_core::memory::MemoryKind;
pub use gridloom_core::op::Owner;
use gridloom_core::{Error, ErrorKind, Result};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

pub use crate::graph::{RawGraph, RawNode};

/// Who destroys a driver object.
#[derive(Debug)]
pub(crate) enum Ownership {
    /// We made it, and destroy it.
    Ours,
    /// Somebody else does, not before the owner is dropped.
    Borrowed { _owner: Option<Owner> },
}

impl Ownership {
    pub(crate) fn borrowed(owner: Option<Owner>) -> Self {
        Self::Borrowed { _owner: owner }
    }

    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Ours)
    }
}

/// `CU_STREAM_PER_THREAD`, a cast in the header.
const PER_THREAD: u64 = 2;

/// Returns the stream behind a handle. The null handle is the legacy default stream of the device's
/// context.
///
/// # Safety
/// The handle is that of a stream that exists until `owner` is dropped or, without an owner, until
/// nothing in Gridloom uses the stream any more. While work that was enqueued through Gridloom is
/// in flight on it, the stream is not put into stream capture.
pub unsafe fn stream_from_raw(
    device: &CudaDevice,
    raw: CUstream,
    owner: Option<Owner>,
) -> Result<Arc<dyn backend::Stream>> {
    if let Some(ours) = STREAMS.find(registry::key(raw)) {
        check_device("stream", device, backend::Stream::device(&*ours))?;
        return Ok(ours);
    }
    if registry::key(raw) == PER_THREAD {
        return Err(Error::new(
            ErrorKind::NotSupported,
            "the per-thread default stream differs from thread to thread, and Gridloom uses several threads; create a stream and use that",
        ));
    }
    let context = device.context();
    let mut found = ptr::null_mut();
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let entered = context.enter()?;
    // SAFETY: the caller promises that the stream exists; one number and one handle are written.
    unsafe {
        device.driver().cu_stream_is_capturing(raw, &mut status)?;
        device.driver().cu_stream_get_ctx(raw, &mut found)?;
    }
    drop(entered);
    if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        return Err(Error::new(
            ErrorKind::InvalidState,
            "the driver is capturing this stream; end that capture, or capture with Gridloom instead",
        ));
    }
    if found != context.raw() {
        return Err(Error::new(
            ErrorKind::WrongDevice,
            format!("the stream belongs to another context than the primary one of {}", Device::name(device)),
        ));
    }
    Ok(Arc::new(Stream::borrow(device.shared(), raw, owner)))
}

/// Returns the event of a handle. The driver does not tell how an event was made, so `options` says
/// it for an event that Gridloom did not make.
///
/// # Safety
/// The handle is that of an event of the device's primary context, made as `options` says, which
/// exists until `owner` is dropped, or, without an owner, until nothing of Gridloom uses the event
/// any more.
pub unsafe fn event_from_raw(
    device: &CudaDevice,
    raw: CUevent,
    options: EventOptions,
    owner: Option<Owner>,
) -> Result<Arc<dyn backend::Event>> {
    if let Some(ours) = EVENTS.find(registry::key(raw)) {
        check_device("event", device, backend::Event::device(&*ours))?;
        return Ok(ours);
    }
    refuse_null("event", raw)?;
    Ok(Arc::new(Event::borrow(device.context(), Device::id(device), raw, options, owner)))
}

/// Returns the kernel behind a handle. Its name, parameters and limits are those that the driver
/// tells.
///
/// # Safety
/// The handle is that of a function that is loaded into the device's primary context, until `owner`
/// is dropped, or, without an owner, until nothing of Gridloom uses the kernel any more.
pub unsafe fn kernel_from_raw(
    device: &CudaDevice,
    raw: CUfunction,
    owner: Option<Owner>,
) -> Result<Arc<dyn backend::Kernel>> {
    if let Some(ours) = KERNELS.find(registry::key(raw)) {
        check_device("kernel", device, backend::Kernel::device(&*ours))?;
        return Ok(ours);
    }
    refuse_null("kernel", raw)?;
    Ok(Arc::new(Kernel::borrow(device.context(), Device::id(device), raw, owner)?))
}

/// Returns the memory at an address. A part of a block of Gridloom's keeps that block. Other memory
/// has the kind that the driver reports.
///
/// # Safety
/// The `bytes` from `address` on are memory that the device can reach, until `owner` is dropped,
/// or, without an owner, until nothing of Gridloom uses the memory any more.
pub unsafe fn memory_from_raw(
    device: &CudaDevice,
    address: CUdeviceptr,
    bytes: u64,
    owner: Option<Owner>,
) -> Result<Arc<dyn Allocation>> {
    if bytes == 0 {
        return Err(Error::new(ErrorKind::InvalidArgument, "memory of 0 bytes; it needs at least one byte"));
    }
    let (kind, owner) = match MEMORY.containing(address) {
        Some(ours) => {
            check_device("memory", device, ours.device())?;
            let offset = address - ours.address();
            if offset == 0 && bytes == ours.bytes() {
                return Ok(ours);
            }
            if bytes > ours.bytes() - offset {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{bytes} bytes at offset {offset} exceed the block of {} bytes", ours.bytes()),
                ));
            }
            (ours.kind(), Some(Owner::from(ours)))
        }
        None => (kind_of(device, address)?, owner),
    };
    Ok(Arc::new(BorrowedMemory::new(Device::id(device), address, bytes, kind, owner)))
}

/// Returns the driver's handle of a stream, valid while the stream lives.
pub fn stream_to_raw(stream: &dyn backend::Stream) -> Result<CUstream> {
    Ok(Stream::from_backend(stream)?.raw())
}

/// Returns the driver's handle of an event, valid while the event lives.
pub fn event_to_raw(event: &dyn backend::Event) -> Result<CUevent> {
    Ok(Event::from_backend(event)?.raw())
}

/// Returns the driver's handle of a kernel, valid while the kernel lives.
pub fn kernel_to_raw(kernel: &dyn backend::Kernel) -> Result<CUfunction> {
    Ok(Kernel::from_backend(kernel)?.raw())
}

/// Returns the driver's handles of an executable, valid until it is dropped or changed.
///
/// Most executables are one graph. There are several if the host decides between them, in the order
/// in which they first run.
pub fn executable_to_raw(executable: &dyn backend::Executable) -> Result<Vec<RawGraph>> {
    graph::raw_graphs(executable)
}

/// Returns the driver's handle of a node, valid as long as those of its executable. Returns `None`
/// for a node that became edges or is decided by the host.
pub fn node_to_raw(executable: &dyn backend::Executable, node: NodeKey) -> Result<Option<RawNode>> {
    graph::raw_node(executable, node)
}

/// Returns what the driver reports of memory that Gridloom did not allocate.
/// ([`cuPointerGetAttribute`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html))
pub(crate) fn kind_of(device: &CudaDevice, address: CUdeviceptr) -> Result<MemoryKind> {
    let _entered = device.context().enter()?;
    let ask = |attribute, value: *mut u32| {
        // SAFETY: each attribute that is asked for is a number of 32 bits; an address that the
        // driver does not know is an error.
        unsafe { device.driver().cu_pointer_get_attribute(value.cast::<c_void>(), attribute, address) }
    };
    let (mut place, mut managed, mut ordinal) = (0u32, 0u32, 0u32);
    ask(CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &mut place)
        .map_err(|error| Error::from(error).context(format_args!("asking for the memory at {address:#x}")))?;
    // The attribute is a boolean. The driver may write fewer bytes than four, so only 0 is tested.
    ask(CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, &mut managed)?;
    if managed != 0 {
        return Ok(MemoryKind::Managed);
    }
    if CUmemorytype(place) == CUmemorytype::CU_MEMORYTYPE_HOST {
        return Ok(MemoryKind::Host);
    }
    ask(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &mut ordinal)?;
    if i64::from(ordinal) != i64::from(device.context().device()) {
        return Err(Error::new(
            ErrorKind::WrongDevice,
            format!("the memory at {address:#x} is on GPU {ordinal}, not on {}", Device::name(device)),
        ));
    }
    Ok(MemoryKind::Device)
}

fn check_device(what: &str, device: &CudaDevice, found: DeviceId) -> Result<()> {
    if found == Device::id(device) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::WrongDevice,
        format!("the {what} belongs to a device that was opened separately; use that device"),
    ))
}

fn refuse_null<T>(what: &str, raw: *mut T) -> Result<()> {
    if raw.is_null() {
        return Err(Error::new(ErrorKind::InvalidHandle, format!("the handle of the {what} is null")));
    }
    Ok(())
}
