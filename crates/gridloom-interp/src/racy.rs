//! Accesses to device memory that may race with accesses by other threads.
//!
//! Kernels, copies and fills of two streams may access the same memory without an order between
//! them. On a GPU the values are then torn or stale, and nothing worse may happen here. For Rust's
//! ordinary accesses such a race is undefined behaviour. It is also undefined for atomic accesses
//! of different sizes (see [`std::sync::atomic`]). So device memory is accessed only through this
//! module and by compiled kernels.
//!
//! The module `bytewise` defines what an access means to Rust: each byte is loaded or stored by
//! itself, with a relaxed atomic access. Such accesses may race with each other, and each byte that
//! is read was written by some thread. The module `words` does the same with machine instructions
//! that the compiler does not see: assembly for single values, the C library for long runs of
//! bytes. An instruction that moves eight bytes also moves each of them, and tears none. Compiled
//! kernels are such instructions too.
//!
//! [Updates](update) are atomic with respect to each other. In ordinary builds they are machine
//! instructions, atomic with respect to all accesses.
//!
//! Miri runs `bytewise`. So does a build with `--cfg gridloom_bytewise`, for sanitizers that
//! instrument the C library.

#[cfg(any(miri, gridloom_bytewise))]
use bytewise as chosen;
#[cfg(not(any(miri, gridloom_bytewise)))]
use words as chosen;

/// Loads a value of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// The memory is live, initialised and aligned to the size. Every access by other means than this
/// module or compiled kernels is ordered before or after this one.
#[inline]
pub unsafe fn load(pointer: *const u8, size: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { chosen::load(pointer, size) }
}

/// Stores a value of 1, 2, 4 or 8 bytes.
///
/// # Safety
/// As for [`load`], and the memory may be written.
#[inline]
pub unsafe fn store(pointer: *mut u8, size: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { chosen::store(pointer, size, value) }
}

/// Replaces a value of 2, 4 or 8 bytes by a function of it and returns the old value. Other updates
/// see it as one step.
///
/// # Safety
/// As for [`store`].
#[inline]
pub unsafe fn update(pointer: *mut u8, size: u32, function: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { chosen::update(pointer, size, function) }
}

/// Copies bytes between two regions of device memory that do not overlap.
///
/// # Safety
/// As for [`load`] and [`store`], for each byte.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { chosen::copy(dst, src, bytes) }
}

/// Copies bytes out of device memory.
///
/// # Safety
/// As for [`load`], for as many bytes as `dst` has.
pub unsafe fn read(dst: &mut [u8], src: *const u8) {
    // SAFETY: the caller's promise. The destination is borrowed exclusively.
    unsafe { chosen::read(dst, src) }
}

/// Copies bytes to device memory.
///
/// # Safety
/// As for [`store`], for as many bytes as `src` has.
pub unsafe fn write(dst: *mut u8, src: &[u8]) {
    // SAFETY: the caller's promise. The source is borrowed, so nothing writes it.
    unsafe { chosen::write(dst, src) }
}

/// Fills `bytes` bytes with a value of 1, 2 or 4 bytes repeated.
///
/// # Safety
/// As for [`store`], for each byte. Address and length are multiples of the size.
pub unsafe fn fill(dst: *mut u8, value: u32, size: u32, bytes: usize) {
    /// Fills of at most this many values store one value at a time.
    const FEW: usize = 16;
    /// Fills of more bytes than this copy a longer run.
    const LONG: usize = 1 << 14;

    if bytes <= FEW * size as usize || cfg!(any(miri, gridloom_bytewise)) {
        for offset in (0..bytes).step_by(size as usize) {
            // SAFETY: the caller's promise.
            unsafe { chosen::store(dst.wrapping_add(offset), size, value.into()) };
        }
        return;
    }
    let pattern = match size {
        1 => u64::from(value as u8) * 0x0101_0101_0101_0101,
        2 => u64::from(value as u16) * 0x0001_0001_0001_0001,
        _ => u64::from(value) * 0x0000_0001_0000_0001,
    };
    let byte = pattern as u8;
    if pattern == u64::from(byte) * 0x0101_0101_0101_0101 {
        // SAFETY: the caller's promise.
        return unsafe { chosen::fill_bytes(dst, byte, bytes) };
    }
    // A short fill uses a short run, because building a long one costs more than the fill.
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            ..=LONG => fill_by_runs::<256>(dst, pattern, bytes),
            _ => fill_by_runs::<4096>(dst, pattern, bytes),
        }
    }
}

