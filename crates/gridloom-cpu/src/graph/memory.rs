//! The memory that an executable owns for its alloc nodes.

use std::collections::HashMap;
use std::sync::Arc;

use gridloom_core::graph::{Definition, NodeKey};
use gridloom_core::lower::{Allocations, Location};
use gridloom_core::memory::MemoryKind;
use gridloom_core::{Error, Result};

use super::arena::{self, Layout};
use super::plan::Addresses;
use crate::device::Shared;
use crate::memory::{CpuAllocation, HostBlock};

/// The memory of all alloc nodes of an executable, and where it lies.
pub(super) struct AllocNodeMemory {
    /// The address of each alloc node's memory.
    pub(super) addresses: Addresses,
    /// The memory of alloc nodes that nothing frees. Every launch reuses it.
    pub(super) outliving: HashMap<NodeKey, Arc<CpuAllocation>>,
    /// The number of bytes of all blocks.
    pub(super) bytes: u64,
    /// The memory of alloc nodes that the graph frees: the arena, or one block each.
    blocks: Vec<Arc<HostBlock>>,
}

impl AllocNodeMemory {
    /// Allocates the memory of all alloc nodes.
    pub(super) fn allocate(device: &Shared, definition: &Definition) -> Result<Self> {
        let allocations = Allocations::of(definition);
        let layout = arena::plan(definition, &allocations);
        let mut memory = AllocNodeMemory {
            addresses: Addresses(HashMap::with_capacity(allocations.nodes.len())),
            outliving: HashMap::new(),
            bytes: 0,
            blocks: Vec::new(),
        };
        for &key in &layout.outliving {
            let (bytes, kind) = bytes_of(definition, key);
            let block = memory.add_block(device, definition, key)?;
            memory.outliving.insert(key, CpuAllocation::new(block, bytes, kind));
        }
        if device.checked {
            // Separate blocks, so that a kernel that leaves one is noticed.
            for &key in layout.offsets.keys() {
                let block = memory.add_block(device, definition, key)?;
                memory.blocks.push(block);
            }
        } else if layout.bytes > 0 {
            memory.add_arena(device, definition, &layout)?;
        }
        Ok(memory)
    }

    /// Allocates a block for one alloc node.
    fn add_block(
        &mut self,
        device: &Shared,
        definition: &Definition,
        key: NodeKey,
    ) -> Result<Arc<HostBlock>> {
        let (bytes, kind) = bytes_of(definition, key);
        let at_node = |error: Error| error.at_node(definition.label(key));
        let block = HostBlock::new(&device.memory, bytes).map_err(at_node)?;
        self.addresses.0.insert(key, Location { address: block.address(), kind });
        self.bytes += bytes;
        Ok(block)
    }

    /// Allocates one block for all alloc nodes that the graph frees.
    fn add_arena(&mut self, device: &Shared, definition: &Definition, layout: &Layout) -> Result<()> {
        let arena = HostBlock::new(&device.memory, layout.bytes).map_err(|error| {
            error.context(format_args!("memory for {} alloc nodes", layout.offsets.len()))
        })?;
        for (&key, &offset) in &layout.offsets {
            let location = Location { address: arena.address() + offset, kind: bytes_of(definition, key).1 };
            self.addresses.0.insert(key, location);
        }
        self.bytes += layout.bytes;
        self.blocks.push(arena);
        Ok(())
    }
}

/// Returns the size and the kind of the memory of an alloc node.
fn bytes_of(definition: &Definition, key: NodeKey) -> (u64, MemoryKind) {
    let alloc = definition.node(key).operation().as_alloc();
    alloc.map_or((0, MemoryKind::Device), |alloc| (alloc.bytes(), alloc.kind))
}
