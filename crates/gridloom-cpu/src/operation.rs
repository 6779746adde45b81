//! One prepared operation: addresses resolved, arguments packed, ready to run any number of times.
//!
//! Streams run them one by one. A replay plan is a list of them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use gridloom_core::lower::{self, Locate};
use gridloom_core::memory::Base;
use gridloom_core::op::{CallbackOp, CopySide, KernelOp, MemcpyOp, MemsetOp, Operation};
use gridloom_core::user_code::{self, Caller};
use gridloom_core::{Error, ErrorKind, Result};

use crate::device::Shared;
use crate::kernel::KernelLaunch;
use crate::transfer::{self, Grid, Rows, Source};

/// The size up to which linear copies and fills run on one thread. Larger ones may be shared.
const SMALL: u64 = 512 << 10;

/// The state that an operation may use while it runs.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) device: &'a Shared,
    pub(crate) conditions: &'a [AtomicU32],
    /// Flags that cancel the operation when set.
    pub(crate) cancel: [&'a AtomicBool; 2],
}

impl Context<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.iter().any(|cancel| cancel.load(Ordering::Relaxed))
    }
}

/// A prepared operation. It holds what it uses, except for memory of regions, which its creator
/// keeps alive.
///
/// Small ones are stored in place, because a replay reads them one after the other.
pub(crate) enum Prepared {
    Fill {
        dst: u64,
        bytes: u64,
        value: u32,
        size: u32,
    },
    Copy {
        dst: u64,
        src: u64,
        bytes: u64,
        /// Whether the source is Rust memory.
        from_host: bool,
    },
    Rows(Box<Rows>),
    Kernel(Box<KernelLaunch>),
    /// Boxed, because a raw callback with its owner is larger than all other variants.
    Callback(Box<CallbackOp>),
}

impl Prepared {
    /// Prepares an operation. `places` locates the memory and conditions of its graph. Returns
    /// `None` for operations that are not prepared: those without work, events and conditionals.
    pub(crate) fn new(operation: &Operation, places: &dyn Locate) -> Result<Option<Self>> {
        Ok(Some(match operation {
            Operation::Kernel(op) => Prepared::kernel(op, places)?,
            Operation::Memset(op) => Prepared::memset(op, places)?,
            Operation::Memcpy(op) => Prepared::memcpy(op, places)?,
            Operation::Callback(op) => Prepared::Callback(Box::new(op.clone())),
            Operation::Opaque(_) => {
                return Err(Error::new(
                    ErrorKind::NotSupported,
                    "an opaque graph, captured on another device from code that Gridloom does not know; only that device can run it",
                ));
            }
            Operation::Empty
            | Operation::Alloc(_)
            | Operation::Free(_)
            | Operation::Child(_)
            | Operation::EventRecord(_)
            | Operation::EventWait(_)
            | Operation::Conditional(_) => return Ok(None),
        }))
    }

    fn memset(op: &MemsetOp, places: &dyn Locate) -> Result<Self> {
        let address = places.locate(&op.dst)?.address;
        let width = op.width * u64::from(op.element_size);
        // Rows without gaps form one row.
        let (width, height) =
            if op.height > 1 && op.pitch == width { (width * op.height, 1) } else { (width, op.height) };
        if height == 1 && width <= SMALL {
            return Ok(Prepared::Fill { dst: address, bytes: width, value: op.value, size: op.element_size });
        }
        Ok(Prepared::Rows(Box::new(Rows {
            width,
            height,
            depth: 1,
            dst: Grid { address, pitch: op.pitch, plane: 0 },
            source: Source::Fill { value: op.value, size: op.element_size },
        })))
    }

    fn memcpy(op: &MemcpyOp, places: &dyn Locate) -> Result<Self> {
        let dst = places.locate(&op.dst.region)?.address;
        let src = places.locate(&op.src.region)?.address;
        let from_host = matches!(op.src.region.base, Base::Bytes(_));
        let dense = |side: &CopySide| {
            (op.height * op.depth == 1 || side.pitch == op.width) && (op.depth == 1 || side.rows == op.height)
        };
        let (width, height, depth) = if dense(&op.dst) && dense(&op.src) {
            (op.width * op.height * op.depth, 1, 1)
        } else {
            (op.width, op.height, op.depth)
        };
        if height * depth == 1 && width <= SMALL {
            return Ok(Prepared::Copy { dst, src, bytes: width, from_host });
        }
        let grid = |address, side: &CopySide| Grid {
            address,
            pitch: side.pitch,
            plane: side.pitch.wrapping_mul(side.rows),
        };
        Ok(Prepared::Rows(Box::new(Rows {
            width,
            height,
            depth,
            dst: grid(dst, &op.dst),
            source: match from_host {
                true => Source::CopyFromHost(grid(src, &op.src)),
                false => Source::Copy(grid(src, &op.src)),
            },
        })))
    }

    fn kernel(op: &KernelOp, places: &dyn Locate) -> Result<Self> {
        let params = lower::fill_in_addresses(op.args(), places)?.into_boxed_slice();
        Ok(Prepared::Kernel(Box::new(KernelLaunch::new(op, params)?)))
    }

    /// Returns the approximate time in nanoseconds.
    pub(crate) fn estimate(&self) -> u64 {
        match self {
            Prepared::Fill { bytes, .. } | Prepared::Copy { bytes, .. } => 5 + bytes / 8,
            // The pool shares large ones anyway, so they need not run beside other work.
            Prepared::Rows(rows) => 50 + (rows.bytes() / 8).min(100_000),
            Prepared::Kernel(kernel) => kernel.estimate(),
            Prepared::Callback(_) => 20,
        }
    }

    /// Runs the operation on this thread, and on others if that pays off.
    #[inline]
    pub(crate) fn run(&self, context: Context<'_>) -> Result<()> {
        match self {
            // SAFETY: the core checked the range and the alignment, and the caller holds the
            // memory.
            Prepared::Fill { dst, bytes, value, size } => unsafe {
                transfer::fill(*dst, *value, *size, *bytes);
                Ok(())
            },
            // SAFETY: the core checked both ranges and that they do not overlap, and the caller
            // holds the memory.
            Prepared::Copy { dst, src, bytes, from_host } => unsafe {
                match from_host {
                    true => transfer::copy_from_host(*dst, *src, *bytes),
                    false => transfer::copy(*dst, *src, *bytes),
                }
                Ok(())
            },
            // SAFETY: as for the two above, row by row.
            Prepared::Rows(rows) => unsafe {
                rows.run(&context.device.pool);
                Ok(())
            },
            Prepared::Kernel(kernel) => kernel.run(context),
            Prepared::Callback(callback) => callback.call(Caller::Device(context.device.id)),
        }
    }
}

/// Runs `work`. A panic in it, which is a defect of this crate, becomes an error.
pub(crate) fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    user_code::contain(work).unwrap_or_else(|said| {
        Err(Error::new(ErrorKind::Driver, format!("the CPU device failed with an internal error: {said}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_prepared_operations_fit_in_a_cache_line() {
        assert!(size_of::<Prepared>() <= 32, "{}", size_of::<Prepared>());
    }
}