/// Fills `bytes` bytes with copies of a run of `RUN` bytes.
///
/// # Safety
/// As for [`fill`].
unsafe fn fill_by_runs<const RUN: usize>(dst: *mut u8, pattern: u64, bytes: usize) {
    let mut run = [0; RUN];
    run.as_chunks_mut().0.fill(pattern.to_ne_bytes());
    for offset in (0..bytes).step_by(RUN) {
        // SAFETY: the caller's promise. Every run begins with a whole value.
        unsafe { chosen::write(dst.wrapping_add(offset), &run[..RUN.min(bytes - offset)]) };
    }
}

/// Accesses byte by byte. This module is the definition.
#[cfg(any(miri, gridloom_bytewise, test))]
#[cfg_attr(
    not(any(miri, gridloom_bytewise)),
    allow(dead_code, reason = "tests ask it for some answers only")
)]
mod bytewise {
    use parking_lot::Mutex;
    use std::sync::atomic::{AtomicU8, Ordering};

    unsafe fn byte<'a>(pointer: *const u8) -> &'a AtomicU8 {
        // SAFETY: the caller promises that the memory is live and that others access it only
        // atomically.
        unsafe { AtomicU8::from_ptr(pointer.cast_mut()) }
    }

    pub(super) unsafe fn load(pointer: *const u8, size: u32) -> u64 {
        let mut value = [0; 8];
        // SAFETY: the caller's promise.
        unsafe { read(&mut value[..size as usize], pointer) };
        u64::from_le_bytes(value)
    }

    pub(super) unsafe fn store(pointer: *mut u8, size: u32, value: u64) {
        // SAFETY: the caller's promise.
        unsafe { write(pointer, &value.to_le_bytes()[..size as usize]) }
    }

    pub(super) unsafe fn update(pointer: *mut u8, size: u32, function: impl Fn(u64) -> u64) -> u64 {
        static LOCK: Mutex<()> = Mutex::new(());
        let _guard = LOCK.lock();
        // SAFETY: the caller's promise.
        unsafe {
            let old = load(pointer, size);
            store(pointer, size, function(old));
            old
        }
    }

    pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        for offset in 0..bytes {
            // SAFETY: the caller's promise.
            unsafe {
                let value = byte(src.wrapping_add(offset)).load(Ordering::Relaxed);
                byte(dst.wrapping_add(offset)).store(value, Ordering::Relaxed);
            }
        }
    }

    pub(super) unsafe fn read(dst: &mut [u8], src: *const u8) {
        for (offset, to) in dst.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *to = unsafe { byte(src.wrapping_add(offset)) }.load(Ordering::Relaxed);
        }
    }

    pub(super) unsafe fn write(dst: *mut u8, src: &[u8]) {
        for (offset, &from) in src.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { byte(dst.wrapping_add(offset)) }.store(from, Ordering::Relaxed);
        }
    }

    pub(super) unsafe fn fill_bytes(dst: *mut u8, value: u8, bytes: usize) {
        for offset in 0..bytes {
            // SAFETY: the caller's promise.
            unsafe { byte(dst.wrapping_add(offset)) }.store(value, Ordering::Relaxed);
        }
    }
}

/// Accesses with machine instructions.
#[cfg(not(any(miri, gridloom_bytewise)))]
mod words {
    use std::ffi::{c_int, c_void};
    use std::hint::black_box;

    // Called through addresses that the compiler cannot trace, so that it does not know these are
    // `memcpy` and `memset`.
    unsafe extern "C" {
        fn memcpy(dst: *mut c_void, src: *const c_void, bytes: usize) -> *mut c_void;
        fn memset(dst: *mut c_void, value: c_int, bytes: usize) -> *mut c_void;
    }

