//! What an executable owns besides the driver's graphs: memory of alloc nodes, copied bytes,
//! counters, conditions.

use super::builtin::Builtins;
use super::modes::Modes;
use super::parameters::has_decider;
use super::plan::Program;
use crate::device::Shared;
use crate::failure::{Failures, HostCall};
use crate::host_pages::HostPage;
use crate::kernel::Kernel;
use crate::memory::{Allocator, Memory};
use gridloom_core::backend::{self, Allocation};
use gridloom_core::graph::{ConditionKey, Definition, NodeKey};
use gridloom_core::lower::{Allocations, Locate, Location};
use gridloom_core::memory::{Base, MemoryKind, MeteredBytes, Region};
use gridloom_core::op::{NodeKind, NodeKinds, Operation};
use gridloom_core::{Error, ErrorKind, Result};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Everything the driver's graphs refer to, kept as long as they are.
pub(super) struct Resources {
    pub(super) shared: Arc<Shared>,
    /// Failures on the host, for graphs in which something can fail.
    failures: OnceLock<Arc<Failures>>,
    /// Empty for graphs of only kernels and fills.
    owned: OnceLock<Box<Owned>>,
}

/// What a graph needs besides what its operations hold.
#[derive(Default)]
struct Owned {
    builtins: Builtins,
    /// The blocks that the addresses below point into.
    blocks: Vec<Arc<Memory>>,
    allocations: FxHashMap<NodeKey, Location>,
    /// Memory of alloc nodes that nothing in the graph frees.
    outliving: FxHashMap<NodeKey, Arc<Memory>>,
    /// Copies of host bytes in device memory, by the address of the original.
    staged: FxHashMap<usize, u64>,
    /// Where the passes of a conditional are counted.
    counters: FxHashMap<NodeKey, u64>,
    /// All counters: where they start, and their bytes.
    counted: Option<(u64, usize)>,
    allocated_bytes: u64,
    metered: Option<MeteredBytes>,
    cells: Option<Cells>,
    conditions: FxHashMap<ConditionKey, ConditionFacts>,
}

/// What the lowering needs to know about a condition.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConditionFacts {
    /// Its value at the start of each launch.
    pub(super) start: u32,
    /// The conditional that tests it.
    pub(super) tested_by: Option<NodeKey>,
}

/// Condition values that the host reads: words of pinned memory.
#[derive(Debug)]
pub(super) struct Cells {
    page: HostPage,
    places: FxHashMap<ConditionKey, (usize, u32)>,
}

/// The first word is for reading values of other memory back.
const SCRATCH: usize = 0;

impl Cells {
    /// Returns the address a kernel is given as the handle of the condition.
    fn handle(&self, condition: ConditionKey) -> Option<u64> {
        self.places.get(&condition).map(|&(index, _)| self.word(index) as u64)
    }

    /// Sets every condition to the value it has at the start of a launch. Nothing may be in flight.
    pub(super) fn reset(&self) {
        for &(index, default) in self.places.values() {
            // SAFETY: see `word`; no kernel is running that could write it.
            unsafe { self.word(index).write_volatile(default) };
        }
    }

    /// Returns the value of a condition, after the kernels that set it have run.
    pub(super) fn value(&self, condition: ConditionKey) -> u32 {
        let index = self.places.get(&condition).map_or(SCRATCH, |&(index, _)| index);
        // SAFETY: see `word`; the stream was waited for.
        unsafe { self.word(index).read_volatile() }
    }

    /// Returns where a value of other memory is copied to before it is read.
    pub(super) fn scratch_address(&self) -> u64 {
        self.word(SCRATCH) as u64
    }

    /// Returns the value that was copied there.
    pub(super) fn scratch(&self) -> u32 {
        // SAFETY: see `word`; the stream was waited for.
        unsafe { self.word(SCRATCH).read_volatile() }
    }

    /// Returns a word of the page, which has one for each index handed out.
    fn word(&self, index: usize) -> *mut u32 {
        self.page.start().wrapping_add(index)
    }

