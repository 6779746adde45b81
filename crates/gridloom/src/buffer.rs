//! Typed memory of a device.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytemuck::Pod;
use gridloom_core::backend;
use gridloom_core::memory::{Base, MemoryKind, Region, RegionId};
use gridloom_core::user_code;
use parking_lot::Mutex;

use crate::device::Device;
use crate::{Error, ErrorKind, Result, Stream};

/// A type whose values are plain bytes, so that host and device agree on them.
///
/// Every [`Pod`] type is one: numbers, arrays of them, `half::f16`, and `#[repr(C)]` structs with
/// `derive(Pod)`. Allocating memory for a type with an alignment above 256 bytes is an error.
///
/// Types with references or invalid bit patterns are not elements:
///
/// ```compile_fail,E0277
/// # use gridloom::prelude::*;
/// fn flags(device: &Device) -> Result<Buffer<bool>> {
///     device.alloc(8)
/// }
/// ```
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// Memory that operations can use: a [`Buffer`], a part of one, or the memory of an alloc node.
///
/// # Safety
/// [`region`](Memory::region) starts at a multiple of the alignment of `T`. Every use checks that
/// it lies within its allocation. The methods are called while an executable is locked, so they
/// call nothing that changes or launches one.
pub unsafe trait Memory<T> {
    /// Returns its bytes, or an error if its buffer was closed.
    fn region(&self) -> Result<Region>;

    /// Returns the identity of these bytes without keeping them alive. It identifies what
    /// [`region`](Memory::region) returns. Returns `None` if the identity is not known or the
    /// buffer was closed.
    #[inline]
    fn region_id(&self) -> Option<RegionId> {
        None
    }

    /// Returns the number of elements.
    fn len(&self) -> usize;

    /// Returns whether it has no elements. Only a slice can be empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory as rows that start `pitch` elements apart, for copies and fills in two
    /// dimensions.
    fn rows(&self, pitch: usize) -> Result<Rows<T>> {
        self.planes(pitch, 1)
    }

    /// Returns the memory as planes of `rows` rows that start `pitch` elements apart, for copies in
    /// three dimensions.
    fn planes(&self, pitch: usize, rows: usize) -> Result<Rows<T>> {
        Ok(Rows { region: self.region()?, pitch, rows, element: PhantomData })
    }
}

/// Memory viewed as rows and planes. Created by [`Memory::rows`] and [`Memory::planes`].
#[derive(Clone, Debug)]
pub struct Rows<T> {
    pub(crate) region: Region,
    pub(crate) pitch: usize,
    pub(crate) rows: usize,
    element: PhantomData<fn() -> T>,
}

struct Shared {
    device: Arc<dyn backend::Device>,
    bytes: u64,
    kind: MemoryKind,
    /// The memory, for uses of the handle. A weak reference needs no lock, and every argument of
    /// every launch is looked up here.
    allocation: Weak<dyn backend::Allocation>,
    /// Set before `held` is emptied. After that the handle is unusable, even while a graph retains
    /// the memory.
    closed: AtomicBool,
    /// Retains the memory until the buffer is closed.
    held: Mutex<Option<Arc<dyn backend::Allocation>>>,
}

