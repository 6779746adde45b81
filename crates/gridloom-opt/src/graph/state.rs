//! The memory in which a plan keeps conditions and counts.
//!
//! Words have 8 bytes. The first launch writes their initial values, so that planning never waits
//! for the device. If some must have them at the start of every launch, a kernel before all other
//! nodes copies them from an image.

use std::sync::Arc;

use gridloom_core::Result;
use gridloom_core::backend::{Allocation, Device};
use gridloom_core::memory::{Base, MemoryKind, Region};
use gridloom_core::op::{MemcpyOp, Operation};

use crate::rewrite::State;

/// The most bytes of one plan.
const MAX_BYTES: u64 = 256 << 10;

/// The most bytes of one copy to a device. A driver may wait for the stream in a longer one.
const PIECE: u64 = 64 << 10;

/// A word that was set carries this mark beside its 32-bit value.
pub(crate) const MARK: u64 = 1 << 32;

/// The memory of a plan.
#[derive(Debug)]
pub(crate) struct PlanMemory {
    memory: Arc<dyn Allocation>,
    /// A copy of the initial values, if a launch must start with them.
    image: Option<Arc<dyn Allocation>>,
    /// The initial values of the words in use.
    initial: Vec<u8>,
    /// Whether a launch must start with the initial values.
    pub(crate) is_reset: bool,
}

impl PlanMemory {
    pub(crate) fn new(device: &dyn Device) -> Result<Self> {
        let memory = device.allocate(MAX_BYTES, MemoryKind::Device)?;
        Ok(PlanMemory { memory, image: None, initial: Vec::new(), is_reset: false })
    }

    /// Returns new words with these initial values, or `None` if there is no memory left.
    pub(crate) fn words(&mut self, values: &[u64]) -> Option<Region> {
        self.place(values, 8)
    }

    /// Returns new words with zeros for the state of a program.
    pub(crate) fn state(&mut self, words: u32) -> Option<Region> {
        self.place(&vec![0; words as usize], State::ALIGN.into())
    }

    fn place(&mut self, values: &[u64], align: u64) -> Option<Region> {
        let offset = (self.initial.len() as u64).next_multiple_of(align);
        let bytes = 8 * values.len() as u64;
        if offset + bytes > MAX_BYTES {
            return None;
        }
        self.initial.resize(offset as usize, 0);
        self.initial.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Some(Region { base: Base::Allocation(self.memory.clone()), offset, bytes })
    }

    /// Returns the memory in use, and where the image of its initial values is.
    pub(crate) fn image(&mut self, device: &dyn Device) -> Result<(Region, Region)> {
        let bytes = self.initial.len() as u64;
        let image = device.allocate(bytes.max(1), MemoryKind::Device)?;
        let used = Region { base: Base::Allocation(self.memory.clone()), offset: 0, bytes };
        Ok((used, Region::whole(self.image.insert(image).clone())))
    }

    /// Returns the copies that write the initial values. They run before the first launch.
    pub(crate) fn into_writes(self) -> Vec<Operation> {
        let PlanMemory { memory, image, initial, .. } = self;
        let bytes = initial.len() as u64;
        if bytes == 0 {
            return Vec::new();
        }
        let initial: Arc<[u8]> = initial.into();
        let write = |memory: Arc<dyn Allocation>| {
            let initial = initial.clone();
            (0..bytes).step_by(PIECE as usize).map(move |offset| {
                let bytes = PIECE.min(bytes - offset);
                let dst = Region { base: Base::Allocation(memory.clone()), offset, bytes };
                let src = Region { base: Base::Bytes(initial.clone()), offset, bytes };
                Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes)))
            })
        };
        [Some(memory), image].into_iter().flatten().flat_map(write).collect()
    }
}

/// Returns the word with this index.
pub(crate) fn word(words: &Region, index: u64) -> Region {
    Region { base: words.base.clone(), offset: words.offset + 8 * index, bytes: 8 }
}