    /// Makes words for the scratch value and this many conditions.
    fn bytes(conditions: usize) -> usize {
        4 * (1 + conditions)
    }
}

impl Resources {
    /// Makes the resources of a definition with this program. Failures go where earlier failures
    /// went, if there were any.
    pub(super) fn new(
        shared: &Arc<Shared>,
        definition: &Definition,
        (modes, program): (&Modes, &Program),
        count_passes: bool,
        failures: Option<Arc<Failures>>,
    ) -> Result<Self> {
        let owned = OnceLock::new();
        if definition.may_have_conditions() || definition.may_have(Needs::NEEDY) {
            let needs = Needs::of(definition, program, count_passes);
            let made = Owned::new(shared, definition, modes, &needs)?;
            owned.get_or_init(|| Box::new(made));
        }
        let failures = failures.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Self { shared: Arc::clone(shared), failures, owned })
    }

    /// Returns where failures on the host go.
    pub(super) fn failures(&self) -> &Arc<Failures> {
        self.failures.get_or_init(Arc::default)
    }

    /// Returns where failures on the host go, unless nothing could fail so far.
    pub(super) fn known_failures(&self) -> Option<&Arc<Failures>> {
        self.failures.get()
    }

    /// Returns Gridloom's own kernels.
    pub(super) fn builtins(&self) -> &Builtins {
        &self.owned.get_or_init(Box::default).builtins
    }

    /// Returns whether memory of an alloc node stays when a launch has ended.
    pub(super) fn has_outliving(&self) -> bool {
        self.owned.get().is_some_and(|owned| !owned.outliving.is_empty())
    }

    /// Returns the memory of an alloc node that nothing in the graph frees.
    pub(super) fn outliving(&self, alloc: NodeKey) -> Option<&Arc<Memory>> {
        self.owned.get()?.outliving.get(&alloc)
    }

    /// Returns the address and the size of all counters of passes.
    pub(super) fn counted(&self) -> Option<(u64, usize)> {
        self.owned.get()?.counted
    }

    /// Returns the conditions that the host reads.
    pub(super) fn cells(&self) -> Option<&Cells> {
        self.owned.get()?.cells.as_ref()
    }

    /// Returns where a region is that `node` uses.
    pub(super) fn locate(&self, held: &Held, node: NodeKey, region: &Region) -> Result<Location> {
        NodePlaces { resources: self, held, node, conditions: &|_| None }.locate(region)
    }

    /// Returns what is known of a condition.
    pub(super) fn condition(&self, condition: ConditionKey) -> ConditionFacts {
        let unknown = ConditionFacts { start: 0, tested_by: None };
        self.owned.get().and_then(|owned| owned.conditions.get(&condition).copied()).unwrap_or(unknown)
    }

    /// Returns where the passes of a conditional are counted, if they are.
    pub(super) fn counter(&self, node: NodeKey) -> Option<u64> {
        self.owned.get()?.counters.get(&node).copied()
    }

    /// Returns the address a kernel is given in the place of a handle, for a condition that is
    /// stored.
    pub(super) fn cell_handle(&self, condition: ConditionKey) -> Option<u64> {
        self.cells()?.handle(condition)
    }

    /// Returns how many bytes alloc nodes have, and how many everything else has.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let Some(owned) = self.owned.get() else { return (0, 0) };
        let total: u64 = owned.blocks.iter().chain(owned.outliving.values()).map(|block| block.bytes()).sum();
        let cells = owned.cells.as_ref().map_or(0, |cells| Cells::bytes(cells.places.len()) as u64);
        (owned.allocated_bytes, (total + cells).saturating_sub(owned.allocated_bytes))
    }
}

/// Locates what one node of an executable uses.
pub(super) struct NodePlaces<'a> {
    pub(super) resources: &'a Resources,
    pub(super) held: &'a Held,
    pub(super) node: NodeKey,
    /// The handles of conditions.
    pub(super) conditions: &'a dyn Fn(ConditionKey) -> Option<u64>,
}

