//! Memory that outlives the launch that allocated it.
//!
//! A backend has one block for each alloc node that nothing frees, and every launch uses it again.
//! Each launch has its own handle to the block. The handle is the one place that knows whether the
//! memory still belongs to that launch. The handle expires when a launched free node frees the
//! memory, or when the next launch does so with `auto_free_on_launch`. From then on every use of
//! the handle is an error.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::MemoryKind;
use crate::backend::{Allocation, DeviceId};
use crate::error::Result;

const LIVE: u8 = 0;
/// A launch that frees the memory is being enqueued and may fail.
const CLAIMED: u8 = 1;
const FREED: u8 = 2;

/// Memory that one launch left allocated.
#[derive(Debug)]
pub struct OutlivingMemory {
    memory: Arc<dyn Allocation>,
    state: AtomicU8,
}

impl OutlivingMemory {
    pub(crate) fn new(memory: Arc<dyn Allocation>) -> Self {
        OutlivingMemory { memory, state: AtomicU8::new(LIVE) }
    }

    /// Returns whether the memory was freed or is about to be.
    pub fn is_freed(&self) -> bool {
        self.state.load(Ordering::Acquire) != LIVE
    }

    /// Returns whether the next launch may use the block.
    pub(crate) fn is_given_back(&self) -> bool {
        self.state.load(Ordering::Acquire) == FREED
    }

    /// Frees the memory.
    pub(crate) fn free(&self) {
        self.state.store(FREED, Ordering::Release);
    }
}

/// Memory that a launch in preparation will free. Nobody else can free it meanwhile. Dropping the
/// claims without [`free`](Claims::free) restores the previous state.
pub(crate) struct Claims<'a>(Vec<&'a OutlivingMemory>);

impl<'a> Claims<'a> {
    /// Claims all allocations. Fails with the key of one that is already freed.
    pub(crate) fn new<K>(
        all: impl IntoIterator<Item = (K, &'a Arc<dyn Allocation>)>,
    ) -> std::result::Result<Self, K> {
        let mut claims = Claims(Vec::new());
        for (key, memory) in all {
            let Some(memory) = memory.outliving() else { continue };
            let claimed = memory.state.compare_exchange(LIVE, CLAIMED, Ordering::AcqRel, Ordering::Acquire);
            if claimed.is_err() {
                return Err(key);
            }
            claims.0.push(memory);
        }
        Ok(claims)
    }

    /// Frees all claimed memory.
    pub(crate) fn free(mut self) {
        self.0.drain(..).for_each(OutlivingMemory::free);
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        for memory in &self.0 {
            // If the next launch of its executable has freed the memory meanwhile, it stays freed.
            let _ = memory.state.compare_exchange(CLAIMED, LIVE, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

// SAFETY: all answers are those of the allocation that it holds.
unsafe impl Allocation for OutlivingMemory {
    fn device(&self) -> DeviceId {
        self.memory.device()
    }

    fn address(&self) -> u64 {
        self.memory.address()
    }

    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    fn read_host(&self, offset: u64, dst: &mut [u8]) -> Result<()> {
        self.memory.read_host(offset, dst)
    }

    fn outliving(&self) -> Option<&OutlivingMemory> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self.memory.as_any()
    }
}
