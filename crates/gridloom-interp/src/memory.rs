//! The memory that a warp sees: windows of shared, local and parameter memory, and host memory for
//! everything else.
//!
//! A generic address is a host address, or lies in one of the windows below. No host address lies
//! in a window: user space of every supported machine is far below. Within a space, shared, local
//! and parameter addresses are offsets from the start of the window, so that 32-bit shared
//! addresses work.

use super::fault::{AccessKind, FaultKind, Raised, Space};
use super::heap::Heap;
use super::racy;
use std::ops::Range;
use std::sync::Mutex;

#[cfg(target_endian = "big")]
compile_error!("PTX is little-endian, and the interpreter reads its values from host memory as they are");

/// The start of shared memory in the generic address space.
pub const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// The start of local memory in the generic address space.
pub const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// The start of kernel parameters in the generic address space.
pub const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// The address of a function is this plus its index in the module.
pub const FUNCTION_WINDOW: u64 = 0x0400_0000_0000_0000;
/// The size of a window.
const WINDOW_SIZE: u64 = 1 << 32;
/// Addresses below this are never valid: they come from a null pointer plus a field or an index.
const NULL_PAGE: u64 = 4096;

/// A map of the valid addresses. The device passes it to launches in checked mode.
pub trait MemoryMap: Sync {
    /// Returns the live allocation that contains `address`, as a range of addresses.
    fn allocation(&self, address: u64) -> Option<Range<u64>>;
}

/// Returns the space that a generic address lies in, and the address there.
pub(crate) fn split_generic(address: u64) -> (Space, u64) {
    for (window, space) in
        [(SHARED_WINDOW, Space::Shared), (LOCAL_WINDOW, Space::Local), (PARAM_WINDOW, Space::Param)]
    {
        if (window..window + WINDOW_SIZE).contains(&address) {
            return (space, address - window);
        }
    }
    (Space::Global, address)
}

/// Returns the generic address of an address in a space.
pub(crate) fn to_generic(space: Space, address: u64) -> u64 {
    match space {
        Space::Shared => address.wrapping_add(SHARED_WINDOW),
        Space::Local => address.wrapping_add(LOCAL_WINDOW),
        Space::Param => address.wrapping_add(PARAM_WINDOW),
        Space::Generic | Space::Global | Space::Const => address,
    }
}

/// Returns the address in `space` of a generic address.
pub(crate) fn from_generic(space: Space, address: u64) -> u64 {
    match space {
        Space::Shared => address.wrapping_sub(SHARED_WINDOW),
        Space::Local => address.wrapping_sub(LOCAL_WINDOW),
        Space::Param => address.wrapping_sub(PARAM_WINDOW),
        Space::Generic | Space::Global | Space::Const => address,
    }
}

/// An access by one lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) kind: AccessKind,
    pub(crate) space: Space,
    pub(crate) address: u64,
    /// The size in bytes.
    pub(crate) size: u32,
    /// The required alignment, a power of two.
    pub(crate) align: u32,
    pub(crate) lane: u32,
}

/// The memory that an access was granted.
pub(crate) enum Location<'a> {
    /// Host memory, shared with other workers.
    Host(*mut u8),
    /// A part of a window. Only this worker uses it.
    Window(&'a mut [u8]),
    /// A part of a window that is read-only.
    ReadOnly(&'a [u8]),
}

/// The memory that a warp can access.
pub(crate) struct Memory<'a> {
    pub(crate) shared: &'a mut [u8],
    /// The local memory of each lane of the warp.
    pub(crate) local: &'a mut [Vec<u8>],
    pub(crate) params: &'a [u8],
    pub(crate) map: Option<&'a dyn MemoryMap>,
    pub(crate) heap: &'a Heap,
    /// The allocation of the last checked access. The next access often uses the same one.
    pub(crate) last: &'a mut Range<u64>,
}