/// Elements in device memory, or in host memory that the device can access.
///
/// The handle is cheap to clone. It compares by the identity of the memory, not by its contents.
/// Graphs, executables and launches in flight retain the memory itself. So dropping or
/// [closing](Buffer::close) every handle never frees memory that is still in use.
///
/// ```
/// use gridloom::prelude::*;
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let buffer = device.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(buffer.slice(1..)?.to_vec()?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T> {
    shared: Arc<Shared>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn from_allocation(
        device: &Arc<dyn backend::Device>,
        allocation: Arc<dyn backend::Allocation>,
    ) -> Self {
        Buffer {
            shared: Arc::new(Shared {
                device: device.clone(),
                bytes: allocation.bytes(),
                kind: allocation.kind(),
                allocation: Arc::downgrade(&allocation),
                closed: AtomicBool::new(false),
                held: Mutex::new(Some(allocation)),
            }),
            element: PhantomData,
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shared.bytes as usize / size_of::<T>()
    }

    /// Returns `false`: a buffer has at least one element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether it is device, host or managed memory.
    pub fn kind(&self) -> MemoryKind {
        self.shared.kind
    }

    /// Returns the device it belongs to.
    pub fn device(&self) -> Device {
        Device::from_backend(self.shared.device.clone())
    }

    /// Returns the address that kernels see, for display.
    pub fn address(&self) -> Result<u64> {
        let allocation = self.allocation()?;
        backend::check_not_freed(&*allocation)?;
        Ok(allocation.address())
    }

    /// Makes this handle and all its clones unusable. The memory is freed as soon as no graph,
    /// executable or launch in flight uses it.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        let held = self.shared.held.lock().take();
        drop(held);
    }

    /// Returns whether [`close`](Buffer::close) was called on this handle or a clone.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Returns a part of the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<T>> {
        let (start, len) = resolve(range, self.len())?;
        Ok(BufferSlice { buffer: self.clone(), start, len })
    }

    /// Returns a copy of the elements, after all work enqueued on the device so far.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.slice(..)?.to_vec()
    }

    /// Reads all elements into `out`, after all work enqueued on the device so far.
    pub fn read_into(&self, out: &mut [T]) -> Result<()> {
        self.slice(..)?.read_into(out)
    }

    /// Returns the elements, after all work enqueued on one stream so far. Other streams are not
    /// waited for.
    ///
    /// What other streams write meanwhile is read in part or not at all. Failures of the work stay
    /// for [`Stream::synchronize`] to report.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let (stream, buffer) = (device.stream()?, device.alloc::<u32>(4)?);
    /// stream.memset(&buffer, 7u32)?;
    /// assert_eq!(buffer.to_vec_after(&stream)?, [7; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_vec_after(&self, stream: &Stream) -> Result<Vec<T>> {
        self.slice(..)?.to_vec_after(stream)
    }

    /// Reads all elements into `out`, after all work enqueued on one stream so far, like
    /// [`to_vec_after`](Buffer::to_vec_after).
    pub fn read_into_after(&self, stream: &Stream, out: &mut [T]) -> Result<()> {
        self.slice(..)?.read_into_after(stream, out)
    }

    /// Writes all elements, after all work enqueued on the device so far.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.slice(..)?.write(values)
    }

    /// Returns the elements as host memory, without copying. Only host and managed memory allows
    /// it.
    ///
    /// # Safety
    /// While the slice is used, no work in flight on the device writes this buffer, nothing is
    /// enqueued that writes or frees it, and no handle of the buffer is closed.
    pub unsafe fn as_slice(&self) -> Result<&[T]> {
        let allocation = self.allocation()?;
        backend::check_not_freed(&*allocation)?;
        if !allocation.kind().host_accessible() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "device memory cannot be borrowed by the host; use to_vec, or allocate host or managed memory",
            ));
        }
        if self.shared.device.kind() == backend::DeviceKind::Null {
            return Err(Error::new(
                ErrorKind::NotSupported,
                "the null device has no memory behind its addresses",
            ));
        }
        let pointer = allocation.address() as *const T;
        // SAFETY: the allocation is host-accessible, aligned for any element and holds `len` of
        // them, of plain bytes. The caller promised that nothing writes it and that no handle is
        // closed, so this handle retains it.
        Ok(unsafe { std::slice::from_raw_parts(pointer, self.len()) })
    }

    /// Returns a weak handle, which does not keep the memory alive.
    pub fn downgrade(&self) -> WeakBuffer<T> {
        WeakBuffer { shared: Arc::downgrade(&self.shared), element: PhantomData }
    }

    /// Returns the identity of a part of the memory.
    #[inline]
    fn part_id(&self, offset: u64, bytes: u64) -> Option<RegionId> {
        let allocation = self.shared.allocation.as_ptr();
        (!self.is_closed()).then(|| RegionId::new(allocation.cast(), offset, bytes))
    }

    #[inline]
    pub(crate) fn allocation(&self) -> Result<Arc<dyn backend::Allocation>> {
        if self.is_closed() {
            return Err(closed());
        }
        self.shared.allocation.upgrade().ok_or_else(closed)
    }
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::InvalidHandle, "the buffer was closed; its handle can no longer be used")
}