impl Locate for NodePlaces<'_> {
    fn alloc_node(&self, alloc: NodeKey) -> Option<Location> {
        self.resources.owned.get()?.allocations.get(&alloc).copied()
    }

    fn condition(&self, condition: ConditionKey) -> Option<u64> {
        (self.conditions)(condition)
    }

    /// Graphs read a copy in device memory.
    fn bytes(&self, bytes: &Arc<[u8]>) -> Option<Location> {
        let key = bytes.as_ptr() as usize;
        let staged = || self.resources.owned.get()?.staged.get(&key).copied();
        let address = self.held.staged(self.node, key).or_else(staged)?;
        Some(Location { address, kind: MemoryKind::Device })
    }
}

impl Owned {
    fn new(shared: &Shared, definition: &Definition, modes: &Modes, needs: &Needs) -> Result<Self> {
        let mut owned = Self::default();
        for (key, data) in definition.conditions() {
            let facts =
                ConditionFacts { start: data.default_value().unwrap_or(0), tested_by: data.used_by() };
            owned.conditions.insert(key, facts);
        }
        owned.place_allocations(&shared.allocator, definition, needs)?;
        owned.metered = Some(shared.graph_memory.hold(owned.allocated_bytes));
        owned.place_device_data(&shared.allocator, needs)?;
        owned.make_cells(&shared.allocator, modes, needs)?;
        Ok(owned)
    }

    fn place_allocations(
        &mut self,
        allocator: &Arc<Allocator>,
        definition: &Definition,
        needs: &Needs,
    ) -> Result<()> {
        let at = |node: NodeKey| move |error: Error| error.at_node(definition.label(node));
        let mut blocks: FxHashMap<MemoryKind, (Layout, Vec<(NodeKey, u64)>)> = FxHashMap::default();
        for &node in &needs.allocations.nodes {
            let Operation::Alloc(alloc) = definition.node(node).operation() else { continue };
            self.allocated_bytes = self.allocated_bytes.saturating_add(alloc.bytes());
            allocator.check_kind(alloc.kind).map_err(at(node))?;
            for &peer in &alloc.peers {
                let peer = i32::try_from(peer).unwrap_or(i32::MAX);
                let allowed = allocator.allow_peer(peer);
                allowed.map_err(Error::from).map_err(at(node))?;
            }
            if needs.allocations.freed.contains(&node) {
                let (layout, nodes) = blocks.entry(alloc.kind).or_default();
                nodes.push((node, layout.place(alloc.bytes())));
            } else {
                let memory = allocator.allocate(alloc.bytes(), alloc.kind).map_err(at(node))?;
                let location = Location { address: memory.address(), kind: alloc.kind };
                self.allocations.insert(node, location);
                self.outliving.insert(node, memory);
            }
        }
        for (kind, (layout, nodes)) in blocks {
            if layout.bytes() > isize::MAX as u64 {
                let message =
                    format!("the memory of {} alloc nodes does not fit in the address space", nodes.len());
                return Err(Error::new(ErrorKind::OutOfMemory, message));
            }
            let block = allocator.allocate(layout.bytes(), kind)?;
            for (node, offset) in nodes {
                let location = Location { address: block.address() + offset, kind };
                self.allocations.insert(node, location);
            }
            self.blocks.push(block);
        }
        Ok(())
    }