impl Memory<'_> {
    /// Grants or refuses an access. Most accesses are to shared memory or to the allocation of the
    /// previous access. Those are granted inline.
    #[inline(always)]
    pub(crate) fn location(&mut self, access: Access) -> Result<Location<'_>, Raised> {
        let Access { space, address, size, align, .. } = access;
        let end = address.wrapping_add(u64::from(size));
        if address & u64::from(align - 1) == 0 && address < end {
            if space == Space::Shared && end <= self.shared.len() as u64 {
                return Ok(Location::Window(&mut self.shared[address as usize..end as usize]));
            }
            if matches!(space, Space::Global | Space::Generic)
                && self.last.start <= address
                && end <= self.last.end
            {
                return Ok(Location::Host(std::ptr::with_exposed_provenance_mut(address as usize)));
            }
        }
        self.look_up(access)
    }

    #[inline(never)]
    fn look_up(&mut self, access: Access) -> Result<Location<'_>, Raised> {
        let Access { kind, space, address, size, align, lane } = access;
        let (space, offset) = if space == Space::Generic { split_generic(address) } else { (space, address) };
        if offset & u64::from(align - 1) != 0 {
            return Err(FaultKind::Misaligned { access: kind, address, space, size: align }.in_lane(lane));
        }
        let illegal = || FaultKind::IllegalAddress { access: kind, address, space, size }.in_lane(lane);
        let window = |length: usize| -> Result<Range<usize>, Raised> {
            let end = offset
                .checked_add(u64::from(size))
                .filter(|&end| end <= length as u64)
                .ok_or_else(illegal)?;
            Ok(offset as usize..end as usize)
        };
        match space {
            Space::Shared => {
                let range = window(self.shared.len())?;
                Ok(Location::Window(&mut self.shared[range]))
            }
            Space::Local => {
                let local = &mut self.local[lane as usize];
                let range = window(local.len())?;
                Ok(Location::Window(&mut local[range]))
            }
            Space::Param => Ok(Location::ReadOnly(&self.params[window(self.params.len())?])),
            Space::Global | Space::Const | Space::Generic => {
                if !self.is_host_memory(address, size) {
                    return Err(illegal());
                }
                Ok(Location::Host(std::ptr::with_exposed_provenance_mut(address as usize)))
            }
        }
    }

    /// Returns whether host memory may be accessed there. Without a map, the caller of the launch
    /// has promised that every address is valid, and only addresses that can never be host
    /// addresses are refused.
    fn is_host_memory(&mut self, address: u64, size: u32) -> bool {
        if !(NULL_PAGE..SHARED_WINDOW).contains(&address) {
            return false;
        }
        let end = address + u64::from(size);
        let Some(map) = self.map else {
            // The whole range of host addresses counts as one allocation.
            *self.last = NULL_PAGE..SHARED_WINDOW;
            return end <= SHARED_WINDOW;
        };
        match map.allocation(address) {
            Some(allocation) if end <= allocation.end => {
                *self.last = allocation;
                true
            }
            _ => self.heap.contains(address, u64::from(size)),
        }
    }

    /// Reads one value of 1, 2, 4 or 8 bytes.
    pub(crate) fn load(&mut self, access: Access) -> Result<u64, Raised> {
        let location = self.location(access)?;
        Ok(read(&location, 0, access.size))
    }

    /// Copies bytes from one location to another, as `cp.async` does. If `from` is shorter, the
    /// rest is zero.
    pub(crate) fn copy(&mut self, to: Access, from: Access) -> Result<(), Raised> {
        let mut bytes = [0; 16];
        if from.size > 0 {
            let location = self.location(from)?;
            for (i, byte) in bytes.iter_mut().enumerate().take(from.size as usize) {
                *byte = read(&location, i, 1) as u8;
            }
        }
        let lane = to.lane;
        let illegal = FaultKind::IllegalAddress {
            access: to.kind,
            address: to.address,
            space: to.space,
            size: to.size,
        };
        let mut location = self.location(to)?;
        for (i, &byte) in bytes.iter().enumerate().take(to.size as usize) {
            if !write(&mut location, i, 1, u64::from(byte)) {
                return Err(illegal.in_lane(lane));
            }
        }
        Ok(())
    }
}

/// Reads a value of 1, 2, 4 or 8 bytes, `offset` bytes into a location.
#[inline]
pub(crate) fn read(location: &Location<'_>, offset: usize, size: u32) -> u64 {
    match location {
        Location::Window(bytes) => read_bytes(bytes, offset, size),
        Location::ReadOnly(bytes) => read_bytes(bytes, offset, size),
        Location::Host(pointer) => {
            // SAFETY: `Memory::location` granted the access. The memory is live: a map said so, or
            // the caller of the launch promised it. The address is aligned to the whole access and
            // so to each element. While the launch runs, other threads access the memory only in
            // the same way.
            unsafe { racy::load(pointer.wrapping_add(offset), size) }
        }
    }
}

/// Reads a value of 1, 2, 4 or 8 bytes from a window. Each size is a separate case, because a copy
/// of fixed length compiles to one instruction.
#[inline]
fn read_bytes(bytes: &[u8], offset: usize, size: u32) -> u64 {
    fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
        let mut value = [0; N];
        value.copy_from_slice(&bytes[offset..offset + N]);
        value
    }
    match size {
        1 => bytes[offset].into(),
        2 => u16::from_le_bytes(at(bytes, offset)).into(),
        4 => u32::from_le_bytes(at(bytes, offset)).into(),
        _ => u64::from_le_bytes(at(bytes, offset)),
    }
}

/// Writes a value of 1, 2, 4 or 8 bytes, `offset` bytes into a location. Returns `false` if the
/// location is read-only.
#[inline]
#[must_use]
pub(crate) fn write(location: &mut Location<'_>, offset: usize, size: u32, value: u64) -> bool {
    match location {
        Location::Window(bytes) => {
            let value = value.to_le_bytes();
            match size {
                1 => bytes[offset] = value[0],
                2 => bytes[offset..offset + 2].copy_from_slice(&value[..2]),
                4 => bytes[offset..offset + 4].copy_from_slice(&value[..4]),
                _ => bytes[offset..offset + 8].copy_from_slice(&value),
            }
        }
        Location::ReadOnly(_) => return false,
        Location::Host(pointer) => {
            // SAFETY: as in `read`.
            unsafe { racy::store(pointer.wrapping_add(offset), size, value) }
        }
    }
    true
}