/// A weak handle to a [`Buffer`], from [`Buffer::downgrade`].
pub struct WeakBuffer<T> {
    shared: Weak<Shared>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> WeakBuffer<T> {
    /// Returns the buffer, if a handle to it still exists. A graph that uses its memory holds the
    /// memory, not a handle.
    pub fn upgrade(&self) -> Option<Buffer<T>> {
        Some(Buffer { shared: self.shared.upgrade()?, element: PhantomData })
    }

    /// Returns the same handle with another element type.
    #[cfg(feature = "cuda")]
    pub(crate) fn cast<U: Element>(&self) -> WeakBuffer<U> {
        WeakBuffer { shared: self.shared.clone(), element: PhantomData }
    }

    /// Returns whether a handle to the buffer still exists.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_alive(&self) -> bool {
        self.shared.strong_count() > 0
    }
}

impl<T> Clone for WeakBuffer<T> {
    fn clone(&self) -> Self {
        WeakBuffer { shared: self.shared.clone(), element: PhantomData }
    }
}

impl<T> fmt::Debug for WeakBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WeakBuffer<{}>", std::any::type_name::<T>())
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Buffer { shared: self.shared.clone(), element: PhantomData }
    }
}

impl<T> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shared.allocation.ptr_eq(&other.shared.allocation)
    }
}

impl<T> Eq for Buffer<T> {}

impl<T> Hash for Buffer<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shared.allocation.as_ptr().cast::<()>().hash(state);
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shared, name) = (&self.shared, std::any::type_name::<T>());
        write!(f, "Buffer<{name}>({} bytes, {})", shared.bytes, shared.kind.name())
    }
}

// SAFETY: allocations are aligned for any element, and borrowed memory was checked to be for this
// one.
unsafe impl<T: Element> Memory<T> for Buffer<T> {
    #[inline(always)]
    fn region(&self) -> Result<Region> {
        // The size is kept in the handle. Asking the backend would be a call that may panic, and
        // the compiler would keep the region in memory instead of registers across it.
        Ok(Region { base: Base::Allocation(self.allocation()?), offset: 0, bytes: self.shared.bytes })
    }

    #[inline]
    fn region_id(&self) -> Option<RegionId> {
        self.part_id(0, self.shared.bytes)
    }

    fn len(&self) -> usize {
        Buffer::len(self)
    }
}

/// A part of a [`Buffer`].
pub struct BufferSlice<T> {
    buffer: Buffer<T>,
    start: usize,
    len: usize,
}

impl<T: Element> BufferSlice<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a part of this slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferSlice<T>> {
        let (start, len) = resolve(range, self.len)?;
        Ok(BufferSlice { buffer: self.buffer.clone(), start: self.start + start, len })
    }

    /// Returns a copy of the elements, after all work enqueued on the device so far.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = zeroed(self.len)?;
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// Reads the elements into `out`, after all work enqueued on the device so far.
    pub fn read_into(&self, out: &mut [T]) -> Result<()> {
        self.check_len(out.len())?;
        let (device, allocation) = (&self.buffer.shared.device, self.buffer.allocation()?);
        let _wait = user_code::may_wait(device.id(), "reading a buffer")?;
        device.wait_all()?;
        device.read(&*allocation, self.offset(), bytemuck::cast_slice_mut(out))
    }

    /// Returns the elements, after all work enqueued on one stream so far, like
    /// [`Buffer::to_vec_after`].
    pub fn to_vec_after(&self, stream: &Stream) -> Result<Vec<T>> {
        let mut values = zeroed(self.len)?;
        self.read_into_after(stream, &mut values)?;
        Ok(values)
    }

    /// Reads the elements into `out`, after all work enqueued on one stream so far, like
    /// [`Buffer::to_vec_after`].
    pub fn read_into_after(&self, stream: &Stream, out: &mut [T]) -> Result<()> {
        self.check_len(out.len())?;
        stream.0.read(&*self.buffer.allocation()?, self.offset(), bytemuck::cast_slice_mut(out))
    }

    /// Writes the elements, after all work enqueued on the device so far.
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.check_len(values.len())?;
        let (device, allocation) = (&self.buffer.shared.device, self.buffer.allocation()?);
        let _wait = user_code::may_wait(device.id(), "writing a buffer")?;
        device.wait_all()?;
        device.write(&*allocation, self.offset(), bytemuck::cast_slice(values))
    }

    fn offset(&self) -> u64 {
        (self.start * size_of::<T>()) as u64
    }

    fn check_len(&self, len: usize) -> Result<()> {
        if len != self.len {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "the host slice has {len} elements and the buffer has {}; take a slice of the longer one",
                    self.len
                ),
            ));
        }
        Ok(())
    }
}

