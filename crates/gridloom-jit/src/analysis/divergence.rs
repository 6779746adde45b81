//! Where the threads of a group can be while others of it run. This decides which code must exist
//! in a version for some threads only.
//!
//! Threads that diverge at a branch run together again as soon as they are at the same block. The
//! first block in program order that has threads is always run next, by all threads that are at it.
//! The others wait. The two sides of a branch join after both, and threads that have left a loop
//! wait after it. So this order finds the joins in any control flow, without an analysis of its
//! structure.
//!
//! A block can be run by some threads only if others may be waiting or have exited. The waiting
//! threads must keep the registers they need. So a register that such a block writes is stored per
//! thread, and written only in the running threads.

use crate::analysis::flow::{Flow, Role, SlotSet};
use gridloom_interp::code::Op;
use gridloom_interp::lanes::{Slot, Source};

/// The most blocks of a function whose diverged threads run together again. In larger functions
/// each continues alone.
const MOST: usize = 400;

/// A set of blocks. The end of the function follows the last block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockSet(Vec<u64>);

impl BlockSet {
    fn new(blocks: usize) -> Self {
        Self(vec![0; (blocks + 1).div_ceil(64)])
    }

    fn insert(&mut self, block: usize) {
        self.0[block / 64] |= 1 << (block % 64);
    }

    fn remove(&mut self, block: usize) {
        self.0[block / 64] &= !(1 << (block % 64));
    }

    /// Adds another set. Returns whether this one has grown.
    fn union(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            changed |= other & !*word != 0;
            *word |= other;
        }
        changed
    }

    pub(crate) fn contains(&self, block: usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 == 1
    }

    pub(crate) fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i * 64 + bit)
        })
    }
}

/// For each block of a function, where other threads can be while some run it.
pub(crate) struct Divergence {
    /// For each block that threads can reach after they have diverged, where others can be.
    waiting: Vec<Option<BlockSet>>,
    /// The registers that those need.
    live: Vec<SlotSet>,
}

impl Divergence {
    /// Returns the result for code whose diverged threads do not run together.
    pub(crate) fn none(flow: &Flow<'_>) -> Self {
        Self { waiting: vec![None; flow.blocks.len()], live: Vec::new() }
    }

    /// Analyses a function. `differs` tells which registers can differ between threads.
    pub(crate) fn of(flow: &Flow<'_>, differs: impl Fn(Source) -> bool) -> Self {
        let blocks = flow.blocks.len();
        let mut this = Self::none(flow);
        if blocks > MOST {
            return this;
        }
        let ways: Vec<Vec<BlockSet>> = (0..blocks).map(|block| ways(flow, &differs, block)).collect();
        let mut work = Vec::new();
        let nowhere = BlockSet::new(blocks);
        for way in ways.iter().flatten().filter(|way| way.iter().nth(1).is_some()) {
            this.land(&nowhere, way, &mut work);
        }
        while let Some(block) = work.pop() {
            let Some(waiting) = this.waiting[block].clone() else { continue };
            for way in &ways[block] {
                this.land(&waiting, way, &mut work);
            }
            // No thread may be at the block itself.
            this.land(&waiting, &nowhere, &mut work);
        }
        this.live = (this.waiting.iter())
            .map(|waiting| {
                let mut live = SlotSet::new(flow.code.functions[flow.function].slots);
                for block in waiting.iter().flat_map(BlockSet::iter).filter(|&block| block < blocks) {
                    live.union(&flow.blocks[block].live_in);
                }
                live
            })
            .collect();
        this
    }

    /// Records that threads are at some blocks. The first of them runs next.
    fn land(&mut self, waiting: &BlockSet, way: &BlockSet, work: &mut Vec<usize>) {
        let mut at = waiting.clone();
        at.union(way);
        let Some(first) = at.first().filter(|&first| first < self.waiting.len()) else { return };
        at.remove(first);
        match &mut self.waiting[first] {
            Some(known) => {
                if known.union(&at) {
                    work.push(first);
                }
            }
            unknown => {
                *unknown = Some(at);
                work.push(first);
            }
        }
    }

    /// Returns whether threads can reach a block after they have diverged. They may also all be
    /// there.
    pub(crate) fn is_met(&self, block: usize) -> bool {
        self.waiting[block].is_some()
    }

    /// Returns where others can be while threads are at a block that is reachable after divergence.
    pub(crate) fn waiting(&self, block: usize) -> Option<&BlockSet> {
        self.waiting[block].as_ref()
    }

    /// Returns the registers that other threads need while a block runs, or `None` if no other
    /// thread can be elsewhere.
    pub(crate) fn kept(&self, block: usize) -> Option<&SlotSet> {
        let waits = self.waiting[block].as_ref()?.first().is_some();
        waits.then(|| &self.live[block])
    }

    /// Returns where threads can be after a block from which they go to `ways`, including the
    /// threads that were elsewhere.
    pub(crate) fn behind(&self, block: Option<usize>, ways: &[usize]) -> BlockSet {
        let mut at = match block.and_then(|block| self.waiting[block].clone()) {
            Some(waiting) => waiting,
            None => BlockSet::new(self.waiting.len()),
        };
        ways.iter().for_each(|&way| at.insert(way));
        at
    }

    /// Returns the position after all blocks, of threads that have exited.
    pub(crate) fn end(&self) -> usize {
        self.waiting.len()
    }

    /// Calls `visit` with the registers that are written while waiting threads need another value.
    pub(crate) fn for_each_divided(&self, flow: &Flow<'_>, visit: &mut dyn FnMut(Slot)) {
        for (index, block) in flow.blocks.iter().enumerate() {
            let Some(kept) = self.kept(index) else { continue };
            for pc in block.range.clone() {
                flow.instruction(pc).for_each_definition(&mut |slot| {
                    if kept.contains(slot) {
                        visit(slot);
                    }
                });
            }
        }
    }
}

/// Returns the sets of blocks that threads can go to together from one block. A set has more than
/// one block if they diverge.
fn ways(flow: &Flow<'_>, differs: &impl Fn(Source) -> bool, index: usize) -> Vec<BlockSet> {
    let blocks = flow.blocks.len();
    let block = &flow.blocks[index];
    let last = block.range.end - 1;
    let instruction = flow.instruction(last);
    if flow.role(last) == Role::Interpreted {
        return Vec::new();
    }
    let behind = flow.block_at(block.range.end);
    let mut targets: Vec<usize> = match &instruction.op {
        Op::Branch { target } => flow.block_at(*target).into_iter().collect(),
        Op::BranchTable(table) => table.targets.iter().filter_map(|&target| flow.block_at(target)).collect(),
        Op::Exit | Op::Return => vec![blocks],
        _ => behind.into_iter().collect(),
    };
    let is_terminator = flow.role(last) == Role::Terminator;
    let mut part = matches!(&instruction.op, Op::BranchTable(table) if differs(table.index));
    if let (Some(guard), true) = (instruction.guard, is_terminator) {
        targets.extend(behind);
        part |= differs(Source::Slot(guard.slot));
    }
    let set = |targets: &[usize]| {
        let mut set = BlockSet::new(blocks);
        targets.iter().for_each(|&target| set.insert(target));
        set
    };
    if part { vec![set(&targets)] } else { targets.iter().map(|&target| set(&[target])).collect() }
}