/// Replaces a value of 2, 4 or 8 bytes by a function of it and returns the old value. Other threads
/// see it as one step. Returns `None` if the location is read-only.
pub(crate) fn update(location: &mut Location<'_>, size: u32, function: impl Fn(u64) -> u64) -> Option<u64> {
    match location {
        Location::Window(_) => {
            let old = read(location, 0, size);
            write(location, 0, size, function(old)).then_some(old)
        }
        Location::ReadOnly(_) => None,
        Location::Host(pointer) => {
            // SAFETY: as in `read`.
            Some(unsafe { racy::update(*pointer, size, function) })
        }
    }
}

/// Replaces 16 bytes in the same way. Rust offers no instruction of that size, so a lock makes
/// these accesses atomic with respect to each other. PTX promises no more for accesses of one size.
pub(crate) fn update_wide(location: &mut Location<'_>, function: impl Fn(u128) -> u128) -> Option<u128> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let old = u128::from(read(location, 0, 8)) | u128::from(read(location, 8, 8)) << 64;
    let new = function(old);
    (write(location, 0, 8, new as u64) && write(location, 8, 8, (new >> 64) as u64)).then_some(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneAllocation(Range<u64>);

    impl MemoryMap for OneAllocation {
        fn allocation(&self, address: u64) -> Option<Range<u64>> {
            self.0.contains(&address).then(|| self.0.clone())
        }
    }

    fn access(space: Space, address: u64, size: u32) -> Access {
        Access { kind: AccessKind::Read, space, address, size, align: size, lane: 0 }
    }

    fn with_memory(map: Option<&dyn MemoryMap>, test: impl FnOnce(&mut Memory<'_>)) {
        let (mut shared, mut local, heap) = (vec![0; 16], vec![vec![0; 8]], Heap::default());
        test(&mut Memory {
            shared: &mut shared,
            local: &mut local,
            params: &[1, 2, 3, 4],
            map,
            heap: &heap,
            last: &mut (0..0),
        });
    }

    #[test]
    fn a_generic_address_finds_its_window() {
        with_memory(None, |memory| {
            let mut location = memory.location(access(Space::Generic, SHARED_WINDOW + 4, 4)).unwrap();
            assert!(write(&mut location, 0, 4, 0xabcd));
            assert_eq!(memory.load(access(Space::Shared, 4, 4)).unwrap(), 0xabcd);
            assert_eq!(memory.load(access(Space::Generic, PARAM_WINDOW, 4)).unwrap(), 0x0403_0201);
            assert_eq!(split_generic(LOCAL_WINDOW + 7), (Space::Local, 7));
            assert_eq!(split_generic(0x1234_5678), (Space::Global, 0x1234_5678));
        });
    }

    #[test]
    fn windows_are_bounded_even_when_unchecked() {
        with_memory(None, |memory| {
            for (space, address) in
                [(Space::Shared, 16), (Space::Local, 8), (Space::Param, 4), (Space::Shared, u64::MAX - 3)]
            {
                let raised = memory.load(access(space, address, 4)).unwrap_err();
                assert_eq!(
                    *raised.kind,
                    FaultKind::IllegalAddress { access: AccessKind::Read, address, space, size: 4 }
                );
            }
        });
    }

    #[test]
    fn a_null_pointer_faults_even_when_unchecked() {
        with_memory(None, |memory| {
            let raised = memory.load(access(Space::Global, 0, 4)).unwrap_err();
            assert_eq!(
                *raised.kind,
                FaultKind::IllegalAddress {
                    access: AccessKind::Read,
                    address: 0,
                    space: Space::Global,
                    size: 4
                }
            );
        });
    }

    #[test]
    fn a_checked_access_lies_in_an_allocation() {
        let values = [5u32, 6];
        let start = values.as_ptr().expose_provenance() as u64;
        let map = OneAllocation(start..start + 8);
        with_memory(Some(&map), |memory| {
            assert_eq!(memory.load(access(Space::Global, start + 4, 4)).unwrap(), 6);
            assert!(memory.load(access(Space::Global, start + 8, 4)).is_err());
            let straddling = Access {
                kind: AccessKind::Read,
                space: Space::Global,
                address: start + 4,
                size: 8,
                align: 4,
                lane: 0,
            };
            assert!(memory.load(straddling).is_err());
        });
    }

    #[test]
    fn an_address_must_be_a_multiple_of_its_size() {
        with_memory(None, |memory| {
            let raised = memory.load(access(Space::Shared, 2, 4)).unwrap_err();
            assert_eq!(
                *raised.kind,
                FaultKind::Misaligned { access: AccessKind::Read, address: 2, space: Space::Shared, size: 4 }
            );
        });
    }

    #[test]
    fn parameters_cannot_be_written() {
        with_memory(None, |memory| {
            let mut location = memory.location(access(Space::Param, 0, 4)).unwrap();
            assert!(!write(&mut location, 0, 4, 1));
            assert_eq!(update(&mut location, 4, |v| v + 1), None);
        });
    }
}