    /// Places copied host bytes and counters in one block of device memory.
    fn place_device_data(&mut self, allocator: &Arc<Allocator>, needs: &Needs) -> Result<()> {
        let mut layout = Layout::default();
        let staged: Vec<(u64, &Arc<[u8]>)> =
            needs.staged.values().map(|bytes| (layout.place(bytes.len() as u64), bytes)).collect();
        let counters = layout.place(8 * needs.counted.len() as u64);
        if staged.is_empty() && needs.counted.is_empty() {
            return Ok(());
        }
        let block = allocator.allocate(layout.bytes(), MemoryKind::Device)?;
        for (offset, bytes) in staged {
            let address = block.address() + offset;
            if !bytes.is_empty() {
                allocator.copy_now(address, bytes.as_ptr() as u64, bytes.len())?;
            }
            self.staged.insert(bytes.as_ptr() as usize, address);
        }
        if !needs.counted.is_empty() {
            allocator.fill_now(block.address() + counters, 0, 8 * needs.counted.len())?;
        }
        self.counted =
            (!needs.counted.is_empty()).then_some((block.address() + counters, 8 * needs.counted.len()));
        for (index, &node) in needs.counted.iter().enumerate() {
            self.counters.insert(node, block.address() + counters + 8 * index as u64);
        }
        self.blocks.push(block);
        Ok(())
    }

    fn make_cells(&mut self, allocator: &Arc<Allocator>, modes: &Modes, needs: &Needs) -> Result<()> {
        // A condition has a cell if the host tests it, or if nothing does.
        let mut places = FxHashMap::default();
        for (&condition, facts) in &self.conditions {
            if facts.tested_by.is_none_or(|node| modes.is_hosted(node)) {
                places.insert(condition, (1 + places.len(), facts.start));
            }
        }
        if places.is_empty() && !needs.any_hosted {
            return Ok(());
        }
        let page = allocator.host_page(Cells::bytes(places.len()))?;
        let cells = Cells { page, places };
        cells.reset();
        self.cells = Some(cells);
        Ok(())
    }
}

/// What the nodes use besides what their operations hold, replaced node by node when an executable
/// is updated.
#[derive(Default)]
pub(super) struct Held {
    /// `None` for most graphs.
    parts: Option<Box<HeldParts>>,
}

#[derive(Default)]
struct HeldParts {
    host_calls: FxHashMap<NodeKey, Arc<HostCall>>,
    /// Kernels that store their conditions, by the address of the kernel that they replace. That
    /// kernel is kept, so that its address stays unique.
    stored_kernels: FxHashMap<usize, (Arc<dyn backend::Kernel>, Arc<Kernel>)>,
    /// Bytes that came with an update.
    restaged: FxHashMap<NodeKey, Staged>,
    /// The word that disabled fills write.
    unread: Option<Arc<Memory>>,
}

/// A copy of host bytes in device memory: the address of the original, and the copy.
pub(super) type Staged = (usize, Arc<Memory>);

impl Held {
    fn parts(&mut self) -> &mut HeldParts {
        self.parts.get_or_insert_default()
    }

    /// Returns whether the host is called.
    pub(super) fn has_calls(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| !parts.host_calls.is_empty())
    }

    /// Returns what a node calls on the host.
    pub(super) fn call(&self, node: NodeKey) -> Option<&Arc<HostCall>> {
        self.parts.as_ref()?.host_calls.get(&node)
    }

    pub(super) fn set_call(&mut self, node: NodeKey, call: Arc<HostCall>) {
        self.parts().host_calls.insert(node, call);
    }

    /// Returns the variant of a kernel that stores its conditions.
    pub(super) fn stored_kernel(&mut self, kernel: &Arc<dyn backend::Kernel>) -> Result<Arc<Kernel>> {
        let key = Arc::as_ptr(kernel).cast::<()>() as usize;
        if let Some((_, known)) = self.parts().stored_kernels.get(&key) {
            return Ok(Arc::clone(known));
        }
        let stored = Kernel::from_backend(&**kernel)?.with_stored_conditions()?;
        self.parts().stored_kernels.insert(key, (Arc::clone(kernel), Arc::clone(&stored)));
        Ok(stored)
    }

    /// Returns the address of a word that may be written at any time and is never read.
    pub(super) fn unread_word(&mut self, shared: &Shared) -> Result<u64> {
        let unread = &mut self.parts().unread;
        let word = match unread.take() {
            Some(word) => word,
            None => shared.allocator.allocate(4, MemoryKind::Device)?,
        };
        Ok(unread.insert(word).address())
    }

    /// Copies bytes that came with an update of `node` to device memory.
    pub(super) fn restage(&mut self, shared: &Shared, node: NodeKey, bytes: &[u8]) -> Result<()> {
        let memory = shared.allocator.allocate(bytes.len().max(1) as u64, MemoryKind::Device)?;
        if !bytes.is_empty() {
            shared.allocator.copy_now(memory.address(), bytes.as_ptr() as u64, bytes.len())?;
        }
        self.parts().restaged.insert(node, (bytes.as_ptr() as usize, memory));
        Ok(())
    }

    /// Returns the copy that came with the latest update of a node, to put it back with
    /// [`restore_staged`](Self::restore_staged).
    pub(super) fn staged_copy(&self, node: NodeKey) -> Option<Staged> {
        self.parts.as_ref()?.restaged.get(&node).cloned()
    }

    /// Uses another copy, or the one from before all updates.
    pub(super) fn restore_staged(&mut self, node: NodeKey, staged: Option<Staged>) {
        match staged {
            Some(staged) => self.parts().restaged.insert(node, staged),
            None => self.parts.as_mut().and_then(|parts| parts.restaged.remove(&node)),
        };
    }

    fn staged(&self, node: NodeKey, original: usize) -> Option<u64> {
        let (key, memory) = self.parts.as_ref()?.restaged.get(&node)?;
        (*key == original).then(|| memory.address())
    }
}

