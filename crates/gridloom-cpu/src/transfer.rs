//! Copies and fills of device memory. Besides the interpreter, only this module accesses it.
//!
//! The core has checked the addresses: they are inside live memory, source and destination do not
//! overlap, and fills are aligned to their value. All accesses go through [`racy`], which says why
//! races with other work are harmless.

use std::ops::Range;
use std::ptr;

use crate::interp::racy;
use crate::pool::{Pace, Pool};

/// The number of bytes that one worker copies or fills at a time when a large operation is shared.
const PIECE: u64 = 256 << 10;

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Copies bytes between two ranges that do not overlap.
///
/// # Safety
/// `src` is readable and `dst` writable device memory for `bytes` bytes, and they do not overlap.
pub(crate) unsafe fn copy(dst: u64, src: u64, bytes: u64) {
    // SAFETY: as promised by the caller.
    unsafe { racy::copy(pointer(dst), pointer(src), bytes as usize) }
}

/// Copies host bytes that nobody writes to device memory.
///
/// # Safety
/// As for [`copy`], with `src` readable Rust memory.
pub(crate) unsafe fn copy_from_host(dst: u64, src: u64, bytes: u64) {
    // SAFETY: as promised by the caller.
    unsafe {
        let src = std::slice::from_raw_parts(pointer(src).cast_const(), bytes as usize);
        racy::write(pointer(dst), src);
    }
}

/// Copies device memory to a slice.
///
/// # Safety
/// As for [`copy`], for as many bytes as `dst` has.
pub(crate) unsafe fn read(dst: &mut [u8], src: u64) {
    // SAFETY: as promised by the caller.
    unsafe { racy::read(dst, pointer(src)) }
}

/// Copies a slice to device memory.
///
/// # Safety
/// As for [`copy`], for as many bytes as `src` has.
pub(crate) unsafe fn write(dst: u64, src: &[u8]) {
    // SAFETY: as promised by the caller.
    unsafe { racy::write(pointer(dst), src) }
}

/// Fills `bytes` bytes with a value of 1, 2 or 4 bytes repeated.
///
/// # Safety
/// `dst` is writable device memory for `bytes` bytes and, like `bytes`, a multiple of the value's
/// size.
pub(crate) unsafe fn fill(dst: u64, value: u32, size: u32, bytes: u64) {
    // SAFETY: as promised by the caller.
    unsafe { racy::fill(pointer(dst), value, size, bytes as usize) }
}

/// Rows to copy or fill, in planes. A fill has one plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// The number of bytes in a row.
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
    pub(crate) dst: Grid,
    pub(crate) source: Source,
}

/// The position of rows in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) address: u64,
    /// The distance between rows in bytes.
    pub(crate) pitch: u64,
    /// The distance between planes in bytes.
    pub(crate) plane: u64,
}

/// The source of what is written to the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Copy(Grid),
    /// A copy from Rust memory that nobody writes.
    CopyFromHost(Grid),
    Fill {
        value: u32,
        size: u32,
    },
}

impl Grid {
    fn row(&self, row: u64, height: u64) -> u64 {
        self.address + row % height * self.pitch + row / height * self.plane
    }
}

impl Rows {
    pub(crate) fn bytes(&self) -> u64 {
        self.width * self.height * self.depth
    }

    /// Copies or fills. Large operations run on several workers.
    ///
    /// # Safety
    /// Every row is valid as [`copy`] or [`fill`] requires.
    pub(crate) unsafe fn run(&self, pool: &Pool) {
        let rows = self.height * self.depth;
        if rows == 1 {
            // SAFETY: as promised by the caller.
            return unsafe { self.linear(pool) };
        }
        let rows_per_piece = (PIECE / self.width.max(1)).clamp(1, rows);
        pool.for_each(rows.div_ceil(rows_per_piece), &Pace::default(), &|pieces: Range<u64>| {
            for row in pieces.start * rows_per_piece..(pieces.end * rows_per_piece).min(rows) {
                // SAFETY: as promised by the caller, for this row.
                unsafe { self.part(row, 0, self.width) }
            }
        });
    }

    unsafe fn linear(&self, pool: &Pool) {
        if self.width <= 2 * PIECE {
            // SAFETY: as promised by the caller of `run`.
            return unsafe { self.part(0, 0, self.width) };
        }
        pool.for_each(self.width.div_ceil(PIECE), &Pace::default(), &|pieces: Range<u64>| {
            let start = pieces.start * PIECE;
            let end = (pieces.end * PIECE).min(self.width);
            // SAFETY: a part of the row, starting at a multiple of every element size.
            unsafe { self.part(0, start, end - start) }
        });
    }

    /// Copies or fills `bytes` bytes of one row, from `offset` on.
    unsafe fn part(&self, row: u64, offset: u64, bytes: u64) {
        let dst = self.dst.row(row, self.height) + offset;
        match self.source {
            // SAFETY: as promised by the caller of `run`.
            Source::Copy(src) => unsafe { copy(dst, src.row(row, self.height) + offset, bytes) },
            // SAFETY: as promised by the caller of `run`.
            Source::CopyFromHost(src) => unsafe {
                copy_from_host(dst, src.row(row, self.height) + offset, bytes);
            },
            // SAFETY: as promised by the caller of `run`.
            Source::Fill { value, size } => unsafe { fill(dst, value, size, bytes) },
        }
    }
}
