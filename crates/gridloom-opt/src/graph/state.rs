//! The memory in which a plan keeps conditions and counts.
//!
//! Words have 8 bytes. If some must have their initial values at the start of every launch, a
//! kernel before all other nodes copies them from an image.

use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::backend::{Allocation, Device};
use gridloom_core::memory::{Base, MemoryKind, Region};

/// The most bytes of one plan.
const MAX_BYTES: u64 = 64 << 10;

/// A word that was set carries this mark beside its 32-bit value.
pub(crate) const MARK: u64 = 1 << 32;

/// The memory of a plan.
#[derive(Debug)]
pub(crate) struct PlanMemory {
    memory: Arc<dyn Allocation>,
    /// The initial values of the words in use.
    initial: Vec<u8>,
    /// Whether a launch must start with the initial values.
    pub(crate) is_reset: bool,
}

impl PlanMemory {
    pub(crate) fn new(device: &dyn Device) -> Result<Self> {
        let memory = device.allocate(MAX_BYTES, MemoryKind::Device)?;
        device.write(&*memory, 0, &[0; MAX_BYTES as usize])?;
        Ok(PlanMemory { memory, initial: Vec::new(), is_reset: false })
    }

    /// Returns new words with these initial values, or `None` if there is no memory left.
    pub(crate) fn words(&mut self, values: &[u64]) -> Option<Region> {
        let (offset, bytes) = (self.initial.len() as u64, 8 * values.len() as u64);
        if offset + bytes > MAX_BYTES {
            return None;
        }
        self.initial.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Some(Region { base: Base::Allocation(self.memory.clone()), offset, bytes })
    }

    /// Returns the memory in use, and an image of its initial values.
    pub(crate) fn image(&self, device: &dyn Device) -> Result<(Region, Region)> {
        let bytes = self.initial.len() as u64;
        let image = device.allocate(bytes.max(1), MemoryKind::Device)?;
        device.write(&*image, 0, &self.initial)?;
        let used = Region { base: Base::Allocation(self.memory.clone()), offset: 0, bytes };
        Ok((used, Region::whole(image)))
    }
}

/// Returns the word with this index.
pub(crate) fn word(words: &Region, index: u64) -> Region {
    Region { base: words.base.clone(), offset: words.offset + 8 * index, bytes: 8 }
}