/// What a definition needs an executable to own.
#[derive(Default)]
struct Needs {
    allocations: Allocations,
    staged: FxHashMap<usize, Arc<[u8]>>,
    /// The native conditionals whose passes are counted: those that a kernel of Gridloom's decides,
    /// which counts at no extra cost, and on request all.
    counted: Vec<NodeKey>,
    any_hosted: bool,
}

impl Needs {
    /// The kinds of nodes without which a graph needs nothing.
    const NEEDY: NodeKinds = NodeKind::MEMORY.union(NodeKind::READERS_OF_BYTES).union(NodeKind::CONDITIONALS);

    fn of(definition: &Definition, program: &Program, count_passes: bool) -> Self {
        let mut needs = Self { allocations: Allocations::of(definition), ..Self::default() };
        let all = definition.may_have(NodeKind::READERS_OF_BYTES).then(|| definition.all_nodes());
        for (_, node) in all.into_iter().flatten() {
            node.operation().for_each_region(|region| {
                if let Base::Bytes(bytes) = &region.base {
                    needs.staged.insert(bytes.as_ptr() as usize, Arc::clone(bytes));
                }
            });
        }
        if !definition.may_have(NodeKind::CONDITIONALS) {
            return needs;
        }
        program.for_each_step(&mut |step| {
            if step.is_native()
                && let Operation::Conditional(op) = definition.node(step.origin).operation()
                && (count_passes || has_decider(op))
            {
                needs.counted.push(step.origin);
            }
        });
        needs.any_hosted = program.is_hosted();
        needs
    }
}

/// Places things in one block, each aligned as the driver aligns allocations. The size of a block
/// that is larger than the address space saturates.
#[derive(Default)]
struct Layout {
    end: u64,
}

impl Layout {
    const ALIGNMENT: u64 = 256;

    fn place(&mut self, bytes: u64) -> u64 {
        let start = self.end.checked_next_multiple_of(Self::ALIGNMENT).unwrap_or(u64::MAX);
        self.end = start.saturating_add(bytes);
        start
    }

    fn bytes(&self) -> u64 {
        self.end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_in_a_block_are_aligned_and_do_not_overlap() {
        let mut layout = Layout::default();
        assert_eq!([layout.place(1), layout.place(300), layout.place(8)], [0, 256, 768]);
        assert_eq!(layout.bytes(), 776);
    }

    #[test]
    fn things_that_do_not_fit_in_the_address_space_make_a_block_that_does_not_either() {
        let mut layout = Layout::default();
        for _ in 0..5 {
            layout.place(isize::MAX as u64);
        }
        assert_eq!(layout.bytes(), u64::MAX);
    }
}
