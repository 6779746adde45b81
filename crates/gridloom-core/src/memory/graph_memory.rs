//! The memory that graphs hold on a device, and its high-water mark.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory that graphs hold on a device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphMemory {
    /// Memory that executables and their launches in flight hold for alloc nodes.
    pub used: u64,
    /// The largest value of `used` since the device was opened or the mark was reset.
    pub used_high: u64,
    /// Memory that nobody uses and that the device keeps for later allocations, of graphs and
    /// buffers alike. Trimming the device returns it to the system.
    pub unused: u64,
}

impl GraphMemory {
    /// Creates a report.
    pub fn new(used: u64, used_high: u64, unused: u64) -> Self {
        GraphMemory { used, used_high: used_high.max(used), unused }
    }
}

/// Counts the memory that the graphs of a device hold.
#[derive(Debug, Default)]
pub struct GraphMemoryMeter {
    used: AtomicU64,
    high: AtomicU64,
}

impl GraphMemoryMeter {
    /// Counts bytes until the result is dropped.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> MeteredBytes {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.high.fetch_max(used, Ordering::Relaxed);
        MeteredBytes { meter: self.clone(), bytes }
    }

    /// Returns the bytes that are held now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the largest number of bytes held at a time.
    pub fn used_high(&self) -> u64 {
        self.high.load(Ordering::Relaxed)
    }

    /// Sets the high-water mark to the current value.
    pub fn reset_high(&self) {
        self.high.store(self.used(), Ordering::Relaxed);
    }
}

/// Bytes that are counted until this value is dropped.
#[derive(Debug)]
pub struct MeteredBytes {
    meter: Arc<GraphMemoryMeter>,
    bytes: u64,
}

impl Drop for MeteredBytes {
    fn drop(&mut self) {
        self.meter.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stays_where_the_use_was_highest_until_it_is_reset() {
        let meter = Arc::new(GraphMemoryMeter::default());
        let (one, other) = (meter.hold(10), meter.hold(20));
        drop(one);
        assert_eq!((meter.used(), meter.used_high()), (20, 30));
        meter.reset_high();
        drop(other);
        assert_eq!((meter.used(), meter.used_high()), (0, 20));
    }
}