impl<T> Clone for BufferSlice<T> {
    fn clone(&self) -> Self {
        BufferSlice { buffer: self.buffer.clone(), start: self.start, len: self.len }
    }
}

impl<T> fmt::Debug for BufferSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{}..{}]", self.buffer, self.start, self.start + self.len)
    }
}

// SAFETY: it starts a whole number of elements into an aligned buffer.
unsafe impl<T: Element> Memory<T> for BufferSlice<T> {
    #[inline]
    fn region(&self) -> Result<Region> {
        // The slice lies inside the buffer. That was checked when it was made.
        let bytes = (self.len * size_of::<T>()) as u64;
        Ok(Region { base: Base::Allocation(self.buffer.allocation()?), offset: self.offset(), bytes })
    }

    #[inline]
    fn region_id(&self) -> Option<RegionId> {
        self.buffer.part_id(self.offset(), (self.len * size_of::<T>()) as u64)
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Returns so many elements of zeros. Memory of devices can be larger than what the host has.
pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| {
        Error::new(
            ErrorKind::OutOfMemory,
            format!("the host has no room for {len} elements of {} bytes", size_of::<T>()),
        )
    })
}

/// The alignment of every allocation, by devices and by alloc nodes.
const ALLOCATION_ALIGNMENT: usize = 256;

/// Refuses element types with an alignment that devices do not provide.
pub(crate) fn check_alignment<T>() -> Result<()> {
    if align_of::<T>() > ALLOCATION_ALIGNMENT {
        return Err(Error::new(
            ErrorKind::NotSupported,
            format!(
                "{} has an alignment of {} bytes; memory of devices is aligned to {ALLOCATION_ALIGNMENT}",
                std::any::type_name::<T>(),
                align_of::<T>()
            ),
        ));
    }
    Ok(())
}

/// Returns the start and length of a range within `len` elements.
pub(crate) fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&start) => start.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end - start)),
        _ => Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "{:?}..{:?} is not a range of a buffer of {len} elements",
                range.start_bound(),
                range.end_bound()
            ),
        )),
    }
}

/// A source of a copy: [`Memory`], or a host slice, which is copied when the operation is added and
/// not referenced later.
pub trait CopySource<T> {
    /// Returns the bytes to read, and the number of elements in them.
    fn source(&self) -> Result<(Region, usize)>;
}

macro_rules! memory_is_a_source {
    ($($memory:ty),*) => {$(
        impl<T: Element> CopySource<T> for $memory {
            fn source(&self) -> Result<(Region, usize)> {
                Ok((self.region()?, Memory::len(self)))
            }
        }
    )*};
}
memory_is_a_source!(Buffer<T>, BufferSlice<T>, crate::ops::AllocNode<T>, crate::ops::AllocSlice<T>);

impl<T: Element> CopySource<T> for [T] {
    fn source(&self) -> Result<(Region, usize)> {
        Ok((Region::from_bytes(bytemuck::cast_slice(self)), self.len()))
    }
}

impl<T: Element> CopySource<T> for Vec<T> {
    fn source(&self) -> Result<(Region, usize)> {
        self.as_slice().source()
    }
}

impl<T: Element, const N: usize> CopySource<T> for [T; N] {
    fn source(&self) -> Result<(Region, usize)> {
        self.as_slice().source()
    }
}