    #[inline]
    pub(super) unsafe fn load(pointer: *const u8, size: u32) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an aligned load of memory that the caller promises to be valid.
        unsafe {
            use std::arch::asm;
            let value: u64;
            match size {
                1 => asm!("movzx {0:e}, byte ptr [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                2 => asm!("movzx {0:e}, word ptr [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                4 => asm!("mov {0:e}, dword ptr [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                _ => asm!("mov {0}, qword ptr [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
            }
            value
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: an aligned load of memory that the caller promises to be valid.
        unsafe {
            use std::arch::asm;
            let value: u64;
            match size {
                1 => asm!("ldrb {0:w}, [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                2 => asm!("ldrh {0:w}, [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                4 => asm!("ldr {0:w}, [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
                _ => asm!("ldr {0}, [{1}]", out(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags, readonly)),
            }
            value
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        // SAFETY: the caller's promise. There is no JIT for these machines, and no access of
        // another size is known to race there.
        unsafe {
            use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
            let pointer = pointer.cast_mut();
            match size {
                1 => u64::from(AtomicU8::from_ptr(pointer).load(Ordering::Relaxed)),
                2 => u64::from(AtomicU16::from_ptr(pointer.cast()).load(Ordering::Relaxed)),
                4 => u64::from(AtomicU32::from_ptr(pointer.cast()).load(Ordering::Relaxed)),
                _ => AtomicU64::from_ptr(pointer.cast()).load(Ordering::Relaxed),
            }
        }
    }

    #[inline]
    pub(super) unsafe fn store(pointer: *mut u8, size: u32, value: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an aligned store to memory that the caller promises to be valid.
        unsafe {
            use std::arch::asm;
            match size {
                1 => asm!("mov byte ptr [{1}], {0}", in(reg_byte) value as u8, in(reg) pointer,
                    options(nostack, preserves_flags)),
                2 => asm!("mov word ptr [{1}], {0:x}", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
                4 => asm!("mov dword ptr [{1}], {0:e}", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
                _ => asm!("mov qword ptr [{1}], {0}", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
            }
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: an aligned store to memory that the caller promises to be valid.
        unsafe {
            use std::arch::asm;
            match size {
                1 => asm!("strb {0:w}, [{1}]", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
                2 => asm!("strh {0:w}, [{1}]", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
                4 => asm!("str {0:w}, [{1}]", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
                _ => asm!("str {0}, [{1}]", in(reg) value, in(reg) pointer,
                    options(nostack, preserves_flags)),
            }
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        // SAFETY: as in `load`.
        unsafe {
            use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
            match size {
                1 => AtomicU8::from_ptr(pointer).store(value as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(pointer.cast()).store(value as u16, Ordering::Relaxed),
                4 => AtomicU32::from_ptr(pointer.cast()).store(value as u32, Ordering::Relaxed),
                _ => AtomicU64::from_ptr(pointer.cast()).store(value, Ordering::Relaxed),
            }
        }
    }

    /// Stores `new` if the value is `old`. Returns the value before.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    unsafe fn compare_exchange(pointer: *mut u8, size: u32, old: u64, new: u64) -> u64 {
        use std::arch::asm;
        let mut there = old;
        // SAFETY: an access to memory that the caller promises to be valid.
        unsafe {
            match size {
                2 => asm!("lock cmpxchg word ptr [{1}], {0:x}", in(reg) new, in(reg) pointer,
                    inout("rax") there, options(nostack)),
                4 => asm!("lock cmpxchg dword ptr [{1}], {0:e}", in(reg) new, in(reg) pointer,
                    inout("rax") there, options(nostack)),
                _ => asm!("lock cmpxchg qword ptr [{1}], {0}", in(reg) new, in(reg) pointer,
                    inout("rax") there, options(nostack)),
            }
        }
        there & (u64::MAX >> (64 - 8 * size))
    }

    /// Compares and exchanges on other machines, whose instructions differ. It uses Rust's own
    /// operation. Its size differs from that of other accesses only if a kernel mixes sizes, which
    /// PTX leaves undefined.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    unsafe fn compare_exchange(pointer: *mut u8, size: u32, old: u64, new: u64) -> u64 {
        use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe {
            match size {
                2 => AtomicU16::from_ptr(pointer.cast())
                    .compare_exchange(old as u16, new as u16, success, failure)
                    .map_or_else(u64::from, u64::from),
                4 => AtomicU32::from_ptr(pointer.cast())
                    .compare_exchange(old as u32, new as u32, success, failure)
                    .map_or_else(u64::from, u64::from),
                _ => AtomicU64::from_ptr(pointer.cast())
                    .compare_exchange(old, new, success, failure)
                    .unwrap_or_else(|there| there),
            }
        }
    }

    #[inline]
    pub(super) unsafe fn update(pointer: *mut u8, size: u32, function: impl Fn(u64) -> u64) -> u64 {
        let mask = u64::MAX >> (64 - 8 * size);
        // SAFETY: the caller's promise.
        let mut old = unsafe { load(pointer, size) };
        loop {
            // SAFETY: the caller's promise.
            let there = unsafe { compare_exchange(pointer, size, old, function(old) & mask) };
            if there == old {
                return old;
            }
            old = there;
        }
    }

    #[inline]
    pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        let aligned = (dst.addr() | src.addr() | bytes).trailing_zeros();
        // SAFETY: the caller's promise.
        unsafe {
            // Graphs often copy single values.
            match bytes {
                8 if aligned >= 3 => store(dst, 8, load(src, 8)),
                4 if aligned >= 2 => store(dst, 4, load(src, 4)),
                _ => {
                    black_box(memcpy as unsafe extern "C" fn(_, _, _) -> _)(dst.cast(), src.cast(), bytes);
                }
            }
        }
    }

    pub(super) unsafe fn read(dst: &mut [u8], src: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { copy(dst.as_mut_ptr(), src, dst.len()) }
    }

    pub(super) unsafe fn write(dst: *mut u8, src: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { copy(dst, src.as_ptr(), src.len()) }
    }

    pub(super) unsafe fn fill_bytes(dst: *mut u8, value: u8, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            black_box(memset as unsafe extern "C" fn(_, _, _) -> _)(dst.cast(), c_int::from(value), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates memory for one test, aligned to eight bytes.
    fn memory(values: &[u8]) -> (Vec<u64>, *mut u8) {
        let mut words = vec![0u64; values.len().div_ceil(8).max(1)];
        let start = words.as_mut_ptr().cast::<u8>();
        // SAFETY: the vector has so many bytes.
        unsafe { write(start, values) };
        (words, start)
    }

    fn bytes(start: *mut u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: asked for what is there only.
        unsafe { read(&mut bytes, start) };
        bytes
    }

    #[test]
    fn values_of_each_size_are_loaded_and_stored_and_nothing_beside_them() {
        for size in [1, 2, 4, 8] {
            for offset in (0..24).step_by(size as usize) {
                let (_words, start) = memory(&[0xaa; 32]);
                // SAFETY: inside the memory, and aligned.
                unsafe {
                    store(start.wrapping_add(offset), size, 0x1122_3344_5566_7788);
                    let expected = 0x1122_3344_5566_7788 & (u64::MAX >> (64 - 8 * size));
                    assert_eq!(load(start.wrapping_add(offset), size), expected);
                    assert_eq!(bytewise::load(start.wrapping_add(offset), size), expected);
                }
                let kept = bytes(start, 32);
                let (before, after) = (&kept[..offset], &kept[offset + size as usize..]);
                assert!(before.iter().chain(after).all(|&byte| byte == 0xaa), "{size} at {offset}");
            }
        }
    }

    #[test]
    fn updates_return_the_value_before_and_wrap() {
        for size in [2, 4, 8] {
            let (_words, start) = memory(&[0xff; 16]);
            let all = u64::MAX >> (64 - 8 * size);
            // SAFETY: inside the memory, and aligned.
            unsafe {
                assert_eq!(update(start, size, |old| old.wrapping_add(1)), all);
                assert_eq!(update(start, size, |old| old + 5), 0);
                assert_eq!(load(start, size), 5);
            }
            assert!(bytes(start, 16)[size as usize..].iter().all(|&byte| byte == 0xff));
        }
    }

    #[test]
    fn fills_and_copies_of_every_length_and_place_are_what_byte_by_byte_ones_are() {
        let lengths = (0..40).chain([63, 64, 65, 100, 128, 2047, 2048, 2052, 4100]);
        for length in lengths.filter(|length| !cfg!(miri) || length % 9 == 0) {
            for (value, size) in [(0xab, 1), (0, 2), (0x1234, 2), (0x0101_0101, 4), (0x1234_5678, 4)] {
                let at = 4;
                let length = length / size as usize * size as usize;
                let (_words, start) = memory(&vec![0x55; length + 16]);
                // SAFETY: inside the memory, and aligned.
                unsafe { fill(start.wrapping_add(at), value, size, length) };
                let kept = bytes(start, length + 16);
                let value = value.to_le_bytes();
                for (i, &byte) in kept.iter().enumerate() {
                    let inside = (at..at + length).contains(&i);
                    let expected = if inside { value[(i - at) % size as usize] } else { 0x55 };
                    assert_eq!(byte, expected, "byte {i} of {length} of size {size}");
                }
            }
            for (from, to) in [(0, 0), (1, 0), (3, 5), (4, 4), (8, 0)] {
                let values: Vec<u8> = (0..length + 8).map(|i| i as u8).collect();
                let (_source, source) = memory(&values);
                let (_target, target) = memory(&vec![0x55; length + 16]);
                // SAFETY: inside the memory.
                unsafe { copy(target.wrapping_add(to), source.wrapping_add(from), length) };
                let kept = bytes(target, length + 16);
                assert_eq!(kept[to..to + length], values[from..from + length]);
                assert!(kept[..to].iter().chain(&kept[to + length..]).all(|&byte| byte == 0x55));
            }
        }
    }

    #[test]
    fn accesses_of_all_sizes_may_race() {
        let (_words, start) = memory(&[0; 64]);
        let start = start.expose_provenance();
        let at = |offset: usize| std::ptr::with_exposed_provenance_mut::<u8>(start + offset);
        std::thread::scope(|scope| {
            // SAFETY: inside the memory, which lives until all threads have ended.
            scope.spawn(|| unsafe { fill(at(0), 0x0101_0101, 4, 64) });
            // SAFETY: as above.
            scope.spawn(|| unsafe { copy(at(3), at(40), 20) });
            // SAFETY: as above.
            scope.spawn(|| unsafe { store(at(8), 8, 7) });
            // SAFETY: as above.
            scope.spawn(|| unsafe { update(at(8), 4, |old| old + 1) });
            // SAFETY: as above.
            scope.spawn(|| unsafe { load(at(10), 2) });
        });
    }
}
